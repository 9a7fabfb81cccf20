"""Metrics from a plugin file: known without its import, and scored like the harness's own."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import pytest

from harness import registry
from harness.errors import RegistryError, UnknownName
from harness.metrics import better, display_info, info, score
from harness.metrics.units import unit_scores

PLUGIN = '''
import torch

from harness.registry import register_metric


@register_metric("distance", name="mean distance", better="lower", unit="steps", digits=2, per_row=True)
def distance(prediction, row):
    """Steps between the number and the right one."""
    return abs(prediction - row["number"])


@register_metric("hit_rate", name="hits")
def hits(predictions, rows):
    return sum(p == row["number"] for p, row in zip(predictions, rows)) / len(rows)


@register_metric("broken", name="broken", per_row=True)
def broken(prediction, row):
    return prediction
'''
ROWS = [{"id": "a", "number": 3}, {"id": "b", "number": 5}]


@pytest.fixture(autouse=True)
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "distances.py"
    file.write_text(PLUGIN)
    monkeypatch.setattr("harness.registry.finding._plugins", [file])
    return file


def test_scores_come_from_the_plugins_functions():
    assert score(["distance", "hit_rate"], [4, 5], ROWS) == {"distance": 0.5, "hit_rate": 0.5}


def test_direction_unit_and_decimals_are_data():
    """A page that took every unknown metric for a fraction would rank the worst first."""
    facts = display_info("distance")
    assert (facts.label, facts.unit, facts.format(0.567), facts.lower_is_better) == (
        "mean distance",
        "steps",
        "0.57",
        True,
    )
    assert better("distance", 0.5, 0.6) and better("hit_rate", 0.6, 0.5)
    assert info("hit_rate").format(0.567) == "56.7"


def test_only_a_metric_of_single_rows_has_units():
    units = unit_scores("distance", [4, 5], ROWS)
    assert (units.units, units.numerators, units.denominators) == (["a", "b"], [1.0, 0.0], [1.0, 1.0])
    assert unit_scores("hit_rate", [4, 5], ROWS) is None


@pytest.mark.parametrize("value", [math.nan, math.inf, None, "many"])
def test_a_value_that_no_record_could_hold_names_metric_and_row(value):
    with pytest.raises(ValueError, match=r"metric broken \(.*distances.py\) gave .* for row b; a finite number"):
        score(["broken"], [1, value], ROWS)


def test_a_misspelt_metric_is_offered_the_plugins_too():
    with pytest.raises(UnknownName, match="'distanse'; did you mean distance"):
        score(["distanse"], [4, 5], ROWS)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('better="lower"', 'better="less"', r"distances.py:\d+: @register_metric: .*less"),
        ("digits=2", "digit=2", r"distances.py:\d+: @register_metric: .*digit"),
    ],
)
def test_a_wrong_registration_names_file_and_line(plugin, old, new, message):
    plugin.write_text(PLUGIN.replace(old, new))
    with pytest.raises(RegistryError, match=message):
        registry.entry("metrics", "distance")


def test_the_listing_imports_nothing(plugin):
    """Pages ask for a metric's direction, and must not wait for torch."""
    code = (
        "import sys; from harness import registry; from harness.metrics import better;"
        f"registry.add_plugin({str(plugin)!r}); assert better('distance', 0, 1); print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_what_was_parsed_is_what_is_registered():
    for id, entry in registry.entries("metrics").items():
        registry.load(entry)
        assert dict(entry.options) == registry.registered("metrics", id), id
