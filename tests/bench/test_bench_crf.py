"""Our CRF beside pytorch-crf at the sizes of tagging: 9 labels (NER) and 45 (part of speech), batch 32, up to 25 words.

That the results are equal is tested in tests/blocks.
"""

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


def test_loss_and_gradient(beside, data) -> None:
    emissions, tags, mask = data
    labels = emissions.shape[-1]
    ours, theirs = LinearChainCRF(labels), torchcrf.CRF(labels, batch_first=True)
    beside(
        f"CRF forward and backward, {labels} labels",
        "pytorch-crf",
        2.0,
        lambda: ours.loss(emissions, tags, mask).backward(),
        lambda: (-theirs(emissions, tags, mask, reduction="mean")).backward(),
        rounds=200,
    )


def test_viterbi(beside, data) -> None:
    emissions, _, mask = data
    labels = emissions.shape[-1]
    ours, theirs = LinearChainCRF(labels), torchcrf.CRF(labels, batch_first=True)
    with torch.no_grad():
        beside(
            f"Viterbi, {labels} labels",
            "pytorch-crf's decode",
            2.0,
            lambda: ours.viterbi(emissions, mask),
            lambda: theirs.decode(emissions, mask),
            rounds=200,
        )
