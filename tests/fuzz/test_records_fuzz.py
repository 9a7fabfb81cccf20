"""What stands in a results folder, damaged or made by somebody else: records, predictions,
outcomes, leases and the survey's values.

Each ``@example`` is an input that once ended in another exception than the documented one.
"""

from __future__ import annotations

import csv
import functools
import gzip
import json
import lzma
import os
import socket
import warnings
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from harness.errors import RecordError
from harness.files import machine
from harness.leaderboard.board import LeaderboardError, read_published
from harness.leaderboard.tables.gaps import read_reported
from harness.records import Cell, Record, Store
from harness.records.outcomes import Outcomes
from harness.running.cell_locks import Leases
from tests.fuzz.mutations import mutated, packed, wrong_json

fuzz = settings(settings.get_profile("fuzz"))
CELL = Cell("dan", 1, "sst2", 1, "mini", "smoke", {"hidden": 8, "limits": {"max_train": None}}, 0)
RECORD = Record(
    **CELL.to_dict(),
    key=CELL.key,
    status="ok",
    scores={"dev": {"accuracy": 0.5}, "test": {"accuracy": 0.75}},
    main_metric="accuracy",
    counts={"train": 10, "test": 4},
    speed={"train_examples_per_second": 12.5, "unstable": False},
    memory={"peak_rss_mib": 300.0},
    seconds={"train": 1.0, "total": 2.0},
    training={
        "learning_rates": {"0.001": 0.5},
        "best_epoch": 1,
        "epochs": 2,
        "curve": [{"epoch": 1, "train_loss": 0.5}],
        "settings": {"lr": 0.001, "schedule": None},
    },
    environment={"versions": {"torch": "2"}, "threads": 1},
    data={"test": "t" * 64},
    command="archbench run",
    started="2025-01-01T00:00:00+00:00",
    error={"type": "X", "message": "y", "log": "work/logs/x.log"},
    predictions={"path": f"records/sst2/dan/{CELL.key}.predictions.json.xz", "sha256": "0" * 64},
    archbench="0.1.0",
    lineage=[{"key": CELL.key, "role": "weights", "architecture": "rnn", "task": "sst2", "steps": 3, "flops": 1e9}],
    budget={"name": "small", "examples": 10, "passes": 2.5},
    sees=["texts of test"],
    deterministic=True,
    ruler={"version": 1, "examples_per_second": 8.5, "measured": "2025-01-01T00:00:00+00:00"},
)
TEXT = RECORD.to_json()
FIELDS = json.loads(TEXT)


def with_field(*way: str, value: str) -> bytes:
    """The record with another value (JSON as it stands) in one place."""
    fields = json.loads(TEXT)
    holder = fields
    for key in way[:-1]:
        holder = holder[key]
    holder[way[-1]] = "@"
    return json.dumps(fields).replace('"@"', value).encode()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path / "results")
    store.path(CELL).parent.mkdir(parents=True)
    return store


@fuzz
@given(
    st.one_of(mutated(TEXT.encode(), b":"), wrong_json(FIELDS).map(lambda text: text.encode("utf-8", "surrogatepass")))
)
@example(
    with_field("environment", "threads", value="1e999")
)  # infinite without saying Infinity: nobody could write it again
@example(with_field("environment", "threads", value="9" * 5000))
@example(with_field("environment", "threads", value="[" * 5000 + "]" * 5000))
@example(with_field("predictions", "path", value='"../../../etc/passwd"'))  # MLflow would have been sent that file
@example(with_field("predictions", "path", value='"/etc/passwd"'))
@example(with_field("started", value='"yesterday"'))  # one record in such words stopped every later sync
@example(with_field("started", value='"0001-01-01T00:00:00"'))
@example(with_field("seconds", "total", value="1e308"))  # in milliseconds it is infinite
@example(with_field("task", value='"../../x"'))
@example(with_field("schema", value="1"))  # with fields that schema 1 does not have
@example(with_field("training", "settings", "lr", value="1e999"))
def test_records(attempt, store, content):
    path = store.path(CELL)
    path.write_bytes(content)
    record = attempt("record JSON", lambda: store.read(path), RecordError, str(path))
    assert record is None or Record.from_json(record.to_json()) == record
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert len(list(store.all())) + len(store.damaged) == 1
    assert path.read_bytes() == content


PREDICTIONS = {"ids": ["a", "b", "c"], "predictions": ["yes", ["O", "B-X"], {"text": "", "start": 0}]}


def xz(text: str) -> bytes:
    return lzma.compress(text.encode("utf-8", "surrogatepass"))


@fuzz
@given(st.one_of(wrong_json(PREDICTIONS).map(xz), packed(lzma.compress, json.dumps(PREDICTIONS).encode(), b'"')))
@example(b"no xz file")  # LZMAError, which is no OSError, ended `archbench rescore`
@example(xz("[]"))
@example(xz("[" * 50_000))
@example(xz('{"ids": [["a"]], "predictions": [1]}'))
@example(xz('{"ids": ["\\ud800"], "predictions": [1]}'))
@example(xz('{"ids": ["a"], "predictions": [NaN]}'))
@example(xz('{"ids": ["a"], "predictions": [{"\\ud800": 1e999}]}'))
@example(xz('{"ids": ["a", "a"], "predictions": [1, 2]}'))
def test_predictions(attempt, store, content):
    record = RECORD.model_copy(update={"predictions": {"path": "x", "sha256": sha256(content).hexdigest()}})
    path = store.path(CELL).with_suffix(".predictions.json.xz")
    path.write_bytes(content)
    if read := attempt("predictions", lambda: store.load_predictions(record), RecordError, str(path)):
        ids, predictions = read
        assert len(set(ids)) == len(predictions)
        json.dumps([ids, predictions], ensure_ascii=False, allow_nan=False)


OUTCOMES = {"predictions": "0" * 64} | Outcomes(
    "accuracy",
    ["a", "b"],
    np.array([1.0, 0.5]),
    np.array([1.0, 2.0]),
    {"class": [("x", 2, 0.5), ("y", 0, None)]},
    (["x", "y"], [[1, 0], [0, 1]]),
    [0, 0],
).to_json([])


def outcomes(**fields: Any) -> bytes:
    return gzip.compress(json.dumps(OUTCOMES | fields).encode())


@fuzz
@given(
    st.one_of(
        wrong_json(OUTCOMES).map(lambda text: gzip.compress(text.encode("utf-8", "surrogatepass"))),
        packed(functools.partial(gzip.compress, mtime=0), json.dumps(OUTCOMES).encode(), b'"'),
        st.binary(max_size=40).map(gzip.compress),
    )
)
@example(gzip.compress(b"[" * 50_000))
@example(outcomes(numerators=[[1], [2]]))  # a table where a row was expected: it failed later, in the statistics
@example(outcomes(numerators=[float("nan"), 1]))
@example(outcomes(metric=7))
@example(outcomes(units=[1, 2]))
@example(outcomes(units={"a": 1, "b": 2}))
@example(outcomes(confusion=[["x", "y"], [[1], [2, 3]]]))
@example(outcomes(confusion=[["x"], []]))
@example(outcomes(slices={"class": [["x", "many", 0.5]]}))
@example(outcomes(clusters=[0]))  # one unit has none
@example(outcomes(clusters=[0, 7]))  # a number left out: as many sums as the largest says were made
@example(outcomes(clusters="ab"))
@example(gzip.compress(json.dumps(OUTCOMES).replace("0.5", "9" * 5000).encode()))
def test_outcomes(attempt, store, content):
    path = store.path(CELL).with_suffix(".outcomes.json.gz")
    path.write_bytes(content)
    predictions = store.path(CELL).with_suffix(
        ".predictions.json.xz"
    )  # asked for the ids that outcomes do not say again
    found = attempt(
        "outcomes",
        lambda: store.load_outcomes(RECORD),
        RecordError,
        str(path),
        str(predictions),
        same=lambda a, b: a is b is None or a.to_json([]) == b.to_json([]),
    )
    if found is not None:
        assert found.numerators.shape == found.denominators.shape == (len(found.units),)
        assert np.isfinite(found.numerators).all() and np.isfinite(found.denominators).all()
        json.dumps(found.to_json([]), ensure_ascii=False, allow_nan=False).encode()


def rows(*lines: list[str]) -> bytes:
    import io

    text = io.StringIO()
    csv.writer(text).writerows(lines)
    return text.getvalue().encode()


PUBLISHED = rows(
    ["survey_table", "architecture", "method_as_printed", "dataset", "metric", "value", "kind"],
    ["1", "dan", "DAN [1]", "sst2", "accuracy", "81.80", "neural"],
    ["4", "", 'Say "x", y', "wikiqa", "map", "0.652", "classical"],
)
GAPS = rows(
    ["task", "architecture", "reported", "by", "with", "why"],
    ["sst2", "nbsvm", "81.8-82", "paper", "GloVe", "phrases, not sentences"],
    ["snli", "esim", "", "", "", "shallow"],
)


@fuzz
@given(mutated(PUBLISHED, b","))
@example(PUBLISHED.replace(b"81.80", b"sNaN"))
@example(PUBLISHED.replace(b"81.80", b"1e999"))
@example(b"\xff")
@example(b'"' + b"x" * 140_000)
def test_published_values(attempt, tmp_path, content):
    path = tmp_path / "published.csv"
    path.write_bytes(content)
    for value in attempt("published.csv", lambda: list(read_published(path)), LeaderboardError, str(path)) or ():
        assert isinstance(value.method, str) and isinstance(value.percent, str)


@fuzz
@given(mutated(GAPS, b","))
@example(b"\xff")
@example(b'"' + b"x" * 140_000)
def test_gaps(attempt, tmp_path, content):
    path = tmp_path / "gaps.csv"
    path.write_bytes(content)
    for gap in attempt("gaps.csv", lambda: list(read_reported(path)), LeaderboardError, str(path)) or ():
        assert gap.task and gap.architecture


LEASE = {"host": socket.gethostname(), "machine": machine(), "pid": os.getpid(), "began": 1.5}


@fuzz
@given(
    st.one_of(
        mutated(json.dumps(LEASE).encode(), b":"),
        wrong_json(LEASE).map(lambda text: text.encode("utf-8", "surrogatepass")),
    )
)
@example(b"[" * 50_000)
@example(json.dumps(LEASE | {"pid": 10**30}).encode())
def test_leases(attempt, tmp_path, content):
    """A damaged lease is nobody's: the cell can be taken, or is said to be another's; the run
    goes on in either case."""
    leases = Leases(tmp_path / "leases")
    path = leases.folder / f"{CELL.key}.json"
    path.write_bytes(content)
    assert isinstance(attempt("leases", lambda: leases.owner(CELL), ()), str)
    if leases.take(CELL):
        leases.release(CELL)
    assert {file.name for file in leases.folder.iterdir()} <= {path.name}
    path.unlink(missing_ok=True)
