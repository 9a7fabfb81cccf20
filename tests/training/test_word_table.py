"""Word vectors that models look up: what starts from a file's, and what training moves."""

from __future__ import annotations

import pytest
import torch

from harness.kinds import VECTORS
from harness.training.model import WordTable
from harness.views.words import UNKNOWN, WordBatch

GIVEN = torch.full((4, 3), 7.0)


@pytest.mark.parametrize(
    ("use", "reads", "moves"),
    [
        ("tuned", True, True),
        ("static", True, False),
        ("fixed", True, False),
        ("multichannel", True, True),
        ("random", False, True),
    ],
)
def test_a_file_of_vectors(use, reads, moves):
    """A row called "random vectors" that reads the file is another model's row."""
    table = WordTable(4, 3, use, GIVEN)
    assert bool((table.tuned.weight[1:] == 7).all()) is reads
    assert table.tuned.weight.requires_grad is moves
    assert (table.tuned.weight[0] == 0).all()


@pytest.mark.parametrize("use", VECTORS)
def test_without_a_file_all_vectors_are_tuned(use):
    """What a paper keeps fixed would be noise for ever."""
    table = WordTable(400, 3, use)
    assert all(parameter.requires_grad for parameter in table.parameters())
    assert 0.2 < table.tuned.weight.abs().max() <= 0.25


def test_the_second_channel_stays_as_it_was_given():
    table = WordTable(4, 3, "multichannel", GIVEN)
    assert not table.static.weight.requires_grad
    assert (table.static.weight[1:] == 7).all()


def test_words_seen_once_are_at_times_the_unknown_word_in_training():
    """Where every word is kept, nothing else trains the vector that new words get."""
    once = torch.tensor([False, False, True, False])
    table = WordTable(4, 3, "tuned", once=once, unknown_rate=0.3)
    words = WordBatch(torch.tensor([[2, 3, 0]]).repeat(4000, 1), torch.ones(4000, 3).bool(), torch.full((4000,), 3))
    read = table(words)
    assert 0.27 < (read.ids[:, 0] == UNKNOWN).float().mean() < 0.33
    assert (read.ids[:, 1:] == words.ids[:, 1:]).all()
    assert torch.equal(read.vectors, table.tuned.weight[read.ids])
    assert torch.equal(table.eval()(words).ids, words.ids)


def test_an_unknown_use_is_named():
    with pytest.raises(ValueError, match="vectors='frozen' is none of tuned, static"):
        WordTable(4, 3, "frozen")
