"""Input sources in the plan of a grid: what a cell says of them, and who cannot read them."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from harness import registry
from harness.errors import UsageError
from harness.records import Cell
from harness.records.code_digest import code_of
from harness.running import grid, parents
from harness.running.pending import Planned
from tests.support import inheriting

DEFAULTS = {"version": 1, "character_size": 30, "filters": 30, "window": 3, "dropout": 0.5}


def planned(architecture: str = "kim_cnn_rand", task: str = "sst2", **options: Any) -> Planned:
    found = [registry.entry("architectures", architecture)], [registry.entry("tasks", task)]
    [item] = grid.plan(*found, **{"tier": "mini", "protocol": "paper", "seeds": [0]} | options)
    return item


def cell(*names: str, **options: Any) -> Cell:
    item = planned(**options, inputs=names)
    assert item.reason is None
    return item.cell


def test_a_cell_says_which_sources_it_reads_with_version_and_settings() -> None:
    """They decide its result; and without them a cell is the one that it always was."""
    with_source, without = cell("char_cnn_words"), cell()
    assert with_source.inputs == {"char_cnn_words": DEFAULTS}
    assert "inputs" not in without.hyperparameters and without.key != with_source.key
    added = with_source.hyperparameters | {"inputs": None}
    assert {name: value for name, value in added.items() if name != "inputs"} == without.hyperparameters


def test_the_order_and_the_number_of_times_a_source_is_named_make_no_difference() -> None:
    both = "char_cnn_words", "char_lstm_words"
    assert cell(*both).key == cell(*reversed(both), *both).key != cell("char_cnn_words").key


def test_a_source_that_an_architecture_names_is_read_whatever_a_run_names() -> None:
    """ESIM + ELMo without ELMo would be ESIM under another name."""
    own = planned("esim_elmo", "snli").cell
    assert list(own.inputs) == ["elmo_words"]
    assert planned("esim_elmo", "snli", inputs=["elmo_words"]).cell.key == own.key
    both = planned("esim_elmo", "snli", inputs=["char_cnn_words"]).cell
    assert sorted(both.inputs) == ["char_cnn_words", "elmo_words"]
    named = planned("esim", "snli", inputs=["elmo_words"]).cell
    assert named.inputs == own.inputs and named.key != own.key
    planner = grid.Planner(tier="mini", protocol="equal", inputs=["char_cnn_words"])
    as_parent = planner.cell(
        registry.entry("architectures", "esim_elmo"), registry.entry("tasks", "snli"), 0, inputs=False
    )
    assert list(as_parent.cell.inputs) == ["elmo_words"]


def test_a_source_that_an_architecture_names_and_nobody_knows_is_an_error() -> None:
    entry = dataclasses.replace(registry.entry("architectures", "esim_elmo"), inputs=("elmo",))
    planner = grid.Planner(tier="mini", protocol="equal")
    with pytest.raises(UsageError, match="esim_elmo: inputs elmo: unknown; did you mean elmo_words"):
        planner.cell(entry, registry.entry("tasks", "snli"), 0)


def test_a_setting_of_a_source_is_overridden_by_its_name() -> None:
    """-o is for sources as for architectures, and tells what it does not know."""
    changed = cell("char_cnn_words", overrides=["char_cnn_words.filters=5"])
    assert changed.inputs == {"char_cnn_words": DEFAULTS | {"filters": 5}}
    assert changed.key != cell("char_cnn_words").key
    with pytest.raises(UsageError, match="char_cnn_words has no hyperparameter filter; did you mean filters"):
        cell("char_cnn_words", overrides=["char_cnn_words.filter=5"])
    with pytest.raises(UsageError, match="no architecture of this run is called 'char_cnn_words'"):
        cell(overrides=["char_cnn_words.filters=5"])


def test_protocol_equal_takes_the_dropout_of_a_source_as_that_of_an_architecture() -> None:
    """It has a dropout of its own on all that encoders read."""
    assert cell("char_cnn_words", protocol="equal").inputs["char_cnn_words"]["dropout"] == 0.0


def test_settings_of_the_view_are_those_of_words_with_characters() -> None:
    view = cell("char_cnn_words", overrides=["*.view.word_length=12"]).hyperparameters["view"]
    assert view == {"word_length": 12}
    with pytest.raises(UsageError, match="word_length"):
        cell(overrides=["*.view.word_length=12"])


def test_a_name_that_no_source_has_is_told_with_those_that_there_are() -> None:
    with pytest.raises(
        UsageError,
        match=r"did you mean elmo_words\? Choose from char_cnn_words, char_lstm_words, cove_words, elmo",
    ):
        cell("elmo")


@pytest.mark.parametrize(
    ("architecture", "task", "read"),
    [
        ("tree_lstm", "sst2", "Trees"),
        ("han", "sst2", "Sentences"),
        ("bert", "sst2", "Subwords"),
        ("char_cnn", "sst2", "Characters"),
        ("gcn", "sst2", "WordGraphs"),
        ("oh_cnn", "sst2", "Regions"),
        ("nbsvm", "sst2", "rows"),
        ("memn2n", "babi", "Facts"),
        ("rnn_lm", "wikitext2", "Stream"),
        ("bilstm_ctc", "fsdd", "Frames"),
    ],
)
def test_who_cannot_read_a_source_is_skipped_with_the_reason(architecture: str, task: str, read: str) -> None:
    """A row that says that it read characters, and did not, would be a lie; without the source the
    same cell runs."""
    item = planned(architecture, task, inputs=["char_cnn_words"])
    reads = f"--inputs char_cnn_words stands behind the vectors of words; {architecture} reads {read}"
    assert item.unfit and item.reason == reads
    assert planned(architecture, task).reason is None


@pytest.mark.parametrize(
    ("architecture", "task"),
    [
        ("adversarial", "sst2"),
        ("esim", "snli"),
        ("bilstm_crf", "conll2003_ner"),
        ("lstm_cnns_crf", "conll2003_ner"),
        ("drqa_reader", "squad1"),
        ("pointer_generator", "multi30k"),
    ],
)
def test_word_level_systems_of_all_kinds_read_a_source(architecture: str, task: str) -> None:
    assert planned(architecture, task, inputs=["char_cnn_words"]).reason is None


def test_of_the_parents_of_a_cell_only_the_giver_of_weights_reads_its_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Weights go on in a network of the same size; skip-gram vectors are those that they always
    were."""
    planner = grid.Planner(tier="mini", protocol="equal", inputs=["char_cnn_words"])
    child, task = registry.entry("architectures", "bilstm"), registry.entry("tasks", "sst2")
    [of_vectors], [planned] = parents.plan(
        planner, [child], [task], [0], None, [parents.parse_parent("vectors=skipgram")], tmp_path
    )
    assert planned.reason is None and planned.cell.inputs and not of_vectors.cell.inputs
    monkeypatch.setattr("harness.registry.finding._plugins", [Path(inheriting.__file__)])
    child = registry.entry("architectures", "mean_after")  # weights and vectors, both of mean_words
    before, [planned] = parents.plan(planner, [child], [task], [0], None, [], tmp_path)
    reads = {item.cell.key: bool(item.cell.inputs) for item in before}
    assert {role: reads[parent["key"]] for role, parent in planned.cell.parents.items()} == {
        "weights": True,
        "vectors": False,
    }


def test_the_code_of_a_source_is_part_of_the_code_of_its_cells(tmp_path: Path, monkeypatch) -> None:
    """A change of a source must not leave the records standing that were made with it."""
    file = tmp_path / "mine.py"
    source = (registry.entry("inputs", "char_cnn_words").file).read_text().replace('"char_cnn_words"', '"mine"')
    monkeypatch.setattr("harness.registry.finding._plugins", [file])
    entries = registry.entry("architectures", "kim_cnn_rand"), registry.entry("tasks", "sst2")

    def digest(text: str, **inputs: Any) -> str:
        file.write_text(text)
        return code_of(*entries, {"inputs": inputs})["architecture"]

    plain, mine = digest(source), digest(source, mine=DEFAULTS)
    assert plain == code_of(*entries)["architecture"] != mine
    assert digest(source.replace("begin + 1", "begin + 0"), mine=DEFAULTS) != mine
    assert digest(source.replace("Marks stand", "There are marks"), mine=DEFAULTS) == mine
    assert digest(source.replace("begin + 1", "begin + 0")) == plain
