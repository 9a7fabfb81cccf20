"""The mechanism of the universal sentence encoder: sums of words and pairs of words by the square
root of the length, one encoder of several tasks, and vectors that transfer leaves alone."""

from __future__ import annotations

import math
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import Tensor

from architectures.blocks.text_vectors import TextVectorBatch, TextVectors
from architectures.unsupervised.use_dan import UniversalEncoder, UniversalTransformer, UniversalVectors
from harness import registry
from harness.errors import ModelError
from harness.objectives import MultiTask
from harness.running.worker import run_cell
from harness.saved_models import storage
from harness.saved_models.model import load
from harness.views.words import WordBatch
from tests.support.batches import assert_each_alone, random_texts
from tests.support.models import small
from tests.support.same import assert_same
from tests.support.sessions import session

WIDTH, BUCKETS = 4, 7
TEXTS = partial(random_texts, width=WIDTH, words=5)


def averaging() -> UniversalEncoder:
    return small(UniversalEncoder, WIDTH, hidden=6, layers=2, buckets=BUCKETS)


def written_out(model: UniversalEncoder, vectors: Tensor, spellings: list[int]) -> Tensor:
    """The vector of one text, word by word."""
    total = torch.zeros(WIDTH)
    for vector in vectors:
        total = total + vector
    for a, b in pairwise(spellings):
        total = total + model.pairs.weight[(a * 31 + b) % BUCKETS]
    vector = total / math.sqrt(len(vectors))
    for part in model.layers:
        vector = (part[0].weight @ vector + part[0].bias).clamp(min=0)
    return vector


def test_words_and_pairs_of_words_are_summed_by_the_root_of_the_length():
    """Written out, in values and gradients: a mean, pairs across the end of a text, or words alone
    give other ones."""
    model, texts = averaging(), TEXTS([4, 1, 6], seed=1)
    found = model(texts)
    expected = [
        written_out(model, vectors[:length], spellings[:length].tolist())
        for vectors, spellings, length in zip(texts.vectors, texts.spellings, texts.lengths.tolist(), strict=True)
    ]
    assert_same(found, torch.stack(expected))


def test_the_order_of_words_counts_by_their_pairs_alone():
    model = averaging()
    texts = TEXTS([3], seed=1)
    turned = texts._replace(vectors=texts.vectors.flip(1), spellings=texts.spellings.flip(1))
    assert not torch.allclose(model(texts), model(turned))
    with torch.no_grad():
        model.pairs.weight.zero_()
    torch.testing.assert_close(model(texts), model(turned))


def test_the_transformers_states_are_summed_by_the_root_of_the_length():
    """Padding that is attended to or summed would show."""
    model, texts = small(UniversalTransformer, WIDTH, size=8, heads=2, layers=1), TEXTS([4, 1, 6], seed=2)

    def alone(vectors: Tensor) -> Tensor:
        states = vectors @ model.projection.weight.T + model.projection.bias
        places = torch.arange(len(vectors))[:, None] / 10_000 ** (torch.arange(0, 8, 2) / 8)
        waves = torch.stack([places.sin(), places.cos()], dim=2).flatten(1)
        read = model.body(states[None] * math.sqrt(8) + waves, torch.ones(1, len(vectors), dtype=torch.bool))
        return read[0].sum(0) / math.sqrt(len(vectors))

    assert_each_alone(model(texts), alone, texts, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("id", ["use_dan_tasks", "use_transformer_tasks"])
def test_it_learns_relations_and_topics_beside_its_task(id):
    """And each task's batch reaches the one encoder."""
    cls = registry.load(registry.entry("architectures", id))
    assert cls.trained_by is MultiTask
    model = small(cls, WIDTH)
    assert model.companions == ("snli", "ag_news")
    texts, found = TEXTS([3, 2], seed=3), []
    for member in range(3):
        model.member = member
        found.append(model(texts))
    assert torch.equal(found[0], found[1]) and torch.equal(found[0], found[2])


@pytest.mark.parametrize("id", ["use_dan_tasks", "use_transformer_tasks"])
def test_a_pair_is_read_as_its_texts_are_alone(id):
    """In training each word had a mark where the other text has it, and a text that was encoded
    later had none."""
    assert registry.load(registry.entry("architectures", id)).reads_marks is False


def test_a_transferred_vector_passes_one_layer():
    model = small(UniversalVectors, 3, hidden=5)
    vectors = torch.randn(2, 3, requires_grad=True)
    expected = torch.stack([(model.dense.weight @ v + model.dense.bias).clamp(min=0) for v in vectors])
    assert_same(model(TextVectorBatch(vectors)), expected)


def test_a_parent_that_encodes_no_texts_is_told():
    other = SimpleNamespace(model=None, description=SimpleNamespace(part=SimpleNamespace(architecture="lsa")))
    with pytest.raises(ModelError, match="lsa encodes no texts, as use_dan_tasks does"):
        UniversalVectors.inherited_view(TextVectors(), "inputs", other)


@pytest.mark.parametrize("form", ["use_dan", "use_transformer"])
def test_a_task_reads_the_vectors_of_a_kept_encoder_and_leaves_it_as_it_was(form, tmp_path: Path):
    """A run trains the encoder on its tasks first; a kept child asks it about new texts."""
    sizes = {"use_dan": ("hidden=6", "layers=1", "buckets=9"), "use_transformer": ("size=6", "heads=2", "layers=1")}
    small_ones = [f"{form}_tasks.{size}" for size in sizes[form]]
    planned = session(tmp_path, form, max_train=60, keep=True, overrides=[*small_ones, f"{form}.hidden=4"])
    parent, child = sorted(planned.pending.run, key=lambda cell: bool(cell.parents))
    assert (parent.architecture, parent.task) == (f"{form}_tasks", "neighbours")
    assert list(parent.companions) == ["snli", "ag_news"]
    first = run_cell(parent, planned.settings)
    before = load(storage.place(tmp_path, parent.key)).model.state_dict()
    second = run_cell(child, planned.settings)
    assert (first.status, second.status) == ("ok", "ok"), (first.error, second.error)
    assert [beside["task"] for beside in first.companions] == ["snli", "ag_news"]
    kept = load(storage.place(tmp_path, parent.key))
    assert all(torch.equal(value, before[name]) for name, value in kept.model.state_dict().items())
    texts = ["a fine film", "two dogs run in the snow", "dull"]
    found = load(storage.place(tmp_path, child.key)).view.encode(texts)["vectors"]
    words: WordBatch = kept.view.collate(kept.view.encode(texts), np.arange(3))
    with torch.no_grad():
        vectors = kept.model.encoder(words._replace(vectors=kept.model.table.tuned.weight[words.ids]))
    np.testing.assert_allclose(found, vectors.numpy(), rtol=1e-5, atol=1e-6)
