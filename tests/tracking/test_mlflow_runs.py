"""MLflow is a view of the records: what its UI shows, that nothing is doubled, and that its absence
costs no record."""

from __future__ import annotations

import dataclasses
import json
import logging
import subprocess
import sys
import time
from pathlib import Path

import pytest
from mlflow.entities import Run
from mlflow.tracking import MlflowClient

from harness.records import Cell, Record, Store
from harness.records.store import log_file
from harness.registry import Recipe
from harness.tracking.artifacts import artifacts_of
from harness.tracking.database import TrackingError, default_uri
from harness.tracking.mlflow_runs import Tracker, sync

CELL = Cell(
    "dan",
    1,
    "sst2",
    1,
    "mini",
    "equal",
    {"hidden": 300, "training": {"lr": 0.001, "optimizer": "adam"}, "vectors": {}},
    0,
)
CURVE = [{"epoch": e, "train_loss": 1 / e, "accuracy": 0.5 + e / 10, "seconds": 2.0} for e in (1, 2, 3)]
PLUGIN = """
from harness.registry import register

@register("dan", name="DAN", kind="text", paper="Iyyer et al. 2015", source="a test", year=2015)
class Dan: ...
"""


@pytest.fixture(scope="module")
def tracker(tmp_path_factory: pytest.TempPathFactory) -> Tracker:
    """One database for all tests, as making one takes a second; each test has a task (an
    experiment) of its own."""
    return Tracker(default_uri(tmp_path_factory.mktemp("results")))


@pytest.fixture(scope="module")
def client(tracker: Tracker) -> MlflowClient:
    return MlflowClient(tracking_uri=tracker.uri)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def ok_record(cell: Cell, **fields: object) -> Record:
    record = Record.skeleton(
        cell,
        "ok",
        scores={"dev": {"accuracy": 0.75}, "test": {"accuracy": 0.5}},
        main_metric="accuracy",
        speed={"train_examples_per_second": 100.0, "latency_ms_p50": None, "unstable": True},
        memory={"peak_rss_mib": 321.0},
        seconds={"train": 6.0, "total": 8.0},
        parameters={"total": 10},
        training={"best_epoch": 2, "curve": CURVE},
        **fields,
    )
    record.started = "2024-05-06T07:08:09+00:00"
    return record


def runs(client: MlflowClient, task: str) -> list[Run]:
    """The runs that show cells."""
    return [run for run in everything(client, task) if "record_key" in run.data.tags]


def parents(client: MlflowClient, task: str) -> list[Run]:
    """The runs that the seeds of a row hang below."""
    return [run for run in everything(client, task) if "row" in run.data.tags]


def everything(client: MlflowClient, task: str) -> list[Run]:
    return list(client.search_runs([client.get_experiment_by_name(task).experiment_id]))


def test_run_shows_the_whole_record(tracker: Tracker, client: MlflowClient, store: Store, tmp_path: Path):
    """Whoever opens the UI must find scores, curve, speed, settings and files without opening the
    JSON."""
    record = ok_record(dataclasses.replace(CELL, task="whole"), data={"test": "d" * 64})
    record.predictions = store.save_predictions(record, ["a"], ["x"])
    log = log_file(store.folder / "work", record)
    log.parent.mkdir(parents=True)
    log.write_text("epoch 1")
    files = artifacts_of(store, record)
    assert files == [store.folder / record.predictions["path"], log, None]
    assert tracker.log(record, files) == "added"

    (run,) = runs(client, "whole")
    assert run.info.run_name == "dan · mini · equal · full · 0"
    assert run.info.status == "FINISHED"
    assert run.info.end_time - run.info.start_time == 8000
    assert run.data.params == {"hidden": "300", "training.lr": "0.001", "training.optimizer": "adam"}
    expected = {
        "best_dev/accuracy": 0.75,
        "test/accuracy": 0.5,
        "system/speed_train_examples_per_second": 100.0,
        "system/memory_peak_rss_mib": 321.0,
    }
    expected |= {"system/seconds_train": 6.0, "system/seconds_total": 8.0, "size/total": 10.0, "train/best_epoch": 2.0}
    assert run.data.metrics == expected | {"train/loss": 1 / 3, "dev/accuracy": 0.8, "train/seconds": 2.0}
    assert [(data.dataset.name, data.dataset.digest, data.tags[0].value) for data in run.inputs.dataset_inputs] == [
        ("whole test", "d" * 36, "test")
    ]
    curve = client.get_metric_history(run.info.run_id, "train/loss")
    assert [(m.step, m.value, m.timestamp - run.info.start_time) for m in curve] == [
        (1, 1.0, 2000),
        (2, 0.5, 4000),
        (3, 1 / 3, 6000),
    ]
    tags = run.data.tags
    assert tags["record_key"] == record.key
    assert (tags["tier"], tags["status"], tags["protocol"], tags["unstable"]) == ("mini", "ok", "equal", "True")
    names = {artifact.path for artifact in client.list_artifacts(run.info.run_id)}
    assert names == {f"{record.key}.json", f"{record.key}.predictions.json.xz", log.name}
    folder = Path(tracker.uri.removeprefix("sqlite:///")).parent
    (shown,) = folder.rglob(f"{record.key}.json")
    assert shown.read_text(encoding="utf-8") == record.to_json()
    assert len(list((folder / "mlartifacts").rglob(log.name))) == 1, (
        "artifacts belong beside the database, wherever the command was started"
    )


@pytest.mark.parametrize(
    ("status", "run_status"),
    [
        ("failed", "FAILED"),
        ("oom", "FAILED"),
        ("timeout", "FAILED"),
        ("diverged", "FAILED"),
        ("interrupted", "KILLED"),
        ("skipped", "FINISHED"),
    ],
)
def test_cell_that_failed_is_a_failed_run_with_its_error(
    tracker: Tracker, client: MlflowClient, status: str, run_status: str
):
    """A failure that looks finished would be read as a result."""
    message = "no shape fits " * 1000  # longer than a tag may be
    record = Record.skeleton(
        dataclasses.replace(CELL, task=status), status, error={"type": "ValueError", "message": message}
    )
    tracker.log(record)
    (run,) = runs(client, status)
    assert run.info.status == run_status
    assert run.data.tags["error"].startswith("ValueError: no shape fits")
    assert run.data.tags["status"] == status


@pytest.mark.parametrize(("metric", "ascending"), [("accuracy", False), ("wer", True)])
def test_the_runs_of_a_task_open_flat_with_the_best_first(
    tracker: Tracker, client: MlflowClient, metric: str, ascending: bool
):
    """MLflow's own view of them was one folded row without a score."""
    record = ok_record(dataclasses.replace(CELL, task=f"view_{metric}"))
    record.main_metric = metric
    tracker.log(record)
    tags = client.get_experiment_by_name(record.task).tags
    view = json.loads(tags["mlflow.sharedViewState.archbench"])
    assert (view["orderByKey"], view["orderByAsc"]) == (f"metrics.`test/{metric}`", ascending)
    assert view["orderByKey"] in view["selectedColumns"]
    experiment = client.get_experiment_by_name(record.task).experiment_id
    found = client.search_runs([experiment], view["searchFilter"])
    assert [run.data.tags["record_key"] for run in found] == [record.key]


def test_family_and_kind_come_from_the_registry(
    tracker: Tracker, client: MlflowClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The UI groups by family; a record of an architecture that is not installed here is logged all
    the same."""

    file = tmp_path / "averaging" / "my_dan.py"
    file.parent.mkdir()
    file.write_text(PLUGIN.replace('"dan"', '"my_dan"'))
    monkeypatch.setattr("harness.registry.finding._plugins", [file])
    fresh = Tracker(tracker.uri)
    for architecture in ("my_dan", "never_heard_of"):
        fresh.log(ok_record(dataclasses.replace(CELL, task="families", architecture=architecture)))
    tags = {run.data.tags["architecture"]: run.data.tags for run in runs(client, "families")}
    assert (tags["my_dan"]["family"], tags["my_dan"]["kind"]) == ("averaging", "text")
    assert "family" not in tags["never_heard_of"]


def test_sync_twice_doubles_nothing_and_replaces_what_changed(tracker: Tracker, client: MlflowClient, store: Store):
    """`archbench sync` is what one runs when in doubt: it must be safe to run again."""
    cells = [dataclasses.replace(CELL, task=task, seed=seed) for task in ("sync_a", "sync_b") for seed in (0, 1)]
    for cell in cells:
        record = ok_record(cell)
        record.predictions = store.save_predictions(cell, ["a"], ["x"])
        store.write(record)
    tracker.log(store.find(cells[0]))
    damaged = store.folder / "records" / "sync_a" / "dan" / "0123.json"
    damaged.write_text("{")
    with pytest.warns(UserWarning, match="0123.json"):
        assert tracker.sync(store) == (3, 1, 0)
    damaged.unlink()
    assert sync(store, tracker.uri) == (0, 4, 0)

    changed = store.find(cells[3])
    changed.scores = {"test": {"accuracy": 0.625}}
    store.write(changed)
    assert tracker.sync(store) == (0, 3, 1)
    assert tracker.log(changed) == "kept"
    assert len(runs(client, "sync_a")) == 2
    by_key = {run.data.tags["record_key"]: run for run in runs(client, "sync_b")}
    assert len(by_key) == len(runs(client, "sync_b")) == 2
    assert by_key[cells[3].key].data.metrics["test/accuracy"] == 0.625
    assert "best_dev/accuracy" not in by_key[cells[3].key].data.metrics
    assert len(client.list_artifacts(by_key[cells[3].key].info.run_id)) == 2


def test_run_that_broke_off_and_run_logged_twice_are_repaired(tracker: Tracker, client: MlflowClient, store: Store):
    """A server that goes away half-way leaves a run without scores, two machines may log one
    record: sync leaves one whole run."""
    record = ok_record(dataclasses.replace(CELL, task="broken"))
    store.write(record)
    tracker.log(record)
    experiment = client.get_experiment_by_name("broken").experiment_id
    client.create_run(experiment, tags={"record_key": record.key})
    assert tracker.sync(store) == (0, 1, 0)
    (run,) = runs(client, "broken")
    assert run.data.metrics["test/accuracy"] == 0.5

    client.delete_run(run.info.run_id)
    client.create_run(experiment, tags={"record_key": record.key})
    assert tracker.sync(store) == (0, 0, 1)
    assert [run.data.metrics["test/accuracy"] for run in runs(client, "broken")] == [0.5]


def test_seeds_hang_below_one_run_with_their_mean(tracker: Tracker, client: MlflowClient, store: Store):
    """The best of three seeds is what a reader takes home otherwise; and a mean that hides a failed
    seed, or that outlives its seeds, would tell something else."""
    made = [ok_record(dataclasses.replace(CELL, task="mean", seed=seed)) for seed in (0, 1)]
    made[1].scores = {"dev": {"accuracy": 0.85}, "test": {"accuracy": 0.6}}
    error = {"type": "E", "message": ""}
    made += [Record.skeleton(dataclasses.replace(CELL, task="mean", seed=2), "failed", error=error)]
    other = ok_record(dataclasses.replace(CELL, task="mean", hyperparameters={"hidden": 3}))
    skip = Record.skeleton(dataclasses.replace(CELL, task="mean", architecture="bilstm"), "skipped", error=error)
    for record in (*made, other, skip):
        store.write(record)
        tracker.log(record)
    for _ in range(2):
        by_row = {run.data.tags["row"]: run for run in parents(client, "mean")}
        assert set(by_row) == {made[0].cell.row, other.cell.row}, "what was skipped has no mean"
        parent = by_row[made[0].cell.row]
        below = [run for run in runs(client, "mean") if run.data.tags.get("mlflow.parentRunId") == parent.info.run_id]
        assert {run.data.tags["record_key"] for run in below} == {record.key for record in made}
        assert (parent.info.status, parent.data.tags["cells"]) == ("FAILED", "1 failed, 2 ok")
        assert parent.info.end_time == max(run.info.end_time for run in below)
        assert parent.data.metrics["test/accuracy"] == pytest.approx(0.55)
        assert parent.data.metrics["best_dev/accuracy"] == pytest.approx(0.8)
        assert parent.data.metrics["test/accuracy_sd"] == pytest.approx(0.1 / 2**0.5)
        assert by_row[other.cell.row].data.metrics == {"test/accuracy": 0.5, "best_dev/accuracy": 0.75}
        assert tracker.sync(store) == (0, 5, 0)

    again = ok_record(dataclasses.replace(CELL, task="mean", seed=2))
    again.scores = {"test": {"accuracy": 0.7}}
    store.write(again)
    assert tracker.log(again) == "replaced"
    (parent,) = [run for run in parents(client, "mean") if run.data.tags["row"] == again.cell.row]
    assert (parent.info.status, parent.data.tags["cells"]) == ("FINISHED", "3 ok")
    assert parent.data.metrics["test/accuracy"] == pytest.approx(0.6)

    store.path(other).unlink()
    with pytest.warns(UserWarning, match="1 runs removed"):
        tracker.sync(store)
    assert len(parents(client, "mean")) == 1, "a mean without seeds goes"


def test_a_mean_loses_the_scores_that_no_seed_has_any_more(tracker: Tracker, client: MlflowClient, store: Store):
    """A deviation of one seed, or a mean of none, would stand there for ever."""
    cells = [dataclasses.replace(CELL, task="lost", seed=seed) for seed in (0, 1)]
    for cell in cells:
        store.write(ok_record(cell))
    tracker.sync(store)
    (first,) = parents(client, "lost")
    assert "test/accuracy_sd" in first.data.metrics
    for cell, left in ((cells[1], {"test/accuracy", "best_dev/accuracy"}), (cells[0], set())):
        store.write(Record.skeleton(cell, "failed", error={"type": "E", "message": ""}))
        tracker.sync(store)
        (mean,) = parents(client, "lost")
        assert mean.data.metrics.keys() == left
    assert (mean.info.run_name, mean.info.start_time) == (first.info.run_name, first.info.start_time)
    below = [run for run in runs(client, "lost") if run.data.tags.get("mlflow.parentRunId") == mean.info.run_id]
    assert len(below) == 2


def test_sync_joins_a_mean_that_two_writers_made_twice(tracker: Tracker, client: MlflowClient, store: Store):
    made = [ok_record(dataclasses.replace(CELL, task="twice", seed=seed)) for seed in (0, 1)]
    for record in made:
        store.write(record)
        tracker.log(record)
    (parent,) = parents(client, "twice")
    twin = client.create_run(parent.info.experiment_id, tags={"row": parent.data.tags["row"]})
    client.set_tag(runs(client, "twice")[0].info.run_id, "mlflow.parentRunId", twin.info.run_id)
    assert tracker.sync(store) == (0, 2, 0)
    (left,) = parents(client, "twice")
    assert left.data.tags["cells"] == "2 ok"
    assert {run.data.tags["mlflow.parentRunId"] for run in runs(client, "twice")} == {left.info.run_id}


def test_a_grid_of_an_older_layout_goes_with_its_last_cell(tracker: Tracker, client: MlflowClient, store: Store):
    """It would stay for ever as a run without anything."""
    store.write(ok_record(dataclasses.replace(CELL, task="older")))
    tracker.sync(store)
    experiment = client.get_experiment_by_name("older").experiment_id
    client.create_run(experiment, tags={"grid": "0123"})
    tracker.sync(store)
    assert not [run for run in everything(client, "older") if "grid" in run.data.tags]


def test_an_experiment_tells_what_its_task_is(tracker: Tracker, client: MlflowClient):
    tracker.log(ok_record(dataclasses.replace(CELL, task="sst2")))
    note = client.get_experiment_by_name("sst2").tags["mlflow.note.content"]
    assert note.startswith("**SST-2**, of type classify.\n\n") and "Whole sentences" in note


def test_description_names_the_record_the_command_and_the_deviations(
    tracker: Tracker, client: MlflowClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """From a curve to the file behind it in one click; texts of others are shown, not
    interpreted."""

    file = tmp_path / "averaging" / "odd_dan.py"
    file.parent.mkdir()
    file.write_text(
        PLUGIN.replace('"dan"', '"odd_dan"').replace(
            "year=2015", "year=2015, deviations=('no *dropout*, <b>none</b>',)"
        )
    )
    monkeypatch.setattr("harness.registry.finding._plugins", [file])
    cell = dataclasses.replace(CELL, task="described", architecture="odd_dan")
    record = Record.skeleton(
        cell, "failed", command="archbench run -a '<b>'\n*x*", error={"type": "E", "message": "a\n[b](c)"}
    )
    Tracker(tracker.uri).log(record)
    (run,) = runs(client, "described")
    assert run.data.tags["mlflow.note.content"].split("\n\n") == [
        (
            f"[Record](#/experiments/{run.info.experiment_id}/runs/{run.info.run_id}/artifacts/{record.key}.json), in"
            f" the results folder: `records/described/odd_dan/{record.key}.json`"
        ),
        "Command:",
        "    archbench run -a '<b>'\n    *x*",
        "Deviations from the paper:",
        r"- no \*dropout\*, &lt;b&gt;none&lt;/b&gt;",
        "Error:",
        "    E: a\n    [b](c)",
    ]


def test_run_goes_with_its_record_and_nothing_else_does(client: MlflowClient, tracker: Tracker, tmp_path: Path):
    """A run that outlives its record shows a result that nobody stands for; removing a user's own
    run would be worse."""
    ours, theirs = (Store(tmp_path / name) for name in ("ours", "theirs"))
    paths = [ours.write(ok_record(dataclasses.replace(CELL, task="gone", seed=seed))) for seed in range(3)]
    theirs.write(ok_record(dataclasses.replace(CELL, task="gone", seed=9)))
    assert tracker.sync(theirs) == (1, 0, 0)
    assert tracker.sync(ours) == (3, 0, 0)
    experiment = client.get_experiment_by_name("gone").experiment_id
    own = [client.create_run(experiment, run_name="mine", tags=tags).info.run_id for tags in ({}, {"results": "here"})]
    foreign = client.create_experiment("made by a user")
    kept = client.create_run(foreign, tags={"record_key": "0123456789abcdef"}).info.run_id

    paths[0].unlink()
    paths[1].write_text("{")
    with pytest.warns(UserWarning, match="record skipped|1 runs removed") as said:
        assert tracker.sync(ours) == (0, 1, 0)
    assert [str(w.message) for w in said][-1] == f"1 runs removed from MLflow: {ours.folder} has no records of them"
    assert {run.data.tags["seed"] for run in runs(client, "gone")} == {"1", "2", "9"}, "a damaged record is not gone"
    assert {run.info.run_id for run in everything(client, "gone")} >= set(own)
    assert client.get_run(kept).info.lifecycle_stage == "active"
    assert [run.data.tags["cells"] for run in parents(client, "gone")] == ["3 ok"]

    paths[1].unlink()
    paths[2].unlink()
    with pytest.warns(UserWarning, match="2 runs removed"):
        assert tracker.sync(ours) == (0, 0, 0)
    assert [run.data.tags["seed"] for run in runs(client, "gone")] == ["9"], (
        "another folder's record is not ours to miss"
    )


def test_sync_sends_the_files_that_the_run_itself_sent(tracker: Tracker, client: MlflowClient, store: Store):
    """A database that was lost came back without the logs of cells that ended well."""
    record = ok_record(dataclasses.replace(CELL, task="again"))
    store.write(record)
    log = log_file(store.folder / "work", record)
    log.parent.mkdir(parents=True)
    log.write_text("epoch 1")
    tracker.sync(store)
    (run,) = runs(client, "again")
    assert log.name in {artifact.path for artifact in client.list_artifacts(run.info.run_id)}


def test_database_in_the_results_folder_mirrors_that_folder_alone(tmp_path: Path):
    """There every run whose record is gone may go, also one that was logged before the folder was
    moved."""
    store = Store(tmp_path / "before")
    path = store.write(record := ok_record(CELL))
    Tracker(default_uri(store.folder)).log(record)
    path.unlink()
    store.folder.rename(tmp_path / "after")
    store = Store(tmp_path / "after")
    with pytest.warns(UserWarning, match="1 runs removed"):
        sync(store, default_uri(store.folder))
    assert everything(MlflowClient(default_uri(store.folder)), CELL.task) == []


def test_many_settings_and_a_long_curve_fit(tracker: Tracker, client: MlflowClient):
    """MLflow takes 100 params and 1000 metrics at a time: a longer cell must not be lost for it."""
    settings = {f"option_{i}": i for i in range(130)} | {"words": "w" * 10_000, "recipe": Recipe.__name__}
    record = ok_record(dataclasses.replace(CELL, task="long", hyperparameters=settings))
    record.training = {"curve": [{"epoch": e, "train_loss": 1.0, "accuracy": None} for e in range(1, 1101)]}
    tracker.log(record)
    (run,) = runs(client, "long")
    assert len(run.data.params) == 132
    assert len(client.get_metric_history(run.info.run_id, "train/loss")) == 1100


def test_experiment_deleted_in_the_ui_does_not_stop_the_mirror(tracker: Tracker, client: MlflowClient, store: Store):
    """MLflow keeps the name of a deleted experiment: making it anew fails, so it is taken back."""
    store.write(ok_record(dataclasses.replace(CELL, task="deleted")))
    tracker.sync(store)
    client.delete_experiment(client.get_experiment_by_name("deleted").experiment_id)
    assert sum(sync(store, tracker.uri)) == 1
    assert len(runs(client, "deleted")) == 1


def test_dead_server_fails_within_seconds(monkeypatch: pytest.MonkeyPatch):
    """MLflow's own patience is minutes per cell; the message must name the server and the way to
    repair."""
    for name in (
        "MLFLOW_HTTP_REQUEST_MAX_RETRIES",
        "MLFLOW_HTTP_REQUEST_TIMEOUT",
        "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT",
        "PGCONNECT_TIMEOUT",
    ):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    logging.getLogger("urllib3").setLevel(logging.ERROR)
    began = time.monotonic()
    with pytest.raises(TrackingError, match=r"http://127\.0\.0\.1:9 .*archbench sync"):
        Tracker("http://127.0.0.1:9")
    assert time.monotonic() - began < 15


def test_dead_postgresql_fails_within_seconds_and_keeps_its_password():
    """MLflow would try ten times, for minutes; the message goes to logs that others read."""
    pytest.importorskip("psycopg2", reason="pip install 'archbench[postgres]'")
    began = time.monotonic()
    with pytest.raises(
        TrackingError, match=r"MLflow at postgresql://me:\*\*\*@127\.0\.0\.1:9/runs .*archbench sync"
    ) as raised:
        Tracker("postgresql://me:secret@127.0.0.1:9/runs")
    assert time.monotonic() - began < 10
    assert "secret" not in str(raised.value)


def test_database_that_cannot_be_used_is_named_at_once(tmp_path: Path):
    """MLflow would try again for minutes; a folder URI would fail with a message about something
    else."""
    (tmp_path / "file.db").write_text("no database " * 100)
    (tmp_path / "file").write_text("")
    began = time.monotonic()
    for uri, complaint in {
        f"sqlite:///{tmp_path}/file.db": "not a database",
        f"sqlite:///{tmp_path}/file/mlflow.db": "File exists",
        str(tmp_path): "sqlite:///FILE.db",
        f"file://{tmp_path}": "sqlite:///FILE.db",
    }.items():
        with pytest.raises(TrackingError, match=f"{uri} .*{complaint}"):
            Tracker(uri)
    assert time.monotonic() - began < 15
    assert (tmp_path / "file.db").read_text().startswith("no database")


def test_two_processes_may_open_a_fresh_database(tmp_path: Path):
    """Two grids started at once on a new results folder crash in MLflow's migration unless one
    waits for the other."""
    program = "import sys; from harness.tracking import Tracker; Tracker(sys.argv[1])"
    command = [sys.executable, "-c", program, default_uri(tmp_path)]
    root = Path(__file__).parents[2]
    both = [subprocess.Popen(command, cwd=root, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    assert [process.communicate()[1] for process in both] == ["", ""]
    assert [process.returncode for process in both] == [0, 0]
