"""What the tests of the task adapters share: an adapter by its id, tiny files, and hub data sets
that are files on disk."""

from __future__ import annotations

import gzip
import inspect
import io
import tarfile
import wave
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness import registry
from harness.task import Task


@pytest.fixture(autouse=True)
def rows_are_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests read rows that were made before (tests/conftest.py): here they are the matter."""
    monkeypatch.setattr(Task, "load", inspect.unwrap(Task.load))


@pytest.fixture(scope="session")
def task() -> Callable[[str], Task]:
    """The adapter registered under an id."""

    def build(id: str) -> Task:
        entry = registry.entry("tasks", id)
        return registry.load(entry)(entry)

    return build


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str | bytes], Path]:
    """Write a file below the test's folder, gzipped when its name ends in .gz."""

    def write(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        content = content.encode() if isinstance(content, str) else content
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        return path

    return write


@pytest.fixture
def write_zip(tmp_path: Path) -> Callable[[str, dict[str, bytes | str]], Path]:
    """Write a zip archive below the test's folder."""

    def write(name: str, members: dict[str, bytes | str]) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for member, content in members.items():
                archive.writestr(member, content)
        return path

    return write


@pytest.fixture
def write_tar(write: Callable[[str, bytes], Path]) -> Callable[[str, dict[str, bytes]], Path]:
    """Write a tar archive below the test's folder, gzipped when its name ends in .gz."""

    def write_tar(name: str, members: dict[str, bytes]) -> Path:
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as archive:
            for member, content in members.items():
                info = tarfile.TarInfo(member)
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
        return write(name, buffer.getvalue())

    return write_tar


@pytest.fixture(scope="session")
def wav() -> bytes:
    """A WAV file of a hundred samples at 8 kHz, 16 bit, mono."""
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(bytes(range(200)))
    return buffer.getvalue()


@pytest.fixture
def from_parquet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[dict[str, Any]]]:
    """Rows that a task makes of a hub split, which here is a parquet file with the hub's features,
    written and loaded again."""

    def load(task: Task, split: str, columns: dict[str, list[Any]], features: dict[str, Any]) -> list[dict[str, Any]]:
        import datasets

        path = tmp_path / "hub" / f"{split}.parquet"
        path.parent.mkdir(exist_ok=True)
        stored = {
            "bytes": datasets.Value("binary"),
            "path": datasets.Value("string"),
        }  # encoding as Audio would need torchcodec
        plain = {name: stored if isinstance(feature, datasets.Audio) else feature for name, feature in features.items()}
        rows = datasets.Dataset.from_dict(columns, features=datasets.Features(plain)).cast(datasets.Features(features))
        rows.to_parquet(str(path))
        rows = datasets.load_dataset("parquet", data_files=str(path), split="train", cache_dir=str(tmp_path / "cache"))
        monkeypatch.setattr(task, "_download", lambda split: rows)
        return task.load(split, "hub").to_list()

    return load
