"""A writer that looks at its source before each symbol."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from harness.kinds import Generator
from harness.registry import Recipe, register


class Writing(NamedTuple):
    """What is read at each step: the decoder's state (B, hidden), the source (B, S, hidden) and its
    mask."""

    state: Tensor
    source: Tensor
    mask: Tensor


@register(
    "frozen_writer",
    name="Writer",
    kind="generate",
    paper="Nobody 2014",
    source="section 3",
    year=2014,
    recipe=Recipe(optimizer="adadelta", lr=1.0, batch_size=80, epochs=5, clip=1.0, vector_dims=60),
    tiny={"hidden": 32},
    variants={"frozen_writer_beam": {"name": "Writer, searched", "hyperparameters": {"beam": 2}}},
)
class Writer(Generator):
    """A GRU over the symbols written so far; attention over the source chooses what it reads with
    each."""

    def __init__(self, width: int, symbols: int, hidden: int = 64, beam: int = 1):
        super().__init__()
        self.beam = beam
        self.reading = nn.Conv1d(width, hidden, 3, padding=1)
        self.first = nn.Linear(hidden, hidden)
        self.symbols = nn.Embedding(symbols, hidden)
        self.cell = nn.GRUCell(2 * hidden, hidden)
        self.output = nn.Linear(2 * hidden, symbols)

    def start(self, vectors: Tensor, mask: Tensor) -> Writing:
        source = torch.tanh(self.reading((vectors * mask[..., None]).transpose(1, 2)).transpose(1, 2))
        mean = (source * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
        return Writing(torch.tanh(self.first(mean)), source, mask)

    def look(self, writing: Writing) -> Tensor:
        """The source (B, hidden) as the state sees it."""
        scores = (writing.source @ writing.state[..., None]).squeeze(2).masked_fill(~writing.mask, -torch.inf)
        return (scores.softmax(1)[:, None] @ writing.source).squeeze(1)

    def scores(self, symbols: Tensor, writing: Writing) -> tuple[Tensor, Writing]:
        """Scores (B, symbols) of what comes after ``symbols`` (B,)."""
        read = torch.cat([self.symbols(symbols), self.look(writing)], dim=1)
        writing = writing._replace(state=self.cell(read, writing.state))
        return self.output(torch.cat([writing.state, self.look(writing)], dim=1)), writing

    def step(self, symbols: Tensor, state: Writing) -> tuple[Tensor, Writing]:
        scores, state = self.scores(symbols, state)
        return scores.log_softmax(-1), state

    def forward(self, vectors: Tensor, mask: Tensor, prefix: Tensor) -> Tensor:
        writing, found = self.start(vectors, mask), []
        for symbols in prefix.unbind(1):
            scores, writing = self.scores(symbols, writing)
            found.append(scores)
        return torch.stack(found, dim=1)
