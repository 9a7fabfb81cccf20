"""The survey's tables, a page for each, and the page that lists them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from harness.leaderboard.pages.page import Page
from harness.leaderboard.tables.beside import RULE
from harness.leaderboard.tables.methods import LEGEND
from harness.leaderboard.tables.survey import Survey
from harness.leaderboard.tables.table import Table


def survey_pages(surveys: Sequence[Survey], tables: Mapping[str, Sequence[Table]]) -> Iterator[Page]:
    """The list of the tables, then a page for each, with its ``tables`` by the survey's name."""
    lead = ["Methods by data sets: what the survey prints, ours, their difference, and the training examples of ours."]
    yield Page("tables.html", "Methods and data sets", "tables.html", {"lead": lead, "surveys": surveys})
    for survey in surveys:
        parts = {
            "lead": survey.lead,
            "legend": [*LEGEND, RULE],
            "tables": tables[survey.name],
            "latex": f"latex/{survey.name}.tex",
        }
        yield Page(survey.file, survey.title, "survey.html", parts)
