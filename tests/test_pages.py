"""Pages that describe the code agree with it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "explanations" / "how-it-hangs-together.md"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
FILE = re.compile(r"\b(?:harness|architectures|tasks|docs|tests|results|\.ci)/[\w./-]*\w\.\w+")


def layers() -> list[list[str]]:
    """Rooms of the import contract, top first."""
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    contract = next(each for each in tools["importlinter"]["contracts"] if each["id"] == "rooms")
    return [[room.strip() for room in layer.split("|")] for layer in contract["layers"]]


def rooms_of_the_page() -> list[list[str]]:
    """First column of the table."""
    return [re.findall(r"`(\w+)`", row.split("|")[1]) for row in PAGE.read_text().splitlines() if row.startswith("| `")]


def test_the_page_lists_the_rooms_in_the_order_of_the_import_contract():
    """Who decides from the page where a module belongs would be refused by `make imports`."""
    assert rooms_of_the_page() == layers()


def test_every_room_of_the_harness_is_on_the_page():
    """A newcomer looks for each folder and module there, and for nothing else."""
    there = {path.stem for path in (ROOT / "harness").iterdir() if path.suffix == ".py" or any(path.glob("*.py"))}
    assert there - {"__init__"} == {room for layer in rooms_of_the_page() for room in layer}


@pytest.mark.parametrize("page", ["docs/explanations/how-it-hangs-together.md", "CONTRIBUTING.md"])
def test_every_file_named_on_a_page_exists(page):
    """A reader who opens a file that moved away finds nothing."""
    files = FILE.findall((ROOT / page).read_text())
    assert files
    assert [file for file in files if not (ROOT / file).exists()] == []


def test_the_readme_is_short():
    """Who comes by reads one screen; the rest is the site's."""
    assert len((ROOT / "README.md").read_text().split()) <= 600


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_of_a_page_leads_to_a_file(page):
    """In a checkout too, where no site is built; `make docs` sees to the anchors."""
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []
