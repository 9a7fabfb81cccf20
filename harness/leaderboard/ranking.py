"""Ranks, best results and floors of a section's task: the rows that may take part, and their
places."""

from __future__ import annotations

import bisect
import functools
from collections.abc import Iterable

from harness.leaderboard.board import Board
from harness.leaderboard.comparison import compare
from harness.leaderboard.results import Pairs, Result, Section
from harness.leaderboard.summary import leaders
from harness.metrics import display_info
from harness.records.groups import SMOKE, differences
from harness.settings import CUSTOM

SMOKE_REMARK = "Protocol smoke only shows that the cells run: its scores mean nothing, and there is no rank."
CUSTOM_REMARK = "Training of budget custom was limited by hand: its rows are not ranked."


@functools.cache  # asked for by each table that shows the result
def at_floor(board: Board, result: Result) -> str:
    """A note on a result that cannot be told from the best floor: the interval of its main score
    reaches that of the floor. Empty for other results, and for floors themselves."""
    group = result.group
    metric = board.main_metric(result.first.task)
    summary = result.summary(metric)
    floor = board.floor(group, metric) if group else None
    if group is None or summary is None or floor is None or board.is_floor(result.first.architecture):
        return ""
    comparison = compare(board, Section.of(group), group.task)
    bounds = comparison.interval(result) if comparison else None
    if not board.reaches_floor(group, metric, bounds or (summary.mean,)):
        return ""
    score = display_info(metric).format(floor[1])
    return f"at the floor: not shown to be above {floor[0]}, which scores {score} without any training"


@functools.cache  # architectures ask for all rows of a task to find their own
def ranked(board: Board, section: Section, task: str, metric: str) -> Pairs:
    """The results of a section's task that are ranked by a metric: its
    :meth:`~harness.leaderboard.board.Board.rivals` above the floor."""
    return [pair for pair in board.rivals(section, task, metric) if not at_floor(board, pair[1])]


@functools.cache
def ranks(board: Board, section: Section, task: str, metric: str) -> dict[Result, int]:
    """Ranks from 1 of the :func:`ranked` results. All that share the first place by the main metric
    have rank 1; any other has the place of its rounded score, the better one of equal scores."""
    info = display_info(metric)
    losses = {
        result: -info.quality(info.round(summary.mean))
        for _, result in ranked(board, section, task, metric)
        if (summary := result.summary(metric))
    }
    order = sorted(losses.values())
    comparison = compare(board, section, task) if metric == board.main_metric(task) else None
    return {
        result: 1 if comparison and comparison.shares_first_place(result) else 1 + bisect.bisect_left(order, loss)
        for result, loss in losses.items()
    }


@functools.cache  # each square of the picture is measured against them
def best_results(board: Board, section: Section, task: str, metric: str) -> frozenset[Result]:
    """The best of the :func:`ranked` results; several if they are shown alike."""
    info = display_info(metric)
    scores = {
        result: info.round(summary.mean)
        for _, result in ranked(board, section, task, metric)
        if (summary := result.summary(metric))
    }
    positions = leaders(list(scores.values()), lower_is_better=info.lower_is_better, digits=info.digits)
    results = list(scores)
    return frozenset(results[i] for i in positions)


def scored(board: Board, section: Section, task: str, metric: str) -> Pairs:
    """All results of a section's task that have a score, ranked or not, without floors."""
    return [
        (architecture, result)
        for architecture, result in board.results(section, task)
        if result.summary(metric) and not board.is_floor(architecture)
    ]


def elsewhere(board: Board, section: Section, task: str, metric: str) -> int:
    """Number of results of a task in the other sections of the same tier and protocol: of other
    budgets, sights of other data, or vectors."""
    others = (s for s in board.sections if s[:2] == section[:2] and s != section)
    return sum(len(scored(board, other, task, metric)) for other in others)


def remarks(board: Board, section: Section, task: str) -> list[str]:
    """Sentences on the budget and on the rows that have no rank, for the head of a table."""
    metric, group = board.main_metric(task), board.group(section, task)
    if group is None:
        return []
    if section.protocol == SMOKE:
        return [SMOKE_REMARK]
    if section.budget == CUSTOM:
        return [CUSTOM_REMARK]
    texts = [f"Budget {section.budget}: {group.budget.words}."]
    all_scored, places = scored(board, section, task, metric), ranks(board, section, task, metric)
    if len(places) < len(all_scored):
        texts.append(f"{len(places)} of {len(all_scored)} results are ranked; the notes of the others say why not.")
    if more := elsewhere(board, section, task, metric):
        texts.append(f"{more} more results of this task, of other budgets or sights, are not compared with these.")
    floor = board.floor(group, metric)
    if all_scored and not places and floor:
        score = display_info(metric).format(floor[1])
        texts.append(f"No result is shown to be above the best floor ({floor[0]}, {score}): there is no best one.")
    return [*texts, *_not_behind(board, section, task, metric)]


def floor_missing(board: Board, section: Section, task: str) -> list[str]:
    """A sentence for a ranked table beside whose rows no floor was run."""
    group = board.group(section, task)
    if group is None or not section.ranked or board.floor(group, board.main_metric(task)):
        return []
    return [
        "No floor was run on this test: these rows may be no better than an answer without any training"
        f" (archbench run -a 'floor_*' -t {task} --tier {section.tier} shows it)."
    ]


def _not_behind(board: Board, section: Section, task: str, metric: str) -> Iterable[str]:
    """A sentence on rows of other groups that are as good as the best of the ranked ones, on the
    same test."""
    quality, best = display_info(metric).quality, best_results(board, section, task, metric)
    leading = [summary.mean for result in best if (summary := result.summary(metric))]
    group = board.group(section, task)
    names = [
        board.result_name(architecture, result)
        for architecture, result in scored(board, section, task, metric)
        if leading and group is not None and result.group != group and group.has_test_of(result.group)
        if (summary := result.summary(metric))
        if quality(summary.mean) >= max(map(quality, leading))
    ]
    if names:
        yield f"As good as the best or better, and not ranked with it: {'; '.join(names)}."
    if less := as_good_with_less(board, section, task):
        yield f"As good as the best or better with less training: {'; '.join(less)}."


@functools.cache  # the front page, the advisor and the task's page ask
def as_good_with_less(board: Board, section: Section, task: str) -> list[str]:
    """Names of the results that score no worse than the best of a section's task on the same test
    data, and were trained on fewer examples: under another budget, all else being equal. They spoil
    a claim that the best leads."""
    metric, group = board.main_metric(task), board.group(section, task)
    leaders = best_results(board, section, task, metric)
    if group is None or not leaders:
        return []
    quality = display_info(metric).quality
    best = max(quality(summary.mean) for result in leaders if (summary := result.summary(metric)))
    examples = min(result.trained_on for result in leaders)
    return [
        f"{board.result_name(architecture, result)} (budget {other.budget})"
        for other in board.sections
        if other != section and other.ranked and other._replace(budget=section.budget) == section
        for architecture, result in scored(board, other, task, metric)
        if group.has_test_of(result.group) and result.trained_on < examples
        if (summary := result.summary(metric)) and quality(summary.mean) >= best
    ]


def unranked(board: Board, result: Result) -> str:
    """A note on a result that is not in the group in which its section is ranked; empty for others
    and where nothing is ranked."""
    if result.group is None:
        return ""
    section = Section.of(result.group)
    group = board.group(section, result.first.task)
    if group is None or group == result.group or not section.ranked:
        return ""
    return f"not ranked: {' and '.join(differences(result.group, group))}, other than the ranked rows"
