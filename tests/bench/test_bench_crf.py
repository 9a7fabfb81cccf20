"""Our CRF beside pytorch-crf at the sizes of tagging: 9 labels (NER) and 45 (part of speech), batch 32, 25 words."""

from __future__ import annotations

import pytest
import torch
import torchcrf

from architectures.blocks.crf import LinearChainCRF


@pytest.fixture(params=[9, 45], ids=["9 labels", "45 labels"])
def data(request: pytest.FixtureRequest) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Emissions, tags and mask."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    lengths = torch.randint(5, 26, (32,))
    lengths[0] = 25
    mask = torch.arange(25) < lengths[:, None]
    return torch.randn(32, 25, request.param, requires_grad=True), torch.randint(request.param, (32, 25)), mask


@pytest.mark.parametrize("whose", ["ours", "pytorch-crf"])
def test_loss_and_gradient(benchmark, data, whose: str) -> None:
    emissions, tags, mask = data
    benchmark.group = f"CRF forward and backward, {emissions.shape[-1]} labels"
    if whose == "ours":
        crf = LinearChainCRF(emissions.shape[-1])
        benchmark(lambda: crf.loss(emissions, tags, mask).backward())
    else:
        other = torchcrf.CRF(emissions.shape[-1], batch_first=True)
        benchmark(lambda: (-other(emissions, tags, mask, reduction="mean")).backward())


@pytest.mark.parametrize("whose", ["ours", "pytorch-crf"])
def test_viterbi(benchmark, data, whose: str) -> None:
    emissions, _, mask = data
    benchmark.group = f"Viterbi, {emissions.shape[-1]} labels"
    with torch.no_grad():
        if whose == "ours":
            crf = LinearChainCRF(emissions.shape[-1])
            benchmark(lambda: crf.viterbi(emissions, mask))
        else:
            other = torchcrf.CRF(emissions.shape[-1], batch_first=True)
            benchmark(lambda: other.decode(emissions, mask))
