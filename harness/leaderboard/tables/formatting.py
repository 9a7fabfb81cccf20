"""A result as lines of a table cell: its score with marks, and the words for what did not end
ok."""

from __future__ import annotations

import textwrap

from harness.leaderboard.board import Board, Published, Result, Section, section_of
from harness.leaderboard.comparison import Evidence
from harness.leaderboard.significance import Summary, leaders
from harness.leaderboard.tables.table import Part, Row
from harness.metrics import display_info
from harness.records import Record


def format_score(metric: str, summary: Summary) -> str:
    """Mean ± standard deviation (number of seeds); one seed has no deviation."""
    info = display_info(metric)
    mean = info.format(summary.mean)
    if summary.sd is None:
        return f"{mean} ({summary.n})"
    return f"{mean} ± {info.format_deviation(summary.mean, summary.sd)} ({summary.n})"


def counterpart(board: Board, result: Result, metric: str) -> Published | None:
    """The published value that a result is compared with; none for a generated corpus, which is not
    the published data."""
    first = result.first
    return None if first.tier == "mini" else board.counterparts.get((first.architecture, first.task, metric))


def difference(published: Published, metric: str, summary: Summary) -> float:
    """Ours minus the published value, in points, from the values as they are shown, so that a
    reader's own subtraction agrees."""
    return round(display_info(metric).rounded(summary.mean) - float(published.percent), 1)


def signed(points: float) -> str:
    """A difference with its sign, which nothing has not."""
    return f"{points:+.1f}".replace("-", "−") if points else "0.0"


def interval(evidence: Evidence | None, result: Result) -> tuple[float, float] | None:
    """The 95 % interval of a result's score over test units, as a fraction; None where its records
    have no outcomes."""
    row = evidence.row(result) if evidence else None
    return (
        None
        if evidence is None or row is None
        else (float(evidence.intervals[row][0]), float(evidence.intervals[row][1]))
    )


def format_interval(metric: str, bounds: tuple[float, float]) -> str:
    """The two ends on the scale of the scores."""
    return " to ".join(map(display_info(metric).format, bounds))


def metric_label(metric: str) -> str:
    """Heading of a metric's column; an arrow marks those where less is better."""
    info = display_info(metric)
    return f"{info.label} ↓" if info.lower_is_better else info.label


def axis_title(metric: str) -> str:
    """Label of a metric with its unit in brackets, if it has one."""
    unit = display_info(metric).unit
    return f"{metric_label(metric)} ({unit})" if unit else metric_label(metric)


def number(value: float) -> str:
    """A count or a rate: whole from 100 on, with thousands separated, else three significant
    digits."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def magnitude(value: float) -> str:
    """A large count with three significant digits and its power of a thousand."""
    for size, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return number(value)


def failures(result: Result) -> list[Part]:
    """What did not end ok, one line per status and reason, the reason as a note."""
    groups: dict[tuple[str, str], list[int]] = {}
    for record in result.records:
        if record.status != "ok":
            groups.setdefault((record.status, reason(record)), []).append(record.seed)
    lines = []
    for (status, why), seeds in groups.items():
        which = "" if len(seeds) == len(result.records) else f", seed {', '.join(map(str, seeds))}"
        text = status if len(result.records) == 1 else f"{status} ({len(seeds)})"
        notes = (result.settings, f"{status}{which}: {why}") if result.settings else (f"{status}{which}: {why}",)
        lines.append(Part(text, "skipped" if status == "skipped" else "failed", notes))
    return lines


def reason(record: Record) -> str:
    """Why a cell did not end ok, in one line."""
    error = record.error or {}
    message = ": ".join(filter(None, (error.get("type"), error.get("message"))))
    return textwrap.shorten(message, 300, placeholder=" …") or "the record gives no reason"


def caveats(board: Board, result: Result) -> tuple[str, ...]:
    """What a reader must know before comparing a score: other settings, a part of the training
    data, random word vectors in place of the paper's, an older version."""
    first = result.first
    notes = [result.settings] if result.settings else []
    if any(record.partial for record in result.ok):
        size = board.tasks[first.task].sizes.get("train") if first.task in board.tasks else None
        passes = first.hyperparameters.get("limits", {}).get("max_epochs")
        if size == result.trained_on and passes:
            notes.append(f"partial: at most {passes} passes over the training set")
        else:
            whole = f"{size:,}" if size else "more"
            notes.append(f"partial: trained on {result.trained_on:,} examples; the official training set has {whole}")
            notes += [f"at most {passes} passes over them"] if passes else []
    architecture = board.architectures.get(first.architecture)
    named = architecture.options.get("vectors_of_paper") if architecture else None
    random = (r.parameters.get("embedding") and r.hyperparameters.get("vectors") is None for r in result.ok)
    if named and any(random):
        notes.append(f"Word vectors start at random; the paper starts from {named}.")
    for entry, version in (
        (architecture, first.architecture_version),
        (board.tasks.get(first.task), first.task_version),
    ):
        if entry and entry.version != version:
            notes.append(f"{entry.id} version {version}, which is now {entry.version}")
    if len(board.test_data.get((section_of(first, board.main_metric(first.task)), first.task), ())) > 1:
        mine = sorted({record.data.get("test", "not recorded")[:12] for record in result.ok})
        notes.append(f"scored on test data {', '.join(mine)}: not the same for all rows of this section")
    return tuple(notes)


def score_parts(
    board: Board, result: Result, metric: str, best: bool, published: Published | None = None
) -> list[Part]:
    """The lines of a result in a column: its score with marks, the published value and the
    difference to it, then what failed."""
    lines = []
    summary = result.summary(metric)
    if summary:
        text = format_score(metric, summary) + (" partial" if any(record.partial for record in result.ok) else "")
        lines.append(
            Part(text, "best" if best else "", caveats(board, result), order=display_info(metric).shown(summary.mean))
        )
        if published:
            text = f"published {published.percent}, difference {signed(difference(published, metric, summary))}"
            lines.append(Part(text, "quiet", published.notes))
    elif result.ok:
        lines.append(Part("not scored", "failed", (f"the record is ok and has no test score called {metric}",)))
    return lines + failures(result)


def best_results(board: Board, section: Section, task: str, metric: str) -> set[Result]:
    """The best of a section's task among :meth:`Board.rivals`; several if they are shown alike."""
    info = display_info(metric)
    scores = {
        result: info.rounded(summary.mean)
        for _, result in board.rivals(section, task, metric)
        if (summary := result.summary(metric))
    }
    positions = leaders(list(scores.values()), lower_is_better=info.lower_is_better, digits=info.digits)
    results = list(scores)
    return {results[i] for i in positions}


def section_title(section: Section) -> str:
    """What the rows of one tier and protocol have in common, in words."""
    generated = " (generated corpus, not the published data)" if section.tier == "mini" else ""
    tokens = f", tokens {section.tokens}" if section.tokens else ""
    return f"tier {section.tier}{generated}, protocol {section.protocol}{tokens}"


def our_row(board: Board, architecture: str, cells: list[list[Part]]) -> Row:
    """A row of ours, with the architecture's deviations from its paper as notes."""
    entry = board.architectures.get(architecture)
    name = board.name(architecture)
    title = f"{architecture}: {entry.family}, {entry.paper}" if entry else architecture
    notes = tuple(f"{name}: {text}" for text in entry.deviations) if entry else ()
    return Row(name, cells, board.is_classical(architecture), notes, title, board.page_of(architecture))
