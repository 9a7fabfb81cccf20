"""Speech recogniser of hidden Markov models whose states emit Gaussian mixtures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from harness import registry
from harness.kinds import Estimator
from harness.registry import TaskEntry, register
from harness.task import Row
from harness.views.frames import Audio, cepstra

RATE = 8000
"""Samples of a second that are read."""
NOWHERE = -1e30
"""Logarithm of the probability of what cannot be."""
HALF = float(np.log(0.5))
LEAST_WEIGHT = 1e-3
"""Weight that a Gaussian of a mixture keeps."""


class Chain(NamedTuple):
    """The states of an utterance in their order: ``states`` (J,) by number. A state is followed by
    itself or by the next one, or, with a silence left out, at ``jumps`` (2, N) from the first place
    to the second. ``begins`` and ``ends`` are the places where the utterance may begin and end."""

    states: np.ndarray
    jumps: np.ndarray
    begins: np.ndarray
    ends: np.ndarray


def ways_out(chain: Chain) -> np.ndarray:
    """Log share (J,) of the ways out of each place that leads to the next one, to one behind a
    silence, or out of the utterance: a half where there are two."""
    split = np.zeros(len(chain.states))
    split[chain.jumps[0]] = HALF
    split[chain.ends[chain.ends < len(split) - 1]] = HALF
    return split


def forward(emissions: np.ndarray, stays: np.ndarray, leaves: np.ndarray, chain: Chain) -> np.ndarray:
    """Log-likelihoods (T, J) of the frames up to each, which ends at each place; ``leaves`` (J,)
    are those of one way out."""
    found = np.full(emissions.shape, NOWHERE)
    found[0, chain.begins] = emissions[0, chain.begins] - np.log(len(chain.begins))
    whence, where = chain.jumps
    for t in range(1, len(emissions)):
        left = found[t - 1] + leaves
        total = found[t - 1] + stays
        total[1:] = np.logaddexp(total[1:], left[:-1])
        total[where] = np.logaddexp(total[where], left[whence])
        found[t] = total + emissions[t]
    return found


def backward(emissions: np.ndarray, stays: np.ndarray, leaves: np.ndarray, chain: Chain) -> np.ndarray:
    """Log-likelihoods (T, J) of the frames behind each, at which each place is."""
    found = np.full(emissions.shape, NOWHERE)
    found[-1, chain.ends] = leaves[chain.ends]
    whence, where = chain.jumps
    for t in range(len(emissions) - 2, -1, -1):
        after = found[t + 1] + emissions[t + 1]
        total = after + stays
        total[:-1] = np.logaddexp(total[:-1], after[1:] + leaves[:-1])
        total[whence] = np.logaddexp(total[whence], after[where] + leaves[whence])
        found[t] = total
    return found


def forward_backward(
    emissions: np.ndarray, stays: np.ndarray, leaves: np.ndarray, chain: Chain
) -> tuple[float, np.ndarray, np.ndarray]:
    """Log-likelihood of T frames with log densities ``emissions`` (T, J), log shares (T, J) of each
    place at each frame, and log shares (T, J) of having stayed there from the frame before.

    ``stays`` and ``leaves`` (J,) are log probabilities; where there are two ways out, both are as
    probable.
    """
    one_way = leaves + ways_out(chain)
    before, behind = forward(emissions, stays, one_way, chain), backward(emissions, stays, one_way, chain)
    likelihood = float(np.logaddexp.reduce((before[-1] + one_way)[chain.ends]))
    stayed = np.full(emissions.shape, NOWHERE)
    stayed[1:] = before[:-1] + stays + emissions[1:] + behind[1:] - likelihood
    return likelihood, before + behind - likelihood, stayed


def most_probable(emissions: np.ndarray, stays: np.ndarray, leaves: np.ndarray, chain: Chain) -> np.ndarray | None:
    """Places (T,) of the most probable path of T frames through a chain, with the numbers of
    :func:`forward_backward`; None where the frames are too few for any."""
    one_way, places = leaves + ways_out(chain), np.arange(len(chain.states))
    before = np.tile(places, (len(emissions), 1))
    whence, where = chain.jumps
    scores = np.full(len(places), NOWHERE)
    scores[chain.begins] = emissions[0, chain.begins]
    for t in range(1, len(emissions)):
        left, best = scores + one_way, scores + stays
        moved = np.append(False, left[:-1] > best[1:])
        best[moved], before[t, moved] = left[:-1][moved[1:]], places[moved] - 1
        jumped = left[whence] > best[where]
        best[where[jumped]], before[t, where[jumped]] = left[whence[jumped]], whence[jumped]
        scores = best + emissions[t]
    last = chain.ends[(scores + one_way)[chain.ends].argmax()]
    if scores[last] < NOWHERE / 2:
        return None
    path = [last]
    for row in before[:0:-1]:
        path.append(row[path[-1]])
    return np.array(path[::-1])


class Loop(NamedTuple):
    """All words behind one another: ``index`` (W, L) are the states of each word, with those of a
    silence behind them, of which there are ``quiet``. ``follows`` (W, W) are log probabilities of a
    word behind another one, ``begins`` and ``ends`` (W,) of one at either end."""

    index: np.ndarray
    quiet: int
    follows: np.ndarray
    begins: np.ndarray
    ends: np.ndarray

    def best(self, emissions: np.ndarray, stays: np.ndarray, leaves: np.ndarray) -> tuple[float, list[int]]:
        """Log score and words of the most probable path of T frames with log densities
        ``emissions`` (T, S) of all states. A silence may stand before the first word, and behind
        each."""
        words, last = np.arange(len(self.index)), self.index.shape[1] - self.quiet - 1
        silence, stay, leave = self.index[0, last + 1 :], stays[self.index], leaves[self.index].copy()
        leave[:, last] += HALF  # a word is followed by a silence or by what follows that
        scores, past = np.full(self.index.shape, NOWHERE), np.full(self.index.shape, -1)
        opening, before = np.full(self.quiet, NOWHERE), np.full((len(emissions), len(words)), -1)
        for t, density in enumerate(emissions):
            exits, pasts = self._exits(scores, past, leave, last)
            arriving = exits[:, None] + self.follows
            come_from = arriving.argmax(0)
            arrived, whence = arriving[come_from, words], pasts[come_from]
            opened = self.begins + (HALF if t == 0 else opening[-1] + leaves[silence[-1]])
            before[t] = np.where(opened >= arrived, -1, whence)
            come = np.column_stack([np.maximum(opened, arrived), (scores + leave)[:, :-1]])
            told = np.column_stack([t * len(words) + words, past[:, :-1]])
            moved = come > scores + stay
            past = np.where(moved, told, past)
            scores = np.where(moved, come, scores + stay) + density[self.index]
            come = np.append(HALF if t == 0 else NOWHERE, (opening + leaves[silence])[:-1])
            opening = np.maximum(opening + stays[silence], come) + density[silence]
        exits, pasts = self._exits(scores, past, leave, last)
        best = int((exits + self.ends).argmax())
        link, found = int(pasts[best]), []
        while link >= 0:
            t, word = divmod(link, len(words))
            found.append(word)
            link = int(before[t, word])
        return float((exits + self.ends)[best]), found[::-1]

    @staticmethod
    def _exits(scores: np.ndarray, past: np.ndarray, leave: np.ndarray, last: int) -> tuple[np.ndarray, np.ndarray]:
        """The better way out of each word (W,), with or without a silence, and where it began."""
        out = (scores + leave)[:, [last, -1]]
        way = out.argmax(1)
        rows = np.arange(len(out))
        return out[rows, way], past[:, [last, -1]][rows, way]


class Mixtures(NamedTuple):
    """S states with M Gaussians each: log ``weights`` (S, M), ``means`` and ``variances`` (S, M,
    D), and log probabilities of staying, ``stays`` (S,)."""

    weights: np.ndarray
    means: np.ndarray
    variances: np.ndarray
    stays: np.ndarray

    def parts(self, frames: np.ndarray, states: np.ndarray) -> np.ndarray:
        """Log densities (T, states, M) of frames (T, D) by each weighed Gaussian of some states."""
        means, precision = self.means[states], 1 / self.variances[states]
        shape = means.shape
        flat, scale = (means * precision).reshape(-1, shape[2]), precision.reshape(-1, shape[2])
        distance = frames**2 @ scale.T - 2 * frames @ flat.T
        constant = (means**2 * precision - np.log(precision)).sum(2) + shape[2] * np.log(2 * np.pi)
        return self.weights[states] - 0.5 * (distance.reshape(len(frames), *shape[:2]) + constant)

    @property
    def leaves(self) -> np.ndarray:
        """Log probabilities (S,) of leaving."""
        return np.log1p(-np.exp(self.stays))

    def divided(self) -> Mixtures:
        """Each Gaussian as two, a fifth of its deviation to either side, of half its weight."""
        step = 0.2 * np.sqrt(self.variances)
        means = np.concatenate([self.means - step, self.means + step], axis=1)
        twice = np.concatenate([self.variances] * 2, axis=1)
        return self._replace(weights=np.tile(self.weights + HALF, 2), means=means, variances=twice)


class Sums:
    """Sums over frames: how much of each Gaussian there was, its frames and their squares, and how
    much of each state stayed, of how much."""

    def __init__(self, shape: tuple[int, int, int]):
        self.much, self.first, self.second = np.zeros(shape[:2]), np.zeros(shape), np.zeros(shape)
        self.stayed, self.there = np.zeros(shape[0]), np.zeros(shape[0])
        self.likelihood = 0.0

    def add(self, states: np.ndarray, frames: np.ndarray, shares: np.ndarray, stayed: np.ndarray) -> None:
        """Add frames (T, D) with shares (T, J, M) of the Gaussians of the states (J,) at each, and
        the amounts (J,) that stayed."""
        np.add.at(self.much, states, shares.sum(0))
        np.add.at(self.first, states, np.einsum("tjm,td->jmd", shares, frames))
        np.add.at(self.second, states, np.einsum("tjm,td->jmd", shares, frames**2))
        np.add.at(self.stayed, states, stayed)
        np.add.at(self.there, states, shares.sum((0, 2)))

    def mixtures(self, before: Mixtures, floor: np.ndarray) -> Mixtures:
        """The most probable mixtures; what was never met stays as it is ``before``."""
        much = self.much[..., None]
        known = much > 1e-3
        divisor = np.where(known, much, 1.0)
        means = np.where(known, self.first / divisor, before.means)
        variances = np.where(known, self.second / divisor - means**2, before.variances)
        total = self.much.sum(1, keepdims=True)
        weights = np.maximum(np.where(total > 0, self.much / np.where(total > 0, total, 1.0), 1.0), LEAST_WEIGHT)
        stays = np.clip(self.stayed / np.maximum(self.there, 1e-3), 0.01, 0.99)
        stays = np.where(self.there > 1e-3, np.log(stays), before.stays)
        return Mixtures(np.log(weights / weights.sum(1, keepdims=True)), means, np.maximum(variances, floor), stays)


@register(
    "hmm_gmm",
    name="HMM-GMM recogniser",
    kind="fit",
    paper="Rabiner & Juang 1993",
    source="X4.6",
    year=1993,
    tiny={"gaussians": 1, "rounds": 3},
    deviations=(
        "Each word of the training transcripts has a model; one that training never shows is never heard.",
        "Words follow each other by the counts of pairs in training, which the book's digits do not need.",
        "Numbers of states, Gaussians and rounds, and the weight of the pairs, are our choices.",
        "Half of a word's ways out lead to a silence, which may also stand before the first one.",
    ),
)
class HMMRecogniser(Estimator):
    """The most probable words of a recording, each a chain of ``states`` that a frame stays in or
    leaves, with a mixture of ``gaussians`` for the frames of each state.

    A frame is 13 cepstral coefficients of the log-mel filter bank, without their mean over the
    recording, their slopes and the slopes of these. Expectation maximisation (Baum and Welch) over
    the words of the transcripts begins with recordings cut into equal parts and one Gaussian a
    state; after each ``rounds`` every Gaussian is divided in two. The log probability of a word
    behind another one, from counts with ``smoothing``, is multiplied by ``word_weight``.
    """

    task_types = ("transcribe",)

    @classmethod
    def unfit(cls, task: TaskEntry, hyperparameters: dict[str, Any]) -> str | None:
        return None if "audio" in registry.load(task).inputs else f"reads audio, of which {task.id} has none"

    def __init__(
        self,
        seed: int = 0,
        states: int = 6,
        quiet: int = 3,
        gaussians: int = 4,
        rounds: int = 4,
        word_weight: float = 10.0,
        smoothing: float = 0.1,
    ):
        super().__init__(seed)
        if gaussians < 1 or gaussians & (gaussians - 1):
            raise ValueError(f"gaussians={gaussians}: each is divided in two, so that a power of 2 is expected")
        for name, value in (("states", states), ("quiet", quiet), ("rounds", rounds)):
            if value < 1:
                raise ValueError(f"{name}={value}: expected is 1 at least")
        self.states, self.quiet, self.gaussians, self.rounds = states, quiet, gaussians, rounds
        self.word_weight, self.smoothing = word_weight, smoothing

    @classmethod
    def memory_needed(cls, size: int, hyperparameters: dict[str, Any]) -> float:
        """Frames of 39 numbers every 10 ms, of samples of 2 bytes."""
        return 6.0 * size

    @staticmethod
    def frames(audio: Audio) -> np.ndarray:
        """Frames (T, 39) of a recording."""
        found = cepstra(audio, RATE).astype(np.float64)
        found[:, :13] -= found[:, :13].mean(axis=0)
        return found

    def chain(self, words: Sequence[int]) -> Chain:
        """The states of some words, with silences around them."""
        silence, length = np.arange(self.quiet) + len(self.words) * self.states, self.states + self.quiet
        states = [silence, *(part for word in words for part in (np.arange(self.states) + word * self.states, silence))]
        firsts = self.quiet + length * np.arange(1, len(words))
        count = self.quiet + len(words) * length
        begins, ends = ([0, self.quiet], [count - 1 - self.quiet, count - 1]) if words else ([0], [count - 1])
        jumps = np.stack([firsts - self.quiet - 1, firsts])
        return Chain(np.concatenate(states), jumps, np.array(begins), np.array(ends))

    def fit(self, train: Sequence[Row], dev: Sequence[Row], unlabelled: Sequence[Row] = ()) -> None:
        said = [row["transcript"].split() for row in train]
        self.words = sorted({word for words in said for word in words})
        if not self.words:
            raise ValueError(f"the transcripts of all {len(train)} training recordings are empty")
        numbers = {word: number for number, word in enumerate(self.words)}
        spoken = [[numbers[word] for word in words] for words in said]
        self._count_pairs(spoken)
        read = [self.frames(row["audio"]) for row in train]
        chains = [self.chain(words) for words in spoken]
        every = np.concatenate(read)
        floor = np.maximum(0.01 * every.var(axis=0), 1e-6)
        count = len(self.words) * self.states + self.quiet
        start = Mixtures(
            np.zeros((count, 1)),
            np.tile(every.mean(axis=0), (count, 1, 1)),
            np.tile(every.var(axis=0), (count, 1, 1)) + floor,
            np.full(count, np.log(0.8)),
        )
        self.mixtures = self._equal_parts(read, chains, start, floor)
        self.likelihoods = []
        while True:
            for _ in range(self.rounds):
                sums = self._expected(read, chains)
                self.likelihoods.append(sums.likelihood)
                self.mixtures = sums.mixtures(self.mixtures, floor)
            if self.mixtures.means.shape[1] >= self.gaussians:
                break
            self.mixtures = self.mixtures.divided()
        self.shares = np.log((sums.there + 1) / (sums.there + 1).sum())
        self.parameter_count = sum(each.size for each in self.mixtures) + self.follows.size + 2 * len(self.words)

    def _count_pairs(self, spoken: Sequence[Sequence[int]]) -> None:
        """Log probabilities of words behind each other and at both ends, times their weight."""
        words = len(self.words)
        counts = np.full((words + 1, words + 1), self.smoothing)  # the last of both is an end
        for one in spoken:
            np.add.at(counts, ([words, *one], [*one, words]), 1)
        logs = self.word_weight * np.log(counts / counts.sum(axis=1, keepdims=True))
        self.follows, self.begins, self.ends = logs[:-1, :-1], logs[-1, :-1], logs[:-1, -1]

    @staticmethod
    def _equal_parts(
        read: Sequence[np.ndarray], chains: Sequence[Chain], start: Mixtures, floor: np.ndarray
    ) -> Mixtures:
        """One Gaussian a state, of recordings that are cut into as many equal parts as their chains
        have states."""
        sums = Sums(start.means.shape)
        for frames, chain in zip(read, chains, strict=True):
            places = np.arange(len(frames)) * len(chain.states) // len(frames)
            shares = np.zeros((len(frames), len(chain.states), 1))
            shares[np.arange(len(frames)), places, 0] = 1.0
            stayed = np.bincount(places[1:][places[1:] == places[:-1]], minlength=len(chain.states))
            sums.add(chain.states, frames, shares, stayed)
        return sums.mixtures(start, floor)

    def _expected(self, read: Sequence[np.ndarray], chains: Sequence[Chain]) -> Sums:
        """The sums that the mixtures expect of all recordings, without those that are shorter than
        their chains."""
        sums, leaves = Sums(self.mixtures.means.shape), self.mixtures.leaves
        for frames, chain in zip(read, chains, strict=True):
            parts = self.mixtures.parts(frames, chain.states)
            emissions = logsumexp(parts, axis=2)
            likelihood, shares, stayed = forward_backward(
                emissions, self.mixtures.stays[chain.states], leaves[chain.states], chain
            )
            if likelihood > NOWHERE / 2:
                of = np.exp(shares)[..., None] * np.exp(parts - emissions[..., None])
                sums.add(chain.states, frames, of, np.exp(stayed).sum(axis=0))
                sums.likelihood += likelihood
        return sums

    def aligned(self, frames: np.ndarray, words: Sequence[str]) -> np.ndarray | None:
        """The state (T,) in which each of the frames (T, 39) of some words most probably is; None
        for words that it does not know, or more of them than there is room for."""
        if not set(words) <= set(self.words):
            return None
        chain = self.chain([self.words.index(word) for word in words])
        emissions = logsumexp(self.mixtures.parts(frames, chain.states), axis=2)
        stays, leaves = self.mixtures.stays[chain.states], self.mixtures.leaves[chain.states]
        places = most_probable(emissions, stays, leaves, chain)
        return None if places is None else chain.states[places]

    def heard(self, frames: np.ndarray) -> list[str]:
        """The most probable words of frames (T, 39)."""
        return self.decoded(logsumexp(self.mixtures.parts(frames, np.arange(len(self.mixtures.stays))), axis=2))

    def decoded(self, emissions: np.ndarray) -> list[str]:
        """The most probable words of T frames with log densities ``emissions`` (T, S) of all
        states."""
        count, words = len(self.mixtures.stays), len(self.words)
        silence = np.tile(np.arange(count - self.quiet, count), (words, 1))
        index = np.column_stack([np.arange(words * self.states).reshape(words, -1), silence])
        loop = Loop(index, self.quiet, self.follows, self.begins, self.ends)
        _, found = loop.best(emissions, self.mixtures.stays, self.mixtures.leaves)
        return [self.words[word] for word in found]

    def predict(self, rows: Sequence[Row]) -> list[str]:
        return [" ".join(self.heard(self.frames(row["audio"]))) for row in rows]

    def fitted_state(self) -> dict[str, Any]:
        return dict(vars(self)) | {"mixtures": list(self.mixtures)}

    def restore_fitted(self, state: dict[str, Any]) -> None:
        super().restore_fitted(state)
        self.mixtures = Mixtures(*state["mixtures"])
