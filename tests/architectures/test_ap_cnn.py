"""The mechanism of the attentive pooling CNN: linear windows of words, pooled by attention to the
other text, cosine, worst negative."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import Tensor

from architectures.matching.ap_cnn import AttentivePoolingCNN
from tests.support.word_batches import random_texts

WIDTH, FILTERS, WINDOW = 3, 4, 3
FIRST, SECOND = (3, 1, 5), (2, 4, 1)
"""Words of each text of three pairs, some of them shorter than a window."""

texts = partial(random_texts, width=WIDTH)


def model_of(**options) -> AttentivePoolingCNN:
    torch.manual_seed(0)
    return AttentivePoolingCNN(WIDTH, filters=FILTERS, window=WINDOW, **options).eval()


def convolved(model: AttentivePoolingCNN, words: Tensor) -> Tensor:
    """W [x_(t-1); x_t; x_(t+1)] + b for each word, with zero vectors around the text."""
    weight, bias = model.convolution.weight, model.convolution.bias
    zero = torch.zeros(WIDTH)
    padded = [zero, *words, zero]
    return torch.stack([sum(weight[:, :, k] @ padded[t + k] for k in range(WINDOW)) + bias for t in range(len(words))])


def test_a_score_is_the_cosine_of_what_attention_pools_from_the_convolved_words():
    """Against each pair alone and without padding; a tanh after the convolution, max pooling or own
    weights per text would differ."""
    model, first, second = model_of(), texts(FIRST, 1), texts(SECOND, 2)
    found = model(first, second)
    assert found.shape == (3,) and found.std() > 0
    for row, (m, n) in enumerate(zip(FIRST, SECOND, strict=True)):
        q, a = convolved(model, first.vectors[row, :m]), convolved(model, second.vectors[row, :n])
        compared = torch.tanh(q @ model.pool.similarity @ a.T)
        u, v = compared.amax(1).softmax(0) @ q, compared.amax(0).softmax(0) @ a
        torch.testing.assert_close(found[row], u @ v / (u.norm() * v.norm()))


def test_the_question_decides_which_words_of_the_answer_count():
    """Without attention the answer's vector would be the same beside every question."""
    model, answers = model_of(), texts((4, 4), 2)
    answers = answers._replace(vectors=answers.vectors[:1].expand(2, -1, -1))
    questions = texts((3, 3), 1)
    _, weights = model.pool.weights(model.states(questions), questions.mask, model.states(answers), answers.mask)
    assert (weights[0] - weights[1]).abs().max() > 0.01


def test_the_loss_is_the_hinge_against_the_best_scored_wrong_candidate_of_the_question():
    scores, labels, groups = torch.tensor([0.4, 0.1, 0.3, 0.9]), torch.tensor([1, 0, 0, 0]), torch.tensor([0, 0, 0, 1])
    assert model_of().rank_loss(scores, labels, groups).item() == pytest.approx(0.5 - 0.4 + 0.3)
    assert model_of(margin=0.2).rank_loss(scores, labels, groups).item() == pytest.approx(0.2 - 0.4 + 0.3)


def test_an_even_window_is_refused_by_name():
    with pytest.raises(ValueError, match="ap_cnn.window=4: must be odd"):
        AttentivePoolingCNN(WIDTH, window=4)
