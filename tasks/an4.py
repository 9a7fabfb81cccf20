"""AN4: transcribe spelled names, numbers and addresses."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from harness.registry import register_task
from harness.settings import Budget
from harness.task import Hub, Row, Split, Task
from tasks.mini import speech
from tasks.readers import hub
from tasks.readers.holdout import hold_out
from tasks.readers.speech import Archive, speaker, transcripts

if TYPE_CHECKING:
    import datasets


@register_task(
    "an4",
    name="AN4",
    type="transcribe",
    metrics=("wer", "cer"),
    main_metric="wer",
    sizes={"train": 859, "dev": 89, "test": 130},
    budgets={
        "small": Budget(
            12,
            min_steps=640,
            batch_size=16,
            reason="CTC says nothing for the first hundreds of steps, and a pass has only 54",
        ),
        "full": Budget(
            40,
            min_steps=1500,
            batch_size=16,
            reason="a pass has only 54 steps",
        ),
    },
    equal_view={"rate": 16000, "stack": 3},
    dropout=0.1,
    protocol=(
        "Official train and test utterances (948 and 130, other speakers). Dev is held out of train by whole speakers,"
        " chosen by the SHA-256 of their names, up to 10 % of the utterances (7 of 74 speakers). Transcripts in lower"
        " case without sentence marks."
    ),
)
class An4(Task):
    """CMU's alphanumeric database: 84 speakers spell names and say numbers and addresses, at 16
    kHz."""

    inputs = ("audio",)
    hub = Hub(
        "SaffalPoosh/AN4_ASR_dataset",
        "7db2fb664cd56f1ca28344d007deb15583e62c5a",
        splits=(("train", "train"), ("dev", "train"), ("test", "test")),
    )

    def mini(self, split: Split) -> Iterable[Row]:
        return speech.letters(split)

    def local(self, folder: Path, split: Split) -> Iterable[Row]:
        with Archive(folder / "speech" / "an4.zip") as archive:
            part = "test" if split == "test" else "train"
            found = [(member, utterance, text) for member, utterance, text in transcripts(archive, part)]
            rows = [_row(str(archive.path), utterance, text) | {"audio": member} for member, utterance, text in found]
            for row in _part(rows, split):
                yield row | {"audio": archive.audio(row["audio"])}

    def from_hub(self, rows: datasets.Dataset, split: Split) -> Iterable[Row]:
        import datasets

        hub.require_columns(self.hub, rows, "audio_filepath", "text")
        rows = rows.cast_column("audio_filepath", datasets.Audio(decode=False))
        where = hub.place(self.hub)
        mapped = []
        for row in rows:
            audio = row["audio_filepath"]
            utterance = PurePosixPath(audio["path"] or "").stem
            mapped.append(_row(where, utterance, row["text"].strip().lower()) | {"audio": audio})
        return _part(mapped, split)


def _row(where: str, utterance: str, text: str) -> Row:
    return {"id": utterance, "transcript": text, "speaker": speaker(where, utterance)}


def _part(rows: list[Row], split: Split) -> list[Row]:
    if split == "test":
        return rows
    train, dev = hold_out(rows, share=0.1, group=lambda row: row["speaker"])
    return train if split == "train" else dev
