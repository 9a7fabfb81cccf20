"""The body of pre-trained models: a transformer over the pieces of a text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from architectures.blocks.transformer import Transformer
from harness.kinds import PretrainedEncoder
from harness.views.subwords import SubwordBatch, Subwords


class PieceEncoder(PretrainedEncoder):
    """An encoder of word pieces whose hyperparameters say how texts are divided into them, and
    which begins with the weights of its registered parent or with published ones."""

    view_settings: ClassVar[dict[str, str]] = {
        "pretrained": "pretrained",
        "size": "vocabulary",
        "max_length": "max_length",
        "stride": "stride",
    }

    @classmethod
    def default_parents(cls, parents: dict[str, str], hyperparameters: dict[str, Any]) -> dict[str, str]:
        """All of them, but no weights where others' are loaded."""
        return {} if hyperparameters.get("pretrained") else parents

    @staticmethod
    def begin(part: nn.Module, spread: float) -> None:
        """Draw the weights of a part at random, normal with deviation ``spread``; biases begin at
        0."""
        for module in part.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, std=spread)
            if isinstance(module, nn.Linear) and module.bias is not None:
                nn.init.zeros_(module.bias)


class PieceTransformer(PieceEncoder):
    """Vectors of pieces, of learnt positions and, with ``segments``, of the text in which a piece
    stands, added, through a :class:`~architectures.blocks.transformer.Transformer`, to whose layers
    further ``options`` go, or another ``body``, made of the same sizes.

    ``embedded`` is the width of the table of pieces, which a matrix maps to that of the states (Lan
    et al. 2020); None: as wide as these. A ``norm`` follows the sum of vectors, ``inner`` is the
    number of units at each position, by default four times the width of the states. Weights begin
    normal with deviation ``spread``, biases at 0.
    """

    in_parts: ClassVar[bool] = True
    """True where texts may pass the lower layers by themselves, and the upper ones from there."""

    def __init__(
        self,
        width: int,
        view: Subwords,
        layers: int,
        hidden: int,
        heads: int,
        dropout: float,
        inner: int | None = None,
        embedded: int | None = None,
        segments: int = 2,
        norm: bool = True,
        eps: float = 1e-12,
        spread: float = 0.02,
        body: Callable[..., nn.Module] = Transformer,
        **options: Any,
    ):
        super().__init__()
        self.view, self.size, self.eps = view, hidden, eps
        embedded = embedded or hidden
        self.table = nn.Embedding(width, embedded)
        self.positions = nn.Embedding(view.max_length, embedded)
        self.segments = nn.Embedding(segments, embedded) if segments else None
        self.norm = nn.LayerNorm(embedded, eps) if norm else nn.Identity()
        self.projection = nn.Identity() if embedded == hidden else nn.Linear(embedded, hidden)
        self.body = body(hidden, heads, inner or 4 * hidden, layers, dropout, eps=eps, **options)
        self.dropout = nn.Dropout(dropout)
        self.begin(self, spread)

    def embeddings(self, pieces: SubwordBatch, vectors: Tensor | None = None) -> Tensor:
        """The sum of each piece's vectors (B, T, embedded); ``vectors`` (B, T, embedded) take the
        place of those of the table."""
        vectors = self.table(pieces.ids) if vectors is None else vectors
        vectors = vectors + self.positions(torch.arange(pieces.ids.shape[1], device=pieces.ids.device))
        if self.segments is not None:
            vectors = vectors + self.segments(pieces.segments)
        return self.dropout(self.norm(vectors))

    def embed(self, pieces: SubwordBatch, vectors: Tensor | None = None) -> Tensor:
        """The vectors (B, T, size) that the first layer reads."""
        return self.projection(self.embeddings(pieces, vectors))

    def forward(self, pieces: SubwordBatch, vectors: Tensor | None = None, seen: Tensor | None = None) -> Tensor:
        """States (B, T, size); ``vectors`` as in :meth:`embeddings`, ``seen`` (B, T, T) is true
        where the first place may look at the second, by default at all pieces."""
        return self.body(self.embed(pieces, vectors), pieces.mask if seen is None else seen)

    def lower(self, pieces: SubwordBatch, depth: int) -> Tensor:
        """States (B, T, size) behind the first ``depth`` layers."""
        return self.body.part(self.embed(pieces), pieces.mask, slice(depth))

    def upper(self, states: Tensor, mask: Tensor, depth: int) -> Tensor:
        """The last states of texts from those (B, T, size) behind the first ``depth`` layers;
        ``mask`` (B, T) is true at all but padding."""
        return self.body.norm(self.body.part(states, mask, slice(depth, None)))

    def word_states(self, states: Tensor) -> Tensor:
        return self.dropout(states)


class PooledPieces(PieceTransformer):
    """A body whose vector of a text is its first state through a linear layer, tanh and dropout, as
    BERT's is (Devlin et al. 2018)."""

    unused = ("pooler",)  # tags, spans and masked pieces are read from the states

    def __init__(self, width: int, view: Subwords, *sizes: Any, **options: Any):
        super().__init__(width, view, *sizes, **options)
        self.pooler = nn.Sequential(nn.Linear(self.size, self.size), nn.Tanh())
        self.begin(self.pooler, 0.02)

    def pooled(self, states: Tensor) -> Tensor:
        return self.dropout(self.pooler(states[:, 0]))
