"""The mechanism of inner attention: the mean of a text's own states asks which of them to attend
to."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from architectures.attention.inner_attention import InnerAttention
from tests.support.batches import assert_each_alone, mask_of, random_texts
from tests.support.models import small
from tests.support.oracles import lstm, softmax_mean

WIDTH = 4
LENGTHS = (5, 1, 3)

texts = partial(random_texts, LENGTHS, 1, WIDTH)


model_of = partial(small, InnerAttention, WIDTH, hidden=3)


def states_of(model: InnerAttention, vectors: Tensor) -> Tensor:
    """States of the LSTM's two directions over one text, side by side."""
    (left,), (right,) = model.recurrence.forwards, model.recurrence.backwards
    return torch.cat([lstm(left, vectors), lstm(right, vectors.flip(0)).flip(0)], dim=1)


def written_out(model: InnerAttention, vectors: Tensor) -> Tensor:
    """The vector of one text: r_mean, M, alpha and r state by state."""
    states = states_of(model, vectors)
    mean = sum(states) / len(states)
    energies = [model.score.weight[0] @ torch.tanh(model.state.weight @ y + model.mean.weight @ mean) for y in states]
    return softmax_mean(energies, states)


def test_a_text_is_the_attended_mean_of_its_states():
    """The plain mean of the states asks."""
    model, words = model_of(), texts()
    assert_each_alone(model(words), partial(written_out, model), words)


def test_weights_sum_to_one_over_the_words_and_are_not_uniform():
    model, words = model_of(), texts()
    weights = model.weights(model.recurrence(words.vectors, words.mask), words.mask)
    torch.testing.assert_close(weights.sum(1), torch.ones(3))
    assert not weights[~words.mask].any()
    assert weights[0].max() > 1.2 / LENGTHS[0]


def test_states_that_are_alike_get_the_same_weight():
    model = model_of()
    states, mask = torch.randn(1, 1, model.size).expand(2, 4, -1), mask_of([4, 2])
    torch.testing.assert_close(model.weights(states, mask), torch.tensor([[0.25] * 4, [0.5, 0.5, 0.0, 0.0]]))


def test_another_word_changes_how_the_first_two_compare():
    """The text's mean asks: attention that scored each state alone would keep the ratio of the
    weights of two states."""
    model, mask = model_of(), mask_of([3])
    states = torch.randn(1, 3, model.size)
    other = states.clone()
    other[:, 2] = torch.randn(model.size) * 3
    before, after = model.weights(states, mask)[0], model.weights(other, mask)[0]
    assert (before[0] / before[1] / (after[0] / after[1]) - 1).abs() > 0.01


def test_word_vectors_and_the_text_vector_are_dropped_in_training():
    """Each at its own place: with all word vectors dropped the states are those of zeros, and half
    of the numbers of r are zero."""
    model, words = model_of(hidden=200, dropout=0.5).train(), texts()
    torch.manual_seed(0)
    assert 0.4 < (model(words) == 0).float().mean() < 0.6
    seen: list[Tensor] = []
    model.recurrence.register_forward_hook(lambda module, inputs, output: seen.append(inputs[0]))
    model(words._replace(vectors=torch.ones(3, 5, WIDTH)))
    assert 0.3 < (seen[0] == 0).float().mean() < 0.7 and seen[0].max() == 2
