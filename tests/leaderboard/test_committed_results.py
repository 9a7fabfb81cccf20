"""The committed results: complete, from clean code, and shown as they are. What is committed names
no folder of the machine that it was made on."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.leaderboard.board import Board, read
from harness.leaderboard.comparison import compare
from harness.leaderboard.pages.gaps_page import gaps_document
from harness.leaderboard.tables.export import results
from harness.leaderboard.tables.gaps import gaps
from harness.metrics.units import has_units
from harness.records import Record
from tools.speed import report

ROOT = next(folder for folder in Path(__file__).resolve().parents if (folder / "pyproject.toml").is_file())
RESULTS = ROOT / "results"


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
    the outcomes. BLEU has none: sentences have no scores that add up to it."""
    units: dict[str, list[str]] = {}
    for record in board.records:
        if record.status == "ok":
            assert (RESULTS / record.predictions["path"]).is_file(), record.key
            outcomes = board.store.load_outcomes(record, units.get(record.data["test"]))
            if not has_units(record.main_metric):
                assert outcomes is None, record.key
                continue
            assert outcomes is not None, f"{board.store.path(record)}: run `archbench rescore --data-dir DIR`"
            units[record.data["test"]] = outcomes.units
            assert outcomes.score == pytest.approx(record.scores["test"][record.main_metric])


def test_the_table_of_gaps_is_the_one_that_the_records_make(board):
    """`python leaderboard.py && cp results/leaderboard/gaps.md results/` brings it up to date."""
    assert (RESULTS / "gaps.md").read_text(encoding="utf-8") == gaps_document(board, gaps(board)[0])


def test_the_exports_call_no_result_beaten_that_was_not_tested(board):
    """182 of 345 were exported as not sharing a first place that they were never tested for."""
    tested = {
        result.first.key
        for section, of_section in board.sections.items()
        for (_, task), configurations in of_section.items()
        for result in configurations
        if (found := compare(board, section, task)) and len(found.rivals) > 1 and found.row(result) in found.rivals
    }
    exported = list(results(board))
    assert tested == {e["records"][0]["key"] for e in exported if e["shares_first_place"] is not None} != set()
    assert all(each["rank"] is not None for each in exported if each["shares_first_place"] is not None)


def test_the_report_of_speed_is_the_one_that_its_figures_make():
    """`python -m tools.speed.report results/speed.json` brings it up to date."""
    kept = json.loads((RESULTS / "speed.json").read_text(encoding="utf-8"))
    assert (RESULTS / "speed.md").read_text(encoding="utf-8") == report.document(kept)


def test_a_committed_record_is_the_text_that_archbench_writes(board):
    """Otherwise rescoring one number would show a whole file as changed."""
    different = [path for path in map(board.store.path, board.records) if rewritten(path) != path.read_text()]
    assert different == []


def rewritten(path: Path) -> str:
    return Record.from_json(path.read_bytes()).to_json()


MACHINE_PATH = re.compile(
    r"(?:(?<![\w.$~/)}\]-])|(?<=://))/(?:work|root|tmp|var/folders|(?:home|Users)/[\w.-]+)/[^\s\"'`]*"
    r"|\b[A-Za-z]:\\+Users\\[^\s\"'`]*"
)
"""Folders of a user or of a job; examples in texts begin with other ones, such as ``/path/to``."""

EXAMPLES = {"Makefile": {"/tmp/archbench-fuzz.json"}, "test_data_is_no_code.py": {"/tmp/x"}}
"""Paths that are meant, by file name."""

FIRST_MESSAGE = "24b54e6"
"""The last commit whose message, and those before it, may name a path."""


def git(*arguments: str) -> str:
    """Output of a git command in this repository; the test is skipped where it is none."""
    try:
        return subprocess.run(["git", "-C", ROOT, *arguments], check=True, capture_output=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip(f"no git repository, or one without {arguments[-1]}")


def machine_paths(text: str) -> Iterator[str]:
    return (match[0] for match in MACHINE_PATH.finditer(text))


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ('"command": "archbench run --data-dir /work/sets --seeds 0"', ["/work/sets"]),
        ("see /home/alice/x.py, file:///root/a or (/tmp/b/c)", ["/home/alice/x.py,", "/root/a", "/tmp/b/c)"]),
        ("=/Users/alice/a C:\\\\Users\\\\alice", ["/Users/alice/a", "C:\\\\Users\\\\alice"]),
        ("results/work/logs, ~/work/x, $TMPDIR/tmp/x, /path/to/x, /work, /home", []),
    ],
)
def test_paths_of_a_machine_are_recognised(text: str, paths: list[str]):
    """The two tests below pass on everything where the pattern finds nothing."""
    assert list(machine_paths(text)) == paths


def test_no_committed_file_names_a_path_of_a_machine():
    """The repository is public: whose folders results were made in is nobody's business, and a
    command with them runs nowhere else."""
    named = []
    for name in filter(None, git("ls-files", "-z").split("\0")):
        path = ROOT / name
        content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        if b"\0" not in content[:8000]:
            paths = set(machine_paths(content.decode("utf-8", "replace"))) - EXAMPLES.get(path.name, set())
            named += [f"{name}: {found}" for found in sorted(paths) if path.name != Path(__file__).name]
    assert named == []


def test_no_commit_message_names_a_path_of_a_machine():
    """Messages cannot be mended once they are public."""
    history = git("log", "--format=%h%n%B", f"{FIRST_MESSAGE}..HEAD")
    assert list(machine_paths(history)) == []


def test_results_stay_small_enough_for_a_repository():
    assert sum(path.stat().st_size for path in (RESULTS / "records").rglob("*") if path.is_file()) < 60e6
