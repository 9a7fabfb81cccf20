"""The exports parse and hold the records' facts; the libraries beside the pages are scripts that
load from disk."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import leaderboard
from harness.errors import LeaderboardError
from harness.leaderboard import javascript
from harness.leaderboard.tables.latex import escape, latex
from harness.leaderboard.tables.table import Block, Part, Table, TableRow
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
    register_alone(monkeypatch, architectures, [task("sst2", "classify", "accuracy")])


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


def lines(out: Path) -> list[dict[str, str]]:
    with (out / "tables.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def results(out: Path) -> dict[str, dict[str, Any]]:
    content = json.loads((out / "leaderboard.json").read_text(encoding="utf-8"))
    assert content["schema"] == 1
    return {result["architecture"]: result for result in content["results"]}


def test_csv_and_json_hold_the_same_facts(build):
    """Somebody's own plot of our numbers must show what our pages show."""
    costs = {
        "environment": {"device": "box"},
        "speed": {"train_examples_per_second": 100.0},
        "parameters": {"total": 7},
    }
    out = build(
        record("nse", score=0.80, **costs),
        record("nse", score=0.82, seed=1, **costs),
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
    }
    assert (nse["seeds"], nse["rank"], nse["shares_first_place"], nse["partial"]) == ([0, 1], 1, None, False)
    assert nse["not_ok"] == [{"seed": 2, "status": "oom", "reason": "E: full"}]
    assert (
        nse["costs"][0] | {"device": "box", "records": 2, "training examples/s": 100.0, "parameters": 7.0}
        == nse["costs"][0]
    )
    score, speed, size = [line for line in lines(out) if line["architecture"] == "nse"]
    assert {
        name: score[name]
        for name in ("metric", "mean", "n", "low", "rank", "published", "difference", "status", "reason")
    } == {
        "metric": "accuracy",
        "mean": "81.0",
        "n": "2",
        "low": "",
        "rank": "1",
        "published": "89.7",
        "difference": "-8.7",
        "status": "ok oom",
        "reason": "E: full",
    }
    assert float(score["sd"]) == pytest.approx(1.41421356)
    assert (speed["metric"], speed["mean"], speed["device"], speed["rank"]) == (
        "training examples/s",
        "100.0",
        "box",
        "",
    )
    assert (size["metric"], size["mean"]) == ("parameters", "7.0")
    [failed] = [line for line in lines(out) if line["architecture"] == "dan"]
    assert (failed["metric"], failed["mean"], failed["status"], failed["reason"]) == (
        "",
        "",
        "failed",
        "E: broken, truly",
    )


def test_speeds_say_what_ran_beside_them(build):
    """Null and "not recorded" are not 0: of an older record nobody knows."""

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
    found = {(line["architecture"], line["metric"]): line["beside"] for line in lines(out)}
    assert [found[name, "training examples/s"] for name in ("dan", "nse", "evil")] == ["0", "2", "not recorded"]
    assert (found["nse", "parameters"], found["nse", "accuracy"]) == ("", "")


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
    assert len(published) == 192
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
    text = (out / "tables.tex").read_text(encoding="utf-8")
    assert r"\input{" not in text
    assert r"\textless{}img src=x onerror=alert(1)\textgreater{}" in text
    assert "<img" not in (out / "tables.md").read_text(encoding="utf-8")


def balanced(text: str) -> bool:
    """Whether braces and environments of a LaTeX text close in order; escaped braces do not
    count."""
    plain = re.sub(r"\\[{}\\]|^%.*$", "", text, flags=re.MULTILINE)
    depth = 0
    for character in plain:
        depth += {"{": 1, "}": -1}.get(character, 0)
        if depth < 0:
            return False
    open_environments = []
    for begin, name in re.findall(r"\\(begin|end)\{(\w+)\}", plain):
        if begin == "begin":
            open_environments.append(name)
        elif not open_environments or open_environments.pop() != name:
            return False
    return depth == 0 and not open_environments


def test_latex_is_balanced_and_has_a_cell_for_every_column(build):
    out = build(
        record("evil", score=0.5),
        record("nse", score=0.8),
        record("dan", status="oom", error={"type": EVIL, "message": "["}),
    )
    text = (out / "tables.tex").read_text(encoding="utf-8")
    assert balanced(text)
    for columns, table in re.findall(r"\\begin\{longtable\}\{([lr]+)\}(.*?)\\end\{longtable\}", text, re.DOTALL):
        for line in (line for line in table.splitlines() if line.endswith(r"\\") and "multicolumn" not in line):
            assert len(re.findall(r"(?<!\\)&", line)) == len(columns) - 1, line
    assert r"80.0 (1)" in text


def test_latex_of_a_table_is_as_written_by_hand():
    rows = [
        TableRow(
            "One & two",
            [[Part("1.0", "best", ("why",)), Part("published 2.0")], [Part("–")]],
            classical=True,
            notes=("why",),
        )
    ]
    table = Table("t", "50 %", ["Method", "a_b ↓", "text"], [Block("", rows)], ["Lead."], text_columns=(2,))
    assert latex("T", [], [table]).splitlines()[2:] == [
        r"\subsection*{50 \%}",
        "Lead.",
        "",
        r"\begin{longtable}{lrl}",
        r"\toprule",
        r"Method & a\_b $\downarrow$ & text \\",
        r"\midrule",
        r"\endhead",
        r"\bottomrule",
        r"\endfoot",
        r"\emph{One \& two}\textsuperscript{1} & \textbf{1.0}\textsuperscript{1} & -- \\",
        r" & published 2.0 &  \\",
        r"\end{longtable}",
        r"\begin{enumerate}",
        r"\item why",
        r"\end{enumerate}",
    ]


def test_latex_specials_are_replaced_once():
    """Replacing one after the other would escape what the first replacement wrote."""
    assert escape("\\{}") == r"\textbackslash{}\{\}"
    assert escape("a\n\n b") == "a b"


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="there is no pdflatex here")
def test_pdflatex_accepts_the_tables(build, tmp_path):
    out = build(record("evil", score=0.5), record("nse", score=0.8))
    head = r"\documentclass[landscape]{article}\usepackage[T1]{fontenc}\usepackage{booktabs,longtable}\begin{document}"
    (tmp_path / "all.tex").write_text(
        head + r"\input{" + str(out / "tables.tex") + r"}\end{document}", encoding="utf-8"
    )
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "all.tex"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-2000:]


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
