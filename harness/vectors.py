"""Pretrained word vectors from a text file: GloVe's ``word v1 v2 ...`` or word2vec's, whose first line gives count and width."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from harness.task import DataError
from harness.views.words import Vocabulary


def _lines(file: Path) -> Iterator[str]:
    """Lines of a plain or compressed file; :class:`DataError` names it where it cannot be read."""
    number = 0
    try:
        with gzip.open(file, "rt", encoding="utf-8") if file.suffix == ".gz" else file.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):  # noqa: B007 - the error below names it
                yield line
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise DataError(f"{file}: after line {number}: {error}; expected UTF-8 text") from error


def read_vectors(file: Path, vocabulary: Vocabulary) -> tuple[Tensor, int]:
    """Vectors (len(vocabulary), dims) and how many words the file knew; the others are uniform in +-0.25, as in Kim (2014).

    Raises :class:`DataError` with file and line for a line whose number of values differs from the first one's.
    """
    wanted = {word: number for number, word in enumerate(vocabulary.words, start=2)}
    found: dict[int, np.ndarray] = {}
    dims = None
    for number, line in enumerate(_lines(file), start=1):
        parts = line.rstrip("\n").rstrip(" ").split(" ")
        if number == 1 and len(parts) == 2:
            continue
        dims = dims or len(parts) - 1
        if len(parts) - 1 != dims:
            raise DataError(f"{file}:{number}: {len(parts) - 1} values, but the lines before have {dims}")
        row = wanted.get(parts[0])
        if row is not None:
            try:
                found[row] = np.array(parts[1:], dtype=np.float32)
            except ValueError as error:
                raise DataError(f"{file}:{number}: {error}") from error
    if dims is None:
        raise DataError(f"{file}: no vectors in it")
    table = torch.empty(len(vocabulary), dims).uniform_(-0.25, 0.25)
    for row, vector in found.items():
        table[row] = torch.from_numpy(vector)
    table[0] = 0
    return table, len(found)
