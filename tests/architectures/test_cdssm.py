"""The mechanism of CDSSM: trigram windows of three words, tanh, the maximum over the text, tanh,
cosine."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from architectures.siamese.cdssm import CDSSM, Tower
from harness.views.bag import letter_trigrams
from harness.views.word_trigrams import WordTrigramBatch, WordTrigrams
from tests.support.models import small
from tests.support.oracles import cosine
from tests.support.same import assert_same

TRAIN = ["the banana sat on a mat", "a cat", "dogs"]
HIDDEN, OUTPUT = 5, 4


def view() -> WordTrigrams:
    view = WordTrigrams()
    view.fit(TRAIN)
    return view


def read(*texts: str) -> WordTrigramBatch:
    fitted = view()
    return fitted.collate(fitted.encode(texts), np.arange(len(texts)))


def model_of(**options) -> CDSSM:
    return small(CDSSM, view().width, hidden=HIDDEN, output=OUTPUT, stretch=10.0, **options)


def counts(word: str) -> Tensor:
    """Trigram counts of a word."""
    trigrams = view().trigrams
    found = torch.zeros(len(trigrams))
    for trigram in letter_trigrams(word):
        if trigram in trigrams:
            found[trigrams.index(trigram)] += 1
    return found


def written_out(tower: Tower, text: str, window: int = 3) -> Tensor:
    """The text's vector by one dense matrix W_c over the counts of a window's words, as in the
    paper's section 3."""
    width = len(view().trigrams)
    matrix = torch.cat([tower.table.weight[:, k * HIDDEN : (k + 1) * HIDDEN] for k in range(window)]).T
    words = text.split()
    hidden = []
    for t in range(len(words)):
        around = [words[i] if 0 <= i < len(words) else None for i in range(t - window // 2, t - window // 2 + window)]
        l_t = torch.cat([torch.zeros(width) if word is None else counts(word) for word in around])
        hidden.append(torch.tanh(matrix @ l_t))
    pooled = torch.stack([max(h[unit] for h in hidden) for unit in range(HIDDEN)])
    return torch.tanh(tower.semantic.weight @ pooled)


@pytest.mark.parametrize("window", [3, 2, 1])
def test_vectors_are_those_of_the_dense_window_matrix(window):
    """Texts of one, two and more words side by side: "banana" has a trigram twice, "zzz" none that
    is known."""
    model = model_of(window=window)
    texts = ["cat", "banana sat", "the banana zzz on a mat", "zzz dogs the", "a a a"]
    for found, text in zip(model.query(read(*texts)), texts, strict=True):
        assert_same(found, written_out(model.query, text, window), rtol=1e-4, atol=1e-5)


def test_a_score_is_the_cosine_of_both_texts_and_full_for_the_same_text():
    model = model_of()
    u, v = written_out(model.query, "the cat"), written_out(model.query, "a mat sat")
    found = model(read("the cat", "dogs"), read("a mat sat", "dogs"))
    assert_same(found, torch.stack([cosine(u, v), torch.tensor(1.0)]))


def test_order_of_words_counts_within_windows_only():
    """Unlike in DSSM; and a maximum, unlike a sum, does not notice a window that comes once
    more."""
    query = model_of().query

    def vector(text: str) -> Tensor:
        return query(read(text))[0]

    assert not torch.allclose(vector("the cat sat"), vector("sat cat the"), atol=1e-3)
    assert_same(vector("a cat a cat a"), vector("a cat a cat a cat a"))


def test_a_text_without_known_trigrams_scores_zero_and_disturbs_no_weight():
    """At a zero vector the cosine's gradient is huge: it must not reach the weights."""
    model = model_of()
    scores = model(read("qqq", "the cat"), read("dogs", "a cat"))
    assert scores[0] == 0 and scores[1] != 0
    scores.sum().backward()
    assert all(p.grad.isfinite().all() and p.grad.abs().max() < 100 for p in model.parameters())


@pytest.mark.parametrize("shared", [True, False])
def test_towers_share_their_weights_or_have_their_own(shared):
    model, text = model_of(shared=shared), read("the cat sat")
    assert (model.query is model.document) == shared == torch.allclose(model(text, text), torch.ones(1))


def test_the_loss_is_the_softmax_of_gamma_times_cosine():
    """It runs over the right and the wrong candidates."""
    scores, labels = torch.tensor([0.9, 0.4, -0.2]), torch.tensor([1, 0, 0])
    expected = -math.log(math.exp(4.5) / (math.exp(4.5) + math.exp(2.0) + math.exp(-1.0)))
    assert model_of(gamma=5.0).rank_loss(scores, labels, torch.zeros(3)).item() == pytest.approx(expected, rel=1e-5)


def test_weights_start_within_the_limit_of_the_whole_matrix():
    """sqrt(6 / (inputs + outputs)), the inputs of the first layer being the trigrams of all words
    of a window."""
    tower = Tower(400, 3, 50, 20)
    for weights, limit in ((tower.table.weight, (6 / 1250) ** 0.5), (tower.semantic.weight, (6 / 70) ** 0.5)):
        assert 0.98 * limit < weights.abs().max() <= limit


def test_the_semantic_layer_bends():
    tower = model_of().query
    pooled = tower.windows(read("cat"))[0, 0]
    assert_same(tower(read("cat"))[0], torch.tanh(F.linear(pooled, tower.semantic.weight)))
