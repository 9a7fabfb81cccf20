"""Cells that read words in the pieces that another cell learnt."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest

from harness import registry
from harness.records import Record
from harness.records.groups import along, group_of
from harness.running.worker import run_cell
from harness.saved_models import storage
from harness.saved_models.model import load
from tests.saved_models.test_parents import PLUGIN
from tests.support.sessions import carried_out, session

ROW = {"id": "1", "text": "The Acting was great."}


@pytest.fixture(scope="module")
def family(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Record]]:
    """`archbench run -a avg_vectors -t sst2 --parent tokens=bpe` from nothing, and without the
    parent."""
    results = tmp_path_factory.mktemp("results")
    planned = session(results, "avg_vectors", "tokens=bpe", overrides=("bpe.size=150",), keep=True)
    parent, child = sorted(planned.pending.run, key=lambda cell: bool(cell.parents))
    assert (parent.architecture, parent.task) == ("bpe", "text_mix") and planned.settings.keeps(parent)
    (alone,) = (planned := session(results, "avg_vectors", keep=True)).pending.run
    cells = {"parent": parent, "child": child, "alone": alone}
    return results, {name: run_cell(cell, planned.settings) for name, cell in cells.items()}


def test_a_child_reads_the_pieces_of_its_parent(family) -> None:
    results, records = family
    assert {record.status for record in records.values()} == {"ok"}, [record.error for record in records.values()]
    parent, child = (load(storage.place(results, records[name].key)) for name in ("parent", "child"))
    assert records["parent"].tokens == {"name": "characters"}
    read = child.view.read("The Acting was great.")
    assert read == parent.estimator.pieces.split(["the", "acting", "was", "great", "."]) and len(read) > 5
    assert {*child.view.vocabulary.words} <= {*parent.estimator.pieces.vocabulary}


def test_a_kept_child_is_whole_without_its_parent(family, tmp_path: Path) -> None:
    """It is copied to another machine, or the parent is removed."""
    results, records = family
    key = records["child"].key
    shutil.copytree(storage.place(results, key), tmp_path / "models" / key)
    here, there = (load(folder).answers([ROW]) for folder in (storage.place(results, key), tmp_path / "models" / key))
    assert here == there


def test_a_child_of_a_parent_trained_anew_reads_the_new_pieces(tmp_path: Path) -> None:
    """The key is the same: texts in the old pieces would be read from the cache, and the record
    would say that both divisions are one."""
    first, other = (
        session(tmp_path / size, "avg_vectors", "tokens=bpe", overrides=(f"bpe.size={size}",), keep=True)
        for size in ("150", "60")
    )
    records = carried_out(first)
    keys = {name: record.key for name, record in records.items()}
    place = storage.place(tmp_path / "150", keys["bpe"])
    model = load(storage.place(tmp_path / "60", carried_out(other)["bpe"].key))
    model.description = model.description.model_copy(update={"origin": load(place).description.origin})
    model.write(place)
    (child,) = (cell for cell in first.cells if cell.key == keys["avg_vectors"])
    record = run_cell(child, first.settings)
    read = load(storage.place(tmp_path / "150", keys["avg_vectors"])).view.vocabulary.words
    assert {*read} <= {*model.estimator.pieces.vocabulary}
    artefact = hashlib.sha256((place / "state.json").read_bytes()).hexdigest()
    assert record.tokens["artefact"] == record.lineage[0]["artefact"] == artefact
    assert records["avg_vectors"].tokens["artefact"] != artefact, "of both, the file of weights is empty"


def test_rows_of_other_pieces_are_compared_along_tokens_alone(family) -> None:
    """The table would rank one architecture against itself, and call the better half the
    architecture."""
    _, records = family
    parent, child, alone = (records[name] for name in ("parent", "child", "alone"))
    assert child.tokens["name"] == "bpe" and child.tokens["key"] == parent.key and alone.tokens is None
    assert group_of(child) == group_of(alone)._replace(tokens=group_of(child).tokens) != group_of(alone)
    assert along("tokens", [child, alone]) == [[child, alone]] and along("vectors", [child, alone]) == []


@pytest.mark.parametrize(
    ("architecture", "task", "reason"),
    [
        ("bilstm_softmax", "conll2003_pos", "each of the given words has a tag"),
        ("bilstm", "squad1", "an answer is words of the passage"),
        ("copynet", "multi30k", "it copies words of the source"),
        ("tree_lstm", "sst2", "the units of its view, Trees, are given"),
        ("char_cnn", "sst2", "the units of its view, Characters, are given"),
        ("lstm_cnns_crf", "conll2003_pos", "the units of its view, WordsAndCharacters, are given"),
        ("rnn_lm", "wikitext2", "the units of its view, Stream, are given"),
        ("naive_bayes", "sst2", "naive_bayes reads the rows by itself"),
    ],
)
def test_what_reads_given_units_is_skipped_with_the_reason(tmp_path: Path, architecture: str, task: str, reason: str):
    """A grid of all architectures would end at the first of them."""
    planned = session(tmp_path, architecture, "tokens=wordpiece", tasks=task)
    assert planned.pending.run == [], "the parent is not trained for nobody"
    (item,) = planned.pending.skip
    assert item.reason == f"cannot read words in pieces: {reason}" and item.unfit
    (plain,) = session(tmp_path, architecture, tasks=task).pending.run
    assert item.cell.key != plain.key, "the cell that reads words has its own record"


def test_characters_of_words_leave_no_pieces(tmp_path: Path) -> None:
    """The cell would read whole words, and its record would say pieces."""
    planned = session(tmp_path, "kim_cnn_rand", "tokens=wordpiece", inputs=("char_cnn_words",))
    assert planned.pending.run == []
    assert planned.pending.skip[0].reason == "cannot read words in pieces: char_cnn_words reads the characters of words"


@pytest.mark.parametrize(
    ("architecture", "task"),
    [("seq2seq", "multi30k"), ("han", "ag_news"), ("esim", "snli"), ("adversarial", "sst2")],
)
def test_what_divides_texts_into_words_itself_reads_pieces(tmp_path: Path, architecture: str, task: str):
    planned = session(tmp_path, architecture, "tokens=wordpiece", tasks=task)
    assert {cell.architecture for cell in planned.pending.run} == {architecture, "wordpiece"}


def test_a_parent_that_divides_nothing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.registry.finding._plugins", [])
    registry.add_plugin(PLUGIN)
    records = carried_out(session(tmp_path, "mean_words", "tokens=word_table", plugins=[PLUGIN]))
    assert records["mean_words"].status == "failed"
    assert "in the role tokens: word_table divides no words into pieces" in records["mean_words"].error["message"]
