"""The front page: the grid as a picture, and the best of each task with what is known of it."""

from __future__ import annotations

from typing import Any

from harness.leaderboard.board import Board, task_file
from harness.leaderboard.comparison import compare
from harness.leaderboard.picture import Line, Picture, pictures
from harness.leaderboard.ranking import (
    CUSTOM_REMARK,
    SMOKE_REMARK,
    as_good_with_less,
    best_results,
    elsewhere,
    scored,
)
from harness.leaderboard.results import Result, Section
from harness.leaderboard.tables.cost import COUNTS, mean_of
from harness.leaderboard.tables.formatting import (
    axis_title,
    caveats,
    format_count,
    format_magnitude,
    format_number,
    format_score,
    metric_label,
    section_title,
)
from harness.leaderboard.tables.table import BLANK, Block, Part, Table, TableRow
from harness.metrics import display_info
from harness.records.groups import SMOKE
from harness.settings import CUSTOM

RULES = {
    "equal": (
        "Protocol equal gives all the same inputs, word vectors, dropout, optimiser, learning rates to choose from and"
        " amount of training; sizes are those of the papers."
    ),
    "paper": "Protocol paper is the recipe of each architecture's own paper.",
}
"""Sentences on the protocols whose rows are ranked."""
TIERS = {
    "local": "Tier local is the published data, read from files.",
    "hub": "Tier hub is the published data, from the Hugging Face hub.",
    "own": "Tier own is data of your own.",
}
BUDGET = "A budget is an amount of training: full has all examples, small a sample of them."
MINI_REMARK = (
    "These are scores on corpora that archbench generates itself (tier mini). They say whether an architecture learns,"
    " and nothing of the published data sets: `archbench run --tier local` or `--tier hub` takes those."
)


def lead(board: Board) -> list[str]:
    """Sentences on the site, how much stands in it, and its protocols."""
    if not board.records:
        return ["There are no records yet: `archbench run` makes them."]
    learning = [record for record in board.records if not board.is_floor(record.architecture)]
    ended = [record for record in learning if record.status == "ok"]
    architectures, tasks = {record.architecture for record in ended}, {record.task for record in ended}
    without = len({record.architecture for record in learning} - architectures)
    others = f" {without} more have no score: they failed, passed a limit or were left out." if without else ""
    return [
        "Architectures for natural language processing, trained on the same tasks under the same rules:"
        f" scores of {len(architectures)}, on {format_count(len(tasks), 'task')}, from"
        f" {format_count(len(ended), 'training')}.{others}"
        " Every training has a record, also one that failed. Where the records do not decide which is better, these"
        " pages say so.",
        *(text for name, text in RULES.items() if any(section.protocol == name for section in board.sections)),
        " ".join([*(text for tier, text in TIERS.items() if any(s.tier == tier for s in board.sections)), BUDGET]),
    ]


def remarks(board: Board) -> list[str]:
    """Warnings that a reader needs before any score: all are of a generated corpus, or some of runs
    that mean nothing, or of training that a user chose."""
    found = [SMOKE_REMARK] if any(section.protocol == SMOKE for section in board.sections) else []
    found += [CUSTOM_REMARK] if any(section.budget == CUSTOM for section in board.sections) else []
    return [*found, MINI_REMARK] if {section.tier for section in board.sections} == {"mini"} else found


# --- the picture ---


def picture_parts(board: Board) -> dict[str, Any]:
    """Parts of the template for :func:`~harness.leaderboard.picture.pictures`."""
    shown = pictures(board)
    families = {board.family(line.architecture) for each in shown for block in each.blocks for line in block.lines}
    return {
        "pictures": [_picture(board, each) for each in shown],
        "places": [(each.id, each.title) for each in shown],
        "families": [(family, family) for family in board.families if family in families],
    }


def _picture(board: Board, picture: Picture) -> dict[str, Any]:
    tasks = [
        {
            "name": board.task_name(task),
            "link": task_file(task),
            "type": board.type_in_words(task),
            "metric": metric_label(board.main_metric(task)),
            "counted": task in picture.counted,
        }
        for task in picture.tasks
    ]
    numbers = {type: sum(board.type_in_words(task) == type for task in picture.counted) for type in picture.types}
    blocks = [
        {
            "title": block.title,
            "sees": "more" if block.more else "ordinary",
            "rows": [_row(board, line, picture.types, numbers) for line in block.lines],
        }
        for block in picture.blocks
    ]
    return {"id": picture.id, "title": picture.title, "tasks": tasks, "blocks": blocks}


def _row(board: Board, line: Line, types: list[str], numbers: dict[str, int]) -> dict[str, Any]:
    means = [line.means.get(type, (0.0, 0)) for type in types]
    return {
        "name": board.name(line.architecture),
        "link": board.page_of(line.architecture),
        "family": board.family(line.architecture),
        "method": "classical" if board.is_classical(line.architecture) else "neural",
        "means": ",".join(f"{round(mean, 4):g} {number}" for mean, number in means),
        "mean": _mean_text(*means[0], numbers[types[0]]) if means else "",
        "squares": line.squares,
    }


def _mean_text(mean: float, number: int, tasks: int) -> str:
    """A mean over so many of the counted tasks of a type, as picture.js writes it for the type that
    is chosen."""
    if number and number == tasks:
        return f"{100 * mean:.0f}"
    return f"{number} of {tasks}" if number else ""


# --- the best of each task ---


def best_table(board: Board) -> Table:
    """The best result of every section's task with its floor, its cost and a verdict; sections that
    are not ranked have none."""
    blocks = []
    for section in filter(lambda section: section.ranked, board.sections):
        rows = [row for task in board.recorded_tasks if (row := _best_row(board, section, task))]
        if rows:
            blocks.append(Block(section_title(section), rows))
    lead = [
        "The highest test score of each task (with ↓ the lowest), mean ± standard deviation over seeds. The verdict is"
        " of paired tests against each other result that may be compared: the same data, rules and budget, and above"
        " the floor. With fewer than three seeds nothing is decided."
    ]
    columns = ["Task", "score in", "best", "score", "floor", "verdict", "compared", "parameters", "latency, ms"]
    return Table("best", "Best per task", columns, blocks, lead, text_columns=(1, 2, 5))


def _best_row(board: Board, section: Section, task: str) -> TableRow | None:
    """None if no result of the section's task has a score."""
    metric = board.main_metric(task)
    best = best_results(board, section, task, metric)
    results = scored(board, section, task, metric)
    if not results:
        return None
    comparison = compare(board, section, task)
    compared = [Part(f"{len(comparison.rivals) if comparison else 0} of {len(results)}")]
    if more := elsewhere(board, section, task, metric):
        compared.append(Part(f"{more} in other sections", "quiet"))
    unit, group = [Part(axis_title(metric))], board.group(section, task)
    floor = board.floor(group, metric) if group else None
    floors = [Part(display_info(metric).format(floor[1]), title=floor[0])] if floor else BLANK
    if not best:
        none = [Part("none shown to be above the floor", "quiet")]
        cells = [unit, none, BLANK, floors, BLANK, compared, BLANK, BLANK]
        return TableRow(board.task_name(task), cells, link=task_file(task))
    names, scores, sizes, latencies = [], [], [], []
    for architecture, result in board.results(section, task):
        summary = result.summary(metric)
        if result in best and summary:
            names.append(Part(board.result_name(architecture, result), link=board.page_of(architecture)))
            scores.append(Part(format_score(metric, summary), "", caveats(board, result)))
            sizes.append(_size(result))
            latencies.append(_latency(board, architecture))
    cells = [unit, names, scores, floors, [Part(verdict(board, section, task))], compared, sizes, latencies]
    return TableRow(board.task_name(task), cells, link=task_file(task))


def _size(result: Result) -> Part:
    size = mean_of(result.ok, COUNTS["parameters"].measure)
    return BLANK[0] if size is None else Part(format_magnitude(size))


def _latency(board: Board, architecture: str) -> Part:
    """Milliseconds of one answer on a quiet machine."""
    speed = board.speeds.get(architecture)
    return Part(format_number(speed.latency_ms)) if speed and speed.latency_ms else BLANK[0]


def verdict(board: Board, section: Section, task: str) -> str:
    """Verdict of the tests on the first place of a section's task, in a few words."""
    comparison, best = compare(board, section, task), best_results(board, section, task, board.main_metric(task))
    if comparison is None or len(comparison.rivals) < 2:
        return "not tested"
    if comparison.doubt:
        return f"not decided: {comparison.doubt}"
    if comparison.leads:
        if less := as_good_with_less(board, section, task):
            return f"not decided: as good with less training: {'; '.join(less)}"
        others = len(comparison.rivals) - 1
        return f"better than each of the {others} others" if others > 1 else "better than the other"
    others = len(comparison.tie_group) - len(best)
    return f"not decided: {others} more cannot be told from it" if others > 0 else "the best are equal"
