"""The mechanism of Snorkel MeTaL: soft labels of a label model over several sources, on which a
network is trained."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from architectures.adversarial import snorkel_metal
from architectures.adversarial.snorkel_metal import SnorkelMetal, SoftLabelLoss, modelled
from architectures.blocks import label_model
from architectures.blocks.label_sources import votes
from harness import registry
from harness.data.corpus import Split
from harness.ragged import Ragged
from harness.registry import Recipe
from harness.training.model import objective_of
from tests.support.few_rows import TEXTS, assert_same_gradients, logs_of, model_of, splits, step_of

UNKNOWN = [row for row, (_, label) in enumerate(TEXTS) if not label]
SAID = np.array([[0, 0, 1, -1], [1, -1, 1, 1], [-1, -1, -1, -1], [0, 0, 0, 1]])
"""Votes on the texts whose labels are unknown."""


def prepared(monkeypatch, said: np.ndarray | None = SAID, relabelled: bool = False):
    """An objective that has begun, its model, its rows, and what the sources were asked."""
    asked: list = []
    if said is not None:
        monkeypatch.setattr(snorkel_metal, "votes", lambda *given: asked.append(given) or said)
    rows = splits(relabelled)
    model = model_of(rows)
    objective = objective_of(model, Recipe(), SnorkelMetal())
    objective.begin(rows)
    assert isinstance(objective, SoftLabelLoss)
    return objective, model, rows, asked


RIGHT = [0.8, 0.65, 0.7, 0.75]
"""How often the sources are right, in place of what the label model would find in four texts."""


def soft_labels() -> np.ndarray:
    """Those of the texts without labels, by Bayes' rule."""
    products = np.ones((len(SAID), 2))
    for text, said in enumerate(SAID):
        for right, vote in zip(RIGHT, said, strict=True):
            if vote >= 0:
                products[text, vote] *= right
                products[text, 1 - vote] *= 1 - right
    return products / products.sum(1, keepdims=True)


def test_the_loss_is_written_out(monkeypatch):
    """Cross-entropy with soft labels; a known label is a hard one, and a text without a vote is
    left out of the mean."""
    mu = torch.tensor([[[right, 1 - right], [1 - right, right]] for right in RIGHT]).double()
    monkeypatch.setattr(label_model, "fitted", lambda said, balance: mu)
    objective, model, rows, _ = prepared(monkeypatch)
    batch = (0, 2, 5, 7, 3)
    assert [TEXTS[row][1] for row in batch] == ["games", "", "", "money", ""] and UNKNOWN[2] == 5
    step = step_of(rows, 0.5, batch)
    found = objective.losses(model, step)
    soft = dict(zip(UNKNOWN, soft_labels(), strict=True)) | {0: np.array([1.0, 0.0]), 7: np.array([0.0, 1.0])}
    logs = logs_of(model, step.batches["unlabelled"].inputs["text"])
    losses = [-(torch.tensor(soft[row]) * each).sum() for row, each in zip(batch, logs, strict=True) if row != 5]
    assert 0.05 < soft[2].min() < 0.95 and not np.allclose(soft[2], soft[3])
    torch.testing.assert_close(found["task"], sum(losses) / 4, rtol=1e-6, atol=1e-6)
    assert_same_gradients(model, found["loss"], found["task"])
    parameters = list(model.parameters())
    for one, other in zip(
        *(torch.autograd.grad(each, parameters, retain_graph=True) for each in (found["loss"], sum(losses) / 4)),
        strict=True,
    ):
        torch.testing.assert_close(one.to_dense()[1:], other.to_dense()[1:], rtol=1e-5, atol=1e-6)


def test_texts_without_a_vote_alone_teach_nothing(monkeypatch):
    objective, model, rows, _ = prepared(monkeypatch)
    assert objective.losses(model, step_of(rows, 0.5, (5,)))["loss"] == 0


def test_sources_read_labelled_texts_and_vote_on_the_others(monkeypatch):
    _, _, rows, asked = prepared(monkeypatch)
    [(taught, classes, number, others, words)] = asked
    labelled = rows["labelled"]
    assert taught is labelled.inputs["text"]["ids"] and classes.tolist() == [0, 1, 0, 1] and number == 2
    texts = rows["unlabelled"].inputs["text"]["ids"]
    assert [ids.tolist() for ids in others] == [texts[row].tolist() for row in UNKNOWN]
    assert words == len(labelled.view.vocabulary)


def test_where_all_labels_are_known_nobody_is_asked(monkeypatch):
    rows = splits()
    labelled = rows["labelled"]
    known = labelled.rows.select_columns(["id", "text"])
    rows["unlabelled"] = Split(known, labelled.view, rows["unlabelled"].target, labelled.inputs, {})
    monkeypatch.setattr(snorkel_metal, "votes", None)
    objective = SoftLabelLoss(SnorkelMetal(), model_of(rows))
    objective.begin(rows)
    assert objective.targets.tolist() == [[1, 0], [0, 1], [1, 0], [0, 1]] and objective.counted.all()


def test_no_label_of_the_step_is_read(monkeypatch):
    """The stream of labelled texts is there, and soft labels alone teach."""
    objective, model, rows, _ = prepared(monkeypatch)
    step, other = step_of(rows, 0.5), step_of(rows, 0.5)
    other.batches["labelled"].target.fill_(0)
    assert objective.losses(model, step)["loss"] == objective.losses(model, other)["loss"]
    assert "label" not in rows["unlabelled"].rows.column_names


def test_shares_of_classes_are_those_of_labelled_texts():
    said = torch.tensor(np.random.default_rng(0).integers(-1, 2, (50, 3)))
    classes = np.array([0, 1, 1, 1])
    soft, counted = modelled(said, classes, 2)
    balance = torch.tensor([0.25, 0.75])
    torch.testing.assert_close(soft, label_model.posterior(said, label_model.fitted(said, balance), balance))
    assert counted.tolist() == (said.numpy() >= 0).any(1).tolist()


def test_soft_labels_are_kept_with_a_training(monkeypatch):
    objective, *_ = prepared(monkeypatch)
    assert {"targets", "counted"} <= objective.state_dict().keys()


def test_what_the_encoder_adds_to_the_loss_counts(monkeypatch):
    objective, model, rows, _ = prepared(monkeypatch)
    without = objective.losses(model, step_of(rows, 0.5))["loss"]
    model.encoder.penalised = True
    found = objective.losses(model, step_of(rows, 0.5))
    torch.testing.assert_close(found["loss"], without + 0.25)
    assert found["penalty"] == 0.25


def test_the_whole_way_from_few_labels_to_many():
    """Real sources, on texts of two classes whose words overlap: soft labels are right more often
    than the mean source, where it says anything."""
    rng = np.random.default_rng(1)
    classes = np.arange(400) % 2
    own = [np.arange(2, 16), np.arange(12, 26)]
    made = [np.concatenate([rng.choice(own[each], 5), rng.integers(26, 40, 5)]) for each in classes]
    said = votes(Ragged.of(made[:32]), classes[:32], 2, Ragged.of(made[32:]), 40)
    soft, counted = modelled(torch.tensor(said), classes[:32], 2)
    truth = classes[32:]
    alone = [(each == truth)[each >= 0].mean() for each in said.T]
    right = (soft.argmax(1).numpy() == truth)[counted.numpy()].mean()
    assert counted.float().mean() > 0.9 and right > np.mean(alone) + 0.05


@pytest.mark.parametrize(
    ("wraps", "task", "reason"),
    [
        ("bilstm", "sst2", None),
        ("kim_cnn_rand", "ag_news", None),
        ("esim", "snli", "counts words of texts that have one class each, and a task of type match has none"),
        ("char_cnn", "sst2", "counts words, and char_cnn reads something else on sst2"),
        ("text_caps", "sst2", "needs the probabilities of classes, and the scores of text_caps stand for none"),
    ],
)
def test_what_it_cannot_train_is_told(wraps, task, reason):
    assert SnorkelMetal.unfit(registry.entry("tasks", task), {"wraps": wraps}) == reason


def test_it_says_that_the_surveys_figure_is_another_systems():
    """A reader would take it for what ours should reach."""
    entry = registry.entry("architectures", "snorkel_metal")
    assert any("survey's figure" in sentence and "another system" in sentence for sentence in entry.deviations)
