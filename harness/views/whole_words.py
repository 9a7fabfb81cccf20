"""Texts, or pairs of them read as one sequence, as whole words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tokenizers import Tokenizer
from tokenizers.models import WordLevel

from harness.ragged import Columns, Ragged
from harness.views.base import WORD, Text, words_of
from harness.views.subwords import SPECIAL, Subwords


@dataclass
class WholeWords(Subwords):
    """Each word is one piece: the commonest ones of the training texts, ``size`` with the special
    pieces, and of equally common ones the first in the alphabet. Every other word is unknown.

    Words are those of all views of words, in their own case unless ``lower``.
    """

    lower: bool = False

    def fit(self, texts: Sequence[Text]) -> None:
        if self.learnt is not None:
            self.restore(self.learnt)
            return
        counts = Counter(self._form(word) for text in texts for word in words_of(text))
        for name in SPECIAL:
            counts.pop(name, None)
        kept = sorted(counts, key=lambda word: (-counts[word], word))[: max(0, self.size - len(SPECIAL))]
        numbers = {word: number for number, word in enumerate([*SPECIAL, *kept])}
        self._set(Tokenizer(WordLevel(numbers, unk_token="[UNK]")), SPECIAL)

    def _form(self, word: str) -> str:
        return word.lower() if self.lower else word

    def _set(self, tokenizer: Tokenizer, special: list[str]) -> None:
        super()._set(tokenizer, special)
        self.continues[:] = False
        self.words = {word: number for word, number in tokenizer.get_vocab().items() if word not in special}

    def encode(self, texts: Sequence[Text]) -> Columns:
        read = [words_of(text) for text in texts]
        columns: Columns = {"ids": Ragged.of([self.words.get(self._form(w), self.unknown) for w in ws] for ws in read)}
        if len(texts) and isinstance(texts[0], list):
            columns["firsts"] = Ragged.of(range(len(words)) for words in read)
        return columns

    def spans(self, texts: Sequence[str]) -> tuple[Ragged, Ragged]:
        found = [[match.span() for match in WORD.finditer(text)] for text in texts]
        return Ragged.of([s for s, _ in spans] for spans in found), Ragged.of([e for _, e in spans] for spans in found)
