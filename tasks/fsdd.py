"""Free Spoken Digit Dataset: transcribe or classify spoken digits, with known or unseen
speakers."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from harness.errors import DataError
from harness.registry import register_task
from harness.settings import Budget
from harness.task import Hub, Row, Split, Task
from tasks.mini import speech
from tasks.readers import hub
from tasks.readers.speech import DIGITS, Archive, Digit, digit, digits

if TYPE_CHECKING:
    import datasets

_HUB = ("mteb/free-spoken-digit-dataset", "c34455c99604d35cb8d27328c267be1478efc903")


@register_task(
    "fsdd",
    name="FSDD",
    type="transcribe",
    metrics=("wer", "cer"),
    main_metric="wer",
    sizes={"train": 2400, "dev": 300, "test": 300},
    budgets={
        "small": Budget(
            10,
            examples=600,
            min_steps=375,
            batch_size=16,
            reason="a word is about 100 frames: fewer steps for half a core minute",
        ),
        "full": Budget(
            15,
            min_steps=1500,
            batch_size=16,
            reason="CTC says nothing for the first hundreds of steps",
        ),
    },
    dropout=0.1,
    protocol=(
        "The digit's English word is the transcript. Official split: recordings 0-4 of every digit and speaker are"
        " test; of the 2,700 others, 5-9 are held out as dev and 10-49 are train. All six speakers are in all splits."
    ),
)
class Fsdd(Task):
    """Single digits of six speakers (Jackson et al. 2018), transcribed as a word.

    ``unseen`` holds speakers out instead of recordings; ``labelled`` makes it a classification.
    """

    inputs = ("audio",)
    hub = Hub(*_HUB, splits=(("train", "train"), ("dev", "train"), ("test", "test")))
    unseen: ClassVar[bool] = False
    labelled: ClassVar[bool] = False

    def mini(self, split: Split) -> Iterable[Row]:
        return speech.digits(split, labelled=self.labelled, unseen=self.unseen)

    def local(self, folder: Path, split: Split) -> Iterable[Row]:
        with Archive(folder / "speech" / "fsdd.zip") as archive:
            found = digits(archive)
            belongs = self._membership(str(archive.path), {name.speaker for _, name in found}, split)
            for member, name in found:
                if belongs(name):
                    yield self._row(name, archive.audio(member))

    def from_hub(self, rows: datasets.Dataset, split: Split) -> Iterable[Row]:
        import datasets

        hub.require_columns(self.hub, rows, "audio", "label")
        where = hub.place(self.hub)
        names = getattr(rows.features["label"], "names", None)
        rows = rows.cast_column("audio", datasets.Audio(decode=False))
        found: list[tuple[Digit, dict[str, Any]]] = []
        for row in rows:
            name = digit(where, row["audio"]["path"])
            label = names[row["label"]] if names else str(row["label"])
            if label not in (name.word, str(DIGITS.index(name.word))):
                raise DataError(f"{where}: the recording {name.name} has the label {label!r}")
            found.append((name, row["audio"]))
        belongs = self._membership(where, {name.speaker for name, _ in found}, split)
        return [self._row(name, audio) for name, audio in found if belongs(name)]

    def _membership(self, where: str, speakers: Collection[str], split: Split):
        """A function that says whether a recording belongs to the split."""
        if self.unseen:
            chosen = _speakers(where, speakers)[split]
            return lambda name: name.speaker in chosen
        indexes = {"test": range(5), "dev": range(5, 10), "train": range(10, 50)}[split]
        return lambda name: name.index in indexes

    def _row(self, name: Digit, audio: dict[str, Any]) -> Row:
        answer = {"label": name.word} if self.labelled else {"transcript": name.word}
        return {"id": name.name, "audio": audio, **answer, "speaker": name.speaker}


@register_task(
    "fsdd_class",
    name="FSDD (classes)",
    type="classify",
    metrics=("accuracy", "macro_f1"),
    main_metric="accuracy",
    sizes={"train": 2400, "dev": 300, "test": 300},
    budgets="fsdd",
    # on dev at .1, .3, .5: bilstm .980 .960 .990; transformer .973 (.1) and .977 (.5).
    dropout=0.1,
    protocol="The recordings and splits of fsdd, the digit as one of ten classes.",
)
class FsddClass(Fsdd):
    """Single digits as classes."""

    labelled = True


@register_task(
    "fsdd_unseen",
    name="FSDD, unseen speakers",
    type="transcribe",
    metrics=("wer", "cer"),
    main_metric="wer",
    sizes={"train": 1500, "dev": 500, "test": 1000},
    budgets="fsdd",
    dropout=0.1,
    protocol=(
        "The digit's English word is the transcript. No speaker is in two splits: of the six in alphabetical order the"
        " first three are train, the fourth is dev, the last two are test, with all their recordings. Not the official"
        " split."
    ),
)
class FsddUnseen(Fsdd):
    """Single digits of speakers who are not in training."""

    hub = Hub(*_HUB, splits=(("train", "train+test"), ("dev", "train+test"), ("test", "train+test")))
    official_test = False
    unseen = True


@register_task(
    "fsdd_class_unseen",
    name="FSDD (classes), unseen speakers",
    type="classify",
    metrics=("accuracy", "macro_f1"),
    main_metric="accuracy",
    sizes={"train": 1500, "dev": 500, "test": 1000},
    budgets="fsdd",
    dropout=0.1,
    protocol="The recordings and splits of fsdd_unseen, the digit as one of ten classes.",
)
class FsddClassUnseen(FsddUnseen):
    """Single digits as classes, of speakers who are not in training."""

    labelled = True


def _speakers(where: str, speakers: Collection[str]) -> dict[Split, list[str]]:
    names = sorted(speakers)
    if len(names) < 4:
        raise DataError(
            f"{where}: {len(names)} speakers ({', '.join(names)}) are too few to hold out three; expected 6"
        )
    return {"train": names[:-3], "dev": names[-3:-2], "test": names[-2:]}
