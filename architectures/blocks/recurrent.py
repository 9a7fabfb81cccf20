"""Recurrent layers over padded batches: each direction sees the real positions first, so that
padding reaches no state."""

from __future__ import annotations

import torch
from torch import Tensor, nn

CELLS = {"rnn": nn.RNN, "lstm": nn.LSTM, "gru": nn.GRU}


def reverse(vectors: Tensor, mask: Tensor) -> Tensor:
    """Each row's real positions (B, T, D) in opposite order, padding left at the end; its own
    inverse."""
    positions = torch.arange(mask.shape[1], device=mask.device)
    lengths = mask.sum(1, keepdim=True)
    mirrored = torch.where(mask, lengths - 1 - positions, positions)
    return vectors.gather(1, mirrored[..., None].expand(-1, -1, vectors.shape[-1]))


class Recurrent(nn.Module):
    """Stacked recurrence, in one direction or both: (B, T, width) -> states (B, T, ``size``).

    In both directions the right-to-left layer reads :func:`reverse` of its input. Padded steps
    behind the text cost time but change nothing, which on a CPU is two to three times faster than
    packed sequences. ``dropout`` acts between layers.
    """

    def __init__(
        self,
        cell: str,
        width: int,
        hidden: int,
        layers: int = 1,
        bidirectional: bool = False,
        dropout: float = 0.0,
        **options,
    ):
        super().__init__()
        if layers < 1:
            raise ValueError(f"layers={layers}: a recurrence has one layer at least")
        self.size = hidden * (1 + bidirectional)
        widths = [width] + [self.size] * (layers - 1)
        self.forwards = nn.ModuleList(CELLS[cell](w, hidden, batch_first=True, **options) for w in widths)
        self.backwards = nn.ModuleList(
            CELLS[cell](w, hidden, batch_first=True, **options) for w in widths if bidirectional
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        states = vectors
        for number, forwards in enumerate(self.forwards):
            inputs = states if number == 0 else self.dropout(states)
            states = forwards(inputs)[0]
            if self.backwards:
                mirrored = self.backwards[number](reverse(inputs, mask))[0]
                states = torch.cat([states, reverse(mirrored, mask)], dim=-1)
        return states
