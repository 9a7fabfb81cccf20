"""The pictures of the documentation show what a build of the committed records gives."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tools import screenshots


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    screenshots.build(folder)
    return folder


def test_no_picture_is_stale(pages: Path):
    """A reader of the README would see what the pages looked like a year ago."""
    kept = json.loads(screenshots.DIGESTS.read_text(encoding="utf-8"))
    assert kept == screenshots.digests(pages), "run `make screenshots` and commit docs/"
    for name in screenshots.PICTURES:
        assert 10_000 < (screenshots.DOCS / f"{name}.png").stat().st_size < 300_000


def test_every_picture_shows_a_part_of_its_page(pages: Path):
    for picture in screenshots.PICTURES.values():
        mark = picture.place.lstrip("#.")
        text = (pages / picture.page).read_text(encoding="utf-8") + (pages / "archbench.js").read_text(encoding="utf-8")
        assert re.search(rf'(id|class)="[^"]*{mark}|class: "{mark}"|<{mark}', text), picture
