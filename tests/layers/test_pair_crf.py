"""The CRF over pairs of labels against enumeration of all label sequences, and against the one
whose transitions have one score at all words."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor

from harness.layers.crf import LinearChainCRF
from harness.layers.pair_crf import PairCRF
from tests.support.batches import mask_of
from tests.support.same import assert_same

LABELS, LENGTHS = 3, [5, 1, 3]


@pytest.fixture(scope="module")
def batch() -> tuple[Tensor, Tensor, Tensor]:
    """Scores, tags and mask of three sentences."""
    torch.manual_seed(0)
    mask = mask_of(LENGTHS)
    scores = torch.randn(*mask.shape, (LABELS + 1) * LABELS, dtype=torch.float64)
    return scores.requires_grad_(), torch.randint(LABELS, mask.shape), mask


def enumerated(scores: Tensor) -> tuple[list[tuple[int, ...]], Tensor]:
    """All label sequences of one sentence (T, (labels + 1) * labels) and the score of each, added
    up term by term."""
    pairs = scores.view(len(scores), LABELS + 1, LABELS)
    sequences = list(itertools.product(range(LABELS), repeat=len(scores)))
    sums = [sum(pairs[t, i, j] for t, (i, j) in enumerate(itertools.pairwise((-1, *tags)))) for tags in sequences]
    return sequences, torch.stack(sums)


def test_log_partition_is_the_sum_over_all_label_sequences(batch):
    """In values and gradients: a wrong recursion, or padding in it, would train on a wrong loss."""
    scores, _, mask = batch
    expected = [enumerated(scores[row, :length])[1].logsumexp(0) for row, length in enumerate(LENGTHS)]
    assert_same(PairCRF(LABELS).log_partition(scores, mask), torch.stack(expected))


def test_a_sequence_is_scored_by_its_pairs_and_its_beginning(batch):
    scores, tags, mask = batch
    expected = []
    for row, length in enumerate(LENGTHS):
        sequences, sums = enumerated(scores[row, :length])
        expected.append(sums[sequences.index(tuple(tags[row, :length].tolist()))])
    assert_same(PairCRF(LABELS).score(scores, tags, mask), torch.stack(expected))


def test_viterbi_finds_the_best_of_all_label_sequences(batch):
    scores, _, mask = batch
    decoded = PairCRF(LABELS).viterbi(scores, mask)
    assert decoded.dtype == torch.long
    for row, length in enumerate(LENGTHS):
        sequences, sums = enumerated(scores[row, :length])
        assert tuple(decoded[row, :length].tolist()) == sequences[sums.argmax()]
        assert not decoded[row, length:].any(), "padding must be label 0"


def test_among_equal_scores_the_first_label_is_decoded():
    mask = torch.ones(1, 3, dtype=torch.bool)
    assert PairCRF(LABELS).viterbi(torch.zeros(1, 3, 12), mask).tolist() == [[0, 0, 0]]


def test_marginals_are_the_shares_of_the_sequences_with_a_label(batch):
    scores, _, mask = batch
    found = PairCRF(LABELS).marginals(scores, mask)
    for row, length in enumerate(LENGTHS):
        sequences, sums = enumerated(scores[row, :length])
        for place, label in itertools.product(range(length), range(LABELS)):
            having = torch.tensor([tags[place] == label for tags in sequences])
            torch.testing.assert_close(found[row, place, label], sums.softmax(0)[having].sum().detach())
    assert not found[~mask].any()


def test_marginals_are_had_in_inference_mode_too(batch):
    """A kept model answers in it, with scores and a mask that were made there: whoever asked one
    would get a traceback."""
    scores, _, mask = batch
    expected = PairCRF(LABELS).marginals(scores, mask)
    with torch.inference_mode():
        found = PairCRF(LABELS).marginals(scores * 1, mask.clone())
    torch.testing.assert_close(found.clone(), expected)


def test_with_the_same_transitions_at_all_words_it_is_the_linear_chain(batch):
    """Emissions and transitions added up; nothing scores the end."""
    torch.manual_seed(1)
    _, tags, mask = batch
    chain = LinearChainCRF(LABELS).double()
    chain.end.requires_grad_(False)
    emissions = torch.randn(*mask.shape, LABELS, dtype=torch.float64, requires_grad=True)
    torch.nn.init.normal_(chain.transitions), torch.nn.init.normal_(chain.start)
    scores = (emissions[:, :, None] + torch.cat([chain.transitions, chain.start[None]])).flatten(2)
    pair = PairCRF(LABELS)
    assert_same(pair.log_partition(scores, mask), chain.log_partition(emissions, mask))
    assert_same(pair.score(scores, tags, mask), chain.score(emissions, tags, mask))
    assert torch.equal(pair.viterbi(scores, mask), chain.viterbi(emissions, mask))
    torch.testing.assert_close(pair.marginals(scores, mask), chain.marginals(emissions, mask))


def test_what_stands_in_padding_and_half_precision_change_nothing(batch):
    scores, tags, mask = batch
    pair, poisoned = PairCRF(LABELS), scores.detach().masked_fill(~mask[..., None], torch.nan)
    torch.testing.assert_close(pair.log_partition(poisoned, mask), pair.log_partition(scores, mask).detach())
    torch.testing.assert_close(pair.score(poisoned, tags, mask), pair.score(scores, tags, mask).detach())
    assert torch.equal(pair.viterbi(poisoned, mask), pair.viterbi(scores, mask))
    assert pair.log_partition(scores.half(), mask).dtype == torch.float32
