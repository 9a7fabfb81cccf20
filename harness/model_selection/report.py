"""The findings of a trial as a table, a page and sentences."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Sequence
from pathlib import Path

from harness.files import write_whole
from harness.leaderboard.pages.page import FOLDER, templates
from harness.leaderboard.tables.cost import COUNTS
from harness.leaderboard.tables.formatting import (
    format_interval,
    format_number,
    format_p,
    format_points,
    metric_label,
)
from harness.leaderboard.tables.table import BLANK, Block, Part, Table, TableRow, markdown
from harness.metrics import CLEARLY, display_info
from harness.model_selection.choice import Choice, Scored
from harness.model_selection.trial import Trial
from harness.model_selection.wish import Preference

PAGE, WIDTH = "index.html", 110
TESTED = (
    "The 95 % interval of a score and the comparison with the best are over other rows, of one training each. In front"
    " are the best and those that chance cannot tell apart from it; p is that of the distance to it, corrected for the"
    " number of architectures. Floors need no training: an architecture whose interval reaches the best of them is not"
    " known to have learnt anything."
)
UNTESTED = (
    "This metric is no mean over rows, so that there is no interval, and nobody asked chance: the order of near scores"
    " may be luck. In front is the best alone. Floors need no training: an architecture that is not"
    f" {100 * CLEARLY:.0f} points above the best of them is not known to have learnt anything."
)
COSTS = (
    "Seconds are those of a training with its scoring, and ms the median of an answer to one text, on one thread of the"
    " processor."
)


def tables(trial: Trial) -> list[Table]:
    """All that was tried, best first; what was stopped; and what was left out, with the reasons."""
    choice = trial.choice
    columns = [
        "Architecture",
        metric_label(choice.metric),
        "95 % interval",
        "beside the best",
        "seconds",
        "ms",
        "parameters",
    ]
    rows = [_row(choice, each) for each in choice.rows]
    legend = TESTED if choice.tested else UNTESTED
    found = Table("tried", "What was tried", columns, [Block("", rows)], [legend, COSTS], text_columns=(3,))
    others = [make(trial) for make, ids in ((_stopped, trial.behind), (_left_out, trial.left_out)) if ids]
    return [found, *others]


def _row(choice: Choice, scored: Scored) -> TableRow:
    entry, info = scored.tried.entry, display_info(choice.metric)
    name = f"{entry.name} ({entry.id})" if not scored.tried.is_floor else entry.name
    best = _is(scored, choice.recommended)
    size, show = scored.tried.parameters, COUNTS["parameters"].show
    cells = [
        [Part(info.format(scored.score), "best" if best else "")],
        BLANK if scored.interval is None else [Part(format_interval(choice.metric, scored.interval))],
        [Part(_place(choice, scored), "" if scored in choice.leading else "quiet")],
        [Part(format_number(scored.tried.seconds))],
        BLANK if scored.tried.latency_ms is None else [Part(format_number(scored.tried.latency_ms))],
        BLANK if not size else [Part(show(size))],
    ]
    return TableRow(name, cells, title=entry.paper)


def _place(choice: Choice, scored: Scored) -> str:
    if scored.tried.is_floor:
        return "needs no training"
    if scored.at_floor:
        return "at the floor"
    if scored in choice.leading:
        if _is(scored, choice.recommended):
            return "in front, recommended"
        return "in front, cheapest" if _is(scored, choice.cheapest) else "in front"
    return "behind" if scored.interval is None or scored.p is None else f"behind, {format_p(scored.p)}"


def _is(scored: Scored, other: Scored | None) -> bool:
    return other is not None and scored.tried is other.tried


def _stopped(trial: Trial) -> Table:
    rows = [TableRow(id, [[Part(told)]]) for id, told in trial.behind.items()]
    title = f"Stopped early, since they were clearly behind: {len(rows)}"
    columns = ["Architecture", "why it was stopped"]
    return Table("stopped", title, columns, [Block("", rows)], text_columns=(0, 1))


def _left_out(trial: Trial) -> Table:
    by_reason: dict[str, list[str]] = {}
    for id, reason in trial.left_out.items():
        by_reason.setdefault(reason, []).append(id)
    rows = [TableRow(reason, [[Part(", ".join(ids))]]) for reason, ids in by_reason.items()]
    title = f"Left out: {len(trial.left_out)}"
    return Table("left-out", title, ["Reason", "architectures"], [Block("", rows)], text_columns=(0, 1))


def sentences(trial: Trial, running: bool = False) -> list[str]:
    """The outcome in words."""
    choice = trial.choice
    found = [trial.slices.words, trial.order.reason]
    models = [each for each in choice.rows if not each.tried.is_floor]
    if choice.leading:
        names = ", ".join(each.tried.entry.id for each in choice.leading)
        found.append(f"In front, of {len(models)} tried: {names}.")
    if running:
        return [*found, "The trial goes on."]
    if choice.recommended is None:
        return [*found, f"Nothing is recommended: {choice.reason}."]
    found += _compared(choice)
    found.append(_recommended(trial, choice.recommended))
    found.append(_luck(trial, choice.recommended, len(models)))
    return [*found, *_handed_over(trial)]


def _compared(choice: Choice) -> list[str]:
    """A sentence on those in front that were compared on more rows; none where none were."""
    if not choice.finals:
        return []
    info = display_info(choice.metric)
    scores = ", ".join(f"{each.tried.entry.id} {info.format(each.score)}" for each in choice.finals)
    return [
        "The best of them that are cheap enough were trained anew without each other part of the rows, and answered it,"
        f" so that more rows compare them: {scores}."
    ]


def _handed_over(trial: Trial) -> list[str]:
    """A sentence on the rows from which the model that is kept learnt, or the reason why none
    is kept."""
    if trial.handed_over is None:
        return [f"No model is handed over: {trial.why_not_kept or trial.why_not_confirmed}."]
    if trial.saw is None:
        return ["The model that is handed over is the one that was scored."]
    rows = trial.slices.rows
    others = ""
    if trial.saw < rows:
        others = f"; the other {rows - trial.saw:,} end a training, choose a setting or were not drawn"
    return [
        f"The model that is handed over was trained once more, on {trial.saw:,} of the {rows:,} rows{others}. It is"
        " expected to be no worse than the score says."
    ]


def _recommended(trial: Trial, chosen: Scored) -> str:
    """A sentence on what is recommended, by which wish, and what the cheapest costs in score or the
    best in seconds."""
    choice, wish = trial.choice, trial.wish
    limits = f" within {wish.limits}" if wish.limits else ""
    found = f"Recommended: {chosen.tried.entry.id}, the {wish.prefer} of those in front{limits}."
    other, which = (choice.cheapest, "cheapest") if wish.prefer == Preference.best else (choice.best, "best")
    if other is None or _is(other, chosen):
        return found
    info = display_info(choice.metric)
    points = format_points(info.round(other.score) - info.round(chosen.score), info.digits)
    return (
        f"{found} The {which} of them, {other.tried.entry.id}, has {info.format(other.score)} ({points}) and takes"
        f" {format_number(other.tried.seconds)} s instead of {format_number(chosen.tried.seconds)}."
    )


def _luck(trial: Trial, chosen: Scored, models: int) -> str:
    """A sentence on how far the score of the chosen one can be believed."""
    info = display_info(trial.choice.metric)
    chosen = trial.choice.finals[0] if trial.choice.finals else chosen
    if not trial.slices.sealed:
        return (
            f"Its score, {info.format(chosen.score)}, is that of a choice among {models} on the same rows, so a little"
            " of it is luck; nothing was sealed to show how much."
        )
    if trial.confirmed is None:
        score, reason = info.format(chosen.score), trial.why_not_confirmed
        return f"Its score, {score}, was not confirmed on the sealed rows: {reason}."
    there, others = trial.confirmed, ", ".join(trial.also_confirmed)
    once = "" if others else " once"
    again = (
        f" These rows confirmed {others} too, so a choice among their sealed scores is luck again." if others else ""
    )
    interval = f" (95 %: {format_interval(trial.choice.metric, there.interval)})" if there.interval else ""
    points = format_points(info.round(there.score) - info.round(chosen.score), info.digits)
    return (
        f"Confirmed{once} on the sealed rows: {info.format(there.score)}{interval}. It was chosen with"
        f" {info.format(chosen.score)}, before it learnt from the rows to choose by; the rest of the difference,"
        f" {points}, is luck, of the choice and of the rows. Believe the sealed score.{again}"
    )


def write_page(trial: Trial, running: bool = False) -> Path:
    """Write the page, and the same as Markdown, beside the slices; returns the page."""
    title = f"Tried on {trial.task.entry.name}"
    shown, words = tables(trial), sentences(trial, running)
    text = (
        templates()
        .get_template("content.html")
        .render(
            title=title,
            here=PAGE,
            navigation=[],
            task_pages=[],
            exports=[("Markdown", "index.md")],
            lead=words,
            tables=shown,
        )
    )
    for name in ("archbench.css", "archbench.js"):
        write_whole(trial.folder / name, (FOLDER / "static" / name).read_bytes())
    write_whole(trial.folder / "index.md", markdown(title, words, shown).encode())
    write_whole(trial.folder / PAGE, text.encode())
    return trial.folder / PAGE


def lines(table: Table) -> list[str]:
    """A table as lines for a terminal, in equal columns; where two of them have words alone, the
    second stands below the first."""
    rows = [row for block in table.blocks for row in block.rows]
    cells = [[row.name, *(" ".join(part.text for part in cell) for cell in row.cells)] for row in rows]
    if len(table.columns) == 2:
        return [line for name, text in cells for line in _wrapped(name, text)]
    widths = [max(map(len, column)) for column in zip(table.columns, *cells, strict=True)]
    return [_line(each, widths, (0, *table.text_columns)) for each in (table.columns, *cells)]


def _wrapped(name: str, text: str) -> list[str]:
    return [f"{name}:", *textwrap.wrap(text, WIDTH, initial_indent="  ", subsequent_indent="  ")]


def _line(cells: Sequence[str], widths: Sequence[int], texts: Collection[int]) -> str:
    placed = (
        cell.ljust(width) if number in texts else cell.rjust(width)
        for number, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return "  ".join(placed).rstrip()
