"""Official test of a task, and the records that were not scored on it."""

from __future__ import annotations

from harness.records.record import Record

OTHER_TEST_SIZE = "‡"
"""Mark of a score that is not on the official test."""


def other_test_size(record: Record, declared: object) -> str:
    """A note on a record that was not scored on the official test, of which its task declares the
    size; empty for a generated corpus, whose sizes are its own."""
    count, official = record.counts.get("test"), record.official_test_examples
    if record.tier == "mini" or not isinstance(declared, int):
        return ""
    if count is not None and count != declared:
        return f"scored on {count:,} test examples; the task declares {declared:,}"
    if official == 0:
        return "scored on the task's own test, which is no official one"
    if official is not None and official != declared:
        return f"not the official test: {official:,} of its {declared:,} examples were scored"
    return ""


def declared_sizes(record: Record) -> dict[str, int]:
    """The official sizes by split that a record says its task declares."""
    sizes = (record.registered or {}).get("task", {}).get("sizes")
    return sizes if isinstance(sizes, dict) else {}  # type: ignore[return-value]
