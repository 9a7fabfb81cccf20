"""Protocol ``equal``: what every encoder of a task reads alike, and what is read of it."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

import numpy as np
import pytest
import torch

from harness import registry
from harness.data.corpus import Corpus
from harness.errors import UnknownName
from harness.problems.base import Head
from harness.running import fitting, grid
from harness.settings import Budget, Limits, TrainingSettings
from harness.task import WITHOUT_LABELS
from harness.training.model import Model, build
from harness.training.protocols import EQUAL, PROTOCOLS, VERSIONS, training
from harness.views.stream import Stream
from harness.views.tree import Trees


def cell(architecture: str, task: str, **options: Any) -> grid.Cell:
    entries = [registry.entry("architectures", architecture)], [registry.entry("tasks", task)]
    [(found, reason, _)] = grid.plan(*entries, **{"tier": "mini", "protocol": "equal", "seeds": [0]} | options)
    assert reason is None, reason
    return found


def model_of(architecture: str, task: str, settings: TrainingSettings, **sizes: Any) -> tuple[Model, Corpus]:
    entry, asked = registry.entry("architectures", architecture), registry.entry("tasks", task)
    cls = registry.load(entry)
    values = grid.hyperparameters(entry) | entry.tiny | sizes
    view = cls.view_for(asked, values)
    corpus = Corpus(registry.load(asked)(asked), "mini", None, view, cls.output_form(), max_train=40)
    torch.manual_seed(0)
    return build(cls, corpus.problem, values, view, corpus.target, 8, training=settings), corpus


def test_every_protocol_has_a_version():
    assert VERSIONS.keys() == {*PROTOCOLS}


def test_a_cell_knows_its_budget():
    """Examples, passes, batches and steps are those of the task's file, and part of the key."""
    task = registry.entry("tasks", "sst2")
    small, full = (cell("bilstm", "sst2", budget=name) for name in ("small", "full"))
    declared = registry.budgets_of(task)["small"]
    assert small.budget == {
        "name": "small",
        "examples": declared.examples,
        "passes": declared.passes,
        "min_steps": declared.min_steps,
        "batch_size": declared.batch_size,
    }
    assert full.budget["name"] == "full" and full.budget["examples"] is None
    assert cell("bilstm", "sst2", max_train=50).budget["name"] == "custom"
    assert small.key != full.key and small.protocol_version == VERSIONS["equal"]


def test_a_recipe_takes_of_a_budget_its_examples_alone():
    recipe = registry.entry("architectures", "bilstm").recipe
    found = cell("bilstm", "sst2", protocol="paper", budget="small")
    assert (
        Limits.of(found.hyperparameters).max_train
        == registry.budgets_of(registry.entry("tasks", "sst2"))["small"].examples
    )
    assert TrainingSettings.from_dict(found.hyperparameters["training"]) == recipe


def test_pre_training_has_a_recipe_of_its_own():
    """Steps as small as those that tune trained weights would leave fresh ones where they were."""
    entry = registry.entry("architectures", "roberta")
    for task, recipe in (("text_mix", entry.recipes["text"]), ("sst2", entry.recipe)):
        found = cell("roberta", task, protocol="paper").hyperparameters["training"]
        assert TrainingSettings.from_dict(found) == recipe
    assert entry.recipes["text"] != entry.recipe


def test_a_task_that_declares_no_budget_has_all_its_examples():
    """Such as one of a plugin."""
    plain = dataclasses.replace(registry.entry("tasks", "sst2"), budgets={}, epochs=7)
    assert registry.budgets_of(plain) == {"full": Budget(7)}
    assert (
        training("equal", registry.entry("architectures", "dan"), plain, registry.budgets_of(plain)["full"]).epochs == 7
    )
    assert "has no budget small; it has full" in fitting.no_budget(plain, "small")


@pytest.mark.parametrize("task", [entry for entry in registry.entries("tasks").values() if entry.shipped])
def test_every_shipped_task_has_a_small_and_a_full_budget(task):
    """A full one with fewer examples than there are would be no full one."""
    assert list(registry.budgets_of(task)) == ["small", "full"] and registry.budgets_of(task)["full"].examples is None
    assert all(budget.reason for budget in registry.budgets_of(task).values())


def test_a_task_may_have_the_budgets_of_another():
    """Two label sets on one corpus would drift apart if each had figures of its own."""
    chunks = registry.entry("tasks", "conll2003_chunk")
    assert registry.budgets_of(chunks) == registry.budgets_of(registry.entry("tasks", "conll2003_ner")) != {}
    with pytest.raises(UnknownName, match="conll2004_ner"):
        _ = registry.budgets_of(dataclasses.replace(chunks, budgets="conll2004_ner"))


@pytest.mark.parametrize("architecture", ["kim_cnn_rand", "blstm_2dcnn", "esim", "adversarial"])
def test_ordinary_dropouts_are_those_of_the_protocol(architecture):
    """Otherwise a row on a set where every net overfits measures its paper's dropout."""
    task = "snli" if architecture == "esim" else "sst2"
    equal, paper = (cell(architecture, task, protocol=name) for name in ("equal", "paper"))
    own = {name: value for name, value in equal.hyperparameters.items() if name.startswith("dropout")}
    assert not np.any([*own.values()] or [0])
    assert equal.hyperparameters["training"]["dropout"] == registry.entry("tasks", task).dropout
    assert "dropout" not in paper.hyperparameters["training"]


def test_a_dropout_that_is_the_mechanism_stays():
    assert cell("dan", "sst2").hyperparameters["word_dropout"] == 0.3


def test_every_dropout_is_the_protocols_or_the_mechanisms():
    """One that is neither would be forgotten: a new architecture must say which it is."""
    # a DAN's of words; no encoder; whole steps of an answer; weights from state to state
    mechanisms = {"dan": "word_dropout", "text_gcn": "dropout", "ulmfit": "weight_dropout"}
    mechanisms |= dict.fromkeys(("san", "mt_dnn"), "step_dropout")
    for id, entry in registry.entries("architectures").items():
        values = grid.without_dropouts(entry)
        left = {name for name, value in values.items() if "dropout" in name and np.any(value)}
        assert left <= {mechanisms.get(id)}, id


@pytest.mark.parametrize(
    ("architecture", "task"), [("bilstm_crf", "conll2003_ner"), ("lstm_crf_char", "conll2003_ner")]
)
def test_taggers_read_words_in_lower_case_and_digits_as_0(architecture, task):
    """Case makes 4 points of F1 by making words rare; characters keep it."""
    view = cell(architecture, task).hyperparameters["view"]
    assert view["lower"] is True and view["digits"] is True
    assert "view" not in cell(architecture, task, protocol="paper").hyperparameters


def test_every_word_is_kept():
    assert cell("bilstm", "sst2").hyperparameters["view"] == {"min_count": 1}


PAIRS = [("esim", "snli"), ("avg_vectors", "wikiqa"), ("span_search", "squad1"), ("bilstm", "squad2")]


@pytest.mark.parametrize(("architecture", "task"), PAIRS)
def test_two_texts_are_marked_where_they_share_a_word(architecture, task):
    """Without it no reader finds from some thousand questions that equal words matter. By hand:
    compared are the words of the batch's rows."""
    model, corpus = model_of(architecture, task, TrainingSettings(shared_words=True))
    batch = corpus.train.collate(np.arange(6))
    read = model.eval().read(batch.inputs)
    for one, other in (corpus.problem.entry.texts, corpus.problem.entry.texts[::-1]):
        for row in range(6):
            words = corpus.view.read(corpus.train.rows[row][one])
            others = set(corpus.view.read(corpus.train.rows[row][other]))
            found = read[one].vectors[row, : len(words), -1].tolist()
            assert found == [float(word in others) for word in words]
        assert read[one].vectors.shape[-1] == 9
    model.loss(batch).backward()


def test_words_of_sentences_are_marked_too():
    """A document view has a dimension more; without the mark its rows of a pair end in an error."""
    model, corpus = model_of("han", "wikiqa", TrainingSettings(shared_words=True))
    batch = corpus.train.collate(np.arange(6))
    read = model.eval().read(batch.inputs)
    one, other = corpus.problem.entry.texts
    for row in range(6):
        sentences = corpus.view.read(corpus.train.rows[row][one])
        others = {word for words in corpus.view.read(corpus.train.rows[row][other]) for word in words}
        for place, words in enumerate(sentences):
            found = read[one].vectors[row, place, : len(words), -1].tolist()
            assert found == [float(word in others) for word in words]
    model.loss(batch).backward()


def test_every_view_of_a_pair_says_how_its_words_are_spelt():
    """The mark needs it: a view that forgets it fails in its first cell of a pair."""
    seen = set()
    for entry in registry.entries("architectures").values():
        view = getattr(registry.load(entry), "view", None)
        if view is None or not view.embeds or isinstance(view, Trees | Stream):  # which pairs have none of
            continue
        if type(view) not in seen:
            seen.add(type(view))
            view = copy.deepcopy(view)
            view.knowledge = "toy"  # of those that would ask WordNet
            view.fit(["a word and a word"])
            texts = view.collate(view.encode(["a word", "no word . here"]), np.arange(2))
            assert texts.spellings.shape == texts.mask.shape, type(view)
    assert len(seen) > 3


@pytest.mark.parametrize(("architecture", "task"), [("bilstm", "sst2"), ("seq2seq", "squad1"), ("copynet", "squad2")])
def test_one_text_has_no_mark(architecture, task):
    """Nor have two that are read as one: a passage behind its question was sought among the inputs
    under its own name, and each such cell failed."""
    model, corpus = model_of(architecture, task, TrainingSettings(shared_words=True))
    assert model.read(corpus.train.collate(np.arange(3)).inputs)["text"].vectors.shape[-1] == 8


@pytest.mark.parametrize(("architecture", "marks"), [("avg_vectors", True), ("use_dan_tasks", False)])
def test_an_encoder_whose_vectors_are_asked_for_later_reads_each_text_of_a_pair_alone(architecture, marks):
    """It learnt from marks that no single text has."""
    model, corpus = model_of(architecture, "snli", TrainingSettings(shared_words=True))
    batch = corpus.train.collate(np.arange(3))
    found = model.eval().read(batch.inputs)["first"].vectors
    assert found.shape[-1] == 8 + marks
    turned = batch.inputs | {"second": batch.inputs["first"]}
    assert torch.equal(model.read(turned)["first"].vectors, found) is not marks


@pytest.mark.parametrize(("architecture", "task"), [*PAIRS, ("bilstm", "sst2"), ("bilstm", "conll2003_pos")])
def test_dropout_acts_on_the_vectors_and_on_what_the_head_reads(architecture, task, monkeypatch):
    """Of an encoder that scores itself, such as span_search, on the vectors alone; in answering
    nowhere."""
    model, corpus = model_of(architecture, task, TrainingSettings(dropout=0.5, shared_words=True))
    batch = corpus.train.collate(np.arange(6))
    dropped: list[Any] = []
    drop = Head.drop
    monkeypatch.setattr(Head, "drop", lambda self, values: dropped.append(drop(self, values)) or dropped[-1])
    model.train()(batch.inputs)
    texts = model.read(batch.inputs)
    vectors = next(iter(texts.values())).vectors
    zeros = (vectors[..., :8][next(iter(texts.values())).mask] == 0).float().mean()
    assert 0.4 < zeros < 0.6
    if architecture != "span_search":
        assert 0.3 < (dropped[0] == 0).float().mean()
    answers = [model.eval()(batch.inputs) for _ in range(2)]
    assert all(torch.equal(a, b) for a, b in zip(*map(_tensors, answers), strict=True))


def _tensors(outputs: Any) -> list[torch.Tensor]:
    return [outputs] if isinstance(outputs, torch.Tensor) else [each for each in outputs if each is not None]


def _streams(system: Any) -> tuple[str, ...]:
    """The streams that the objective of a system reads."""
    return getattr(getattr(system, "trained_by", None), "streams", ())


def test_who_learns_from_more_than_the_labelled_examples_says_so():
    """Such rows are ranked apart: they read test texts, or labels that others never get."""
    entries = registry.entries("architectures")
    reads_test = {id for id, entry in entries.items() if getattr(registry.load(entry), "transductive", False)}
    assert reads_test == {id for id, entry in entries.items() if "texts of test" in entry.sees}
    assert {id for id, entry in entries.items() if entry.kind == "tree"} == {
        id for id, entry in entries.items() if "labels of phrases" in entry.sees
    }
    reads_texts = {id for id, entry in entries.items() if "unlabelled" in _streams(registry.load(entry))}
    assert reads_texts == {id for id, entry in entries.items() if WITHOUT_LABELS in entry.sees}
    foreign = {id for id, entry in entries.items() if entry.hyperparameters.get("pretrained")}
    assert foreign == {id for id, entry in entries.items() if "foreign weights" in entry.sees}


def test_the_settings_of_equal():
    """Version 2; whoever changes them raises the version."""
    assert (EQUAL.learning_rates, EQUAL.lr_schedule, EQUAL.unknown_rate) == ((0.002, 0.001, 0.0005), "linear", 0.3)
    assert EQUAL.shared_words and VERSIONS["equal"] == 2
