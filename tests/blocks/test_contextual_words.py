"""A network that is kept as it is, below layers that learn."""

from __future__ import annotations

from torch import nn

from architectures.blocks.contextual_words import KeptStill


class Network(KeptStill):
    """One layer, and dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.dropout = nn.Linear(2, 2), nn.Dropout(0.5)


def test_a_network_learns_until_it_is_kept_still():
    """A call of `train` on what stands above it would make its dropout act again."""
    network = Network()
    above = nn.Sequential(network)
    assert network.eval().train().dropout.training
    assert not above.eval()[0].dropout.training
    network.keep_still()
    for each in (network.train(), above.train()[0]):
        assert not each.training and not each.dropout.training
    assert not any(parameter.requires_grad for parameter in network.parameters())
