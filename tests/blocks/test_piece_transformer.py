"""The body of the networks that read word pieces, as far as no single one of them shows it."""

from __future__ import annotations

import torch

from architectures.blocks.piece_transformer import PieceTransformer
from harness.views.subwords import Subwords
from tests.support.models import small


def test_the_inner_layer_is_four_times_as_wide_as_the_states():
    """Of BERT and all that name no other width: a narrower one is another network of its name."""
    made = PieceTransformer(9, Subwords(max_length=8), layers=1, hidden=6, heads=2, dropout=0.0)
    assert {tuple(each.shape) for each in made.body.parameters() if each.dim() == 2} == {(6, 6), (24, 6), (6, 24)}


def test_states_that_words_are_labelled_by_are_dropped_in_training():
    made = small(PieceTransformer, 9, Subwords(max_length=8), layers=1, hidden=16, heads=2, dropout=0.5)
    states = torch.ones(9, 16)
    assert torch.equal(made.word_states(states), states)
    assert made.train().word_states(states).unique().tolist() == [0, 2]
