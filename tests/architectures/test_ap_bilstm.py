"""The mechanism of the attentive pooling BiLSTM: one BiLSTM for both texts, pooled by attention to
the other text, cosine."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import Tensor, nn

from architectures.matching.ap_bilstm import AttentivePoolingBiLSTM
from tests.support.word_batches import random_texts

WIDTH, HIDDEN = 3, 4
FIRST, SECOND = (3, 1, 5), (2, 4, 1)
"""Words of each text of three pairs."""

texts = partial(random_texts, width=WIDTH)


def model_of() -> AttentivePoolingBiLSTM:
    torch.manual_seed(0)
    return AttentivePoolingBiLSTM(WIDTH, hidden=HIDDEN).eval()


def bilstm(model: AttentivePoolingBiLSTM, words: Tensor) -> Tensor:
    """States of torch's own bidirectional LSTM with the model's weights."""
    lstm = nn.LSTM(WIDTH, HIDDEN, batch_first=True, bidirectional=True)
    with torch.no_grad():
        for name in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"):
            getattr(lstm, name).copy_(getattr(model.recurrence.forwards[0], name))
            getattr(lstm, name + "_reverse").copy_(getattr(model.recurrence.backwards[0], name))
    return lstm(words[None])[0][0]


def test_a_score_is_the_cosine_of_what_attention_pools_from_the_states():
    """Against each pair alone and without padding; mean or max pooling, or a second LSTM for the
    answers, would differ."""
    model, first, second = model_of(), texts(FIRST, 1), texts(SECOND, 2)
    found = model(first, second)
    assert found.shape == (3,) and found.std() > 0
    for row, (m, n) in enumerate(zip(FIRST, SECOND, strict=True)):
        q, a = bilstm(model, first.vectors[row, :m]), bilstm(model, second.vectors[row, :n])
        compared = torch.tanh(q @ model.pool.similarity @ a.T)
        u, v = compared.amax(1).softmax(0) @ q, compared.amax(0).softmax(0) @ a
        torch.testing.assert_close(found[row], u @ v / (u.norm() * v.norm()))


def test_the_question_decides_which_words_of_the_answer_count():
    """Without attention the answer's vector would be the same beside every question."""
    model, answers, questions = model_of(), texts((4, 4), 2), texts((3, 3), 1)
    answers = answers._replace(vectors=answers.vectors[:1].expand(2, -1, -1))
    with torch.no_grad():
        model.pool.similarity.mul_(20)
    asked, answered = (model.recurrence(text.vectors, text.mask) for text in (questions, answers))
    _, weights = model.pool.weights(asked, questions.mask, answered, answers.mask)
    assert (weights[0] - weights[1]).abs().max() > 0.01


def test_the_loss_is_the_hinge_against_the_best_scored_wrong_candidate_of_the_question():
    scores, labels, groups = torch.tensor([0.4, 0.1, 0.3, 0.9]), torch.tensor([1, 0, 0, 0]), torch.tensor([0, 0, 0, 1])
    assert model_of().rank_loss(scores, labels, groups).item() == pytest.approx(0.2 - 0.4 + 0.3)
