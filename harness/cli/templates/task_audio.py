"""My task: one sentence on what it is."""

from __future__ import annotations

import io
import math
import struct
import wave
from collections.abc import Iterable
from pathlib import Path
from random import Random

from harness.registry import register_task
from harness.task import Row, Split, Task

SIZES = {"train": 100, "dev": 30, "test": 30}
"""Rows of the generated corpus."""
HERTZ = {"a": 440, "b": 990, "c": 2100}
RATE = 8000


@register_task(
    "my_task",
    name="My task",
    type="audio",
    metrics=("nats_per_token", "perplexity"),
    main_metric="nats_per_token",
    sizes={"train": 100, "dev": 30, "test": 30},
    epochs=10,
    protocol="Say here how the splits were made, and that no recording is one of a test that children are scored on.",
)
class MyTask(Task):
    """Plain recordings to learn from.

    Say here where the data come from. ``sizes`` of the decorator are the official counts of the
    files, ``epochs`` the passes of protocol ``equal``; ``budgets`` may say more.
    """

    inputs = ("audio",)

    def mini(self, split: Split) -> Iterable[Row]:
        """One to three notes of a tenth of a second."""
        random = Random(f"my_task {split}")
        for number in range(SIZES[split]):
            notes = random.choices(tuple(HERTZ), k=1 + number % 3)
            id = f"{split}-{number}"
            yield {"id": id, "audio": {"bytes": recording(notes), "path": f"{id}.wav"}}

    def local(self, folder: Path, split: Split) -> Iterable[Row]:
        """The WAV files of the folder ``<split>``, by their names."""
        for sound in sorted((folder / "my_task" / split).glob("*.wav")):
            yield {"id": sound.stem, "audio": {"bytes": sound.read_bytes(), "path": sound.name}}


def recording(notes: list[str]) -> bytes:
    """A WAV file of the notes in samples of 16 bits."""
    length = RATE // 10
    waves = [math.sin(2 * math.pi * HERTZ[note] * sample / RATE) for note in notes for sample in range(length)]
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(RATE)
        out.writeframes(struct.pack(f"<{len(waves)}h", *(round(20_000 * value) for value in waves)))
    return file.getvalue()
