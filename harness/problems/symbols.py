"""Answers written symbol by symbol: characters of a transcript, or words of an answer."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from harness.layers.beam import beam_search
from harness.problems.base import IGNORED, Answer, Batch, EncodedSplit, Head, Inputs, Target, padded, with_probability
from harness.ragged import Columns, Ragged
from harness.task import Row
from harness.views.base import View, words_of
from harness.views.words import Vocabulary, spelling


class SymbolTarget(Target):
    """A string as symbols: characters of a transcript, or words of an answer. Int64 (B, U), 0
    behind the end.

    ``reserved`` numbers come before the symbols: 1 for CTC's blank; 4 for generation (padding,
    start, end, unknown).
    """

    longest: int = 0
    """Symbols of the longest training text."""

    def __init__(self, reserved: int, by_word: bool):
        self.reserved, self.by_word = reserved, by_word

    def split(self, text: str) -> list[str]:
        """The symbols of a text."""
        return [word.lower() for word in words_of(text)] if self.by_word else list(text)

    def join(self, symbols: Sequence[int], source: Sequence[str] = ()) -> str:
        """The text of symbol numbers; reserved numbers are left out. The words of the ``source``
        are numbered behind the symbols."""
        known = len(self)
        found = [
            source[s - known] if s >= known else self.symbols[s - self.reserved] for s in symbols if s >= self.reserved
        ]
        return (" " if self.by_word else "").join(found).strip()

    def source(self, row: Row, view: View) -> list[str]:
        """Words of a row's source that extend its vocabulary: none of them here."""
        return []

    @staticmethod
    def text(row: Row) -> str:
        """Text that a row asks for: its transcript, or its first answer (empty when it has
        none)."""
        return row["transcript"] if "transcript" in row else next(iter(row["answers"]["text"]), "")

    def fit(self, rows: Sequence[Row]) -> None:
        texts = [self.split(self.text(row)) for row in rows]
        self.symbols = Vocabulary.of(chain.from_iterable(texts), min_count=2 if self.by_word else 1).words
        self.longest = max(map(len, texts), default=0)

    def __len__(self) -> int:
        return self.reserved + len(self.symbols)

    def encode(self, rows: Sequence[Row], view: View) -> Columns:
        known = {symbol: number for number, symbol in enumerate(self.symbols, start=self.reserved)}
        unknown = 3 if self.reserved > 3 else None
        coded = []
        for row in rows:
            copied = _first_places(self.source(row, view), len(self))
            coded.append([known.get(s, copied.get(s, unknown)) for s in self.split(self.text(row))])
        return {"symbols": Ragged.of([s for s in row if s is not None] for row in coded)}

    def collate(self, columns: Columns, rows: np.ndarray) -> tuple[Tensor, Tensor]:
        return padded(columns["symbols"], rows, 0)


def _first_places(words: Sequence[str], first: int) -> dict[str, int]:
    """The first place of each word, counted from ``first``."""
    return {word: place for place, word in reversed(list(enumerate(words, start=first)))}


class Generate(Head):
    """An answer symbol by symbol: teacher forcing in training, beam search after it."""

    START, END, LONGEST = 1, 2, 60
    """Numbers of the marks around an answer, and the symbols, the end counted, that each may have
    where no training answer is longer."""
    smooths = True

    def __init__(self, encoder: Any, target: SymbolTarget):
        super().__init__()
        self.target = target

    def forward(self, encoder: Any, inputs: Inputs) -> Any:
        return inputs["text"]

    def read(self, outputs: Any) -> tuple[Tensor, ...]:
        """Vectors and mask of the sources, as the encoder reads them."""
        return outputs.vectors, outputs.mask

    def loss(self, encoder: Any, outputs: Any, target: tuple[Tensor, Tensor]) -> Tensor:
        scores, gold = self._scored(encoder, outputs, target)
        return F.cross_entropy(
            scores.flatten(0, 1), gold.flatten(), ignore_index=IGNORED, label_smoothing=self.smoothing
        )

    def row_losses(self, encoder: Any, outputs: Any, target: tuple[Tensor, Tensor]) -> Tensor:
        scores, gold = self._scored(encoder, outputs, target)
        losses = F.cross_entropy(
            scores.transpose(1, 2), gold, ignore_index=IGNORED, label_smoothing=self.smoothing, reduction="none"
        )
        return losses.sum(1)

    def _scored(self, encoder: Any, outputs: Any, target: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """Next-symbol scores (B, U, symbols) under teacher forcing, and the symbols that come next
        (B, U)."""
        symbols, lengths = target
        start = torch.full_like(symbols[:, :1], self.START)
        gold = F.pad(symbols, (0, 1)).scatter(1, lengths[:, None], self.END)
        scores = encoder(*self.read(outputs), torch.cat([start, symbols], dim=1))
        gold = gold.masked_fill(torch.arange(gold.shape[1], device=gold.device) > lengths[:, None], IGNORED)
        return scores, gold

    def decode(self, encoder: Any, outputs: Any, batch: Batch, split: EncodedSplit) -> list[str]:
        return self.texts(self.found(encoder, outputs), batch, split)

    def texts(self, found: list[list[int]], batch: Batch, split: EncodedSplit) -> list[str]:
        """The texts of the symbols found for each source."""
        return [self.target.join(symbols) for symbols in found]

    def found(self, encoder: Any, outputs: Any) -> list[list[int]]:
        """The symbols that the beam finds for each source."""
        state = encoder.start(*self.read(outputs))
        longest = max(self.LONGEST, self.target.longest + 1)
        return beam_search(encoder.step, state, self.START, self.END, longest, beam=encoder.beam)

    def answers(self, encoder: Any, outputs: Any, batch: Batch, split: EncodedSplit) -> list[Answer]:
        """The probability of the symbols and the end behind them, under teacher forcing."""
        found = self.found(encoder, outputs)
        symbols = Ragged.of(found, np.int64).pad(np.arange(len(found)))
        numbers, counts = (torch.from_numpy(each).to(outputs.vectors.device) for each in symbols)
        losses = self.row_losses(encoder, outputs, (numbers, counts))
        return with_probability(self.texts(found, batch, split), (-losses.double()).exp().tolist())

    def evidence(self, encoder: Any, outputs: Any) -> list[Tensor]:
        start = torch.full_like(outputs.lengths, self.START)
        return list(encoder.step(start, encoder.start(*self.read(outputs)))[0])


class GenerateOrCopy(Generate):
    """An answer symbol by symbol, from a vocabulary that the source extends by its own words.

    A word of the source is found among the symbols, and beside other words of the source, by the
    number of its spelling. One that is no symbol is numbered behind them, by the first place where
    it stands.
    """

    spellings: Tensor
    numbers: Tensor
    smooths = False  # a share for words that are not in the source would be a loss for ever

    def __init__(self, encoder: Any, target: SymbolTarget):
        super().__init__(encoder, target)
        numbered = sorted((spelling(word), number) for number, word in enumerate(target.symbols, target.reserved))
        spellings, numbers = torch.tensor(numbered, dtype=torch.long).reshape(-1, 2).unbind(1)
        # A last one that no word has: whatever is looked up then has a place.
        self.register_buffer("spellings", F.pad(spellings, (0, 1), value=1 << 31), persistent=False)
        self.register_buffer("numbers", F.pad(numbers, (0, 1)), persistent=False)

    def read(self, outputs: Any) -> tuple[Tensor, ...]:
        """Vectors, mask, and the numbers (B, S) of the source's words."""
        return *super().read(outputs), self.numbered(outputs.spellings)

    def numbered(self, words: Tensor) -> Tensor:
        """Numbers (B, S) in the extended vocabulary of words given by their spellings (B, S)."""
        places = torch.searchsorted(self.spellings, words)
        first = (words[:, :, None] == words[:, None]).int().argmax(-1)
        return torch.where(self.spellings[places] == words, self.numbers[places], len(self.target) + first)

    def texts(self, found: list[list[int]], batch: Batch, split: EncodedSplit) -> list[str]:
        rows = (split.rows[int(row)] for row in batch.rows)
        sources = (self.target.source(row, split.view) for row in rows)
        return [self.target.join(symbols, source) for symbols, source in zip(found, sources, strict=True)]

    def evidence(self, encoder: Any, outputs: Any) -> list[Tensor]:
        """Probabilities without those of the padding's places."""
        sizes = (len(self.target) + outputs.lengths).tolist()
        pairs = zip(super().evidence(encoder, outputs), sizes, strict=True)
        return [numbers[:size].exp() for numbers, size in pairs]
