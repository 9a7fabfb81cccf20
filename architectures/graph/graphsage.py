"""GraphSAGE on the word graph of each text, with three ways to aggregate neighbours."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

from harness.kinds import TextEncoder
from harness.layers.pooling import pool
from harness.registry import Recipe, register
from harness.views.graph import GraphBatch, WordGraphs


class Neighbours(NamedTuple):
    """Sampled neighbours of M nodes, node after node, each node's in their order: ``sources`` (S,)
    are neighbours of ``targets`` (S,), ``ranks`` (S,) their places, ``counts`` (M,) how many a node
    has."""

    sources: Tensor
    targets: Tensor
    ranks: Tensor
    counts: Tensor

    def bags(self, states: Tensor, mode: str) -> Tensor:
        """Mean or maximum (M, size) of the states (M, size) of each node's neighbours; zeros where
        it has none."""
        return F.embedding_bag(self.sources, states, self.counts.cumsum(0) - self.counts, mode=mode)


def sampled(graphs: GraphBatch, most: int, training: bool) -> Neighbours:
    """At most ``most`` neighbours of each node, none twice, in random order.

    Outside of training chance is a fixed function of the two words' spellings, so that a text has
    one answer.
    """
    if training:
        chance = torch.rand(len(graphs.sources), device=graphs.sources.device)
    else:
        words = graphs.spellings.flatten()
        chance = (words[graphs.sources] * 48271 + words[graphs.targets] * 69621) % (2**31 - 1)
    order = chance.argsort(stable=True)
    order = order[graphs.targets[order].argsort(stable=True)]
    targets = graphs.targets[order]
    degrees = torch.bincount(targets, minlength=graphs.mask.numel())
    ranks = torch.arange(len(order), device=order.device) - (degrees.cumsum(0) - degrees)[targets]
    kept = ranks < most
    return Neighbours(graphs.sources[order][kept], targets[kept], ranks[kept], degrees.clamp(max=most))


class Mean(nn.Module):
    """Mean of the neighbours' states."""

    def __init__(self, width: int, pool_hidden: int, lstm_hidden: int):
        super().__init__()
        self.size = width

    def forward(self, states: Tensor, neighbours: Neighbours) -> Tensor:
        return neighbours.bags(states, "mean")


class Pool(nn.Module):
    """Maximum over the neighbours of relu(W h + b)."""

    def __init__(self, width: int, pool_hidden: int, lstm_hidden: int):
        super().__init__()
        self.layer = nn.Linear(width, pool_hidden)
        self.size = pool_hidden

    def forward(self, states: Tensor, neighbours: Neighbours) -> Tensor:
        return neighbours.bags(torch.relu(self.layer(states)), "max")


class Sequence(nn.Module):
    """Last state of an LSTM that reads the neighbours in their random order; zeros where there are
    none."""

    def __init__(self, width: int, pool_hidden: int, lstm_hidden: int):
        super().__init__()
        self.lstm = nn.LSTM(width, lstm_hidden, batch_first=True)
        self.size = lstm_hidden

    def forward(self, states: Tensor, neighbours: Neighbours) -> Tensor:
        lengths = neighbours.counts.clamp(min=1)
        read = states.new_zeros(len(states), int(lengths.max()), states.shape[1])
        read = read.index_put((neighbours.targets, neighbours.ranks), states[neighbours.sources])
        packed = pack_padded_sequence(read, lengths.cpu(), batch_first=True, enforce_sorted=False)
        _, (last, _) = self.lstm(packed)
        return last[0] * (neighbours.counts > 0)[:, None]


AGGREGATORS = {"mean": Mean, "pool": Pool, "lstm": Sequence}


@register(
    "graphsage",
    name="GraphSAGE, mean",
    kind="text",
    paper="Hamilton et al. 2017",
    source="M2.7[103]",
    year=2017,
    recipe=Recipe(optimizer="adam", lr=0.01, batch_size=64, epochs=10, clip=5.0),
    tiny={"hidden": 16, "pool_hidden": 16, "lstm_hidden": 16},
    deviations=(
        "Nodes are the words of one text, with their vectors; edges lead to words within three words. The paper's"
        " graphs are of citations, posts and proteins.",
        "A text is the mean of its words' states, which the task's layer scores; in the paper each node has scores.",
        "As in the paper's algorithm 1: the authors' code gives the node and its neighbours a matrix each to half the"
        " state, has no ReLU in the last layer and scales the last states alone to length 1.",
        "Sampling takes no neighbour twice; outside of training the sample and its order are fixed by the spellings.",
        "The LSTM over neighbours starts as PyTorch's does; in the authors' code 1 is added to what its forget gate"
        " reads.",
        "Batches of 64 texts, the paper's are of 512 nodes; the norm of the gradient is at most 5, in the authors' code"
        " each of its numbers.",
    ),
    variants={
        "graphsage_pool": {"name": "GraphSAGE, max pooling", "hyperparameters": {"aggregator": "pool"}},
        "graphsage_lstm": {"name": "GraphSAGE, LSTM", "hyperparameters": {"aggregator": "lstm"}},
    },
)
class GraphSAGE(TextEncoder):
    """For each layer: h_v = relu(W [h_v; AGG(sampled neighbours)]), scaled to length 1; then the
    mean over the words.

    ``samples`` has a layer's largest number of neighbours, for as many layers. ``aggregator`` is
    ``mean``, ``pool`` (:class:`Pool`) or ``lstm`` (:class:`Sequence`); each layer has its own. How
    often two words stand near each other does not count. W has no bias.
    """

    view = WordGraphs()

    def __init__(
        self,
        width: int,
        hidden: int = 256,
        samples: tuple = (25, 10),
        aggregator: str = "mean",
        pool_hidden: int = 512,
        lstm_hidden: int = 128,
    ):
        super().__init__()
        if aggregator not in AGGREGATORS:
            raise ValueError(f"graphsage: aggregator={aggregator!r} is none of {', '.join(AGGREGATORS)}")
        self.samples = samples
        widths = [width] + [hidden] * (len(samples) - 1)
        self.aggregators = nn.ModuleList(AGGREGATORS[aggregator](size, pool_hidden, lstm_hidden) for size in widths)
        self.layers = nn.ModuleList(
            nn.Linear(size + aggregated.size, hidden, bias=False)
            for size, aggregated in zip(widths, self.aggregators, strict=True)
        )
        for layer in self.layers:
            nn.init.xavier_uniform_(layer.weight)
        self.size = hidden

    def forward(self, graphs: GraphBatch) -> Tensor:
        states = graphs.vectors.flatten(0, 1)
        for most, aggregate, layer in zip(self.samples, self.aggregators, self.layers, strict=True):
            around = aggregate(states, sampled(graphs, most, self.training))
            states = F.normalize(torch.relu(layer(torch.cat([states, around], dim=1))), dim=1)
        return pool(states.unflatten(0, graphs.mask.shape), graphs.mask, "mean")
