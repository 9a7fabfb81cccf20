"""The genres corpus: pairs of the inference corpus in other words around them."""

from __future__ import annotations

import pytest

from tasks.mini import inference
from tasks.mini.genres import MATCHED, MISMATCHED, rows

SPLITS = ("train", "dev", "test")


def openings(frames: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(frame.split("{}")[0] for forms in frames.values() for frame in forms)


@pytest.mark.parametrize("matched", [True, False])
@pytest.mark.parametrize("split", SPLITS)
def test_a_genre_changes_neither_label_nor_hypothesis_nor_what_is_said(split, matched) -> None:
    for row, plain in zip(rows(split, matched), inference.rows(split), strict=True):
        assert {**row, "first": plain["first"]} == plain
        assert plain["first"][1:-1] in row["first"]


def test_only_the_mismatched_test_has_genres_that_training_lacks() -> None:
    for split in SPLITS:
        assert all(row["first"].startswith(openings(MATCHED)) for row in rows(split, matched=True))
    assert list(rows("train", matched=True)) == list(rows("train", matched=False))
    assert all(row["first"].startswith(openings(MISMATCHED)) for row in rows("test", matched=False))
