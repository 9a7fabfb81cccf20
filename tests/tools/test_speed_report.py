"""The report of speed: what is called met, how growth is taken, and that no architecture is left
out of it."""

from __future__ import annotations

import json
import statistics
from dataclasses import asdict
from pathlib import Path

import pytest

from architectures.pretrained.bert import BERT
from harness import registry
from harness.records.provenance import environment
from tools.speed.goals import Row, here, keep, kept, markdown
from tools.speed.models import BERT_PIECES, untrained_bert
from tools.speed.report import document, growth, many_table, model_part, model_table


@pytest.fixture(scope="module")
def models() -> list[dict]:
    """The committed rows of every architecture."""
    return json.loads((Path(__file__).parents[2] / "results" / "speed.json").read_text(encoding="utf-8"))["models"]


@pytest.mark.parametrize(
    ("sign", "measured", "met"),
    [(">=", 2.0, True), (">=", 1.99, False), ("<=", 2.0, True), ("<=", 2.01, False), (">=", float("nan"), False)],
)
def test_a_target_is_met_on_its_own_side(sign, measured, met):
    """A ratio should be high and a time low; a figure that is no number meets nothing."""
    row = Row("what", "against", sign, 2.0, measured, why="the disk")
    assert row.met is met
    assert ("| yes |" in markdown([row])) is met
    assert ("no: the disk" in markdown([row])) is not met


def test_figures_of_another_machine_are_told_apart(tmp_path):
    """Half of a table measured elsewhere would show a change that nobody made."""
    file = tmp_path / "speed.json"
    other = {"cpu": "another", "cores": 64, "ram_gib": 512.0, "device": "cpu", "versions": {"torch": "2.0"}}
    theirs = Row("ours beside a peer", "peer", ">=", 2.0, 3.0, cpu="another")
    file.write_text(json.dumps({"machines": {"another": other}, "targets": [asdict(theirs)]}))
    assert "machine |" not in markdown([theirs])
    mine = Row(**here([asdict(Row("a start", "", "<=", 1.0, 0.5, "s"))])[0])
    keep(file, targets=[asdict(theirs), asdict(mine)])
    cpu = environment()["cpu"]
    assert [*kept(file)["machines"]] == ["another", cpu]
    text = document(kept(file))
    assert "- another, 64 cores, 512.0 GiB, cpu; torch 2.0." in text and f"- {cpu}, " in text
    assert "| 3x | yes | another |" in text and f"| 0.5 s | yes | {cpu} |" in text


def test_growth_is_the_exponent_of_the_length():
    points = [{"length": n, "linear": 3 * n, "square": n**2} for n in (16, 1024, 512)]
    assert growth(points, "linear") == pytest.approx(1)
    assert growth(points, "square") == pytest.approx(2)
    assert growth([*points, {"length": 2048, "linear": 1, "square": 1}], "square") < 0, (
        "between the two greatest lengths"
    )


def test_growth_of_many_records_is_from_row_to_row():
    """A step that is quadratic shows 2, however long the fixed part of the first row is."""

    def row(cells: int, seconds: float) -> dict:
        cost = {"seconds": seconds, "mib": 500}
        return {"cells": cells, "planning": cost, "resuming": cost, "results": cost}

    _, _, first, second, third = many_table([row(1000, 3.0), row(2000, 6.0), row(4000, 24.0)]).splitlines()
    assert first.startswith("| 1,000 | 3.00 | 500 |  |")
    assert second.startswith("| 2,000 | 6.00 | 500 | 1.00 |")
    assert third.startswith("| 4,000 | 24.0 | 500 | 2.00 |")


def test_an_architecture_that_did_not_run_says_so_instead_of_figures():
    blank = dict.fromkeys(
        ("examples_per_second", "unstable", "latency_ms", "inference_per_second", "memory_mib", "parameters", "flops")
    )
    rows = [{"task": "sst2", "architecture": "vast", "status": "timeout"} | blank]
    rows.append(
        {"task": "sst2", "architecture": "small", "status": "ok"}
        | blank
        | {"examples_per_second": 12345.6, "unstable": True}
    )
    shown = model_table(rows, {}).splitlines()
    assert "| vast | timeout |" in shown[2]
    assert "| small | 12,346~ |" in shown[3]


def measured_on(cpu: str, ruler: float | None, rate: float, architecture: str) -> dict:
    figures = dict.fromkeys(("latency_ms", "inference_per_second", "memory_mib", "parameters", "flops"), 1.0)
    kept = ruler and {"version": 1, "examples_per_second": ruler}
    row = {"task": "sst2", "architecture": architecture, "status": "ok", "unstable": False}
    return row | figures | {"examples_per_second": rate, "cpu": cpu, "ruler": kept}


def test_rates_of_two_machines_are_rescaled_or_not_compared():
    """A machine half as fast would make an architecture look half as fast."""
    rows = [
        measured_on("fast", 1000, 400, "dan"),
        measured_on("fast", 1000, 300, "cnn"),
        measured_on("slow", 500, 200, "lstm"),
        measured_on("old", None, 100, "rnn"),
        measured_on("tiny", 100, 10, "gru"),
    ]
    shown = model_part(rows).splitlines()
    assert "- A: fast, ruler 1,000" in shown and any(line.endswith("old, ruler not measured") for line in shown)
    ends = {line.split(" | ")[1]: line.split(" | ")[-1].rstrip(" |") for line in shown if line.startswith("| sst2")}
    assert ends == {"dan": "400", "cnn": "300", "lstm": "400", "rnn": "", "gru": ""}
    assert "machine" not in model_part(rows[:2])


def test_there_are_names_for_more_machines_than_letters():
    """Each day's ruler is one: after everything had been measured the page could not be made."""
    shown = model_part([measured_on("fast", 1000 + day, 400, f"dan_{day}") for day in range(30)]).splitlines()
    assert "- Z: fast, ruler 1,025" in shown and "- AA: fast, ruler 1,026" in shown
    assert any(line.startswith("| sst2 | dan_29 |") and "| AD |" in line for line in shown)


def test_an_untrained_bert_has_the_published_vocabulary_and_knows_the_texts(tmp_path):
    """Else bert_base would be measured with fewer parameters, or with texts of unknown words
    only."""
    pytest.importorskip("transformers")
    untrained_bert(tmp_path, layers=1, hidden=8, heads=2, task="sst2")
    view = BERT.reads("text", {"pretrained": str(tmp_path)})
    view.fit([])
    assert BERT(view.width, view).table.num_embeddings == BERT_PIECES
    assert view.unknown not in view.encode(["the film is good ."])["ids"].values


def test_every_architecture_is_in_the_committed_report(models):
    trained = {id for id, entry in registry.entries("architectures").items() if entry.kind != "floor"}
    assert {model["architecture"] for model in models} == trained


def test_an_architecture_much_slower_than_its_kind_says_why(models):
    """Whoever chooses one for a long run should read it in its docstring, not find out in the
    night."""
    known = registry.entries("architectures")
    rates: dict[tuple[str, str, str], dict[str, float]] = {}
    for model in models:
        if model["examples_per_second"]:
            kind = known[model["architecture"]].kind
            rates.setdefault((kind, model["task"], model["cpu"]), {})[model["architecture"]] = model[
                "examples_per_second"
            ]
    slow = {
        name
        for of_kind in rates.values()
        for name, rate in of_kind.items()
        if rate < statistics.median(of_kind.values()) / 5
    }
    assert slow, "char_cnn at least"
    assert not [name for name in slow if "slow" not in (registry.load(known[name]).__doc__ or "").lower()]
