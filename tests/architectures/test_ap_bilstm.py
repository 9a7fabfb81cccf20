"""The mechanism of the attentive pooling BiLSTM: one BiLSTM for both texts, pooled by attention to
the other text, cosine."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import Tensor

from architectures.matching.ap_bilstm import AttentivePoolingBiLSTM
from tests.support.batches import assert_each_alone, random_texts
from tests.support.models import small
from tests.support.oracles import attentively_pooled, cosine
from tests.support.pairs import bilstm

WIDTH, HIDDEN = 3, 4
FIRST, SECOND = (3, 1, 5), (2, 4, 1)
"""Words of each text of three pairs."""

texts = partial(random_texts, width=WIDTH)


model_of = partial(small, AttentivePoolingBiLSTM, WIDTH, hidden=HIDDEN)


def written_out(model: AttentivePoolingBiLSTM, first: Tensor, second: Tensor) -> Tensor:
    """The score of one pair."""
    states = (bilstm(model.recurrence, text) for text in (first, second))
    return cosine(*attentively_pooled(model.pool.similarity, *states))


def test_a_score_is_the_cosine_of_what_attention_pools_from_the_states():
    """Against each pair alone and without padding; mean or max pooling, or a second LSTM for the
    answers, would differ."""
    model, first, second = model_of(), texts(FIRST, 1), texts(SECOND, 2)
    assert_each_alone(model(first, second), partial(written_out, model), first, second)


def test_the_question_decides_which_words_of_the_answer_count():
    """Without attention the answer's vector would be the same beside every question."""
    model, answers, questions = model_of(), texts((4, 4), 2), texts((3, 3), 1)
    answers = answers._replace(vectors=answers.vectors[:1].expand(2, -1, -1))
    asked, answered = (model.recurrence(text.vectors, text.mask) for text in (questions, answers))
    _, weights = model.pool.weights(asked, questions.mask, answered, answers.mask)
    assert (weights[0] - weights[1]).abs().max() > 0.01


def test_the_loss_is_the_hinge_against_the_best_scored_wrong_candidate_of_the_question():
    """Whichever of them is drawn first."""
    scores, labels, groups = torch.tensor([0.4, 0.1, 0.3, 0.9]), torch.tensor([1, 0, 0, 0]), torch.tensor([0, 0, 0, 1])
    model = model_of()
    for _ in range(10):
        assert model.rank_loss(scores, labels, groups).item() == pytest.approx(0.2 - 0.4 + 0.3)


def test_fewer_negatives_than_wrong_candidates_are_drawn_anew_each_time():
    """With one drawn candidate the loss is that of one of them, and each comes up."""
    scores, labels, groups = torch.tensor([0.5, 0.4, 0.2]), torch.tensor([1, 0, 0]), torch.zeros(3)
    model = model_of(negatives=1, margin=0.2)
    found = {round(model.rank_loss(scores, labels, groups).item(), 4) for _ in range(30)}
    assert found == {0.1, 0.0}
