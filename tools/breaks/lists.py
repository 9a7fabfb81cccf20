"""The lists of breaks, as ``tests/breaks/<id>.toml`` has them.

Each break is a table, whose header names the mistake. ``file`` and ``tests`` at the head of a list
are those of every break that names no file. Without ``file`` there it is the architecture's own,
and without ``tests`` they are those that mirror the file (:func:`mirror_of`).
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields
from pathlib import Path, PurePosixPath
from typing import Any

LISTS = Path("tests/breaks")


class BadList(Exception):
    """A list that cannot be used: the message names the file, the entry and what would be right."""


@dataclass(frozen=True)
class Break:
    """One deliberate mistake.

    ``id`` is the architecture that becomes a wrong one, ``file`` the file in which ``text`` stands
    once and is replaced by ``replacement``. ``what`` names the mistake in a few words. ``tests``
    are the test files that must go red; ``FILE::TEST`` names a single test.
    """

    id: str
    file: str
    text: str
    replacement: str
    what: str
    tests: tuple[str, ...]

    @property
    def name(self) -> str:
        """The architecture and the mistake."""
        return f"{self.id}: {self.what}"

    @property
    def test_files(self) -> tuple[str, ...]:
        """The files of the tests."""
        return tuple(dict.fromkeys(test.partition("::")[0] for test in self.tests))

    def applied(self, source: str) -> str:
        """The source text of the file with the mistake in it."""
        return source.replace(self.text, self.replacement)


def read(root: Path) -> list[Break]:
    """All breaks below ``root``, checked against the files that they change; :class:`BadList` lists
    every entry that is wrong."""
    breaks: list[Break] = []
    complaints: list[str] = []
    for path in sorted((root / LISTS).glob("*.toml")):
        try:
            head = tomllib.loads(path.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            complaints.append(f"{path.name}: {error}")
            continue
        entries = {what: head.pop(what) for what in [*head] if isinstance(head[what], dict)}
        for file in root.glob(f"architectures/*/{path.stem}.py"):
            head.setdefault("file", file.relative_to(root).as_posix())
        for what, own in entries.items():
            entry = _completed(path.stem, what, head, own)
            if found := _complaint(root, entry):
                complaints.append(f"{path.name}, {what!r}: {found}")
            else:
                breaks.append(Break(**entry))
    if complaints:
        raise BadList("\n".join(complaints))
    return breaks


def mirror_of(file: str) -> str:
    """The test file that mirrors a file: below ``tests/`` in a folder of the same name, for all
    families of architectures in one."""
    *folders, name = PurePosixPath(file).parts
    if folders[:1] == ["architectures"]:
        folders = ["blocks" if folders[1:2] == ["blocks"] else "architectures"]
    elif folders[:1] == ["harness"]:
        folders = folders[1:]
    return "/".join(["tests", *folders, f"test_{name}"])


def _completed(id: str, what: str, head: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """An entry with all that it leaves to the head of its list."""
    entry = {"id": id, "what": what} | (own if "file" in own else head | own)
    if "file" in entry:
        entry.setdefault("tests", [mirror_of(entry["file"])])
    return entry | {"tests": tuple(entry.get("tests", ()))}


def _complaint(root: Path, entry: dict[str, Any]) -> str | None:
    """The fault of an entry, or None."""
    wanted = {field.name for field in fields(Break)}
    if set(entry) != wanted:
        return f"has the keys {', '.join(sorted(entry))}; wanted: {', '.join(sorted(wanted))}"
    one = Break(**entry)
    if not (root / one.file).is_file():
        return f"there is no file {one.file!r}"
    source = (root / one.file).read_text(encoding="utf-8")
    if (count := source.count(one.text)) != 1:
        return f"its text stands {count} times in {one.file}, not once: {one.text.strip()[:80]!r}"
    if one.applied(source) == source:
        return "its replacement is the text itself"
    missing = [test for test in one.test_files if not (root / test).is_file()]
    if not one.tests or missing:
        return f"there is no test file {', '.join(missing)}" if missing else "names no tests"
    return None
