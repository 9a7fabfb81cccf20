"""Tree-LSTMs over binary trees."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from architectures.blocks.trees import bottom_up
from harness.kinds import TreeEncoder
from harness.registry import Recipe, register
from harness.views.tree import TreeBatch, Trees


class BinaryChildren(nn.Module):
    """Contribution of ordered children (n, hidden) to their parent: gates i, o, u (n, 3 * hidden),
    and a forget gate for each child.

    Each slot has matrices of its own, in every gate: the forget gate of the left child reads the
    right one too.
    """

    def __init__(self, hidden: int):
        super().__init__()
        self.gates = nn.Linear(2 * hidden, 3 * hidden, bias=False)
        self.forget = nn.Linear(2 * hidden, 2 * hidden, bias=False)

    def forward(self, left: Tensor, right: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        children = torch.cat([left, right], dim=1)
        return self.gates(children), *self.forget(children).chunk(2, dim=1)


class ChildSum(nn.Module):
    """As :class:`BinaryChildren`, without order: i, o, u read the sum of the children, each forget
    gate its child alone by one matrix."""

    def __init__(self, hidden: int):
        super().__init__()
        self.gates = nn.Linear(hidden, 3 * hidden, bias=False)
        self.forget = nn.Linear(hidden, hidden, bias=False)

    def forward(self, left: Tensor, right: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.gates(left + right), self.forget(left), self.forget(right)


CHILDREN = {"n-ary": BinaryChildren, "sum": ChildSum}


@register(
    "tree_lstm",
    name="Tree-LSTM, binary",
    kind="tree",
    paper="Tai et al. 2015",
    source="M2.2[33]",
    year=2015,
    sees=("labels of phrases",),
    recipe=Recipe(
        optimizer="adagrad",
        lr=0.05,
        batch_size=25,
        epochs=10,
        patience=10,
        weight_decay=0.0001,
        decay_exempt=("vectors",),
        groups=(("table.*", 2.0),),
        reduction="sentence",
    ),
    vectors_of_paper="GloVe",
    tiny={"hidden": 16},
    deviations=(
        "Leaves follow the paper's equations; the authors' code gives them a linear cell without input gate.",
        "Word vectors move by AdaGrad at a rate of 0.1; in the authors' code by plain steps at this rate.",
        "Words are those that the view knows, in lower case; the authors' code keeps capitals.",
        "Where two classes are asked for, neutral nodes have no loss; in the authors' code they are a third class.",
        "Gates share their biases with the leaves', and the two forget gates one, as in the paper; in the authors'"
        " code each has its own.",
    ),
    variants={
        "tree_lstm_child_sum": {
            "name": "Tree-LSTM, child-sum",
            "hyperparameters": {"children": "sum", "hidden": 168},
            "without_deviations": ("Leaves follow the paper's equations", "Gates share their biases"),
            "deviations": (
                (
                    "Reads constituency trees, words at the leaves only; the paper's dependency trees have a word at"
                    " each node."
                ),
            ),
        },
    },
)
class TreeLSTM(TreeEncoder):
    """Memory cells up the tree, with a forget gate per child: c = i * u + sum_k f_k * c_k, h = o *
    tanh(c).

    i, f and o are logistic and u is tanh; leaves read the word vector, inner nodes their children
    only. ``children`` says how: ``n-ary`` (:class:`BinaryChildren`) or ``sum`` (:class:`ChildSum`).
    All nodes of one height are computed at once. Dropout acts before the softmax.
    """

    view = Trees()

    def __init__(self, width: int, hidden: int = 150, dropout: float = 0.5, children: str = "n-ary"):
        super().__init__()
        if children not in CHILDREN:
            raise ValueError(f"tree_lstm: children={children!r} is none of {', '.join(CHILDREN)}")
        self.input = nn.Linear(width, 3 * hidden)
        self.composition = CHILDREN[children](hidden)
        self.forget_bias = nn.Parameter(torch.zeros(hidden))
        self.dropout = nn.Dropout(dropout)
        self.size = hidden

    @staticmethod
    def state(gates: Tensor, kept: Tensor) -> Tensor:
        """State and cell [h, c] (n, 2 * hidden) from the gates i, o, u and what is kept of the
        children's cells (n, hidden)."""
        i, o, u = gates.chunk(3, dim=1)
        cell = torch.sigmoid(i) * torch.tanh(u) + kept
        return torch.cat([torch.sigmoid(o) * torch.tanh(cell), cell], dim=1)

    def leaf(self, vectors: Tensor) -> Tensor:
        """States and cells of leaves with these word vectors (n, width)."""
        return self.state(self.input(vectors), vectors.new_zeros(()))

    def parent(self, left: Tensor, right: Tensor) -> Tensor:
        """States and cells of nodes with these children's (n, 2 * hidden)."""
        (h_left, c_left), (h_right, c_right) = left.chunk(2, dim=1), right.chunk(2, dim=1)
        gates, f_left, f_right = self.composition(h_left, h_right)
        f_left, f_right = torch.sigmoid(f_left + self.forget_bias), torch.sigmoid(f_right + self.forget_bias)
        return self.state(gates + self.input.bias, f_left * c_left + f_right * c_right)

    def nodes(self, trees: TreeBatch) -> Tensor:
        states = bottom_up(trees, self.leaf(trees.vectors), self.parent)
        return self.dropout(states[:, : self.size])
