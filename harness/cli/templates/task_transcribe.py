"""My task: one sentence on what it is."""

from __future__ import annotations

import io
import math
import struct
import wave
from collections.abc import Iterable
from pathlib import Path
from random import Random

from harness.errors import DataError
from harness.registry import register_task
from harness.task import Row, Split, Task
from tasks.readers.delimited import tab_separated
from tasks.readers.lines import find

SIZES = {"train": 100, "dev": 30, "test": 30}
"""Rows of the generated corpus."""
HERTZ = {"a": 440, "b": 990, "c": 2100}
RATE = 8000


@register_task(
    "my_task",
    name="My task",
    type="transcribe",
    metrics=("wer", "cer"),
    main_metric="wer",
    sizes={"train": 100, "dev": 30, "test": 30},
    epochs=10,
    protocol="Say here how the splits were made, whether speakers are in several, and how transcripts are written.",
)
class MyTask(Task):
    """Recordings to be written down.

    Say here where the data come from. ``sizes`` of the decorator are the official counts of the
    files, ``epochs`` the passes of protocol ``equal``; ``budgets`` may say more.
    """

    inputs = ("audio",)

    def mini(self, split: Split) -> Iterable[Row]:
        """One to three notes of a tenth of a second; the transcript names them."""
        random = Random(f"my_task {split}")
        for number in range(SIZES[split]):
            notes = random.choices(tuple(HERTZ), k=1 + number % 3)
            id = f"{split}-{number}"
            yield {"id": id, "audio": {"bytes": recording(notes), "path": f"{id}.wav"}, "transcript": " ".join(notes)}

    def local(self, folder: Path, split: Split) -> Iterable[Row]:
        """Rows of ``<split>.tsv``: a header, then the name of a WAV file beside it and its
        transcript a line."""
        path = find(folder / "my_task", f"{split}.tsv")
        for line, fields in tab_separated(path, ("file", "transcript")):
            sound = path.parent / Path(fields["file"]).name
            if not sound.is_file():
                raise DataError(f"{path}, line {line}: there is no file {fields['file']!r:.80} beside it")
            audio = {"bytes": sound.read_bytes(), "path": sound.name}
            yield {"id": f"{split}-{line}", "audio": audio, "transcript": fields["transcript"]}


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
