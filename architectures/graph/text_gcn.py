"""TextGCN: one graph of all words and documents of a corpus."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from scipy import sparse
from torch import Tensor, nn

from architectures.blocks.corpus_graph import TextGraph
from harness.kinds import Estimator
from harness.registry import register
from harness.task import Row


def as_tensor(matrix: sparse.csr_array) -> Tensor:
    """A sparse float32 tensor of the matrix."""
    parts = (torch.from_numpy(part) for part in (matrix.indptr, matrix.indices, matrix.data.astype(np.float32)))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*Sparse (CSR|invariant).*")
        return torch.sparse_csr_tensor(*parts, size=matrix.shape)


class Propagation(torch.autograd.Function):
    """The product of a SYMMETRIC sparse graph and a matrix: the graph is its own transpose, which
    torch's backward would build anew."""

    @staticmethod
    def forward(ctx: Any, graph: Tensor, states: Tensor) -> Tensor:
        ctx.graph = graph
        return graph @ states

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, Tensor]:
        return None, ctx.graph @ gradient


@register(
    "text_gcn",
    name="TextGCN",
    kind="fit",
    paper="Yao et al. 2019",
    source="M2.7[107] T2",
    year=2019,
    sees=("texts of test",),
    tiny={"hidden": 16},
    deviations=(
        "TRANSDUCTIVE, as in the paper: the test texts, without their labels, are in its graph.",
        "Answers with the scores of the epoch with the lowest dev loss, not of the last one.",
        "Stops early on the task's dev split, not on a tenth of the training texts.",
        "Keeps stop words and, unless min_count says otherwise, rare words, as the paper does for short texts only.",
    ),
)
class TextGCN(Estimator):
    """Scores A relu(A W0) W1 of all nodes, A being the normalised graph of the words and of
    training, dev and unlabelled test texts.

    The features are one-hot, so W0 holds a vector per node. The loss is the cross-entropy at the
    training texts; training stops when the one at the dev texts has not fallen for ``patience``
    epochs. Dropout acts on what the second layer reads. TRANSDUCTIVE: only texts that were in
    the graph can be answered. Words seen less than ``min_count`` times are left out.
    """

    transductive = True
    from_dev = ("graph", "scores", "parameter_count", "flops_per_example")  # its texts are nodes too

    def __init__(
        self,
        seed: int = 0,
        window: int = 20,
        hidden: int = 200,
        dropout: float = 0.5,
        lr: float = 0.02,
        epochs: int = 200,
        patience: int = 10,
        min_count: int = 1,
    ):
        super().__init__(seed)
        self.window, self.hidden, self.dropout, self.min_count = window, hidden, dropout, min_count
        self.lr, self.epochs, self.patience = lr, epochs, patience

    @classmethod
    def memory_needed(cls, size: int, hyperparameters: dict) -> float:
        """Weights, gradients and moments of each node (word or text), and its edges."""
        return (100.0 + 2 * hyperparameters["hidden"]) * size

    def fit(self, train: Sequence[Row], dev: Sequence[Row], unlabelled: Sequence[Row] = ()) -> None:
        self.graph = TextGraph.of((*train, *dev, *unlabelled), self.window, self.min_count)
        self.labels = sorted({row["label"] for row in train})
        known = self._gold(dev)
        if not len(known[0]):
            raise ValueError("text_gcn stops by its loss on dev rows, and no dev row has a label that training shows")
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            self.scores = self._train(as_tensor(self.graph.adjacency), self._gold(train), known)
        edges, nodes, classes = self.graph.adjacency.nnz, self.graph.adjacency.shape[0], len(self.labels)
        one_pass = 2 * (edges * (self.hidden + classes) + nodes * self.hidden * classes)
        self.flops_per_example = one_pass / len(self.graph.nodes)  # it answers all texts together

    def _gold(self, rows: Sequence[Row]) -> tuple[Tensor, Tensor]:
        """Nodes and labels of the rows, less those whose label training never shows."""
        known = [row for row in rows if row["label"] in self.labels]
        labels = torch.tensor([self.labels.index(row["label"]) for row in known], dtype=torch.long)
        return torch.from_numpy(self.graph.places(known)), labels

    def _train(self, graph: Tensor, train: tuple[Tensor, Tensor], dev: tuple[Tensor, Tensor]) -> Tensor:
        """Scores (nodes, classes) at the epoch with the lowest dev loss."""
        nodes, classes = graph.shape[0], len(self.labels)
        first, second = (
            nn.Parameter(nn.init.xavier_uniform_(torch.empty(*shape)))
            for shape in ((nodes, self.hidden), (self.hidden, classes))
        )
        self.parameter_count = first.numel() + second.numel()
        optimizer = torch.optim.Adam([first, second], lr=self.lr, fused=True)
        best, waited = torch.inf, 0
        for epoch in range(self.epochs + 1):
            states = torch.relu(Propagation.apply(graph, first))
            with torch.no_grad():
                scores = graph @ (states @ second)
                dev_loss = F.cross_entropy(scores[dev[0]], dev[1]).item()
            if epoch == 0 or dev_loss < best:
                best, kept, waited = dev_loss, scores, 0
            else:
                waited += 1
            if waited == self.patience or epoch == self.epochs:
                break
            dropped = Propagation.apply(graph, F.dropout(states, self.dropout) @ second)
            optimizer.zero_grad()
            F.cross_entropy(dropped[train[0]], train[1]).backward()
            optimizer.step()
        return kept

    def predict(self, rows: Sequence[Row]) -> list[str]:
        return [self.labels[best] for best in self.scores[self.graph.places(rows)].argmax(1).tolist()]
