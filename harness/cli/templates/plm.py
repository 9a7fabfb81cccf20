"""My model: one sentence on what it is."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from harness.kinds import PretrainedEncoder
from harness.registry import Recipe, register
from harness.views.subwords import SubwordBatch, Subwords


@register(
    "my_model",
    name="My model",
    kind="plm",
    paper="Author & Author 2000",
    source="section or equation that this follows",
    year=2000,
    recipe=Recipe(optimizer="adamw", lr=0.0003, batch_size=32, epochs=5),
    tiny={"hidden": 32, "layers": 1},
)
class MyModel(PretrainedEncoder):
    """Transformer layers over the vectors of pieces, segments and positions, from random weights.

    The pieces are learnt on the training texts, so nothing is downloaded. To start from trained
    weights, load them here and give their tokenizer to the view: ``Subwords(pretrained=FOLDER)``.
    Say here what the paper does, and where.
    """

    view = Subwords(size=4000, max_length=256)

    def __init__(self, width: int, hidden: int = 128, heads: int = 4, layers: int = 2, dropout: float = 0.1):
        super().__init__()
        self.pieces = nn.Embedding(width, hidden)
        self.segments = nn.Embedding(2, hidden)
        self.positions = nn.Embedding(self.view.max_length, hidden)
        layer = nn.TransformerEncoderLayer(hidden, heads, 4 * hidden, dropout, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.size = hidden

    def forward(self, pieces: SubwordBatch) -> Tensor:
        positions = torch.arange(pieces.ids.shape[1], device=pieces.ids.device)
        vectors = self.pieces(pieces.ids) + self.segments(pieces.segments) + self.positions(positions)
        return self.layers(vectors, src_key_padding_mask=~pieces.mask)
