"""TANDA: a transfer to a large set of candidate answers, then a small step on the target, with one
layer on top through both."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from architectures.pretrained.bert import BERT
from architectures.pretrained.tanda import TANDA
from harness import registry
from harness.problems import problem
from harness.problems.rank import RankTarget
from harness.training.model import Model, build
from harness.views.subwords import SubwordBatch, Subwords
from tests.support.models import small
from tests.support.teaching import kept, view_of

QUESTIONS, SENTENCES = ["who sat", "who sat", "what ran"], ["the cat sat", "a dog ran", "a dog ran on the mat"]
SIZES = {"layers": 1, "hidden": 8, "heads": 2}


@pytest.fixture(scope="module")
def view() -> Subwords:
    return view_of(*QUESTIONS, *SENTENCES)


@pytest.fixture(scope="module")
def pairs(view: Subwords) -> SubwordBatch:
    first, second = view.encode(QUESTIONS), view.encode(SENTENCES)
    return view.collate_pair(first, second, np.arange(3), cut="longer")


def ranker(architecture: type[BERT], view: Subwords) -> Model:
    return small(build, architecture, problem("rank"), SIZES, view, RankTarget(), 0).eval()


def scores(model: Model, pairs: SubwordBatch) -> Tensor:
    return model.head(model.encoder, {"text": pairs})


def adapted(view: Subwords, architecture: type[BERT] = TANDA) -> tuple[Model, Model]:
    """The transferred model, and the one that starts from it."""
    parent, child = ranker(BERT, view), ranker(architecture, view)
    with torch.no_grad():
        for of in parent.parameters():
            of.mul_(1.5)
    for part in (child.encoder, child.head):
        if "weights" in part.takes:
            part.inherit("weights", kept(parent, view), [])
    return parent, child


def test_it_scores_as_what_was_transferred_before_its_first_step(view, pairs):
    """The layer on top goes over with the encoder: the target set is too small to learn it anew."""
    parent, child = adapted(view)
    assert torch.equal(scores(child, pairs), scores(parent, pairs))
    given = parent.state_dict()
    assert all(torch.equal(of, given[name]) for name, of in child.state_dict().items())


def test_berts_own_layer_on_top_begins_anew(view, pairs):
    """Else a reader of classes would start from one of words."""
    parent, child = adapted(view, BERT)
    assert "weights" not in child.head.takes
    assert not torch.allclose(scores(child, pairs), scores(parent, pairs))
    assert torch.equal(child.encoder.table.weight, parent.encoder.table.weight)


def test_a_candidate_learns_by_itself(view, pairs):
    """The cross-entropy of right and wrong of each pair, in values and gradients: a softmax over
    the candidates of a question would be another loss."""
    _, model = adapted(view)
    found = scores(model, pairs).detach().requires_grad_()
    labels = torch.tensor([1, 0, 1])
    loss = model.head.loss(model.encoder, found, (labels, torch.tensor([0, 0, 1])))
    shares = 1 / (1 + torch.exp(-found))
    expected = -(shares[0].log() + (1 - shares[1]).log() + shares[2].log()) / 3
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(torch.autograd.grad(loss, found)[0], (shares - labels).detach() / 3)


def test_two_steps_of_tuning_lie_behind_one_another():
    """BERT on plain text, then on the large set, then here: without the middle it is BERT."""
    entry = registry.entry("architectures", "tanda")
    assert entry.parents == {"weights": "bert@text_mix+squad_sentences"}
    assert [type for type in registry.entries("problems") if TANDA.can_answer(type)] == ["rank"]
    assert TANDA.learns is None, "it is no pre-training itself"
