"""Hierarchical attention over a document and its translation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from architectures.attention.han import Level
from harness.errors import ModelError
from harness.kinds import Parent, TextEncoder
from harness.ragged import Columns, Ragged, mask_of, pad_nested
from harness.registry import Recipe, register
from harness.views.base import Text
from harness.views.sentences import Sentences
from harness.views.words import Vocabulary, spelling


class TwoLanguageBatch(NamedTuple):
    """Sentences of B documents, each in two languages: as a
    :class:`~harness.views.sentences.SentenceBatch`, with an axis for the language behind that of
    the documents; ``sentence_mask`` (B, 2, S)."""

    ids: Tensor
    mask: Tensor
    sentence_mask: Tensor
    vectors: Tensor = torch.empty(0)
    spellings: Tensor = torch.empty(0)


def enciphered(words: Sequence[str]) -> list[str]:
    """A sentence in a made-up language: each word is spelt backwards, and the last one comes
    first."""
    return [word[::-1] for word in reversed(words)]


@dataclass
class TwoLanguages(Sentences):
    """Sentences, and their translations by a kept translator; without one, in a made-up
    language. Both have one vocabulary."""

    translator = None

    def translated(self, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        """Each sentence in the other language, with one word at least."""
        if self.translator is None:
            return [enciphered(words) for words in sentences]
        rows = [{"id": str(number), "source": " ".join(words)} for number, words in enumerate(sentences)]
        written = [answer["prediction"].split()[: self.max_words] for answer in self.translator.answers(rows)]
        return [words or [""] for words in written]

    def both(self, texts: Sequence[Text]) -> list[list[list[list[str]]]]:
        """Sentences of each text in both languages, those of all texts translated at once."""
        read = [self.read(text) for text in texts]
        others = iter(self.translated([words for sentences in read for words in sentences]))
        return [[sentences, [next(others) for _ in sentences]] for sentences in read]

    def fit(self, texts: Sequence[Text]) -> None:
        sentences = [words for text in self.both(texts) for language in text for words in language]
        self.vocabulary = Vocabulary.of((word for words in sentences for word in words), self.min_count)

    def encode(self, texts: Sequence[Text]) -> Columns:
        columns, both = {}, self.both(texts)
        for language, name in enumerate(("", "their_")):
            read = [text[language] for text in both]
            words = [[word for sentence in sentences for word in sentence] for sentences in read]
            columns[f"{name}ids"] = Ragged.of(map(self.vocabulary.ids, words))
            columns[f"{name}spellings"] = Ragged.of(list(map(spelling, each)) for each in words)
            columns[f"{name}sentence_lengths"] = Ragged.of([len(each) for each in sentences] for sentences in read)
        return columns

    def lengths(self, columns: Columns) -> np.ndarray:
        return columns["ids"].lengths + columns["their_ids"].lengths

    def collate(self, columns: Columns, rows: np.ndarray) -> TwoLanguageBatch:  # type: ignore[override]
        def padded(column: str) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
            return [pad_nested(columns[f"{n}{column}"], columns[f"{n}sentence_lengths"], rows) for n in ("", "their_")]

        read = padded("ids")
        longest = [max(ids.shape[axis] for ids, _, _ in read) for axis in (1, 2)]

        def stacked(arrays: Sequence[np.ndarray]) -> Tensor:
            rooms = [np.subtract(longest, each.shape[1:]) for each in arrays]
            made = [np.pad(a, [(0, 0), (0, s), (0, t)]) for a, (s, t) in zip(arrays, rooms, strict=True)]
            return torch.from_numpy(np.stack(made, axis=1))

        ids, mask = stacked([ids for ids, _, _ in read]).long(), stacked([mask for _, mask, _ in read])
        spellings = stacked([each for each, _, _ in padded("spellings")]).long()
        sentences = torch.stack([mask_of(count, longest[0]) for _, _, count in read], dim=1)
        return TwoLanguageBatch(ids, mask, sentences, spellings=spellings)


@register(
    "xling_att",
    name="Cross-lingual attention LSTM",
    kind="text",
    paper="Zhou et al. 2016",
    source="M2.5[80]",
    year=2016,
    parents={"inputs": "attn_seq2seq@multi30k"},
    recipe=Recipe(optimizer="adam", lr=0.001, batch_size=32),
    tiny={"hidden": 8, "context": 12},
    vectors_of_paper="bilingual ones",
    deviations=(
        "Translations are those of our attn_seq2seq, which knows captions (Multi30k) and writes German; the paper's are"
        " of a public service, between English and Chinese.",
        "Training and test are in the same language, as no reviews in two languages are at hand.",
        "Vectors of words start at random, in one table for both languages; the paper's were learnt from both.",
        "Terms of the loss that hold the two vectors together are left out: they are unconfirmed.",
        "Sizes are our choices.",
        "Without a translator, as `archbench check` runs it, words are spelt backwards, the last one first.",
    ),
)
class CrossLingualAttention(TextEncoder):
    """A document's vectors in two languages, side by side: in each, words make the vectors of
    sentences and these the document's, at both levels by a BiLSTM and attention of the language's
    own."""

    view = TwoLanguages()
    takes = ("inputs",)
    unused = (  # as in a Hierarchical Attention Network, where all texts have one sentence
        "sentences.0.recurrence.forwards.0.weight_hh",
        "sentences.0.recurrence.backwards.0.weight_hh",
        "sentences.0.attention",
        "sentences.1.recurrence.forwards.0.weight_hh",
        "sentences.1.recurrence.backwards.0.weight_hh",
        "sentences.1.attention",
    )

    def __init__(self, width: int, hidden: int = 50, context: int = 100):
        super().__init__()
        self.words = nn.ModuleList(Level(width, hidden, context, "lstm") for _ in range(2))
        self.sentences = nn.ModuleList(Level(2 * hidden, hidden, context, "lstm") for _ in range(2))
        self.size = 4 * hidden

    @classmethod
    def inherited_view(cls, view: Any, role: str, parent: Parent) -> Any:
        if parent.description.type != "translate":
            raise ModelError(f"{parent.description.part.architecture} translates nothing, as attn_seq2seq does")
        view.translator = parent
        return view

    def forward(self, documents: TwoLanguageBatch) -> Tensor:
        found = []
        for language, (words, sentences) in enumerate(zip(self.words, self.sentences, strict=True)):
            vectors, mask = documents.vectors[:, language], documents.mask[:, language]
            read = words(vectors.flatten(0, 1), mask.flatten(0, 1)).unflatten(0, mask.shape[:2])
            found.append(sentences(read, documents.sentence_mask[:, language]))
        return torch.cat(found, dim=1)
