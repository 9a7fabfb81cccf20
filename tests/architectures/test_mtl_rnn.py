"""The mechanisms of the multi-task RNNs: three schemes by which tasks share."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor, nn

from architectures.recurrent.mtl_rnn import Cell, CoupledLayers, PeepholeLSTM, SharedLayer, UniformLayer
from harness import registry
from harness.objectives import MultiTask
from harness.running.grid import hyperparameters
from tests.support.batches import random_texts
from tests.support.models import small
from tests.support.oracles import lstm

WIDTH, SIZE, VOCABULARY = 3, 2, 7
OTHERS = ("first", "second")
MEMBERS = range(3)


def texts():
    batch = random_texts((5, 3, 1), 1, WIDTH)
    generator = torch.Generator().manual_seed(3)
    ids = torch.randint(2, VOCABULARY, batch.mask.shape, generator=generator) * batch.mask
    return batch._replace(ids=ids, vectors=batch.vectors.requires_grad_())


def uniform() -> UniformLayer:
    return small(UniformLayer, WIDTH, SimpleNamespace(width=VOCABULARY), OTHERS, SIZE, private=2, stretch=1.5)


coupled = partial(small, CoupledLayers, WIDTH, OTHERS, SIZE, stretch=1.5)
shared = partial(small, SharedLayer, WIDTH, OTHERS, SIZE, stretch=1.5)
ALL = [uniform, coupled, shared]


def step(cell: Cell, x: Tensor, heard: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """One word, gate by gate; ``heard`` are the terms of the candidate that come from states."""
    w, b, u = cell.word.weight, cell.word.bias, cell.state.weight
    v, v_o = cell.cells_before.weight, cell.cells_behind.weight
    at = [slice(n * SIZE, (n + 1) * SIZE) for n in range(4)]
    i = torch.sigmoid(w[at[0]] @ x + b[at[0]] + u[at[0]] @ h + v[at[0]] @ c)
    f = torch.sigmoid(w[at[1]] @ x + b[at[1]] + u[at[1]] @ h + v[at[1]] @ c)
    c = f * c + i * torch.tanh(w[at[3]] @ x + b[at[3]] + heard)
    o = torch.sigmoid(w[at[2]] @ x + b[at[2]] + u[at[2]] @ h + v_o @ c)
    return o * torch.tanh(c), c


def gate(cell: Cell, x: Tensor, told: Tensor) -> Tensor:
    last = slice(4 * SIZE, 5 * SIZE)
    return torch.sigmoid(cell.word.weight[last] @ x + cell.word.bias[last] + told)


def left_to_right(layer: PeepholeLSTM, vectors: list[Tensor]) -> list[Tensor]:
    h, c, states = torch.zeros(SIZE), torch.zeros(SIZE), []
    for x in vectors:
        h, c = step(layer.cell, x, layer.recurrence.weight @ h, h, c)
        states.append(h)
    return states


def uniform_vector(model: UniformLayer, member: int, vectors: Tensor, ids: Tensor) -> Tensor:
    read = [torch.cat([model.private[member].weight[n], x]) for n, x in zip(ids, vectors, strict=True)]
    return left_to_right(model.recurrence, read)[-1]


def coupled_vector(model: CoupledLayers, member: int, vectors: Tensor, ids: Tensor) -> Tensor:
    h, c = [torch.zeros(SIZE)] * 3, [torch.zeros(SIZE)] * 3
    for x in vectors:
        new = []
        for m in MEMBERS:
            heard = torch.zeros(SIZE)
            for i in MEMBERS:
                from_i_to_m = model.told[i].weight[m * SIZE : (m + 1) * SIZE]
                heard = heard + gate(model.cells[m], x, model.filters[i].weight @ h[i]) * (from_i_to_m @ h[i])
            new.append(step(model.cells[m], x, heard, h[m], c[m]))
        h, c = [pair[0] for pair in new], [pair[1] for pair in new]
    return h[member]


def shared_vector(model: SharedLayer, member: int, vectors: Tensor, ids: Tensor) -> Tensor:
    forwards = left_to_right(model.forwards, list(vectors))
    backwards = left_to_right(model.backwards, list(vectors.flip(0)))[::-1]
    cell = model.cells[member]
    u_gate, u = model.own[member].weight.split(SIZE)
    s_gate, s = model.shared[member].weight.split(SIZE)
    h, c = torch.zeros(SIZE), torch.zeros(SIZE)
    for x, ahead, behind in zip(vectors, forwards, backwards, strict=True):
        common = torch.cat([ahead, behind])
        heard = gate(cell, x, u_gate @ h) * (u @ h) + gate(cell, x, s_gate @ common) * (s @ common)
        h, c = step(cell, x, heard, h, c)
    return h


WRITTEN_OUT = {uniform: uniform_vector, coupled: coupled_vector, shared: shared_vector}


@pytest.mark.parametrize("member", MEMBERS)
@pytest.mark.parametrize("scheme", ALL)
def test_a_batch_is_each_text_written_out_in_values_and_gradients(scheme, member):
    """Gates in each other's place, a state of another task or step, padding that is read: each
    would give another vector or another slope."""
    model, batch = scheme(), texts()
    model.member = member
    lengths = batch.mask.sum(1).tolist()
    written = torch.stack(
        [
            WRITTEN_OUT[scheme](model, member, vectors[:n], ids[:n])
            for vectors, ids, n in zip(batch.vectors, batch.ids, lengths, strict=True)
        ]
    )
    found = model(batch)
    torch.testing.assert_close(found, written)
    weights = torch.randn_like(written)
    over = [batch.vectors, *model.parameters()]
    ours, theirs = (
        torch.autograd.grad((vector * weights).sum(), over, allow_unused=True, retain_graph=True)
        for vector in (found, written)
    )
    names = ["vectors", *(name for name, _ in model.named_parameters())]
    for name, a, b in zip(names, ours, theirs, strict=True):
        none = torch.zeros(1)
        assert torch.allclose(none if a is None else a, none if b is None else b, atol=1e-6), name


def test_an_lstm_without_the_cells_in_its_gates_is_torchs():
    layer, theirs = small(PeepholeLSTM, WIDTH, SIZE), nn.LSTM(WIDTH, SIZE, batch_first=True)
    with torch.no_grad():
        layer.cell.cells_before.weight.zero_()
        layer.cell.cells_behind.weight.zero_()
        i, f, o, g = layer.cell.word.weight.chunk(4)
        theirs.weight_ih_l0.copy_(torch.cat([i, f, g, o]))
        i, f, o, g = layer.cell.word.bias.chunk(4)
        theirs.bias_ih_l0.copy_(torch.cat([i, f, g, o]))
        i, f, o = layer.cell.state.weight.chunk(3)
        theirs.weight_hh_l0.copy_(torch.cat([i, f, layer.recurrence.weight, o]))
        theirs.bias_hh_l0.zero_()
    vectors = torch.randn(2, 5, WIDTH)
    for found, text in zip(layer(vectors), vectors, strict=True):
        torch.testing.assert_close(found, lstm(theirs, text))


def test_coupled_layers_that_hear_nobody_else_are_lstms():
    """The gates from the other tasks at zero, those from the own at one."""
    model, batch = coupled(), texts()
    with torch.no_grad():
        for i in MEMBERS:
            for m in MEMBERS:
                if m != i:
                    model.told[i].weight[m * SIZE : (m + 1) * SIZE] = 0
        for cell in model.cells:
            cell.word.bias[4 * SIZE :] = 60.0
    for m in MEMBERS:
        alone = PeepholeLSTM(WIDTH, SIZE)
        with torch.no_grad():
            alone.cell.word.weight.copy_(model.cells[m].word.weight[: 4 * SIZE])
            alone.cell.word.bias.copy_(model.cells[m].word.bias[: 4 * SIZE])
            for part in ("state", "cells_before", "cells_behind"):
                getattr(alone.cell, part).load_state_dict(getattr(model.cells[m], part).state_dict())
            alone.recurrence.weight.copy_(model.told[m].weight[m * SIZE : (m + 1) * SIZE])
        model.member = m
        torch.testing.assert_close(model.states(batch), alone(batch.vectors))


@pytest.mark.parametrize(("scheme", "private"), [(uniform, ("private",)), (shared, ("cells", "own", "shared"))])
def test_a_text_of_one_task_gives_no_gradient_to_the_layers_of_the_others(scheme, private):
    """What is private would be common: nothing that a task needs alone could be learnt."""
    model, batch = scheme(), texts()
    model.member = 1
    model(batch).sum().backward()
    own = {name for name, p in model.named_parameters() if p.grad is not None and p.grad.any()}
    of_members = [name for name, _ in model.named_parameters() if name.split(".")[0] in private]
    assert {name.split(".")[1] for name in of_members} == {"0", "1", "2"}
    assert {name for name in own if name in of_members} == {n for n in of_members if n.split(".")[1] == "1"}
    assert own > {name for name, _ in model.named_parameters() if name not in of_members}


COMPANIONS = {
    "mtl_rnn_uniform": ["sst2", "sst5", "imdb"],
    "mtl_rnn_coupled": ["sst2", "sst5"],
    "mtl_rnn_shared": ["sst2", "sst5", "imdb"],
}


def test_each_id_has_its_scheme_and_learns_the_papers_tasks():
    found = {}
    for id in ("mtl_rnn_uniform", "mtl_rnn_coupled", "mtl_rnn_shared"):
        entry = registry.entry("architectures", id)
        found[id] = registry.load(entry)
        assert hyperparameters(entry)["companions"] == COMPANIONS[id]
        assert found[id].trained_by is MultiTask
    assert found == {
        "mtl_rnn_uniform": UniformLayer,
        "mtl_rnn_coupled": CoupledLayers,
        "mtl_rnn_shared": SharedLayer,
    }
    assert len(coupled().cells) == len(shared().cells) == len(uniform().private) == 3
