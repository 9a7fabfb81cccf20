"""Knowledge-powered CNN: convolutions over words and what these words are, and over characters."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from architectures.blocks.knowing_words import KnowingWords
from architectures.convolutional.kim_cnn import KimCNN
from harness.kinds import TextEncoder
from harness.ragged import Columns, Ragged
from harness.registry import Recipe, register
from harness.views.base import Text, plain
from harness.views.words import PAD, UNKNOWN, Vocabulary, WordBatch


class ConceptBatch(NamedTuple):
    """A :class:`~harness.views.words.WordBatch` with up to K ``concepts`` (B, K) of each text,
    their ``weights`` (B, K), 0 at padding, and the ``characters`` (B, C) of the text."""

    ids: Tensor
    mask: Tensor
    lengths: Tensor
    vectors: Tensor = torch.empty(0)
    static: Tensor = torch.empty(0)
    spellings: Tensor = torch.empty(0)
    concepts: Tensor = torch.empty(0)
    weights: Tensor = torch.empty(0)
    characters: Tensor = torch.empty(0)


@dataclass
class Concepts(KnowingWords):
    """Words, and the concepts above them in a taxonomy.

    A concept that is ``d`` steps above the r-th sense of a word, of which two are looked at, weighs
    2^-d / r, summed over the words of the text. The ``most`` concepts are kept whose weight is
    largest against the number of training texts that have them; a text's weights sum to 1. Two
    characters at least, and ``max_characters`` at most, are read.
    """

    most: int = 10
    depth: int = 3
    max_characters: int = 256

    def weighed(self, text: Text) -> dict[str, float]:
        """The weight of each concept of a text."""
        weights: dict[str, float] = defaultdict(float)
        for word in self.split(text):
            for rank, sense in enumerate(self.taxonomy.of(word)[:2], 1):
                for concept, steps in self.taxonomy.above(sense, self.depth):
                    weights[concept] += 2.0**-steps / rank
        return weights

    def fit(self, texts: Sequence[Text]) -> None:
        super().fit(texts)
        self.concepts = Vocabulary.of((concept for text in texts for concept in self.weighed(text)), min_count=2)
        self.characters = Vocabulary.of((c for text in texts for c in self.spelt(text)), min_count=1)

    def spelt(self, text: Text) -> str:
        """The characters of a text that are read."""
        return plain(text).lower()[: self.max_characters].ljust(2)

    def kept(self, text: Text) -> list[tuple[int, float]]:
        """The concepts of a text that are read, with their weights."""
        found = [(self.concepts.ids([name])[0], weight) for name, weight in self.weighed(text).items()]
        often = self.concepts.row_counts()
        known = sorted(
            ((id, weight) for id, weight in found if id != UNKNOWN), key=lambda each: (-each[1] / often[each[0]], each)
        )[: self.most]
        total = sum(weight for _, weight in known)
        return [(id, weight / total) for id, weight in known]

    def encode(self, texts: Sequence[Text]) -> Columns:
        kept = [self.kept(text) for text in texts]
        return super().encode(texts) | {
            "concepts": Ragged.of([id for id, _ in each] for each in kept),
            "weights": Ragged.of(([weight for _, weight in each] for each in kept), np.float32),
            "characters": Ragged.of(self.characters.ids(self.spelt(text)) for text in texts),
        }

    def collate(self, columns: Columns, rows: np.ndarray) -> ConceptBatch:  # type: ignore[override]
        concepts, weights, characters = (
            columns[name].pad(rows, PAD)[0] for name in ("concepts", "weights", "characters")
        )
        return ConceptBatch(*super().collate(columns, rows))._replace(
            concepts=torch.from_numpy(concepts).long(),
            weights=torch.from_numpy(weights).float(),
            characters=torch.from_numpy(characters).long(),
        )

    def state(self) -> dict[str, Any]:
        learnt = ((name, getattr(self, name)) for name in ("concepts", "characters"))
        return super().state() | {name: [each.words, each.counts] for name, each in learnt}

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self.concepts, self.characters = (Vocabulary(*state[name]) for name in ("concepts", "characters"))


@register(
    "kpcnn",
    name="Knowledge-powered CNN",
    kind="text",
    paper="Wang et al. 2017",
    source="M2.3[63]",
    year=2017,
    recipe=Recipe(optimizer="adam", lr=0.001, batch_size=64),
    tiny={"maps": 8, "hidden": 16, "knowledge": "toy"},
    vectors_of_paper="word2vec",
    deviations=(
        "What words are is told by the nouns of WordNet; the paper has Probase, which is not to be had.",
        "The weights of concepts multiply their vectors; what the paper does with them is unconfirmed.",
        "Sizes of characters and of the layer above, and the recipe, are our choices.",
        "On tier mini WordNet is asked as well; -o kpcnn.knowledge=toy has a few words of its generated news instead.",
    ),
)
class KnowledgePoweredCNN(TextEncoder):
    """Kim's convolutions over the words of a text and, behind them, the vectors of its concepts
    times their weights; beside them the same over its characters; above both a ReLU layer.

    ``knowledge`` is "wordnet", whose files must be on the machine, or "toy".
    """

    view = Concepts()
    unused = ("concepts",)  # where no word is known, as of the toy taxonomy on most tasks
    view_settings: ClassVar[dict[str, str]] = {"knowledge": "knowledge", "most": "concepts"}

    def __init__(
        self,
        width: int,
        view: Concepts,
        knowledge: str = Concepts.knowledge,
        concepts: int = Concepts.most,
        maps: int = 100,
        windows: tuple = (3, 4, 5),
        character_size: int = 16,
        character_maps: int = 50,
        hidden: int = 100,
        dropout: float = 0.5,
    ):
        super().__init__()
        self.concepts = nn.Embedding(len(view.concepts), width, padding_idx=PAD)
        self.characters = nn.Embedding(len(view.characters), character_size, padding_idx=PAD)
        for table in (self.concepts, self.characters):
            nn.init.uniform_(table.weight, -0.25, 0.25)
            nn.init.zeros_(table.weight[PAD])
        self.upper = KimCNN(width, maps, windows, dropout)
        self.lower = KimCNN(character_size, character_maps, windows, dropout)
        self.dense = nn.Linear(self.upper.size + self.lower.size, hidden)
        self.size = hidden

    def joined(self, words: ConceptBatch) -> WordBatch:
        """The words of each text and its weighed concepts behind them, as one sequence."""
        concepts = self.concepts(words.concepts) * words.weights[..., None]
        counts = (words.weights > 0).sum(1)
        lengths = words.lengths + counts
        vectors = words.vectors * words.mask[..., None]
        vectors = torch.cat([vectors, vectors.new_zeros(len(vectors), concepts.shape[1], vectors.shape[2])], dim=1)
        places = words.lengths[:, None] + torch.arange(concepts.shape[1], device=vectors.device)
        vectors = vectors.scatter_add(1, places[..., None].expand_as(concepts), concepts)
        return _sequence(vectors, lengths)

    def forward(self, words: ConceptBatch) -> Tensor:
        spelt = _sequence(self.characters(words.characters), (words.characters != PAD).sum(1))
        features = torch.cat([self.upper(self.joined(words)), self.lower(spelt)], dim=1)
        return torch.relu(self.dense(features))


def _sequence(vectors: Tensor, lengths: Tensor) -> WordBatch:
    mask = torch.arange(vectors.shape[1], device=vectors.device) < lengths[:, None]
    return WordBatch(mask.long(), mask, lengths, vectors)
