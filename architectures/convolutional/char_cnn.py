"""Character-level convolutional network."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor, nn

from harness.kinds import TextEncoder
from harness.registry import Recipe, register
from harness.views.characters import CharacterBatch, Characters

WINDOWS = (7, 7, 3, 3, 3, 3)
POOLED = (1, 2, 6)
POOL = 3


def remaining(length: int) -> int:
    """Positions that are left of ``length`` characters after all convolutions and poolings: 34 of
    1014."""
    for number, window in enumerate(WINDOWS, start=1):
        length -= window - 1
        if number in POOLED:
            length //= POOL
    return length


@register(
    "char_cnn",
    name="Character CNN, small",
    kind="text",
    paper="Zhang et al. 2015",
    source="M2.3[50] T1 T2",
    year=2015,
    recipe=Recipe(
        optimizer="sgd",
        lr=0.01,
        momentum=0.9,
        batch_size=128,
        epochs=30,
        patience=30,
        lr_schedule="step",
        step_start=3.0,
        step_epochs=3.0,
    ),
    tiny={"length": 150, "maps": 16, "hidden": 32, "spread": 0.1},
    deviations=(
        "No thesaurus augmentation: these are the paper's rows without it.",
        "No weight decay: the authors' program has one of 1e-5, which the paper does not name.",
        "An epoch is a pass over the texts; that of the authors' program is 5,000 batches, in which each class is drawn"
        " as often, so that it reads a small corpus far more often.",
        "The softmax layer is the harness's and starts uniform, not from the Gaussian of the other layers.",
        "Biases start uniform as PyTorch's do; in the authors' program they too start from the Gaussian.",
    ),
    variants={
        "char_cnn_large": {
            "name": "Character CNN, large",
            "hyperparameters": {"maps": 1024, "hidden": 2048, "spread": 0.02},
        }
    },
)
class CharacterCNN(TextEncoder):
    """One-hot characters, read backwards, through six convolutions (7, 7, 3, 3, 3, 3) and two dense
    layers; ReLU after each.

    Max pooling of 3 follows layers 1, 2 and 6. What is left (34 positions of 1014) is flattened,
    not pooled over time. Dropout after each dense layer; the harness's layer is the third. Weights
    start from a Gaussian of standard deviation ``spread``. Slow, because every text is 1,014
    characters long, and each of them passes convolutions of 256 (large: 1,024) maps.
    """

    view = Characters()
    view_settings: ClassVar[dict[str, str]] = {"length": "length"}

    def __init__(
        self,
        width: int,
        length: int = 1014,
        maps: int = 256,
        hidden: int = 1024,
        dropout: float = 0.5,
        spread: float = 0.05,
    ):
        super().__init__()
        left = remaining(length)
        if left < 1:
            raise ValueError(
                f"char_cnn: length={length} leaves nothing after the convolutions; at least 123 characters are needed"
            )
        layers: list[nn.Module] = []
        for number, window in enumerate(WINDOWS, start=1):
            layers += [nn.Conv1d(width if number == 1 else maps, maps, window), nn.ReLU()]
            if number in POOLED:
                layers.append(nn.MaxPool1d(POOL))
        self.convolutions = nn.Sequential(*layers)
        self.dense = nn.Sequential(
            nn.Flatten(),
            nn.Linear(left * maps, hidden),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
            nn.Dropout(dropout),
        )
        for module in self.modules():
            if isinstance(module, nn.Conv1d | nn.Linear):
                nn.init.normal_(module.weight, std=spread)
        self.size = hidden

    def forward(self, characters: CharacterBatch) -> Tensor:
        return self.dense(self.convolutions(characters.vectors.transpose(1, 2)))
