"""XLNet."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from architectures.blocks.chosen_places import numbered
from architectures.blocks.objectives.permuted_pieces import PermutedPieces
from architectures.blocks.piece_transformer import PieceEncoder
from architectures.blocks.published_weights import published_model
from architectures.blocks.two_streams import Sight, TwoStreams, distance_vectors
from harness.registry import Recipe, register
from harness.views.subwords import SubwordBatch, Subwords

EXPECTED = {"attn_type": "bi", "ff_activation": "gelu", "clamp_len": -1, "bi_data": False, "same_length": False}
"""Settings without which a published model would answer otherwise here."""
OF_ITSELF = 2
"""Segment of the mark that stands for the whole input."""


@register(
    "xlnet",
    name="XLNet, small",
    kind="plm",
    paper="Yang et al. 2019",
    source="M2.10[156] T1-T5",
    year=2019,
    parents={"weights": "xlnet@text_mix"},
    recipe=Recipe(
        optimizer="adamw",
        lr=(0.00001, 0.00002, 0.00003),
        batch_size=32,
        epochs=4,
        patience=4,
        weight_decay=0.01,
        clip=1.0,
        eps=0.000001,
        lr_schedule="slanted_triangle",
        warmup_share=0.1,
        decay_exempt=("biases", "norms"),
    ),
    recipes={
        "text": Recipe(
            optimizer="adamw",
            lr=0.0004,
            batch_size=32,
            epochs=5,
            patience=5,
            weight_decay=0.01,
            clip=1.0,
            eps=1e-06,
            lr_schedule="slanted_triangle",
            warmup_share=0.08,
            decay_exempt=("biases", "norms"),
        ),
    },
    tiny={"layers": 1, "hidden": 32, "heads": 2, "vocabulary": 1000},
    deviations=(
        "Pre-training makes five passes in batches of 32 sequences; the paper makes 500,000 steps of 8,192.",
        (
            "Four layers of 256, not twenty-four of 1,024, and 8,000 word pieces in lower case, not 32,000 of"
            " SentencePiece with case; -o xlnet.pretrained=FOLDER loads the paper's."
        ),
        (
            "Sequences have at most 128 pieces and no memory of the one before; the paper's have 512, and remember the"
            " half before."
        ),
        (
            "Pre-training reads packed texts as one segment, from left to right; the paper reads two segments, half of"
            " the time of two texts, and half of the batch backwards."
        ),
        (
            "Spans that are asked for stand anywhere; the authors draw one in each stretch of six times its length, and"
            " give marks a place in the order too."
        ),
        (
            "One set of rates, passes and batch size serves all tasks; the paper has steps for each, and for SQuAD"
            " lower rates in lower layers."
        ),
        "GELU is the exact one, as in the library transformers; the authors' program has the form with tanh.",
        "Adam corrects its moments for their start at zero; the authors' optimizer does not.",
        "The decay spares the three vectors that are added to queries, as it does biases; the authors' does not.",
        "Spans are scored by one layer for start and end; the authors search the end of each of five starts.",
    ),
)
class XLNet(PieceEncoder):
    """A transformer without positions of its own, whose attention knows how far apart two pieces
    are and whether they are of one text, and which learns by telling pieces in a random order.

    The mark [CLS], whose state stands for the whole input, is read as its last piece. The vector of
    a text is that state through a linear layer, tanh and dropout. ``pretrained`` is a folder or a
    name on the hub that holds weights (safetensors) and their tokenizer, which bring their own
    ``layers``, ``hidden``, ``heads``, ``dropout`` and ``vocabulary``.
    """

    learns = PermutedPieces
    unused = ("pooler",)  # tags, spans and permuted pieces are read from the states

    def __init__(
        self,
        width: int,
        view: Subwords,
        pretrained: str = "",
        layers: int = 4,
        hidden: int = 256,
        heads: int = 4,
        dropout: float = 0.1,
        vocabulary: int = Subwords.size,
        max_length: int = 128,
        stride: int = 64,
    ):
        super().__init__()
        given = published_model(view.pretrained, "xlnet", width, EXPECTED) if view.pretrained else None
        inner, self.eps = 4 * hidden, 1e-12
        if given is not None:
            of = given.config
            layers, hidden, heads, dropout = of.n_layer, of.d_model, of.n_head, of.dropout
            inner, self.eps = of.d_inner, of.layer_norm_eps
        self.view, self.size = view, hidden
        self.table = nn.Embedding(width, hidden)
        self.body = TwoStreams(hidden, heads, inner, layers, dropout, self.eps)
        self.pooler = nn.Sequential(nn.Linear(hidden, hidden), nn.Tanh())
        self.dropout = nn.Dropout(dropout)
        self.begin(self, 0.02)
        for layer in self.body.layers:
            for vectors in layer.attention.vectors():
                nn.init.normal_(vectors, std=0.02)
        if given is not None:
            self.load_state_dict(self.state_dict() | published_state(given, width))

    def forward(self, pieces: SubwordBatch) -> Tensor:
        order = mark_last(pieces)
        states, _ = self.body(*self.read(pieces, order))
        return self.dropout(at_rows(states, order.argsort(1)))

    def told(self, pieces: SubwordBatch, asked: Tensor, known: Tensor, query: Tensor) -> Tensor:
        """States (N, size) of the places (B, T) where ``asked`` is true, in their order, none of
        which knows its piece; the mark at the beginning is not asked for.

        ``known`` (B, T, T) is true where the piece at the second place is known to the first, and
        ``query`` (size,) is what the states begin with.
        """
        order = mark_last(pieces)
        states, sight = self.read(pieces, order)
        known = at_rows(at_rows(known, order).mT, order).mT & sight.allowed
        itself = torch.eye(known.shape[1], dtype=torch.bool, device=known.device)
        places, real = numbered(asked.gather(1, order))
        queries = self.dropout(query.expand(*places.shape, -1))
        content = sight._replace(allowed=known | (itself & sight.allowed))
        _, queries = self.body(states, content, queries, sight.at(places, known))
        return self.dropout(queries[real])

    def read(self, pieces: SubwordBatch, order: Tensor) -> tuple[Tensor, Sight]:
        """The vectors (B, T, size) of pieces in this ``order`` (B, T), and what their places know
        of one another."""
        vectors = self.dropout(self.table(pieces.ids.gather(1, order)))
        segments = torch.cat([torch.full_like(pieces.segments[:, :1], OF_ITSELF), pieces.segments[:, 1:]], 1)
        distances = self.dropout(distance_vectors(vectors.shape[1], vectors))
        allowed = pieces.mask[:, None].expand(-1, pieces.mask.shape[1], -1)
        return vectors, Sight.of(distances, segments.gather(1, order), allowed)

    def pooled(self, states: Tensor) -> Tensor:
        return self.dropout(self.pooler(states[:, 0]))


def mark_last(pieces: SubwordBatch) -> Tensor:
    """The places (B, T) of pieces in the order in which the first one of a text is its last."""
    places = torch.arange(pieces.ids.shape[1], device=pieces.ids.device)
    last = pieces.lengths[:, None] - 1
    return torch.where(places < last, places + 1, torch.where(places == last, 0, places))


def at_rows(values: Tensor, rows: Tensor) -> Tensor:
    """Values (B, T, ...) at the ``rows`` (B, T) of each text."""
    return values[torch.arange(len(rows), device=rows.device)[:, None], rows]


def published_state(model: Any, pieces: int) -> dict[str, Tensor]:
    """The weights of a model of transformers under our names, with so many rows of its table."""
    found = {"table.weight": model.word_embedding.weight[:pieces]}
    for number, layer in enumerate(model.layer):
        attention, network = layer.rel_attn, layer.ff
        parts = {
            "attention.query.weight": attention.q.flatten(1).T,
            "attention.key.weight": attention.k.flatten(1).T,
            "attention.value.weight": attention.v.flatten(1).T,
            "attention.distance.weight": attention.r.flatten(1).T,
            "attention.output.weight": attention.o.flatten(1),
            "attention.bias_content": attention.r_w_bias,
            "attention.bias_distance": attention.r_r_bias,
            "attention.bias_segment": attention.r_s_bias,
            "attention.segments": attention.seg_embed,
        }
        for name, theirs in {
            "norms.0": attention.layer_norm,
            "feedforward.0": network.layer_1,
            "feedforward.3": network.layer_2,
            "norms.1": network.layer_norm,
        }.items():
            parts |= {f"{name}.weight": theirs.weight, f"{name}.bias": theirs.bias}
        found |= {f"body.layers.{number}.{name}": value for name, value in parts.items()}
    return found
