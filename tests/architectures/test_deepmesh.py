"""DeepMeSH: evidence of classifiers and neighbours by hand, found by others than the text itself,
trees as scikit-learn's, and as many labels as are foretold."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import Ridge
from sklearn.svm import LinearSVC

from architectures.convolutional import deepmesh
from architectures.convolutional.deepmesh import DeepMeSH, Documents, Labelled, Trees, borders, shares_of
from harness.saved_models.values import packed, unpacked

SIZES = {"dims": 4, "trees": 8, "neighbours": 3}


def documents(weighed: list[list[float]], learnt: list[list[float]], labels: int = 2) -> Documents:
    return Documents(sparse.csr_array(np.array(weighed)), np.array(learnt), np.zeros((len(learnt), labels)))


def rows(number: int, seed: int = 0) -> list[dict]:
    """Texts that name their labels in words of their own."""
    lot, made = np.random.default_rng(seed), []
    for place in range(number):
        labels = sorted({("oil", "wheat", "gold")[each] for each in lot.integers(0, 3, lot.integers(1, 3))})
        words = [f"{label}{lot.integers(3)}" for label in labels for _ in range(3)]
        words += [f"w{each}" for each in lot.integers(0, 20, 4)]
        made.append({"id": str(place), "text": " ".join(lot.permutation(words)), "labels": labels, "label": labels[0]})
    return made


# --- evidence ---


def test_a_label_has_the_share_of_the_neighbours_that_have_it():
    """By hand, of the two nearest of three texts; one that is nearest to nothing has no share."""
    has = np.array([[True, False], [True, True], [False, True]])
    found = shares_of(np.array([[0.6, 0.2, 0.1], [0.1, 0.3, 0.5], [0.0, 0.0, 0.0], [-0.5, -0.1, 0.4]]), has, 2)
    np.testing.assert_allclose(found, [[1.0, 0.25], [0.375, 1.0], [0.0, 0.0], [0.0, 1.0]])


def test_cosines_are_those_of_words_and_of_words_beside_learnt_vectors():
    """By hand: both halves of the joined vector weigh the same."""
    one, other = documents([[1, 0]], [[0.6, 0.8]]), documents([[0.6, 0.8], [0, 1]], [[1, 0], [0.6, 0.8]])
    words, joined = one.cosines(other)
    np.testing.assert_allclose(words, [[0.6, 0.0]])
    np.testing.assert_allclose(joined, [[0.6, 0.5]])
    np.testing.assert_allclose(one.joined().toarray() @ other.joined().toarray().T, joined)


def test_evidence_is_what_each_source_says(monkeypatch):
    """Margins of scikit-learn's machines, shares, frequency and names, in parts as at once."""
    lot = np.random.default_rng(1)
    known = documents(lot.normal(size=(9, 4)).tolist(), lot.normal(size=(9, 3)).tolist())
    asked = documents(lot.normal(size=(5, 4)).tolist(), lot.normal(size=(5, 3)).tolist())._replace(
        named=lot.integers(0, 2, (5, 2)).astype(float)
    )
    has = np.array([[number % 2 == 0, number % 3 == 0] for number in range(9)])
    labelled = Labelled.of(known, has, 1.0, 0)
    found = labelled.evidence(asked, 3)
    for label in range(2):
        for column, of in enumerate((lambda each: each.weighed, lambda each: each.joined())):
            machine = LinearSVC(C=1.0, random_state=0).fit(of(known), has[:, label])
            np.testing.assert_allclose(found[:, label, column], machine.decision_function(of(asked)), atol=1e-8)
    for column, cosines in enumerate(asked.cosines(known), 2):
        np.testing.assert_allclose(found[:, :, column], shares_of(cosines, has, 3))
    np.testing.assert_allclose(found[:, :, 4], [[5 / 9, 3 / 9]] * 5)
    np.testing.assert_allclose(found[:, :, 5], asked.named)
    monkeypatch.setattr(deepmesh, "AT_ONCE", 2)
    np.testing.assert_allclose(labelled.evidence(asked, 3), found)


def test_a_label_that_no_text_has_is_spoken_against():
    known = documents([[1, 0], [0, 1], [1, 1]], [[1], [0], [1]])
    found = Labelled.of(known, np.array([[True, False], [False, False], [True, False]]), 1.0, 0).evidence(known, 1)
    assert (found[:, 1, :2] == -1).all() and not found[:, 1, 2:].any()


def test_a_label_that_each_text_has_is_spoken_for():
    """A solver needs texts of both kinds: with a label at the root of a tree no fit would end."""
    known = documents([[1, 0], [0, 1], [1, 1]], [[1], [0], [1]])
    found = Labelled.of(known, np.array([[True, False], [True, True], [True, False]]), 1.0, 0).evidence(known, 1)
    assert (found[:, 0, :2] == 1).all()


def test_the_trees_learn_from_evidence_that_others_than_the_text_give(monkeypatch):
    """Each text once, by machines that never saw it: what one says of its own texts is too good."""
    asked = []
    of = Labelled.of.__func__

    def watched(cls, documents, has, C, seed):
        found = of(cls, documents, has, C, seed)
        asked.append({tuple(row) for row in documents.learnt.round(9).tolist()})
        return found

    told = []
    evidence = Labelled.evidence
    monkeypatch.setattr(Labelled, "of", classmethod(watched))
    monkeypatch.setattr(
        Labelled,
        "evidence",
        lambda self, other, k: (
            told.append({tuple(row) for row in other.learnt.round(9).tolist()}) or evidence(self, other, k)
        ),
    )
    DeepMeSH("multilabel", **SIZES).fit(rows(30), [])
    assert len(told) == 3 and len(asked) == 4
    for others, own in zip(asked, told, strict=False):
        assert not others & own and len(others | own) == 30
    assert len(set.union(*told)) == 30 == len(asked[3])


# --- ranks and numbers ---


@pytest.mark.parametrize("depth", [1, 3])
def test_kept_trees_give_scikit_learns_log_odds(depth):
    lot = np.random.default_rng(2)
    evidence, right = lot.normal(size=(200, 3)), lot.integers(0, 2, 200).astype(bool)
    boosted = GradientBoostingClassifier(n_estimators=7, max_depth=depth, random_state=0).fit(evidence, right)
    asked = lot.normal(size=(50, 3))
    np.testing.assert_allclose(Trees.of(boosted).log_odds(asked), boosted.decision_function(asked), rtol=1e-6)


def test_as_many_labels_are_said_as_are_foretold():
    """All of them, and none, too; the order stays."""
    odds = np.array([[0.5, -1.0, 2.0]] * 5)
    found = odds - borders(odds, np.array([0, 1, 2, 3, 9]))[:, None]
    assert (found > 0).tolist() == [
        [False, False, False],
        [False, False, True],
        [True, False, True],
        [True, True, True],
        [True, True, True],
    ]
    assert (found.argsort(axis=1) == odds.argsort(axis=1)).all()


def test_the_number_of_labels_is_that_of_a_ridge_regression(monkeypatch):
    """scikit-learn's, on the same TF-IDF: without its intercept nearly all texts had no label."""
    told: list[float] = []
    monkeypatch.setattr(deepmesh, "borders", lambda odds, numbers: told.extend(numbers) or borders(odds, numbers))
    train, asked = rows(40), rows(12, seed=1)
    system = DeepMeSH("multilabel", **SIZES)
    system.fit(train, [])
    read = [system.vectorizer.transform([row["text"] for row in each]) for each in (train, asked)]
    foretold = Ridge().fit(read[0], [len(row["labels"]) for row in train]).predict(read[1]).round()
    system.scores(asked)
    assert told == foretold.tolist() and foretold.min() > 0


def test_the_words_of_a_labels_name_are_looked_for():
    model = DeepMeSH("classify", **SIZES)
    model.labels = ["rec.motorcycles", "oil_seed", "oil"]
    assert model.names == [{"rec", "motorcycles"}, {"oil", "seed"}, {"oil"}]


@pytest.mark.parametrize("type", ["classify", "multilabel"])
def test_a_kept_system_answers_as_before(type):
    train, asked = rows(60), rows(8, seed=1)
    model = DeepMeSH(type, **SIZES)
    model.fit(train, [])
    arrays: dict = {}
    state = {name: packed(value, arrays, name) for name, value in model.fitted_state().items()}
    again = DeepMeSH(type, **SIZES)
    again.restore_fitted({name: unpacked(value, arrays) for name, value in state.items()})
    assert again.predict(asked) == model.predict(asked)
    right = [
        row["label"] in said if type == "multilabel" else row["label"] == said
        for row, said in zip(asked, model.predict(asked), strict=True)
    ]
    assert sum(right) >= 5, "it learns"


def test_one_label_alone_is_refused():
    with pytest.raises(ValueError, match="5 training rows with 1 labels: two labels are needed"):
        DeepMeSH("classify", **SIZES).fit([row | {"label": "a"} for row in rows(5)], [])
