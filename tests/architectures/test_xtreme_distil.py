"""XtremeDistil: the stages teach what they should, in values and gradients, layers are let go from
the top, and who has nothing to teach changes nothing."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor

from architectures.pretrained.xtreme_distil import Lesson, Stages, XtremeDistil, layers
from architectures.recurrent.bilstm import BidirectionalLSTM
from harness import registry
from harness.errors import ModelError
from harness.objectives import Step, Supervised
from harness.problems import problem
from harness.problems.classify import ClassTarget
from harness.registry import Recipe
from harness.running.worker import run_cell
from harness.saved_models.model import load
from harness.training.model import Model, build, objective_of
from tests.support.moving_vectors import TEXTS, Summed, prepared, view_of
from tests.support.same import assert_same
from tests.support.sessions import session

ROWS = SimpleNamespace(rows=[{"id": str(number), "text": text} for number, text in enumerate(TEXTS)])
"""The texts without labels of a training."""
CLASSES = [*"wxyz"]
"""Names of the student's classes."""


def lesson(size: int | None = 5) -> Lesson:
    torch.manual_seed(1)
    return Lesson(torch.randn(3, 4).log_softmax(-1), None if size is None else torch.randn(3, size))


def taught(regime: XtremeDistil, known: Lesson | None, encoder: Any = Summed) -> tuple[Stages, Model, dict[str, Any]]:
    """An objective that has begun, its model, and the batches of a step; the texts without labels
    stand in another order than their rows."""
    model, labelled, unlabelled = prepared(regime, encoder=encoder)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(3)
    regime.teacher, regime.known = (None, None) if known is None else (object(), known)
    objective = objective_of(model, Recipe(), regime)
    objective.begin({"labelled": None, "unlabelled": ROWS})
    return objective, model, {"labelled": labelled, "unlabelled": unlabelled._replace(rows=np.array([2, 0, 1]))}


def losses_of(objective: Stages, model: Model, batches: dict[str, Any], progress: float) -> dict[str, Tensor]:
    return objective.losses(model, Step(batches, progress, seed=3, passes=1))


def vectors_of(model: Model, words: Any) -> Tensor:
    """The vectors of texts, by the parameters alone."""
    own = dict(model.named_parameters())
    read = torch.nn.functional.embedding(words.ids, own["table.tuned.weight"], padding_idx=0)
    return torch.tanh(read @ own["encoder.hidden.weight"].T + own["encoder.hidden.bias"]).sum(1)


def scores_of(model: Model, words: Any) -> Tensor:
    own = dict(model.named_parameters())
    return vectors_of(model, words) @ own["head.output.weight"].T + own["head.output.bias"]


def learning(loss: Tensor, model: Model) -> set[str]:
    """Names of the parameters that a gradient reaches."""
    names, parameters = zip(*model.named_parameters(), strict=True)
    found = torch.autograd.grad(loss, parameters, allow_unused=True, retain_graph=True)
    return {name for name, slope in zip(names, found, strict=True) if slope is not None and slope.any()}


TOP, HIDDEN = {"head.output.weight", "head.output.bias"}, {"encoder.hidden.weight", "encoder.hidden.bias"}
ALL = TOP | HIDDEN | {"table.tuned.weight"}


# --- the stages ---


@pytest.mark.parametrize("progress", [0.0, 0.149])
def test_first_the_projected_vectors_of_texts_without_labels_are_the_teachers(progress):
    """Each text's own, whatever its place in the batch; everything learns but the layer above."""
    known = lesson()
    objective, model, batches = taught(XtremeDistil(), known)
    found = losses_of(objective, model, batches, progress)
    vectors = vectors_of(model, batches["unlabelled"].inputs["text"])
    weight, bias = objective.projection.weight, objective.projection.bias
    assert weight.shape == (5, 3)
    wanted = known.vectors[[2, 0, 1]]
    expected = sum(((weight @ v + bias - t) ** 2).sum() for v, t in zip(vectors, wanted, strict=True)) / 15
    assert_same(found["loss"], expected)
    assert found.keys() == {"loss", "states"} and found["states"] is found["loss"]
    assert learning(found["loss"], model) == HIDDEN | {"table.tuned.weight"}


@pytest.mark.parametrize("progress", [0.25, 0.349])
def test_then_the_scores_of_texts_without_labels_are_the_teachers(progress):
    known = lesson()
    objective, model, batches = taught(XtremeDistil(), known)
    found = losses_of(objective, model, batches, progress)
    scores = scores_of(model, batches["unlabelled"].inputs["text"])
    expected = ((scores - known.scores[[2, 0, 1]]) ** 2).sum() / 12
    assert_same(found["loss"], expected)
    assert found.keys() == {"loss", "soft targets"} and learning(found["loss"], model) == ALL


@pytest.mark.parametrize("progress", [0.45, 0.9])
def test_labels_alone_teach_at_last(progress):
    objective, model, batches = taught(XtremeDistil(), lesson())
    found = losses_of(objective, model, batches, progress)
    scores = scores_of(model, batches["labelled"].inputs["text"])
    gold = batches["labelled"].target
    expected = -(scores.log_softmax(-1)[range(3), gold]).mean()
    assert_same(found["loss"], expected)
    assert learning(found["loss"], model) == ALL


@pytest.mark.parametrize(
    ("progress", "free"),
    [
        (0.15, TOP),
        (0.19, TOP),
        (0.2, TOP | HIDDEN),
        (0.24, TOP | HIDDEN),
        (0.25, ALL),
        (0.35, TOP),
        (0.399, TOP),
        (0.4, TOP | HIDDEN),
        (0.45, ALL),
        (0.99, ALL),
    ],
)
def test_layers_are_let_go_from_the_top_in_each_of_the_later_stages(progress, free):
    """All that stands below has learnt in the stage before, and would forget it."""
    objective, model, batches = taught(XtremeDistil(), lesson())
    assert learning(losses_of(objective, model, batches, progress)["loss"], model) == free
    assert all(parameter.requires_grad for parameter in model.parameters())


def test_the_shares_of_the_stages_are_the_users():
    objective, model, batches = taught(XtremeDistil(states=0.5, soft=0.3, thawing=0.01), lesson())
    for progress, name in ((0.49, "states"), (0.51, "soft targets"), (0.79, "soft targets")):
        assert name in losses_of(objective, model, batches, progress)
    assert losses_of(objective, model, batches, 0.81).keys() == {"loss"}
    objective, model, batches = taught(XtremeDistil(states=0.5, soft=0.0), lesson())
    assert losses_of(objective, model, batches, 0.51).keys() == {"loss"}
    objective, model, batches = taught(XtremeDistil(states=0.0, soft=0.5), lesson())
    assert "soft targets" in losses_of(objective, model, batches, 0.0)


def test_a_teacher_without_vectors_teaches_its_scores_at_once():
    """Such as one that is not trained by gradients; its stages take as long together."""
    objective, model, batches = taught(XtremeDistil(), lesson(size=None))
    assert objective.projection is None
    for progress, free in ((0.0, TOP), (0.05, TOP | HIDDEN), (0.1, ALL), (0.34, ALL)):
        found = losses_of(objective, model, batches, progress)
        assert "soft targets" in found and learning(found["loss"], model) == free
    assert losses_of(objective, model, batches, 0.36).keys() == {"loss"}


def test_passes_that_no_label_taught_are_not_chosen_and_pilots_reach_the_labels():
    """A rate would be chosen among students that answer by chance; without a teacher the labels
    teach from the first step on."""
    objective, *_ = taught(XtremeDistil(states=0.5, soft=0.25), lesson())
    assert objective.settled_after == 0.75 and objective.in_little
    objective, *_ = taught(XtremeDistil(), None)
    assert objective.settled_after == 0


@pytest.mark.parametrize("progress", [0.0, 0.1, 0.2, 0.3, 0.36, 0.9])
@pytest.mark.parametrize("regime", [XtremeDistil(states=0.0, soft=0.0), XtremeDistil()])
def test_without_lessons_it_is_the_training_that_it_wraps(regime, progress):
    """Whatever a teacher knows where no share is its; and where there is none."""
    objective, model, batches = taught(regime, None if regime.soft else lesson())
    found = losses_of(objective, model, batches, progress)
    plain = Supervised().losses(model, Step(batches, progress))
    assert found.keys() == plain.keys() and torch.equal(found["loss"], plain["loss"])
    assert learning(found["loss"], model) == ALL
    assert not [*objective.parameters()]


def test_no_label_is_read_in_the_stages_of_the_teacher():
    """Texts whose labels are known stand among the others."""
    objective, model, batches = taught(XtremeDistil(), lesson())
    batches["labelled"] = None
    for progress in (0.1, 0.3):
        assert losses_of(objective, model, batches, progress)["loss"] > 0
    assert batches["unlabelled"].target is None


def test_the_vectors_that_are_compared_are_dropped_out_as_those_that_are_scored():
    """Protocol equal has a dropout of the head, which acts in every stage."""
    objective, model, batches = taught(XtremeDistil(), lesson())
    model.head.dropout = 0.5
    torch.manual_seed(0)
    first, second = (losses_of(objective, model.train(), batches, 0.1)["loss"].item() for _ in range(2))
    assert first != second
    model.eval()
    first, second = (losses_of(objective, model, batches, 0.1)["loss"].item() for _ in range(2))
    assert first == second


# --- layers ---


def test_layers_from_the_top():
    """The head, the numbered layers of both directions together, and the vectors of words."""
    view, target = view_of(TEXTS), ClassTarget()
    target.fit([{"label": label} for label in "wxyz"])
    model = build(BidirectionalLSTM, problem("classify"), {"hidden": 3, "layers": 2}, view, target, 4)
    found = layers(model)
    assert [{name.rpartition(".")[0] for name in layer} for layer in found] == [
        {"head.output"},
        {"encoder.recurrence.forwards.1", "encoder.recurrence.backwards.1"},
        {"encoder.recurrence.forwards.0", "encoder.recurrence.backwards.0"},
        {"table.tuned"},
    ]
    assert sorted(name for layer in found for name in layer) == sorted(name for name, _ in model.named_parameters())


def test_of_the_parts_of_an_encoder_the_last_one_is_the_highest():
    model = torch.nn.ModuleDict({"encoder": torch.nn.Module(), "head": torch.nn.Linear(1, 1)})
    model["sources"] = torch.nn.ModuleDict({"letters": torch.nn.Linear(1, 1)})
    model["table"] = torch.nn.Embedding(2, 1)
    for name in ("zeroth", "first"):
        model["encoder"].add_module(name, torch.nn.Linear(1, 1, bias=False))
    model["encoder"].scale = torch.nn.Parameter(torch.ones(1))
    assert layers(model) == [
        ("head.weight", "head.bias"),
        ("encoder.first.weight",),
        ("encoder.zeroth.weight",),
        ("encoder.scale",),
        ("sources.letters.weight", "sources.letters.bias"),
        ("table.weight",),
    ]


# --- the teacher ---


class Sure:
    """A teacher that is sure of a class, and counts how often it is asked."""

    model = None
    problem = problem("classify")
    description = SimpleNamespace(part=SimpleNamespace(architecture="sure"))
    known: ClassVar = {"z": 0.0, "w": 0.75, "y": 0.0, "x": 0.25}
    asked = 0

    def answers(self, rows: Any) -> list[dict[str, Any]]:
        self.asked += 1
        assert all(row.keys() == {"id", "text"} for row in rows)
        return [{"probabilities": self.known} for _ in rows]


def test_a_teacher_is_asked_once_and_its_logits_are_logarithms_of_probabilities():
    """By the names of the classes, in their order; a class that it rules out is still a number, and
    no label is shown."""
    regime, teacher = XtremeDistil(), Sure()
    assert regime.lesson(ROWS.rows, CLASSES) is None
    regime.inherit("teacher", teacher, [])
    scores, vectors = regime.lesson([row | {"label": "w"} for row in ROWS.rows], CLASSES)
    assert vectors is None
    expected = torch.tensor([0.75, 0.25, 1e-6, 1e-6]).log().expand(3, 4)
    torch.testing.assert_close(scores, expected)
    assert regime.lesson(ROWS.rows, CLASSES)[0] is scores and teacher.asked == 1
    regime.inherit("teacher", other := Sure(), [])
    assert regime.lesson(ROWS.rows, CLASSES) is not None and other.asked == 1


@pytest.mark.parametrize(("states", "soft"), [(0.2, 0.2), (0.0, 0.2), (0.2, 0.0)])
def test_a_teacher_is_asked_where_any_share_is_its(states, soft):
    regime, parents = XtremeDistil(states=states, soft=soft), {"teacher": "bert"}
    assert XtremeDistil.default_parents(parents, {"states": states, "soft": soft}) == parents
    regime.inherit("teacher", Sure(), [])
    assert regime.lesson(ROWS.rows, CLASSES) is not None


def test_lessons_move_with_the_objective_and_stay_out_of_its_checkpoints():
    """On a GPU they must be where the texts are; of a hundred thousand texts they are large."""
    known = lesson()
    objective, _, _ = taught(XtremeDistil(), known)
    found = dict(objective.named_buffers())
    assert found.keys() == {"scores", "vectors"}
    assert found["scores"] is known.scores and found["vectors"] is known.vectors
    assert objective.state_dict().keys() == {"projection.weight", "projection.bias"}


@pytest.mark.parametrize("names", ["abcd", "wxy", "vwxyz"])
def test_a_teacher_of_other_classes_is_refused(names):
    """As many others too: the student would learn to mistake each class for another."""
    regime, teacher = XtremeDistil(), Sure()
    teacher.known = dict.fromkeys(names, 1 / len(names))
    regime.inherit("teacher", teacher, [])
    objective = objective_of(prepared(regime, encoder=Summed)[0], Recipe(), regime)
    with pytest.raises(ModelError, match=f"sure knows the classes {', '.join(names)}; here are w, x, y, z"):
        objective.begin({"labelled": None, "unlabelled": ROWS})


def test_teacher_and_student_are_planned_by_themselves(tmp_path: Path):
    """The teacher is tuned on the same task, from what it learnt of plain text."""
    planned = session(tmp_path, "xtreme_distil", tasks="sst2", protocol="paper").pending.run
    assert [(cell.architecture, cell.task) for cell in planned] == [
        ("bert", "text_mix"),
        ("bert", "sst2"),
        ("xtreme_distil", "sst2"),
    ]
    assert planned[2].parents["teacher"]["key"] == planned[1].key
    assert planned[1].parents["weights"]["key"] == planned[0].key
    shares = ["xtreme_distil.states=0", "xtreme_distil.soft=0"]
    (alone,) = session(tmp_path, "xtreme_distil", protocol="paper", overrides=shares).pending.run
    assert not alone.parents, "nobody is asked"


def test_a_student_goes_through_the_stages_and_is_kept_without_its_teacher(tmp_path: Path):
    """The whole way of two cells, with a cheaper teacher."""
    planned = session(tmp_path, "xtreme_distil", "teacher=dan", protocol="paper", max_train=40, max_epochs=2, keep=True)
    assert [cell.architecture for cell in planned.pending.run] == ["dan", "xtreme_distil"]
    for cell in planned.pending.run:
        planned.store.write(record := run_cell(cell, planned.settings))
        assert record.status == "ok", record.error
    assert [(one["role"], one["architecture"]) for one in record.lineage] == [("teacher", "dan")]
    assert record.training["objective"] == "Stages(Supervised)"
    first, second = record.training["curve"]
    assert first["train_states"] > 0 and first["train_soft targets"] > 0 and "train_states" not in second
    kept = load(tmp_path / "models" / record.key)
    parts = {name.split(".")[0] for name in kept.model.state_dict()}
    assert parts == {"encoder", "head", "table"}
    assert record.parameters["total"] == sum(parameter.numel() for parameter in kept.model.parameters())


# --- what it cannot do ---


@pytest.mark.parametrize(
    ("wraps", "task", "reason"),
    [
        ("bilstm", "sst2", None),
        ("kim_cnn_rand", "ag_news", None),
        ("bert", "sst2", None),
        ("bilstm", "conll2003_ner", "learns classes of texts, and a task of type tag has none"),
        ("id_lstm", "sst2", "needs a supervised loss, and id_lstm has an objective of its own"),
        ("leam", "sst2", "learns the vectors of a teacher, and leam makes none of a text"),
    ],
)
def test_what_it_cannot_train_is_told(wraps, task, reason):
    found = XtremeDistil.unfit(registry.entry("tasks", task), {"wraps": wraps})
    assert found == reason


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"states": 0.5, "soft": 0.5}, "states=0.5 and soft=0.5: expected are shares whose sum is below 1"),
        ({"states": -0.1}, "states=-0.1"),
        ({"soft": -0.1, "states": 0.2}, "soft=-0.1"),
        ({"thawing": 0.0}, "thawing=0.0: expected is a share of the training above 0"),
    ],
)
def test_shares_that_are_none_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        XtremeDistil(**options)
