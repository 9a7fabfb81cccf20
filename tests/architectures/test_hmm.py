"""Hidden Markov tagger: Viterbi by enumeration, estimates by hand, unknown words by their
endings."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from architectures.classical.hmm import HiddenMarkovTagger, viterbi


def row(tagged: str) -> dict[str, list[str]]:
    words, tags = zip(*(pair.split("/") for pair in tagged.split()), strict=True)
    return {"text": list(words), "tags": list(tags)}


CORPUS = [row("the/D dog/N saw/V the/D saw/N"), row("Anna/N saw/V the/D dog/N"), row("Anna/N sleeps/V")]


@settings(max_examples=50)
@given(st.integers(0, 10_000), st.integers(1, 4))
def test_viterbi_finds_what_enumeration_finds(seed, length):
    """3 tags, up to 4 words, one transition impossible: a wrong back-pointer or a lost start or end
    score tags another sequence."""
    random = np.random.default_rng(seed)
    start, transitions, emissions, end = (random.normal(size=size) for size in (3, (3, 3), (length, 3), 3))
    transitions[0, 2] = -np.inf

    def score(tags: tuple[int, ...]) -> float:
        moves = sum(transitions[a, b] for a, b in itertools.pairwise(tags))
        return start[tags[0]] + moves + sum(emissions[t, tag] for t, tag in enumerate(tags)) + end[tags[-1]]

    assert tuple(viterbi(start, transitions, emissions, end)) == max(
        itertools.product(range(3), repeat=length), key=score
    )


def test_probabilities_are_relative_frequencies_when_nothing_is_smoothed():
    """From the corpus above, counted by hand; emissions up to one factor per word."""
    hmm = HiddenMarkovTagger(smoothing=1e-12, transition_smoothing=1e-12)
    hmm.fit(CORPUS, [])
    assert hmm.tags == ["D", "N", "V"]
    np.testing.assert_allclose(np.exp(hmm.start), [1 / 3, 2 / 3, 0], atol=1e-9)
    np.testing.assert_allclose(np.exp(hmm.end), [0, 2 / 5, 1 / 3], atol=1e-9)
    np.testing.assert_allclose(np.exp(hmm.transitions), [[0, 1, 0], [0, 0, 3 / 5], [2 / 3, 0, 0]], atol=1e-9)
    saw = np.exp(hmm.emission("saw"))
    np.testing.assert_allclose(saw / saw.sum(), np.array([0, 1 / 5, 2 / 3]) / (1 / 5 + 2 / 3), atol=1e-9)


def test_rows_of_transitions_and_end_sum_to_one_with_smoothing():
    hmm = HiddenMarkovTagger()
    hmm.fit(CORPUS, [])
    np.testing.assert_allclose(np.exp(hmm.transitions).sum(1) + np.exp(hmm.end), 1)
    assert np.exp(hmm.start).sum() == pytest.approx(1)
    assert np.isfinite(hmm.transitions).all()


def test_parameters_are_counted_as_a_plain_number():
    """15 moves, 6 words with their tags, 16 endings with theirs; a record cannot hold a number of
    numpy's."""
    hmm = HiddenMarkovTagger(longest_ending=2)
    hmm.fit(CORPUS, [])
    # "": D N V, and N for capitals; e he; g og; w aw with N and V; capital a na; s ps
    assert hmm.parameter_count == 15 + 6 + (3 + 1) + 2 + 2 + 4 + 2 + 2
    assert type(hmm.parameter_count) is int


def test_the_same_word_is_tagged_by_its_neighbours():
    """``saw`` is seen more often as a verb: without transitions the noun after ``the`` would be
    lost."""
    hmm = HiddenMarkovTagger()
    hmm.fit(CORPUS, [])
    assert hmm.predict([{"text": ["the", "saw", "saw", "Anna"]}]) == [["D", "N", "V", "N"]]


def test_unknown_words_are_judged_by_their_ending_and_capital():
    train = [
        row("the/D walking/G"),
        row("the/D talking/G"),
        row("the/D nation/N"),
        row("the/D station/N"),
        row("the/D Bonn/P"),
    ]
    hmm = HiddenMarkovTagger(smoothing=0.1)
    hmm.fit(train, [])

    def best(word: str) -> str:
        return hmm.tags[int(hmm.emission(word).argmax())]

    assert [best(word) for word in ("singing", "ration", "Xyz")] == ["G", "N", "P"]
    assert hmm.predict([{"text": ["the", "ration"]}, {"text": []}]) == [["D", "N"], []]


def test_an_ending_is_smoothed_with_the_next_shorter_one():
    """By hand, for an unknown word in -ing: the tags' shares, then those of all rare words, of -g,
    -ng and -ing, each with half an observation of the one before.

    Smoothed with the tags' shares at each step, what -g says would be lost where -ing is rare.
    """
    hmm = HiddenMarkovTagger(longest_ending=3)
    hmm.fit([row("a/D thing/N"), row("a/D dog/N"), row("a/D song/N"), row("a/D going/V"), row("a/D bed/N")], [])
    tags, prior = ["D", "N", "V"], np.array([5, 4, 1]) / 10
    assert hmm.tags == tags
    expected = prior
    for counts in ([5, 4, 1], [0, 3, 1], [0, 2, 1], [0, 1, 1]):  # "", g, ng, ing
        expected = (np.array(counts) + 0.5 * expected) / (sum(counts) + 0.5)
    np.testing.assert_allclose(np.exp(hmm.emission("sing")), expected / prior)


def test_a_frequent_word_is_judged_by_its_own_counts_above_all():
    """By hand: twelve times one tag and once the other, above what the endings of a rare word say;
    without them a closed class would be tagged like any word that ends so."""
    hmm = HiddenMarkovTagger()
    hmm.fit([row("this/D")] * 12 + [row("this/N"), row("axis/N")], [])
    prior = np.array([12, 2]) / 14
    expected = prior
    for counts in ([0, 1], [0, 1], [0, 1], [12, 1]):  # "", s, is, this
        expected = (np.array(counts) + 0.5 * expected) / (sum(counts) + 0.5)
    np.testing.assert_allclose(np.exp(hmm.emission("this")), expected / prior)


def test_endings_are_counted_over_rare_words_only():
    """Frequent words are closed classes whose endings say nothing about new words."""
    train = [row("this/D is/V his/N")] * 11 + [row("axis/N")]
    hmm = HiddenMarkovTagger(rare=10)
    hmm.fit(train, [])
    assert hmm.tags[int(hmm.emission("basis").argmax())] == "N"
    assert hmm.endings[False, "is"].tolist() == [0, 1, 0]
