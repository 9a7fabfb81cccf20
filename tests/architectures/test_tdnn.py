"""The mechanism of the time-delay network: weights shared over time, the frames that a unit sees,
and the lengths that its windows leave."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from architectures.speech.tdnn import TimeDelayNetwork
from harness import registry
from harness.views.frames import FrameBatch
from tests.support.batches import random_texts
from tests.support.oracles import convolution
from tests.support.pairs import shipped
from tests.support.same import assert_same

WIDTH, LABELS = 3, 4


def frames(lengths: list[int]) -> FrameBatch:
    texts = random_texts(lengths, 1, WIDTH)
    return FrameBatch(texts.vectors, texts.mask, texts.lengths)


def model_of(id: str, **options) -> nn.Module:
    return shipped(id, WIDTH, labels=LABELS, **options)


def test_a_score_sees_three_frames_and_then_five_hidden_vectors():
    """Padding in a window, another non-linearity or a layer of other delays would show here; a
    recording shorter than a window has one, with zeros behind it."""
    model = model_of("tdnn", hidden=5)
    batch = frames([12, 7, 9, 4])
    found, lengths = model(batch)
    assert lengths.tolist() == [6, 1, 3, 1]

    def written_out(vectors: Tensor) -> Tensor:
        vectors = torch.cat([vectors, torch.zeros(max(0, 7 - len(vectors)), WIDTH)])
        hidden = [1 / (1 + (-sums).exp()) for sums in convolution(model.hidden, vectors)]
        assert len(hidden) == len(vectors) - 2
        return torch.stack(convolution(model.output, hidden))

    for row, length in enumerate(lengths.tolist()):
        expected = written_out(batch.vectors[row][batch.mask[row]])
        assert_same(found[row, :length], expected[:length])
        assert len(expected) == length


def test_fifteen_frames_have_thirteen_hidden_vectors_and_nine_scores():
    """The paper's figure; eight hidden units are its number for three sounds."""
    model = TimeDelayNetwork(16, labels=3)
    hidden = model.hidden(torch.zeros(1, 16, 15))
    assert hidden.shape == (1, 8, 13) and model.output(hidden).shape == (1, 3, 9)
    assert sum(parameter.numel() for parameter in model.parameters()) == 16 * 8 * 3 + 8 + 8 * 3 * 5 + 3


def test_frames_are_read_every_ten_milliseconds():
    """Sixteen filters alone; joined frames would double what a delay stands for."""
    view = registry.load(registry.entry("architectures", "tdnn")).view
    assert (view.width, view.step_ms, view.stack) == (16, 10, 1)
