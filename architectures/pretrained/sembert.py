"""SemBERT: vectors of words by BERT, and beside them those of labels that a tagger gives to
words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from architectures.blocks.bert_states import BERTStates
from architectures.blocks.recurrent import Recurrent
from harness.kinds import Parent, pool
from harness.ragged import Columns, Ragged
from harness.registry import Recipe, register
from harness.views.base import Text, View, words_of
from harness.views.subwords import SubwordBatch, Subwords, Windows


class LabelledPieces(NamedTuple):
    """A :class:`~harness.views.subwords.SubwordBatch`, with the number of each piece's word in its
    sequence, ``words`` (B, T), and of that word's label, ``labels`` (B, T): 0 for none. [CLS] and
    each [SEP] are words."""

    ids: Tensor
    mask: Tensor
    segments: Tensor
    lengths: Tensor
    firsts: Tensor
    word_mask: Tensor
    windows: Windows | None
    marks: Tensor
    words: Tensor
    labels: Tensor


@dataclass
class LabelledSubwords(Subwords):
    """Word pieces, and the label that a kept tagger gives to their words; without one, none."""

    tagger = None

    @property
    def labels_of_tagger(self) -> int:
        """Number of labels that the tagger gives; 0 without one."""
        return 0 if self.tagger is None else len(self.tagger.target.labels)

    def encode(self, texts: Sequence[Text]) -> Columns:
        """``marks`` are -1 - 2 l - b for a piece whose word has label l, b being 1 where it begins
        the word."""
        words = [words_of(text) or [""] for text in texts]
        columns: Any = super().encode(words)
        marks = []
        for ids, firsts, labels in zip(columns["ids"], columns["firsts"], self.labels(words), strict=True):
            own = -1 - 2 * np.repeat(labels, np.diff([*firsts, len(ids)]))
            own[firsts] -= 1
            marks.append(own)
        return {"ids": columns["ids"], "marks": Ragged.of(marks)}

    def labels(self, texts: Sequence[list[str]]) -> list[list[int]]:
        """The number of each word's label, from 1."""
        if self.tagger is None:
            return [[0] * len(words) for words in texts]
        numbers = {name: number for number, name in enumerate(self.tagger.target.labels, 1)}
        rows = [{"id": str(number), "text": words} for number, words in enumerate(texts)]
        return [[numbers[tag] for tag in answer["prediction"]] for answer in self.tagger.answers(rows)]

    def collate(self, columns: Columns, rows: np.ndarray) -> LabelledPieces:  # type: ignore[override]
        return labelled(*(super(LabelledSubwords, self).collate({"ids": columns[n]}, rows) for n in ("ids", "marks")))

    def collate_pair(  # type: ignore[override]
        self, first: Columns, second: Columns, rows: np.ndarray, cut: Literal["longer", "second"] = "longer"
    ) -> LabelledPieces:
        read = [({"ids": first[name]}, {"ids": second[name]}) for name in ("ids", "marks")]
        return labelled(*(super(LabelledSubwords, self).collate_pair(*both, rows, cut) for both in read))


def labelled(pieces: SubwordBatch, marked: SubwordBatch) -> LabelledPieces:
    """The pieces with their words and labels, by the same sequences of their ``marks``; what is not
    below 0 there is [CLS], [SEP] or padding."""
    marks = torch.where(marked.ids < 0, -1 - marked.ids, 1)
    return LabelledPieces(*pieces, words=(marks % 2).cumsum(1) - 1, labels=marks // 2)


@register(
    "sembert",
    name="SemBERT, small",
    kind="plm",
    paper="Zhang et al. 2020",
    source="M-T5[155]",
    year=2020,
    version=2,
    parents={"weights": "bert@text_mix", "tags": "bilstm_crf@conll2003_pos"},
    recipe=Recipe(
        optimizer="adamw",
        lr=0.00002,
        batch_size=32,
        epochs=3,
        patience=3,
        weight_decay=0.01,
        clip=1.0,
        lr_schedule="linear",
        warmup_share=0.1,
        eps=0.000001,
        decay_exempt=("biases", "norms"),
    ),
    tiny={"layers": 1, "hidden": 32, "heads": 2, "vocabulary": 1000},
    deviations=(
        "Labels are the parts of speech that our bilstm_crf gives, one sequence for a text; the paper's are the roles"
        " of words for each predicate, of which no marked texts are at hand.",
        "The parent is our BERT, of four layers of 256 and 8,000 pieces in lower case;"
        " -o sembert.pretrained=FOLDER loads the paper's.",
        "Without a tagger, as `archbench check` runs it, all words have the same label.",
        "Single texts and pairs are classified; the paper's spans are left out.",
        "Zeros stand on both sides of a word's pieces; in the authors' program behind them, up to the length of the"
        " batch's longest word.",
        "The tanh layer keeps as many numbers as BERT has; in the authors' program those of the labels beside them.",
        "The rate falls linearly, and gradients are cut at a norm of 1 all together; the authors' program applies its"
        " schedule twice, and cuts each matrix by itself.",
        "Adam corrects its moments for their start at zero; the authors' optimizer does not.",
        "Layers that BERT lacks begin as PyTorch's do; in the authors' program normal with a deviation of 0.02.",
        "The authors' program classifies by the first word alone; its labels pass a norm and two dropouts, and no GRU.",
    ),
)
class SemBERT(BERTStates):
    """The vector of a text or pair: the maximum over its words of [BERT's vector of the word; the
    vector of its label], through a tanh layer.

    A word's vector is the maximum over a convolution of width 3 on the states of its pieces alone,
    with ReLU. Vectors of labels (``label_size``) pass a GRU in both directions and a layer of
    ``role_size``. Dropout acts on the vectors of words, before labels stand beside them, and behind
    tanh. A tagger has fewer labels than ``most_labels``. The other settings are BERT's.
    """

    view = LabelledSubwords()
    takes = ("weights", "tags")
    fresh = ("word", "labels", "context", "role", "joined")

    @classmethod
    def can_answer(cls, type: str) -> bool:
        """True for the classes of texts and pairs."""
        return type in ("classify", "match")

    def __init__(
        self,
        width: int,
        view: LabelledSubwords,
        pretrained: str = "",
        layers: int = 4,
        hidden: int = 256,
        heads: int = 4,
        dropout: float = 0.1,
        vocabulary: int = Subwords.size,
        max_length: int = 128,
        label_size: int = 10,
        role_size: int = 10,
        most_labels: int = 64,
    ):
        sizes: dict[str, Any] = {"layers": layers, "hidden": hidden, "heads": heads, "dropout": dropout}
        super().__init__(width, view, pretrained, **sizes)
        if view.labels_of_tagger >= most_labels:
            raise ValueError(
                f"sembert: most_labels={most_labels}, and the tagger has {view.labels_of_tagger} labels; with none,"
                f" which marks have, expected is {view.labels_of_tagger + 1} at least"
            )
        self.word = nn.Conv1d(self.size, self.size, 3, padding=1)
        self.labels = nn.Embedding(most_labels, label_size)
        self.context = Recurrent("gru", label_size, role_size, bidirectional=True)
        self.role = nn.Linear(self.context.size, role_size)
        self.joined = nn.Linear(self.size + role_size, self.size)

    @classmethod
    def inherited_view(cls, view: View, role: str, parent: Parent) -> View:
        if role == "tags":
            view.tagger = parent  # type: ignore[attr-defined]
        return super().inherited_view(view, role, parent)

    def by_word(self, states: Tensor, pieces: LabelledPieces) -> tuple[Tensor, Tensor, Tensor]:
        """Vectors (B, W, size) of words from states (B, T, size) of pieces, the words' labels (B,
        W) and their mask."""
        rows, places = pieces.mask.nonzero().unbind(1)
        words, begins = pieces.words[rows, places], torch.ones_like(places, dtype=torch.bool)
        begins[1:] = (rows[1:] != rows[:-1]) | (words[1:] != words[:-1])
        first, number = begins.nonzero()[:, 0], begins.cumsum(0) - 1
        inside = torch.arange(len(places), device=places.device) - first[number]
        shape = len(first), int(inside.max()) + 1
        apart = states.new_zeros(*shape, states.shape[2]).index_put((number, inside), states[rows, places])
        real = torch.zeros(shape, dtype=torch.bool, device=states.device).index_put((number, inside), begins | True)
        maps = torch.relu(self.word(apart.transpose(1, 2))).transpose(1, 2)
        vectors = self.dropout(maps.masked_fill(~real[..., None], 0.0).amax(1))
        counts = words.new_zeros(len(states)).index_add(0, rows, begins.long())
        mask = torch.arange(int(counts.max()), device=states.device) < counts[:, None]
        at = rows[first], words[first]
        found = states.new_zeros(*mask.shape, states.shape[2]).index_put(at, vectors)
        labels = torch.zeros_like(mask, dtype=torch.long).index_put(at, pieces.labels[rows, places][first])
        return found, labels, mask

    def vector(self, pieces: LabelledPieces) -> Tensor:  # type: ignore[override]
        words, labels, mask = self.by_word(self(pieces), pieces)
        roles = self.role(self.context(self.labels(labels), mask))
        largest = pool(torch.cat([words, roles], dim=2), mask, "max")
        return self.dropout(torch.tanh(self.joined(largest)))
