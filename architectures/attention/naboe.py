"""Neural attentive bag-of-entities: the entities that a text may speak of, weighed by attention."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.knowing_words import KnowingWords
from harness.kinds import TextEncoder, pool
from harness.layers.attention import masked_softmax
from harness.ragged import Columns, Ragged
from harness.registry import Recipe, register
from harness.views.base import Text
from harness.views.words import PAD, UNKNOWN, Vocabulary


class EntityBatch(NamedTuple):
    """A :class:`~harness.views.words.WordBatch` with the ``entities`` (B, E) that the names in each
    text may mean, 0 at padding, and the ``commonness`` (B, E) of each for its name."""

    ids: Tensor
    mask: Tensor
    lengths: Tensor
    vectors: Tensor = torch.empty(0)
    static: Tensor = torch.empty(0)
    spellings: Tensor = torch.empty(0)
    entities: Tensor = torch.empty(0)
    commonness: Tensor = torch.empty(0)


@dataclass
class Entities(KnowingWords):
    """Words, and the candidates for the names among them: the senses of nouns, of each the
    ``senses`` commonest, whose commonness is 1 / rank as a share.

    A name is the longest run of at most ``longest`` words that the dictionary has. Entities that no
    training text may speak of are left out.
    """

    senses: int = 3
    longest: int = 3

    def candidates(self, text: Text) -> Iterator[tuple[str, float]]:
        """The entities of each name in a text, with their commonness."""
        words, place = [word.lower() for word in self.split(text)], 0
        while place < len(words):
            for length in range(min(self.longest, len(words) - place), 0, -1):
                if found := self.taxonomy.of("_".join(words[place : place + length]))[: self.senses]:
                    total = sum(1 / rank for rank in range(1, len(found) + 1))
                    yield from ((sense, 1 / rank / total) for rank, sense in enumerate(found, 1))
                    break
            place += length

    def fit(self, texts: Sequence[Text]) -> None:
        super().fit(texts)
        self.entities = Vocabulary.of((entity for text in texts for entity, _ in self.candidates(text)), min_count=1)

    def encode(self, texts: Sequence[Text]) -> Columns:
        known = []
        for text in texts:
            found = list(self.candidates(text))
            ids = self.entities.ids(entity for entity, _ in found)
            known.append([(id, share) for id, (_, share) in zip(ids, found, strict=True) if id != UNKNOWN])
        return super().encode(texts) | {
            "entities": Ragged.of([id for id, _ in each] for each in known),
            "commonness": Ragged.of(([share for _, share in each] for each in known), np.float32),
        }

    def collate(self, columns: Columns, rows: np.ndarray) -> EntityBatch:  # type: ignore[override]
        entities, commonness = (columns[name].pad(rows, PAD)[0] for name in ("entities", "commonness"))
        return EntityBatch(*super().collate(columns, rows))._replace(
            entities=torch.from_numpy(entities).long(), commonness=torch.from_numpy(commonness).float()
        )

    def state(self) -> dict[str, Any]:
        return super().state() | {"entities": [self.entities.words, self.entities.counts]}

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self.entities = Vocabulary(*state["entities"])


@register(
    "naboe",
    name="Neural attentive bag-of-entities",
    kind="text",
    paper="Yamada & Shindo 2019",
    source="M2.5[91]",
    year=2019,
    recipe=Recipe(
        optimizer="adamw", lr=0.001, batch_size=32, patience=10, weight_decay=0.1, warmup_share=0.25, vector_dims=300
    ),
    tiny={"knowledge": "toy"},
    vectors_of_paper="Wikipedia2Vec",
    deviations=(
        "Entities are the senses of WordNet's nouns; the paper's are the articles of Wikipedia.",
        "The commonness of a sense falls with its rank, by which WordNet orders them; the paper counts links.",
        "Vectors of entities start at random; the paper's were learnt from Wikipedia with those of words.",
        "Each run of words that the dictionary has is a name; the paper leaves out those that are seldom links.",
        "The recipe is that of the authors' program, which warms up for five passes: a quarter of our twenty.",
        "The first 400 words of a text are read, and all entities in them; in the authors' program those seen three"
        " times or more, and the first 64 words. It takes the lengths in a cosine for constants.",
        "The term that attention adds to every candidate is left out, since it changes no weight.",
    ),
)
class NeuralAttentiveBagOfEntities(TextEncoder):
    """The mean of a text's word vectors, plus the sum of a_e v_e over the entities e that its names
    may mean.

    a = softmax over all of them of w . [commonness of e; cos(v_e, the mean of the words)]. Dropout
    acts on the sum. ``knowledge`` is "wordnet", whose files must be on the machine, or "toy".
    """

    view = Entities()
    view_settings: ClassVar[dict[str, str]] = {"knowledge": "knowledge", "senses": "senses"}
    unused = ("entities", "attention")  # where no name is known, as of the toy dictionary on most tasks

    def __init__(
        self,
        width: int,
        view: Entities,
        knowledge: str = Entities.knowledge,
        senses: int = Entities.senses,
        dropout: float = 0.5,
    ):
        super().__init__()
        self.entities = nn.Embedding(len(view.entities), width, padding_idx=PAD)
        nn.init.uniform_(self.entities.weight, -0.25, 0.25)
        nn.init.zeros_(self.entities.weight[PAD])
        self.attention = nn.Linear(2, 1, bias=False)
        self.dropout = nn.Dropout(dropout)
        self.size = width

    def weights(self, text: EntityBatch, words: Tensor, vectors: Tensor) -> Tensor:
        """Attention (B, E) over entities with ``vectors`` (B, E, width) in texts whose mean word is
        ``words`` (B, width); zeros in a text without any."""
        likeness = F.cosine_similarity(vectors, words[:, None], dim=2)
        scores = self.attention(torch.stack([text.commonness, likeness], dim=2)).squeeze(2)
        return masked_softmax(scores, text.entities != PAD)

    def forward(self, text: EntityBatch) -> Tensor:
        words, vectors = pool(text.vectors, text.mask, "mean"), self.entities(text.entities)
        weights = self.weights(text, words, vectors)
        return self.dropout(words + (weights[:, None] @ vectors).squeeze(1))
