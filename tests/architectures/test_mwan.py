"""The mechanism of the multiway attention network: four attentions, each gated and aggregated on
its own, mixed, pooled twice."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from architectures.matching.mwan import MultiwayAttention
from harness.layers.attention import AdditiveAttention
from tests.support.batches import random_texts

WIDTH = 5
QUESTION, PASSAGE = (4, 1, 5), (2, 5, 3)
"""Words of each text of three pairs."""

texts = partial(random_texts, width=WIDTH)


def model_of() -> MultiwayAttention:
    """A model with weights so large that attention is far from uniform."""
    torch.manual_seed(0)
    model = MultiwayAttention(WIDTH, hidden=4).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(3)
    return model


def additive(layer: AdditiveAttention, query: Tensor, key: Tensor) -> Tensor:
    return layer.score.weight[0] @ torch.tanh(layer.query.weight @ query + layer.query.bias + layer.key.weight @ key)


def attended(score: Callable[[Tensor], Tensor], keys: list[Tensor]) -> Tensor:
    """The keys' mean under the softmax of their scores."""
    weights = [score(key).exp() for key in keys]
    return sum(w * key for w, key in zip(weights, keys, strict=True)) / sum(weights)


def states_of(layer, vectors: Tensor) -> Tensor:
    """States (T, size) of one text without padding."""
    return layer(vectors[None], torch.ones(1, len(vectors), dtype=torch.bool))[0]


def written_out(model: MultiwayAttention, question: Tensor, passage: Tensor) -> Tensor:
    """The vector of one pair, score by score."""
    q, p = list(states_of(model.encoding, question)), list(states_of(model.encoding, passage))
    concat, bilinear, dot, minus = model.attentions
    scores = (
        lambda p_t, q_j: additive(concat, p_t, q_j),
        lambda p_t, q_j: q_j @ bilinear.weight.weight @ p_t,
        lambda p_t, q_j: dot.score.weight[0] @ torch.tanh(dot.weight.weight @ (q_j * p_t)),
        lambda p_t, q_j: minus.score.weight[0] @ torch.tanh(minus.weight.weight @ (q_j - p_t)),
    )
    ways = []
    for score, aggregation in zip(scores, model.aggregations, strict=True):
        joined = [torch.cat([attended(lambda q_j, p_t=p_t, score=score: score(p_t, q_j), q), p_t]) for p_t in p]
        gated = [torch.sigmoid(aggregation.gate.weight @ x) * x for x in joined]
        ways.append(states_of(aggregation.recurrence, torch.stack(gated)))
    mix, pooling = model.mix, model.question
    mixed = [
        attended(lambda h: additive(mix.attention, mix.query[0, 0], h), [way[t] for way in ways]) for t in range(len(p))
    ]
    states = states_of(model.recurrence, torch.stack(mixed))
    asked = attended(lambda h: additive(pooling.attention, pooling.query[0, 0], h), q)
    answered = attended(lambda h: additive(model.passage, asked, h), list(states))
    return model.output(answered).clamp(min=0)


def test_a_batch_of_pairs_is_each_pair_written_out_score_by_score():
    """A wrong score, a softmax over the wrong axis, a shared aggregation, a missing gate or
    attended padding would show here."""
    model, first, second = model_of(), texts(QUESTION, 1), texts(PASSAGE, 2)
    found = model(first, second)
    assert found.shape == (3, model.size) and found.any()
    for row, (m, n) in enumerate(zip(QUESTION, PASSAGE, strict=True)):
        torch.testing.assert_close(
            found[row], written_out(model, first.vectors[row, :m], second.vectors[row, :n]), rtol=1e-4, atol=1e-5
        )


def test_the_gate_closes_single_coordinates_of_both_the_attended_and_the_own_word():
    """A gate of one number for a whole position could not keep one coordinate and drop another."""
    aggregation = model_of().aggregations[0]
    seen = []
    aggregation.recurrence.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    attended, own, mask = torch.ones(1, 2, 8), torch.ones(1, 2, 8), torch.ones(1, 2, dtype=torch.bool)
    with torch.no_grad():
        aggregation.gate.weight.zero_()
        aggregation.gate.weight[3], aggregation.gate.weight[12] = -10.0, -10.0
    aggregation(attended, own, mask)
    expected = torch.full((16,), 0.5)
    expected[[3, 12]] = 0.0
    torch.testing.assert_close(seen[0][0, 0], expected)


def test_mixing_weighs_the_four_ways_of_each_word_by_itself():
    """Another word's aggregations must not change how a word's are mixed."""
    model, aggregated = model_of(), torch.randn(1, 3, 4, 8, generator=torch.Generator().manual_seed(1))
    changed = aggregated.clone()
    changed[:, 1] = 0
    found, other = model.mixed(aggregated), model.mixed(changed)
    torch.testing.assert_close(found[:, [0, 2]], other[:, [0, 2]])
    assert (found >= aggregated.amin(2) - 1e-6).all() and (found <= aggregated.amax(2) + 1e-6).all()
