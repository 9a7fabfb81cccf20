"""The mechanism of the one-hot LSTMs: two gate blocks and no word vectors, from both ends, the
maximum over the text, parts of a text in training."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from architectures.recurrent.region_lstm import RegionLSTM
from harness.views.regions import RegionBatch, Regions
from tests.support.models import small
from tests.support.pairs import dense, dropped, inputs_of
from tests.support.same import assert_same

TRAIN = "the cat saw a dog and the dog saw a bird"
TEXTS = ["a bird saw the zebra and the cat", "dog", "the dog saw a dog", "zebra yak"]
UNITS, CLASSES = 4, 3


def view() -> Regions:
    made = RegionLSTM.reads("text", {})
    made.fit([TRAIN])
    return made


def model_of(**options) -> RegionLSTM:
    sizes = {"units": UNITS, "chop": 3, "dropout": 0.0} | options
    return small(RegionLSTM, view().width, CLASSES, stretch=80.0, **sizes)


def read(texts: list[str]) -> RegionBatch:
    own = view()
    return own.collate(own.encode(texts), np.arange(len(texts)))


def largest(model: RegionLSTM, text: str, direction: int, chop: int) -> Tensor:
    """The largest states (UNITS,) of one direction over a text, word by word."""
    known = view().vocabulary.words
    block = slice(2 * UNITS * direction, 2 * UNITS * (direction + 1))
    weight, bias = model.words.columns.weight[1:, block].T, model.words.bias[block]
    states = []
    words = text.split()[:: -1 if direction else 1]
    for place, word in enumerate(words):
        if place % chop == 0:
            h = c = torch.zeros(UNITS)
        one_hot = torch.tensor([float(word == other) for other in known])
        sums = weight @ one_hot + bias + model.recurrences[direction].weight @ h
        c = torch.sigmoid(sums[:UNITS]) * c + torch.tanh(sums[UNITS:])
        h = torch.tanh(c)
        states.append(h)
    found = torch.stack(states)
    # As in the authors' code, a mean over the words of a batch, not over its texts.
    found.register_hook(lambda gradient: gradient * len(TEXTS) / sum(len(each.split()) for each in TEXTS))
    return found.amax(0)


def written_out(model: RegionLSTM, text: str, chop: int = 1000) -> Tensor:
    """The scores of one text."""
    return dense(model.output, torch.cat([largest(model, text, direction, chop) for direction in (0, 1)]))


@pytest.mark.parametrize("training", [False, True])
def test_a_batch_is_each_text_written_out_word_by_word(training):
    """A gate too many, one direction twice, padding that is read before a text's end, or another
    pooling would show here. In training each direction begins anew after three words of its own,
    and only then."""
    model = model_of().train(training)
    scores = model(read(TEXTS))
    expected = torch.stack([written_out(model, text, chop=3 if training else 1000) for text in TEXTS])
    assert_same(scores, expected, rtol=1e-4, atol=1e-4)
    assert scores.std() > 0.1


def test_parts_as_long_as_the_text_are_the_whole_text():
    model = model_of(chop=8)
    whole = model(read(TEXTS))
    torch.testing.assert_close(model.train()(read(TEXTS)), whole)
    model.chop = 2
    assert not torch.allclose(model(read(TEXTS)), whole)


def test_there_are_two_gate_blocks_in_each_direction_and_no_word_vectors():
    """An LSTM has four; a recipe with vectors would add a table."""
    model, words = model_of(), len(view().vocabulary.words)
    assert not view().embeds
    assert {name: tuple(parameter.shape) for name, parameter in model.named_parameters()} == {
        "words.columns.weight": (1 + words, 2 * 2 * UNITS),
        "words.bias": (2 * 2 * UNITS,),
        "recurrences.0.weight": (2 * UNITS, UNITS),
        "recurrences.1.weight": (2 * UNITS, UNITS),
        "output.weight": (CLASSES, 2 * UNITS),
        "output.bias": (CLASSES,),
    }


def test_the_gradient_of_the_lstms_is_a_mean_of_words_and_that_of_the_last_layer_of_texts():
    """As in the authors' code: at the rate of the paper another mean takes steps a hundred times
    as long."""
    model = model_of().train()
    labels = torch.tensor([0, 2, 1, 1])
    model.objective(model(read(TEXTS)), labels).backward()
    wanted = torch.eye(CLASSES)[labels]
    scores = torch.stack([written_out(model, text, chop=3) for text in TEXTS])
    loss = 0.5 * ((scores - wanted) ** 2).sum() / len(TEXTS)
    expected = dict(
        zip(dict(model.named_parameters()), torch.autograd.grad(loss, list(model.parameters())), strict=True)
    )
    for name, parameter in model.named_parameters():
        found = parameter.grad.to_dense() if parameter.grad.is_sparse else parameter.grad
        torch.testing.assert_close(found, expected[name], rtol=1e-3, atol=1e-6, msg=lambda m, n=name: f"{n}: {m}")


def test_half_of_what_is_pooled_is_dropped_in_training():
    model = model_of(units=300, dropout=0.5).train()
    given, kept = inputs_of(model.dropout, model.output)
    model(read(TEXTS))
    assert 0.45 < dropped(given, kept) < 0.55


def test_weights_start_small_and_biases_at_zero():
    model = RegionLSTM(300, 2, units=60)
    for layer in (model.words.columns, *model.recurrences, model.output):
        assert 0.008 < layer.weight.std() < 0.012 and layer.weight.abs().max() > 0.02
    assert not model.words.bias.any() and not model.output.bias.any()
    assert not any(isinstance(module, nn.Embedding) for module in model.modules())


def test_a_word_that_is_not_known_keeps_its_place():
    """The forget gate acts there too: without it, the words around would stand side by side."""
    assert read(["a zebra dog"]).lengths.tolist() == [3]
    model = model_of()
    assert not torch.allclose(model(read(["a zebra dog"])), model(read(["a dog"])), rtol=1e-2)
