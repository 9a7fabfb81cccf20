"""TF-IDF references: the weights by hand, scikit-learn's own pipelines, the choice on dev, and the
features of pairs."""

from __future__ import annotations

import json
import math
import statistics
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from architectures.classical.tfidf import PairTfIdf, TfIdf
from harness import registry
from harness.kinds import Estimator, made
from harness.metrics import score
from harness.running import grid
from harness.saved_models.values import packed, unpacked

FILMS = [
    {"text": "good film", "label": "pos"},
    {"text": "Good good play", "label": "pos"},
    {"text": ["bad", "film"], "label": "neg"},
]


def shipped(id: str, task_type: str, **settings: Any) -> Any:
    """The system that an id stands for, with what its decorator fixes."""
    entry = registry.entry("architectures", id)
    return made(registry.load(entry), task_type, 0, grid.hyperparameters(entry) | settings)


def drawn(seed: int, number: int, classes: str) -> list[dict[str, Any]]:
    """Texts of words drawn by lot, some oftener in the texts of one class than of another."""
    lot = np.random.default_rng(seed)
    rows = []
    for place in range(number):
        label = classes[lot.integers(len(classes))]
        words = lot.choice([label * 3, label * 2 + "x", *"cdefgh", "long", "words"], lot.integers(3, 9))
        rows.append({"id": str(place), "text": " ".join(words), "label": label})
    return rows


# --- one text ---


def test_weights_of_three_texts_by_hand():
    """Of three texts two have `good`, which weighs 1 + log(4/3), twice in a text (1 + log 2) times
    that; the terms of one text alone weigh 1 + log(4/2). A text's weights have length 1."""
    model = TfIdf("classify", min_count=1)
    model.fit(FILMS, [])
    common, rare, twice = 1 + math.log(4 / 3), 1 + math.log(4 / 2), 1 + math.log(2)
    expected: list[dict[str, float]] = [
        {"good": common, "film": common, "good film": rare},
        {"good": twice * common, "play": rare, "good good": rare, "good play": rare},
        {"bad": rare, "film": common, "bad film": rare},
    ]
    terms, found = model.vectorizer.get_feature_names_out(), model.features(FILMS).toarray()
    assert {*terms} == {term for weights in expected for term in weights}
    for row, weights in zip(found, expected, strict=True):
        length = math.sqrt(sum(weight**2 for weight in weights.values()))
        assert dict(zip(terms, row, strict=True)) == pytest.approx(
            {term: weights.get(term, 0.0) / length for term in terms}
        )


def test_a_term_of_one_text_alone_is_left_out_and_a_strange_one_ignored():
    model = TfIdf("classify")
    model.fit(FILMS, [])
    assert {*model.vectorizer.get_feature_names_out()} == {"good", "film"}
    assert model.features([{"text": "strange play"}]).nnz == 0
    assert model.parameter_count == 2 + 2 + 1, "each term's share of the texts and weight, and one bias"


WORDS = {"ngram_range": (1, 2), "token_pattern": r"\S+"}
CHARACTERS = {"ngram_range": (2, 5), "analyzer": "char_wb"}
PIPELINES = {
    "tfidf_logreg": (WORDS, lambda C: LogisticRegression(C=C, max_iter=1000)),
    "tfidf_svm": (WORDS, lambda C: LinearSVC(C=C, random_state=0)),
    "tfidf_ridge": (WORDS, lambda C: RidgeClassifier(alpha=0.5 / C)),
    "tfidf_char_logreg": (CHARACTERS, lambda C: LogisticRegression(C=C, max_iter=1000)),
    "tfidf_char_svm": (CHARACTERS, lambda C: LinearSVC(C=C, random_state=0)),
}


def log_probability(pipeline: Any, rows: list[dict[str, Any]]) -> float:
    """The mean of the logarithms of the probabilities of the right classes."""
    shares = pipeline.predict_proba([row["text"] for row in rows])
    return float(
        np.mean(
            [math.log(share[[*pipeline.classes_].index(row["label"])]) for share, row in zip(shares, rows, strict=True)]
        )
    )


def rights(pipeline: Any, rows: list[dict[str, Any]]) -> list[int]:
    """1 for each row whose label the pipeline says."""
    said = pipeline.predict([row["text"] for row in rows]).tolist()
    return [int(label == row["label"]) for label, row in zip(said, rows, strict=True)]


def smallest_near_the_best(rights: dict[float, list[int]]) -> float:
    """The smallest strength that is behind the best by at most half a standard error."""
    best = max(rights.values(), key=sum)
    near = []
    for C, own in rights.items():
        lost = [a - b for a, b in zip(best, own, strict=True)]
        if statistics.fmean(lost) <= 0.5 * statistics.pstdev(lost) / math.sqrt(len(lost)):
            near.append(C)
    return min(near)


@pytest.mark.parametrize("classes", ["ab", "abi"])
@pytest.mark.parametrize("id", PIPELINES)
def test_an_id_is_the_pipeline_of_scikit_learn_that_its_name_says(id: str, classes: str):
    """Whoever compares with this row compares with what everybody calls by its name."""
    train, dev, test = drawn(0, 60, classes), drawn(1, 30, classes), drawn(2, 40, classes)
    model = shipped(id, "classify")
    model.fit(train, dev)
    terms, machine = PIPELINES[id]
    pipelines = {
        C: make_pipeline(TfidfVectorizer(sublinear_tf=True, min_df=2, **terms), machine(C)).fit(
            [row["text"] for row in train], [row["label"] for row in train]
        )
        for C in model.strengths
    }
    if "logreg" in id:
        measured = {C: log_probability(pipelines[C], dev) for C in pipelines}
        assert model.strength == max(measured, key=measured.__getitem__)
    else:
        assert model.strength == smallest_near_the_best({C: rights(pipelines[C], dev) for C in pipelines})
    expected, texts = pipelines[model.strength], [row["text"] for row in test]
    predictions = model.predict(test)
    assert predictions == expected.predict(texts).tolist() and {*predictions} == {*classes}
    margins = expected.decision_function(texts).reshape(len(test), -1)
    assert np.allclose(model.margins(test), margins, atol=1e-6)
    answers = model.answers(test)
    assert [answer["prediction"] for answer in answers] == predictions
    if "logreg" in id:
        shares = expected.predict_proba(texts)
        assert [answer["probabilities"] for answer in answers] == [
            pytest.approx(dict(zip(classes, row, strict=True))) for row in shares
        ]
        assert [answer["probability"] for answer in answers] == pytest.approx(shares.max(axis=1).tolist())
    else:
        assert all(list(answer) == ["prediction"] for answer in answers), "a margin is no probability"


RARE = [{"text": f"common word {n % 3}", "label": "often"} for n in range(12)]
RARE += [{"text": "rare thing", "label": "seldom"}] * 2


@pytest.mark.parametrize(("label", "strength"), [("seldom", 100.0), ("often", 0.01)])
def test_dev_chooses_the_strength(label: str, strength: float):
    """With little weight on errors all texts are of the commoner class, with much the rare ones are
    told: what dev has more of is right."""
    dev = [{"text": "rare thing", "label": label}, {"text": "common word", "label": "often"}]
    model = TfIdf("classify", strengths=[100.0, 0.01])
    model.fit(RARE, dev)
    assert model.strength == strength
    assert model.predict([{"text": "rare thing"}, {"text": "common"}]) == [label, "often"]


def test_logistic_regression_is_chosen_by_probability_where_accuracies_are_equal():
    """All of a small dev are right by each strength, and the one doubtful row by none: too sure of
    it, the largest is not the best. A label that training never showed says nothing."""
    dev = [{"text": "common word", "label": "often"}] * 9 + [{"text": "rare thing", "label": "often"}] * 3
    strange = [{"text": "common", "label": "never seen"}]
    for rows in (dev, [*strange, *dev]):
        model = TfIdf("classify", strengths=[0.01, 0.3, 1.0, 100.0])
        model.fit(RARE, rows)
        shares = {}
        for C in model.strengths:
            alone = TfIdf("classify", C=C)
            alone.fit(RARE, [])
            found = [answer["probabilities"]["often"] for answer in alone.answers(dev)]
            shares[C] = math.prod(found)
        assert model.strength == max(shares, key=shares.get) and len({*shares.values()}) == 4
    model.fit(RARE, strange)
    assert model.strength == 0.01, "all of them know as little"


@pytest.mark.parametrize(("doubtful", "strength"), [(3, 0.01), (0, 100.0)])
def test_a_strength_that_is_behind_by_chance_is_kept_if_it_is_smaller(doubtful: int, strength: float):
    """The larger one has four rare rows right. Where the smaller has three others right instead, it
    is behind by one row of 13, .08, and half a standard error is .10; without them it is behind by
    four of ten, .40 beside .08."""
    rare, common = {"text": "rare thing", "label": "seldom"}, {"text": "common word", "label": "often"}
    model = shipped("tfidf_svm", "classify", strengths=[100.0, 0.01])
    model.fit(RARE, [common] * 6 + [rare] * 4 + [rare | {"label": "often"}] * doubtful)
    assert model.strength == strength


def test_of_equal_scores_the_smallest_strength_is_kept_and_without_dev_the_default():
    model = shipped("tfidf_svm", "classify", strengths=[3.0, 100.0, 0.01])
    model.fit(RARE, [{"text": "common word", "label": "often"}])
    assert model.strength == 0.01
    for C in (1.0, 7.0):
        alone = TfIdf("classify", strengths=[100.0], C=C)
        alone.fit(RARE, [])
        assert alone.strength == C
    assert shipped("tfidf_logreg", "classify").C == 1.0


def test_the_strengths_and_the_default_are_those_of_scikit_learn_and_around_it():
    """In rising order, however they are given: the smallest is asked for."""
    assert TfIdf("classify").strengths == [0.3, 1.0, 3.0, 10.0, 30.0] and TfIdf("classify").C == 1.0
    assert TfIdf("classify", strengths=(3.0, 1.0)).strengths == [1.0, 3.0]


def test_dev_is_not_learnt_from():
    """A dev with words and labels of its own changes nothing but the strength."""
    train = drawn(0, 40, "ab")
    dev = [{"text": "dev alone dev alone", "label": "c"}, *drawn(1, 20, "ab")]
    with_dev, without = TfIdf("classify", strengths=[2.0]), TfIdf("classify", C=2.0)
    with_dev.fit(train, dev)
    without.fit(train, [])
    assert with_dev.classes.tolist() == ["a", "b"]
    assert np.array_equal(with_dev.weights, without.weights)
    assert [*with_dev.vectorizer.get_feature_names_out()] == [*without.vectorizer.get_feature_names_out()]


# --- several labels ---


LABELS = [
    {"text": row["text"], "labels": sorted({*row["text"].replace(" ", "")} & {*"agh"}), "id": row["id"]}
    for row in drawn(3, 60, "ab")
]


def test_each_of_several_labels_is_set_against_the_rest():
    train, test = LABELS[:40], LABELS[40:]
    model = shipped("tfidf_logreg", "multilabel", strengths=[5.0])
    model.fit(train, test)
    answers = np.array([[label in row["labels"] for label in "agh"] for row in train], dtype=int)
    terms = TfidfVectorizer(sublinear_tf=True, min_df=2, **WORDS)
    expected = make_pipeline(terms, OneVsRestClassifier(LogisticRegression(C=5.0, max_iter=1000)))
    shares = expected.fit([row["text"] for row in train], answers).predict_proba([row["text"] for row in test])
    found = model.predict(test)
    assert found == [pytest.approx(dict(zip("agh", row, strict=True)), abs=2e-6) for row in shares]
    assert [*found[0].values()] == sorted(found[0].values(), reverse=True)
    assert model.answers(test) == [{"prediction": each} for each in found]


@pytest.mark.parametrize("id", ["tfidf_svm", "tfidf_ridge"])
def test_a_label_is_said_whose_margin_is_positive(id: str):
    model = shipped(id, "multilabel")
    model.fit(LABELS[:40], LABELS[40:])
    for said, margins in zip(model.predict(LABELS), model.margins(LABELS), strict=True):
        assert {label for label in said if said[label] > 0.5} == {*np.array([*"agh"])[margins > 0]}


# --- choice, refusals, keeping ---


def test_the_measure_of_the_choice_is_the_main_metric_of_the_task_type():
    """A strength that is chosen by another measure than the score is not the best."""
    lot = np.random.default_rng(4)
    labels = lot.choice([*"ab"], 50).tolist()
    said = lot.choice([*"ab"], 50).tolist()
    rows: list[dict[str, Any]] = [{"label": label} for label in labels]
    assert TfIdf("classify").quality(said, rows).mean() == score(["accuracy"], said, rows)["accuracy"]
    sets = [dict(zip("agh", shares, strict=True)) for shares in lot.random((len(LABELS), 3)).tolist()]
    assert TfIdf("multilabel").quality(sets, LABELS).mean() == pytest.approx(
        score(["micro_f1"], sets, LABELS)["micro_f1"]
    )
    assert TfIdf("multilabel").quality([{"a": 0.2}], [{"labels": []}]) == 0, "nothing said, and rightly so"
    scores = lot.random(50).round(1).tolist()
    rows = [{"label": str(int(label == "a")), "group": str(n // 5)} for n, label in enumerate(labels)]
    assert PairTfIdf("rank").quality(scores, rows).mean() == pytest.approx(score(["map"], scores, rows)["map"])
    for type in (*TfIdf.task_types, *PairTfIdf.task_types):
        assert registry.entry("problems", type).metrics[0] in ("accuracy", "micro_f1", "map")


@pytest.mark.parametrize("machine", ["logistic regression", "svm", "ridge"])
def test_one_class_alone_is_refused(machine: str):
    with pytest.raises(ValueError, match="all 2 training rows are 'pos'"):
        TfIdf("classify", machine=machine).fit(FILMS[:2], [])
    with pytest.raises(ValueError, match="all 2 training rows are 'x'"):
        TfIdf("multilabel", machine=machine).fit(
            [{"text": "a", "labels": ["x"]}, {"text": "b", "labels": ["w", "x"]}], []
        )


def test_an_unknown_machine_and_unit_are_named():
    with pytest.raises(ValueError, match="machine='tree' is none of logistic regression, svm, ridge"):
        TfIdf("classify", machine="tree")
    with pytest.raises(ValueError, match="unit='letters' is none of words, characters"):
        TfIdf("classify", unit="letters")


def restored(model: Estimator, fresh: Estimator) -> Estimator:
    """A fresh system with what a fitted one learnt, after it was in a file."""
    arrays: dict[str, Any] = {}
    state = {name: packed(value, arrays, name) for name, value in model.fitted_state().items()}
    fresh.restore_fitted({name: unpacked(value, arrays) for name, value in json.loads(json.dumps(state)).items()})
    return fresh


@pytest.mark.parametrize("id", PIPELINES)
def test_restored_it_answers_the_same(id: str):
    model = shipped(id, "classify")
    model.fit(drawn(0, 60, "abi"), drawn(1, 30, "abi"))
    test = [*drawn(2, 40, "abi"), {"text": "strange"}]
    assert restored(model, shipped(id, "classify")).answers(test) == model.answers(test)


# --- pairs ---


def pairs(seed: int, number: int, relations: str) -> list[dict[str, Any]]:
    """Pairs of texts by lot, whose relation shows in the second text and in what both share."""
    rows = []
    for place, row in enumerate(drawn(seed, number, relations)):
        first, *rest = row["text"].split()
        both = {"first": f"{first} c d long", "second": " ".join(rest)}
        rows.append({"id": str(place), "label": row["label"], "group": str(place // 5)} | both)
    return rows


def tfidf_by_hand(texts: list[str]) -> tuple[list[str], np.ndarray]:
    """The terms that at least two texts have, in their order, and the texts' weights in loops."""
    listed = []
    for text in texts:
        words = text.split()
        listed.append([*words, *(f"{a} {b}" for a, b in pairwise(words))])
    having = {term: sum(term in terms for terms in listed) for terms in listed for term in terms}
    kept = sorted(term for term, number in having.items() if number > 1)
    weights = np.zeros((len(texts), len(kept)))
    for row, terms in enumerate(listed):
        for column, term in enumerate(kept):
            if count := terms.count(term):
                weights[row, column] = (1 + math.log(count)) * (1 + math.log((1 + len(texts)) / (1 + having[term])))
        weights[row] /= math.sqrt(sum(weights[row] ** 2)) or 1
    return kept, weights


def pair_features(rows: list[dict[str, Any]]) -> np.ndarray:
    """Of each pair: both texts, the lesser weight, the distance of both, and the cosine."""
    _, weights = tfidf_by_hand([row["first"] for row in rows] + [row["second"] for row in rows])
    made = []
    for u, v in zip(weights[: len(rows)], weights[len(rows) :], strict=True):
        shared = [min(a, b) for a, b in zip(u, v, strict=True)]
        apart = [abs(a - b) for a, b in zip(u, v, strict=True)]
        made.append([*u, *v, *shared, *apart, sum(a * b for a, b in zip(u, v, strict=True))])
    return np.array(made)


def test_features_of_two_pairs_by_hand():
    """Four texts: `a` is in three of them, `b` in two, and `c` in one, which is left out. The first
    pair has a and b against a; the second b against a and a strange word."""
    rows = [{"first": "a b", "second": "a", "label": "x"}, {"first": "b", "second": "a c", "label": "y"}]
    model = PairTfIdf("match")
    model.fit(rows, [])
    a, b = 1 + math.log(5 / 4), 1 + math.log(5 / 3)
    length = math.hypot(a, b)
    u = [a / length, b / length]
    assert model.vectorizer.get_feature_names_out().tolist() == ["a", "b"]
    assert model.features(rows).toarray() == pytest.approx(
        np.array(
            [
                [*u, 1, 0, u[0], 0, 1 - u[0], u[1], u[0]],
                [0, 1, 1, 0, 0, 0, 1, 1, 0],
            ]
        )
    )


@pytest.mark.parametrize("relations", ["ab", "abi"])
def test_relations_of_pairs_are_those_of_logistic_regression_on_the_features(relations: str):
    train = pairs(0, 60, relations)
    model = shipped("tfidf_pair_logreg", "match")
    model.fit(train, pairs(1, 30, relations))
    features = pair_features(train)
    assert np.allclose(model.features(train).toarray(), features)
    labels = [row["label"] for row in train]
    expected = LogisticRegression(C=model.strength, max_iter=1000).fit(features, labels)
    assert model.predict(train) == expected.predict(features).tolist()
    shares = [dict(zip(relations, row, strict=True)) for row in expected.predict_proba(features)]
    assert [answer["probabilities"] for answer in model.answers(train)] == [
        pytest.approx(each, abs=1e-4) for each in shares
    ]


def pair_features_of_scikit_learn(rows: list[dict[str, Any]], terms: dict[str, Any]) -> np.ndarray:
    """The features of pairs from its weights of other terms."""
    firsts, seconds = ([row[side] for row in rows] for side in ("first", "second"))
    vectorizer = TfidfVectorizer(sublinear_tf=True, min_df=2, **terms).fit([*firsts, *seconds])
    u, v = (vectorizer.transform(texts).toarray() for texts in (firsts, seconds))
    return np.hstack([u, v, np.minimum(u, v), np.abs(u - v), (u * v).sum(1, keepdims=True)])


@pytest.mark.parametrize("relations", ["ab", "abi"])
@pytest.mark.parametrize("id", PIPELINES)
def test_a_pair_has_the_machine_and_the_terms_that_its_id_says(id: str, relations: str):
    train = pairs(0, 60, relations)
    model = shipped(id.replace("tfidf", "tfidf_pair"), "match")
    model.fit(train, pairs(1, 30, relations))
    terms, machine = PIPELINES[id]
    features = pair_features_of_scikit_learn(train, terms)
    assert np.allclose(model.features(train).toarray(), features)
    expected = machine(model.strength).fit(features, [row["label"] for row in train])
    said = model.predict(train)
    assert said == expected.predict(features).tolist() and {*said} == {*relations}
    assert np.allclose(model.margins(train), expected.decision_function(features).reshape(len(train), -1), atol=1e-3)
    assert [answer["prediction"] for answer in model.answers(train)] == said


@pytest.mark.parametrize("id", ["tfidf_pair_svm", "tfidf_pair_ridge"])
def test_candidates_are_ranked_by_the_margin_of_a_machine_without_probabilities(id: str):
    train = [row | {"label": str(int(row["label"] == "b"))} for row in pairs(0, 60, "ab")]
    model = shipped(id, "rank")
    model.fit(train, train)
    expected = PIPELINES[id.replace("_pair", "")][1](model.strength)
    expected.fit(pair_features(train), [int(row["label"]) for row in train])
    found = model.predict(train)
    assert found == pytest.approx(expected.decision_function(pair_features(train)).tolist(), abs=1e-3)
    assert model.answers(train) == [{"prediction": score} for score in found]


def test_candidates_are_ranked_by_the_logit_of_a_right_one():
    train = [row | {"label": str(int(row["label"] == "b"))} for row in pairs(0, 60, "ab")]
    model = shipped("tfidf_pair_logreg", "rank")
    model.fit(train, train)
    expected = LogisticRegression(C=model.strength, max_iter=1000)
    expected.fit(pair_features(train), [int(row["label"]) for row in train])
    found = model.predict(train)
    assert found == pytest.approx(expected.decision_function(pair_features(train)).tolist(), abs=1e-3)
    shares = expected.predict_proba(pair_features(train))[:, 1].tolist()
    assert [answer["probability"] for answer in model.answers(train)] == pytest.approx(shares, abs=1e-3)
    assert [
        answer["prediction"] for answer in restored(model, shipped("tfidf_pair_logreg", "rank")).answers(train)
    ] == found
