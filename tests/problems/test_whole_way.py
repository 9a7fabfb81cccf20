"""Results of each problem go all the way: site, exports, LaTeX, library, MLflow, rescoring, kept
models and answers. A problem that lacks something fails here by name, not at a user's.

One of the problems is a plugin's, with answers of a shape that nothing else knows.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from mlflow.tracking import MlflowClient

import archbench
import leaderboard
from harness import registry
from harness.metrics import score
from harness.metrics.units import has_units
from harness.problems import problem
from harness.problems.answers import answers_of
from harness.records import Cell, Record, Store
from harness.running import fitting, grid
from harness.saved_models.model import load
from harness.saved_models.prediction import WRITERS, answered
from harness.saved_models.reading import Asked
from harness.scoring import error_analysis
from harness.scoring.rescore import rescore
from harness.task import fingerprint
from harness.tracking.mlflow_runs import Tracker
from tests.saved_models.cells import kept_cell

PLUGIN = Path(__file__).parents[1] / "support" / "plugin_types.py"
SHIPPED = [*registry.entries("problems")]
TYPES = [*SHIPPED, "routes"]
MAKERS = (
    "naive_bayes,bilstm,bilstm_crf,decomposable,span_search,memn2n,bilstm_ctc,attn_seq2seq,ngram_lm,unigram,hubert"
    ",walker"
)
"""Of each type, the first that fits is trained."""


class Made(NamedTuple):
    """The results of all types in one folder: of each a task, the key of a kept model, and its
    floor."""

    folder: Path
    tasks: dict[str, str]
    kept: dict[str, str]
    floors: dict[str, str]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    found = Made(tmp_path_factory.mktemp("whole") / "results", {}, {}, {})
    registry.add_plugin(PLUGIN)
    try:
        for type in TYPES:
            entry = next(each for each in registry.entries("tasks").values() if each.type == type)
            found.tasks[type] = entry.id
            found.kept[type] = kept_cell(_first(MAKERS.split(","), entry), entry.id, found.folder).key
            floors = [each.id for each in registry.entries("architectures").values() if each.kind == "floor"]
            found.floors[type] = _first(floors, entry)
            _results_of(entry, found.floors[type], Store(found.folder))
        yield found
    finally:
        registry.remove_plugin(PLUGIN)


def _first(ids: list[str], task: registry.TaskEntry) -> str:
    entries = (registry.entry("architectures", id) for id in ids)
    return next(each.id for each in entries if fitting.reason_to_skip(each, task, grid.hyperparameters(each)) is None)


def _results_of(task: registry.TaskEntry, floor: str, store: Store) -> None:
    """Two results of two seeds, one that knows all and one half, and a floor, as a full run writes
    them."""
    asked, adapter = problem(task.type), registry.load(task)(task)
    train, dev, test = (adapter.load(split, "mini").to_list() for split in ("train", "dev", "test"))
    right, nothing = list(map(asked.right, test)), asked.floor(train, asked.input_rows(test))
    half = len(test) // 2
    tokens = next((each.tokens for each in store.all() if each.task == task.id and each.tokens), None)
    for architecture, predictions in {"dan": right, "cnn": right[:half] + nothing[half:], floor: nothing}.items():
        for seed in range(1 if architecture == floor else 2):
            cell = Cell(architecture, 1, task.id, task.version, "mini", "equal", {}, seed)
            scores = score(task.metrics, predictions, test)
            made = Record.skeleton(cell, "ok", command="archbench run").model_copy(
                update={
                    "scores": {"dev": scores, "test": scores},
                    "main_metric": task.main_metric,
                    "counts": {"train": len(train), "dev": len(dev), "test": len(test)},
                    "data": {"train": fingerprint(train), "dev": fingerprint(dev), "test": fingerprint(test)},
                    "sees": [],
                    "tokens": tokens,
                }
            )
            ids = [row["id"] for row in test]
            made.predictions = store.save_predictions(cell, ids, predictions)
            outcomes = error_analysis.outcomes(asked, task.main_metric, predictions, test, None)
            if outcomes is not None:
                store.save_outcomes(cell, made.predictions, ids, outcomes)
            store.write(made)


@pytest.fixture(scope="module")
def site(made: Made) -> tuple[Path, str]:
    """The pages, and what building them said of faults."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        # With a folder of data the test rows of plugins are read, too.
        leaderboard.main(["--results", str(made.folder), "--data-dir", str(made.folder)])
    return made.folder / "leaderboard", said.getvalue()


@pytest.mark.parametrize("type", TYPES)
def test_its_part_stands_on_every_page(made: Made, site: tuple[Path, str], type: str):
    """A page without one task is one that its readers miss."""
    folder, said = site
    task = made.tasks[type]
    assert [line for line in said.splitlines() if task in line] == []
    assert f'href="task-{task}.html"' in (folder / "index.html").read_text()
    page = (folder / f"task-{task}.html").read_text()
    assert "Deep Averaging Network" in page and made.floors[type] in page
    assert task in (folder / "architecture-dan.html").read_text()


def test_every_page_is_built(site: tuple[Path, str]):
    assert [line for line in site[1].splitlines() if ".html" in line or "left out" in line] == []


@pytest.mark.parametrize("type", TYPES)
def test_its_answers_can_be_looked_at(made: Made, site: tuple[Path, str], type: str):
    """A shipped problem words its answers and the right ones, unless none are right."""
    task, folder = made.tasks[type], site[0]
    (file,) = folder.glob(f"compare-{task}-mini-equal-full*.js")
    data = json.loads(file.read_text().partition("=")[2].strip().removesuffix(";"))
    if "units" not in data:  # a metric without units, such as correlation, has nothing to show of each
        assert not has_units(registry.entry("tasks", task).main_metric)
        return
    assert data["answered"] == [type != "routes"] * len(data["answered"])
    texts, right = ({*data[name][0]} - {None} for name in ("answers", "gold"))
    assert len(texts) > 1 or type == "routes"
    assert bool(right) == (type not in ("routes", "text", "language_model", "audio"))


@pytest.mark.parametrize("type", TYPES)
def test_it_is_exported(made: Made, site: tuple[Path, str], type: str):
    """For programs, and for papers."""
    folder, task = site[0], made.tasks[type]
    rows = [row for row in json.loads((folder / "leaderboard.json").read_text())["results"] if row["task"] == task]
    assert {"dan", "cnn", made.floors[type]} <= {row["architecture"] for row in rows}
    lines = list(csv.DictReader((folder / "tables.csv").read_text().splitlines()))
    assert {"dan", "cnn", made.floors[type]} <= {line["architecture"] for line in lines if line["task"] == task}
    assert "Deep Averaging Network" in (folder / "latex" / f"task-{task}.tex").read_text()


@pytest.mark.parametrize("type", TYPES)
def test_the_library_reads_and_compares_it(made: Made, type: str):
    table = archbench.results(made.folder)
    scores = table[(table.task == made.tasks[type]) & table.main & (table.split == "test")]
    assert {"dan", "cnn", made.floors[type]} <= set(scores.architecture)
    if has_units(registry.entry("tasks", made.tasks[type]).main_metric):
        found = archbench.compare("dan", "cnn", made.tasks[type], made.folder)
        assert (found.difference > 0) != found.lower_is_better


@pytest.mark.parametrize("to", WRITERS)
@pytest.mark.parametrize("type", TYPES)
def test_a_kept_model_answers_in_each_format(made: Made, type: str, to: str):
    """`archbench predict`: each text has one line, and columns that all lines share."""
    task = registry.entry("tasks", made.tasks[type])
    rows = registry.load(task)(task).load("test", "mini").to_list()[:3]
    model = load(made.folder / "models" / made.kept[type])
    asked = [Asked(line, None, problem(type).input_row(row), "") for line, row in enumerate(rows, 1)]
    out = io.StringIO()
    write = WRITERS[to](out, answers_of(model.problem.entry))
    for each in answered(model, asked):
        write(each)
    lines = out.getvalue().splitlines()
    if to == "jsonl":
        assert [{"line", "prediction"} <= json.loads(line).keys() for line in lines] == [True] * 3
    else:
        assert len(lines) == 4
    if to == "csv":
        table = list(csv.DictReader(lines))
        assert all(None not in row and None not in row.values() for row in table)
        probabilities = [name for name in table[0] if name.startswith("probabilities: ")]
        assert all(row[name] for row in table for name in probabilities), "of every class, in every line"


@pytest.mark.filterwarnings("ignore")  # MLflow warns of its own code where it first saves a model
def test_mlflow_mirrors_all(made: Made, tmp_path: Path):
    store = Store(made.folder)
    tracker = Tracker(f"sqlite:///{tmp_path}/mlflow.db", made.folder)
    added, _, _ = tracker.sync(store)
    assert (added, tracker.refused) == (len(list(store.all())), 0)
    names = {each.name for each in MlflowClient(tracker.uri).search_experiments()}
    assert {*made.tasks.values()} <= names


def test_rescoring_changes_nothing(made: Made, recwarn: pytest.WarningsRecorder):
    """The same predictions have the same scores; a record that cannot be scored is a warning."""
    assert rescore(Store(made.folder), None) == []
    assert [str(each.message) for each in recwarn if "rescored" in str(each.message)] == []
