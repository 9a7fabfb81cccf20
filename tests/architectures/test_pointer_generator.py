"""The pointer-generator network: one decoding step after another against the equations."""

from __future__ import annotations

import pytest
import torch

from architectures.seq2seq.pointer_generator import PointerGenerator
from harness.objectives import collected_losses
from tests.support.batches import random_vectors
from tests.support.models import small
from tests.support.oracles import both_ways, lstm_step
from tests.support.same import assert_same

WIDTH, SYMBOLS, START, UNKNOWN = 4, 6, 1, 3
LENGTHS = [5, 2, 3]
SOURCE = torch.tensor([[6, 4, 8, 6, 4], [5, 7, 0, 0, 0], [6, 6, 6, 0, 0]])
"""Row 0 has a symbol twice and two words that are no symbols, one of them twice."""
PREFIX = torch.tensor([[START, 6, 4, 8], [START, 7, 5, 3], [START, 6, 4, 0]])


def model_of(**options: float) -> PointerGenerator:
    sizes = {"encoder_hidden": 3, "hidden": 5, "symbol_size": 3}
    return small(PointerGenerator, WIDTH, SYMBOLS, **sizes | options)


def probabilities(
    model: PointerGenerator, coverage: float, vectors: torch.Tensor
) -> tuple[list[list[torch.Tensor]], list[float]]:
    """P of each word of the extended vocabulary, by row and step, in plain loops; and for each row
    and step what the coverage loss counts."""
    found, repeated = [], []
    for row, length in enumerate(LENGTHS):
        text = vectors[row, :length]
        states, ends, cells = both_ways(model.encoder, text)
        s = torch.relu(model.first_hidden.weight @ ends[0] + model.first_hidden.bias)
        c = torch.relu(model.first_cell.weight @ cells[0] + model.first_cell.bias)
        context, covered = torch.zeros(6), torch.zeros(length)
        steps = []
        for symbol in PREFIX[row].tolist():
            vector = model.vectors_of_symbols.weight[symbol if symbol < SYMBOLS else UNKNOWN]
            x = model.input.weight @ torch.cat([vector, context]) + model.input.bias
            s, c = lstm_step(model.decoder, x, s, c)
            energies = []
            for h, before in zip(states, covered, strict=True):
                joint = model.key.weight @ h + model.query.weight @ torch.cat([s, c]) + model.query.bias
                if coverage:
                    joint = joint + model.covered.weight[:, 0] * before
                energies.append(model.score.weight[0] @ torch.tanh(joint))
            attention = torch.stack(energies).softmax(0)
            repeated.append(torch.minimum(attention, covered).sum().item())
            covered = covered + attention
            context = attention @ states
            chance = torch.sigmoid(model.generate.weight[0] @ torch.cat([context, s, c, x]) + model.generate.bias[0])
            combined = model.combine.weight @ torch.cat([s, context]) + model.combine.bias
            vocabulary = (model.output.weight @ combined + model.output.bias).softmax(0)
            p = torch.zeros(SYMBOLS + 5)
            for symbol_, share in enumerate(vocabulary):
                p[symbol_] += chance * share
            for place in range(length):
                p[SOURCE[row, place]] += (1 - chance) * attention[place]
            steps.append(p)
        found.append(steps)
    return found, repeated


@pytest.mark.parametrize("coverage", [0.0, 1.0])
def test_a_step_is_the_mixture_of_generating_and_copying(coverage):
    """Attention of the state before, a chance that does not see the input, or equal words that are
    not added give other numbers."""
    model = model_of(coverage=coverage)
    vectors, mask = random_vectors(LENGTHS, 1, WIDTH)
    scores = model(vectors, mask, SOURCE, PREFIX)
    expected, _ = probabilities(model, coverage, vectors)
    for row, steps in enumerate(expected):
        assert_same(scores[row].exp(), torch.stack(steps), atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(scores.exp().sum(-1), torch.ones(3, 4))


def test_words_that_are_no_symbols_can_be_written():
    """They are out of reach for every other decoder; what the row does not have is out of reach
    here."""
    p = model_of()(*random_vectors(LENGTHS, 1, WIDTH), SOURCE, PREFIX).exp()
    assert (p[0, :, [6, 8]] > 1e-4).all() and (p[1, :, 7] > 1e-4).all()
    assert (p[0, :, [7, 9, 10]] < 1e-9).all() and (p[1, :, [6, 8]] < 1e-9).all()


def test_coverage_costs_what_is_attended_to_again():
    """The mean over the real steps: a step behind the end of a row counts nothing."""
    model = model_of(coverage=0.5).train()
    with collected_losses() as terms:
        model(*random_vectors(LENGTHS, 1, WIDTH), SOURCE, PREFIX)
    _, repeated = probabilities(model, 0.5, random_vectors(LENGTHS, 1, WIDTH)[0])
    real = [value for value, symbol in zip(repeated, PREFIX.flatten().tolist(), strict=True) if symbol]
    assert len(real) == 11
    torch.testing.assert_close(terms["coverage"].item(), 0.5 * sum(real) / 11, atol=1e-6, rtol=1e-5)


def test_without_coverage_nothing_is_added_to_the_loss():
    model = model_of().train()
    with collected_losses() as terms:
        model(*random_vectors(LENGTHS, 1, WIDTH), SOURCE, PREFIX)
    assert not terms
