"""``python -m tools.translations MODEL ...``: what encoders of two languages know of translations.

Each folder holds a kept model that learnt from ``multi30k_both``. Of the test texts a table has the
share of English ones whose own translation is the nearest of all German ones by the cosine of their
mean states, the share the other way round, and the mean surprise, in nats, of masked pieces of
texts in both languages: as each side sees the other, and as it sees itself alone.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from harness import registry
from harness.layers.noise import Noise
from harness.problems.text_objective import batches
from harness.saved_models.model import load
from harness.task import Row

TASK = "multi30k_both"
SOURCE, TARGET, BOTH = "source", "target", "both"
"""The ends of the ids of the three texts of a pair."""


class Found(NamedTuple):
    """Shares of right translations, of the target and of the source, and two mean surprises."""

    target: float
    source: float
    beside: float
    alone: float


def of_kind(rows: Sequence[Row], kind: str) -> list[Row]:
    """The rows of texts of one kind, in their order."""
    return [row for row in rows if row["id"].endswith(f"-{kind}")]


def means(encoder: Any, rows: Sequence[Row]) -> Tensor:
    """The mean state (N, size) of each text, less the mean of them all, which tells their language
    and no text, scaled to length 1."""

    def each() -> Iterator[Tensor]:
        for pieces in batches(encoder.view, rows):
            mask = pieces.mask[:, :, None]
            yield (encoder(pieces) * mask).sum(1) / mask.sum(1)

    vectors = torch.cat(list(each()))
    return F.normalize(vectors - vectors.mean(0), dim=1)


def right(ones: Tensor, others: Tensor) -> float:
    """The share of vectors (N, size) whose nearest of the others (N, size) has their number."""
    nearest = (ones @ others.T).argmax(1)
    return float((nearest == torch.arange(len(ones))).float().mean())


def surprise(encoder: Any, objective: Any, rows: Sequence[Row], translation: bool) -> float:
    """The mean surprise of masked pieces, with or without the other side of a text."""
    before, encoder.translation = encoder.translation, translation
    try:
        read = batches(encoder.view, rows)
        logs = [objective(encoder, pieces, Noise(pieces.ids, pieces.mask)).logs for pieces in read]
    finally:
        encoder.translation = before
    return -float(torch.cat(logs).mean())


@torch.no_grad()
def found(model: Any, rows: Sequence[Row]) -> Found:
    """The numbers of a kept model on rows of :data:`TASK`."""
    encoder, objective = model.encoder, model.head.learns
    source, target = (means(encoder, of_kind(rows, kind)) for kind in (SOURCE, TARGET))
    both = of_kind(rows, BOTH)
    beside, alone = (surprise(encoder, objective, both, translation) for translation in (True, False))
    return Found(right(source, target), right(target, source), beside, alone)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a line for each model."""
    parser = argparse.ArgumentParser(prog="python -m tools.translations", description="tell what is known")
    parser.add_argument("models", nargs="+", type=Path, help="folders of kept models")
    parser.add_argument("--data-dir", type=Path, help="folder of the official files (default: the generated corpus)")
    asked = parser.parse_args(arguments)
    entry = registry.entry("tasks", TASK)
    rows = registry.load(entry)(entry).read("test", "local" if asked.data_dir else "mini", asked.data_dir)
    print("architecture      target  source  beside   alone")
    for folder in asked.models:
        kept = load(folder)
        kept.model.eval()  # type: ignore[union-attr]
        target, source, beside, alone = found(kept.model, rows)
        print(f"{kept.description.part.architecture:<16}  {target:6.3f}  {source:6.3f}  {beside:6.3f}  {alone:6.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
