"""The survey's tables with ours beside: their data sets and metrics, and where our other tasks
stand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from harness import registry
from harness.leaderboard.board import Board
from harness.leaderboard.published import SURVEY_TABLES
from harness.leaderboard.tables.methods import Methods, ours_alone, printed


@dataclass(frozen=True)
class Shape:
    """A table of methods x data sets: its data sets, patterns of further task ids, and metrics
    (empty: the main one of each task)."""

    id: str
    title: str
    datasets: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()


SHAPES = (
    Shape("1", "Table 1: sentiment", ("imdb", "sst2", "sst5", "amazon2", "amazon5", "yelp2", "yelp5"), ("accuracy",)),
    Shape("2", "Table 2: news and topics", ("ag_news", "newsgroups20", "sogou", "dbpedia", "ohsumed"), ("accuracy",)),
    Shape("3", "Table 3: question answering, SQuAD", ("squad1", "squad2"), ("exact_match", "f1")),
    Shape("4", "Table 4: question answering, WikiQA", ("wikiqa",), ("map", "mrr")),
    Shape("5", "Table 5: natural language inference", ("snli", "mnli_matched", "mnli_mismatched"), ("accuracy",)),
    Shape("tagging", "Tagging", patterns=("conll*",)),
    Shape("speech", "Speech", patterns=("fsdd*", "an4*")),
    Shape("translation", "Translation"),
    Shape("stories", "Stories"),
    Shape("other", "Other tasks", patterns=("*",)),
)


@dataclass(frozen=True)
class Survey:
    """One page of tables: the methods that the survey prints, with ours beside, and then ours
    alone. ``lead`` are sentences on what is here and what is not."""

    id: str
    title: str
    tables: list[Methods]
    lead: list[str]

    @property
    def name(self) -> str:
        """Name of its files, without what follows the dot."""
        return f"survey-{self.id}"

    @property
    def file(self) -> str:
        """File name of its page."""
        return f"{self.name}.html"

    @property
    def about(self) -> str:
        """The first sentence on it, for a list."""
        return self.lead[0]


def surveys(board: Board) -> list[Survey]:
    """The survey's five tables, then tagging, speech, translation, stories and the rest, as far as
    there is a value for them. Every task is in exactly one."""
    remaining = dict.fromkeys([*board.known_tasks, *(value.dataset for value in board.published)])
    printed_in = {value.dataset: value.table for value in board.published}
    found = []
    for shape in _shapes():
        datasets = [d for d in shape.datasets if d in remaining]
        datasets += [
            d for d in remaining if d not in datasets and (printed_in.get(d) == shape.id or _fits(board, shape, d))
        ]
        for dataset in datasets:
            del remaining[dataset]
        survey = _survey(board, shape, datasets)
        if survey.tables:
            found.append(survey)
    return found


def _shapes() -> list[Shape]:
    """The shapes here, and before the last one those that only a registered problem names."""
    ids = {shape.id for shape in SHAPES}
    others = dict.fromkeys(problem.survey for problem in registry.entries("problems").values() if problem.survey)
    return [*SHAPES[:-1], *(Shape(id, id.capitalize()) for id in others if id not in ids), SHAPES[-1]]


def _fits(board: Board, shape: Shape, task: str) -> bool:
    if any(task in other.datasets for other in SHAPES):
        return False
    problem = registry.entries("problems").get(board.tasks[task].type) if task in board.tasks else None
    by_type = problem is not None and problem.survey == shape.id
    return by_type or any(fnmatchcase(task, pattern) for pattern in shape.patterns)


def _survey(board: Board, shape: Shape, datasets: Sequence[str]) -> Survey:
    """The tables of one shape that have a row. Scores stand beside published ones only if they are
    from the official test."""
    official = shape.id in SURVEY_TABLES
    columns = [(d, metric) for d in datasets for metric in shape.metrics or (board.main_metric(d),)]
    values = [value for value in board.published if value.table == shape.id]
    theirs = printed(board, f"table-{shape.id}", shape.title, columns, values)
    taken = {method.architecture for method in theirs.rows}
    ours = ours_alone(
        board, f"ours-{shape.id}", f"{shape.title}, ours alone" if values else shape.title, columns, taken, official
    )
    tables = [table for table in (theirs, ours) if table.rows]
    return Survey(shape.id, shape.title, tables, _lead(board, tables, datasets))


def _lead(board: Board, tables: Sequence[Methods], datasets: Sequence[str]) -> list[str]:
    """Sentences on the methods that have a value, on results that are elsewhere, and on cells
    without any score."""
    methods = [(table, method) for table in tables for method in table.rows]
    printed = [method for table, method in methods if any(pair.published for pair in method.pairs.values())]
    both = sum(any(pair.published and pair.ours for pair in method.pairs.values()) for method in printed)
    alone = sum(not board.is_floor(method.architecture) for _, method in methods) - len(printed)
    with_ours = [
        d for d in datasets if any(pair.ours for _, m in methods for (x, _), pair in m.pairs.items() if x == d)
    ]
    names = ", ".join(map(board.task_name, with_ours))
    counts = []
    if printed:
        counts.append(
            f"{len(printed)} methods that the survey prints, {both or 'none'} of them with a score of ours beside"
        )
    if alone:
        counts.append(f"{alone} {'further ' if printed else ''}methods of ours")
    sentences = [f"{'; '.join(counts)}{f' (ours on {names})' if names else ''}."]
    shown = {result for _, method in methods for pair in method.pairs.values() for result in pair.ours}
    filled = {(m.architecture, task) for _, m in methods for (task, _), pair in m.pairs.items() if pair.ours}
    scored, failed = 0, []
    for results in board.sections.values():
        for (architecture, task), configurations in results.items():
            if task in datasets:
                scored += sum(bool(result.summaries) and result not in shown for result in configurations)
                failed += [
                    f"{board.name(architecture)} on {board.task_name(task)} ({record.status})"
                    for result in configurations
                    if not result.summaries and (architecture, task) not in filled
                    for record in result.records
                    if record.status != "skipped"
                ]
    if scored:
        sentences.append(
            f"{scored} more results of ours are on the pages of the tasks alone: of other budgets and protocols, of"
            " further inputs, of the generated corpus, or not on the official test."
        )
    if failed:
        sentences.append(f"Ended without a score: {'; '.join(dict.fromkeys(failed))}.")
    return sentences
