"""The mechanism of the character conv-recurrent network: convolutions that halve the text, then
both ends of a recurrence."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch
from torch import Tensor

from architectures.hybrid.char_crnn import CharacterCRNN
from harness.views.characters import ALPHABET, Characters
from tests.support.models import small
from tests.support.oracles import convolution, lstm
from tests.support.same import assert_same

TEXTS = ["a film, of 1,000 words", "not so good", "no", "x", "odd"]

model_of = partial(small, CharacterCRNN, len(ALPHABET) + 1, dims=3, maps=4, hidden=5)


def read(*texts: str):
    view = CharacterCRNN.reads("text", {})
    return view.collate(view.encode(list(texts)), np.arange(len(texts)))


def written_out(model: CharacterCRNN, text: str) -> Tensor:
    """The vector of one text, layer by layer."""
    ids = [(ALPHABET + " ").find(c) + 1 for c in text]
    states = [model.characters.weight[id] for id in ids]
    for layer in model.convolutions:
        side = layer.kernel_size[0] // 2
        maps = [m.clamp(min=0) for m in convolution(layer, states, left=side, right=side)]
        states = [torch.stack(maps[k : k + 2]).amax(0) for k in range(0, len(maps), 2)]
    (left,), (right,) = model.recurrence.forwards, model.recurrence.backwards
    line = torch.stack(states)
    return torch.cat([lstm(left, line)[-1], lstm(right, line.flip(0))[-1]])


@pytest.mark.parametrize("windows", [(5, 3), (5, 5, 3)])
def test_a_text_is_halved_by_each_convolution_and_read_from_both_ends(windows):
    """Padding in a pooling, a mean for the maximum, or the other end of a direction would show."""
    model = model_of(windows=windows)
    for vector, text in zip(model(read(*TEXTS)), TEXTS, strict=True):
        assert_same(vector, written_out(model, text))


def test_padding_beyond_the_text_is_invisible_after_pooling():
    """The last pooled position of a text of odd length has one character and one of padding."""
    model = model_of()
    for text in ("odd", "seven c", "x"):
        assert_same(model(read(text, "a" * 40))[:1], model(read(text)))


def test_characters_beyond_the_limit_do_not_count():
    model = model_of(longest=10)
    assert_same(model(read("a long text")), model(read("a long tex!")))
    assert CharacterCRNN.view == Characters(alphabet=ALPHABET + " ", length=None, reverse=False)


def test_the_recurrence_reads_a_quarter_of_the_characters():
    model, lengths = CharacterCRNN(len(ALPHABET) + 1), []
    assert [layer.kernel_size[0] for layer in model.convolutions] == [5, 3]
    model.recurrence.register_forward_hook(lambda module, inputs, output: lengths.append(inputs[0].shape))
    model(read("a" * 40))
    assert lengths == [(1, 10, 128)]


def test_a_text_is_as_many_units_as_are_asked_for_from_each_end():
    """The head reads what the encoder says that it gives."""
    model = model_of(maps=4, hidden=7)
    assert model.size == model(read("odd")).shape[1] == 14


def test_half_of_what_the_recurrence_reads_and_of_the_vector_is_dropped_in_training():
    model, read_by = small(CharacterCRNN, len(ALPHABET) + 1, maps=40, hidden=100).train(), []
    with torch.no_grad():
        model.convolutions[-1].bias.fill_(99.0)
    model.recurrence.register_forward_hook(lambda module, inputs, output: read_by.append(inputs[0]))
    model(read("a" * 80))
    assert 0.4 < (read_by[0] == 0).float().mean() < 0.6
    model.recurrence.register_forward_hook(lambda module, inputs, output: torch.ones_like(output))
    vector = model(read("a" * 80))
    assert 0.4 < (vector == 0).float().mean() < 0.6
