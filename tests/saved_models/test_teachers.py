"""Kept models as teachers: asked while another one learns, and no part of it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from harness import registry
from harness.contract.trained import TrainedCase
from harness.errors import ModelError
from harness.objectives import add_loss, collected_losses
from harness.running import grid
from harness.running.worker import run_cell
from harness.saved_models.model import TrainedModel, load
from harness.saved_models.parents import class_probabilities
from harness.saved_models.teachers import Teacher, text_vectors
from tests.support.sessions import session


def test_terms_of_the_teachers_layers_are_none_of_the_students():
    """One that has penalties of its own would teach them."""

    class Penalised(nn.Module):
        def forward(self, number: Tensor) -> Tensor:
            add_loss("penalty", number)
            return number + 1

    teacher = Teacher(SimpleNamespace(model=Penalised()))
    with collected_losses() as terms:
        answer = teacher.asked(lambda model: model(torch.ones(1, requires_grad=True)), torch.device("cpu"))
    assert answer.item() == 2 and not answer.requires_grad and not terms


def test_who_has_no_states_cannot_teach_them():
    part = SimpleNamespace(part=SimpleNamespace(architecture="nbsvm"))
    with pytest.raises(ModelError, match="nbsvm has no states: it is not trained by gradients"):
        Teacher(SimpleNamespace(model=None, description=part))


def model_of(architecture: str) -> tuple[TrainedModel, list[Any]]:
    """A model as it is kept, with weights far from uniform, and rows of several lengths for it."""
    entry, task = registry.entry("architectures", architecture), registry.entry("tasks", "sst2")
    case = TrainedCase(entry, task, grid.hyperparameters(entry) | entry.tiny)
    model = case.model()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(3)
    return case.kept(model), case.problem.input_rows([case.corpus.train.rows[number] for number in range(70)])


@pytest.mark.parametrize("architecture", ["bilstm", "bert"])
def test_the_vectors_of_texts_are_those_that_are_scored(architecture: str):
    """Each text's own, in the order of the rows: its last layer makes the teacher's probabilities
    of them, which no dropout touches."""
    teacher, rows = model_of(architecture)
    assert len({len(row["text"]) for row in rows}) > 3
    teacher.model.train()
    vectors = text_vectors(teacher, rows)
    assert vectors.shape == (70, teacher.model.encoder.size) and not vectors.requires_grad
    found = teacher.model.head.output(vectors).softmax(-1)
    torch.testing.assert_close(found, class_probabilities(teacher, rows).float(), rtol=1e-4, atol=1e-5)
    assert found.std(0).max() > 1e-3 and teacher.model.training
    assert not teacher.model.head.output._forward_pre_hooks
    (found.log().mean() * torch.ones(1, requires_grad=True)).backward()  # they can stand in a loss


def test_who_scores_classes_itself_has_no_vectors():
    teacher, rows = model_of("leam")
    assert text_vectors(teacher, rows) is None
    assert text_vectors(SimpleNamespace(model=None), rows) is None, "nor has a system without gradients"


def test_who_scores_each_node_of_a_tree_has_no_vector_of_a_text():
    """Its layer scores all of them, of which only the root stands for the text; its probabilities
    can be taught."""
    teacher, rows = model_of("tree_lstm")
    assert text_vectors(teacher, rows) is None
    assert class_probabilities(teacher, rows).shape == (70, 2)


TINY = ["*.hidden=8", "*.heads=2", "bert.layers=2", "distilbert.layers=1", "*.vocabulary=300", "*.max_length=16"]


def test_a_student_is_taught_and_kept_without_its_teacher(tmp_path: Path):
    """The whole way of both cells: the record says who taught, and who starts from the student
    finds neither the teacher's weights nor its parameters there."""
    planned = session(
        tmp_path, "distilbert", tasks="text_mix", protocol="paper", max_train=8, max_epochs=1, overrides=TINY, keep=True
    )
    teacher, student = planned.pending.run
    for cell in (teacher, student):
        planned.store.write(record := run_cell(cell, planned.settings))
        assert record.status == "ok", record.error
    assert [(one["role"], one["architecture"], one["key"]) for one in record.lineage] == [
        ("teacher", "bert", teacher.key)
    ]
    row = record.training["curve"][0]
    assert row["train_soft targets"] > 0 and row["train_states"] > 0
    found, its = (load(tmp_path / "models" / cell.key) for cell in (student, teacher))
    assert found.view.state() == its.view.state(), "they read the same pieces"
    assert not [name for name in found.model.state_dict() if "teacher" in name or "layers.1" in name]
    assert record.parameters["total"] == sum(parameter.numel() for parameter in found.model.parameters())
