"""Multi-perspective convolutional neural network."""

from __future__ import annotations

from collections.abc import Iterable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.windows import lengthen, window_mask
from harness.kinds import PairEncoder, pool
from harness.registry import Recipe, register
from harness.views.words import WordBatch

WHOLE = ("max", "min", "mean")
"""Poolings of the filters over whole word vectors (block A), and of the word vectors themselves."""
SINGLE = ("max", "min")
"""Poolings of the filters over single dimensions (block B)."""


def pooled(states: Tensor, mask: Tensor, how: str) -> Tensor:
    """Maximum, minimum or mean (B, size) over the real positions of states (B, T, size)."""
    return -pool(-states, mask, "max") if how == "min" else pool(states, mask, how)


class Filters(nn.Module):
    """tanh filters of each of the ``widths`` under one pooling, which has these filters for itself:
    words (B, T, width) to values (B, ``widths``, filters).

    ``single`` filters each read one dimension of the words, otherwise all of them.
    """

    def __init__(self, width: int, filters: int, widths: int, how: str, single: bool = False):
        super().__init__()
        self.how = how
        groups = width if single else 1
        self.convolutions = nn.ModuleList(
            nn.Conv1d(width, groups * filters, window, groups=groups) for window in range(1, widths + 1)
        )

    def forward(self, words: Tensor, lengths: Tensor) -> Tensor:
        values = []
        for window, convolution in enumerate(self.convolutions, start=1):
            maps = torch.tanh(convolution(lengthen(words, window).transpose(1, 2))).transpose(1, 2)
            values.append(pooled(maps, window_mask(lengths, window, maps.shape[1]), self.how))
        return torch.stack(values, dim=1)


def distances(first: Tensor, second: Tensor) -> list[Tensor]:
    """Cosine and euclidean distance of vectors (B, ..., size), each (B, ..., 1)."""
    euclidean = torch.linalg.vector_norm(first - second, dim=-1, keepdim=True)
    return [F.cosine_similarity(first, second, dim=-1)[..., None], euclidean]


def compared(first: Tensor, second: Tensor) -> list[Tensor]:
    """Cosine, euclidean distance and absolute differences of vectors (B, ..., size)."""
    return [*distances(first, second), (first - second).abs()]


def flat(features: Iterable[Tensor]) -> Tensor:
    """All features (B, ...) of a pair in one row."""
    return torch.cat([feature.flatten(1) for feature in features], dim=1)


@register(
    "mpcnn",
    name="Multi-perspective CNN",
    kind="pair",
    paper="He et al. 2015",
    source="M2.8[122]",
    year=2015,
    recipe=Recipe(optimizer="sgd", lr=0.01, epochs=35, patience=35, weight_decay=0.0001),
    tiny={"widths": 2, "single": 2, "hidden": 24},
    vectors_of_paper="GloVe",
    version=2,
    deviations=(
        "The loss is cross-entropy, which the paper's divergence is for a label that is certain.",
        "Words have no vectors of their part of speech and no PARAGRAM vectors beside GloVe's.",
        (
            "No tanh layer of width 1 stands before the filters of widths 2 and 3, and block B's filters are not the"
            " same for all dimensions: the authors' program has both."
        ),
        "Words are in lower case, and those seen once are unknown, GloVe's too; the authors' program keeps capitals,"
        " and a vector for each word.",
        "A step is over 64 pairs, not over one as in the authors' program.",
    ),
)
class MPCNN(PairEncoder):
    """Two texts under many filters and poolings, compared feature group by feature group; a tanh
    layer on all comparisons: (B, ``hidden``).

    Block A has as many filters over whole word vectors as a vector has numbers, for each width up
    to ``widths`` and each of three poolings; pooling the word vectors themselves is the width of
    the whole sentence. Block B has ``single`` filters over each dimension, under two poolings. All
    filters of a pooling are its own. Horizontal comparison: cosine and distance of each filter's
    values over all widths. Vertical: cosine, distance and absolute differences over all filters, of
    each width of one text with each of the other, the whole sentence being one of the widths of
    both. Block B is compared so over the dimensions, for each width and filter. The word vectors
    are fixed. Slow, because of a filter for each number of a word vector, three times over, and of
    all comparisons.
    """

    vectors = "fixed"

    def __init__(self, width: int, widths: int = 3, single: int = 20, hidden: int = 150):
        super().__init__()
        self.block_a = nn.ModuleDict({how: Filters(width, width, widths, how) for how in WHOLE})
        self.block_b = nn.ModuleDict({how: Filters(width, single, widths, how, single=True) for how in SINGLE})
        horizontal = len(WHOLE) * width * 2
        vertical = len(WHOLE) * (widths + 1) ** 2 * (2 + width) + len(SINGLE) * widths * single * (2 + width)
        self.hidden = nn.Linear(horizontal + vertical, hidden)
        self.size = hidden

    def whole(self, text: WordBatch, how: str) -> Tensor:
        """Block A's values under one pooling (B, widths + 1, width); the last are of the whole
        sentence."""
        values = self.block_a[how](text.vectors * text.mask[..., None], text.lengths)
        return torch.cat([values, pooled(text.vectors, text.mask, how)[:, None]], dim=1)

    def single(self, text: WordBatch, how: str) -> Tensor:
        """Block B's values under one pooling (B, widths, filters, width)."""
        values = self.block_b[how](text.vectors * text.mask[..., None], text.lengths)
        return values.unflatten(2, (text.vectors.shape[2], -1)).transpose(2, 3)

    def forward(self, first: WordBatch, second: WordBatch) -> Tensor:
        features = []
        for how in WHOLE:
            a, b = self.whole(first, how), self.whole(second, how)
            features += distances(a.transpose(1, 2), b.transpose(1, 2))
            features += compared(a[:, :, None], b[:, None])
        for how in SINGLE:
            features += compared(self.single(first, how), self.single(second, how))
        return torch.tanh(self.hidden(flat(features)))
