"""My task: its reader against small files, and the contract of a task."""

from __future__ import annotations

from pathlib import Path

from harness import registry
from harness.contract.tasks import check

registry.add_plugin(Path(__file__).with_name("my_task.py"))
ENTRY = registry.entry("tasks", "my_task")


def test_a_file_is_a_recording(tmp_path):
    folder = tmp_path / "my_task" / "test"
    folder.mkdir(parents=True)
    for name in ("two.wav", "one.wav", "notes.txt"):
        (folder / name).write_bytes(b"RIFF")
    found = list(registry.load(ENTRY)(ENTRY).local(tmp_path, "test"))
    assert found == [{"id": id, "audio": {"bytes": b"RIFF", "path": f"{id}.wav"}} for id in ("one", "two")]


def test_it_keeps_the_contract():
    failed = [result for result in check(ENTRY) if not result.passed]
    assert not failed, failed
