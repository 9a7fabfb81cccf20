"""The README's first command, as a stranger types it: once it ended with a traceback and no page,
and no test had run it.

A stage of its own in `.ci/run` (`make first-command`), since it takes more than a minute.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple

import pytest

from harness import registry

ROOT = Path(__file__).resolve().parents[2]


class Run(NamedTuple):
    """What the command said and left in a results folder that was empty."""

    code: int
    said: str
    folder: Path


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("first") / "runs"
    suites = ("OMP_NUM_THREADS", "HF_HUB_OFFLINE")  # set for tests, not by a stranger
    ended = subprocess.run(
        ["make", "--no-print-directory", "-C", str(ROOT), "run", f"RESULTS={folder}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        env={name: value for name, value in os.environ.items() if name not in suites},
    )
    return Run(ended.returncode, ended.stdout, folder)


class Links(HTMLParser):
    """The files of its own folder that a page links to or loads."""

    def __init__(self, page: Path):
        super().__init__()
        self.files: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = next((value for name, value in attrs if name in ("href", "src") and value), "")
        if file := re.sub(r"[#?].*", "", found):
            self.files |= {file} if ":" not in file else set()  # no scheme, such as https: or data:


def test_it_ends_with_0_and_no_traceback(run: Run):
    assert run.code == 0, run.said[-3000:]
    assert "Traceback" not in run.said and "could not be built" not in run.said


def test_every_task_has_results_and_no_cell_failed(run: Run):
    records = [json.loads(path.read_text()) for path in run.folder.glob("records/*/*/*.json")]
    assert {record["task"] for record in records if record["status"] == "ok"} == {*registry.entries("tasks")}
    known = ("ok", "skipped")  # no architecture fits every task
    assert [(each["command"], each["status"]) for each in records if each["status"] not in known] == []


def test_the_front_page_leads_to_the_page_of_every_task(run: Run):
    pages = run.folder / "leaderboard"
    front = Links(pages / "index.html").files
    assert {f"task-{task}.html" for task in registry.entries("tasks")} <= front


def test_no_link_of_any_page_leads_nowhere(run: Run):
    pages = [*(run.folder / "leaderboard").glob("*.html")]
    assert len(pages) > len(registry.entries("tasks"))
    dead = {(page.name, file) for page in pages for file in Links(page).files if not (page.parent / file).exists()}
    assert dead == set()
