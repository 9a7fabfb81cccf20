"""bAbI's text format: numbered lines, a question with its answer and the numbers of the facts that
support it behind tabs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from harness.errors import DataError
from harness.task import Row
from tasks.readers.archives import Archive


def member(path: Path, beginning: str, ending: str) -> list[str]:
    """Lines of the one file of a zip archive whose name begins and ends so; :class:`DataError` when
    there is none or several."""
    try:
        opened = Archive(path)
    except DataError as error:
        raise DataError(
            f"{path}: cannot be read ({error}); the file is damaged or not the published archive"
        ) from error
    with opened as archive:
        found = [name for name in archive.names if name.startswith(beginning) and name.endswith(ending)]
        if len(found) != 1:
            raise DataError(f"{path}: {len(found)} files are called {beginning}*{ending}, expected one")
        content = archive.read(found[0])
    try:
        return content.decode("utf-8").splitlines()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(f"{path}, {found[0]}, line {line}: byte 0x{content[error.start]:02x} is not UTF-8") from error


def stories(lines: Iterable[str], place: str, skill: str) -> Iterator[Row]:
    """One row per question, with the facts told before it in its story; number 1 begins a story.
    Columns as of type answer, and ``story``.

    Raises :class:`DataError` with the line for a line that is neither fact nor question.
    """
    facts: list[str] = []
    story = 0
    for line, text in enumerate(lines, 1):
        if not text.strip():
            continue
        number, _, rest = text.partition(" ")
        if not number.isdigit() or not rest:
            raise DataError(f"{place}, line {line}: {text[:40]!r} does not begin with a number and a blank")
        if number == "1":
            facts, story = [], story + 1
        question, tab, answered = rest.partition("\t")
        if not tab:
            facts.append(rest.strip())
            continue
        answer = answered.split("\t")[0].strip()
        if not answer or not facts:
            raise DataError(
                f"{place}, line {line}: a question without"
                f" {'facts before it' if answer else 'an answer behind its tab'}"
            )
        yield row(f"{skill}-{line}", facts, question, answer, skill) | {"story": f"{skill}-{story}"}


def row(id: str, facts: list[str], question: str, answer: str, skill: str) -> Row:
    """The row of one question."""
    return {"id": id, "facts": list(facts), "question": question.strip(), "answer": answer, "skill": skill}
