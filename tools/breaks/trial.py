"""One break tried in a process of its own, which is forked from one that has torch and its company
loaded already."""

from __future__ import annotations

import compileall
import importlib
import importlib.util
import json
import os
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tools.breaks.lists import Break
from tools.breaks.mutants import Mutant

HARNESS = ("harness.contract", "harness.running.session", "tests.support.models", "tests.support.oracles")
"""Modules of ours that most tests import: loaded once by each :class:`Slot`."""

LIMIT_S = 90.0
"""Seconds without a new test after which a trial has hung."""

MEMORY_BYTES = 8 << 30
"""Memory that a trial may take: a mistake may be a list that grows for ever."""

HEAVY = (
    "torch",
    "numpy",
    "scipy.optimize",
    "sklearn",
    "pandas",
    "datasets",
    "evaluate",
    "pytorch_lightning",
    "pytest",
    "hypothesis",
)
"""Modules of others that the tests import: loaded once, before the first fork."""


@dataclass
class Outcome:
    """The end of a trial.

    ``word`` is ``caught`` (the tests went red), ``survived`` (they stayed green), ``hung`` (a test
    did not end) or ``no model`` (the mistake leaves nothing that answers, so that any test would
    see it); of the tests alone, ``green`` or ``red``. ``detail`` is the first failure, ``test`` the
    one of the named tests in which it was, and ``longest`` the seconds of the longest single test.
    """

    word: str
    detail: str = ""
    test: str = ""
    longest: float = field(default=0.0, compare=False)
    seconds: float = field(default=0.0, compare=False)


def load_company() -> None:
    """Import what no break changes."""
    for name in HEAVY:
        importlib.import_module(name)
    with suppress(ImportError):
        importlib.import_module("transformers")
    torch = sys.modules["torch"]
    torch.set_num_threads(1)  # a pool of threads does not survive a fork


def copied(root: Path) -> Path:
    """A copy of the working tree in a new folder, compiled, without results."""
    copy = Path(tempfile.mkdtemp(prefix="archbench-breaks-"))
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root, check=True, capture_output=True,
    ).stdout.decode()  # fmt: skip
    for name in filter(None, listed.split("\0")):
        if not name.startswith("results/") and (root / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, copy / name)
    compileall.compile_dir(copy, quiet=2)
    return copy


class Slot:
    """A process with a copy of the tree of its own, in which trials run one after the other.

    It has the harness loaded, and each trial is a process forked from it.
    """

    def __init__(self, copy: Path):
        requests, self._requests = os.pipe()
        self._answers, answers = os.pipe()
        self.pid = os.fork()
        if not self.pid:
            os.close(self._requests)
            os.close(self._answers)
            _serve(copy, requests, answers)
        os.close(requests)
        os.close(answers)
        self._text = b""

    def start(self, one: Break | Mutant | None, tests: Sequence[str]) -> None:
        """Begin a trial; ``one`` is None to run the tests on the code as it is."""
        self.began = time.monotonic()
        told = one and {"kind": type(one).__name__, **asdict(one)}
        request = {"one": told, "tests": list(tests)}
        os.write(self._requests, json.dumps(request).encode() + b"\n")

    def ended(self) -> Outcome | None:
        """The outcome, or None while the trial goes on."""
        while select.select([self._answers], [], [], 0)[0]:
            part = os.read(self._answers, 1 << 16)
            self._text += part
            if self._text.endswith(b"\n"):
                outcome, self._text = Outcome(**json.loads(self._text)), b""
                outcome.seconds = time.monotonic() - self.began
                return outcome
            if not part:
                raise RuntimeError("a process of tools.breaks ended")
        return None

    def stop(self) -> None:
        """End the process and the trial in it."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def _serve(copy: Path, requests: int, answers: int) -> None:
    """Run trials until nobody asks for more, and end the process."""
    try:
        os.setpgid(0, 0)
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        os.chdir(copy)
        sys.dont_write_bytecode = True
        sys.path[:] = [str(copy), *(path for path in sys.path if path)]
        os.environ["PYTHONPATH"] = str(copy)
        with suppress(ImportError):  # a tree of another form is loaded by its tests
            for name in HARNESS:
                importlib.import_module(name)
        with os.fdopen(requests) as lines:
            for line in lines:
                request = json.loads(line)
                one = _read(request["one"]) if request["one"] else None
                os.write(answers, json.dumps(asdict(_trial(copy, one, request["tests"]))).encode() + b"\n")
    finally:
        os._exit(0)


def _read(told: dict[str, Any]) -> Break | Mutant:
    kind = {"Break": Break, "Mutant": Mutant}[told.pop("kind")]
    return kind(**{key: tuple(value) if isinstance(value, list) else value for key, value in told.items()})


def _trial(copy: Path, one: Break | Mutant | None, tests: Sequence[str]) -> Outcome:
    """A trial in a process forked from this one; one that hangs is ended."""
    answer, answers = os.pipe()
    with _applied(copy, one):
        pid = os.fork()
        if not pid:
            os.close(answer)
            _in_child(copy, one, tests, answers)
        os.close(answers)
        text, hung = b"", False
        while select.select([answer], [], [], LIMIT_S)[0]:
            if not (part := os.read(answer, 1 << 16)):
                break
            text += part
            if text.rpartition(b"\n")[2].startswith(b"{"):  # a process of a test may hold the pipe open
                break
        else:
            hung = True
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    os.close(answer)
    *begun, last = text.decode().split("\n")
    if last:
        return Outcome(**json.loads(last))
    detail = "a test did not end" if hung else "the process ended"
    return Outcome("hung", detail, begun[-1]) if begun else Outcome("no model", detail)


def _in_child(copy: Path, one: Break | Mutant | None, tests: Sequence[str], answers: int) -> None:
    """Run a trial, write which tests it begins and its outcome, and end the process.

    A line is written for each named test when it begins, and again for each test in it.
    """
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
    try:
        if one:
            _forget(copy, one)
        os.write(answers, json.dumps(asdict(_outcome(one, tests, answers))).encode())
    except BaseException as error:  # the parent is told instead
        os.write(answers, json.dumps({"word": "no model", "detail": repr(error)[:300]}).encode())
    finally:
        os._exit(0)


def _forget(copy: Path, one: Break | Mutant) -> None:
    """Have the tree's modules imported anew if the broken file is one of those that are loaded."""
    ours = {name: module.__file__ for name, module in sys.modules.items() if _is_below(copy, module)}
    if str(copy / one.file) in ours.values():
        for name in ours:
            del sys.modules[name]


def _is_below(copy: Path, module: Any) -> bool:
    file = getattr(module, "__file__", None)
    return bool(file) and file.startswith(f"{copy}{os.sep}")


class _applied:
    """The copy with the mistake in it, and as it was afterwards."""

    def __init__(self, copy: Path, one: Break | Mutant | None):
        self.file = copy / one.file if one else None
        self.one = one

    def __enter__(self) -> None:
        if self.one and self.file:
            self.source = self.file.read_text(encoding="utf-8")
            # A compiled file is taken for the source of equal size and second.
            Path(importlib.util.cache_from_source(str(self.file))).unlink(missing_ok=True)
            self.file.write_text(self.one.applied(self.source), encoding="utf-8")

    def __exit__(self, *_: object) -> None:
        if self.file:
            self.file.write_text(self.source, encoding="utf-8")


def _outcome(one: Break | Mutant | None, tests: Sequence[str], answers: int) -> Outcome:
    if one is not None and one.id:
        try:
            _answers(one.id)
        except Exception as error:  # whatever a wrong model may raise
            return Outcome("no model", "".join(traceback.format_exception_only(error)).strip()[:300])
    longest = 0.0
    for test in tests:
        failure, seconds = _first_failure(test, answers)
        longest = max(longest, seconds)
        if failure:
            return Outcome("caught" if one else "red", failure, test, longest)
    return Outcome("survived" if one else "green", longest=longest)


def _answers(id: str) -> None:
    """Build the architecture or input source at its tiny size and have it answer on a mini task; an
    error where it cannot, or where the loss is not finite."""
    from harness import contract, registry

    if id in registry.entries("inputs"):
        from harness.contract.inputs import case_of

        with case_of(registry.entry("inputs", id)) as case:
            return case.answers()
    next(contract.cases(registry.entry("architectures", id))).answers()


def _first_failure(test: str, answers: int) -> tuple[str, float]:
    """The first failure of a named test ("" when all of it pass), and the seconds of the longest
    single test."""
    import pytest

    class Watch:
        failure, longest = "", 0.0

        def pytest_runtest_logstart(self, nodeid: str) -> None:
            self.began = time.monotonic()
            os.write(answers, f"{test}\n".encode())

        def pytest_runtest_logfinish(self, nodeid: str) -> None:
            self.longest = max(self.longest, time.monotonic() - self.began)

        def pytest_runtest_logreport(self, report: Any) -> None:
            if report.failed and not self.failure:
                self.failure = f"{report.nodeid}: {str(report.longreprtext).splitlines()[-1:]}"

        def pytest_collectreport(self, report: Any) -> None:
            if report.failed and not self.failure:
                self.failure = f"{report.nodeid} cannot be collected"

    watch = Watch()
    os.write(answers, f"{test}\n".encode())
    # No other plugins, and no assertions that explain themselves: both take longer than most tests.
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    status = pytest.main(["-x", "-q", "--assert=plain", "-p", "no:cacheprovider", test], plugins=[watch])
    return watch.failure or ("" if status in (0, 5) else f"pytest ended with {int(status)}"), watch.longest
