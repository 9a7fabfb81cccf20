"""GPT."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from torch import Tensor

from architectures.blocks.causal_pieces import CausalPieces
from architectures.blocks.objectives.next_piece import next_pieces
from harness.registry import Recipe, TaskEntry, register
from harness.views.subwords import SubwordBatch, Subwords


@dataclasses.dataclass
class DirectedPieces(Subwords):
    """Word pieces of texts or pairs; of a pair, ``both_orders`` says that the relation of its texts
    has no direction."""

    both_orders: bool = False


@register(
    "gpt",
    name="GPT, small",
    kind="plm",
    paper="Radford et al. 2018",
    source="M2.10[6] T5",
    year=2018,
    parents={"weights": "gpt@text_mix"},
    recipe=Recipe(
        optimizer="adamw",
        lr=0.0000625,
        batch_size=32,
        epochs=3,
        patience=3,
        weight_decay=0.01,
        clip=1.0,
        lr_schedule="linear",
        warmup_share=0.002,
        decay_exempt=("biases", "norms"),
    ),
    recipes={
        "text": Recipe(
            optimizer="adamw",
            lr=0.00025,
            batch_size=64,
            epochs=5,
            patience=5,
            weight_decay=0.01,
            clip=1.0,
            lr_schedule="cosine",
            warmup_share=0.01,
            decay_exempt=("biases", "norms"),
        ),
    },
    tiny={"layers": 2, "hidden": 64, "heads": 2, "vocabulary": 1000},
    deviations=(
        (
            "Pre-training makes five passes, and the rate rises over a hundredth of them; the paper makes a hundred,"
            " and the rate rises over 2,000 steps."
        ),
        "Four layers of 256, not twelve of 768, and texts of at most 128 pieces, not 512.",
        "Texts are divided into 8,000 word pieces (Wu et al. 2016), not into the pieces of 40,000 merges.",
        "Pre-training reads short texts of many sources packed together, not stretches of books.",
        "Dropout acts on the sum of a piece's vectors, anew in each place; in the authors' program on the table, of"
        " which the output layer reads what is left.",
        "The layer on top starts as PyTorch's do; the authors draw from normal numbers of deviation 0.02.",
        "Words and spans, which the paper has no tasks of, are read from states without the auxiliary loss.",
        (
            "A word is labelled by the state at its first piece, and having no answer scored by that at the start"
            " piece: they know nothing of what follows."
        ),
        (
            "The extract piece and the delimiter of a pair are one, [SEP], and pre-training shows it and [CLS] already;"
            " the paper's three begin at random when a task is tuned."
        ),
        "Too long a pair loses the end of the longer text; the authors cut both at half the room.",
    ),
)
class GPT(CausalPieces):
    """Vectors of pieces and of learnt positions, added, through transformer layers in which no
    piece sees one behind it; the norm follows each sum.

    Tuned on a task whose answer is one for a whole input, the model goes on learning the next
    piece: ``auxiliary`` times the mean surprise of a text's pieces, the mean over the texts, is
    added to the loss. Inputs stand between a start piece and an extract piece, [CLS] and the last
    [SEP], and a delimiter between the texts of a pair is [SEP] too. Premise and hypothesis, or
    question and answer (types match, rank and extract), are read in this order. Pairs without
    direction, those whose similarity is a number (type regress_pair), are read in both orders, and
    the two vectors added.
    """

    view = DirectedPieces()

    @classmethod
    def view_for(cls, task: TaskEntry, hyperparameters: dict[str, Any]) -> DirectedPieces | None:
        """The pieces of a task's texts, which knows whether pairs are read in both orders."""
        view = super().view_for(task, hyperparameters)
        assert view is None or isinstance(view, DirectedPieces)
        return view and dataclasses.replace(view, both_orders=task.type == "regress_pair")

    def __init__(
        self,
        width: int,
        view: DirectedPieces,
        layers: int = 4,
        hidden: int = 256,
        heads: int = 4,
        dropout: float = 0.1,
        auxiliary: float = 0.5,
        vocabulary: int = 8000,
        max_length: int = 128,
        stride: int = 64,
    ):
        super().__init__(width, view, layers, hidden, heads, dropout)
        self.auxiliary, self.both_orders = auxiliary, view.both_orders

    def vector(self, pieces: SubwordBatch) -> Tensor:
        if self.both_orders:
            pieces = with_turned(pieces)
        states = self(pieces)
        if self.training:
            self.add_loss("language_model", self.auxiliary * self.surprise(states, pieces))
        vectors = self.last(states, pieces)
        if self.both_orders:
            vectors = vectors.unflatten(0, (2, -1)).sum(0)
        return self.dropout(vectors)

    def surprise(self, states: Tensor, pieces: SubwordBatch) -> Tensor:
        """Nats per piece of each text, the mean over the texts."""
        logs, texts = next_pieces(self, states, pieces)
        return -(logs / (pieces.lengths - 1)[texts]).sum() / len(states)


def with_turned(pieces: SubwordBatch) -> SubwordBatch:
    """Pairs (2B, T), first as they are and then the second text before the first.

    ``[CLS] a [SEP] b [SEP]`` becomes ``[CLS] b [SEP] a [SEP]``: all that stands behind the start
    piece is rotated by the length of ``a [SEP]``.
    """
    length = pieces.lengths[:, None]
    first = length - 1 - pieces.segments.sum(1, keepdim=True)
    places = torch.arange(pieces.ids.shape[1], device=pieces.ids.device).expand_as(pieces.ids)
    inside = pieces.mask & (places > 0)
    source = torch.where(inside, 1 + (places - 1 + first) % (length - 1), places)
    turned = pieces.ids.gather(1, source)
    second = (inside & (places >= length - first)).long()
    both = zip(pieces[:4], (turned, pieces.mask, second, pieces.lengths), strict=True)
    return SubwordBatch(*(torch.cat(each) for each in both))
