"""The mechanisms of the feed-forward encoders: what enters the mean, and what stands behind it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from architectures.feedforward.avg_vectors import AveragedVectors
from architectures.feedforward.dan import DeepAveragingNetwork
from architectures.feedforward.fasttext import FastText
from harness.problems import problem
from harness.problems.classify import ClassTarget
from harness.training.model import Model, build
from harness.views.bag import Bag
from harness.views.words import WordBatch
from tests.support.batches import texts_of
from tests.support.models import small
from tests.support.same import assert_same


def words(*texts: list[list[float]]) -> WordBatch:
    """A batch of texts given as lists of word vectors; padding holds what must not count."""
    vectors = torch.nn.utils.rnn.pad_sequence([torch.tensor(text) for text in texts], batch_first=True)
    return texts_of(vectors, [len(text) for text in texts])


A, B, C = [1.0, 0.0], [3.0, 4.0], [5.0, 2.0]


# --- avg_vectors ---


def test_a_text_is_the_mean_of_its_real_words():
    """A mean over padding would make short texts look alike and depend on their batch."""
    means = AveragedVectors(2)(words([A, B, C], [B]))
    assert means.tolist() == [[3.0, 2.0], [3.0, 4.0]]


def test_order_and_repetition_leave_the_mean_alone():
    """Repetition doubles the sum."""
    texts = words([A, B, C], [C, A, B]), words([A, B, C, A, B, C], [A, B, C, C, A, B])
    mean, total = AveragedVectors(2), AveragedVectors(2, pooling="sum")
    assert [[3.0, 2.0]] * 2 == mean(texts[0]).tolist() == mean(texts[1]).tolist()
    assert total(texts[0]).tolist() == [[9.0, 6.0]] * 2
    assert total(texts[1]).tolist() == [[18.0, 12.0]] * 2


@pytest.mark.parametrize("pooling", ["mean", "sum"])
def test_a_text_without_words_is_the_zero_vector(pooling):
    """Its scores are then the bias."""
    empty = words([A])._replace(mask=torch.zeros(1, 1, dtype=torch.bool), lengths=torch.tensor([0]))
    assert AveragedVectors(2, pooling)(empty).tolist() == [[0.0, 0.0]]


def test_an_unknown_pooling_is_refused_by_name():
    with pytest.raises(ValueError, match="'median' is neither mean nor sum"):
        AveragedVectors(2, pooling="median")


# --- dan ---


def test_outside_training_dan_is_the_mean_and_hidden_layers_with_relu():
    model = small(DeepAveragingNetwork, 2, hidden=5, layers=3)
    weights = [*model.parameters()]
    assert len(weights) == 6
    read = words([A, B, C], [B])
    state = torch.stack([read.vectors[0].mean(0), read.vectors[1, 0]])
    for weight, bias in zip(weights[::2], weights[1::2], strict=True):
        state = (state @ weight.T + bias).clamp(min=0)
    assert_same(model(read), state)


def one_hot_means(word_dropout: float, rows: int = 400, length: int = 6) -> torch.Tensor:
    """Means (rows, length) in training of texts whose i-th word is the i-th unit vector: entry i
    tells whether word i was kept."""
    torch.manual_seed(0)
    model = DeepAveragingNetwork(length, layers=0, word_dropout=word_dropout).train()
    return model(words(*[torch.eye(length).tolist()] * rows))


def test_word_dropout_takes_whole_words_and_averages_those_that_are_left():
    """Dropout of single coordinates, or a mean that still divides by all words, is another
    regulariser."""
    means = one_hot_means(0.3)
    kept = means > 0
    torch.testing.assert_close(means, kept / kept.sum(1, keepdim=True))
    assert 0.65 < kept.float().mean() < 0.75
    assert len(kept.unique(dim=0)) > 20


def test_the_coordinates_of_a_word_are_dropped_together():
    torch.manual_seed(0)
    model = DeepAveragingNetwork(3, layers=0, word_dropout=0.5).train()
    means = model(words(*[[[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]]] * 50))
    assert {tuple(mean) for mean in means.tolist()} == {(1.0, 2.0, 3.0), (0.5, 1.0, 1.5), (0.0, 0.0, 0.0)}


def test_a_text_that_would_lose_every_word_keeps_all():
    """Padding is never kept."""
    torch.manual_seed(0)
    model = DeepAveragingNetwork(2, layers=0, word_dropout=1.0).train()
    assert model(words([A, B, C], [B])).tolist() == [[3.0, 2.0], [3.0, 4.0]]


def test_without_word_dropout_training_sees_every_word():
    assert (one_hot_means(0.0) > 0).all()


# --- fasttext ---

TEXTS = ["the film is not good", "the film is good not", "bad", "good film , good cast"]
SETTINGS = {"hidden": 4, "ngrams": 2, "buckets": 50}


def fasttext(settings: dict = SETTINGS) -> tuple[Model, Bag]:
    """The whole model for three classes, and its view fitted on the texts."""
    torch.manual_seed(0)
    view = FastText.reads("text", settings)
    view.fit(TEXTS)
    target = ClassTarget()
    target.fit([{"label": label} for label in "abc"])
    return build(FastText, problem("classify"), settings, view, target, 100), view


def bags(view: Bag, texts: list[str] = TEXTS):
    return view.collate(view.encode(texts), np.arange(len(texts)))


def test_the_scores_are_linear_in_the_mean_of_the_texts_rows_without_a_bias():
    model, view = fasttext()
    batch = bags(view)
    scores = model({"text": batch})
    rows = batch.ids.split(batch.lengths.tolist())
    means = torch.stack([model.encoder.table.weight[row].mean(0) for row in rows])
    assert [p.shape for p in model.parameters()] == [(view.width, 4), (3, 4)]
    assert_same(scores, means @ model.head.output.weight.T)
    scores = scores.detach()
    with torch.no_grad():
        model.encoder.table.weight.mul_(-3)
    torch.testing.assert_close(model({"text": batch}).detach(), -3 * scores)


@pytest.mark.parametrize("ngrams", [1, 2])
def test_word_order_matters_through_bigrams_alone(ngrams):
    model, view = fasttext(SETTINGS | {"ngrams": ngrams})
    one, other = model({"text": bags(view)})[:2]
    assert torch.allclose(one, other) == (ngrams == 1)


def test_ngrams_in_one_bucket_share_a_vector():
    _, view = fasttext(SETTINGS | {"buckets": 1})
    ids = bags(view, ["good film , good cast"]).ids
    assert (ids >= len(view.vocabulary)).sum() == 5
    assert set(ids.tolist()) & {view.width - 1} and ids.max() == view.width - 1


def test_hyperparameters_shape_the_view_and_defaults_hold_without_them():
    """An option that stayed in the constructor would be recorded and do nothing."""
    view = FastText.reads("text", {"ngrams": 3, "buckets": 7})
    assert (view.ngrams, view.buckets) == (3, 7)
    assert FastText.reads("text", {}) == Bag()
    assert FastText.reads("audio", {}) is None
    assert FastText.view == Bag()


def test_a_step_reads_and_moves_the_rows_of_its_texts_alone():
    """A whole gradient would move two million rows for each text."""
    model, view = fasttext()
    model({"text": view.collate(view.encode(["a b"]), np.arange(1))}).sum().backward()
    assert model.encoder.table.weight.grad.is_sparse


def test_vectors_start_uniform_within_one_over_their_size():
    torch.manual_seed(0)
    weight = FastText(width=5000, hidden=10).table.weight
    assert 0.099 < weight.abs().max() <= 0.1
