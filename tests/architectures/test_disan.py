"""The mechanism of DiSAN: a weight for each feature, directions that let nothing through from the
wrong side, gate, source2token."""

from __future__ import annotations

import math
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from architectures.attention import disan
from architectures.attention.disan import LONG, DirectionalAttention, DiSAN, Source2Token, attended
from tests.support.batches import assert_each_alone, mask_of, poisoned, random_vectors
from tests.support.models import small
from tests.support.oracles import softmax_mean
from tests.support.same import assert_same

WIDTH, HIDDEN = 3, 4
LENGTHS = (6, 1, 4)

texts = partial(random_vectors, seed=1, width=WIDTH)


model_of = partial(small, DiSAN, WIDTH, hidden=HIDDEN)


def written_out(layer: DirectionalAttention, vectors: Tensor) -> Tensor:
    """One direction over one text (T, width): token by token, pair by pair, feature by feature."""
    tokens = [F.elu(layer.map.weight @ x + layer.map.bias) for x in vectors]
    found = []
    for j, token in enumerate(tokens):
        before = range(j) if layer.forwards else range(j + 1, len(tokens))
        context = torch.zeros(HIDDEN)
        if before:
            scores = [
                5 * torch.tanh((layer.key.weight @ tokens[i] + layer.query.weight @ token + layer.query.bias) / 5)
                for i in before
            ]
            context = softmax_mean(scores, [tokens[i] for i in before])
        gate = torch.sigmoid(
            layer.gate_attended.weight @ context + layer.gate_token.weight @ token + layer.gate_token.bias
        )
        found.append(gate * token + (1 - gate) * context)
    return torch.stack(found)


def test_states_are_both_directions_written_out_pair_by_pair():
    """Texts of several blocks of queries and of one word, beside each other."""
    model, batch = model_of(), texts(LENGTHS)

    def both(text: Tensor) -> Tensor:
        return torch.cat([written_out(model.forwards, text), written_out(model.backwards, text)], dim=-1)

    assert_each_alone(model(*batch), both, batch, states=True, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("direction", ["forwards", "backwards"])
def test_no_token_sees_itself_or_one_on_the_wrong_side(direction):
    """Every entry of the Jacobian of s_j by h_i: all of one side, nothing of the other, nothing on
    the diagonal."""
    layer = getattr(model_of(), direction)
    tokens = torch.randn(1, 6, HIDDEN)
    with torch.no_grad():  # all ask the same, so that only what a token attends to is left
        layer.query.weight.zero_()
    by_token = torch.autograd.functional.jacobian(lambda h: layer.attention(h, mask_of([6])), tokens)
    seen = by_token[0, :, :, 0].abs().sum((1, 3)) > 0
    full = torch.ones(6, 6, dtype=torch.bool)
    assert torch.equal(seen, full.tril(-1) if direction == "forwards" else full.triu(1))


def test_the_token_with_nothing_to_attend_to_has_zeros_there_and_a_finite_gradient():
    """A softmax over nothing would give NaN or a mean of what must not be seen, and its gradient
    would wreck the model."""
    model, (vectors, mask) = model_of(), texts(LENGTHS)
    tokens = torch.randn(3, 6, HIDDEN)
    assert not model.forwards.attention(tokens, mask)[:, 0].any()
    assert not model.backwards.attention(tokens, mask)[[0, 1, 2], [5, 0, 3]].any()
    (1e6 * model.pooled(model(vectors, mask), mask)).sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())


def test_weights_are_a_softmax_for_each_feature_with_scores_bent_at_the_scale():
    """Two keys, two features that prefer different keys: hand-worked with tanh saturated, so that
    the scores are +5 and -5."""
    keys = torch.tensor([[[1000.0, -1000.0], [-1000.0, 1000.0]]])
    values = torch.tensor([[[1.0, 10.0], [3.0, 30.0]]])
    found = attended(torch.zeros(1, 1, 2), keys, values, torch.ones(1, 1, 2, dtype=torch.bool), scale=5.0)
    strong = math.exp(5) / (math.exp(5) + math.exp(-5))
    torch.testing.assert_close(
        found[0, 0], torch.tensor([strong * 1 + (1 - strong) * 3, (1 - strong) * 10 + strong * 30])
    )


def test_a_texts_vector_is_its_source2token_attention_feature_by_feature():
    model, (vectors, mask) = model_of(), texts(LENGTHS)
    states = poisoned(model(vectors, mask).detach(), mask)
    _, first, _, _, second = model.source2token.scores

    def mean(states: Tensor) -> Tensor:
        hidden = [F.elu(first.weight @ state + first.bias) for state in states]
        return softmax_mean([second.weight @ h + second.bias for h in hidden], states)

    assert_each_alone(model.pooled(states, mask), mean, (states, mask), atol=1e-5, rtol=1e-5)


def test_source2token_attention_learns_where_a_text_needs_a_vector():
    """The contract excuses its parameters, for the tasks that need none."""
    model, (vectors, mask) = model_of(), texts(LENGTHS)
    model.pooled(model(vectors, mask), mask).sum().backward()
    assert isinstance(model.source2token, Source2Token)
    assert all(parameter.grad.any() for parameter in model.parameters())


def test_long_texts_give_the_same_states_and_gradients_as_when_all_weights_are_kept(monkeypatch):
    """Above ``LONG`` positions the weights are computed twice; a wrong saving of memory would
    change what is learned."""
    vectors, mask = texts((11, 5))
    found = []
    for limit in (10, 11):
        monkeypatch.setattr(disan, "LONG", limit)
        model = model_of()
        states = model(vectors, mask)
        model.pooled(states, mask).square().sum().backward()
        found.append([states, *(parameter.grad for parameter in model.parameters())])
    torch.testing.assert_close(*found)


def test_long_texts_keep_no_number_for_each_pair_of_words_and_feature():
    """400 words in 300 features are 48 million such numbers per text and direction: memory would
    run out."""
    kept: list[int] = []

    def keep(tensor: Tensor) -> Tensor:
        kept.append(tensor.numel())
        return tensor

    model, (vectors, mask) = model_of(), texts([2 * LONG])
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        model(vectors, mask)
    assert sum(kept) < (2 * LONG) ** 2 * HIDDEN


def dropped(**settings) -> DiSAN:
    """A model in training that drops every number it may drop."""
    return model_of(dropout=1.0, **settings).train()


@pytest.mark.parametrize("direction", ["forwards", "backwards"])
def test_queries_and_keys_are_dropped_and_values_are_not(direction):
    """All keys are alike then, and s_j is the plain mean of the tokens that j sees: dropped values
    would make it zero, and kept keys another mean."""
    layer, tokens = getattr(dropped(), direction), torch.randn(1, 5, HIDDEN)
    found = layer.attention(tokens, mask_of([5]))[0]
    for j in range(5):
        seen = tokens[0, :j] if direction == "forwards" else tokens[0, j + 1 :]
        torch.testing.assert_close(found[j], seen.mean(0) if len(seen) else torch.zeros(HIDDEN))


def test_what_the_map_and_the_gate_read_is_dropped():
    """Tokens are elu(b) then, whatever the words are, and the gate stands at sigmoid(b). A
    direction without dropout overfits small tasks."""
    layer, context = dropped().forwards, torch.randn(1, 5, HIDDEN)
    layer.attention = lambda tokens, mask: context
    token, gate = F.elu(layer.map.bias), torch.sigmoid(layer.gate_token.bias)
    expected = gate * token + (1 - gate) * context
    assert_same(layer(torch.randn(1, 5, WIDTH), mask_of([5])), expected)


@pytest.mark.parametrize("kept", [0, 3])
def test_both_layers_of_source2token_attention_read_dropped_states(kept):
    """With either of them blind every position scores the same, and the vector is the plain mean of
    the states, which are not dropped themselves."""
    model, (states, mask) = dropped(), random_vectors(LENGTHS, 1, 2 * HIDDEN)
    model.source2token.scores[kept].p = 0.0
    assert_each_alone(model.pooled(states, mask), lambda own: own.mean(0), (states, mask))


def test_as_many_numbers_are_dropped_as_are_asked_for():
    """A share that does not reach the layers leaves the paper's dropout out."""
    model = model_of(dropout=0.5).train()
    layer = model.forwards
    seen: list[Tensor] = []
    layer.map.register_forward_hook(lambda module, inputs, output: seen.append(inputs[0]))
    model.source2token.scores[1].register_forward_hook(lambda module, inputs, output: seen.append(inputs[0]))
    model.pooled(model(torch.ones(20, 9, WIDTH), mask_of([9] * 20)), mask_of([9] * 20))
    assert all(0.4 < (numbers == 0).float().mean() < 0.6 for numbers in seen)
