"""The front page: what was run, the best result per task, and which cells are missing."""

from __future__ import annotations

import statistics
from collections import Counter

from harness.leaderboard.board import Board, Result, Section, task_file
from harness.leaderboard.comparison import Comparison, compare
from harness.leaderboard.ranking import CUSTOM_REMARK, SMOKE_REMARK, best_results, elsewhere, scored
from harness.leaderboard.tables.cost import device
from harness.leaderboard.tables.formatting import (
    caveats,
    counterpart,
    difference,
    failures,
    format_points,
    format_score,
    interval_part,
    our_row,
    section_title,
    text_cell,
)
from harness.leaderboard.tables.table import BLANK, Block, Part, Table, TableRow
from harness.records import STATUSES
from harness.records.groups import SMOKE
from harness.settings import CUSTOM


def run_table(board: Board) -> Table:
    """Number of cells of each section by the way they ended."""
    rows = []
    for section, results in board.sections.items():
        records = [
            record for configurations in results.values() for result in configurations for record in result.records
        ]
        status = Counter(record.status for record in records)
        numbers = [
            len({architecture for architecture, _ in results}),
            len({task for _, task in results}),
            len(records),
            *(status[s] for s in STATUSES),
        ]
        seeds = ", ".join(map(str, sorted({record.seed for record in records})))
        cells = [[Part(str(n), "" if n else "quiet")] for n in numbers]
        rows.append(TableRow(", ".join(section.words), [*cells, [Part(seeds)]]))
    columns = ["Tier, protocol, budget", "architectures", "tasks", "cells", *STATUSES, "seeds"]
    return Table("run", "What was run", columns, [Block("", rows)])


def best_table(board: Board) -> Table:
    """The best result of every section's task, and those not significantly worse; sections that are
    not ranked have none."""
    blocks = []
    for section in filter(lambda section: section.ranked, board.sections):
        rows = [row for task in board.recorded_tasks if (row := _best_row(board, section, task))]
        if rows:
            blocks.append(Block(section_title(section), rows))
    lead = [
        "An architecture shares the first place if it is not significantly worse than the best, on other test examples"
        " and with other seeds; none: the lead is significant. With fewer than three seeds nobody knows whether others"
        " would keep the order. Tested are the results that may be compared (the same budget and data), are above the"
        " floor and have saved predictions, out of all results of the task in that section."
    ]
    lead += [SMOKE_REMARK] if any(section.protocol == SMOKE for section in board.sections) else []
    lead += [CUSTOM_REMARK] if any(section.budget == CUSTOM for section in board.sections) else []
    columns = ["Task", "best", "score", "95 % interval", "shares the first place", "results tested"]
    return Table("best", "Best per task", columns, blocks, lead, text_columns=(1, 4))


def _best_row(board: Board, section: Section, task: str) -> TableRow | None:
    """None if no result of the section's task has a score."""
    metric = board.main_metric(task)
    best = best_results(board, section, task, metric)
    results = scored(board, section, task, metric)
    if not results:
        return None
    comparison = compare(board, section, task)
    tested = [Part(f"{len(comparison.rivals) if comparison else 0} of {len(results)}")]
    if more := elsewhere(board, section, task, metric):
        tested.append(Part(f"{more} in other sections", "quiet"))
    if not best:
        cells = [[Part("none above the floor", "quiet")], *[BLANK] * 3, tested]
        return TableRow(board.task_name(task), cells, link=task_file(task))
    names, scores, intervals = [], [], []
    for architecture, result in board.results(section, task):
        summary = result.summary(metric)
        if result in best and summary:
            names.append(_linked_name(board, architecture, result))
            scores.append(Part(format_score(metric, summary), "", caveats(board, result)))
            intervals.append(interval_part(comparison, result))
    cells = [names, scores, intervals, _sharing_parts(board, comparison, best), tested]
    return TableRow(board.task_name(task), cells, link=task_file(task))


def _sharing_parts(board: Board, comparison: Comparison | None, best: set[Result]) -> list[Part]:
    """The architectures that share the first place with the best results."""
    if comparison is None or len(comparison.rivals) < 2:
        return [Part("not tested", "quiet")]
    tie_group = [comparison.results[i] for i in sorted(comparison.tie_group)]
    others = [_linked_name(board, *pair) for pair in tie_group if pair[1] not in best]
    if comparison.doubt:
        return [Part(comparison.doubt, "quiet"), *others]
    return others or [Part("none" if len(best) == 1 else "none besides")]


def _linked_name(board: Board, architecture: str, result: Result) -> Part:
    return Part(board.result_name(architecture, result), link=board.page_of(architecture))


def missing_table(board: Board) -> Table:
    """The cells that did not end ok, with reasons; the number of pairs without any record stands
    above."""
    blocks = []
    for section, results in board.sections.items():
        rows = []
        for (architecture, task), configurations in sorted(
            results.items(), key=lambda item: (board.known_tasks.index(item[0][1]), item[0])
        ):
            for part in (part for result in configurations for part in failures(result)):
                reasons = [Part(note) for note in part.notes]
                cells = [[Part(board.task_name(task), link=task_file(task))], [part._replace(notes=())], reasons]
                name, classical = board.name(architecture), board.is_classical(architecture)
                rows.append(TableRow(name, cells, classical, link=board.page_of(architecture)))
        if rows:
            blocks.append(Block(section_title(section), rows))
    lead = []
    for place, pairs in _pairs_run(board).items():
        tasks = {task for _, task in pairs}
        missing = len(board.known_architectures) * len(tasks) - len(pairs)
        lead.append(
            f"Not run in {section_title(place)}: {missing:,} pairs of an architecture and one of its {len(tasks)}"
            " tasks."
        )
    if not blocks:
        lead.append("No cell failed.")
    columns = ["Architecture", "task", "how it ended", "reason"]
    return Table("missing", "Missing or failed", columns, blocks, lead, text_columns=(1, 2, 3))


def _pairs_run(board: Board) -> dict[Section, set[tuple[str, str]]]:
    """The pairs of architecture and task that have a record, by tier, protocol and budget: the rest
    of a section is the architecture's."""
    found: dict[Section, set[tuple[str, str]]] = {}
    for section, results in board.sections.items():
        if section.budget != CUSTOM:
            place = Section(section.tier, section.protocol, section.protocol_version, section.budget)
            found.setdefault(place, set()).update(results)
    return found


def agreement_table(board: Board) -> Table:
    """Differences between our scores and the published ones; scores that are not on the published
    test are left out."""
    groups: dict[str, list[float]] = {"trained on all data": [], "partial": []}
    for results in board.sections.values():
        for result in (result for configurations in results.values() for result in configurations):
            for metric, summary in result.summaries.items():
                published = counterpart(board, result, metric)
                if published:
                    group = groups["partial" if result.partial else "trained on all data"]
                    group.append(difference(published, metric, summary))
    rows = []
    for name, differences in groups.items():
        if differences:
            within = sum(1 for points in differences if abs(points) <= 1)
            numbers = [str(len(differences)), format_points(round(statistics.median(differences), 1)), str(within)]
            numbers += [format_points(min(differences)), format_points(max(differences))]
            rows.append(TableRow(name, [[Part(number)] for number in numbers]))
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
    """Architecture x task: the way each pair ended, or "not run". Architectures and tasks without
    any record in the section are only counted."""
    results = board.sections[section]
    tasks = [task for task in board.known_tasks if any(task == other for _, other in results)]
    architectures = [name for name in board.known_architectures if any(name == other for other, _ in results)]

    def cell(architecture: str, task: str) -> list[Part]:
        lines = []
        for result in results.get((architecture, task), []):
            if result.ok:
                status = "partial" if result.partial else "ok"
                lines.append(Part(f"{status} ({len(result.ok)})", status, caveats(board, result)))
            lines += failures(result)
        return lines or [Part("not run", "quiet")]

    rows = []
    for name in architectures:
        entry = board.architectures.get(name)
        about = [text_cell(entry and entry.family), text_cell(entry and entry.paper)]
        row = our_row(board, name, about + [cell(name, task) for task in tasks])
        rows.append(TableRow(row.name, row.cells, row.classical, (), row.title, row.link))
    columns = ["Architecture", "family", "paper", *map(board.task_name, tasks)]
    title = f"Coverage: {section_title(section)}"
    left = len(board.known_architectures) - len(architectures), len(board.known_tasks) - len(tasks)
    lead = [f"Left out: {left[0]} architectures and {left[1]} tasks without any record here."]
    return Table(f"coverage-{section.id}", title, columns, [Block("", rows)], lead, text_columns=(1, 2))


def facts(board: Board) -> list[tuple[str, str]]:
    """Machines, commits and versions of the records. They are read from the records alone, so that
    the same records make the same page."""
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
