"""The mechanism of the bag of entities: candidates of the longest names, attention from commonness
and likeness, entities beside words."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from architectures.attention.naboe import Entities, EntityBatch, NeuralAttentiveBagOfEntities
from architectures.blocks.taxonomy import Taxonomy
from tests.support.batches import random_texts
from tests.support.models import small
from tests.support.same import assert_same

WIDTH = 3
NAMES = Taxonomy(
    {
        "york": ("york",),
        "new_york": ("city", "state"),
        "new_york_times": ("paper",),
        "bank": ("institute", "shore", "row", "heap"),
    },
    {},
)


def fitted(*texts: str, **settings: Any) -> Entities:
    view = Entities(knowledge="toy", min_count=1, **settings)
    view.__dict__["taxonomy"] = NAMES
    view.fit(list(texts))
    return view


# --- candidates ---


@pytest.mark.parametrize(
    ("text", "entities"),
    [
        ("in York", ["york"]),
        ("New York is new", ["city", "state"]),
        ("the New York Times", ["paper"]),
        ("new new york york", ["city", "state", "york"]),
        ("nothing", []),
    ],
)
def test_a_name_is_the_longest_run_that_the_dictionary_has(text, entities):
    """Its parts are no names then, and it is passed over as a whole."""
    assert [entity for entity, _ in fitted("x").candidates(text)] == entities


def test_commonness_falls_with_the_rank_and_sums_to_one():
    """Of the commonest ones: by hand, 1 : 1/2 : 1/3."""
    found = dict(fitted("x").candidates("banks"))
    assert found == pytest.approx({"institute": 6 / 11, "shore": 3 / 11, "row": 2 / 11})
    assert dict(fitted("x", senses=1).candidates("bank")) == {"institute": 1.0}


def test_entities_of_which_training_never_speaks_are_left_out():
    view = fitted("a bank", "in york")
    batch = view.collate(view.encode(["the bank in new york", "york"]), np.arange(2))
    names = ["", "", *view.entities.words]
    assert [[names[each] for each in row if each] for row in batch.entities.tolist()] == [
        ["institute", "shore", "row"],
        ["york"],
    ]
    assert (batch.commonness > 0).tolist() == (batch.entities > 0).tolist()
    again = Entities(knowledge="toy")
    again.restore(view.state())
    assert again.entities.words == view.entities.words


# --- the network ---


@pytest.fixture
def model() -> NeuralAttentiveBagOfEntities:
    return small(NeuralAttentiveBagOfEntities, WIDTH, SimpleNamespace(entities=range(7)), dropout=0.0)


def texts() -> EntityBatch:
    words = random_texts([4, 2, 3], seed=1, width=WIDTH)
    return EntityBatch(*words)._replace(
        entities=torch.tensor([[2, 3, 6], [4, 0, 0], [0, 0, 0]]),
        commonness=torch.tensor([[0.5, 0.3, 1.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]),
    )


def written_out(model: NeuralAttentiveBagOfEntities, words: Tensor, entities: list[int], shares: list[float]) -> Tensor:
    mean = sum(words) / len(words)
    scores, vectors = [], [model.entities.weight[entity] for entity in entities]
    for vector, share in zip(vectors, shares, strict=True):
        likeness = (vector @ mean) / (vector.norm() * mean.norm())
        scores.append(model.attention.weight[0, 0] * share + model.attention.weight[0, 1] * likeness)
    if not scores:
        return mean
    weights = torch.stack(scores).exp() / torch.stack(scores).exp().sum()
    return mean + sum(weight * vector for weight, vector in zip(weights, vectors, strict=True))


def test_a_text_is_its_mean_word_and_its_weighed_entities(model):
    """Written out, in values and gradients; a text without names is its words."""
    batch = texts()
    expected = []
    for row, (length, known) in enumerate(zip([4, 2, 3], [3, 1, 0], strict=True)):
        entities, shares = batch.entities[row, :known].tolist(), batch.commonness[row, :known].tolist()
        expected.append(written_out(model, batch.vectors[row, :length], entities, shares))
    assert_same(model(batch), torch.stack(expected), rtol=1e-4, atol=1e-5)


def test_one_candidate_has_all_the_weight_and_likeness_knows_no_length(model):
    batch = texts()
    vectors, words = model.entities(batch.entities), torch.randn(3, WIDTH)
    weights = model.weights(batch, words, vectors)
    assert weights[1].tolist() == [1.0, 0.0, 0.0] and not weights[2].any()
    torch.testing.assert_close(model.weights(batch, words, 7 * vectors), weights)
    assert weights[0].unique().numel() == 3


def test_dropout_acts_on_the_sum():
    """All of it left out: words and entities alike."""
    made = small(NeuralAttentiveBagOfEntities, WIDTH, SimpleNamespace(entities=range(7)), dropout=1.0).train()
    assert not made(texts()).any()
