"""The mechanism of my model: each test fails when what defines the model is taken out."""

from __future__ import annotations

import torch

from harness import registry


class Constant(torch.nn.Module):
    """A model whose loss is its only parameter."""

    def __init__(self, loss):
        super().__init__()
        self.value = torch.nn.Parameter(torch.tensor(loss))

    def loss(self, batch):
        return self.value


def test_below_the_level_the_step_goes_uphill():
    regime = registry.load(registry.entry("architectures", "my_model"))(level=0.5)
    for loss, slope in ((0.75, 1.0), (0.25, -1.0)):
        model = Constant(loss)
        flooded = regime.loss(model, batch=None)
        flooded.backward()
        assert (flooded.item(), model.value.grad.item()) == (0.75, slope)
