"""The mechanism of unsupervised data augmentation: sharpened answers that stay, confidence, and
labelled texts that are left out while they are known too well."""

from __future__ import annotations

import math

import pytest
import torch

from architectures.adversarial.uda import ConsistencyLoss, DataAugmentation
from harness import registry
from harness.layers.noise import Noise
from harness.objectives import Step
from harness.problems.base import Batch
from harness.registry import Recipe
from harness.training.model import Model, objective_of
from tests.support.moving_vectors import TEXTS, Summed, prepared, view_of


class Split:
    """Encoded rows, as an objective is told them."""

    def __init__(self, texts: list[str]):
        self.view = view_of(TEXTS)
        self.inputs = {"text": self.view.encode(texts)}


class Penalised(Summed):
    """An encoder with a penalty of its own."""

    def forward(self, words):
        self.add_loss("penalty", words.vectors.sum() * 0 + 0.25)
        return super().forward(words)


def trained(regime: DataAugmentation, encoder: type = Summed) -> tuple[ConsistencyLoss, Model, Batch, Batch]:
    """An objective that has begun, a model whose answers differ, and its two batches."""
    model, labelled, unlabelled = prepared(regime, encoder=encoder)
    with torch.no_grad():
        model.table.tuned.weight.mul_(12)
    objective = objective_of(model, Recipe(), regime)
    objective.begin({"labelled": Split(TEXTS[:1]), "unlabelled": Split(TEXTS)})
    return objective, model, labelled, unlabelled


def losses_of(objective, model, labelled, unlabelled, done: float = 1.0, key: tuple[int, int] = (5, 2)) -> dict:
    batches = {"labelled": labelled, "unlabelled": unlabelled}
    return objective.losses(model, Step(batches, done, None, *key))


def logs_of(model: Model, words) -> torch.Tensor:
    """Logarithms of the probabilities of classes, by the parameters alone."""
    own = dict(model.named_parameters())
    vectors = own["table.tuned.weight"][words.ids]
    states = torch.tanh(vectors @ own["encoder.hidden.weight"].T + own["encoder.hidden.bias"]).sum(1)
    scores = states @ own["head.output.weight"].T + own["head.output.bias"]
    return scores - scores.exp().sum(1, keepdim=True).log()


@pytest.mark.parametrize("sure", [3, 2])
@pytest.mark.parametrize("temperature", [1.0, 0.4])
def test_the_consistency_is_the_one_written_out_and_so_are_its_gradients(sure, temperature):
    """The answer to the text as it is is sharpened and stays, texts of which the model is unsure by
    its unsharpened answer count as 0, and the mean is over all."""
    regime = DataAugmentation(weight=3.0, temperature=temperature, schedule="none")
    objective, model, labelled, unlabelled = trained(regime)
    words = unlabelled.inputs["text"]
    largest = sorted(logs_of(model, words).exp().amax(1).tolist())
    regime.confidence = 0.0 if sure == 3 else (largest[0] + largest[1]) / 2
    found = losses_of(objective, model, labelled, unlabelled)
    other = objective.replacement(words, Noise(words.ids, words.mask, (5, 2)))
    assert (other.ids != words.ids).any()
    logs = logs_of(model, words).detach()
    powers = (logs / temperature).exp()
    wanted = powers / powers.sum(1, keepdim=True)
    counted = [i for i, each in enumerate(logs.exp().tolist()) if max(each) > regime.confidence]
    answers = logs_of(model, other)
    expected = sum((wanted[i] * (wanted[i].log() - answers[i])).sum() for i in counted) / 3
    assert len(counted) == sure and expected > 1e-4
    torch.testing.assert_close(found["consistency"], expected)
    known = -logs_of(model, labelled.inputs["text"])[torch.arange(3), labelled.target].mean()
    torch.testing.assert_close(found["task"], known)
    torch.testing.assert_close(found["loss"], known + 3 * expected)
    gradients = torch.autograd.grad(found["loss"], list(model.parameters()), retain_graph=True)
    wanted_gradients = torch.autograd.grad(known + 3 * expected, list(model.parameters()))
    for (name, _), one, other_one in zip(model.named_parameters(), gradients, wanted_gradients, strict=True):
        rows = slice(1, None) if name.startswith("table") else slice(None)  # padding is trained by nothing
        torch.testing.assert_close(one[rows], other_one[rows])


def test_confidence_is_asked_of_the_answer_before_it_is_sharpened():
    """Sharpened, nearly every answer is sure."""
    objective, model, labelled, unlabelled = trained(DataAugmentation(confidence=0.9, temperature=0.01))
    with torch.no_grad():
        model.head.output.weight.mul_(0.01)
        model.head.output.bias.zero_()
    assert losses_of(objective, model, labelled, unlabelled)["consistency"] == 0


@pytest.mark.parametrize(
    ("schedule", "done", "share"),
    [
        ("linear", 0.0, 0.0),
        ("linear", 0.5, 0.5),
        ("linear", 1.0, 1.0),
        ("log", 0.0, 0.0),
        ("log", 0.5, 1 - math.exp(-2.5)),
        ("exp", 0.5, math.exp(-2.5)),
        ("exp", 1.0, 1.0),
        ("none", 0.0, 1.0),
    ],
)
def test_a_text_counts_until_its_class_is_surer_than_the_threshold(schedule, done, share):
    """Between chance and 1 of three classes; the mean is over the texts that count."""
    objective = ConsistencyLoss(DataAugmentation(schedule=schedule), None, None)
    threshold = 1 / 3 + 2 / 3 * share
    below, above = threshold - 0.01, min(threshold + 0.01, 0.9999)
    shares = torch.tensor([[p, (1 - p) / 2, (1 - p) / 2] for p in (below, above, 0.2)])
    scores = shares.log().requires_grad_()
    kept = [below, 0.2] if share < 1 else [below, above, 0.2]
    found = objective.annealed(scores, torch.zeros(3, dtype=torch.long), done)
    assert found.item() == pytest.approx(-sum(map(math.log, kept)) / len(kept), rel=1e-4)
    found.backward()
    assert bool(scores.grad[1].any()) == (share == 1)


def test_the_threshold_grows_with_the_training():
    """By another number than its progress labels are learnt by heart at once, or never."""
    objective, model, labelled, unlabelled = trained(DataAugmentation(weight=0.0))
    logs = logs_of(model, labelled.inputs["text"])
    labelled = labelled._replace(target=logs.argmax(1))
    shares = sorted(logs.exp().amax(1).tolist())
    for kept in (1, 2):
        done = ((shares[kept - 1] + shares[kept]) / 2 - 1 / 4) / (3 / 4)  # of four classes
        found = losses_of(objective, model, labelled, unlabelled, done)["loss"].item()
        assert 0 < done < 1 and found == pytest.approx(-sum(map(math.log, shares[:kept])) / kept, rel=1e-4)


def test_words_are_replaced_by_what_all_texts_say():
    """A few labelled ones know neither the words nor how rare they are."""
    objective, *_ = trained(DataAugmentation())
    view = view_of(TEXTS)
    for word in "abcd":
        share = sum(word in text.split() for text in TEXTS) / len(TEXTS)
        [[place]] = view.encode([word])["ids"]
        assert objective.replacement.rareness[place].item() == pytest.approx(-math.log(share))


@pytest.mark.parametrize(("done", "kept"), [(0.0, 1), (1.0, 2)])
def test_the_mean_is_over_those_that_count(done, kept):
    """Certainty is not above the last threshold, so that all count at the end."""
    objective = ConsistencyLoss(DataAugmentation(), None, None)
    scores = torch.tensor([[100.0, 0.0], [0.0, 1.0]])
    unsure = math.log(1 + math.e)
    assert objective.annealed(scores, torch.tensor([0, 0]), done).item() == pytest.approx(unsure / kept)


def test_smoothed_labels_are_in_the_loss_and_not_in_the_threshold():
    """`-o uda.training.label_smoothing=0.2` stood in the record and did nothing."""
    objective = ConsistencyLoss(DataAugmentation(), None, None)
    scores, labels = torch.tensor([[2.0, 0.0], [-1.0, 1.0]]), torch.tensor([0, 0])
    found = objective.annealed(scores, labels, 0.0, smoothing=0.2)  # the first is surer than chance
    logs = scores[1].log_softmax(-1)
    assert found.item() == pytest.approx(-(0.9 * logs[0] + 0.1 * logs[1]).item())


def test_a_text_must_be_surer_than_the_confidence(monkeypatch):
    """At a confidence of chance nothing can be learnt from answers by chance."""
    objective = ConsistencyLoss(DataAugmentation(confidence=0.5), None, None)
    answers = iter([torch.zeros(1, 2), torch.tensor([[3.0, 0.0]])] * 2)
    monkeypatch.setattr(objective, "scores", lambda model, words: next(answers))
    monkeypatch.setattr(objective, "replacement", lambda words, noise: words, raising=False)
    words = prepared(DataAugmentation())[1].inputs["text"]
    assert objective.consistency(None, words, (0, 1)) == 0
    objective.owner.confidence = 0.49
    assert objective.consistency(None, words, (0, 1)) > 0.1


def test_where_all_are_known_too_well_nothing_is_learnt_from_labels():
    objective = ConsistencyLoss(DataAugmentation(), None, None)
    found = objective.annealed(torch.tensor([[9.0, 0.0]]), torch.tensor([0]), 0.0)
    assert found == 0


def test_penalties_of_the_wrapped_encoder_count_once():
    """Where labelled texts are left out too: a penalty is not part of what is known."""
    objective, model, labelled, unlabelled = trained(DataAugmentation(weight=0.0), Penalised)
    found = losses_of(objective, model, labelled, unlabelled, done=0.3)
    torch.testing.assert_close(found["loss"], found["task"] + 0.25)


def test_other_words_are_replaced_in_each_pass():
    objective, model, labelled, unlabelled = trained(DataAugmentation(confidence=0.0))
    values = {losses_of(objective, model, labelled, unlabelled, key=(5, n))["consistency"].item() for n in (1, 2, 3)}
    assert len(values) > 1
    assert losses_of(objective, model, labelled, unlabelled, key=(6, 1))["consistency"].item() not in values


@pytest.mark.parametrize(
    ("wraps", "task", "reason"),
    [
        ("bilstm", "sst2", None),
        ("kim_cnn_rand", "ag_news", None),
        ("esim", "snli", "replaces words of texts that have one class each, and a task of type match has none"),
        ("char_cnn", "sst2", "replaces words, and char_cnn reads something else on sst2"),
        ("text_caps", "sst2", "needs the probabilities of classes, and the scores of text_caps stand for none"),
    ],
)
def test_what_it_cannot_train_is_told(wraps, task, reason):
    assert DataAugmentation.unfit(registry.entry("tasks", task), {"wraps": wraps}) == reason


def test_a_schedule_that_is_none_is_told_with_those_there_are():
    with pytest.raises(ValueError, match="schedule='cosine' is none of linear, log, exp, none"):
        DataAugmentation(schedule="cosine")
