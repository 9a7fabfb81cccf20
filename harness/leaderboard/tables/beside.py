"""The result of ours that stands beside a published value."""

from __future__ import annotations

from harness.leaderboard.board import Board
from harness.leaderboard.results import Result, Section
from harness.leaderboard.tables.formatting import caveats, failures, format_score, marks, section_title
from harness.leaderboard.tables.table import Part
from harness.records.groups import SMOKE

RULE = (
    "Of several results of ours stands here the one with the most training examples; of equals, protocol paper before"
    " equal, the latest version of a protocol, the largest budget, and the row that sees least. It is never chosen by"
    " its test score: settings that are equal in all of this have a line each."
)


def beside(board: Board, architecture: str, task: str, *, official: bool = True) -> list[Result]:
    """The results of an architecture on a task by :data:`RULE`; empty where none has a score.

    The generated corpus, protocol smoke and rows with further inputs, which are no longer the
    system of the paper, are left out, and with ``official`` so are results that were not scored on
    the official test.
    """
    places = [
        ((result.trained_on, section.protocol == "paper", -place), result)
        for place, (section, results) in enumerate(board.sections.items())
        if section.tier != "mini" and section.protocol != SMOKE and not section.inputs
        for result in results.get((architecture, task), ())
        if result.summaries and not (official and board.test_notes(result))
    ]
    first = max((place for place, _ in places), default=None)
    return [result for place, result in places if place == first]


def score_line(board: Board, result: Result, metric: str) -> Part:
    """The score of a result, with its section and caveats as notes."""
    summary = result.summary(metric)
    assert summary
    where = (section_title(Section.of(result.group)),) if result.group else ()
    text = format_score(metric, summary) + marks(board, result, metric)
    return Part(text, "", (*where, *caveats(board, result)))


def without_score(board: Board, architecture: str, task: str) -> list[Part]:
    """Words in place of a score where :func:`beside` is empty: how the cells ended, or why their
    scores are not here."""
    if architecture not in board.known_architectures:
        return [Part("not here", "quiet")]
    results = [result for each in board.sections.values() for result in each.get((architecture, task), ())]
    if any(result.summaries for result in results):
        why = "generated corpus, protocol smoke, further inputs, or not the official test of the task"
        return [Part("left out", "quiet", (why,))]
    lines = [line for result in results for line in failures(result)]
    return list(dict.fromkeys(lines)) or [Part("not run", "quiet")]
