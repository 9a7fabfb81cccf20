"""ALUM: states are those of transformers' BERT, and the adversarial term is that of the equations,
in values and gradients."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from architectures.blocks.objectives.adversarial_pieces import AdversarialPieces, divergence, repeated
from architectures.blocks.objectives.masked_pieces import MaskedPieces
from architectures.blocks.variational import normal
from architectures.pretrained.alum import ALUM
from harness.layers.noise import Noise
from harness.objectives import collected_losses
from harness.views.subwords import SubwordBatch, Subwords
from tests.support.models import small
from tests.support.plain_text import batch
from tests.support.published import TABLES, layers, outputs
from tests.support.same import assert_same

transformers = pytest.importorskip("transformers")

TEXTS = ["the cat sat on the mat and the dog sat on the cat", "a dog ran", "the mat"]
SIZES = {"layers": 2, "hidden": 16, "heads": 4}


@pytest.fixture(scope="module")
def view() -> Subwords:
    made = Subwords(size=60, max_length=24)
    made.fit(TEXTS)
    return made


def noise_of(pieces: SubwordBatch, progress: float = 0.5) -> Noise:
    return Noise(pieces.ids, pieces.mask, (3, 1), progress)


def test_states_and_vectors_of_texts_are_those_of_transformers(view):
    alum = small(ALUM, view.width, view, **SIZES)
    pieces = view.collate_pair(view.encode(TEXTS), view.encode(TEXTS[::-1]), np.arange(3))
    config = transformers.BertConfig(
        vocab_size=view.width,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=24,
    )
    names = TABLES | layers(2) | {"pooler.dense": "pooler.0"}
    expected = outputs(transformers.BertModel(config), names, alum, pieces)
    states = alum(pieces)
    assert_same(states[pieces.mask], expected.last_hidden_state[pieces.mask], rtol=1e-4, atol=1e-5)
    assert_same(alum.pooled(states), expected.pooler_output, rtol=1e-4, atol=1e-5)
    again = alum(pieces, alum.table(pieces.ids))
    assert torch.equal(again, states), "the vectors that are given are those of the table"
    assert not torch.allclose(alum(pieces, -alum.table(pieces.ids)), states, atol=1e-3)


class Mixing(nn.Module):
    """An encoder that can be written out: each state is tanh of its vector and half the sum of the
    text's."""

    def __init__(self, view: Subwords):
        super().__init__()
        self.view, self.size, self.eps, self.radius = view, 6, 1e-12, 0.05
        self.table = nn.Embedding(view.width, 6)

    def forward(self, pieces: SubwordBatch, vectors: Tensor | None = None) -> Tensor:
        vectors = self.table(pieces.ids) if vectors is None else vectors
        text = (vectors * pieces.mask[..., None]).sum(1, keepdim=True)
        return torch.tanh(vectors + text / 2)


def probabilities(weights: dict[str, Tensor], vectors: Tensor, chosen: Tensor, mask: Tensor) -> Tensor:
    """Those (N, V) of the pieces in the chosen places, by the equations."""
    found = []
    for row, place in chosen.nonzero().tolist():
        state = torch.tanh(vectors[row, place] + vectors[row][mask[row]].sum(0) / 2)
        x = weights["scores.transform.0.weight"] @ state + weights["scores.transform.0.bias"]
        x = x * (1 + torch.erf(x / math.sqrt(2))) / 2
        x = (x - x.mean()) / (x.var(unbiased=False) + 1e-12).sqrt()
        x = x * weights["scores.transform.2.weight"] + weights["scores.transform.2.bias"]
        scores = (weights["table"] @ x + weights["scores.bias"]).exp()
        found.append(scores / scores.sum())
    return torch.stack(found)


def kullback_leibler(p: Tensor, q: Tensor) -> Tensor:
    return (p * (p.log() - q.log())).sum() / len(p)


def test_the_term_is_the_divergence_both_ways_at_the_worst_move(view, monkeypatch):
    """The whole algorithm by its equations, in double precision: start, one step, cut at the
    radius, and in each direction one side without a gradient."""
    torch.manual_seed(0)
    encoder = Mixing(view).double()
    learns = small(AdversarialPieces, encoder).double()
    monkeypatch.setattr(AdversarialPieces, "spread", 0.2)
    monkeypatch.setattr(AdversarialPieces, "step", 2.0)
    pieces = batch(view, *TEXTS)
    with collected_losses() as terms:
        logs, texts = learns(encoder, pieces, noise_of(pieces))
    parameters = {"table": encoder.table.weight, **dict(learns.named_parameters())}
    found = torch.autograd.grad(terms["adversarial"], list(parameters.values()), retain_graph=True)

    noise = noise_of(pieces)
    chosen = MaskedPieces.chosen(pieces, view, noise)
    ids = MaskedPieces.hidden(pieces.ids, chosen, view, noise)
    constant = {name: value.detach() for name, value in parameters.items()}
    start = 0.01 * normal(noise, *ids.shape[1:], 6).double() * pieces.mask[..., None]
    start.requires_grad_()
    p = probabilities(constant, constant["table"][ids], chosen, pieces.mask)
    q = probabilities(constant, constant["table"][ids] + start, chosen, pieces.mask)
    (slope,) = torch.autograd.grad(kullback_leibler(p, q), start)
    move = torch.stack([one + 0.1 * way / way.abs().max() for one, way in zip(start.detach(), slope, strict=True)])
    assert (move.abs() > 0.05).any() and (move.abs() < 0.05).any()
    move = move.clamp(-0.05, 0.05)
    clean = probabilities(parameters, parameters["table"][ids], chosen, pieces.mask)
    moved = probabilities(parameters, parameters["table"][ids] + move, chosen, pieces.mask)
    other = probabilities(constant, constant["table"][ids] + move, chosen, pieces.mask)
    expected = 10 * (kullback_leibler(p, moved) + kullback_leibler(other, clean))
    torch.testing.assert_close(terms["adversarial"], expected)
    assert expected > 0.01
    for one, gradient in zip(found, torch.autograd.grad(expected, list(parameters.values())), strict=True):
        torch.testing.assert_close(one, gradient, rtol=1e-5, atol=1e-8)
    torch.testing.assert_close(logs.exp(), p[range(len(p)), pieces.ids[chosen]])
    assert texts.tolist() == chosen.nonzero()[:, 0].tolist()


def test_the_move_is_worse_than_one_at_random(view, monkeypatch):
    """Without the step up the gradient, the same length of way changes less."""
    alum = small(ALUM, view.width, view, **SIZES, radius=0.01)
    learns = small(AdversarialPieces, alum)
    pieces = batch(view, *TEXTS)
    found = []
    for spread, step in ((1e-3, 1000.0), (1000.0, 0.0)):  # both are cut to about the radius everywhere
        monkeypatch.setattr(AdversarialPieces, "spread", spread)
        monkeypatch.setattr(AdversarialPieces, "step", step)
        with collected_losses() as terms:
            learns(alum, pieces, noise_of(pieces))
        found.append(terms["adversarial"].item())
    assert found[0] > 2 * found[1] > 0


def test_no_move_changes_nothing_though_numbers_are_dropped(view):
    """The passes drop the same numbers: else the term would count what dropout changes, a thousand
    times what the moves do."""
    alum = small(ALUM, view.width, view, **SIZES, dropout=0.3).train()
    learns = small(AdversarialPieces, alum).train()
    pieces = batch(view, *TEXTS)
    with collected_losses() as terms:
        learns(alum, pieces, noise_of(pieces))
    assert terms["adversarial"] > 0
    learns.radius = 0.0
    with collected_losses() as terms:
        learns(alum, pieces, noise_of(pieces))
    assert terms["adversarial"].item() == pytest.approx(0, abs=1e-5)


def test_the_next_step_drops_other_numbers():
    torch.manual_seed(0)
    with repeated(torch.device("cpu")):
        first = torch.rand(3)
    assert torch.equal(torch.rand(3), first) and not torch.equal(torch.rand(3), first)


def test_the_first_half_of_the_training_and_evaluation_are_those_of_bert(view):
    alum = small(ALUM, view.width, view, **SIZES)
    learns, plain = small(AdversarialPieces, alum), small(MaskedPieces, alum)
    pieces = batch(view, *TEXTS)
    for noise in (lambda: noise_of(pieces, 0.49), lambda: Noise(pieces.ids, pieces.mask)):
        with collected_losses() as terms:
            found, expected = learns(alum, pieces, noise()), plain(alum, pieces, noise())
        assert not terms and torch.equal(found.logs, expected.logs)
    assert AdversarialPieces.unit == MaskedPieces.unit


def test_the_settings_are_those_of_the_paper():
    learns = AdversarialPieces(ALUM(20, Subwords(max_length=8), **SIZES))
    lengths = (learns.radius, learns.spread * learns.radius, learns.step * learns.radius)
    assert ALUM.learns is AdversarialPieces
    assert learns.factor == 10 and lengths == pytest.approx((1e-5, 1e-5, 1e-3))


def test_a_text_without_a_slope_stays_where_it_begins():
    """One of whose pieces none is asked for; no number times zero is a gradient for its batch."""
    learns: Any = SimpleNamespace(radius=0.1, step=100.0)
    start = torch.tensor([[[0.02, -0.3]], [[0.02, -0.3]]])
    slope = torch.tensor([[[0.0, 0.0]], [[-0.5, 0.25]]])
    assert_close(AdversarialPieces.cut(learns, start, slope), torch.tensor([[[0.02, -0.1]], [[-0.1, 0.1]]]))


def test_divergence_by_hand():
    p, q = torch.tensor([[0.5, 0.5], [0.9, 0.1]]), torch.tensor([[0.25, 0.75], [0.9, 0.1]])
    expected = (0.5 * math.log(2) + 0.5 * math.log(2 / 3)) / 2
    assert divergence(p.log(), q.log()).item() == pytest.approx(expected)
