"""The mechanism of the structured self-attentive embedding: several attentions over one text,
pressed apart by a penalty."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import Tensor

from architectures.attention.self_attentive import SelfAttentive
from harness.objectives import collected_losses
from harness.views.words import WordBatch
from tests.support.batches import assert_each_alone, random_texts, rows_alone
from tests.support.models import small
from tests.support.oracles import recurrent

WIDTH, ROWS = 4, 3
LENGTHS = (5, 1, 3)

texts = partial(random_texts, width=WIDTH)


def model_of(**options) -> SelfAttentive:
    return small(SelfAttentive, WIDTH, **dict(hidden=3, attention=5, rows=ROWS, output=6) | options)


def attentions(model: SelfAttentive, states: Tensor) -> Tensor:
    """A (rows, n) of one text's states (n, size), row by row and word by word."""
    hidden = [torch.tanh(model.first.weight @ state) for state in states]
    energies = torch.stack([torch.stack([(row @ h).exp() for h in hidden]) for row in model.second.weight])
    return torch.stack([row / sum(row) for row in energies])


def penalty_of(model: SelfAttentive, words: WordBatch) -> float:
    """Mean over the texts of the sum of squares of the entries of A A^T - I."""
    total = 0.0
    for (text,) in rows_alone(words):
        rows = attentions(model, recurrent(model.recurrence, text))
        for i in range(ROWS):
            for j in range(ROWS):
                total += (sum(a * b for a, b in zip(rows[i], rows[j], strict=True)).item() - (i == j)) ** 2
    return total / len(words.lengths)


def test_a_text_is_what_each_row_of_attention_makes_of_its_states():
    model, words = model_of(), texts(LENGTHS, 1)

    def written_out(vectors: Tensor) -> Tensor:
        states = recurrent(model.recurrence, vectors)
        rows = attentions(model, states)
        matrix = [sum(weight * state for weight, state in zip(row, states, strict=True)) for row in rows]
        return torch.relu(model.output(torch.cat(matrix)))

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
