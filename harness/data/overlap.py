"""Test examples that stand in train: what a score owes to memory.

An example stands in train *exactly* if some training example has the same inputs, and *nearly* if
each of its texts has a sequence of 13 words in common with the same text of one training example
(Brown et al. 2020, appendix C). A text of fewer words is one sequence, so whatever stands in train
exactly stands there nearly too. Words are those of :func:`harness.views.base.words_of` in lower
case. Recordings are compared by their bytes, exactly alone.
"""

from __future__ import annotations

import functools
import hashlib
import json
from array import array
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

import numpy as np

from harness.data.loaded_rows import InPortions
from harness.files import parse_json, read_limited, write_whole
from harness.problems.base import Problem
from harness.records.blocks import Overlap
from harness.rows import in_parts
from harness.task import Row
from harness.views.base import words_of

if TYPE_CHECKING:
    import datasets

WORDS = 13
"""Words of a sequence."""
VERSION = 1
"""Raised when the counts of equal rows change: what an older version kept is not read."""
Rows: TypeAlias = "Sequence[Row] | datasets.Dataset"
AT_ONCE = 10_000
"""Training rows that are looked up together."""
_FACTORS = np.random.default_rng(0).integers(-(2**63), 2**63, WORDS) | 1
"""Factors of the hashes of a sequence's words, so that their order counts."""


def overlap_of(
    problem: Problem, train: Rows, test: Rows, fingerprints: Mapping[Any, str], cache: Path | None
) -> Overlap:
    """The :func:`overlap` of rows with these ``fingerprints`` by split, from the folder ``cache``
    where it has been counted before."""
    identity = [VERSION, WORDS, problem.entry.id, *problem.entry.inputs, fingerprints["train"], fingerprints["test"]]
    name = hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:16]
    file = cache and cache / f"{name}.json"
    found = _kept(file) if file else None
    if found is None:
        found = overlap(problem, train, test)
        if file:
            write_whole(file, json.dumps(found).encode())
    return found


def overlap(problem: Problem, train: Rows, test: Rows) -> Overlap:
    """Numbers of test rows that stand in train.

    Takes time in proportion to the words of both, and memory in proportion to those of test.
    """
    readers = _text_readers(problem, test[0])
    if not readers:
        contents = Counter(_content(problem, row) for row in _each(test))
        return {"exact": _known(contents, (_content(problem, row) for row in _each(train)))}
    texts = [_texts(readers, row) for row in _each(test)]
    contents = Counter(map(_whole, texts))
    columns = [_Column.of(column) for column in zip(*texts, strict=True)]
    exact, near = 0, np.zeros(len(test), dtype=bool)
    for rows in in_parts(_each(train), AT_ONCE):
        texts = [_texts(readers, row) for row in rows]
        exact += _known(contents, map(_whole, texts))
        near[_near(columns, texts)] = True
    return {"exact": exact, "near": int(near.sum()), "words": WORDS}


# Texts without rows.


def sequences(texts: Iterable[str]) -> np.ndarray:
    """Hashes of all sequences of 13 words that texts have, rising. They hold in this process
    alone."""
    return _rising(map(_text, texts))


def shares_one(text: str, known: np.ndarray) -> bool:
    """True for a text that has one of the :func:`sequences` of others."""
    return _has_one(_text(text), known)


def sequences_of_rows(problem: Problem, rows: Rows) -> np.ndarray:
    """As :func:`sequences`, of all texts of rows."""
    readers = _text_readers(problem, rows[0])
    return _rising(text for row in _each(rows) for text in _texts(readers, row))


def free_of(problem: Problem, rows: Rows, known: np.ndarray) -> np.ndarray:
    """Numbers of the rows none of whose texts has one of the :func:`sequences` of others."""
    readers = _text_readers(problem, rows[0])
    shared = (any(_has_one(text, known) for text in _texts(readers, row)) for row in _each(rows))
    return np.flatnonzero(~np.fromiter(shared, bool, len(rows)))


def _rising(texts: Iterable[Text]) -> np.ndarray:
    hashes = array("q")
    for text in texts:
        hashes.frombytes(text.sequences.tobytes())
    found = np.frombuffer(hashes, dtype=np.int64)
    found.sort()  # in place, and equal ones stay: np.unique takes five times the memory
    return found


def _has_one(text: Text, known: np.ndarray) -> bool:
    own = text.sequences
    return bool(len(known)) and bool((known[np.searchsorted(known, own).clip(max=len(known) - 1)] == own).any())


# Rows and their texts.


class Text(NamedTuple):
    """A text by hashes: of all its words, and of each sequence of 13 of them."""

    whole: int
    sequences: np.ndarray


def _each(rows: Rows) -> Iterable[Row]:
    return rows if isinstance(rows, Sequence) else InPortions(rows)


def _text_readers(problem: Problem, row: Row) -> list[Callable[[Row], Text]]:
    """A reader of each text that systems read, and of each list of texts as one."""
    lists = [name for name in problem.entry.inputs if problem.entry.forms.get(name) == "texts"]
    names = [name for name in dict.fromkeys((*problem.entry.texts, *lists)) if name in row]
    return [functools.partial(_text_of, name, name in lists) for name in names]


def _text_of(name: str, of_texts: bool, row: Row) -> Text:
    value = row[name]
    if of_texts:
        return _text(tuple(word for text in value for word in words_of(text)))
    return _text(value if isinstance(value, str) else tuple(value))


@functools.lru_cache(maxsize=4096)  # a passage stands beside each of its questions
def _text(text: str | tuple[str, ...]) -> Text:
    words = tuple(word.lower() for word in (words_of(text) if isinstance(text, str) else text))
    whole = hash(words)
    if len(words) < WORDS:
        return Text(whole, np.array([whole], dtype=np.int64))
    hashes = np.fromiter(map(hash, words), np.int64, len(words))
    return Text(whole, np.lib.stride_tricks.sliding_window_view(hashes, WORDS) @ _FACTORS[:WORDS])  # modulo 2^64


def _texts(readers: Sequence[Callable[[Row], Text]], row: Row) -> list[Text]:
    return [read(row) for read in readers]


# Exactly.


def _whole(texts: Sequence[Text]) -> Hashable:
    return tuple(text.whole for text in texts)


def _content(problem: Problem, row: Row) -> Hashable:
    """The inputs of a row without texts: a recording's bytes, and of others what they look like."""
    inputs = (row[name] for name in problem.entry.inputs if name in row)
    return tuple(value["bytes"] if isinstance(value, dict) and "bytes" in value else repr(value) for value in inputs)


def _known(contents: Counter[Hashable], train: Iterable[Hashable]) -> int:
    """Test rows with a content that train has; such contents are taken out."""
    return sum(contents.pop(content, 0) for content in train)


# Nearly.


class _Column(NamedTuple):
    """Hashes of the sequences in one column of the test rows, sorted, and the row of each."""

    hashes: np.ndarray
    rows: np.ndarray

    @classmethod
    def of(cls, texts: Sequence[Text]) -> _Column:
        hashes, rows = _sequences(texts)
        order = np.argsort(hashes)
        return cls(hashes[order], rows[order])

    def places(self, texts: Sequence[Text]) -> _Places:
        """Places of the sequences of other texts."""
        hashes, rows = _sequences(texts)
        first, end = np.searchsorted(self.hashes, hashes, "left"), np.searchsorted(self.hashes, hashes, "right")
        found = first < end
        return _Places(rows[found], first[found], end[found])

    def rows_at(self, places: _Places) -> np.ndarray:
        """The test rows that have one of the sequences at the places."""
        slices = dict.fromkeys(zip(places.first.tolist(), places.end.tolist(), strict=True))
        return np.unique(np.concatenate([self.rows[first:end] for first, end in slices] or [self.rows[:0]]))


class _Places(NamedTuple):
    """Sequences of training rows that test has: the number of the row, rising, and the first and
    the last place but one in a column."""

    row: np.ndarray
    first: np.ndarray
    end: np.ndarray

    def of(self, row: int) -> _Places:
        """Those of one row."""
        part = slice(*np.searchsorted(self.row, (row, row + 1)))
        return _Places(self.row[part], self.first[part], self.end[part])


def _sequences(texts: Sequence[Text]) -> tuple[np.ndarray, np.ndarray]:
    """Hashes of the sequences of texts, and the number of the text of each."""
    counts = [len(text.sequences) for text in texts]
    return np.concatenate([text.sequences for text in texts]), np.repeat(np.arange(len(texts)), counts)


def _near(columns: Sequence[_Column], train: Sequence[Sequence[Text]]) -> np.ndarray:
    """The test rows of which each text has a sequence in common with that of one training row."""
    found = [column.places(texts) for column, texts in zip(columns, zip(*train, strict=True), strict=True)]
    if len(columns) == 1:
        return columns[0].rows_at(found[0])
    rows = functools.reduce(np.intersect1d, [places.row for places in found])
    near = [
        functools.reduce(np.intersect1d, [c.rows_at(p.of(row)) for c, p in zip(columns, found, strict=True)])
        for row in rows.tolist()
    ]
    return np.concatenate([*near, columns[0].rows[:0]])


def _kept(file: Path) -> Overlap | None:
    """Counts in a file of the cache; None where it is missing or damaged."""
    try:
        found = parse_json(read_limited(file))
    except (OSError, ValueError):
        return None
    sound = isinstance(found, dict) and "exact" in found and {*found} <= Overlap.__annotations__.keys()
    return cast(Overlap, found) if sound and all(type(count) is int for count in found.values()) else None
