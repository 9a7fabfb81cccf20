"""The mechanism of the mixed objective: four losses, each of the texts that it is for."""

from __future__ import annotations

import pytest
import torch

from architectures.adversarial.mixed_objective import MixedObjective
from harness import registry
from harness.problems import problem
from harness.problems.classify import ClassTarget
from harness.training.model import build
from tests.support.moving_vectors import DIMS, TEXTS, Dropping, WrittenOut, losses_of, prepared, view_of


@pytest.mark.parametrize("weights", [(1.0, 1.0, 1.0), (0.5, 3.0, 2.0)])
def test_the_loss_is_the_sum_of_four(weights, monkeypatch):
    """Cross-entropy and adversarial loss of the labelled batch, entropy and virtual loss of the
    other: each with its weight, in values and gradients."""
    adversarial, entropy, virtual = weights
    regime = MixedObjective(epsilon=0.8, small=0.3, weight=adversarial, entropy=entropy, virtual=virtual)
    model, labelled, unlabelled = prepared(regime)
    model.double()
    drawn = torch.randn(3, 5, DIMS, dtype=torch.float64)
    monkeypatch.setattr(torch, "randn_like", lambda vectors: drawn)
    found = losses_of(regime, model, labelled, unlabelled)
    written = WrittenOut(model, view_of(TEXTS).vocabulary.counts)

    def loss_of(vectors):
        return -written.logs(vectors)[torch.arange(3), labelled.target].mean()

    ids = labelled.inputs["text"].ids
    vectors = written.vectors(ids)
    known = loss_of(vectors)
    (gradient,) = torch.autograd.grad(loss_of(at := vectors.detach().requires_grad_()), at)
    gradient = gradient * (ids > 0)[..., None]
    moved = vectors + 0.8 * torch.stack([each / each.norm() for each in gradient])
    others = unlabelled.inputs["text"].ids
    logs = written.logs(written.vectors(others))
    terms = {
        "adversarial": loss_of(moved),
        "entropy": -(logs.exp() * logs).sum() / 3,
        "virtual": written.virtual(others, drawn, 0.8, 0.3),
    }
    for name, term in terms.items():
        assert term > 1e-3
        torch.testing.assert_close(found[name], term)
    expected = known + sum(weight * term for weight, term in zip(weights, terms.values(), strict=True))
    torch.testing.assert_close(found["loss"], expected)
    found["loss"].backward()
    expected.backward()
    for name, parameter in model.named_parameters():
        rows = slice(1, None) if name.startswith("table") else slice(None)  # padding is trained by nothing
        torch.testing.assert_close(parameter.grad[rows], written.parameters[name].grad[rows])


def test_the_defaults_weigh_all_four_alike():
    assert (MixedObjective().weight, MixedObjective().entropy, MixedObjective().virtual) == (1, 1, 1)


def test_moves_are_scaled_alike_where_asked():
    """A setting that one of the two moves ignored would make them of two methods."""
    near, far = MixedObjective(numbers=10**9), MixedObjective(numbers=10)
    model, labelled, unlabelled = prepared(near)
    still, moved = (losses_of(each, model, labelled, unlabelled) for each in (near, far))
    assert still["virtual"] < 1e-6 < moved["virtual"]
    clean = still["loss"] - still["adversarial"] - still["entropy"] - still["virtual"]
    torch.testing.assert_close(still["adversarial"], clean, rtol=1e-3, atol=0)
    assert moved["adversarial"] > still["adversarial"] + 1e-3


def test_the_answers_that_stay_are_made_with_the_dropout_of_those_that_move():
    regime = MixedObjective(epsilon=0.0)
    model, labelled, unlabelled = prepared(regime, encoder=Dropping)
    assert losses_of(regime, model, labelled, unlabelled)["virtual"].abs() < 1e-6


def test_a_text_is_the_maximum_of_its_states():
    """The encoder that it trains takes their mean."""
    entry = registry.entry("architectures", "bilstm")
    view, target = view_of(TEXTS), ClassTarget()
    target.fit([{"label": "x"}, {"label": "y"}])
    model = build(registry.load(entry), problem("classify"), {"hidden": 3}, view, target, DIMS)
    assert model.encoder.pooling == "mean"
    MixedObjective().prepare(model, torch.tensor([0.0, 0.0, *view.vocabulary.counts]))
    states, mask = torch.randn(2, 3, 6), torch.tensor([[True, True, False], [True, True, True]])
    expected = torch.stack([states[0, :2].amax(0), states[1].amax(0)])
    torch.testing.assert_close(model.encoder.pooled(states, mask), expected)
