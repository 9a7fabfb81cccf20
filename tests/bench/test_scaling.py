"""Cost against length for one layer of each sort: recurrent, convolutional, self-attention, 128
wide, forward and backward.

Zhang and Teng (16.1.3) compare the sorts by cost per layer, steps that wait for each other, and the
length of the path between two words; here is how time and operations really grow. The points go
into ``results/speed.md`` and its plot.
"""

from __future__ import annotations

import copy

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from architectures.convolutional.cnn import StackedCNN
from architectures.recurrent.lstm import LSTM
from architectures.transformer.transformer import TransformerEncoder
from harness.kinds import SequenceEncoder

WIDTH, BATCH = 128, 8
LENGTHS = [16, 32, 64, 128, 256, 512, 1024]
LAYERS = {
    "LSTM": lambda: LSTM(WIDTH, hidden=WIDTH, dropout=0.0),
    "convolution, window 3": lambda: StackedCNN(WIDTH, hidden=WIDTH, layers=1, position="none", dropout=0.0),
    "self-attention": lambda: TransformerEncoder(WIDTH, size=WIDTH, layers=1, dropout=0.0),
}


def seen(layer: SequenceEncoder, length: int) -> int:
    """Of how many words one layer's state knows: the most inputs that the state in the middle, or
    the last one, depends on.

    In float64: through 200 steps of an LSTM, gradients in float32 are exactly zero.
    """
    layer = copy.deepcopy(layer).double()
    vectors = torch.randn(1, length, WIDTH, dtype=torch.float64, requires_grad=True)
    states = layer(vectors, torch.ones(1, length, dtype=torch.bool))
    weights = torch.randn(WIDTH, dtype=torch.float64)  # the sum alone would be constant behind a layer norm
    gradients = (
        torch.autograd.grad(states[0, place] @ weights, vectors, retain_graph=True)[0] for place in (length // 2, -1)
    )
    return max(int((gradient.abs().amax(2) > 0).sum()) for gradient in gradients)


def operations(layer: SequenceEncoder, length: int) -> float:
    """Floating-point operations for one text of this length."""
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        mask = torch.ones(1, length, dtype=torch.bool, device="meta")
        copy.deepcopy(layer).to("meta").requires_grad_(False)(torch.empty(1, length, WIDTH, device="meta"), mask)
    return counter.get_total_flops()


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("name", LAYERS)
def test_cost_against_length(benchmark, scaling, name: str, length: int) -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    layer = LAYERS[name]()
    vectors, mask = torch.randn(BATCH, length, WIDTH, requires_grad=True), torch.ones(BATCH, length, dtype=torch.bool)
    benchmark.group = f"one layer at length {length}"
    benchmark.pedantic(lambda: layer(vectors, mask).sum().backward(), rounds=max(5, 2048 // length), warmup_rounds=2)
    seconds = benchmark.stats.stats.median / BATCH
    point = {"layer": name, "length": length, "ms": 1000 * seconds, "flops": operations(layer, length)}
    scaling.append(point | {"sees": seen(layer, length)})
