"""The committed results: complete, from clean code, and shown as they are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import leaderboard
from harness.leaderboard.board import Board, read
from harness.leaderboard.tables.reported import reported_table
from tools.speed import report

RESULTS = Path(__file__).resolve().parents[2] / "results"


@pytest.fixture(scope="module")
def board() -> Board:
    return read(RESULTS)


def test_every_committed_record_is_sound_and_comes_from_a_commit(board):
    """A record of changed code cannot be repeated by anybody; one that was cut short is no
    result."""
    assert not board.store.damaged
    assert [r.key for r in board.records if r.dirty or not r.commit] == []
    assert [(r.architecture, r.task, r.seed) for r in board.records if r.status == "interrupted"] == []


def test_every_score_has_its_predictions_and_outcomes(board):
    """Without them there is no rescoring, no interval and no paired test; `archbench rescore` makes
    the outcomes."""
    units: dict[str, list[str]] = {}
    for record in board.records:
        if record.status == "ok":
            assert (RESULTS / record.predictions["path"]).is_file(), record.key
            outcomes = board.store.load_outcomes(record, units.get(record.data["test"]))
            assert outcomes is not None, f"{board.store.path(record)}: run `archbench rescore --data-dir DIR`"
            units[record.data["test"]] = outcomes.units
            assert outcomes.score == pytest.approx(record.scores["test"][record.main_metric])


def test_the_table_of_gaps_is_the_one_that_the_records_make(board):
    """`python leaderboard.py && cp results/leaderboard/gaps.md results/` brings it up to date."""
    assert (RESULTS / "gaps.md").read_text(encoding="utf-8") == leaderboard.reported_document([reported_table(board)])


def test_the_report_of_speed_is_the_one_that_its_figures_make():
    """`python -m tools.speed.report results/speed.json` brings it up to date."""
    kept = json.loads((RESULTS / "speed.json").read_text(encoding="utf-8"))
    assert (RESULTS / "speed.md").read_text(encoding="utf-8") == report.document(kept)


def test_results_stay_small_enough_for_a_repository():
    assert sum(path.stat().st_size for path in (RESULTS / "records").rglob("*") if path.is_file()) < 60e6
