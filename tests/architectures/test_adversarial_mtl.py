"""The mechanism of adversarial multi-task learning: shared vectors that do not tell their task, and
private ones that say something else."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.adversarial.adversarial_mtl import AdversarialMultiTask, AdversarialTasks, overlap
from harness.data.companions import Companion, judged
from harness.data.corpus import Corpus
from harness.objectives import Step
from harness.settings import TrainingSettings
from harness.training.fit import fit
from harness.training.fit_module import FitModule
from harness.training.model import Model, build, objective_of
from harness.views.words import Words
from tests.support.oracles import lstm
from tests.support.toy_corpus import ToyTask, sentences, toy_task

OTHER = "other"
LAMBDA, GAMMA = 0.3, 0.2


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    """Sentences of two tasks, whose texts end in a word of the task's own."""
    own = toy_task(train=[row | {"text": row["text"] + " here"} for row in sentences(40)])
    rows = [row | {"text": row["text"] + " there", "label": "abc"[n % 3]} for n, row in enumerate(sentences(40))]
    other = ToyTask({"train": rows})
    object.__setattr__(other.entry, "id", OTHER)
    members = [Companion(other, "mini", None, None, "vector", judged(own, "mini", None))]
    return Corpus(own, "mini", None, Words(min_count=1), "vector", companions=members)


def model_of(corpus: Corpus, **settings: float) -> Model:
    torch.manual_seed(0)
    given = {"companions": [OTHER], "hidden": 3, "adversarial": LAMBDA, "orthogonal": GAMMA} | settings
    return build(AdversarialMultiTask, corpus.problem, given, corpus.view, corpus.target, 5)


def objective(corpus: Corpus, model: Model) -> AdversarialTasks:
    made = objective_of(model, TrainingSettings())
    made.begin({"labelled": corpus.train, **corpus.companion_splits})
    return made


def last(layer: nn.Module, model: Model, words) -> Tensor:
    """The last state of each text, one LSTM step after another."""
    [forwards] = layer.forwards
    texts = zip(model.table.tuned.weight[words.ids], words.lengths.tolist(), strict=True)
    return torch.stack([lstm(forwards, text[:length])[-1] for text, length in texts])


@pytest.mark.parametrize("stream", ["labelled", OTHER])
def test_losses_and_gradients_of_a_batch_written_out(corpus, stream):
    """The discriminator descends its loss, what all share climbs it by as much; with the sign or
    the weight forgotten the shared vectors would tell their task all the better."""
    model = model_of(corpus)
    made = objective(corpus, model)
    number = ["labelled", OTHER].index(stream)
    split = corpus.companion_splits[OTHER] if number else corpus.train
    batch = split.collate(np.arange(6))
    found = made.losses(model, Step({stream: batch}, 0.0))
    words, head = batch.inputs["text"], made.heads[OTHER] if number else model.head
    encoder, tell = model.encoder, made.discriminator
    common, own = last(encoder.shared, model, words), last(encoder.private[number], model, words)
    both = torch.cat([common, own], 1)
    task = F.cross_entropy(both @ head.output.weight.T + head.output.bias, batch.target)
    scores = common @ tell.weight.T + tell.bias
    told = -scores.log_softmax(1)[:, number].mean()
    products = sum((common[:, i] @ own[:, j]) ** 2 for i in range(3) for j in range(3))
    torch.testing.assert_close(found["task"], task)
    torch.testing.assert_close(found["discriminator"], LAMBDA * told)
    torch.testing.assert_close(found["overlap"], GAMMA * products)
    torch.testing.assert_close(found["loss"], task + LAMBDA * told + GAMMA * products)

    shared = [*encoder.shared.parameters(), model.table.tuned.weight]
    discriminating = [*tell.parameters()]
    private = [*encoder.private[number].parameters(), *head.parameters()]
    climbs = task + GAMMA * products - LAMBDA * told
    expected = [
        *torch.autograd.grad(climbs, shared, retain_graph=True),
        *torch.autograd.grad(LAMBDA * told, discriminating, retain_graph=True),
        *torch.autograd.grad(task + GAMMA * products, private),
    ]
    ours = torch.autograd.grad(found["loss"], [*shared, *discriminating, *private])
    for a, b in zip(ours, expected, strict=True):
        torch.testing.assert_close(a, b)


def test_only_the_own_layer_of_a_task_is_trained_on_it(corpus):
    model = model_of(corpus)
    batch = corpus.companion_splits[OTHER].collate(np.arange(6))
    objective(corpus, model).losses(model, Step({OTHER: batch}, 0.0))["loss"].backward()
    reached = [any(p.grad is not None for p in layer.parameters()) for layer in model.encoder.private]
    assert reached == [False, True]


def test_orthogonal_vectors_have_no_overlap_and_others_the_squares_of_their_products():
    """Rows of the batch are summed before the square."""
    common, own = torch.tensor([[1.0, 0.0], [1.0, 2.0]]), torch.tensor([[1.0], [-1.0]])
    assert overlap(common, own).item() == 4.0, "(1 - 1)^2 + (0 - 2)^2"
    assert overlap(common, torch.tensor([[0.0], [0.0]])).item() == 0.0
    assert overlap(torch.tensor([[1.0], [1.0]]), own).item() == 0.0


def test_who_answers_judges_nothing(corpus):
    """The discriminator is dropped with the objective, and a pass afterwards must not ask it."""
    model = model_of(corpus)
    made = objective(corpus, model)
    made.losses(model, Step({"labelled": corpus.train.collate(np.arange(4))}, 0.0))
    assert model.encoder.judge is None
    assert not any("discriminator" in name for name in model.state_dict())
    with pytest.raises(AttributeError):
        made.losses(model, Step({"labelled": None}, 0.0))
    assert model.encoder.judge is None


def told_after(corpus: Corpus, adversarial: float, folder) -> float:
    """Share of the training texts whose task the discriminator tells from the shared vector when
    training ends; with the sign of the reversal as that of ``adversarial``."""
    settings = TrainingSettings(lr=0.02, batch_size=8, epochs=30, patience=30)
    model = model_of(corpus, adversarial=abs(adversarial), orthogonal=0.0)
    made = objective_of(model, settings)
    one = FitModule(
        model, made, corpus.train, corpus.dev, settings, 0.02, 0, ["accuracy"], "accuracy",
        companions=corpus.companion_splits,
    )  # fmt: skip
    fit(one, folder, 1, "auto", "32", 30)
    right = []
    for number, split in enumerate([corpus.train, corpus.companion_splits[OTHER]]):
        words = model.read(split.collate(np.arange(40)).inputs)["text"]
        layer = model.encoder.shared
        states = layer(words.vectors, words.mask)[torch.arange(40), words.lengths - 1]
        right.append((made.discriminator(states).argmax(1) == number).float().mean().item())
    return float(np.mean(right))


def test_the_discriminator_is_deceived_by_reversal_and_right_without_it(corpus, tmp_path, monkeypatch):
    """What the adversary is there for: shared vectors of texts that end in a word of their task
    tell it, unless training takes that out of them."""
    deceived = told_after(corpus, 1.0, tmp_path / "with")
    monkeypatch.setattr("architectures.adversarial.adversarial_mtl.Reversed.apply", lambda numbers: numbers)
    right = told_after(corpus, 1.0, tmp_path / "without")
    assert right > 0.95
    assert deceived < 0.8


def test_with_one_task_there_is_nothing_to_tell(corpus):
    torch.manual_seed(0)
    given = {"companions": [], "hidden": 3}
    model = build(AdversarialMultiTask, corpus.problem, given, corpus.view, corpus.target, 5)
    made = objective_of(model, TrainingSettings())
    made.begin({"labelled": corpus.train})
    losses = made.losses(model, Step({"labelled": corpus.train.collate(np.arange(4))}, 0.0))
    assert losses["discriminator"].item() == 0.0
    assert math.isfinite(losses["loss"].item())
