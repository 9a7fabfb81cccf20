"""Probabilities of what is generated or copied, by a loop over the source."""

from __future__ import annotations

import math

import pytest
import torch

from architectures.blocks.copying import UNKNOWN, as_symbols, joined


def test_a_word_may_be_generated_or_copied_from_each_place_where_it_stands():
    """Five symbols, and a source of which two words are one, that is no symbol."""
    generated = torch.tensor([[0.1, 0.05, 0.2, 0.0, 0.15]])
    copied, source = torch.tensor([[0.1, 0.25, 0.15]]), torch.tensor([[5, 4, 5]])
    expected = [0.1, 0.05, 0.2, 0.0, 0.15 + 0.25, 0.1 + 0.15, 0.0, 0.0]
    torch.testing.assert_close(joined(generated, copied, source).exp()[0], torch.tensor(expected))


def test_what_cannot_be_written_has_a_finite_logarithm_and_gradient():
    """Else one word that is neither a symbol nor in its source would end a training."""
    generated = torch.tensor([[0.5, 0.0]], requires_grad=True)
    found = joined(generated, torch.tensor([[0.5]]), torch.tensor([[0]]))
    assert found[0, 1:].tolist() == pytest.approx([math.log(1e-10)] * 2)
    found.sum().backward()
    assert generated.grad.isfinite().all()


def test_words_of_the_source_alone_are_read_as_the_unknown_word():
    assert as_symbols(torch.tensor([0, 4, 5, 9]), 5).tolist() == [0, 4, UNKNOWN, UNKNOWN]
