"""Builds the leaderboard from the record files: HTML pages, Markdown, CSV, LaTeX and JSON.

``python leaderboard.py [--results DIR] [--out DIR] [--serve]`` needs neither torch nor a network;
with ``--data-dir DIR`` the compare page shows the texts of the test data, too, and with
``--since FILE`` a page says what changed since an earlier build. The survey's tables are those of
Minaee et al. (2020), "Deep Learning Based Text Classification", with ours beside the values printed
there. Rows are compared only within one group: the same data, protocol, budget and sight of other
data (:mod:`harness.records.groups`).
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import http.server
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import LeaderboardError
from harness.leaderboard import javascript
from harness.leaderboard.board import Board, architecture_file, read, task_file
from harness.leaderboard.building import Builder, Fault
from harness.leaderboard.pages.advisor_page import advisor_page
from harness.leaderboard.pages.architecture_page import architecture_page
from harness.leaderboard.pages.compare_page import compare_page
from harness.leaderboard.pages.few_labels_page import few_labels_page
from harness.leaderboard.pages.front_page import best_table, lead, picture_parts, remarks
from harness.leaderboard.pages.gaps_page import gaps_document, gaps_page
from harness.leaderboard.pages.index_page import index_page
from harness.leaderboard.pages.legend import LEGEND
from harness.leaderboard.pages.mean_ranks import rank_in_background
from harness.leaderboard.pages.page import FOLDER, Page, templates
from harness.leaderboard.pages.plots import task_plots
from harness.leaderboard.pages.pretraining_page import pretraining_page
from harness.leaderboard.pages.runs_page import facts, missing_table, run_table
from harness.leaderboard.pages.students_page import students_page
from harness.leaderboard.pages.survey_page import survey_pages
from harness.leaderboard.pages.task_page import task_tables
from harness.leaderboard.pages.timeline import story_page
from harness.leaderboard.tables.axis import INPUTS, TOKENS, VECTORS, Axis, axis_tables
from harness.leaderboard.tables.budgets import budget_tables
from harness.leaderboard.tables.changes import Result, changes_table, read_earlier
from harness.leaderboard.tables.choices import choice_tables
from harness.leaderboard.tables.export import costs_csv, json_lines, results, scores_csv
from harness.leaderboard.tables.family_table import family_tables
from harness.leaderboard.tables.gaps import gaps
from harness.leaderboard.tables.latex import document, survey_latex, task_latex
from harness.leaderboard.tables.methods import to_table
from harness.leaderboard.tables.survey import Survey, surveys
from harness.leaderboard.tables.table import Table, markdown
from harness.records import portable_text

if TYPE_CHECKING:
    import jinja2

CHANGES = "changes.html"
PLACES = (
    ("Leaderboard", "index.html"),
    ("Advisor", "advisor.html"),
    ("Architectures", "architectures.html"),
    ("Tables", "tables.html"),
    ("Gaps", "gaps.html"),
    ("Compare", "compare.html"),
    ("Story", "story.html"),
    ("Vectors", "vectors.html"),
    ("Tokens", "tokens.html"),
    ("Pre-training", "pretraining.html"),
    ("Few labels", "few-labels.html"),
    ("Students", "students.html"),
    ("What was run", "runs.html"),
    ("What changed", CHANGES),
)
AXES = (
    ("vectors.html", "What word vectors are worth", (VECTORS,)),
    ("tokens.html", "Tokens and characters", (TOKENS, INPUTS)),
)
SOMETIMES = (
    *("task-*.html", "architecture-*.html", "survey-*.html", "compare-*.js", "latex/task-*.tex", "latex/survey-*.tex"),
    *(file for _, file in PLACES),
)
"""Files that not every build has: those of a build before are removed."""
EXPORTS = (
    ("Markdown", "tables.md"),
    ("scores as CSV", "tables.csv"),
    ("costs as CSV", "costs.csv"),
    ("LaTeX", "latex/all.tex"),
    ("JSON", "leaderboard.json"),
)


def write(
    board: Board, out: Path, data_dir: Path | None = None, earlier: Sequence[Result] | None = None
) -> list[Fault]:
    """Write all pages below ``out``, and return what could not be built. The same records give the
    same bytes. ``data_dir`` holds the official data, whose test examples the compare page then
    shows; ``earlier`` are the results of another build, of which a page tells what changed since.
    """
    (out / "latex").mkdir(parents=True, exist_ok=True)
    builder = Builder(board)
    rows = builder.build("leaderboard.json", lambda board: list(results(board, _surveys(board)))) or []
    pages = _pages(builder, data_dir)
    if earlier is not None:
        changes = _built(builder, CHANGES, "What changed", lambda board: changes_page(board, earlier, rows))
        pages = [*pages, *changes]
    written = set()
    for name, text in _files(builder, rows):
        if text is None:
            (out / name).unlink(missing_ok=True)
        else:
            (out / name).write_text(text, encoding="utf-8", newline="")
            written.add(out / name)
    # The last one, because it shows the notices and faults of the others.
    pages += _built(builder, "index.html", "Leaderboard", lambda board: front_page(board, builder.faults))
    page_files = {page.file for page in pages}
    shared = {
        "navigation": [(name, file) for name, file in PLACES if file in page_files],
        "task_pages": [(board.task_name(task), task_file(task)) for task in board.recorded_tasks],
        "exports": [(name, file) for name, file in EXPORTS if file.endswith(".json") or (out / file).is_file()],
    }
    environment = templates()
    for page in pages:
        parts = shared | {"title": page.title, "here": page.file}
        for name, content in _rendered(builder, environment, page, parts).items():
            (out / name).write_text(content, encoding="utf-8")
            written.add(out / name)
    for path in {path for pattern in SOMETIMES for path in out.glob(pattern)} - written:
        path.unlink()
    with (out / "leaderboard.json").open("w", encoding="utf-8", newline="") as file:
        file.writelines(json_lines(board, LEGEND, rows))
    return builder.faults


_surveys = functools.cache(surveys)  # of which there are pages, LaTeX and rows of the exports


@functools.cache  # for the page of a task and the Markdown of all
def _tables(board: Board, task: str) -> list[Table]:
    tables = [*task_tables(board, task), *choice_tables(board, task)]
    return [*tables, *family_tables(board, task), *budget_tables(board, task)]


Make = Callable[[Board], Page | Iterable[Page]]


def _pages(builder: Builder, data_dir: Path | None) -> list[Page]:
    """All pages but the front page, as far as they can be built."""
    board, pages = builder.board, []
    with contextlib.ExitStack() as stack:
        ranks = builder.build("story.html", lambda board: stack.enter_context(rank_in_background(board)))
        for task in board.recorded_tasks:
            make: Make = functools.partial(task_page, task=task)
            pages += _built(builder, task_file(task), board.task_name(task), make, task)
        for id in sorted(board.by_architecture, key=board.order):
            make = functools.partial(architecture_page, architecture=id)
            pages += _built(builder, architecture_file(id), board.name(id), make)
        pages += _built(builder, "tables.html", "Methods and data sets", _survey_pages)
        pages += _built(builder, "gaps.html", "Gaps", lambda board: gaps_page(board, *gaps(board)))
        pages += _built(builder, "compare.html", "Compare architectures", lambda board: compare_page(board, data_dir))
        pages += _built(builder, "pretraining.html", "What pre-training is worth", pretraining_page)
        pages += _built(builder, "few-labels.html", "Few labels", few_labels_page)
        pages += _built(builder, "students.html", "Students and teachers", students_page)
        for file, title, axes in AXES:
            pages += _built(builder, file, title, functools.partial(axis_page, file=file, title=title, axes=axes))
        if board.records:
            pages += _built(builder, "advisor.html", "Advisor", advisor_page)
            pages += _built(builder, "architectures.html", "Architectures", index_page)
            pages += _built(builder, "runs.html", "What was run", runs_page)
        # Those of a board without some records are not computed yet.
        pages += _built(
            builder, "story.html", "Families over time", lambda part: story_page(part, ranks if part is board else None)
        )
    return pages


def _built(builder: Builder, file: str, title: str, make: Make, task: str = "") -> list[Page]:
    """The pages that ``make`` gives; one that only says what went wrong in the place of those that
    cannot be built."""
    made = builder.build(file, lambda board: _listed(make(board)), task)
    return [Page(file, title, "content.html", {})] if made is None else made


def _listed(made: Page | Iterable[Page]) -> list[Page]:
    return [made] if isinstance(made, Page) else list(made)


def _rendered(builder: Builder, environment: jinja2.Environment, page: Page, shared: dict[str, Any]) -> dict[str, str]:
    """The text of a page and of the files beside it, by name."""

    def render(page: Page) -> str:
        told = {"faults": builder.told(page.file)}
        return environment.get_template(page.template).render(page.parts | shared | told)

    text = builder.build(page.file, lambda _: render(page))
    if text is None:
        return {page.file: render(Page(page.file, page.title, "content.html", {}))}
    return {page.file: text, **page.beside}


def _survey_pages(board: Board) -> Iterable[Page]:
    methods = _surveys(board)
    return survey_pages(methods, {survey.name: _survey_tables(board, survey) for survey in methods})


def _survey_tables(board: Board, survey: Survey) -> list[Table]:
    return [to_table(board, table) for table in survey.tables]


def _files(builder: Builder, rows: Sequence[dict[str, Any]]) -> Iterator[tuple[str, str | None]]:
    """Files beside the pages; None for one that cannot be built."""
    makers: dict[str, Callable[[Board], str]] = {
        "tables.md": _markdown,
        "gaps.md": lambda board: gaps_document(board, gaps(board)[0]),
        "tables.csv": lambda board: scores_csv(rows, board.published),
        "costs.csv": lambda _: costs_csv(rows),
        "plotly.min.js": lambda _: javascript.plotly(),
        "datatables.js": lambda _: javascript.datatables(),
    }
    for path in sorted((FOLDER / "static").iterdir()):
        makers[path.name] = functools.partial(lambda path, _: path.read_text(encoding="utf-8"), path)
    for name, make in makers.items():
        yield name, builder.build(name, make)
    yield from _latex(builder)


def _markdown(board: Board) -> str:
    surveyed = [
        replace(table, lead=survey.lead) for survey in _surveys(board) for table in _survey_tables(board, survey)
    ]
    return markdown(
        "Leaderboard", LEGEND, [*surveyed, *(t for task in board.recorded_tasks for t in _tables(board, task))]
    )


def _latex(builder: Builder) -> Iterator[tuple[str, str | None]]:
    """The tables of the survey and of the tasks as LaTeX, with the file that inputs them."""
    surveyed = builder.build("latex/all.tex", _surveys) or []
    makers: dict[str, Callable[[Board], str]] = {
        survey.name: functools.partial(survey_latex, survey=survey) for survey in surveyed
    }
    tasks = {f"task-{task}": task for task in builder.board.recorded_tasks}
    makers |= {name: functools.partial(task_latex, task=task) for name, task in tasks.items()}
    texts = {name: builder.build(f"latex/{name}.tex", make, tasks.get(name, "")) for name, make in makers.items()}
    yield from ((f"latex/{name}.tex", text) for name, text in texts.items())
    yield "latex/all.tex", document({name: text for name, text in texts.items() if text is not None})


def front_page(board: Board, faults: Sequence[Fault] = ()) -> Page:
    """The grid as a picture and the best of each task; first of all, what could not be built."""
    notices = [*(f"{fault.file}: {fault.words}" for fault in faults), *board.notices]
    notices = [portable_text(notice, board.store.folder.absolute()) for notice in notices]  # pages are published
    parts = {
        "lead": lead(board),
        "notices": [*remarks(board), *notices],
        "tables": [best_table(board)] if board.records else [],
        **picture_parts(board),
    }
    return Page("index.html", "Leaderboard", "front.html", parts)


def runs_page(board: Board) -> Page:
    """Cells that were run or are missing, machines and commits."""
    parts = {"facts": facts(board), "legend": LEGEND, "tables": [run_table(board), missing_table(board)]}
    return Page("runs.html", "What was run", "content.html", parts)


def changes_page(board: Board, earlier: Sequence[Result], rows: Sequence[dict[str, Any]]) -> Page:
    """Results that are new, gone or changed since an earlier build."""
    return Page(
        CHANGES, "What changed", "content.html", {"legend": LEGEND, "tables": [changes_table(board, earlier, rows)]}
    )


def axis_page(board: Board, file: str, title: str, axes: Sequence[Axis]) -> Iterator[Page]:
    """A page on what is read of a word, as far as there are records of architectures with it and
    without it."""
    if tables := [table for axis in axes for table in axis_tables(board, axis)]:
        yield Page(file, title, "content.html", {"legend": LEGEND, "tables": tables})


def task_page(board: Board, task: str) -> Page:
    """The page of a task that has records."""
    files = [
        (f"records/{task}/{record.architecture}/{record.key}.json", record.command)
        for record in board.records
        if record.task == task
    ]
    parts = {
        "lead": about(board, task),
        "legend": LEGEND,
        "tables": _tables(board, task),
        "plots": task_plots(board, task),
        "files": files,
    }
    return Page(task_file(task), board.task_name(task), "content.html", parts)


def about(board: Board, task: str) -> list[str]:
    """Type, protocol and sizes of a task, as far as the registry or its records tell of it."""
    entry = board.tasks.get(task)
    if entry is None:
        return []
    sizes = ", ".join(f"{split} {n:,}" for split, n in entry.sizes.items())
    return [f"{board.type_in_words(task)}. {entry.protocol}", *([f"Official sizes: {sizes}"] if sizes else [])]


def serve(out: Path) -> None:
    """Serve the pages on this machine alone until interrupted."""
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(out))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        print(f"http://127.0.0.1:{server.server_port}/ (Ctrl-C ends it)", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            server.serve_forever()


def main(argv: Sequence[str] | None = None) -> int:
    """Build the leaderboard and return the exit code: 0, 1 if a page could not be built, or 2 if
    there is no results folder or the output cannot be written."""
    parser = argparse.ArgumentParser(
        prog="leaderboard.py", description="Build the leaderboard from the records of a results folder."
    )
    parser.add_argument(
        "--results", type=Path, default=Path("results"), metavar="DIR", help="results folder (default: results)"
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="output folder (default: leaderboard in the results folder)"
    )
    parser.add_argument(
        "--data-dir",
        type=Path,
        metavar="DIR",
        help="folder of the official data files: the compare page shows the texts of their test examples, which most"
        " licences do not allow to publish (default: they are not read)",
    )
    parser.add_argument(
        "--since",
        type=Path,
        metavar="FILE",
        help="leaderboard.json of an earlier build: a page says which results are new, gone or changed since",
    )
    parser.add_argument("--serve", action="store_true", help="serve the pages on 127.0.0.1 and print the address")
    parser.add_argument("--debug", action="store_true", help="show the traceback of each page that cannot be built")
    arguments = parser.parse_args(argv)
    out = arguments.out or arguments.results / "leaderboard"
    try:
        if arguments.data_dir and not arguments.data_dir.is_dir():
            raise LeaderboardError(f"--data-dir {arguments.data_dir}: no such folder; name that of the official files")
        earlier = read_earlier(arguments.since) if arguments.since else None
        board = read(arguments.results)
        faults = write(board, out, arguments.data_dir, earlier)
    except LeaderboardError as error:
        print(f"leaderboard: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"leaderboard: {error}; --results must be readable and --out writable", file=sys.stderr)
        return 2
    for notice in board.notices:
        print(f"leaderboard: {notice}", file=sys.stderr)
    for fault in faults:
        print(f"leaderboard: {fault.file}: {fault.words}", file=sys.stderr)
        if arguments.debug:
            print(fault.trace, file=sys.stderr)
    if faults and not arguments.debug:
        print("leaderboard: --debug shows the tracebacks", file=sys.stderr)
    print(f"{out / 'index.html'}: {len(board.records)} records")
    if arguments.serve:
        serve(out)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
