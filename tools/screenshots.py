"""The pictures of the documentation, taken of the pages of the committed records: ``python -m
tools.screenshots``.

Beside them, ``docs/screenshots.json`` holds a digest of all that each picture shows: its page, and
the style sheet and scripts of the page. A test compares the digests, so that a stale picture is
seen without a browser; pixels differ between two machines.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import leaderboard
from harness.leaderboard.board import read

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
DIGESTS = DOCS / "screenshots.json"
SHOWN_WITH = ("archbench.css", "archbench.js", "picture.js")
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


class Picture(NamedTuple):
    """A part of a page: what is scrolled to, and the size of the window in pixels."""

    page: str
    place: str
    size: tuple[int, int] = (1100, 620)


PICTURES = {
    "leaderboard": Picture("index.html", "#picture-controls"),
    "task": Picture("task-sst2.html", ".controls"),
    "quality-and-cost": Picture("task-sst2.html", "figcaption"),
}


def build(folder: Path) -> None:
    """Write the pages of the committed records, without marks on those whose code was edited since:
    they would be other marks after each commit."""
    board = read(ROOT / "results")
    for record in board.records:
        record.code = None
    leaderboard.write(board, folder)


def digests(folder: Path) -> dict[str, str]:
    """Digest of each picture, from built pages."""
    found = {}
    for name, picture in PICTURES.items():
        parts = [(folder / file).read_bytes() for file in (picture.page, *SHOWN_WITH)]
        found[name] = hashlib.sha256(b"\0".join([repr(picture).encode(), *parts])).hexdigest()
    return found


def take(folder: Path, out: Mapping[str, Path]) -> None:
    """Take the pictures that ``out`` names with the browser of this machine, in light colours."""
    from playwright.sync_api import sync_playwright

    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        raise SystemExit("tools.screenshots: no browser here; apt-get install chromium")
    arguments = ["--headless", "--no-sandbox", "--disable-gpu"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=arguments)
        for name, file in out.items():
            picture = PICTURES[name]
            width, height = picture.size
            page = browser.new_page(viewport={"width": width, "height": height}, color_scheme="light")
            page.goto((folder / picture.page).as_uri())
            page.wait_for_function("document.documentElement.dataset.ready === 'yes'")
            page.evaluate(f"document.querySelector({picture.place!r}).scrollIntoView()")
            page.wait_for_timeout(1500)  # plots are drawn when they come into sight
            page.screenshot(path=file)
        browser.close()


def main() -> int:
    """Take all pictures and write their digests."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        build(folder)
        take(folder, {name: DOCS / f"{name}.png" for name in PICTURES})
        DIGESTS.write_text(json.dumps(digests(folder), indent=1) + "\n", encoding="utf-8")
    print(f"{DIGESTS.relative_to(ROOT)}: {len(PICTURES)} pictures")
    return 0


if __name__ == "__main__":
    sys.exit(main())
