"""UniLM: one body under four masks of attention, whose states are those of transformers' BERT."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from architectures.blocks.objectives.attention_masks import (
    BOTH_SIDES,
    FROM_LEFT,
    FROM_RIGHT,
    FROM_SOURCE,
    SHARES,
    AttentionMasks,
    merged,
    numbered_segments,
    sight,
)
from architectures.pretrained.unilm import UniLM
from harness.objectives import collected_losses
from harness.views.subwords import SubwordBatch, Subwords
from tests.support.models import small
from tests.support.plain_text import batch, log_shares_by_hand, noise_of
from tests.support.published import TABLES, layers
from tests.support.same import assert_same

transformers = pytest.importorskip("transformers")

SIZES = {"layers": 2, "hidden": 12, "heads": 3}
TEXTS = [
    "the cat sat on the mat . the dog sat on the cat and on the mat",
    "a dog ran . the cat sat . a mat",
    "the dog ran on a mat",
    "a cat",
]
WAYS = torch.tensor([BOTH_SIDES, FROM_LEFT, FROM_RIGHT, FROM_SOURCE])


@pytest.fixture(scope="module")
def view() -> Subwords:
    made = Subwords(size=60, max_length=32)
    made.fit(TEXTS)
    return made


def made(view: Subwords, **sizes: Any) -> UniLM:
    return small(UniLM, view.width, view, **SIZES | sizes)


def pairs(view: Subwords) -> SubwordBatch:
    """Four pairs of different lengths."""
    return view.collate_pair(view.encode(TEXTS), view.encode(TEXTS[::-1]), np.arange(4))


# --- the masks ---


def test_the_masks_of_five_places_by_hand():
    """Two places of a first segment and three of a second one."""
    pieces = SubwordBatch(
        torch.zeros(4, 5, dtype=torch.long),
        torch.ones(4, 5, dtype=torch.bool),
        torch.tensor([[0, 0, 1, 1, 1]]).repeat(4, 1),
        torch.full((4,), 5),
    )
    both, left, right, source = sight(WAYS, pieces).long().tolist()
    assert both == [[1, 1, 1, 1, 1]] * 5
    assert left == [[1, 0, 0, 0, 0], [1, 1, 0, 0, 0], [1, 1, 1, 0, 0], [1, 1, 1, 1, 0], [1, 1, 1, 1, 1]]
    assert right == [[1, 1, 1, 1, 1], [0, 1, 1, 1, 1], [0, 0, 1, 1, 1], [0, 0, 0, 1, 1], [0, 0, 0, 0, 1]]
    assert source == [[1, 1, 0, 0, 0], [1, 1, 0, 0, 0], [1, 1, 1, 0, 0], [1, 1, 1, 1, 0], [1, 1, 1, 1, 1]]


def test_no_piece_looks_at_padding(view):
    pieces = pairs(view)
    for way in range(4):
        seen = sight(torch.full((4,), way), pieces)
        assert not (seen & ~pieces.mask[:, None] & pieces.mask[:, :, None]).any()


def test_segments_say_how_a_text_is_read():
    segments = torch.tensor([[0, 0, 1]]).repeat(4, 1)
    segments[1:3] = 0
    assert numbered_segments(WAYS, segments).tolist() == [[0, 0, 1], [2, 2, 2], [3, 3, 3], [4, 4, 5]]


def test_states_and_gradients_under_each_mask_are_those_of_transformers_bert(view):
    """Its BERT takes a mask for each place."""
    unilm, pieces = made(view), pairs(view)
    config = transformers.BertConfig(
        vocab_size=view.width,
        hidden_size=12,
        num_hidden_layers=2,
        num_attention_heads=3,
        intermediate_size=48,
        max_position_embeddings=32,
        type_vocab_size=6,
        attn_implementation="eager",
    )
    reference = transformers.BertModel(config, add_pooling_layer=False).eval()
    weights = dict(unilm.named_parameters())
    given = {
        f"{theirs}.{kind}": weights[f"{ours}.{kind}"]
        for theirs, ours in (TABLES | layers(2)).items()
        for kind in ("weight", "bias")
        if f"{ours}.{kind}" in weights
    }
    assert given.keys() == {name for name, _ in reference.named_parameters()}
    for ways in (WAYS, WAYS.flip(0)):
        read = pieces._replace(segments=numbered_segments(ways, pieces.segments * ((ways == 0) | (ways == 3))[:, None]))
        seen = sight(ways, pieces)
        asked = {
            "input_ids": read.ids,
            "attention_mask": torch.where(seen, 0.0, -1e30)[:, None],
            "token_type_ids": read.segments,
        }
        expected = torch.func.functional_call(reference, given, (), asked).last_hidden_state
        assert_same(unilm(read, seen=seen)[pieces.mask], expected[pieces.mask], rtol=1e-4, atol=1e-5)


def test_tuned_it_reads_from_both_sides(view):
    unilm, pieces = made(view), pairs(view)
    everything = sight(torch.zeros(4, dtype=torch.long), pieces)
    assert_same(unilm(pieces)[pieces.mask], unilm(pieces, seen=everything)[pieces.mask])


def test_what_follows_a_source_is_blind_to_what_comes_later_and_sees_the_source(view):
    unilm, pieces = made(view, layers=3), pairs(view)
    seen = sight(torch.full((4,), FROM_SOURCE), pieces)
    second = pieces.segments[0].nonzero()[:, 0].tolist()
    place, changed = second[2], pieces.ids.clone()
    changed[0, place] = 7
    moved = (unilm(pieces._replace(ids=changed), seen=seen) - unilm(pieces, seen=seen))[0].abs().amax(1) > 1e-4
    assert moved.nonzero()[:, 0].tolist() == [each for each in second if each >= place]
    changed = pieces.ids.clone()
    changed[0, 1] = 7
    moved = (unilm(pieces._replace(ids=changed), seen=seen) - unilm(pieces, seen=seen))[0].abs().amax(1) > 1e-4
    assert moved[pieces.mask[0]].all()


# --- what is asked ---


def many(view: Subwords, count: int = 1200, length: int = 24) -> SubwordBatch:
    ids = torch.randint(5, view.width, (count, length), generator=torch.Generator().manual_seed(0))
    ids[:, 0], ids[:, -1] = view.start, view.separator
    mask = torch.ones_like(ids, dtype=torch.bool)
    return SubwordBatch(ids, mask, torch.zeros_like(ids), torch.full((count,), length))


def test_texts_are_read_in_the_four_ways_with_their_shares(view):
    pieces = many(view)
    _, ways, _, strange = AttentionMasks.questions(pieces, view, noise_of(pieces, 0, 1))
    for way, share in enumerate(SHARES):
        assert abs((ways == way).float().mean().item() - share) < 4 * (share * (1 - share) / len(ways)) ** 0.5
    assert not strange[ways != BOTH_SIDES].any()
    assert 0.4 < strange[ways == BOTH_SIDES].float().mean() < 0.6


def test_source_and_target_are_one_text_and_a_direction_has_one_segment(view):
    pieces = many(view)
    read, ways, _, _ = AttentionMasks.questions(pieces, view, noise_of(pieces, 0, 1))
    one_way = (ways == FROM_LEFT) | (ways == FROM_RIGHT)
    assert not read.segments[one_way].any()
    assert torch.equal(read.ids[one_way][:, : pieces.ids.shape[1]], pieces.ids[one_way])
    for row in (ways == FROM_SOURCE).nonzero()[:20, 0].tolist():
        ids = read.ids[row, : read.lengths[row]].tolist()
        middle = int((read.segments[row] == 0).nonzero()[:, 0][read.segments[row].argmax() - 1])
        assert ids[middle] == view.separator and read.segments[row, middle + 1] == 1
        assert ids[:middle] + ids[middle + 1 :] == pieces.ids[row].tolist()


def test_pieces_are_masked_alone_or_in_twos_and_threes_and_ends_of_targets_too(view):
    pieces = many(view, 2000)
    read, ways, chosen, _ = AttentionMasks.questions(pieces, view, noise_of(pieces, 0, 1))
    last = torch.arange(read.ids.shape[1]) == read.lengths[:, None] - 1
    targets = ways == FROM_SOURCE
    stops = (chosen & last).any(1)
    assert not stops[~targets].any() and abs(stops[targets].float().mean().item() - 0.15) < 0.06
    inner = chosen & ~last
    assert (inner.sum(1) == 3)[ways != BOTH_SIDES].all()  # 15 % of 22
    assert not (inner & ((read.ids == view.start) | (read.ids == view.separator))).any()
    starts = inner & ~F.pad(inner[:, :-1], (1, 0))
    assert 2.3 < starts.sum(1).float().mean() < 2.8, "most stand alone"


def test_in_evaluation_nothing_is_of_another_text_and_all_is_the_same_in_another_batch(view):
    unilm = made(view)
    learns = small(AttentionMasks, unilm)
    pieces, alone = batch(view, *TEXTS), batch(view, TEXTS[2])
    read, ways, _, strange = AttentionMasks.questions(pieces, view, noise_of(pieces))
    assert not strange.any() and not read.segments[ways == BOTH_SIDES].any()
    with collected_losses() as terms:
        logs, texts = learns(unilm, pieces, noise_of(pieces))
    assert not terms
    assert_same(learns(unilm, alone, noise_of(alone)).logs, logs[texts == 2])


def test_the_losses_by_hand(view):
    """The second segment is judged in texts that are read from both sides alone."""
    unilm = made(view)
    learns = small(AttentionMasks, unilm)
    pieces = many(view, 12)
    read, ways, chosen, strange = AttentionMasks.questions(pieces, view, noise_of(pieces, 0, 1))
    noise = noise_of(pieces, 0, 1)
    AttentionMasks.questions(pieces, view, noise)
    hidden = learns.hidden(read.ids, chosen, view, noise)
    segments = numbered_segments(ways, read.segments)
    states = unilm(read._replace(ids=hidden, segments=segments), seen=sight(ways, read))
    expected, judged = [], []
    for row, place in chosen.nonzero().tolist():
        vector = learns.scores.transform(states[row, place])
        shares = (unilm.table.weight @ vector + learns.scores.bias).softmax(0)
        expected.append(shares[read.ids[row, place]].log())
    for row in range(12):
        if ways[row] == BOTH_SIDES:
            shares = learns.output(unilm.pooler(states[row, 0])).softmax(0)
            judged.append(-shares[strange[row]].log())
    with collected_losses() as terms:
        logs, _ = learns.train()(unilm, pieces, noise_of(pieces, 0, 1))
    assert_same(logs, torch.stack(expected), rtol=1e-4, atol=1e-4)
    assert 0 < len(judged) < 12
    assert_same(terms["next sentence"], torch.stack(judged).mean(), rtol=1e-4, atol=1e-4)


def test_texts_of_two_batches_are_merged(view):
    one, other = batch(view, "a cat", "a cat"), batch(view, "the dog ran on a mat", "a")
    found = merged(torch.tensor([True, False]), one, other, view.pad)
    assert found.lengths.tolist() == [one.lengths[0], other.lengths[1]] and found.mask.sum(1).tolist() == [4, 3]
    assert found.ids.tolist() == [one.ids[0].tolist(), [*other.ids[1, :3].tolist(), view.pad]]


def test_the_floor_tells_the_same_pieces_by_their_shares(view):
    """Whoever is asked other pieces is no measure for the model."""
    rows, pieces = [{"id": str(number), "text": text} for number, text in enumerate(TEXTS)], batch(view, *TEXTS)
    read, _, chosen, _ = AttentionMasks.questions(pieces, view, noise_of(pieces))
    logs = log_shares_by_hand(view, pieces)
    found = AttentionMasks.floor(view, rows, rows)
    assert [count for _, count in found] == chosen.sum(1).tolist()
    expected = [logs[ids[where]].sum().item() for ids, where in zip(read.ids, chosen, strict=True)]
    assert [log for log, _ in found] == pytest.approx(expected, rel=1e-4)
