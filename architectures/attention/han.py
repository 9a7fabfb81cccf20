"""Hierarchical attention network."""

from __future__ import annotations

from torch import Tensor, nn

from architectures.blocks.context_attention import ContextAttention
from architectures.blocks.recurrent import Recurrent
from harness.kinds import TextEncoder
from harness.registry import Recipe, register
from harness.views.sentences import SentenceBatch, Sentences


class Level(nn.Module):
    """A GRU in both directions and attention of its own: vectors (N, T, width) of words or
    sentences to one vector (N, ``size``)."""

    def __init__(self, width: int, hidden: int, context: int):
        super().__init__()
        self.recurrence = Recurrent("gru", width, hidden, bidirectional=True)
        self.size = self.recurrence.size
        self.attention = ContextAttention(self.size, context)

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        return self.attention(self.recurrence(vectors, mask), mask)


@register(
    "han",
    name="Hierarchical Attention Network",
    kind="text",
    paper="Yang et al. 2016",
    source="M2.5[79]",
    year=2016,
    recipe=Recipe(optimizer="sgd", lr=0.1, momentum=0.9, batch_size=64, vector_dims=200),
    tiny={"hidden": 8, "context": 12},
    vectors_of_paper="word2vec, trained on the documents",
    deviations=(
        "PyTorch's GRU has a second bias in its candidate state, which the reset gate scales; the paper's has one.",
        "Documents end after 30 sentences and sentences after 60 words.",
        "Words seen once, not up to five times, are unknown: the vocabulary is that of the other architectures.",
        "The learning rate, which the paper searches for each data set, is 0.1.",
    ),
)
class HierarchicalAttention(TextEncoder):
    """Words make sentence vectors and these the document's, at each level by a bidirectional GRU
    and attention with its own context."""

    view = Sentences()
    # In a text of one sentence nothing precedes it and its weight is 1: where all texts are such
    # (snli) these learn nothing.
    unused = (
        "sentences.recurrence.forwards.0.weight_hh",
        "sentences.recurrence.backwards.0.weight_hh",
        "sentences.attention",
    )

    def __init__(self, width: int, hidden: int = 50, context: int = 100):
        super().__init__()
        self.words = Level(width, hidden, context)
        self.sentences = Level(self.words.size, hidden, context)
        self.size = self.sentences.size

    def forward(self, document: SentenceBatch) -> Tensor:
        batch, sentences = document.sentence_mask.shape
        vectors = self.words(document.vectors.flatten(0, 1), document.mask.flatten(0, 1))
        return self.sentences(vectors.view(batch, sentences, -1), document.sentence_mask)
