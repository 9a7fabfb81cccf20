"""CoNLL column files: a token and its tags a line, blank lines between sentences (Tjong Kim Sang &
De Meulder 2003)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from harness.errors import DataError
from tasks.readers.lines import lines

Token = tuple[int, list[str]]


def sentences(path: Path, columns: int, encoding: str = "utf-8") -> Iterator[list[Token]]:
    """Sentences as lists of (line number, fields); ``-DOCSTART-`` lines are left out.

    Raises :class:`DataError` for a line that has not ``columns`` fields, all of them filled.
    """
    sentence: list[Token] = []
    for number, line in lines(path, encoding):
        fields = line.split(" ") if line else []
        if fields and len(fields) != columns:
            raise DataError(f"{path}, line {number}: {len(fields)} columns instead of {columns}: {line[:80]!r}")
        if "" in fields:
            raise DataError(f"{path}, line {number}: an empty column: {line[:80]!r}")
        if fields and fields[0] != "-DOCSTART-":
            sentence.append((number, fields))
        elif sentence:
            yield sentence
            sentence = []
    if sentence:
        yield sentence


def spans(tags: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    """Start, end (exclusive) and type of each span in IOB1 or IOB2 tags.

    A span begins at ``B-``, and at an ``I-`` that does not continue a span of its type: in IOB1
    ``B-`` stands only between neighbours of one type, in IOB2 at every beginning, so this one rule
    reads both.
    """
    start, kind = 0, ""
    for i, tag in enumerate([*tags, "O"]):
        prefix, _, name = tag.partition("-")
        if kind and (prefix != "I" or name != kind):
            yield start, i, kind
            kind = ""
        if name and not kind:
            start, kind = i, name


def bioes(tags: Sequence[str]) -> list[str]:
    """IOB1 or IOB2 tags as BIOES: S- for a span of one word, else B- I- ... E-."""
    found = ["O"] * len(tags)
    for start, end, kind in spans(tags):
        found[start:end] = [f"I-{kind}"] * (end - start)
        found[start], found[end - 1] = f"B-{kind}", f"E-{kind}"
        if end - start == 1:
            found[start] = f"S-{kind}"
    return found
