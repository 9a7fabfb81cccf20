"""SGC: scores and gradients against dense powers of the graph, the regression's minimum, and what
may be seen of dev and test."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy import sparse

from architectures.blocks.corpus_graph import TextGraph, corpus_graph, normalised
from architectures.graph.sgc import Propagated, SimplifiedGraphConvolution, logistic_regression
from harness import registry
from harness.ragged import Ragged
from tests.support.labelled_texts import DEV, TEST, TRAIN, rows

GRAPH = normalised(corpus_graph(Ragged.of([[0, 1, 2], [0, 1], [1, 2, 3], [3, 3]]), 4, 2))
PLACES = np.array([2, 0, 1])


def dense_power(power: int) -> np.ndarray:
    return np.linalg.matrix_power(GRAPH.toarray(), power)


@pytest.mark.parametrize("power", [1, 2, 3])
def test_features_are_rows_of_the_power_of_the_graph(power):
    """One propagation more or less is another model: K is the number of layers that were merged."""
    features, random = Propagated(GRAPH, PLACES, power), np.random.default_rng(0)
    weights, errors = random.normal(size=(8, 2)), random.normal(size=(3, 2))
    dense = dense_power(power)[PLACES]
    assert np.allclose(features @ weights, dense @ weights)
    assert np.allclose(features.back(errors), dense.T @ errors)


def test_two_linear_graph_layers_with_merged_weights_give_the_same_scores():
    """What the paper takes out is the non-linearity and nothing else: S (S X W0) W1 = S^2 X (W0
    W1)."""
    random = np.random.default_rng(0)
    first, second = random.normal(size=(8, 5)), random.normal(size=(5, 3))
    layers = GRAPH @ (GRAPH @ first) @ second
    assert np.allclose(Propagated(GRAPH, PLACES, 2) @ (first @ second), layers[PLACES])


@pytest.mark.parametrize("penalty", [1e-2, 1e-4])
def test_the_regression_ends_where_torchs_gradient_of_the_loss_vanishes(penalty):
    gold = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    weights = torch.from_numpy(logistic_regression(Propagated(GRAPH, PLACES, 2), gold, penalty)).requires_grad_()
    scores = torch.from_numpy(dense_power(2)[PLACES]) @ weights
    loss = F.cross_entropy(scores, torch.tensor([0, 1, 1])) + penalty / 2 * weights.square().sum()
    (slope,) = torch.autograd.grad(loss, weights)
    assert weights.abs().max() > 0.1 and slope.abs().max() < 1e-4 * penalty**0.5


@pytest.mark.parametrize("penalty", [1e-8, 1e-9])
def test_the_regression_with_the_models_own_penalties_reaches_its_minimum(penalty):
    """The smallest two take hundreds of steps on the mini task. Stopped before, they would be other
    penalties than their numbers say, and dev would choose among those."""
    assert penalty in inspect.signature(SimplifiedGraphConvolution).parameters["penalties"].default
    entry = registry.entry("tasks", "sst2")
    train = list(registry.load(entry)(entry).mini("train"))
    graph = TextGraph.of(train, 20, 1)
    features = Propagated(graph.adjacency, graph.places(train), 2)
    gold = np.array([[row["label"] == label for label in ("negative", "positive")] for row in train], dtype=float)
    assert gold.sum() == len(train)
    weights = logistic_regression(features, gold, penalty)
    shares = np.exp(features @ weights)
    shares /= shares.sum(axis=1, keepdims=True)
    slope = features.back((shares - gold) / len(gold)) + penalty * weights
    assert np.abs(slope).max() < 2e-8


@pytest.mark.parametrize("penalty", [1e-4, 1e-9])
def test_what_no_text_says_about_a_class_weighs_nothing(penalty):
    """A weight that all classes share changes no probability, so that it is zero where squares are
    punished; the smallest penalties would leave what the search began with."""
    gold = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    weights = logistic_regression(Propagated(GRAPH, PLACES, 2), gold, penalty)
    assert np.abs(weights.sum(axis=1)).max() < 1e-6 < np.abs(weights).max()


def test_of_two_penalties_that_are_right_equally_often_the_larger_one_counts():
    """In whatever order they are given: the smaller one fits noise."""
    for penalties in ((1e-3, 1e-9), (1e-9, 1e-3)):
        assert fitted(penalties=penalties).penalty == 1e-3


@pytest.mark.parametrize("settings", [{"window": 2}, {"min_count": 4}])
def test_the_graph_is_the_one_that_the_settings_ask_for(settings):
    """Windows of two words join fewer words than one window over the text, and rare words are
    left out."""
    graph = fitted(**settings).graph.adjacency.toarray()
    expected = TextGraph.of((*TRAIN, *DEV, *TEST), **{"window": 20, "min_count": 1} | settings)
    assert np.array_equal(graph, expected.adjacency.toarray())
    usual = TextGraph.of((*TRAIN, *DEV, *TEST), 20, 1).adjacency.toarray()
    assert graph.shape != usual.shape or not np.allclose(graph, usual)


def test_texts_are_answered_from_two_propagations_unless_more_are_asked_for():
    """The power that was asked for is the one that the regression and the answers use."""
    for power in (1, 3):
        model = fitted(power=power)
        dense = np.linalg.matrix_power(model.graph.adjacency.toarray(), power)[model.graph.places(TEST)]
        scores = dense @ model.weights
        assert model.predict(TEST) == [model.labels[best] for best in scores.argmax(axis=1)]
        gold = np.array([[row["label"] == label for label in model.labels] for row in TRAIN], dtype=float)
        features = Propagated(model.graph.adjacency, model.graph.places(TRAIN), power)
        assert np.array_equal(model.weights, logistic_regression(features, gold, model.penalty))


def fitted(train=TRAIN, dev=DEV, test=TEST, **settings) -> SimplifiedGraphConvolution:
    model = SimplifiedGraphConvolution(**settings)
    model.fit(train, dev, test)
    return model


def test_it_is_declared_transductive():
    """The leaderboard marks what has seen the test texts, and the worker hands them over, by this
    flag alone."""
    assert SimplifiedGraphConvolution.transductive is True


def test_test_texts_are_in_the_graph_and_their_labels_are_never_read():
    plain = fitted()
    assert plain.predict(TEST)[:2] == ["pos", "neg"] and plain.predict(TRAIN) == [row["label"] for row in TRAIN]
    for label in ("pos", "neg", "unheard of"):
        assert np.array_equal(fitted(test=[row | {"label": label} for row in TEST]).weights, plain.weights)
    other = fitted(test=[*TEST[:2], TEST[2] | {"text": "good"}])
    assert other.weights.shape == plain.weights.shape and not np.allclose(other.weights, plain.weights)
    expected = TextGraph.of((*TRAIN, *DEV, *TEST), 20, 1).adjacency
    assert isinstance(expected, sparse.csr_array) and np.array_equal(
        plain.graph.adjacency.toarray(), expected.toarray()
    )
    assert plain.parameter_count == 2 * expected.shape[0]


def test_classes_are_numbered_by_name():
    """In the order of a set, which changes from one process to the next, the same seed would give
    other weights."""
    train = [row for n in range(10) for row in rows(f"train-{n}", f"word{n}", label=f"label{(n * 7) % 10}")]
    assert fitted(train).labels == [f"label{n}" for n in range(10)]


def test_dev_labels_choose_the_penalty_and_are_never_trained_on():
    """A text of a good and a bad word: a large penalty answers with the commoner class, a small one
    does not; dev's label decides."""
    penalties = (1e-5, 1e3)
    gold = np.array([[row["label"] == label for label in ("neg", "pos")] for row in TRAIN], dtype=float)
    for label, best in (("neg", 1e-5), ("pos", 1e3)):
        model = fitted(dev=rows("dev", "good bad", label=label), penalties=penalties)
        assert model.penalty == best
        assert np.array_equal(
            model.weights, logistic_regression(Propagated(model.graph.adjacency, np.arange(5), 2), gold, best)
        )


def test_a_text_that_was_not_in_the_graph_is_refused_by_name():
    with pytest.raises(ValueError, match="row test-9 was not"):
        fitted().predict([TEST[0], {"id": "test-9", "text": "good film"}])


def test_a_power_without_propagation_is_refused():
    with pytest.raises(ValueError, match="power=0"):
        SimplifiedGraphConvolution(power=0)


def test_the_operations_of_a_text_are_its_part_of_the_propagation():
    """Four texts of one word, two words: 6 nodes, 14 edges (6 of a node to itself, 4 between text
    and word, both ways), 2 classes."""
    train = [{"id": "a", "text": "good", "label": "pos"}, {"id": "b", "text": "bad", "label": "neg"}]
    model = fitted(train, [train[0] | {"id": "c"}], [{"id": "d", "text": "bad"}])
    assert model.flops_per_example == 2 * (14 * 2 + 8 * 2) / 4, "the last propagation is into the four texts alone"
