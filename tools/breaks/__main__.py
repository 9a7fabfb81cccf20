"""``python -m tools.breaks``: try the breaks, and fail where the tests stay green."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from fnmatch import fnmatchcase
from pathlib import Path

from tools.breaks.lists import LISTS, BadList, Break, read
from tools.breaks.trial import Outcome, Slot, copied, load_company

DRAWN = 60
"""Number of breaks that are tried for a change of shared code."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Try the chosen breaks; the exit code is 0 when each of them was caught."""
    parser = argparse.ArgumentParser(prog="python -m tools.breaks", description=__doc__.partition(": ")[2])
    parser.add_argument("ids", nargs="*", help="architectures, or shell wildcards (default: all)")
    parser.add_argument("--since", metavar="COMMIT", help="only what changed since then concerns")
    parser.add_argument("--minutes", type=float, help="stop after so long; the rest is left untried")
    parser.add_argument("--jobs", type=int, default=2, help="trials at a time (default: 2)")
    parser.add_argument("--kept", type=Path, default=Path("runs/breaks.json"), help="file of outcomes, to go on later")
    options = parser.parse_args(arguments)
    root = Path.cwd()
    try:
        breaks = chosen(read(root), options.ids)
    except BadList as error:
        print(error, file=sys.stderr)
        return 2
    if options.since:
        breaks = concerned(breaks, changed_since(root, options.since), _git(root, "rev-parse", "HEAD"))
    kept = Kept(options.kept, root)
    outcomes = {one: outcome for one in breaks if (outcome := kept.of(one))}
    left = [one for one in breaks if one not in outcomes]
    print(f"{len(breaks)} breaks of {len({one.id for one in breaks})} architectures, {len(outcomes)} tried before")
    ends = time.monotonic() + 60 * options.minutes if options.minutes else None
    for number, (one, outcome) in enumerate(tried(root, left, options.jobs, ends), start=1):
        outcomes[one] = outcome
        kept.add(one, outcome)
        print(f"[{number}/{len(left)}] {outcome.word:9} {one.name} ({outcome.seconds:.1f} s)", flush=True)
    return reported(breaks, outcomes)


def chosen(breaks: list[Break], patterns: Sequence[str]) -> list[Break]:
    """Breaks of the architectures that fit one of the wildcards; :class:`BadList` for a wildcard
    that fits none."""
    for pattern in patterns:
        if not any(fnmatchcase(one.id, pattern) for one in breaks):
            raise BadList(f"no list of breaks in {LISTS} is called {pattern}.toml")
    return [one for one in breaks if not patterns or any(fnmatchcase(one.id, pattern) for pattern in patterns)]


def changed_since(root: Path, commit: str) -> set[str] | None:
    """Files that differ from those of a commit; None where the repository does not have it."""
    if not _git(root, "rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}", check=False):
        return None
    return set(_git(root, "diff", "--name-only", commit).splitlines())


def _git(root: Path, *arguments: str, check: bool = True) -> str:
    return subprocess.run(["git", *arguments], cwd=root, check=check, capture_output=True, text=True).stdout.strip()


def concerned(breaks: list[Break], changed: set[str] | None, seed: str) -> list[Break]:
    """Breaks of every architecture whose file, tests or list changed; where shared code changed, or
    nobody knows, also :data:`DRAWN` of the others, drawn by the seed."""
    files = changed or set()
    own = {one.id for one in breaks if files & {one.file, *one.test_files, (LISTS / f"{one.id}.toml").as_posix()}}
    of_breaks = {file for one in breaks for file in (one.file, *one.test_files)}
    shared = [
        f for f in files - of_breaks if f.endswith(".py") and f.startswith(("harness/", "architectures/", "tasks/"))
    ]
    rest = [one for one in breaks if one.id not in own]
    drawn = random.Random(seed).sample(rest, min(DRAWN, len(rest))) if shared or changed is None else []
    return [one for one in breaks if one.id in own or one in drawn]


class Kept:
    """Outcomes of earlier calls, which count as long as the code and the tests are the same."""

    def __init__(self, file: Path, root: Path):
        self.file, self.root = file, root
        self.code = _digest(
            path
            for folder in ("harness", "architectures", "tasks", "tests/support")
            for path in _sources(root / folder)
        )
        self.outcomes: dict[str, dict[str, object]] = json.loads(file.read_text()) if file.is_file() else {}

    def of(self, one: Break) -> Outcome | None:
        """The outcome of an earlier trial that caught the break."""
        found = self.outcomes.get(self._key(one))
        return Outcome(**found) if found else None  # type: ignore[arg-type]

    def add(self, one: Break, outcome: Outcome) -> None:
        """Keep the outcome of a break that was caught: the others are tried again."""
        if outcome.word == "caught":
            self.outcomes[self._key(one)] = asdict(outcome)
            self.file.parent.mkdir(parents=True, exist_ok=True)
            partial = self.file.with_suffix(".partial")
            partial.write_text(json.dumps(self.outcomes, indent=1))
            partial.replace(self.file)

    def _key(self, one: Break) -> str:
        tests = _digest(self.root / file for file in one.test_files)
        return hashlib.sha256(json.dumps([asdict(one), self.code, tests]).encode()).hexdigest()


def _sources(folder: Path) -> Iterator[Path]:
    yield from sorted(path for path in folder.rglob("*") if path.suffix in (".py", ".csv"))


def _digest(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()


def tried(root: Path, breaks: list[Break], jobs: int, ends: float | None) -> Iterator[tuple[Break, Outcome]]:
    """The breaks and what became of them, in the order they ended.

    Tests that are red without any break see nothing: theirs are ``no tests``.
    """
    if not breaks:
        return
    load_company()
    copies = [copied(root) for _ in range(jobs)]
    slots = [Slot(copy) for copy in copies]
    free, running = list(slots), list[tuple[Slot, Break, bool]]()
    sound: dict[tuple[str, ...], Outcome] = {}
    waiting = list(breaks)
    try:
        while waiting or running:
            over = ends is not None and time.monotonic() > ends
            while waiting and free and not over:
                one = waiting.pop(0)
                alone = one.tests not in sound
                running.append((free.pop(), one, alone))
                running[-1][0].start(None if alone else one, one.tests)
            if over and not running:
                return
            for item in list(running):
                slot, one, alone = item
                if (outcome := slot.ended()) is None:
                    continue
                running.remove(item)
                free.append(slot)
                if alone:
                    sound[one.tests] = outcome
                    waiting.insert(0, one)
                else:
                    yield one, outcome
            for one in [one for one in waiting if sound.get(one.tests, Outcome("green")).word != "green"]:
                waiting.remove(one)
                yield one, Outcome("no tests", f"red without a break: {sound[one.tests].detail}")
            time.sleep(0.01)
    finally:
        for slot in slots:
            slot.stop()
        for copy in copies:
            shutil.rmtree(copy, ignore_errors=True)


def reported(breaks: list[Break], outcomes: dict[Break, Outcome]) -> int:
    """Print what was not caught; the exit code."""
    words = Counter(outcome.word for outcome in outcomes.values())
    bad = [(one, outcome) for one, outcome in outcomes.items() if outcome.word != "caught"]
    for one, outcome in bad:
        print(f"{outcome.word}: {one.name} [{one.file}; {', '.join(one.tests)}] {outcome.detail}")
    untried = len(breaks) - len(outcomes)
    print(f"{words['caught']} of {len(breaks)} caught" + (f", {untried} not tried: no time left" if untried else ""))
    return 1 if bad else 0


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
