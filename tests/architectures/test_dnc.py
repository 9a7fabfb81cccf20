"""The mechanism of the differentiable neural computer: slots that are allocated and freed, and
reading in the order of writing."""

from __future__ import annotations

import math
from functools import partial

import pytest
import torch
from torch import Tensor

from architectures.memory.dnc import DifferentiableNeuralComputer
from tests.support.batches import assert_each_alone, random_texts, random_vectors
from tests.support.models import small
from tests.support.oracles import lstm_step, softmax_mean
from tests.support.pairs import dense
from tests.support.recurrent import assert_vector_comes_from_real_states
from tests.support.same import assert_same

WIDTH, HIDDEN, SLOTS, MEMORY, READS = 3, 4, 3, 2, 2

texts = partial(random_vectors, (7, 4, 1), 1, WIDTH)


def model_of(reads: int = READS, stretch: float = 2.5) -> DifferentiableNeuralComputer:
    return small(DifferentiableNeuralComputer, WIDTH, HIDDEN, SLOTS, MEMORY, reads, stretch=stretch)


def softplus(number: Tensor) -> Tensor:
    return (1 + number.exp()).log()


def like(key: Tensor, strength: Tensor, memory: list[Tensor]) -> list[Tensor]:
    """The softmax of the cosines of a key with all slots; an empty slot is like no key."""
    cosines = [key @ slot / ((key @ key) * (slot @ slot)).sqrt() if slot.any() else torch.zeros(()) for slot in memory]
    scores = [softplus(strength) * cosine for cosine in cosines]
    return list(softmax_mean(scores, list(torch.eye(SLOTS))))


def free_slots(usage: list[Tensor]) -> list[Tensor]:
    """Allocation: what each slot leaves free, times the usage of all that are freer."""
    found, left = [torch.zeros(())] * SLOTS, torch.ones(())
    for place in sorted(range(SLOTS), key=lambda place: usage[place].item()):
        found[place], left = left * (1 - usage[place]), left * usage[place]
    return found


def written_out(model: DifferentiableNeuralComputer, vectors: Tensor) -> Tensor:
    """States (n, size) of one text by the equations of the paper's methods, slot by slot."""
    reads, everywhere, none = model.reads, range(SLOTS), torch.zeros(())
    memory = [torch.zeros(MEMORY)] * SLOTS
    usage, precedence, writing = [none] * SLOTS, [none] * SLOTS, [none] * SLOTS
    link = [[none] * SLOTS for _ in everywhere]
    reading = [[none] * SLOTS for _ in range(reads)]
    read = [torch.zeros(MEMORY)] * reads
    h = c = torch.zeros(HIDDEN)
    states = []
    for x in vectors:
        h, c = lstm_step(model.controller, torch.cat([x, *read]), h, c)
        heads = dense(model.readers, h).chunk(reads)
        for i in everywhere:
            written = writing[i].detach()  # no gradient in the authors' release, either
            usage[i] = usage[i] + written - usage[i] * written
            for head, weights in zip(heads, reading, strict=True):
                usage[i] = usage[i] * (1 - torch.sigmoid(head[MEMORY + 1]) * weights[i])
        own = dense(model.writer, h)
        key, erase, vector = own[:MEMORY], torch.sigmoid(own[MEMORY : 2 * MEMORY]), own[2 * MEMORY : 3 * MEMORY]
        strength, g_a, g_w = own[-3], torch.sigmoid(own[-2]), torch.sigmoid(own[-1])
        content, allocation = like(key, strength, memory), free_slots(usage)
        writing = [g_w * (g_a * allocation[i] + (1 - g_a) * content[i]) for i in everywhere]
        memory = [slot * (1 - writing[i] * erase) + writing[i] * vector for i, slot in enumerate(memory)]
        link = [
            [
                (1 - writing[i] - writing[j]) * link[i][j] + writing[i] * precedence[j] if i != j else none
                for j in everywhere
            ]
            for i in everywhere
        ]
        precedence = [(1 - sum(writing)) * precedence[i] + writing[i] for i in everywhere]
        for k, head in enumerate(heads):
            modes = head[-3:].exp() / head[-3:].exp().sum()
            content = like(head[:MEMORY], head[MEMORY], memory)
            behind = [sum(link[j][i] * reading[k][j] for j in everywhere) for i in everywhere]
            ahead = [sum(link[i][j] * reading[k][j] for j in everywhere) for i in everywhere]
            reading[k] = [modes[0] * behind[i] + modes[1] * content[i] + modes[2] * ahead[i] for i in everywhere]
        read = [sum(weights[i] * memory[i] for i in everywhere) for weights in reading]
        states.append(torch.cat([h, *read]))
    return torch.stack(states)


@pytest.mark.parametrize("reads", [1, 2])
def test_each_text_of_a_batch_is_the_text_written_out_slot_by_slot(reads):
    """Reading before writing, usage of the wrong step, links the other way round, heads that mix,
    or a memory that goes from one text to the next would show here."""
    model, (vectors, mask) = model_of(reads), texts()
    states = model(vectors, mask)
    assert states.shape[2] == model.size == HIDDEN + reads * MEMORY
    assert_each_alone(states, partial(written_out, model), (vectors, mask), states=True, rtol=1e-3, atol=1e-3)


class Played(torch.nn.Module):
    """Controls of heads that are laid down, a row for each word, whatever the controller says."""

    def __init__(self, rows: list[list[float]]):
        super().__init__()
        self.rows = iter(rows)

    def forward(self, state: Tensor) -> Tensor:
        return torch.tensor([next(self.rows)])


TOLD = [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0], [0.6, 0.8]]
"""What the words of a text write, one after another; no two are alike."""

OPEN, SHUT = 50.0, -50.0
"""Numbers of gates before the logistic function; as a strength the first finds the best slot
alone."""


def read_by(steps: list[tuple[int, str, bool]]) -> list[list[float]]:
    """What a head reads at each word of a text whose words write :data:`TOLD` into free slots.

    A step is the word whose content is the key, the way to go, and whether what was read at the
    step before is freed.
    """
    model = model_of(reads=1)
    model.writer = Played([[0.0, 0.0, OPEN, OPEN, *vector, 0.0, OPEN, OPEN] for vector in TOLD])
    model.readers = Played(
        [
            [*TOLD[word], OPEN, OPEN if free else SHUT]
            + [OPEN if way == mode else SHUT for mode in ("backward", "content", "forward")]
            for word, way, free in steps
        ]
    )
    states = model(torch.randn(1, len(steps), WIDTH), torch.ones(1, len(steps), dtype=torch.bool))
    return states[0, :, HIDDEN:].tolist()


def near(number: int):
    return pytest.approx(TOLD[number], abs=1e-3)


def test_a_head_goes_through_the_memory_in_the_order_of_writing():
    """Three words fill the three slots, and two more find no place. The head finds the first word
    by its content and goes forward twice; or once, and back."""
    found = read_by([(0, "content", False)] * 3 + [(0, "forward", False)] * 2)
    assert found[2:] == [near(0), near(1), near(2)]
    found = read_by([(0, "content", False)] * 3 + [(0, "forward", False), (0, "backward", False)])
    assert found[2:] == [near(0), near(1), near(0)]


def test_a_full_memory_keeps_what_it_has():
    """The fourth and the fifth word find no slot: their contents lead to others."""
    found = read_by([(0, "content", False)] * 3 + [(1, "content", False), (2, "content", False)])
    assert found[2:] == [near(0), near(1), near(2)]


def test_what_a_head_frees_as_it_reads_is_written_over():
    """At the fourth word the first one's slot is freed: the fourth is there, and the first gone."""
    found = read_by([(0, "content", False)] * 3 + [(3, "content", True), (0, "content", False)])
    assert found[2:4] == [near(0), near(3)]
    assert found[4] != near(0)


def test_what_is_written_by_content_goes_to_slots_like_the_key():
    """By hand: cosines 1, 0 and -1 times softplus(-2) = log(1 + e^-2); the gate is half open."""
    model = model_of()
    model.writer = Played([[7.0, 0.0, OPEN, OPEN, 5.0, 6.0, -2.0, SHUT, 0.0]])
    memory = torch.tensor([[[1.0, 0.0], [0.0, 3.0], [-2.0, 0.0]]])
    _, weights = model.written(torch.zeros(1, HIDDEN), memory, torch.zeros(1, SLOTS))
    powers = [(1 + math.exp(-2)) ** likeness for likeness in (1, 0, -1)]
    assert weights[0].tolist() == pytest.approx([0.5 * power / sum(powers) for power in powers], abs=1e-5)


def test_no_state_sees_what_comes_later():
    model, (vectors, mask) = model_of(), texts()
    changed = vectors.clone()
    changed[:, 3:] += 1
    assert_same(model(changed, mask)[:, :3], model(vectors, mask)[:, :3])


def test_a_text_is_its_last_state():
    batch = random_texts((5, 2), 3, WIDTH)
    assert_vector_comes_from_real_states(model_of(stretch=1.5), written_out, "last", batch)
