"""Convolutional network with a channel for each class, in which words weigh what they say of it."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.convolutions import WindowMaxima
from harness.kinds import TextEncoder
from harness.objectives import Objective, Step, Supervised
from harness.registry import Recipe, register
from harness.views.words import UNKNOWN, WordBatch, Words


class CountedTexts(Supervised):
    """The supervised loss; in the first pass over the training texts, each batch is counted before
    it is read."""

    strategies: ClassVar[tuple[str, ...]] = ()  # each process would count the texts that it reads

    def __init__(self, owner: Any, model: Any, inner: Objective):
        super().__init__(owner, model)
        assert isinstance(inner, Supervised)  # no other objective stands between this one and the head
        self.reduction = inner.reduction

    def losses(self, model: Any, step: Step) -> dict[str, Tensor]:
        if step.passes == 1:
            model.encoder.count(step.batch.inputs["text"], step.batch.target)
        return super().losses(model, step)


@register(
    "weighted_cnn",
    name="Weighted-embedding multichannel TextCNN",
    kind="text",
    paper="Guo et al. 2019",
    source="M2.3[59]",
    year=2019,
    recipe=Recipe(optimizer="adam", lr=0.001, batch_size=50),
    tiny={"maps": 8},
    vectors_of_paper="word2vec",
    deviations=(
        (
            "The paper's formulas of the weights were not to be had: a word's weight for a class is its relevance"
            " frequency (Lan et al. 2009)."
        ),
        "Texts are counted in the first pass of the training, not before it: weights settle at its end.",
        "Filters, windows and dropout are those of Kim 2014; the rest of the recipe is ours.",
    ),
)
class WeightedCNN(TextEncoder):
    """Scores (B, classes) from ``maps`` filters over each of ``windows``, which read a copy of the
    word vectors for each class, multiplied by the word's weight for it.

    The weight log2(2 + a / max(1, b)), where a training texts of the class have the word and b
    texts of the others, is computed and not learnt. It is 1 for a word that no text of the class
    has, and for unknown ones. A filter has weights of its own for each channel: with the same ones
    for all, the sum of channels would be one vector with one weight. Then ReLU, the maximum over
    the text, dropout and a linear layer.
    """

    trained_by = CountedTexts

    def __init__(
        self,
        width: int,
        view: Words,
        classes: int,
        maps: int = 100,
        windows: tuple = (3, 4, 5),
        dropout: float = 0.5,
    ):
        super().__init__()
        self.register_buffer("texts_with", torch.zeros(view.width, classes))
        self.features = WindowMaxima(classes * width, maps, windows)
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(self.features.size, classes)

    @torch.no_grad()
    def count(self, words: WordBatch, labels: Tensor) -> None:
        """Add texts with labels (B,) to the numbers of each class's texts that have a word."""
        here = words.ids.new_zeros(len(words.ids), len(self.texts_with), dtype=self.texts_with.dtype)
        here.scatter_(1, words.ids, 1.0)
        here[:, : UNKNOWN + 1] = 0
        self.texts_with += here.T @ F.one_hot(labels, self.texts_with.shape[1]).to(here.dtype)

    def weights(self, ids: Tensor) -> Tensor:
        """Weights (..., classes) of words (...)."""
        own = self.texts_with[ids]
        others = own.sum(-1, keepdim=True) - own
        return torch.log2(2 + own / others.clamp(min=1))

    def forward(self, words: WordBatch) -> Tensor:
        channels = self.weights(words.ids)[..., None] * words.vectors[..., None, :]
        return self.output(self.dropout(self.features(channels.flatten(2), words.mask)))
