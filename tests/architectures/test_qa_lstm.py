"""The mechanism of the QA-LSTM family: shared bidirectional LSTM, pooling, convolutions above or
below it, attention on the answer."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from architectures.siamese.qa_lstm import QALSTM, Windows
from tests.support.batches import assert_each_alone, random_texts
from tests.support.oracles import additive, convolution, cosine
from tests.support.pairs import bilstm, share_of_zeros, shipped
from tests.support.same import assert_same

WIDTH, HIDDEN, FILTERS = 3, 2, 5
FIRST, SECOND = (1, 4, 2), (5, 1, 3)
MECHANISMS = {
    "qa_lstm": {},
    "qa_lstm_cnn": {"convolution": "states"},
    "qa_lstm_attentive": {"attentive": True},
    "qa_lstm_conv_based": {"convolution": "words"},
}
"""What each id is, whatever its decorator says."""
SETTINGS = [
    ("qa_lstm", {}),
    ("qa_lstm", {"pooling": "mean"}),
    ("qa_lstm", {"pooling": "ends"}),
    ("qa_lstm_cnn", {}),
    ("qa_lstm_cnn", {"window": 3}),
    ("qa_lstm_conv_based", {}),
    ("qa_lstm_attentive", {}),
    ("qa_lstm_attentive", {"pooling": "mean"}),
    ("qa_lstm_attentive", {"convolution": "states"}),
]

texts = partial(random_texts, width=WIDTH)


def model_of(id: str = "qa_lstm", **options: Any) -> QALSTM:
    return shipped(id, WIDTH, **({"hidden": HIDDEN, "filters": FILTERS} | options))


def filtered(windows: Windows, vectors: list[Tensor]) -> list[Tensor]:
    """tanh filters over each window, zeros beyond the ends."""
    left, right = divmod(windows.convolution.kernel_size[0] - 1, 2)
    return [torch.tanh(value) for value in convolution(windows.convolution, vectors, left, left + right)]


def written_out(model: QALSTM, settings: dict[str, Any], first: Tensor, second: Tensor) -> Tensor:
    """The score of one pair, word by word."""
    convolution_over, pooling = settings.get("convolution"), settings.get("pooling", "max")

    def states(vectors: Tensor) -> list[Tensor]:
        words = list(vectors)
        return list(bilstm(model.recurrence, filtered(model.below, words) if convolution_over == "words" else words))

    def pooled(states: list[Tensor]) -> Tensor:
        states = filtered(model.above, states) if convolution_over == "states" else states
        if pooling == "ends":
            return torch.cat([states[-1][:HIDDEN], states[0][HIDDEN:]])
        return torch.stack(states).amax(0) if pooling == "max" else sum(states) / len(states)

    question, answer = pooled(states(first)), states(second)
    if settings.get("attentive"):
        scores = [additive(model.attention, question, h) for h in answer]
        total = sum(score.exp() for score in scores)
        answer = [h * score.exp() / total for h, score in zip(answer, scores, strict=True)]
    return cosine(question, pooled(answer))


@pytest.mark.parametrize(("id", "options"), SETTINGS, ids=str)
def test_a_batch_of_pairs_is_each_pair_written_out_word_by_word(id, options):
    """Texts of one word, longer questions and longer answers beside one another: padding in any
    step would show, and one direction, another cell, or an id with another's mechanism."""
    model, first, second = model_of(id, **options), texts(FIRST, 1), texts(SECOND, 2)
    oracle = partial(written_out, model, MECHANISMS[id] | options)
    assert_each_alone(model(first, second), oracle, first, second, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("id", "options"), [s for s in SETTINGS if s[0] != "qa_lstm_attentive"], ids=str)
def test_question_and_answer_are_read_by_the_same_weights(id, options):
    """So a text is its own nearest; two LSTMs would give it another vector as an answer."""
    text = texts(FIRST, 1)
    torch.testing.assert_close(model_of(id, **options)(text, text), torch.ones(3))


def test_attention_acts_on_the_answer_and_follows_the_question():
    model, first, second = model_of("qa_lstm_attentive"), texts((3, 3), 1), texts((4, 4), 2)
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
    """Whichever is drawn first. Beyond the margin it is flat."""
    model = model_of(margin=0.2)
    scores = torch.tensor([0.5, 0.4, -0.9, 0.9, 0.1], requires_grad=True)
    labels, groups = torch.tensor([1, 0, 0, 1, 0]), torch.tensor([0, 0, 0, 1, 1])
    for _ in range(10):
        loss = model.rank_loss(scores, labels, groups)
        assert loss.item() == pytest.approx((0.2 - 0.5 + 0.4) / 2)
    loss.backward()
    assert scores.grad.tolist() == [-0.5, 0.5, 0.0, 0.0, 0.0]


@pytest.mark.parametrize("id", MECHANISMS)
def test_dropout_acts_before_the_cosine_on_both_sides_and_in_training_only(id, monkeypatch):
    """Half of either vector is zero; on the question alone it would leave the answers to be learned
    by heart."""
    model, first, second = model_of(id, hidden=50, filters=100, dropout=0.5), texts(FIRST, 1), texts(SECOND, 2)
    compared = []
    monkeypatch.setattr(F, "cosine_similarity", lambda *sides: compared.append(sides) or torch.zeros(len(sides[0])))
    model(first, second)
    model.train()(first, second)
    (question, answer), (dropped_question, dropped_answer) = compared
    assert share_of_zeros([question, answer]) == 0
    for side, dropped in ((question, dropped_question), (answer, dropped_answer)):
        assert 0.35 < share_of_zeros([dropped]) < 0.65
        assert_same(dropped[dropped != 0], 2 * side[dropped != 0])


def test_attention_has_as_many_hidden_units_as_a_state_has_numbers():
    assert model_of("qa_lstm_attentive").attention.score.in_features == 2 * HIDDEN


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"convolution": "above"}, "none, states, words"),
        ({"convolution": "states", "pooling": "ends"}, "max or mean"),
        ({"pooling": "min"}, "pooling='min' is none of max, mean, ends"),
        ({"pooling": "last"}, "pooling='last' is none of max, mean, ends"),
    ],
)
def test_settings_without_a_meaning_are_refused(options, said):
    with pytest.raises(ValueError, match=said):
        QALSTM(WIDTH, **options)
