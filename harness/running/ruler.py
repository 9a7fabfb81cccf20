"""The ruler: the speed of this machine today, by which speeds of other machines and days can be
compared.

It is the speed of one frozen cell (:mod:`harness.running.ruler_cell`), which takes about three
seconds on one thread, in a process of its own.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import sys
import warnings
from pathlib import Path

from filelock import FileLock, Timeout

from harness.errors import ArchbenchError
from harness.files import parse_json, read_limited, write_whole
from harness.records import Cell
from harness.records.blocks import Ruler
from harness.records.provenance import environment, now
from harness.settings import CUSTOM

CELL = Path(__file__).with_name("ruler_cell.py")
PATIENCE = 120
"""Seconds after which a measurement is given up, and so is waiting for another's: a machine that
needs them is doing other work. Both together are less than a lease of a cell lasts, for the run
renews none meanwhile."""
FARTHEST = 2.0
"""Largest quotient of two rulers between which a speed is rescaled. On a machine that is still
faster or slower, another part of a training may be its slowest."""


class RulerError(ArchbenchError):
    """The ruler cannot be measured here."""


_given_up: set[tuple[Path, str]] = set()
"""Folders in which this program could not measure a ruler, each with the day."""


def wants_ruler(cell: Cell) -> bool:
    """True for a cell that others may be compared with, so that its record has a ruler."""
    return cell.tier != "mini" and cell.protocol != "smoke" and cell.budget["name"] != CUSTOM


def have_ruler(folder: Path) -> None:
    """Measure the ruler of this day, if that is to be done, before a cell starts that reads it: it
    would pay for the measurement with its own limits, and be lost where these are short.

    Where it cannot be measured the cells go without. That is said once, and not tried again on the
    same day.
    """
    attempt = folder, now()[:10]
    if attempt in _given_up:
        return
    try:
        ruler_of_today(folder)
    except (RulerError, OSError) as error:
        _given_up.add(attempt)
        warnings.warn(f"records will have no ruler: {error}", stacklevel=2)


def ruler_of_today(folder: Path) -> Ruler:
    """The ruler of this machine on this day (UTC): measured by whoever asks first, then kept in
    ``folder``. Raises :class:`RulerError`."""
    file = folder / f"{_machine()}.json"
    folder.mkdir(parents=True, exist_ok=True)
    try:
        # Two measurements at a time would slow each other down.
        with FileLock(file.with_suffix(".lock"), timeout=PATIENCE):
            ruler = known_ruler(folder)
            if ruler is None:
                ruler = measure()
                write_whole(file, json.dumps(ruler).encode())
    except Timeout as error:
        raise RulerError(f"the ruler cannot be measured: another run has done so for {PATIENCE} s") from error
    return ruler


def known_ruler(folder: Path) -> Ruler | None:
    """The ruler of this machine on this day if it has been measured."""
    ruler = _kept(folder / f"{_machine()}.json")
    return ruler if ruler is not None and ruler["measured"][:10] == now()[:10] else None


def measure() -> Ruler:
    """Times the frozen cell; :class:`RulerError` where it does not end well."""
    alone = os.environ | dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    try:
        done = subprocess.run(
            # -P: the modules beside the file are not to be found in place of others
            [sys.executable, "-P", str(CELL)],
            env=alone,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=True,
            start_new_session=True,  # Ctrl-C starts no more cells, and ends none that is about to
        )
        found = json.loads(done.stdout)
        ruler = Ruler(
            version=found["version"], examples_per_second=round(found["examples_per_second"], 1), measured=now()
        )
    except subprocess.CalledProcessError as error:
        reason = error.stderr.strip().splitlines()[-1:] or [str(error)]
        raise RulerError(f"the ruler cannot be measured: {reason[0]}") from error
    except subprocess.TimeoutExpired as error:
        raise RulerError(f"the ruler cannot be measured: it takes more than {PATIENCE} s here") from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RulerError(f"the ruler cannot be measured: {type(error).__name__}: {error}") from error
    return ruler


def rescaled(speed: float, under: Ruler | None, to: Ruler | None) -> float | None:
    """The speed of training or prediction on a CPU as it would be where the ruler is ``to``; None
    where the two cannot be compared: a ruler is missing, of another version, or more than twice as
    fast as the other."""
    if under is None or to is None or under["version"] != to["version"]:
        return None
    here, there = under["examples_per_second"], to["examples_per_second"]
    return speed * there / here if 0 < here <= FARTHEST * there and there <= FARTHEST * here else None


def _machine() -> str:
    """Digest of what a measurement depends on: machine, processor, versions, the frozen cell."""
    place = environment()
    parts = [platform.node(), place["cpu"], place["cores"], place["python"], place["versions"]["torch"]]
    return hashlib.sha256(json.dumps(parts).encode() + CELL.read_bytes()).hexdigest()[:16]


def _kept(file: Path) -> Ruler | None:
    """A ruler in a file; None where it is missing or damaged."""
    try:
        found = parse_json(read_limited(file))
        ruler = Ruler(
            version=int(found["version"]),
            examples_per_second=float(found["examples_per_second"]),
            measured=str(found["measured"]),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return ruler
