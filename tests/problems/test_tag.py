"""Tagging: losses by softmax and by CRF against sums over all taggings, floors by hand, and F1 of
each type."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from harness.problems import problem
from harness.problems.base import IGNORED
from harness.problems.tag import Tag, TagTarget

MASK = torch.tensor([[True] * 3, [True, False, False]])
GOLD = torch.tensor([[0, IGNORED, 1, IGNORED], [1, IGNORED, IGNORED, IGNORED]])
"""Training never showed the second label; the first sentence is longer than what is read of it."""


def tagger(decoder: str) -> tuple[SimpleNamespace, Tag]:
    encoder = SimpleNamespace(size=2, decoder=decoder, scheme=None)
    target = TagTarget()
    target.labels = ["A", "B"]
    head = Tag(encoder, target)
    for parameter in head.parameters():
        nn.init.normal_(parameter, generator=torch.Generator().manual_seed(0))
    return encoder, head


@pytest.mark.parametrize("training", [True, False])
def test_by_softmax_a_sentence_costs_what_its_known_labels_cost(training):
    """The mean is one over words: long sentences count more."""
    encoder, head = tagger("softmax")
    head.train(training)
    emissions = torch.randn(2, 3, 2)
    logs = emissions.log_softmax(-1)
    words = -torch.stack([logs[0, 0, 0], logs[0, 2, 1], logs[1, 0, 1]])
    rows = head.row_losses(encoder, (emissions, MASK), GOLD)
    torch.testing.assert_close(rows, torch.stack([words[:2].sum(), words[2]]))
    torch.testing.assert_close(head.loss(encoder, (emissions, MASK), GOLD), words.mean())


def test_by_a_crf_a_sentence_costs_its_share_of_all_taggings():
    """A label that training never showed is read as the first one: a chain has no gaps."""
    encoder, head = tagger("crf")
    emissions, crf = torch.randn(2, 3, 2), head.crf

    def score(row: int, tags: tuple[int, ...]) -> torch.Tensor:
        steps = [crf.transitions[before, after] for before, after in itertools.pairwise(tags)]
        own = [emissions[row, place, tag] for place, tag in enumerate(tags)]
        return sum([*steps, *own, crf.start[tags[0]], crf.end[tags[-1]]])

    expected = []
    for row, gold in enumerate([(0, 0, 1), (1,)]):
        scores = [score(row, tags) for tags in itertools.product(range(2), repeat=len(gold))]
        expected.append(torch.stack(scores).logsumexp(0) - score(row, gold))
    rows = head.row_losses(encoder, (emissions, MASK), GOLD)
    torch.testing.assert_close(rows, torch.stack(expected))
    torch.testing.assert_close(head.loss(encoder, (emissions, MASK), GOLD[:, :3]), rows.mean())


def test_the_state_of_each_word_is_dropped_before_the_layer():
    class Ones(nn.Module):
        size = 2

        def forward(self, vectors, mask):
            return torch.ones(2, 3, 2)

    target = TagTarget()
    target.labels = ["A", "B"]
    head = Tag(Ones(), target)
    head.dropout = 1.0
    words = SimpleNamespace(vectors=None, mask=MASK)
    assert torch.equal(head(Ones(), {"text": words})[0], head.output.bias.expand(2, 3, 2))


TRAIN = [
    {"text": ["Ann", "saw", "Bonn"], "tags": ["B-PER", "O", "B-LOC"]},
    {"text": ["Bonn", "saw", "Ann"], "tags": ["B-LOC", "O", "O"]},
    {"text": ["Ann"], "tags": ["B-PER"]},
    {"text": ["Ann", "ran"], "tags": ["B-PER", "O"]},
]


def test_the_floors_by_hand():
    """Ann is a person three times of four; of all words most are outside."""
    floors = problem("tag").floors(TRAIN, [{"text": ["Ann", "met", "Bonn"]}, {"text": ["saw"]}])
    assert floors["commonest tag of each word"] == [["B-PER", "O", "B-LOC"], ["O"]]
    assert floors["majority"] == [["O", "O", "O"], ["O"]]


def test_each_type_of_span_has_its_f1_in_the_order_of_the_alphabet():
    """Of two persons one is found, of three found ones one is right; the only place is missed."""
    rows = [{"tags": ["B-PER", "O", "B-PER", "O", "B-LOC"]}]
    predictions = [["B-PER", "O", "O", "B-PER", "B-PER"]]
    asked = problem("tag")
    assert asked.slices("span_f1", predictions, rows) == {
        "entity type": [("LOC", 1, 0.0), ("PER", 2, pytest.approx(2 * 1 / (3 + 2)))]
    }
    assert asked.slices("accuracy", predictions, rows) == {}


def test_types_are_shown_in_one_order_whatever_the_order_of_a_set():
    """A set of texts has another order in each process: pages would differ from build to build."""
    types = "hgfedcba"
    rows = [{"tags": [f"B-{type}" for type in types]}]
    found = problem("tag").slices("span_f1", [["O"] * len(types)], rows)
    assert [type for type, *_ in found["entity type"]] == sorted(types)
