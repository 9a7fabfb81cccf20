"""LSTM layers that say where they end, for decoders that go on from there."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class Read(NamedTuple):
    """A batch of texts as an encoder leaves them: ``states`` (B, T, size) of the top layer, zeros
    at padding; states ``hidden`` and cells ``cell`` (B, layers, size) behind the last word."""

    states: Tensor
    hidden: Tensor
    cell: Tensor


class PackedLSTM(nn.LSTM):
    """Stacked LSTM over vectors (B, T, width), in one direction or both, by packed sequences: a
    padded run, as :class:`~architectures.blocks.recurrent.Recurrent` has it, is faster, but loses
    the last cells.

    Both directions stand side by side in ``size`` numbers; the right-to-left one ends behind the
    first word. ``dropout`` acts between layers.
    """

    def __init__(
        self,
        width: int,
        hidden: int,
        layers: int = 1,
        bidirectional: bool = False,
        dropout: float = 0.0,
        bias: bool = True,
    ):
        between = dropout if layers > 1 else 0.0  # torch warns of one that acts nowhere
        super().__init__(width, hidden, layers, bias, batch_first=True, dropout=between, bidirectional=bidirectional)
        self.size = hidden * (1 + bidirectional)

    def forward(self, vectors: Tensor, mask: Tensor) -> Read:  # type: ignore[override]
        packed = pack_padded_sequence(vectors, mask.sum(1).cpu(), batch_first=True, enforce_sorted=False)
        states, ends = super().forward(packed)
        padded, _ = pad_packed_sequence(states, batch_first=True, total_length=mask.shape[1])
        return Read(padded, *(self._by_layer(each) for each in ends))

    def _by_layer(self, ends: Tensor) -> Tensor:
        """(layers * directions, B, hidden) to (B, layers, size)."""
        return ends.unflatten(0, (self.num_layers, -1)).permute(2, 0, 1, 3).flatten(2)
