"""The catalogue of the source texts' systems against what is registered."""

from __future__ import annotations

import csv
import dataclasses
from collections import defaultdict
from pathlib import Path

import pytest

from harness import registry
from harness.errors import LeaderboardError
from harness.leaderboard.catalogue import COLUMNS, CatalogueEntry, homes, read_catalogue, system_of
from harness.leaderboard.published import SOURCES, read_published
from harness.leaderboard.tables.gaps import read_reported
from harness.running import fitting, grid

CATALOGUE = SOURCES / "catalogue.csv"
RESULTS = Path(__file__).parents[1] / "results"


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


def test_every_system_of_the_source_texts_is_registered(systems, files) -> None:
    """A reader of the source texts looks for every one of them."""
    there = {*files, *((entry.family, entry.id) for entry in registry.entries("inputs").values())}
    assert [system["id"] for system in systems if (system["family"], system["id"]) not in there] == []
    ours = {"wordpiece", "unigram", "aristo_corpus"}  # beside those of the texts
    assert len({system["id"] for system in systems} - ours) == 231


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


def test_a_reference_is_of_no_source_text_and_its_name_says_so(systems) -> None:
    """A reader would take a published value for one of ours, or our row for a paper's system."""
    references = {id: e for id, e in registry.entries("architectures").items() if e.is_reference}
    assert {"tfidf_logreg", "tfidf_pair_logreg"} <= set(references)
    wrong = [
        e.id for e in references.values() if not e.name.startswith("reference: ") or (e.paper, e.year) != ("none", 0)
    ]
    assert not wrong, "names begin with `reference: `, as those of floors do; paper is none, and year 0"
    named = {system["id"] for system in systems}
    named |= {value.architecture for value in read_published(SOURCES / "published.csv")}
    named |= {line.architecture for line in read_reported(RESULTS / "gaps.csv")}
    assert not named & set(references)


# --- homes ---


@pytest.fixture(scope="module")
def home_of(tmp_path_factory) -> dict[str, CatalogueEntry | None]:
    """The line of each architecture of this package but floors and references, by its id."""
    catalogue = read_catalogue(tmp_path_factory.mktemp("results"))
    entries = registry.entries("architectures").values()
    systems = (e for e in entries if e.shipped and e.kind != "floor" and not e.is_reference)
    return {e.id: system_of(e, catalogue) for e in systems}


def test_every_architecture_has_a_home(home_of) -> None:
    """One without would be missing from the full budget, and nobody told."""
    assert [id for id, system in home_of.items() if system is None or not system.home] == []


def test_a_home_says_that_it_is_the_papers_or_the_nearest(systems) -> None:
    """Readers of the grid take a score on the paper's own data for a reproduction."""
    wrong = [
        system["id"]
        for system in systems
        if system["home_reason"].startswith("in the paper (") == ("nearest" in system["home_reason"])
    ]
    assert not wrong


def test_every_architecture_fits_its_home(home_of) -> None:
    """A home on which it cannot run is none."""
    entries, tasks = registry.entries("architectures"), registry.entries("tasks")
    chosen = {id: system.home for id, system in home_of.items()}
    assert sorted(set(chosen.values()) - set(tasks)) == []
    unfit = {
        id: reason
        for id, home in chosen.items()
        if (reason := fitting.reason_to_skip(entries[id], tasks[home], grid.hyperparameters(entries[id])))
    }
    assert unfit == {}


def test_an_id_has_the_home_of_its_file_or_of_what_it_goes_on_from(home_of) -> None:
    """Variants, and a file of its own for a form of a system, have no lines of their own."""
    assert {id: home_of[id].name for id in ("blstm_2dpooling", "bidaf_self_attention", "attn_seq2seq_luong")} == {
        "blstm_2dpooling": "BLSTM-2DPooling / 2DCNN",
        "bidaf_self_attention": "BiDAF (+ self-attention + ELMo)",
        "attn_seq2seq_luong": "Attentional encoder-decoder",
    }
    assert home_of["bilstm_crf"].name == "BiLSTM-CRF", "not that of bilstm, which it goes on from"


def test_a_home_that_is_not_registered_or_not_known_is_told(tmp_path) -> None:
    known = registry.entries("architectures")
    chosen = [known[id] for id in ("dan", "seq2seq", "attn_seq2seq_dot", "floor_random", "bilstm")]
    chosen.append(dataclasses.replace(known["tfidf_svm"], id="bilstm_svm", file=known["bilstm"].file))
    assert homes(chosen, ["sst2", "snli"], tmp_path) == (
        {"dan": "sst2", "bilstm": "snli"},
        [
            "seq2seq, attn_seq2seq_dot: its home multi30k is not registered",
            "floor_random, bilstm_svm: no home, since the catalogue does not know it",
        ],
    )


@pytest.mark.parametrize("columns", [COLUMNS[:-1], [*COLUMNS, "task"]])
def test_a_catalogue_of_ones_own_with_other_columns_is_named(tmp_path, columns) -> None:
    """Without a home in silence, a grid of homes would be empty."""
    (tmp_path / "catalogue.csv").write_text(",".join(columns) + "\n" + ",".join("x" for _ in columns) + "\n")
    with pytest.raises(LeaderboardError, match=r"catalogue\.csv: the columns are .*, expected .*'home_reason'"):
        read_catalogue(tmp_path)
