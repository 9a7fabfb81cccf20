"""Universal sentence encoder: one encoder that learns several tasks at once, and whose vectors
other tasks then read."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from architectures.blocks.text_vectors import TextVectorBatch, TextVectors
from architectures.blocks.transformer import Transformer
from architectures.transformer.transformer import sinusoids
from harness.errors import ModelError
from harness.kinds import TextEncoder
from harness.objectives import MultiTask
from harness.registry import Recipe, register
from harness.views.base import Text
from harness.views.words import WordBatch

if TYPE_CHECKING:
    from harness.saved_models.model import KeptModel


def summed(vectors: Tensor, lengths: Tensor) -> Tensor:
    """Sums (B, D) of vectors that are 0 at padding, by the square root of the texts' lengths."""
    return vectors.sum(1) / lengths.sqrt()[:, None]


@register(
    "use_dan_tasks",
    name="Universal sentence encoder, averaging, on its tasks",
    kind="text",
    paper="Cer et al. 2018",
    source="X4.6",
    year=2018,
    version=2,
    recipe=Recipe(optimizer="adam", lr=0.001, batch_size=32, vector_dims=128),
    tiny={"hidden": 16, "layers": 2, "buckets": 100},
    deviations=(
        "Its tasks are the relation of pairs (SNLI), neighbouring sentences of WikiText-2 and the topic of news (AG"
        " News); the paper's are neighbours and answers on the web, at far greater scale, and SNLI.",
        "A linear layer on [u; v; |u - v|; u * v] scores neighbours as it does relations; the paper has the product of"
        " u with v behind further layers.",
        "A task is drawn in proportion to its size, and a batch of it.",
        "Pairs of words are hashed into 20,000 vectors, which start as small as those of words.",
        "The paper does not say how many layers there are. Four ReLU layers of 512 stand one above another; those of"
        " its published model are four residual ones without biases, 320 wide but at the end.",
        "Vectors are divided by the root of the number of words, as the paper has it for its transformer; here it"
        " takes their mean.",
    ),
)
class UniversalEncoder(TextEncoder):
    """Vectors of words and of pairs of neighbouring words, summed and divided by the square root of
    the number of words, pass ``layers`` ReLU layers of ``hidden`` units. All tasks share them.

    Pairs of words are rows of one table of so many ``buckets``, into which they are hashed.
    """

    trained_by = MultiTask
    reads_marks = False

    def __init__(
        self,
        width: int,
        companions: tuple[str, ...] = ("snli", "ag_news"),
        hidden: int = 512,
        layers: int = 4,
        buckets: int = 20_000,
    ):
        super().__init__()
        self.companions, self.size = companions, hidden
        self.pairs = nn.Embedding(buckets, width)
        nn.init.uniform_(self.pairs.weight, -0.25, 0.25)
        sizes = [width, *[hidden] * layers]
        self.layers = nn.Sequential(*(nn.Sequential(nn.Linear(a, b), nn.ReLU()) for a, b in pairwise(sizes)))

    def hashed(self, words: WordBatch) -> Tensor:
        """The bucket (B, T - 1) of each pair of neighbouring words, by their spelling."""
        return (words.spellings[:, :-1] * 31 + words.spellings[:, 1:]) % self.pairs.num_embeddings

    def forward(self, words: WordBatch) -> Tensor:
        singles = words.vectors * words.mask[..., None]
        pairs = self.pairs(self.hashed(words)) * words.mask[:, 1:, None]
        return self.layers(summed(torch.cat([singles, pairs], dim=1), words.lengths))


@register(
    "use_transformer_tasks",
    name="Universal sentence encoder, transformer, on its tasks",
    kind="text",
    paper="Cer et al. 2018",
    source="X4.6",
    year=2018,
    version=2,
    recipe=Recipe(optimizer="adam", lr=0.001, batch_size=32, vector_dims=128),
    tiny={"size": 32, "heads": 2, "layers": 1},
    deviations=(
        "Its tasks are the relation of pairs (SNLI), neighbouring sentences of WikiText-2 and the topic of news (AG"
        " News); the paper's are neighbours and answers on the web, at far greater scale, and SNLI.",
        "A linear layer on [u; v; |u - v|; u * v] scores neighbours as it does relations; the paper has the product of"
        " u with v behind further layers.",
        "A task is drawn in proportion to its size, and a batch of it.",
        "Sizes are our choices: two layers of 128; the paper has those of the first transformer.",
    ),
)
class UniversalTransformer(TextEncoder):
    """States of a transformer's encoder, summed and divided by the square root of the number of
    words. All tasks share it."""

    trained_by = MultiTask
    reads_marks = False

    def __init__(
        self,
        width: int,
        companions: tuple[str, ...] = ("snli", "ag_news"),
        size: int = 128,
        heads: int = 4,
        layers: int = 2,
        dropout: float = 0.1,
    ):
        super().__init__()
        self.companions, self.size = companions, size
        self.projection = nn.Linear(width, size)
        self.body = Transformer(size, heads, 4 * size, layers, dropout)
        self.dropout = nn.Dropout(dropout)

    def forward(self, words: WordBatch) -> Tensor:
        states = self.projection(words.vectors) * math.sqrt(self.size)
        states = self.body(self.dropout(states + sinusoids(states.shape[1], self.size, states)), words.mask)
        return summed(states * words.mask[..., None], words.lengths)


def encoded(parent: KeptModel, texts: Sequence[Text]) -> np.ndarray:
    """The vectors (N, size) that the encoder of a kept model gives to texts."""
    model: Any = parent.model
    model.eval()
    columns, vectors = parent.view.encode(texts), []  # type: ignore[union-attr]
    with torch.no_grad():
        for rows in np.array_split(np.arange(len(texts)), max(1, len(texts) // 256)):
            words = model.read({"text": parent.view.collate(columns, rows)})  # type: ignore[union-attr]
            vectors.append(model.encoder(words["text"]))
    return torch.cat(vectors).numpy()


@register(
    "use_dan",
    name="Universal sentence encoder, averaging",
    kind="text",
    paper="Cer et al. 2018",
    source="X4.6",
    year=2018,
    parents={"inputs": "use_dan_tasks@neighbours"},
    recipe=Recipe(optimizer="adam", lr=0.001, batch_size=32),
    tiny={"hidden": 32},
    deviations=(
        "The tasks of its encoder are those of use_dan_tasks, and what deviates there deviates here.",
        "Without a parent, as `archbench check` runs it, a text is the mean of random vectors of its words.",
    ),
    variants={
        "use_transformer": {
            "name": "Universal sentence encoder, transformer",
            "parents": {"inputs": "use_transformer_tasks@neighbours"},
            "deviations": ("Its encoder is use_transformer_tasks.",),
        },
    },
)
class UniversalVectors(TextEncoder):
    """The vector that a kept encoder gives to the text, which stays as it was learnt, through a
    ReLU layer of ``hidden`` units."""

    view = TextVectors()
    takes = ("inputs",)

    def __init__(self, width: int, hidden: int = 512):
        super().__init__()
        self.dense, self.size = nn.Linear(width, hidden), hidden

    @classmethod
    def inherited_view(cls, view: Any, role: str, parent: KeptModel) -> Any:
        if not isinstance(getattr(getattr(parent, "model", None), "encoder", None), TextEncoder):
            raise ModelError(f"{parent.description.part.architecture} encodes no texts, as use_dan_tasks does")
        view.vectors_of = functools.partial(encoded, parent)
        return view

    def forward(self, texts: TextVectorBatch) -> Tensor:
        return torch.relu(self.dense(texts.vectors))
