"""Words divided into pieces, as it was learnt from other texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tokenizers import Tokenizer

LONGEST = 100
"""Characters of a word; what is longer is read as several words, as no piece is that long."""


def in_stretches(words: Iterable[str]) -> list[str]:
    """The words, those cut that are longer than :data:`LONGEST`."""
    return [word[start : start + LONGEST] for word in words for start in range(0, len(word), LONGEST)]


class Pieces:
    """The division of words into pieces by a ``tokenizer``, given as the library tokenizers writes
    it.

    >>> from tokenizers.models import WordPiece
    >>> pieces = Pieces(Tokenizer(WordPiece({"news": 0, "##wor": 1, "##thy": 2})).to_str())
    >>> pieces.split(["newsworthy", "news"])
    ['news', '##wor', '##thy', 'news']
    """

    def __init__(self, tokenizer: str):
        self.text = tokenizer
        self.tokenizer = Tokenizer.from_str(tokenizer)
        self._of: dict[str, list[str]] = {}
        """Pieces of the words that were asked for: texts repeat their words."""

    @property
    def vocabulary(self) -> list[str]:
        """All pieces, by their numbers."""
        numbers = self.tokenizer.get_vocab()
        return sorted(numbers, key=numbers.__getitem__)

    def split(self, words: Iterable[str]) -> list[str]:
        """The pieces of words, with the marks that tell where a word begins or ends."""
        found: list[str] = []
        for word in words:
            if word not in self._of:
                stretches = self.tokenizer.encode_batch(in_stretches([word]), add_special_tokens=False)
                self._of[word] = [piece for stretch in stretches for piece in stretch.tokens]
            found += self._of[word]
        return found

    def join(self, pieces: Sequence[str]) -> str:
        """The words of pieces, as the tokenizer normalises them, with a blank between two."""
        return self.tokenizer.decoder.decode(list(pieces))
