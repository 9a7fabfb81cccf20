"""The survey's tables, a page for each, and the page that lists them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.leaderboard.board import Board
from harness.leaderboard.pages.page import Page
from harness.leaderboard.tables.beside import RULE
from harness.leaderboard.tables.methods import LEGEND, to_table
from harness.leaderboard.tables.survey import Survey


def survey_pages(board: Board, surveys: Sequence[Survey]) -> Iterator[Page]:
    """The list of the tables, then a page for each."""
    lead = ["Methods by data sets: what the survey prints, ours, their difference, and the training examples of ours."]
    yield Page("tables.html", "Methods and data sets", "tables.html", {"lead": lead, "surveys": surveys})
    for survey in surveys:
        parts = {
            "lead": survey.lead,
            "legend": [*LEGEND, RULE],
            "tables": [to_table(board, table) for table in survey.tables],
            "latex": f"latex/{survey.name}.tex",
        }
        yield Page(survey.file, survey.title, "survey.html", parts)
