"""The mechanism of the text-level GNN: weights of pairs of words that all texts share, and a
maximum of messages for each feature."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from architectures.graph.text_level_gnn import TextLevelGNN
from harness.views.graph import GraphBatch, WordPairGraphs
from tests.support.graphs import TEXTS, fitted, graphs_of, matrix_of, renumbered
from tests.support.models import small
from tests.support.same import assert_same

WIDTH, REACH = 5, 2
NEW = "b a z a f e"
"""A text with pairs that training never showed, and a word of its own."""

view = fitted(WordPairGraphs(min_count=1, reach=REACH), *TEXTS)
graphs = partial(graphs_of, view, width=WIDTH)


def model_of(**settings) -> TextLevelGNN:
    """A model whose weights of pairs and words are far from equal, some of them negative."""
    model = small(TextLevelGNN, WIDTH, view, **settings)
    with torch.no_grad():
        for table in (model.edges, model.loops, model.keep):
            table.weight.add_(2 * torch.randn_like(table.weight))
    return model


def counted() -> dict[tuple[str, str], int]:
    """How often two words are neighbours in training."""
    counts: dict[tuple[str, str], int] = {}
    for text in TEXTS:
        words = list(dict.fromkeys(text.split()))
        for i, row in enumerate(matrix_of(text, REACH).tolist()):
            for j, count in enumerate(row):
                counts[words[i], words[j]] = counts.get((words[i], words[j]), 0) + int(count)
    return counts


def weights_of(model: TextLevelGNN, batch: GraphBatch, *texts: str) -> dict[tuple[str, str], Tensor]:
    """The weight of each edge of a batch of texts, by its words; the same pair must have the same
    one everywhere."""
    found: dict[tuple[str, str], Tensor] = {}
    nodes = batch.mask.shape[1]
    for s, t, pair in zip(batch.sources.tolist(), batch.targets.tolist(), batch.pairs.tolist(), strict=True):
        words = list(dict.fromkeys(texts[t // nodes].split()))
        ends, weight = (words[s % nodes], words[t % nodes]), model.edges.weight[pair, 0]
        assert found.setdefault(ends, weight) == weight
    return found


def written_out(model: TextLevelGNN, edges: dict, text: str, ids: Tensor, vectors: Tensor) -> Tensor:
    """The sum of the new states of one text, word by word and feature by feature."""
    words, near = list(dict.fromkeys(text.split())), matrix_of(text, REACH).tolist()
    loops, keeps = (table.weight[ids, 0] for table in (model.loops, model.keep))
    total = [torch.zeros(())] * WIDTH
    for n, word in enumerate(words):
        for feature in range(WIDTH):
            messages = [loops[n] * vectors[n][feature]]
            messages += [edges[words[a], word] * vectors[a][feature] for a in range(len(words)) if near[n][a]]
            total[feature] = total[feature] + (1 - keeps[n]) * max(messages) + keeps[n] * vectors[n][feature]
    return torch.stack(total)


def test_each_text_of_a_batch_is_the_sum_of_its_words_new_states():
    """Also where a word has no neighbours, and where all messages of a feature are negative."""
    model, texts = model_of(), (*TEXTS, NEW)
    batch = graphs(*texts)
    edges = weights_of(model, batch, *texts)
    result = model(batch)
    for row, text, ids, vectors, mask in zip(result, texts, batch.ids, batch.vectors, batch.mask, strict=True):
        expected = written_out(model, edges, text, ids[mask], vectors[mask])
        assert_same(row, expected.clamp(min=0))
    assert (result == 0).any() and (result > 0).any()


def test_a_pair_has_one_weight_in_all_texts_and_rare_pairs_share_one():
    """Each direction has its own. Pairs of a new text that training showed less than twice are the
    public edge."""
    model, texts, counts = model_of(), (*TEXTS, NEW), counted()
    edges = weights_of(model, graphs(*texts), *texts)
    public = model.edges.weight[0].item()
    rare = {ends for ends in edges if counts.get(ends, 0) < 2}
    assert len(rare) > 4 and {ends for ends, weight in edges.items() if weight == public} == rare
    common = [weight for ends, weight in edges.items() if ends not in rare]
    assert len(common) > 4 and len(set(common)) == len(common) == view.pairs - 1


def test_the_order_of_the_nodes_changes_nothing():
    model, batch = model_of(), graphs(*TEXTS)
    assert_same(model(renumbered(batch)), model(batch))


def test_weights_start_at_one_and_shares_between_zero_and_one():
    model = TextLevelGNN(300, view)
    assert model.view == WordPairGraphs(reach=3, min_pairs=2) and model.size == 300
    assert (model.edges.weight == 1).all() and (model.loops.weight == 1).all()
    assert 0 <= model.keep.weight.min() < 0.4 < 0.6 < model.keep.weight.max() <= 1
    assert model.edges.weight.shape == (view.pairs, 1) and model.keep.weight.shape == (view.width, 1)


def test_a_vector_that_is_kept_whole_is_summed_as_it_is():
    """A share of one leaves the word's own vector, a share of zero the messages alone."""
    model, batch = model_of(), graphs("a b c")
    with torch.no_grad():
        model.keep.weight.fill_(1.0)
    torch.testing.assert_close(model(batch)[0], batch.vectors[0].sum(0).clamp(min=0))


def test_half_of_the_sum_is_dropped_in_training():
    model, batch = model_of(), graphs(*TEXTS * 25)
    whole, dropped = model(batch), model.train()(batch)
    kept = dropped != 0
    assert_same(dropped[kept], 2 * whole[kept])
    assert 0.4 < kept[whole > 0].float().mean() < 0.6
