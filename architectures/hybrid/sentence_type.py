"""Sentences divided by the number of their targets, each sort with a convolutional network of its
own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from architectures.convolutional.kim_cnn import KimCNN
from harness.kinds import Parent, TextEncoder
from harness.metrics.tagging import spans
from harness.ragged import Columns
from harness.registry import Recipe, register
from harness.views.base import Text
from harness.views.words import WordBatch, Words

SORTS = 3
"""Sentences without a target, with one, and with more."""


class TargetBatch(NamedTuple):
    """A :class:`~harness.views.words.WordBatch` with the number of each text's ``targets`` (B,)."""

    ids: Tensor
    mask: Tensor
    lengths: Tensor
    vectors: Tensor = torch.empty(0)
    static: Tensor = torch.empty(0)
    spellings: Tensor = torch.empty(0)
    targets: Tensor = torch.empty(0)


@dataclass
class Targets(Words):
    """Words, and the number of spans that a kept tagger finds among those of a text; without one,
    the number of runs of words that begin with a capital letter."""

    tagger = None

    def encode(self, texts: Sequence[Text]) -> Columns:
        words = [self.split(text) for text in texts]
        if self.tagger is None:
            counts = [sum(capital for capital, _ in groupby(each, lambda word: word[:1].isupper())) for each in words]
        else:
            rows = [{"id": str(number), "text": each} for number, each in enumerate(words)]
            counts = [len(spans(answer["prediction"])) for answer in self.tagger.answers(rows)]
        return super().encode(texts) | {"targets": np.array(counts, dtype=np.int64)}

    def collate(self, columns: Columns, rows: np.ndarray) -> TargetBatch:  # type: ignore[override]
        targets = torch.from_numpy(np.array(columns["targets"][rows]))
        return TargetBatch(*super().collate(columns, rows))._replace(targets=targets)


@register(
    "sentence_type",
    name="CNNs by type of sentence",
    kind="text",
    paper="Chen et al. 2017",
    source="M2.9[135]",
    year=2017,
    parents={"tags": "bilstm_crf@conll2003_ner"},
    recipe=Recipe(optimizer="adadelta", lr=1.0, rho=0.95, batch_size=50, epochs=25),
    tiny={"maps": 8},
    vectors_of_paper="word2vec",
    deviations=(
        "Targets are the names that our bilstm_crf finds, trained on CoNLL-2003; the paper's are targets of opinions,"
        " of which the marked texts (MPQA) are not at hand.",
        "The networks share one table of word vectors and are trained at once, each on its own sentences.",
        "A sort of which training has no sentence is answered by the network of the commonest sort.",
        "The norm of the rows of the last layers has no limit.",
        "Without a tagger, as `archbench check` runs it, each run of words in capitals is a target.",
    ),
)
class SentenceType(TextEncoder):
    """Scores (B, classes) of sentences without a target, with one and with more of them, each sort
    by a network of its own: :class:`~architectures.convolutional.kim_cnn.KimCNN` and a linear
    layer, which learn from no other sentence.

    Targets are predicted, in training as in use.
    """

    view = Targets()
    takes = ("tags",)
    unused: ClassVar[tuple[str, ...]] = ("networks", "outputs")
    """Those of a sort that no sentence is of have no gradient."""

    def __init__(
        self,
        width: int,
        classes: int,
        maps: int = 100,
        windows: tuple = (3, 4, 5),
        dropout: float = 0.5,
    ):
        super().__init__()
        self.networks = nn.ModuleList(KimCNN(width, maps, windows, dropout) for _ in range(SORTS))
        self.outputs = nn.ModuleList(nn.Linear(maps * len(windows), classes) for _ in range(SORTS))
        self.register_buffer("seen", torch.zeros(SORTS, dtype=torch.long))
        self.classes = classes

    @classmethod
    def inherited_view(cls, view: Any, role: str, parent: Parent) -> Any:
        view.tagger = parent
        return view

    def sorts(self, targets: Tensor) -> Tensor:
        """The network (B,) that answers for texts with these numbers of targets (B,)."""
        sorts = targets.clamp(max=SORTS - 1)
        if self.training:
            self.seen += sorts.bincount(minlength=SORTS)
            return sorts
        return torch.where(self.seen[sorts] > 0, sorts, self.seen.argmax())

    def forward(self, words: TargetBatch) -> Tensor:
        scores = words.vectors.new_zeros(len(words.ids), self.classes)
        sorts = self.sorts(words.targets)
        for sort, (network, output) in enumerate(zip(self.networks, self.outputs, strict=True)):
            rows = (sorts == sort).nonzero()[:, 0]
            if len(rows):
                own = WordBatch(*(each[rows] for each in words[:4]))
                scores = scores.index_copy(0, rows, output(network(own)))
        return scores
