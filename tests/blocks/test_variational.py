"""Gaussian latent variables: divergences in closed form are those of torch and of many draws, draws
follow the posterior, and the bound is that of its parts."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch.distributions import Independent, Normal, kl_divergence

from architectures.blocks.variational import Gaussian, bound, normal, rising
from harness.layers.noise import BITS, Noise
from harness.objectives import collected_losses
from harness.problems.text_objective import Foretold
from tests.support.same import assert_same


def gaussian(texts: int, size: int, seed: int) -> Gaussian:
    generator = torch.Generator().manual_seed(seed)
    mean, log_deviation = torch.randn(2, texts, size, generator=generator, dtype=torch.double)
    return Gaussian(mean.requires_grad_(), (0.5 * log_deviation).requires_grad_())


def of_torch(law: Gaussian) -> Independent:
    return Independent(Normal(law.mean, law.log_deviation.exp()), 1)


def noise_of(texts: int, *key: int) -> Noise:
    ids = torch.arange(5 * texts).view(texts, 5)
    return Noise(ids, torch.ones_like(ids, dtype=torch.bool), key)


# --- divergences ---


def test_divergences_are_those_of_torch():
    """In values and in the gradients of both distributions."""
    posterior, prior = gaussian(4, 3, 0), gaussian(4, 3, 1)
    assert_same(posterior.divergence(prior), kl_divergence(of_torch(posterior), of_torch(prior)))
    standard = Independent(Normal(torch.zeros(4, 3).double(), torch.ones(4, 3).double()), 1)
    assert_same(posterior.divergence(), kl_divergence(of_torch(posterior), standard))


def test_a_divergence_is_the_mean_over_many_draws():
    """No formula stands behind the number: log q - log p at draws of q."""
    posterior, prior = gaussian(1, 2, 2), gaussian(1, 2, 3)
    torch.manual_seed(0)
    with torch.no_grad():
        draws = posterior.at(torch.randn(200_000, 2, dtype=torch.double))
        logs = [of_torch(law).log_prob(draws) for law in (posterior, prior)]
        found = (logs[0] - logs[1]).mean().item()
    assert posterior.divergence(prior).item() == pytest.approx(found, rel=0.02)


def test_a_divergence_by_hand():
    """Mean 1 and deviation 2 against standard normal: (4 + 1 - 1) / 2 - log 2 for each number; a
    distribution from itself 0."""
    law = Gaussian(torch.ones(1, 2), torch.full((1, 2), math.log(2)))
    assert law.divergence().item() == pytest.approx(2 * (2 - math.log(2)))
    assert law.divergence(law).item() == pytest.approx(0, abs=1e-6)
    assert Gaussian(torch.zeros(1, 2), torch.zeros(1, 2)).divergence().item() == 0


# --- draws ---


def test_gradients_reach_mean_and_deviation_through_a_draw():
    """A draw that is cut off from them would leave the encoder to the divergence alone."""
    law, numbers = gaussian(2, 3, 0), torch.randn(2, 3, dtype=torch.double)
    assert_same(law.at(numbers), Normal(law.mean, torch.exp(law.log_deviation)).loc + numbers * law.log_deviation.exp())
    slopes = torch.autograd.grad(law.at(numbers).sum(), law)
    torch.testing.assert_close(slopes[0], torch.ones(2, 3, dtype=torch.double))
    torch.testing.assert_close(slopes[1], numbers * law.log_deviation.exp())


def test_numbers_of_texts_are_standard_normal():
    """Every tenth of the normal distribution has a tenth of them, and none is infinite."""
    numbers = normal(noise_of(400, 0), 100).flatten()
    edges = Normal(0.0, 1.0).icdf(torch.linspace(0.1, 0.9, 9))
    shares = torch.bincount(torch.bucketize(numbers, edges), minlength=10) / len(numbers)
    assert numbers.isfinite().all()
    torch.testing.assert_close(shares, torch.full((10,), 0.1), atol=0.006, rtol=0)
    columns = np.corrcoef(normal(noise_of(4000, 0), 4).T.numpy())
    assert np.abs(columns - np.eye(4)).max() < 0.06


def test_the_outermost_numbers_of_a_noise_are_far_out_and_finite():
    """Each is drawn once in 16 million times: in one step of 500 where a batch draws 32,000. An
    infinite one would end the training with a loss that is no number."""

    class Outermost(Noise):
        def uniform(self, *shape: int) -> torch.Tensor:
            return torch.tensor([[0.0, 1 - 2.0**-BITS]])

    ids = torch.ones(1, 2, dtype=torch.long)
    lowest, highest = normal(Outermost(ids, ids > 0), 2)[0]
    assert -6 < lowest < -5 and 5 < highest < 6


def test_numbers_differ_from_pass_to_pass_and_from_text_to_text_and_not_in_evaluation():
    """VAMPIRE's release draws the same numbers for each batch: it seeds torch in each pass."""
    first, second = normal(noise_of(3, 0, 1), 4), normal(noise_of(3, 0, 2), 4)
    assert not torch.isclose(first, second).any()
    assert not torch.isclose(first[0], first[1]).any()
    assert torch.equal(normal(noise_of(3), 4), normal(noise_of(3), 4))


# --- the bound ---


def test_the_weight_rises_in_a_straight_line_and_stays():
    assert [rising(progress, 0.5) for progress in (0.0, 0.125, 0.25, 0.5, 0.9, 1.0)] == [0, 0.25, 0.5, 1, 1, 1]
    assert rising(0.0, 0.0) == 1


TOLD = Foretold(torch.tensor([-1.0, -2.0, -3.0]), torch.tensor([0, 0, 2]))
"""Two answers of the first of three texts, none of the second, one of the third."""


def test_in_evaluation_the_sum_of_a_text_is_its_bound():
    """A score without the divergence would be no bound, and the better the less of a prior there
    is."""
    logs, texts = bound(TOLD, torch.tensor([0.5, 7.0, 0.25]), 0.3, training=False)
    assert texts is TOLD.texts
    assert logs.tolist() == [-1.25, -2.25, -3.25]


@pytest.mark.parametrize(("weight", "annealing"), [(1.0, None), (0.25, -0.75)])
def test_in_training_the_whole_divergence_is_a_column_and_its_weighted_part_the_loss(weight, annealing):
    """A posterior that collapses while the weight is small would not be seen otherwise."""
    divergence = torch.tensor([0.5, 7.0, 1.5], requires_grad=True)
    with collected_losses() as terms:
        assert bound(TOLD, divergence, weight, training=True) is TOLD
    assert terms["divergence"].item() == pytest.approx(3)  # of nine nats and three answers
    assert [value.item() for name, value in terms.items() if name != "divergence"] == (
        [] if annealing is None else [pytest.approx(3 * annealing)]
    )
    total = sum(terms.values())
    torch.testing.assert_close(torch.autograd.grad(total, divergence)[0], torch.full((3,), weight / 3))
