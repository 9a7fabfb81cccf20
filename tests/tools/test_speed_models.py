"""Rates that travel with the package: ``archbench try`` puts architectures in order by them, and
those of a faster machine would come first."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.running.estimate import SPEEDS
from tools.speed import models

RESULTS = Path(__file__).resolve().parents[2] / "results"


def test_rates_are_those_of_one_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A third as fast a ruler, three times the rate; one that was not timed has none."""
    common = {"task": "sst2", "latency_ms": 1.0, "memory_mib": 1.0, "status": "ok"}
    usual, slow = ({"examples_per_second": rate, "version": 1} for rate in (4500.0, 1500.0))
    rows = {
        "lstm": common | {"examples_per_second": 100.0, "ruler": usual},
        "gru": common | {"examples_per_second": 100.0, "ruler": usual},
        "rnn": common | {"examples_per_second": 100.0, "ruler": slow},
        "bert": common | {"examples_per_second": None, "ruler": usual, "status": "timeout"},
    }
    monkeypatch.setattr(models, "SPEEDS", tmp_path / "speeds.csv")
    models.write_rates({id: row | {"architecture": id} for id, row in rows.items()})
    text = (tmp_path / "speeds.csv").read_text(encoding="utf-8")
    assert text.splitlines()[1:] == ["gru,100.0", "lstm,100.0", "rnn,300.0"]


def test_the_rates_of_the_package_are_those_of_the_committed_measurements(tmp_path, monkeypatch) -> None:
    rows = json.loads((RESULTS / "speed.json").read_text(encoding="utf-8"))["models"]
    monkeypatch.setattr(models, "SPEEDS", tmp_path / "speeds.csv")
    models.write_rates({row["architecture"]: row for row in rows})
    assert (tmp_path / "speeds.csv").read_bytes() == SPEEDS.read_bytes()
