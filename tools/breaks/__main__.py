"""``python -m tools.breaks``: try the breaks, and fail where the tests stay green."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from fnmatch import fnmatchcase
from pathlib import Path

from scipy.stats import binom

from tools.breaks import mutants
from tools.breaks.changes import changed_since, git
from tools.breaks.choice import Choice
from tools.breaks.lists import LISTS, BadList, Break, read
from tools.breaks.mutants import Mutant
from tools.breaks.source import Source
from tools.breaks.trial import LIMIT_S, Outcome, Slot, copied, load_company

DRAWN = 60
"""Number of breaks that are tried for a change of shared code."""

EACH = 1
"""Number of mutants that are tried of each file and rule."""

ENOUGH = 0.97
"""Share of all mutants that the tests must catch."""

RARE = 0.001
"""Probability below which so many missed mutants are no accident of the draw."""

One = Break | Mutant


def main(arguments: Sequence[str] | None = None) -> int:
    """Try the chosen breaks; the exit code is 0 when each of them was caught."""
    parser = argparse.ArgumentParser(prog="python -m tools.breaks", description=__doc__.partition(": ")[2])
    parser.add_argument("names", nargs="*", help="architectures or files, or shell wildcards (default: all)")
    parser.add_argument("--since", metavar="COMMIT", help="only what changed since then concerns")
    parser.add_argument("--each", type=int, default=EACH, help="mutants of each file and rule (default: %(default)s)")
    parser.add_argument("--at-most", type=int, help="so many of all these, drawn by lot")
    parser.add_argument("--minutes", type=float, help="stop after so long; the rest is left untried")
    parser.add_argument("--jobs", type=int, default=2, help="trials at a time (default: 2)")
    parser.add_argument("--kept", type=Path, default=Path("runs/breaks.jsonl"), help="file of outcomes, to go on later")
    options = parser.parse_args(arguments)
    root = Path.cwd()
    try:
        breaks = chosen(root, options)
    except BadList as error:
        print(error, file=sys.stderr)
        return 2
    kept = Kept(options.kept, root)
    outcomes = {one: outcome for one in breaks if (outcome := kept.of(one))}
    left = [one for one in breaks if one not in outcomes]
    made = sum(isinstance(one, Mutant) for one in breaks)
    print(f"{len(breaks) - made} breaks of lists, {made} mutants; {len(outcomes)} of them tried before", flush=True)
    ends = time.monotonic() + 60 * options.minutes if options.minutes else None
    for number, (one, outcome) in enumerate(tried(root, left, options.jobs, ends), start=1):
        outcomes[one] = outcome
        kept.add(one, outcome)
        print(f"[{number}/{len(left)}] {outcome.word:9} {one.name} ({outcome.seconds:.1f} s)", flush=True)
    return reported(breaks, outcomes, lists_alone=bool(options.since))


def chosen(root: Path, options: argparse.Namespace) -> list[One]:
    """The breaks and mutants that the arguments ask for; those that no list of equivalent ones
    names. :class:`BadList` for a wildcard that fits none."""
    choice = Choice(root)
    lists = named(read(root), options.names)
    files = [file for file in mutants.files(root) if is_named(file, choice.ids(file), options.names)]
    for name in options.names:
        if not (named(lists, [name]) or any(is_named(file, choice.ids(file), [name]) for file in files)):
            raise BadList(f"no list of breaks in {LISTS}, no architecture and no file is called {name}")
    if options.since:
        changed, seed = changed_since(root, options.since), git(root, "rev-parse", "HEAD")
        made = [*of_changes(root, files, options.since, changed or set(), choice)]
        breaks: list[One] = [*concerned(lists, changed, seed), *mutants.that_matter(made, root)]
        return sorted(breaks, key=lambda one: _lot(one, seed))
    made = [one for file in files for one in mutants.made(root, file, choice)]
    breaks = [*lists, *mutants.drawn(mutants.that_matter(made, root), options.each)]
    chance = set(sorted(breaks, key=_lot)[: options.at_most])
    return [one for one in breaks if one in chance]


def _lot(one: One, seed: str = "") -> str:
    """A number by lot, which the name of a break has for ever."""
    return hashlib.sha256((seed + one.name).encode()).hexdigest()


def named(breaks: list[Break], patterns: Sequence[str]) -> list[Break]:
    """Breaks of the architectures or files that fit one of the wildcards."""
    return [one for one in breaks if is_named(one.file, [one.id], patterns)]


def is_named(file: str, ids: Iterable[str], patterns: Sequence[str]) -> bool:
    """True where one of the wildcards fits the file or an id, and where there are none."""
    names = [file, *ids]
    return not patterns or any(fnmatchcase(name, pattern) for name in names for pattern in patterns)


def concerned(breaks: list[Break], changed: set[str] | None, seed: str) -> list[Break]:
    """Breaks of every architecture whose file, tests or list changed; where shared code changed, or
    nobody knows, also :data:`DRAWN` of the others, drawn by the seed."""
    files = changed or set()
    own = {one.id for one in breaks if files & {one.file, *one.test_files, (LISTS / f"{one.id}.toml").as_posix()}}
    of_breaks = {file for one in breaks for file in (one.file, *one.test_files)}
    shared = changed is None or any(is_shared(file) for file in files - of_breaks)
    rest = [one for one in breaks if one.id not in own]
    drawn = random.Random(seed).sample(rest, min(DRAWN, len(rest))) if shared else []
    return [one for one in breaks if one.id in own or one in drawn]


def is_shared(file: str) -> bool:
    """True for code that may make any architecture wrong."""
    return file.endswith(".py") and file.startswith(("harness/", "architectures/blocks/", "tasks/"))


def of_changes(root: Path, files: list[str], commit: str, changed: set[str], choice: Choice) -> Iterator[Mutant]:
    """All mutants of the functions that a change touches, and :data:`EACH` of each rule in files
    whose own test it touches."""
    for file in files:
        if file in changed:
            before = git(root, "show", f"{commit}:{file}", check=False)
            functions = changed_functions(before, (root / file).read_text(encoding="utf-8"))
            yield from (one for one in mutants.made(root, file, choice) if one.function in functions)
        elif {*choice.of(file)[:1]} & changed:
            yield from mutants.drawn(mutants.made(root, file, choice), EACH)


def changed_functions(before: str, after: str) -> set[str]:
    """The functions, classes or module ("") that compute something else than before."""
    old = Source(before).digests()
    return {name for name, digest in Source(after).digests().items() if old.get(name) != digest}


class Kept:
    """Outcomes of earlier calls, which count as long as the code and the tests are the same."""

    def __init__(self, file: Path, root: Path):
        self.file, self.root = file, root
        self.code = _digest(
            path
            for folder in ("harness", "architectures", "tasks", "tests/support")
            for path in _sources(root / folder)
        )
        self._tests: dict[tuple[str, ...], str] = {}
        self.outcomes: dict[str, Outcome] = {}
        for line in file.read_text().splitlines() if file.is_file() else ():
            try:
                key, outcome = json.loads(line)
            except ValueError:  # a line that was being written when the machine stopped
                continue
            self.outcomes[key] = Outcome(**outcome)

    def of(self, one: One) -> Outcome | None:
        """The outcome of an earlier trial that caught the break."""
        return self.outcomes.get(self._key(one))

    def add(self, one: One, outcome: Outcome) -> None:
        """Keep the outcome of a break that was caught: the others are tried again."""
        if outcome.word == "caught":
            self.outcomes[self._key(one)] = outcome
            self.file.parent.mkdir(parents=True, exist_ok=True)
            with self.file.open("a") as lines:
                lines.write(json.dumps([self._key(one), asdict(outcome)]) + "\n")

    def _key(self, one: One) -> str:
        tests = self._tests.setdefault(one.test_files, _digest(self.root / file for file in one.test_files))
        return hashlib.sha256(json.dumps([asdict(one), self.code, tests]).encode()).hexdigest()


def _sources(folder: Path) -> Iterator[Path]:
    yield from sorted(path for path in folder.rglob("*") if path.suffix in (".py", ".csv"))


def _digest(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()


def tried(root: Path, breaks: Sequence[One], jobs: int, ends: float | None) -> Iterator[tuple[One, Outcome]]:
    """The breaks and what became of them, in the order they ended.

    The tests up to the first one that saw a break are run on the code as it is, too: where they are
    red there, or one takes nearly as long as what is called hung, the outcome is ``no tests``.
    """
    if not breaks:
        return
    load_company()
    copies = [copied(root) for _ in range(jobs)]
    slots = [Slot(copy) for copy in copies]
    free, running = list(slots), list[tuple[Slot, One | None, tuple[str, ...]]]()
    sound: dict[tuple[str, ...], Outcome | None] = {}
    waiting = list(breaks)
    doubtful = list[tuple[One, Outcome]]()
    try:
        while waiting or running or doubtful:
            over = ends is not None and time.monotonic() > ends
            while free and not over:
                unknown = [_until(*item) for item in doubtful if _until(*item) not in sound]
                if not unknown and not waiting:
                    break
                one = None if unknown else waiting.pop(0)
                tests = one.tests if one else unknown[0]
                if one is None:
                    sound[tests] = None  # under way
                slot = free.pop()
                slot.start(one, tests)
                running.append((slot, one, tests))
            for item in list(running):
                slot, one, tests = item
                if (outcome := slot.ended()) is None:
                    continue
                running.remove(item)
                free.append(slot)
                if one is None:
                    sound[tests] = outcome
                elif outcome.word in ("caught", "hung"):
                    doubtful.append((one, outcome))
                else:
                    yield one, outcome
            for seen, outcome in list(doubtful):
                if found := sound.get(_until(seen, outcome)):
                    doubtful.remove((seen, outcome))
                    yield seen, _judged(outcome, found)
            if over and not running:
                return
            time.sleep(0.01)
    finally:
        for slot in slots:
            slot.stop()
        for copy in copies:
            shutil.rmtree(copy, ignore_errors=True)


def _until(one: One, outcome: Outcome) -> tuple[str, ...]:
    """The tests up to the one that saw the break."""
    return one.tests[: one.tests.index(outcome.test) + 1]


def _judged(outcome: Outcome, sound: Outcome) -> Outcome:
    """The outcome of a break, by that of the same tests on the code as it is."""
    if sound.word != "green":
        return Outcome("no tests", f"red without a break: {sound.detail}", seconds=outcome.seconds)
    if outcome.word == "hung" and sound.longest > LIMIT_S / 3:
        return Outcome("no tests", f"a test takes {sound.longest:.0f} s without a break", seconds=outcome.seconds)
    return replace(outcome, word="caught")


def reported(breaks: Sequence[One], outcomes: dict[One, Outcome], lists_alone: bool = False) -> int:
    """Print what was not caught; the exit code, which is 1 where a break of a list was not, or so
    many mutants that it is no accident: by :data:`RARE`, if :data:`ENOUGH` of all are caught.

    With ``lists_alone`` mutants are told and decide nothing: those of one change are few, and the
    gaps that they show were there before it.
    """
    words = Counter(outcome.word for outcome in outcomes.values())
    bad = [(one, outcome) for one, outcome in outcomes.items() if outcome.word != "caught"]
    for one, outcome in bad:
        print(f"{outcome.word}: {one.name} [{one.file}; {', '.join(one.tests)}] {outcome.detail}")
    untried = len(breaks) - len(outcomes)
    print(f"{words['caught']} of {len(breaks)} caught" + (f", {untried} not tried: no time left" if untried else ""))
    made = [outcome for one, outcome in outcomes.items() if isinstance(one, Mutant)]
    missed = sum(outcome.word != "caught" for outcome in made)
    too_many = binom.sf(missed - 1, len(made), 1 - ENOUGH) < RARE
    return 1 if (too_many and not lists_alone) or any(isinstance(one, Break) for one, _ in bad) else 0


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
