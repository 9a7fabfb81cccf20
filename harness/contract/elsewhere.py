"""A process in which texts have other hashes.

What depends on ``hash`` of a text, or on the order of a set of texts, is something else there. The
cells of a grid have one hash seed, and who asks a kept model has another.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from harness import registry
from harness.contract.base import Broken
from harness.contract.model_case import evidence
from harness.running.preflight import of_its_own
from harness.saved_models.model import TrainedModel, load
from harness.task import Row

OTHER_HASHES = "in another process, where texts have other hashes and sets another order,"
"""Beginning of what is told of a difference."""
BYTES = "base64"


def evidence_of(folder: str, rows: Sequence[Row]) -> list[Any]:
    """The evidence of a kept network on some rows, as lists of numbers."""
    kept = load(Path(folder))
    assert isinstance(kept, TrainedModel)
    return [numbers.tolist() for numbers in evidence(kept.model, kept.split(rows), np.arange(len(rows)))]


def answers_of(folder: str, rows: Sequence[Row]) -> list[Any]:
    """The answers of a kept system to some rows."""
    return [answer["prediction"] for answer in load(Path(folder)).answers(rows)]


def elsewhere(question: str, *given: Any) -> Any:
    """The result of a function of this module in such a process, as JSON holds it;
    :class:`Broken` where it fails."""
    command, variables = of_its_own(__name__)
    seed = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    done = subprocess.run(
        command,
        input=json.dumps([registry.plugin_files(), question, given], default=_plain).encode(),
        capture_output=True,
        env=variables | {"PYTHONHASHSEED": seed},
        check=False,
    )
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines() or [f"exit code {done.returncode}"]
        raise Broken(f"in another process: {said[-1]}")
    return json.loads(done.stdout)


def _plain(value: Any) -> Any:
    """Paths and recordings in the form in which JSON can hold them."""
    return str(value) if isinstance(value, Path) else {BYTES: base64.b64encode(value).decode()}


def _as_it_was(value: dict[str, Any]) -> Any:
    return base64.b64decode(value[BYTES]) if value.keys() == {BYTES} else value


def main() -> None:
    """Answer what standard input asks."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a plugin prints is no answer
    plugins, question, given = json.load(sys.stdin, object_hook=_as_it_was)
    for file in plugins:
        registry.add_plugin(file)
    with answers:
        json.dump(QUESTIONS[question](*given), answers)


QUESTIONS = {function.__name__: function for function in (evidence_of, answers_of)}

if __name__ == "__main__":
    main()
