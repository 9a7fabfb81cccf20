"""Bidirectional RNN tagger: both recurrences written out step by step."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from architectures.tagging.birnn_tagger import BidirectionalRNNTagger
from harness.problems.heads import Tag
from harness.problems.targets import TagTarget
from harness.views.words import WordBatch
from tests.support.batches import random_texts

LENGTHS = [5, 2, 1]

batch = partial(random_texts, LENGTHS, 1, 4)


def model() -> BidirectionalRNNTagger:
    torch.manual_seed(0)
    return BidirectionalRNNTagger(width=4, labels=3, hidden=6)


def states(cell, vectors: list[Tensor]) -> list[Tensor]:
    """z_t = tanh(W_zz z_{t-1} + W_xz x_t + b) from z_0 = 0."""
    z, found = torch.zeros(6), []
    for x in vectors:
        z = torch.tanh(cell.weight_hh_l0 @ z + cell.bias_hh_l0 + cell.weight_ih_l0 @ x + cell.bias_ih_l0)
        found.append(z)
    return found


def test_scores_are_linear_in_the_joined_states_of_both_directions():
    tagger, words = model(), batch()
    emissions = tagger(words)
    for row, length in enumerate(LENGTHS):
        vectors = list(words.vectors[row, :length])
        forwards = states(tagger.recurrence.forwards[0], vectors)
        backwards = states(tagger.recurrence.backwards[0], vectors[::-1])[::-1]
        for t in range(length):
            joined = torch.cat([forwards[t], backwards[t]])
            torch.testing.assert_close(emissions[row, t], tagger.emissions.weight @ joined + tagger.emissions.bias)


def test_the_directions_have_weights_of_their_own():
    tagger, vectors = model(), batch().vectors[:1].clone().requires_grad_()
    mask = torch.ones(1, 5, dtype=torch.bool)
    emissions = tagger(WordBatch(mask.long(), mask, mask.sum(1), vectors))
    for word, other in ((0, 4), (4, 0)):  # either end is heard at the other
        (gradient,) = torch.autograd.grad(emissions[0, word].sum(), vectors, retain_graph=True)
        assert gradient[0, other].abs().max() > 0
    emissions.sum().backward()
    names = {name.split(".")[1] for name, p in tagger.named_parameters() if p.grad.any()}
    assert {"forwards", "backwards"} <= names
    assert not torch.equal(tagger.recurrence.forwards[0].weight_hh_l0, tagger.recurrence.backwards[0].weight_hh_l0)


def test_labels_are_chosen_word_by_word():
    """A head that chained labels would be another model (bilstm_crf has that)."""
    tagger, target = model(), TagTarget()
    target.labels = ["A", "B", "C"]
    head = Tag(tagger, target)
    assert head.crf is None
    emissions = tagger(batch())
    assert head.decode(tagger, (emissions, batch().mask), None, None)[1] == [
        "ABC"[i] for i in emissions[1, :2].argmax(1)
    ]
