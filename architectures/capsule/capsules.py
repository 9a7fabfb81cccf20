"""Capsule networks over windows of words: columns of three, four and five words side by side
(Capsule-B), or one column of three (Capsule-A)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from architectures.blocks.capsules import CapsuleColumn, separate_margin_loss
from harness.kinds import TextEncoder
from harness.registry import Recipe, register
from harness.views.words import WordBatch


@register(
    "capsule_b",
    name="Capsule-B",
    kind="text",
    paper="Zhao et al. 2018; Yang et al. 2019",
    source="M2.4[71,72] T2",
    year=2018,
    recipe=Recipe(optimizer="adam", lr=0.001, batch_size=25, epochs=20, patience=20, vector_dims=300),
    tiny={"maps": 16, "primary": 6, "capsules": 6, "size": 8},
    vectors_of_paper="word2vec",
    deviations=(
        (
            "Child capsules share a transformation matrix per parent (one of the paper's two forms, and the released"
            " code's), so that class capsules hear from any number of positions; the paper flattens texts of one"
            " length, padding included."
        ),
        "The numbers of filters and capsules are the released code's, without its stride of two.",
        "Routing has a leak, the length of each child and a bias in its votes, as in the paper; the released code has"
        " none of them. Classes that are not there weigh a half, a quarter there.",
        "The scale at which transformation matrices start is ours: capsules must not vanish from layer to layer.",
    ),
)
class CapsuleB(TextEncoder):
    """The lengths (B, classes) of the means of the class capsules that columns with windows of
    ``ngrams`` words give, routed by agreement from capsules that stand for windows of the text.

    Each column (:class:`~architectures.blocks.capsules.CapsuleColumn`) has weights of its own.
    Vectors are averaged, not lengths: columns that point in different directions cancel out. The
    orphan capsule has no target and no score; trained by the separate margin loss.
    """

    def __init__(
        self,
        width: int,
        classes: int,
        ngrams: tuple = (3, 4, 5),
        maps: int = 32,
        primary: int = 16,
        capsules: int = 16,
        size: int = 16,
        window: int = 3,
        iterations: int = 3,
    ):
        super().__init__()
        self.columns = nn.ModuleList(
            CapsuleColumn(width, classes, ngram, maps, primary, capsules, size, window, iterations) for ngram in ngrams
        )

    def forward(self, words: WordBatch) -> Tensor:
        columns = torch.stack([column(words.vectors, words.mask) for column in self.columns])
        return torch.linalg.vector_norm(columns.mean(0)[:, :-1], dim=-1)

    def objective(self, scores: Tensor, labels: Tensor) -> Tensor:
        return separate_margin_loss(scores, labels)


@register(
    "capsule_a",
    name="Capsule-A",
    kind="text",
    paper="Zhao et al. 2018",
    source="M2.4[71]",
    year=2018,
    recipe=Recipe(optimizer="adam", lr=0.001, batch_size=25, epochs=20, patience=20, vector_dims=300),
    tiny={"maps": 16, "primary": 6, "capsules": 6, "size": 8},
    vectors_of_paper="word2vec",
    deviations=(
        (
            "Child capsules share a transformation matrix per parent (one of the paper's two forms, and the released"
            " code's), so that class capsules hear from any number of positions; the paper flattens texts of one"
            " length, padding included."
        ),
        "The numbers of filters and capsules are the released code's, without its stride of two.",
        "Routing has a leak, the length of each child and a bias in its votes, as in the paper; the released code has"
        " none of them. Classes that are not there weigh a half, a quarter there.",
        "The scale at which transformation matrices start is ours: capsules must not vanish from layer to layer.",
    ),
)
class CapsuleA(CapsuleB):
    """:class:`CapsuleB` with the one column whose windows have ``ngram`` words."""

    # A class of its own and no variant of capsule_b, because its records name one ``ngram``.
    def __init__(
        self,
        width: int,
        classes: int,
        ngram: int = 3,
        maps: int = 32,
        primary: int = 16,
        capsules: int = 16,
        size: int = 16,
        window: int = 3,
        iterations: int = 3,
    ):
        super().__init__(width, classes, (ngram,), maps, primary, capsules, size, window, iterations)
