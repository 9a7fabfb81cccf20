"""LSTM whose state is split into groups that are updated at different time scales."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from harness.kinds import SequenceEncoder
from harness.registry import Recipe, register


class Group(nn.Module):
    """One group of units: state and cell (B, ``size`` each) at a step at which the group is active.

    The gates read the word and the groups that this one listens to, ``heard`` units in all: input
    and forget gate their states and cells before the step, the output gate their cells behind it.
    """

    def __init__(self, width: int, heard: int, size: int):
        super().__init__()
        self.word = nn.Linear(width, 4 * size)
        self.recurrence = nn.Linear(heard, 4 * size, bias=False)
        self.cells_before = nn.Linear(heard, 2 * size, bias=False)
        self.cells_behind = nn.Linear(heard, size, bias=False)

    def cell(self, word: Tensor, heard_state: Tensor, heard_cell: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
        """The new cell, and what its output gate reads without the cells."""
        i, f, o, candidate = (word + self.recurrence(heard_state)).chunk(4, dim=1)
        from_cells = self.cells_before(heard_cell).chunk(2, dim=1)
        i, f = torch.sigmoid(i + from_cells[0]), torch.sigmoid(f + from_cells[1])
        return f * cell + i * torch.tanh(candidate), o

    def state(self, output: Tensor, cell: Tensor, heard_cell: Tensor) -> Tensor:
        """The new state."""
        return torch.sigmoid(output + self.cells_behind(heard_cell)) * torch.tanh(cell)


@register(
    "mt_lstm",
    name="Multi-timescale LSTM, fast to slow",
    kind="seq",
    paper="Liu et al. 2015",
    source="M2.2[36]",
    year=2015,
    recipe=Recipe(optimizer="adagrad", lr=0.1, weight_decay=0.00001, decay_exempt=("vectors",), vector_dims=100),
    tiny={"size": 6},
    vectors_of_paper="word2vec",
    deviations=(
        "There are three groups on all tasks, which suits sentences of 20 words; the paper has more for longer texts.",
        "The size of a group and of the batches is ours.",
        "Gates and candidates have biases; the paper prints none.",
        "The L2 penalty takes biases, and no word vectors: Adagrad would take those of words that no batch has to 0.",
    ),
    variants={
        "mt_lstm_slow_to_fast": {
            "name": "Multi-timescale LSTM, slow to fast",
            "hyperparameters": {"feedback": "slow to fast"},
        }
    },
)
class MultiTimescaleLSTM(SequenceEncoder):
    """``groups`` of ``size`` units, of which the k-th is updated at every 2^(k-1)-th word and else
    keeps state and cell.

    A group listens to itself and, with the ``feedback`` "fast to slow", to the groups that are
    updated more often, with "slow to fast" to those that are updated less often. For group k at
    word t, counted from 1, with sums over the groups j that it listens to: i, f = sigmoid(W x_t +
    sum_j U_j h_{t-1}^j + sum_j V_j c_{t-1}^j), the candidate tanh(W x_t + sum_j U_j h_{t-1}^j),
    c_t^k = f * c_{t-1}^k + i * candidate, o = sigmoid(W x_t + sum_j U_j h_{t-1}^j + sum_j V_j
    c_t^j), h_t^k = o * tanh(c_t^k). A text's vector is the last state of all groups. Slow, because
    no fused layer computes it.
    """

    pooling = "last"

    def __init__(self, width: int, groups: int = 3, size: int = 50, feedback: str = "fast to slow"):
        super().__init__()
        if feedback not in ("fast to slow", "slow to fast"):
            raise ValueError(f"mt_lstm: feedback={feedback!r} is neither 'fast to slow' nor 'slow to fast'")
        if groups < 1:
            raise ValueError(f"mt_lstm: groups={groups}: one group of units at least is needed")
        heard = [(0, k + 1) if feedback == "fast to slow" else (k, groups) for k in range(groups)]
        self.heard = [slice(first, end) for first, end in heard]
        self.groups = nn.ModuleList(Group(width, (end - first) * size, size) for first, end in heard)
        self.size = groups * size

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        words = [group.word(vectors).unbind(1) for group in self.groups]
        start = vectors.new_zeros(len(vectors), self.size // len(self.groups))
        state, cell = [start] * len(self.groups), [start] * len(self.groups)
        states = []
        for t in range(vectors.shape[1]):
            active = [k for k in range(len(self.groups)) if (t + 1) % 2**k == 0]
            behind, outputs = list(cell), {}
            for k in active:
                heard_cell = torch.cat(cell[self.heard[k]], dim=1)
                heard_state = torch.cat(state[self.heard[k]], dim=1)
                behind[k], outputs[k] = self.groups[k].cell(words[k][t], heard_state, heard_cell, cell[k])
            for k in active:
                state[k] = self.groups[k].state(outputs[k], behind[k], torch.cat(behind[self.heard[k]], dim=1))
            cell = behind
            states.append(torch.cat(state, dim=1))
        return torch.stack(states, dim=1)
