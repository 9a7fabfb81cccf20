"""Random numbers that belong to a text: whoever trains on two devices, or goes on with a training,
asks each text the same."""

from __future__ import annotations

import numpy as np
import torch
from scipy.stats import kstest
from torch import Tensor

from harness.layers.noise import Noise, mixed

IDS = torch.tensor([[2, 7, 9, 3, 0, 0], [2, 9, 7, 5, 8, 3], [2, 7, 9, 3, 0, 0]])
MASK = torch.tensor([[1, 1, 1, 1, 0, 0], [1] * 6, [1, 1, 1, 1, 0, 0]], dtype=torch.bool)


def numbers(ids: Tensor = IDS, mask: Tensor = MASK, key: tuple[int, ...] = (0, 1), columns: int = 8) -> Tensor:
    return Noise(ids, mask, key).uniform(columns)


def published(z: int) -> int:
    """SplitMix64 (Steele et al. 2014) in whole numbers of Python, which do not wrap around."""
    z %= 2**64
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % 2**64
    return z ^ (z >> 31)


def test_bits_are_mixed_as_the_published_generator_does():
    for number in (0, 1, 2**62 + 5, -1, -123456789):
        assert int(mixed(torch.tensor([number]))) % 2**64 == published(number)


def test_each_number_is_that_of_its_text_key_call_and_place():
    """In whole numbers of Python: with others every kept training would go on as another one."""
    golden = 0x9E3779B97F4A7C15
    key = int(np.random.SeedSequence([1, 0, 1]).generate_state(1, np.uint64)[0])
    noise = Noise(IDS, MASK, (0, 1))
    for call in (1, 2):
        found = noise.uniform(3)
        for row, (ids, mask) in enumerate(zip(IDS.tolist(), MASK.tolist(), strict=True)):
            units = [published(id * 0xBF58476D1CE4E5B9 + place * golden) for place, id in enumerate(ids) if mask[place]]
            start = published(published(sum(units) + key) + call * golden)
            expected = [(published(start + column * golden) >> 40) / 2**24 for column in (1, 2, 3)]
            assert found[row].tolist() == expected


def test_a_text_has_its_numbers_in_any_batch():
    """Beside other texts, behind more padding, and in another order."""
    alone = numbers(IDS[:1, :4], MASK[:1, :4])
    assert torch.equal(numbers()[0], alone[0]) and torch.equal(numbers()[2], alone[0])
    assert torch.equal(numbers(IDS[[1, 0]], MASK[[1, 0]]), numbers()[[1, 0]])
    assert torch.equal(numbers(columns=3), numbers()[:, :3]), "more columns change no others"


def test_the_text_the_order_of_its_units_the_seed_and_the_pass_all_matter():
    one = numbers()[0]
    others = [numbers(torch.tensor([ids]), MASK[:1, :4])[0] for ids in ([2, 9, 7, 3], [2, 7, 9, 4])]
    others += [numbers(key=key)[0] for key in ((1, 1), (0, 2), (1, 0), (), (0,))]
    assert all((one != other).all() for other in others)


def test_each_call_gives_other_numbers():
    noise = Noise(IDS, MASK, (0, 1))
    first, second = noise.uniform(2, 4), noise.uniform(2, 4)
    assert first.shape == (3, 2, 4) and (first != second).all()
    assert torch.equal(first.flatten(1), numbers())


def test_a_later_part_of_the_training_draws_the_same_numbers():
    """An objective in stages asks other things of the same numbers."""
    early, late = (Noise(IDS, MASK, (0, 1), progress) for progress in (0.0, 0.9))
    assert (early.progress, late.progress, Noise(IDS, MASK).progress) == (0.0, 0.9, 1.0)
    assert torch.equal(early.uniform(8), late.uniform(8))


def test_numbers_are_spread_evenly_and_do_not_tell_one_another():
    drawn = numbers(torch.arange(600).view(100, 6), torch.ones(100, 6, dtype=torch.bool), columns=300)
    assert 0 <= drawn.min() and drawn.max() < 1
    assert kstest(drawn.flatten().double(), "uniform").pvalue > 0.001
    assert torch.corrcoef(drawn).fill_diagonal_(0).abs().max() < 0.3, "of texts"
    assert torch.corrcoef(drawn.T).fill_diagonal_(0).abs().max() < 0.6, "of columns"
