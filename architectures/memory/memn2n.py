"""End-to-end memory network."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from harness.kinds import Answerer
from harness.layers.attention import masked_softmax
from harness.registry import Recipe, register
from harness.views.facts import FactBatch, Facts


def position_encoded(vectors: Tensor, mask: Tensor) -> Tensor:
    """sum_j l_j * x_j over the words of each sentence: vectors (..., T, d), mask (..., T) -> (...,
    d).

    l_kj = (1 - j/J) - (k/d)(1 - 2j/J) for word j and feature k, both counted from 1, in a sentence
    of J words (section 4.1).
    """
    size = vectors.shape[-1]
    place = torch.arange(1, mask.shape[-1] + 1, device=mask.device) / mask.sum(-1, keepdim=True).clamp(min=1)
    feature = torch.arange(1, size + 1, device=mask.device) / size
    falling, centred = (
        ((weights * mask)[..., None, :] @ vectors).squeeze(-2) for weights in (1 - place, 1 - 2 * place)
    )
    return falling - feature * centred


@register(
    "memn2n",
    name="MemN2N",
    kind="answer",
    paper="Sukhbaatar et al. 2015",
    source="M2.6[97] Z16.2.3",
    year=2015,
    recipe=Recipe(
        optimizer="sgd",
        lr=0.01,
        lr_schedule="step",
        step_start=15.0,
        step_epochs=15.0,
        batch_size=32,
        epochs=60,
        patience=60,
        clip=40.0,
        reduction="batch",
    ),
    tiny={"size": 20},
    variants={"memn2n_layerwise": {"name": "MemN2N (layer-wise)", "hyperparameters": {"tying": "layerwise"}}},
    deviations=(
        "No linear start (hops without softmax in the first epochs).",
        "One training, of which dev chooses the epoch; the paper keeps that of ten with the lowest training error.",
        "The softmax is over the answers of the training set and one more for all others, not over the vocabulary.",
        "Full stops and question marks are words, and words that training shows once are all the same word.",
        "The empty slots of the random noise stand before the newest fact and only move older ones back in time.",
        "Slots without a fact are not attended to; in the authors' code they take part with a score of zero.",
    ),
)
class MemN2N(Answerer):
    """A question attends ``hops`` times over the facts of a story; what it reads is added to it
    each time, and names the answer.

    Facts (B, S, T) and question (B, 1, T) to scores (B, answers). ``tying`` is ``adjacent`` (the
    output table of a hop is the input table of the next, the first is the question's, the last
    scores the answers) or ``layerwise`` (all hops share both tables, and a matrix H carries the
    question from hop to hop). In training, ``noise`` is the chance of an empty slot before each
    fact.
    """

    view = Facts()

    def __init__(
        self,
        width: int,
        answers: list[str],
        view: Facts,
        size: int = 50,
        hops: int = 3,
        tying: str = "adjacent",
        noise: float = 0.1,
    ):
        super().__init__()
        if tying not in ("adjacent", "layerwise"):
            raise ValueError(f"tying={tying!r} is neither adjacent nor layerwise")
        self.hops, self.noise, self.adjacent = hops, noise, tying == "adjacent"
        tables = hops + 1 if self.adjacent else 2
        known = view.vocabulary.ids(answer.lower() for answer in answers)
        rows = torch.tensor([id if id > 1 else width + extra for extra, id in enumerate(known)])
        self.register_buffer("answers", rows)
        # An answer that no story says (yes, no, a list) has a row of its own in the table that
        # scores answers.
        sizes = [width] * (tables - 1) + [width + len(answers) if self.adjacent else width]
        self.words = nn.ModuleList(nn.Embedding(count, size) for count in sizes)
        self.times = nn.ModuleList(nn.Embedding(view.most, size) for _ in range(tables))
        if not self.adjacent:
            self.question = nn.Embedding(width, size)
            self.carry = nn.Linear(size, size, bias=False)
            self.output = nn.Linear(size, len(answers), bias=False)
        for parameter in self.parameters():
            nn.init.normal_(parameter, std=0.1)

    def ages(self, fact_mask: Tensor) -> Tensor:
        """Number of facts told after each one (B, S), 0 for the newest; empty slots in training
        make facts older."""
        steps = fact_mask.long()
        if self.training and self.noise:
            steps = steps * (1 + (torch.rand(steps.shape, device=steps.device) < self.noise))
        after = steps.flip(1).cumsum(1).flip(1) - steps
        return after.clamp(max=self.times[0].num_embeddings - 1)

    def memories(self, table: int, facts: FactBatch, ages: Tensor) -> Tensor:
        """Vectors (B, S, size) of the facts by one table: position-encoded words and the time."""
        return position_encoded(self.words[table](facts.ids), facts.mask) + self.times[table](ages)

    def forward(self, facts: FactBatch, question: FactBatch) -> Tensor:
        ages = self.ages(facts.fact_mask)
        asked = self.words[0] if self.adjacent else self.question
        state = position_encoded(asked(question.ids), question.mask)[:, 0]
        tables = range(self.hops + 1) if self.adjacent else [0, 1]
        memories = [self.memories(table, facts, ages) for table in tables]
        for hop in range(self.hops):
            inputs, outputs = memories[hop : hop + 2] if self.adjacent else memories
            attention = masked_softmax((inputs @ state[..., None]).squeeze(2), facts.fact_mask)
            read = (attention[:, None] @ outputs).squeeze(1)
            state = (state if self.adjacent else self.carry(state)) + read
        if self.adjacent:
            return state @ self.words[-1](self.answers).T
        return self.output(state)
