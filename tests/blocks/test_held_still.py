"""Parameters that a pass reads as constants, and trains again afterwards."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from architectures.blocks.held_still import held_still


def model() -> nn.Module:
    torch.manual_seed(0)
    made = nn.ModuleDict({"first": nn.Linear(2, 2), "second": nn.Linear(2, 2)})
    made["first"].bias.requires_grad_(False)
    return made


def gradients(made: nn.Module) -> set[str]:
    return {name for name, parameter in made.named_parameters() if parameter.grad is not None}


@pytest.mark.parametrize(
    ("names", "left"),
    [
        (("",), set()),
        (("first.",), {"second.weight", "second.bias"}),
        (("second.", "first.b"), {"first.weight"}),
        ((), {"first.weight", "second.weight", "second.bias"}),
    ],
)
def test_no_gradient_goes_to_those_that_are_named(names, left):
    made = model()
    inputs = torch.ones(1, 2, requires_grad=True)
    with held_still(made, names):
        loss = made["second"](made["first"](inputs).tanh()).sum()
    loss.backward()
    assert gradients(made) == left and inputs.grad.any(), "what stands below learns through them"


def test_afterwards_all_are_trained_that_were_before():
    made = model()
    with pytest.raises(RuntimeError), held_still(made):
        raise RuntimeError
    assert {name for name, p in made.named_parameters() if not p.requires_grad} == {"first.bias"}
    made["second"](made["first"](torch.ones(1, 2))).sum().backward()
    assert gradients(made) == {"first.weight", "second.weight", "second.bias"}


def test_of_a_whole_module_nothing_learns_by_default():
    made = model()
    with held_still(made):
        assert not made["second"](made["first"](torch.ones(1, 2))).requires_grad
