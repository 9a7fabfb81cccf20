"""Sentences are divided by the targets that a kept tagger finds, and each sort has a convolutional
network that learns from no other one."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from architectures.hybrid.sentence_type import SentenceType, TargetBatch, Targets
from harness import registry
from harness.running.worker import run_cell
from harness.saved_models import storage
from harness.saved_models.model import load
from tests.support.batches import random_texts
from tests.support.models import small
from tests.support.oracles import convolution
from tests.support.same import assert_same
from tests.support.sessions import session

WIDTH, CLASSES = 4, 3
COUNTS = [0, 1, 3, 2, 0, 1]


class Names:
    """A tagger for which each word in capitals is a name of its own, and "New York" is one."""

    def answers(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{"prediction": [self.tag(word) for word in row["text"]]} for row in rows]

    @staticmethod
    def tag(word: str) -> str:
        return {"New": "B-LOC", "York": "E-LOC"}.get(word, "S-PER" if word[:1].isupper() else "O")


def texts(counts: list[int] = COUNTS) -> TargetBatch:
    words = random_texts([5, 3, 6, 4, 3, 3][: len(counts)], seed=1, width=WIDTH)
    return TargetBatch(*words)._replace(targets=torch.tensor(counts))


@pytest.fixture
def model() -> SentenceType:
    made = small(SentenceType, WIDTH, CLASSES, maps=2, windows=(2, 3), dropout=0.0)
    made.seen.fill_(1)
    return made


def written_out(model: SentenceType, sort: int, vectors: Tensor) -> Tensor:
    """Scores (classes,) of one text (n, width) by the network of a sort."""
    network, output, features = model.networks[sort], model.outputs[sort], []
    for layer, bias in zip(network.convolutions, network.bias, strict=True):
        windows = convolution(layer, vectors, right=max(0, layer.kernel_size[0] - len(vectors)))
        features.append(torch.stack([(window + bias).clamp(min=0) for window in windows]).amax(0))
    return output.weight @ torch.cat(features) + output.bias


def test_each_text_is_scored_by_the_network_of_its_sort(model):
    """Written out, in values and gradients: none, one, and two or more targets."""
    batch = texts()
    sorts = [0, 1, 2, 2, 0, 1]

    def expected(vectors: Tensor) -> Tensor:
        rows = zip(sorts, vectors, batch.lengths.tolist(), strict=True)
        return torch.stack([written_out(model, sort, text[:length]) for sort, text, length in rows])

    assert_same(model(batch), expected(batch.vectors))


@pytest.mark.parametrize(("count", "sort"), [(0, 0), (1, 1), (2, 2), (7, 2)])
def test_a_network_learns_from_its_own_sort_alone(model, count, sort):
    """Else it is one network with three heads."""
    model.train()
    model(texts([count] * 6)).square().sum().backward()
    for other, parts in enumerate(zip(model.networks, model.outputs, strict=True)):
        given = [parameter.grad is not None for part in parts for parameter in part.parameters()]
        assert all(given) if other == sort else not any(given)


def test_a_sort_that_training_lacks_is_answered_by_the_commonest_one(model):
    """Its own network has learnt nothing."""
    model.seen.zero_()
    model.train()
    model(texts([1, 0, 1, 1, 0, 1]))
    assert model.seen.tolist() == [2, 4, 0]
    model.eval()
    assert torch.equal(model.sorts(torch.tensor(COUNTS)), torch.tensor([0, 1, 1, 1, 0, 1]))
    assert model.seen.tolist() == [2, 4, 0], "what is asked is not learnt from"
    assert "seen" in model.state_dict(), "a kept model knows it"


def test_the_spans_that_the_tagger_finds_are_counted():
    """A name of two words is one target; without a tagger, so is a run of words in capitals."""
    view = Targets(min_count=1)
    sentences = ["he saw New York", "Ann met Bob in New York", "nobody", ["Ann", "left"]]
    view.fit(sentences)
    assert view.collate(view.encode(sentences), np.arange(4)).targets.tolist() == [1, 3, 0, 1]
    view.tagger = Names()
    assert view.collate(view.encode(sentences), np.array([3, 1, 0, 2])).targets.tolist() == [1, 3, 1, 0]


def test_the_tagger_is_taken_in_its_role():
    view = SentenceType.inherited_view(Targets(), "tags", tagger := SimpleNamespace())
    assert view.tagger is tagger
    assert registry.entry("architectures", "sentence_type").parents == {"tags": "bilstm_crf@conll2003_ner"}


def test_a_run_trains_the_tagger_first_and_a_kept_child_asks_it(tmp_path: Path):
    """The targets of new texts are predicted, too."""
    small_ones = ("bilstm_crf.hidden=4", "sentence_type.maps=2")
    planned = session(tmp_path, "sentence_type", max_train=200, keep=True, overrides=small_ones)
    parent, child = sorted(planned.pending.run, key=lambda cell: bool(cell.parents))
    assert (parent.architecture, parent.task) == ("bilstm_crf", "conll2003_ner")
    records = [run_cell(cell, planned.settings) for cell in (parent, child)]
    assert [record.status for record in records] == ["ok", "ok"], [record.error for record in records]
    found = load(storage.place(tmp_path, child.key))
    assert found.view.tagger.description.part.architecture == "bilstm_crf"
    assert len(found.answers([{"id": "0", "text": "New York is fine"}])) == 1
