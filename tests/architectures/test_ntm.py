"""The mechanism of the neural Turing machine: heads that find, shift and sharpen their places in a
memory which the heads before them wrote."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import Tensor

from architectures.memory.ntm import NeuralTuringMachine
from tests.support.batches import assert_each_alone, random_texts, random_vectors
from tests.support.models import small
from tests.support.oracles import cosine, lstm_step
from tests.support.pairs import dense
from tests.support.recurrent import assert_vector_comes_from_real_states
from tests.support.same import assert_same

WIDTH, HIDDEN, SLOTS, MEMORY = 3, 4, 5, 2

texts = partial(random_vectors, (6, 3, 1), 1, WIDTH)


def model_of(heads: int = 1, stretch: float = 2.0) -> NeuralTuringMachine:
    return small(NeuralTuringMachine, WIDTH, HIDDEN, SLOTS, MEMORY, heads, stretch=stretch)


def softplus(number: Tensor) -> Tensor:
    return (1 + number.exp()).log()


def address(controls: Tensor, memory: list[Tensor], before: list[Tensor]) -> list[Tensor]:
    """The weights of one head by equations 5 to 9, slot by slot."""
    key, (strength, gate, *shifts, sharpness) = controls[:MEMORY], controls[MEMORY:]
    likeness = [(softplus(strength) * cosine(key, slot)).exp() for slot in memory]
    g = torch.sigmoid(gate)
    mixed = [g * like / sum(likeness) + (1 - g) * old for like, old in zip(likeness, before, strict=True)]
    s = [shift.exp() / sum(other.exp() for other in shifts) for shift in shifts]
    moved = [s[0] * mixed[(i + 1) % SLOTS] + s[1] * mixed[i] + s[2] * mixed[i - 1] for i in range(SLOTS)]
    powers = [weight ** (1 + softplus(sharpness)) for weight in moved]
    return [power / sum(powers) for power in powers]


def written_out(model: NeuralTuringMachine, vectors: Tensor) -> Tensor:
    """States (n, size) of one text, head by head."""
    heads = model.heads
    writing, reading = ([list(torch.softmax(start, dim=0)) for start in kind] for kind in model.starts)
    memory = [torch.full((MEMORY,), 1e-6) for _ in range(SLOTS)]
    h = c = torch.zeros(HIDDEN)
    read = [torch.full((MEMORY,), 1e-6)] * heads
    states = []
    for x in vectors:
        h, c = lstm_step(model.controller, torch.cat([x, *read]), h, c)
        asked, changes = dense(model.writing.controls, h).chunk(heads), dense(model.changes, h).chunk(heads)
        writing = [address(asked[k], memory, writing[k]) for k in range(heads)]
        changed = []
        for i, slot in enumerate(memory):
            for k in range(heads):
                slot = slot * (1 - writing[k][i] * torch.sigmoid(changes[k][:MEMORY]))
            changed.append(slot + sum(writing[k][i] * torch.tanh(changes[k][MEMORY:]) for k in range(heads)))
        memory = changed
        asked = dense(model.reading.controls, h).chunk(heads)
        reading = [address(asked[k], memory, reading[k]) for k in range(heads)]
        read = [sum(weight * slot for weight, slot in zip(own, memory, strict=True)) for own in reading]
        states.append(torch.cat([h, *read]))
    return torch.stack(states)


@pytest.mark.parametrize("heads", [1, 2])
def test_each_text_of_a_batch_is_the_text_written_out_head_by_head(heads):
    """A gate that is turned round, a missing shift, heads that mix, or a memory that goes from one
    text to the next would show here."""
    model, (vectors, mask) = model_of(heads), texts()
    states = model(vectors, mask)
    assert states.shape[2] == model.size == HIDDEN + heads * MEMORY
    assert_each_alone(states, partial(written_out, model), (vectors, mask), states=True, rtol=1e-4, atol=1e-4)


def still(model: NeuralTuringMachine) -> None:
    """Let all heads stay where they are and write nothing."""
    with torch.no_grad():
        for heads in (model.writing, model.reading):
            heads.controls.weight.zero_()
            key, strength, gate, back, stay, on, sharpness = 0, MEMORY, MEMORY + 1, *range(MEMORY + 2, MEMORY + 6)
            heads.controls.bias[[key, strength, gate, back, stay, on, sharpness]] = torch.tensor(
                [0.0, 0.0, -50.0, -50.0, 50.0, -50.0, -50.0]
            )


def test_closed_gates_without_shift_keep_the_weights_as_they_are():
    """The weights of equations 7 to 9 with g = 0, s = (0, 1, 0) and a sharpness of 1."""
    model = model_of()
    still(model)
    before = torch.softmax(torch.randn(2, 1, SLOTS), dim=2)
    kept = model.reading(torch.randn(2, HIDDEN), torch.randn(2, SLOTS, MEMORY), before)
    torch.testing.assert_close(kept, before)


def test_a_head_that_moves_on_writes_slot_after_slot_and_one_behind_it_reads_them():
    """A tape: both heads step on by one slot a word, and the reading head starts a slot behind. So
    it reads what was written a word ago."""
    model = model_of()
    still(model)
    with torch.no_grad():
        for heads in (model.writing, model.reading):
            heads.controls.bias[MEMORY + 3], heads.controls.bias[MEMORY + 4] = -50.0, 50.0
        model.starts.fill_(-50.0)
        model.starts[0, 0, 3] = model.starts[1, 0, 2] = 50.0
    vectors = torch.randn(1, 5, WIDTH)
    states = model(vectors, torch.ones(1, 5, dtype=torch.bool))[0]
    added = torch.tanh(dense_rows(model, states[:, :HIDDEN]))
    assert_same(states[1:, HIDDEN:], added[:-1], rtol=1e-4, atol=1e-4)
    assert states[0, HIDDEN:].abs().max() < 1e-4, "nothing is written there yet"


def dense_rows(model: NeuralTuringMachine, states: Tensor) -> Tensor:
    """What the head adds, before tanh, in each of the controller's states."""
    return torch.stack([dense(model.changes, state)[MEMORY:] for state in states])


def test_no_state_sees_what_comes_later():
    model, (vectors, mask) = model_of(), texts()
    changed = vectors.clone()
    changed[:, 3:] += 1
    assert_same(model(changed, mask)[:, :3], model(vectors, mask)[:, :3])


def test_a_text_is_its_last_state():
    assert_vector_comes_from_real_states(model_of(), written_out, "last", random_texts((5, 2), 3, WIDTH))


def test_a_fresh_memory_is_not_written_everywhere_alike():
    """All slots start equal: from equal weights they would stay so for ever."""
    torch.manual_seed(0)
    model = NeuralTuringMachine(WIDTH)
    weights = torch.softmax(model.starts, dim=2)
    assert weights.shape == (2, 1, 128) and (weights.amax(2) > 4 * weights.mean(2)).all()


def test_reading_heads_have_controls_of_their_own():
    """With those of the writing heads they could only read where they just wrote."""
    per_head = MEMORY + 1 + 1 + 3 + 1  # key, strength, gate, three shifts, sharpness
    shapes = {name: tuple(parameter.shape) for name, parameter in model_of(heads=2).named_parameters()}
    assert shapes["writing.controls.weight"] == shapes["reading.controls.weight"] == (2 * per_head, HIDDEN)
