"""The pictures of the README, from the committed records: ``ARCHBENCH_SCREENSHOTS=docs pytest
tests/browser/test_screenshots.py``."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import leaderboard

RESULTS = Path(__file__).resolve().parents[2] / "results"
PICTURES = {
    "leaderboard": ("index.html", "#best"),
    "quality-and-speed": ("task-sst2.html", "figcaption"),
}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    assert leaderboard.main(["--results", str(RESULTS), "--out", str(folder)]) == 0
    return folder


@pytest.mark.parametrize("name", PICTURES)
def test_the_committed_records_make_a_picture(pages: Path, visit: Callable, tmp_path: Path, name: str):
    """A reader of the README sees what a build gives, not what one gave a year ago: the folder for
    the pictures is an option."""
    file, place = PICTURES[name]
    shown = visit(pages, file)
    shown.page.set_viewport_size({"width": 1100, "height": 620})
    shown.page.evaluate(f"document.querySelector({place!r}).scrollIntoView()")
    shown.page.wait_for_timeout(300)  # plots are drawn when they come into sight
    picture = Path(os.environ.get("ARCHBENCH_SCREENSHOTS", tmp_path)) / f"{name}.png"
    shown.page.screenshot(path=picture)
    assert 10_000 < picture.stat().st_size < 300_000
    assert shown.wrong == []
