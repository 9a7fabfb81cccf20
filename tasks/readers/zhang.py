"""The collections of Zhang et al. 2015: CSV files of a class number from 1 and one or two texts in
quotes, a row a line. The number is in quotes too, except in DBpedia's files."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from harness.errors import DataError
from harness.task import Row, Split, Task
from tasks.readers import hub
from tasks.readers.holdout import hold_out
from tasks.readers.lines import HIGHEST_RATIO, LONGEST_LINE, SMALL_TEXT, find, undecodable, without_mark

if TYPE_CHECKING:
    import datasets

LARGEST_TABLE = 1 << 32
"""Bytes that a file may have, unpacked; the largest, of Amazon, has 1.6 billion."""
_NUMBER = r'("?)([0-9]+)\1'
_FIELD = r'"([^"]*(?:""[^"]*)*)"'


def quoted(path: Path, columns: int) -> Iterator[tuple[int, list[str]]]:
    """Line number and fields of each line, a number and texts.

    Python's own reader takes no field as long as the longest articles. Raises :class:`DataError`
    for a line that is not so many fields, for bytes that are not UTF-8, and for a file that is
    truncated, damaged or larger than the limits.
    """
    pattern = re.compile(",".join([_NUMBER, *[_FIELD] * (columns - 1)]))
    number, size = 0, 0
    try:
        most = min(LARGEST_TABLE, max(SMALL_TEXT, HIGHEST_RATIO * path.stat().st_size))
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            while raw := file.readline(LONGEST_LINE + 1):
                number, size = number + 1, size + len(raw)
                if len(raw) > LONGEST_LINE or size > most:
                    raise DataError(
                        f"{path}, line {number}: more than {LONGEST_LINE:,} bytes in a line or {most:,} in all; this is"
                        " not the corpus's file"
                    )
                line = (without_mark(raw) if number == 1 else raw).decode().removesuffix("\n").removesuffix("\r")
                if (found := pattern.fullmatch(line)) is None:
                    raise DataError(
                        f"{path}, line {number}: {line[:80]!r}, expected {columns} fields in quotes, parted by commas;"
                        " the first, a number, may stand without"
                    )
                yield number, [field.replace('""', '"') for field in found.groups()[1:]]
    except UnicodeDecodeError as error:
        raise undecodable(f"{path}, line {number}", "utf-8", error) from error
    except (EOFError, OSError, zlib.error) as error:
        raise DataError(
            f"{path}: cannot be read after line {number} ({error}); the file is truncated or damaged"
        ) from error


def unescaped(texts: Iterable[str]) -> str:
    r"""Title and text as one, without the escapes of these files: ``\n`` for a line break, and
    ``\"``."""
    return " ".join(" ".join(texts).replace("\\n", " ").replace('\\"', '"').split())


class Zhang2015(Task):
    """A collection with an official train and test set of as many texts of each class; dev is held
    out of train."""

    folder: ClassVar[str]
    """Folder of train.csv and test.csv, as the official archive unpacks."""
    labels: ClassVar[tuple[str, ...]]
    """Names of the classes 1, 2, ..."""
    names_on_hub: ClassVar[tuple[str, ...]] = ()
    """Their names on the hub, where these are others."""
    texts: ClassVar[tuple[str, ...]] = ("title", "content")
    """Columns of text, as the hub calls them."""
    held_out: ClassVar[float] = 0.02
    """Share of the training texts that are dev: some ten thousand."""

    def local(self, folder: Path, split: Split) -> Iterable[Row]:
        return self._part(self._rows(folder / self.folder, "test" if split == "test" else "train"), split)

    def _rows(self, folder: Path, part: str) -> Iterator[Row]:
        path = find(folder, f"{part}.csv")
        labels = {str(number): label for number, label in enumerate(self.labels, 1)}
        for line, (number, *texts) in quoted(path, columns=1 + len(self.texts)):
            if number not in labels:
                raise DataError(
                    f"{path}, line {line}: class {number!r:.80}, expected 1 to {len(labels)} ({', '.join(self.labels)})"
                )
            yield {"id": f"{part}-{line}", "text": unescaped(texts), "label": labels[number]}

    def from_hub(self, rows: datasets.Dataset, split: Split) -> Iterable[Row]:
        published = self.names_on_hub or self.labels
        label_of = dict(zip(published, self.labels, strict=True))
        names = hub.class_names(self.hub, rows, "label", published)
        hub.require_columns(self.hub, rows, *self.texts)
        part = "test" if split == "test" else "train"
        found = (
            {
                "id": f"{part}-{number}",
                "text": unescaped(row[name] for name in self.texts),
                "label": label_of[names[row["label"]]],
            }
            for number, row in enumerate(rows, 1)
        )
        return self._part(found, split)

    def _part(self, rows: Iterable[Row], split: Split) -> Iterable[Row]:
        if split == "test":
            return rows
        train, dev = hold_out(rows, share=self.held_out, group=lambda row: row["text"])
        return train if split == "train" else dev
