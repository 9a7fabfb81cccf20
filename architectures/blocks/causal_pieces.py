"""A transformer that reads the pieces of a text from left to right."""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import Tensor, nn

from architectures.blocks.objectives.next_piece import NextPiece
from architectures.blocks.piece_transformer import PieceTransformer
from harness.views.subwords import SubwordBatch, Subwords

NAMES = {
    "table": "wte",
    "positions": "wpe",
    "body.layers.*.attention.queries_keys_values": "h.*.attn.c_attn",
    "body.layers.*.attention.output": "h.*.attn.c_proj",
    "body.layers.*.norms.0": "h.*.ln_1",
    "body.layers.*.feedforward.0": "h.*.mlp.c_fc",
    "body.layers.*.feedforward.3": "h.*.mlp.c_proj",
    "body.layers.*.norms.1": "h.*.ln_2",
}
"""Places of our modules in models of GPT's families, as the library transformers has them."""
SETTINGS = {
    "inner": "n_inner",
    "dropout": "resid_pdrop",
    "attention_dropout": "attn_pdrop",
    "eps": "layer_norm_epsilon",
}
"""Their names for our settings."""


class CausalPieces(PieceTransformer):
    """The state at a piece knows that piece and those before it, and none behind it.

    It learns by the next piece. Segments have no vectors, no norm follows the sum of vectors, and
    the inner units are GELUs in the form with tanh. The vector of a text is the state at its last
    piece, which alone knows the whole text, through dropout.
    """

    learns = NextPiece
    in_parts = False

    def __init__(
        self,
        width: int,
        view: Subwords,
        layers: int,
        hidden: int,
        heads: int,
        dropout: float,
        eps: float = 1e-5,
        **options: Any,
    ):
        super().__init__(
            width,
            view,
            layers,
            hidden,
            heads,
            dropout,
            segments=0,
            norm=False,
            eps=eps,
            causal=True,
            joint=True,
            activation=functools.partial(nn.GELU, approximate="tanh"),
            **options,
        )

    @staticmethod
    def last(states: Tensor, pieces: SubwordBatch) -> Tensor:
        """The states (B, size) at the last pieces of texts."""
        return states[torch.arange(len(states), device=states.device), pieces.lengths - 1]

    def vector(self, pieces: SubwordBatch) -> Tensor:
        return self.dropout(self.last(self(pieces), pieces))
