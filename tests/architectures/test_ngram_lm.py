"""Modified Kneser-Ney against its definition, by dictionaries and by hand."""

from __future__ import annotations

import math
from collections import Counter
from random import Random

import numpy as np
import pytest

from architectures.classical.ngram_lm import OTHERWISE, NgramLanguageModel, discounts
from harness.problems.language_model import UNKNOWN

TEXTS = ["a b a b c", "a b a", "b b c a b c", "c", "d a b"]


def fitted(texts: list[str], order: int) -> NgramLanguageModel:
    model = NgramLanguageModel(order=order)
    model.fit([{"id": text, "text": text.split()} for text in texts], [])
    return model


def probability(model: NgramLanguageModel, history: list[str], word: str) -> float:
    """p(word | the words before it in a text)."""
    (short, _), (long, _) = model.predict([{"text": history}, {"text": [*history, word]}])
    return math.exp(long - short)


def by_definition(texts: list[str], order: int, history: list[str], word: str) -> float:
    """The same, from counts of tuples; ``<s>`` is before each text."""
    marked = [("<s>", *text.split()) for text in texts]
    grams = {
        n: Counter(t[i : i + n] for t in marked for i in range(len(t) - n + 1) if t[i : i + n] != ("<s>",))
        for n in range(1, order + 1)
    }
    counts = {
        n: grams[n]
        if n == order
        else {
            g: grams[n][g] if g[0] == "<s>" else len({longer[0] for longer in grams[n + 1] if longer[1:] == g})
            for g in grams[n]
        }
        for n in grams
    }
    words = {UNKNOWN, *(word for text in texts for word in text.split())}

    def p(h: tuple[str, ...], w: str) -> float:
        n = len(h) + 1
        following = {g[-1]: c for g, c in counts[n].items() if g[:-1] == h}
        shorter = p(h[1:], w) if h else 1 / len(words)
        if not following:
            return shorter
        taken = discounts(np.array(list(counts[n].values())))
        total, rest = sum(following.values()), sum(taken[min(c, 3)] for c in following.values())
        c = following.get(w, 0)
        return (c - taken[min(c, 3)]) / total + rest / total * shorter

    read = [w if w in words else UNKNOWN for w in [*history, word]]
    return p(tuple(["<s>", *read[:-1]][-(order - 1) :]) if order > 1 else (), read[-1])


@pytest.mark.parametrize("order", [1, 2, 3, 4])
@pytest.mark.parametrize("seed", range(12))
def test_it_is_what_its_definition_says(seed, order):
    """Texts of every length, words that training lacks among them."""
    random = Random(seed)
    texts = [" ".join(random.choices("abcd", k=random.randint(1, 6))) for _ in range(random.randint(1, 12))]
    model = fitted(texts, order)
    for _ in range(10):
        *history, word = random.choices("abcdz", k=random.randint(1, 6))
        assert probability(model, history, word) == pytest.approx(by_definition(texts, order, history, word))


@pytest.mark.parametrize("history", [[], ["a"], ["a", "b"], ["z", "z"], ["b", "a", "z", "c"]])
@pytest.mark.parametrize("order", [1, 2, 5])
def test_probabilities_sum_to_one_behind_any_history(order, history):
    """Seen, unseen and empty histories: else a low perplexity means nothing."""
    model = fitted(TEXTS, order)
    assert sum(probability(model, history, word) for word in model.vocabulary) == pytest.approx(1)


def test_discounts_by_hand():
    """n(1..4) = 4, 3, 2, 1: Y = 4 / 10, D = 1 - 2 Y 3/4, 2 - 3 Y 2/3, 3 - 4 Y 1/2."""
    counts = np.array([1] * 4 + [2] * 3 + [3] * 2 + [4, 9])
    assert discounts(counts) == pytest.approx([0, 0.4, 1.2, 2.2])


def test_where_counts_of_counts_give_no_discount_there_is_one():
    """n(2) = 0 leaves D(2) undefined, and D(1) = 1 would leave nothing of a count."""
    assert discounts(np.array([1, 1])) == pytest.approx([0, OTHERWISE, OTHERWISE, OTHERWISE])
    assert discounts(np.array([3, 3])) == pytest.approx([0, OTHERWISE, OTHERWISE, OTHERWISE])


def test_a_bigram_by_hand():
    """Train "a b", "c b": the bigrams <s> a, a b, <s> c, c b occur once each, so there is no n(2)
    and D(1) is .75. Different words before a: 1, b: 2, c: 1; n(1) = 2, n(2) = 1, so Y = 1/2,
    D(1) = 1/2, and D(2) would be 2 as n(3) is 0. Of 4, 1.75 are left to 4 words alike."""
    model = fitted(["a b", "c b"], 2)
    assert probability(model, ["a"], "b") == pytest.approx(0.25 + 0.75 * (1.25 / 4 + 1.75 / 16))
    assert probability(model, ["a"], "c") == pytest.approx(0.75 * (0.5 / 4 + 1.75 / 16))


def test_a_word_that_follows_one_word_alone_is_rare_elsewhere():
    """Francisco is frequent, but only behind San: behind another word it is less probable than one
    half as frequent that stands behind many."""
    model = fitted(["San Francisco"] * 6 + ["in York", "of York", "to York", "San Jose", "the end"], 2)
    assert probability(model, ["the"], "York") > 1.5 * probability(model, ["the"], "Francisco")


def test_an_article_begins_anew():
    """What one text ends with is no history of the next."""
    model = fitted(TEXTS, 3)
    together = model.predict([{"text": ["a", "b"]}, {"text": ["c"]}])
    assert together == [model.predict([{"text": text}])[0] for text in (["a", "b"], ["c"])]


def test_words_are_read_as_given():
    """WikiText's vocabulary tells capitals apart."""
    model = fitted(["A A b"], 1)
    assert probability(model, [], "a") == pytest.approx(probability(model, [], UNKNOWN))
    assert probability(model, [], "A") > probability(model, [], "a")


def test_texts_of_dev_are_not_counted():
    """Perplexity is measured on dev too: counted, its own words would be foretold."""
    model, other = NgramLanguageModel(order=3), NgramLanguageModel(order=3)
    train = [{"id": text, "text": text.split()} for text in TEXTS]
    model.fit(train, [{"id": "dev", "text": ["c", "a", "d", "e"]}])
    other.fit(train, [])
    assert model.vocabulary == other.vocabulary
    assert model.predict([{"text": ["c", "a", "d", "e"]}]) == other.predict([{"text": ["c", "a", "d", "e"]}])


def test_n_grams_without_words_are_refused_by_name():
    with pytest.raises(ValueError, match="order=0: the longest n-grams have one word at least"):
        NgramLanguageModel(order=0)
