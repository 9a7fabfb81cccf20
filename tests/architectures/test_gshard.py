"""GShard: pieces go to experts as the paper's algorithm says, one expert is a dense network, and
the loss of the balance is least at balance."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from architectures.pretrained.gshard import Experts, GShard, routes, unbalance
from harness.objectives import collected_losses
from harness.views.subwords import Subwords
from tests.support.models import small
from tests.support.same import assert_same

transformers = pytest.importorskip("transformers")

LENGTHS = [7, 4, 1]
MASK = torch.arange(7) < torch.tensor(LENGTHS)[:, None]
VIEW = Subwords(size=60, max_length=16)
VIEW.fit(["the cat sat on the mat", "a dog ran", "the end"])
BATCH = VIEW.collate(VIEW.encode(["the cat sat on the mat", "a dog ran", "a"]), np.arange(3))


def gates_of(experts: int, seed: int = 0) -> Tensor:
    torch.manual_seed(seed)
    return (2 * torch.randn(*MASK.shape, experts)).softmax(-1)


def by_the_algorithm(gates: Tensor, capacity: int, numbers: Tensor) -> tuple[Tensor, Tensor, int]:
    """Shares (N, E), first choices (N,) of the positions of one text, and how many of the wishes
    found no room, by two loops over the positions."""
    count, experts = gates.shape
    shares, taken, lost = torch.zeros_like(gates), [0] * experts, 0
    ranked = gates.sort(1, descending=True)
    for position in range(count):
        expert = int(ranked.indices[position, 0])
        if taken[expert] < capacity:
            shares[position, expert] = ranked.values[position, 0] / ranked.values[position, :2].sum()
            taken[expert] += 1
        else:
            lost += 1
    for position in range(count):
        expert, share = int(ranked.indices[position, 1]), ranked.values[position, 1] / ranked.values[position, :2].sum()
        if not numbers[position] < 2 * share:
            continue
        if taken[expert] < capacity:
            shares[position, expert] = share
            taken[expert] += 1
        else:
            lost += 1
    return shares, ranked.indices[:, 0], lost


@pytest.mark.parametrize(("experts", "capacity"), [(2, 3), (4, 1), (4, 2), (5, 7)])
def test_pieces_go_where_the_algorithm_sends_them(experts, capacity):
    """Second choices that are served before first ones, or padding that takes room, would send
    other pieces past all experts."""
    losses = 0
    for seed in range(8):
        gates, numbers = gates_of(experts, seed).requires_grad_(), torch.rand(MASK.shape)
        room = torch.full((len(MASK), 1, 1), capacity)
        found = routes(gates, MASK, room, numbers)
        for row, length in enumerate(LENGTHS):
            shares, first, lost = by_the_algorithm(gates[row, :length], capacity, numbers[row])
            assert_same(found.shares[row, :length], shares)
            assert torch.equal(found.sent[row, :length], shares > 0)
            assert torch.equal(found.first[row, :length].long().argmax(1), first)
            asked = length + int((numbers[row, :length] < 2 * second_shares(gates[row, :length])).sum())
            assert found.sent[row].sum() == asked - lost, "each wish is served or lost"
            losses += lost
        assert not found.sent[~MASK].any() and not found.first[~MASK].any()
    assert bool(losses) == (capacity < 7)


def second_shares(gates: Tensor) -> Tensor:
    best = gates.sort(-1, descending=True).values
    return best[..., 1] / best[..., :2].sum(-1)


def test_the_second_expert_is_asked_as_often_as_twice_its_share():
    """With gates of .6, .15, .15 and .1 its share is .2."""
    torch.manual_seed(0)
    gates = torch.tensor([0.6, 0.1, 0.15, 0.15]).expand(1, 20_000, 4)
    mask = torch.ones(1, 20_000, dtype=torch.bool)
    found = routes(gates, mask, torch.full((1, 1, 1), 40_000), torch.rand(1, 20_000))
    assert found.sent[..., 0].all() and not found.sent[..., 1].any() and not found.sent[..., 3].any()
    assert found.sent[..., 2].double().mean().item() == pytest.approx(0.4, abs=0.015)
    torch.testing.assert_close(found.shares[found.sent[..., 2]][0], torch.tensor([0.8, 0, 0.2, 0]))


def mixture(experts: int, balance: float = 0.01) -> Experts:
    return small(Experts, 6, 5, experts, balance)


def by_loops(layer: Experts, states: Tensor, shares: Tensor) -> Tensor:
    """The sum of the experts' answers, position by position, from their matrices."""
    rows = []
    for row in range(len(states)):
        for position in range(states.shape[1]):
            total = torch.zeros(states.shape[2])
            for expert, share in enumerate(shares[row, position]):
                if share > 0:
                    first, _, last = layer.networks[expert]
                    units = (first.weight @ states[row, position] + first.bias).clamp(min=0)
                    total = total + share * (last.weight @ units + last.bias)
            rows.append(total)
    return torch.stack(rows).view_as(states)


@pytest.mark.parametrize("training", [False, True])
def test_a_position_reads_its_experts_by_their_shares(training):
    """In values and in all gradients: the gate learns through the shares alone."""
    layer, numbers = mixture(4).train(training), torch.rand(MASK.shape)
    states = torch.randn(*MASK.shape, 6, requires_grad=True)
    torch.manual_seed(5)
    found = layer(states, MASK)
    torch.manual_seed(5)
    numbers = torch.rand(MASK.shape) if training else torch.zeros(MASK.shape)
    gates = (states @ layer.gate.weight.T).softmax(-1)
    shares = torch.zeros_like(gates)
    for row, length in enumerate(LENGTHS):
        room = math.ceil(2 * length / 4) if training else length
        shares[row, :length] = by_the_algorithm(gates[row, :length], room, numbers[row])[0]
    expected = by_loops(layer, states, shares)
    assert_same(found, expected, rtol=1e-4, atol=1e-4)


def test_who_finds_no_room_passes_by_the_residual_alone():
    """In training six equal positions want the same two of four experts, which have room for
    three."""
    layer = mixture(4).train()
    states = torch.randn(6).expand(1, 6, 6)
    found = layer(states)[0]
    assert found[:3].abs().amax(1).min() > 1e-3
    assert not found[3:].any()
    assert (layer.eval()(states)[0].abs().amax(1) > 1e-3).all(), "in evaluation there is room for all"


def test_an_expert_learns_from_its_positions_alone():
    layer = mixture(4)
    states = torch.randn(1, 3, 6, requires_grad=True)
    found = routes(
        (states @ layer.gate.weight.T).softmax(-1), MASK[:1, :3], torch.full((1, 1, 1), 3), torch.zeros(1, 3)
    )
    for position in range(3):
        layer.zero_grad()
        layer(states)[0, position].sin().sum().backward()
        touched = [bool(network[0].weight.grad.any()) for network in layer.networks]
        assert touched == found.sent[0, position].tolist() and sum(touched) == 2


def test_padding_takes_no_room():
    """A text beside a longer one is read as it is alone, also in training, where room is scarce."""
    layer = mixture(4).train()
    states = torch.randn(1, 5, 6)
    torch.manual_seed(0)
    alone = layer(states)
    padded = torch.cat([states, torch.randn(1, 4, 6)], 1)
    torch.manual_seed(0)
    beside = layer(padded, torch.arange(9)[None] < 5)
    assert_same(beside[:, :5], alone)
    assert not beside[:, 5:].any()


def test_one_expert_is_a_dense_network():
    layer = mixture(1)
    dense, states = layer.networks[0], torch.randn(*MASK.shape, 6)
    for training in (False, True):
        assert_same(layer.train(training)(states, MASK)[MASK], dense(states)[MASK])


def test_the_loss_of_the_balance_is_one_at_balance_and_more_elsewhere():
    """Four positions whose first choices are four experts; all on one expert; and a hand-worked
    case: first choices 3 and 1 of 4, mean gates .7 and .3: 2 (.75 * .7 + .25 * .3) = 1.2."""
    sure = torch.eye(4) * 0.6 + 0.1
    for gates, expected in (
        (sure, 1.0),
        (sure[0].expand(4, 4), 2.8),
        (torch.tensor([[0.9, 0.1], [0.9, 0.1], [0.8, 0.2], [0.2, 0.8]]), 1.2),
    ):
        first = torch.nn.functional.one_hot(gates.argmax(-1), gates.shape[-1]).bool()
        found = unbalance(gates[None], torch.ones(1, 4, dtype=torch.bool), first[None])
        assert found.item() == pytest.approx(expected)


def test_the_loss_of_the_balance_reads_texts_without_their_padding():
    gates = gates_of(3)
    first = routes(gates, MASK, torch.full((3, 1, 1), 9), torch.ones(MASK.shape)).first
    each = []
    for row, length in enumerate(LENGTHS):
        own = gates[row, :length]
        count = torch.bincount(own.argmax(1), minlength=3) / length
        each.append(3 * sum(count[expert] * own[:, expert].mean() for expert in range(3)))
    assert unbalance(gates, MASK, first).item() == pytest.approx(sum(each).item() / 3)


def made(**sizes: Any) -> GShard:
    sizes = {"layers": 4, "hidden": 12, "heads": 3, "experts": 4, "expert_inner": 10} | sizes
    return small(GShard, VIEW.width, VIEW, stretch=20.0, **sizes)


def test_every_other_layer_has_experts_whose_loss_is_added_in_training():
    model = made(balance=0.25)
    assert [isinstance(layer.feedforward, Experts) for layer in model.body.layers] == [False, True] * 2
    with collected_losses() as none:
        model(BATCH)
    assert not none, "the score of a text has no other terms"
    seen: list[Tensor] = []
    for layer in model.body.layers[1::2]:
        layer.feedforward.register_forward_pre_hook(
            lambda module, inputs: seen.append(
                unbalance(
                    gates := module.gate(inputs[0]).softmax(-1),
                    inputs[1],
                    nn.functional.one_hot(gates.argmax(-1), 4).bool() & inputs[1][..., None],
                )
            )
        )
    with collected_losses() as terms:
        model.train()(BATCH)
    assert [*terms] == ["balance"] and len(seen) == 2
    assert_same(terms["balance"], 0.25 * (seen[0] + seen[1]))
    terms["balance"].backward()
    assert all(layer.feedforward.gate.weight.grad.any() for layer in model.body.layers[1::2])


def test_states_with_one_expert_are_those_of_transformers():
    """All around the experts, in values and gradients, against a body in which every network is
    dense."""
    config = transformers.BertConfig(
        vocab_size=VIEW.width,
        hidden_size=12,
        num_hidden_layers=2,
        num_attention_heads=3,
        intermediate_size=48,
        max_position_embeddings=16,
        type_vocab_size=1,
        hidden_act="relu",
    )
    ours, theirs = made(layers=2, experts=1, expert_inner=48), transformers.BertModel(config).eval()
    renamed = {name: weights.detach() for name, weights in ours.named_parameters()}
    with torch.no_grad():
        for part in ("word_embeddings", "position_embeddings", "LayerNorm"):
            name = {"word_embeddings": "table", "position_embeddings": "positions", "LayerNorm": "norm"}[part]
            for kind, weights in getattr(theirs.embeddings, part).named_parameters():
                weights.copy_(renamed[f"{name}.{kind}"])
        theirs.embeddings.token_type_embeddings.weight.zero_()
        for number, layer in enumerate(theirs.encoder.layer):
            network = "feedforward.networks.0" if number % 2 else "feedforward"
            pairs = {
                layer.attention.self.query: "attention.query",
                layer.attention.self.key: "attention.key",
                layer.attention.self.value: "attention.value",
                layer.attention.output.dense: "attention.output",
                layer.attention.output.LayerNorm: "norms.0",
                layer.intermediate.dense: f"{network}.0",
                layer.output.dense: f"{network}.{2 if number % 2 else 3}",
                layer.output.LayerNorm: "norms.1",
            }
            for module, name in pairs.items():
                for kind, weights in module.named_parameters():
                    weights.copy_(renamed[f"body.layers.{number}.{name}.{kind}"])
    states = ours(BATCH)[BATCH.mask]
    expected = theirs(BATCH.ids, attention_mask=BATCH.mask.long()).last_hidden_state[BATCH.mask]
    torch.testing.assert_close(states, expected, rtol=1e-5, atol=1e-5)
    weights = torch.randn_like(states)
    (states * weights).sum().backward()
    (expected * weights).sum().backward()
    slopes = theirs.embeddings.word_embeddings.weight.grad
    torch.testing.assert_close(ours.table.weight.grad, slopes, rtol=1e-4, atol=1e-4)


def test_the_default_costs_what_a_dense_network_does():
    """Two experts of half the units: equal numbers of weights that a piece reads."""
    body = GShard(20, Subwords(max_length=16)).body
    dense, mixed = body.layers[0].feedforward, body.layers[1].feedforward
    count = lambda module: sum(matrix.numel() for matrix in module.parameters() if matrix.dim() > 1)  # noqa: E731
    assert len(mixed.networks) == 8
    assert 2 * count(mixed.networks[0]) == count(dense)
