"""Damaged descriptions and data: rows of the right columns, or an error that names the file, and
nothing else."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from harness import registry
from harness.errors import ArchbenchError, DataError
from harness.registry import finding
from harness.user_data.description import Source
from harness.user_data.writing import new_task
from tests.fuzz.mutations import mutated, wrong_json
from tests.user_data.conftest import HEAD, reviews

fuzz = settings(
    max_examples=60,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate],
)
DESCRIPTION = HEAD + "[splits]\ndev = 0.2\ntest = 0.3\nseed = 1\n[sizes]\ntrain = 6\n"


def parquet() -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table({"review": [f"film {n}" for n in range(12)], "stars": ["a", "b"] * 6}), file)
    return file.getvalue()


def is_told(error: ArchbenchError, path: Path) -> None:
    """The message can be printed, and names the file."""
    assert str(path) in str(error)
    assert len(str(error).encode()) < 2000


def attempt(folder: Path, ending: str, content: bytes) -> None:
    """Read all splits, and look at the file as `archbench new-task` does."""
    data = folder / f"reviews.{ending}"
    data.write_bytes(content)
    file = folder / "reviews.toml"
    columns = (1, 2) if ending == "conll" else ('"review"', '"stars"')
    toml = (
        HEAD.replace("reviews.csv", data.name).replace('"review"', str(columns[0])).replace('"stars"', str(columns[1]))
    )
    file.write_text(toml.replace('"classify"', '"tag"').replace("label", "tags") if ending == "conll" else toml)
    [entry] = registry.match("tasks", str(file))
    task = registry.load(entry)(entry)
    for split in ("train", "dev", "test"):
        try:
            found = task.load(split).to_list()
        except DataError as error:
            is_told(error, data)
        else:
            task._check(found, split)
    file.unlink()
    try:
        new_task(data, columns={}, type=None, group=None, others={}, source=Source(), out=file)
    except ArchbenchError as error:
        is_told(error, data)
        assert not file.exists(), "half a description was left"
    else:
        registry.match("tasks", str(file))
        file.unlink()


@fuzz
@given(mutated(reviews(12).replace("film 3", '"film, 3"').encode(), b","))
def test_damaged_csv(tmp_path: Path, content: bytes):
    attempt(tmp_path, "csv", content)


@fuzz
@given(mutated(reviews(12).replace(",", "\t").encode(), b"\t"))
def test_damaged_tsv(tmp_path: Path, content: bytes):
    attempt(tmp_path, "tsv", content)


@fuzz
@given(st.lists(wrong_json({"review": "fine", "stars": 1}), min_size=1, max_size=3))
def test_damaged_jsonl(tmp_path: Path, lines: list[str]):
    sound = [json.dumps({"review": f"film {n}", "stars": n % 2}) for n in range(12)]
    attempt(tmp_path, "jsonl", "\n".join([*sound, *lines]).encode("utf-8", "surrogatepass"))


@fuzz
@given(mutated(b"EU B-ORG\nrejects O\n\nPeter B-PER\n\n" * 6))
def test_damaged_conll(tmp_path: Path, content: bytes):
    attempt(tmp_path, "conll", content)


@fuzz
@given(mutated(parquet()))
def test_damaged_parquet(tmp_path: Path, content: bytes):
    attempt(tmp_path, "parquet", content)


@fuzz
@given(mutated(DESCRIPTION.encode(), b" "))
def test_damaged_descriptions(tmp_path: Path, content: bytes):
    """Whatever stands in a TOML file, the command ends with a message that names it or its
    data."""
    (tmp_path / "reviews.csv").write_text(reviews(12))
    file = tmp_path / "reviews.toml"
    file.write_bytes(content)
    try:
        [entry] = registry.match("tasks", str(file))
        task = registry.load(entry)(entry)
        task.signature()
        for split in ("train", "dev", "test"):
            task.load(split)
    except ArchbenchError as error:
        is_told(error, tmp_path)
    finally:
        finding._plugins.clear()


def test_a_name_without_end_is_no_way_out(own):
    """The name of a data file may be anything; a folder or a device is no file."""
    for name in ("/dev/zero", ".", "x" * 300 + ".csv", "a\x01.csv"):
        with pytest.raises((DataError, registry.RegistryError)):
            own(HEAD.replace('"reviews.csv"', json.dumps(name) + '\nformat = "csv"')).load("train")
