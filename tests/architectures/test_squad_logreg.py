"""The log-linear span classifier against features that are counted span by span, and a training
that is written out weight by weight."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter, defaultdict
from itertools import pairwise

import numpy as np
import pytest

from architectures.blocks.spans import FUNCTION_WORDS
from architectures.classical import squad_logreg
from architectures.classical.squad_logreg import SLOTS, Passage, SpanRegression, number, shape, slots

SHIP = "Anna bought the red ship in Bonn . Ben saw 3 old goats of Anna ."
CREW = "Carl sold the red boats . The crew of the ship left Rome in 1999 ."


def row(passage: str, question: str, answer: str | None) -> dict:
    found = {"text": [answer], "start": [passage.index(answer)]} if answer else {"text": [], "start": []}
    return {"passage": passage, "question": question, "answers": found}


TRAIN = [
    row(SHIP, "Who bought the red ship ?", "Anna"),
    row(CREW, "When did the crew of the ship leave ?", "1999"),
    row(SHIP, "Where did Anna buy the red ship ?", "in Bonn"),
    row(SHIP, "Who sang ?", None),
    row(CREW, "Who sold boats ?", "Carl sold the red boats . The crew"),  # holds a mark: no candidate has it
]
LONGEST = 3


def told(passage: str) -> list[list[str]]:
    """The words of each sentence."""
    return [f"{sentence} .".split() for sentence in passage.removesuffix(" .").split(" . ")]


def rarity(run: tuple[str, ...]) -> float:
    """log(passages / passages with it) of a word or pair, half a passage added to both."""
    having = 0
    for passage in (SHIP, CREW):
        sentences = [[word.lower() for word in words] for words in told(passage)]
        having += any(
            run == tuple(words[i : i + len(run)]) for words in sentences for i in range(len(words) - len(run) + 1)
        )
    return max(0.0, math.log(2.5 / (having + 0.5)))


def candidates(passage: str, longest: int = LONGEST):
    """Each span: the words of its sentence, its first word and the one behind its last."""
    for words in told(passage):
        edges = [word.isalnum() and word.lower() not in FUNCTION_WORDS for word in words]
        for first in range(len(words)):
            for last in range(first + 1, min(first + longest, len(words)) + 1):
                if edges[first] and edges[last - 1]:
                    yield words, first, last


def amounts(words: list[str], first: int, last: int, question: str) -> list[float]:
    lower = [word.lower() for word in words]
    asked = [word.lower() for word in question.split()]
    parts = [lower[:first], lower[first:last], lower[last:], lower]

    def weight(part: list[str]) -> float:
        return sum(rarity((word,)) for word in part if word in asked and word.isalnum())

    def weight_of_pairs(part: list[str]) -> float:
        return sum(rarity(pair) for pair in pairwise(part) if pair in set(pairwise(asked)))

    return [
        *map(weight, parts),
        *map(weight_of_pairs, parts),
        *map(len, parts),
        sum(rarity((word,)) for word in parts[1]),
    ]


def bounds(questions: list[tuple[str, str]]) -> list[list[float]]:
    """Ten bounds of each amount: a tenth of the spans lies below the first of them."""
    found = [[0.0] * 13]
    found += [amounts(*span, question) for passage, question in questions for span in candidates(passage)]
    return [[float(np.quantile(column, tenth / 10)) for tenth in range(1, 11)] for column in zip(*found, strict=True)]


BOUNDS = bounds([(SHIP, TRAIN[0]["question"]), (CREW, TRAIN[1]["question"])])
INSIDE, BESIDE, SHAPE, ASKED_SHAPE = range(4)


def slot(kind: int, first: str, second: str | None = None) -> int:
    return int(slots(kind, number(first), 0 if second is None else number(second))[0])


def features(words: list[str], first: int, last: int, question: str) -> Counter[int]:
    """The numbers of a candidate's features, each as often as it has them."""
    found: Counter[int] = Counter()
    for place, amount in enumerate(amounts(words, first, last, question)):
        # The last bits of sums in another order must not decide about a bucket.
        bucket = bisect_left([bound + 1e-9 for bound in BOUNDS[place]], amount)
        found[SLOTS + 11 * place + bucket] += 1
    shaped = " ".join("d" if w.isdigit() else "X" if w[0].isupper() else "x" for w in words[first:last])
    found[slot(SHAPE, shaped)] += 1
    found[slot(ASKED_SHAPE, shaped, question.split()[0].lower() if question.split()[0] in ASKING else "other")] += 1
    for asked in {word.lower() for word in question.split() if word.isalnum()}:
        for word in words[first:last]:
            found[slot(INSIDE, word.lower(), asked)] += 1
        for word in [*words[max(0, first - 2) : first], *words[last : last + 2]]:
            found[slot(BESIDE, word.lower(), asked)] += 1
    return found


ASKING = ("Who", "When", "Where")
TARGETS = [("Anna", 0), ("1999", 0), ("Bonn", 0), None, None]


def target(passage: str, wanted: tuple[str, int] | None) -> int | None:
    """Number of the first candidate of these words."""
    texts = [" ".join(words[first:last]) for words, first, last in candidates(passage)]
    return None if wanted is None else texts.index(wanted[0])


def trained(passes: int, lr: float, penalty: float, seed: int) -> dict[int, float]:
    """Weights after AdaGrad, batch by batch and weight by weight."""
    weights, squares = defaultdict(float), defaultdict(float)
    texts, random = [SHIP, CREW], np.random.default_rng(seed)
    for _ in range(passes):
        for place in random.permutation(2):
            slopes = defaultdict(float)
            for each, wanted in zip(TRAIN, TARGETS, strict=True):
                gold = target(each["passage"], wanted)
                if each["passage"] != texts[place] or gold is None:
                    continue
                found = [features(*span, each["question"]) for span in candidates(each["passage"])]
                scores = np.array([sum(weights[f] * n for f, n in one.items()) for one in found])
                shares = np.exp(scores - scores.max())
                shares /= shares.sum()
                for c, one in enumerate(found):
                    for feature, count in one.items():
                        slopes[feature] += (shares[c] - (c == gold)) * count
                for word in {word for words in told(each["passage"]) for word in words}:
                    for asked in {word.lower() for word in each["question"].split() if word.isalnum()}:
                        for kind in (INSIDE, BESIDE):
                            slopes[slot(kind, word.lower(), asked)] += 0.0
            for feature, slope in slopes.items():
                total = (slope if abs(slope) > 1e-12 else 0.0) + penalty / 2 * weights[feature]
                squares[feature] += total**2
                if squares[feature]:
                    weights[feature] -= lr * total / math.sqrt(squares[feature])
    return weights


def fitted(train=TRAIN, **settings) -> SpanRegression:
    model = SpanRegression(**{"longest": LONGEST} | settings)
    model.fit(train, [])
    return model


def test_the_score_of_a_span_is_the_sum_of_the_weights_of_its_features():
    """Each feature of the class's description, counted by itself, under weights drawn by lot."""
    model = fitted(passes=0)
    assert np.allclose(model.bounds, BOUNDS)
    model.bounds = model.bounds + 1e-9
    model.weights = np.random.default_rng(0).normal(size=len(model.weights))
    for each in TRAIN:
        passage = Passage.of(each["passage"], LONGEST)
        expected = [
            sum(model.weights[f] * n for f, n in features(*span, each["question"]).items())
            for span in candidates(each["passage"])
        ]
        assert np.allclose(model.features(passage, each["question"]).scores(model.weights), expected)


@pytest.mark.parametrize(
    "settings",
    [
        {"passes": 1, "lr": 0.1, "penalty": 0.1, "seed": 0},
        {"passes": 3, "lr": 0.3, "penalty": 2.0, "seed": 1},
    ],
    ids=["once", "again"],
)
def test_training_is_adagrad_on_the_questions_of_a_passage(settings, monkeypatch):
    """The softmax is over the passage's candidates; a question whose answer is none of them, or
    that has none, changes no weight."""
    quantile = np.quantile
    monkeypatch.setattr(squad_logreg.np, "quantile", lambda *args, **named: quantile(*args, **named) + 1e-9)
    model, expected = fitted(**settings), trained(**settings)
    numbers = sorted(expected)
    assert np.allclose(model.weights[numbers], [expected[feature] for feature in numbers], atol=1e-8)
    assert set(np.flatnonzero(model.weights)) <= set(numbers)
    assert model.parameter_count == np.count_nonzero(model.weights) > 100


def test_what_was_learnt_answers():
    model = fitted(passes=20)
    assert model.predict(TRAIN[:3]) == ["Anna", "1999", "Bonn"]
    two = row(SHIP, "What did Anna buy ?", "red ship")
    assert fitted([two], passes=5).predict([two]) == ["red ship"]
    assert model.predict([{"passage": "! of the", "question": "Who ?"}]) == [""]
    blank = fitted(TRAIN[3:4])
    assert not blank.weights.any()
    assert blank.predict(TRAIN[:1]) == ["Anna"], "the first of equal ones"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("red ship", "red ship"),
        ("the red ship", "red ship"),
        ("in Bonn", "Bonn"),
        ("shi", "ship"),
        ("bought the red ship", None),
        ("in", None),
        ("Bonn . Ben", None),
        ("old goats", "old goats"),
    ],
)
def test_the_target_is_the_answer_without_function_words_at_its_edges(answer, expected):
    """They count for nothing, as articles do in the paper. One that is too long is no target."""
    passage = Passage.of(SHIP, 3)
    found = passage.target({"text": [answer], "start": [SHIP.index(answer)]})
    text = None if found is None else SHIP[passage.starts[passage.first[found]] : passage.ends[passage.last[found] - 1]]
    assert text == expected


def test_of_several_answers_the_first_one_is_the_target():
    passage = Passage.of(SHIP, 3)
    both = {"text": ["Ben", "Anna"], "start": [SHIP.index("Ben"), 0]}
    assert SHIP[passage.starts[passage.first[passage.target(both)]] :].startswith("Ben")


def test_marks_of_a_question_are_not_asked_for():
    """A comma of a question would make each comma of the passage a word of it."""
    passage = "Anna bought ships , Ben goats ."
    model = fitted([row(passage, "Who bought goats ?", "Anna"), TRAIN[1]], passes=0)
    read = Passage.of(passage, LONGEST)
    plain, marked = (model._amounts(read, question) for question in ("Who bought goats ?", "Who , bought goats ?"))
    assert plain[:, :4].any() and np.array_equal(plain[:, :4], marked[:, :4])


def test_shapes_of_words():
    assert [shape(form) for form in ("Anna", "NATO", "ship", "1999", "A4", "4th", "-")] == list("XXxddd-")


def test_numbers_of_features_are_the_same_everywhere_and_differ_by_kind():
    """Kept weights are those of the numbers: another machine must give the same."""
    assert slots(0, number("ship"), number("who")).tolist() == [548208]
    drawn = slots(1, np.arange(20_000), 7)
    assert drawn.min() >= 0
    assert drawn.max() < SLOTS
    assert len(np.unique(drawn)) > 19_500
    assert not (slots(0, np.arange(100)) == slots(1, np.arange(100))).any()
    assert not (slots(0, np.arange(1, 100), 0) == slots(0, 0, np.arange(1, 100))).any()
