"""A task type with a metric of its own, its task and a system for it in one plugin file outside the
repository: through check, run, rescore and leaderboard."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness import registry
from harness.contract import cases
from harness.contract.base import run

ROOT = Path(__file__).resolve().parents[1]
PLUGIN = '''
"""Counting: the number of times that a word occurs in a text."""

import numpy as np
import torch
import torch.nn.functional as F

from harness.kinds import Estimator
from harness.problems.base import Head, Problem, Target, shown_id
from harness.registry import register, register_metric, register_problem, register_task
from harness.task import Task


class CountTarget(Target):
    """The number (B,)."""

    def encode(self, rows, view):
        return {"count": np.array([row["count"] for row in rows], dtype=np.int64)}

    def collate(self, columns, rows):
        return torch.from_numpy(columns["count"][rows])


class CountHead(Head):
    """One of the numbers 0 to 4, from the sum of the states."""

    def __init__(self, encoder, target):
        super().__init__()
        self.target, self.output = target, torch.nn.Linear(encoder.size, 5)

    def forward(self, encoder, inputs):
        text = inputs["text"]
        return self.output((encoder(text.vectors, text.mask) * text.mask[..., None]).sum(1))

    def loss(self, encoder, outputs, target):
        return F.cross_entropy(outputs, target)

    def decode(self, encoder, outputs, batch, split):
        return [str(number) for number in outputs.argmax(1).tolist()]


@register_metric("miscount", name="miscount", better="lower", unit="words", digits=2, per_row=True)
def miscount(prediction, row):
    """Words too many or too few."""
    return abs(int(prediction) - row["count"])


@register_problem(
    "count", name="Counting", columns=("text", "count"), inputs=("text",), texts=("text",),
    metrics=("miscount", "accuracy"), survey="counting",
)
class CountProblem(Problem):
    """How often the word "red" is in a text."""

    heads = {"states": CountHead}

    def target(self, gives):
        return CountTarget()

    def floors(self, train, rows):
        return {"zero": ["0"] * len(rows)}

    def shortened(self, row):
        short = super().shortened(row)
        return short | {"count": int(short["text"] == "red"), "label": str(int(short["text"] == "red"))}


@register_task(
    "reds", name="Reds", type="count", metrics=("miscount", "accuracy"), main_metric="miscount",
    sizes={"train": 120}, epochs=2, protocol="-",
)
class Reds(Task):
    def mini(self, split):
        random = np.random.default_rng({"train": 0, "dev": 1, "test": 2}[split])
        for number in range({"train": 120}.get(split, 40)):
            words = random.choice(["red", "green", "blue", "sky"], size=6)
            count = min(int((words == "red").sum()), 4)
            yield {"id": f"{split}-{number}", "text": " ".join(words), "count": count, "label": str(count)}


@register("counter", name="Counter", kind="fit", paper="none", source="test", year=2026)
class Counter(Estimator):
    """Counts, one too many in the last text of all."""

    task_types = ("count",)

    def fit(self, train, dev, unlabelled=()):
        self.parameter_count = 0

    def predict(self, rows):
        assert all(set(row) == {"id", "text"} for row in rows)
        return [str(min(row["text"].split().count("red"), 4) + (row["id"] == shown_id("test-39"))) for row in rows]
'''


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("elsewhere")
    (folder / "counting.py").write_text(PLUGIN)
    return folder


def archbench(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command, in a folder outside the repository."""
    command = [sys.executable, "-m", "harness.cli", *arguments]
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(folder), "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


@pytest.mark.slow
def test_a_task_type_is_one_file(folder: Path):
    """Adding a type touched thirteen modules once; the fourteenth was forgotten and leaked
    answers."""
    plugin = "--plugin", str(folder / "counting.py")
    checked = archbench(folder, "check", "counter", *plugin)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    small = "-o", "bilstm.hidden=8"
    ran = archbench(folder, "run", "-a", "counter,bilstm,dan", "-t", "reds", *small, "--mlflow", "none", *plugin)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    records = {
        file.parent.name: json.loads(file.read_text())
        for file in (folder / "results" / "records" / "reds").glob("*/*.json")
    }
    assert {name: record["status"] for name, record in records.items()} == {
        "counter": "ok",
        "bilstm": "ok",
        "dan": "skipped",
    }
    assert "runs on" in records["dan"]["error"]["message"] and "count" in records["dan"]["error"]["message"]
    assert records["counter"]["scores"]["test"] == {"miscount": 1 / 40, "accuracy": 39 / 40}
    assert records["bilstm"]["training"]["objective"] == "Supervised"
    outcomes = list((folder / "results" / "records" / "reds").glob("counter/*.outcomes.json.gz"))
    assert outcomes, "units for intervals and paired tests"
    outcomes[0].unlink()
    again = archbench(folder, "rescore", *plugin)
    assert again.returncode == 0 and "0 records changed" in again.stdout, again.stdout + again.stderr
    assert outcomes[0].exists()
    pages = archbench(folder, "leaderboard", *plugin)
    assert pages.returncode == 0, pages.stderr
    page = (folder / "results" / "leaderboard" / "task-reds.html").read_text()
    text = " ".join(re.sub("<[^>]+>", " ", page).split())
    assert "miscount ↓ 95 % interval rank" in text and " accuracy " in text
    assert re.search(r"Counter 0\.03 \(1\) 0\.00 to 0\.\d\d – \S+ .*? fit – 97\.5 \(1\)", text), (
        "the lowest comes first, and protocol smoke has no rank"
    )


def test_a_trained_system_is_checked_on_a_new_type_too(folder: Path, without_plugins: None):
    """The contract asks the problem for floors, short rows and unknown words."""
    own = folder / "own.py"
    own.write_text(
        PLUGIN
        + '''

from harness.kinds import SequenceEncoder


@register("passing", name="Passing", kind="seq", paper="none", source="test", year=2026)
class Passing(SequenceEncoder):
    """A layer on each vector."""

    def __init__(self, width: int, hidden: int = 16):
        super().__init__()
        self.size, self.layer = hidden, torch.nn.Linear(width, hidden)

    def forward(self, vectors, mask):
        return torch.relu(self.layer(vectors))
'''
    )
    registry.add_plugin(own)
    found = cases(registry.entry("architectures", "passing"))
    of_reds = next(case for case in found if case.task.entry.id == "reds")
    results = [run(name, body) for name, body in of_reds.checks(learning=False)]
    assert results and [result for result in results if not result.passed] == []
