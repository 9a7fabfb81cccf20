"""The mechanism of the contextualised non-local network: edges between all words, found anew in
each round, over nodes that know their neighbourhood."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import Tensor

from architectures.graph.cnln import ContextualizedNonLocal
from harness.problems.classify import text_vector
from tests.support.batches import assert_each_alone, random_texts
from tests.support.models import small
from tests.support.oracles import recurrent, softmax_mean
from tests.support.same import assert_same

WIDTH, HIDDEN = 3, 2

texts = partial(random_texts, (6, 3, 1), 1, WIDTH)
model_of = partial(small, ContextualizedNonLocal, WIDTH, hidden=HIDDEN, dropout=0.0)


def rounds(model: ContextualizedNonLocal, nodes: list[Tensor], number: int) -> list[Tensor]:
    """The nodes after so many rounds, one after the other."""
    for _ in range(number):
        heard = []
        for node in nodes:
            query = model.queries.weight @ node
            scores = [query @ (model.keys.weight @ other) / len(node) ** 0.5 for other in nodes]
            message = softmax_mean(scores, [model.values.weight @ other for other in nodes])
            joined = torch.cat([node, message])
            z = torch.sigmoid(model.gate.weight @ joined + model.gate.bias)
            heard.append(z * torch.tanh(model.candidate.weight @ joined + model.candidate.bias) + (1 - z) * node)
        nodes = heard
    return nodes


def written_out(model: ContextualizedNonLocal, vectors: Tensor) -> Tensor:
    """States (n, 2 * HIDDEN) of the words of a text."""
    words = recurrent(model.context, vectors)
    return torch.stack(rounds(model, [words.mean(0), *words], model.layers)[1:])


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_a_batch_is_each_text_written_out_node_by_node(layers):
    """No virtual node, edges of the first round in all rounds, a gate turned round or padding that
    is heard would each give other states."""
    model, batch = model_of(layers=layers), texts()
    assert model.context.backwards, "nodes know what stands behind them too"
    states = model(batch.vectors, batch.mask)
    assert_each_alone(states, partial(written_out, model), batch, states=True)


def test_a_texts_vector_is_the_maximum_of_its_words_and_not_the_virtual_node():
    model, batch = model_of(), texts()
    assert_each_alone(text_vector(model, batch), lambda vectors: written_out(model, vectors).amax(0), batch)


def test_edges_sum_to_one_over_real_nodes():
    model, batch = model_of(), texts()
    weights = model.edges(torch.randn(3, 6, 2 * HIDDEN), batch.mask)
    torch.testing.assert_close(weights.sum(2), torch.ones(3, 6))
    assert not weights.transpose(1, 2)[~batch.mask].any()


def test_without_its_local_context_the_network_is_blind_to_order():
    """What a node knows of its place comes from the BiLSTM alone."""
    model = model_of()
    nodes = list(torch.randn(5, 2 * HIDDEN))
    found = rounds(model, nodes, 2)
    turned = rounds(model, nodes[::-1], 2)[::-1]
    assert_same(torch.stack(turned), torch.stack(found))
    batch = random_texts([5], 1, WIDTH)
    backwards = model(batch.vectors.flip(1), batch.mask).flip(1)
    assert not torch.allclose(backwards, model(batch.vectors, batch.mask), atol=1e-2)


def test_a_shut_gate_keeps_the_nodes():
    model, batch = model_of(), texts()
    with torch.no_grad():
        model.gate.weight.zero_()
        model.gate.bias.fill_(-200.0)
    words = model.context(batch.vectors, batch.mask)
    assert_same(model(batch.vectors, batch.mask), words)


def test_dropout_acts_on_words_and_messages():
    model, seen = small(ContextualizedNonLocal, 40, hidden=20, layers=2, dropout=0.5).train(), []
    model.dropout.register_forward_hook(lambda layer, inputs, output: seen.append((inputs[0].shape[1], output)))
    batch = random_texts([6, 6], 1, 40)
    model(batch.vectors, batch.mask)
    assert [length for length, _ in seen] == [6, 7, 7]
    assert all(0.4 < (output == 0).float().mean() < 0.6 for _, output in seen)
