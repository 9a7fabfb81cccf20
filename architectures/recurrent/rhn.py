"""Recurrent highway network."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from harness.kinds import SequenceEncoder
from harness.registry import Recipe, register


@register(
    "rhn",
    name="Recurrent highway network",
    kind="seq",
    paper="Zilly et al. 2017",
    source="M2.9[141]",
    year=2017,
    recipe=Recipe(optimizer="adam", lr=0.001, batch_size=20, clip=10.0),
    tiny={"hidden": 16, "depth": 3, "spread": 0.3},
    deviations=(
        (
            "The paper trains language models: 830 units, of which two cores read three texts a second, SGD of 0.2 with"
            " a weight decay of 1e-7 and a falling rate; 300 units and Adam are ours."
        ),
        (
            "Dropout of the words is 0.25, not 0.75 as for the language model, which also drops whole words and what"
            " its softmax reads."
        ),
        "The paper's model answers at each word; the mean of the states as a text's vector is ours.",
    ),
)
class RecurrentHighway(SequenceEncoder):
    """s_l = h_l * t_l + s_{l-1} * (1 - t_l) through ``depth`` highway layers within each time step.

    h_l = tanh(R_H s_{l-1} + b) and t_l = sigmoid(R_T s_{l-1} + b) have matrices of their own in
    each layer; the first one alone reads the word too. The last layer's s is the state and goes to
    the next word. Transform gates start nearly closed, with biases of ``transform_bias``; all other
    weights start uniform within ``spread``. Dropout of the words and of the state has one mask for
    the whole text (Gal & Ghahramani 2016). Slow, because no fused layer computes it: ``depth``
    times as many steps as words.
    """

    ordinary_dropouts = ("input_dropout", "state_dropout")

    def __init__(
        self,
        width: int,
        hidden: int = 300,
        depth: int = 10,
        transform_bias: float = -2.0,
        spread: float = 0.04,
        pooling: str = "mean",
        input_dropout: float = 0.25,
        state_dropout: float = 0.25,
    ):
        super().__init__()
        if depth < 1:
            raise ValueError(f"rhn: depth={depth}: a word passes one highway layer at least")
        self.pooling = pooling
        self.input = nn.Linear(width, 2 * hidden, bias=False)
        self.layers = nn.ModuleList(nn.Linear(hidden, 2 * hidden) for _ in range(depth))
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -spread, spread)
        for layer in self.layers:
            nn.init.constant_(layer.bias[hidden:], transform_bias)
        self.input_dropout, self.state_dropout = input_dropout, state_dropout
        self.size = hidden

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        words = vectors * F.dropout(torch.ones_like(vectors[:, :1]), self.input_dropout, self.training)
        state = vectors.new_zeros(len(vectors), self.size)
        kept = F.dropout(torch.ones_like(state), self.state_dropout, self.training)
        states = []
        for word in self.input(words).unbind(1):
            for number, layer in enumerate(self.layers):
                gates = layer(state * kept) + (word if number == 0 else 0)
                h, t = gates.chunk(2, dim=1)
                state = torch.lerp(state, torch.tanh(h), torch.sigmoid(t))
            states.append(state)
        return torch.stack(states, dim=1)
