"""The mechanism of the S-LSTM: gates that look at both children's memory cells, and a forget gate
for each."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from architectures.recurrent.s_lstm import StructuralLSTM
from architectures.recurrent.tree_lstm import TreeLSTM
from tests.support.models import small
from tests.support.same import assert_same
from tests.support.trees import TREES, VECTORS, WIDTH, node_by_node, trees_of

HIDDEN = 4

State = tuple[Tensor, Tensor]


def model_of(**settings) -> StructuralLSTM:
    return small(StructuralLSTM, WIDTH, hidden=HIDDEN, **settings)


def recursion(model: StructuralLSTM, tree: str) -> list[Tensor]:
    """States of a tree's nodes, one after the other, matrix by matrix."""
    w, b = model.states.weight.split(HIDDEN), model.states.bias.split(HIDDEN)
    v, v_o = model.cells.weight.split(HIDDEN), model.peephole.weight

    def parent(left: State, right: State) -> State:
        (h_l, c_l), (h_r, c_r) = left, right
        i, f_l, f_r, x, o = (m[:, :HIDDEN] @ h_l + m[:, HIDDEN:] @ h_r + bias for m, bias in zip(w, b, strict=True))
        peeps = [m[:, :HIDDEN] @ c_l + m[:, HIDDEN:] @ c_r for m in v]
        i, f_l, f_r = (torch.sigmoid(gate + peep) for gate, peep in zip((i, f_l, f_r), peeps, strict=True))
        c = f_l * c_l + f_r * c_r + i * torch.tanh(x)
        return torch.sigmoid(o + v_o @ c) * torch.tanh(c), c

    nodes = node_by_node(tree, lambda word: (torch.tanh(model.project.weight @ word), torch.zeros(HIDDEN)), parent)
    return [h for h, _ in nodes]


def test_trees_computed_level_by_level_are_each_tree_node_by_node():
    """One forget gate for both children, gates blind to a cell, or an output gate that looks at the
    children's cells would each show here."""
    model = model_of()
    assert_same(model.nodes(trees_of(*TREES)), torch.stack([h for tree in TREES for h in recursion(model, tree)]))
    assert_same(model(trees_of(*TREES)), torch.stack([recursion(model, tree)[-1] for tree in TREES]))


def test_without_peepholes_a_node_is_the_tree_lstms():
    """What the two differ in above the leaves is the cells that the gates see, and nothing else."""
    model, other, h = model_of(), small(TreeLSTM, WIDTH, HIDDEN), HIDDEN
    i, f_l, f_r, x, o = model.states.weight.split(h)
    with torch.no_grad():
        model.cells.weight.zero_()
        model.peephole.weight.zero_()
        bias = torch.randn(h)
        model.states.bias.copy_(
            torch.cat([other.input.bias[:h], bias, bias, other.input.bias[2 * h :], other.input.bias[h : 2 * h]])
        )
        other.composition.gates.weight.copy_(torch.cat([i, o, x]))
        other.composition.forget.weight.copy_(torch.cat([f_l, f_r]))
        other.forget_bias.copy_(bias)
    left, right = torch.randn(2, 5, 2 * h)
    torch.testing.assert_close(model.parent(left, right), other.parent(left, right))


@pytest.mark.parametrize("side", [0, 1])
def test_every_gate_sees_each_childs_cell(side):
    """Memory of descendants decides what is kept, written and shown. With h alike, a cell alone
    must change all three gates."""
    model = model_of()
    seen: list[Tensor] = []
    model.cells.register_forward_hook(lambda layer, inputs, output: seen.append(output))
    model.peephole.register_forward_hook(lambda layer, inputs, output: seen.append(output))
    children = torch.randn(2, 1, 2 * HIDDEN)
    model.parent(*children)
    children[side, :, HIDDEN:] += 1
    model.parent(*children)
    assert not torch.isclose(seen[0], seen[2], atol=1e-4).any() and not torch.isclose(seen[1], seen[3], atol=1e-4).any()


def test_a_leaf_is_its_word_and_remembers_nothing():
    model = StructuralLSTM(WIDTH, hidden=WIDTH).eval()
    assert isinstance(model.project, nn.Identity)
    torch.testing.assert_close(model(trees_of("(2 fine)")), torch.tanh(VECTORS[1:2]))


def test_half_of_each_state_is_dropped_before_the_softmax_and_none_inside_the_tree():
    """What is kept must be twice the state without dropout."""
    model = model_of()
    states = model.nodes(trees_of(*TREES * 10))
    dropped = model.train().nodes(trees_of(*TREES * 10))
    kept = dropped != 0
    assert_same(dropped[kept], 2 * states[kept])
    assert 0.4 < kept.float().mean() < 0.6
