"""Attention over the sentences and words of a document and of its translation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from architectures.blocks.context_attention import ContextAttention
from architectures.blocks.recurrent import Recurrent
from harness.errors import ModelError
from harness.kinds import Parent, TextEncoder
from harness.layers.pooling import pool
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


class Language(nn.Module):
    """A document's vector (B, ``size``) from the words (B, S, T, ``width``) of its sentences: the
    sum over sentences of A_i times the sum over their words of a_ij h_ij.

    h_ij are states of a BiLSTM, which reads each sentence by itself. Two layers score a word by its
    vector and its state, and two others a sentence by the states at its ends, the last one forwards
    and the first one backwards; a_ij and A_i are the softmax of the scores over the words of a
    sentence, and over the sentences.
    """

    def __init__(self, width: int, hidden: int, context: int):
        super().__init__()
        self.recurrence = Recurrent("lstm", width, hidden, bidirectional=True)
        self.size = self.recurrence.size
        self.words = ContextAttention(width + self.size, context)
        self.sentences = ContextAttention(self.size, context)

    def forward(self, vectors: Tensor, mask: Tensor, sentences: Tensor) -> Tensor:
        words, there = vectors.flatten(0, 1), mask.flatten(0, 1)
        states = self.recurrence(words, there)
        shares = self.words.weights(torch.cat([words, states], dim=-1), there)
        read = (shares[:, None] @ states).squeeze(1).unflatten(0, sentences.shape)
        ends = pool(states, there, "ends").unflatten(0, sentences.shape)
        return (self.sentences.weights(ends, sentences)[:, None] @ read).squeeze(1)


@register(
    "xling_att",
    name="Cross-lingual attention LSTM",
    kind="text",
    paper="Zhou et al. 2016",
    source="M2.5[80]",
    year=2016,
    version=2,
    parents={"inputs": "attn_seq2seq@multi30k"},
    recipe=Recipe(optimizer="adam", lr=0.001, batch_size=32),
    tiny={"hidden": 8, "context": 12},
    vectors_of_paper="bilingual ones",
    deviations=(
        "Translations are those of our attn_seq2seq, which knows captions (Multi30k) and writes German; the paper's are"
        " of a public service, between English and Chinese.",
        "Training and test are in the same language, as no reviews in two languages are at hand.",
        "Vectors of words start at random, in one table for both languages; the paper's were learnt from both.",
        "The paper adds the squared distance of the two vectors to its loss, over texts without labels too; here it is"
        " left out, as its weight is not known to us.",
        "Whether the paper's LSTM reads on from one sentence into the next, and what is between the two layers of its"
        " attention, is not known to us: here it begins anew, and there is a tanh.",
        "Sizes, batches and Adam are our choices; the paper's is Adadelta, at a rate that is not known to us.",
        "Without a translator, as `archbench check` runs it, words are spelt backwards, the last one first.",
    ),
)
class CrossLingualAttention(TextEncoder):
    """A document's vectors in two languages, side by side: each is the sum of the states of its
    words, weighed by attention over the words and over the sentences of the language's own
    (:class:`Language`)."""

    view = TwoLanguages()
    takes = ("inputs",)
    # The weight of an only sentence is 1: where all texts have one, the attention over sentences
    # learns nothing.
    unused = ("languages.0.sentences", "languages.1.sentences")

    def __init__(self, width: int, hidden: int = 50, context: int = 100):
        super().__init__()
        self.languages = nn.ModuleList(Language(width, hidden, context) for _ in range(2))
        self.size = 2 * self.languages[0].size

    @classmethod
    def inherited_view(cls, view: Any, role: str, parent: Parent) -> Any:
        if parent.description.type != "translate":
            raise ModelError(f"{parent.description.part.architecture} translates nothing, as attn_seq2seq does")
        view.translator = parent
        return view

    def forward(self, documents: TwoLanguageBatch) -> Tensor:
        found = [
            read(documents.vectors[:, number], documents.mask[:, number], documents.sentence_mask[:, number])
            for number, read in enumerate(self.languages)
        ]
        return torch.cat(found, dim=1)
