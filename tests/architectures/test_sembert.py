"""The mechanism of SemBERT: pieces make words, labels of a kept tagger stand beside them, and the
maximum over words is read; word by word, in values and gradients."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from architectures.pretrained.bert import BERT
from architectures.pretrained.sembert import LabelledPieces, LabelledSubwords, SemBERT
from harness import registry
from harness.problems import problem
from harness.problems.classify import ClassTarget
from harness.running.worker import run_cell
from harness.saved_models import storage
from harness.saved_models.model import load
from harness.training.model import Model, build
from tests.support.known_dropout import Uneven, as_is, uneven
from tests.support.models import small
from tests.support.oracles import gru, recurrent
from tests.support.same import assert_same
from tests.support.sessions import session
from tests.support.teaching import kept

FIRST, SECOND = ["the cats sat", "who"], ["cat", "who sat on the cats"]
SIZES = {"layers": 1, "hidden": 8, "heads": 2}


def classes(*labels: str) -> ClassTarget:
    target = ClassTarget()
    target.fit([{"label": label} for label in labels])
    return target


class Lengths:
    """A tagger whose tag is the number of letters of a word, three at most."""

    target = SimpleNamespace(labels=["one", "two", "three"])

    def answers(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{"prediction": [self.target.labels[min(len(word), 3) - 1] for word in row["text"]]} for row in rows]


def fitted(tagger: Any = None) -> LabelledSubwords:
    """A view whose words are cut into letters, nearly."""
    view = LabelledSubwords(size=24, max_length=40)
    view.tagger = tagger
    view.fit([*FIRST, *SECOND])
    return view


def pairs(view: LabelledSubwords) -> LabelledPieces:
    return view.collate_pair(view.encode(FIRST), view.encode(SECOND), np.arange(2))


@pytest.fixture
def model() -> SemBERT:
    view = fitted(Lengths())
    return small(build, SemBERT, problem("match"), SIZES, view, classes("a", "b"), 0).encoder.eval()


# --- reading ---


def test_each_piece_knows_its_word_and_the_label_of_that():
    """In one text and in two; [CLS], [SEP] and padding have no label, and each mark is a word."""
    view = fitted(Lengths())
    batch = pairs(view)
    for row, (first, second) in enumerate(zip(FIRST, SECOND, strict=True)):
        words = ["[CLS]", *first.split(), "[SEP]", *second.split(), "[SEP]"]
        tags = [0 if word in view.special else min(len(word), 3) for word in words]
        pieces = [[word] if word in view.special else view.tokenizer.encode(word).tokens for word in words]
        length = sum(map(len, pieces))
        assert batch.lengths[row] == length and length > len(words), "some word has several pieces"
        told = [n for n, own in enumerate(pieces) for _ in own]
        assert batch.words[row, :length].tolist() == told
        assert batch.labels[row, :length].tolist() == [tags[n] for n in told]
        read = [view.tokenizer.id_to_token(each) for each in batch.ids[row, :length].tolist()]
        assert read == [piece for own in pieces for piece in own]
    alone = view.collate(view.encode(FIRST), np.array([1]))
    assert alone.labels[0, [0, -1]].tolist() == [0, 0] and set(alone.labels[0, 1:-1].tolist()) == {3}


def test_without_a_tagger_no_word_has_a_label():
    batch = pairs(fitted())
    assert not batch.labels.any() and batch.words.max() > 3


def test_the_tagger_is_taken_in_its_role_and_pieces_in_the_other():
    view = SemBERT.inherited_view(LabelledSubwords(), "tags", tagger := Lengths())
    assert view.tagger is tagger and view.learnt is None
    assert registry.entry("architectures", "sembert").parents == {
        "weights": "bert@text_mix",
        "tags": "bilstm_crf@conll2003_pos",
    }


# --- words ---


def written_out(
    model: SemBERT, states: Tensor, pieces: list[tuple[int, int]], dropped: Callable[[Tensor], Tensor]
) -> Tensor:
    """The vector of one sequence, from the states of its pieces and the word and label of each."""
    layer, words, labels = model.word, [], []
    for number in range(pieces[-1][0] + 1):
        own = [states[place] for place, (word, _) in enumerate(pieces) if word == number]
        labels.append(next(label for word, label in pieces if word == number))
        nothing = torch.zeros_like(own[0])
        read = [nothing, *own, nothing]
        maps = [
            sum(layer.weight[:, :, k] @ read[place + k] for k in range(3)) + layer.bias for place in range(len(own))
        ]
        words.append(dropped(torch.stack(maps).clamp(min=0).amax(0)))
    context = recurrent(model.context, [model.labels.weight[label] for label in labels], gru)
    roles = [model.role.weight @ state + model.role.bias for state in context]
    joined = torch.stack([torch.cat(both) for both in zip(words, roles, strict=True)])
    return dropped(torch.tanh(model.joined.weight @ joined.amax(0) + model.joined.bias))


@pytest.mark.parametrize("dropped", [as_is, uneven])
def test_a_sequence_is_the_maximum_over_its_labelled_words(model, monkeypatch, dropped):
    """Written out: a convolution across words, padding in a maximum, labels of other words or the
    vector of [CLS] would give other values or gradients; so would dropout in other places than
    behind the maximum over a word's windows and behind tanh."""
    if dropped is uneven:
        model.dropout = Uneven()
    batch = pairs(fitted(Lengths()))
    states = torch.randn(*batch.ids.shape, 8).masked_fill(~batch.mask[..., None], 50.0).requires_grad_()
    monkeypatch.setattr(BERT, "forward", lambda self, pieces: states)
    expected = []
    for row, length in enumerate(batch.lengths.tolist()):
        told = list(zip(batch.words[row, :length].tolist(), batch.labels[row, :length].tolist(), strict=True))
        expected.append(written_out(model, states[row, :length], told, dropped))
    assert_same(model.vector(batch), torch.stack(expected), rtol=1e-4, atol=1e-5)


def test_a_label_changes_the_vector(model):
    batch = pairs(fitted(Lengths()))
    other = batch._replace(labels=torch.where(batch.labels == 3, 2, batch.labels))
    assert not torch.isclose(model.vector(batch), model.vector(other)).all(1).any()


def test_a_tagger_of_more_labels_than_there_is_room_for_is_told():
    """Three labels and none: four vectors are enough, and with three a text would be read beyond
    the table."""
    view, target = fitted(Lengths()), classes("a", "b")
    build(SemBERT, problem("match"), SIZES | {"most_labels": 4}, view, target, 0)
    with pytest.raises(ValueError, match="most_labels=3, and the tagger has 3 labels; .* expected is 4 at least"):
        build(SemBERT, problem("match"), SIZES | {"most_labels": 3}, view, target, 0)


def test_it_begins_with_the_weights_of_bert():
    """What BERT lacks begins at random; its pooler is left."""
    view = fitted()
    parent: Model = small(build, BERT, problem("classify"), SIZES, view, classes("a", "b"), 0)
    child = small(build, SemBERT, problem("match"), SIZES, view, classes("a", "b"), 0, stretch=2.0).encoder
    before = {name: value.clone() for name, value in child.state_dict().items()}
    child.inherit("weights", kept(parent, view), [])
    given = parent.encoder.state_dict()
    for name, value in child.state_dict().items():
        assert torch.equal(value, given.get(name, before[name])), name
    assert {*child.state_dict()} - {*given} and {*given} - {*child.state_dict()} == {
        "pooler.0.weight",
        "pooler.0.bias",
    }


def test_it_classifies_texts_and_pairs_alone():
    assert {type for type in registry.entries("problems") if SemBERT.can_answer(type)} == {"classify", "match"}


def test_a_run_trains_both_parents_first_and_a_kept_child_asks_the_tagger(tmp_path: Path):
    sizes = [f"{id}.{name}={value}" for id in ("bert", "sembert") for name, value in SIZES.items()]
    planned = session(
        tmp_path, "sembert", tasks="snli", keep=True, overrides=[*sizes, "*.vocabulary=300", "bilstm_crf.hidden=4"]
    )
    cells = sorted(planned.pending.run, key=lambda cell: bool(cell.parents))
    assert {(cell.architecture, cell.task) for cell in cells[:2]} == {
        ("bert", "text_mix"),
        ("bilstm_crf", "conll2003_pos"),
    }
    records = [run_cell(cell, planned.settings) for cell in cells]
    assert [record.status for record in records] == ["ok"] * 3, [record.error for record in records]
    found = load(storage.place(tmp_path, cells[2].key))
    assert found.view.tagger.description.part.architecture == "bilstm_crf"
    assert len(found.answers([{"id": "0", "first": "a man sleeps", "second": "he is awake"}])) == 1
