"""Training on word vectors that are moved uphill, rare words further than frequent ones."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from harness import registry
from harness.kinds import Regime
from harness.registry import Entry, Recipe, register


class Centred(nn.Module):
    """A word table whose vectors have the mean 0 over the training text."""

    def __init__(self, table: nn.Module, counts: Tensor):
        super().__init__()
        self.table = table
        self.register_buffer("shares", counts / counts.sum())

    def forward(self, batch: Any) -> Any:
        batch = self.table(batch)
        mean = self.shares @ self.table.tuned.weight
        return batch._replace(vectors=(batch.vectors - mean) * (batch.ids != 0)[..., None])


@register(
    "frozen_jolts",
    name="Jolts",
    kind="regime",
    paper="Nobody 2017",
    source="equation 6",
    year=2017,
    recipe=Recipe(optimizer="adam", lr=0.0005, batch_size=64, clip=1.0, vector_dims=32),
    hyperparameters={"wraps": "frozen_drift", "step": 0.5},
    deviations=("The step is one size for all texts.",),
    variants={"frozen_jolts_tree": {"name": "Jolts, trees", "hyperparameters": {"wraps": "frozen_tree"}}},
)
class Jolts(Regime):
    """The loss of a batch, and ``weight`` times its loss with vectors moved by ``step`` along the
    gradient."""

    def __init__(self, wraps: str = "frozen_drift", step: float = 1.0, weight: float = 0.5):
        self.wraps, self.step, self.weight = wraps, step, weight

    @classmethod
    def unfit(cls, task: Entry, hyperparameters: dict[str, Any]) -> str | None:
        wrapped = registry.entry("architectures", hyperparameters["wraps"])
        view = registry.load(wrapped).view_for(task, wrapped.hyperparameters)
        return None if view is not None and view.embeds else f"{wrapped.id} reads no word vectors on {task.id}"

    def prepare(self, model: nn.Module, counts: Tensor | None) -> None:
        model.table = Centred(model.table, counts)
        model.register_buffer("rarity", (1 + counts).rsqrt())

    def loss(self, model: nn.Module, batch: Any) -> Tensor:
        inputs = model.read(batch.inputs)
        vectors = [text.vectors.requires_grad_() for text in inputs.values()]
        clean = model.loss_of(inputs, batch.target)
        uphill = torch.autograd.grad(clean, vectors, retain_graph=True)
        moved = {}
        for (field, text), gradient in zip(inputs.items(), uphill, strict=True):
            sizes = gradient.norm(dim=-1, keepdim=True).clamp(min=1e-9)
            steps = self.step * model.rarity[text.ids][..., None] * gradient / sizes
            moved[field] = text._replace(vectors=text.vectors + steps)
        return clean + self.weight * model.loss_of(moved, batch.target)
