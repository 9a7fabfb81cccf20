"""Mutants: the breaks that the rules make."""

from __future__ import annotations

import ast
import hashlib
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path

from tools.breaks.choice import Choice
from tools.breaks.lists import BadList
from tools.breaks.rules import RULES
from tools.breaks.source import Source, Span

FOLDERS = ("architectures", "harness/layers", "harness/problems")
"""Folders whose files are mutated."""

EQUIVALENT = Path("tests/mutants/equivalent.toml")


@dataclass(frozen=True)
class Mutant:
    """A file with one mistake that a rule makes in one function.

    ``number`` counts the places of the rule in the function from 0, and ``again`` those among them
    with the same text. ``function`` is a qualified name, a class, or "" for the module itself.
    """

    file: str
    function: str
    rule: str
    number: int
    again: int
    place: Span
    text: str
    replacement: str
    tests: tuple[str, ...] = ()

    id = ""
    """No architecture has to answer before the tests run."""

    @property
    def name(self) -> str:
        """File, function and rule, the number of the place there, and the change."""
        old, new = (" ".join(text.split()) for text in (self.text, self.replacement))
        return f"{self.file}:{self.function} {self.rule} {self.number}: {old[:60]} -> {new[:60]}"

    @property
    def test_files(self) -> tuple[str, ...]:
        """The files of the tests."""
        return tuple(dict.fromkeys(test.partition("::")[0] for test in self.tests))

    @property
    def rank(self) -> str:
        """A number by lot, which neither lines nor other functions change."""
        told = (self.file, self.function, self.rule, self.text, self.replacement, str(self.again))
        return hashlib.sha256("\0".join(told).encode()).hexdigest()

    def applied(self, source: str) -> str:
        """The source text of the file with the mistake in it."""
        return Source(source).replaced(self.place, self.replacement)


def files(root: Path) -> list[str]:
    """The files that are mutated."""
    return sorted(
        path.relative_to(root).as_posix()
        for folder in FOLDERS
        for path in (root / folder).rglob("*.py")
        if path.name != "__init__.py"
    )


def made(root: Path, file: str, choice: Choice | None = None) -> list[Mutant]:
    """All mutants of a file that are Python, in the order of the text, with the tests that the
    choice has for them."""
    tests = {declares: choice.of(file, declares) if choice else () for declares in (False, True)}
    source = Source((root / file).read_text(encoding="utf-8"))
    found: list[Mutant] = []
    seen: set[tuple[Span, str]] = set()
    for function, scope in source.scopes().items():
        counts: Counter[str] = Counter()
        texts: Counter[tuple[str, str, str]] = Counter()
        for node in source.computing(scope):
            for name, rule in RULES.items():
                for place, replacement in rule(node, source):
                    if (place, replacement) in seen or not source.is_other_python(place, replacement):
                        continue
                    seen.add((place, replacement))
                    text = source.text(place)
                    again = texts[name, text, replacement]
                    number = counts[name]
                    declares = isinstance(scope, ast.ClassDef) or name == "default-changed"
                    found.append(Mutant(file, function, name, number, again, place, text, replacement, tests[declares]))
                    counts[name] += 1
                    texts[name, text, replacement] += 1
    return found


def drawn(mutants: Iterable[Mutant], each: int) -> list[Mutant]:
    """So many mutants of each file and rule, by their ranks."""
    groups: dict[tuple[str, str], list[Mutant]] = {}
    for one in mutants:
        groups.setdefault((one.file, one.rule), []).append(one)
    return [one for group in groups.values() for one in sorted(group, key=lambda one: one.rank)[:each]]


@dataclass(frozen=True)
class Equivalent:
    """Mutants that no test can tell from the code: those that a rule makes in a function within a
    piece of its text."""

    file: str
    function: str
    rule: str
    text: str
    reason: str

    def covers(self, one: Mutant, source: bytes) -> bool:
        """True for a mutant that the entry names, of a file with this text."""
        if (one.file, one.function, one.rule) != (self.file, self.function, self.rule):
            return False
        start, end = one.place
        text = self.text.encode()
        first = source.find(text, max(0, end - len(text)))
        return 0 <= first <= start


def equivalents(root: Path) -> list[Equivalent]:
    """The entries of :data:`EQUIVALENT`; :class:`BadList` for one with other keys or an empty
    reason."""
    if not (root / EQUIVALENT).is_file():
        return []
    entries = tomllib.loads((root / EQUIVALENT).read_text(encoding="utf-8")).get("equivalent", [])
    wanted = {field.name for field in fields(Equivalent)}
    wrong = [
        str(entry) for entry in entries if set(entry) != wanted or not all(entry[key] for key in wanted - {"function"})
    ]
    if wrong:
        raise BadList("\n".join(f"{EQUIVALENT}: wanted are {', '.join(sorted(wanted))}: {entry}" for entry in wrong))
    return [Equivalent(**entry) for entry in entries]


def dead(root: Path) -> list[Equivalent]:
    """Entries that name no mutant."""
    alive = set()
    entries = equivalents(root)
    for file in {one.file for one in entries if (root / one.file).is_file()}:
        source = (root / file).read_bytes()
        for mutant in made(root, file):
            alive |= {one for one in entries if one.covers(mutant, source)}
    return [one for one in entries if one not in alive]


def that_matter(mutants: Iterable[Mutant], root: Path) -> Iterator[Mutant]:
    """Mutants that no entry of :data:`EQUIVALENT` names."""
    entries = equivalents(root)
    sources = {file: (root / file).read_bytes() for file in {one.file for one in entries} if (root / file).is_file()}
    for one in mutants:
        if not any(entry.covers(one, sources[entry.file]) for entry in entries if entry.file == one.file):
            yield one
