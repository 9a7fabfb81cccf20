"""The page on what was run: cells by the way they ended, what is missing and why, machines and
commits."""

from __future__ import annotations

from collections import Counter

from harness.leaderboard.board import Board, task_file
from harness.leaderboard.picture import Picture, pictures
from harness.leaderboard.tables.cost import device
from harness.leaderboard.tables.formatting import failures, format_count, section_title
from harness.leaderboard.tables.table import Block, Part, Table, TableRow
from harness.records import STATUSES


def run_table(board: Board) -> Table:
    """Number of cells of each section by the way they ended."""
    rows = []
    for section, results in board.sections.items():
        records = [
            record for configurations in results.values() for result in configurations for record in result.records
        ]
        status = Counter[str](record.status for record in records)
        numbers = [
            len({architecture for architecture, _ in results}),
            len({task for _, task in results}),
            len(records),
            *(status[name] for name in STATUSES),
        ]
        seeds = ", ".join(map(str, sorted({record.seed for record in records})))
        cells = [[Part(str(n), "" if n else "quiet")] for n in numbers]
        rows.append(TableRow(", ".join(section.words), [*cells, [Part(seeds)]]))
    columns = ["Tier, protocol, budget", "architectures", "tasks", "cells", *STATUSES, "seeds"]
    return Table("run", "What was run", columns, [Block("", rows)])


def missing_table(board: Board) -> Table:
    """The cells that did not end ok, with reasons, but for pairs that do not fit; the number of
    pairs that fit and were not run stands above."""
    blocks = []
    for section, results in board.sections.items():
        rows = []
        for (architecture, task), configurations in sorted(
            results.items(), key=lambda item: (board.known_tasks.index(item[0][1]), item[0])
        ):
            shown = (result for result in configurations if not result.unfit)
            for part in (part for result in shown for part in failures(result)):
                reasons = [Part(note) for note in part.notes]
                cells = [[Part(board.task_name(task), link=task_file(task))], [part._replace(notes=())], reasons]
                name, classical = board.name(architecture), board.is_classical(architecture)
                rows.append(TableRow(name, cells, classical, link=board.page_of(architecture)))
        if rows:
            blocks.append(Block(section_title(section), rows))
    lead = [
        f"Not run in {picture.title}: {missing:,} pairs of an architecture and a task that fit."
        for picture in pictures(board)
        if (missing := _not_run(picture))
    ]
    if not blocks:
        lead.append("No cell failed.")
    columns = ["Architecture", "task", "how it ended", "reason"]
    return Table("missing", "Missing or failed", columns, blocks, lead, text_columns=(1, 2, 3))


def _not_run(picture: Picture) -> int:
    """The number of pairs that are in no section of a picture, and would fit."""
    styles: dict[tuple[str, str], set[str]] = {}
    for block in picture.blocks:
        for line in block.lines:
            for task, square in zip(picture.tasks, line.squares, strict=True):
                styles.setdefault((line.architecture, task), set()).add(square.style)
    return sum("open" in found <= {"open", "unfit"} for found in styles.values())


def facts(board: Board) -> list[tuple[str, str]]:
    """Machines, commits and versions of the records. They are read from the records alone, so that
    the same records make the same page."""
    records = board.records
    if not records:
        return []
    versions = [record.environment.get("versions") or {} for record in records]
    torch = sorted({str(v["torch"]) for v in versions if isinstance(v, dict) and v.get("torch")})
    commits = {record.commit for record in records if record.commit}
    newest = max(records, key=lambda record: record.started or "")
    dirty = sum(record.dirty for record in records)
    started = sorted(filter(None, (record.started for record in records)))
    return [
        ("records", f"{len(records):,}"),
        (
            "architectures",
            f"{len({record.architecture for record in records})} of {len(board.known_architectures)} known here",
        ),
        ("tasks", ", ".join(map(board.task_name, board.recorded_tasks))),
        ("seeds", ", ".join(map(str, sorted({record.seed for record in records})))),
        (
            "machines",
            "; ".join(
                f"{name} ({format_count(n, 'record')})" for name, n in sorted(Counter(map(device, records)).items())
            ),
        ),
        (
            "commits",
            f"{len(commits):,}, that of the newest record {newest.commit[:12] or 'unknown'};"
            f" {format_count(dirty, 'record') if dirty else 'no records'} with local changes",
        ),
        ("torch", ", ".join(torch) or "unknown"),
        ("started", f"{started[0]} to {started[-1]}" if started else "unknown"),
    ]
