"""The pairs of SNLI's mini tier as people of several genres would say them: the mini tier of
MultiNLI.

A premise stands in the words of a genre, which decide nothing. The mismatched test has genres that
training never showed: whoever learnt the frames by heart, or reads a premise from its first word,
fails there.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from harness.task import Row, Split
from tasks.mini import inference

MATCHED = {
    "fiction": ("Once upon a time {}, or so she told me.", "He whispered that {}."),
    "government": ("The report states that {}.", "As required by section two, {}."),
    "telephone": ("Uh well {}, you know.", "Yeah, {}, right."),
    "travel": ("Visitors will notice that {}.", "From the old tower, {}."),
}
"""Frames of the genres of training, dev and the matched test."""
MISMATCHED = {
    "letters": ("Dear friend, {}, and we need your help.", "With your gift {}."),
    "face to face": ("So I said, look, {}, okay?", "My grandmother remembers how {}."),
}


def rows(split: Split, matched: bool) -> Iterator[Row]:
    """Rows with ``first``, ``second`` and ``label``: those of :func:`tasks.mini.inference.rows`, in
    the same order, whether the test is ``matched`` or not."""
    random = Random(f"genres {split}")
    genres = MATCHED if matched or split != "test" else MISMATCHED
    frames = [frame for forms in genres.values() for frame in forms]
    for row in inference.rows(split):
        said = row["first"].removesuffix(".")
        yield row | {"first": random.choice(frames).format(said[0].lower() + said[1:])}
