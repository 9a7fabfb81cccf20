"""The leaderboard on hand-made records: a wrong table here misleads everybody who only reads
results."""

from __future__ import annotations

import html
import json
import re
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leaderboard
from harness import registry
from harness.leaderboard.published import SOURCES
from harness.records import Record, Store
from harness.records.outcomes import Outcomes
from harness.task import fingerprint
from tests.support.made_pages import architecture, register_alone, task
from tests.support.made_records import record

ROOT = Path(__file__).resolve().parents[2]
EVIL = "<img src=x onerror=alert(1)>"


TASKS = registry.entries("tasks")
KNOWN = {
    "architectures": [
        architecture("dan", "Deep averaging"),
        architecture("bert", "BERT", year=2018, deviations=("random start, not the published weights",)),
        architecture("count", "Counting", family="classical", year=1990),
        architecture("bilstm", "biLSTM", year=2005),
        architecture("nse", "Neural semantic encoder", family="memory"),
        architecture("random", "random answer", kind="floor"),
    ],
    "tasks": [
        task("sst2", "classify", "accuracy", "macro_f1"),
        task("sst5", "classify", "accuracy"),
        task("wikiqa", "rank", "map", "mrr"),
        task("squad1", "extract", "f1", "exact_match"),
        task("conll2003_ner", "tag", "span_f1"),
        task("fsdd", "transcribe", "wer", "cer"),
    ],
}


@pytest.fixture(autouse=True)
def known(monkeypatch):
    """Some architectures, among them a floor, and six tasks."""
    register_alone(monkeypatch, **KNOWN)


def plots_of(page: str) -> list[tuple[str, dict[str, Any]]]:
    """Titles and JSON of a page's plots."""
    titles = re.findall(r"<figcaption[^>]*>(.*?)</figcaption>", page)
    found = re.findall(r'<script type="application/json" data-plot="[^"]*">(.*?)</script>', page, re.DOTALL)
    return list(zip(titles, map(json.loads, found), strict=True))


class Pages:
    """What one build wrote and said."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str], *arguments: str):
        self.code = leaderboard.main(["--results", str(folder), *arguments])
        self.out = folder / "leaderboard"
        self.stderr = capsys.readouterr().err

    def text(self, name: str) -> str:
        return (self.out / name).read_text(encoding="utf-8")

    def rows(self, table: str) -> list[list[str]]:
        """Cells of the Markdown table below the heading that starts with ``table``, the columns
        first."""
        section = re.search(rf"^## {re.escape(table)}.*?(?=^## |\Z)", self.text("tables.md"), re.MULTILINE | re.DOTALL)
        assert section, f"there is no table {table}"
        lines = [line for line in section[0].splitlines() if line.startswith("| ") and not line.startswith("| ---")]
        return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]

    def cell(self, table: str, method: str, column: str) -> str:
        """One cell of a Markdown table; marks of notes are left out."""
        columns, *rows = self.rows(table)
        for row in rows:
            if re.sub(r"<sup>.*?</sup>|\*", "", row[0]) == method:
                return re.sub(r"<sup>.*?</sup>", "", row[columns.index(column)])
        raise AssertionError(f"{table} has no row {method}: {rows}")


OURS = "Table 1: sentiment, ours alone"
TASK = "SST-2: quality and cost"


@pytest.fixture
def build(tmp_path, capsys):
    """Writes records to a results folder and builds its leaderboard."""

    def of(*records: Record) -> Pages:
        (tmp_path / "records").mkdir(exist_ok=True)
        for made in records:
            Store(tmp_path).write(made)
        return Pages(tmp_path, capsys)

    return of


def test_seeds_become_a_mean_with_deviation_and_count(build):
    """Three seeds shown as three rows, or one of them as the result, is what this bench exists to
    avoid."""
    pages = build(
        *(record(score=score, seed=seed) for seed, score in enumerate((0.80, 0.81, 0.82))), record("bilstm", score=0.7)
    )
    assert pages.cell(OURS, "Deep averaging", "SST-2 accuracy: ours") == "81.0 ± 1.0 (3)"
    assert pages.cell(OURS, "biLSTM", "SST-2 accuracy: ours") == "70.0 (1)"
    assert "81.0 ± 1.0 (3)" in pages.text("survey-1.html")
    assert "81.0 ± 1.0 (3)" in pages.text("task-sst2.html")


def test_equal_scores_are_all_bold(build):
    pages = build(record(score=0.8101), record("bilstm", score=0.8104), record("count", score=0.80))
    cells = [pages.cell(TASK, name, "accuracy") for name in ("Deep averaging", "biLSTM", "Counting")]
    assert cells == ["**81.0 (1)**", "**81.0 (1)**", "80.0 (1)"]


def test_the_lowest_error_rate_is_bold_and_comes_first(build):
    pages = build(record("dan", "fsdd", {"wer": 0.3, "cer": 0.1}), record("bilstm", "fsdd", {"wer": 0.2, "cer": 0.2}))
    assert pages.cell("Speech", "biLSTM", "FSDD WER ↓: ours") == "20.0 (1)"
    assert pages.cell("FSDD: quality and cost", "biLSTM", "WER ↓") == "**20.0 (1)**"
    assert pages.cell("FSDD: quality and cost", "Deep averaging", "WER ↓") == "30.0 (1)"
    columns, first, second = pages.rows("FSDD: quality and cost")
    assert [first[0], second[0]] == ["biLSTM", "Deep averaging"]
    assert second[columns.index("CER ↓")] == "**10.0 (1)**"


def test_a_partial_row_is_marked_and_does_not_lead_over_full_rows(build):
    """A model trained on another amount of data in bold would be read as the better model."""
    pages = build(record(score=0.8), record("bilstm", score=0.9, partial=True, counts={"train": 50}))
    assert pages.cell(TASK, "biLSTM", "accuracy") == "90.0 (1) partial"
    assert pages.cell(TASK, "Deep averaging", "accuracy") == "**80.0 (1)**"
    assert pages.cell(OURS, "biLSTM", "SST-2 accuracy: training examples") == "50"
    for page in ("survey-1.html", "task-sst2.html"):
        assert "partial: trained on 50 examples; the official training set has 1,000" in pages.text(page)


def test_partial_by_passes_alone_does_not_speak_of_missing_examples(build):
    """The whole training set in fewer passes: "trained on 1,000 of 1,000 examples" would read as a
    mistake."""
    pages = build(record(score=0.8, partial=True, hyperparameters={"limits": {"max_epochs": 3, "max_train": None}}))
    assert "partial: at most 3 passes over the training set" in pages.text("survey-1.html")
    assert "the official training set has" not in pages.text("survey-1.html")


@pytest.mark.parametrize("status", ["failed", "oom", "timeout", "diverged", "interrupted", "skipped"])
def test_what_did_not_end_ok_is_shown_with_its_word_and_reason(build, status):
    """A silent gap hides models that crash."""
    pages = build(
        record(status=status, error={"type": "Cause", "message": "the very reason"}), record("bilstm", score=0.5)
    )
    assert pages.cell(TASK, "Deep averaging", "accuracy") == status
    named = f"Ended without a score: Deep averaging on SST-2 ({status})." in pages.text("survey-1.html")
    assert named == (status != "skipped"), "what does not fit a task is no news"
    for name in ("task-sst2.html", "runs.html", "index.html", "tables.md"):
        assert f"{status}: Cause: the very reason" in pages.text(name), name


def test_seeds_that_failed_stand_beside_those_that_did_not(build):
    """A mean over the lucky seeds alone, without a word, is the best case sold as the result."""
    pages = build(record(score=0.8), record(seed=1, status="oom"), record(seed=2, status="oom"))
    assert pages.cell(TASK, "Deep averaging", "accuracy") == "**80.0 (1)**<br>oom (2)"
    assert pages.cell(OURS, "Deep averaging", "SST-2 accuracy: ours") == "80.0 (1)<br>oom (2)"
    assert pages.cell(OURS, "Deep averaging", "SST-2 accuracy: training examples") == "1,000<br>"
    assert "oom, seed 1, 2: the record gives no reason" in pages.text("survey-1.html")


def test_cells_without_a_record_say_so(build):
    pages = build(record(score=0.8), record("bilstm", "sst5", score=0.4))
    assert pages.cell(OURS, "Deep averaging", "SST-5 accuracy: ours") == "not run"


def test_an_ok_record_without_the_score_of_a_column_says_so(build):
    pages = build(record("dan", "squad1", {"f1": 0.5}), record("bilstm", "squad1", {"f1": 0.5, "exact_match": 0.4}))
    table = "Table 3: question answering, SQuAD, ours alone"
    assert pages.cell(table, "Deep averaging", "SQuAD 1.1 F1: ours") == "50.0 (1)"
    assert pages.cell(table, "Deep averaging", "SQuAD 1.1 EM: ours") == "not scored"


def test_the_front_page_says_what_its_protocols_are(build):
    """ "Protocol equal" alone told no newcomer what is equal."""
    text = build(record("dan", score=0.5), record("bilstm", score=0.5, protocol="smoke")).text("index.html")
    assert "Protocol equal gives all the same inputs" in text and "Protocol paper is" not in text


def test_the_front_page_counts_what_was_trained(build):
    """Floors, and architectures that were skipped on every task, stood among those that were
    trained."""
    made = [record("dan", score=0.5), record("dan", "sst5", 0.4), record("count", score=0.5)]
    made += [record("bilstm", status="timeout"), record("bert", "snli", status="skipped"), record("random", score=0.1)]
    text = " ".join(build(*made).text("index.html").split())
    assert "scores of 2, on 2 tasks, from 3 trainings. 2 more have no score: they failed, passed a limit or" in text


FEW = [
    record(score=score, hyperparameters={"limits": {"max_train": None, "max_epochs": None, **cut}})
    for score, cut in ((0.8, {}), (0.6, {"labels": 200}))
]
TUNED = record(
    score=0.8,
    lineage=[{"key": "a" * 16, "role": "weights", "architecture": "dan", "task": "text", "objective": "MaskedPieces"}],
)
TAUGHT = record(score=0.8, lineage=[{"key": "a" * 16, "role": "teacher", "architecture": "bilstm", "task": "sst2"}])


@pytest.mark.parametrize(
    ("file", "name", "records"),
    [
        ("few-labels.html", "Few labels", FEW),
        ("pretraining.html", "Pre-training", [TUNED]),
        ("students.html", "Students", [TAUGHT]),
    ],
)
def test_a_page_of_some_trainings_is_linked_where_there_are_such(build, file, name, records):
    """Nobody finds a page that no other leads to; a link to one that is not there leads nowhere."""
    link = f'<a href="{file}">{name}</a>'
    without = build(record(score=0.5))
    assert link not in without.text("index.html") and not (without.out / file).exists()
    pages = build(*records)
    assert link in pages.text("index.html") and link in pages.text("task-sst2.html")
    assert "Deep averaging" in pages.text(file) and not pages.code


def test_tiers_and_protocols_are_never_in_one_table_of_a_task(build):
    """The generated mini corpus or a smoke run beside the real corpus would be compared with it."""
    pages = build(record(score=0.8), record(score=0.9, protocol="paper"), record(score=0.99, tier="mini"))
    for section, shown in (
        ("tier local, protocol paper, budget full", "**90.0 (1)**"),
        ("tier local, protocol equal, budget full", "**80.0 (1)**"),
        ("tier mini (generated corpus, not the published data), protocol equal, budget full", "**99.0 (1)**"),
    ):
        assert pages.cell(f"{TASK}, {section}", "Deep averaging", "accuracy") == shown


def test_classical_methods_are_in_italics_in_published_rows_and_ours(build):
    pages = build(record("count", score=0.5), record("dan", score=0.5))
    names = [row[0] for table in ("Table 1: sentiment", OURS) for row in pages.rows(f"{table}\n")]
    assert r"*Naive Bayes \[43\]*" in names
    assert "*Counting*" in names
    assert "Deep averaging" in names
    assert re.search(r"<em>(<a [^>]*>)?Counting(</a>)?</em>", pages.text("survey-1.html"))


def test_text_from_records_cannot_become_markup(build):
    """Records are copied between machines: an error text or a hyperparameter must not run in the
    reader's browser."""
    speed = {"train_examples_per_second": 10.0}
    environment = {"device": EVIL}
    pages = build(
        record(
            score=0.8, hyperparameters={"inner": EVIL}, command=EVIL, speed=speed, environment=environment, commit=EVIL
        ),
        record(score=0.7, hyperparameters={"inner": "plain"}, speed=speed),
        record("bilstm", status="failed", error={"type": "E", "message": EVIL + " | `a` [b](javascript:c) </script>"}),
        record("dan", "fsdd", {EVIL: 0.5, "wer": 0.5}, speed=speed, environment=environment),
    )
    written = {
        path.name: path.read_text(encoding="utf-8") for path in pages.out.iterdir() if path.suffix in (".html", ".md")
    }
    assert {"index.html", "survey-1.html", "tables.md", "task-sst2.html", "task-fsdd.html"} <= set(written)
    for name, text in written.items():
        assert "<img" not in text, name
        if name != "advisor.html":  # whose script makes texts of them
            assert r"\u003cimg" not in text, "plotly reads markup in the texts of a plot"
    for name in ("index.html", "survey-1.html", "tables.md", "task-sst2.html", "task-fsdd.html"):
        assert html.escape("<img src=x") in written[name], name
    assert r"\| `a` \[b\](javascript:c) &lt;/script&gt;" in pages.text("tables.md")


def test_pages_of_records_that_are_gone_are_removed_and_no_other_file_is(tmp_path):
    """Who publishes the folder would show scores that no record has."""
    store, out, gone = Store(tmp_path), tmp_path / "leaderboard", [record("dan", "snli", score=0.5), *FEW]
    for each in (record(score=0.5), record("bilstm", score=0.6), *gone):
        store.write(each)
    assert leaderboard.main(["--results", str(tmp_path)]) == 0
    names = ["task-snli.html", "latex/task-snli.tex", "few-labels.html"]
    assert all((out / name).exists() for name in names)
    (out / "own.html").write_text("mine")
    for each in gone:
        store.path(each).unlink()
    assert leaderboard.main(["--results", str(tmp_path)]) == 0
    assert not [name for name in names if (out / name).exists()]
    assert all((out / name).exists() for name in ("own.html", "task-sst2.html", "latex/task-sst2.tex"))


def test_a_build_without_any_records_leaves_what_a_fresh_one_makes(tmp_path):
    """Pages of the surveys stayed, with scores of records that had been withdrawn."""
    store, out, fresh = Store(tmp_path), tmp_path / "leaderboard", tmp_path / "fresh"
    for each in (record(score=0.5), record("dan", "babi", {"accuracy": 0.7}), *FEW, TUNED, TAUGHT):
        store.write(each)
    assert leaderboard.main(["--results", str(tmp_path)]) == 0
    many = {path.relative_to(out) for path in out.rglob("*.*")}
    for path in (tmp_path / "records").rglob("*.json"):
        path.unlink()
    assert leaderboard.main(["--results", str(tmp_path)]) == 0
    assert leaderboard.main(["--results", str(tmp_path), "--out", str(fresh)]) == 0
    left = {path.relative_to(out) for path in out.rglob("*.*")}
    assert left == {path.relative_to(fresh) for path in fresh.rglob("*.*")}
    assert len(many) > len(left) + 10


def test_the_second_build_writes_the_same_bytes(build):
    """A page that changes without its records changing cannot be committed or compared."""
    made = [record(score=0.8, seed=s, speed={"train_examples_per_second": 5.0}) for s in range(2)] + [
        record("bilstm", status="oom")
    ]
    first = {path: path.read_bytes() for path in build(*made).out.rglob("*.*")}
    again = {path: path.read_bytes() for path in build().out.rglob("*.*")}
    assert first == again


def test_a_damaged_record_is_named_and_the_rest_is_shown(build, tmp_path):
    Store(tmp_path).write(record(score=0.8))
    bad = tmp_path / "records" / "sst2" / "bert" / "0123456789abcdef.json"
    bad.parent.mkdir(parents=True)
    bad.write_text('{"schema": 1, "status": ', encoding="utf-8")
    pages = build()
    assert pages.code == 0
    assert str(bad) in pages.stderr
    assert "$RESULTS/records/sst2/bert/0123456789abcdef.json" in pages.text("index.html")
    assert str(tmp_path) not in pages.text("index.html"), "pages are published"
    assert pages.cell(TASK, "Deep averaging", "accuracy") == "**80.0 (1)**"
    assert bad.read_text(encoding="utf-8") == '{"schema": 1, "status": '


def test_no_such_results_folder_is_a_usage_error(tmp_path, capsys):
    assert leaderboard.main(["--results", str(tmp_path / "nowhere")]) == 2
    assert "nowhere: no such folder" in capsys.readouterr().err
    assert not (tmp_path / "nowhere").exists()


def test_an_out_folder_that_cannot_be_written_is_a_usage_error(tmp_path, capsys):
    (tmp_path / "file").touch()
    assert leaderboard.main(["--results", str(tmp_path), "--out", str(tmp_path / "file")]) == 2
    assert str(tmp_path / "file") in capsys.readouterr().err


def test_a_published_value_that_is_no_number_is_named_by_line(tmp_path, capsys):
    """The file may be edited by hand; a value read as nothing would be a gap."""
    lines = (SOURCES / "published.csv").read_text(encoding="utf-8").splitlines()
    lines[4] = lines[4].replace("88.10", "88.1x")
    (tmp_path / "published.csv").write_text("\n".join(lines), encoding="utf-8")
    assert leaderboard.main(["--results", str(tmp_path)]) == 2
    assert "published.csv:5: value '88.1x' is not a number" in capsys.readouterr().err


def test_two_settings_of_one_model_are_two_results_that_say_how_they_differ(build):
    """Averaging over different hidden sizes, or showing the better one, would be a choice made on
    the test split."""
    training = {"lr": 0.1}
    pages = build(
        *(record(score=s, hyperparameters={"hidden": h, "training": training}) for s, h in ((0.8, 50), (0.7, 100)))
    )
    assert pages.cell(OURS, "Deep averaging", "SST-2 accuracy: ours") == "70.0 (1)<br>80.0 (1)"
    page = pages.text("survey-1.html")
    assert "50 hidden units" in page
    assert "100 hidden units" in page
    assert not any("learning rate" in note for note in re.findall(r"<li id=[^>]*>(.*)</li>", page))
    names = [row[0] for row in pages.rows(TASK)[1:]]
    assert names == ["Deep averaging (50 hidden units)", "Deep averaging (100 hidden units)"], "a note is far below"


def test_a_setting_that_is_null_and_one_that_is_absent_are_told_apart_by_keys(build):
    """Their words are the same: two rows of one name, and nobody knew which record was whose."""
    settings = {"wraps": "lstm"}, {"wraps": "lstm", "numbers": None}
    made = [record(score=score, hyperparameters=each) for score, each in zip((0.8, 0.7), settings, strict=True)]
    names = [row[0] for row in build(*made).rows(TASK)[1:]]
    assert names == [f"Deep averaging (cell {each.key[:8]})" for each in made]


def test_scores_of_older_code_and_of_other_test_data_are_marked(build):
    """Numbers of different code or data on one board were the complaint about others."""
    pages = build(
        record(score=0.8, architecture_version=3, data={"test": "a" * 64}),
        record("bilstm", score=0.7, data={"test": "b" * 64}),
        record("bert", score=0.75, data={"test": "b" * 64}),
    )
    notes = re.findall(r"<li id=.*>(.*)</li>", pages.text("task-sst2.html"))
    assert "dan version 3, which is now 1" in notes
    assert "not ranked: test data (aaaaaaaaaaaa), other than the ranked rows" in notes
    assert pages.cell(TASK, "BERT", "accuracy") == "**75.0 (1)**", "the best of those on one test"


def test_deviations_from_the_paper_stand_on_the_page_of_the_architecture_alone(build):
    """As notes they were 110 lines below each table."""
    pages = build(record("bert", score=0.5))
    assert "random start, not the published weights" in pages.text("architecture-bert.html")
    assert "random start" not in pages.text("tables.md") + pages.text("task-sst2.html")


def test_costs_are_shown_and_never_averaged_over_two_machines(build):
    """The mean of a laptop's and a GPU's speed is the speed of nothing."""
    slow, fast = ({"device": name} for name in ("slow box", "fast box"))
    cost = {
        "memory": {"peak_rss_mib": 512.4},
        "parameters": {"total": 1234567},
        "flops_per_example": 2.5e6,
        "seconds": {"train": 61.0},
    }
    pages = build(
        record(score=0.8, environment=slow, speed={"train_examples_per_second": 100.0, "unstable": True}, **cost),
        record(
            score=0.8,
            seed=1,
            environment=fast,
            speed={"train_examples_per_second": 9000.0, "latency_ms_p50": 1.25},
            **cost,
        ),
        record(
            score=0.8,
            seed=2,
            environment=fast,
            speed={"train_examples_per_second": 7000.0, "latency_ms_p50": 1.75},
            **cost,
        ),
    )
    columns, row = pages.rows("SST-2: quality and cost")
    shown = {column: re.sub(r"<sup>.*?</sup>", "", cell) for column, cell in zip(columns, row, strict=True)}
    assert shown["device"] == "fast box<br>slow box"
    assert shown["training examples/s"] == "8,000<br>100 unstable"
    assert shown["latency p50 ms"] == "1.5<br>–"
    assert shown["parameters"] == "1,234,567"
    assert shown["FLOPs/example"] == "2.5 M"
    assert shown["peak RSS MiB"] == "512<br>512"
    assert shown["seeds ok"] == "3 (seeds 0, 1, 2)"
    titles = [title for title, _ in plots_of(pages.text("task-sst2.html"))]
    assert not any("speed" in title for title in titles), "those of cells are not compared"


def test_speeds_that_are_compared_are_those_of_a_quiet_machine(build, tmp_path):
    """Cells of one configuration differed by a factor of two in the median, seven at most."""
    ruler = {"version": 1, "examples_per_second": 1000.0, "measured": "2026-01-01T00:00:00+00:00"}
    slower = ruler | {"examples_per_second": 500.0}
    models = [
        {"architecture": "dan", "latency_ms": 1.5, "examples_per_second": 4000.0, "ruler": ruler},
        {"architecture": "bilstm", "latency_ms": 2.0, "examples_per_second": 300.0, "ruler": ruler},
        {
            "architecture": "nse",
            "latency_ms": 2.0,
            "examples_per_second": 300.0,
            "ruler": slower,
        },
        {"architecture": "bert", "latency_ms": 2.0, "examples_per_second": 300.0, "ruler": None},
    ]
    kept = [model | {"task": "sst2", "status": "ok", "memory_mib": 300.0} for model in models]
    (tmp_path / "speed.json").write_text(json.dumps({"models": kept}), encoding="utf-8")
    measured = {"train_examples_per_second": 9.0, "latency_ms_p50": 99.0}
    pages = build(*(record(name, score=0.8, speed=measured) for name in ("dan", "bilstm", "nse", "bert")))
    columns, *rows = pages.rows("SST-2: quality and cost")
    places = columns.index("latency, ms"), columns.index("training, examples/s")
    assert {row[0]: tuple(row[i] for i in places) for row in rows} == {
        "Deep averaging": ("1.5", "4,000"),
        "biLSTM": ("2", "300"),
        "Neural semantic encoder": ("1", "600"),
        "BERT": ("–", "–"),
    }, "half as fast a machine: twice the speed on the first; without a ruler nobody knows"
    plots = {title.partition(":")[0]: plot for title, plot in plots_of(pages.text("task-sst2.html"))}
    plot = plots["Quality against milliseconds of one answer on a quiet machine"]
    assert sorted(x for trace in plot["data"][1:] for x in trace["x"]) == [1.0, 1.5, 2.0]


def test_a_damaged_speed_file_is_named(build, tmp_path, capsys):
    (tmp_path / "speed.json").write_text('{"models": [{"status": "ok"}]}', encoding="utf-8")
    pages = build(record(score=0.8))
    assert pages.code == 2
    assert "speed.json: KeyError: 'ruler'" in pages.stderr


def test_speeds_taken_beside_other_cells_are_marked_and_old_ones_say_so(build):
    """A model that ran alone looks faster than the same model in a full machine; of older records
    nobody knows."""

    def fast(architecture: str, **speed: object) -> Record:
        speed = {
            "train_examples_per_second": 100.0,
            "train_spread": 0.125,
            "latency_ms_p50": 2.0,
            "unstable": False,
        } | speed
        return record(architecture, score=0.8, speed=speed, environment={"device": "box", "load_average": 2.63})

    old = fast("nse")
    del old.speed["train_spread"]
    pages = build(fast("dan", beside=0), fast("bilstm", beside=3), old)
    columns, *rows = pages.rows("SST-2: quality and cost")
    shown = [dict(zip(columns, (re.sub(r"<sup>.*?</sup>", "", cell) for cell in row), strict=True)) for row in rows]
    speeds = ("training examples/s", "latency p50 ms", "training spread", "other cells")
    found = {row["Architecture"]: tuple(row[name] for name in speeds) for row in shown}
    assert sorted(found.values()) == [
        ("100", "2", "0.125", "0"),
        ("100", "2", "–", "not recorded"),
        ("100 †", "2 †", "0.125", "3"),
    ]
    page = pages.text("task-sst2.html")
    assert "†: measured while other cells ran on the machine" in page, "the legend"
    assert "measured while other cells ran on the same machine: slower than alone" in page, "the note"
    assert 'title="1-minute load average of the machine at the end: 2.6"' in page


def test_architectures_and_tasks_that_are_not_registered_here_are_shown(build):
    """Results of a plugin must not vanish on a machine without it."""
    pages = build(record("theirs", "new_task", {"accuracy": 0.5}, main_metric="accuracy"))
    assert pages.cell("Other tasks", "theirs", r"new\_task accuracy: ours") == "50.0 (1)"
    assert (pages.out / "task-new_task.html").is_file()


def test_pages_ask_nothing_from_the_network(build):
    """The page is read on trains and in archives; a font or script from a server would also tell
    who reads it."""
    pages = build(record(score=0.8, speed={"train_examples_per_second": 10.0}))
    for path in pages.out.glob("*.html"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r'(?:src|href)="(?:https?:)?//', text), path.name
        for link in re.findall(r'(?:src|href)="([^"#]+)"', text):
            assert link == "data:," or (pages.out / link).is_file(), f"{path.name} links to {link}"
        assert 'name="viewport"' in text
        assert 'href="archbench.css"' in text
    assert "prefers-color-scheme: dark" in pages.text("archbench.css")
    assert not re.search(r"url\(|@import", pages.text("archbench.css"))
    for loaded in re.findall(r'load\("([^"]+)"\)', pages.text("archbench.js")):
        assert (pages.out / loaded).stat().st_size > 100_000, loaded
    assert not re.search(
        r"\bfetch\(|XMLHttpRequest|import\(|^import |^export ", pages.text("archbench.js"), re.MULTILINE
    )


def luminance(colour: str) -> float:
    """Relative luminance as in WCAG 2.2."""
    digits = colour.lstrip("#")
    channels = [int(d * (2 if len(digits) == 3 else 1), 16) / 255 for d in re.findall("." * (len(digits) // 3), digits)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_colours_have_enough_contrast_in_light_and_dark():
    """WCAG AA: 4.5 for text, 3 for what a plot is drawn with and for the edges of controls."""
    assert contrast("#fff", "#000000") == pytest.approx(21)
    css = (ROOT / "harness" / "leaderboard" / "static" / "archbench.css").read_text(encoding="utf-8")
    schemes = [
        dict(re.findall(r"--([\w-]+): (#\w+);", block)) for block in re.findall(r":root \{(.*?)\}", css, re.DOTALL)
    ]
    assert len(schemes) == 2
    assert set(schemes[0]) == set(schemes[1]), "a colour that one scheme lacks would be the other's"
    for scheme in schemes:
        for paper in (scheme["paper"], scheme["band"]):
            for name in ("ink", "quiet", "link", "bad", "warn", "good"):
                assert contrast(scheme[name], paper) >= 4.5, (name, paper)
        for name in ("edge", *(f"series-{i}" for i in range(1, 9))):
            assert contrast(scheme[name], scheme["paper"]) >= 3, name


def test_an_empty_results_folder_gives_the_published_tables(build):
    pages = build()
    assert pages.code == 0
    front = pages.text("index.html")
    assert "There are no records yet" in front
    assert "These are scores on" not in front, "there are none"


def test_building_imports_no_heavy_library(tmp_path):
    """The page is built in a second, also where torch is not installed; plotly and itables are only
    copied from."""
    store, sst2 = Store(tmp_path), TASKS["sst2"]
    store.write(record(score=0.8, speed={"train_examples_per_second": 10.0}))
    rows = registry.load(sst2)(sst2).read("test", "mini")
    made = record(score=1.0, tier="mini", data={"test": fingerprint(rows)})
    ids, ones = [row["id"] for row in rows], np.ones(len(rows))
    made.predictions = store.save_predictions(made, ids, [row["label"] for row in rows])
    store.save_outcomes(made, made.predictions, ids, Outcomes("accuracy", ids, ones, ones, {}))
    store.write(made)
    code = (
        "import sys, leaderboard; code = leaderboard.main(sys.argv[1:]);heavy = {'torch', 'datasets', 'mlflow',"
        " 'evaluate', 'pandas', 'pytorch_lightning', 'plotly', 'itables'} & set(sys.modules);sys.exit(str(heavy) if"
        " heavy else code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "--results", str(tmp_path)], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "leaderboard" / "task-sst2.html").is_file()
    (shown,) = (tmp_path / "leaderboard").glob("compare-sst2-mini-*.js")
    assert " ".join(rows[0]["text"]) in shown.read_text(), (
        "texts of the generated corpus need neither torch nor a folder"
    )


def test_a_folder_of_data_that_is_not_there_is_a_usage_error(tmp_path, capsys):
    pages = Pages(tmp_path, capsys, "--data-dir", "nowhere")
    assert pages.code == 2
    assert "--data-dir nowhere: no such folder" in pages.stderr
    assert not pages.out.exists(), "nothing is built"


def test_serve_prints_an_address_of_this_machine_that_answers(tmp_path):
    command = [sys.executable, "-u", str(ROOT / "leaderboard.py"), "--results", str(tmp_path), "--serve"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            address = re.search(r"http://127\.0\.0\.1:\d+/", server.stdout.readline() + server.stdout.readline())
            assert address
            with urllib.request.urlopen(f"{address[0]}tables.html", timeout=10) as answer:
                assert "Table 1: sentiment" in answer.read().decode()
        finally:
            server.terminate()
