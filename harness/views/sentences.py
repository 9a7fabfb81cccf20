"""Documents as sentences of words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from harness.ragged import Columns, Ragged, mask_of, pad_nested
from harness.views.base import Text, words_of
from harness.views.words import Vocabulary, VocabularyView, spelling

_END = re.compile(r"([.!?]+)[\"'”’»)\]}]*\s+")
_ABBREVIATION = re.compile(
    r"(?:^|[^\w.])(?:(?!i$)[a-z]|(?:[a-z]\.)+[a-z]|mrs?|ms|dr|prof|sen|rep|gov|gen|col|capt|lt|rev|st|mt|vs)$",
    re.IGNORECASE,
)
"""An initial (but not the word I), initials with points, or a title before a name: the point behind
it ends no sentence."""
_OPENING = "\"'“‘«([{"
_LONGEST_ABBREVIATION = 12
_CLOSING_WORDS = frozenset(["''", "”", "’", "»", ")", "]", "}", "-RRB-", "-RSB-", "-RCB-", "-rrb-", "-rsb-", "-rcb-"])
_EITHER_WAY = frozenset(['"', "'"])


def sentences_of(text: Text) -> list[list[str]]:
    """Words of each sentence; an empty text has one sentence of one empty word."""
    if isinstance(text, list):
        return _split_words(text) or [[""]]
    return [words for words in map(words_of, _split(text)) if words] or [[""]]


def _split(text: str) -> list[str]:
    """Cut behind . ! ? with closing quotes and brackets, where a blank and no small letter follow
    (any, in a text without capitals)."""
    no_capitals = text == text.lower()
    cuts = [0]
    for end in _END.finditer(text):
        following = text[end.end() : end.end() + 3].lstrip(_OPENING)[:1]
        before = text[max(cuts[-1], end.start() - _LONGEST_ABBREVIATION) : end.start()]
        inside = following.islower() and not no_capitals
        if not inside and not (end[1] == "." and _ABBREVIATION.search(before)):
            cuts.append(end.end())
    return [text[start:stop] for start, stop in zip(cuts, [*cuts[1:], len(text)], strict=True)]


def _split_words(words: list[str]) -> list[list[str]]:
    """Cut behind the words . ! ? and what closes a quote or bracket there."""
    sentences: list[list[str]] = [[]]
    ended = False
    for word in words:
        closes = word in _CLOSING_WORDS or (word in _EITHER_WAY and sentences[-1].count(word) % 2 == 1)
        mark = word in (".", "!", "?")
        if ended and not mark and not closes:
            sentences.append([])
            ended = False
        sentences[-1].append(word)
        ended = ended or mark
    return [sentence for sentence in sentences if sentence]


class SentenceBatch(NamedTuple):
    """Sentences of B documents: ``ids`` (B, S, T), ``mask`` (B, S, T) true at words,
    ``sentence_mask`` (B, S), ``vectors`` (B, S, T, D), ``spellings`` (B, S, T) as in a
    :class:`~harness.views.words.WordBatch`."""

    ids: Tensor
    mask: Tensor
    sentence_mask: Tensor
    vectors: Tensor = torch.empty(0)
    spellings: Tensor = torch.empty(0)


@dataclass
class Sentences(VocabularyView):
    """The first ``max_words`` words of the first ``max_sentences`` sentences; vocabulary as in
    :class:`~harness.views.words.Words`."""

    lower: bool = True
    min_count: int = 2
    max_sentences: int = 30
    max_words: int = 60
    embeds: ClassVar[bool] = True
    divides: ClassVar[bool] = True

    def read(self, text: Text) -> list[list[str]]:
        """The sentences of a text as this view sees them."""
        found = (self.divided(words) or [""] for words in sentences_of(text)[: self.max_sentences])
        sentences = [words[: self.max_words] for words in found]
        return [[word.lower() for word in words] for words in sentences] if self.lower else sentences

    def cuts(self, text: Text) -> bool:
        sentences = sentences_of(text)
        return len(sentences) > self.max_sentences or len(self.divided(sentences[-1])) > self.max_words

    def fit(self, texts: Sequence[Text]) -> None:
        self.vocabulary = Vocabulary.of(
            (word for text in texts for words in self.read(text) for word in words), self.min_count
        )

    def encode(self, texts: Sequence[Text]) -> Columns:
        read = [self.read(text) for text in texts]
        words = [[word for sentence in sentences for word in sentence] for sentences in read]
        return {
            "ids": Ragged.of(map(self.vocabulary.ids, words)),
            "spellings": Ragged.of(list(map(spelling, each)) for each in words),
            "sentence_lengths": Ragged.of([len(sentence) for sentence in sentences] for sentences in read),
        }

    def collate(self, columns: Columns, rows: np.ndarray) -> SentenceBatch:
        ids, mask, sentences = pad_nested(columns["ids"], columns["sentence_lengths"], rows)
        spellings, _, _ = pad_nested(columns["spellings"], columns["sentence_lengths"], rows)
        return SentenceBatch(
            torch.from_numpy(ids).long(),
            torch.from_numpy(mask),
            mask_of(sentences, ids.shape[1]),
            spellings=torch.from_numpy(spellings).long(),
        )
