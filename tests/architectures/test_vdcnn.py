"""The mechanism of VDCNN: its depths, halving with doubled width, batch norm over real characters,
the 8 largest values in order."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.convolutional.vdcnn import VDCNN, TemporalBatchNorm
from harness import registry
from harness.views.characters import CharacterBatch
from tests.support.batches import mask_of, poisoned
from tests.support.models import small
from tests.support.oracles import largest_in_order
from tests.support.same import assert_same

SMALL = {"widths": (3, 4, 5, 6), "hidden": 7, "dims": 2}
DEPTHS = {
    "vdcnn_9": (9, [2, 2, 2, 2]),
    "vdcnn_17": (17, [4, 4, 4, 4]),
    "vdcnn_29": (29, [10, 10, 4, 4]),
    "vdcnn_49": (49, [16, 16, 10, 6]),
}
"""Convolutions of each id: all of them, and those in the blocks of each width (the paper's table 2;
the first convolution stands before the blocks)."""


def read(*texts: str) -> CharacterBatch:
    return VDCNN.view.collate(VDCNN.view.encode(list(texts)), np.arange(len(texts)))


def model_of(**settings) -> VDCNN:
    """A small model that has seen texts, so that its batch norms are far from the identity."""
    model = small(VDCNN, VDCNN.view.width, **SMALL | settings).train()
    for _ in range(20):
        model(read("a text with some more characters than eight times eight, as it happens", "another one: 42!"))
    return model.eval()


def normed(norm: TemporalBatchNorm, states: Tensor) -> Tensor:
    columns = (norm.running_mean, norm.running_var, norm.weight, norm.bias)
    mean, variance, weight, bias = (column[:, None] for column in columns)
    return (states - mean) / (variance + norm.eps).sqrt() * weight + bias


def written_out(model: VDCNN, ids: Tensor) -> Tensor:
    """The vector of one text alone (n characters): figures 1 and 2 of the paper."""
    states = F.conv1d(model.characters.weight[ids].T, model.first.weight, model.first.bias, padding=1)
    for number, group in enumerate(model.groups):
        if number:
            states = F.max_pool1d(states, 3, stride=2, padding=1)
        for block in group:
            inner = states
            for place, (convolution, norm) in enumerate(zip(block.convolutions, block.norms, strict=True)):
                inner = normed(norm, F.conv1d(inner, convolution.weight, padding=1))
                if block.shortcut and place:
                    inner = inner + (
                        normed(block.widen_norm, F.conv1d(states, block.widen.weight)) if block.widen else states
                    )
                inner = torch.relu(inner)
            states = inner
    kept = []
    for values in states:
        largest = largest_in_order(values.tolist(), model.top)
        kept += [values[place] for place in largest] + [torch.zeros(())] * (model.top - len(largest))
    state = torch.stack(kept)
    for layer in (model.dense[0], model.dense[2]):
        state = (layer.weight @ state + layer.bias).clamp(min=0)
    return state


@pytest.mark.parametrize("shortcut", [False, True])
@pytest.mark.parametrize("depth", [9, 17])
def test_each_text_of_a_batch_is_the_text_alone_written_out(depth, shortcut):
    """Other places for batch norm, ReLU, pooling or shortcut, k-max out of order, or padding that
    any layer reads would each show here.

    70 characters leave 9 positions, of which the 8 largest are kept; 12 and 1 leave 2 and 1, with
    zeros behind them.
    """
    model = model_of(depth=depth, shortcut=shortcut)
    texts = read("the film is not so much bad as dull ~ and 2 hours of it are too much!!", "a good film!", "x")
    found = model(texts)
    assert texts.lengths.tolist() == [70, 12, 1]
    for vector, ids, length in zip(found, texts.ids, texts.lengths, strict=True):
        assert_same(vector, written_out(model, ids[:length]), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("id", DEPTHS)
def test_the_depth_is_the_number_of_convolutions_and_each_width_has_its_share(id):
    """Counted on the way a text takes: a block left out or moved to another width, or a convolution
    beside the shortcut counted in, is another network."""
    depth, blocks = DEPTHS[id]
    model = VDCNN(VDCNN.view.width, **SMALL | registry.entry("architectures", id).hyperparameters)
    seen = []
    for module in model.modules():
        if isinstance(module, nn.Conv1d):
            module.register_forward_hook(
                lambda layer, inputs, output: seen.append((layer.out_channels, output.shape[-1]))
            )
    model(read("x" * 40))
    assert len(seen) == depth
    assert list(dict.fromkeys(seen)) == [(3, 40), (4, 20), (5, 10), (6, 5)]
    assert [seen[1:].count(place) for place in dict.fromkeys(seen)] == blocks


def test_convolutions_start_as_the_paper_has_them():
    """He's start values keep the signal alive through 49 layers; PyTorch's own shrink it by 0.4 in
    each."""
    for module in VDCNN(VDCNN.view.width, shortcut=True, hidden=4).modules():
        if isinstance(module, nn.Conv1d):
            fan_in = module.in_channels * module.kernel_size[0]
            assert module.weight.std().item() == pytest.approx((2 / fan_in) ** 0.5, rel=0.05)


def test_a_full_text_is_halved_to_127_positions_and_longer_ones_are_cut():
    model, lengths = model_of(), []
    for group in model.groups:
        group[0].register_forward_hook(lambda block, inputs, output: lengths.append(output.shape[-1]))
    texts = read("ab " * 500)
    found = model(texts)
    assert lengths == [1014, 507, 254, 127]
    assert_same(found, model(read(("ab " * 500)[:1014])))


def test_the_papers_sizes():
    model = VDCNN(VDCNN.view.width)
    assert model.characters.embedding_dim == 16 and model.top == 8
    assert [layer.out_features for layer in model.dense if isinstance(layer, nn.Linear)] == [2048, 2048]
    assert model.dense[0].in_features == 4096
    with pytest.raises(ValueError, match="depth=10 is none of 9, 17, 29, 49"):
        VDCNN(VDCNN.view.width, depth=10)


def test_a_blank_is_no_unknown_character_and_case_does_not_count():
    ids = read("a b~\u4e00A").ids[0].tolist()
    assert len(set(ids)) == 5 and ids[0] == ids[5] and ids[4] == 0


def test_batch_norm_is_that_of_torch_over_the_real_positions_of_the_batch():
    """Were padding counted, a batch's statistics would depend on how unequal its texts are, and
    predictions not match training."""
    torch.manual_seed(0)
    mask = mask_of([6, 2, 3])
    states = poisoned(torch.randn(3, 6, 4), mask).transpose(1, 2)
    real = states.transpose(1, 2)[mask]
    ours, torchs = TemporalBatchNorm(4), nn.BatchNorm1d(4)
    for module in (ours, torchs):
        nn.init.constant_(module.weight, 1.5)
        nn.init.constant_(module.bias, 0.3)
    torchs.weight, torchs.bias = ours.weight, ours.bias
    for _ in range(3):
        assert_same(ours(states, mask).transpose(1, 2)[mask], torchs(real))
    torch.testing.assert_close(ours.running_mean, torchs.running_mean)
    torch.testing.assert_close(ours.running_var, torchs.running_var)
    ours.eval(), torchs.eval()
    found = ours(states, mask)
    assert_same(found.transpose(1, 2)[mask], torchs(real))
    assert not found.masked_select(~mask[:, None]).any()


def test_a_batch_of_one_character_still_trains():
    model = VDCNN(VDCNN.view.width, **SMALL)
    model(read("x")).sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())
