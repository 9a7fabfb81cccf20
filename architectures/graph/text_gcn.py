"""TextGCN: one graph of all words and documents of a corpus."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from scipy import sparse
from torch import Tensor, nn

from harness.batching import Ragged
from harness.kinds import Estimator
from harness.registry import register
from harness.task import Row
from harness.views.base import plain, words_of

WINDOWS_AT_ONCE = 200_000
"""Windows whose pairs are counted together: enough for speed, few enough for memory."""


def count_pairs(texts: Ragged, words: int, window: int) -> tuple[sparse.csr_array, int]:
    """In how many windows two words occur together (words, words), one word on the diagonal; and the number of windows.

    A window is a run of ``window`` words of one text; a shorter text is one window.
    """
    lengths = texts.lengths
    windows = np.where(lengths > 0, np.maximum(lengths - window, 0) + 1, 0)
    nth = np.arange(windows.sum()) - np.repeat(windows.cumsum() - windows, windows)
    starts = np.repeat(texts.offsets[:-1], windows) + nth
    ends = np.minimum(starts + window, np.repeat(texts.offsets[1:], windows))
    counts = sparse.csr_array((words, words), dtype=np.int32)
    for begin in range(0, len(starts), WINDOWS_AT_ONCE):
        chosen = slice(begin, begin + WINDOWS_AT_ONCE)
        positions = starts[chosen, None] + np.arange(window)
        inside = positions < ends[chosen, None]
        ids, offsets = texts.values[positions[inside]], np.append(0, inside.sum(axis=1).cumsum())
        present = sparse.csr_array((np.ones(len(ids), dtype=np.int32), ids, offsets), shape=(len(positions), words))
        present.sum_duplicates()
        present.data[:] = 1
        counts = counts + present.T @ present
    return counts, len(starts)


def positive_pmi(counts: sparse.csr_array, windows: int) -> sparse.coo_array:
    """log(p(i, j) / (p(i) p(j))) of two different words (words, words) where it is above 0, p being shares of the windows."""
    pairs, single = counts.tocoo(), counts.diagonal().astype(float)
    row, column = pairs.coords
    pmi = np.log(pairs.data * float(windows) / (single[row] * single[column]))
    kept = (pmi > 0) & (row != column)
    return sparse.coo_array((pmi[kept], (row[kept], column[kept])), shape=counts.shape)


def tf_idf(texts: Ragged, words: int) -> sparse.csr_array:
    """Count of a word in a text times log(texts / texts with the word): (texts, words)."""
    counts = sparse.csr_array((np.ones(len(texts.values)), texts.values, texts.offsets), shape=(len(texts), words))
    counts.sum_duplicates()
    texts_with = np.bincount(counts.indices, minlength=words)
    weighted = counts * np.log(len(texts) / texts_with.clip(min=1))
    weighted.eliminate_zeros()
    return weighted


def corpus_graph(texts: Ragged, words: int, window: int) -> sparse.csr_array:
    """Adjacency of texts, then words, as nodes: TF-IDF between a text and a word, positive PMI between words, 1 from a node to itself."""
    between = tf_idf(texts, words)
    edges = sparse.block_array([[None, between], [between.T, positive_pmi(*count_pairs(texts, words, window))]], format="csr")
    return edges + sparse.eye_array(edges.shape[0], format="csr")


def normalised(adjacency: sparse.csr_array) -> sparse.csr_array:
    """D^-1/2 A D^-1/2, D being the sums of A's rows."""
    scale = 1 / np.sqrt(adjacency.sum(axis=1))
    return sparse.csr_array(sparse.diags_array(scale) @ adjacency @ sparse.diags_array(scale))


def as_tensor(matrix: sparse.csr_array) -> Tensor:
    """A sparse float32 tensor of the matrix."""
    parts = (torch.from_numpy(part) for part in (matrix.indptr, matrix.indices, matrix.data.astype(np.float32)))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*Sparse (CSR|invariant).*")
        return torch.sparse_csr_tensor(*parts, size=matrix.shape)


class Propagation(torch.autograd.Function):
    """The product of a SYMMETRIC sparse graph and a matrix: the graph is its own transpose, which torch's backward would build anew."""

    @staticmethod
    def forward(ctx: Any, graph: Tensor, states: Tensor) -> Tensor:
        ctx.graph = graph
        return graph @ states

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, Tensor]:
        return None, ctx.graph @ gradient


def _identity(row: Row) -> tuple[str, str]:
    return row["id"], plain(row["text"])


@register(
    "text_gcn",
    name="TextGCN",
    kind="fit",
    paper="Yao et al. 2019",
    source="M2.7[107] T2",
    year=2019,
    tiny={"hidden": 16},
    deviations=(
        "TRANSDUCTIVE, as in the paper: the test texts, without their labels, are in its graph.",
        "Answers with the scores of the epoch with the lowest dev loss, not of the last one.",
        "Stops early on the task's dev split, not on a tenth of the training texts.",
        "Keeps stop words and, unless min_count says otherwise, rare words, as the paper does for short texts only.",
    ),
)
class TextGCN(Estimator):
    """Scores A relu(A W0) W1 of all nodes, A being the normalised :func:`corpus_graph` of training, dev and unlabelled test texts.

    The features are one-hot, so W0 holds a vector per node. The loss is the cross-entropy at the training texts; training stops when the
    one at the dev texts has not fallen for ``patience`` epochs. TRANSDUCTIVE: only texts that were in the graph can be answered. Words
    seen less than ``min_count`` times are left out.
    """

    transductive = True

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

    def fit(self, train: Sequence[Row], dev: Sequence[Row], unlabelled: Sequence[Row] = ()) -> None:
        texts = {_identity(row): [word.lower() for word in words_of(row["text"])] for row in (*train, *dev, *unlabelled)}
        self.nodes = {identity: node for node, identity in enumerate(texts)}
        frequent = (word for word, count in Counter(w for text in texts.values() for w in text).items() if count >= self.min_count)
        numbers = {word: number for number, word in enumerate(frequent)}
        ids = Ragged.of([numbers[word] for word in text if word in numbers] for text in texts.values())
        graph = as_tensor(normalised(corpus_graph(ids, len(numbers), self.window)))
        self.labels = sorted({row["label"] for row in train})
        known = self._gold(dev)
        if not len(known[0]):
            raise ValueError("text_gcn stops by its loss on dev rows, and no dev row has a label that training shows")
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            self.scores = self._train(graph, self._gold(train), known)

    def _gold(self, rows: Sequence[Row]) -> tuple[Tensor, Tensor]:
        """Nodes and labels of the rows, less those whose label training never shows."""
        known = [row for row in rows if row["label"] in self.labels]
        nodes = [self.nodes[_identity(row)] for row in known]
        return torch.tensor(nodes, dtype=torch.long), torch.tensor([self.labels.index(row["label"]) for row in known], dtype=torch.long)

    def _train(self, graph: Tensor, train: tuple[Tensor, Tensor], dev: tuple[Tensor, Tensor]) -> Tensor:
        """Scores (nodes, classes) at the epoch with the lowest dev loss."""
        nodes, classes = graph.shape[0], len(self.labels)
        first, second = (
            nn.Parameter(nn.init.xavier_uniform_(torch.empty(*shape))) for shape in ((nodes, self.hidden), (self.hidden, classes))
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
        missing = [row["id"] for row in rows if _identity(row) not in self.nodes]
        if missing:
            raise ValueError(f"text_gcn is transductive: it answers texts that were in its graph, and row {missing[0]} was not")
        return [self.labels[int(self.scores[self.nodes[_identity(row)]].argmax())] for row in rows]
