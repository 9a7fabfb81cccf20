"""The mechanism of decomposable attention: align, compare word by word, sum; and no order of words
without the intra part."""

from __future__ import annotations

from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.matching.decomposable import DecomposableAttention
from tests.support.batches import assert_each_alone, random_texts
from tests.support.models import small
from tests.support.oracles import softmax_mean
from tests.support.pairs import dense, dropped, inputs_of, shipped
from tests.support.same import assert_same

WIDTH = 5
FIRST, SECOND = (3, 1, 14), (2, 4, 13)
"""Words of each text of three pairs; 14 words and NULL are farther apart than the distances that
have a bias of their own."""

texts = partial(random_texts, width=WIDTH)


model_of = partial(small, DecomposableAttention, WIDTH, hidden=8)


def two_layers(net: nn.Sequential, vector: Tensor) -> Tensor:
    """Two ReLU layers, by their weights."""
    first, second = (layer for layer in net if isinstance(layer, nn.Linear))
    return dense(second, dense(first, vector).clamp(min=0)).clamp(min=0)


def words_of(model: DecomposableAttention, intra: bool, vectors: Tensor) -> list[Tensor]:
    """NULL and the words of one text, projected and, within a text, joined with what they attend
    to."""
    words = [model.project.weight @ (vector / vector.norm()) for vector in (model.null, *vectors)]
    if not intra:
        return words
    compared = [two_layers(model.within.compare, word) for word in words]
    reach = model.within.reach

    def distance(apart: int) -> Tensor:
        return model.within.distance[apart + reach if abs(apart) <= reach else -1]

    scores = [[compared[i] @ compared[j] + distance(i - j) for j in range(len(words))] for i in range(len(words))]
    return [torch.cat([word, softmax_mean(row, words)]) for word, row in zip(words, scores, strict=True)]


def written_out(model: DecomposableAttention, intra: bool, first: Tensor, second: Tensor) -> Tensor:
    """The vector of one pair, word by word: equations 1 to 5 of the paper."""
    a, b = words_of(model, intra, first), words_of(model, intra, second)
    energy = [[two_layers(model.attend, x) @ two_layers(model.attend, y) for y in b] for x in a]
    beta = [softmax_mean(row, b) for row in energy]
    alpha = [softmax_mean([row[j] for row in energy], a) for j in range(len(b))]
    compared_a = sum(two_layers(model.compare, torch.cat(pair)) for pair in zip(a, beta, strict=True))
    compared_b = sum(two_layers(model.compare, torch.cat(pair)) for pair in zip(b, alpha, strict=True))
    return two_layers(model.aggregate, torch.cat([compared_a, compared_b]))


@pytest.mark.parametrize(("id", "intra"), [("decomposable", False), ("decomposable_intra", True)])
def test_a_batch_of_pairs_is_each_pair_written_out_word_by_word(id, intra):
    """Wrong softmax axes, a mean for the sum, padding in either, a missing NULL word, or an id with
    the other's attention would each show here."""
    model, first, second = shipped(id, WIDTH, hidden=8), texts(FIRST, 1), texts(SECOND, 2)
    result = model(first, second)
    assert result.shape == (3, model.size)
    assert_each_alone(result, partial(written_out, model, intra), first, second, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("net", ["attend", "compare", "aggregate", "within.compare"])
def test_dropout_stands_before_both_layers_of_each_net(net):
    """Half of what either layer is given is zero in training; a net without that over-fits."""
    model = shipped("decomposable_intra", 40, hidden=40, dropout=0.5, stretch=None).train()
    layers = model.get_submodule(net)
    first, second = (layer for layer in layers if isinstance(layer, nn.Linear))
    given, read_first, read_second = inputs_of(layers, first, second)
    words = random_texts((9,), 1, 40)
    for _ in range(20):
        model(words, words)
    assert 0.4 < dropped(given, read_first) < 0.6
    assert 0.4 < dropped([F.linear(x, first.weight, first.bias).relu() for x in read_first], read_second) < 0.6
    for seen in (given, read_first):
        seen.clear()
    model.eval()(words, words)
    assert dropped(given, read_first) == 0


def test_order_of_the_words_counts_only_with_attention_within_a_text():
    first, second = texts((6,), 1), texts((5,), 2)
    shuffled = first._replace(vectors=first.vectors[:, [4, 1, 5, 0, 3, 2]])
    plain, intra = model_of(), model_of(intra=True)
    assert_same(plain(shuffled, second), plain(first, second))
    assert not torch.allclose(intra(shuffled, second), intra(first, second), atol=1e-3)
    with torch.no_grad():
        intra.within.distance.zero_()
    torch.testing.assert_close(intra(shuffled, second), intra(first, second))


def test_words_farther_apart_than_the_reach_share_one_bias():
    within = model_of(intra=True, reach=2).within
    with torch.no_grad():
        within.distance.copy_(torch.tensor([-2.0, -1.0, 0.0, 1.0, 2.0, 9.0]))
    assert within.bias(5)[0].tolist() == [0.0, -1.0, -2.0, 9.0, 9.0]
    assert within.bias(5)[:, 0].tolist() == [0.0, 1.0, 2.0, 9.0, 9.0]


def test_only_the_direction_of_a_word_vector_counts_and_the_projection_has_no_bias():
    model, first, second = model_of(), texts((4,), 1), texts((3,), 2)
    longer = first._replace(vectors=first.vectors * torch.tensor([3.0, 0.5, 20.0, 1.0])[:, None])
    assert_same(model(longer, second), model(first, second))
    assert not F.linear(torch.zeros(WIDTH), *model.project.parameters()).any()


def test_word_vectors_are_fixed_unless_tuning_is_asked_for():
    assert model_of().vectors == "fixed" and model_of(tuned=True).vectors == "tuned"
