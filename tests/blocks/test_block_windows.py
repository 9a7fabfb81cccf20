"""Windows inside a text: the same ones whatever longer text stands beside it."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from architectures.blocks.windows import lengthen, window_mask, windows_inside

LENGTHS = torch.tensor([6, 3, 2, 0])


def test_windows_inside_are_those_that_reach_no_padding():
    """Counted position by position; a text shorter than the window has the first one alone."""
    for window in (1, 2, 3, 5):
        expected = [[start + window <= max(int(length), window) for start in range(6)] for length in LENGTHS]
        assert window_mask(LENGTHS, window, 6).tolist() == expected
        assert windows_inside(LENGTHS, window).tolist() == [sum(row) for row in expected]


def test_the_mask_has_a_place_for_every_output_of_the_convolution():
    vectors = torch.randn(4, 6, 5)
    for window in (1, 3, 8):
        maps = F.conv1d(lengthen(vectors, window).mT, torch.randn(2, 5, window))
        assert window_mask(LENGTHS, window, maps.shape[-1]).shape == (4, max(1, 6 - window + 1))


def test_a_text_is_lengthened_with_zeros_to_one_window_and_never_cut():
    for shape in ((2, 3, 4), (2, 3, 4, 5)):
        vectors = torch.randn(shape)
        assert torch.equal(lengthen(vectors, 3), vectors) and torch.equal(lengthen(vectors, 2), vectors)
        longer = lengthen(vectors, 7)
        assert longer.shape[1] == 7 and torch.equal(longer[:, :3], vectors) and not longer[:, 3:].any()
