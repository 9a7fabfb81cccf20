"""Texts as word pieces behind the words that say what is asked of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from tokenizers import Tokenizer

from harness.ragged import Columns, Ragged, mask_of
from harness.views.subwords import SubwordBatch, Subwords

SENTINELS = 100
"""Pieces that stand for spans which were taken out of a text."""


@dataclass
class CuedPieces(Subwords):
    """Word pieces ``a [SEP]`` of a text or ``a b [SEP]`` of a pair, each text behind the pieces of
    its ``cues``, words such as "sst2 text:".

    There is no piece in front: [SEP] is the end, ``</s>`` of a published tokenizer. The last
    numbers are those of the :data:`SENTINELS`, from the last one down, so that no text has them; a
    published tokenizer has its own. ``ValueError`` for one that lacks them, and for cues that leave
    no room.
    """

    cues: tuple[str, ...] = ()

    @property
    def width(self) -> int:
        return self.tokenizer.get_vocab_size() + (0 if self.pretrained else SENTINELS)

    @property
    def room(self) -> int:
        return self.max_length - 1 - sum(map(len, self.asked))

    def _set(self, tokenizer: Tokenizer, special: list[str]) -> None:
        super()._set(tokenizer, special)
        self.sentinels = self._published(tokenizer) if self.pretrained else [*range(self.width)][: -SENTINELS - 1 : -1]
        self.asked = [self.pieces(cue) for cue in self.cues]
        if self.room < max(1, len(self.cues)):
            raise ValueError(f"max_length={self.max_length}: no room is left behind the words {' '.join(self.cues)!r}")

    def _published(self, tokenizer: Tokenizer) -> list[int]:
        """The numbers of the sentinels of a published tokenizer."""
        found = {name: tokenizer.token_to_id(name) for name in (f"<extra_id_{number}>" for number in range(SENTINELS))}
        if missing := [name for name, number in found.items() if number is None]:
            raise ValueError(f"pretrained={self.pretrained!r}: its tokenizer lacks {missing[0]}")
        return [*found.values()]

    @staticmethod
    def _special(loaded: Any) -> list[str | None]:
        """A published tokenizer has one mark, for the end."""
        return [loaded.pad_token, loaded.unk_token, loaded.eos_token, loaded.eos_token]

    def pieces(self, text: str) -> list[int]:
        """The numbers of the pieces of a text."""
        return self.encode([text])["ids"][0].tolist()

    def collate(self, columns: Columns, rows: np.ndarray) -> SubwordBatch:
        """A text, cut where it is too long."""
        return self._behind_cues(rows, columns["ids"])

    def collate_pair(
        self, first: Columns, second: Columns, rows: np.ndarray, cut: Literal["longer", "second"] = "longer"
    ) -> SubwordBatch:
        """Two texts; too long a pair loses the end of the longer one."""
        return self._behind_cues(rows, first["ids"], second["ids"])

    def _behind_cues(self, rows: np.ndarray, text: Any, other: Any = None) -> SubwordBatch:
        first, room = text.lengths[rows], self.room
        second = np.zeros_like(first) if other is None else other.lengths[rows]
        first = np.minimum(first, np.maximum(room - second, -(-room // 2)))
        second = np.minimum(second, room - first)
        cues, end = [*self.asked, [], []], [self.separator]
        sequences = []
        for row, a, b in zip(rows, first, second, strict=True):
            behind = [] if other is None else [cues[1], other[row][:b]]
            sequences.append(np.concatenate([cues[0], text[row][:a], *behind, end]))
        padded, lengths = Ragged.of(sequences).pad(np.arange(len(rows)), self.pad)
        ids = torch.from_numpy(padded).long()
        return SubwordBatch(ids, mask_of(lengths, ids.shape[1]), torch.zeros_like(ids), torch.from_numpy(lengths))
