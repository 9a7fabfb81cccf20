"""My model: one sentence on what it is."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from harness.kinds import Regime
from harness.registry import Recipe, register


@register(
    "my_model",
    name="My model",
    kind="regime",
    paper="Author & Author 2000",
    source="section or equation that this follows",
    year=2000,
    recipe=Recipe(optimizer="adam", lr=0.001, batch_size=32, epochs=10),
)
class MyModel(Regime):
    """Trains another architecture, ``wraps``, whose loss is kept near ``level``: below it the step
    goes uphill (flooding).

    Say here what the paper does, and where.
    """

    def __init__(self, wraps: str = "lstm", level: float = 0.02):
        self.wraps, self.level = wraps, level

    def loss(self, model: nn.Module, batch: Any) -> Tensor:
        return (model.loss(batch) - self.level).abs() + self.level
