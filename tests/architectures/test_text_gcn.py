"""TextGCN: what may be seen of a test text, the two layers against dense matrices, and which epoch
answers."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from architectures.blocks.corpus_graph import TextGraph, corpus_graph, normalised
from architectures.graph import text_gcn
from architectures.graph.text_gcn import TextGCN, as_tensor
from harness.ragged import Ragged
from tests.support.labelled_texts import DEV, TEST, TRAIN

# Words 0 to 3; windows of two words: 01 | 01 | 12, 23 | 3
TEXTS = Ragged.of([[0, 1], [0, 1], [1, 2, 3], [3]])


def fitted(train=TRAIN, dev=DEV, test=TEST, **settings) -> TextGCN:
    model = TextGCN(**{"hidden": 8, "epochs": 30} | settings)
    model.fit(train, dev, test)
    return model


def test_it_is_declared_transductive():
    """The leaderboard marks what has seen the test texts, and the worker hands them over, by this
    flag alone."""
    assert TextGCN.transductive is True


def test_test_texts_are_in_the_graph_and_their_labels_are_never_read():
    """A system that looked at a test label would be worth nothing; one without test texts in its
    graph is not TextGCN."""
    plain = fitted()
    assert plain.predict(TEST)[:2] == ["pos", "neg"]
    for label in ("pos", "neg", "unheard of"):
        assert torch.equal(fitted(test=[row | {"label": label} for row in TEST]).scores, plain.scores)
    other = [*TEST[:2], TEST[2] | {"text": "good"}]
    assert not torch.allclose(fitted(test=other).scores[:5], plain.scores[:5])
    assert not torch.equal(fitted(train=[TRAIN[0] | {"label": "neg"}, *TRAIN[1:]]).scores, plain.scores)


@pytest.fixture
def epochs(monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, torch.Tensor]]:
    """Dev loss and scores of the dev texts, as each epoch adds them."""
    seen = []
    original = torch.nn.functional.cross_entropy

    def spy(scores, labels):
        loss = original(scores, labels)
        if not scores.requires_grad:
            seen.append((loss.item(), scores))
        return loss

    monkeypatch.setattr(text_gcn.F, "cross_entropy", spy)
    return seen


def test_dev_labels_choose_the_epoch_and_are_never_trained_on(epochs):
    turned = [row | {"label": "neg" if row["label"] == "pos" else "pos"} for row in DEV]
    right, wrong = fitted(patience=100), fitted(dev=turned, patience=100)
    assert len(epochs) == 2 * 31
    for (loss, scores), (other_loss, other_scores) in zip(epochs[:31], epochs[31:], strict=True):
        assert torch.equal(scores, other_scores) and loss != other_loss
    assert not torch.equal(right.scores, wrong.scores)


def test_dev_rows_without_a_known_label_are_left_out_and_one_is_needed():
    known = fitted()
    strange = [row | {"label": "other"} for row in DEV]
    assert known.predict(TEST[:2]) == fitted(dev=[*DEV, *[row | {"id": f"{row['id']}x"} for row in strange]]).predict(
        TEST[:2]
    )
    with pytest.raises(ValueError, match="no dev row has a label"):
        fitted(dev=strange)


def test_scores_are_two_propagations_of_a_vector_per_node(monkeypatch):
    """A relu(A W0) W1 by dense matrices; its gradients by torch's own rule."""
    graph = as_tensor(normalised(corpus_graph(TEXTS, 4, 2)))
    kept = {}

    class Recorder(torch.optim.Adam):
        def __init__(self, parameters, **settings):
            kept["weights"] = [parameter.detach().clone() for parameter in parameters]
            kept["live"] = parameters
            super().__init__(parameters, **settings)

    monkeypatch.setattr(torch.optim, "Adam", Recorder)
    torch.manual_seed(0)
    model = TextGCN(hidden=5, epochs=1, dropout=0.0, lr=0.0)
    model.labels = ["a", "b"]
    gold = torch.tensor([0, 2]), torch.tensor([0, 1])
    scores = model._train(graph, gold, gold)
    first, second = (weight.requires_grad_() for weight in kept["weights"])
    adjacency = torch.from_numpy(normalised(corpus_graph(TEXTS, 4, 2)).toarray()).float()
    dense = adjacency @ torch.relu(adjacency @ first) @ second
    torch.testing.assert_close(scores, dense.detach())
    torch.nn.functional.cross_entropy(dense[gold[0]], gold[1]).backward()
    assert first.shape == (8, 5) and model.parameter_count == 8 * 5 + 5 * 2
    for mine, reference in zip(kept["live"], (first, second), strict=True):
        torch.testing.assert_close(mine.grad, reference.grad)


def test_each_step_takes_the_gradient_of_its_own_epoch(monkeypatch):
    """Gradients that add up would take ever longer steps. At a rate of zero all are the same."""
    found = []

    class Recorder(torch.optim.Adam):
        def step(self, *given):
            found.append([weight.grad.clone() for weight in self.param_groups[0]["params"]])
            super().step(*given)

    monkeypatch.setattr(torch.optim, "Adam", Recorder)
    model = TextGCN(hidden=5, epochs=3, dropout=0.0, lr=0.0)
    model.labels = ["a", "b"]
    gold = torch.tensor([0, 2]), torch.tensor([0, 1])
    model._train(as_tensor(normalised(corpus_graph(TEXTS, 4, 2))), gold, gold)
    assert len(found) == 3 and found[0][0].any()
    for later in found[1:]:
        torch.testing.assert_close(later, found[0])


def test_the_epoch_with_the_lowest_dev_loss_answers(epochs):
    """Training goes on for ``patience`` epochs after it, and must not take those into the
    answer."""
    model = fitted(lr=0.5, patience=4, epochs=100)
    best = int(np.argmin([loss for loss, _ in epochs]))
    assert len(epochs) == best + 1 + 4 < 101
    answered = model.scores[model.graph.places(DEV)]
    assert torch.equal(answered, epochs[best][1]) and not torch.equal(answered, epochs[-1][1])


def test_a_text_that_was_not_in_the_graph_is_refused_by_name():
    model = fitted()
    with pytest.raises(ValueError, match="row test-9 was not"):
        model.predict([TEST[0], {"id": "test-9", "text": "good film"}])
    with pytest.raises(ValueError, match="row test-0 was not"):
        model.predict([TEST[0] | {"text": "another text under a known id"}])


def test_rare_words_can_be_left_out_and_a_text_may_lose_all_its_words():
    """Of the 7 words only good and film are seen four times: `poor bad story` keeps no edge but its
    own."""
    every, frequent = fitted(), fitted(min_count=4)
    assert every.parameter_count - frequent.parameter_count == 5 * 8
    assert len(frequent.predict(TEST)) == 3 and frequent.scores.isfinite().all()


def test_the_seed_decides_and_the_global_generator_is_left_alone():
    torch.manual_seed(5)
    before = torch.get_rng_state()
    one, same, other = fitted(seed=1), fitted(seed=1), fitted(seed=2)
    assert torch.equal(one.scores, same.scores) and not torch.equal(one.scores, other.scores)
    assert torch.equal(before, torch.get_rng_state())


def test_the_operations_of_a_text_are_its_part_of_the_pass_over_the_graph():
    """Four texts of one word, two words: 6 nodes, 14 edges (6 of a node to itself, 4 between text
    and word, both ways), 2 classes."""
    train = [{"id": "a", "text": "good", "label": "pos"}, {"id": "b", "text": "bad", "label": "neg"}]
    model = fitted(train, [train[0] | {"id": "c"}], [{"id": "d", "text": "bad"}])
    assert model.flops_per_example == 2 * (14 * 8 + 6 * 8 * 2 + 14 * 2) / 4


class Recorder(torch.optim.Adam):
    """Adam that keeps its weights and a copy of them before the first step."""

    def __init__(self, parameters, **settings):
        Recorder.first = [parameter.detach().clone() for parameter in parameters]
        Recorder.live = parameters
        super().__init__(parameters, **settings)


def test_hidden_units_are_dropped_in_training_and_never_when_it_answers(epochs):
    """With all of them dropped no weight learns anything, and the scores stay those of the first
    weights; they are not zero, because answers drop nothing."""
    model = fitted(dropout=1.0, patience=100)
    assert len(epochs) == 31 and all(torch.equal(scores, epochs[0][1]) for _, scores in epochs)
    assert model.scores.abs().sum(1).all()
    assert not torch.equal(fitted(dropout=0.5).scores, fitted(dropout=0.0).scores)


def test_weights_start_as_glorot_and_bengio_have_them(monkeypatch):
    """Uniform within sqrt(6 / (rows + columns)): larger ones, which are spread with the same care,
    need another learning rate."""
    monkeypatch.setattr(torch.optim, "Adam", Recorder)
    fitted(hidden=300)
    for weight in Recorder.first:
        bound = (6 / sum(weight.shape)) ** 0.5
        assert 0.95 * bound < weight.abs().max() <= bound
        assert weight.std().item() == pytest.approx(bound / 3**0.5, rel=0.1)


def test_the_first_step_of_a_weight_is_the_learning_rate(monkeypatch):
    """Adam's own; weight decay or another optimiser would make another step."""
    monkeypatch.setattr(torch.optim, "Adam", Recorder)
    fitted(lr=0.003, epochs=1, dropout=0.0)
    for before, after in zip(Recorder.first, Recorder.live, strict=True):
        steps = (after.detach() - before).abs()
        moved = steps[steps > 0]
        assert len(moved) > len(steps.flatten()) / 4
        torch.testing.assert_close(moved, torch.full_like(moved, 0.003), rtol=0.01, atol=0)


@pytest.mark.parametrize("settings", [{"window": 2}, {"min_count": 4}])
def test_the_graph_is_the_one_that_the_settings_ask_for(settings):
    """Windows of two words join fewer words than one window over the text, and rare words are
    left out."""
    graph = fitted(**settings).graph.adjacency.toarray()
    expected = TextGraph.of((*TRAIN, *DEV, *TEST), **{"window": 20, "min_count": 1} | settings)
    assert np.array_equal(graph, expected.adjacency.toarray())
    usual = TextGraph.of((*TRAIN, *DEV, *TEST), 20, 1).adjacency.toarray()
    assert graph.shape != usual.shape or not np.allclose(graph, usual)
