"""Sinusoidal positions, number by number by their formula."""

from __future__ import annotations

import math

import pytest
import torch

from architectures.blocks.positions import sinusoids


@pytest.mark.parametrize("size", [2, 6, 7])
def test_each_number_is_the_papers_sine_or_cosine(size):
    """Column 2k is sin(i / 10000^(2k/d)) and column 2k + 1 its cosine; positions begin at 0. All
    zeros, or another base, would take the order of words from every transformer."""
    found = sinusoids(50, size, torch.zeros(1))
    assert found.shape == (50, size)
    for place in range(50):
        for column in range(size):
            angle = place / 10000 ** (2 * (column // 2) / size)
            expected = math.cos(angle) if column % 2 else math.sin(angle)
            assert found[place, column].item() == pytest.approx(expected, abs=1e-5), (place, column)


def test_they_are_of_the_type_of_the_vectors_that_they_are_added_to():
    """A sum of two types would silently leave half precision."""
    assert sinusoids(3, 4, torch.zeros(1, dtype=torch.float16)).dtype == torch.float16
