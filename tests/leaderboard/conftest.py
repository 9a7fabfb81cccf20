"""A folder of results for the tests of pages."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.records import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty store of records in the folder of the test."""
    (tmp_path / "records").mkdir()
    return Store(tmp_path)
