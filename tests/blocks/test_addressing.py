"""Addresses of external memories, against examples worked by hand and the papers' equations in
plain loops."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from architectures.blocks.addressing import (
    allocated,
    by_content,
    last_written,
    linked,
    sharpened,
    shifted,
    used,
    written,
)

shares = st.floats(0, 1, width=32)


def near(found: Tensor, *expected: float, tolerance: float = 1e-5) -> None:
    """One row of a batch, number by number."""
    assert found.flatten().tolist() == pytest.approx(expected, abs=tolerance)


def one_hot(*places: int, slots: int = 4) -> Tensor:
    """Weights (1, heads, slots) of heads that stand at one slot each."""
    return torch.eye(slots)[list(places)][None]


# --- content ---


def test_a_slot_is_found_by_the_cosine_with_the_key():
    """By hand: cosines 1, 0 and -1, however long the vectors are, times a strength of log 2."""
    memory, keys = torch.tensor([[[0.5, 0.0], [0.0, 9.0], [-3.0, 0.0]]]), torch.tensor([[[7.0, 0.0]]])
    near(by_content(memory, keys, torch.tensor([[math.log(2)]])), 2 / 3.5, 1 / 3.5, 0.5 / 3.5)
    near(by_content(memory, keys, torch.zeros(1, 1)), 1 / 3, 1 / 3, 1 / 3)
    near(by_content(memory, keys, torch.full((1, 1), 50.0)), 1, 0, 0)


def test_an_empty_slot_is_like_no_key_and_has_a_gradient():
    """The first slots that are read are empty: a length of zero below a fraction is no number."""
    memory = torch.zeros(1, 2, 3, requires_grad=True)
    weights = by_content(memory, torch.ones(1, 1, 3), torch.tensor([[5.0]]))
    weights[0, 0, 0].backward()
    near(weights, 0.5, 0.5)
    assert memory.grad.isfinite().all()


def test_each_head_asks_with_its_own_key_in_the_memory_of_its_own_text():
    torch.manual_seed(1)
    memory, keys, strengths = torch.randn(2, 5, 3), torch.randn(2, 4, 3), torch.rand(2, 4) * 4
    found = by_content(memory, keys, strengths)
    for text in range(2):
        for head in range(4):
            key = keys[text, head]
            cosines = [float(key @ slot / (key.norm() * slot.norm())) for slot in memory[text]]
            powers = [math.exp(strengths[text, head].item() * cosine) for cosine in cosines]
            near(found[text, head], *(power / sum(powers) for power in powers), tolerance=1e-4)


# --- location ---


def test_a_shift_by_one_moves_a_weight_to_the_next_slot_and_round_the_end():
    on, back = torch.tensor([[[0.0, 0.0, 1.0]] * 2]), torch.tensor([[[1.0, 0.0, 0.0]] * 2])
    assert shifted(one_hot(1, 3), on).equal(one_hot(2, 0))
    assert shifted(one_hot(1, 0), back).equal(one_hot(0, 3))


def test_a_shift_is_the_circular_convolution_of_the_paper():
    """Equation 8: the sum over j of w(j) s(i - j), indices modulo the slots."""
    torch.manual_seed(2)
    weights, shifts = torch.rand(2, 3, 5), torch.rand(2, 3, 3)
    found = shifted(weights, shifts)
    for text in range(2):
        for head in range(3):
            s = {-1 % 5: shifts[text, head, 0], 0: shifts[text, head, 1], 1: shifts[text, head, 2]}
            w = weights[text, head]
            near(found[text, head], *(float(sum(w[j] * s.get((i - j) % 5, 0.0) for j in range(5))) for i in range(5)))


def test_weights_are_sharpened_by_their_powers():
    """By hand: squares of .6, .3 and .1 over .46; the first power changes nothing."""
    weights = torch.tensor([[[0.6, 0.3, 0.1], [0.6, 0.3, 0.1]]])
    near(sharpened(weights, torch.tensor([[2.0, 1.0]])), 0.36 / 0.46, 0.09 / 0.46, 0.01 / 0.46, 0.6, 0.3, 0.1)


def test_even_small_weights_are_sharpened_and_zeros_have_a_gradient():
    """Of 128 slots a high power of each weight is below what single precision holds."""
    weights = torch.full((1, 1, 128), 1 / 128)
    weights[0, 0, 5], weights[0, 0, 6] = 2 / 128, 0
    weights.requires_grad_()
    found = sharpened(weights, torch.tensor([[30.0]]))
    assert found[0, 0, 5].item() == pytest.approx(1, abs=1e-5) and found[0, 0, 6] == 0
    found[0, 0, 5].backward()
    assert weights.grad.isfinite().all()


# --- writing ---


def test_a_head_at_one_slot_that_erases_all_replaces_what_is_there():
    memory = torch.arange(12.0).view(1, 4, 3)
    found = written(memory, one_hot(2), torch.ones(1, 1, 3), torch.tensor([[[7.0, 8.0, 9.0]]]))
    assert found[0].tolist() == [[0, 1, 2], [3, 4, 5], [7, 8, 9], [9, 10, 11]]


def test_two_heads_erase_one_after_the_other_and_add_up():
    """By hand, of a slot that holds 8: .5 and .5 are erased, then 1 and 2 come half each."""
    memory, half = torch.tensor([[[8.0]]]), torch.full((1, 2, 1), 0.5)
    found = written(memory, half, torch.ones(1, 2, 1), torch.tensor([[[1.0], [2.0]]]))
    near(found, 8 * 0.5 * 0.5 + 0.5 + 1.0)


# --- usage and allocation ---


def test_writing_uses_a_slot_and_a_free_gate_releases_what_its_head_read():
    """By hand: a slot used by half and written by half is used by three quarters."""
    usage, writing = torch.tensor([[0.5, 0.0, 1.0]]), torch.tensor([[0.5, 1.0, 0.0]])
    reading = torch.tensor([[[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]]])
    near(used(usage, writing, reading, torch.zeros(1, 2)), 0.75, 1, 1)
    near(used(usage, writing, reading, torch.tensor([[1.0, 0.0]])), 0, 1, 1)
    near(used(usage, writing, reading, torch.ones(1, 2)), 0, 0.5, 0.5)


def test_usage_sends_no_gradient_to_the_weights_of_writing():
    usage, writing = torch.rand(1, 3, requires_grad=True), torch.rand(1, 3, requires_grad=True)
    used(usage, writing, torch.rand(1, 2, 3), torch.rand(1, 2)).sum().backward()
    assert usage.grad.any() and writing.grad is None


def test_the_freest_slot_is_written_next_and_the_others_share_what_is_left():
    """By hand: of .5, .2 and .9 the second is the freest and takes .8; the first takes .5 of the .2
    left, the third .1 of the .2 * .5 left then."""
    near(allocated(torch.tensor([[0.5, 0.2, 0.9]])), 0.5 * 0.2, 0.8, 0.1 * 0.2 * 0.5)
    near(allocated(torch.tensor([[1.0, 1.0, 0.0]])), 0, 0, 1)
    near(allocated(torch.zeros(1, 3)), 1, 0, 0)
    near(allocated(torch.ones(1, 3)), 0, 0, 0)


def test_allocation_has_a_gradient_where_slots_are_quite_free():
    """At the first word of every text all of them are."""
    usage = torch.zeros(1, 4, requires_grad=True)
    allocated(usage)[0, 2].backward()
    assert usage.grad.isfinite().all()


@settings(max_examples=60)
@given(st.lists(st.integers(0, 20), min_size=1, max_size=6, unique=True))
def test_no_more_than_a_whole_slot_is_allocated(twentieths):
    """Equation 1, slot by slot in the order of their usage."""
    usage = [number / 20 for number in twentieths]
    found = allocated(torch.tensor([usage]))[0]
    left, expected = 1.0, {}
    for place in sorted(range(len(usage)), key=lambda place: usage[place]):
        expected[place] = left * (1 - usage[place])
        left *= usage[place]
    near(found, *(expected[place] for place in range(len(usage))), tolerance=1e-4)
    assert found.sum() <= 1 + 1e-5 and found.min() >= 0


# --- order of writing ---


def chain(*writings: Tensor) -> tuple[Tensor, Tensor]:
    """Links and the slots last written, after weights (1, N) one after another."""
    slots = writings[0].shape[1]
    link, latest = torch.zeros(1, slots, slots), torch.zeros(1, slots)
    for writing in writings:
        link = linked(link, latest, writing)
        latest = last_written(latest, writing)
    return link, latest


def test_a_link_leads_from_a_slot_to_the_one_that_was_written_next():
    """Slots 1, 2, 0: those who read on go from 1 to 2 to 0, and never from a slot to itself."""
    link, latest = chain(*(one_hot(place, slots=3)[0] for place in (1, 2, 0)))
    assert link[0].tolist() == [[0, 0, 1], [0, 0, 0], [0, 1, 0]] and latest.tolist() == [[1, 0, 0]]
    again, latest = chain(*(one_hot(place, slots=3)[0] for place in (1, 1)))
    assert not again.any() and latest.tolist() == [[0, 1, 0]]


def test_links_of_three_slots_by_hand():
    """After (1, 0, 0), writing half of slot 1 and half of slot 2: each was written after slot 0, by
    half. Then all of slot 0: it comes after the other two, by half, and the old links to and from
    it are gone."""
    link, latest = chain(torch.tensor([[1.0, 0.0, 0.0]]), torch.tensor([[0.0, 0.5, 0.5]]))
    assert link[0].tolist() == [[0, 0, 0], [0.5, 0, 0], [0.5, 0, 0]] and latest.tolist() == [[0, 0.5, 0.5]]
    link = linked(link, latest, torch.tensor([[1.0, 0.0, 0.0]]))
    assert link[0].tolist() == [[0, 0.5, 0.5], [0, 0, 0], [0, 0, 0]]


def test_what_is_not_written_changes_no_order():
    link, latest = chain(*(one_hot(place, slots=3)[0] for place in (1, 2)))
    nothing = torch.zeros(1, 3)
    assert linked(link, latest, nothing).equal(link) and last_written(latest, nothing).equal(latest)


@settings(max_examples=40)
@given(st.lists(st.lists(shares, min_size=3, max_size=3), min_size=1, max_size=5))
def test_no_slot_has_more_than_one_before_it_or_behind_it(writings):
    """Whatever is written, a row and a column of the links are shares."""
    weights = [torch.tensor([writing]) / max(1.0, sum(writing)) for writing in writings]
    link, latest = chain(*weights)
    for sums in (link.sum(1), link.sum(2), latest.sum(1)):
        assert sums.max() <= 1 + 1e-5 and sums.min() >= -1e-6
    assert not link.diagonal(dim1=1, dim2=2).any()
