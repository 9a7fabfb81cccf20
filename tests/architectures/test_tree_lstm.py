"""The mechanism of Tree-LSTMs: a forget gate per child, words at the leaves only, and all nodes of
one height at once."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import Tensor, nn

from architectures.recurrent.tree_lstm import CHILDREN, TreeLSTM
from harness import registry
from tests.support.models import small
from tests.support.same import assert_same
from tests.support.trees import TREES, WIDTH, node_by_node, trees_of

HIDDEN = 4


def model_of(children: str) -> TreeLSTM:
    return small(TreeLSTM, WIDTH, HIDDEN, children=children)


def gates(model: TreeLSTM, h_left: Tensor, h_right: Tensor) -> tuple[Tensor, ...]:
    """What i, o, u and the two forget gates get from the children, matrix by matrix."""
    composition, h = model.composition, HIDDEN
    if len(composition.forget.weight) == h:
        i, o, u = (composition.gates.weight[g * h : (g + 1) * h] @ (h_left + h_right) for g in range(3))
        return i, o, u, composition.forget.weight @ h_left, composition.forget.weight @ h_right
    blocks = [*composition.gates.weight.split(h), *composition.forget.weight.split(h)]
    assert len(blocks) == 5 and blocks[0].shape == (h, 2 * h)
    return tuple(block[:, :h] @ h_left + block[:, h:] @ h_right for block in blocks)


def recursion(model: TreeLSTM, tree: str) -> list[Tensor]:
    """States of a tree's nodes, one after the other: equations 2 to 8 (child-sum) and 9 to 14
    (N-ary) of the paper."""
    b_i, b_o, b_u = model.input.bias.split(HIDDEN)
    w_i, w_o, w_u = model.input.weight.split(HIDDEN)

    def state_of(i: Tensor, o: Tensor, u: Tensor, kept: Tensor) -> tuple[Tensor, Tensor]:
        cell = torch.sigmoid(i) * torch.tanh(u) + kept
        return torch.sigmoid(o) * torch.tanh(cell), cell

    def leaf(x: Tensor) -> tuple[Tensor, Tensor]:
        return state_of(w_i @ x + b_i, w_o @ x + b_o, w_u @ x + b_u, torch.zeros(HIDDEN))

    def parent(left: tuple[Tensor, Tensor], right: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        (h_left, c_left), (h_right, c_right) = left, right
        i, o, u, f_left, f_right = gates(model, h_left, h_right)
        kept = torch.sigmoid(f_left + model.forget_bias) * c_left + torch.sigmoid(f_right + model.forget_bias) * c_right
        return state_of(i + b_i, o + b_o, u + b_u, kept)

    return [state for state, _ in node_by_node(tree, leaf, parent)]


@pytest.mark.parametrize("children", CHILDREN)
def test_trees_computed_level_by_level_are_each_tree_node_by_node(children):
    """One forget gate for both children, words at inner nodes, or a level that reads the wrong rows
    would each show here."""
    model = model_of(children)
    assert_same(model.nodes(trees_of(*TREES)), torch.stack([h for tree in TREES for h in recursion(model, tree)]))


@pytest.mark.parametrize("children", CHILDREN)
def test_a_level_is_one_step_for_the_whole_trees_of(children, monkeypatch):
    """Node by node is slower by orders: the longest of the trees has three levels, however many
    trees there are."""
    model, steps = model_of(children), []
    compute = model.parent
    monkeypatch.setattr(model, "parent", lambda left, right: steps.append(len(left)) or compute(left, right))
    model.nodes(trees_of(*TREES))
    assert steps == [4, 2, 1]


def test_the_order_of_children_counts_in_the_binary_tree_alone():
    """The sum of children has none."""
    turned = trees_of("(1 (2 a) (2 not))", "(3 (4 (4 fine) (3 very)) (2 a))")
    straight = trees_of("(1 (2 not) (2 a))", "(3 (2 a) (4 (3 very) (4 fine)))")
    child_sum, binary = model_of("sum"), model_of("n-ary")
    assert_same(child_sum(turned), child_sum(straight))
    assert not torch.isclose(binary(turned), binary(straight), atol=1e-3).all(1).any()


def test_a_forget_gate_reads_the_sibling_in_the_binary_tree_alone():
    left, siblings = torch.ones(2, HIDDEN), torch.tensor([[1.0], [-1.0]]).expand(2, HIDDEN)
    for children, reads in {"n-ary": True, "sum": False}.items():
        _, forget, _ = model_of(children).composition(left, siblings)
        assert torch.equal(forget[0], forget[1]) == (not reads), children


@pytest.mark.parametrize("children", CHILDREN)
def test_a_node_with_one_child_is_a_chain_lstms_step(children):
    """With nothing in the other slot, the cell must be that of torch."""
    model, h = model_of(children), HIDDEN
    chain = nn.LSTMCell(WIDTH, h)
    forget, recurrent = model.composition.forget.weight[:h, :h], model.composition.gates.weight[:, :h]
    (b_i, b_o, b_u), (u_i, u_o, u_u) = model.input.bias.split(h), recurrent.split(h)
    with torch.no_grad():  # torch's order is i, f, u, o
        chain.weight_hh.copy_(torch.cat([u_i, forget, u_u, u_o]))
        chain.bias_ih.copy_(torch.cat([b_i, model.forget_bias, b_u, b_o]))
        chain.bias_hh.zero_()
    state, cell = torch.randn(2, h), torch.randn(2, h)
    expected = torch.cat(chain(torch.zeros(2, WIDTH), (state, cell)), dim=1)
    torch.testing.assert_close(model.parent(torch.cat([state, cell], dim=1), torch.zeros(2, 2 * h)), expected)


@pytest.mark.parametrize("children", CHILDREN)
def test_a_text_of_one_word_is_its_leaf(children):
    model = model_of(children)
    (expected,) = recursion(model, "(2 fine)")
    assert_same(model(trees_of("(2 fine)", "(4 fine)")), torch.stack([expected, expected]))


def test_half_of_each_state_is_dropped_before_the_softmax_and_none_inside_the_tree():
    """Dropout within the recursion would make inner states random too: what is kept must be twice
    the state without dropout."""
    model = model_of("n-ary")
    states = model.nodes(trees_of(*TREES * 10))
    torch.manual_seed(0)
    dropped = model.train().nodes(trees_of(*TREES * 10))
    kept = dropped != 0
    assert_same(dropped[kept], 2 * states[kept])
    assert 0.4 < kept.float().mean() < 0.6


def test_each_id_reads_children_as_its_name_says():
    """The sum forgets their order, the binary tree does not; two ids of one model would be two rows
    with one mechanism."""
    turned = trees_of("(1 (2 a) (2 not))", "(3 (4 (4 fine) (3 very)) (2 a))")
    straight = trees_of("(1 (2 not) (2 a))", "(3 (2 a) (4 (3 very) (4 fine)))")
    for id, ordered in {"tree_lstm": True, "tree_lstm_child_sum": False}.items():
        entry = registry.entry("architectures", id)
        model = small(partial(registry.load(entry), WIDTH, **entry.hyperparameters | {"hidden": HIDDEN}))
        assert torch.allclose(model(turned), model(straight), atol=1e-5) != ordered, id


def test_forget_gates_start_without_a_bias_and_share_it():
    """One bias for all children, at zero, which is our choice."""
    model = TreeLSTM(WIDTH, HIDDEN)
    assert model.forget_bias.shape == (HIDDEN,) and not model.forget_bias.any()


def test_an_unknown_way_to_read_children_is_refused_by_name():
    with pytest.raises(ValueError, match="'both' is none of n-ary, sum"):
        TreeLSTM(WIDTH, children="both")
