"""A plugin whose architectures start from what others learnt, one for each role."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from harness.kinds import Estimator, InputSource, Tagger, TextEncoder
from harness.objectives import Objective, Step
from harness.ragged import Ragged
from harness.registry import Recipe, register, register_input
from harness.saved_models.parents import class_probabilities, copy_weights
from harness.views.words import WordBatch, Words


@register(
    "mean_words", name="Mean", kind="text", paper="Nobody 2001", source="-", year=2001, recipe=Recipe(vector_dims=8)
)
@register(
    "mean_after",
    name="Mean that goes on",
    kind="text",
    paper="Nobody 2002",
    source="-",
    year=2002,
    recipe=Recipe(vector_dims=8),
    parents={"weights": "mean_words", "vectors": "mean_words"},
)
@register(
    "mean_last",
    name="Mean that goes on once more",
    kind="text",
    paper="Nobody 2003",
    source="-",
    year=2003,
    recipe=Recipe(vector_dims=8),
    parents={"weights": "mean_after"},
)
class MeanWords(TextEncoder):
    """The mean of word vectors through a layer that a parent may have trained."""

    takes = ("weights",)

    def __init__(self, width: int, hidden: int = 6, breaks: bool = False):
        super().__init__()
        self.layer, self.size, self.breaks = nn.Linear(width, hidden), hidden, breaks

    def inherit(self, role: str, parent: Any, rows: Any) -> None:
        copy_weights(parent, self)

    def forward(self, words: WordBatch) -> Tensor:
        if self.breaks:
            raise RuntimeError("it broke")
        return torch.tanh(self.layer((words.vectors * words.mask[..., None]).sum(1)))


@dataclass
class NumberedWords(Words):
    """Words as numbers, for a table of the architecture's own."""

    embeds = False


@register("numbered", name="Numbered", kind="text", paper="Nobody 2004", source="-", year=2004)
@register(
    "numbered_elsewhere",
    name="Numbered elsewhere",
    kind="text",
    paper="Nobody 2004",
    source="-",
    year=2004,
    parents={"weights": "numbered@ag_news"},
)
class Numbered(TextEncoder):
    """A table of words of its own, numbered as its view does."""

    view = NumberedWords()
    takes = ("weights",)

    def __init__(self, width: int, hidden: int = 4):
        super().__init__()
        self.table, self.size = nn.Embedding(width, hidden), hidden

    def inherit(self, role: str, parent: Any, rows: Any) -> None:
        copy_weights(parent, self)

    def forward(self, words: WordBatch) -> Tensor:
        return self.table(words.ids).sum(1)


@register("word_table", name="Table", kind="fit", paper="Nobody 1999", source="-", year=1999)
class WordTable(Estimator):
    """A vector of its label counts for each word."""

    def fit(self, train: Any, dev: Any, unlabelled: Any = ()) -> None:
        self.labels = sorted({row["label"] for row in train})
        self.counts: dict[str, np.ndarray] = {}
        for row in train:
            for word in Words().read(row["text"]):
                self.counts.setdefault(word, np.zeros(len(self.labels)))[self.labels.index(row["label"])] += 1.0

    def predict(self, rows: Any) -> list[str]:
        none = np.zeros(len(self.labels))
        sums = (sum((self.counts.get(word, none) for word in Words().read(row["text"])), none) for row in rows)
        return [self.labels[int(np.argmax(each))] for each in sums]

    def word_vectors(self) -> dict[str, np.ndarray]:
        return self.counts


@register_input("kept_words", name="Kept", paper="Nobody 1999", source="-", year=1999, parents={"inputs": "word_table"})
@register_input(
    "kept_words_too", name="Kept too", paper="Nobody 1999", source="-", year=1999, parents={"inputs": "mean_words"}
)
class KeptWords(InputSource):
    """The vectors that a parent has of words, which stay as they are."""

    takes = ("inputs",)
    spells = False

    def __init__(self, view: Any, size: int = 2):
        super().__init__()
        self.words, self.size = view.vocabulary.words, size
        self.table = nn.Embedding(len(view.vocabulary), size, padding_idx=0)

    def inherit(self, role: str, parent: Any, rows: Any) -> None:
        vectors = parent.word_vectors()
        self.table.requires_grad_(False)
        self.table.weight[2:] = torch.stack([torch.as_tensor(vectors[word]) for word in self.words])

    def forward(self, words: Any) -> Tensor:
        return self.table(words.ids)


class SoftTargets(Objective):
    """The supervised loss, and the cross-entropy with a teacher's probabilities."""

    def __init__(self, owner: Any, model: Any, inner: Objective | None = None):
        super().__init__(owner, model, inner)
        self.soft = owner.soft

    def losses(self, model: Any, step: Step) -> dict[str, Tensor]:
        losses = self.inner.losses(model, step)  # type: ignore[union-attr]
        if self.soft is None:
            return losses
        scores = model.head.class_scores(model(step.batch.inputs))
        taught = -(self.soft[torch.as_tensor(step.batch.rows)] * scores.log_softmax(-1)).sum(-1).mean()
        return {"loss": losses["loss"] + taught, "teacher": taught}


@register(
    "pupil",
    name="Pupil",
    kind="text",
    paper="Nobody 2005",
    source="-",
    year=2005,
    recipe=Recipe(vector_dims=8),
    parents={"teacher": "mean_words"},
)
class Pupil(MeanWords):
    """Learns what its teacher thinks of each training text."""

    takes = ("teacher",)
    trained_by = SoftTargets
    soft: Tensor | None = None

    def inherit(self, role: str, parent: Any, rows: Any) -> None:
        self.soft = class_probabilities(parent, rows)


@register(
    "word_tagger", name="Tagger", kind="tag", paper="Nobody 2006", source="-", year=2006, recipe=Recipe(vector_dims=8)
)
class WordTagger(Tagger):
    """Each word alone."""

    def __init__(self, width: int, labels: int):
        super().__init__()
        self.output = nn.Linear(width, labels)

    def forward(self, words: WordBatch) -> Tensor:
        return self.output(words.vectors)


class TaggedBatch(NamedTuple):
    """A :class:`~harness.views.words.WordBatch` with the number of the tag of each word (B, T)."""

    ids: Tensor
    mask: Tensor
    lengths: Tensor
    vectors: Tensor
    static: Tensor
    spellings: Tensor
    tags: Tensor


@dataclass
class TaggedWords(Words):
    """Words with the tags that a kept tagger gives them."""

    tagger = None

    def encode(self, texts: Any) -> Any:
        if self.tagger is None:
            return super().encode(texts) | {"tags": Ragged.of([[0] * len(self.split(text)) for text in texts])}
        rows = [{"id": str(number), "text": self.split(text)} for number, text in enumerate(texts)]
        numbers = {name: place for place, name in enumerate(self.tagger.target.labels, 1)}
        answers = [answer["prediction"] for answer in self.tagger.answers(rows)]
        return super().encode(texts) | {"tags": Ragged.of([[numbers[tag] for tag in tags] for tags in answers])}

    def collate(self, columns: Any, rows: np.ndarray) -> Any:
        tags, _ = columns["tags"].pad(rows, 0)
        return TaggedBatch(*super().collate(columns, rows), torch.from_numpy(tags).long())


@register(
    "tagged_mean",
    name="Mean of words and tags",
    kind="text",
    paper="Nobody 2007",
    source="-",
    year=2007,
    recipe=Recipe(vector_dims=8),
    parents={"tags": "word_tagger@conll2003_pos"},
)
class TaggedMean(TextEncoder):
    """The mean of word and tag vectors."""

    view = TaggedWords()
    takes = ("tags",)

    def __init__(self, width: int, tags: int = 60):
        super().__init__()
        self.tags, self.size = nn.Embedding(tags, width), width

    @classmethod
    def inherited_view(cls, view: Any, role: str, parent: Any) -> Any:
        view.tagger = parent
        return view

    def forward(self, words: TaggedBatch) -> Tensor:
        return ((words.vectors + self.tags(words.tags)) * words.mask[..., None]).sum(1)
