"""Two LSTMs over two texts that read each other's states at every pair of words."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from harness.kinds import PairEncoder
from harness.registry import Recipe, register
from harness.views.words import WordBatch


class LooselyCoupled(nn.Module):
    """Two states a cell (i, j): one LSTM goes along the first text and reads both states of
    (i-1, j), the other along the second and reads both of (i, j-1).

    The step's inputs are what the words give and the states and cells of (i-1, j), ``upper``, and
    of (i, j-1), ``left``, each (B, n, 4 * hidden); the result is the cell's own.
    """

    def __init__(self, width: int, hidden: int):
        super().__init__()
        self.size = 2 * hidden
        self.first, self.second = nn.Linear(width, 4 * hidden), nn.Linear(width, 4 * hidden)
        self.down, self.along = (nn.Linear(2 * hidden, 4 * hidden, bias=False) for _ in range(2))

    def step(self, first: Tensor, second: Tensor, upper: Tensor, left: Tensor) -> Tensor:
        (above, cells_above), (beside, cells_beside) = upper.chunk(2, dim=-1), left.chunk(2, dim=-1)
        gates = first + self.down(above), second + self.along(beside)
        before = cells_above.chunk(2, dim=-1)[0], cells_beside.chunk(2, dim=-1)[1]
        cells, states = [], []
        for cell, of_one in zip(before, gates, strict=True):
            i, f, o, candidate = of_one.chunk(4, dim=-1)
            cells.append(torch.sigmoid(f) * cell + torch.sigmoid(i) * torch.tanh(candidate))
            states.append(torch.sigmoid(o) * torch.tanh(cells[-1]))
        return torch.cat([*states, *cells], dim=-1)


class TightlyCoupled(nn.Module):
    """One state a cell (i, j), from the states of (i-1, j) and (i, j-1) and both words, with a
    forget gate for each of the two cells before it. Inputs as in :class:`LooselyCoupled`, but of
    one state and one cell: (B, n, 2 * hidden)."""

    def __init__(self, width: int, hidden: int):
        super().__init__()
        self.size = hidden
        self.first, self.second = nn.Linear(width, 5 * hidden), nn.Linear(width, 5 * hidden)
        self.recurrence = nn.Linear(2 * hidden, 5 * hidden, bias=False)

    def step(self, first: Tensor, second: Tensor, upper: Tensor, left: Tensor) -> Tensor:
        (h1, c1), (h2, c2) = upper.chunk(2, dim=-1), left.chunk(2, dim=-1)
        gates = first + second + self.recurrence(torch.cat([h1, h2], dim=-1))
        i, f1, f2, o, candidate = gates.chunk(5, dim=-1)
        cell = torch.sigmoid(f1) * c1 + torch.sigmoid(f2) * c2 + torch.sigmoid(i) * torch.tanh(candidate)
        return torch.cat([torch.sigmoid(o) * torch.tanh(cell), cell], dim=-1)


COUPLINGS = {"loose": LooselyCoupled, "tight": TightlyCoupled}


@register(
    "coupled_lstm",
    name="Coupled LSTMs, tightly",
    kind="pair",
    paper="Liu et al. 2016",
    source="M2.8[121]",
    year=2016,
    recipe=Recipe(optimizer="adagrad", lr=0.05, vector_dims=100),
    tiny={"hidden": 8, "merged": 8},
    vectors_of_paper="GloVe",
    deviations=(
        "One layer in one direction; the paper stacks several and reads both texts from both ends.",
        "The maximum over the whole grid, where the paper keeps several of its parts.",
        "Sizes, batch and rate are from memory, and so are the states that a loosely coupled one reads.",
    ),
    variants={
        "coupled_lstm_loose": {
            "name": "Coupled LSTMs, loosely",
            "version": 2,
            "hyperparameters": {"coupling": "loose"},
        },
    },
)
class CoupledLSTM(PairEncoder):
    """A grid of states, one for each pair of a word of the first text and one of the second; their
    maximum, and a layer with tanh (B, merged).

    ``coupling`` says what a state reads of the two before it: :class:`LooselyCoupled` or
    :class:`TightlyCoupled`. The cells (i, j) with one sum i + j need only those of the sum before,
    so that a grid of T x U words takes T + U - 1 steps. Slow, because no fused layer computes it.
    """

    def __init__(self, width: int, hidden: int = 50, merged: int = 50, coupling: str = "tight"):
        super().__init__()
        if coupling not in COUPLINGS:
            raise ValueError(f"coupled_lstm: coupling={coupling!r} is none of {', '.join(COUPLINGS)}")
        self.cells = COUPLINGS[coupling](width, hidden)
        self.merge = nn.Linear(self.cells.size, merged)
        self.size = merged

    def grid(self, first: Tensor, second: Tensor) -> Tensor:
        """States (B, T, U, size) of all pairs of words (B, T, width) and (B, U, width)."""
        rows, columns = self.cells.first(first), self.cells.second(second)
        count, others = rows.shape[1], columns.shape[1]
        # Of the diagonal before, cell (i, j-1) stands at i and (i-1, j) at i-1.
        before, diagonals = rows.new_zeros(len(rows), count, 2 * self.cells.size), []
        for total in range(count + others - 1):
            lowest, highest = max(0, total - others + 1), min(count - 1, total)
            i = torch.arange(lowest, highest + 1, device=rows.device)
            upper = F.pad(before, (0, 0, 1, 0))[:, i]
            states = self.cells.step(rows[:, i], columns[:, total - i], upper, before[:, i])
            diagonals.append(states)
            before = F.pad(states, (0, 0, lowest, count - 1 - highest))
        cells = torch.cat(diagonals, dim=1)[..., : self.cells.size]
        i, j = torch.meshgrid(torch.arange(count), torch.arange(others), indexing="ij")
        order = torch.argsort((i + j).flatten() * count + i.flatten())
        return cells[:, torch.argsort(order).to(cells.device)].unflatten(1, (count, others))

    def forward(self, first: WordBatch, second: WordBatch) -> Tensor:
        states = self.grid(first.vectors, second.vectors)
        real = first.mask[:, :, None] & second.mask[:, None]
        largest = states.masked_fill(~real[..., None], -torch.inf).flatten(1, 2).amax(1)
        return torch.tanh(self.merge(largest))
