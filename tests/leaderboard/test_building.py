"""A page that cannot be built: one record or plugin that is odd must not take the other pages from
everybody, and whoever builds them must learn where to look."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import leaderboard
from harness import cli
from harness.errors import LeaderboardError
from harness.leaderboard.board import Board
from harness.leaderboard.building import Builder
from harness.records import Record, Store
from tests.support.made_pages import architecture, board_of, register_alone, task
from tests.support.made_records import judged, record

ROOT = Path(leaderboard.__file__).parent
ARCHITECTURES = [architecture("dan", "Deep averaging"), architecture("bilstm", "biLSTM")]
TASKS = [task("sst2", "classify", "accuracy"), task("wikiqa", "rank", "map")]


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch):
    register_alone(monkeypatch, ARCHITECTURES, TASKS)


@pytest.fixture
def odd(tmp_path: Path) -> Record:
    """Two results of each task; one of WikiQA said words where its problem asks for scores."""
    store = Store(tmp_path)
    for name in ("dan", "bilstm"):
        judged(store, "1101", architecture=name)
        judged(store, "1001", metric="map", architecture=name, task="wikiqa")
    bad = next(each for each in store.all() if (each.architecture, each.task) == ("dan", "wikiqa"))
    assert bad.predictions
    return bad


def told(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return [line.removeprefix("leaderboard: ") for line in capsys.readouterr().err.splitlines()]


def breaks_at(page: str, monkeypatch: pytest.MonkeyPatch, task: str = "") -> None:
    """Let a page fail: at the first record of a task, or without one."""
    sound = getattr(leaderboard, page)

    def make(board: Board, *rest: Any, **named: Any):
        for result in board.records if task else []:
            if result.task == task:
                raise ValueError("odd\nin two lines")
        if not task:
            raise ZeroDivisionError("nothing to divide by")
        return sound(board, *rest, **named)

    monkeypatch.setattr(leaderboard, page, make)


def test_a_page_that_fails_takes_no_other_with_it(odd, tmp_path, monkeypatch, capsys):
    assert leaderboard.main(["--results", str(tmp_path)]) == 1  # wikiqa's answers on the compare page
    sound = {path.name for path in (tmp_path / "leaderboard").iterdir()}
    capsys.readouterr()
    breaks_at("advisor_page", monkeypatch)
    assert leaderboard.main(["--results", str(tmp_path), "--out", str(tmp_path / "out")]) == 1
    fault = "could not be built: ZeroDivisionError: nothing to divide by"
    assert f"advisor.html: {fault}" in told(capsys)
    assert {path.name for path in (tmp_path / "out").iterdir()} == sound
    assert fault in (tmp_path / "out" / "advisor.html").read_text()
    assert f"advisor.html: {fault}" in (tmp_path / "out" / "index.html").read_text()
    assert fault not in (tmp_path / "out" / "task-sst2.html").read_text()


def test_one_task_that_fails_takes_no_other_from_the_page(odd, tmp_path, capsys):
    """The compare page reads what a record answered, which may be of the wrong shape."""
    assert leaderboard.main(["--results", str(tmp_path)]) == 1
    line, hint = told(capsys)
    assert line.startswith("compare.html: the part of wikiqa is left out: ValueError: could not convert string")
    assert ", of record records/wikiqa/" in line and "--debug" in hint
    out = tmp_path / "leaderboard"
    assert "the part of wikiqa is left out" in (out / "compare.html").read_text()
    assert {path.name.split("-")[1] for path in out.glob("compare-*-*.js")} == {"sst2"}
    assert "biLSTM" in (out / "task-wikiqa.html").read_text()  # other pages do not read the answers


def test_a_failure_is_one_line_and_names_the_record(odd, tmp_path, monkeypatch, capsys):
    breaks_at("index_page", monkeypatch, "sst2")
    leaderboard.main(["--results", str(tmp_path)])
    (line,) = [line for line in told(capsys) if line.startswith("architectures.html")]
    assert line.startswith("architectures.html: the part of sst2 is left out: ValueError: odd, of record records/sst2/")
    assert "records/sst2/" in line and str(tmp_path) not in line
    assert "the part of sst2" in (tmp_path / "leaderboard" / "architectures.html").read_text()


def archbench(words: list[str]) -> int:
    with pytest.raises(SystemExit) as ended:
        cli.main(["leaderboard", *words])
    return int(ended.value.code or 0)


@pytest.mark.parametrize("command", [leaderboard.main, archbench])
def test_tracebacks_are_shown_on_request(odd, tmp_path, capsys, command):
    assert command(["--results", str(tmp_path)]) == 1
    text = capsys.readouterr().err
    assert "Traceback" not in text and "--debug shows" in text
    assert command(["--results", str(tmp_path), "--debug"]) == 1
    text = capsys.readouterr().err
    assert "Traceback (most recent call last)" in text and "in of_unit" in text and "--debug" not in text


@pytest.fixture
def builder(tmp_path: Path) -> Builder:
    """Of a board with a record of each task."""
    store = Store(tmp_path)
    for name in ("sst2", "wikiqa"):
        store.write(record(task=name, score=0.5))
    return Builder(board_of(store, ARCHITECTURES, TASKS))


def test_the_page_of_a_task_whose_records_fail_says_only_that(builder):
    """A task's own page has nothing to show without it."""

    def make(board: Board) -> str:
        for each in board.records:
            if each.task == "sst2":
                raise ValueError("odd")
        return "made"

    assert builder.build("all.html", make) == "made"
    assert builder.build("task-sst2.html", make, "sst2") is None
    assert [(fault.file, fault.task) for fault in builder.faults] == [("all.html", "sst2"), ("task-sst2.html", "")]
    assert all(fault.record.startswith("records/sst2/dan/") for fault in builder.faults)
    assert [words.partition(", of record")[0] for words in builder.told("task-sst2.html")] == [
        "could not be built: ValueError: odd"
    ]


def test_two_tasks_that_fail_are_both_named(builder):
    def make(board: Board) -> str:
        for each in board.records:
            raise ValueError(f"odd {each.task}")
        return "made"

    assert builder.build("all.html", make) is None  # nothing would be left
    assert [fault.task for fault in builder.faults] == ["sst2", ""]


def test_a_mistake_of_the_user_ends_the_build(tmp_path):
    """All pages read the published values, of which one may be no number."""

    def make(_: Board) -> None:
        raise LeaderboardError("published.csv, line 3: no number")

    with pytest.raises(LeaderboardError, match="line 3"):
        Builder(board_of(Store(tmp_path), ARCHITECTURES, TASKS)).build("index.html", make)


def test_the_same_records_make_the_same_bytes_in_any_process(tmp_path):
    """The order of a set of texts is another one in each process: whoever keeps pages in git would
    see changes that are none."""
    store = Store(tmp_path)
    for number, name in enumerate(("dan", "bilstm", "kim_cnn_rand", "naive_bayes", "uda")):
        for seed in (0, 1):
            right = 40 + 10 * number + seed
            judged(store, "1" * right + "0" * (100 - right), architecture=name, seed=seed, sees=["b", "a"])
    store.write(record("lstm", "sst5", status="timeout", error={"type": "timeout", "message": "slow"}))
    builds = []
    for seed in "12":
        environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, str(ROOT / "leaderboard.py"), "--results", str(tmp_path)]
        subprocess.run(command, env=environment, check=True, capture_output=True, cwd=tmp_path)
        pages = (file for file in (tmp_path / "leaderboard").rglob("*") if file.is_file())
        builds.append({file.name: file.read_bytes() for file in pages})
    differing = [name for name, content in builds[0].items() if builds[1].get(name) != content]
    assert len(builds[0]) > 20 and differing == []
