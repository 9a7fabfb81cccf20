"""The mechanism of GraphSAGE: a sample of the neighbours is aggregated in one of three ways and
joined with the word's own state."""

from __future__ import annotations

from collections import Counter
from functools import partial
from itertools import pairwise
from zlib import crc32

import pytest
import torch
from torch import Tensor

from architectures.graph.graphsage import GraphSAGE, Mean, Pool, Sequence, sampled
from harness.registry import entry
from harness.running.grid import hyperparameters
from harness.views.graph import GraphBatch, WordGraphs
from tests.support.graphs import TEXTS, fitted, graphs_of, matrix_of, renumbered
from tests.support.models import small
from tests.support.oracles import lstm
from tests.support.same import assert_same

WIDTH, REACH = 5, 3
STAR = "m a m b m c m d m e m"

model_of = partial(small, GraphSAGE, WIDTH, hidden=6, pool_hidden=7, lstm_hidden=4)


def batch_of(*texts: str) -> GraphBatch:
    return graphs_of(fitted(WordGraphs(min_count=1), *TEXTS, STAR), *texts, width=WIDTH)


def chance(neighbour: str, word: str) -> int:
    """The place of a neighbour among a word's outside of training."""
    a, b = (crc32(each.encode()) >> 1 for each in (neighbour, word))
    return (a * 48271 + b * 69621) % (2**31 - 1)


def aggregated(layer: Mean | Pool | Sequence, states: Tensor) -> Tensor:
    """What a word hears from neighbours with these states, in their order."""
    if not len(states):
        return torch.zeros(layer.size)
    if isinstance(layer, Mean):
        return sum(states) / len(states)
    if isinstance(layer, Pool):
        return (states @ layer.layer.weight.T + layer.layer.bias).clamp(min=0).amax(0)
    return lstm(layer.lstm, states)[-1]


def written_out(model: GraphSAGE, text: str, vectors: Tensor) -> Tensor:
    """The vector of one text, word by word."""
    words, counts, states = list(dict.fromkeys(text.split())), matrix_of(text, REACH), vectors
    for most, aggregator, layer in zip(model.samples, model.aggregators, model.layers, strict=True):
        rows = []
        for i, word in enumerate(words):
            near = [j for j in range(len(words)) if counts[i, j]]
            near = sorted(near, key=lambda j, word=word: chance(words[j], word))[:most]
            joined = torch.cat([states[i], aggregated(aggregator, states[near])])
            row = (layer.weight @ joined).clamp(min=0)
            rows.append(row / row.square().sum().sqrt().clamp(min=1e-12))
        states = torch.stack(rows)
    return states.mean(0)


@pytest.mark.parametrize("samples", [(25, 10), (2, 1), (3,)], ids=str)
@pytest.mark.parametrize("aggregator", ["mean", "pool", "lstm"])
def test_each_text_of_a_batch_is_aggregated_word_by_word(aggregator, samples):
    """Where fewer neighbours are than samples all count; a word without any hears zeros."""
    model, texts = model_of(aggregator=aggregator, samples=samples), (*TEXTS, STAR)
    batch = batch_of(*texts)
    result = model(batch)
    for row, text, vectors, mask in zip(result, texts, batch.vectors, batch.mask, strict=True):
        assert_same(row, written_out(model, text, vectors[mask]))
    assert result.std() > 0.01


@pytest.mark.parametrize("aggregator", ["mean", "pool", "lstm"])
def test_a_batch_of_single_words_has_no_neighbours_at_all(aggregator):
    model = model_of(aggregator=aggregator)
    result, others = model(batch_of("a", "b")), model(batch_of("a", "b c"))
    assert_same(result[0], others[0])
    assert (result[0] != result[1]).any()


@pytest.mark.parametrize("aggregator", ["mean", "pool", "lstm"])
def test_the_order_of_the_nodes_changes_nothing(aggregator):
    """Not even an LSTM's: its order follows from the words."""
    model, batch = model_of(aggregator=aggregator, samples=(2, 2)), batch_of(*TEXTS, STAR)
    assert_same(model(renumbered(batch)), model(batch))


def test_a_sample_in_training_is_new_each_time_and_each_neighbour_as_likely():
    """Two of the five neighbours of a word, none twice, in either order; a word with one has
    it."""
    batch = batch_of(STAR)._replace(vectors=torch.empty(0))
    torch.manual_seed(0)
    drawn: Counter = Counter()
    for _ in range(600):
        found = sampled(batch, 2, training=True)
        assert found.counts[0] == 2 and (found.targets.diff() >= 0).all()
        mine = found.targets == 0
        assert found.ranks[mine].tolist() == [0, 1]
        drawn[tuple(found.sources[mine].tolist())] += 1
        edges = set(zip(batch.sources.tolist(), batch.targets.tolist(), strict=True))
        assert {*zip(found.sources.tolist(), found.targets.tolist(), strict=True)} <= edges
    assert len(drawn) == 20 and all(a != b for a, b in drawn)
    assert min(drawn.values()) > 10 and max(drawn.values()) < 60


def test_only_in_training_does_chance_decide():
    model, batch = model_of(samples=(2, 1)), batch_of(STAR)
    assert torch.equal(model(batch), model(batch))
    model.train()
    assert any(not torch.equal(a, b) for a, b in pairwise(model(batch) for _ in range(5)))


def test_each_id_has_its_aggregator_and_the_sizes_of_the_paper():
    """A row of the leaderboard under another's name would compare nothing."""
    for id, aggregator, size in (
        ("graphsage", Mean, 300),
        ("graphsage_pool", Pool, 512),
        ("graphsage_lstm", Sequence, 128),
    ):
        model = GraphSAGE(300, **hyperparameters(entry("architectures", id)))
        assert [type(layer) for layer in model.aggregators] == [aggregator] * 2
        assert model.layers[0].weight.shape == (256, 300 + size) and model.layers[0].bias is None
        assert model.layers[1].weight.shape == (256, 256 + model.aggregators[1].size)
        assert tuple(model.samples) == (25, 10) and model.size == 256 and model.view == WordGraphs(reach=3)
        limit = (6 / (556 + size)) ** 0.5
        assert 0.9 * limit < model.layers[0].weight.abs().max() <= limit


def test_an_unknown_aggregator_is_named():
    with pytest.raises(ValueError, match="aggregator='sum' is none of mean, pool, lstm"):
        GraphSAGE(5, aggregator="sum")
