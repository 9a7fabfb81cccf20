"""Bidirectional RNN tagger: both recurrences written out step by step."""

from __future__ import annotations

from functools import partial

import torch

from architectures.tagging.birnn_tagger import BidirectionalRNNTagger
from harness.problems.tag import Tag, TagTarget
from harness.views.words import WordBatch
from tests.support.batches import assert_each_alone, mask_of, random_texts, sentences
from tests.support.models import small
from tests.support.oracles import rnn

LENGTHS = [5, 2, 1]

batch = partial(random_texts, LENGTHS, 1, 4)


model = partial(small, BidirectionalRNNTagger, 4, labels=3, hidden=6)


def test_scores_are_linear_in_the_joined_states_of_both_directions():
    """z_t = tanh(W_zz z_(t-1) + W_xz x_t + b) from z_0 = 0, in both directions."""
    tagger = model()

    def written_out(vectors: torch.Tensor) -> torch.Tensor:
        forwards, backwards = tagger.recurrence.forwards[0], tagger.recurrence.backwards[0]
        states = torch.cat([rnn(forwards, vectors), rnn(backwards, vectors.flip(0)).flip(0)], dim=1)
        return states @ tagger.emissions.weight.T + tagger.emissions.bias

    assert all(len(layers) == 1 for layers in (tagger.recurrence.forwards, tagger.recurrence.backwards))

    sentences = batch()
    assert_each_alone(tagger(sentences), written_out, sentences, states=True)


def test_the_directions_have_weights_of_their_own():
    tagger, vectors = model(), batch().vectors[:1].clone().requires_grad_()
    mask = mask_of([5])
    emissions = tagger(WordBatch(mask.long(), mask, mask.sum(1), vectors))
    for word, other in ((0, 4), (4, 0)):  # either end is heard at the other
        (gradient,) = torch.autograd.grad(emissions[0, word].sum(), vectors, retain_graph=True)
        assert gradient[0, other].abs().max() > 0
    emissions.sum().backward()
    assert tagger.recurrence.forwards[0].bias_ih_l0.grad.any(), "the book's equation has a bias"
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
    assert head.decode(tagger, (emissions, batch().mask), *sentences(*LENGTHS))[1] == [
        "ABC"[i] for i in emissions[1, :2].argmax(1)
    ]
