"""Small objectives, one for each thing that an objective must be able to hold."""

from __future__ import annotations

import copy
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from harness.objectives import Objective, Step


class Skimming(Objective):
    """Policy gradient: a trained coin decides for each text whether its words are read, and the
    text's own loss is the cost of the decision."""

    def __init__(self, owner: Any, model: Any, inner: Objective | None = None):
        super().__init__(owner, model, inner)
        self.bias = nn.Parameter(torch.zeros(1))

    def losses(self, model: Any, step: Step) -> dict[str, Tensor]:
        words = model.read(step.batch.inputs)["text"]
        coin = torch.distributions.Bernoulli(logits=self.bias.expand(len(words.vectors)))
        reads = coin.sample()
        words = words._replace(vectors=words.vectors * reads[:, None, None])
        outputs = model.head(model.encoder, {"text": words})
        costs = model.head.row_losses(model.encoder, outputs, step.batch.target)
        policy = (costs.detach() * coin.log_prob(reads)).mean()
        return {"loss": costs.mean() + policy, "policy": policy}


class Annealed(Objective):
    """A penalty on the model's scores whose weight grows with the progress of training."""

    def losses(self, model: Any, step: Step) -> dict[str, Tensor]:
        losses = self.inner.losses(model, step)
        penalty = model(step.batch.inputs).square().mean()
        weight = torch.tensor(step.progress)
        return {"loss": losses["loss"] + weight * penalty, "penalty": penalty, "weight": weight}


class Consistent(Objective):
    """The supervised loss, and small scores for texts without labels."""

    streams = ("labelled", "unlabelled")

    def losses(self, model: Any, step: Step) -> dict[str, Tensor]:
        unlabelled = step.batches["unlabelled"]
        assert unlabelled.target is None, "an unlabelled row has no label to read"
        extra = model(unlabelled.inputs).square().mean()
        return {"loss": self.inner.losses(model, step)["loss"] + extra, "unlabelled": extra}


class Distilled(Objective):
    """The scores of a frozen teacher, here a copy of the model with larger weights."""

    def __init__(self, owner: Any, model: Any, inner: Objective | None = None):
        super().__init__(owner, model, inner)
        self.teacher = copy.deepcopy(model).requires_grad_(False)
        for parameter in self.teacher.parameters():
            parameter.mul_(3)

    def losses(self, model: Any, step: Step) -> dict[str, Tensor]:
        with torch.no_grad():
            wanted = self.teacher.eval()(step.batch.inputs).softmax(-1)
        return {"loss": F.cross_entropy(model(step.batch.inputs), wanted)}


class Adversary(Objective):
    """A discriminator that tells even rows from odd ones by the model's scores, and a model that
    hides it: two optimisers."""

    strategies = ("ddp",)

    def __init__(self, owner: Any, model: Any, inner: Objective | None = None):
        super().__init__(owner, model, inner)
        self.discriminator = nn.Linear(2, 1)
        with torch.no_grad():
            self.discriminator.weight.copy_(torch.tensor([[0.5, -1.0]]))

    def losses(self, model: Any, step: Step) -> dict[str, Tensor]:
        odd = torch.as_tensor(step.batch.rows % 2, dtype=torch.float)
        told = self.discriminator(model(step.batch.inputs)).squeeze(1)
        found = F.binary_cross_entropy_with_logits(told, odd)
        return {"loss": self.inner.losses(model, step)["loss"] - 0.3 * found, "discriminator": found}

    def players(self, model: Any) -> dict[str, list[tuple[str, nn.Parameter]]]:
        own = [(f"objective.{name}", parameter) for name, parameter in self.named_parameters()]
        return {"loss": list(model.named_parameters()), "discriminator": own}


class Carried(Objective):
    """State carried from batch to batch of rows that are read in their order: each text's scores
    are moved by those of the text before."""

    sequential = True
    strategies = ("ddp",)

    def __init__(self, owner: Any, model: Any, inner: Objective | None = None):
        super().__init__(owner, model, inner)
        self.rows: list[list[int]] = []
        self.fresh: list[bool] = []

    def losses(self, model: Any, step: Step) -> dict[str, Tensor]:
        self.rows.append(step.batch.rows.tolist())
        self.fresh.append(step.state is None)
        scores = model(step.batch.inputs)
        if step.state is not None:
            assert not step.state.requires_grad, "a step must not reach back into the one before"
            scores = scores + 0.5 * step.state[: len(scores)]
        step.state = scores
        return {"loss": F.cross_entropy(scores, step.batch.target)}


ALL: tuple[type[Objective], ...] = (Skimming, Annealed, Consistent, Distilled, Adversary, Carried)
