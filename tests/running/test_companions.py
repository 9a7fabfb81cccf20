"""Cells that are trained on several tasks, from the plan to the record."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from harness import registry
from harness.data.loaded_rows import training_rows
from harness.errors import DataError, RegistryError
from harness.records import Cell, Record, Store
from harness.records.code_digest import code_of_cell
from harness.running import grid
from harness.running.changed_data import DataFolder
from harness.running.request import Request
from harness.running.session import Session
from harness.running.worker import run_cell
from harness.running.worker_settings import Settings
from harness.saved_models import storage
from harness.saved_models.model import load
from harness.task import fingerprint
from tests.support import beside
from tests.support.planned_cells import planned_cell

PLUGIN = """
import json
from harness.registry import register_task
from harness.task import Task

class Hues(Task):
    def local(self, folder, split):
        with (folder / self.entry.id / f"{split}.json").open() as file:
            return json.load(file)

@register_task("hues", name="Hues", type="classify", metrics=("accuracy",), main_metric="accuracy",
               sizes={}, epochs=1, protocol="made for a test")
class Hues1(Hues):
    pass

@register_task("tints", name="Tints", type="classify", metrics=("accuracy",), main_metric="accuracy",
               sizes={}, epochs=1, protocol="made for a test")
class Tints(Hues):
    pass
"""


@pytest.fixture(autouse=True)
def plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.registry.finding._plugins", [Path(beside.__file__)])


@pytest.fixture(scope="module")
def settings(tmp_path_factory) -> Settings:
    results = tmp_path_factory.mktemp("results")
    return Settings(results, None, (), 1, None, None, results / "work", command="archbench run", keep=True)


@pytest.fixture(scope="module")
def ran(settings) -> tuple[Cell, Record]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("harness.registry.finding._plugins", [Path(beside.__file__)])
        cell = planned_cell("beside", "sst2", max_train=60, max_epochs=2, protocol="paper")
        return cell, run_cell(cell, settings)


# --- the plan ---


def test_a_task_is_none_of_its_own_companions():
    assert planned_cell("beside", "sst2").companions == ["sst5", "imdb"]
    assert planned_cell("beside", "ag_news").companions == ["sst2", "sst5", "imdb"]
    assert planned_cell("beside", "sst2", "beside.companions=['ag_news']").companions == ["ag_news"]
    assert planned_cell("beside", "sst2", "beside.companions=[]").companions == []
    assert planned_cell("bilstm", "sst2").companions == []


def test_the_companions_are_part_of_a_cells_identity():
    keys = {planned_cell("beside", "sst2", *more).key for more in ([], ["beside.companions=['ag_news']"])}
    assert len(keys) == 2


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        ("['fsdd']", "is trained on fsdd beside sst2: .*fsdd is of type transcribe"),
        ("['squad1']", "is trained on squad1 beside sst2: .*squad1 is of type extract"),
    ],
)
def test_tasks_that_cannot_be_read_alike_are_no_companions(names, reason):
    [planned] = grid.plan(
        [registry.entry("architectures", "beside")],
        [registry.entry("tasks", "sst2")],
        tier="mini",
        protocol="smoke",
        seeds=[0],
        overrides=[f"beside.companions={names}"],
    )
    assert re.search(reason, planned.reason), planned.reason


def test_a_name_that_no_task_has_is_refused_with_the_one_that_is_meant():
    with pytest.raises(RegistryError, match="no task is called 'sst3'; did you mean sst"):
        planned_cell("beside", "sst2", "beside.companions=['sst3']")


def written(folder: Path, task: str, **splits: list[str]) -> None:
    (folder / task).mkdir(parents=True)
    for split in ("train", "dev", "test"):
        texts = splits.get(split, [f"{task} {split} {n}" for n in range(4)])
        rows = [{"id": f"{n}", "text": text, "label": "ab"[n % 2]} for n, text in enumerate(texts)]
        (folder / task / f"{split}.json").write_text(json.dumps(rows))


@pytest.fixture
def planned(tmp_path: Path):
    """A plan of a cell on `hues` beside `tints`, from a data folder."""
    file = tmp_path / "tasks_of_hues.py"
    file.write_text(PLUGIN)
    written(tmp_path / "data", "hues")

    def plan(**more) -> Session:
        request = Request(
            tmp_path / "results",
            architectures="beside",
            tasks="hues",
            tier="local",
            data_dir=tmp_path / "data",
            protocol="paper",
            plugins=[beside.__file__, file],
            overrides=["beside.companions=['tints']"],
            mlflow="none",
            **more,
        )
        return Session(request, told.append)

    told: list[str] = []
    plan.told, plan.data = told, tmp_path / "data"
    return plan


def test_missing_files_of_a_companion_are_told_before_the_run(planned):
    """It would else end after the first task was read, as the failure of a model."""
    session = planned()
    assert session.pending.run == []
    [(_, reason, _)] = session.pending.skip
    file = planned.data / "tints" / "train.json"
    assert f"is trained on tints beside hues, and --data-dir {planned.data} lacks its files" in reason
    assert str(file) in reason and "-o beside.companions=" in reason
    assert any(reason in note for note in planned.told)
    assert planned(dry_run=True).pending.run == []


def test_a_cell_that_another_run_could_run_is_not_written_over_as_skipped(planned):
    """The files came after this run was planned; its score would be lost, without a copy."""
    session = planned()
    [item] = session.pending.skip
    session.store.write(Record.skeleton(item.cell, "ok", command="another run"))
    session.run()
    assert session.store.find(item.cell).status == "ok"


def test_a_damaged_companion_is_told_before_the_run(planned):
    written(planned.data, "tints")
    (planned.data / "tints" / "train.json").write_text("[{}]")
    with pytest.raises(DataError, match="tints: .*train"):
        planned()


def test_a_cell_runs_on_local_files_and_again_when_a_companions_change(planned, tmp_path):
    written(planned.data, "tints", train=["free a", "free b", "hues test 1", "Hues DEV 0"])
    session = planned()
    [cell] = session.pending.run
    record = run_cell(cell, session.settings)
    assert record.status == "ok", record.error
    [found] = record.companions
    assert (found["rows"], found["left_out"]) == (2, 2)
    Store(tmp_path / "results").write(record)
    assert planned().pending.run == []
    data = DataFolder(planned.data, tmp_path / "cache.json")
    assert data.differing(record) == []
    (planned.data / "tints" / "train.json").write_text(
        (planned.data / "tints" / "train.json").read_text().replace("free a", "free c")
    )
    assert DataFolder(planned.data, tmp_path / "cache.json").differing(record) == ["tints"]
    assert planned().pending.run == [cell]


# --- the record ---


def test_a_record_names_the_companions_their_rows_and_what_each_got(ran, settings):
    _, record = ran
    assert record.status == "ok", record.error
    sst5, imdb = record.companions
    assert (sst5["task"], imdb["task"]) == ("sst5", "imdb")
    assert sst5 | {"version": 0, "train": "", "tokens": 0} == {
        "task": "sst5",
        "version": 0,
        "train": "",
        "rows": 60,
        "left_out": 0,
        "examples": 120,
        "tokens": 0,
        "steps": 2 * 4,
    }
    entry = registry.entry("tasks", "imdb")
    assert imdb["version"] == entry.version
    rows = training_rows(registry.load(entry)(entry), "mini", None, 60)
    assert imdb["train"] == fingerprint(rows.to_list())
    assert record.spent["steps"] == 3 * 8 and record.spent["examples"] == 360
    words = record.spent["tokens"] - sst5["tokens"] - imdb["tokens"]
    assert imdb["tokens"] > 3 * words > 0
    worth = record.spent["tokens"] / words
    assert record.training["flops"] == pytest.approx(3 * 120 * worth * record.flops_per_example)
    assert record.spent["flops"] == pytest.approx(record.training["flops"])
    assert {"train_sst5", "train_imdb"} <= set(record.training["curve"][0])
    assert record.training["objective"] == "MultiTask(Supervised)"
    assert Record.from_json(record.to_json()) == record


def test_scores_are_of_the_cells_own_task(ran):
    _, record = ran
    assert record.main_metric == "accuracy" and record.counts["train"] == 60
    assert {*record.data} == {"train", "dev", "test"}
    assert {*record.scores["test"]} == {*registry.entry("tasks", "sst2").metrics}


def test_what_other_tasks_it_saw_stands_where_results_are_compared(ran):
    """A table that ranked it beside systems of one task would be unfair to them."""
    _, record = ran
    assert record.sees == ["training rows of imdb", "training rows of sst5"]


def test_other_code_of_a_companion_is_other_code(ran):
    cell, record = ran
    assert code_of_cell(cell) == record.code
    alone = planned_cell("beside", "sst2", "beside.companions=[]", max_train=60, max_epochs=2, protocol="paper")
    assert code_of_cell(alone)["task"] != record.code["task"]
    assert code_of_cell(alone)["task"] == code_of_cell(planned_cell("bilstm", "sst2"))["task"]


def test_a_kept_model_answers_as_it_did(ran, settings):
    """With the parts of all members that the architecture has, and no head but its own."""
    cell, record = ran
    kept = load(storage.place(settings.results, cell.key))
    names = [name for name, _ in kept.model.named_parameters()]
    assert not any("heads" in name for name in names) and any("private.2" in name for name in names)
    entry = registry.entry("tasks", "sst2")
    rows = registry.load(entry)(entry).load("test", "mini").to_list()
    told = [answer["prediction"] for answer in kept.answers(rows)]
    saved = Store(settings.results).load_predictions(record)
    predictions = saved[1] if isinstance(saved, tuple) else saved["predictions"]
    assert told == list(predictions)


def test_pairs_and_single_texts_are_trained_together(settings):
    """Protocol `equal` marks the words that two texts share: a single text has none."""
    for task in ("snli", "ag_news"):
        cell = planned_cell(
            "beside",
            task,
            "beside.companions=['wikiqa','sst2','snli']",
            "beside.training.learning_rates=[0.01]",
            protocol="equal",
            max_train=40,
            max_epochs=1,
        )
        record = run_cell(cell, settings)
        assert record.status == "ok", record.error
