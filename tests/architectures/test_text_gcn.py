"""TextGCN: the graph by hand and against dense numpy, what may be seen of a test text, and the two layers."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from architectures.graph import text_gcn
from architectures.graph.text_gcn import TextGCN, as_tensor, corpus_graph, count_pairs, normalised, positive_pmi, tf_idf
from harness.batching import Ragged

# Words 0 to 3; windows of two words: 01 | 01 | 12, 23 | 3
TEXTS = Ragged.of([[0, 1], [0, 1], [1, 2, 3], [3]])


def dense_counts(texts: list[list[int]], words: int, window: int) -> tuple[np.ndarray, int]:
    """Windows with both of two words, counted one by one."""
    sets = [set(t[i : i + window]) for t in texts if t for i in range(max(1, len(t) - window + 1))]
    return np.array([[sum(i in s and j in s for s in sets) for j in range(words)] for i in range(words)]).reshape(words, words), len(sets)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(st.integers(0, 4), max_size=9), min_size=1, max_size=6), st.integers(1, 4))
def test_pairs_are_counted_as_one_by_one(texts, window):
    """Each window counts once, repeats inside it do not, and a short text is one window."""
    counts, windows = count_pairs(Ragged.of(texts), 5, window)
    expected, number = dense_counts(texts, 5, window)
    assert windows == number and np.array_equal(counts.toarray(), expected)


def test_windows_beyond_those_counted_at_once_are_not_lost(monkeypatch):
    monkeypatch.setattr(text_gcn, "WINDOWS_AT_ONCE", 2)
    counts, windows = count_pairs(TEXTS, 4, 2)
    assert windows == 5 and np.array_equal(
        counts.toarray(), dense_counts([list(text) for text in map(TEXTS.__getitem__, range(4))], 4, 2)[0]
    )


def test_pmi_by_hand_and_none_where_it_is_not_positive():
    """Of five windows 0 is in 2, 1 in 3, 2 in 2, 3 in 2: p(1, 2) = 1/5 < 6/25 = p(1) p(2) gives no edge."""
    found = positive_pmi(*count_pairs(TEXTS, 4, 2)).toarray()
    expected = np.zeros((4, 4))
    expected[0, 1] = expected[1, 0] = math.log((2 / 5) / (2 / 5 * 3 / 5))
    expected[2, 3] = expected[3, 2] = math.log((1 / 5) / (2 / 5 * 2 / 5))
    assert np.allclose(found, expected)


def test_independent_words_have_no_edge():
    """PMI 0: p(0, 1) = 1/4 = 1/2 * 1/2."""
    assert positive_pmi(*count_pairs(Ragged.of([[0, 1], [0], [1], [2]]), 3, 20)).nnz == 0


def test_a_text_and_its_word_are_joined_by_tf_idf():
    found = tf_idf(Ragged.of([[0, 0, 1], [1], [1, 2]]), 3).toarray()
    assert np.allclose(found, [[2 * math.log(3), 0, 0], [0, 0, 0], [0, 0, math.log(3)]])


def test_the_graph_has_no_edge_between_texts_and_one_from_each_node_to_itself():
    graph = corpus_graph(TEXTS, 4, 2).toarray()
    assert graph.shape == (8, 8) and np.array_equal(graph, graph.T)
    assert np.array_equal(graph[:4, :4], np.eye(4)) and np.array_equal(graph.diagonal(), np.ones(8))
    assert np.allclose(graph[:4, 4:], tf_idf(TEXTS, 4).toarray())
    assert np.allclose(graph[4:, 4:] - np.eye(4), positive_pmi(*count_pairs(TEXTS, 4, 2)).toarray())


def test_the_graph_is_normalised_on_both_sides():
    graph = corpus_graph(TEXTS, 4, 2)
    dense = graph.toarray()
    scale = np.diag(dense.sum(1) ** -0.5)
    assert np.allclose(normalised(graph).toarray(), scale @ dense @ scale)
    assert np.allclose(as_tensor(normalised(graph)).to_dense(), scale @ dense @ scale, atol=1e-6)


def rows(split: str, *texts: str, label: str | None = None) -> list[dict]:
    return [{"id": f"{split}-{n}", "text": text} | ({"label": label} if label else {}) for n, text in enumerate(texts)]


TRAIN = rows("train-p", "good film", "fine film", "good fine cast", label="pos") + rows("train-n", "bad film", "poor cast", label="neg")
DEV = rows("dev-p", "good cast", label="pos") + rows("dev-n", "bad poor film", label="neg")
TEST = rows("test", "fine good story", "poor bad story", "film")


def fitted(train=TRAIN, dev=DEV, test=TEST, **settings) -> TextGCN:
    model = TextGCN(**{"hidden": 8, "epochs": 30} | settings)
    model.fit(train, dev, test)
    return model


def test_it_is_declared_transductive():
    """The leaderboard marks what has seen the test texts, and the worker hands them over, by this flag alone."""
    assert TextGCN.transductive is True


def test_test_texts_are_in_the_graph_and_their_labels_are_never_read():
    """A system that looked at a test label would be worth nothing; one without test texts in its graph is not TextGCN."""
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
    assert known.predict(TEST[:2]) == fitted(dev=[*DEV, *[row | {"id": f"{row['id']}x"} for row in strange]]).predict(TEST[:2])
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
    dense = graph.to_dense() @ torch.relu(graph.to_dense() @ first) @ second
    torch.testing.assert_close(scores, dense.detach())
    torch.nn.functional.cross_entropy(dense[gold[0]], gold[1]).backward()
    assert first.shape == (8, 5) and model.parameter_count == 8 * 5 + 5 * 2
    for mine, reference in zip(kept["live"], (first, second), strict=True):
        torch.testing.assert_close(mine.grad, reference.grad)


def test_the_epoch_with_the_lowest_dev_loss_answers(epochs):
    """Training goes on for ``patience`` epochs after it, and must not take those into the answer."""
    model = fitted(lr=0.5, patience=4, epochs=100)
    best = int(np.argmin([loss for loss, _ in epochs]))
    assert len(epochs) == best + 1 + 4 < 101
    answered = model.scores[[model.nodes[row["id"], row["text"]] for row in DEV]]
    assert torch.equal(answered, epochs[best][1]) and not torch.equal(answered, epochs[-1][1])


def test_a_text_that_was_not_in_the_graph_is_refused_by_name():
    model = fitted()
    with pytest.raises(ValueError, match="row test-9 was not"):
        model.predict([TEST[0], {"id": "test-9", "text": "good film"}])
    with pytest.raises(ValueError, match="row test-0 was not"):
        model.predict([TEST[0] | {"text": "another text under a known id"}])


def test_rare_words_can_be_left_out_and_a_text_may_lose_all_its_words():
    """Of the 7 words only good and film are seen four times: `poor bad story` keeps no edge but its own."""
    every, frequent = fitted(), fitted(min_count=4)
    assert every.parameter_count - frequent.parameter_count == 5 * 8
    assert len(frequent.predict(TEST)) == 3 and frequent.scores.isfinite().all()


def test_the_seed_decides_and_the_global_generator_is_left_alone():
    torch.manual_seed(5)
    before = torch.get_rng_state()
    one, same, other = fitted(seed=1), fitted(seed=1), fitted(seed=2)
    assert torch.equal(one.scores, same.scores) and not torch.equal(one.scores, other.scores)
    assert torch.equal(before, torch.get_rng_state())
