"""Training on several tasks: one for each step, in proportion to their sizes, each under its own
head."""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter

import numpy as np
import pytest
import torch

from harness.data.companions import Companion, judged
from harness.data.corpus import Corpus
from harness.objectives import MultiTask, Step
from harness.settings import TrainingSettings
from harness.training.fit import fit
from harness.training.fit_module import FitModule
from harness.training.model import Model, build, objective_of
from harness.views.words import Words
from tests.support.beside import Beside
from tests.support.toy_corpus import ToyTask, sentences, toy_task

SETTINGS = TrainingSettings(lr=0.05, batch_size=8, epochs=2, patience=9, weight_decay=0.1)
OTHERS = ("topics", "pairs")


def others() -> list[ToyTask]:
    """A task of three classes, and one of pairs."""
    topics = [row | {"text": row["text"] + " here", "label": "abc"[n % 3]} for n, row in enumerate(sentences(60))]
    pairs = [
        {"id": row["id"], "first": row["text"] + " here", "second": f"so the {row['label']}", "label": "xy"[n % 2]}
        for n, row in enumerate(sentences(24))
    ]
    found = [ToyTask({"train": topics}), ToyTask({"train": pairs}, type="match")]
    for task, name in zip(found, OTHERS, strict=True):
        task.entry = dataclasses.replace(task.entry, id=name)
    return found


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    own = toy_task(train=sentences(30))
    known = judged(own, "mini", None)
    members = [Companion(task, "mini", None, None, "vector", known) for task in others()]
    return Corpus(own, "mini", None, Words(min_count=1), "vector", companions=members)


def model_of(corpus: Corpus, companions: tuple[str, ...] = OTHERS, settings: TrainingSettings = SETTINGS) -> Model:
    torch.manual_seed(0)
    given = {"companions": list(companions)}
    return build(Beside, corpus.problem, given, corpus.view, corpus.target, 8, None, settings)


def training(corpus: Corpus, companions: tuple[str, ...] = OTHERS, seed: int = 0, **changes) -> FitModule:
    settings = dataclasses.replace(SETTINGS, **changes)
    model = model_of(corpus, companions, settings)
    splits = {name: corpus.companion_splits[name] for name in companions}
    measure = (["accuracy"], "accuracy")
    objective = objective_of(model, settings)
    return FitModule(
        model, objective, corpus.train, corpus.dev, settings, settings.lr, seed, *measure, companions=splits
    )


def parts(one: FitModule) -> dict[str, list[torch.Tensor]]:
    """The numbers of each member's own parts, and of those that all share."""
    heads = {"own": one.model.head, **one.objective.heads}
    found = {name: [*heads[name].parameters()] for name in heads}
    for name, layer in zip(heads, one.model.encoder.private, strict=True):
        found[name] += layer.parameters()
    return found | {"shared": [*one.model.encoder.shared.parameters(), *one.model.table.parameters()]}


# --- one task a step ---


@pytest.mark.parametrize("stream", ["labelled", *OTHERS])
def test_a_batch_of_one_task_leaves_the_parts_of_the_others_bit_equal(corpus, stream, monkeypatch, tmp_path):
    """Weight decay and the moments of Adam would move whatever has a gradient of zero."""
    one = training(corpus)
    rows = {"labelled": np.arange(8)} | {name: np.arange(8) for name in OTHERS}
    before = {name: [p.clone() for p in found] for name, found in parts(one).items()}
    moved = []

    def steps(streams: list, seed: list[int]) -> list:
        every = [tuple(rows[s] if s == turn else None for s in rows) for turn in rows]
        return every * 2 + [every[[*rows].index(stream)]]  # all have moments by then

    def after(made: int) -> None:
        now = {name: [p.clone() for p in found] for name, found in parts(one).items()}
        if made == 6:
            before.update(now)
        if made == 7:
            moved.extend(
                name for name in now if any(not torch.equal(a, b) for a, b in zip(before[name], now[name], strict=True))
            )

    monkeypatch.setattr("harness.training.fit_module.in_turn", steps)
    one.after_step = after
    fit(one, tmp_path, 1, "auto", "32", 1, pilot=True)
    assert set(moved) == {"shared", "own" if stream == "labelled" else stream}


def test_a_members_loss_is_that_of_its_own_head_over_its_own_layer(corpus):
    """Written out: numbers of members in another order would train each other's layers."""
    one = training(corpus)
    model, objective = one.model, one.objective
    for number, (stream, split) in enumerate({"labelled": corpus.train, **corpus.companion_splits}.items()):
        batch = split.collate(np.arange(6))

        def vector(words, number=number):
            mean = torch.stack(
                [model.table.tuned(ids[mask]).mean(0) for ids, mask in zip(words.ids, words.mask, strict=True)]
            )
            return model.encoder.private[number](model.encoder.shared(mean).tanh()).tanh()

        head = model.head if number == 0 else objective.heads[stream]
        vectors = [vector(words) for words in batch.inputs.values()]
        if len(vectors) == 2:
            u, v = vectors
            vectors = [torch.cat([u, v, (u - v).abs(), u * v], dim=1)]
        expected = torch.nn.functional.cross_entropy(head.output(vectors[0]), batch.target)
        found = objective.losses(model, Step({stream: batch}, 0.0))["loss"]
        torch.testing.assert_close(found, expected)
        assert model.encoder.member == 0, "dev and test are read as the own task"


def test_heads_of_members_have_as_many_answers_as_their_tasks_and_do_not_answer(corpus):
    one = training(corpus)
    sizes = [head.output.out_features for head in (one.model.head, one.objective.heads["topics"])]
    assert sizes == [2, 3]
    assert one.objective.heads["pairs"].output[-1].out_features == 2
    assert not any("heads" in name for name in one.model.state_dict())
    assert sum(name.startswith("objective.heads") for name in one.state_dict()) > 0, "a cut fit goes on with them"
    assert not any(name.startswith("objective._encoder") for name in one.state_dict())


def test_heads_of_members_drop_and_smooth_as_the_models(corpus):
    one = training(corpus, dropout=0.5, label_smoothing=0.2)
    head = one.objective.head(one.model, "topics")
    assert (head.dropout, head.label_smoothing, head.stretch) == (0.5, 0.2, one.model.head.stretch)


def test_the_head_of_a_member_with_a_loss_of_the_encoders_own_does_not_smooth(corpus, monkeypatch):
    """Its companion would be trained by another loss than the encoder's."""
    one = training(corpus, label_smoothing=0.2)
    one.objective.heads["topics"].output = None
    monkeypatch.setattr(type(one.model.encoder), "objective", lambda self, scores, labels: scores.sum())
    assert one.objective.head(one.model, "topics").label_smoothing == 0.0


def test_without_companions_it_is_the_supervised_training(corpus, tmp_path):
    """What the several tasks bring is read off this."""
    alone = training(corpus, ())
    fit(alone, tmp_path / "a", 1, "auto", "32", 2)
    plain = training(corpus, ())
    plain.objective = plain.objective.inner
    fit(plain, tmp_path / "b", 1, "auto", "32", 2)
    assert [row["train_loss"] for row in alone.curve] == [row["train_loss"] for row in plain.curve]


# --- their order ---


def turns(one: FitModule) -> list[tuple]:
    """The stream and the rows of each step of an epoch."""
    steps = itertools.chain(*one.train_dataloader())
    return [
        next((s, rows.tolist()) for s, rows in zip(one.objective.streams, step, strict=True) if rows is not None)
        for step in steps
    ]


class _Placed(FitModule):
    """A process of several, in an epoch."""

    current_epoch = property(lambda self: self.place[0])
    global_rank = property(lambda self: self.place[1])
    trainer = property(lambda self: type("Trainer", (), {"world_size": self.place[2]}))


def placed(one: FitModule, epoch: int, rank: int = 0, world: int = 1) -> list[tuple]:
    one.__class__, one.place = _Placed, (epoch, rank, world)
    return turns(one)


def test_an_epoch_reads_every_row_of_each_task_once_mixed(corpus):
    one = training(corpus)
    steps = placed(one, 0)
    assert len(steps) == one.steps_of_epoch(1) == 4 + 8 + 3, "in proportion to their sizes"
    for stream, rows in (("labelled", 30), ("topics", 60), ("pairs", 24)):
        assert sorted(itertools.chain(*(r for s, r in steps if s == stream))) == list(range(rows))
    order = [stream for stream, _ in steps]
    assert len([1 for a, b in itertools.pairwise(order) if a != b]) > 4, "not one task after another"
    assert order != [stream for stream, _ in placed(one, 1)]


def test_the_order_is_one_of_seed_and_epoch_alone(corpus):
    """A fit that goes on from a checkpoint makes the steps that it would have made."""
    assert placed(training(corpus), 1) == placed(training(corpus), 1)
    assert placed(training(corpus, seed=1), 1) != placed(training(corpus), 1)


@pytest.mark.parametrize("world", [2, 3])
def test_processes_read_the_same_task_at_the_same_step_and_every_row_once(corpus, world):
    """One that waited for the gradient of another head would wait for ever."""
    ranks = [placed(training(corpus), 0, rank, world) for rank in range(world)]
    assert len({tuple(stream for stream, _ in steps) for steps in ranks}) == 1
    for stream, rows in (("labelled", 30), ("topics", 60), ("pairs", 24)):
        assert sorted(row for steps in ranks for s, r in steps if s == stream for row in r) == list(range(rows))


def test_passes_are_those_over_the_cells_own_task(corpus, tmp_path):
    """Every architecture of a grid makes as many: those of the others come on top."""
    one = training(corpus, epochs=2, min_steps=16)
    assert one.passes_per_epoch == 2
    assert one.steps_of_epoch(1) == 2 * (4 + 8 + 3) and one.steps_on("topics", 1) == 16
    fit(one, tmp_path, 1, "auto", "32", 2)
    assert one.own_steps_per_epoch == 8 and one.epochs == 2


def test_curves_have_the_own_loss_and_one_column_for_each_other_task(corpus, tmp_path):
    """Means over the rows of each: at a rate of almost nothing they are the losses of the start."""
    one = training(corpus, lr=1e-9, weight_decay=0.0)
    splits = {"labelled": corpus.train, **corpus.companion_splits}
    expected = {
        stream: one.objective.losses(one.model, Step({stream: split.collate(np.arange(len(split)))}, 0.0))["loss"]
        for stream, split in splits.items()
    }
    fit(one, tmp_path, 1, "auto", "32", 1)
    row = one.curve[0]
    for stream, loss in expected.items():
        assert row["train_loss" if stream == "labelled" else f"train_{stream}"] == pytest.approx(loss.item(), rel=1e-4)
    assert "train_task" not in row


def test_a_fit_that_was_cut_goes_on_as_if_it_had_not_been(corpus, tmp_path):
    whole = training(corpus)
    fit(whole, tmp_path / "whole", 1, "auto", "32", 2)
    cut = training(corpus)
    fit(cut, tmp_path / "cut", 1, "auto", "32", 1)
    again = training(corpus)
    fit(again, tmp_path / "cut", 1, "auto", "32", 2)
    for name, value in whole.state_dict().items():
        torch.testing.assert_close(again.state_dict()[name], value, msg=name)
    assert isinstance(again.objective, MultiTask)


def test_a_pilot_makes_its_share_of_the_steps_of_each_task(corpus):
    """Companions would else count for more or less in the choice of a rate than in the training."""
    one = training(corpus, epochs=10)
    one.pilot = True
    assert Counter(stream for stream, _ in placed(one, 0)) == {"labelled": 4, "topics": 8, "pairs": 3}
