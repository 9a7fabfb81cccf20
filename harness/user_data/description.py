"""The TOML file of a task: what it may say, checked, and the registry's entry of it."""

from __future__ import annotations

import codecs
import hashlib
import os
import re
import tomllib
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

from harness import registry
from harness.errors import RegistryError, did_you_mean
from harness.files import are_texts
from harness.settings import FULL, Budget
from harness.task import Split

Format = Literal["csv", "tsv", "jsonl", "parquet", "conll"]
ENDINGS: dict[str, Format] = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".conll": "conll",
    ".iob": "conll",
    ".bio": "conll",
}
DELIMITERS = {"csv": ",", "tsv": "\t"}
MISSING = ("", "NaN", "nan", "NULL", "<NA>", "#N/A")
"""Cells in which nothing stands, as other programs write them."""
SHARES: dict[Split, float] = {"dev": 0.1, "test": 0.2}
"""Shares of the rows that are held out where no file and no column gives a split."""
MOST_BYTES = 1 << 20
"""Bytes of a description; a larger file is something else."""
LONGEST_ID = 80
"""Characters of an id; the name of a record's folder has at most 100."""
STEPS = 1000
"""Optimiser steps that are made in any case: ten passes over a few hundred rows are too few to
learn from."""
ANSWER_START = "start"
"""The column, if there is one, with the offset of an answer in its passage."""

Column = str | int
"""Name of a column, or its number, from 1."""


@dataclass(frozen=True)
class Source:
    """The form of data files, and the cells in which nothing stands."""

    format: Format | None = None
    encoding: str = "utf-8"
    delimiter: str | None = None
    quotes: bool | None = None
    header: bool = True
    missing: tuple[str, ...] = MISSING
    drop_missing: bool = False

    def format_of(self, file: Path) -> Format:
        """The format of a file, by its ending where none is given; ``ValueError`` where that tells
        nothing."""
        found = self.format or ENDINGS.get(file.suffix.lower())
        if found is None:
            raise ValueError(
                f"the ending {file.suffix!r} tells no format; say format = one of {', '.join(get_args(Format))}"
            )
        return found

    def dialect_of(self, file: Path) -> tuple[str, bool]:
        """The delimiter of the fields of a CSV or TSV file, and True if they may be quoted."""
        form = self.format_of(file)
        return self.delimiter or DELIMITERS[form], form == "csv" if self.quotes is None else self.quotes


@dataclass(frozen=True)
class Manner:
    """The way in which a file is read: its ``format`` (a :data:`Format`, ``lines`` or ``wav``), how
    it is written, and the columns of it in the place of others. ``beside`` is true where it names
    recordings from its own folder on."""

    format: str
    written: Source = Source()
    names: dict[str, Column] = field(default_factory=dict)
    beside: bool = False


@dataclass(frozen=True)
class Description:
    """A task as a TOML file describes it.

    ``places`` are files (or, with ``hub``, splits there) by the split that they hold; ``all`` is
    divided. ``shares`` are those of the splits that are held out; ``group`` is the column whose
    values stay on one side, ``column`` the one that names each row's split. ``assigned`` is a CSV
    file with the columns ``row`` and ``split``: rows that it does not name are in none.
    """

    file: Path
    id: str
    type: str
    options: dict[str, Any]
    places: dict[str, str]
    hub: tuple[str, str, str | None] | None
    source: Source
    columns: dict[str, Column]
    shares: dict[Split, float]
    seed: int
    group: Column | None
    column: Column | None
    assigned: str | None = None

    def path(self, place: str) -> Path:
        """A data file: its name is read from the folder of the description."""
        return self.file.parent / self.places[place]

    @property
    def manners(self) -> dict[str, Manner]:
        """The manner in which its files are read, by their endings in small letters."""
        found = {}
        for file in map(Path, self.places.values() if self.hub is None else ()):
            form = self.source.format_of(file)
            quotes = self.source.dialect_of(file)[1] if form in DELIMITERS else None
            written = replace(self.source, quotes=quotes)
            found[file.suffix.lower()] = Manner(form, written, self.columns, beside=True)
        return found


class Section:
    """The keys of a table of a TOML file, taken one by one with the type that they must have."""

    def __init__(self, file: Path, name: str, values: Any):
        self.place = f"{file}: [{name}]" if name else str(file)
        if not isinstance(values, dict):
            raise RegistryError(f"{self.place} is {values!r:.60}, expected a table of keys")
        self.left, self.known = dict(values), list[str]()

    def take(self, key: str, fits: Callable[[Any], bool], wanted: str, default: Any = None) -> Any:
        """The value of a key, or the default where it is not there."""
        self.known.append(key)
        if key not in self.left:
            return default
        value = self.left.pop(key)
        if not fits(value):
            raise self.wrong(key, value, wanted)
        return value

    def text(self, key: str, default: Any = None) -> Any:
        """A string that is not empty."""
        return self.take(key, _is_name, "a string that is not empty", default)

    def texts(self, key: str, default: Any = None) -> Any:
        """A tuple of strings."""
        value = self.take(key, are_texts, 'a list of strings, such as ["a", "b"]')
        return default if value is None else tuple(value)

    def column(self, key: str) -> Column | None:
        """Name or number of a column."""
        return self.take(key, _is_column, "the name of a column, or its number from 1")

    def whole(self, key: str, least: int, default: int) -> int:
        """A whole number."""
        return self.take(
            key, lambda value: type(value) is int and least <= value < 1 << 31, f"a whole number from {least}", default
        )

    def wrong(self, key: str, value: Any, wanted: str) -> RegistryError:
        """The error for a value that a key cannot have."""
        return RegistryError(f"{self.place} {key} = {value!r:.80}: expected {wanted}")

    def end(self) -> None:
        """Raise :class:`RegistryError` for a key that nobody took."""
        for key in self.left:
            advice = did_you_mean(key, self.known, f"it takes {', '.join(self.known)}")
            raise RegistryError(f"{self.place} has a key {key!r:.60}, which says nothing here; {advice}")


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and value.strip() != ""


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_column(value: Any) -> bool:
    return _is_name(value) or (type(value) is int and 1 <= value < 1 << 31)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_share(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1


def parse(file: Path) -> dict[str, Any]:
    """Values of a TOML file; :class:`RegistryError` with the line for one that is none."""
    try:
        if file.stat().st_size > MOST_BYTES:
            raise RegistryError(f"{file}: more than {MOST_BYTES:,} bytes; this is no description of a task")
        return tomllib.loads(file.read_bytes().removeprefix(codecs.BOM_UTF8).decode())
    except (OSError, ValueError) as error:  # TOMLDecodeError is one, and says line and column
        raise RegistryError(f"{file}: {error}; expected TOML in UTF-8") from error
    except RecursionError as error:
        raise RegistryError(f"{file}: nested too deeply to be read") from error


def described(file: Path) -> Description:
    """The description that a TOML file holds; :class:`RegistryError` names the key that is wrong,
    what was found and what would be right."""
    content = Section(file, "", parse(file))
    tables = {name: content.left.pop(name, {}) for name in ("data", "columns", "splits", "sizes")}
    content.known += tables
    types = registry.entries("problems")
    type = content.take("type", lambda value: value in types, f"one of {', '.join(types)}")
    if type is None:
        raise RegistryError(f"{file}: no type; expected type = one of {', '.join(types)}")
    problem = types[type]
    id = content.text("id", id_of(file))
    if not re.fullmatch(rf"[a-z][a-z0-9_]{{0,{LONGEST_ID - 1}}}", id):
        expected = f"lower-case letters, digits and underscores, a letter first, {LONGEST_ID} at most"
        raise RegistryError(f"{file}: id = {id!r:.60}: expected {expected}")
    metrics = content.texts("metrics", problem.metrics)
    # A metric that no type has, such as a plugin's, says itself which columns it needs.
    elsewhere = {name for each in types.values() for name in each.metrics} - {*problem.metrics}
    if not metrics or not elsewhere.isdisjoint(metrics):
        raise content.wrong("metrics", list(metrics), f"some of {', '.join(problem.metrics)}, which {type} has")
    main = content.take("main_metric", lambda value: value in metrics, f"one of {', '.join(metrics)}", metrics[0])
    options = {
        "name": content.text("name", id),
        "type": type,
        "metrics": metrics,
        "main_metric": main,
        "sizes": _sizes(Section(file, "sizes", tables["sizes"])),
        "epochs": content.whole("epochs", 1, 10),
        "version": content.whole("version", 1, 1),
    }
    words = [content.take("description", _is_text, "a string", ""), ", ".join(content.texts("languages", ()))]
    content.end()
    data = Section(file, "data", tables["data"])
    places, hub, source = _data(data)
    splits = Section(file, "splits", tables["splits"])
    shares, seed, group, column, assigned = _splits(splits, places)
    columns = _columns(Section(file, "columns", tables["columns"]), problem)
    found = Description(file, id, type, options, places, hub, source, columns, shares, seed, group, column, assigned)
    options["protocol"] = _protocol(found, problem.cluster, *words)
    return found


def id_of(file: Path) -> str:
    """The id of a task by the name of its file. Letters that an id cannot have, and those beyond
    its length, are told apart by digits of a digest."""
    name = re.sub(r"[^a-z0-9]+", "_", file.stem.lower()).strip("_")
    name = name if name[:1].isalpha() else f"task_{name}".rstrip("_")
    if len(name) > LONGEST_ID or any(letter.isalnum() and not letter.isascii() for letter in file.stem):
        name = f"{name[: LONGEST_ID - 7]}_{hashlib.sha256(os.fsencode(file.stem)).hexdigest()[:6]}"
    return name


def file_of(data: Path) -> Path:
    """The description of a data file, or of a folder, in the current folder. A comma would part the
    names of two tasks."""
    stem = Path(os.path.abspath(data)).stem  # noqa: PTH100 - a link keeps its own name
    return Path(f"{stem.replace(',', '_')}{registry.DESCRIPTION}")


def _sizes(section: Section) -> dict[str, int]:
    found = {split: section.whole(split, 1, 0) for split in get_args(Split)}
    section.end()
    return {split: size for split, size in found.items() if size}


def _data(section: Section) -> tuple[dict[str, str], tuple[str, str, str | None] | None, Source]:
    places = {name: place for name in ("all", *get_args(Split)) if (place := section.text(name)) is not None}
    hub, revision, config = (section.text(key) for key in ("hub", "revision", "config"))
    if hub is not None and not re.fullmatch(r"[0-9a-f]{40}", revision or ""):
        raise section.wrong("revision", revision, "the 40 hexadecimal digits of a commit of it, so that data stay")
    if hub is None and (revision or config):
        raise RegistryError(f"{section.place} revision and config belong to hub = a data set of the Hugging Face hub")
    if ("all" in places) == ("train" in places) or ("all" in places and len(places) > 1):
        raise RegistryError(
            f"{section.place} has {', '.join(places) or 'no file'}; expected all = one file that is divided, or train ="
            " (and dev =, test =) a file for each"
        )
    formats = get_args(Format)
    source = Source(
        format=section.take("format", lambda value: value in formats, f"one of {', '.join(formats)}"),
        encoding=section.take("encoding", _is_encoding, "an encoding such as utf-8, utf-16, cp1252", "utf-8"),
        delimiter=section.take("delimiter", _is_delimiter, "one character"),
        quotes=section.take("quotes", _is_flag, "true or false"),
        header=section.take("header", _is_flag, "true or false", True),
        missing=section.texts("missing", MISSING),
        drop_missing=section.take("drop_missing", _is_flag, "true or false", False),
    )
    section.end()
    for place in places.values() if hub is None else ():
        try:
            source.format_of(Path(place))
        except ValueError as error:
            raise RegistryError(f"{section.place} {place!r:.80}: {error}") from error
        if "\0" in place:
            raise RegistryError(f"{section.place} {place!r:.80}: not the name of a file")
    return places, hub and (hub, revision, config), source


def _is_delimiter(value: Any) -> bool:
    return isinstance(value, str) and len(value) == 1 and value not in '"\r\n\0'


def _is_encoding(value: Any) -> bool:
    """True for Python's name of an encoding of texts that can be read piece by piece."""
    if not isinstance(value, str) or "\0" in value:
        return False
    try:
        return "a\n".encode(value) != b"" and codecs.getincrementaldecoder(value) is not None
    except (LookupError, UnicodeError, ValueError):
        return False


def _splits(
    section: Section, places: Collection[str]
) -> tuple[dict[Split, float], int, Column | None, Column | None, str | None]:
    column, group, assigned = section.column("column"), section.column("group"), section.text("assigned")
    given = {
        split: share
        for split in SHARES
        if (share := section.take(split, _is_share, "a share between 0 and 1, such as 0.1")) is not None
    }
    seed = section.whole("seed", 0, 0)
    section.end()
    named = {key: value for key, value in (("column", column), ("assigned", assigned)) if value is not None}
    for key, value in named.items():
        grouped = group is not None and column is not None
        if given or grouped or list(places) != ["all"] or len(named) > 1:
            without = "shares have no place" if key == "assigned" else "shares and group have no place"
            raise RegistryError(
                f"{section.place} {key} = {value!r:.60}: it says each row's split, so that [data] has all = one file,"
                f" and {without}, nor another such key"
            )
    for split in given:
        if split in places:
            raise RegistryError(f"{section.place} {split} = {given[split]}: [data] has a file of it already")
    shares = {} if named else {split: given.get(split, SHARES[split]) for split in SHARES}
    shares = {split: share for split, share in shares.items() if split not in places}
    if sum(shares.values()) >= 1:
        raise RegistryError(f"{section.place}: dev and test together are {sum(shares.values()):g}: nothing is left")
    return shares, seed, group, column, assigned


def _columns(section: Section, problem: registry.ProblemEntry) -> dict[str, Column]:
    notes = [name for name in ("id", problem.cluster) if name and name not in problem.columns]
    starts = [ANSWER_START] if "answers" in problem.forms.values() else []
    names = dict.fromkeys((*problem.columns, *problem.inputs, *notes, *starts))
    columns = {name: column for name in names if (column := section.column(name)) is not None}
    section.end()
    if missing := [name for name in problem.columns if name not in columns]:
        raise RegistryError(
            f"{section.place} lacks {', '.join(missing)}, of type {problem.id}: expected the name of a column of the"
            " data, or its number from 1"
        )
    if not any(name in columns for name in problem.inputs):
        raise RegistryError(f"{section.place} lacks {' or '.join(problem.inputs)}, which systems read")
    return columns


def _protocol(found: Description, cluster: str | None, description: str, languages: str) -> str:
    """Choices of the description in words: those of the user first. ``cluster`` is the column of
    dependent rows of its type."""
    words = [description and description.rstrip(". ") + ".", languages and f"Languages: {languages}."]
    if found.column is not None:
        words.append(f"Splits are those of the column {found.column}.")
    if found.assigned is not None:
        words.append(f"Splits are those of {found.assigned}.")
    group = found.group if found.group is not None else cluster if cluster in found.columns else None
    kept = "rows of equal inputs" if group is None else f"rows of one {group}"
    for split, share in found.shares.items():
        words.append(f"{split} is {share:.3g} of the rows, chosen by seed {found.seed}; {kept} stay together.")
    if found.source.drop_missing:
        words.append("Rows with an empty cell are left out.")
    return " ".join(filter(None, words)) or "Splits are as the files give them."


def entry(file: Path) -> tuple[str, dict[str, Any]]:
    """The id of the task that a TOML file describes, and the options of its entry in the
    registry."""
    found = described(file)
    reason = "ten passes, and enough steps for a few hundred rows"
    full = Budget(found.options["epochs"], min_steps=STEPS, reason=reason)
    return found.id, found.options | {"budgets": {FULL: full}}
