"""Texts, or pairs of them read as one sequence, as pieces of their bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tokenizers import Encoding, Tokenizer
from tokenizers.decoders import ByteLevel as ByteDecoder
from tokenizers.models import BPE
from tokenizers.normalizers import Lowercase
from tokenizers.pre_tokenizers import ByteLevel
from tokenizers.processors import ByteLevel as ByteOffsets
from tokenizers.trainers import BpeTrainer

from harness.views.base import Text
from harness.views.subwords import SPECIAL, Subwords


@dataclass
class ByteSubwords(Subwords):
    """Pieces of the bytes of texts in UTF-8, by byte-pair encoding (Radford et al. 2019, 2.2).

    All 256 bytes are pieces, so that no character is unknown and the pieces of a text are the text
    again. Merges stay within a run of letters, of digits or of other marks, to which the space
    before it belongs. Texts are read in their own case unless ``lower``.
    """

    lower: bool = False

    def _learn(self, texts: list[str]) -> Tokenizer:
        learner = _tokenizer(BPE(), self.lower)
        trainer = BpeTrainer(
            vocab_size=self.size,
            special_tokens=SPECIAL,
            initial_alphabet=sorted(ByteLevel.alphabet()),
            show_progress=False,
        )
        learner.train_from_iterator(texts, trainer)
        model = json.loads(learner.to_str())["model"]
        # A new tokenizer, which does not find the special pieces in texts that spell their names.
        return _tokenizer(BPE(model["vocab"], [*map(tuple, model["merges"])]), self.lower)

    def _adopt(self, source: str) -> None:
        super()._adopt(source)
        self.tokenizer.post_processor = ByteOffsets(trim_offsets=True)

    @staticmethod
    def _special(loaded: Any) -> list[str | None]:
        """A tokenizer without marks of its own for the beginning and the end, as GPT-2's, has one
        that stands between texts."""
        return [mark or loaded.eos_token for mark in Subwords._special(loaded)]

    def _encodings(self, texts: Sequence[Text]) -> Iterator[Encoding]:
        if len(texts) and isinstance(texts[0], list):
            texts = [[*words[:1], *(f" {word}" for word in words[1:])] for words in texts]
        return super()._encodings(texts)


def _tokenizer(model: BPE, lower: bool) -> Tokenizer:
    tokenizer = Tokenizer(model)
    if lower:
        tokenizer.normalizer = Lowercase()
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False)
    tokenizer.post_processor = ByteOffsets(trim_offsets=True)  # a piece's place is that of its word, without the space
    tokenizer.decoder = ByteDecoder()
    return tokenizer
