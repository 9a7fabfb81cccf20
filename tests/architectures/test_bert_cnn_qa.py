"""BERT with convolutions: what each width sees around a piece stands beside BERT's state of it, and
without filters it is BERT."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from architectures.pretrained.bert import BERT
from architectures.pretrained.bert_cnn_qa import BERTWithConvolutions
from harness import registry
from harness.problems import problem
from harness.problems.extract import SpanTarget
from harness.training.model import Model, build
from harness.views.subwords import Subwords
from tests.support.batches import POISON
from tests.support.models import small
from tests.support.plain_text import batch
from tests.support.same import assert_same
from tests.support.teaching import kept, view_of

TEXTS = ["the cat sat on the mat", "a dog", "the mat and the dog ran"]
SIZES = {"layers": 1, "hidden": 8, "heads": 2}
FILTERS = 3


@pytest.fixture(scope="module")
def view() -> Subwords:
    return view_of(*TEXTS)


def target() -> SpanTarget:
    found = SpanTarget()
    found.unanswerable = True
    return found


def model_of(view: Subwords, cls: Any = BERTWithConvolutions, **sizes: Any) -> Model:
    return small(build, cls, problem("extract"), SIZES | sizes, view, target(), 0)


def seen(convolution: Any, states: list[Tensor], place: int) -> Tensor:
    """What the filters see around one of the states of a text; nothing stands beyond its ends."""
    width = convolution.kernel_size[0]
    total = convolution.bias
    for step in range(width):
        other = place + step - width // 2
        if 0 <= other < len(states):
            total = total + convolution.weight[:, :, step] @ states[other]
    return total.clamp(min=0)


def test_maps_stand_beside_the_states_of_each_piece_alone(view):
    """In values and gradients, each text alone: padding in a window, a map at another piece, a
    width that is missing."""
    encoder = model_of(view, filters=FILTERS).encoder
    assert [each.kernel_size[0] for each in encoder.convolutions] == [1, 3, 5]
    pieces = batch(view, *TEXTS)
    found, states = encoder(pieces), BERT.forward(encoder, pieces)
    for row, length in enumerate(pieces.lengths.tolist()):
        own = list(states[row, :length])
        for place in range(length):
            maps = [seen(each, own, place) for each in encoder.convolutions]
            assert_same(found[row, place], torch.cat([own[place], *maps]), rtol=1e-4, atol=1e-5)


def test_states_at_padding_are_seen_by_no_window(view, monkeypatch):
    encoder = model_of(view, filters=FILTERS).encoder
    pieces = batch(view, *TEXTS)
    expected = encoder(pieces)
    forward = BERT.forward

    def poisoned(self: Any, given: Any, *others: Any) -> Tensor:
        return forward(self, given, *others).masked_fill(~given.mask[..., None], POISON)

    monkeypatch.setattr(BERT, "forward", poisoned)
    torch.testing.assert_close(encoder(pieces)[pieces.mask], expected[pieces.mask])


def test_without_filters_it_is_bert(view):
    """The same span and no-answer scores from the same weights."""
    ours, bert = model_of(view, filters=FILTERS), model_of(view, cls=BERT)
    ours.encoder.inherit("weights", kept(bert, view), [])
    with torch.no_grad():
        for convolution in ours.encoder.convolutions:
            convolution.weight.zero_()
            convolution.bias.zero_()
        ours.head.output.weight[:, :8] = bert.head.output.weight
        ours.head.output.bias.copy_(bert.head.output.bias)
    questions = view.collate_pair(view.encode(TEXTS[:2]), view.encode(TEXTS[1:]), torch.arange(2).numpy(), "second")
    found, wanted = ours({"text": questions}).scores, bert({"text": questions}).scores
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


def test_it_begins_with_bert_and_its_convolutions_with_themselves(view):
    parent, child = model_of(view, cls=BERT), model_of(view, filters=FILTERS).encoder
    before = {name: of.clone() for name, of in child.state_dict().items()}
    child.inherit("weights", kept(parent, view), [])
    given = parent.encoder.state_dict()
    for name, own in child.state_dict().items():
        assert torch.equal(own, before[name] if name.startswith("convolutions") else given[name]), name
    assert {name for name in given if name not in before} == {"pooler.0.weight", "pooler.0.bias"}


def test_it_is_for_spans_and_has_odd_widths():
    assert [type for type in registry.entries("problems") if BERTWithConvolutions.can_answer(type)] == ["extract"]
    assert registry.entry("architectures", "bert_cnn_qa").parents == {"weights": "bert@text_mix"}
    with pytest.raises(ValueError, match=r"widths=\[1, 4\]: 4 has no middle"):
        BERTWithConvolutions(20, Subwords(max_length=8), widths=(1, 4))
