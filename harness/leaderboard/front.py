"""The front page: what was run, where, and which squares of the grid are empty."""

from __future__ import annotations

from collections import Counter

from harness.leaderboard.board import Board, Section
from harness.leaderboard.cells import caveats, failures, our_row, section_title
from harness.leaderboard.cost import device
from harness.leaderboard.table import Block, Part, Row, Table
from harness.records import STATUSES


def run_table(board: Board) -> Table:
    """What was run: how many cells of each section ended how."""
    rows = []
    for (tier, protocol), results in board.sections.items():
        records = [record for found in results.values() for result in found for record in result.records]
        status = Counter(record.status for record in records)
        numbers = [len({a for a, _ in results}), len({t for _, t in results}), len(records), *(status[s] for s in STATUSES)]
        seeds = ", ".join(map(str, sorted({record.seed for record in records})))
        rows.append(Row(f"{tier}, {protocol}", [*([Part(str(n), "" if n else "quiet")] for n in numbers), [Part(seeds)]]))
    columns = ["Tier, protocol", "architectures", "tasks", "cells", *STATUSES, "seeds"]
    return Table("run", "What was run", columns, [Block("", rows)])


def coverage_table(board: Board, section: Section) -> Table:
    """Architecture x task: how each pair ended; what was not run says so."""
    results = board.sections[section]
    names = sorted({*board.architectures, *(record.architecture for record in board.records)}, key=board.order)

    def cell(architecture: str, task: str) -> list[Part]:
        lines = []
        for result in results.get((architecture, task), []):
            if result.ok:
                partial = any(record.partial for record in result.ok)
                lines.append(
                    Part(f"{'partial' if partial else 'ok'} ({len(result.ok)})", "partial" if partial else "ok", caveats(board, result))
                )
            lines += failures(result)
        return lines or [Part("not run", "quiet")]

    rows = []
    for name in names:
        entry = board.architectures.get(name)
        about = [Part(entry.family if entry else "?"), Part(entry.paper if entry else "?")]
        row = our_row(board, name, [[part] for part in about] + [cell(name, task) for task in board.known_tasks])
        rows.append(Row(row.name, row.cells, row.classical, (), row.title))
    columns = ["Architecture", "family", "paper", *map(board.task_name, board.known_tasks)]
    title = f"Coverage: {section_title(section)}"
    return Table(f"coverage-{'-'.join(section)}", title, columns, [Block("", rows)], text_columns=(1, 2))


def facts(board: Board) -> list[tuple[str, str]]:
    """Where and from what the records come, from the records alone, so that the same records make the same page."""
    records = board.records
    if not records:
        return []
    versions = [record.environment.get("versions") or {} for record in records]
    torch = sorted({str(v["torch"]) for v in versions if isinstance(v, dict) and v.get("torch")})
    commits = Counter((record.commit[:12] or "unknown") + (" with local changes" if record.dirty else "") for record in records)
    started = sorted(filter(None, (record.started for record in records)))
    return [
        ("records", str(len(records))),
        ("machines", "; ".join(f"{name} ({n})" for name, n in sorted(Counter(map(device, records)).items()))),
        ("commits", "; ".join(f"{name} ({n})" for name, n in sorted(commits.items()))),
        ("torch", ", ".join(torch) or "unknown"),
        ("started", f"{started[0]} to {started[-1]}" if started else "unknown"),
    ]
