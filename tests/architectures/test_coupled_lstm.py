"""The mechanism of coupled LSTMs: a grid of states, each read from the one above it and the one to
its left."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import Tensor

from architectures.siamese.coupled_lstm import CoupledLSTM
from harness import registry
from tests.support.batches import assert_each_alone, random_texts
from tests.support.models import small
from tests.support.same import assert_same

WIDTH, HIDDEN = 3, 2
COUPLINGS = ("tight", "loose")

firsts, seconds = partial(random_texts, (5, 2, 1, 3), 1, WIDTH), partial(random_texts, (3, 4, 1, 1), 2, WIDTH)
model_of = partial(small, CoupledLSTM, WIDTH, hidden=HIDDEN, merged=4)


def grid_of(model: CoupledLSTM, xs: Tensor, ys: Tensor) -> dict[tuple[int, int], tuple[Tensor, ...]]:
    """States and cells by (i, j), in a loop over the rows and one over the columns."""
    cells = model.cells
    read = [cells.first.weight @ x + cells.first.bias for x in xs]
    other = [cells.second.weight @ y + cells.second.bias for y in ys]
    nothing = (torch.zeros(HIDDEN),) * 4
    grid: dict[tuple[int, int], tuple[Tensor, ...]] = {}
    for i in range(len(xs)):
        for j in range(len(ys)):
            up, left = grid.get((i - 1, j), nothing), grid.get((i, j - 1), nothing)
            if len(cells.first.bias) == 5 * HIDDEN:
                gates = read[i] + other[j] + cells.recurrence.weight @ torch.cat([up[0], left[0]])
                i_, f_up, f_left, o, g = gates.split(HIDDEN)
                c = torch.sigmoid(f_up) * up[1] + torch.sigmoid(f_left) * left[1] + torch.sigmoid(i_) * torch.tanh(g)
                grid[i, j] = torch.sigmoid(o) * torch.tanh(c), c
                continue
            of_first = read[i] + cells.down.weight @ torch.cat([up[0], up[1]])
            of_second = other[j] + cells.along.weight @ torch.cat([left[0], left[1]])
            made = []
            for gates, c in ((of_first, up[2]), (of_second, left[3])):
                i_, f, o, g = gates.split(HIDDEN)
                c = torch.sigmoid(f) * c + torch.sigmoid(i_) * torch.tanh(g)
                made.append((torch.sigmoid(o) * torch.tanh(c), c))
            (h1, c1), (h2, c2) = made
            grid[i, j] = h1, h2, c1, c2
    return grid


def written_out(model: CoupledLSTM, xs: Tensor, ys: Tensor) -> Tensor:
    """The vector of one pair of texts."""
    number = model.cells.size // HIDDEN
    states = [torch.cat(cell[:number]) for cell in grid_of(model, xs, ys).values()]
    return torch.tanh(model.merge.weight @ torch.stack(states).amax(0) + model.merge.bias)


@pytest.mark.parametrize("coupling", COUPLINGS)
def test_diagonals_of_a_batch_are_a_double_loop_over_each_pair(coupling):
    """A state from the wrong neighbour, gates in each other's place, or padding that is read would
    each give another vector."""
    model, first, second = model_of(coupling=coupling), firsts(), seconds()
    assert_each_alone(model(first, second), partial(written_out, model), first, second)


@pytest.mark.parametrize("coupling", COUPLINGS)
def test_each_state_of_the_grid_stands_at_its_pair_of_words(coupling):
    model, xs, ys = model_of(coupling=coupling), torch.randn(4, WIDTH), torch.randn(6, WIDTH)
    found, expected = model.grid(xs[None], ys[None])[0], grid_of(model, xs, ys)
    number = 2 if coupling == "loose" else 1
    for (i, j), cell in expected.items():
        assert_same(found[i, j], torch.cat(cell[:number]))


def test_a_grid_takes_a_step_for_each_diagonal(monkeypatch):
    model, steps = model_of(), []
    step = model.cells.step
    monkeypatch.setattr(model.cells, "step", lambda *inputs: steps.append(inputs[0].shape[1]) or step(*inputs))
    model.grid(torch.randn(1, 4, WIDTH), torch.randn(1, 3, WIDTH))
    assert steps == [1, 2, 3, 3, 2, 1]


def test_each_id_has_its_coupling_and_another_one_is_refused():
    sizes = {}
    for id in ("coupled_lstm", "coupled_lstm_loose"):
        sizes[id] = CoupledLSTM(WIDTH, **registry.entry("architectures", id).hyperparameters).cells.size
    assert sizes == {"coupled_lstm": 50, "coupled_lstm_loose": 100}
    with pytest.raises(ValueError, match="coupling='none' is none of loose, tight"):
        CoupledLSTM(WIDTH, coupling="none")
