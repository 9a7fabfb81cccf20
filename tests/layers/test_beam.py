"""Beam search against greedy search and against enumeration of all sequences of small models."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from harness.layers.beam import beam_search, greedy

START, END = 0, 1


class Memory(NamedTuple):
    """State of the model below, in every container a decoder may use."""

    sources: Tensor
    history: dict[str, list[Tensor]]
    name: str


class Markov:
    """Next-token scores that depend on the source, the token before and the one before that (kept
    in the state)."""

    def __init__(self, sources: int, vocabulary: int, seed: int, end_bias: float = 0.0):
        generator = torch.Generator().manual_seed(seed)
        logits = 2 * torch.randn(sources, vocabulary, vocabulary, vocabulary, generator=generator, dtype=torch.float64)
        logits[..., START] = -torch.inf
        logits[..., END] += end_bias
        self.log_probs = logits.log_softmax(-1)
        self.vocabulary, self.calls = vocabulary, 0

    def state(self, *sources: int) -> Memory:
        return Memory(torch.tensor(sources), {"before": [torch.full((len(sources),), START)]}, "markov")

    def step(self, tokens: Tensor, state: Memory) -> tuple[Tensor, Memory]:
        self.calls += 1
        assert state.name == "markov"
        log_probs = self.log_probs[state.sources, state.history["before"][0], tokens]
        return log_probs, Memory(state.sources, {"before": [tokens]}, state.name)

    def score(self, source: int, sequence: tuple[int, ...]) -> float:
        """Sum of log p of a sequence after the start."""
        states = itertools.pairwise((START, START, *sequence[:-1]))
        return float(sum(self.log_probs[source, a, b, token] for (a, b), token in zip(states, sequence, strict=True)))

    def finished(self, max_length: int) -> list[tuple[int, ...]]:
        """All sequences of at most ``max_length`` tokens, the end counted."""
        words = [token for token in range(self.vocabulary) if token not in (START, END)]
        return [(*body, END) for n in range(max_length) for body in itertools.product(words, repeat=n)]


@pytest.mark.parametrize("seed", range(8))
def test_a_beam_of_one_is_greedy_search(seed):
    """The simplest sanity check of a decoder: hypotheses that end must end, and no runner-up may
    win."""
    model = Markov(3, 6, seed, end_bias=-1.0)
    expected = greedy(model.step, model.state(0, 1, 2), START, END, 12)
    assert beam_search(model.step, model.state(0, 1, 2), START, END, 12, beam=1) == expected


def test_greedy_follows_the_best_token_until_the_end():
    """Tokens after the end, the end itself or the start would land in the answer of a user."""
    model = Markov(4, 5, seed=1)
    for source, found in enumerate(greedy(model.step, model.state(0, 1, 2, 3), START, END, 10)):
        tokens = [START, START]
        while len(tokens) < 12:
            tokens.append(int(model.log_probs[source, tokens[-2], tokens[-1]].argmax()))
            if tokens[-1] == END:
                break
        assert found == [token for token in tokens[2:] if token != END]


@pytest.mark.parametrize("length_penalty", [0.0, 0.7, 1.5])
@pytest.mark.parametrize("seed", range(6))
def test_a_wide_beam_finds_the_best_of_all_sequences(seed, length_penalty):
    """Stopping too early, mixing up rows of the state or losing a finished hypothesis would miss
    the best sequence."""
    model, max_length = Markov(2, 5, seed, end_bias=-2.0), 4
    found = beam_search(model.step, model.state(0, 1), START, END, max_length, beam=5**3, length_penalty=length_penalty)
    for source in range(2):
        best = max(
            model.finished(max_length),
            key=lambda sequence: model.score(source, sequence) / len(sequence) ** length_penalty,
        )
        assert (*found[source], END) == best


def test_a_beam_beats_greedy_search_where_the_first_choice_misleads():
    """.6 * .4 = .24 is greedy, .4 * 1 = .4 the better sequence: the reason to search."""
    log_probs = torch.full((4, 4), -torch.inf)
    log_probs[START, 2], log_probs[START, 3] = torch.tensor([0.6, 0.4]).log()
    log_probs[2] = torch.tensor([0.0, 0.4, 0.3, 0.3]).log()
    log_probs[3, END] = 0

    def step(tokens, state):
        return log_probs[tokens], state

    assert greedy(step, torch.zeros(1), START, END, 5) == [[2]]
    assert beam_search(step, torch.zeros(1), START, END, 5, beam=2) == [[3]]


@pytest.mark.parametrize("length_penalty", [0.0, 1.0])
def test_a_source_is_decoded_alike_alone_and_in_a_batch(length_penalty):
    """An answer must not depend on its neighbours, of which some end early and some late."""
    model = Markov(4, 6, seed=3, end_bias=-1.5)
    together = beam_search(model.step, model.state(0, 1, 2, 3), START, END, 9, 3, length_penalty)
    alone = [beam_search(model.step, model.state(i), START, END, 9, 3, length_penalty)[0] for i in range(4)]
    assert together == alone
    assert len({len(sequence) for sequence in together}) > 1, "the case shows nothing: all end together"


def test_finished_hypotheses_are_kept_apart_from_those_that_go_on():
    """`END` ranks second at first and its score (.4) beats all that follows (.6 * .5): it must not
    be lost to the longer ones."""
    log_probs = torch.full((4, 4), -torch.inf)
    log_probs[START, 2], log_probs[START, END] = torch.tensor([0.6, 0.4]).log()
    log_probs[2:] = torch.tensor([0.0, 0.5, 0.0, 0.5]).log()
    calls = []

    def step(tokens, state):
        calls.append(tokens)
        return log_probs[tokens], state

    assert beam_search(step, torch.zeros(1), START, END, 50, beam=2) == [[]]
    assert len(calls) == 2, "no hypothesis could win after the second token (.6 * .5 < .4)"
    normalised = beam_search(step, torch.zeros(1), START, END, 50, beam=2, length_penalty=1.0)
    assert normalised == [[2]], (
        "log(.6 * .5) / 2 = -.60 is better than log(.4) = -.92 and than log(.6 * .5 * .5) / 3 = -.63"
    )


def test_stops_when_nothing_unfinished_can_win():
    """Without the bound every decoding would cost max_length steps."""
    model = Markov(3, 6, seed=5, end_bias=2.0)
    beam_search(model.step, model.state(0, 1, 2), START, END, 500, beam=4)
    assert model.calls < 40


def test_without_an_end_the_best_unfinished_hypothesis_is_given():
    """A model that never ends must still answer, with as many tokens as it was allowed."""
    model = Markov(2, 5, seed=6, end_bias=-torch.inf)
    words = range(2, 5)
    found = beam_search(model.step, model.state(0, 1), START, END, 3, beam=27)
    for source in range(2):
        assert tuple(found[source]) == max(
            itertools.product(words, repeat=3), key=lambda sequence: model.score(source, sequence)
        )
    assert [len(sequence) for sequence in greedy(model.step, model.state(0, 1), START, END, 3)] == [3, 3]


def test_the_end_counts_towards_max_length():
    """The limit is on steps of the model, in both searches."""
    model = Markov(1, 4, seed=7)
    for search in (greedy, beam_search):
        model.calls = 0
        search(model.step, model.state(0), START, END, 1)
        assert model.calls == 1
        assert search(model.step, model.state(0), START, END, 0) == [[]]


def test_a_state_that_cannot_be_reordered_is_refused():
    """An LSTM's (layers, N, hidden) state would otherwise be re-ordered along its layers,
    silently."""

    def step(tokens, state):
        raise AssertionError("the search should not begin")

    for search in (greedy, beam_search):
        with pytest.raises(ValueError, match=r"dimension 0.*\(3, 8\), \(2, 3, 5\)"):
            search(step, [torch.zeros(3, 8), torch.zeros(2, 3, 5)], START, END, 4)
        with pytest.raises(ValueError, match="holds no tensor"):
            search(step, {"state": None}, START, END, 4)


@pytest.mark.parametrize(
    ("options", "message"), [({"beam": 0}, "beam is 0"), ({"length_penalty": -0.5}, "length_penalty is -0.5")]
)
def test_options_that_make_no_sense_are_refused(options, message):
    """They would end in an unreadable error of topk, or in a search that stops too early."""
    with pytest.raises(ValueError, match=message):
        beam_search(lambda tokens, state: (tokens, state), torch.zeros(1), START, END, 4, **options)
