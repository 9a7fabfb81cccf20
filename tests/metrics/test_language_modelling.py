"""Perplexity: by hand, and against scikit-learn's log loss."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import log_loss

from harness.metrics import score


def _perplexity(*texts):
    """Perplexity, after a check that it is the exponential of the nats per token."""
    values = score(["nats_per_token", "perplexity"], list(texts), [{}] * len(texts))
    assert values["perplexity"] == pytest.approx(math.exp(values["nats_per_token"]))
    return values["perplexity"]


def test_a_uniform_guess_among_ten_words_has_perplexity_ten():
    assert _perplexity((5 * math.log(0.1), 5), (2 * math.log(0.1), 2)) == pytest.approx(10)


def test_the_mean_is_per_token_not_per_text():
    """One token of probability 1/2 and three of 1/4: exp((ln 2 + 3 ln 4) / 4) = 2 ** (7/4), not the
    mean of 2 and 4."""
    assert _perplexity((math.log(1 / 2), 1), (3 * math.log(1 / 4), 3)) == pytest.approx(2**1.75)


def test_an_empty_text_changes_nothing():
    assert _perplexity((-2.0, 2), (0.0, 0)) == pytest.approx(math.e)


@pytest.mark.parametrize("texts", [[(0.0, 0)], [(-1e6, 1)], [(float("-inf"), 2)], [(float("nan"), 1)]])
def test_what_has_no_finite_perplexity_is_an_error(texts):
    """A record cannot hold inf or NaN: a diverged language model must be named as such."""
    with pytest.raises(ValueError, match="no text has a token|not a finite number"):
        _perplexity(*texts)


@pytest.mark.parametrize("name", ["nats_per_token", "perplexity"])
def test_each_of_the_two_names_alone_refuses_it_too(name):
    with pytest.raises(ValueError, match="not a finite number"):
        score([name], [(-1e6, 1)], [{}])


@settings(max_examples=20)
@given(st.lists(st.lists(st.floats(0.01, 0.99), min_size=1, max_size=4), min_size=1, max_size=3))
def test_equal_to_the_exponential_of_scikit_learns_log_loss(texts):
    """Probabilities of the right token against the rest, as a two-class problem whose class is
    always 1."""
    flat = [p for text in texts for p in text]
    expected = math.exp(log_loss([1] * len(flat), flat, labels=[0, 1]))
    assert _perplexity(*((sum(map(math.log, text)), len(text)) for text in texts)) == pytest.approx(expected)
