"""Some places of each text: with others a model would be asked something else than it was."""

from __future__ import annotations

import torch

from architectures.blocks.chosen_places import numbered


def test_places_stand_in_their_order_and_no_wider_than_the_most():
    places, there = numbered(torch.tensor([[0, 1, 0, 1, 1], [1, 0, 0, 0, 0], [0, 0, 0, 0, 0]], dtype=torch.bool))
    assert places[0].tolist() == [1, 3, 4] and places[1, 0] == 0
    assert there.tolist() == [[True] * 3, [True, False, False], [False] * 3]
