"""Layers that a gate may let a vector pass by."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Highway(nn.Module):
    """g * relu(W x) + (1 - g) * x with the gate g = sigmoid(V x), in each layer: (..., size) ->
    (..., size).

    Gates start with biases of ``gate_bias`` where it is given: a negative one lets vectors pass.
    Srivastava et al. 2015.
    """

    def __init__(self, size: int, layers: int, gate_bias: float | None = None):
        super().__init__()
        self.transforms = nn.ModuleList(nn.Linear(size, size) for _ in range(layers))
        self.gates = nn.ModuleList(nn.Linear(size, size) for _ in range(layers))
        if gate_bias is not None:
            for gate in self.gates:
                nn.init.constant_(gate.bias, gate_bias)

    def forward(self, states: Tensor) -> Tensor:
        for transform, gate in zip(self.transforms, self.gates, strict=True):
            states = torch.lerp(states, torch.relu(transform(states)), torch.sigmoid(gate(states)))
        return states
