"""Texts as sequences of characters, one-hot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from harness.ragged import Columns, Ragged, mask_of
from harness.views.base import Text, View, plain

ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789-,;.!?:'\"/\\|_@#$%^&*~`+=<>()[]{}\n"
"""Letters, digits, marks and the line break of Zhang et al. 2015, section 2.2; they print 70
symbols, the hyphen twice."""


class CharacterBatch(NamedTuple):
    """Characters of B texts, T positions: ``ids`` (B, T), ``mask`` (B, T) true at the text,
    ``lengths`` (B,), ``vectors`` (B, T, alphabet).

    Id 0 is padding, a blank or a character outside the alphabet: its vector is zero. Symbol k of
    the alphabet has id k + 1.
    """

    ids: Tensor
    mask: Tensor
    lengths: Tensor
    vectors: Tensor


@dataclass
class Characters(View):
    """The characters, lower-cased, from the last one backwards if ``reverse``; the first ``length``
    that are read, or all of them when it is ``None``.

    With a ``length`` every batch has that many positions; without one, as many as its longest text.
    """

    alphabet: str = ALPHABET
    length: int | None = 1014
    reverse: bool = True

    def __post_init__(self) -> None:
        wrong = sorted({c for c in self.alphabet if self.alphabet.count(c) > 1 or c != c.lower()})
        if wrong or not self.alphabet:
            raise ValueError(f"alphabet: every character must be lower-case and occur once, found {''.join(wrong)!r}")

    @property
    def width(self) -> int:
        return len(self.alphabet)

    def fit(self, texts: Sequence[Text]) -> None:
        """Nothing is learnt: the alphabet is a setting."""

    def read(self, text: Text) -> str:
        """The characters of a text in the order of this view; a blank for an empty one."""
        characters = plain(text).lower()
        characters = characters[::-1] if self.reverse else characters
        return characters[: self.length] or " "

    def cuts(self, text: Text) -> bool:
        return self.length is not None and len(plain(text)) > self.length

    def encode(self, texts: Sequence[Text]) -> Columns:
        ids = np.zeros(max(map(ord, self.alphabet)) + 2, dtype=np.int32)
        ids[[ord(c) for c in self.alphabet]] = np.arange(1, len(self.alphabet) + 1)
        strange = len(ids) - 1
        read = [self.read(text) for text in texts]
        codes = np.frombuffer("".join(read).encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
        offsets = np.cumsum([0, *map(len, read)])
        return {"ids": Ragged(ids[np.minimum(codes, strange)], offsets)}

    def lengths(self, columns: Columns) -> np.ndarray:
        return columns["ids"].lengths

    def collate(self, columns: Columns, rows: np.ndarray) -> CharacterBatch:
        padded, lengths = columns["ids"].pad(rows, least=self.length or 1)
        ids = torch.from_numpy(padded).long()
        one_hot = torch.cat([torch.zeros(1, self.width), torch.eye(self.width)])
        vectors = torch.nn.functional.embedding(ids, one_hot)
        return CharacterBatch(ids, mask_of(lengths, ids.shape[1]), torch.from_numpy(lengths), vectors)

    def state(self) -> dict[str, Any]:
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Nothing to restore."""
