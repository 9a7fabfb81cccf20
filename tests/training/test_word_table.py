"""Word vectors that models look up: what starts from a file's, and what training moves."""

from __future__ import annotations

import pytest
import torch

from harness.kinds import VECTORS
from harness.training.model import WordTable

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
def test_without_a_file(use):
    """What a paper keeps fixed would be noise for ever, unless that is the variant."""
    table = WordTable(400, 3, use)
    assert table.tuned.weight.requires_grad is (use != "static")
    assert 0.2 < table.tuned.weight.abs().max() <= 0.25


def test_the_second_channel_stays_as_it_was_given():
    table = WordTable(4, 3, "multichannel", GIVEN)
    assert not table.static.weight.requires_grad
    assert (table.static.weight[1:] == 7).all()


def test_an_unknown_use_is_named():
    with pytest.raises(ValueError, match="vectors='frozen' is none of tuned, static"):
        WordTable(4, 3, "frozen")
