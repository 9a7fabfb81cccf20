"""ALBERT: states are those of transformers' model, words are masked in n-grams, and two segments of
a text are put in order."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tokenizers.models import WordPiece
from torch import Tensor

from architectures.blocks.objectives.sentence_order import SentenceOrder, segment_ends, segments
from architectures.blocks.objectives.word_spans import beginnings, in_spans, lengths_by
from architectures.pretrained.albert import ALBERT
from harness.layers.noise import Noise
from harness.objectives import collected_losses
from harness.ragged import Ragged
from harness.views.subwords import SPECIAL, SubwordBatch, Subwords, _tokenizer
from tests.support.models import small
from tests.support.plain_text import batch, noise_of
from tests.support.published import TABLES, assert_loads, loaded, outputs, saved
from tests.support.same import assert_same

transformers = pytest.importorskip("transformers")

TEXTS = ["the cats sat. the dog ran! a mat", "dogs ran", "mat"]
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "##s", "sat", "a", "mat", "dog", "ran", ".", "!"]
SIZES = {"layers": 3, "hidden": 16, "heads": 4, "embedded": 8}
LAYER = {
    "attention.query": "attention.query",
    "attention.key": "attention.key",
    "attention.value": "attention.value",
    "attention.dense": "attention.output",
    "attention.LayerNorm": "norms.0",
    "ffn": "feedforward.0",
    "ffn_output": "feedforward.3",
    "full_layer_layer_norm": "norms.1",
}
NAMES = TABLES | {"encoder.embedding_hidden_mapping_in": "projection", "pooler": "pooler.0"}
NAMES |= {
    f"encoder.albert_layer_groups.0.albert_layers.0.{theirs}": f"body.layers.0.{ours}" for theirs, ours in LAYER.items()
}


def published(folder: Path, **settings: Any) -> Any:
    """A tiny ALBERT with random weights in a folder."""
    sizes = {"embedding_size": 6, "hidden_size": 8, "num_hidden_layers": 3, "num_attention_heads": 2}
    sizes |= {"intermediate_size": 12, "max_position_embeddings": 16, "initializer_range": 0.5}
    torch.manual_seed(0)
    theirs = transformers.AlbertModel(transformers.AlbertConfig(vocab_size=len(PIECES), **sizes | settings))
    saved(folder, theirs, PIECES)
    return theirs


def test_published_weights_are_read(tmp_path):
    """One layer, which all three share, the matrix below it, and the layer of the vector."""
    theirs = published(tmp_path)
    assert_loads(ALBERT, tmp_path, ["the cats", "sat"], ["cat sat the", "cats"])
    ours, _ = loaded(ALBERT, tmp_path)
    assert len(ours.body.stack()) == 3
    assert torch.equal(ours.pooler[0].weight, theirs.pooler.weight)


@pytest.mark.parametrize(("name", "value"), [("hidden_act", "gelu"), ("num_hidden_groups", 2), ("inner_group_num", 2)])
def test_a_model_whose_layers_differ_is_refused(tmp_path, name, value):
    """Our body has one layer with the form of GELU of the authors' program."""
    published(tmp_path, **{name: value})
    with pytest.raises(ValueError, match=f"{name} is {value!r} in its config.json, expected"):
        loaded(ALBERT, tmp_path)


@pytest.fixture
def view() -> Subwords:
    """A view whose pieces are :data:`PIECES`."""

    made = Subwords(max_length=24)
    vocabulary = {piece: number for number, piece in enumerate(PIECES)}
    made._set(_tokenizer(WordPiece(vocab=vocabulary, unk_token="[UNK]"), True), SPECIAL)
    return made


@pytest.fixture
def albert(view: Subwords) -> ALBERT:
    return small(ALBERT, view.width, view, **SIZES)


def named(ids: Tensor) -> str:
    return " ".join(PIECES[number] for number in ids.tolist())


# --- the encoder ---


def test_states_and_vectors_of_texts_are_those_of_transformers(view, albert):
    pieces = view.collate_pair(view.encode(TEXTS), view.encode(TEXTS[::-1]), np.arange(3))
    config = transformers.AlbertConfig(
        vocab_size=view.width,
        embedding_size=8,
        hidden_size=16,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=24,
    )
    expected = outputs(transformers.AlbertModel(config), NAMES, albert, pieces)
    states = albert(pieces)
    assert_same(states[pieces.mask], expected.last_hidden_state[pieces.mask], rtol=1e-4, atol=1e-5)
    assert_same(albert.pooled(states), expected.pooler_output, rtol=1e-4, atol=1e-5)


def test_the_number_of_parameters_does_not_depend_on_the_depth(view):
    """A deeper one costs time, and no memory: the paper's first point."""

    def count(layers: int) -> int:
        return sum(p.numel() for p in ALBERT(view.width, view, **(SIZES | {"layers": layers})).parameters())

    assert count(1) == count(2) == count(12)
    two, three = (small(ALBERT, view.width, view, **(SIZES | {"layers": layers})) for layers in (2, 3))
    pieces = batch(view, *TEXTS)
    assert not torch.allclose(two(pieces), three(pieces), atol=1e-3)


# --- n-grams ---


def test_words_begin_at_pieces_that_continue_none(view):
    pieces = batch(view, "the cats sat.")
    assert named(pieces.ids[0]) == "[CLS] the cat ##s sat . [SEP]"
    assert beginnings(pieces, view).int().tolist() == [[0, 1, 1, 0, 1, 1, 0]]
    within = pieces._replace(ids=pieces.ids.clone())
    within.ids[0, 1] = PIECES.index("##s")  # a stretch may begin inside a word
    assert beginnings(within, view).int().tolist() == [[0, 1, 1, 0, 1, 1, 0]]


def test_an_n_gram_of_n_words_has_a_probability_of_one_over_n(monkeypatch):
    """By hand: 6/11, 3/11 and 2/11."""
    numbers = torch.arange(0, 1, 1 / 1100) + 0.5 / 1100
    laws: list[Tensor] = []
    monkeypatch.setattr("architectures.blocks.objectives.sentence_order.in_spans", lambda *given: laws.append(given[3]))
    SentenceOrder.chosen(None, None, None)
    assert lengths_by(laws[0], numbers).bincount().tolist() == [0, 600, 300, 200]


def test_words_are_masked_whole_in_spans_of_the_drawn_lengths(view):
    """By hand: every span has two words, and the share is that of two pieces of ten. Where the
    first span has them both, nothing else is masked."""
    law = torch.tensor([0.0, 1.0])
    ids = torch.tensor([[2, *([5, 8, 9, 10, 11, 12, 13, 14, 5, 8]), 3]]).expand(500, -1)
    pieces = SubwordBatch(ids, torch.ones_like(ids, dtype=torch.bool), torch.zeros_like(ids), torch.full((500,), 12))
    noise = Noise(ids + 100 * torch.arange(500)[:, None], pieces.mask)
    found = in_spans(pieces, view, noise, law, 0.2)[:, 1:-1]
    assert (found.sum(1) == 2).all()
    places = [tuple(row.nonzero()[:, 0].tolist()) for row in found]
    alone = [(a, b) for a, b in places if b != a + 1]
    assert {(a, a + 1) for a in range(9)} <= set(places)
    assert all(9 in pair for pair in alone)  # a span that begins at the last word ends there
    ids = ids.clone()
    ids[:, 2] = view.separator
    divided = in_spans(pieces._replace(ids=ids), view, noise, law, 0.2)[:, 1:-1]
    beside = {tuple(row.nonzero()[:, 0].tolist())[1] for row in divided if row[0]}
    assert len(beside) > 4  # the first word is a text, and does not take the one behind the separator with it


def test_words_of_several_pieces_are_masked_whole_and_spans_stay_in_their_text(view):
    generator = torch.Generator().manual_seed(0)
    words = [[5], [6, 7], [6, 7, 7], [8], [3]]
    chosen = torch.randint(5, (300, 18), generator=generator)
    texts = [[piece for number in row.tolist() for piece in words[number]] for row in chosen]
    ids = torch.full((300, max(map(len, texts)) + 2), view.pad)
    for row, text in zip(ids, texts, strict=True):
        row[: len(text) + 2] = torch.tensor([2, *text, 3])
    mask = ids != view.pad
    pieces = SubwordBatch(ids, mask, torch.zeros_like(ids), mask.sum(1))
    found = in_spans(pieces, view, noise_of(pieces), torch.tensor([0.2, 0.8]), 0.15)
    assert not found[(ids == 3) | (ids == 2) | ~mask].any()
    goes_on = ids[:, 1:] == 7
    assert torch.equal(found[:, 1:][goes_on], found[:, :-1][goes_on])
    content = ((ids != 2) & (ids != 3) & mask).sum(1)
    wanted, count = (0.15 * content).round().clamp(min=1), found.sum(1)
    assert (count >= wanted).all() and (count <= wanted + 2).all()  # a word has three pieces at most


# --- the order of segments ---


def test_segments_end_with_sentences_or_words(view):
    pieces = batch(view, "the cats sat. the dog ran! a mat", "the cats ran", "cats", "mat.")
    ends = segment_ends(pieces, view)
    found = [named(row[places]) for row, places in zip(pieces.ids, ends, strict=True)]
    assert found == [". !", "the ##s", "", "mat"]


def test_two_segments_stand_in_their_order_or_in_the_other_by_hand(view):
    pieces = batch(view, "the cats sat. the dog ran", "mat")
    straight, turned = "the cat ##s sat .", "the dog ran"
    expected = {
        False: f"[CLS] {straight} [SEP] {turned} [SEP]",
        True: f"[CLS] {turned} [SEP] {straight} [SEP]",
    }
    marks = {False: [0] * 7 + [1] * 4, True: [0] * 5 + [1] * 6}
    seen = set()
    for key in range(20):
        order = segments(pieces, view, noise_of(pieces, key))
        read = order.read(pieces.ids, view.pad)
        swapped = bool(order.swapped[0])
        seen.add(swapped)
        assert named(read.ids[0]) == expected[swapped]
        assert read.segments[0].tolist() == marks[swapped] and read.mask[0].all()
        assert order.two.tolist() == [True, False] and not order.swapped[1]
        assert named(read.ids[1][read.mask[1]]) == "[CLS] mat [SEP]" and read.lengths.tolist() == [11, 3]
        assert not read.segments[1].any()
    assert seen == {False, True}


def test_a_text_that_was_cut_is_not_asked_for_its_order(view):
    """The cut would tell: no sentence ends behind the last piece of a sequence that is full, or the
    first piece goes on with a word."""
    room = view.max_length - 2
    for text, pieces, asked in (
        ("closed", ["the", "."] * (room // 2), True),
        ("cut behind", ["the", "."] * (room // 2 - 1) + ["the", "cat"], False),
        ("cut in front", ["##s", "."] + ["the", "."] * (room // 2 - 1), False),
        ("short", ["the", ".", "the", "cat"], True),
    ):
        ids = np.array([[view.tokenizer.token_to_id(piece) for piece in pieces]])
        read = view.collate({"ids": Ragged.of(ids.tolist())}, np.arange(1))
        noise = Noise(read.ids, read.mask, (0, 1))
        assert bool(segments(read, view, noise).two) is asked, text


def test_segments_are_swapped_half_of_the_time(view):
    pieces = batch(view, *["the cats sat. the dog ran"] * 1000)
    ids = pieces.ids + 100 * torch.arange(1000)[:, None]
    swapped = segments(pieces, view, Noise(ids, pieces.mask)).swapped
    assert abs(swapped.double().mean().item() - 0.5) < 4 * 0.5 / 1000**0.5


def test_a_text_keeps_its_own_pieces_and_nobody_elses(view):
    """The paper swaps segments of one document; those of two would be told by their topics."""
    pieces = batch(view, *TEXTS)
    read = segments(pieces, view, noise_of(pieces, 1)).read(pieces.ids, view.pad)
    for row in range(3):
        own = pieces.ids[row][pieces.mask[row]].tolist()
        extra = [view.separator] * (len(read.ids[row][read.mask[row]]) - len(own))
        assert sorted(read.ids[row][read.mask[row]].tolist()) == sorted(own + extra)


def test_a_text_that_fills_the_sequence_loses_the_last_separator_alone(view):
    view.max_length = 9
    pieces = batch(view, "the cats sat. the dog ran")
    assert pieces.ids.shape[1] == 9 and pieces.mask.all()
    read = segments(pieces, view, noise_of(pieces)).read(pieces.ids, view.pad)
    assert read.ids.shape == (1, 9) and (read.ids == view.separator).sum() == 1
    assert sorted(read.ids[0].tolist()) == sorted(pieces.ids[0].tolist())


def test_masked_pieces_move_with_their_segment_and_the_order_is_told_by_the_vector(view, albert, monkeypatch):
    """The losses again, from the sequences that the encoder read: one with the right words at
    wrong places would teach nonsense."""
    learns = small(SentenceOrder, albert)
    pieces = batch(view, *TEXTS)
    read: list[SubwordBatch] = []
    albert.register_forward_hook(lambda module, inputs, output: read.append(inputs[0]))
    hidden = functools.partial(torch.full_like, fill_value=view.mask)
    monkeypatch.setattr(
        SentenceOrder, "hidden", staticmethod(lambda ids, chosen, view, noise: torch.where(chosen, hidden(ids), ids))
    )
    with collected_losses() as terms:
        logs, texts = learns(albert, pieces, noise_of(pieces, 5))
    order_noise = noise_of(pieces, 5)
    learns.chosen(pieces, view, order_noise)
    order = segments(pieces, view, order_noise)
    whole = order.read(pieces.ids, view.pad)
    asked = read[0].ids == view.mask
    assert torch.equal(torch.where(asked, whole.ids, read[0].ids), whole.ids)
    states = albert(read[0])
    assert_same(logs, learns.scores(albert, states[asked], whole.ids[asked]), rtol=1e-4, atol=1e-5)
    assert texts.tolist() == asked.nonzero()[:, 0].tolist() and set(texts.tolist()) == {0, 1, 2}
    scores = learns.order(albert.pooler(states[:, 0]))[:2, 0]  # the third text has one word
    expected = F.binary_cross_entropy_with_logits(scores, order.swapped[:2].float())
    assert_same(terms["order"], expected, rtol=1e-4, atol=1e-5)


def test_the_floor_asks_the_same_pieces(view, albert):
    rows = [{"text": text} for text in TEXTS]
    pieces = batch(view, *TEXTS)
    _, texts = small(SentenceOrder, albert)(albert, pieces, noise_of(pieces))
    assert [count for _, count in SentenceOrder.floor(view, rows, rows)] == texts.bincount(minlength=3).tolist()
    assert not SentenceOrder.packs and SentenceOrder.unit != SentenceOrder.__base__.unit
