"""``python -m tools.plain_text TASK --data-dir DIR --out DIR``: a file for each split of a task of
plain text.

Such a task joins the texts of many others and leaves out what their tests hold, which takes minutes
for each process that reads it. Where ``TASK/SPLIT.jsonl`` lies in the folder of the data, it is
read instead. The fingerprint of the rows is compared with the task's as before.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from harness import registry
from harness.files import write_whole
from harness.task import Split


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the files."""
    parser = argparse.ArgumentParser(prog="python -m tools.plain_text", description=__doc__.partition(": ")[2])
    parser.add_argument("task", help="a task of type text, such as text_mix")
    parser.add_argument("--data-dir", type=Path, required=True, help="folder of the official files")
    parser.add_argument("--out", type=Path, required=True, help="folder of data in which TASK/SPLIT.jsonl are written")
    asked = parser.parse_args(arguments)
    entry = registry.entry("tasks", asked.task)
    if entry.type != "text":
        parser.error(f"{asked.task} is of type {entry.type}, not text")
    task = registry.load(entry)(entry)
    for split in get_args(Split):
        rows = task.read(split, "local", asked.data_dir)
        text = "".join(f"{json.dumps(dict(row), ensure_ascii=False)}\n" for row in rows)
        file = asked.out / asked.task / f"{split}.jsonl"
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, text.encode())
        print(f"{asked.task}, {split}: {len(rows):,} texts", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
