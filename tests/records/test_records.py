"""The records are the only thing that cannot be rebuilt: these tests guard their names, their
identity and their files."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from harness.errors import RecordError
from harness.files import ABANDONED_S, machine, taking_the_place_of
from harness.records import STATUSES, Cell, Record, Store, environment, provenance
from harness.records import record as schema

NAN = float("nan")
CELL = Cell(
    architecture="dan",
    architecture_version=1,
    task="sst2",
    task_version=2,
    tier="local",
    protocol="equal",
    hyperparameters={
        "hidden": 300,
        "word_dropout": 0.3,
        "training": {"lr": 1e-5, "batch_size": 64},
        "limits": {"max_train": None},
    },
    seed=0,
)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "results")


def full_record(cell: Cell = CELL) -> Record:
    return Record.skeleton(
        cell,
        "ok",
        command="archbench run -a dan",
        scores={"dev": {"accuracy": 0.81}, "test": {"accuracy": 0.8, "macro_f1": 0.79}},
        main_metric="accuracy",
        counts={"train": 6920, "dev": 872, "test": 1821},
        speed={"train_examples_per_second": 5000.5, "latency_ms_p50": 1.5, "unstable": False},
        memory={"peak_rss_mib": 512.0, "peak_gpu_mib": None},
        parameters={"total": 1000, "embedding": 900},
        flops_per_example=12345,
        seconds={"train": 1.0, "dev": 0.5, "other": 0.25, "total": 1.75},
        training={
            "learning_rates": {1e-5: 0.81},
            "best_epoch": 1,
            "epochs": 2,
            "curve": [{"epoch": 1, "train_loss": 0.7, "accuracy": 0.81}],
        },
        data={"train": "a", "dev": "b", "test": "c"},
    )


RECORDED_FIRST = {"archbench", "registered", "budget", "protocol_version", "sees"}
"""Fields of schema 2 that are known before a cell runs."""


def test_field_names_are_the_published_ones(store: Store):
    """Other programs read these names; one more or one less breaks them."""
    design = """schema, key, status, architecture, architecture_version, task, task_version, tier, protocol, seed,
    hyperparameters, devices, precision, scores, main_metric, counts, partial, speed, memory, parameters,
    flops_per_example, seconds, environment, data, commit, dirty, command, started, error, predictions"""
    written = json.loads(store.write(full_record()).read_text())
    assert set(written) == {*re.split(r",\s+", design), "training", *RECORDED_FIRST}
    assert STATUSES == ("ok", "failed", "oom", "timeout", "diverged", "skipped", "interrupted")


def test_key_is_stable():
    """A key that changes between versions or machines makes every finished cell run again."""
    assert CELL.key == "360f4bfcd0703ffb"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("architecture", "cnn"),
        ("architecture_version", 2),
        ("task", "sst5"),
        ("task_version", 3),
        ("tier", "mini"),
        ("protocol", "paper"),
        ("hyperparameters", {**CELL.hyperparameters, "hidden": 301}),
        ("seed", 1),
        ("precision", "bf16"),
        ("protocol_version", 2),
        ("devices", 2),
    ],
)
def test_everything_that_decides_a_result_is_in_the_key(field: str, value: object):
    """Two cells under one key would overwrite each other's record."""
    assert dataclasses.replace(CELL, **{field: value}).key != CELL.key


def test_neither_the_environment_nor_the_order_of_hyperparameters_is_in_the_key(monkeypatch: pytest.MonkeyPatch):
    """Otherwise the records of two machines could not be merged, and a rerun would not find its
    record."""
    here = full_record()
    monkeypatch.setattr(schema, "environment", lambda: {"python": "2.7"})
    monkeypatch.setattr(schema, "commit", lambda: ("f" * 40, True))
    there = full_record(dataclasses.replace(CELL, hyperparameters=dict(reversed(CELL.hyperparameters.items()))))
    assert there.environment != here.environment
    assert there.commit != here.commit
    assert there.key == here.key


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=30)
@given(st.dictionaries(st.text(max_size=5), json_values, max_size=4))
def test_key_survives_the_file(hyperparameters: dict):
    """A record whose key no longer fits after reading would be taken for a foreign one."""
    record = Record.skeleton(dataclasses.replace(CELL, hyperparameters=hyperparameters), "ok")
    assert Record.from_json(record.to_json().encode()).cell.key == record.key


def test_cells_are_values():
    """The grid keeps cells in sets and sends them to workers as dictionaries."""
    assert Cell.from_dict(json.loads(json.dumps(CELL.to_dict()))) == CELL
    assert len({CELL, dataclasses.replace(CELL), dataclasses.replace(CELL, seed=1)}) == 2
    with pytest.raises(TypeError, match="colour"):
        Cell.from_dict(CELL.to_dict() | {"colour": "red"})


def test_record_round_trip_is_canonical(store: Store):
    """Canonical text keeps the differences in git small; a value that changes on the way would
    falsify results."""
    record = full_record()
    path = store.write(record)
    assert path == store.folder / "records" / "sst2" / "dan" / f"{CELL.key}.json"
    assert store.read(path) == record
    assert store.find(CELL) == record
    assert record.cell == CELL
    text = path.read_text()
    assert text == json.dumps(json.loads(text), indent=1, sort_keys=True) + "\n"
    assert record.training["learning_rates"] == {"1e-05": 0.81}
    assert record.training["curve"][0]["epoch"] == 1


# --- the two schemas ---

SHA = "0123456789abcdef" * 4
SCHEMA_2 = {
    "registered": {
        "architecture": {"name": "Mine", "family": "recurrent", "kind": "seq", "paper": "A 2020", "year": 2020},
        "task": {"name": "Moods", "type": "classify", "sizes": {"train": 5}, "metrics": ["accuracy"]},
    },
    "view": {"min_count": 2, "lower": True},
    "code": {"architecture": SHA, "task": SHA, "harness": 3, "packages": {"archbench-extra": "1.2"}},
    "lineage": [
        {
            "key": SHA[:16],
            "role": "weights",
            "architecture": "rnn_lm",
            "task": "wikitext2",
            "artefact": SHA,
            "corpus": {"train": SHA},
            "objective": "next word",
            "examples": 10,
            "tokens": 2_000_000,
            "steps": 100,
            "flops": 1e15,
            "seconds": 30.5,
        }
    ],
    "spent": {"examples": 69_200, "tokens": 1_000_000, "steps": 1100, "flops": 2e12},
    "budget": {"name": "small", "examples": 2000, "passes": 5, "min_steps": 500, "batch_size": 32},
    "protocol_version": 2,
    "sees": ["texts of test"],
    "vectors": {"name": "glove.txt", "sha256": SHA, "dims": 100, "key": SHA[:16], "words": 900, "tuned": True},
    "inputs": [{"name": "elmo", "dims": 256, "key": SHA[:16], "artefact": SHA}],
    "tokens": {"name": "bpe", "symbols": 8000, "key": SHA[:16], "artefact": SHA},
    "deterministic": True,
    "overlap": {"exact": 3, "near": 11, "words": 13},
    "ruler": {"version": 1, "examples_per_second": 812.5, "measured": "2025-01-01T00:00:00+00:00"},
    "official_test_examples": 1821,
    "choices": {"share of words read": 0.625},
    "companions": [
        {
            "task": "sst5",
            "version": 1,
            "train": "a" * 64,
            "rows": 100,
            "left_out": 2,
            "examples": 300,
            "tokens": 6000,
            "steps": 12,
        }
    ],
    "flops_batches": 8,
}
"""A value for every optional field of schema 2."""


def schema_1() -> str:
    """The text of a record as archbench wrote it before schema 2."""
    fields = {n: value for n, value in json.loads(full_record().to_json()).items() if n not in schema.SINCE_2}
    return json.dumps(fields | {"schema": 1}, indent=1, sort_keys=True) + "\n"


def test_every_field_of_schema_2_survives_the_file(store: Store):
    """Later versions fill these fields; one that is not read back would be lost at the first
    rescoring."""
    assert {*SCHEMA_2, "archbench"} == {*schema.SINCE_2}
    cell = dataclasses.replace(CELL, protocol_version=2)
    record = full_record(cell).model_copy(update=SCHEMA_2)
    record.training = record.training | {
        "objective": "adversarial",
        "settings": {"optimiser": "adam", "betas": [0.9, 0.98], "schedule": None},
        "flops": 5e12,
        "rising": False,
        "passes_per_epoch": 2,
        "curve": [{"epoch": 1, "loss": 0.75, "penalty": 0.125, "kl weight": 0.5, "accuracy": None}],
    }
    written = json.loads(store.write(record).read_text())
    assert {name: written[name] for name in SCHEMA_2} == SCHEMA_2
    assert written["schema"] == 2
    assert store.read(store.path(cell)) == record


def test_version_of_archbench_is_recorded(monkeypatch: pytest.MonkeyPatch):
    """A record made by an installed wheel has no commit: without a version nobody can tell what
    made it. Code that is not installed has none, and its records are sound all the same."""
    assert full_record().archbench == importlib.metadata.version("archbench")
    monkeypatch.setattr(schema, "own_version", lambda: None)
    assert "archbench" not in json.loads(full_record().to_json())


def test_record_of_schema_1_is_read_and_written_as_it_was(store: Store):
    """Thousands of records are shared. Rewritten as schema 2, they would claim facts that nobody
    recorded, and every line would differ in git."""
    text = schema_1()
    path = store.path(CELL)
    path.parent.mkdir(parents=True)
    path.write_text(text)
    record = store.read(path)
    assert [name for name in schema.SINCE_2 if getattr(record, name) is not None] == []
    store.write(record)
    assert path.read_text() == text
    record.scores = record.scores | {"test": {"accuracy": 0.875, "macro_f1": 0.79}}
    store.write(record)
    assert path.read_text() == text.replace('"accuracy": 0.8,', '"accuracy": 0.875,') != text


@pytest.mark.parametrize("name", [*SCHEMA_2, "archbench", *(f"training.{name}" for name in schema.TRAINING_SINCE_2)])
def test_schema_1_has_no_field_of_schema_2(name: str):
    """An older archbench refuses such a file as damaged, though it says to be of its schema."""
    fields = json.loads(schema_1())
    if name.startswith("training."):
        values = {"objective": "x", "settings": {}, "flops": 1, "rising": True, "passes_per_epoch": 2}
        fields["training"][name.removeprefix("training.")] = values[name.removeprefix("training.")]
    else:
        fields[name] = SCHEMA_2.get(name, "0.1.0")
    if name != "protocol_version":  # part of the key
        assert Record.from_json(json.dumps(fields | {"schema": 2}))
    with pytest.raises(RecordError, match=f"{name}: no field of schema 1"):
        Record.from_json(json.dumps(fields))


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        *(  # a view of a plugin has settings of its own
            pytest.param(n, v | {"colour": "red"}, f"{n}.colour", id=n)
            for n, v in SCHEMA_2.items()
            if type(v) is dict and n != "view"
        ),
        ("lineage", [SCHEMA_2["lineage"][0] | {"colour": "red"}], "lineage.0.colour"),
        ("lineage", [{"key": SHA[:16], "role": "weights"}], "lineage.0.architecture"),
        ("lineage", [SCHEMA_2["lineage"][0] | {"key": "../up"}], "lineage.0.key"),
        ("inputs", [{"name": "elmo", "size": 3}], "inputs.0.size"),
        ("code", {"architecture": "abc"}, "code.architecture"),
        ("spent", {"steps": -1}, "spent.steps"),
        ("spent", {"flops": NAN}, "spent.flops"),
        ("ruler", {"version": 1, "examples_per_second": 1.0, "measured": "yesterday"}, "ruler.measured"),
        ("protocol_version", -2, "protocol_version"),
        ("sees", "texts of test", "sees"),
        ("training", {"settings": {"lr": NAN}}, "training.settings.lr"),
        ("training", {"stages": []}, "training.stages"),
        ("view", {"min_count": NAN}, "view.min_count"),
    ],
)
def test_wrong_value_of_a_new_field_is_named(name: str, value: object, complaint: str):
    """A misspelt or impossible value would enter tables as a fact."""
    with pytest.raises(RecordError, match=re.escape(complaint)):
        Record.from_json(edited(**{name: value}))


def test_pages_and_exports_show_both_schemas(store: Store):
    """The committed records are of schema 1, everything new is of schema 2: a reader that knows one
    of them shows half of the results."""
    import leaderboard
    from harness.tracking.run_fields import metrics_of, tags_of

    first = store.path(CELL)
    first.parent.mkdir(parents=True)
    first.write_text(schema_1())
    newer = full_record(dataclasses.replace(CELL, seed=1, protocol_version=2)).model_copy(update=SCHEMA_2)
    newer.training = newer.training | {"objective": "supervised", "flops": 5e12, "curve": [{"epoch": 1, "kl": 0.5}]}
    store.write(newer)
    assert leaderboard.main(["--results", str(store.folder)]) == 0
    exported = json.loads((store.folder / "leaderboard" / "leaderboard.json").read_text())
    assert sorted(result["seeds"] for result in exported["results"]) == [[0], [1]], "two groups: the new one sees more"
    old, new = (store.read(path) for path in sorted(first.parent.iterdir(), key=lambda path: path != first))
    assert (old.schema_version, new.schema_version) == (1, 2)
    for record, objective, loss in ((old, None, "train/loss"), (new, "supervised", "dev/kl")):
        assert tags_of(record).get("objective") == objective
        names = {metric.key for metric in metrics_of(record, 0)}
        assert {loss, "test/accuracy"} <= names
        assert ({"spent/steps", "train/flops"} <= names) == (record is new)


def test_skeleton_says_where_and_when_it_was_made():
    """The parent writes this record when a child died: it must not need anything from the child."""
    record = Record.skeleton(CELL, "timeout", error={"type": "Timeout", "message": "after 3 s", "log": "work/a.log"})
    assert record.scores == {}
    assert record.started.endswith("+00:00")
    assert record.environment["versions"]["numpy"]
    assert record.environment["cores"] >= 1
    assert record.environment["ram_gib"] > 0
    assert record.command
    other = Record.skeleton(CELL, "failed")
    other.scores["dev"] = {"accuracy": 1.0}
    assert Record.skeleton(CELL, "failed").scores == {}, "records must not share their defaults"


def test_looking_at_records_imports_neither_torch_nor_mlflow():
    """`archbench list` and the leaderboard must answer at once; torch alone takes seconds."""
    program = """
import sys, harness.records, harness.tracking, harness.scoring.rescore
harness.records.environment(), harness.records.commit()
print({"torch", "mlflow", "datasets", "pandas"} & set(sys.modules))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=provenance._ROOT
    )
    assert done.stdout.strip() == "set()"


def test_thread_count_is_recorded_from_the_environment(monkeypatch: pytest.MonkeyPatch):
    """One and two threads differ in the last digits, so a record must say which it was."""
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    assert environment()["threads"] == 7


def test_undecodable_file_name_in_a_message_does_not_cost_the_record(store: Store):
    """Python shows such a name with lone surrogates, which no JSON reader takes back."""
    record = Record.skeleton(
        CELL, "failed", command="archbench run --plugin \udcff.py", error={"type": "OSError", "message": "no \udcff"}
    )
    assert store.read(store.write(record)).error == {"type": "OSError", "message": r"no \udcff"}


# --- what is refused ---


@pytest.mark.parametrize("value", [NAN, float("inf"), -float("inf")])
def test_number_that_is_not_finite_is_never_written(store: Store, value: float):
    """NaN is not JSON: a browser and most programs could not read the record. The error says which
    field it is."""
    with pytest.raises(ValidationError, match="scores.test.accuracy"):
        Record.skeleton(CELL, "ok", scores={"test": {"accuracy": value}})
    path = store.write(full_record())
    before = path.read_bytes()
    for where, spoil in {
        "hyperparameters.training.lr": lambda r: r.hyperparameters["training"].update(lr=value),
        "scores.dev.accuracy": lambda r: r.scores["dev"].update(accuracy=value),
        "training.curve.0.train_loss": lambda r: r.training["curve"][0].update(train_loss=value),
    }.items():
        record = full_record(dataclasses.replace(CELL, hyperparameters=json.loads(json.dumps(CELL.hyperparameters))))
        spoil(record)
        with pytest.raises(RecordError, match=rf"{where}: -?(nan|inf)"):
            store.write(record)
    assert path.read_bytes() == before
    with pytest.raises(RecordError, match="hyperparameters.lr"):
        _ = dataclasses.replace(CELL, hyperparameters={"lr": value}).key


def test_value_that_json_cannot_hold_is_named():
    """A path or tensor among the hyperparameters must be found by name, not by a bare 'not
    serializable'."""
    with pytest.raises(RecordError, match="hyperparameters.file: a PosixPath"):
        _ = dataclasses.replace(CELL, hyperparameters={"file": Path("x")}).key


def edited(**changes: object) -> str:
    return json.dumps(json.loads(full_record().to_json()) | changes)


def test_neighbours_share_what_is_the_same_and_nothing_else(store: Store):
    """200,000 records would not fit into memory; but 1, 1.0 and True are equal, and a record that
    took its neighbour's would be of another cell."""
    values = (1, 1, 1.0, True)
    cells = [dataclasses.replace(CELL, seed=seed, hyperparameters={"x": x}) for seed, x in enumerate(values)]
    written = {cell.key: full_record(cell) for cell in cells}
    for record in written.values():
        store.write(record)
    read = list(store.all())
    assert {record.key: record.to_json() for record in read} == {k: r.to_json() for k, r in written.items()}
    assert len({id(record.environment) for record in read}) == 1
    assert len({id(record.training) for record in read}) == 4, "of each run"
    assert len({repr(record.hyperparameters) for record in read}) == 3 <= len({id(r.hyperparameters) for r in read})


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "EOF"),
        (full_record().to_json()[:300], "EOF"),
        ("[1, 2]", "object"),
        (edited(colour="red"), "colour"),
        (edited(speed={"warp": 9}), "speed.warp"),
        (edited(schema=3), "schema"),
        (edited(schema=1), "archbench"),
        (edited(status="fine"), "status"),
        (edited(seed=5), "key"),
        (edited(scores={"test": {"accuracy": NAN}}), "scores.test.accuracy"),
        (edited(environment={"load": NAN}), "environment.load"),
        (edited(task="other", key=dataclasses.replace(CELL, task="other").key), "belongs in"),
    ],
)
def test_damaged_or_foreign_file_is_named_skipped_and_left(store: Store, text: str, complaint: str):
    """A half-copied or hand-edited record must neither stop the table of all others, nor enter it,
    nor be lost."""
    good = store.write(full_record(dataclasses.replace(CELL, seed=1)))
    bad = store.path(CELL)
    bad.write_text(text)
    with pytest.warns(UserWarning, match=re.escape(str(bad))):
        found = list(store.all())
    assert [store.path(record) for record in found] == [good]
    assert list(store.damaged) == [bad]
    assert complaint in store.damaged[bad]
    for touch in (lambda: store.write(full_record()), lambda: store.find(CELL), lambda: store.read(bad)):
        with pytest.raises(RecordError, match=re.escape(str(bad))):
            touch()
    assert bad.read_text() == text


def test_file_that_is_no_text_is_skipped(store: Store):
    """Bytes that are not UTF-8 are one more way to be damaged."""
    bad = store.path(CELL)
    bad.parent.mkdir(parents=True)
    bad.write_bytes(b"\xff\xfe\x00")
    with pytest.warns(UserWarning, match=bad.name):
        assert list(store.all()) == []


def test_record_is_found_from_any_folder(store: Store, monkeypatch: pytest.MonkeyPatch):
    """A store given by a relative path must read a record that is named by its absolute one."""
    path = store.write(full_record())
    monkeypatch.chdir(store.folder.parent)
    assert Store("results").read(path.resolve()).key == CELL.key


def test_records_of_a_task_may_lie_on_another_disk(store: Store, tmp_path: Path):
    """`run` finds them behind the link: no page may lack them in silence."""
    path = store.write(full_record())
    elsewhere = path.parents[1].rename(tmp_path / "elsewhere")
    path.parents[1].symlink_to(elsewhere)
    assert store.find(CELL) is not None and [record.key for record in store.all()] == [CELL.key]


@pytest.mark.parametrize("name", ["../up", "a/b", "..", "", "naïve", "a b"])
def test_name_that_would_leave_the_folder_is_refused(store: Store, name: str):
    """A plugin's id becomes a folder name; it must not write outside the results."""
    for cell in (dataclasses.replace(CELL, task=name), dataclasses.replace(CELL, architecture=name)):
        with pytest.raises(RecordError, match="name of a folder"):
            store.path(cell)


def test_failed_write_keeps_the_old_record(store: Store, monkeypatch: pytest.MonkeyPatch):
    """A full disk or a killed process must cost the new record at most, and leave no litter."""
    path = store.write(full_record())
    before = path.read_bytes()
    record = full_record()
    record.scores = {"test": {"accuracy": 0.99}}

    def no_space(source: str, target: str) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", no_space)
        with pytest.raises(RecordError, match=f"{path} could not be written.*No space"):
            store.write(record)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]
    store.write(record)
    assert store.read(path).scores == {"test": {"accuracy": 0.99}}


def test_records_of_other_training_data_are_set_aside_under_names_of_their_own(store: Store):
    """The second would take the place of the first, which nobody can compute again."""
    names = set()
    for train in ("1", "2"):
        record = full_record().model_copy(update={"data": {"train": train * 64, "test": "e" * 64}})
        store.write(record)
        names.add(store.set_aside(record).name)
    assert len(names) == 2 and {path.name for path in store.path(CELL).parent.iterdir()} == names


def test_of_two_runs_that_set_a_record_aside_the_later_leaves_what_it_finds(store: Store):
    """It ended in a traceback, and would take away what the first has computed since."""
    old = full_record()
    store.write(old)
    aside = store.set_aside(old)
    assert store.set_aside(old) == aside and aside.is_file()
    new = old.model_copy(update={"command": "archbench run --changed"})
    store.write(new)
    store.set_aside(old)
    assert store.find(CELL) == new and json.loads(aside.read_text())["command"] == old.command


def test_a_record_goes_aside_before_its_predictions(store: Store, monkeypatch: pytest.MonkeyPatch):
    """A run that is ended in between leaves none that counts as done and has no predictions."""
    record = full_record()
    store.write(record)
    record.predictions = store.save_predictions(record, ["1"], ["yes"])
    store.write(record)
    moved, rename = [], os.replace
    monkeypatch.setattr(os, "replace", lambda file, aside: moved.append(file) or rename(file, aside))
    store.set_aside(record)
    assert moved[0] == store.path(CELL) and len(moved) == 3


def test_unwritable_results_folder_is_noticed_before_anything_runs(tmp_path: Path):
    """Hours of training must not end in a record that cannot be written."""
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(RecordError, match=f"results folder {folder} is not writable.*--results"):
            Store(folder).check_writable()
    good = Store(tmp_path / "good")
    good.check_writable()
    assert list(good.all()) == []
    assert list((good.folder / "records").iterdir()) == []


# --- predictions ---


def test_predictions_round_trip(store: Store):
    """Rescoring needs every prediction back under its own id, in any of the stored forms."""
    ids, predictions = ["a", "b", "c", "d"], ["positive", 0.25, ["B-PER", "O"], ""]
    record = full_record()
    record.predictions = store.save_predictions(CELL, ids, predictions)
    path = store.write(record)
    assert record.predictions["path"] == f"records/sst2/dan/{CELL.key}.predictions.json.xz"
    assert store.load_predictions(store.read(path)) == (ids, predictions)
    assert [r.key for r in store.all()] == [CELL.key], "predictions must not be taken for records"


def test_predictions_of_another_run_are_refused(store: Store):
    """A file that was replaced or lost would give scores that no model made."""
    record = full_record()
    with pytest.raises(RecordError, match="names no predictions"):
        store.load_predictions(record)
    record.predictions = store.save_predictions(CELL, ["a"], ["x"])
    store.save_predictions(CELL, ["a"], ["y"])
    with pytest.raises(RecordError, match=r"predictions.json.xz: SHA-256"):
        store.load_predictions(record)
    (store.folder / record.predictions["path"]).unlink()
    with pytest.raises(RecordError, match=r"predictions.json.xz: No such file"):
        store.load_predictions(record)


@pytest.mark.parametrize(
    ("ids", "predictions", "complaint"),
    [
        (["a", "a"], ["x", "y"], "1 of them different"),
        (["a"], ["x", "y"], "2 predictions for 1 ids"),
        (["a"], [NAN], "predictions.0: nan"),
    ],
)
def test_predictions_that_cannot_be_scored_are_refused(store: Store, ids: list[str], predictions: list, complaint: str):
    """Better no predictions than some that rescoring would pair with the wrong examples."""
    with pytest.raises(RecordError, match=complaint):
        store.save_predictions(CELL, ids, predictions)


# --- commit ---


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "core.hooksPath=/dev/null"]
    return subprocess.run(
        ["git", "-C", folder, *identity, *arguments], check=True, capture_output=True, text=True
    ).stdout.strip()


def test_commit_is_that_of_the_code_and_new_results_do_not_make_it_dirty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """A grid writes into results/: if that made the checkout dirty, every record after the first
    would look irreproducible."""
    monkeypatch.setattr(provenance, "_ROOT", tmp_path)
    commit = provenance.commit.__wrapped__
    assert commit() == ("", False)
    git(tmp_path, "init", "-q")
    (tmp_path / "model.py").write_text("1")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "first")
    head = git(tmp_path, "rev-parse", "HEAD")
    assert commit() == (head, False)
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "record.json").write_text("{}")
    assert commit() == (head, False)
    (tmp_path / "new_model.py").write_text("2")
    assert commit() == (head, True)


def test_looking_for_the_commit_never_locks_the_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A cell that is killed while git writes the index would leave a lock behind, and its user
    could not commit."""
    monkeypatch.setattr(provenance, "_ROOT", tmp_path)
    git(tmp_path, "init", "-q")
    (tmp_path / "model.py").write_text("1")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "first")
    os.utime(tmp_path / "model.py", (0, 0))  # git would note the new time in its index
    index = (tmp_path / ".git" / "index").read_bytes()
    assert provenance.commit.__wrapped__() == (git(tmp_path, "rev-parse", "HEAD"), False)
    assert (tmp_path / ".git" / "index").read_bytes() == index


def test_commit_of_somebody_elses_repository_is_not_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Installed into the .venv of another project, the code has no commit; that project's would
    mislead."""
    git(tmp_path, "init", "-q")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "theirs")
    (tmp_path / "site-packages").mkdir()
    monkeypatch.setattr(provenance, "_ROOT", tmp_path / "site-packages")
    assert provenance.commit.__wrapped__() == ("", False)


def test_a_record_holds_no_password_of_its_command(make_cell):
    """Records are committed and shown on pages; the user of a database is nobody's business
    either."""
    command = "archbench run --mlflow postgresql://me:s3cret:@[x]@db.example/mlflow -o 'a.b=http://no.user/x@y'"
    record = Record.skeleton(make_cell(), "ok", command=command)
    assert "s3cret" not in record.command
    assert record.command.startswith("archbench run --mlflow postgresql://***@")
    assert record.command.endswith("'a.b=http://no.user/x@y'")


def test_half_written_files_of_the_dead_are_swept_away(tmp_path, monkeypatch, make_cell):
    """A kill in the middle of a write must leave nothing that somebody takes for a result, and harm
    nobody who is writing now."""
    store = Store(tmp_path)
    kept = store.write(Record.skeleton(make_cell(), "ok"))
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    with monkeypatch.context() as then:
        then.setattr(os, "getpid", lambda: child.pid)
        killed = taking_the_place_of(kept)
        killed.__enter__().write_text("{")
    names = {"alive": (machine(), os.getpid()), "other": ("else.where", child.pid), "old": ("else.where", os.getpid())}
    files = {name: kept.with_name(f".x.{name}.json.{at}~{pid}~0123abcd.tmp") for name, (at, pid) in names.items()}
    for file in files.values():
        file.write_text("{")
    long_ago = time.time() - ABANDONED_S - 5
    os.utime(files["old"], (long_ago, long_ago))
    store.sweep()
    assert set(kept.parent.iterdir()) == {kept, files["alive"], files["other"]}


@pytest.mark.skipif(sys.platform != "linux", reason="boots have names on Linux")
def test_what_another_machine_with_this_name_is_writing_is_left_alone(tmp_path, monkeypatch, make_cell):
    """Copies of one virtual machine share a results folder: the start of a run on one of them cost
    the other the record or model that it was writing."""
    store, ended = Store(tmp_path), subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    (tmp_path / "boot_id").write_text("another boot\n")
    with monkeypatch.context() as there:
        there.setattr("harness.files.BOOT", tmp_path / "boot_id")
        there.setattr(os, "getpid", lambda: ended.pid)
        path = store.path(make_cell())
        writing = taking_the_place_of(path)
        writing.__enter__().write_text("{}")
    store.sweep()
    writing.__exit__(None, None, None)
    assert path.read_text() == "{}"
