"""Convolutions over characters, then a recurrence in both directions."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.recurrent import Recurrent
from harness.kinds import TextEncoder, pool
from harness.registry import Recipe, register
from harness.views.characters import ALPHABET, CharacterBatch, Characters


@register(
    "char_crnn",
    name="Character conv-recurrent network",
    kind="text",
    paper="Xiao & Cho 2016",
    source="M2.9[133]",
    year=2016,
    recipe=Recipe(optimizer="adadelta", lr=1.0, rho=0.95, eps=1e-5, batch_size=128, clip=5.0),
    tiny={"maps": 16, "hidden": 12},
    deviations=(
        "This is the paper's smallest network, two convolutions of 128 maps; it has up to five, of up to 1,024.",
        "Characters are lower-cased, of the alphabet of Zhang et al. 2015 and a blank; the paper's 96 have both cases.",
        "Convolutions keep the length, with zeros beside the text, and an odd last position is pooled alone.",
        "Texts end after 1,014 characters.",
    ),
)
class CharacterCRNN(TextEncoder):
    """Character vectors; convolution, ReLU and maximum of each two positions, once for each of
    ``windows``; a bidirectional LSTM over what is left, whose two last states are the text's
    vector.

    Pooling makes the text a quarter as long before the recurrence reads it. Dropout acts on what
    the recurrence reads and on the vector (B, 2 * hidden).
    """

    view = Characters(alphabet=ALPHABET + " ", length=None, reverse=False)

    def __init__(
        self,
        width: int,
        dims: int = 8,
        maps: int = 128,
        windows: tuple = (5, 3),
        hidden: int = 128,
        dropout: float = 0.5,
        longest: int = 1014,
    ):
        super().__init__()
        self.longest = longest
        self.characters = nn.Embedding(width + 1, dims)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(maps if number else dims, maps, window, padding="same") for number, window in enumerate(windows)
        )
        self.recurrence = Recurrent("lstm", maps, hidden, bidirectional=True)
        self.dropout = nn.Dropout(dropout)
        self.size = self.recurrence.size

    def forward(self, characters: CharacterBatch) -> Tensor:
        ids, mask = characters.ids[:, : self.longest], characters.mask[:, : self.longest]
        states = self.characters(ids).transpose(1, 2) * mask[:, None]
        for convolution in self.convolutions:
            maps = torch.relu(convolution(states)) * mask[:, None]  # ReLU is never below the zeros of padding
            states, mask = F.max_pool1d(maps, 2, ceil_mode=True), mask[:, ::2]
        states = self.recurrence(self.dropout(states.transpose(1, 2)), mask)
        return self.dropout(pool(states, mask, "ends"))
