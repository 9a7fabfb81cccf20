"""What the poolings of texts of several lengths rely on: order, ties, parts that cover the text,
and blindness to padding."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from architectures.blocks.pooling import dynamic_max, halve, k_max, pool_by
from tests.support.same import assert_same


def mask_of(*lengths: int) -> torch.Tensor:
    return torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]


def test_k_max_keeps_the_order_of_the_text():
    values = torch.tensor([[[2.0, 9, 4, 7], [1, 2, 3, 4]]])
    assert k_max(values, mask_of(4), 2)[0].tolist() == [[[9, 7], [3, 4]]]


def test_of_equal_values_the_first_are_taken_whatever_stands_behind_the_text():
    """ReLU maps are full of equal zeros: were the last taken, or others beside a longer text, the
    columns would shift."""
    values = torch.zeros(1, 1, 40)
    values[..., [3, 17]], values[..., 20:] = 5, 7
    for length in (20, 21, 40):
        mask = torch.arange(length)[None] < 20
        assert k_max(values[..., :length], mask, 4)[0].tolist() == [[[0, 0, 5, 5]]]


def test_k_max_gives_each_text_its_own_number_and_zeros_behind_it():
    values = torch.tensor([[[-1.0, -3, -2, -4]]]).repeat(3, 1, 1)
    found, mask = k_max(values, mask_of(4, 2, 4), 3, torch.tensor([3, 3, 1]))
    assert found.tolist() == [[[-1, -3, -2]], [[-1, -3, 0]], [[-1, 0, 0]]]
    assert mask.tolist() == [[True] * 3, [True, True, False], [True, False, False]]


def test_k_max_of_a_batch_shorter_than_k_is_as_wide_as_any_other():
    found, mask = k_max(torch.tensor([[[3.0, 4]]]), mask_of(2), 5)
    assert found.tolist() == [[[3, 4, 0, 0, 0]]] and mask.sum() == 2


def test_k_max_passes_gradients_to_what_it_takes_only():
    values = torch.tensor([[[2.0, 9, 4, 7]]], requires_grad=True)
    (k_max(values, mask_of(4), 2)[0] * torch.tensor([1.0, 10.0])).sum().backward()
    assert values.grad.tolist() == [[[0, 1, 0, 10]]]


@pytest.mark.parametrize("length", range(1, 8))
def test_halving_a_text_is_the_same_beside_a_longer_one(length):
    """Negative values: a zero of the padding would win against them."""
    torch.manual_seed(0)
    text = (-1 - torch.rand(1, 2, length)).requires_grad_()
    alone, mask = halve(text, mask_of(length))
    assert_same(alone, F.max_pool1d(text, 3, stride=2, padding=1))
    assert mask.shape[1] == (length + 1) // 2 and mask.all()
    beside, mask = halve(F.pad(text, (0, 5), value=50.0), torch.arange(length + 5)[None] < length)
    assert_same(beside[..., : alone.shape[-1]], alone)
    assert mask.sum() == alone.shape[-1] and not beside[..., alone.shape[-1] :].any()


@pytest.mark.parametrize("cells", [1, 3, 5])
def test_dynamic_pooling_is_adaptive_pooling_over_each_texts_own_length(cells):
    torch.manual_seed(0)
    lengths = torch.tensor([12, 7, 5, 4, 1])
    values = torch.randn(5, 12, 3, 2, requires_grad=True)
    found = dynamic_max(values, lengths, cells)
    assert found.shape == (5, cells, 3, 2)
    for row, length in enumerate(lengths):
        expected = F.adaptive_max_pool1d(values[row, :length].flatten(1).T, cells).T.reshape(cells, 3, 2)
        assert_same(found[row], expected)


def test_seven_positions_make_three_parts_that_cover_all_of_them():
    parts = [
        dynamic_max((torch.arange(7) == position).float()[None], torch.tensor([7]), 3)[0].tolist()
        for position in range(7)
    ]
    assert parts == [[1, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 1, 1], [0, 0, 1], [0, 0, 1]]


@pytest.mark.parametrize("size", [1, 2, 3, 20])
def test_the_maximum_of_every_few_positions_is_each_texts_own(size):
    """The last maximum has what is left; a text's own length counts, not that of its batch."""
    torch.manual_seed(0)
    values, lengths = torch.randn(3, 7, 2) - 5, torch.tensor([7, 4, 1])
    values = values.masked_fill(~mask_of(7, 4, 1)[..., None], 99.0).requires_grad_()
    pooled, left = pool_by(values, lengths, size)
    assert left.tolist() == [-(-length // size) for length in (7, 4, 1)]
    for row, text, length in zip(pooled, values, (7, 4, 1), strict=True):
        parts = torch.stack([part.amax(0) for part in text[:length].split(size)])
        assert_same(row[: len(parts)], parts)
        assert not row[len(parts) :].any()
