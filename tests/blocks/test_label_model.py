"""The label model: sources of known accuracy are found by their agreement, and posteriors are those
of Bayes' rule."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from architectures.blocks import label_model

ABSTAINS = -1


def accuracies(*right: float, classes: int = 2) -> np.ndarray:
    """mu of sources that are right so often, whatever the class, and wrong in all ways alike."""
    eye = np.eye(classes)
    return np.stack([eye * each + (1 - eye) * (1 - each) / (classes - 1) for each in right])


def drawn(mu: np.ndarray, balance: list[float], count: int, seed: int = 0) -> tuple[torch.Tensor, np.ndarray]:
    """Votes of independent sources, which abstain in the cases that a column leaves, and the true
    classes."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(len(balance), count, p=balance)
    shares = np.concatenate([1 - mu.sum(1, keepdims=True), mu], axis=1)
    votes = np.stack([[rng.choice(len(balance) + 1, p=each[:, y]) - 1 for y in truth] for each in shares], axis=1)
    return torch.tensor(votes), truth


def even(mu: np.ndarray, balance: list[float], scale: int) -> torch.Tensor:
    """Votes in exactly the shares that independent sources expect."""
    rows = []
    for votes in itertools.product(range(len(balance)), repeat=len(mu)):
        share = sum(p * np.prod([mu[i, vote, y] for i, vote in enumerate(votes)]) for y, p in enumerate(balance))
        rows += [votes] * round(share * scale)
    return torch.tensor(rows)


@pytest.mark.parametrize("balance", [[0.5, 0.5], [0.35, 0.65]])
@pytest.mark.parametrize("seed", [0, 1])
def test_sources_of_known_accuracy_are_recovered(balance, seed):
    """From ten thousand votes, without one true class."""
    mu = accuracies(0.9, 0.75, 0.8)
    votes, _ = drawn(mu, balance, 10_000, seed)
    found = label_model.fitted(votes, torch.tensor(balance)).numpy()
    assert np.abs(found - mu).max() < 0.02


def test_sources_that_often_say_nothing_are_recovered():
    """Their table leaves a share to that, and what is said is right as often."""
    mu, balance = accuracies(0.9, 0.75, 0.8) * np.array([0.8, 0.6, 1.0])[:, None, None], [0.5, 0.5]
    votes, _ = drawn(mu, balance, 20_000)
    found = label_model.fitted(votes, torch.tensor(balance)).numpy()
    assert np.abs(found - mu).max() < 0.03
    np.testing.assert_allclose(found.sum(1).mean(1), [0.8, 0.6, 1.0], atol=0.02)


def test_accuracies_that_differ_from_class_to_class_are_found():
    """Where the votes have no error of chance, neither has what is found."""
    mu = np.array([[[0.9, 0.2], [0.1, 0.8]], [[0.6, 0.1], [0.4, 0.9]], [[0.8, 0.3], [0.2, 0.7]]])
    found = label_model.fitted(even(mu, [0.4, 0.6], 100_000), torch.tensor([0.4, 0.6]))
    np.testing.assert_allclose(found, mu, atol=2e-3)


def test_of_three_classes_pairs_and_shares_are_met():
    """Several tables have the same pairs: the one that is found has those, and is near the true
    one."""
    mu, balance = accuracies(0.8, 0.7, 0.6, classes=3), [0.5, 0.3, 0.2]
    votes = even(mu, balance, 100_000)
    found = label_model.fitted(votes, torch.tensor(balance)).numpy()
    said = np.eye(3)[votes.numpy()]
    for i, j in itertools.permutations(range(3), 2):
        together = sum(p * np.outer(found[i, :, y], found[j, :, y]) for y, p in enumerate(balance))
        np.testing.assert_allclose(together, said[:, i].T @ said[:, j] / len(said), atol=1e-4)
    np.testing.assert_allclose(found @ balance, said.mean(0), atol=1e-4)
    assert np.abs(found - mu).max() < 0.1


def test_sources_in_another_order_are_the_same_sources():
    votes, _ = drawn(accuracies(0.9, 0.7, 0.8, 0.6), [0.5, 0.5], 2000)
    found = label_model.fitted(votes, torch.tensor([0.5, 0.5]))
    torch.testing.assert_close(
        label_model.fitted(votes[:, [2, 0, 3, 1]], torch.tensor([0.5, 0.5])), found[[2, 0, 3, 1]], atol=1e-3, rtol=0
    )


def test_a_source_that_agrees_with_none_is_thought_right_in_seven_texts_of_ten():
    """Nothing tells how good it is: there the search begins, and there it stays."""
    mu, balance = accuracies(0.9), [0.4, 0.6]
    found = label_model.fitted(even(mu, balance, 100), torch.tensor(balance)).numpy()
    said = mu[0] @ balance
    expected = [[0.7 / 0.4 * said[0], 0.3 / 0.6 * said[0]], [0.3 / 0.4 * said[1], 0.7 / 0.6 * said[1]]]
    np.testing.assert_allclose(found[0], expected, atol=1e-6)


def test_a_source_that_never_says_anything_changes_nothing():
    votes, _ = drawn(accuracies(0.9, 0.7, 0.8), [0.5, 0.5], 2000)
    silent = torch.cat([votes, torch.full((2000, 1), ABSTAINS)], dim=1)
    balance = torch.tensor([0.5, 0.5])
    found, beside = label_model.fitted(votes, balance), label_model.fitted(silent, balance)
    torch.testing.assert_close(beside[:3], found, atol=1e-3, rtol=0)
    assert beside[3].abs().max() < 1e-6
    torch.testing.assert_close(
        label_model.posterior(silent, beside, balance), label_model.posterior(votes, found, balance), atol=0.01, rtol=0
    )


def test_posteriors_are_those_of_bayes_rule():
    """Class by class and source by source; one that abstains says nothing, and a source is never
    surer than one in a hundred."""
    rng = np.random.default_rng(0)
    mu, balance = rng.dirichlet(np.ones(4), size=(3, 3))[..., :3].swapaxes(1, 2), [0.2, 0.5, 0.3]
    mu[0, 0, 1], mu[1, 2, 2] = 0.0, 1.0
    votes = rng.integers(-1, 3, (30, 3))
    found = label_model.posterior(torch.tensor(votes), torch.tensor(mu), torch.tensor(balance)).numpy()
    for row, probabilities in zip(votes, found, strict=True):
        products = [
            p * np.prod([min(max(mu[i, vote, y], 0.01), 0.99) for i, vote in enumerate(row) if vote != ABSTAINS])
            for y, p in enumerate(balance)
        ]
        np.testing.assert_allclose(probabilities, np.array(products) / sum(products))


def test_equal_accuracies_are_a_majority_vote():
    """Two sources against one: 0.8 * 0.8 * 0.2 to 0.2 * 0.2 * 0.8."""
    mu = torch.tensor(accuracies(0.8, 0.8, 0.8))
    votes = torch.tensor([list(each) for each in itertools.product([ABSTAINS, 0, 1], repeat=3)])
    found = label_model.posterior(votes, mu, torch.tensor([0.5, 0.5]))
    difference = (votes == 0).sum(1) - (votes == 1).sum(1)
    torch.testing.assert_close((found[:, 0] - 0.5).sign().long(), difference.sign())
    [row] = found[(votes == torch.tensor([0, 1, 0])).all(1)]
    torch.testing.assert_close(row, torch.tensor([0.8, 0.2]).double())


def test_a_good_source_outvotes_two_bad_ones():
    """What a majority cannot know: found votes have more right classes."""
    votes, truth = drawn(accuracies(0.95, 0.6, 0.6), [0.5, 0.5], 4000)
    balance = torch.tensor([0.5, 0.5])
    found = label_model.posterior(votes, label_model.fitted(votes, balance), balance).argmax(1).numpy()
    majority = (votes.numpy().mean(1) > 0.5).astype(int)
    assert (found == truth).mean() > (majority == truth).mean() + 0.1


def test_a_single_class_is_certain():
    """All labelled rows of a draw may have one class: its answers would be no numbers."""
    votes, balance = torch.tensor([[0, 0], [-1, 0]]), torch.tensor([1.0])
    assert label_model.posterior(votes, label_model.fitted(votes, balance), balance).tolist() == [[1.0], [1.0]]
