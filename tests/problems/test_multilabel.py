"""Sets of labels: the target, the head, what a prediction keeps, and a run from rows to scores."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from harness import registry
from harness.contract.trained import TrainedCase
from harness.kinds import Encoder, TextEncoder
from harness.metrics.label_sets import chosen
from harness.problems import problem
from harness.problems.multilabel import LabelSet, LabelSetTarget, probable
from harness.running import fitting, grid
from harness.views.words import Words

ROWS = [
    {"id": "1", "text": "a", "labels": ["corn", "wheat"]},
    {"id": "2", "text": "b", "labels": []},
    {"id": "3", "text": "c", "labels": ["gold"]},
]


@pytest.fixture
def target() -> LabelSetTarget:
    target = LabelSetTarget()
    target.fit(ROWS)
    return target


class Given(Encoder):
    """The vector of each text is what the test gives."""

    size = 3

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        return text


def test_a_row_has_a_one_for_each_of_its_labels(target):
    """Of a label that training never showed there is nothing to learn."""
    rows = [*ROWS, {"id": "4", "text": "d", "labels": ["jute", "gold"]}]
    columns = target.encode(rows, Words())
    assert target.labels == ["corn", "gold", "wheat"]
    assert target.collate(columns, np.array([3, 0, 1])).tolist() == [[0, 1, 0], [1, 0, 1], [0, 0, 0]]


def test_the_loss_of_a_text_is_the_sum_over_its_labels(target):
    """By hand: each label is a yes or no of its own."""
    head = LabelSet(Given(), target)
    outputs, gold = torch.tensor([[0.0, 2.0, -1.0], [3.0, 0.0, 0.0]]), torch.tensor([[1.0, 0, 1], [0, 0, 0]])

    def no(score: float) -> float:
        return math.log(1 + math.exp(score))

    rows = [no(0) + no(2) + no(1), no(3) + 2 * no(0)]
    assert head.row_losses(None, outputs, gold).tolist() == pytest.approx(rows)
    assert head.loss(None, outputs, gold).item() == pytest.approx(sum(rows) / 2)


def test_a_prediction_has_the_probabilities_of_its_labels(target):
    head = LabelSet(Given(), target)
    [prediction] = head.decode(None, torch.tensor([[0.0, 2.0, -30.0]]), None, None)
    assert prediction == {"gold": 0.880797, "corn": 0.5, "wheat": 0.0}
    assert list(prediction) == ["gold", "corn", "wheat"]
    assert chosen(prediction) == {"gold"}, "one half is not more probable than not"


@settings(max_examples=100, derandomize=True)
@given(st.dictionaries(st.text("abcdefgh", min_size=1, max_size=2), st.integers(0, 10).map(lambda n: n / 10)))
def test_what_a_prediction_leaves_out_changes_no_metric(probabilities):
    """90 labels for each text would fill the results folder; P@5 looks at five, F1 at what is
    said."""
    kept = probable(probabilities)
    assert chosen(kept) == chosen(probabilities)
    left_out = [share for label, share in probabilities.items() if label not in kept]
    assert not left_out or sum(share > max(left_out) for share in kept.values()) >= 5
    assert list(kept.values()) == sorted(kept.values(), reverse=True)


def test_of_improbable_labels_the_five_most_probable_are_kept():
    shares = {label: number / 100 for number, label in enumerate("abcdefgh")}
    assert [*probable(shares)] == [*"hgfed"]


def test_a_floor_says_the_commonest_set_and_ranks_the_other_labels():
    """Saying nothing behind the set would make P@3 of the floor lower than a guess's."""
    rows = [{"labels": labels} for labels in (["earn"], ["earn"], ["corn", "wheat"], ["corn"])]
    floors = problem("multilabel").floors(rows, ROWS)
    assert floors["majority"] == [{"earn": 1.0, "corn": 0.25, "wheat": 0.125}] * 3
    assert all(tuple(each) in {("earn",), ("corn", "wheat"), ("corn",)} for each in floors["random"])


def test_a_set_is_one_set_in_whatever_order_its_labels_stand():
    """A user's file has them in the order of whoever wrote them."""
    rows = [{"labels": labels} for labels in (["a", "b"], ["b", "a"], ["c"], ["a", "b"], ["b", "a"], ["c"], ["c"])]
    floors = problem("multilabel").floors(rows, ROWS[:1])
    assert floors["majority"] == [{"a": 1.0, "b": 1.0, "c": 3 / 14}]
    assert len(floors["random"]) == 1


def test_flipped_rows_have_the_labels_that_they_lacked():
    flipped = problem("multilabel").flipped(ROWS)
    assert [row["labels"] for row in flipped] == [["gold"], ["corn", "gold", "wheat"], ["corn", "wheat"]]


def test_the_error_analysis_has_the_f1_of_each_label():
    predictions = [{"corn": 0.9, "gold": 0.8}, {"gold": 0.4}, {"gold": 1.0}]
    assert problem("multilabel").slices("micro_f1", predictions, ROWS) == {
        "label": [("corn", 1, 1.0), ("gold", 1, 2 / 3), ("wheat", 1, 0.0)]
    }
    assert problem("multilabel").slices("precision_at_1", predictions, ROWS) == {}


@pytest.mark.parametrize(("architecture", "fits"), [("dan", True), ("bilstm", True), ("bilstm_crf", False)])
def test_encoders_of_one_text_run_on_it(architecture, fits):
    entry, task = registry.entry("architectures", architecture), registry.entry("tasks", "reuters21578")
    assert (fitting.reason_to_skip(entry, task, grid.hyperparameters(entry)) is None) == fits


@pytest.mark.parametrize("architecture", ["dan", "bilstm"])
def test_an_architecture_keeps_the_contract_on_it(architecture):
    """Gradients, padding, determinism, texts without known words and learning by heart, as on every
    other type."""
    entry = registry.entry("architectures", architecture)
    case = TrainedCase(entry, registry.entry("tasks", "reuters21578"), grid.hyperparameters(entry) | entry.tiny)
    for _, body in case.checks(learning=False):
        body()


def test_a_layer_keeps_the_norm_that_its_encoder_asks_for(target):
    """As under a softmax (kim_cnn's rows have a norm of at most three)."""
    encoder = Given()
    encoder.head_max_norm = 3.0
    head = LabelSet(encoder, target)
    torch.nn.init.constant_(head.output.weight, 9.0)
    head.constrain(SimpleNamespace(head_max_norm=3.0))
    assert head.output.weight.norm(dim=1).tolist() == pytest.approx([3.0] * 3)


class Lengths(TextEncoder):
    """Says what is said of a text by its own last layer: numbers that are probabilities already."""

    def __init__(self, width: int = 2, classes: int = 3):
        super().__init__()

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        return text

    def set_losses(self, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return (outputs - labels).abs().sum(1)

    def set_probabilities(self, outputs: torch.Tensor) -> torch.Tensor:
        return outputs


def test_an_encoder_with_a_last_layer_of_its_own_has_its_own_loss_and_probabilities(target):
    """A capsule's length is no logit: its sigmoid would say every label."""
    assert Lengths.output_form() == "label scores"
    head = problem("multilabel").head(Lengths(), target)
    outputs, gold = torch.tensor([[0.9, 0.2, 0.4], [0.1, 0.6, 0.0]]), torch.tensor([[1.0, 0, 1], [0, 0, 0]])
    encoder = Lengths()
    assert head.row_losses(encoder, outputs, gold).tolist() == pytest.approx([0.9, 0.7])
    assert head.loss(encoder, outputs, gold).item() == pytest.approx(0.8)
    assert head.decode(encoder, outputs, None, None)[0] == pytest.approx({"corn": 0.9, "wheat": 0.4, "gold": 0.2})
    assert head.answers(encoder, outputs, None, None)[1]["probabilities"]["gold"] == pytest.approx(0.6)


def test_whoever_scores_classes_alone_learns_no_sets():
    """Its loss knows one label a text."""
    capsules = registry.load(registry.entry("architectures", "capsule_b"))
    assert capsules.output_form() == "class scores" and not capsules.can_answer("multilabel")
