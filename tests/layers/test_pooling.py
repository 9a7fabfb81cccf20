"""Pooling against loops over the real positions of each text."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from harness.layers.pooling import pool
from tests.support.batches import POISON, mask_of
from tests.support.same import assert_same

LENGTHS = (4, 1, 2)

BY_HAND = {
    "max": lambda rows: torch.stack([max(column) for column in rows.T]),
    "mean": lambda rows: sum(rows) / len(rows),
    "last": lambda rows: rows[-1],
    "ends": lambda rows: torch.cat([rows[-1, :2], rows[0, 2:]]),
}


def states(sign: float = 1.0) -> tuple[Tensor, Tensor]:
    """States (3, 4, 4) whose padding is larger than all else, and their mask."""
    mask = mask_of(LENGTHS)
    return (torch.randn(3, 4, 4) - 2 * sign).masked_fill(~mask[..., None], POISON).requires_grad_(), mask


@pytest.mark.parametrize("how", BY_HAND)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_text_is_pooled_over_its_own_positions(how, sign):
    """Padding in a maximum or a mean would tie a text to the longest one of its batch."""
    torch.manual_seed(0)
    values, mask = states(sign)
    expected = torch.stack([BY_HAND[how](row[:length]) for row, length in zip(values, LENGTHS, strict=True)])
    assert_same(pool(values, mask, how), expected)


@pytest.mark.parametrize("how", ["max", "mean"])
def test_a_text_without_positions_is_zeros(how):
    assert not pool(torch.ones(1, 3, 4), torch.zeros(1, 3, dtype=torch.bool), how).any()


def test_an_unknown_pooling_is_named():
    with pytest.raises(ValueError, match="'median' is none of max, mean, last, ends"):
        pool(*states(), "median")
