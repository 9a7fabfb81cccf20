"""Systems that read texts without labels answer what the labels alone do not tell.

One that ignores these texts, learns its own guesses for noise, or makes all of them one class would
still pass its other tests: it computes what its paper says and learns from labels.
"""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

import pytest

from harness.records import Store
from tests.support import spreading_labels
from tools.commands import call

GAIN = 0.2
"""How much better than its supervised part a system must be, of which half the answers are right by
chance."""


@pytest.mark.minutes
@pytest.mark.parametrize(
    ("regime", "wrapped"),
    [
        ("vat", "small_lstm"),
        ("uda", "small_bilstm"),
        ("mixed_objective", "small_bilstm"),
        ("snorkel_metal", "small_bilstm"),
        ("mixtext", "small_bert"),
    ],
)
def test_texts_without_labels_tell_what_32_labels_do_not(regime: str, wrapped: str, tmp_path: Path):
    """Mean over three seeds."""
    done = call(
        Path.cwd(), "run", "--plugin", str(Path(spreading_labels.__file__)), "-a", f"{regime},{wrapped}",
        "-t", "spreading_labels", "--labels", str(spreading_labels.LABELS), "--seeds", "0,1,2",
        "--protocol", "equal", "--budget", "full", "-o", f"{regime}.wraps={wrapped}",
        "--mlflow", "none", "--workers", "1", "--results", str(tmp_path),
        *(["--parent", "weights=none"] if wrapped == "small_bert" else []),
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, list[float]] = {}
    for record in Store(tmp_path).all():
        found.setdefault(record.architecture, []).append(record.scores["test"]["accuracy"])
    assert len(found[regime]) == len(found[wrapped]) == 3
    assert fmean(found[regime]) > max(0.5, fmean(found[wrapped])) + GAIN, found
