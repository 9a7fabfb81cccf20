"""Scores against the number of labels: systems that learn from plain texts too, beside those that
learn from labels alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from harness.leaderboard.board import Board
from harness.leaderboard.pages.page import Page, Plot
from harness.leaderboard.pages.panels import Panel, over_logarithm, panels_page
from harness.leaderboard.pages.plots import floor_across, line_with_deviations
from harness.leaderboard.results import Result, Section, told_apart
from harness.leaderboard.tables.formatting import metric_label, our_row, score_parts, section_title, text_cell
from harness.leaderboard.tables.table import BLANK, Block, Table
from harness.metrics import display_info
from harness.records.groups import SMOKE, cell_without
from harness.settings import LABELLED_PASSES, LABELLED_STEPS, Limits
from harness.task import WITHOUT_LABELS

LEAD = (
    (
        "Each column is a number of training examples that kept their labels, the same ones for every row and seed; the"
        " last is all of them. Who reads the texts of the others too is said beside the name. Dev keeps its labels."
    ),
    (
        "Along a row nothing else differs: the settings, dev and test are equal. Left out is what was run with all"
        " labels alone, except for floors."
    ),
)
ALONG = (("seed",), ("hyperparameters", "limits", "labels"))
"""Parts of a cell that differ along a line."""

Points = dict[int | None, Result]
"""Results by number of labels; None is all of them."""


class Line(NamedTuple):
    """The results that are joined over numbers of labels: an architecture, in words what its
    training sees and is given besides labels, and the settings that are equal in all of them. The
    texts that lost their labels are no part of these words: with all labels there are none."""

    architecture: str
    besides: str
    settings: dict[str, Any]
    points: Points


class NamedLine(NamedTuple):
    """A line with its ``besides`` and the settings that tell it from others of its architecture."""

    architecture: str
    words: str
    points: Points


def few_labels_page(board: Board) -> list[Page]:
    """The page, if something was trained on two numbers of labels."""
    return panels_page("few-labels.html", "Few labels", LEAD, _panels(board))


def _panels(board: Board) -> Iterator[Panel]:
    """A panel for each task and each tier, protocol and budget that was cut to numbers of
    labels."""
    for task in board.recorded_tasks:
        for place, lines in _places(board, task).items():
            cut = [line for line in lines if set(line.points) != {None}]
            if len({number for line in cut for number in line.points}) < 2:
                continue
            floors = [line for line in lines if set(line.points) == {None} and board.is_floor(line.architecture)]
            named = sorted(_named([*cut, *floors]), key=lambda line: (board.order(line.architecture), line.words))
            yield Panel(_table(board, task, place, named), _plot(board, task, place, named))


def _places(board: Board, task: str) -> dict[Section, list[Line]]:
    """The lines of a task by place: a section without what its training sees and is given, whose
    budget is that of all labels."""
    places: dict[Section, list[Line]] = {}
    for section in board.sections:
        if section.protocol == SMOKE:
            continue
        for architecture, result in board.results(section, task):
            if result.unfit:
                continue
            limits = Limits.of(result.first.hyperparameters)
            whole = Limits(limits.max_train, limits.max_epochs, limits.budget).name
            place = Section(section.tier, section.protocol, section.protocol_version, whole)
            sees = section.sees and tuple(each for each in section.sees if each != WITHOUT_LABELS)
            besides = ", ".join(section._replace(sees=sees).besides)
            line = Line(architecture, besides, _settings(result), {limits.labels: result})
            _join(places.setdefault(place, []), line)
    return places


def _settings(result: Result) -> dict[str, Any]:
    """All that decides a result but the labels and the seed. Fewer steps and passes than any number
    of labels gets count as that least."""
    cell = cell_without(result.first, ALONG)
    training = cell["hyperparameters"].get("training") or {}
    least = {"min_steps": LABELLED_STEPS, "epochs": LABELLED_PASSES}
    training = training | {name: max(training.get(name, 0), number) for name, number in least.items()}
    return cell | {"hyperparameters": cell["hyperparameters"] | {"training": training}}


def _join(lines: list[Line], new: Line) -> None:
    """Put the one point of a new line into the line that it continues, or the line to the
    others."""
    ((number, result),) = new.points.items()
    for line in lines:
        if line[:3] == new[:3] and number not in line.points and len(_judged([*line.points.values(), result])) < 2:
            line.points[number] = result
            return
    lines.append(new)


def _judged(results: Iterable[Result]) -> set[tuple[str, str]]:
    """The data, dev and test, that results were chosen and scored on; what failed has none."""
    return {(result.group.dev, result.group.test) for result in results if result.group}


def _named(lines: Sequence[Line]) -> Iterator[NamedLine]:
    """The lines with words that tell those of one architecture apart."""
    alike: dict[tuple[str, str], list[Line]] = {}
    for line in lines:
        alike.setdefault((line.architecture, line.besides), []).append(line)
    for (architecture, besides), members in alike.items():
        settings = told_apart([(line.settings, next(iter(line.points.values()))) for line in members])
        for line, words in zip(members, settings, strict=True):
            texts = any(WITHOUT_LABELS in (result.first.sees or ()) for result in line.points.values())
            told = (WITHOUT_LABELS if texts else "", besides, words)
            yield NamedLine(architecture, ", ".join(filter(None, told)), line.points)


def _numbers(lines: Iterable[NamedLine]) -> list[int | None]:
    """The numbers of labels of some lines; all of them is the last."""
    return sorted({number for line in lines for number in line.points}, key=lambda number: (number is None, number))


def _table(board: Board, task: str, place: Section, lines: Sequence[NamedLine]) -> Table:
    metric, numbers = board.main_metric(task), _numbers(lines)
    rows = []
    for line in lines:
        points = [line.points.get(number) for number in numbers]
        cells = [score_parts(board, result, metric, False) if result else BLANK for result in points]
        rows.append(our_row(board, line.architecture, [text_cell(line.words), *cells]))
    names = ["all labels" if number is None else f"{number:,} labels" for number in numbers]
    return Table(
        f"few-labels-{task}-{place.id}",
        f"{board.task_name(task)}: {metric_label(metric)} by labels, {section_title(place)}",
        ["Architecture", "besides labels", *names],
        [Block("", rows)],
        text_columns=(1,),
    )


def _plot(board: Board, task: str, place: Section, lines: Sequence[NamedLine]) -> Plot:
    """A line for each row but those of floors, of which the best is drawn across."""
    metric = board.main_metric(task)
    info, layout = display_info(metric), over_logarithm("labels", metric)
    models = [line for line in lines if not board.is_floor(line.architecture)]
    data = []
    for i, line in enumerate(models):
        known = [
            (number or result.trained_on, summary)
            for number in _numbers([line])
            if (result := line.points[number]) and (summary := result.summary(metric))
        ]
        name = ", ".join(filter(None, (board.name(line.architecture), line.words)))
        data.append(line_with_deviations(name, known, info, i))
    groups = [result.group for line in models for result in line.points.values() if result.group]
    if groups and (floor := board.floor(groups[0], metric)):
        layout |= floor_across(info.plotted(floor[1]))
    title = f"{board.task_name(task)}, {section_title(place)}: bars are a standard deviation over seeds"
    return Plot(f"plot-few-labels-{task}-{place.id}", title, data, layout)
