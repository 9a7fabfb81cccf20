"""No metric of any registered problem rewards a model that knows nothing.

A constant scorer once had MRR 1.0 on a well-known board, whose scorer put right candidates first
among equal ones.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import harness.metrics
from harness import registry
from harness.metrics import METRICS, classification, info, ranking, regression, score, squad
from harness.problems import problem
from harness.rows import FORMS
from tests.support import null_models
from tests.support.null_models import ANSWERABLE, NAMES, RIGHT, ROWS, TAGS, TRAIN, expectations, faults, made_rows


@pytest.mark.parametrize("type", registry.entries("problems"))
def test_a_model_that_knows_nothing_scores_what_guesses_score(type):
    """For whoever believes a row of the table: constant, random, shuffled and copied answers are
    within three standard errors of their expectation, in whatever order the rows stand."""
    assert faults(type) == []


@pytest.mark.parametrize("type", registry.entries("problems"))
def test_right_answers_are_perfect(type):
    """A floor means something only below a ceiling that can be reached."""
    rows = made_rows(problem(type), ROWS, seed=2)
    right = list(map(problem(type).right, rows))
    for metric, value in score(null_models.metrics_of(type), right, rows, null_models.TREE).items():
        best = 0 if info(metric).lower_is_better and metric != "perplexity" else 1
        if metric.startswith("precision_at_"):  # a row with fewer labels than places cannot fill them all
            places = int(metric.removeprefix("precision_at_"))
            best = np.mean([min(1, len(row["labels"]) / places) for row in rows])
        assert value == pytest.approx(best, abs=1e-9), metric


def test_no_metric_and_no_form_is_forgotten():
    """A new one is named here until the gate knows a definition of it, or values of it."""
    types = registry.entries("problems")
    of_some_rows = {"mention_f1_feminine", "mention_f1_masculine"}  # mention_f1 where a text has such a pronoun
    assert set(METRICS) - of_some_rows == {name for type in types for name in null_models.metrics_of(type)}
    assert set(null_models.DEFINITIONS) == {type for type, entry in types.items() if entry.shipped}
    assert set(null_models.FORMS) == set(FORMS)


def _equal_mrr() -> float:
    """MRR of equal scores: the first right candidate is k-th with the chance that k - 1 wrong ones
    stand above it; a question without a right one does not count."""
    rows = made_rows(problem("rank"), ROWS, seed=2)
    sizes = Counter(row["group"] for row in rows).values()
    found = sum(RIGHT * (1 - RIGHT) ** (k - 1) / k for size in sizes for k in range(1, size + 1))
    return found / sum(1 - (1 - RIGHT) ** size for size in sizes)


SHARES = np.array(list(NAMES.values()))
DECLARED = [
    ("classify", "majority", {"accuracy": max(SHARES), "macro_f1": 2 * max(SHARES) / (1 + max(SHARES)) / len(SHARES)}),
    ("classify", "shuffled", {"accuracy": sum(SHARES**2), "macro_f1": 1 / len(SHARES)}),
    ("classify", "copy of the input", {"accuracy": 0, "hierarchical_f1": 0}),
    # red for all: a red row has red and warm right, others nothing; grey has no label above it
    ("classify", "majority", {"hierarchical_f1": 2 * 2 * NAMES["red"] / (2 + 2 - NAMES["grey"])}),
    ("match", "majority", {"accuracy": max(SHARES)}),
    # the commonest set of labels is the empty one; behind it stand the labels by their shares
    ("multilabel", "majority", {"micro_f1": 0, "macro_f1": 0, "precision_at_1": max(SHARES)}),
    ("multilabel", "majority", {"precision_at_3": sum(sorted(SHARES)[-3:]) / 3, "precision_at_5": sum(SHARES) / 5}),
    # ten words and the unknown one
    ("language_model", "uniform", {"nats_per_token": math.log(11), "perplexity": 11}),
    ("text", "uniform", {"nats_per_token": math.log(11), "perplexity": 11}),
    ("multilabel", "shuffled", {"micro_f1": sum(SHARES**2) / sum(SHARES), "precision_at_5": sum(SHARES**2) / 5}),
    ("answer", "majority", {"skill_accuracy": max(SHARES), "skills_solved": 0}),
    ("rank", "equal", {"mrr": _equal_mrr}),
    ("rank", "random", {"mrr": _equal_mrr}),
    ("tag", "majority", {"accuracy": TAGS["O"], "span_f1": 0, "span_precision": 0, "span_recall": 0}),
    ("extract", "nothing", {"exact_match": 1 - ANSWERABLE, "f1": 1 - ANSWERABLE, "no_answer_accuracy": 1}),
    ("extract", "nothing", {"exact_match_answerable": 0, "f1_answerable": 0}),
    ("transcribe", "nothing", {"wer": 1, "cer": 1}),
    ("regress", "mean", {"pearson": 0, "spearman": 0, "mse": (11**2 - 1) / 12 / 2**2}),
    ("regress", "shuffled", {"pearson": 0, "spearman": 0, "mse": 2 * (11**2 - 1) / 12 / 2**2}),
    ("regress_pair", "mean", {"pearson": 0, "spearman": 0}),
]
"""Expected scores in closed form, from the shares that answers are drawn with."""


@pytest.mark.parametrize(("type", "model", "declared"), DECLARED)
def test_floors_are_what_a_formula_says(type, model, declared):
    asked = problem(type)
    rows = made_rows(asked, ROWS, seed=2)
    predictions = null_models.null_models(asked, made_rows(asked, TRAIN, seed=1), rows)[model]
    values = score(list(declared), predictions, rows, null_models.TREE)
    anew = [null_models.answered_anew(asked, rows, seed) for seed in range(20)]
    errors = expectations(asked, list(declared), predictions, anew)
    for metric, expected in declared.items():
        expected = expected() if callable(expected) else expected
        assert abs(values[metric] - expected) <= 3 * errors[metric][1] + 1e-9, (metric, values[metric], expected)


# The gate itself.


def _kindly(question: ranking.Question) -> float:
    """Reciprocal rank with right candidates first among equal ones."""
    ranked = sorted(zip(question.scores, question.right, strict=True), reverse=True)
    return 1 / next(rank for rank, (_, right) in enumerate(ranked, 1) if right)


def _as_given(question: ranking.Question) -> float:
    """Reciprocal rank with equal candidates in the order of the file."""
    ranked = sorted(zip(question.scores, question.right, strict=True), key=lambda pair: -pair[0])
    return 1 / next(rank for rank, (_, right) in enumerate(ranked, 1) if right)


def _over_predicted(self, predictions: list[str], references: list[str]) -> dict[str, float]:
    """Macro F1 without the labels that nobody predicted."""
    pairs = list(zip(predictions, references, strict=True))
    found = {
        label: 2 * pairs.count((label, label)) / (predictions.count(label) + references.count(label))
        for label in set(predictions)
    }
    return {"macro_f1": sum(found.values()) / len(found)}


@pytest.mark.parametrize(
    ("type", "place", "name", "wrong", "fault"),
    [
        ("rank", ranking, "reciprocal_rank", _kindly, r"mrr: equal has 1.0000, where 0\.\d+ is expected"),
        ("rank", ranking, "reciprocal_rank", _as_given, r"mrr: equal has 0\.\d+, and 0\.\d+ with the rows by answer"),
        ("classify", classification.MacroF1, "_compute", _over_predicted, "macro_f1: majority has 0.[45]"),
        (
            "regress",
            regression,
            "correlation",
            lambda of, ours, theirs: 1.0 - (np.ptp(ours) > 0),
            "pearson: mean has 1",
        ),
        (
            "multilabel",
            harness.metrics,
            "precision_at",
            lambda k, ours, theirs: float({*theirs} <= {*ours}),
            "precision_at_1: majority has 1.0000",
        ),
        ("extract", squad, "f1", lambda prediction, answers: float(not prediction), "f1: nothing has 1.0000"),
    ],
)
def test_a_metric_that_rewards_ignorance_is_named(monkeypatch, type, place, name, wrong, fault):
    monkeypatch.setattr(place, name, wrong)
    assert any(_matches(fault, found) for found in faults(type))


PLUGIN = '''
from collections import defaultdict

from harness.problems.base import Problem, majority_and_random
from harness.registry import register_metric, register_problem


@register_metric("hits", name="hits", per_row=True)
def hits(prediction, row):
    return prediction == row["kind"]


@register_metric("kind_hits", name="hits of known kinds", per_row=True)
def kind_hits(prediction, row):
    """Counts what is no kind at all as right."""
    return prediction not in ("red", "green", "blue", "grey") or prediction == row["kind"]


@register_metric("first_hits", name="hits of the first half")
def first_hits(predictions, rows):
    half = len(rows) // 2
    return sum(map(hits, predictions[:half], rows[:half])) / half


@register_metric("best_rank", name="rank of the best")
def best_rank(predictions, rows):
    """Equal scores are sorted by what is right."""
    questions = defaultdict(list)
    for prediction, row in zip(predictions, rows):
        questions[row["group"]].append((prediction, row["right"]))
    firsts = [max(candidates)[1] == "1" for candidates in questions.values()]
    return sum(firsts) / len(firsts)


@register_problem(
    "guess", name="Guessing", columns=("text", "kind"), inputs=("text",), texts=("text",), metrics=METRICS,
    forms={"kind": "name"},
)
class Guess(Problem):
    def floors(self, train, rows):
        return majority_and_random((row["kind"] for row in train), len(rows))


@register_problem(
    "sort", name="Sorting", columns=("text", "group", "right"), inputs=("text", "group"), texts=("text",),
    metrics=("best_rank",), cluster="group", forms={"right": "zero_or_one", "group": "name"},
)
class Sort(Problem):
    def floors(self, train, rows):
        return {"equal": [0.0] * len(rows)}

    def right(self, row):
        return float(row["right"])
'''


@pytest.mark.parametrize(
    ("type", "metrics", "fault"),
    [
        ("guess", ("hits",), None),
        ("guess", ("hits", "kind_hits"), "kind_hits: copy of the input has 1.0000, nearer to right answers"),
        ("guess", ("first_hits",), r"first_hits: \w+ has 0\.\d+, and 0\.\d+ with the rows"),
        ("sort", (), r"best_rank: equal has 0\.\d+, where 0\.[12]\d+ is expected"),
    ],
)
def test_problems_and_metrics_of_plugins_pass_the_same_gate(tmp_path: Path, monkeypatch, type, metrics, fault):
    """They have no second definition: the laws of order, of ties and of ignorance hold for them."""
    file = tmp_path / "guess.py"
    file.write_text(PLUGIN.replace("METRICS", repr(metrics or ("hits",))))
    monkeypatch.setattr("harness.registry.finding._plugins", [file])
    found = faults(type)
    assert any(_matches(fault, each) for each in found) if fault else found == [], found


def test_a_column_without_a_form_is_named(tmp_path: Path, monkeypatch):
    file = tmp_path / "formless.py"
    file.write_text(PLUGIN.replace("METRICS", "('hits',)").replace('forms={"kind": "name"}', "forms={}"))
    monkeypatch.setattr("harness.registry.finding._plugins", [file])
    with pytest.raises(ValueError, match="problem guess states no form of kind"):
        faults("guess")


def _matches(pattern: str, text: str) -> bool:
    return re.search(pattern, text) is not None
