"""Matching: the relation between two texts."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from harness.problems.base import Fields, Inputs, size_of
from harness.problems.classify import Classify, ClassifyProblem, text_vector
from harness.registry import register_problem
from harness.views.base import View


class Match(Classify):
    """Twin encoders joined as [u, v, |u-v|, u*v], one hidden layer, softmax (Conneau et al.
    2017)."""

    def layer(self, encoder: Any, classes: int) -> nn.Module:
        return above_twins(encoder, classes)

    def forward(self, encoder: Any, inputs: Inputs) -> Tensor:
        return self.output(self.drop(twin(encoder, inputs)))

    def constrain(self, encoder: Any) -> None:
        """The norm limit is stated for a softmax on the encoder's own vector; here layers stand
        between."""


def twin(encoder: Any, inputs: Inputs) -> Tensor:
    """Both texts' vectors with their difference and product: (B, 4 * size)."""
    u, v = text_vector(encoder, inputs["first"]), text_vector(encoder, inputs["second"])
    return torch.cat([u, v, (u - v).abs(), u * v], dim=1)


def above_twins(encoder: Any, outputs: int) -> nn.Module:
    """One hidden layer between what :func:`twin` gives and the outputs."""
    size = size_of(encoder)
    return nn.Sequential(nn.Linear(4 * size, size), nn.ReLU(), nn.Linear(size, outputs))


class MatchPair(Classify):
    """An architecture that reads both texts itself: linear layer on its vector."""

    def forward(self, encoder: Any, inputs: Inputs) -> Tensor:
        return self.output(self.drop(encoder(inputs["first"], inputs["second"])))


class MatchJoined(Classify):
    """Both texts in one sequence: the encoder's own layer for two texts, or a linear layer on the
    sequence's vector."""

    reads_states: bool = False
    """True where its layer is the encoder's own, which reads the states of both texts."""

    def layer(self, encoder: Any, classes: int) -> nn.Module:
        own = encoder.pair_layer(classes)
        self.reads_states = own is not None
        return own or super().layer(encoder, classes)

    def forward(self, encoder: Any, inputs: Inputs) -> Any:
        if not self.reads_states:
            return super().forward(encoder, inputs)
        return self.output(self.drop(encoder(inputs["text"])), inputs["text"])


def both_texts() -> Fields:
    """The fields of a pair, each side by itself."""
    return {"first": lambda row: row["first"], "second": lambda row: row["second"]}


@register_problem(
    "match",
    name="Matching",
    columns=("first", "second", "label"),
    inputs=("first", "second"),
    texts=("first", "second"),
    stratum="label",
    metrics=("accuracy", "macro_f1"),
    forms={"label": "name"},
)
class MatchProblem(ClassifyProblem):
    """Two texts stand in one of a few relations; a prediction is its label."""

    heads: ClassVar = {"states": Match, "vector": Match, "pair vector": MatchPair, "joined states": MatchJoined}

    def fields(self, gives: str, view: View) -> Fields:
        return both_texts()
