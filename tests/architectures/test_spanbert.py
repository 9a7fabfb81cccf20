"""SpanBERT: states are those of transformers' BERT, spans of words are masked whole, and their
pieces are told by what stands beside them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from architectures.blocks.objectives.masked_pieces import content
from architectures.blocks.objectives.spans import MaskedSpans, SpanBoundary, span_bounds
from architectures.blocks.objectives.word_spans import in_spans, lengths_by
from architectures.pretrained.spanbert import SpanBERT
from harness.objectives import collected_losses
from harness.views.subwords import SubwordBatch, Subwords
from tests.support.models import small
from tests.support.plain_text import batch, noise_of
from tests.support.published import TABLES, assert_loads, layers, loaded, outputs, saved
from tests.support.same import assert_same

transformers = pytest.importorskip("transformers")

TEXTS = ["the cat sat on the mat and the dog sat on the cat", "a dog ran", "the mat"]
SIZES = {"layers": 2, "hidden": 16, "heads": 4}


@pytest.fixture(scope="module")
def view() -> Subwords:
    made = Subwords(size=60, max_length=24)
    made.fit(TEXTS)
    return made


@pytest.fixture
def spanbert(view: Subwords) -> SpanBERT:
    return small(SpanBERT, view.width, view, **SIZES)


def test_published_weights_are_read(tmp_path):
    """They are those of a BERT, whose pooler is the last layer in front of the classes."""
    config = transformers.BertConfig(
        vocab_size=9,
        hidden_size=8,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=12,
        max_position_embeddings=16,
        initializer_range=0.5,
    )
    torch.manual_seed(0)
    theirs = transformers.BertModel(config)
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "##s", "sat"]
    saved(tmp_path, theirs, pieces)
    assert_loads(SpanBERT, tmp_path, ["the cats", "sat"], ["cat sat the", "cats"])
    ours, _ = loaded(SpanBERT, tmp_path)
    assert torch.equal(ours.pooler[0].weight, theirs.pooler.dense.weight)
    assert SpanBERT.default_parents({"weights": "spanbert@text_mix"}, {"pretrained": "folder"}) == {}


def words(view: Subwords, texts: int, length: int) -> SubwordBatch:
    """Random texts of so many words of one piece."""
    whole = torch.tensor([id for id in range(5, view.width) if not view.continues[id]])
    ids = whole[torch.randint(len(whole), (texts, length), generator=torch.Generator().manual_seed(0))]
    ids[:, 0], ids[:, -1] = view.start, view.separator
    return SubwordBatch(
        ids, torch.ones_like(ids, dtype=torch.bool), torch.zeros_like(ids), torch.full((texts,), length)
    )


def test_states_and_vectors_of_texts_are_those_of_transformers(view, spanbert):
    pieces = view.collate_pair(view.encode(TEXTS), view.encode(TEXTS[::-1]), np.arange(3))
    config = transformers.BertConfig(
        vocab_size=view.width,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=24,
    )
    names = TABLES | layers(2) | {"pooler.dense": "pooler.0"}
    expected = outputs(transformers.BertModel(config), names, spanbert, pieces)
    states = spanbert(pieces)
    assert_same(states[pieces.mask], expected.last_hidden_state[pieces.mask], rtol=1e-4, atol=1e-5)
    assert_same(spanbert.pooled(states), expected.pooler_output, rtol=1e-4, atol=1e-5)


def test_lengths_of_spans_are_geometric_and_cut_at_ten():
    """The paper: p = 0.2, at most ten, and a mean of 3.8 words."""
    numbers = (torch.arange(100_000) + 0.5) / 100_000
    shares = lengths_by(MaskedSpans.law(), numbers).bincount(minlength=11) / 100_000
    expected = [0.2 * 0.8**length / (1 - 0.8**10) for length in range(10)]
    assert shares[0] == 0 and shares[1:].tolist() == pytest.approx(expected, abs=2e-5)
    assert (shares * torch.arange(11)).sum().item() == pytest.approx(3.8, abs=0.01)


def test_a_whole_text_can_be_masked(view):
    """Its every piece and no padding, which would be counted in the place of the last spans."""
    pieces = view.collate(view.encode(TEXTS), np.arange(3))
    for law in (MaskedSpans.law(), torch.tensor([1.0])):  # single words are reached one after another
        found = in_spans(pieces, view, noise_of(pieces), law, 1.0)
        assert torch.equal(found, content(pieces, view)) and not pieces.mask.all()


def test_the_scores_of_pieces_begin_without_a_preference(spanbert):
    assert not SpanBoundary(spanbert).bias.any()


def test_a_share_of_a_text_is_masked_in_runs_of_several_words(view, monkeypatch):
    """The last span is cut where the share is reached: whole, it would mask most of a short
    text."""
    monkeypatch.setattr(MaskedSpans, "share", 1e-9)
    pieces = words(view, 2000, 64)
    one = MaskedSpans.chosen(pieces, view, noise_of(pieces))
    assert (one.sum(1) == 1).all()  # the share is reached with its first word
    monkeypatch.setattr(MaskedSpans, "share", 0.15)
    chosen = MaskedSpans.chosen(pieces, view, noise_of(pieces))
    assert (chosen.sum(1) == round(0.15 * 62)).all()
    starts = chosen[:, 1:] & ~chosen[:, :-1]
    mean = chosen.sum().item() / starts.sum().item()
    assert 2.5 < mean < 4.5  # single pieces would make runs of 1.2, and one span runs of 9


def test_it_learns_from_masked_spans():
    assert SpanBERT.learns is MaskedSpans


def test_bounds_of_spans_by_hand():
    chosen = torch.tensor([[0, 1, 1, 0, 1, 0, 0], [0, 0, 0, 1, 1, 1, 0]]).bool()
    before, behind = span_bounds(chosen)
    assert before[chosen].tolist() == [0, 0, 3, 2, 2, 2]
    assert behind[chosen].tolist() == [3, 3, 5, 6, 6, 6]


def test_a_span_is_read_in_one_way(view):
    """80 % of the spans are masks, 10 % random pieces, 10 % as they are; decided piece by piece,
    the model would see half of most spans."""
    pieces = words(view, 3000, 24)
    chosen = torch.zeros_like(pieces.mask)
    chosen[:, 4:12] = True
    read = MaskedSpans.hidden(pieces.ids, chosen, view, noise_of(pieces))
    assert torch.equal(read[~chosen], pieces.ids[~chosen])
    span, own = read[:, 4:12], pieces.ids[:, 4:12]
    masks, kept = (span == view.mask).sum(1), (span == own).all(1)
    all_masks = masks == 8
    assert ((masks <= 2) | all_masks).all()  # a random piece may be the mask
    for share, wanted in ((all_masks, 0.8), (kept, 0.1)):
        assert abs(share.double().mean().item() - wanted) < 4 * (wanted * (1 - wanted) / 3000) ** 0.5


def by_hand(
    boundary: SpanBoundary, encoder: SpanBERT, before: Tensor, behind: Tensor, place: int, piece: int
) -> Tensor:
    """The log-probability of one piece by the equations."""
    weights = dict(boundary.named_parameters())
    x = torch.cat([before, behind, weights["places.weight"][place]])
    for linear, norm in ((0, 2), (3, 5)):
        x = weights[f"layers.{linear}.weight"] @ x + weights[f"layers.{linear}.bias"]
        x = x * (1 + torch.erf(x / 2**0.5)) / 2
        x = (x - x.mean()) / (x.var(unbiased=False) + 1e-12).sqrt()
        x = x * weights[f"layers.{norm}.weight"] + weights[f"layers.{norm}.bias"]
    return (encoder.table.weight @ x + weights["bias"]).log_softmax(0)[piece]


def test_pieces_of_a_span_are_told_by_the_states_beside_it_and_the_place(view, spanbert):
    boundary = small(SpanBoundary, spanbert)
    states = torch.randn(2, 8, 16, requires_grad=True)
    ids = torch.randint(view.width, (2, 8))
    chosen = torch.tensor([[0, 0, 1, 1, 1, 0, 0, 0], [0, 1, 0, 0, 0, 0, 1, 0]]).bool()
    found = boundary(spanbert, states, chosen, ids)
    asked = [(0, 2, 1, 5, 0), (0, 3, 1, 5, 1), (0, 4, 1, 5, 2), (1, 1, 0, 2, 0), (1, 6, 5, 7, 0)]
    expected = [
        by_hand(boundary, spanbert, states[row, before], states[row, behind], place, ids[row, at].item())
        for row, at, before, behind, place in asked
    ]
    assert_same(found, torch.stack(expected), rtol=1e-4, atol=1e-4)
    read = torch.autograd.grad(found.sum(), states)[0].abs().sum(-1) > 0
    assert read.int().tolist() == [[0, 1, 0, 0, 0, 1, 0, 0], [1, 0, 1, 0, 0, 1, 0, 1]]


def test_both_losses_are_of_the_chosen_pieces_and_the_second_of_training_alone(view, spanbert, monkeypatch):
    learns = small(MaskedSpans, spanbert)
    pieces = batch(view, *TEXTS)
    read: list[SubwordBatch] = []
    spanbert.register_forward_hook(lambda module, inputs, output: read.append(inputs[0]))
    with collected_losses() as terms:
        logs, texts = learns.train()(spanbert, pieces, noise_of(pieces, 3))
    chosen = learns.chosen(pieces, view, noise_of(pieces, 3))
    states = spanbert(read[0])
    expected = learns.boundary(spanbert, states, chosen, pieces.ids)
    assert_same(terms["boundary"], -expected.mean(), rtol=1e-4, atol=1e-5)
    scores = F.linear(learns.scores.transform(states[chosen]), spanbert.table.weight, learns.scores.bias)
    own = scores.log_softmax(-1).gather(1, pieces.ids[chosen][:, None])[:, 0]
    assert_same(logs, own, rtol=1e-4, atol=1e-5)
    assert texts.tolist() == chosen.nonzero()[:, 0].tolist()
    with collected_losses() as terms:
        learns.eval()(spanbert, pieces, noise_of(pieces))
    assert not terms
    assert not read[0].segments.any()  # single segments
