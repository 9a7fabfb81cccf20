"""A look at a data file: its columns, and a guess of what each of them is to a task."""

from __future__ import annotations

import csv
import dataclasses
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from harness import registry
from harness.errors import DataError, UsageError, did_you_mean
from harness.user_data import raw_tables
from harness.user_data.description import ENDINGS, MISSING, Column, Source
from harness.user_data.splits import hashes
from harness.user_data.table import is_missing
from harness.user_data.task import SPLIT_NAMES
from harness.user_data.text import guessed_encoding, lines

DELIMITERS = ",;\t|"
SAMPLE = 200
"""Rows by which delimiter and header are guessed."""
MOST_VALUES = 1000
"""Different values that are counted of a column; one with more is no label."""
MOST_CLASSES = 100
LONGEST_NAME = 60
"""Characters that the name of a column or a class has at most, in guesses."""

LABELS = ("label", "labels", "class", "category", "stars", "rating", "sentiment", "target", "polarity", "topic", "y")
TEXTS = (
    "text",
    "review",
    "sentence",
    "content",
    "body",
    "comment",
    "message",
    "document",
    "tweet",
    "question",
    "title",
)
SCORES = ("score", "similarity", "value", "rating", "target", "label")
TRANSCRIPTS = ("transcript", "transcription", "sentence", "text", "words")
IDS = ("id", "uid", "guid", "pairid", "key")
SPLITS = ("split", "set", "subset", "partition", "part")
PAIRS = (
    ("first", "second"),
    ("premise", "hypothesis"),
    ("sentence1", "sentence2"),
    ("sentence_a", "sentence_b"),
    ("question1", "question2"),
    ("text1", "text2"),
    ("text_a", "text_b"),
    ("query", "document"),
    ("question", "sentence"),
    ("question", "answer"),
)
COUNTED = (("1", "2"), ("_a", "_b"), ("first", "second"), ("left", "right"))
"""Parts by which the names of two columns of a pair differ."""
RANKED = 2.0
"""Rows in which a text stands on average, from which on those beside it are its candidates."""
PASSAGES, QUESTIONS, ANSWERS = ("passage", "context", "paragraph"), ("question",), ("answer", "answers", "answer_text")
TOKENS, TAGS = ("tokens", "words", "text"), ("tags", "ner_tags", "pos_tags", "labels")
SOURCES, TARGETS = ("source", "src"), ("target", "tgt", "translation")
NAMES: dict[str, Sequence[str]] = {
    "text": (*TEXTS, *TOKENS),
    "label": LABELS,
    "labels": LABELS,
    "tags": TAGS,
    "score": SCORES,
    "passage": PASSAGES,
    "question": QUESTIONS,
    "answers": ANSWERS,
    "transcript": TRANSCRIPTS,
    "source": SOURCES,
    "target": TARGETS,
}
"""Usual names of the columns of the types of tasks; others have that of their type alone."""


@dataclass
class Profile:
    """A column of a file: how many cells are empty, numbers, lists or paths of recordings, and the
    values that it has (None: more than are counted). ``each`` is the number of rows in which one
    of them stands, on average."""

    column: Column
    empty: int = 0
    first_empty: int | None = None
    numbers: int = 0
    lists: int = 0
    recordings: int = 0
    characters: int = 0
    filled: int = 0
    values: Counter[str] | None = field(default_factory=Counter)
    each: float = 1.0

    def add(self, place: int, value: Any, missing: frozenset[str]) -> None:
        """Count one cell."""
        if is_missing(value, missing):
            self.empty += 1
            self.first_empty = place if self.first_empty is None else self.first_empty
            return
        self.filled += 1
        if isinstance(value, list):
            self.lists += 1
            self.values = None
            return
        text = value if isinstance(value, str) else str(value)
        self.characters += len(text)
        if not isinstance(value, str) or len(text) < 30:
            self.numbers += _is_number(text)
        if text[-4:].lower() == ".wav":
            self.recordings += 1
        if self.values is not None:
            self.values[text.strip()] += 1
            self.each = self.filled / len(self.values)
            if len(self.values) > MOST_VALUES:
                self.values = None

    @property
    def classes(self) -> int:
        """Number of different values, if they may be classes; 0 otherwise."""
        known = self.values or ()
        short = all(len(value) <= LONGEST_NAME for value in known)
        return len(known) if short and len(known) <= MOST_CLASSES and 2 * len(known) <= max(4, self.filled) else 0

    @property
    def is_number(self) -> bool:
        """True if every cell that is filled is a number."""
        return self.filled > 0 and self.numbers == self.filled


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


@dataclass
class Looked:
    """A data file as it was found: its form with the reasons in words, its rows, and its
    columns."""

    path: Path
    source: Source
    reasons: dict[str, str]
    rows: int
    unit: str
    columns: list[Profile]

    def named(self, column: Column) -> Profile:
        """The profile of a column."""
        return next(each for each in self.columns if each.column == column)

    def first_of(self, names: Iterable[str], fits: Any = lambda profile: True) -> Column | None:
        """The first column of these names that fits."""
        by_name = {str(each.column).lower(): each for each in reversed(self.columns)}
        return next((by_name[name].column for name in names if name in by_name and fits(by_name[name])), None)


def look(path: Path, source: Source, named: Collection[Column | None] = ()) -> Looked:
    """Look at all rows of a file; what ``source`` leaves open is guessed. ``named`` are
    columns that the user names.

    Raises :class:`DataError` with file and line for what cannot be read.
    """
    try:
        form = source.format_of(path)
    except ValueError as error:
        raise UsageError(f"{path}: {error} with --format") from error
    reasons: dict[str, str] = {}
    if form != "parquet":
        encoding, reasons["encoding"] = guessed_encoding(path)
        source = dataclasses.replace(source, encoding=encoding)
    if form in ("csv", "tsv"):
        source = _of_table(path, source, form, named, reasons)
    read = raw_tables.read(path, source, None)
    profiles: list[Profile] = []
    missing, rows = frozenset(MISSING), 0
    for place, values in read.rows:
        rows += 1
        while len(profiles) < len(values):
            number = len(profiles)
            profiles.append(Profile(read.columns[number] if number < len(read.columns) else number + 1))
        for profile, value in zip(profiles, values, strict=False):
            profile.add(place, value, missing)
    names = [profile.column for profile in profiles]
    for number, profile in enumerate(profiles):
        if names.count(profile.column) > 1 or not str(profile.column).strip():
            profile.column = number + 1
    if not rows:
        raise DataError(f"{path}: it has no rows")
    return Looked(path, source, reasons, rows, read.unit, profiles)


def _of_table(
    path: Path, source: Source, form: str, named: Collection[Column | None], reasons: dict[str, str]
) -> Source:
    sample = [text for (_, text), _ in zip(lines(path, source.encoding), range(SAMPLE), strict=False)]
    if form == "csv" and source.delimiter is None:
        found = max(DELIMITERS, key=lambda delimiter: _agreement(sample, delimiter))
        source = dataclasses.replace(source, delimiter=None if found == "," else found)
    first, *rest = _sampled(sample, *source.dialect_of(path)) or [[]]
    source = dataclasses.replace(source, header=any(name.strip() in named for name in first) or _is_header(first, rest))
    reasons["header"] = "it reads as names" if source.header else "its first row reads as the others"
    return source


def _sampled(sample: Sequence[str], delimiter: str, quoted: bool) -> list[list[str]]:
    rows = []
    try:
        for row in csv.reader(sample, delimiter=delimiter, quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE):
            rows.append(row)  # noqa: PERF402 - those before an error count
    except csv.Error:
        pass
    return [row for row in rows if row]


def _agreement(sample: Sequence[str], delimiter: str) -> tuple[float, int]:
    """The share of rows that have as many fields as most, if those are several, and their
    number."""
    counts = Counter(map(len, _sampled(sample, delimiter, True)))
    if not counts:
        return 0.0, 0
    fields, rows = counts.most_common(1)[0]
    return (rows / counts.total() if fields > 1 else 0.0), fields


def _is_header(first: Sequence[str], rest: Sequence[Sequence[str]]) -> bool:
    """True for a first row that reads as names: none is a number, very long, or a value below."""
    names = [name.strip() for name in first]
    if any(_is_number(name) or len(name) > LONGEST_NAME for name in names):
        return False
    if any(name.lower() in TEXTS for name in names):  # where a class is called as its column, such as spam
        return True
    return not any(
        name and name == row[place].strip() for row in rest for place, name in enumerate(names) if place < len(row)
    )


def guess(looked: Looked, given: Mapping[str, Column | None], type: str | None) -> tuple[str, dict[str, Column]]:
    """The type of the task and the column of each of its parts, of which ``given`` has some
    (``text``, ``second``, ``label``). All that are given have a part in it.

    Raises :class:`UsageError` where nothing can be guessed, with the columns that there are.
    """
    asked = {name: _known(looked, name, column) for name, column in given.items() if column is not None}
    for found, columns in _candidates(looked, asked, type):
        chosen = {name: column for name, column in columns.items() if column is not None}
        if type in (None, found) and len(chosen) == len(columns) and {*asked.values()} <= {*chosen.values()}:
            return found, chosen
    wanted = f"of type {type} ({', '.join(registry.entry('problems', type).columns)}) " if type else ""
    with_these = f"with {', '.join(map(str, asked.values()))} " if asked else ""
    raise UsageError(
        f"{looked.path}: no columns of a task {wanted}{with_these}were found; name them by --text and --label"
        f" (and --second); {_columns(looked)}"
    )


def _known(looked: Looked, option: str, column: Column) -> Column:
    """A column that the user names, by its name if it has one; :class:`UsageError` for another."""
    names = [each.column for each in looked.columns]
    if column in names or str(column) in names:
        return column if column in names else str(column)
    if isinstance(column, int) and column <= len(names):
        return names[column - 1]
    advice = did_you_mean(str(column), map(str, names), _columns(looked))
    raise UsageError(f"--{option} {column}: no such column in {looked.path}; {advice}")


def _columns(looked: Looked) -> str:
    return f"its columns are {', '.join(str(each.column) for each in looked.columns):.300}"


Guesses = Iterator[tuple[str, dict[str, Column | None]]]
"""Types of tasks with their columns."""


def _candidates(looked: Looked, asked: Mapping[str, Column], type: str | None) -> Guesses:
    """Types of tasks with their columns, the most telling first, at last the ``type`` that the user
    names; None for a part that is not there."""
    if type == "multilabel":  # labels in one cell look like classes
        yield type, _label_sets(looked, asked)
    yield from _by_contents(looked, asked)
    yield from ((found, _by_name(looked, asked, found)) for found in ("translate", type) if found is not None)


def _by_name(looked: Looked, asked: Mapping[str, Column], type: str) -> dict[str, Column | None]:
    """The columns of a type, as the user or else their usual names say."""
    of_options = roles(type)
    names = dict.fromkeys((*of_options.values(), *registry.entry("problems", type).columns))
    given = {name: asked.get(option) for option, name in of_options.items()}
    return {name: given.get(name) or looked.first_of(NAMES.get(name, (name,))) for name in names}


def roles(type: str) -> dict[str, str]:
    """The columns of a type that ``--text``, ``--second`` and ``--label`` name: its first and
    second input, and its first answer."""
    problem = registry.entry("problems", type)
    inputs = [name for name in problem.columns if name in problem.inputs] or problem.inputs[:1]
    answers = dict(zip(("label",), problem.answer_columns, strict=False))
    return dict(zip(("text", "second"), inputs, strict=False)) | answers


def _by_contents(looked: Looked, asked: Mapping[str, Column]) -> Guesses:
    """Types of tasks with their columns by what stands in them."""
    if looked.source.format_of(looked.path) == "conll":
        last = looked.columns[-1].column
        yield "tag", {"text": asked.get("text", 1), "tags": asked.get("label", last if last != 1 else None)}
        return
    audio = next((each.column for each in looked.columns if each.recordings == each.filled > 0), None)
    if audio is not None:
        yield from _of_recordings(looked, asked, audio)
        return
    yield from _of_lists(looked, asked)
    if not asked:
        yield "extract", _by_name(looked, asked, "extract")
    yield from _of_texts(looked, asked)


def _of_recordings(looked: Looked, asked: Mapping[str, Column], audio: Column) -> Guesses:
    label = asked.get("label") or looked.first_of(LABELS, lambda each: each.classes >= 2)
    words = asked.get("text") or looked.first_of(TRANSCRIPTS)
    others = [each.column for each in looked.columns if each.column != audio]
    if label is None and words is None and len(others) == 1:
        label, words = (others[0], None) if looked.named(others[0]).classes >= 2 else (None, others[0])
    yield "classify", {"audio": audio, "label": label}
    yield "transcribe", {"audio": audio, "transcript": words}


def _of_lists(looked: Looked, asked: Mapping[str, Column]) -> Guesses:
    """Types of which a cell holds several words or labels."""
    lists = [each for each in looked.columns if each.lists == each.filled > 0]
    if not lists:
        return
    words = asked.get("text") or looked.first_of(TOKENS, lists.__contains__)
    tags = asked.get("label") or looked.first_of(TAGS, lambda each: each in lists and each.column != words)
    if {words, tags} <= {each.column for each in lists}:
        yield "tag", {"text": words, "tags": tags}
    sets = _label_sets(looked, asked)
    if any(each.column == sets["labels"] for each in lists):
        yield "multilabel", sets


def _of_texts(looked: Looked, asked: Mapping[str, Column]) -> Guesses:
    """Types of texts, or of pairs of them, with a label or a score."""
    one, two = _pair(looked, asked)
    taken = {one, two}
    label = asked.get("label") or looked.first_of(LABELS, lambda each: each.classes >= 2 and each.column not in taken)
    score = asked.get("label") or looked.first_of(SCORES, lambda each: each.is_number and each.column not in taken)
    if one is not None and two is not None:
        label = label or _fewest(looked, taken)
        yield from _of_pair(looked, one, two, label, score)
    usual = looked.first_of(NAMES["text"], lambda each: each.column != label and not each.is_number)
    text = asked.get("text") or usual or _longest(looked, label)
    label = label or _fewest(looked, {text})
    if label is not None and (looked.named(label).classes or asked.get("label")):
        if looked.named(label).is_number and not looked.named(label).classes:
            yield "regress", {"text": text, "score": label}
        yield "classify", {"text": text, "label": label}
    yield "regress", {"text": text, "score": score}


def _of_pair(looked: Looked, one: Column, two: Column, label: Column | None, score: Column | None) -> Guesses:
    pair: dict[str, Column | None] = {"first": one, "second": two}
    if label is not None:
        right_or_wrong = set(looked.named(label).values or ()) == {"0", "1"}
        if right_or_wrong and looked.named(one).each >= RANKED:
            yield "rank", {**pair, "label": label, "group": one}
        if looked.named(label).classes:
            yield "match", {**pair, "label": label}
    if score is not None and looked.named(score).is_number:
        yield "regress_pair", {**pair, "score": score}


def _label_sets(looked: Looked, asked: Mapping[str, Column]) -> dict[str, Column | None]:
    """The columns of texts with any number of labels each."""
    labels = asked.get("label") or looked.first_of(LABELS)
    text = asked.get("text") or looked.first_of(TEXTS, lambda each: each.column != labels) or _longest(looked, labels)
    return {"text": text, "labels": labels}


def _pair(looked: Looked, asked: Mapping[str, Column]) -> tuple[Column | None, Column | None]:
    if second := asked.get("second"):
        firsts = (*(one for one, _ in PAIRS), *TEXTS)
        first = asked.get("text") or looked.first_of(firsts, lambda each: each.column != second)
        return first or _longest(looked, second), second
    if "text" in asked:
        return None, None
    pairs = ((looked.first_of([one]), looked.first_of([two])) for one, two in PAIRS)
    return next((pair for pair in pairs if None not in pair), _counted(looked))


def _counted(looked: Looked) -> tuple[Column | None, Column | None]:
    """Two columns of texts that are one name counted from 1 to 2, or from a to b: of several such
    pairs the one with the longer texts."""
    texts = [each for each in looked.columns if each.filled and not each.is_number and each.classes == 0]
    found = [
        (one, two)
        for one in texts
        for two in texts
        for first, second in COUNTED
        if first in str(one.column).lower()
        and str(one.column).lower().replace(first, second) == str(two.column).lower()
    ]
    if not found:
        return None, None
    one, two = max(found, key=lambda pair: sum(each.characters / each.filled for each in pair))
    return one.column, two.column


def _longest(looked: Looked, label: Column | None) -> Column | None:
    others = [each for each in looked.columns if each.column != label and each.characters and not each.is_number]
    return max(others, key=lambda each: each.characters / each.filled).column if others else None


def _fewest(looked: Looked, texts: Collection[Column | None]) -> Column | None:
    """The only column beside the texts that may be a label, or that with the fewest values."""
    names = (*SPLITS, *IDS)
    others = [each for each in looked.columns if each.column not in texts and str(each.column).lower() not in names]
    classes = [each for each in others if each.classes >= 2]
    if classes:
        return min(classes, key=lambda each: each.classes).column
    return others[0].column if len(others) == 1 and others[0].filled else None


def split_column(looked: Looked) -> Column | None:
    """The column that names each row's split, if there is one."""
    return looked.first_of(
        SPLITS, lambda each: bool(each.values) and {v.lower() for v in each.values} <= set(SPLIT_NAMES)
    )


def id_column(looked: Looked, taken: Iterable[Column]) -> Column | None:
    """The column of ids, if there is one: each row has its own value there."""
    used = set(taken)

    def fits(each: Profile) -> bool:
        whole = not each.empty and not each.lists and each.column not in used
        return whole and each.each == 1.0 and (each.values is not None or _all_differ(looked, each.column))

    return looked.first_of(IDS, fits)


def _all_differ(looked: Looked, column: Column) -> bool:
    """True if no value of a column stands in two rows, also behind those that were counted."""
    rows = raw_tables.read(looked.path, looked.source, [column]).rows
    return len(np.unique(hashes(str(value).strip() for _, (value,) in rows))) == looked.rows


def list_in(folder: Path) -> Path:
    """The file in a folder that lists its recordings; :class:`UsageError` where there is none, or
    several."""
    files = sorted(path for path in folder.iterdir() if path.suffix.lower() in ENDINGS and path.is_file())
    if len(files) != 1:
        found = ", ".join(path.name for path in files[:5]) or "none"
        raise UsageError(
            f"{folder}: expected one list of its recordings ({', '.join(ENDINGS)}), found {found}; name the list itself"
        )
    return files[0]
