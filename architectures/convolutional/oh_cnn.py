"""Convolutions over one-hot words, in their order or as bags, without word vectors."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from architectures.blocks.one_hot import SparseLinear, square_loss, started
from harness.kinds import TextEncoder
from harness.registry import Recipe, register
from harness.views.regions import RegionBatch, Regions


@register(
    "oh_cnn",
    name="seq-CNN on one-hot text",
    kind="text",
    paper="Johnson & Zhang 2015",
    source="M2.3[48]",
    year=2015,
    recipe=Recipe(
        optimizer="sgd",
        lr=0.05,
        momentum=0.9,
        batch_size=100,
        epochs=100,
        patience=100,
        weight_decay=0.0001,
        decay_exempt=("biases",),
        lr_schedule="step",
        factor=0.1,
        step_start=80.0,
        step_epochs=100.0,
    ),
    tiny={"units": 48, "dropout": 0.0},
    variants={
        "oh_cnn_bow": {
            "name": "bow-CNN on one-hot text",
            "hyperparameters": {
                "region": 20,
                "bag": True,
                "stride": 2,
                "pooling": "mean",
                "parts": 10,
                "dropout": 0.0,
            },
            "recipe": Recipe(
                optimizer="sgd",
                lr=0.5,
                momentum=0.9,
                batch_size=100,
                epochs=100,
                patience=100,
                weight_decay=0.0001,
                decay_exempt=("biases",),
                lr_schedule="step",
                factor=0.1,
                step_start=80.0,
                step_epochs=100.0,
            ),
            "deviations": (
                "Stop words are read too, and words with digits; the paper takes them out of its news articles.",
                (
                    "A bag like the one before is left out; the authors' code slides on by single words until the bag"
                    " changes, and begins the next regions there."
                ),
            ),
        }
    },
    deviations=(
        "The recipe is that for reviews or news articles, by id; the paper chooses the rate for each set of texts.",
        (
            "Under protocol equal Adam is lazy: at each step it moves only the rows that the batch read, and only their"
            " moments decay."
        ),
    ),
)
class OneHotCNN(TextEncoder):
    """Scores (B, classes) of relu(W x + b) on all regions of a text, pooled and normalised.

    A region x is ``region`` one-hot words one behind the other (seq) or, as a ``bag``, with a one
    for each of its distinct words (bow), ``stride`` words after the region before. The text is cut
    into ``parts`` of equally many regions, of which ``pooling`` takes ``max`` or ``mean``; a part
    behind the last region is zero. Each part's vector z is divided by sqrt(1 + |z|^2); dropout and
    one linear layer follow. Trained by the square loss. Slow on a large vocabulary, because W has
    ``units`` weights for each of its words at each place of a region.
    """

    view = Regions()
    view_settings: ClassVar[dict[str, str]] = {"size": "region", "bag": "bag", "stride": "stride"}

    def __init__(
        self,
        width: int,
        classes: int,
        units: int = 1000,
        region: int = 3,
        bag: bool = False,
        stride: int = 1,
        pooling: str = "max",
        parts: int = 1,
        dropout: float = 0.5,
    ):
        super().__init__()
        if pooling not in ("max", "mean"):
            raise ValueError(f"pooling={pooling!r} is neither max nor mean")
        self.pooling, self.parts = pooling, parts
        self.regions = SparseLinear(width, units)
        self.dropout = nn.Dropout(dropout)
        self.output = started(nn.Linear(parts * units, classes))

    def pooled(self, states: Tensor, mask: Tensor) -> Tensor:
        """Vectors (B, parts, units) of a text's parts, from those of its regions (B, R, units)."""
        regions = torch.arange(mask.shape[1], device=mask.device)
        part = regions // -(-mask.sum(1, keepdim=True) // self.parts)
        inside = [(part == number) & mask for number in range(self.parts)]
        if self.pooling == "max":  # no ReLU is below the zeros outside
            return torch.stack([(states * own[..., None]).amax(1) for own in inside], dim=1)
        shares = torch.stack(inside, dim=1).to(states.dtype)
        return shares @ states / shares.sum(2, keepdim=True).clamp(min=1)

    def forward(self, regions: RegionBatch) -> Tensor:
        pooled = self.pooled(torch.relu(self.regions(regions.ones)), regions.mask)
        normalised = pooled / (1 + pooled.square().sum(2, keepdim=True)).sqrt()
        return self.output(self.dropout(normalised.flatten(1)))

    def objective(self, scores: Tensor, labels: Tensor) -> Tensor:
        return square_loss(scores, labels)
