"""The neural variational document model: its bag, its posterior, and a bound that is that of a
softmax written out."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.distributions import Normal, kl_divergence

from architectures.blocks.variational import normal
from architectures.blocks.word_bags import ContentWords
from architectures.unsupervised.nvdm import DocumentBound, NeuralVariationalDocumentModel
from harness.layers.noise import Noise
from harness.objectives import collected_losses
from harness.registry import entry
from harness.views.subwords import SubwordBatch
from tests.support.models import small
from tests.support.plain_text import batch
from tests.support.same import assert_same

TEXTS = ["The cat saw the cat.", "a dog, a cat and a bird", "of the", "bird sang"]
SIZES = {"hidden": 6, "latent": 3}


@pytest.fixture(scope="module")
def view() -> ContentWords:
    made = ContentWords(size=40, max_length=12)
    made.fit(TEXTS)
    return made


@pytest.fixture
def model(view: ContentWords) -> NeuralVariationalDocumentModel:
    return small(NeuralVariationalDocumentModel, view.width, view, **SIZES)


def bags(view: ContentWords, pieces: SubwordBatch) -> list[dict[int, int]]:
    """The words of each text with their counts, by hand."""
    found = []
    for ids, length in zip(pieces.ids.tolist(), pieces.lengths.tolist(), strict=True):
        found.append(dict(Counter(ids[1 : length - 1] or [view.separator])))
    return found


def inferred(model: NeuralVariationalDocumentModel, bag: dict[int, int]) -> tuple[Tensor, Tensor]:
    """The hidden layer and the mean of one bag: columns of the matrix, added up."""
    network = model.network
    first, second = network.hidden[0], network.hidden[2]
    columns = sum(count * first.weight[:, word] for word, count in bag.items())
    below = (columns + first.bias).clamp(min=0)
    hidden = (second.weight @ below + second.bias).clamp(min=0)
    return hidden, network.mean.weight @ hidden + network.mean.bias


# --- the bag ---


def test_a_bag_has_the_known_content_words_in_lower_case(view):
    """Function words and marks would fill the topics; a word that is rare in training is left
    out."""
    words = {number: word for word, number in view.words.items()}
    ids = view.encode(["The CAT , the zebra and the bird sang .", "of the"])["ids"]
    assert [words[number] for number in ids[0].tolist()] == ["cat", "bird", "sang"]
    assert len(ids[1]) == 0
    short = ContentWords(size=6)  # five marks and one word
    short.fit(TEXTS)
    assert list(short.words) == ["cat"]


def test_shares_of_words_count_each_once_more_and_are_kept_with_the_view(view):
    """A parent's child reads by its view, and its floor by these shares."""
    counts = {"cat": 3, "bird": 2, "dog": 1, "sang": 1, "saw": 1}
    expected = np.ones(view.width)
    for word, count in counts.items():
        expected[view.words[word]] += count
    again = ContentWords(size=40)
    again.learnt = view.state()
    again.fit(["other words"])
    for made in (view, again):
        np.testing.assert_allclose(made.log_shares().exp(), expected / expected.sum(), rtol=1e-5)


def test_a_corpus_without_content_words_has_equal_shares():
    """The first texts of a stream may be such ones."""
    empty = ContentWords()
    empty.fit(["of the", "and"])
    torch.testing.assert_close(empty.log_shares().exp(), torch.full((5,), 0.2))


def test_order_of_words_and_padding_change_nothing(view, model):
    """A bag has no order; a text beside a longer one is the same."""
    one, two = model.vector(batch(view, "cat dog cat bird sang")), model.vector(batch(view, "dog cat", "cat bird sang"))
    other = model.vector(batch(view, "sang bird cat cat dog"))
    torch.testing.assert_close(one, other)
    torch.testing.assert_close(two[0], model.vector(batch(view, "cat dog"))[0])
    assert not torch.isclose(one[0], two[0]).any()


# --- the posterior and the bound ---


def test_the_vector_is_the_posteriors_mean_written_out(view, model):
    """Counts, not presence: a word that stands twice adds its column twice."""
    pieces = batch(view, *TEXTS)
    expected = torch.stack([inferred(model, bag)[1] for bag in bags(view, pieces)])
    assert_same(model.vector(pieces), expected)
    assert_same(model(pieces)[:, 0], expected)


def reference(model: Any, objective: Any, pieces: SubwordBatch, numbers: Tensor) -> list[tuple[Tensor, Tensor]]:
    """For each text the log-probabilities of its words in their order, and the divergence."""
    found = []
    for row, bag in enumerate(bags(model.view, pieces)):
        hidden, mean = inferred(model, bag)
        deviation = torch.exp(objective.deviation.weight @ hidden + objective.deviation.bias)
        latent = mean + deviation * numbers[row]
        scores = torch.stack([latent @ column for column in objective.output.weight]) + objective.output.bias
        logs = scores - scores.exp().sum().log()
        places = range(1, int(pieces.lengths[row]) - 1) if model.view.separator not in bag else (1,)
        divergence = kl_divergence(Normal(mean, deviation), Normal(0.0, 1.0)).sum()
        found.append((torch.stack([logs[pieces.ids[row, place]] for place in places]), divergence))
    return found


@pytest.fixture
def objective(model: NeuralVariationalDocumentModel) -> DocumentBound:
    made = small(DocumentBound, model)
    with torch.no_grad():
        made.deviation.weight.normal_(std=0.3)
    return made


def test_the_score_of_a_text_is_its_bound_written_out(view, model, objective):
    """log p(x | z) less the divergence, by the words of each text, of the text without any too."""
    pieces = batch(view, *TEXTS)
    numbers = normal(Noise(pieces.ids, pieces.mask), 3)
    logs, texts = objective(model, pieces, Noise(pieces.ids, pieces.mask))
    expected = reference(model, objective, pieces, numbers)
    assert texts.bincount().tolist() == [3, 3, 1, 2]
    assert_same(logs, torch.cat([told - divergence / len(told) for told, divergence in expected]), rtol=1e-4, atol=1e-4)


def test_the_loss_is_the_words_surprise_and_the_whole_divergence(view, model, objective):
    """With its weight of 1 from the first step on, and draws of the pass."""
    pieces = batch(view, *TEXTS)
    key = (3, 1)
    with collected_losses() as terms:
        logs, _ = objective.train()(model, pieces, Noise(pieces.ids, pieces.mask, key, 0.0))
    expected = reference(model, objective, pieces, normal(Noise(pieces.ids, pieces.mask, key), 3))
    assert_same(logs, torch.cat([told for told, _ in expected]), rtol=1e-4, atol=1e-4)
    assert list(terms) == ["divergence"]
    assert_same(terms["divergence"], sum(divergence for _, divergence in expected) / 9, rtol=1e-4, atol=1e-4)


def test_the_scores_of_words_are_linear_in_the_latent_variable(objective):
    """Any layer between would be another model than the paper's."""
    one, two = torch.randn(2, 4, 3)
    zero = objective.decoded(torch.zeros(4, 3))
    assert_same(objective.decoded(one + two) - zero, objective.decoded(one) + objective.decoded(two) - 2 * zero)


def test_the_posterior_begins_with_a_deviation_of_one(view, model):
    posterior = DocumentBound(model).posterior(model, torch.randn(2, view.width))
    assert torch.equal(posterior.log_deviation, torch.zeros(2, 3))


def test_one_pass_draws_other_numbers_than_the_next(view, model, objective):
    """The same ones in each pass would be learnt by heart."""
    pieces = batch(view, *TEXTS)
    told = [objective(model, pieces, Noise(pieces.ids, pieces.mask, (0, number))).logs for number in (1, 2)]
    assert not torch.isclose(*told).any()


# --- floors ---


def test_the_floor_has_each_word_by_its_share_of_training(view):
    """What a bound must beat: it is what the model says without a latent variable."""
    shares = view.log_shares()
    found = DocumentBound.floor(view, [], [{"text": text} for text in TEXTS])
    cat, saw = (shares[view.words[word]].item() for word in ("cat", "saw"))
    assert found[0] == [pytest.approx(2 * cat + saw), 3]
    assert found[2] == [pytest.approx(shares[view.separator].item()), 1]


def test_who_knows_the_texts_by_heart_still_tells_which_one_it_is(view):
    """The mark of one text of four costs log 4; of its three words two are the same."""
    found = DocumentBound.by_heart(view, [{"text": text} for text in TEXTS])
    assert found[0] == [pytest.approx(2 * np.log(2 / 3) + np.log(1 / 3) - np.log(4)), 3]
    assert found[2] == [pytest.approx(-np.log(4)), 1]


# --- features ---


class Kept:
    """A parent as its child asks for it."""

    def __init__(self, encoder: nn.Module, view: Any):
        self.model, self.view = nn.Module(), view
        self.model.encoder = encoder


@pytest.mark.parametrize("tuned", [False, True])
def test_a_child_has_the_parents_features_and_leaves_them_unless_it_is_tuned(view, model, tuned):
    child = NeuralVariationalDocumentModel(view.width, view, tuned=tuned, **SIZES)
    child.inherit("weights", Kept(model, view), ())
    pieces = batch(view, *TEXTS)
    assert torch.equal(child.vector(pieces), model.vector(pieces))
    assert all(parameter.requires_grad == tuned for parameter in child.parameters())


def test_it_answers_one_text_and_labels_no_word():
    """A bag has one vector, and two texts in one bag would be mixed."""
    types = {type for type in ("text", "classify", "tag", "match", "rank", "extract", "regress", "multilabel")
             if NeuralVariationalDocumentModel.can_answer(type)}  # fmt: skip
    assert types == {"text", "classify", "regress", "multilabel"}


def test_it_starts_from_what_it_learnt_on_the_text_mix():
    """Where each text has a latent variable of its own: put together they would share one."""
    assert not DocumentBound.packs
    assert entry("architectures", "nvdm").parents == {"weights": "nvdm@text_mix"}
