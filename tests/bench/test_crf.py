"""Our CRF beside pytorch-crf at the sizes of tagging: 9 labels (NER) and 45 (part of speech), batch
32, up to 25 words.

With shared weights both give the same loss, gradients and paths in float64; the times are those of
float32.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest
import torch
import torchcrf
from torch import Tensor

from harness.layers.crf import LinearChainCRF


class Case(NamedTuple):
    """The two layers with the same weights, and a batch."""

    ours: LinearChainCRF
    theirs: torchcrf.CRF
    emissions: Tensor
    tags: Tensor
    mask: Tensor


def shared(labels: int, dtype: torch.dtype) -> Case:
    torch.manual_seed(0)
    ours, theirs = LinearChainCRF(labels), torchcrf.CRF(labels, batch_first=True)
    with torch.no_grad():
        for own, copy in (
            (ours.transitions, theirs.transitions),
            (ours.start, theirs.start_transitions),
            (ours.end, theirs.end_transitions),
        ):
            copy.copy_(own.normal_())
    lengths = torch.randint(5, 26, (32,))
    lengths[0] = 25
    emissions = torch.randn(32, 25, labels).to(dtype).requires_grad_()
    return Case(
        ours.to(dtype),
        theirs.to(dtype),
        emissions,
        torch.randint(labels, (32, 25)),
        torch.arange(25) < lengths[:, None],
    )


@pytest.fixture(params=[9, 45], ids=["9 labels", "45 labels"])
def labels(request: pytest.FixtureRequest) -> int:
    torch.set_num_threads(1)
    return request.param


def our_loss(case: Case) -> Tensor:
    return case.ours.loss(case.emissions, case.tags, case.mask)


def their_loss(case: Case) -> Tensor:
    return -case.theirs(case.emissions, case.tags, case.mask, reduction="mean")


def test_loss_and_gradient(beside, labels: int) -> None:
    exact = shared(labels, torch.float64)
    found, expected = our_loss(exact), their_loss(exact)
    torch.testing.assert_close(found, expected)
    ours = torch.autograd.grad(found, [exact.emissions, exact.ours.transitions, exact.ours.start, exact.ours.end])
    peer = exact.theirs
    theirs = torch.autograd.grad(
        expected, [exact.emissions, peer.transitions, peer.start_transitions, peer.end_transitions]
    )
    torch.testing.assert_close(ours, theirs)

    case = shared(labels, torch.float32)
    beside(
        f"CRF forward and backward, {labels} labels",
        "pytorch-crf",
        2.0,
        lambda: our_loss(case).backward(),
        lambda: their_loss(case).backward(),
        rounds=200,
    )


def test_viterbi(beside, labels: int) -> None:
    exact = shared(labels, torch.float64)
    paths = exact.ours.viterbi(exact.emissions, exact.mask)
    assert [row[real].tolist() for row, real in zip(paths, exact.mask, strict=True)] == exact.theirs.decode(
        exact.emissions, exact.mask
    )

    case = shared(labels, torch.float32)
    with torch.no_grad():
        beside(
            f"Viterbi, {labels} labels",
            "pytorch-crf's decode",
            2.0,
            lambda: case.ours.viterbi(case.emissions, case.mask),
            lambda: case.theirs.decode(case.emissions, case.mask),
            rounds=200,
        )
