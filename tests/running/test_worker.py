"""One cell from start to record: the record says what happened, and says it again when the cell is
run again."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness import registry
from harness.metrics import score
from harness.problems import problem
from harness.problems.base import shown_id
from harness.records import Cell, Record, Store, code_digest
from harness.running import checkpoints, refit, worker
from harness.running.assembly import Assembly
from harness.running.worker import run_cell
from harness.running.worker_settings import Settings
from harness.saved_models import storage
from harness.saved_models.model import load
from harness.training import fit_module
from harness.training.fit_module import FitModule
from harness.views.tree import parse, without_labels
from tests.support.planned_cells import planned_cell
from tests.support.sessions import session

FIELDS = {
    "archbench",
    "registered",
    "code",
    "schema",
    "key",
    "status",
    "architecture",
    "architecture_version",
    "task",
    "task_version",
    "tier",
    "protocol",
    "seed",
    "hyperparameters",
    "devices",
    "precision",
    "scores",
    "main_metric",
    "counts",
    "partial",
    "speed",
    "memory",
    "parameters",
    "flops_per_example",
    "seconds",
    "environment",
    "data",
    "commit",
    "dirty",
    "command",
    "started",
    "error",
    "predictions",
    "training",
    "view",
    "vectors",
    "budget",
    "protocol_version",
    "sees",
    "overlap",
    "official_test_examples",
    "spent",
    "flops_batches",
}

PLUGIN = """
import errno
import json
import re
import torch
from harness.errors import MissingWeights
from harness.kinds import Estimator, TextEncoder
from harness.registry import register


@register("trouble", name="Trouble", kind="text", paper="none", source="test", year=2026)
class Trouble(TextEncoder):
    def __init__(self, width: int, how: str = "none"):
        super().__init__()
        self.how, self.size = how, 4
        self.layer = torch.nn.Linear(width, 4)

    def forward(self, words):
        if self.how == "raises":
            raise KeyError("a model that raises")
        if self.how == "memory":
            torch.empty(2**50)
        if self.how == "python memory":
            raise MemoryError
        if self.how == "disk":
            raise OSError(errno.ENOSPC, "No space left on device")
        if self.how == "weights":
            raise MissingWeights("no weights here")
        if self.how == "tells":
            self.tell_choice("words", words.lengths.double())
        states = self.layer(words.vectors.mean(1))
        return states * float("nan") if self.how == "nan" and self.training else states


class Watching(Estimator):
    task_types = ("classify", "match", "multilabel", "rank", "tag", "extract", "answer", "transcribe", "translate")

    @classmethod
    def unfit(cls, task, hyperparameters):
        return None

    def __init__(self, seed: int = 0, notes: str = "", type: str = "classify"):
        super().__init__(seed)
        self.notes, self.type = notes, type

    def note(self, call, rows):
        with open(self.notes, "a") as file:
            file.write(json.dumps([call, [[row["id"], sorted(row), row.get("tree", "")] for row in rows]]) + "\\n")

    def fit(self, train, dev, unlabelled=()):
        self.parameter_count = 3
        for call, rows in (("train", train), ("dev", dev), ("unlabelled", unlabelled)):
            self.note(call, rows)

    def predict(self, rows):
        self.note("predict", rows)
        if self.type == "tag":
            return [["O"] * len(row["text"]) for row in rows]
        return [{"rank": 0.5, "multilabel": {"yes": 1.0}}.get(self.type, "yes")] * len(rows)


@register("watching", name="Watching", kind="fit", paper="none", source="test", year=2026)
class Inductive(Watching):
    pass


@register("watching_all", name="Watching all", kind="fit", paper="none", source="test", year=2026)
class Transductive(Watching):
    transductive = True
"""


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "trouble.py"
    file.write_text(PLUGIN)
    monkeypatch.setattr("harness.registry.finding._plugins", [file])
    return file


SMALL = "bilstm.hidden=8"


@pytest.fixture(scope="module")
def shared(tmp_path_factory) -> Settings:
    results = tmp_path_factory.mktemp("results")
    known = dict(
        data_dir=None,
        plugins=(),
        threads=1,
        timeout=None,
        memory_limit_mib=None,
        command="archbench run",
        work=results / "work",
    )
    return Settings(results=results, **known)


@pytest.fixture(scope="module")
def tried(shared) -> tuple[Cell, Record, list[float]]:
    """A cell under protocol ``equal`` with three learning rates, and the rates of its fits in their
    order."""
    cell = planned_cell(
        "bilstm",
        "sst2",
        SMALL,
        "bilstm.training.learning_rates=[1e-7, 0.02, 1e-6]",
        protocol="equal",
        max_train=None,
        max_epochs=2,
    )
    rates: list[float] = []
    original = Assembly.training_of

    def spy(self: Assembly, model: Any, lr: float) -> Any:
        rates.append(lr)
        return original(self, model, lr)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Assembly, "training_of", spy)
        return cell, run_cell(cell, shared), rates


def rescored(record: Record, settings: Settings) -> dict[str, float]:
    """Test scores computed from the saved predictions alone."""
    saved = Store(settings.results).load_predictions(record)
    ids, predictions = saved if isinstance(saved, tuple) else (saved["ids"], saved["predictions"])
    entry = registry.entry("tasks", record.task)
    rows = {row["id"]: row for row in registry.load(entry)(entry).load("test", "mini")}
    return score(entry.metrics, list(predictions), [rows[id] for id in ids])


# --- a cell that ends well ---


def test_a_record_has_exactly_the_fields_that_other_programs_read(tried, shared):
    cell, record, _ = tried
    path = Store(shared.results).write(record)
    written = json.loads(path.read_text())
    assert set(written) == FIELDS
    assert (record.status, record.error, record.key, record.cell) == ("ok", None, cell.key, cell)


def test_a_record_is_filled_with_what_was_measured(tried):
    cell, record, _ = tried
    task = registry.entry("tasks", "sst2")
    rows = {split: registry.load(task)(task).load(split, "mini") for split in ("train", "dev", "test")}
    assert record.counts == {split: len(found) for split, found in rows.items()}
    assert set(record.data) == set(rows) and all(len(digest) == 64 for digest in record.data.values())
    assert set(record.scores) == {"dev", "test"} and all(
        set(found) == set(task.metrics) for found in record.scores.values()
    )
    assert record.main_metric == "accuracy"
    assert set(record.speed) >= {
        "train_examples_per_second",
        "train_tokens_per_second",
        "inference_examples_per_second",
        "latency_ms_p50",
    }
    assert record.speed["train_tokens_per_second"] > record.speed["train_examples_per_second"] > 0
    assert record.speed["train_spread"] >= 0 and record.speed["beside"] >= 0
    assert 0 < record.speed["latency_ms_p50"] <= record.speed["latency_ms_p95"]
    assert record.spent["tokens"] > record.spent["examples"] > 2 * len(rows["train"])  # with the pilots
    assert record.spent["steps"] > 2 * len(rows["train"]) // 64
    assert record.spent["flops"] == pytest.approx(3 * record.spent["examples"] * record.flops_per_example)
    assert 0 < record.parameters["embedding"] < record.parameters["total"]
    assert record.flops_per_example > 1000 and record.memory["peak_rss_mib"] > 50
    parts = [record.seconds[name] for name in ("train", "dev", "other")]
    assert all(part > 0 for part in parts) and sum(parts) == pytest.approx(record.seconds["total"], rel=1e-3)
    assert 0 < record.seconds["train_processor"] < record.seconds["total_processor"]
    assert (
        record.started
        and record.commit
        and record.environment["versions"]["torch"]
        and record.command == "archbench run"
    )
    assert record.hyperparameters == cell.hyperparameters and record.hyperparameters["hidden"] == 8


def test_the_dev_scores_are_those_of_the_kept_epoch(tried):
    _, record, _ = tried
    curve = record.training["curve"]
    assert [row["epoch"] for row in curve] == [1, 2] and record.training["epochs"] == 2
    best = curve[record.training["best_epoch"] - 1]
    assert record.scores["dev"] == {name: best[name] for name in record.scores["dev"]}
    assert best["accuracy"] == max(row["accuracy"] for row in curve)


def test_every_rate_is_tried_and_the_best_pilot_trains_the_cell(tried):
    """The order in which rates are listed decides nothing; each fit after the pilots is a fresh
    model."""
    _, record, rates = tried
    assert rates == [1e-7, 0.02, 1e-6, 0.02]
    scores = record.training["learning_rates"]
    assert {float(rate) for rate in scores} == set(rates) and all(0 <= found <= 1 for found in scores.values())
    assert scores["0.02"] == max(scores.values())


def test_what_is_chosen_for_test_is_recorded(plugin, make_settings):
    """The share of a text that was read is half of the result of a system that stops early. Dev,
    which is asked many times, has no part in it."""
    settings = make_settings(plugins=(plugin,))
    record = run_cell(planned_cell("trouble", "sst2", "trouble.how=tells"), settings)
    test = registry.load(registry.entry("tasks", "sst2"))(registry.entry("tasks", "sst2")).load("test", "mini")
    assert record.choices == {"words": pytest.approx(sum(map(len, test["text"])) / len(test))}
    assert run_cell(planned_cell("trouble", "sst2"), settings).choices is None


def test_passes_of_the_users_own_are_no_more_than_that(make_settings):
    """The protocol's smallest number of steps would else make hundreds of them on few examples."""
    asked = "dan.training.min_steps=200", "dan.training.epochs=4"
    training = run_cell(planned_cell("dan", "sst2", *asked, max_epochs=2), make_settings()).training
    assert training["epochs"] == 2 and "passes_per_epoch" not in training
    training = run_cell(planned_cell("dan", "sst2", *asked), make_settings()).training
    assert training["passes_per_epoch"] > 1


def test_saved_predictions_give_the_recorded_scores(tried, shared):
    """Otherwise a corrected metric could not be applied without training again."""
    _, record, _ = tried
    assert rescored(record, shared) == pytest.approx(record.scores["test"])
    file = shared.results / record.predictions["path"]
    assert hashlib.sha256(file.read_bytes()).hexdigest() == record.predictions["sha256"]
    outcomes = Store(shared.results).load_outcomes(record)
    assert outcomes.score == pytest.approx(record.scores["test"][record.main_metric])
    assert "unknown words" in outcomes.slices


def test_a_finished_cell_leaves_no_checkpoint(tried, shared):
    cell, _, _ = tried
    assert not list((shared.work / "checkpoints").glob(f"{cell.key}*"))


@pytest.mark.parametrize(
    ("architecture", "task", "overrides"),
    [
        ("bilstm", "sst2", [SMALL]),
        ("dan", "snli", ["dan.hidden=8"]),
        ("avg_vectors", "wikiqa", []),
        ("window_mlp", "conll2003_ner", ["window_mlp.hidden=8"]),
        ("bilstm", "squad2", [SMALL]),
        ("bilstm", "fsdd", [SMALL]),
        ("bilstm", "fsdd_class", [SMALL]),
        ("hmm", "conll2003_pos", []),
    ],
)
def test_the_same_cell_twice_gives_the_same_scores_and_predictions(
    make_settings, tmp_path, architecture, task, overrides
):
    """In every task type: a second machine confirms a row to the last digit, and predictions
    re-score to it."""
    cell = planned_cell(architecture, task, *overrides, max_train=40)
    twice = []
    for name in ("first", "second"):
        settings = dataclasses.replace(make_settings(), results=tmp_path / name, work=tmp_path / name / "work")
        record = run_cell(cell, settings)
        assert record.status == "ok", record.error
        assert Store(settings.results).write(record).is_file()
        twice.append((record.scores, record.predictions["sha256"], record.data, record.parameters))
        assert rescored(record, settings) == pytest.approx(record.scores["test"])
    assert twice[0] == twice[1]
    assert record.partial is True and record.counts["train"] <= 40


def test_another_seed_is_another_model(make_settings):
    cell = planned_cell("bilstm", "sst2", SMALL, max_train=60)
    losses = {
        run_cell(dataclasses.replace(cell, seed=seed), make_settings()).training["curve"][0]["dev_loss"]
        for seed in (0, 1)
    }
    assert len(losses) == 2


def test_what_an_objective_adds_is_in_the_operations_of_a_training(make_settings):
    """On the page about pre-training the generator of ELECTRA would cost nothing. RoBERTa has
    none, and as wide a body."""

    def operations(id: str) -> float:
        sizes = [f"{id}.{name}={value}" for name, value in {"layers": 1, "hidden": 32, "heads": 2}.items()]
        record = run_cell(planned_cell(id, "text_mix", *sizes, max_train=40), make_settings())
        assert record.training["flops"] == pytest.approx(record.spent["flops"]), "one rate, no pilot"
        return record.spent["flops"] / record.spent["examples"]

    assert operations("electra") > 1.5 * operations("roberta")


def test_a_training_set_of_the_official_size_is_not_partial(make_settings, monkeypatch):
    entry = registry.entry("tasks", "sst2")
    cell = planned_cell("avg_vectors", "sst2", max_train=None)
    full = len(registry.load(entry)(entry).load("train", "mini"))
    assert run_cell(cell, make_settings()).partial is True, "mini is smaller than SST"
    whole = dataclasses.replace(entry, sizes={"train": full})
    original = registry.entry
    monkeypatch.setattr(registry, "entry", lambda sort, id: whole if id == "sst2" else original(sort, id))
    assert run_cell(cell, make_settings()).partial is False
    assert (
        run_cell(planned_cell("avg_vectors", "sst2", max_train=None, max_epochs=1), make_settings()).partial is True
    ), "its passes are capped"


def test_word_vectors_from_a_file_decide_the_width(make_settings, tmp_path):
    file = tmp_path / "vectors.txt"
    file.write_text("".join(f"{word} {i} 1 0 0 0.5\n" for i, word in enumerate(("film", "the", "good", "bad"))))
    cell = planned_cell("bilstm", "sst2", SMALL, vectors=file)
    record = run_cell(cell, make_settings(vectors=file))
    assert record.status == "ok"
    assert record.parameters["embedding"] % 5 == 0
    assert record.hyperparameters["vectors"]["dims"] == 5


@pytest.mark.parametrize(("factor", "tuned"), [(1.0, True), (0.0, False)])
def test_vectors_that_a_group_freezes_are_not_said_to_be_tuned(make_settings, factor, tuned):
    """Readers of the record would take vectors that stayed random for trained ones."""
    cell = planned_cell("avg_vectors", "sst2", f'avg_vectors.training.groups=[["table.*",{factor}]]')
    assembly = Assembly(cell, make_settings())
    assembly.training_of(assembly.model(0), 0.1)
    assert assembly.vectors == {"name": "none", "dims": assembly.dims, "tuned": tuned}


def test_the_settings_of_the_view_can_be_overridden_and_stand_in_the_record(make_settings):
    """Kim's words seen once are other words than the usual ones."""
    usual, all_words = (
        run_cell(planned_cell("avg_vectors", "sst2", *overrides), make_settings())
        for overrides in ((), ("avg_vectors.view.min_count=1", "avg_vectors.view.max_length=5"))
    )
    assert usual.view == {"view": "Words", "lower": True, "min_count": 2, "max_length": 400, "digits": False}
    assert all_words.view == usual.view | {"min_count": 1, "max_length": 5}
    assert all_words.parameters["embedding"] > usual.parameters["embedding"]
    assert "view" not in usual.hyperparameters
    assert all_words.hyperparameters["view"] == {"min_count": 1, "max_length": 5}


def test_a_regime_passes_the_settings_on_to_the_view_of_what_it_wraps(make_settings):
    cell = planned_cell("adversarial", "sst2", "adversarial.wraps=avg_vectors", "adversarial.view.lower=False")
    record = run_cell(cell, make_settings())
    assert (record.status, record.view["lower"]) == ("ok", False), record.error


def test_a_system_that_reads_rows_has_no_view(make_settings):
    assert run_cell(planned_cell("naive_bayes", "sst2"), make_settings()).view is None


# --- what a system may see ---


HIDING = {id for id, entry in registry.entries("problems").items() if {*entry.columns} - {*entry.inputs}}
"""Types that hide an answer: a language model's answers are the texts that it reads."""
TYPES = {registry.entry("tasks", id).type: id for id in sorted(registry.entries("tasks"), reverse=True)}
TYPES = {type: id for type, id in TYPES.items() if type in HIDING}
"""A task of each of them."""


@pytest.mark.parametrize("architecture", ["watching", "watching_all"])
@pytest.mark.parametrize("task", sorted({*TYPES.values(), "sst2", "babi"}))
def test_no_estimator_is_handed_an_answer_of_test(make_settings, plugin, tmp_path, monkeypatch, architecture, task):
    """A system that was given the answers would lead the table."""
    monkeypatch.chdir(tmp_path)
    notes = Path("notes.jsonl")
    entry = registry.entry("tasks", task)
    options = f"{architecture}.notes={notes}", f"{architecture}.type={entry.type}"
    record = run_cell(planned_cell(architecture, task, *options), make_settings(plugins=(plugin,)))
    assert (record.status, record.parameters["total"]) == ("ok", 3), record.error
    test = {shown_id(id) for id in registry.load(entry)(entry).load("test", "mini")["id"]}
    calls = [json.loads(line) for line in notes.read_text().splitlines()]
    asked = [(call, columns, tree) for call, rows in calls for id, columns, tree in rows if id in test]
    assert {call for call, *_ in asked} == {"predict"} | ({"unlabelled"} if architecture == "watching_all" else set())
    inputs = registry.entry("problems", entry.type).inputs
    assert all(set(columns) <= {"id", *inputs} for _, columns, _ in asked)
    assert not any(re.search(r"\(\d", tree) for *_, tree in asked), "labels of nodes are answers too"
    assert len(next(rows for call, rows in calls if call == "train")) <= 100
    predicted = [i for i, (call, rows) in enumerate(calls) if call == "predict" and {id for id, *_ in rows} == test]
    assert len(predicted) == 1, "test is scored once"


@pytest.mark.parametrize("task", sorted(registry.entries("tasks")))
def test_what_a_system_may_see_of_a_row_is_the_id_and_the_problems_inputs(task):
    """The columns of every task, not of those that somebody thought of."""
    entry = registry.entry("tasks", task)
    rows = registry.load(entry)(entry).load("test", "mini").to_list()[:50]
    asked, inputs = problem(entry.type), registry.entry("problems", entry.type).inputs
    for row, visible in zip(rows, asked.input_rows(rows), strict=True):
        assert set(visible) == {"id", *(set(inputs) & set(row))}
        assert not set(visible) & {"label", "tags", "answers", "answer", "transcript", "skill", "speaker"}
        assert not re.search(r"\(\d", visible.get("tree", ""))
        assert row["id"] not in (visible["id"], visible.get("audio", {}).get("path")), "a file name tells the answer"


def test_a_tree_keeps_its_structure_when_its_labels_are_taken():
    assert without_labels("(3 (2 a) (4 (2 fine) (2 film)))") == "( ( a) ( ( fine) ( film)))"
    whole, bare = parse("(3 (2 a) (4 (2 fine) (2 film)))"), parse("( ( a) ( ( fine) ( film)))")
    assert bare._replace(label=whole.label) == whole
    assert set(bare.label) == {-1}


@pytest.mark.parametrize("split", ["dev", "test"])
def test_no_label_of_a_node_reaches_a_model_that_answers(make_settings, split):
    """A tree model that summed up the labels of its nodes would need no training."""
    assembly = Assembly(planned_cell("tree_lstm", "sst2", "tree_lstm.hidden=4"), make_settings())
    encoded = assembly.corpus.dev if split == "dev" else assembly.corpus.test()
    assert (encoded.collate(np.arange(8)).inputs["text"].labels == -1).all()
    assert (assembly.corpus.train.collate(np.arange(8)).inputs["text"].labels >= 0).any()
    assert (assembly.corpus.unlabelled.collate(np.arange(8)).inputs["text"].labels == -1).all()
    assert assembly.corpus.unlabelled.collate(np.arange(8)).target is None


def test_test_is_loaded_after_training_alone(make_settings, monkeypatch):
    order: list[str] = []
    task = registry.load(registry.entry("tasks", "sst2"))
    load, fit = task.load, worker.fit
    monkeypatch.setattr(task, "load", lambda self, split, *rest: order.append(split) or load(self, split, *rest))
    monkeypatch.setattr(worker, "fit", lambda *a, **k: [fit(*a, **k), order.append("fitted")][0])
    assert run_cell(planned_cell("avg_vectors", "sst2"), make_settings()).status == "ok"
    assert order == ["train", "dev", "fitted", "test"]


# --- cells that end otherwise ---


@pytest.mark.parametrize(
    ("how", "status", "type", "message"),
    [
        ("nan", "diverged", "Diverged", "training loss is nan after epoch 1"),
        ("raises", "failed", "KeyError", "a model that raises"),
        ("python memory", "oom", "MemoryError", ""),
        ("memory", "oom", "RuntimeError", "allocate memory"),
        ("disk", "interrupted", "OSError", "No space left on device"),
        ("weights", "skipped", "MissingWeights", "no weights here"),
    ],
)
def test_a_cell_that_does_not_end_well_says_how(make_settings, plugin, capfd, how, status, type, message):
    settings = make_settings(plugins=(plugin,))
    cell = planned_cell("trouble", "sst2", f"trouble.how={how!r}")
    record = run_cell(cell, settings)
    assert (record.status, record.error["type"], record.scores, record.predictions) == (status, type, {}, None)
    assert message in record.error["message"]
    assert settings.results / record.error["log"] == settings.log(cell)
    assert record.main_metric == "accuracy" and record.seconds["total"] > 0
    Store(settings.results).write(record)
    if status == "failed":
        assert "Traceback" in capfd.readouterr().err, "the log is where a user looks"


def test_data_that_is_missing_is_a_failed_cell_that_names_the_file(make_settings, tmp_path):
    cell = dataclasses.replace(planned_cell("avg_vectors", "sst2"), tier="local")
    record = run_cell(cell, make_settings(data_dir=tmp_path))
    assert (record.status, record.error["type"]) == ("failed", "MissingFile")
    assert "$ARCHBENCH_DATA/sst" in record.error["message"]


def test_a_failed_cell_that_is_repaired_does_not_go_on_from_its_old_weights(make_settings, plugin, monkeypatch):
    """Whoever corrects a model and retries wants the corrected model trained, not the end of the
    wrong one's training."""
    settings = make_settings(plugins=(plugin,))
    cell = planned_cell("trouble", "sst2")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worker, "predict", lambda *_: 1 / 0)
        assert run_cell(cell, settings).status == "failed"
    fitted: list[int] = []
    original = FitModule.on_train_epoch_start
    monkeypatch.setattr(
        FitModule, "on_train_epoch_start", lambda self: fitted.append(self.current_epoch) or original(self)
    )
    assert run_cell(cell, settings).status == "ok"
    assert fitted == [0]


def test_a_cell_cut_in_the_middle_ends_like_one_that_was_not(make_settings, tmp_path, monkeypatch):
    """A pre-empted machine costs the epoch it was in, and changes no score."""
    cell = planned_cell("bilstm", "sst2", SMALL, "bilstm.training.epochs=3", "bilstm.training.patience=3")
    whole = run_cell(cell, make_settings())
    settings = dataclasses.replace(make_settings(), results=tmp_path / "cut", work=tmp_path / "cut" / "work")
    original = FitModule.on_train_epoch_start

    def cut(self: Any) -> None:
        if self.current_epoch == 0:  # as if it had taken so long
            self.seconds["train"] += 2000
            self.seconds["train_processor"] += 1000
        if self.current_epoch == 2:
            raise KeyboardInterrupt
        original(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FitModule, "on_train_epoch_start", cut)
        with pytest.raises((KeyboardInterrupt, SystemExit)):
            run_cell(cell, settings)
    resumed = run_cell(cell, settings)
    took = resumed.seconds
    assert took["total"] == pytest.approx(took["train"] + took["dev"] + took["other"]) and took["train"] > 2000
    assert took["total_processor"] >= took["train_processor"] > 1000
    assert 0 < took["other"] < 1000, "what both processes trained counts once"
    losses = [[row["train_loss"] for row in record.training["curve"]] for record in (whole, resumed)]
    assert losses[0] == losses[1] and len(losses[0]) == 3
    assert (resumed.scores, resumed.predictions["sha256"]) == (whole.scores, whole.predictions["sha256"])


def test_a_dev_loss_that_is_not_finite_is_no_number_of_the_record(make_settings, monkeypatch):
    """One dev word with the probability 0, and the store refused the record of a whole training."""
    real = fit_module.predict_with_loss
    monkeypatch.setattr(fit_module, "predict_with_loss", lambda *given: (real(*given)[0], math.inf))
    settings = make_settings()
    record = run_cell(planned_cell("dan", "sst2"), settings)
    assert record.status == "ok" and [row["dev_loss"] for row in record.training["curve"]] == [None]
    Store(settings.results).write(record)


# --- code and data of a checkpoint ---


def cut_after(epoch: int, cell: Cell, settings: Settings) -> None:
    """Run a cell that ends in the middle, after so many epochs."""
    original = FitModule.on_train_epoch_start

    def cut(self: Any) -> None:
        if self.current_epoch == epoch:
            raise KeyboardInterrupt
        original(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FitModule, "on_train_epoch_start", cut)
        with pytest.raises((KeyboardInterrupt, SystemExit)):
            run_cell(cell, settings)


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The epochs that are trained from now on."""
    epochs: list[int] = []
    original = FitModule.on_train_epoch_start
    monkeypatch.setattr(
        FitModule, "on_train_epoch_start", lambda self: epochs.append(self.current_epoch) or original(self)
    )
    return epochs


def folders(settings: Settings) -> list[str]:
    return [folder.name for folder in (settings.work / "checkpoints").glob("*")]


def test_a_cut_cell_whose_plugin_was_mended_is_trained_anew(make_settings, plugin, begun):
    """Otherwise the record shows weights that the bug trained."""
    settings, cell = make_settings(plugins=(plugin,)), planned_cell("trouble", "sst2", "trouble.training.epochs=2")
    cut_after(1, cell, settings)
    [wrong] = folders(settings)
    plugin.write_text(PLUGIN.replace("words.vectors.mean(1)", "words.vectors.sum(1)"))
    del begun[:]
    cut_after(1, cell, settings)
    assert begun == [0], "not epoch 1, which a resumed fit begins with"
    [mended] = folders(settings)
    assert mended != wrong, "the checkpoint of the other code is gone"
    plugin.write_text(PLUGIN.replace("words.vectors.mean(1)", "words.vectors.sum(1)") + "# all of them\n")
    del begun[:]
    record = run_cell(cell, settings)
    assert (record.status, begun, folders(settings)) == ("ok", [1], []), "a comment changes nothing"


@pytest.mark.parametrize("what", ["harness", "version", "train", "dev"])
def test_a_cut_cell_of_another_harness_or_of_other_data_is_trained_anew(
    make_settings, monkeypatch, begun, what, capsys
):
    """The record would state the new data's fingerprint over epochs on the old."""
    settings, cell = make_settings(), planned_cell("avg_vectors", "sst2", "avg_vectors.training.epochs=2")
    cut_after(1, cell, settings)
    del begun[:]
    if what == "harness":
        monkeypatch.setattr(code_digest, "HARNESS", 0)
    elif what == "version":
        monkeypatch.setattr(checkpoints, "own_version", lambda: "0.0.1")
    else:
        task = registry.load(registry.entry("tasks", "sst2"))
        load = task.load
        swap = {"positive": "negative", "negative": "positive"}

        def swapped(self: Any, split: str, *rest: Any) -> Any:
            rows = load(self, split, *rest)
            return rows.map(lambda row: {"label": swap[row["label"]]}) if split == what else rows

        monkeypatch.setattr(task, "load", swapped)
    assert run_cell(cell, settings).status == "ok"
    assert begun == [0, 1] and "other code or data: training begins anew" in capsys.readouterr().out


COUNTS = """
from harness.kinds import Estimator
from harness.registry import register


@register("counts", name="Counts", kind="fit", paper="none", source="test", year=2026)
class Counts(Estimator):
    def fit(self, train, dev, unlabelled=()):
        self.counts = {word.lower(): float(len(word)) for row in train for word in row["text"]}

    def predict(self, rows):
        return ["positive"] * len(rows)

    def word_vectors(self):
        return {word: [count, 1.0] for word, count in self.counts.items()}
"""


@pytest.fixture
def begun_child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Settings, Cell, Cell]:
    """The file of a parent's code, and a parent that is kept and its child, cut after an epoch."""
    file = tmp_path / "counts.py"
    file.write_text(COUNTS)
    monkeypatch.setattr("harness.registry.finding._plugins", [])
    two = ["avg_vectors.training.epochs=2"]
    planned = session(tmp_path / "results", "avg_vectors", "vectors=counts", plugins=[file], overrides=two)
    parent, child = sorted(planned.pending.run, key=lambda cell: bool(cell.parents))
    assert run_cell(parent, planned.settings).status == "ok"
    cut_after(1, child, planned.settings)
    return file, planned.settings, parent, child


def test_a_cut_child_whose_parent_learnt_something_else_is_trained_anew(begun_child, begun, capsys):
    """The parent has the same key: the record would name it over epochs that began with the old
    one's vectors. It keeps no arrays, so its file of weights is the same too."""
    _, settings, parent, child = begun_child
    place = storage.place(settings.results, parent.key)
    model = load(place)
    model.estimator.counts = {word: -count for word, count in model.estimator.counts.items()}
    model.write(place)
    del begun[:]
    assert run_cell(child, settings).status == "ok"
    assert begun == [0, 1] and "one of another parent" in capsys.readouterr().out


def test_a_cut_child_whose_parents_code_was_mended_is_trained_anew(begun_child, begun):
    """What the parent keeps may be the same, and not what it gives."""
    file, settings, _, child = begun_child
    file.write_text(COUNTS.replace("[count, 1.0]", "[count, 2.0]"))
    del begun[:]
    with pytest.warns(match="the code of counts has changed since"):
        assert run_cell(child, settings).status == "ok"
    assert begun == [0, 1]


def test_a_cut_child_of_a_parent_that_learnt_the_same_again_goes_on(begun_child, begun):
    """The time of a training is kept with the parent, and changes nothing."""
    _, settings, parent, child = begun_child
    assert run_cell(parent, settings).status == "ok"
    del begun[:]
    assert run_cell(child, settings).status == "ok"
    assert begun == [1]


def test_a_cell_that_is_cut_in_its_second_training_goes_on_there(make_settings, begun, capsys, monkeypatch):
    """It was told that its training begins anew, and lost what the second had reached, which takes
    as long as the cell."""
    settings = make_settings(refit=True)
    cell = planned_cell("avg_vectors", "sst2", "avg_vectors.training.epochs=2", max_train=60)
    first, trained = [0, 1], refit.trained

    def cut(*given: Any) -> Any:
        cut_at = FitModule.on_train_epoch_start

        def stop(self: Any) -> None:
            if self.current_epoch == 1:
                raise KeyboardInterrupt
            cut_at(self)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(FitModule, "on_train_epoch_start", stop)
            return trained(*given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(refit, "trained", cut)
        with pytest.raises((KeyboardInterrupt, SystemExit)):
            run_cell(cell, settings)
    assert begun == [*first, 0]
    capsys.readouterr()
    assert run_cell(cell, settings).status == "ok"
    assert begun == [*first, 0, 1] and "anew" not in capsys.readouterr().out
    assert folders(settings) == []


@pytest.mark.parametrize("content", [b"", b"no checkpoint"])
def test_a_damaged_checkpoint_is_no_failed_cell(make_settings, begun, capsys, content):
    settings, cell = make_settings(), planned_cell("avg_vectors", "sst2", "avg_vectors.training.epochs=2")
    cut_after(1, cell, settings)
    [last] = settings.work.rglob("last.ckpt")
    last.write_bytes(content)
    del begun[:]
    assert run_cell(cell, settings).status == "ok"
    assert begun == [0, 1] and "last.ckpt is damaged: training begins anew" in capsys.readouterr().out


def test_a_record_says_which_code_made_it(make_settings, plugin):
    """Also one of a cell that failed: mended, it would say so still."""
    cell = planned_cell("trouble", "sst2", "trouble.how=raises")
    record = run_cell(cell, make_settings(plugins=(plugin,)))
    entries = registry.entry("architectures", "trouble"), registry.entry("tasks", "sst2")
    assert record.status == "failed"
    assert record.code == code_digest.code_of(*entries) and set(record.code["packages"]) == {"archbench"}
