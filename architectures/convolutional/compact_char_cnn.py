"""Character CNN that reads each character as the bits of its number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from architectures.convolutional.char_cnn import CharacterCNN
from harness.ragged import Columns, mask_of
from harness.registry import Recipe, register
from harness.views.characters import ALPHABET, CharacterBatch, Characters


@dataclass
class CharacterBits(Characters):
    """Characters as binary numbers: ``vectors`` (B, T, ``width``) has the bits of each id, the
    lowest first.

    m symbols and the id 0 of all other characters need ceil(log2(m + 1)) bits, where one-hot
    vectors have m numbers.
    """

    @property
    def width(self) -> int:
        return len(self.alphabet).bit_length()

    def collate(self, columns: Columns, rows: np.ndarray) -> CharacterBatch:
        padded, lengths = columns["ids"].pad(rows, least=self.length or 1)
        ids = torch.from_numpy(padded).long()
        bits = (ids[..., None] >> torch.arange(self.width)) & 1
        return CharacterBatch(ids, mask_of(lengths, ids.shape[1]), torch.from_numpy(lengths), bits.float())


@register(
    "compact_char_cnn",
    name="Character CNN, compact encoding",
    kind="text",
    paper="Prusa & Khoshgoftaar 2016",
    source="M2.3[52]",
    year=2016,
    recipe=Recipe(
        optimizer="sgd",
        lr=0.01,
        momentum=0.9,
        batch_size=128,
        epochs=30,
        patience=30,
        lr_schedule="step",
        step_start=3.0,
        step_epochs=3.0,
    ),
    tiny={"length": 150, "maps": 32, "hidden": 64, "spread": 0.1},
    deviations=(
        (
            "The layers and the recipe are those of the small network of Zhang et al. 2015; the paper's own network"
            " for tweets was not to be had."
        ),
        (
            "Letters are lower-cased: blank, letters, digits and marks have 7 bits; the paper numbers the characters"
            " of the extended ASCII table with 8."
        ),
    ),
)
class CompactCharacterCNN(CharacterCNN):
    """The layers of :class:`~architectures.convolutional.char_cnn.CharacterCNN` over
    :class:`CharacterBits`: 7 numbers for each character, not 70.

    The memory of the input and the weights of the first convolution grow with the logarithm of the
    alphabet. Slow, because every text is 1,014 characters long, each of which passes convolutions
    of 256 maps.
    """

    view = CharacterBits(alphabet=ALPHABET + " ")
    view_settings: ClassVar[dict[str, str]] = {"length": "length"}
