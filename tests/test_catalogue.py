"""The catalogue of the source texts' systems against what is registered."""

from __future__ import annotations

import csv
from collections import defaultdict

import pytest

from harness import registry
from harness.leaderboard.published import SOURCES

CATALOGUE = SOURCES / "catalogue.csv"
DONE = {"1"}
"""Waves that are complete."""


@pytest.fixture(scope="module")
def systems() -> list[dict[str, str]]:
    with CATALOGUE.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def files() -> dict[tuple[str, str], list[registry.Entry]]:
    """What is registered, by family and name: that of its file, and its id where one file holds
    several systems."""
    found = defaultdict(list)
    for entry in registry.entries("architectures").values():
        for name in {entry.file.stem, entry.id}:
            found[entry.file.parent.name, name].append(entry)
    return found


def test_complete_waves_lack_no_system(systems, files) -> None:
    """A reader of the source texts looks for every one of them. What later waves lack is printed
    (``pytest -rP``)."""
    missing = defaultdict(list)
    for system in systems:
        if (system["family"], system["id"]) not in files:
            missing[system["wave"]].append(system["id"])
    for wave in sorted(missing):
        print(f"wave {wave}: {len(missing[wave])} missing: {', '.join(missing[wave])}")
    assert not {wave: ids for wave, ids in missing.items() if wave in DONE}


def test_a_system_has_the_kind_and_the_source_of_its_row(systems, files) -> None:
    """The leaderboard groups by kind and cites the source text: another kind would be another
    architecture.

    The catalogue names the kind of answer (the hidden Markov tagger: tag); one without gradient
    training is an estimator, kind fit.
    """
    wrong = [
        f"{entry.id}: {entry.kind}, {entry.source}; the catalogue says {system['kind']}, {system['source']}"
        for system in systems
        for entry in files.get((system["family"], system["id"]), [])
        if entry.kind not in (system["kind"], "fit") or not {*entry.source.split()} & {*system["source"].split()}
    ]
    assert not wrong
