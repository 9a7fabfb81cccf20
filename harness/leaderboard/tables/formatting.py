"""Scores, differences and failures of results as text and as lines of table cells."""

from __future__ import annotations

import textwrap

from harness.leaderboard.board import Board
from harness.leaderboard.comparison import Comparison
from harness.leaderboard.published import Published
from harness.leaderboard.ranking import at_floor, unranked
from harness.leaderboard.results import Result, Section, versioned
from harness.leaderboard.setting_words import in_words
from harness.leaderboard.summary import Summary
from harness.leaderboard.tables.table import BLANK, Part, TableRow
from harness.leaderboard.unregistered import is_installed
from harness.metrics import display_info
from harness.records import UNFIT, Record
from harness.records.groups import Source, seen
from harness.records.official_test import OTHER_TEST_SIZE
from harness.registry import ArchitectureEntry, TaskEntry
from harness.settings import CUSTOM, FULL

OTHER_CODE = "made by other code than that of the files here; `archbench run --changed` makes it again"


def metric_label(metric: str) -> str:
    """Heading of a metric's column; an arrow marks metrics where less is better."""
    info = display_info(metric)
    return f"{info.label} ↓" if info.lower_is_better else info.label


def axis_title(metric: str) -> str:
    """Label of a metric with its unit in brackets, if it has one."""
    unit = display_info(metric).unit
    return f"{metric_label(metric)} ({unit})" if unit else metric_label(metric)


def section_title(section: Section) -> str:
    """All that the rows of a section share, in words: tier, protocol, budget, the data that
    training saw besides the labelled examples, given word vectors, further inputs, token unit."""
    generated = " (generated corpus, not the published data)" if section.tier == "mini" else ""
    return ", ".join(
        [
            f"tier {section.tier}{generated}",
            f"protocol {versioned(section.protocol, section.protocol_version)}",
            f"budget {section.budget}",
            *given_in_words(section),
        ]
    )


def given_in_words(section: Section) -> list[str]:
    """Words on all that the rows of a section see and are given besides labelled examples."""
    parts = []
    if section.sees != ():
        parts.append(f"sees: {seen(section.sees)}")
    if section.vectors:
        parts.append(f"vectors {_told_apart(section.vectors)}")
    if section.inputs:
        parts.append(f"inputs {' and '.join(map(_told_apart, section.inputs))}")
    if section.tokens:
        parts.append(f"tokens {section.tokens}")
    return parts


def _told_apart(source: Source) -> str:
    return f"{source.name} ({source.id[:8]})"


def format_score(metric: str, summary: Summary) -> str:
    """Mean ± standard deviation (number of seeds); no deviation for one seed."""
    info = display_info(metric)
    mean = info.format(summary.mean)
    if summary.sd is None:
        return f"{mean} ({summary.n})"
    return f"{mean} ± {info.format_deviation(summary.mean, summary.sd)} ({summary.n})"


def format_interval(metric: str, bounds: tuple[float, float]) -> str:
    """Both ends of an interval on the scale of the scores."""
    return " to ".join(map(display_info(metric).format, bounds))


def format_points(points: float, digits: int = 1) -> str:
    """A difference with its sign and so many decimals; zero has no sign."""
    shown = f"{points:+.{digits}f}".replace("-", "−")
    return shown if float(f"{points:.{digits}f}") else shown[1:]


def format_number(value: float) -> str:
    """A count or a rate: a whole number with thousands separators from 100 on, else three
    significant digits."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def format_magnitude(value: float) -> str:
    """A large count with three significant digits and its power of a thousand."""
    rounded = float(f"{value:.3g}")  # before the unit is chosen: 999,999 is 1 M
    for size, unit in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if rounded >= size:
            return f"{rounded / size:.3g} {unit}"
    return format_number(value)


def format_p(p: float) -> str:
    """A p-value with two digits, or as less than .001."""
    return "p < 0.001" if p < 0.001 else f"p {p:.2g}"


def failure_reason(record: Record) -> str:
    """Error of a cell that did not end ok, in one line of at most 300 characters; a type that says
    no more than the rest is left out."""
    error = record.error or {}
    kind = error.get("type")
    message = ": ".join(filter(None, (None if kind in (record.status, UNFIT) else kind, error.get("message"))))
    return textwrap.shorten(message, 300, placeholder=" …") or "the record gives no reason"


def counterpart(board: Board, result: Result, metric: str) -> Published | None:
    """The published value that a result is compared with; None if it may not stand beside one."""
    first = result.first
    value = board.counterparts.get((first.architecture, first.task, metric))
    return value if value and board.beside_published(result) else None


def difference(published: Published, metric: str, summary: Summary) -> float:
    """Ours minus the published value in points, computed from the rounded values on the page."""
    return round(display_info(metric).round(summary.mean) - float(published.percent), 1)


def failures(result: Result) -> list[Part]:
    """The cells that did not end ok: one line per status and reason, the reason as a note."""
    groups: dict[tuple[str, str], list[int]] = {}
    for record in result.records:
        if record.status != "ok":
            groups.setdefault((record.status, failure_reason(record)), []).append(record.seed)
    lines = []
    for (status, reason), seeds in groups.items():
        which = "" if len(seeds) == len(result.records) else f", seed {', '.join(map(str, seeds))}"
        text = status if len(result.records) == 1 else f"{status} ({len(seeds)})"
        note = f"{status}{which}: {reason}"
        notes = (result.settings, note) if result.settings else (note,)
        lines.append(Part(text, "skipped" if status == "skipped" else "failed", notes))
    return lines


def caveats(board: Board, result: Result) -> tuple[str, ...]:
    """Reasons not to compare a score blindly: other settings, a floor, another group, a part of the
    training data, other code, an older version."""
    notes = [result.settings] if result.settings else []
    notes += filter(None, (at_floor(board, result), unranked(board, result)))
    if _partial(result):
        notes += _partial_notes(board, result)
    notes += board.test_notes(result)
    if any(record.key in board.made_by_other_code for record in result.ok):
        notes.append(OTHER_CODE)
    return (*notes, *causes(board, result))


def causes(board: Board, result: Result) -> list[str]:
    """Reasons for a score that lie neither in its data nor in its settings: word vectors that start
    at random, an older version.

    That the code was edited since is none: it says nothing of the score.
    """
    notes = []
    first = result.first
    architecture = board.architectures.get(first.architecture)
    if architecture and architecture.vectors_of_paper and starts_at_random(result):
        notes.append(f"Word vectors start at random; the paper starts from {architecture.vectors_of_paper}.")
    versions: tuple[tuple[ArchitectureEntry | TaskEntry | None, int], ...] = (
        (architecture, first.architecture_version),
        (board.tasks.get(first.task), first.task_version),
    )
    for entry, version in versions:
        if entry and is_installed(entry) and entry.version != version:
            notes.append(f"{entry.id} version {version}, which is now {entry.version}")
    return notes


def starts_at_random(result: Result) -> bool:
    """True if word vectors were trained without any given ones, by a file or by a parent."""
    parents = result.first.hyperparameters.get("parents") or {}
    if result.first.hyperparameters.get("vectors") or parents.keys() & {"weights", "vectors"}:
        return False
    return any(record.parameters.get("embedding") for record in result.ok)


def _partial(result: Result) -> bool:
    """True for a result that was trained on a part, where the name of its budget does not say so of
    the whole section."""
    budget = result.group.budget.name if result.group else FULL
    return result.partial and budget in (FULL, CUSTOM)


def _partial_notes(board: Board, result: Result) -> list[str]:
    first = result.first
    official = board.tasks[first.task].sizes.get("train") if first.task in board.tasks else None
    passes = first.hyperparameters.get("limits", {}).get("max_epochs")
    if official == result.trained_on and passes:
        return [f"partial: {in_words('limits.max_epochs', passes)} over the training set"]
    size = f"{official:,}" if official else "more"
    notes = [f"partial: trained on {result.trained_on:,} examples; the official training set has {size}"]
    return [*notes, f"{in_words('limits.max_epochs', passes)} over them"] if passes else notes


def score_parts(
    board: Board, result: Result, metric: str, best: bool, published: Published | None = None
) -> list[Part]:
    """The lines of a result in a column: its score with marks, the published value with the
    difference to it, and the failures."""
    lines = []
    summary = result.summary(metric)
    if summary:
        text = format_score(metric, summary) + (" partial" if _partial(result) else "") + marks(board, result, metric)
        order = display_info(metric).scale(summary.mean)
        lines.append(Part(text, "best" if best else "", caveats(board, result), order=order))
        if published:
            points = format_points(difference(published, metric, summary))
            lines.append(Part(f"published {published.percent}, difference {points}", "quiet", published.notes))
    elif result.ok:
        lines.append(Part("not scored", "failed", (f"the record is ok and has no test score called {metric}",)))
    return lines + failures(result)


def format_count(number: int, thing: str) -> str:
    """A number of things in words, such as "1 task" and "1,184 trainings"."""
    return f"{number:,} {thing}{'s' if number != 1 else ''}"


def marked_score(board: Board, result: Result, metric: str, summary: Summary) -> Part:
    """The score of a result of which a table tells no more than whether it is at the floor."""
    notes = tuple(filter(None, [at_floor(board, result)]))
    text = format_score(metric, summary) + (" at the floor" if notes else "")
    return Part(text, "", notes, order=display_info(metric).scale(summary.mean))


def marks(board: Board, result: Result, metric: str) -> str:
    """Marks behind a score: another test than the official one, at the floor."""
    other = f" {OTHER_TEST_SIZE}" if board.test_notes(result) else ""
    main = metric == board.main_metric(result.first.task)
    return other + (" at the floor" if main and at_floor(board, result) else "")


def interval_part(comparison: Comparison | None, result: Result) -> Part:
    """The 95 % interval of a result's main score; a dash if its records have no outcomes."""
    bounds = comparison.interval(result) if comparison else None
    if comparison is None or bounds is None:
        return BLANK[0]
    return Part(format_interval(comparison.metric, bounds), order=display_info(comparison.metric).scale(bounds[0]))


def text_cell(text: object) -> list[Part]:
    """A cell of words; a dash where nothing is known."""
    return [Part(str(text))] if text else BLANK


def training_size(result: Result) -> list[Part]:
    """Number of training examples; a dash if unknown."""
    return [Part(f"{result.trained_on:,}", order=result.trained_on)] if result.trained_on else BLANK


def our_row(board: Board, architecture: str, cells: list[list[Part]]) -> TableRow:
    """A row of ours, which a search finds by id, paper and source too; deviations from the paper
    stand on the architecture's page."""
    entry = board.architectures.get(architecture)
    searched = (entry.family, entry.kind, entry.paper, entry.source) if entry else ()
    return TableRow(
        board.name(architecture),
        cells,
        board.is_classical(architecture),
        title=about(board, architecture),
        link=board.page_of(architecture),
        words=" ".join((architecture, *searched)),
    )


def about(board: Board, architecture: str) -> str:
    """Id, family and paper of an architecture, as far as the registry knows it."""
    entry = board.architectures.get(architecture)
    return f"{architecture}: {entry.family}, {entry.paper}" if entry else architecture
