"""Plain text in two languages: the captions of Multi30k alone and beside their translations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from harness.data.overlap import sequences, shares_one
from harness.registry import register_task
from harness.settings import Budget
from harness.task import Row, Split, Tier
from harness.views.languages import SECOND
from tasks.multi30k import Multi30k
from tasks.text_mix import texts_of

SAME_PICTURES = "snli"
"""A task whose sentences are captions of the same pictures."""
HELD_OUT: tuple[Split, ...] = ("dev", "test")


def texts(pairs: Iterable[Row]) -> Iterator[Row]:
    """Of each pair three rows: the source, the translation, and both."""
    for pair in pairs:
        source, target = pair["source"], f"{SECOND} {pair['target']}"
        yield {"id": f"{pair['id']}-source", "text": source}
        yield {"id": f"{pair['id']}-target", "text": target}
        yield {"id": f"{pair['id']}-both", "text": f"{source} {target}"}


@register_task(
    "multi30k_both",
    name="Multi30k, both languages",
    type="text",
    part_of="multi30k",
    metrics=("nats_per_token", "perplexity"),
    main_metric="nats_per_token",
    sizes={"train": 83652, "dev": 3042, "test": 3000},
    budgets={
        "small": Budget(1, examples=9000, reason="a tenth of the texts; not measured"),
        "full": Budget(10, reason="a tenth as many words as text_mix has; a recipe has passes of its own"),
    },
    protocol=(
        "The captions of Multi30k: each English one, its German translation, and both as one text; the mark ␞ stands in"
        " front of what is German. Splits are Multi30k's. Left out of train is each pair of which either side has 13"
        " words in a row in common with dev or test of Multi30k or of SNLI, which has captions of the same pictures,"
        " or, where it is shorter, is the same: 1,116 of 29,000. The score is that of text_mix."
    ),
)
class Multi30kBoth(Multi30k):
    """Texts from which an encoder can learn that two languages say the same."""

    official_test = False

    def mini(self, split: Split) -> Iterable[Row]:
        return texts(self._apart(super().mini(split), split, "mini"))

    def local(self, folder: Path, split: Split) -> Iterable[Row]:
        return texts(self._apart(super().local(folder, split), split, "local", folder))

    def _apart(self, pairs: Iterable[Row], split: Split, tier: Tier, folder: Path | None = None) -> Iterable[Row]:
        """The pairs, of train those that share nothing with what others are tested on."""
        if split != "train":
            return pairs
        rows, known = list(pairs), sequences(self._held_out(tier, folder))
        return [row for row in rows if not any(shares_one(row[side], known) for side in ("source", "target"))]

    def _held_out(self, tier: Tier, folder: Path | None) -> Iterator[str]:
        """All texts of dev and test of Multi30k and of SNLI."""
        for split in HELD_OUT:
            pairs = super().local(folder, split) if folder else super().mini(split)
            for pair in pairs:
                yield from (pair["source"], pair["target"])
            yield from texts_of(SAME_PICTURES, split, tier, folder)
