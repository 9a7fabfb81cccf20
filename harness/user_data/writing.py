"""The TOML file of a data file: what was guessed, and what was counted, as comments."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from harness import registry
from harness.errors import DataError, UsageError
from harness.files import write_whole
from harness.task import Split
from harness.user_data import raw_tables
from harness.user_data.description import LONGEST_ID, SHARES, Column, Source, file_of, id_of
from harness.user_data.inspection import Looked, guess, id_column, list_in, look, split_column
from harness.user_data.splits import hashes
from harness.user_data.table import MAY_BE_MISSING
from harness.user_data.task import SPLITS, OwnTask, contents, values_of
from harness.user_data.text import lines as numbered_lines

SHOWN = 20
"""Classes that are listed."""
FEW_ROWS, FEW_OF_CLASS = 100, 5
"""Rows below which nothing that is measured says much."""
NOT_RUN = "it cannot be run so"
"""Beginning of the warning that a split cannot be read."""


def new_task(
    data: Path,
    *,
    columns: Mapping[str, Column | None],
    type: str | None,
    group: Column | None,
    others: Mapping[Split, Path],
    source: Source,
    out: Path | None,
) -> tuple[Path, list[str]]:
    """Write the TOML file of a data file (or of a folder of recordings with a list), and return it
    with warnings in words.

    ``others`` are files of further splits, ``columns`` those that the user names. Nothing is
    written, and :class:`DataError` raised, where a row cannot be read.
    """
    if not os.path.exists(data):  # noqa: PTH110 - pathlib raises for a name that is too long
        raise UsageError(f"{data}: no such file or folder")
    for path in (data, *others.values()):
        if not _is_utf8(str(path)):
            raise UsageError(f"{str(path)!r}: a name that is not UTF-8, which no TOML file can hold; rename it")
    looked = look(list_in(data) if data.is_dir() else data, source, {*columns.values(), group})
    file = out or file_of(data)
    if file.suffix != registry.DESCRIPTION:
        raise UsageError(f"--out {file}: expected a name that ends in {registry.DESCRIPTION}")
    if "," in str(file):
        raise UsageError(f"--out {file}: a comma parts the names of two tasks; choose a name without one")
    if os.path.exists(file):  # noqa: PTH110 - as above
        raise UsageError(f"{file} exists already; choose another name with --out")
    found, chosen = guess(looked, columns, type)
    taken = set(chosen.values())
    named = id_column(looked, taken)
    part = None if others or group is not None else split_column(looked)
    filled = _filled(looked, found, chosen, {group, part} - {None})
    lines = _described(looked, found, chosen, named, group, part, filled, others, file)
    warnings = _of_form(looked, chosen) + _of_cells(looked, chosen, filled)
    trial = file.with_name(f".{file.stem}.{os.getpid()}{registry.DESCRIPTION}")
    try:
        trial.parent.mkdir(parents=True, exist_ok=True)
        trial.write_text("\n".join(lines), encoding="utf-8")
        counted, more = _counted(trial)
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}; the description of a task must be written there") from error
    finally:
        with suppress(OSError):  # it has been told above
            trial.unlink(missing_ok=True)
    warnings += more
    comments = [f"{looked.path.name}: {looked.rows:,} rows. Written by `archbench new-task`: look at each line."]
    comments = list(map(_comment, [*comments, *(f"WARNING: {warning}" for warning in warnings), *counted]))
    write_whole(file, "\n".join([*comments, "", *lines, ""]).encode())
    return file, warnings


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _comment(text: str) -> str:
    return "# " + "".join(letter if letter.isprintable() else " " for letter in text)


def quoted(value: Any) -> str:
    """A value as TOML writes it; JSON's texts are TOML's but for one character."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _described(
    looked: Looked,
    type: str,
    columns: Mapping[str, Column],
    row_id: Column | None,
    group: Column | None,
    part: Column | None,
    filled: Collection[Column],
    others: Mapping[Split, Path],
    file: Path,
) -> list[str]:
    source, reasons = looked.source, looked.reasons
    problem = registry.entry("problems", type)
    lines = [f"type = {quoted(type)}  # a guess: {_why(looked, columns, problem)}"]
    metrics = problem.metrics
    if type == "tag" and not _marks_spans(looked, columns):
        metrics = ("token_accuracy",)
    lines += [f"metrics = {quoted(list(metrics))}", f"main_metric = {quoted(metrics[0])}"]
    lines += ['description = ""', "languages = []"]
    id = id_of(file)
    known = registry.entries("tasks").get(id)
    if known is not None and known.file != file.resolve():
        lines.append(f"id = {quoted(f'own_{id}'[:LONGEST_ID])}  # {id} is another task")
    lines += ["", "[data]"]
    places: dict[str, Path] = {"train" if others else "all": looked.path}
    places |= {str(split): path for split, path in others.items()}
    lines += [f"{split} = {quoted(path_from(path, file.parent))}" for split, path in places.items()]
    if source.format:
        lines.append(f"format = {quoted(source.format)}")
    if "encoding" in reasons:
        lines.append(f"encoding = {quoted(source.encoding)}  # {reasons['encoding']}")
    if source.delimiter:
        lines.append(f"delimiter = {quoted(source.delimiter)}")
    if source.quotes is not None:
        lines.append(f"quotes = {quoted(source.quotes)}")
    if "header" in reasons:
        lines.append(f"header = {quoted(source.header)}  # {reasons['header']}")
    if any(looked.named(column).empty for column in filled):
        lines.append("drop_missing = true  # rows with an empty cell are left out")
    lines += ["", "[columns]", *(f"{name} = {quoted(column)}" for name, column in columns.items())]
    if row_id is not None:
        lines.append(f"id = {quoted(row_id)}")
    lines += ["", "[splits]"]
    if part is not None:
        return [*lines, f"column = {quoted(part)}  # its values name the splits"]
    lines += [f"{split} = {share}  # held out" for split, share in SHARES.items() if split not in others]
    if group is not None:
        lines.append(f"group = {quoted(group)}  # rows of one value stay together")
    return [*lines, "seed = 0"]


def path_from(file: Path, folder: Path) -> str:
    """The path of a file from a folder, both where they really are: ``..`` of a linked folder is
    the one above its target. A link to a file keeps its own name."""
    return os.path.relpath(file.parent.resolve() / file.name, folder.resolve())


def _why(looked: Looked, columns: Mapping[str, Column], problem: registry.ProblemEntry) -> str:
    answer = next(iter(problem.answer_columns), problem.columns[0])
    profile = looked.named(columns[answer])
    kinds = f"{profile.classes} values" if profile.classes else "many values"
    return f"column {_shown(profile.column)} has {kinds}" if answer in ("label", "score") else f"it has {answer}"


def _shown(value: Any) -> str:
    """A value in a comment or a message: short, and on one line."""
    text = str(value)
    return quoted(text if len(text) <= 40 else f"{text[:37]}...")


def _marks_spans(looked: Looked, columns: Mapping[str, Column]) -> bool:
    """True if all tags are O, or B, I, E or S with a type."""
    rows = raw_tables.read(looked.path, looked.source, [columns["tags"]]).rows
    tags = {str(tag) for _, (found,) in rows for tag in (found if isinstance(found, list) else str(found).split())}
    return all(tag == "O" or tag[:2] in ("B-", "I-", "E-", "S-") for tag in tags)


def _of_form(looked: Looked, columns: Mapping[str, Column]) -> list[str]:
    """Warnings on what was guessed of a file's form and makes other texts, where it is wrong."""
    source, warnings = looked.source, []
    if "a guess" in looked.reasons.get("encoding", ""):
        read = numbered_lines(looked.path, source.encoding)
        number, example = next(((n, text) for n, text in read if not text.isascii()), (1, ""))
        warnings.append(
            f"encoding {source.encoding} is a guess; if line {number}, {_shown(example.strip())}, is not as it was"
            " written, say another one in [data], such as gbk, shift_jis or cp1251"
        )
    texts = [looked.named(column) for name, column in columns.items() if name in ("text", "first")]
    if "header" in looked.reasons and not source.header and texts:
        _, [first] = next(raw_tables.read(looked.path, source, [texts[0].column]).rows)
        if len(first.split()) == 1 and 2 * len(first) < texts[0].characters / texts[0].filled:
            warnings.append(
                f"the first row, with the text {_shown(first)}, counts as an example; if it has names, say"
                " header = true"
            )
    return warnings


def _filled(
    looked: Looked, type: str, columns: Mapping[str, Column], dividing: Collection[Column | None]
) -> list[Column]:
    """The columns in which an empty cell says nothing, so that its row is left out: those of the
    task, and those that divide its rows."""
    forms = registry.entry("problems", type).forms
    filled = {column for name, column in columns.items() if forms.get(name) not in MAY_BE_MISSING} | {*dividing}
    return [each.column for number, each in enumerate(looked.columns, 1) if {each.column, number} & filled]


def _of_cells(looked: Looked, columns: Mapping[str, Column], filled: Collection[Column]) -> list[str]:
    warnings = []
    for column in dict.fromkeys((*columns.values(), *filled)):
        profile = looked.named(column)
        if profile.empty and column in filled:
            first = f"the first in {looked.unit} {profile.first_empty}"
            warnings.append(f"{profile.empty:,} cells of column {_shown(column)} are empty, {first}; left out")
        spellings: dict[str, list[str]] = {}
        for value in (profile.values or ()) if profile.classes else ():
            spellings.setdefault(value.casefold(), []).append(value)
        warnings += [
            f"classes of column {_shown(column)} differ in capitals alone: {', '.join(map(_shown, values))}"
            for values in spellings.values()
            if len(values) > 1
        ]
    return warnings


def _counted(file: Path) -> tuple[list[str], list[str]]:
    """Counts of the splits of a description, and warnings, in words."""
    [entry] = registry.declared(file)
    task = registry.load(entry)(entry)
    rows = sum(len(task.read_file(place)) for place in task.description.places)
    tables: dict[Split, pa.Table] = {}
    warnings = []
    for split in SPLITS:
        try:
            tables[split] = task.table(split)
        except DataError as error:
            warnings.append(f"{NOT_RUN}: {error}")
    comments = ["rows: " + ", ".join(f"{split} {len(table):,}" for split, table in tables.items())]
    if rows < FEW_ROWS:
        warnings.append(f"{rows} rows are too few to tell systems apart; {FEW_ROWS} are a beginning")
    if tables:
        try:
            whole = pa.concat_tables(tables.values())
        except pa.ArrowInvalid as error:
            raise DataError(
                f"{', '.join(map(task.where, task.description.places))}: a column holds lists in one file and texts in"
                " another; write it the same way in all"
            ) from error
        comments += _of_classes(whole, warnings)
        comments += _of_lengths(task, whole)
        comments += _of_duplicates(task, whole, warnings)
    if len(tables) == len(SPLITS):
        warnings += [note.partition(": ")[2] for note in task.notes()]
    return comments, warnings


def _of_classes(table: pa.Table, warnings: list[str]) -> list[str]:
    names = [name for name in ("label", "labels", "tags") if name in table.column_names]
    comments = []
    for name in names:
        counts = Counter(values_of(table[name]))
        shares = [f"{_shown(value)} {count / counts.total():.1%}" for value, count in counts.most_common(SHOWN)]
        more = f" and {len(counts) - SHOWN} others" if len(counts) > SHOWN else ""
        comments.append(f"{len(counts)} values of {name}: {', '.join(shares)}{more}")
        rare = [value for value, count in counts.items() if count < FEW_OF_CLASS]
        if rare and len(counts) > 1:
            shown = ", ".join(map(_shown, rare[:3])) + (", ..." if len(rare) > 3 else "")
            warnings.append(f"{len(rare)} values of {name} stand in fewer than {FEW_OF_CLASS} rows: {shown}")
    if "score" in table.column_names:
        scores = table["score"].to_numpy()
        comments.append(f"score: from {scores.min():g} to {scores.max():g}, mean {scores.mean():.4g}")
    return comments


def _of_lengths(task: OwnTask, table: pa.Table) -> list[str]:
    comments = []
    for name in task.problem.texts:
        if name in table.column_names:
            middle, most, longest = np.percentile(_lengths(table[name]), (50, 95, 100))
            comments.append(
                f"words of {name}: half have at most {middle:.0f}, 95 % {most:.0f}, the longest {longest:.0f}"
            )
    return comments


def _lengths(column: pa.ChunkedArray) -> np.ndarray:
    """Words of each text (rows,), separated by blanks."""
    if pa.types.is_list(column.type):
        return pa.compute.list_value_length(column).to_numpy()
    return pa.compute.count_substring_regex(column, r"\S+").to_numpy()


def _of_duplicates(task: OwnTask, whole: pa.Table, warnings: list[str]) -> list[str]:
    inputs = task.inputs_in(whole)
    hashed = hashes(contents(whole, inputs))
    _, first, of_row = np.unique(hashed, return_index=True, return_inverse=True)
    repeated = len(hashed) - len(first)
    comments = [f"duplicates: {repeated:,} rows repeat the {' and '.join(inputs)} of another one"]
    answers = [name for name in ("label", "score") if name in whole.column_names and name not in inputs]
    if repeated and answers:
        said = hashes(contents(whole, answers))
        if contradicted := int((said != said[first][of_row]).sum()):
            warnings.append(f"{contradicted:,} duplicates have another {answers[0]} than their first")
    return comments
