"""TextGCN: what may be seen of a test text, the two layers against dense matrices, and which epoch
answers."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from architectures.blocks.corpus_graph import corpus_graph, normalised
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
