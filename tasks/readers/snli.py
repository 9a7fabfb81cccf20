"""SNLI's official JSON lines (Bowman et al. 2015): one sentence pair a line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from harness.errors import DataError
from tasks.readers.lines import json_value, lines, text


def pairs(path: Path) -> Iterator[tuple[int, str, str, str]]:
    """Line number, premise, hypothesis and gold label ("-" where the annotators did not agree) of
    each pair.

    Raises :class:`DataError` for a line that is not a JSON object with these fields.
    """
    for number, line in lines(path):
        try:
            pair = json_value(line, f"{path}, line {number}")
            premise, hypothesis, label = (text(pair[name], name) for name in ("sentence1", "sentence2", "gold_label"))
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            expected = "a JSON object with sentence1, sentence2 and gold_label"
            raise DataError(f"{path}, line {number}: {type(error).__name__} {error}; expected {expected}") from error
        yield number, premise, hypothesis, label
