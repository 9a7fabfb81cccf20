"""The mechanism of BCN with CoVe: states of a translator that stays as it was learnt, a text that
attends to itself, four poolings, maxout layers; word by word, in values and gradients."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from architectures.hybrid.cove_bcn import BiattentiveClassification, CoVeWords, Maxout
from architectures.seq2seq.attn_seq2seq_cove import CoVeTranslator
from harness import registry
from harness.contract.trained import TrainedCase
from harness.errors import ModelError
from harness.running import grid
from harness.views.words import UNKNOWN, Words
from harness.views.words_and_characters import WordsAndCharacters
from tests.support.batches import assert_each_alone, random_texts
from tests.support.models import small
from tests.support.oracles import both_ways, recurrent, softmax_mean

WIDTH, CLASSES, DIMS, HIDDEN = 5, 3, 4, 3
SIZES: dict[str, Any] = {"hidden": HIDDEN, "pieces": 2}
DROPOUTS = (("words", 0), ("words", 3), ("end", 0), ("end", 2), ("end", 4))

model_of = partial(small, BiattentiveClassification, WIDTH, CLASSES, **SIZES)


# --- the classifier ---


def maxout(layer: Maxout, vector: Tensor) -> Tensor:
    """The largest of each group of linear functions."""
    values = (layer.linear.weight @ vector + layer.linear.bias).split(layer.pieces)
    return torch.stack([each.max() for each in values])


def written_out(model: BiattentiveClassification, vectors: Tensor) -> Tensor:
    """Scores (classes,) of one text."""
    first = model.words[1]
    x = recurrent(model.encoding, [(first.weight @ each + first.bias).clamp(min=0) for each in vectors])
    attended = [softmax_mean([state @ other for other in x], x) for state in x]
    read = [torch.cat([state, state - c, state * c]) for state, c in zip(x, attended, strict=True)]
    states = recurrent(model.integration, read)
    weighted = softmax_mean([model.attention.weight[0] @ state + model.attention.bias[0] for state in states], states)
    pooled = torch.cat([states.max(0).values, states.mean(0), states.min(0).values, weighted])
    for layer in (model.end[1], model.end[3], model.end[5]):
        pooled = maxout(layer, pooled)
    return pooled


def test_a_batch_of_texts_is_each_text_written_out():
    """Padding that is attended to or pooled, a minimum that is 0 at padding, a pooling or an
    integration in another place would give other values or gradients."""
    model, texts = model_of(), random_texts((4, 1, 6), 1, WIDTH)
    result = model(texts)
    assert result.shape == (3, CLASSES)
    assert_each_alone(result, partial(written_out, model), texts, rtol=1e-4, atol=1e-5)


def test_the_layers_at_the_end_halve_what_they_read():
    model = BiattentiveClassification(WIDTH, 2)
    shapes = [(layer.linear.in_features, layer.linear.out_features) for layer in (model.end[i] for i in (1, 3, 5))]
    assert shapes == [(2400, 4800), (1200, 2400), (600, 8)]
    assert [getattr(model, part)[place].p for part, place in DROPOUTS] == [0.25, 0.25, 0.1, 0.2, 0.3]
    assert [len(part.forwards) for part in (model.encoding, model.integration)] == [1, 1]


def test_the_largest_of_its_pieces_is_given():
    layer = Maxout(2, 2, 3)
    with torch.no_grad():
        layer.linear.weight.copy_(torch.tensor([[1, 0], [2, 0], [3, 0], [0, 1], [0, -1], [0, 0]]))
        layer.linear.bias.zero_()
    assert layer(torch.tensor([[1.0, 2.0], [-1.0, -4.0]])).tolist() == [[3.0, 2.0], [-1.0, 4.0]]


@pytest.mark.parametrize(("part", "place"), DROPOUTS)
def test_dropout_acts_around_the_first_layer_and_on_what_the_last_ones_read(part, place):
    """All numbers left out of one place and none elsewhere: scores no more depend on the text."""
    model, texts = model_of(), random_texts((4, 4), 1, WIDTH)
    for each, number in DROPOUTS:
        getattr(model, each)[number].p = float((each, number) == (part, place))
    found = model.train()(texts)
    torch.testing.assert_close(found[0], found[1])
    assert not torch.allclose(*model.eval()(texts))


def test_characters_and_cove_stand_behind_the_vectors_of_words():
    """In this order; without them the row is another one."""
    entry = registry.entry("architectures", "cove_bcn")
    assert entry.inputs == ("char_cnn_words", "cove_words")
    case = TrainedCase(entry, registry.entry("tasks", "sst2"), grid.hyperparameters(entry) | entry.tiny)
    model = case.model()
    words = case.corpus.train.collate(case.eight()).inputs
    own = model.table(words["text"]).vectors
    read = model.read(words)["text"].vectors
    sizes = [model.sources[name].size for name in entry.inputs]
    assert list(model.sources) == list(entry.inputs) and read.shape[-1] == own.shape[-1] + sum(sizes)
    mask = words["text"].mask
    torch.testing.assert_close(read[..., -sizes[1] :][mask], model.sources["cove_words"](words["text"])[mask])


# --- the source ---


TEXTS = ["a man rides a horse", "two dogs run"]


class Parent:
    """A kept translator of small size."""

    def __init__(self, encoder: nn.Module, dims: int = DIMS):
        self.view = Words(min_count=1)
        self.view.fit(TEXTS)
        self.model = nn.Module()
        self.model.encoder, self.model.table = encoder, nn.Module()
        self.model.table.tuned = nn.Embedding(self.view.width, dims)
        self.description = SimpleNamespace(part=SimpleNamespace(architecture="parent"))


def translator(layers: int = 2) -> Parent:
    return Parent(small(CoVeTranslator, DIMS, 9, hidden=2 * HIDDEN, layers=layers, symbol_size=2))


def source_of(*texts: str, layers: int = 2) -> tuple[CoVeWords, Any]:
    """A source for a task that knows other words, and the batch of some texts."""
    view = WordsAndCharacters(min_count=1)
    view.fit(["the zebra runs"])
    made = small(CoVeWords, view, HIDDEN, layers)
    return made, view.collate(view.encode(list(texts)), np.arange(len(texts)))


def test_a_word_has_the_state_of_the_translators_encoder():
    """By the translator's own vectors and two layers in both directions, written out; its unknown
    word stands for what it does not know, though the task may."""
    parent = translator()
    source, words = source_of("a horse", "two zebra dogs run")
    source.inherit("inputs", parent, ())
    found = source(words)
    for row, text in enumerate(("a horse", "two zebra dogs run")):
        ids = parent.view.encode([text])["ids"].values
        assert (ids == UNKNOWN).tolist() == [word == "zebra" for word in text.split()]
        vectors = parent.model.table.tuned.weight[torch.from_numpy(ids).long()]
        expected, *_ = both_ways(parent.model.encoder.encoder, vectors)
        torch.testing.assert_close(found[row, : len(ids)], expected.detach())


def test_the_translator_is_not_trained_and_is_the_same_for_every_padding():
    source, words = source_of("a horse", "two dogs run")
    assert all(parameter.requires_grad for parameter in source.parameters()), "without a parent it is trained"
    source.inherit("inputs", translator(), ())
    assert not any(parameter.requires_grad for parameter in source.parameters())
    alone, one = source_of("a horse")
    alone.inherit("inputs", translator(), ())
    alone.load_state_dict(source.state_dict())
    torch.testing.assert_close(alone(one)[0, :2], source(words)[0, :2])


def test_a_parent_of_another_size_or_sort_is_refused():
    with pytest.raises(ModelError, match=r"encoder\.encoder: .*_l1.* no such weights"):
        source_of("a")[0].inherit("inputs", translator(layers=1), ())
    with pytest.raises(ModelError, match="parent encodes no words, as attn_seq2seq_cove does"):
        source_of("a")[0].inherit("inputs", Parent(nn.Linear(1, 1)), ())


def test_the_parent_is_a_translator_of_the_sizes_that_are_read():
    entry = registry.entry("inputs", "cove_words")
    assert entry.parents == {"inputs": "attn_seq2seq_cove@multi30k"}
    parent = registry.entry("architectures", "attn_seq2seq_cove")
    view = WordsAndCharacters(min_count=1)
    view.fit(["a"])
    made = registry.load(parent)(parent.recipe.vector_dims, 9).encoder
    assert CoVeWords(view).network.encoder.state_dict().keys() == made.state_dict().keys()
    assert all(
        a.shape == b.shape for a, b in zip(CoVeWords(view).network.encoder.parameters(), made.parameters(), strict=True)
    )
