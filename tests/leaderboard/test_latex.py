"""LaTeX for papers: it compiles, no table is wider than the page, and text stays text."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import leaderboard
from harness.leaderboard.board import read
from harness.leaderboard.tables.formatting import metric_label
from harness.leaderboard.tables.latex import (
    BOLD,
    CAPITAL,
    GAP,
    NAME_WIDTH,
    TEXT_WIDTH,
    escape,
    survey_latex,
    task_latex,
    width,
)
from harness.leaderboard.tables.survey import surveys
from harness.metrics import INFOS
from harness.records import Record, Store
from tests.support.made_pages import architecture, register_alone, task
from tests.support.made_records import record

EVIL = "<img src=x onerror=alert(1)> </script> \\input{|ls} $x$ a_b & 50% #1 ~^ {"


@pytest.fixture(autouse=True)
def known(monkeypatch):
    entries = [
        architecture("dan", "DAN", family="feedforward"),
        architecture("nse", "NSE", family="memory"),
        architecture("count", "Counting", family="classical"),
        architecture("evil", EVIL, family="memory"),
    ]
    tasks = [task("sst2", "classify", "accuracy"), task("fsdd", "transcribe", "wer")]
    register_alone(monkeypatch, entries, [*tasks, *(task(f"conll{i}", "tag", "accuracy") for i in range(9))])


def built(store: Store, *records: Record) -> Path:
    """The folder of the LaTeX files of some records."""
    for made in records:
        store.write(made)
    assert leaderboard.main(["--results", str(store.folder)]) == 0
    return store.folder / "leaderboard" / "latex"


def balanced(text: str) -> bool:
    """Whether braces and environments of a LaTeX text close in order; escaped braces do not
    count."""
    plain = re.sub(r"\\[{}\\]|^%.*$", "", text, flags=re.MULTILINE)
    depth = 0
    for character in plain:
        depth += {"{": 1, "}": -1}.get(character, 0)
        if depth < 0:
            return False
    open_environments = []
    for begin, name in re.findall(r"\\(begin|end)\{(\w+)\}", plain):
        if begin == "begin":
            open_environments.append(name)
        elif not open_environments or open_environments.pop() != name:
            return False
    return depth == 0 and not open_environments


def tables(text: str) -> list[tuple[float, list[list[str]]]]:
    """Of each table the width of its names in points, and its cells line by line."""
    found = []
    for names, columns, body in re.findall(
        r"\\begin\{longtable\}\{>\{[^}]*\}p\{(\d+)pt\}(r+)\}(.*?)\\end\{longtable\}", text, re.DOTALL
    ):
        lines = [line for line in body.splitlines() if line.endswith((r"\\", r"\\*"))]
        cells = [re.split(r"(?<!\\)&", line.removesuffix("*").removesuffix(r"\\")) for line in lines]
        assert {len(line) for line in cells} == {len(columns) + 1}, "a cell for every column"
        found.append((float(names), [[cell.strip() for cell in line] for line in cells]))
    return found


def test_the_document_has_every_table_and_all_are_balanced(store):
    error = {"type": EVIL, "message": "["}
    folder = built(store, record("evil", score=0.5), record("nse", score=0.8), record("dan", status="oom", error=error))
    inputs = re.findall(r"\\input\{(.*?)\}", (folder / "all.tex").read_text(encoding="utf-8"))
    assert {f"{name}.tex" for name in inputs} | {"all.tex"} == {path.name for path in folder.iterdir()}
    assert inputs == [*(f"survey-{i}" for i in range(1, 6)), "task-sst2"]
    for path in folder.iterdir():
        text = path.read_text(encoding="utf-8")
        assert balanced(text), path.name
        assert path.name == "all.tex" or tables(text)


def test_a_cell_has_the_published_value_and_ours_below(store):
    for seed, score in enumerate((0.79, 0.81)):
        store.write(record("nse", score=score, seed=seed))
    store.write(record("dan", score=0.7))
    board = read(store.folder)
    text = survey_latex(board, next(iter(surveys(board))))
    lines = text.splitlines()
    row = lines.index(next(line for line in lines if line.startswith("Neural Semantic Encoder")))
    assert lines[row : row + 2] == [
        r"Neural Semantic Encoder {[}95{]} & -- & 89.70 & -- & -- & -- & -- \\*",
        r" &  & 80.0 $\pm$ 1.4 (2) ($-$9.7) &  &  &  &  \\",
    ]
    assert r"ULMFiT {[}216{]} & 95.40 & -- & -- & -- & 97.84 & 70.02 \\" in lines
    assert "Training examples of ours: SST-2 1,000." in text
    assert r"DAN & 70.0 (1) \\" in lines, "a second table of ours alone"
    assert "{[}1{]} prints BERT-base" in text


def test_a_task_has_the_main_metric_best_first(store):
    store.write(record("nse", "fsdd", {"wer": 0.2}))
    store.write(record("count", "fsdd", {"wer": 0.3}))
    store.write(record("dan", "fsdd", {"wer": 0.1}, tier="mini"))
    text = task_latex(read(store.folder), "fsdd")
    assert [line for line in text.splitlines() if line.endswith(r"\\")] == [
        r"Architecture & WER $\downarrow$ & training examples \\",
        r"NSE & \textbf{20.0 (1)} & 1,000 \\",
        r"\emph{Counting} & 30.0 (1) & 1,000 \\",
        r"Architecture & WER $\downarrow$ & training examples \\",
        r"DAN & \textbf{10.0 (1)} & 1,000 \\",
    ]
    assert "tier mini (generated corpus, not the published data), protocol equal, budget full" in text


def measured(cell: str) -> float:
    """Points of a cell of one line, or of its widest stacked line, by our bound."""
    stack = re.fullmatch(r"\\shortstack\[r\]\{(.*)\}", cell)
    lines = stack[1].split(r"\\") if stack else [cell]
    plain = [re.sub(r"\$\\(pm|downarrow)\$", "±", line).replace("$-$", "−").replace("--", "–") for line in lines]
    bold = BOLD if r"\textbf" in cell else 1
    return max(bold * width(re.sub(r"\\\w+\{(.*?)\}|\{(.)\}", r"\1\2", line)) for line in plain)


def too_wide(text: str) -> list[float]:
    """Widths of the tables that do not fit the page."""
    widths = []
    for names, lines in tables(text):
        columns = zip(*(line[1:] for line in lines), strict=True)
        widths.append(names + GAP + sum(GAP + max(map(measured, column)) for column in columns))
    return [each for each in widths if each > TEXT_WIDTH + 1]


def test_no_table_is_wider_than_the_text(store):
    """They overflowed by up to 1,722 points: Table 1 lost its last columns."""
    for i in range(9):
        for seed, score in enumerate((0.1, 0.9, 0.5)):
            store.write(record("nse", f"conll{i}", score=score, seed=seed))
            store.write(record("evil", "sst2", score=score, seed=seed))
    board = read(store.folder)
    for survey in surveys(board):
        text = survey_latex(board, survey)
        assert too_wide(text) == []
        if survey.id == "tagging":
            columns = [len(lines[0]) - 1 for _, lines in tables(text)]
            assert sum(columns) == 9 and len(columns) > 1, "columns that do not fit are in a further table"
    assert too_wide(task_latex(board, "sst2")) == []


def test_the_committed_results_fit_the_page(monkeypatch):
    monkeypatch.undo()
    root = next(folder for folder in Path(__file__).resolve().parents if (folder / "pyproject.toml").is_file())
    board = read(root / "results")
    texts = [survey_latex(board, survey) for survey in surveys(board)]
    texts += [task_latex(board, name) for name in board.recorded_tasks]
    assert sum(len(tables(text)) for text in texts) >= len(texts) > 5
    assert [too_wide(text) for text in texts] == [[] for _ in texts]


def test_a_table_that_is_too_wide_is_seen():
    """The checks above pass on everything where the measure finds nothing."""
    row = rf"Name & {'W' * 30} \\"
    text = "\\begin{longtable}{>{\\raggedright\\arraybackslash}p{%dpt}r}\n%s\n\\end{longtable}"
    assert too_wide(text % (NAME_WIDTH, row)) == []
    [found] = too_wide(text % (NAME_WIDTH + 60, row))
    assert found > TEXT_WIDTH


def test_our_widths_are_bounds_of_those_of_the_font():
    """The font of LaTeX, which matplotlib brings along: of 10 points, and 2.8 % narrower in em than
    that of 9 points."""
    matplotlib = pytest.importorskip("matplotlib")
    fonts = pytest.importorskip("fontTools.ttLib")
    folder = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    for name, bold in (("cmr10.ttf", 1.0), ("cmb10.ttf", BOLD)):
        font = fonts.TTFont(folder / name)
        unit, glyphs, characters = font["head"].unitsPerEm, font["hmtx"], font.getBestCmap()
        for character in "".join(map(chr, range(33, 127))).translate({ord(c): None for c in '"<>\\_{|}'}):
            real = 9 * 1.028 * glyphs[characters[ord(character)]][0] / unit
            assert real <= bold * width(character) + 0.01, (name, character)
    assert width("É") == width("∑") == width("W") / 1.2 * CAPITAL


def test_latex_specials_are_replaced_once():
    """Replacing one after the other would escape what the first replacement wrote."""
    assert escape("\\{}") == r"\textbackslash{}\{\}"
    assert escape("a\n\n b") == "a b"


def test_the_labels_of_all_metrics_are_known_to_latex():
    """One Greek letter in the head of a table, and nothing of all.tex is printed."""
    for name in INFOS:
        assert escape(metric_label(name)).isascii(), name


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="there is no pdflatex here")
def test_pdflatex_accepts_the_tables_without_overflow(store):
    records = [
        record("nse", f"conll{i}", score=score, seed=seed) for i in range(9) for seed, score in enumerate((0.1, 0.9))
    ]
    folder = built(store, *records, record("evil", score=0.5), record("nse", score=0.8))
    done = subprocess.run(
        ["pdflatex", "-draftmode", "-interaction=nonstopmode", "-halt-on-error", "all.tex"],  # draft: needs no fonts
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-2000:]
    assert "Overfull \\hbox" not in done.stdout
