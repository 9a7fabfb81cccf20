"""The mechanism of the multiway attention network: four attentions, each gated and aggregated on
its own, mixed, pooled twice."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import Tensor

from architectures.matching.mwan import MultiwayAttention
from tests.support.batches import assert_each_alone, mask_of, random_texts
from tests.support.models import small
from tests.support.oracles import additive, softmax_mean
from tests.support.pairs import bigru, dense, dropped, inputs_of
from tests.support.same import assert_same

WIDTH = 5
QUESTION, PASSAGE = (4, 1, 5), (2, 5, 3)
"""Words of each text of three pairs."""

texts = partial(random_texts, width=WIDTH)


model_of = partial(small, MultiwayAttention, WIDTH, hidden=4)


def written_out(model: MultiwayAttention, question: Tensor, passage: Tensor) -> Tensor:
    """The vector of one pair, score by score."""
    q, p = bigru(model.encoding, question), bigru(model.encoding, passage)
    concat, bilinear, dot, minus = model.attentions
    scores = (
        lambda p_t, q_j: additive(concat, p_t, q_j),
        lambda p_t, q_j: q_j @ bilinear.weight.weight @ p_t,
        lambda p_t, q_j: dot.score.weight[0] @ torch.tanh(dot.weight.weight @ (q_j * p_t)),
        lambda p_t, q_j: minus.score.weight[0] @ torch.tanh(minus.weight.weight @ (q_j - p_t)),
    )
    ways = []
    for score, aggregation in zip(scores, model.aggregations, strict=True):
        joined = [torch.cat([softmax_mean([score(p_t, q_j) for q_j in q], q), p_t]) for p_t in p]
        gated = [torch.sigmoid(aggregation.gate.weight @ x) * x for x in joined]
        ways.append(bigru(aggregation.recurrence, gated))
    mix, pooling = model.mix, model.question
    mixed = [
        softmax_mean([additive(mix.attention, mix.query[0, 0], h) for h in word], word)
        for word in zip(*ways, strict=True)
    ]
    states = bigru(model.recurrence, mixed)
    asked = softmax_mean([additive(pooling.attention, pooling.query[0, 0], h) for h in q], q)
    answered = softmax_mean([additive(model.passage, asked, h) for h in states], states)
    return dense(model.output, answered).clamp(min=0)


def test_a_batch_of_pairs_is_each_pair_written_out_score_by_score():
    """A wrong score, a softmax over the wrong axis, a shared aggregation, a missing gate,
    attended padding, one direction or another cell would show here."""
    model, first, second = model_of(), texts(QUESTION, 1), texts(PASSAGE, 2)
    result = model(first, second)
    assert result.shape == (3, model.size)
    assert_each_alone(result, partial(written_out, model), first, second, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("layer", "below"),
    [("encoding", None), ("attentions.1.weight", "encoding"), ("recurrence", "mix"), ("output", "passage")],
)
def test_dropout_stands_before_each_layer(layer, below):
    """Half of what a layer reads is zero in training: the words, the states of the encoder, the
    mixed words and the passage's vector. Without it the model over-fits small tasks."""
    model, words = MultiwayAttention(40, hidden=20, dropout=0.5).train(), random_texts((9,), 1, 40)
    given = []
    if below:
        model.get_submodule(below).register_forward_hook(lambda _, __, output: given.append(output))
    read = inputs_of(model.get_submodule(layer))[0]
    model(words, words)
    if below is None:
        given = [words.vectors] * 2
    if below == "encoding":  # the attentions read the passage, which is encoded second
        given = given[1:]
    assert 0.4 < dropped(given, read) < 0.6


def test_the_question_is_dropped_out_as_the_passage_is():
    """The learned query pools what the encoder's dropout leaves of the question."""
    model, words = MultiwayAttention(40, hidden=20, dropout=0.5).train(), random_texts((9,), 1, 40)
    given = []
    model.encoding.register_forward_hook(lambda _, __, output: given.append(output))
    read = inputs_of(model.question)[0]
    model(words, words)
    assert 0.4 < dropped(given[:1], read) < 0.6


def test_the_gate_closes_single_coordinates_of_both_the_attended_and_the_own_word():
    """A gate of one number for a whole position could not keep one coordinate and drop another."""
    aggregation = model_of().aggregations[0]
    seen = []
    aggregation.recurrence.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    attended, own, mask = torch.ones(1, 2, 8), torch.ones(1, 2, 8), mask_of([2])
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
    assert_same(found[:, [0, 2]], other[:, [0, 2]])
    assert (found >= aggregated.amin(2) - 1e-6).all() and (found <= aggregated.amax(2) + 1e-6).all()
