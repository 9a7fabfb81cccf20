"""The recogniser of hidden Markov models: likelihoods, shares and words against all paths listed
one by one, Gaussians against scipy's, and rounds that never lower the likelihood."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from architectures.classical.hmm_gmm import (
    HALF,
    Chain,
    HMMRecogniser,
    Loop,
    Mixtures,
    Sums,
    forward_backward,
    most_probable,
)
from harness.saved_models.values import packed, unpacked
from tasks.mini import speech

QUIET, STATES, WORDS = 1, 2, 2
COUNT = WORDS * STATES + QUIET


def recogniser(**settings: int) -> HMMRecogniser:
    model = HMMRecogniser(states=STATES, quiet=QUIET, **settings)
    model.words = ["no", "yes"]
    return model


@pytest.fixture
def ways() -> tuple[np.ndarray, np.ndarray]:
    """Log probabilities of staying in each state, and of leaving it."""
    stays = np.log(np.linspace(0.2, 0.7, COUNT))
    return stays, np.log1p(-np.exp(stays))


def paths(chain: Chain, frames: int) -> list[tuple[list[int], int]]:
    """The places of each way through a chain in so many frames, and how many of its moves were
    chosen among two."""
    jumps = set(zip(*chain.jumps.tolist(), strict=True))
    forks = {a for a, _ in jumps} | {end for end in chain.ends if end + 1 < len(chain.states)}
    found = []
    for way in itertools.product(range(len(chain.states)), repeat=frames):
        moves = list(itertools.pairwise(way))
        allowed = all(b == a or b == a + 1 or (a, b) in jumps for a, b in moves)
        if allowed and way[0] in chain.begins and way[-1] in chain.ends:
            chosen = sum(a in forks and a != b for a, b in moves) + (way[-1] in forks)
            found.append((list(way), chosen + (len(chain.begins) > 1)))
    return found


def score(way: list[int], halves: int, emissions: np.ndarray, stays: np.ndarray, leaves: np.ndarray) -> float:
    total = sum(emissions[t, j] for t, j in enumerate(way)) + halves * HALF + leaves[way[-1]]
    return total + sum(stays[a] if a == b else leaves[a] for a, b in itertools.pairwise(way))


@pytest.mark.parametrize("words", [[0], [1, 0], [1, 1]])
def test_likelihood_and_shares_are_those_of_all_paths(words, ways):
    """Silence at either end and between words may be left out; staying is counted where it is
    done."""
    chain, frames = recogniser().chain(words), 6
    emissions = np.random.default_rng(1).normal(size=(frames, len(chain.states)))
    stays, leaves = (each[chain.states] for each in ways)
    likelihood, shares, stayed = forward_backward(emissions, stays, leaves, chain)
    listed = paths(chain, frames)
    assert len({tuple(way) for way, _ in listed}) > 5
    logs = np.array([score(way, halves, emissions, stays, leaves) for way, halves in listed])
    assert likelihood == pytest.approx(np.logaddexp.reduce(logs))
    expected, stay = np.zeros((2, *emissions.shape))
    for (way, _), share in zip(listed, np.exp(logs - likelihood), strict=True):
        expected[np.arange(frames), way] += share
        for t, (a, b) in enumerate(itertools.pairwise(way), 1):
            stay[t, b] += share * (a == b)
    np.testing.assert_allclose(np.exp(shares), expected, atol=1e-9)
    np.testing.assert_allclose(np.exp(stayed), stay, atol=1e-9)


def test_the_words_are_those_of_the_best_path_of_all(ways):
    """Listed for up to two words, with what pairs of words are worth."""
    frames, stays, leaves = 5, *ways
    model, seen = recogniser(), Counter()
    for seed in range(30):
        lot = np.random.default_rng(seed)
        emissions = 2 * lot.normal(size=(frames, COUNT))
        follows, begins, ends = lot.normal(size=(2, 2)), lot.normal(size=2), lot.normal(size=2)
        best: tuple[float, list[int]] = (-math.inf, [])
        for words in ([0], [1], [0, 0], [0, 1], [1, 0], [1, 1]):
            chain = model.chain(words)
            worth = begins[words[0]] + ends[words[-1]] + sum(follows[a, b] for a, b in itertools.pairwise(words))
            for way, halves in paths(chain, frames):
                own = emissions[:, chain.states], stays[chain.states], leaves[chain.states]
                best = max(best, (score(way, halves, *own) + worth, words))
        loop = Loop(np.array([[0, 1, 4], [2, 3, 4]]), QUIET, follows, begins, ends)
        found, heard = loop.best(emissions, stays, leaves)
        assert (found, heard) == (pytest.approx(best[0]), best[1])
        seen[len(best[1])] += 1
    assert min(seen[1], seen[2]) > 3


# --- Gaussians ---


def mixtures(gaussians: int = 2, dims: int = 3) -> Mixtures:
    lot = np.random.default_rng(0)
    weights = lot.dirichlet(np.ones(gaussians), size=2)
    means, variances = lot.normal(size=(2, gaussians, dims)), lot.uniform(0.5, 2.0, (2, gaussians, dims))
    return Mixtures(np.log(weights), means, variances, np.log([0.5, 0.6]))


def test_densities_are_scipys():
    made, frames = mixtures(), np.random.default_rng(1).normal(size=(4, 3))
    found = made.parts(frames, np.array([1, 0]))
    for place, state in enumerate([1, 0]):
        for m in range(2):
            density = multivariate_normal(made.means[state, m], np.diag(made.variances[state, m]))
            np.testing.assert_allclose(found[:, place, m], density.logpdf(frames) + made.weights[state, m])


def test_a_gaussian_is_divided_a_fifth_of_its_deviation_to_either_side():
    made = mixtures(gaussians=1)
    twice = made.divided()
    np.testing.assert_allclose(np.exp(twice.weights), 0.5)
    step = 0.2 * np.sqrt(made.variances[:, 0])
    np.testing.assert_allclose(twice.means, np.stack([made.means[:, 0] - step, made.means[:, 0] + step], axis=1))
    np.testing.assert_allclose(twice.variances[:, 1], made.variances[:, 0])


def test_one_gaussian_has_the_mean_and_variance_of_its_frames():
    """The most probable ones; a variance has a floor, and what was never met stays."""
    frames, sums = np.random.default_rng(2).normal(size=(10, 3)), Sums((2, 1, 3))
    frames[:, 2] = 5.0
    sums.add(np.array([1]), frames, np.ones((10, 1, 1)), np.array([6.0]))
    before = mixtures(gaussians=1)
    made = sums.mixtures(before, np.array([0.01, 0.02, 0.03]))
    np.testing.assert_allclose(made.means[1, 0], frames.mean(0))
    np.testing.assert_allclose(made.variances[1, 0], [*frames.var(0)[:2], 0.03])
    assert np.exp(made.stays[1]) == pytest.approx(0.6) and made.stays[0] == before.stays[0]
    np.testing.assert_allclose((made.means[0], made.variances[0]), (before.means[0], before.variances[0]))


def test_a_state_that_a_chain_has_twice_is_counted_twice():
    sums = Sums((1, 1, 1))
    sums.add(np.array([0, 0]), np.array([[1.0], [3.0]]), np.eye(2)[..., None], np.array([0.5, 0.25]))
    assert (sums.much[0, 0], sums.first[0, 0, 0], sums.second[0, 0, 0]) == (2.0, 4.0, 10.0)
    assert (sums.stayed[0], sums.there[0]) == (0.75, 2.0)


# --- the whole ---


@pytest.fixture(scope="module")
def rows() -> dict[str, list[dict]]:
    return {
        split: list(itertools.islice(speech.digits(split, labelled=False, unseen=False), count))
        for split, count in (("train", 120), ("test", 30))
    }


@pytest.fixture(scope="module")
def trained(rows) -> HMMRecogniser:
    model = HMMRecogniser(states=4, gaussians=2, rounds=3)
    model.fit(rows["train"], [])
    return model


def test_no_round_lowers_the_likelihood(trained):
    """But the one behind a division, which moves the means."""
    first, second = trained.likelihoods[:3], trained.likelihoods[3:]
    assert first == sorted(first) and second == sorted(second) and second[-1] > first[-1]


def test_it_hears_digits_and_a_kept_one_hears_the_same(trained, rows):
    heard = trained.predict(rows["test"])
    right = sum(words == row["transcript"] for words, row in zip(heard, rows["test"], strict=True))
    assert right >= 24
    arrays: dict = {}
    state = {name: packed(value, arrays, name) for name, value in trained.fitted_state().items()}
    again = HMMRecogniser(states=4, gaussians=2)
    again.restore_fitted({name: unpacked(value, arrays) for name, value in state.items()})
    assert again.predict(rows["test"]) == heard


def test_pairs_of_words_are_counted_with_both_ends():
    """By hand, of "no yes" and "yes": behind "no" stands "yes" once, behind "yes" the end twice."""
    model = recogniser(smoothing=1, word_weight=2)
    model._count_pairs([[0, 1], [1]])
    np.testing.assert_allclose(model.follows, 2 * np.log([[1 / 4, 2 / 4], [1 / 5, 1 / 5]]))
    np.testing.assert_allclose(model.begins, 2 * np.log([2 / 5, 2 / 5]))
    np.testing.assert_allclose(model.ends, 2 * np.log([1 / 4, 3 / 5]))


def test_frames_have_no_mean_of_their_recording_but_its_movements(rows):
    """13 coefficients, which a louder recording does not change, their slopes and slopes of
    slopes."""
    frames = HMMRecogniser.frames(rows["train"][0]["audio"])
    assert frames.shape[1] == 39
    np.testing.assert_allclose(frames[:, :13].mean(0), 0, atol=1e-4)
    slope = (2 * (frames[4, :13] - frames[0, :13]) + frames[3, :13] - frames[1, :13]) / 10
    np.testing.assert_allclose(frames[2, 13:26], slope, rtol=1e-4, atol=1e-5)


def test_settings_and_transcripts_that_cannot_work_are_told(rows):
    with pytest.raises(ValueError, match="gaussians=3: .* a power of 2"):
        HMMRecogniser(gaussians=3)
    for name in ("states", "quiet", "rounds"):
        with pytest.raises(ValueError, match=f"{name}=0: expected is 1 at least"):
            HMMRecogniser(**{name: 0})
    with pytest.raises(ValueError, match="the transcripts of all 1 training recordings are empty"):
        HMMRecogniser().fit([rows["train"][0] | {"transcript": ""}], [])


# --- alignment ---


@pytest.mark.parametrize("words", [[0], [1, 0], [1, 1]])
def test_the_most_probable_path_is_the_best_of_all(words, ways):
    """Whoever learns from an alignment would else be told the wrong state."""
    chain, frames = recogniser().chain(words), 6
    stays, leaves = (each[chain.states] for each in ways)
    for seed in range(4):
        emissions = 2 * np.random.default_rng(seed).normal(size=(frames, len(chain.states)))
        way, _ = max(paths(chain, frames), key=lambda path: score(path[0], path[1], emissions, stays, leaves))
        assert most_probable(emissions, stays, leaves, chain).tolist() == way


def test_there_is_no_path_through_too_few_frames(ways):
    """Two frames are too few for a word of two states and the one behind it."""
    chain = recogniser().chain([0, 1])
    stays, leaves = (each[chain.states] for each in ways)
    assert most_probable(np.zeros((3, len(chain.states))), stays, leaves, chain) is None
    assert most_probable(np.zeros((4, len(chain.states))), stays, leaves, chain) is not None


def test_frames_are_aligned_in_the_order_of_the_words():
    """Each word's states one after the other, with silences around them; a word that was never
    learnt, or too short a recording, has no alignment."""
    rows = list(speech.digits("train", labelled=False, unseen=False))[:40]
    model = HMMRecogniser(gaussians=1, rounds=2)
    model.fit(rows, [])
    for row in rows[:5]:
        frames, (word,) = model.frames(row["audio"]), row["transcript"].split()
        states = model.aligned(frames, [word])
        first, quiet = model.words.index(word) * 6, len(model.words) * 6
        assert [*range(first, first + 6)] == list(dict.fromkeys(s for s in states.tolist() if s < quiet))
        assert len(states) == len(frames) and set(states.tolist()) <= {
            *range(first, first + 6),
            *range(quiet, quiet + 3),
        }
    assert model.aligned(frames, ["never"]) is None and model.aligned(frames[:3], [word]) is None
    assert np.exp(model.shares).sum() == pytest.approx(1) and len(model.shares) == len(model.mixtures.stays)
