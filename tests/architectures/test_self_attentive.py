"""The mechanism of the structured self-attentive embedding: several attentions over one text,
pressed apart by a penalty."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from architectures.attention.self_attentive import SelfAttentive
from harness.objectives import collected_losses
from harness.problems import problem
from harness.problems.classify import ClassTarget
from harness.training.model import build
from harness.views.words import WordBatch, Words
from tests.support.batches import assert_each_alone, random_texts, rows_alone
from tests.support.models import small
from tests.support.oracles import lstm
from tests.support.same import assert_same

WIDTH, ROWS = 4, 3
LENGTHS = (5, 1, 3)

texts = partial(random_texts, width=WIDTH)


def model_of(**options) -> SelfAttentive:
    return small(SelfAttentive, WIDTH, **dict(hidden=3, attention=5, rows=ROWS, output=6) | options)


def states_of(model: SelfAttentive, vectors: Tensor) -> Tensor:
    """States of the LSTM's two directions over one text, side by side."""
    (left,), (right,) = model.recurrence.forwards, model.recurrence.backwards
    return torch.cat([lstm(left, vectors), lstm(right, vectors.flip(0)).flip(0)], dim=1)


def attentions(model: SelfAttentive, states: Tensor) -> Tensor:
    """A (rows, n) of one text's states (n, size), row by row and word by word."""
    hidden = [torch.tanh(model.first.weight @ state) for state in states]
    energies = torch.stack([torch.stack([(row @ h).exp() for h in hidden]) for row in model.second.weight])
    return torch.stack([row / sum(row) for row in energies])


def penalty_of(model: SelfAttentive, words: WordBatch) -> float:
    """Mean over the texts of the sum of squares of the entries of A A^T - I."""
    total = 0.0
    for (text,) in rows_alone(words):
        rows = attentions(model, states_of(model, text))
        for i in range(ROWS):
            for j in range(ROWS):
                total += (sum(a * b for a, b in zip(rows[i], rows[j], strict=True)).item() - (i == j)) ** 2
    return total / len(words.lengths)


def test_a_text_is_what_each_row_of_attention_makes_of_its_states():
    model, words = model_of(), texts(LENGTHS, 1)

    def written_out(vectors: Tensor) -> Tensor:
        states = states_of(model, vectors)
        rows = attentions(model, states)
        matrix = [sum(weight * state for weight, state in zip(row, states, strict=True)) for row in rows]
        return (model.output.weight @ torch.cat(matrix) + model.output.bias).clamp(min=0)

    assert_each_alone(model(words), written_out, words)


def test_each_row_sums_to_one_over_the_words():
    model, words = model_of(), texts(LENGTHS, 1)
    weights = model.weights(model.recurrence(words.vectors, words.mask), words.mask)
    torch.testing.assert_close(weights.sum(2), torch.ones(3, ROWS))
    assert not weights.transpose(1, 2)[~words.mask].any()


def test_the_penalty_grows_from_zero_with_the_rows_likeness():
    """Hand-worked: three equal one-hot rows make A A^T all ones, six entries of it off the
    diagonal; uniform rows over n words 1/n."""
    apart, alike, spread = torch.eye(ROWS, 4), torch.eye(1, 4).expand(ROWS, -1), torch.full((ROWS, 4), 0.25)
    found = [SelfAttentive.penalty(rows[None]).item() for rows in (apart, alike, spread)]
    assert found == pytest.approx([0.0, 6.0, 3 * 0.75**2 + 6 * 0.25**2])
    assert SelfAttentive.penalty(torch.stack([apart, alike])).item() == pytest.approx(3.0)


def test_the_gradient_of_the_penalty_is_that_of_both_factors():
    """4 (A A^T - I) A by hand; a factor that stood still would press rows apart half as much."""
    rows = torch.randn(2, ROWS, 5, requires_grad=True)
    SelfAttentive.penalty(rows).backward()
    expected = torch.stack([4 * (a @ a.T - torch.eye(ROWS)) @ a for a in rows.detach()]) / 2
    torch.testing.assert_close(rows.grad, expected)


def test_the_penalty_of_a_training_pass_joins_the_loss_times_its_coefficient():
    model, words = model_of(coefficient=0.5, dropout=0.0).train(), texts(LENGTHS, 1)
    with collected_losses() as terms:
        model(words)
    assert terms["penalty"].item() == pytest.approx(0.5 * penalty_of(model, words), rel=1e-4)


def test_both_texts_of_a_pair_are_penalised():
    """The harness encodes a pair in two passes; a penalty of the last one alone would leave the
    first texts free."""
    model, first, second = model_of(dropout=0.0).train(), texts(LENGTHS, 1), texts((2, 4, 1), 2)
    with collected_losses() as terms:
        model(first), model(second)
    assert terms["penalty"].item() == pytest.approx(penalty_of(model, first) + penalty_of(model, second), rel=1e-4)


def test_a_penalty_counts_once_and_evaluation_leaves_none():
    """Passes on the dev split must not reach the next training step, nor hold its graph."""
    model, words = model_of().train(), texts(LENGTHS, 1)
    model.eval()(words)
    for _ in range(2):
        with collected_losses() as terms:
            model.train()(words)
        assert terms["penalty"].item() == pytest.approx(model.coefficient * penalty_of(model, words), rel=1e-4)


def test_the_penalty_drives_rows_apart():
    model, words = model_of(dropout=0.0).train(), texts((6, 5), 1)
    with torch.no_grad():
        model.second.weight.copy_(model.second.weight[:1] + 0.1 * torch.randn_like(model.second.weight))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    found = []
    for _ in range(60):
        with collected_losses() as terms:
            model(words)
        loss = terms["penalty"]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    assert found[-1] < found[0] / 2


def test_the_matrix_and_the_text_vector_are_dropped_in_training():
    """Half of the numbers of each: a layer of 36 million weights without dropout learns texts by
    heart."""
    model, words = model_of(hidden=40, output=200, dropout=0.5).train(), texts(LENGTHS, 1)
    seen: list[Tensor] = []
    model.output.register_forward_hook(lambda module, inputs, output: seen.extend((inputs[0], output)))
    vector = model(words)
    matrix, hidden = seen
    assert 0.4 < (matrix == 0).float().mean() < 0.6
    positive = hidden > 0
    assert 0.4 < (vector[positive] == 0).float().mean() < 0.6
    kept = positive & (vector != 0)
    assert_same(vector[kept], 2 * hidden[kept])


def test_training_minimises_the_penalty_too():
    """A penalty that no loss holds leaves the rows free to look at the same words."""
    view, target = Words(min_count=1), ClassTarget()
    view.fit(["a b c", "b d"])
    target.fit([{"label": "x"}, {"label": "y"}])
    sizes = {"hidden": 3, "attention": 5, "rows": ROWS, "output": 6, "dropout": 0.0, "coefficient": 2.0}
    model = build(SelfAttentive, problem("classify"), sizes, view, target, WIDTH).train()
    inputs, gold = {"text": view.collate(view.encode(["a b c", "b d"]), np.arange(2))}, torch.tensor([0, 1])
    penalty = penalty_of(model.encoder, model.read(inputs)["text"])
    found = model.loss_of(model.read(inputs), gold) - F.cross_entropy(model(inputs), gold)
    assert found.item() == pytest.approx(2 * penalty, rel=1e-3)
