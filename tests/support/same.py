"""A model beside its reference: the same values, and the same gradients.

A state, gate or softmax that is cut off from its past answers as before and learns something else.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor


def assert_same(found: Tensor, expected: Tensor, **tolerance: float) -> None:
    """Assert that two tensors are close, and so are the gradients of a random projection of them
    with respect to all that either was computed from: parameters, and inputs that want gradients.

    ``tolerance`` is for :func:`torch.testing.assert_close` of the values; gradients, which add up
    more numbers, may differ ten times as much. Where the values are infinite, as scores of what is
    masked are, no gradient is asked. An expected value without a gradient is an error: numbers
    worked out by hand are for :func:`torch.testing.assert_close`.
    """
    torch.testing.assert_close(found, expected, **tolerance)
    assert expected.requires_grad, "the reference has no gradient: is it computed under no_grad, or from copies?"
    assert found.requires_grad, "the model has no gradient, its reference has"
    relative = max(1e-3, 10 * tolerance.get("rtol", 0.0))
    finite = expected.isfinite()
    generator = torch.Generator().manual_seed(len(finite.flatten()))
    direction = torch.randn(finite.shape, generator=generator, dtype=expected.dtype)[finite]
    leaves = _leaves([found, expected])
    gradients = [
        torch.autograd.grad(value[finite] @ direction, leaves, retain_graph=True, materialize_grads=True)
        for value in (found, expected)
    ]
    dense = [[gradient.to_dense() if gradient.is_sparse else gradient for gradient in each] for each in gradients]
    largest = max(1.0, *(float(gradient.abs().max()) for gradient in dense[1]))
    for leaf, ours, theirs in zip(leaves, *dense, strict=True):
        # Sums cancel, some to nothing, as that of a bias which all scores of a softmax share.
        least = 0.1 * relative * float(theirs.abs().max()) + 1e-5 * largest

        def told(words: str, leaf: Tensor = leaf) -> str:
            return f"the gradient of a tensor of shape {tuple(leaf.shape)} is another: {words}"

        torch.testing.assert_close(ours, theirs, rtol=relative, atol=least, msg=told)


def _leaves(tensors: Iterable[Tensor]) -> list[Tensor]:
    """What a gradient of the tensors can reach."""
    found: dict[int, Tensor] = {}
    waiting = [tensor.grad_fn for tensor in tensors if tensor.grad_fn is not None]
    seen = set(waiting)
    while waiting:
        node = waiting.pop()
        if hasattr(node, "variable"):
            found[id(node.variable)] = node.variable
        new = {below for below, _ in node.next_functions if below is not None} - seen
        seen |= new
        waiting += new
    return list(found.values())
