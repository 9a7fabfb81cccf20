"""``python -m tools.same_results COMMIT``: which records an edit leaves as they are.

A record whose architecture was edited counts as made by other code, though the edit may have been
an error for options that nobody gave. Here each edited architecture trains small cells by the code
of that commit and by the code of now: one pass over a hundred rows of a built-in corpus, for each
type of tasks and each protocol that its records have. Where losses, scores and predictions are the
same to the last bit, ``--write`` gives its records the digest of the code of now; the others have
to be run again.

A small cell does not reach all code: whoever edits what only long texts, late passes or a GPU reach
has to judge by other means. What a record was trained with stands in its settings, and not in the
recipe of its architecture, which may change.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from harness import registry
from harness.records import Record, Store

ROOT = Path(__file__).resolve().parents[1]
DIGESTS = """
import json, sys
from harness.records import Store
from harness.records.code_digest import code_of_cell
codes = ((record, code_of_cell(record)) for record in Store(sys.argv[1]).all())
print(json.dumps({record.key: code["architecture"] for record, code in codes if code}))
"""


class Group(NamedTuple):
    """Records of one architecture, with one wrapped architecture if any, on one type of tasks and
    under one protocol; ``trained`` by gradients or not."""

    architecture: str
    wraps: str
    type: str
    protocol: str
    trained: bool


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare, and tell; the exit code is 1 where a record has to be run again."""
    parser = argparse.ArgumentParser(prog="python -m tools.same_results", description=__doc__.partition(": ")[2])
    parser.add_argument("commit", help="the last one before the edit")
    parser.add_argument("--results", type=Path, default=ROOT / "results", help="folder of the records")
    parser.add_argument("--write", action="store_true", help="give records of the same results the digest of now")
    options = parser.parse_args(arguments)
    store = Store(options.results.resolve())
    with worktree(options.commit) as before:
        then, now = digests(before, store), digests(ROOT, store)
        edited = grouped(
            record
            for record in store.all()
            if (record.code or {}).get("architecture") == then.get(record.key) != now.get(record.key)
        )
        tasks = {group: min(record.task for record in records) for group, records in edited.items()}
        found = [outcomes(tree, tasks) for tree in (before, ROOT)]
    others = 0
    for group, records in sorted(edited.items()):
        one, two = (each.get(group) for each in found)
        same = one is not None and one == two
        others += 0 if same else len(records)
        word = "the same" if same else "not tried" if one is None or two is None else "other results"
        named = " ".join(filter(None, (group.architecture, group.wraps, "on", tasks[group], group.protocol)))
        print(f"{word}: {named}: {len(records)} records")
        for record in records if same and options.write else ():
            record.code = (record.code or {}) | {"architecture": now[record.key]}
            store.write(record)
    print(f"{others} of {sum(map(len, edited.values()))} records have to be run again")
    return int(others > 0)


@contextmanager
def worktree(commit: str) -> Iterator[Path]:
    """The files of a commit, in a folder that is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="archbench-") as folder:
        tree = Path(folder) / "then"
        _git("worktree", "add", "--quiet", "--detach", str(tree), commit)
        try:
            yield tree
        finally:
            _git("worktree", "remove", "--force", str(tree))


def digests(tree: Path, store: Store) -> dict[str, str]:
    """By the keys of records, the digests of their architectures by the code in a folder."""
    done = _python(tree, "-c", DIGESTS, str(store.folder))
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def grouped(records: Iterable[Record]) -> dict[Group, list[Record]]:
    """The records that one small cell stands for. Those with further inputs for each word, whose
    sources may be what was edited, and those of tasks that are not registered have none."""
    found: dict[Group, list[Record]] = defaultdict(list)
    tasks = registry.entries("tasks")
    for record in records:
        if record.task in tasks and not record.hyperparameters.get("inputs"):
            wraps = str(record.hyperparameters.get("wraps") or "")
            trained = "training" in record.hyperparameters
            found[Group(record.architecture, wraps, tasks[record.task].type, record.protocol, trained)].append(record)
    return found


def outcomes(tree: Path, tasks: Mapping[Group, str]) -> dict[Group, Any]:
    """The outcome of the small cell of each group by the code in a folder; nothing of one that
    failed."""
    together: dict[tuple[str, str, str], list[Group]] = defaultdict(list)
    for group, task in tasks.items():
        together[task, group.protocol, group.wraps].append(group)
    found: dict[Group, Any] = {}
    for (task, protocol, _), groups in together.items():
        with tempfile.TemporaryDirectory(prefix="archbench-") as folder:
            by_id = {group.architecture: group for group in groups}
            chosen = ["-a", ",".join(by_id), "-t", task, "--protocol", protocol, *small(groups)]
            limits = ["--tier", "mini", "--max-train", "100", "--mlflow", "none"]
            _python(tree, "-m", "harness.cli", "run", *chosen, *limits, "--results", folder)
            for record in Store(folder).all():
                if record.task == task and record.status == "ok" and record.architecture in by_id:
                    found[by_id[record.architecture]] = outcome(record)
    return found


def small(groups: Iterable[Group]) -> list[str]:
    """Options of ``archbench run`` that make architectures small and their training short."""
    given: list[str] = []
    for group in groups:
        settings = dict(registry.entry("architectures", group.architecture).tiny)
        settings |= {"wraps": group.wraps} if group.wraps else {}
        settings |= dict.fromkeys(("training.epochs", "training.min_steps"), 1) if group.trained else {}
        settings |= {"training.learning_rates": [0.001]} if group.trained else {}
        given += [f"-o{group.architecture}.{name}={value!r}" for name, value in settings.items()]
    return given


def outcome(record: Record) -> dict[str, Any]:
    """All of a record that its code computed but times."""
    curve = (record.training or {}).get("curve") or []
    return {
        "curve": [{name: value for name, value in row.items() if name != "seconds"} for row in curve],
        "scores": record.scores,
        "parameters": record.parameters,
        "predictions": (record.predictions or {}).get("sha256"),
    }


def _python(tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(tree), "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, "-P", *arguments], cwd=tree, env=environment, capture_output=True, text=True, check=False
    )


def _git(*arguments: str) -> None:
    subprocess.run(["git", "-C", str(ROOT), *arguments], check=True)


if __name__ == "__main__":
    sys.exit(main())
