"""Tasks that have no rows in a tier: their cells are skipped, with the tier that they have."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness import registry
from harness.running import grid
from tests.support.fake_plugins import PLUGIN


@pytest.mark.parametrize(
    ("tier", "reason"),
    [
        ("mini", "toy_topic has no generated corpus; use --tier local"),
        ("hub", "toy_topic has no source on the hub; use --tier local"),
        ("local", None),
    ],
)
def test_a_task_without_rows_in_a_tier_is_skipped_with_the_tier_that_it_has(tmp_path: Path, monkeypatch, tier, reason):
    """The default tier is the first that the author of a task tries: it ended in a
    ``NotImplementedError`` without a text."""
    monkeypatch.setattr("harness.registry.finding._plugins", [])
    file = tmp_path / "toys.py"
    file.write_text(PLUGIN.replace("def mini(", "def other("))
    registry.add_plugin(file)
    architectures, tasks = registry.match("architectures", "toy_text"), registry.match("tasks", "toy_topic")
    [planned] = grid.plan(architectures, tasks, tier=tier, protocol="smoke", seeds=[0])
    assert planned.reason == reason
