"""SNLI's official JSON lines (Bowman et al. 2015): one sentence pair a line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tasks.readers.lines import json_texts


def pairs(path: Path) -> Iterator[tuple[int, str, str, str]]:
    """Line number, premise, hypothesis and gold label ("-" where the annotators did not agree) of
    each pair.

    Raises :class:`~harness.errors.DataError` for a line that is not a JSON object with these
    fields.
    """
    for number, (premise, hypothesis, label) in json_texts(path, "sentence1", "sentence2", "gold_label"):
        yield number, premise, hypothesis, label
