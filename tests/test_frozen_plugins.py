"""Plugins of third parties, written at commit 24b54e6, run as they stand."""

from __future__ import annotations

import ast
import importlib
import json
import math
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import datasets
import pytest

from harness import contract, registry
from harness.records import Record
from harness.registry import declarations, lookup
from harness.running import grid
from harness.running.worker import run_cell
from harness.task import DataError
from tests.support.planned_cells import tiny_sizes

FOLDER = Path(__file__).with_name("frozen")
NAMES = json.loads((FOLDER / "names.json").read_text(encoding="utf-8"))

TASK_FILES = ("moods", "same_place", "lookup", "names", "moves", "tones", "owners")
"""In the order in which `check` takes the tasks: an architecture must learn the first one that it
fits."""

CELLS = {
    "frozen_drift": ("moods", "same_place", "lookup", "names", "owners", "owners_or_nobody", "moves", "tones"),
    "frozen_drift_focus": ("moods",),
    "frozen_weighted": ("moods", "lookup"),
    "frozen_prototypes": ("moods", "moves"),
    "frozen_focus": ("same_place",),
    "frozen_filters": ("moods",),
    "frozen_filters_static": ("lookup",),
    "frozen_filters_both": ("moods",),
    "frozen_hashed": ("same_place",),
    "frozen_tree": ("moods",),
    "frozen_stems": ("same_place", "lookup"),
    "frozen_stems_cosine": ("lookup",),
    "frozen_window": ("names",),
    "frozen_window_crf": ("names",),
    "frozen_window_free": ("names",),
    "frozen_finder": ("owners", "owners_or_nobody"),
    "frozen_recall": ("moves",),
    "frozen_recall_vector": ("moves",),
    "frozen_strides": ("tones",),
    "frozen_strides_beam": ("tones",),
    "frozen_writer": ("owners",),
    "frozen_writer_beam": ("owners",),
    "frozen_pieces": ("moods", "same_place", "lookup", "names", "owners_or_nobody"),
    "frozen_keywords": ("moods", "same_place"),
    "frozen_overlap": ("lookup",),
    "frozen_jolts": ("same_place",),
    "frozen_jolts_tree": ("moods",),
}
"""Every frozen architecture, and the tasks that it runs on here."""

RECIPES = {
    "frozen_drift_focus": "moods",
    "frozen_weighted": "moods",
    "frozen_prototypes": "moods",
    "frozen_focus": "moods",
    "frozen_filters": "moods",
    "frozen_window": "names",
    "frozen_finder": "owners",
    "frozen_jolts": "moods",
}
"""Architectures whose recipes have all optimisers and learning rate schedules between them."""

CHECKED = [id for id in CELLS if not id.endswith(("_static", "_both", "_free", "_beam", "_jolts_tree"))]
"""Those that are a class of their own."""


@pytest.fixture(scope="module", autouse=True)
def plugins() -> Iterator[None]:
    """The frozen files as ``--plugin`` gives them; no other test file sees them afterwards."""
    modules = set(sys.modules)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("harness.registry.finding._plugins", [])
        files = [FOLDER / f"task_{name}.py" for name in TASK_FILES]
        for file in [*files, *sorted(set(FOLDER.glob("*.py")) - set(files))]:
            registry.add_plugin(file)
        yield
    for key in [key for key in declarations._registered if key[1].startswith("frozen_")]:
        del declarations._registered[key]
    for name in set(sys.modules) - modules:
        if name.startswith("archbench_plugin_"):
            del sys.modules[name]


def frozen(sort: registry.Sort) -> dict[str, registry.Entry]:
    """The frozen entries of a sort."""
    return {id: entry for id, entry in registry.entries(sort).items() if entry.file.parent == FOLDER}


def planned(architecture: str, task: str, protocol: str = "smoke", max_epochs: int | None = None, **sizes: Any):
    """The cell of an architecture on a task, with its tiny sizes where ``sizes`` has no other."""
    entry = registry.entry("architectures", architecture)
    overrides = tiny_sizes(architecture, **sizes)
    grid_of = {"tier": "mini", "protocol": protocol, "seeds": [0], "overrides": overrides, "max_epochs": max_epochs}
    [cell] = grid.plan([entry], [registry.entry("tasks", f"frozen_{task}")], **grid_of)
    return cell


def class_of(architecture: str) -> type:
    """The class of a frozen architecture."""
    return registry.load(registry.entry("architectures", architecture))


@pytest.fixture
def run(make_settings) -> Callable[..., Record]:
    """Runs a planned cell in this process."""
    return lambda *args, **more: run_cell(planned(*args, **more).cell, make_settings())


# --- names ---


@pytest.mark.parametrize("module", NAMES)
def test_a_name_that_others_import_is_still_there(module):
    found = importlib.import_module(module)
    assert [name for name in NAMES[module] if not hasattr(found, name)] == []


def test_frozen_files_import_from_the_harness_what_is_promised_alone():
    """Otherwise a plugin that fails might be at fault itself."""
    for file in sorted(FOLDER.glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in ("harness", "tasks"):
                names = {"registry"} if node.module == "harness" else set(NAMES[node.module])
                assert {alias.name for alias in node.names} <= names, file.name


# --- listing ---


@pytest.mark.parametrize("sort", ["architectures", "tasks"])
def test_frozen_files_are_listed_as_they_are_registered(sort):
    entries = frozen(sort)
    assert not set(registry.unlisted(sort)) & set(FOLDER.glob("*.py"))
    for id, entry in entries.items():
        registry.load(entry)
        assert dict(entry.options) == registry.registered(sort, id), id


def test_every_frozen_plugin_runs_here():
    """A file that nothing runs guards nothing."""
    architectures, tasks = frozen("architectures"), frozen("tasks")
    assert set(CELLS) == set(architectures)
    assert {f"frozen_{task}" for chosen in CELLS.values() for task in chosen} == set(tasks)
    assert {entry.type for entry in tasks.values()} == set(registry.TASK_TYPES) - {
        "audio",
        "language_model",
        "multilabel",
        "regress",
        "regress_pair",
        "text",
        "translate",
    }
    assert {entry.kind for entry in architectures.values()} == set(registry.KINDS) - {"floor", "lm"}
    assert {entry.file for entry in (*architectures.values(), *tasks.values())} == set(FOLDER.glob("*.py"))


# --- cells ---


@pytest.mark.parametrize(("architecture", "task"), [(id, task) for id, tasks in CELLS.items() for task in tasks])
def test_a_cell_of_frozen_plugins_ends_well(run, architecture, task):
    assert planned(architecture, task).reason is None
    record = run(architecture, task)
    assert record.status == "ok", record.error
    entry = registry.entry("tasks", f"frozen_{task}")
    version = registry.entry("architectures", architecture).version
    assert (record.architecture_version, record.task_version) == (version, entry.version)
    assert record.counts == entry.sizes and not record.partial
    for split in ("dev", "test"):
        scores = record.scores[split]
        assert set(scores) >= set(entry.metrics) and all(map(math.isfinite, scores.values()))


@pytest.mark.parametrize(("architecture", "task"), RECIPES.items())
def test_a_recipe_of_that_time_trains(run, architecture, task):
    record = run(architecture, task, protocol="paper", max_epochs=1)
    assert record.status == "ok", record.error
    lr = registry.entry("architectures", architecture).recipe.lr
    assert list(map(float, record.training["learning_rates"])) == [lr]


@pytest.mark.parametrize(
    ("architecture", "task", "reason"),
    [
        ("frozen_hashed", "moves", "a story is told by their order"),
        ("frozen_stems_cosine", "same_place", "gives a similarity per pair of texts: runs on rank"),
        ("frozen_prototypes", "same_place", "gives scores of the classes of one text: runs on answer, classify"),
        ("frozen_jolts_tree", "same_place", "wraps frozen_tree"),
        ("frozen_overlap", "moods", "runs on rank"),
        ("frozen_weighted", "tones", "runs on answer, classify, match, "),
    ],
)
def test_a_cell_that_does_not_fit_says_why(architecture, task, reason):
    assert reason in planned(architecture, task).reason


# --- hooks ---


@pytest.mark.parametrize(
    ("architecture", "task", "hook"),
    [
        ("frozen_prototypes", "moods", "objective"),
        ("frozen_focus", "moods", "auxiliary_loss"),
        ("frozen_stems_cosine", "lookup", "rank_loss"),
        ("frozen_stems", "lookup", "rank_loss"),
        ("frozen_drift_focus", "moods", "pooled"),
        ("frozen_drift_focus", "same_place", "pooled"),
        ("frozen_pieces", "moods", "pooled"),
        ("frozen_tree", "moods", "nodes"),
        ("frozen_jolts", "moods", "loss"),
    ],
)
def test_what_a_hook_returns_is_what_trains(run, monkeypatch, architecture, task, hook):
    """A harness that asks for a hook no more would train something else, and say nothing."""
    cls = class_of(architecture)
    original = getattr(cls, hook)
    monkeypatch.setattr(cls, hook, lambda *args: math.nan * original(*args))
    record = run(architecture, task)
    assert record.status == "diverged", record.error


@pytest.mark.parametrize(
    ("architecture", "task", "attribute", "other"),
    [
        ("frozen_drift", "moods", "pooling", "max"),
        ("frozen_focus", "moods", "vectors", "multichannel"),
        ("frozen_focus", "moods", "head_bias", True),
        ("frozen_filters", "moods", "head_max_norm", 0.01),
        ("frozen_window_crf", "names", "scheme", ""),
        ("frozen_stems_cosine", "lookup", "whole_groups", False),
    ],
)
def test_what_a_class_declares_decides(run, monkeypatch, architecture, task, attribute, other):
    before = run(architecture, task)
    monkeypatch.setattr(class_of(architecture), attribute, other)
    after = run(architecture, task)
    assert (before.status, after.status) == ("ok", "ok")
    numbers = [
        (record.training["curve"][0]["dev_loss"], record.parameters, record.scores) for record in (before, after)
    ]
    assert numbers[0] != numbers[1]


def test_hyperparameters_reach_the_view(run, monkeypatch):
    cls, widths = class_of("frozen_weighted"), set()
    forward = cls.forward
    monkeypatch.setattr(cls, "forward", lambda self, words: widths.add(words.ids.shape[1]) or forward(self, words))
    assert run("frozen_weighted", "moods", longest=3).status == "ok"
    assert widths == {3}


def test_a_ranking_loss_sees_whole_questions(run, monkeypatch):
    cls, sizes = class_of("frozen_stems_cosine"), set()
    loss = cls.rank_loss

    def spy(self, scores, labels, groups):
        sizes.update(groups.unique(return_counts=True)[1].tolist())
        return loss(self, scores, labels, groups)

    monkeypatch.setattr(cls, "rank_loss", spy)
    assert run("frozen_stems_cosine", "lookup").status == "ok"
    assert sizes == {4}


def test_a_beam_is_as_wide_as_it_says(run, monkeypatch):
    cls, rows = class_of("frozen_writer"), []
    step = cls.step
    monkeypatch.setattr(
        cls, "step", lambda self, symbols, state: rows.append(len(symbols)) or step(self, symbols, state)
    )
    most = []
    for id in ("frozen_writer", "frozen_writer_beam"):
        rows.clear()
        assert run(id, "owners").status == "ok"
        most.append(max(rows))
    assert most[1] == 2 * most[0]


def test_a_regime_prepares_the_model_with_the_counts_of_its_words(run, monkeypatch):
    cls, given = class_of("frozen_jolts"), []
    prepare = cls.prepare

    def spy(self, model, counts):
        given.append(counts.tolist())
        prepare(self, model, counts)

    monkeypatch.setattr(cls, "prepare", spy)
    assert run("frozen_jolts", "moods").status == "ok"
    [counts] = given
    assert counts[:2] == [0, 0] and counts[2:] == sorted(counts[2:], reverse=True) and counts[2] == 86


def test_an_estimator_is_given_what_it_declares(run, monkeypatch):
    """Test texts without their answers where it is transductive, and none where it is not."""
    told = {}
    for id, task in (("frozen_overlap", "lookup"), ("frozen_keywords", "moods")):
        cls = class_of(id)

        def spy(self, train, dev, unlabelled=(), id=id, fit=cls.fit):
            told[id] = len(unlabelled), {name for row in unlabelled for name in row}
            fit(self, train, dev, unlabelled)

        monkeypatch.setattr(cls, "fit", spy)
        record = run(id, task)
        assert record.status == "ok" and record.parameters["total"] > 10
    assert told == {"frozen_overlap": (60, {"id", "first", "second", "group"}), "frozen_keywords": (0, set())}
    assert run("frozen_overlap", "lookup").flops_per_example == 100.0


# --- tiers ---


def moods():
    """The task that has all three tiers."""
    entry = registry.entry("tasks", "frozen_moods")
    return registry.load(entry)(entry)


def test_a_frozen_task_reads_its_local_files(tmp_path):
    (tmp_path / "moods").mkdir()
    (tmp_path / "moods" / "dev.tsv").write_text("positive\ta warm film\nnegative\ta dull one\n", encoding="utf-8")
    assert moods().load("dev", "local", tmp_path)["label"] == ["positive", "negative"]
    (tmp_path / "moods" / "test.tsv").write_text("positive\ta warm film\ngood\ta fine one\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"test\.tsv, line 2"):
        moods().load("test", "local", tmp_path)
    with pytest.raises(DataError, match="--data-dir"):
        moods().load("test", "local")


def test_a_frozen_task_reads_its_pinned_copy_on_the_hub(monkeypatch):
    asked = []

    def load_dataset(*args, **options):
        asked.append((args, options))
        return datasets.Dataset.from_list([{"sentence": "a warm film", "mood": "positive"}])

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    assert moods().load("test", "hub").to_list() == [
        {"id": "test-0", "text": ["a", "warm", "film"], "label": "positive"}
    ]
    assert asked == [(("nobody/moods", "short"), {"split": "test", "revision": "0123456789abcdef"})]


# --- contract ---


@pytest.mark.parametrize("id", CHECKED)
def test_check_passes_a_frozen_architecture(monkeypatch, id):
    """All checks, learning among them, on the frozen tasks alone: whole mini corpora would take
    minutes."""
    entries, tasks = registry.entries, frozen("tasks")
    for module in (registry, lookup):
        monkeypatch.setattr(module, "entries", lambda sort: tasks if sort == "tasks" else entries(sort))
    results = contract.check(registry.entry("architectures", id))
    assert [f"{result.name}: {result.message}" for result in results if not result.passed] == []
    asked = {result.name.partition(": ")[0] for result in results[1:]}
    assert asked and asked <= set(tasks)
