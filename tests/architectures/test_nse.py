"""The mechanism of the neural semantic encoder: read, compose, write, over a memory that begins as
the words."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import Tensor, nn

from architectures.memory import nse
from architectures.memory.nse import NeuralSemanticEncoder
from tests.support.batches import assert_each_alone, mask_of, poisoned, random_vectors
from tests.support.pairs import dropped, inputs_of, shipped
from tests.support.same import assert_same

WIDTH = 4
LENGTHS = (5, 1, 3)

texts = partial(random_vectors, seed=1, width=WIDTH)


def model_of(width: int = WIDTH, **options) -> NeuralSemanticEncoder:
    """The model of the id, with weights far from its start within 0.1."""
    return shipped("nse", width, stretch=20.0, **options)


def cell_of(layer: nn.LSTM | nn.LSTMCell) -> nn.LSTMCell:
    """Torch's own LSTM cell with the weights of a layer, which has one direction and one layer."""
    cell = nn.LSTMCell(layer.input_size, layer.hidden_size)
    weights = {name.removesuffix("_l0"): weight for name, weight in layer.named_parameters()}
    cell.load_state_dict(weights, assign=True)
    return cell


def read_and_written(model: NeuralSemanticEncoder, text: Tensor) -> tuple[Tensor, Tensor]:
    """States (T, width) and the final memory (T, width) of one text, word by word and slot by slot:
    equations 1 to 6 of the paper."""
    ask, write = cell_of(model.read), cell_of(model.write)
    weight = torch.cat([model.compose_asked.weight, model.compose_found.weight], dim=1)
    memory = list(text)
    asking, writing = ((torch.zeros(WIDTH), torch.zeros(WIDTH)) for _ in range(2))
    states = []
    for word in text:
        asking = ask(word, asking)
        question = asking[0]
        energies = [(slot @ question).exp() for slot in memory]
        slots = [energy / sum(energies) for energy in energies]
        found = sum(share * slot for share, slot in zip(slots, memory, strict=True))
        composed = weight @ torch.cat([question, found]) + model.compose_asked.bias
        writing = write(composed, writing)
        memory = [slot * (1 - share) + share * writing[0] for share, slot in zip(slots, memory, strict=True)]
        states.append(writing[0])
    return torch.stack(states), torch.stack(memory)


def test_only_longer_texts_are_computed_twice_to_save_memory(monkeypatch):
    """Each step again would make the training of short texts half as fast; none, that of long ones
    too large."""
    again, compute = [], nse.checkpoint
    monkeypatch.setattr(nse, "STEPS", 3)
    monkeypatch.setattr(nse, "checkpoint", lambda *given, **named: again.append(given) or compute(*given, **named))
    model = model_of()
    for length, parts in ((2, 0), (3, 0), (4, 2)):
        model(torch.randn(1, length, WIDTH), mask_of([length]))
        assert len(again) == parts


def memory_after(model: NeuralSemanticEncoder, vectors: Tensor, mask: Tensor) -> Tensor:
    asked = model.read(vectors)[0]
    empty = torch.zeros_like(vectors[:, 0])
    return model.steps(asked, model.compose_asked(asked), mask, vectors, empty, empty)[1]


def test_states_are_those_of_read_compose_and_write_word_by_word():
    """Another cell or direction, a memory that is never rewritten, rewritten after the wrong word,
    or seen by padding gives other states."""
    model, batch = model_of(), texts(LENGTHS)
    assert_each_alone(model(*batch), lambda text: read_and_written(model, text)[0], batch, states=True)


def test_the_memory_is_rewritten_slot_by_slot_as_far_as_it_was_read():
    model, (vectors, mask) = model_of(), texts([5])
    assert_same(memory_after(model, vectors, mask)[0], read_and_written(model, vectors[0])[1])


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
    assert_same(after[0], expected)
    assert state.any() and not torch.allclose(state, memory[0, 2])


def test_slots_of_padding_are_neither_read_nor_written():
    mask = torch.tensor([[True, False, False, False]])
    memory = torch.eye(WIDTH)[None] * 30
    state, after = one_step(torch.tensor([0.0, 30.0, 0.0, 0.0]), mask, memory)
    assert_same(after[0], torch.cat([state[None], memory[0, 1:]]))


def test_a_texts_vector_does_not_change_when_padding_is_appended():
    model, (vectors, mask) = model_of(), texts([5, 3])
    padded_mask = nn.functional.pad(mask, (0, 4))
    padded = poisoned(nn.functional.pad(vectors, (0, 0, 0, 4)), padded_mask)
    assert_same(model.pooled(model(padded, padded_mask), padded_mask), model.pooled(model(vectors, mask), mask))


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
    assert_same(model.pooled(states, mask), expected)


def test_dropout_acts_before_each_lstm_and_not_on_the_memory(monkeypatch):
    """Vectors of words and of compositions lose numbers, each text and word its own; the slots that
    are read keep theirs."""
    model = model_of(40).train()
    vectors, mask = random_vectors([30] * 6, seed=1, width=40)
    memories, compute = [], model.steps
    monkeypatch.setattr(model, "steps", lambda *given: memories.append(given[3]) or compute(*given))
    words, compositions = inputs_of(model.read, model.write)
    model(vectors, mask)
    assert torch.equal(memories[0], vectors)
    assert dropped([vectors], words) == pytest.approx(0.3, abs=0.03)
    written = torch.stack(compositions, dim=1)
    assert (written == 0).float().mean().item() == pytest.approx(0.3, abs=0.03)
    for seen in (words[0], written):
        patterns = (seen == 0).flatten(0, 1)
        assert len(patterns.unique(dim=0)) == len(patterns)
    assert_same(words[0][words[0] != 0], vectors[words[0] != 0] / 0.7)


def test_nothing_is_dropped_outside_training():
    model = model_of(40)
    vectors, mask = random_vectors([8] * 6, seed=1, width=40)
    words, compositions = inputs_of(model.read, model.write)
    model(vectors, mask)
    assert torch.equal(words[0], vectors)
    assert torch.stack(compositions).all()


def test_all_weights_start_uniform_in_a_tenth():
    for name, parameter in shipped("nse", 50, stretch=None).named_parameters():
        assert 0.09 < parameter.abs().max() <= 0.1, name
        assert parameter.std().item() == pytest.approx(0.1 / 3**0.5, rel=0.15), name


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
