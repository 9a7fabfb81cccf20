"""Numbers as pages write them: who reads a wrong unit is wrong by a factor of a thousand."""

from __future__ import annotations

import pytest

from harness.leaderboard.tables.formatting import format_magnitude, format_p


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (999, "999"),
        (1000, "1 k"),
        (123_456, "123 k"),
        (999_499, "999 k"),
        (999_500, "1 M"),
        (999_600_000, "1 G"),
        (1.5e15, "1.5 P"),
    ],
)
def test_a_magnitude_has_the_unit_of_its_rounded_value(value, shown):
    """999,600 was 1e+03 k."""
    assert format_magnitude(value) == shown


def test_a_small_p_is_never_shown_as_a_larger_one():
    assert [*map(format_p, (0.0, 0.00099, 0.001, 0.0123, 1.0))] == [
        "p < 0.001",
        "p < 0.001",
        "p 0.001",
        "p 0.012",
        "p 1",
    ]
