"""The mechanism of the neural semantic encoder: read, compose, write, over a memory that begins as
the words."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from architectures.memory import nse
from architectures.memory.nse import NeuralSemanticEncoder
from tests.support.batches import assert_each_alone, mask_of, random_vectors
from tests.support.models import small
from tests.support.oracles import lstm_step

WIDTH = 4
LENGTHS = (5, 1, 3)

texts = partial(random_vectors, seed=1, width=WIDTH)


model_of = partial(small, NeuralSemanticEncoder, WIDTH)


def read_and_written(model: NeuralSemanticEncoder, text: Tensor) -> tuple[Tensor, Tensor]:
    """States (T, width) and the final memory (T, width) of one text, word by word and slot by slot:
    equations 1 to 6 of the paper."""
    weight = torch.cat([model.compose_asked.weight, model.compose_found.weight], dim=1)
    memory = list(text)
    asking, writing = ((torch.zeros(WIDTH), torch.zeros(WIDTH)) for _ in range(2))
    states = []
    for word in text:
        asking = lstm_step(model.read, word, *asking)
        question = asking[0]
        energies = [(slot @ question).exp() for slot in memory]
        slots = [energy / sum(energies) for energy in energies]
        found = sum(share * slot for share, slot in zip(slots, memory, strict=True))
        composed = weight @ torch.cat([question, found]) + model.compose_asked.bias
        writing = lstm_step(model.write, composed, *writing)
        memory = [slot * (1 - share) + share * writing[0] for share, slot in zip(slots, memory, strict=True)]
        states.append(writing[0])
    return torch.stack(states), torch.stack(memory)


def memory_after(model: NeuralSemanticEncoder, vectors: Tensor, mask: Tensor) -> Tensor:
    asked = model.read(vectors)[0]
    empty = torch.zeros_like(vectors[:, 0])
    return model.steps(asked, model.compose_asked(asked), mask, vectors, empty, empty)[1]


def test_states_are_those_of_read_compose_and_write_word_by_word():
    """A memory that is never rewritten, rewritten after the wrong word, or seen by padding gives
    other states."""
    model, batch = model_of(), texts(LENGTHS)
    assert_each_alone(model(*batch), lambda text: read_and_written(model, text)[0], batch, states=True)


def test_the_memory_is_rewritten_slot_by_slot_as_far_as_it_was_read():
    model, (vectors, mask) = model_of(), texts([5])
    torch.testing.assert_close(memory_after(model, vectors, mask)[0], read_and_written(model, vectors[0])[1])


def one_step(question: Tensor, mask: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
    """State (width) and memory after one word that asks ``question``."""
    model, empty = model_of(), torch.zeros(1, WIDTH)
    states, memory, *_ = model.steps(question[None, None], torch.randn(1, 1, 2 * WIDTH), mask, memory, empty, empty)
    return states[0, 0], memory


def test_only_the_slot_that_is_read_is_replaced():
    memory = torch.eye(WIDTH)[None] * 30
    state, after = one_step(torch.tensor([0.0, 0.0, 30.0, 0.0]), mask_of([WIDTH]), memory)
    expected = memory[0].clone()
    expected[2] = state
    torch.testing.assert_close(after[0], expected)
    assert state.any() and not torch.allclose(state, memory[0, 2])


def test_slots_of_padding_are_neither_read_nor_written():
    mask = torch.tensor([[True, False, False, False]])
    memory = torch.eye(WIDTH)[None] * 30
    state, after = one_step(torch.tensor([0.0, 30.0, 0.0, 0.0]), mask, memory)
    torch.testing.assert_close(after[0], torch.cat([state[None], memory[0, 1:]]))


def test_the_first_word_already_reads_the_last():
    """The memory holds the whole text from the start; a left-to-right LSTM would not see what
    follows."""
    model, (vectors, mask) = model_of(), texts([5])
    changed = vectors.clone()
    changed[0, 4] += 1
    assert not torch.allclose(model(vectors, mask)[0, 0], model(changed, mask)[0, 0], atol=1e-4)


def test_a_texts_vector_is_its_last_state():
    model, (vectors, mask) = model_of(), texts(LENGTHS)
    states = model(vectors, mask)
    expected = torch.stack([states[row, length - 1] for row, length in enumerate(LENGTHS)])
    torch.testing.assert_close(model.pooled(states, mask), expected)


def test_long_texts_give_the_same_states_and_gradients_as_when_all_memories_are_kept(monkeypatch):
    """Above ``STEPS`` words part of the pass is computed twice, with dropout; other numbers the
    second time would spoil what is learned."""
    vectors, mask = texts((9, 3))
    found = []
    for limit in (4, 9):
        monkeypatch.setattr(nse, "STEPS", limit)
        model = model_of(dropout=0.3).train()
        torch.manual_seed(7)
        states = model(vectors, mask)
        model.pooled(states, mask).square().sum().backward()
        found.append([states, *(parameter.grad for parameter in model.parameters())])
    torch.testing.assert_close(*found)
