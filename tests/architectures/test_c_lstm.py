"""The mechanism of C-LSTM: the maps of each window are a step of the LSTM, in order and
unpooled."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import Tensor

from architectures.hybrid.c_lstm import CLSTM
from tests.support.batches import assert_each_alone, random_texts
from tests.support.models import small
from tests.support.oracles import convolution, lstm

WIDTH = 4

texts = partial(random_texts, seed=1, width=WIDTH)


model_of = partial(small, CLSTM, WIDTH, maps=3, hidden=5)


def phrases_of(model: CLSTM, vectors: Tensor) -> Tensor:
    """ReLU maps of each window of one text, the windows of every width that begin where the widest
    fits: (steps, maps * widths)."""
    widest = max(layer.kernel_size[0] for layer in model.convolutions)
    steps = max(1, len(vectors) - widest + 1)
    maps = [convolution(layer, vectors, right=max(0, widest - len(vectors)))[:steps] for layer in model.convolutions]
    return torch.stack([torch.cat(step).clamp(min=0) for step in zip(*maps, strict=True)])


def written_out(model: CLSTM, vectors: Tensor) -> Tensor:
    """The vector of one text."""
    (layer,) = model.recurrence.forwards
    return lstm(layer, phrases_of(model, vectors))[-1]


@pytest.mark.parametrize("windows", [(3,), (2, 4)])
def test_a_text_is_the_last_state_of_an_lstm_over_its_windows(windows):
    """Texts shorter than a window, and windows that reach into padding, in one batch with longer
    ones."""
    model, batch = model_of(windows=windows), texts((8, 5, 3, 2, 1))
    assert_each_alone(model(batch), partial(written_out, model), batch)


def test_order_of_the_windows_counts():
    """Pooling over time, or a sum of steps, would not see that two far-apart phrases changed
    places."""
    model = model_of(windows=(1,))
    batch = texts([6])
    swapped = batch._replace(vectors=batch.vectors[:, [4, 1, 2, 3, 0, 5]])
    assert torch.equal(model.phrases(swapped)[0].amax(1), model.phrases(batch)[0].amax(1))
    assert not torch.allclose(model(swapped), model(batch), atol=1e-3)


def test_every_window_reaches_the_text_vector_not_the_strongest_alone():
    model, batch = model_of(), texts([7])
    with torch.no_grad():  # no map is cut off by its ReLU
        model.convolutions[0].bias.fill_(9.0)
    model(batch).sum().backward()
    assert batch.vectors.grad[0].abs().sum(1).min() > 0


def test_word_vectors_and_the_last_state_are_dropped_in_training():
    """Half of the numbers of each; the maps between them are whole."""
    model, batch = CLSTM(WIDTH, maps=4, hidden=400).train(), texts([60])
    torch.manual_seed(0)
    assert 0.4 < (model(batch) == 0).float().mean() < 0.6
    seen: list[Tensor] = []
    model.convolutions[0].register_forward_hook(lambda module, inputs, output: seen.append(inputs[0]))
    model.recurrence.register_forward_hook(lambda module, inputs, output: seen.append(inputs[0]))
    with torch.no_grad():
        model.convolutions[0].bias.fill_(99.0)
    model(batch)
    words, maps = seen
    assert 0.4 < (words == 0).float().mean() < 0.6 and maps.all()
