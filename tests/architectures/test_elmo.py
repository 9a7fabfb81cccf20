"""ELMo: words are spelt, two language models that share nothing else read them from both sides, and
a task reads a mix of all layers, which alone is trained."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from architectures.pretrained.elmo import BothWays, ELMo, ELMoWords, SpeltVectors
from harness.errors import ModelError
from harness.views.spelt_words import SpeltWords
from harness.views.words_and_characters import WordsAndCharacters
from tests.support.known_dropout import Uneven, as_is, uneven
from tests.support.models import small
from tests.support.plain_text import batch, noise_of
from tests.support.same import assert_same

TEXTS = ["the cat sat on the mat", "a dog ran", "the zebra"]
NETWORK = {"characters": 3, "filters": [2, 3, 2], "highway": 1, "cells": 5, "projection": 4}
SIZES = NETWORK | {"dropout": 0.0, "lm_dropout": 0.0}


@pytest.fixture(scope="module")
def view() -> SpeltWords:
    made = SpeltWords(size=60, max_length=24, word_length=6)
    made.fit(TEXTS[:2])
    return made


@pytest.fixture
def model(view: SpeltWords) -> ELMo:
    return small(ELMo, view.width, view, stretch=1.5, **SIZES)


def kept(encoder: nn.Module) -> Any:
    """A kept model of an encoder, as a child asks for it."""
    model = nn.Module()
    model.encoder = encoder
    return SimpleNamespace(model=model, view=encoder.view)


# --- written out ---


def word_vector(words: SpeltVectors, characters: Tensor) -> Tensor:
    """The vector of one word, whose characters have no padding behind them: each filter's largest
    answer to a window of the word, which zeros lengthen where it is shorter."""
    found = []
    for width, convolution in enumerate(words.convolutions, start=1):
        vectors = [words.vectors.weight[number] for number in characters.tolist()]
        vectors += [torch.zeros(convolution.in_channels)] * (width - len(vectors))
        windows = [vectors[begin : begin + width] for begin in range(len(vectors) - width + 1)]
        answers = [
            convolution.bias + sum(convolution.weight[:, :, k] @ vector for k, vector in enumerate(window))
            for window in windows
        ]
        found.append(torch.stack(answers).amax(0).clamp(min=0))
    joined = torch.cat(found)
    for transform, gate in zip(words.highway.transforms, words.highway.gates, strict=True):
        share = torch.sigmoid(gate.weight @ joined + gate.bias)
        joined = share * (transform.weight @ joined + transform.bias).clamp(min=0) + (1 - share) * joined
    return words.projection.weight @ joined + words.projection.bias


def test_words_shorter_than_a_filter_are_read_with_zeros_behind_them():
    """They stand beside longer ones here, whose windows they have not."""
    words = small(SpeltVectors, 3, [2, 2, 2, 2, 2], 1, 4)
    short = torch.randint(1, 260, (20, 3), generator=torch.Generator().manual_seed(0))
    padded = torch.cat([torch.nn.functional.pad(short, (0, 4)), torch.full((1, 7), 5)])
    assert_same(words(padded)[:20], torch.stack([word_vector(words, each) for each in short]))


def projected_lstm(layer: nn.LSTM, vectors: list[Tensor]) -> list[Tensor]:
    """States of an LSTM whose output is projected before it goes on and back."""
    h, c, states = torch.zeros(layer.proj_size), torch.zeros(layer.hidden_size), []
    for x in vectors:
        gates = layer.weight_ih_l0 @ x + layer.bias_ih_l0 + layer.weight_hh_l0 @ h + layer.bias_hh_l0
        i, f, g, o = gates.chunk(4)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = layer.weight_hr_l0 @ (torch.sigmoid(o) * torch.tanh(c))
        states.append(h)
    return states


Dropped = Callable[[Tensor], Tensor]


def one_way(layers: nn.ModuleList, words: list[Tensor], dropped: Dropped) -> list[list[Tensor]]:
    first = projected_lstm(layers[0], [dropped(word) for word in words])
    read = [dropped(state) for state in first]
    second = [state + below for state, below in zip(projected_lstm(layers[1], read), read, strict=True)]
    return [words, first, second]


def layers_of(network: Any, spelt: Tensor, dropped: Dropped = as_is) -> list[Tensor]:
    """Layers (n, 2 size) of one text, whose words have the characters (n, C)."""
    words = [word_vector(network.words, row[row > 0]) for row in spelt]
    ahead = one_way(network.forwards, words, dropped)
    behind = [layer[::-1] for layer in one_way(network.backwards, words[::-1], dropped)]
    return [
        torch.stack([torch.cat(both) for both in zip(*pair, strict=True)]) for pair in zip(ahead, behind, strict=True)
    ]


def mixed(mix: nn.Module, layers: list[Tensor]) -> Tensor:
    shares = mix.weights.exp() / mix.weights.exp().sum()
    return mix.scale * sum(share * layer for share, layer in zip(shares, layers, strict=True))


# --- states ---


def test_states_are_a_mix_of_three_layers_written_out(view, model):
    """Characters, highway, projections, the residual of the second layer, both directions: each
    text as if it stood alone."""
    pieces = batch(view, *TEXTS)
    found, vectors = model(pieces), model.vector(pieces)
    for row, length in enumerate(pieces.lengths):
        expected = mixed(model.mix, layers_of(model.network, pieces.characters[row, :length]))
        assert_same(found[row, :length], expected, rtol=1e-4, atol=1e-4)
        assert_same(vectors[row], expected.amax(0), rtol=1e-4, atol=1e-4)


def test_what_the_second_layer_adds_is_what_it_reads(view, model):
    """With dropout: states that are added whole are another network than the authors'."""
    model.network.dropout = Uneven()
    pieces = batch(view, *TEXTS)
    found = model.states(pieces)
    for row, length in enumerate(pieces.lengths):
        expected = layers_of(model.network, pieces.characters[row, :length], uneven)
        for ours, theirs in zip(found, expected, strict=True):
            assert_same(ours[row, :length], theirs, rtol=1e-4, atol=1e-4)


def test_the_forward_half_is_blind_to_what_follows_and_the_backward_half_to_what_was(view, model):
    ours, ahead, behind = batch(view, "the cat sat on"), batch(view, "the cat ran on"), batch(view, "a dog sat on")
    one, other, another = (model.states(pieces) for pieces in (ours, ahead, behind))
    for number, (a, b, c) in enumerate(zip(one, other, another, strict=True)):
        assert_same(a[0, :3, :4], b[0, :3, :4])
        assert_same(a[0, 3:, 4:], c[0, 3:, 4:])
        assert torch.equal(a[0, 2, 4:], b[0, 2, 4:]) == (number == 0), "the other half knows the next word"


def test_words_that_training_never_showed_differ_by_their_spelling(view, model):
    one, other = batch(view, "the zebra"), batch(view, "the gnu")
    assert one.ids.tolist() == other.ids.tolist()
    assert not torch.isclose(model(one)[0, 2], model(other)[0, 2]).any()


# --- learning from plain text ---


def test_each_word_is_foretold_from_both_sides_by_one_softmax(view, model):
    """Written out: the end of a text is foretold forward, its beginning backward."""
    pieces, objective = batch(view, *TEXTS), small(BothWays, model)
    logs, texts = objective(model, pieces, noise_of(pieces))
    expected: dict[bool, list[Tensor]] = {True: [], False: []}
    rows = []
    for row, length in enumerate(pieces.lengths):
        top, ids = layers_of(model.network, pieces.characters[row, :length])[-1], pieces.ids[row]
        for place in range(1, length):
            for forward, state, word in (
                (True, top[place - 1, :4], ids[place]),
                (False, top[place, 4:], ids[place - 1]),
            ):
                scores = objective.output.weight @ state + objective.output.bias
                expected[forward].append(scores[word] - scores.exp().sum().log())
            rows.append(row)
    assert texts.tolist() == [*rows, *rows]
    assert_same(logs, torch.stack([*expected[True], *expected[False]]), rtol=1e-4, atol=1e-4)


def test_the_floor_is_the_share_of_each_word_on_both_sides():
    """By hand: training has "a" three times, "b" once, two ends, and every one of seven pieces once
    more: 4, 2 and 3 of 13. A text begins as often as it ends."""
    view = SpeltWords()
    train, rows = [{"text": "a a b"}, {"text": "a"}], [{"text": "b a"}]
    view.fit([row["text"] for row in train])
    [[found, count]] = BothWays.floor(view, train, rows)
    assert count == 6
    assert found == pytest.approx(2 * sum(math.log(share / 13) for share in (2, 4, 3)), abs=1e-5)


def test_by_heart_nobody_knows_a_text_before_its_first_word_from_either_side():
    """By hand: forward the first word tells the text, of two; backward the end tells nothing, and
    the last word, which both have, nothing either."""
    view = SpeltWords()
    rows = [{"text": "a c"}, {"text": "b c"}]
    view.fit([row["text"] for row in rows])
    assert BothWays.by_heart(view, rows) == [[pytest.approx(2 * math.log(0.5)), 6]] * 2


# --- frozen, and beside the word vectors of any architecture ---


@pytest.mark.parametrize("tuned", [False, True])
def test_a_task_trains_the_mix_alone_unless_the_network_is_tuned(view, model, tuned):
    child = ELMo(view.width, view, tuned=tuned, **SIZES | {"lm_dropout": 0.5})
    child.inherit("weights", kept(model), ())
    pieces = batch(view, *TEXTS)
    trained = {name for name, parameter in child.named_parameters() if parameter.requires_grad}
    assert (trained == {"mix.weights", "mix.scale"}) != tuned
    assert torch.equal(child.train()(pieces), child.eval()(pieces)) != tuned, "no dropout in what stays as it is"
    torch.testing.assert_close(child(pieces), model(pieces))


def source_of(*texts: str, **sizes: Any) -> tuple[ELMoWords, Any]:
    """A source for a task with these texts, and their batch."""
    words = WordsAndCharacters(min_count=1)
    words.fit(["on mats the cat sat zebra"])
    made = small(ELMoWords, words, **NETWORK | {"word_length": 6, "dropout": 0.0} | sizes)
    return made, words.collate(words.encode(list(texts)), np.arange(len(texts)))


def test_a_source_gives_the_parents_layers_whatever_the_alphabet_of_the_task(view, model):
    """The same words without their marks, a long one cut as the parent cuts it."""
    texts = ["the zebra sat", "mat", "sat on saaaaaaaaat"]
    source, words = source_of(*texts)
    source.inherit("inputs", kept(model), ())
    with torch.no_grad():
        source.mix.weights.copy_(model.mix.weights)
        source.mix.scale.copy_(model.mix.scale)
    found, pieces = source(words), batch(view, *texts)
    for row, text in enumerate(texts):
        count = len(text.split())
        expected = mixed(source.mix, layers_of(model.network, pieces.characters[row, : count + 2]))[1:-1]
        torch.testing.assert_close(found[row, :count], expected, rtol=1e-4, atol=1e-4)
    assert [name for name, p in source.named_parameters() if p.requires_grad] == ["mix.weights", "mix.scale"]


def test_a_character_that_the_task_never_showed_is_the_one_beyond_latin(model):
    source, words = source_of("qqq", "日日日")
    source.inherit("inputs", kept(model), ())
    found = source(words)
    torch.testing.assert_close(found[0], found[1])


def test_a_parent_of_another_size_is_refused(model):
    with pytest.raises(ModelError, match="has size"):
        source_of("the", characters=4)[0].inherit("inputs", kept(model), ())
