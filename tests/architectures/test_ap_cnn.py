"""The mechanism of the attentive pooling CNN: linear windows of words, pooled by attention to the
other text, cosine, worst negative."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import Tensor

from architectures.matching.ap_cnn import AttentivePoolingCNN
from tests.support.batches import assert_each_alone, random_texts
from tests.support.models import small
from tests.support.oracles import attentively_pooled, convolution, cosine

WIDTH, FILTERS, WINDOW = 3, 4, 3
FIRST, SECOND = (3, 1, 5), (2, 4, 1)
"""Words of each text of three pairs, some of them shorter than a window."""

texts = partial(random_texts, width=WIDTH)


model_of = partial(small, AttentivePoolingCNN, WIDTH, filters=FILTERS, window=WINDOW)


def written_out(model: AttentivePoolingCNN, first: Tensor, second: Tensor) -> Tensor:
    """The score of one pair, each word convolved with its neighbours and nothing else."""
    states = (torch.stack(convolution(model.convolution, text, 1, 1)) for text in (first, second))
    return cosine(*attentively_pooled(model.pool.similarity, *states))


def test_a_score_is_the_cosine_of_what_attention_pools_from_the_convolved_words():
    """Against each pair alone and without padding; a tanh after the convolution, max pooling or own
    weights per text would differ."""
    model, first, second = model_of(), texts(FIRST, 1), texts(SECOND, 2)
    assert_each_alone(model(first, second), partial(written_out, model), first, second)


def test_the_question_decides_which_words_of_the_answer_count():
    """Without attention the answer's vector would be the same beside every question."""
    model, answers = model_of(), texts((4, 4), 2)
    answers = answers._replace(vectors=answers.vectors[:1].expand(2, -1, -1))
    questions = texts((3, 3), 1)
    _, weights = model.pool.weights(model.states(questions), questions.mask, model.states(answers), answers.mask)
    assert (weights[0] - weights[1]).abs().max() > 0.01


def test_the_loss_is_the_hinge_against_the_best_scored_wrong_candidate_of_the_question():
    """Whichever of them is drawn first."""
    scores, labels, groups = torch.tensor([0.4, 0.1, 0.3, 0.9]), torch.tensor([1, 0, 0, 0]), torch.tensor([0, 0, 0, 1])
    model = model_of()
    for _ in range(10):
        assert model.rank_loss(scores, labels, groups).item() == pytest.approx(0.5 - 0.4 + 0.3)
    assert model_of(margin=0.2).rank_loss(scores, labels, groups).item() == pytest.approx(0.2 - 0.4 + 0.3)


def test_fewer_negatives_than_wrong_candidates_are_drawn_anew_each_time():
    """With one drawn candidate the loss is that of one of them, and each comes up."""
    scores, labels, groups = torch.tensor([0.5, 0.4, 0.2]), torch.tensor([1, 0, 0]), torch.zeros(3)
    model = model_of(negatives=1, margin=0.2)
    found = {round(model.rank_loss(scores, labels, groups).item(), 4) for _ in range(30)}
    assert found == {0.1, 0.0}


def test_an_even_window_is_refused_by_name():
    with pytest.raises(ValueError, match="ap_cnn.window=4: must be odd"):
        AttentivePoolingCNN(WIDTH, window=4)
