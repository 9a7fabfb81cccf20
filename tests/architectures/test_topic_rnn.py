"""TopicRNN: words told with their sort in loops, topics that stop words do without, and a bag that
does not know them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.distributions import Normal, kl_divergence

from architectures.blocks.variational import normal
from architectures.recurrent.topic_rnn import TopicalWords, TopicRNN
from harness.objectives import collected_losses
from harness.registry import entry
from harness.views.subwords import SubwordBatch
from harness.views.whole_words import WholeWords
from tests.support.models import small
from tests.support.oracles import gru, linear
from tests.support.plain_text import batch, noise_of
from tests.support.same import assert_same

TEXTS = ["the cat saw a cat .", "of a dog", "the zebra and the bird"]
KNOWN = ["the cat saw a cat .", "of a dog", "the bird and the dog"]
CONTENT = {"cat", "saw", "dog", "bird"}
SIZES = {"embedded": 4, "hidden": 5, "inferring": 6, "topics": 3, "features": 7}


@pytest.fixture(scope="module")
def view() -> WholeWords:
    made = TopicRNN.reads("text", {"vocabulary": 60, "max_length": 12})
    assert isinstance(made, WholeWords) and made.lower, "a word is the same word at the beginning of a sentence"
    made.fit(KNOWN)
    return made


@pytest.fixture
def model(view: WholeWords) -> TopicRNN:
    return small(TopicRNN, view.width, view, stretch=2.0, **SIZES)


@pytest.fixture
def objective(model: TopicRNN) -> TopicalWords:
    made = small(TopicalWords, model, stretch=2.0)
    made.deviation.bias.data.mul_(0.3)
    return made


def states_of(model: TopicRNN, ids: Tensor) -> Tensor:
    return gru(model.network.recurrence, model.network.table.weight[ids])


def inferred(model: TopicRNN, text: str) -> tuple[Tensor, Tensor]:
    """The inferring layer and the mean of theta by the content words of one text."""
    counts = torch.zeros(model.view.width)
    for word in text.split():
        if word in CONTENT:
            counts[model.view.words[word]] += 1
    hidden = linear(model.network.hidden, counts).clamp(min=0)
    return hidden, linear(model.network.mean, hidden)


def told(model: TopicRNN, objective: TopicalWords, ids: Tensor, theta: Tensor, summed: bool) -> Tensor:
    """Log-probabilities of the words of one text behind its mark, with their sort, or summed over
    both sorts."""
    topical = {model.view.words[word] for word in CONTENT}
    found = []
    for state, word in zip(states_of(model, ids)[:-1], ids[1:].tolist(), strict=True):
        stop = torch.sigmoid(linear(objective.stop, state)[0])
        plain = linear(objective.output, state)
        both = {"stop": stop * plain.softmax(0)[word]}
        both["content"] = (1 - stop) * (plain + objective.topics.weight @ theta).softmax(0)[word]
        found.append(sum(both.values()) if summed else both["content" if word in topical else "stop"])
    return torch.stack(found).log()


def reference(
    model: Any, objective: TopicalWords, pieces: SubwordBatch, numbers: Tensor, summed: bool
) -> list[tuple[Tensor, Tensor]]:
    """For each text the log-probabilities of its words, and the divergence."""
    found = []
    for text, ids, length, row in zip(TEXTS, pieces.ids, pieces.lengths, numbers, strict=True):
        hidden, mean = inferred(model, text)
        deviation = linear(objective.deviation, hidden).exp()
        logs = told(model, objective, ids[:length], mean + deviation * row, summed)
        found.append((logs, kl_divergence(Normal(mean, deviation), Normal(0.0, 1.0)).sum()))
    return found


# --- the bound ---


def test_the_score_of_a_text_is_its_bound_over_both_sorts_in_loops(view, model, objective):
    """At the test nobody says which words are stop words."""
    pieces = batch(view, *TEXTS)
    logs, texts = objective(model, pieces, noise_of(pieces))
    expected = reference(model, objective, pieces, normal(noise_of(pieces), 3), True)
    assert texts.bincount().tolist() == [7, 4, 6]
    bounds = torch.cat([words - divergence / len(words) for words, divergence in expected])
    assert_same(logs, bounds, rtol=1e-4, atol=1e-4)


def test_the_loss_tells_each_word_with_its_sort_and_has_the_whole_divergence(view, model, objective):
    """From the first step on."""
    pieces = batch(view, *TEXTS)
    with collected_losses() as terms:
        logs, _ = objective.train()(model, pieces, noise_of(pieces, 1, 2, progress=0.0))
    expected = reference(model, objective, pieces, normal(noise_of(pieces, 1, 2), 3), False)
    assert_same(logs, torch.cat([words for words, _ in expected]), rtol=1e-4, atol=1e-4)
    assert list(terms) == ["divergence"]
    assert_same(terms["divergence"], sum(divergence for _, divergence in expected) / 17, rtol=1e-4, atol=1e-4)


def test_the_probabilities_of_all_words_sum_to_one(view, model, objective):
    """Of both sorts together, by one state and one theta."""
    states, themes = torch.randn(1, 5).expand(view.width, -1), torch.randn(1, view.width).expand(view.width, -1)
    words, content = torch.arange(view.width), torch.ones(view.width, dtype=torch.bool)
    logs = [objective.told(states, themes, words, sort) for sort in (content, ~content)]
    assert torch.cat(logs).exp().sum().item() == pytest.approx(1, rel=1e-5)


# --- topics and stop words ---


def test_content_words_are_neither_stop_words_nor_marks_nor_unknown(view, model):
    names = {number: word for word, number in view.words.items()}
    assert {names.get(number) for number in model.content.nonzero()[:, 0].tolist()} == CONTENT


def test_topics_do_not_reach_a_stop_word(view, model, objective):
    """With a list of all words it is a plain language model, whatever theta is."""
    pieces = batch(view, *TEXTS)
    objective.train()
    everything = [objective(model, pieces, noise_of(pieces, 0, number)).logs for number in (1, 2)]
    moved = ~torch.isclose(*everything)
    assert torch.equal(moved, model.content[pieces.ids[:, 1:][pieces.mask[:, 1:]]])
    model.content[:] = False
    plain = [objective(model, pieces, noise_of(pieces, 0, number)).logs for number in (1, 2)]
    states = torch.cat(
        [states_of(model, ids[:length])[:-1] for ids, length in zip(pieces.ids, pieces.lengths, strict=True)]
    )
    words = pieces.ids[:, 1:][pieces.mask[:, 1:]]
    scores = states @ objective.output.weight.T + objective.output.bias
    stop = F.logsigmoid(states @ objective.stop.weight[0] + objective.stop.bias)
    expected = stop + scores.log_softmax(1).gather(1, words[:, None])[:, 0]
    torch.testing.assert_close(plain[0], expected, rtol=1e-4, atol=1e-4)
    assert torch.equal(*plain)


def test_stop_words_do_not_reach_the_topics(view, model):
    """The bag has content words alone; their order, and unknown words, change nothing."""
    pieces = batch(view, "cat saw dog", "the dog of a cat and saw .", "cat saw zebra dog", "cat saw dog dog")
    means = model.inferred(pieces)[1]
    torch.testing.assert_close(means[1:3], means[:1].expand(2, -1))
    assert not torch.isclose(means[3], means[0]).all()


# --- features ---


def test_the_vector_joins_the_mean_of_theta_and_the_last_state(view, model):
    """Through one hidden layer, behind the last word of each text: the mark at its end is told and
    never read in training."""
    pieces = batch(view, *TEXTS)
    expected = []
    for text, ids, length in zip(TEXTS, pieces.ids, pieces.lengths, strict=True):
        read = torch.cat([inferred(model, text)[1], states_of(model, ids[: length - 1])[-1]])
        expected.append(1 / (1 + (-linear(model.joined, read)).exp()))
    assert_same(model.vector(pieces), torch.stack(expected), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("tuned", [False, True])
def test_what_was_learnt_stays_and_the_layer_of_the_classifier_learns(view, model, tuned):
    child = TopicRNN(view.width, view, tuned=tuned, **SIZES)
    child.inherit("weights", SimpleNamespace(model=SimpleNamespace(encoder=model), view=view), ())
    trained = {name for name, parameter in child.named_parameters() if parameter.requires_grad}
    assert {"joined.weight", "joined.bias"} <= trained
    assert any(name.startswith("network.") for name in trained) == tuned
    pieces = batch(view, *TEXTS)
    torch.testing.assert_close(child.vector(pieces), model.vector(pieces))


def test_each_text_has_topics_of_its_own():
    """Texts that are put together would share one theta."""
    assert not TopicalWords.packs
    assert entry("architectures", "topic_rnn").parents == {"weights": "topic_rnn@text_mix"}
