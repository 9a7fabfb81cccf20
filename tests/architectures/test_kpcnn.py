"""The mechanism of the knowledge-powered CNN: what words are stands behind them in one sequence,
and characters are read beside it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from architectures.blocks.taxonomy import Taxonomy
from architectures.convolutional.kim_cnn import KimCNN
from architectures.convolutional.kpcnn import ConceptBatch, Concepts, KnowledgePoweredCNN
from harness.errors import MissingWeights
from tests.support.batches import random_texts
from tests.support.models import small
from tests.support.oracles import convolution
from tests.support.same import assert_same

WIDTH = 3
KNOWN = Taxonomy(
    {"dog": ("dog", "rogue"), "cat": ("cat",), "wolf": ("wolf",), "rex": ("rex", "king", "third")},
    {
        "dog": ("canine",),
        "wolf": ("canine",),
        "canine": ("animal",),
        "rogue": ("person",),
        "cat": ("animal",),
        "animal": ("thing",),
        "thing": ("entity",),
        "rex": ("dog",),
        "third": ("never",),
    },
)


def fitted(*texts: str, **settings: Any) -> Concepts:
    view = Concepts(knowledge="toy", min_count=1, **settings)
    view.__dict__["taxonomy"] = KNOWN
    view.fit(list(texts))
    return view


# --- concepts ---


def test_the_weight_of_a_concept_by_hand():
    """Half for each step, the second sense half, a third one not looked at, three steps at most,
    and a word twice twice."""
    view = fitted("x")
    assert view.weighed("dog") == {"canine": 0.5, "animal": 0.25, "thing": 0.125, "person": 0.25}
    assert view.weighed("the cat and cats") == {"animal": 1.0, "thing": 0.5, "entity": 0.25}
    assert view.weighed("rex") == {"dog": 0.5, "canine": 0.25, "animal": 0.125}


def test_words_of_one_sort_that_training_never_shows_have_the_same_concepts():
    """This is what the taxonomy is for."""
    view = fitted("a dog", "a dog")
    found = view.encode(["wolf", "wolves"])
    assert "wolf" not in view.vocabulary.words
    assert [view.concepts.words[id - 2] for id in found["concepts"][0]] == ["canine", "animal", "thing"]
    np.testing.assert_allclose(found["weights"][0], np.array([4, 2, 1]) / 7, rtol=1e-6)


def test_the_concepts_that_say_most_are_kept():
    """Those of most weight against the texts that have them; shares of what is kept."""
    view = fitted("a dog", "a dog", "a cat", "cat", "cat", most=2)
    assert dict(zip(view.concepts.words, view.concepts.counts, strict=True)) == {
        "animal": 5,
        "thing": 5,
        "entity": 3,
        "canine": 2,
        "person": 2,
    }
    (read,) = [view.kept("dog")]
    assert [(view.concepts.words[id - 2], share) for id, share in read] == [
        ("canine", pytest.approx(2 / 3)),
        ("person", pytest.approx(1 / 3)),
    ]
    assert view.kept("nothing known") == []


def test_a_batch_holds_what_was_read():
    view = fitted("a dog", "a dog")
    columns = view.encode(["wolf", "x"])
    found = view.collate(columns, np.array([1, 0]))
    assert found.concepts.tolist() == [[0, 0, 0], columns["concepts"][0].tolist()]
    assert found.weights.tolist() == [[0, 0, 0], pytest.approx([4 / 7, 2 / 7, 1 / 7])]
    assert found.characters.tolist() == [[*columns["characters"][1], 0, 0], columns["characters"][0].tolist()]


def test_a_kept_view_reads_as_before():
    view = fitted("a dog", "a dog")
    again = Concepts(knowledge="toy", min_count=1)
    again.__dict__["taxonomy"] = KNOWN
    again.restore(view.state())
    for name, column in view.encode(["a wolf", "x"]).items():
        assert column.values.tolist() == again.encode(["a wolf", "x"])[name].values.tolist()


def test_characters_are_those_of_the_text_in_lower_case():
    view = fitted("aB c", max_characters=3)
    assert [view.spelt(text) for text in ("aB c", "x", ["A", "b"])] == ["ab ", "x ", "a b"]


def test_wordnet_that_is_missing_is_told(monkeypatch):
    """And no cell fails: it is skipped with the reason."""
    monkeypatch.setattr("architectures.blocks.taxonomy.PLACES", ())
    monkeypatch.setenv("WNSEARCHDIR", "nowhere")
    with pytest.raises(MissingWeights, match="wordnet-base"):
        Concepts().fit(["a dog"])
    assert "wordnet" not in Concepts().settings(), "a cell can be planned"
    with pytest.raises(ValueError, match="knowledge='probase' is neither 'wordnet' nor 'toy'"):
        Concepts(knowledge="probase")


# --- the network ---


def kim(model: KimCNN, vectors: Tensor) -> Tensor:
    features = []
    for layer, bias in zip(model.convolutions, model.bias, strict=True):
        windows = convolution(layer, vectors, right=max(0, layer.kernel_size[0] - len(vectors)))
        features.append(torch.stack([(window + bias).clamp(min=0) for window in windows]).amax(0))
    return torch.cat(features)


def test_a_text_is_its_words_its_weighed_concepts_and_its_characters():
    """Written out, in values and gradients: concepts that stand behind padding, padding that is
    convolved, weights left out or characters of another text would give other ones."""
    view = SimpleNamespace(concepts=range(6), characters=range(9))
    sizes = {"maps": 2, "windows": (2, 3), "character_size": 3, "character_maps": 2, "hidden": 4, "dropout": 0.0}
    model = small(KnowledgePoweredCNN, WIDTH, view, **sizes)
    words = random_texts([5, 3, 4], seed=1, width=WIDTH)
    concepts = torch.tensor([[2, 3, 5], [4, 0, 0], [0, 0, 0]])
    weights = torch.tensor([[0.5, 0.3, 0.2], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    characters = torch.tensor([[2, 3, 4, 5], [7, 8, 2, 0], [3, 3, 4, 0]])
    batch = ConceptBatch(*words)._replace(concepts=concepts, weights=weights, characters=characters)
    expected = []
    for row, (length, known, spelt) in enumerate(zip([5, 3, 4], [3, 1, 0], [4, 3, 3], strict=True)):
        told = [weights[row, k] * model.concepts.weight[concepts[row, k]] for k in range(known)]
        upper = kim(model.upper, torch.stack([*words.vectors[row, :length], *told]))
        lower = kim(model.lower, model.characters.weight[characters[row, :spelt]])
        expected.append((model.dense.weight @ torch.cat([upper, lower]) + model.dense.bias).clamp(min=0))
    assert_same(model(batch), torch.stack(expected), rtol=1e-4, atol=1e-5)
