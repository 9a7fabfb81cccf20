"""Pretrained word vectors from a text file: GloVe's ``word v1 v2 ...`` or word2vec's, whose first
line gives count and width. A word may have blanks in it, as some of GloVe's have."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from harness.errors import DataError
from harness.files import LONGEST_LINE
from harness.views.words import Vocabulary

MOST_VALUES = 10_000
"""Values that a vector may have; a table of a vocabulary is filled with as many for each word."""
HIGHEST_RATIO, SMALL_FILE = 50, 1 << 24
"""A gzipped file that unpacks to more than 50 times its size, and to more than 16 MiB, holds no
vectors (which shrink to a third)."""


def _lines(file: Path) -> Iterator[str]:
    """Lines of a plain or compressed file; :class:`DataError` names it where it cannot be read, or
    is larger than the limits above."""
    number, size = 0, 0
    try:
        most = max(SMALL_FILE, HIGHEST_RATIO * file.stat().st_size)
        with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as lines:
            while raw := lines.readline(LONGEST_LINE + 1):
                number, size = number + 1, size + len(raw)
                if len(raw) > LONGEST_LINE or size > most:
                    limit = (
                        f"{LONGEST_LINE:,} bytes in a line"
                        if len(raw) > LONGEST_LINE
                        else f"the {most:,} bytes that it may unpack to"
                    )
                    raise DataError(f"{file}:{number}: more than {limit}; expected lines of a word and its values")
                yield raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{file}:{number}: byte 0x{error.object[error.start]:02x} is not UTF-8; expected UTF-8 text"
        ) from error
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{file}: after line {number}: {error}; expected UTF-8 text") from error


def _is_of_word(part: str) -> bool:
    """True if a part behind a blank may belong to a word: a number is a value too many."""
    try:
        float(part)
    except ValueError:
        return part != ""
    return False


def read_vectors(file: Path, vocabulary: Vocabulary) -> tuple[Tensor, int]:
    """Vectors (len(vocabulary), dims) and how many words the file knew; the others are uniform in
    +-0.25, as in Kim (2014).

    Raises :class:`DataError` with file and line for a line whose number of values differs from the
    first one's, and for a value that is not a number that a 32-bit float can hold.
    """
    wanted = {word: number for number, word in enumerate(vocabulary.words, start=2)}
    found: dict[int, np.ndarray] = {}
    dims = None
    for number, line in enumerate(_lines(file), start=1):
        text = line.rstrip("\r\n").rstrip(" ")
        if number == 1 and text.count(" ") == 1:
            continue
        if dims is None:
            dims = text.count(" ")
            if not 1 <= dims <= MOST_VALUES:
                raise DataError(f"{file}:{number}: {dims} values, expected a word and 1 to {MOST_VALUES:,} of them")
        parts = text.rsplit(" ", dims)
        if len(parts) <= dims or not all(map(_is_of_word, parts[0].split(" ")[1:])):
            raise DataError(f"{file}:{number}: {text.count(' ')} values, but the lines before have {dims}")
        row = wanted.get(parts[0])
        if row is not None:
            try:
                with np.errstate(over="ignore"):
                    found[row] = np.array(parts[1:], dtype=np.float32)
            except ValueError as error:
                raise DataError(f"{file}:{number}: {error!s:.200}") from error
            if not np.isfinite(found[row]).all():
                raise DataError(f"{file}:{number}: a value of {parts[0]!r:.80} is not a finite number")
    if dims is None:
        raise DataError(f"{file}: no vectors in it")
    table = torch.empty(len(vocabulary), dims).uniform_(-0.25, 0.25)
    for row, vector in found.items():
        table[row] = torch.from_numpy(vector)
    table[0] = 0
    return table, len(found)
