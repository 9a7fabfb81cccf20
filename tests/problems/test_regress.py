"""Regression: numbers on the scale of the task, whatever scale the training has."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.metrics import mean_squared_error
from torch import nn

from harness import registry
from harness.contract.fitted import FittedCase
from harness.contract.trained import TrainedCase
from harness.errors import DataError
from harness.kinds import PairEncoder
from harness.metrics import better, score
from harness.metrics.units import unit_scores
from harness.problems import problem
from harness.problems.base import shown_id
from harness.problems.regress import Regress, RegressPair, RegressTwins, ScoreTarget
from harness.running import fitting, grid
from harness.views.words import Words

ROOT = Path(__file__).resolve().parents[2]
PLUGIN = '''
"""Warmth of words, and likeness of texts."""

import numpy as np

from harness.kinds import Estimator
from harness.registry import register, register_task
from harness.task import Task

WORDS = {"ice": 10.0, "snow": 14.0, "rain": 30.0, "sun": 60.0, "fire": 90.0}


def rows(split):
    random = np.random.default_rng({"train": 0, "dev": 1, "test": 2}[split])
    for number in range({"train": 160}.get(split, 60)):
        yield f"{split}-{number}", *(random.choice(list(WORDS), size=4).tolist() for _ in range(2))


@register_task(
    "warmth", name="Warmth", type="regress", metrics=("pearson", "spearman", "mse"), main_metric="mse",
    sizes={"train": 160}, epochs=3, protocol="-",
)
class Warmth(Task):
    def mini(self, split):
        for id, words, _ in rows(split):
            yield {"id": id, "text": words, "score": sum(map(WORDS.get, words)) / len(words)}


@register_task(
    "likeness", name="Likeness", type="regress_pair", metrics=("pearson", "spearman", "mse"), main_metric="pearson",
    sizes={"train": 160}, epochs=3, protocol="-",
)
class Likeness(Task):
    def mini(self, split):
        for number, (id, first, second) in enumerate(rows(split)):
            second = first[: number % 5] + second[number % 5 :]
            yield {"id": id, "first": first, "second": second, "score": len(set(first) & set(second)) / 2 + 1}


@register("thermometer", name="Thermometer", kind="fit", paper="none", source="test", year=2026)
class Thermometer(Estimator):
    """The mean of the words' warmth, which it knows."""

    task_types = ("regress",)

    def fit(self, train, dev, unlabelled=()):
        self.parameter_count = len(WORDS)

    def predict(self, rows):
        assert all(set(row) == {"id", "text"} for row in rows)
        return [sum(WORDS.get(word, 40.0) for word in row["text"]) / len(row["text"]) + 1 for row in rows]
'''


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("elsewhere") / "warmth.py"
    file.write_text(PLUGIN)
    return file


@pytest.fixture
def listed(plugin: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.registry.finding._plugins", [plugin])


# --- target and heads ---


def fitted(*scores: float) -> ScoreTarget:
    target = ScoreTarget()
    target.fit([{"id": str(i), "score": score} for i, score in enumerate(scores)])
    return target


def test_training_sees_standard_scores_and_predictions_are_on_the_scale_of_the_task():
    """A loss on scores around 1,000 would move weights that are made for numbers around 0."""
    target = fitted(990.0, 1010.0)
    columns = target.encode([{"id": "a", "score": 1020}, {"id": "b", "score": 1000.0}], Words())
    assert target.collate(columns, np.array([1, 0])).tolist() == [0.0, 2.0]
    head = Regress(SimpleNamespace(size=3), target)
    assert head.decode(None, torch.tensor([0.0, 2.0]), None, None) == [1000.0, 1020.0]


def test_the_scale_is_saved_with_the_target():
    saved, other = fitted(990.0, 1010.0), fitted(0, 2)
    other.restore(json.loads(json.dumps(saved.state())))
    assert Regress(SimpleNamespace(size=3), other).decode(None, torch.tensor([1.0]), None, None) == [1010.0]


def test_years_are_told_apart_whatever_the_precision_of_the_weights():
    """Of 16 bits, eight are for the digits: between 1,024 and 2,048 such numbers lie 8 apart."""
    head = Regress(SimpleNamespace(size=3), fitted(1998.2, 2001.7, 2003.1, 1999.9)).to(torch.bfloat16)
    assert head.decode(None, torch.zeros(1, dtype=torch.bfloat16), None, None) == [pytest.approx(2000.725)]


def test_scores_that_are_all_the_same_have_a_scale_too():
    assert fitted(3.0, 3.0).encode([{"id": "a", "score": 3.0}], Words())["score"].tolist() == [0.0]


def test_the_loss_is_the_mean_of_the_rows_squared_errors():
    head, outputs, gold = (
        Regress(SimpleNamespace(size=1), fitted(0, 2)),
        torch.tensor([1.0, 4.0]),
        torch.tensor([0.0, 1.0]),
    )
    assert head.row_losses(None, outputs, gold).tolist() == [1.0, 9.0]
    assert head.loss(None, outputs, gold).item() == 5.0


def test_high_scores_are_low_in_flipped_rows_and_stay_within_their_bounds():
    flipped = problem("regress").flipped([{"id": str(score), "score": score} for score in (1.0, 2.0, 5.0)])
    assert [(row["id"], row["score"]) for row in flipped] == [("1.0", 5.0), ("2.0", 4.0), ("5.0", 1.0)]


def test_what_the_number_is_made_from_is_dropped_in_training():
    head = RegressPair(SimpleNamespace(size=2, scores=False), fitted(0.0, 2.0))
    head.dropout = 1.0

    def encoder(first, second):
        return torch.ones(1, 2)

    encoder.scores = False
    assert head(encoder, {"first": None, "second": None}).tolist() == head.output.bias.tolist()


@pytest.mark.parametrize("scores", [True, False])
def test_a_pair_architectures_vector_or_similarity_is_scaled_by_one_layer(scores):
    """A similarity between 0 and 1 would never reach a score of 5."""

    class Pair(PairEncoder):
        size = 2

        def forward(self, first, second):
            return first[:, 0] if scores else torch.stack([first[:, 0], second[:, 0]], 1)

    encoder = Pair()
    encoder.scores = scores
    head = RegressPair(encoder, fitted(0.0, 2.0))
    nn.init.constant_(head.output.weight, 3.0)
    nn.init.constant_(head.output.bias, 1.0)
    inputs = {"first": torch.tensor([[0.5], [1.0]]), "second": torch.tensor([[1.0], [2.0]])}
    assert head(encoder, inputs).tolist() == ([2.5, 4.0] if scores else [5.5, 10.0])


def test_each_output_has_the_head_that_reads_it():
    assert problem("regress").heads.keys() == {"states", "vector", "joined states"}
    assert problem("regress_pair").heads["states"] is RegressTwins


@pytest.mark.parametrize("score", [None, "4", math.nan, math.inf, True])
def test_a_score_that_is_no_number_names_its_row(score):
    with pytest.raises(DataError, match=r"row dev-7: score .*; a finite number is wanted"):
        fitted(0.0, 1.0).encode([{"id": "dev-7", "score": score}], Words())


def test_the_floors_are_the_mean_of_train_and_a_draw_from_it():
    train = [{"id": str(i), "text": "a", "score": float(i)} for i in range(5)]
    floors = problem("regress").floors(train, train[:3])
    assert floors["mean"] == [2.0, 2.0, 2.0]
    assert len(floors["random"]) == 3 and set(floors["random"]) <= {0.0, 1.0, 2.0, 3.0, 4.0}


def test_the_score_is_hidden_from_whoever_is_asked_for_it():
    row = {"id": "1", "first": "a", "second": "b", "score": 4.5, "genre": "news"}
    assert problem("regress_pair").input_row(row) == {"id": shown_id("1"), "first": "a", "second": "b"}


# --- metrics ---


def rows_of(scores: list[float]) -> list[dict]:
    return [{"id": str(i), "score": value} for i, value in enumerate(scores)]


def test_the_metrics_are_those_of_other_libraries():
    random = np.random.default_rng(7)
    gold = random.integers(0, 6, 50).astype(float)
    predicted = (gold + random.normal(0, 2, 50)).round(1)
    found = score(["pearson", "spearman", "mse"], predicted.tolist(), rows_of(gold.tolist()))
    frame = pd.DataFrame({"gold": gold, "predicted": predicted})
    assert found == pytest.approx(
        {
            "pearson": frame.corr("pearson").iloc[0, 1],
            "spearman": frame.rank().corr("pearson").iloc[0, 1],
            "mse": mean_squared_error(gold, predicted),
        }
    )


def test_predictions_that_are_all_the_same_correlate_with_nothing():
    """The first floor of every task predicts the mean: its correlation is no number, and a record
    can hold numbers alone."""
    found = score(["pearson"], [2.0, 2.0], rows_of([1.0, 3.0]))
    assert found == {"pearson": 0.0, "spearman": 0.0, "mse": 1.0}


@pytest.mark.parametrize(
    ("predictions", "gold", "message"),
    [([1.0, 2.0], [3.0, 3.0], "every actual score is 3.0"), ([1.0, math.nan], [1.0, 2.0], "not a finite number")],
)
def test_what_has_no_correlation_is_refused(predictions, gold, message):
    with pytest.raises(ValueError, match=message):
        score(["mse"], predictions, rows_of(gold))


def test_the_squared_error_has_units_and_a_correlation_none():
    """Intervals and paired tests are over sums of units, and a correlation is no such ratio."""
    assert unit_scores("mse", [1.0, 5.0], rows_of([2.0, 2.0])).numerators == [1.0, 9.0]
    assert unit_scores("pearson", [1.0, 5.0], rows_of([2.0, 3.0])) is None
    assert better("mse", 0.1, 0.2) and better("pearson", 0.2, 0.1)


# --- a task of one's own ---


@pytest.mark.parametrize(
    ("architecture", "task", "learning"),
    [
        ("bilstm", "warmth", True),
        ("dan", "warmth", False),
        ("bert", "warmth", False),
        ("dan", "likeness", False),
        ("decomposable", "likeness", True),
        ("ma_lstm", "likeness", False),
        ("bert", "likeness", False),
    ],
)
def test_architectures_keep_to_the_contract_on_numbers(listed, architecture, task, learning):
    entry = registry.entry("architectures", architecture)
    settings = grid.hyperparameters(entry) | entry.tiny
    task = registry.entry("tasks", task)
    assert fitting.reason_to_skip(entry, task, settings) is None
    for _, body in TrainedCase(entry, task, settings).checks(learning):
        body()


def test_a_fitted_system_keeps_to_the_contract_on_numbers(listed):
    case = FittedCase(registry.entry("architectures", "thermometer"), registry.entry("tasks", "warmth"), {})
    for _, body in case.checks(learning=True):
        body()


@pytest.mark.slow
def test_a_task_of_numbers_from_a_plugin_goes_through_run_rescore_and_leaderboard(plugin):
    def archbench(*arguments: str) -> str:
        command = [sys.executable, "-m", "harness.cli", *arguments]
        environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"}
        environment["HOME"] = str(plugin.parent)
        done = subprocess.run(command, cwd=plugin.parent, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    given = "--plugin", str(plugin)
    archbench("run", "-a", "thermometer,dan", "-t", "warmth,likeness", "--mlflow", "none", *given)
    folder = plugin.parent / "results" / "records"
    records = {file.parts[-3:-1]: json.loads(file.read_text()) for file in folder.glob("*/*/*.json")}
    statuses = {cell: record["status"] for cell, record in records.items()}
    assert statuses == {
        ("warmth", "thermometer"): "ok",
        ("warmth", "dan"): "ok",
        ("likeness", "thermometer"): "skipped",
        ("likeness", "dan"): "ok",
    }
    assert records["warmth", "thermometer"]["scores"]["test"] == pytest.approx(
        {"pearson": 1.0, "spearman": 1.0, "mse": 1.0}
    )
    assert "0 records changed" in archbench("rescore", *given)
    archbench("leaderboard")
    page = " ".join(re.sub("<[^>]+>", " ", (folder.parent / "leaderboard" / "task-warmth.html").read_text()).split())
    assert all(
        label in page for label in ("mean squared error ↓ 95 % interval rank", "Pearson&#39;s r", "Spearman&#39;s ρ")
    )
    row = r"1\.000 \(1\) 1\.000 to 1\.000 – .* 1\.000 \(1\) 1\.000 \(1\)"
    assert re.search(row, page), "error with interval, then correlations"
