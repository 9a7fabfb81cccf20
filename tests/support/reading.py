"""Texts and references for tests of architectures that answer a question from a passage."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from harness import registry
from harness.data.corpus import Corpus
from harness.training.model import Model, build
from harness.views.words_and_characters import WordCharacterBatch, WordsAndCharacters
from tests.support.oracles import Vectors, convolution, softmax_mean
from tests.support.pairs import shipped

WIDTH = 5
PASSAGES = ["Anna lives in Velmar", "Ben", "the baker Ann"]
QUESTIONS = ["Where ?", "Who is Anna ?", "who"]


def reader_and_texts(
    id: str, stretch: float = 2.5, **sizes: Any
) -> tuple[nn.Module, WordCharacterBatch, WordCharacterBatch]:
    """The small reader of a registered id, and three passages with their questions."""
    view = WordsAndCharacters(min_count=1)
    view.fit(PASSAGES + QUESTIONS)
    reader = shipped(id, WIDTH, view, stretch=stretch, **sizes)
    batches = [view.collate(view.encode(texts), [0, 1, 2]) for texts in (PASSAGES, QUESTIONS)]
    passages, questions = (batch._replace(vectors=torch.randn(*batch.ids.shape, WIDTH)) for batch in batches)
    return reader, passages, questions


def spelt(layer: nn.Module, text: WordCharacterBatch, row: int) -> list[Tensor]:
    """Vector of each word of a text from its characters: the largest ReLU of all windows of a word
    between zeros."""
    zeros = layer.convolution.weight.shape[2] - 1
    words = []
    for ids, real in list(zip(text.characters[row], text.character_mask[row], strict=True))[: int(text.lengths[row])]:
        windows = convolution(layer.convolution, layer.vectors.weight[ids[real]], zeros, zeros)
        words.append(torch.stack(windows).clamp(min=0).max(0).values)
    return words


def similarity(layer: nn.Module, h: Tensor, u: Tensor) -> Tensor:
    """w . [h; u; h * u] of one pair."""
    return torch.cat([layer.first.weight[0], layer.second.weight[0], layer.product]) @ torch.cat([h, u, h * u])


def bi_attended(layer: nn.Module, h: Vectors, u: Vectors) -> list[Tensor]:
    """[h; u~; h * u~; h * h~] of each passage word: u~ is what it attends to, h~ the mean of the
    passage by each word's best match."""
    s = [[similarity(layer.similarity, h_t, u_j) for u_j in u] for h_t in h]
    of_passage = softmax_mean([max(scores) for scores in s], h)
    joined = []
    for h_t, scores in zip(h, s, strict=True):
        of_question = softmax_mean(scores, u)
        joined.append(torch.cat([h_t, of_question, h_t * of_question, h_t * of_passage]))
    return joined


def squad(task: str, architecture: str, vectors: float | None = None) -> tuple[Model, Corpus]:
    """A tiny model for mini SQuAD 1.1 or 2.0, a third of whose questions have no answer, and the
    corpus.

    ``vectors`` is the number that all given word vectors consist of; None for none.
    """
    entry, adapter = registry.entry("architectures", architecture), registry.entry("tasks", task)
    cls, settings = registry.load(entry), entry.hyperparameters | entry.tiny
    view = cls.view_for(adapter, settings)
    corpus = Corpus(registry.load(adapter)(adapter), "mini", None, view, cls.output_form(), max_train=64)
    given = None if vectors is None else torch.full((view.width, 8), vectors)
    torch.manual_seed(0)
    return build(cls, corpus.problem, settings, view, corpus.target, 8, given), corpus


def answered(model: Model, corpus: Corpus) -> list[bool]:
    """For each of twelve questions of a corpus, True if the model finds an answer."""
    batch = corpus.train.collate(torch.arange(12).numpy())
    return [answer != "" for answer in model.eval().predict(batch, corpus.train)]
