"""The early end of what is clearly behind: by how chance moves a score, and by accuracy alone."""

from __future__ import annotations

import pytest
from scipy.stats import binomtest

from harness.running import behind
from harness.running.worker import run_cell
from tests.support.planned_cells import planned_cell

STAYS = "dan.training.learning_rates=[1e-9]", "dan.training.epochs=6", "dan.training.patience=6"


@pytest.mark.parametrize(("right", "rows"), [(0, 20), (37, 100), (300, 300), (855, 872)])
def test_the_interval_is_wilsons(right, rows):
    """A score of 1.0 on few rows is no proof that everything else is worse."""
    known = binomtest(right, rows).proportion_ci(0.95, method="wilson")
    assert behind.interval(right / rows, rows) == pytest.approx((known.low, known.high), abs=1e-4)


def test_what_is_clearly_behind_ends_after_a_third_of_its_epochs(make_settings):
    record = run_cell(planned_cell("dan", "sst2", *STAYS), make_settings(rival=0.99))
    assert (record.status, record.error["type"]) == ("interrupted", "Behind")
    assert "on dev after 2 of 6 epochs, with chance at most " in record.error["message"]
    assert "the best so far has 99.0, with chance at least 9" in record.error["message"]


def test_what_chance_may_have_put_behind_goes_on(make_settings):
    assert run_cell(planned_cell("dan", "sst2", *STAYS), make_settings(rival=0.55)).status == "ok"


def test_only_a_share_of_right_rows_has_this_interval(make_settings, monkeypatch):
    """An F1 over classes has another one, so nothing ends by it."""
    assert behind.COUNTED == ("accuracy",)
    monkeypatch.setattr(behind, "COUNTED", ("another",))
    assert run_cell(planned_cell("dan", "sst2", *STAYS), make_settings(rival=0.99)).status == "ok"
