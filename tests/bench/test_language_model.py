"""The LSTM language model on WikiText-2 (the mini corpus where it is not at hand): words a second
in training, beside how it is usually written.

That is one ``nn.LSTM`` over columns of one long row of words, cut into as many lanes, with a
softmax over all words, the state detached between stretches, and plain gradient descent. Sizes and
weights at the beginning are the same; a round is a number of steps of 20 lanes and 35 words.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_

from architectures.recurrent.rnn_lm import RecurrentLanguageModel
from harness import registry
from harness.data.corpus import Corpus
from harness.objectives import Step
from harness.settings import TrainingSettings
from harness.training.fit_module import FitModule, _detached
from harness.training.lazy_updates import clip_gradients
from harness.training.model import Model, build, objective_of
from harness.training.optimizers import optimizer

LANES, STRETCH, SIZE, LAYERS, STEPS = 20, 35, 200, 2, 6
SETTINGS = TrainingSettings(
    optimizer="sgd", lr=1.0, batch_size=LANES, stretch=STRETCH, clip=5.0, reduction="sentence", vector_dims=SIZE
)


class UsualModel(nn.Module):
    """Embedding, LSTM, linear layer."""

    def __init__(self, rows: int, symbols: int):
        super().__init__()
        self.embedding = nn.Embedding(rows, SIZE)
        self.recurrence = nn.LSTM(SIZE, SIZE, LAYERS)
        self.output = nn.Linear(SIZE, symbols)

    def forward(self, words: Tensor, state: tuple[Tensor, Tensor] | None) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        states, state = self.recurrence(self.embedding(words), state)
        return self.output(states), state


@pytest.fixture(scope="module")
def corpus(corpora_if_any: Path | None) -> Corpus:
    torch.set_num_threads(1)
    task = registry.entry("tasks", "wikitext2")
    tier = "local" if corpora_if_any else "mini"
    view = RecurrentLanguageModel.view_for(task, {})
    return Corpus(registry.load(task)(task), tier, corpora_if_any, view, "next words", max_train=100)


def our_model(corpus: Corpus) -> Model:
    torch.manual_seed(0)
    sizes = {"cell": "lstm", "hidden": SIZE, "layers": LAYERS}
    return build(
        RecurrentLanguageModel, corpus.problem, sizes, corpus.view, corpus.target, SIZE, None, SETTINGS
    ).train()


def their_model(model: Model) -> UsualModel:
    """With the weights of ours."""
    table, output = model.table.tuned.weight, model.encoder.output
    usual = UsualModel(len(table), len(output.weight))
    usual.load_state_dict(
        {"embedding.weight": table, "output.weight": output.weight, "output.bias": output.bias}
        | {f"recurrence.{name}": weight for name, weight in model.encoder.recurrence.state_dict().items()}
    )
    return usual


def ours(model: Model, corpus: Corpus) -> Iterator[float]:
    """Losses per word of our steps."""
    objective = objective_of(model, SETTINGS)
    metrics = ("nats_per_token",)
    training = FitModule(model, objective, corpus.train, corpus.dev, SETTINGS, 1.0, 0, metrics, metrics[0])
    parameters, split, state = list(model.parameters()), training.splits["labelled"], None
    descent, batches = optimizer(parameters, SETTINGS, SETTINGS.lr), training._batches("labelled", 0, 1).rows()
    for number, rows in enumerate(itertools.cycle(batches)):
        if number % len(batches) == 0:
            state = None
        batch = split.collate(rows)
        step = Step({"labelled": batch}, 0.0, state)
        descent.zero_grad()
        loss = objective.losses(model, step)["loss"]
        loss.backward()
        clip_gradients(parameters, SETTINGS.clip)
        descent.step()
        state = _detached(step.state)
        yield loss.item() * len(rows) / batch.units


def theirs(model: UsualModel, columns: Tensor) -> Iterator[float]:
    """Losses per word of the usual steps, over lanes (words, LANES)."""
    descent, state = torch.optim.SGD(model.parameters(), lr=SETTINGS.lr), None
    for start in itertools.cycle(range(0, len(columns) - 1, STRETCH)):
        if start == 0:
            state = None
        words, following = columns[start : start + STRETCH], columns[start + 1 : start + STRETCH + 1]
        descent.zero_grad()
        scores, state = model(words[: len(following)], state)
        state = tuple(each.detach() for each in state)
        loss = F.cross_entropy(scores.flatten(0, 1), (following - 1).flatten())
        (loss * len(following)).backward()
        clip_grad_norm_(model.parameters(), SETTINGS.clip)
        descent.step()
        yield loss.item()


def test_training(beside, benchmark, corpus: Corpus, corpora_if_any: Path | None) -> None:
    row = torch.from_numpy(np.asarray(corpus.train.inputs["text"]["next"].values) + 1).long()
    columns = row[: len(row) // LANES * LANES].view(LANES, -1).T.contiguous()
    model = our_model(corpus)
    usual = their_model(model)
    mine, other = ([next(steps) for _ in range(3)] for steps in (ours(model, corpus), theirs(usual, columns)))
    assert mine == pytest.approx(other, rel=0.1), "the same loss, of nearly the same words"

    def rounds(steps: Iterator[float]) -> None:
        for _ in range(STEPS):
            next(steps)

    running = ours(model, corpus), theirs(usual, columns)
    for steps in running:
        next(steps)
    name = "WikiText-2" if corpora_if_any else "mini corpus"
    what = f"rnn_lm_lstm words/s, {name}, {LAYERS} x {SIZE}"
    beside(what, "nn.LSTM over columns", 0.95, lambda: rounds(running[0]), lambda: rounds(running[1]), rounds=5)
    benchmark.extra_info["words_per_second"] = STEPS * LANES * STRETCH / benchmark.stats.stats.median
