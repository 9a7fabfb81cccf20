"""Plain recordings without transcripts: those of the speech tasks' training."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from harness import registry
from harness.registry import register_task
from harness.settings import Budget
from harness.task import Row, Split, Task, Tier


def recordings(id: str, split: Split, tier: Tier, folder: Path | None) -> Iterator[tuple[str, Row]]:
    """The digest of each recording of a task's split, and a row of it without its transcript."""
    entry = registry.entry("tasks", id)
    for row in registry.load(entry)(entry).read(split, tier, folder):
        digest = hashlib.sha256(row["audio"]["bytes"]).hexdigest()
        yield digest, {"id": f"{id}-{row['id']}", "audio": row["audio"], "speaker": row["speaker"]}


@register_task(
    "audio_mix",
    name="Audio mix",
    type="audio",
    metrics=("nats_per_token", "perplexity"),
    main_metric="nats_per_token",
    sizes={"train": 2059, "dev": 139, "test": 230},
    budgets={
        "small": Budget(10, examples=600, min_steps=375, batch_size=16, reason="as FSDD"),
        "full": Budget(6, batch_size=16, reason="ten minutes of a core for those who read samples"),
    },
    protocol=(
        "The recordings of AN4's training, and those of FSDD that both of its tasks train on, with known speakers and"
        " with unseen ones, without their transcripts: whoever learns here has heard nothing of any of their tests."
        " Dev and test are made in the same way of dev and test. No speaker is in two splits, but for the voices of"
        " generated letters. The score is the mean negative log-probability of the right answers to an encoder's own"
        " questions, shown as perplexity: it tells how well one encoder learns, and encoders with other questions are"
        " not compared by it. What it is worth is told by the tasks that go on from it."
    ),
)
class AudioMix(Task):
    """Training recordings of the speech tasks at hand, without their transcripts."""

    inputs = ("audio",)
    official_test = False

    def mini(self, split: Split) -> Iterable[Row]:
        """Letters of AN4's alone: no digit that is made for one of FSDD's tasks is made for the
        other."""
        return (row for _, row in recordings("an4", split, "mini", None))

    def local(self, folder: Path, split: Split) -> Iterable[Row]:
        yield from (row for _, row in recordings("an4", split, "local", folder))
        others = {digest for digest, _ in recordings("fsdd_unseen", split, "local", folder)}
        yield from (row for digest, row in recordings("fsdd", split, "local", folder) if digest in others)
