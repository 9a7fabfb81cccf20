"""Plain recordings of the speech tasks: none that any of their tests has."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from harness import registry
from tasks import audio_mix


def digests(rows) -> set[str]:
    return {hashlib.sha256(row["audio"]["bytes"]).hexdigest() for row in rows}


def test_rows_have_no_transcript(task):
    """An encoder that learns from recordings alone must find nothing else in them."""
    rows = task("audio_mix").load("train", "mini").to_list()
    assert len(rows) == 200 and all(set(row) == {"id", "audio", "speaker"} for row in rows)


@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_digits_are_those_that_both_tasks_have_in_the_split(monkeypatch, split):
    """A recording of training with known speakers may be one of the test with unseen ones."""
    held = {
        ("an4", split): [b"a"],
        ("fsdd", split): [b"b", b"c", b"d"],
        ("fsdd_unseen", split): [b"c", b"d", b"e"],
    }

    def recordings(id, split, tier, folder):
        for number, data in enumerate(held[id, split]):
            yield data.decode(), {"id": f"{id}-{number}", "audio": {"bytes": data, "path": ""}, "speaker": "s"}

    monkeypatch.setattr(audio_mix, "recordings", recordings)

    made = audio_mix.AudioMix(registry.entry("tasks", "audio_mix"))
    assert [row["id"] for row in made.local(Path(), split)] == ["an4-0", "fsdd-1", "fsdd-2"]


def test_no_recording_of_training_is_one_of_a_test(task):
    """Of none of the speech tasks: a child would be scored on what its parent has heard."""
    train = digests(task("audio_mix").load("train", "mini"))
    for id in ("an4", "fsdd", "fsdd_unseen", "fsdd_class", "fsdd_class_unseen"):
        for split in ("dev", "test"):
            assert not train & digests(task(id).load(split, "mini"))
