"""``python -m tools.recount_operations``: the operations of records that counted them on one batch.

Records without ``flops_batches`` hold the operations of a batch of texts of about one length, which
are not those of an average text. Here their models are built again, without a training, and counted
on batches of all lengths as new cells are. What a cell started from has to be kept still; records
whose models cannot be built stay as they are, and the reason is told. ``ARCHBENCH_DATA`` names the
official data.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import warnings
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.progress import track

from harness import registry
from harness.records import Record, Store
from harness.running.assembly import Assembly
from harness.running.spending import examples_of_a_pass, flops_of_answers, flops_of_training
from harness.running.worker_settings import Settings
from harness.training import cost
from harness.training.fit_module import FitModule

ROOT = Path(__file__).resolve().parents[1]


def main(arguments: Sequence[str] | None = None) -> int:
    """Count, and write; the exit code is 1 where a record stays as it is."""
    parser = argparse.ArgumentParser(prog="python -m tools.recount_operations", description=__doc__.partition(": ")[2])
    parser.add_argument("--results", type=Path, default=ROOT / "results", help="folder of the records")
    parser.add_argument("--task", default="", help="records of this task alone")
    options = parser.parse_args(arguments)
    store = Store(options.results.resolve())
    chosen = (record for record in store.all() if options.task in ("", record.task))
    found = alike(record for record in chosen if counted_on_one(record))
    left = 0
    with tempfile.TemporaryDirectory(prefix="archbench-") as work:
        for records in track(found, description="architectures on tasks"):
            try:
                assembly, training = built(records[0], store.folder, Path(work))
                for record in records:
                    recount(record, assembly, training)
                    store.write(record)
            except Exception as error:  # a parent that is not kept, vectors of a file: the other records can be counted
                left += len(records)
                print(f"{records[0].architecture} on {records[0].task}: {len(records)} left: {error}", file=sys.stderr)
    return int(left > 0)


def counted_on_one(record: Record) -> bool:
    """True for one whose operations are those of one batch."""
    return bool(record.status == "ok" and record.training and record.flops_per_example and not record.flops_batches)


def alike(records: Iterable[Record]) -> list[list[Record]]:
    """Records by what decides about their operations: all but the seed. Those of one task follow
    one another, so that its texts are read from a cache."""
    found: dict[tuple[str, ...], list[Record]] = defaultdict(list)
    for record in records:
        parents = record.lineage and [each["key"] for each in record.lineage]
        settings = json.dumps(
            [record.hyperparameters, parents, record.view, record.data.get("train"), record.parameters]
        )
        versions = f"{record.architecture_version} {record.task_version}"
        found[record.task, record.tier, settings, record.architecture, record.protocol, versions].append(record)
    return [found[each] for each in sorted(found)]


def built(record: Record, results: Path, work: Path) -> tuple[Assembly, FitModule]:
    """The parts of a cell, and its training before the first step; ``ValueError`` where the record
    tells of others."""
    for sort, id, version in (
        ("architectures", record.architecture, record.architecture_version),
        ("tasks", record.task, record.task_version),
    ):
        if (now := registry.entry(sort, id).version) != version:
            raise ValueError(f"made by version {version} of {id}, which is version {now} here")
    if record.hyperparameters.get("vectors"):
        raise ValueError("its word vectors came from a file")
    data = os.environ.get("ARCHBENCH_DATA")
    settings = Settings(results, Path(data) if data else None, (), 1, None, None, work)
    assembly = Assembly(record.cell, settings)
    training = assembly.training_of(assembly.model(record.seed), assembly.training.learning_rates[0])
    for what, here, then in (
        ("view", assembly.corpus.view.settings(), record.view),
        ("training data", assembly.corpus.fingerprints["train"], record.data.get("train")),
        ("number of parameters", cost.parameters(training.model), record.parameters),
    ):
        if here != then:
            raise ValueError(f"its {what} was {then}, and is {here} here")
    return assembly, training


def recount(record: Record, assembly: Assembly, training: FitModule) -> None:
    """Put the operations of texts of all lengths into a record."""
    answer, batches = flops_of_answers(training, assembly)
    if not answer:
        raise ValueError("nothing was counted")
    before = operations_of_a_pass(record, training)
    record.flops_per_example, record.flops_batches = answer, batches
    if before is None:  # a record of before had none of its training
        return
    ratio = (flops_of_training(training) or answer) / before
    record.training = record.training | {"flops": record.training["flops"] * ratio}
    if record.spent and "flops" in record.spent:
        record.spent = record.spent | {"flops": record.spent["flops"] * ratio}


def operations_of_a_pass(record: Record, training: FitModule) -> float | None:
    """Operations by example that a record's training was reckoned with; None where it has none."""
    if "flops" not in record.training:
        return None
    passes = record.training["epochs"] * record.training.get("passes_per_epoch", training.passes_per_epoch)
    return record.training["flops"] / (3 * passes * examples_of_a_pass(training))


if __name__ == "__main__":
    with warnings.catch_warnings(action="ignore"):
        sys.exit(main())
