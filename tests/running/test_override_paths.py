"""Hyperparameters are part of a cell's identity and stand in its record, which is shared."""

from __future__ import annotations

import pytest

from harness.errors import UsageError
from harness.running import overrides


@pytest.mark.parametrize("value", ["/abs/path", "'/abs/path'", "['a', '/abs/path']", "{'x': '/abs/path'}"])
def test_an_absolute_path_is_no_hyperparameter(value: str):
    """It names a folder of one machine, and the same cell elsewhere would have another key."""
    with pytest.raises(UsageError, match=r"-o toy\.file=.*absolute path"):
        overrides.parsed(overrides.parse_override(f"toy.file={value}"), None)


@pytest.mark.parametrize("value", ["models/base", "bert-base-uncased", "a/b c"])
def test_a_path_from_the_working_directory_is_one(value: str):
    assert overrides.parsed(overrides.parse_override(f"toy.file={value}"), "") == value
