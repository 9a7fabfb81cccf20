"""The exports parse and hold the records' facts; the libraries beside the pages are scripts that
load from disk."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

import leaderboard
from harness.errors import LeaderboardError
from harness.leaderboard import javascript
from harness.leaderboard.tables import export
from harness.records import Record, Store
from tests.support.made_pages import architecture, register_alone, task
from tests.support.made_records import judged, record

EVIL = "<img src=x onerror=alert(1)> </script> \\input{|ls} $x$ a_b & 50% #1 ~^ {"


@pytest.fixture(autouse=True)
def known(monkeypatch):
    architectures = [
        architecture("dan", "DAN", family="feedforward"),
        architecture("nse", "NSE", family="memory"),
        architecture("evil", EVIL, family="memory", deviations=(EVIL,)),
    ]
    register_alone(
        monkeypatch, architectures, [task("sst2", "classify", "accuracy"), task("wikiqa", "rank", "map", "mrr")]
    )


@pytest.fixture
def build(tmp_path):
    """Writes records and builds the leaderboard; returns the folder of its files."""
    (tmp_path / "records").mkdir()

    def of(*records: Record) -> Path:
        for made in records:
            Store(tmp_path).write(made)
        assert leaderboard.main(["--results", str(tmp_path)]) == 0
        return tmp_path / "leaderboard"

    return of


def lines(out: Path, name: str = "tables.csv") -> list[dict[str, str]]:
    """The rows of ours in a CSV file."""
    with (out / name).open(encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file) if row.get("source") != "survey"]


def results(out: Path) -> dict[str, dict[str, Any]]:
    content = json.loads((out / "leaderboard.json").read_text(encoding="utf-8"))
    assert content["schema"] == 2
    return {result["architecture"]: result for result in content["results"]}


def test_csv_and_json_hold_the_same_facts(build):
    """Somebody's own plot of our numbers must show what our pages show."""
    costs = {
        "environment": {"device": "box"},
        "speed": {"train_examples_per_second": 100.0},
        "parameters": {"total": 7},
        "commit": "c" * 40,
        "counts": {"train": 1000, "test": 100},
        "training": {"epochs": 3, "passes_per_epoch": 2},
    }
    out = build(
        record("nse", score=0.80, **costs),
        made := record("nse", score=0.82, seed=1, **costs),
        record("nse", seed=2, status="oom", error={"type": "E", "message": "full"}),
        record("dan", status="failed", error={"type": "E", "message": "broken, truly"}),
    )
    nse = results(out)["nse"]
    assert nse["scores"]["accuracy"] == {
        "mean": 0.81,
        "sd": pytest.approx(0.0141421356),
        "n": 2,
        "low": None,
        "high": None,
        "published": 89.7,
        "difference": -8.7,
        "survey_table": "1",
    }
    assert (nse["seeds"], nse["rank"], nse["shares_first_place"], nse["partial"]) == ([0, 1], 1, None, False)
    assert nse["records"][1] == {
        "key": made.key,
        "seed": 1,
        "status": "ok",
        "reason": None,
        "commit": "c" * 40,
        "dirty": False,
        "started": "",
        "passes": 6,
        "examples": {"train": 1000, "test": 100},
        "scores": {"test": {"accuracy": 0.82}},
    }
    assert [(r["seed"], r["status"], r["reason"]) for r in nse["records"]][2] == (2, "oom", "E: full")
    [cost] = nse["costs"]
    assert cost | {"device": "box", "training examples/s": 100.0, "parameters": 7.0} == cost
    keys = [each["key"] for each in nse["records"][:2]]
    assert cost["keys"] == keys
    [score] = [line for line in lines(out) if line["architecture"] == "nse"]
    expected = {
        "metric": "accuracy",
        "main": "True",
        "mean": "81.0",
        "n": "2",
        "low": "",
        "rank": "1",
        "published": "89.7",
        "difference": "-8.7",
        "status": "ok oom",
        "reason": "E: full",
        "survey_table": "1",
        "test_examples": "100",
        "passes": "6 6",
        "seeds": "0 1",
        "keys": " ".join(keys),
        "commits": " ".join(["c" * 40] * 2),
    }
    assert score | expected == score
    assert float(score["sd"]) == pytest.approx(1.41421356)
    [spent] = lines(out, "costs.csv")
    assert (
        spent | {"device": "box", "keys": " ".join(keys), "training examples/s": "100.0", "parameters": "7.0"} == spent
    )
    [failed] = [line for line in lines(out) if line["architecture"] == "dan"]
    assert (failed["metric"], failed["mean"], failed["status"], failed["reason"]) == (
        "",
        "",
        "failed",
        "E: broken, truly",
    )


def test_differences_are_those_of_the_rounded_values(build):
    """As the pages have them: 80.96 is 81.0 there. Means are exported in full."""
    out = build(record("nse", score=0.8096))
    [score] = [line for line in lines(out) if line["architecture"] == "nse"]
    assert (float(score["mean"]), score["published"]) == (pytest.approx(80.96), "89.7")
    assert score["difference"] == "-8.7"
    assert "``difference`` is in points, that of the two rounded values" in export.__doc__


def test_speeds_say_what_ran_beside_them(build):
    """Null and empty are not 0: of an older record nobody knows."""

    def fast(architecture: str, seed: int = 0, **speed: object) -> Record:
        return record(
            architecture,
            score=0.8,
            seed=seed,
            parameters={"total": 7},
            speed={"train_examples_per_second": 100.0} | speed,
        )

    out = build(
        fast("dan", beside=0), fast("nse", beside=2, unstable=True), fast("nse", seed=1, beside=1), fast("evil")
    )
    costs = {name: result["costs"][0] for name, result in results(out).items()}
    assert {name: (cost["beside"], cost["unstable"]) for name, cost in costs.items()} == {
        "dan": (0, False),
        "nse": (2, True),
        "evil": (None, False),
    }
    found = {line["architecture"]: (line["beside"], line["unstable"]) for line in lines(out, "costs.csv")}
    assert found == {"dan": ("0", "False"), "nse": ("2", "True"), "evil": ("", "False")}


def test_a_file_has_one_sort_of_rows(build):
    """Scores and costs stood in one long file, with a speed in a column called mean."""
    out = build(record("nse", score=0.8, speed={"train_examples_per_second": 100.0}), record("nse", score=0.7, seed=1))
    assert {line["metric"] for line in lines(out)} == {"accuracy"}
    places = [(line["group"], line["architecture"], line["settings"], line["metric"]) for line in lines(out)]
    assert len(set(places)) == len(places) == 1
    assert not {"mean", "rank"} & lines(out, "costs.csv")[0].keys()


def test_intervals_and_ties_are_exported(build, tmp_path):
    for name, right in (("nse", 90), ("dan", 89), ("evil", 40)):
        judged(Store(tmp_path), "1" * right + "0" * (100 - right), architecture=name)
    out = build()
    found = results(out)
    assert {name: result["shares_first_place"] for name, result in found.items()} == {
        "nse": True,
        "dan": True,
        "evil": False,
    }
    assert found["nse"]["corrected_p"] is None
    assert found["dan"]["corrected_p"] > 0.3 and found["evil"]["corrected_p"] < 0.001
    score = found["nse"]["scores"]["accuracy"]
    assert 0.8 < score["low"] < 0.9 < score["high"] < 0.97
    shown = {line["architecture"]: line for line in lines(out)}
    assert float(shown["nse"]["low"]) == pytest.approx(100 * score["low"])
    assert shown["dan"]["shares_first_place"] == "True"
    assert float(shown["dan"]["corrected_p"]) == found["dan"]["corrected_p"]


def test_a_result_that_was_not_tested_neither_shares_the_first_place_nor_misses_it(build, tmp_path):
    """A model of less training data was said not to share it, whatever its score."""
    (tmp_path / "records").mkdir(exist_ok=True)
    judged(Store(tmp_path), "1" * 95 + "0" * 5, architecture="nse", counts={"train": 10}, partial=True)
    for name, right in (("dan", 89), ("evil", 40)):
        judged(Store(tmp_path), "1" * right + "0" * (100 - right), architecture=name)
    found = results(build())
    assert {name: result["shares_first_place"] for name, result in found.items()} == {
        "nse": None,
        "dan": True,
        "evil": False,
    }
    assert found["nse"]["corrected_p"] is None


def test_published_values_are_exported_with_their_notes(build):
    published = json.loads((build() / "leaderboard.json").read_text(encoding="utf-8"))["published"]
    assert len(published) == 192 and sum(value["misprint"] for value in published) == 6
    [base] = [
        value
        for value in published
        if (value["architecture"], value["dataset"], value["survey_table"]) == ("bert", "sst2", "1")
    ]
    assert (base["printed"], base["counterpart"]) == ("93.50", "bert_base")
    assert base["notes"]


def test_text_from_records_stays_text_in_every_export(build):
    """A spreadsheet, a page that embeds the JSON, and LaTeX each have their own way to run what
    they are given."""
    out = build(
        record("evil", score=0.5, hyperparameters={"a": EVIL}),
        record("evil", score=0.6, hyperparameters={"a": "plain"}),
        record("dan", status="failed", error={"type": "E", "message": f'"quoted", {EVIL}\nsecond line'}),
    )
    assert "<" not in (out / "leaderboard.json").read_text(encoding="utf-8")
    assert results(out)["evil"]["name"] == EVIL, "escaped, and the same when read"
    assert {line["name"] for line in lines(out)} == {EVIL, "DAN"}
    assert [line["reason"] for line in lines(out) if line["architecture"] == "dan"] == [
        f'E: "quoted", {EVIL} second line'
    ]
    text = (out / "latex" / "survey-1.tex").read_text(encoding="utf-8")
    assert r"\input{" not in text
    assert r"\textless{}img src=x onerror=alert(1)\textgreater{}" in text
    assert "<img" not in (out / "tables.md").read_text(encoding="utf-8")


# --- libraries beside the pages ---


def test_an_es_module_becomes_a_script_that_sets_one_global():
    """Browsers load no module from file://; a bundle that ends otherwise must fail here, not as a
    table that does not sort."""
    module = "var Gl=1;var $d=Gl+1;export{Gl as one,$d as default,Gl as two};/* licence */\n"
    assert (
        javascript.as_script(module, "Two")
        == '(()=>{"use strict";var Gl=1;var $d=Gl+1;window.Two=$d;;/* licence */\n\n})();\n'
    )
    for other in ("var a=1;", "var a=1;export{a as one};"):
        with pytest.raises(LeaderboardError, match="no default export"):
            javascript.as_script(other, "Two")


def test_the_bundles_are_those_of_the_installed_packages():
    assert "window.DataTable=" in javascript.datatables()
    assert "export{" not in javascript.datatables()
    assert "plotly.js v" in javascript.plotly()[:300]


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setattr(javascript.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(LeaderboardError, match="the package itables is not installed: pip install itables"):
        javascript.datatables()


def test_csv_lines_end_as_the_standard_says(build):
    text = (build(record("nse", score=0.8)) / "tables.csv").read_bytes().decode()
    assert text.count("\r\n") == text.count("\n") == len(list(csv.reader(io.StringIO(text, newline=""))))
