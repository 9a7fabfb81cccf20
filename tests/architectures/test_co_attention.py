"""The mechanism of bi-directional attention matching: one trilinear similarity matrix, a softmax in
each direction, each side beside what it attends to."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from tests.support.batches import assert_each_alone, random_texts
from tests.support.oracles import softmax_mean
from tests.support.pairs import bilstm, dense, shipped
from tests.support.same import assert_same

WIDTH = 5
FIRST, SECOND = (4, 1, 6), (2, 5, 3)
"""Words of each text of three pairs."""

texts = partial(random_texts, width=WIDTH)
model_of = partial(shipped, "co_attention", WIDTH, hidden=4)


def similarity(model: torch.nn.Module, one: Tensor, other: Tensor) -> Tensor:
    """V . [h1; h2; h1 * h2] of two states."""
    layer = model.similarity
    v = torch.cat([layer.first.weight[0], layer.second.weight[0], layer.product])
    return v @ torch.cat([one, other, one * other])


def written_out(model: torch.nn.Module, first: Tensor, second: Tensor) -> Tensor:
    """The vector of one pair, state by state."""
    h1, h2 = bilstm(model.encoding, first), bilstm(model.encoding, second)
    matrix = [[similarity(model, one, other) for other in h2] for one in h1]
    u1 = torch.stack([torch.cat([one, softmax_mean(row, h2)]) for one, row in zip(h1, matrix, strict=True)])
    columns = zip(*matrix, strict=True)
    u2 = torch.stack([torch.cat([other, softmax_mean(column, h1)]) for other, column in zip(h2, columns, strict=True)])
    pooled = [part for u in (u1, u2) for part in (u.sum(0) / len(u), u.max(0).values)]
    return dense(model.hidden, torch.cat(pooled)).clamp(min=0)


def test_a_batch_of_pairs_is_each_pair_written_out_state_by_state():
    """A softmax over the wrong axis, padding that is attended to or pooled, a similarity without
    its product, or a side joined with its own states would each show."""
    model, first, second = model_of(), texts(FIRST, 1), texts(SECOND, 2)
    result = model(first, second)
    assert result.shape == (3, 4) and model.size == 4
    assert_each_alone(result, partial(written_out, model), first, second, rtol=1e-4, atol=1e-5)


def test_both_directions_read_one_matrix_of_similarities():
    """A second matrix, of the texts in the other order, would be attention matching twice: V has no
    symmetry that would make the two equal."""
    model, first, second = model_of(), texts(FIRST, 1), texts(SECOND, 2)
    calls = []
    model.similarity.register_forward_pre_hook(lambda module, inputs: calls.append(inputs))
    model(first, second)
    assert len(calls) == 1


def test_one_encoder_reads_both_texts():
    """Two would need twice as many parameters, and the matrix would compare states of two
    spaces."""
    model, text = model_of(), texts((4,), 1)
    seen = []
    model.similarity.register_forward_pre_hook(lambda module, inputs: seen.extend(inputs))
    model(text, text)
    assert_same(*seen)


def test_a_text_of_one_word_is_attended_to_in_full():
    """Whatever the similarities are, its state stands beside each state of the other text."""
    model, first, second = model_of(), texts((1,), 1), texts((5,), 2)
    seen = []
    model.hidden.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    model(first, second)
    state = bilstm(model.encoding, first.vectors[0])[0]
    mean_second, max_second = seen[0][0].chunk(4)[2:]
    assert_same(mean_second[8:], state)
    assert_same(max_second[8:], state)
