"""Tones: notes to be written down."""

from __future__ import annotations

import io
import wave
from collections.abc import Iterable
from random import Random

import numpy as np

from harness.registry import register_task
from harness.task import Row, Split, Task

SIZES = {"train": 120, "dev": 30, "test": 30}
HERTZ = {"a": 440, "b": 990, "c": 2100}
RATE = 8000


@register_task(
    "frozen_tones",
    name="Tones",
    type="transcribe",
    metrics=("wer", "cer"),
    main_metric="wer",
    sizes={"train": 120, "dev": 30, "test": 30},
    epochs=8,
    protocol="One to three notes of a tenth of a second; pauses are blanks of the transcript.",
)
class Tones(Task):
    """Recordings of notes: a letter for each, a blank for the pause between two."""

    inputs = ("audio",)

    def mini(self, split: Split) -> Iterable[Row]:
        random = Random(f"tones {split}")
        for number in range(SIZES[split]):
            notes = [random.choice(tuple(HERTZ)) for _ in range(1 + number % 3)]
            audio = {"bytes": recording(notes, random.uniform(0.3, 0.9)), "path": f"{split}-{number}.wav"}
            row = {"id": f"{split}-{number}", "audio": audio, "transcript": " ".join(notes)}
            yield row | {"speaker": ("flute", "horn")[number % 2]}


def recording(notes: list[str], loudness: float) -> bytes:
    """A WAV file of the notes, in whole samples of 16 bits, with a pause behind each but the
    last."""
    time, pause = np.arange(RATE // 10) / RATE, np.zeros(RATE // 20)
    parts = [part for note in notes for part in (np.sin(2 * np.pi * HERTZ[note] * time), pause)][:-1]
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(RATE)
        out.writeframes(np.rint(np.concatenate(parts) * loudness * 30000).astype("<i2").tobytes())
    return file.getvalue()
