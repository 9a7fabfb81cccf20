"""Builds the leaderboard from the record files: HTML pages, one Markdown file, plots; needs neither torch nor a network.

``python leaderboard.py [--results DIR] [--out DIR] [--serve]``. The first five tables have the shape of those in Minaee et al. (2020),
"Deep Learning Based Text Classification", with the values printed there beside ours. Rows are compared only within one section: one
tier of the data and one protocol.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import http.server
import sys
from collections.abc import Sequence
from pathlib import Path

import jinja2

import harness.leaderboard
from harness.leaderboard.board import Board, LeaderboardError, read
from harness.leaderboard.cost import task_plots, task_table
from harness.leaderboard.front import coverage_table, facts, run_table
from harness.leaderboard.survey import survey_tables
from harness.leaderboard.table import markdown

PARTS = ("notices", "lead", "legend", "facts", "shown", "plots", "files")  # what content.html shows of a page, each empty unless given
LEGEND = (
    (
        "Scores are on the test split, in percent with one decimal (perplexity as it is): mean ± standard deviation (number of seeds); "
        "one seed has no deviation."
    ),
    (
        "Compare rows only within one section: one tier of the data and one protocol. Bold is the highest mean (the lowest where ↓ "
        "stands) among the rows with the largest training set of the section; what is equal after rounding is bold too. No test of "
        "significance is implied."
    ),
    (
        "Italics are classical methods. A dash: the survey prints no value, nothing was measured, or there is no such task here. Other "
        "cells say what happened: not run, skipped, failed, oom, timeout, diverged or interrupted, with the reason as a note. Partial: "
        "trained on a part of the training data."
    ),
)


def write(board: Board, out: Path) -> Path:
    """Write all pages below ``out``; returns the front page. The same records give the same bytes."""
    from plotly.offline import get_plotlyjs

    out.mkdir(parents=True, exist_ok=True)
    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(harness.leaderboard.__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    content = templates.get_template("content.html")
    recorded = {record.task for record in board.records}
    pages = [("Leaderboard", "index.html"), ("Tables", "tables.html"), ("Markdown", "tables.md")]
    pages += [(board.task_name(task), f"task-{task}.html") for task in board.known_tasks if task in recorded]

    def page(file: str, title: str, **parts: object) -> None:
        text = content.render({"pages": pages, "here": file, "title": title, **dict.fromkeys(PARTS, ()), **parts})
        (out / file).write_text(text, encoding="utf-8")

    tables = survey_tables(board)
    page("tables.html", "Methods and data sets", lead=LEGEND, shown=tables)
    by_task = []
    for task in (task for task in board.known_tasks if task in recorded):
        table = task_table(board, task)
        by_task.append(table)
        mine = [record for record in board.records if record.task == task]
        files = [(board.store.path(record).relative_to(board.store.folder).as_posix(), record.command) for record in mine]
        parts = {"lead": about(board, task), "legend": LEGEND, "shown": [table], "plots": task_plots(board, task), "files": files}
        page(f"task-{task}.html", board.task_name(task), **parts)
    (out / "tables.md").write_text(markdown("Leaderboard", LEGEND, [*tables, *by_task]), encoding="utf-8")
    (out / "plotly.min.js").write_text(get_plotlyjs(), encoding="utf-8")
    lead = [] if board.records else ["There are no records yet: `archbench run` makes them."]
    shown = [run_table(board), *(coverage_table(board, section) for section in board.sections)] if board.records else []
    page("index.html", "Leaderboard", notices=board.notices, lead=lead, facts=facts(board), shown=shown)
    return out / "index.html"


def about(board: Board, task: str) -> list[str]:
    """What a task's adapter says of itself; nothing where it is not registered here."""
    entry = board.tasks.get(task)
    if entry is None:
        return []
    return [f"{entry.type}. {entry.protocol}", "Official sizes: " + ", ".join(f"{split} {n:,}" for split, n in entry.sizes.items())]


def serve(out: Path) -> None:
    """Serve the pages on this machine alone until interrupted."""
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(out))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        print(f"http://127.0.0.1:{server.server_port}/ (Ctrl-C ends it)", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            server.serve_forever()


def main(argv: Sequence[str] | None = None) -> int:
    """Build the leaderboard; returns the exit code: 0, or 2 when there is nothing to build from or nowhere to write."""
    parser = argparse.ArgumentParser(prog="leaderboard.py", description="Build the leaderboard from the records of a results folder.")
    parser.add_argument("--results", type=Path, default=Path("results"), metavar="DIR", help="results folder (default: results)")
    parser.add_argument("--out", type=Path, metavar="DIR", help="where the pages go (default: leaderboard in the results folder)")
    parser.add_argument("--serve", action="store_true", help="serve the pages on 127.0.0.1 and print the address")
    arguments = parser.parse_args(argv)
    out = arguments.out or arguments.results / "leaderboard"
    try:
        board = read(arguments.results)
        front = write(board, out)
    except LeaderboardError as error:
        print(f"leaderboard: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"leaderboard: {error}; --results must be readable and --out writable", file=sys.stderr)
        return 2
    for notice in board.notices:
        print(f"leaderboard: {notice}", file=sys.stderr)
    print(f"{front}: {len(board.records)} records")
    if arguments.serve:
        serve(out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
