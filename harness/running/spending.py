"""The cost of an answer, and that of all training of a cell: examples, tokens, steps and
operations, pilots included."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.data.batches import length_buckets, of_all_lengths
from harness.data.companions import Companion
from harness.objectives import Supervised
from harness.running.assembly import Assembly
from harness.running.learning_rates import Pilot
from harness.training import cost
from harness.training.fit_module import FitModule


def flops_of_answers(training: FitModule, assembly: Assembly) -> tuple[float | None, int]:
    """Operations of an answer by example of dev, and the batches on which they were counted."""
    dev = training.objective.portions(assembly.corpus.dev, assembly.training)
    buckets = length_buckets(dev.padded_lengths, assembly.training.batch_size, None)
    chosen = of_all_lengths(buckets, dev.padded_lengths, cost.COUNTED)
    found = cost.flops_per_example(training.model, [dev.collate(rows) for rows in chosen])
    return found and found / dev.share, len(chosen)


def flops_of_training(training: FitModule) -> float | None:
    """Operations of the losses of a training by example; None where they are those of an answer, as
    under the head's own loss, and where tasks take turns."""
    if type(training.objective) is Supervised or training.objective.in_turn:
        return None
    found = cost.flops_of_losses(training.model, training.objective, training.steps_of_all_lengths(cost.COUNTED))
    return found and found / training.splits["labelled"].share


def cost_of_all(
    training: FitModule,
    kept: dict[str, Any],
    pilots: dict[float, Pilot | None],
    flops_per_example: float | None,
    devices: int,
) -> dict[str, Any]:
    """Cost of all training of a cell, its pilots included."""
    streams = training.objective.streams if training.objective.in_turn else ("labelled",)
    each = [spent_on(stream, training, kept, pilots, devices) for stream in streams]
    spent: dict[str, Any] = {name: sum(cost[name] for cost in each) for name in each[0]}
    if flops_per_example:  # a backward pass takes about twice a forward pass
        worth = examples_of_a_pass(training) / len(training.splits["labelled"].rows)
        spent["flops"] = 3.0 * worth * each[0]["examples"] * flops_per_example
    return spent


def spent_on(
    stream: str, training: FitModule, kept: dict[str, Any], pilots: dict[float, Pilot | None], devices: int
) -> dict[str, int]:
    """Examples, tokens and steps of all training on one stream, pilots included."""
    train, passes = training.splits[stream], kept["epochs"] * training.passes_per_epoch
    of_epoch = training.steps_on(stream, devices)
    steps = kept["epochs"] * of_epoch
    pilot = training.steps_of_pilot(of_epoch) if len(pilots) > 1 else 0
    share = 1 + len(pilots) * pilot / max(1, steps)
    return {
        "examples": round(share * passes * len(train.rows)),
        "tokens": round(share * passes * int(train.lengths.sum())),
        "steps": steps + len(pilots) * pilot,
    }


def examples_of_a_pass(training: FitModule) -> float:
    """Training examples of a pass; those of companions by their tokens, as so many of the cell's
    own task."""
    own = training.splits["labelled"]
    others = sum(int(training.splits[each].lengths.sum()) for each in training.objective.streams[1:])
    if not training.objective.in_turn or not others:
        return len(own.rows)
    return len(own.rows) * (1 + others / int(own.lengths.sum()))


def companions_read(
    companions: Sequence[Companion],
    training: FitModule,
    kept: dict[str, Any],
    pilots: dict[float, Pilot | None],
    devices: int,
) -> list[dict[str, Any]]:
    """The companions of a cell's task, as its record holds them."""
    return [
        {
            "task": each.task.entry.id,
            "version": each.task.entry.version,
            "train": each.digest,
            "rows": len(each.rows),
            "left_out": each.left_out,
            **spent_on(each.task.entry.id, training, kept, pilots, devices),
        }
        for each in companions
    ]
