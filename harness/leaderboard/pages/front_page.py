"""The front page: what was run, where, and which squares of the grid are empty."""

from __future__ import annotations

import statistics
from collections import Counter

from harness.leaderboard.board import Board, Section, task_file
from harness.leaderboard.comparison import evidence
from harness.leaderboard.tables.cost import device
from harness.leaderboard.tables.formatting import (
    best_results,
    caveats,
    counterpart,
    difference,
    failures,
    format_interval,
    format_score,
    interval,
    our_row,
    section_title,
    signed,
)
from harness.leaderboard.tables.table import BLANK, Block, Part, Row, Table
from harness.records import STATUSES


def run_table(board: Board) -> Table:
    """What was run: how many cells of each section ended how."""
    rows = []
    for section, results in board.sections.items():
        records = [record for found in results.values() for result in found for record in result.records]
        status = Counter(record.status for record in records)
        numbers = [
            len({a for a, _ in results}),
            len({t for _, t in results}),
            len(records),
            *(status[s] for s in STATUSES),
        ]
        seeds = ", ".join(map(str, sorted({record.seed for record in records})))
        rows.append(
            Row(
                ", ".join(filter(None, section)),
                [*([Part(str(n), "" if n else "quiet")] for n in numbers), [Part(seeds)]],
            )
        )
    columns = ["Tier, protocol", "architectures", "tasks", "cells", *STATUSES, "seeds"]
    return Table("run", "What was run", columns, [Block("", rows)])


def best_table(board: Board) -> Table:
    """The best of every section's task, and which others differ from it by no more than chance."""
    blocks = []
    for section in board.sections:
        rows = []
        for task in board.recorded_tasks:
            mine = board.results(section, task)
            metric = board.main_metric(task)
            best = best_results(board, section, task, metric)
            leaders, scores, bounds = [], [], []
            known = evidence(board, section, task)
            for architecture, result in mine:
                summary = result.summary(metric)
                if result not in best or summary is None:
                    continue
                leaders.append(_linked(board, architecture))
                scores.append(Part(format_score(metric, summary), "", caveats(board, result)))
                ends = interval(known, result)
                bounds.append(Part(format_interval(metric, ends)) if ends else BLANK[0])
            if not leaders:
                continue
            tied = [known.results[i] for i in sorted(known.tied)] if known else []
            rivals = [_linked(board, a) for a, result in tied if result not in best]
            if known is None or len(known.rivals) < 2:
                rivals = [Part("not tested", "quiet")]
            elif not rivals:
                rivals = [Part("none" if len(best) == 1 else "none besides")]
            tested = f"{len(known.rivals) if known else 0} of {len(board.rivals(section, task, metric))}"
            rows.append(
                Row(board.task_name(task), [leaders, scores, bounds, rivals, [Part(tested)]], link=task_file(task))
            )
        if rows:
            blocks.append(Block(section_title(section), rows))
    lead = [
        "An architecture shares the first place where it differs from the best by no more than chance; none: the lead"
        " is real. Tested are those with saved predictions, of the results with the largest training set."
    ]
    columns = ["Task", "best", "score", "95 % interval", "shares the first place", "results tested"]
    return Table("best", "Best per task", columns, blocks, lead, text_columns=(1, 4))


def _linked(board: Board, architecture: str) -> Part:
    return Part(board.name(architecture), link=board.page_of(architecture))


def gaps_table(board: Board) -> Table:
    """What did not end ok, with its reason, and how many squares of the grid have no record at
    all."""
    blocks = []
    for section, results in board.sections.items():
        rows = []
        for (architecture, task), found in sorted(
            results.items(), key=lambda item: (board.known_tasks.index(item[0][1]), item[0])
        ):
            for part in (part for result in found for part in failures(result)):
                why = [Part(note) for note in part.notes]
                rows.append(
                    _gap(
                        board,
                        architecture,
                        [[Part(board.task_name(task), link=task_file(task))], [part._replace(notes=())], why],
                    )
                )
        if rows:
            blocks.append(Block(section_title(section), rows))
    lead = []
    for section, results in board.sections.items():
        tasks = {task for _, task in results}
        missing = len(board.known_architectures) * len(tasks) - len(results)
        lead.append(
            f"Not run in {section_title(section)}: {missing:,} pairs of an architecture and one of its {len(tasks)}"
            " tasks."
        )
    if not blocks:
        lead.append("No cell failed.")
    return Table(
        "missing",
        "Missing or failed",
        ["Architecture", "task", "how it ended", "reason"],
        blocks,
        lead,
        text_columns=(1, 2, 3),
    )


def _gap(board: Board, architecture: str, cells: list[list[Part]]) -> Row:
    return Row(board.name(architecture), cells, board.is_classical(architecture), link=board.page_of(architecture))


def agreement_table(board: Board) -> Table:
    """How far our scores lie from the published ones, over all that have one; generated corpora are
    left out."""
    groups: dict[str, list[float]] = {"trained on all data": [], "partial": []}
    for results in board.sections.values():
        for result in (result for found in results.values() for result in found):
            for metric in result.summaries:
                printed, summary = counterpart(board, result, metric), result.summary(metric)
                if printed and summary:
                    partial = any(record.partial for record in result.ok)
                    groups["partial" if partial else "trained on all data"].append(difference(printed, metric, summary))
    rows = []
    for name, differences in groups.items():
        if differences:
            within = sum(1 for d in differences if abs(d) <= 1)
            numbers = [str(len(differences)), signed(round(statistics.median(differences), 1)), str(within)]
            numbers += [signed(min(differences)), signed(max(differences))]
            rows.append(Row(name, [[Part(number)] for number in numbers]))
    columns = ["Ours minus published, in points", "pairs", "median difference", "within one point", "lowest", "highest"]
    lead = [
        "A pair is one of our scores and the survey's value for the same architecture, data set and metric; two"
        " settings are two pairs."
    ]
    return Table(
        "agreement",
        "Published and ours",
        columns,
        [Block("", rows)],
        lead if rows else ["No score of ours has a published one."],
    )


def coverage_table(board: Board, section: Section) -> Table:
    """Architecture x task: how each pair ended; what was not run says so."""
    results = board.sections[section]

    def cell(architecture: str, task: str) -> list[Part]:
        lines = []
        for result in results.get((architecture, task), []):
            if result.ok:
                partial = any(record.partial for record in result.ok)
                lines.append(
                    Part(
                        f"{'partial' if partial else 'ok'} ({len(result.ok)})",
                        "partial" if partial else "ok",
                        caveats(board, result),
                    )
                )
            lines += failures(result)
        return lines or [Part("not run", "quiet")]

    rows = []
    for name in board.known_architectures:
        entry = board.architectures.get(name)
        about = [Part(entry.family if entry else "?"), Part(entry.paper if entry else "?")]
        row = our_row(board, name, [[part] for part in about] + [cell(name, task) for task in board.known_tasks])
        rows.append(Row(row.name, row.cells, row.classical, (), row.title, row.link))
    columns = ["Architecture", "family", "paper", *map(board.task_name, board.known_tasks)]
    title = f"Coverage: {section_title(section)}"
    return Table(f"coverage-{section.id}", title, columns, [Block("", rows)], text_columns=(1, 2))


def facts(board: Board) -> list[tuple[str, str]]:
    """Where and from what the records come, from the records alone, so that the same records make
    the same page."""
    records = board.records
    if not records:
        return []
    versions = [record.environment.get("versions") or {} for record in records]
    torch = sorted({str(v["torch"]) for v in versions if isinstance(v, dict) and v.get("torch")})
    commits = Counter(
        (record.commit[:12] or "unknown") + (" with local changes" if record.dirty else "") for record in records
    )
    started = sorted(filter(None, (record.started for record in records)))
    return [
        ("records", f"{len(records):,}"),
        (
            "architectures",
            f"{len({record.architecture for record in records})} of {len(board.known_architectures)} known here",
        ),
        ("tasks", ", ".join(map(board.task_name, board.recorded_tasks))),
        ("seeds", ", ".join(map(str, sorted({record.seed for record in records})))),
        ("machines", "; ".join(f"{name} ({n})" for name, n in sorted(Counter(map(device, records)).items()))),
        ("commits", "; ".join(f"{name} ({n})" for name, n in sorted(commits.items()))),
        ("torch", ", ".join(torch) or "unknown"),
        ("started", f"{started[0]} to {started[-1]}" if started else "unknown"),
    ]
