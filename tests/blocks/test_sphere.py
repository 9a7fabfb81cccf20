"""The von Mises-Fisher distribution: what is drawn, and what is estimated from it."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.integrate import cumulative_trapezoid
from scipy.special import ive
from scipy.stats import kstest

from architectures.blocks import sphere

CASES = [(3, 0.5), (3, 20.0), (10, 8.0), (100, 300.0)]


def mean_of(dims: int) -> torch.Tensor:
    mean = torch.arange(1.0, dims + 1).double()
    return mean / mean.norm()


def draws(dims: int, concentration: float, count: int = 4000, seed: int = 0) -> torch.Tensor:
    return sphere.drawn(mean_of(dims), concentration, count, torch.Generator().manual_seed(seed))


def mean_length(dims: int, concentration: float) -> float:
    """Length of the mean of the distribution: I_(d/2)(k) / I_(d/2 - 1)(k)."""
    return ive(dims / 2, concentration) / ive(dims / 2 - 1, concentration)


@pytest.mark.parametrize(("dims", "concentration"), CASES)
def test_draws_have_length_1_and_the_mean_of_the_distribution(dims, concentration):
    found = draws(dims, concentration)
    torch.testing.assert_close(found.norm(dim=1), torch.ones(len(found)).double())
    error = 5 * found.std(0).max().item() / math.sqrt(len(found))
    torch.testing.assert_close(found.mean(0), mean_length(dims, concentration) * mean_of(dims), atol=error, rtol=0)
    cosines = found @ mean_of(dims)
    wrong = abs(cosines.mean().item() - mean_length(dims, concentration))
    assert wrong < 4 * cosines.std().item() / math.sqrt(len(found))


@pytest.mark.parametrize(("dims", "concentration"), CASES)
def test_cosines_have_the_density_of_the_distribution(dims, concentration):
    """e^(k t) (1 - t^2)^((d - 3) / 2), by its integral: the mean alone would not tell its shape."""
    places = np.linspace(-1 + 1e-9, 1 - 1e-9, 200_001)
    logs = concentration * (places - 1) + (dims - 3) / 2 * np.log1p(-(places**2))
    total = cumulative_trapezoid(np.exp(logs - logs.max()), places, initial=0)
    cosines = (draws(dims, concentration) @ mean_of(dims)).numpy()
    assert kstest(cosines, lambda t: np.interp(t, places, total / total[-1])).pvalue > 0.001


def test_directions_across_the_mean_are_alike():
    """In three dimensions: an angle around the mean that is even."""
    found, mean = draws(3, 5.0), mean_of(3)
    across = found - (found @ mean)[:, None] * mean
    one = torch.tensor([2.0, -1.0, 0.0]).double() / math.sqrt(5)
    other = torch.linalg.cross(mean, one)
    angles = torch.atan2(across @ other, across @ one).numpy()
    assert kstest(angles, "uniform", (-math.pi, 2 * math.pi)).pvalue > 0.001


def test_without_concentration_all_directions_are_alike_and_with_much_all_are_the_mean():
    assert draws(5, 0.0).mean(0).norm() < 0.05
    torch.testing.assert_close(draws(5, 1e9), mean_of(5).expand(4000, 5), atol=1e-3, rtol=0)


def test_draws_are_those_of_their_generator():
    assert torch.equal(draws(7, 3.0, 10), draws(7, 3.0, 10))
    assert not torch.equal(draws(7, 3.0, 10), draws(7, 3.0, 10, seed=1))
    assert draws(7, 3.0, 1).shape == (1, 7)
    single = sphere.drawn(mean_of(7).float(), 3.0, 2, torch.Generator().manual_seed(0))
    assert single.dtype == torch.float32


@pytest.mark.parametrize(("dims", "concentration"), [(10, 40.0), (50, 300.0)])
def test_what_was_drawn_is_found_again(dims, concentration):
    mean, found = sphere.fitted(draws(dims, concentration, 20_000))
    torch.testing.assert_close(mean, mean_of(dims), atol=0.01, rtol=0)
    assert found == pytest.approx(concentration, rel=0.03)


def test_the_concentration_by_hand():
    """Two directions at a right angle: their mean has length sqrt(1/2)."""
    mean, concentration = sphere.fitted(torch.eye(4)[:2])
    torch.testing.assert_close(mean, torch.tensor([1.0, 1.0, 0.0, 0.0]) / math.sqrt(2))
    assert concentration == pytest.approx(math.sqrt(0.5) * (4 - 0.5) / 0.5)


def test_one_direction_alone_is_drawn_again_nearly():
    """Its concentration would be infinite."""
    mean, concentration = sphere.fitted(mean_of(6)[None])
    assert 1e5 < concentration < math.inf
    found = sphere.drawn(mean, concentration, 20, torch.Generator().manual_seed(0))
    torch.testing.assert_close(found, mean_of(6).expand(20, 6), atol=0.01, rtol=0)
