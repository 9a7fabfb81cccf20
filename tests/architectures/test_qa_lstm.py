"""The mechanism of the QA-LSTM family: shared bidirectional LSTM, pooling, convolutions above or
below it, attention on the answer."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import Tensor

from architectures.siamese.qa_lstm import QALSTM, Windows
from tests.support.batches import assert_each_alone, random_texts
from tests.support.models import small
from tests.support.oracles import additive, convolution, cosine, recurrent

WIDTH, HIDDEN, FILTERS = 3, 2, 5
FIRST, SECOND = (1, 4, 2), (5, 1, 3)
SETTINGS = [
    {},
    {"pooling": "mean"},
    {"pooling": "ends"},
    {"convolution": "states"},
    {"convolution": "states", "window": 3},
    {"convolution": "words"},
    {"attentive": True},
    {"attentive": True, "pooling": "mean"},
    {"attentive": True, "convolution": "states"},
]

texts = partial(random_texts, width=WIDTH)


model_of = partial(small, QALSTM, WIDTH, hidden=HIDDEN, filters=FILTERS)


def filtered(windows: Windows, vectors: list[Tensor]) -> list[Tensor]:
    """tanh filters over each window, zeros beyond the ends."""
    left, right = divmod(windows.convolution.kernel_size[0] - 1, 2)
    return [torch.tanh(value) for value in convolution(windows.convolution, vectors, left, left + right)]


def written_out(model: QALSTM, first: Tensor, second: Tensor) -> Tensor:
    """The score of one pair, word by word."""

    def states(vectors: Tensor) -> list[Tensor]:
        words = list(vectors)
        return list(recurrent(model.recurrence, filtered(model.below, words) if model.below else words))

    def pooled(states: list[Tensor]) -> Tensor:
        states = filtered(model.above, states) if model.above else states
        if model.pooling == "ends":
            return torch.cat([states[-1][:HIDDEN], states[0][HIDDEN:]])
        return torch.stack(states).amax(0) if model.pooling == "max" else sum(states) / len(states)

    question, answer = pooled(states(first)), states(second)
    if model.attention:
        scores = [additive(model.attention, question, h) for h in answer]
        total = sum(score.exp() for score in scores)
        answer = [h * score.exp() / total for h, score in zip(answer, scores, strict=True)]
    return cosine(question, pooled(answer))


@pytest.mark.parametrize("options", SETTINGS, ids=str)
def test_a_batch_of_pairs_is_each_pair_written_out_word_by_word(options):
    """Texts of one word, longer questions and longer answers beside one another: padding in any
    step would show."""
    model, first, second = model_of(**options), texts(FIRST, 1), texts(SECOND, 2)
    assert_each_alone(model(first, second), partial(written_out, model), first, second, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("options", [s for s in SETTINGS if "attentive" not in s], ids=str)
def test_question_and_answer_are_read_by_the_same_weights(options):
    """So a text is its own nearest; two LSTMs would give it another vector as an answer."""
    text = texts(FIRST, 1)
    torch.testing.assert_close(model_of(**options)(text, text), torch.ones(3))


def test_attention_acts_on_the_answer_and_follows_the_question():
    model, first, second = model_of(attentive=True), texts((3, 3), 1), texts((4, 4), 2)
    asked = {}
    model.attention.register_forward_hook(lambda *a: pytest.fail("the attention's own sum is not what the paper pools"))
    weights_of = model.attention.weights
    model.attention.weights = lambda *a: asked.setdefault("weights", weights_of(*a))
    model(first, second._replace(vectors=second.vectors[:1].expand(2, -1, -1)))
    weights = asked["weights"][:, 0]
    assert weights.shape == (2, 4)  # one weight for each word of the answer, none for the question's
    torch.testing.assert_close(weights.sum(1), torch.ones(2))
    assert not torch.allclose(weights[0], weights[1], atol=1e-3)


def test_the_loss_is_a_hinge_against_the_nearest_wrong_candidate():
    """Beyond the margin it is flat."""
    model = model_of(margin=0.2)
    scores = torch.tensor([0.5, 0.4, -0.9, 0.9, 0.1], requires_grad=True)
    labels, groups = torch.tensor([1, 0, 0, 1, 0]), torch.tensor([0, 0, 0, 1, 1])
    loss = model.rank_loss(scores, labels, groups)
    assert loss.item() == pytest.approx((0.2 - 0.5 + 0.4) / 2)
    loss.backward()
    assert scores.grad.tolist() == [-0.5, 0.5, 0.0, 0.0, 0.0]


def test_dropout_acts_before_the_cosine_in_training_only():
    model, first, second = model_of(dropout=0.5), texts(FIRST, 1), texts(SECOND, 2)
    before = model(first, second)
    torch.testing.assert_close(model(first, second), before)
    assert not torch.allclose(model.train()(first, second), before)


@pytest.mark.parametrize(
    ("options", "said"),
    [({"convolution": "above"}, "none, states, words"), ({"convolution": "states", "pooling": "ends"}, "max or mean")],
)
def test_settings_without_a_meaning_are_refused(options, said):
    with pytest.raises(ValueError, match=said):
        QALSTM(WIDTH, **options)
