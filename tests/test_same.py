"""The comparison that tests of architectures stand on: one that passes everything would hide what
models learn."""

from __future__ import annotations

import pytest
import torch

from tests.support.same import assert_same


def two() -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    return torch.randn(3, 4, requires_grad=True), torch.randn(4, requires_grad=True)


def test_the_same_function_of_the_same_tensors_is_the_same():
    x, w = two()
    assert_same(x @ w, torch.stack([(row * w).sum() for row in x]))
    masked = torch.tensor([True, False, False])
    assert_same((x @ w).masked_fill(masked, -torch.inf), (x * w).sum(1).masked_fill(masked, -torch.inf))


def test_sparse_gradients_are_those_of_dense_ones():
    table = torch.randn(5, 2, requires_grad=True)
    ids = torch.tensor([1, 3])
    assert_same(torch.nn.functional.embedding(ids, table, sparse=True), table[ids])


def test_what_is_cut_off_is_seen():
    """A gate, an input, or all of it: the values are the same each time."""
    x, w = two()
    gate = torch.sigmoid(x @ w)
    for found in (gate.detach()[:, None] * x, gate[:, None] * x.detach()):
        with pytest.raises(AssertionError, match="gradient of a tensor of shape"):
            assert_same(found, gate[:, None] * x)
    with pytest.raises(AssertionError, match="the model has no gradient"):
        assert_same(x.detach() * 2, x * 2)


def test_a_reference_of_copies_is_refused():
    x, _ = two()
    with pytest.raises(AssertionError, match="the reference has no gradient"):
        assert_same(x * 2, x.detach() * 2)
    with pytest.raises(AssertionError, match="gradient of a tensor of shape"):
        assert_same(x * 2, x.detach().clone().requires_grad_() * 2)


def test_other_values_are_seen_first():
    x, _ = two()
    with pytest.raises(AssertionError, match="not close"):
        assert_same(x, x + 1)
