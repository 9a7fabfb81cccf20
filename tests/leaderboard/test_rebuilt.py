"""The survey's tables from the exports alone: whoever has ``archbench.results()`` and
``tables.csv`` needs none of our pages."""

from __future__ import annotations

import csv
import math
import statistics
from decimal import ROUND_HALF_EVEN, Decimal
from pathlib import Path

import pandas as pd

import archbench
from harness.leaderboard.board import read
from harness.leaderboard.tables.export import results, scores_csv
from harness.leaderboard.tables.methods import to_table
from harness.leaderboard.tables.survey import surveys
from harness.records import Store
from tests.support.made_pages import architecture, register_alone, task
from tests.support.made_records import record

ROOT = next(folder for folder in Path(__file__).resolve().parents if (folder / "pyproject.toml").is_file())
KINDS = ("published", "ours", "difference", "training examples")
Cells = dict[tuple[str, str, str, str], list[str]]
"""Lines of cells by name of the method, data set, metric and one of :data:`KINDS`."""


def shown(folder: Path) -> dict[str, Cells]:
    """The cells with a number, by the id of the survey's table, as pages show them."""
    board = read(folder)
    found: dict[str, Cells] = {}
    for survey in surveys(board):
        cells = found.setdefault(survey.id, {})
        for methods in survey.tables:
            table = to_table(board, methods)
            spans = zip(methods.columns, table.over, strict=True)
            places = [column for column, (_, count) in spans for _ in range(count)]
            for row in table.blocks[0].rows:
                for (dataset, metric), kind, cell in zip(places, table.columns[1:], row.cells, strict=True):
                    lines = [part.text.partition(" at the")[0].removesuffix(" ‡") for part in cell if part.style == ""]
                    if any(character.isdigit() for line in lines for character in line):
                        cells[row.name, dataset, metric, kind] = [line for line in lines if line]
    return found


def rebuilt(folder: Path) -> dict[str, Cells]:
    """The same from the two exports."""
    board = read(folder)
    rows = list(csv.DictReader(scores_csv(results(board, surveys(board)), board.published).splitlines()))
    frame = archbench.results(folder)
    found: dict[str, Cells] = {}
    counterparts: dict[tuple[str, str], tuple[str, dict[tuple[str, str], str]]] = {}
    for row in rows:
        if row["source"] == "survey":
            cells = found.setdefault(row["survey_table"], {})
            cells[row["name"], row["task"], row["metric"], "published"] = [row["published"]]
            name, values = counterparts.setdefault((row["survey_table"], row["counterpart"]), (row["name"], {}))
            values[row["task"], row["metric"]] = row["published"]
    for row in rows:
        if row["source"] == "ours" and row["survey_table"]:
            cells = found.setdefault(row["survey_table"], {})
            name, values = counterparts.get((row["survey_table"], row["architecture"]), (row["name"], {}))
            text, mean, examples = _score(frame, row["keys"].split(), row["metric"])
            place = name, row["task"], row["metric"]
            cells.setdefault((*place, "ours"), []).append(text)
            cells.setdefault((*place, "training examples"), []).append(f"{examples:,}")
            if place[1:] in values:
                points = round(float(mean) - float(values[place[1:]]), 1)
                text = f"{points:+.1f}".replace("-", "−") if points else "0.0"
                cells.setdefault((*place, "difference"), []).append(text)
    return found


def _score(frame: pd.DataFrame, keys: list[str], metric: str) -> tuple[str, Decimal, int]:
    """Text of the mean over some records, the mean as it is shown, and their training examples."""
    of_metric = frame[frame.key.isin(keys) & (frame.split == "test") & (frame.metric == metric)]
    values = [float(value) for value in of_metric.value]
    assert len(values) == len(keys)
    tenth, average = Decimal("0.1"), statistics.fmean(values)
    spread = statistics.stdev(values) if len(values) > 1 else 0.0
    if metric == "nats_per_token":  # shown as perplexity
        mean = Decimal(math.exp(average)).quantize(tenth, ROUND_HALF_EVEN)
        spread = (math.exp(average + spread) - math.exp(average - spread)) / 2
    else:
        mean, spread = (100 * Decimal(average)).quantize(tenth, ROUND_HALF_EVEN), 100 * spread
    deviation = f" ± {spread:.1f}" if len(values) > 1 else ""
    return f"{mean}{deviation} ({len(values)})", mean, int(of_metric.examples.max())


def test_tables_of_made_records(tmp_path, monkeypatch):
    """Seeds, settings, two metrics, and results that are in no table."""
    entries = [architecture("nse", "NSE"), architecture("hyperqa", "HyperQA"), architecture("dan", "DAN")]
    tasks = [task("sst2", "classify", "accuracy", "macro_f1"), task("wikiqa", "rank", "map", "mrr")]
    register_alone(monkeypatch, entries, [*tasks, task("chunk", "tag", "accuracy")])
    (tmp_path / "records").mkdir()
    for seed, score in enumerate((0.71, 0.735, 0.77)):
        for name in ("nse", "dan"):
            Store(tmp_path).write(record(name, "sst2", {"accuracy": score, "macro_f1": 0.5}, seed=seed))
        Store(tmp_path).write(record("hyperqa", "wikiqa", {"map": score, "mrr": score + 0.05}, seed=seed))
    for fields in (
        {"hyperparameters": {"hidden": 7}},
        {"tier": "mini"},
        {"counts": {"train": 10}, "hyperparameters": {"n": 1}},
    ):
        Store(tmp_path).write(record("nse", score=0.6, **fields))
    Store(tmp_path).write(record("dan", "chunk", score=0.6))
    Store(tmp_path).write(record("dan", status="oom", seed=3))
    found = rebuilt(tmp_path)
    assert found == shown(tmp_path)
    nse = [found["1"]["Neural Semantic Encoder [95]", "sst2", "accuracy", kind] for kind in KINDS]
    assert nse == [["89.70"], ["73.8 ± 3.0 (3)", "60.0 (1)"], ["−15.9", "−29.7"], ["1,000", "1,000"]]
    assert found["tagging"]["DAN", "chunk", "accuracy", "ours"] == ["60.0 (1)"]


def test_tables_of_the_committed_records():
    found = rebuilt(ROOT / "results")
    assert found == shown(ROOT / "results")
    assert sum(kind == "published" for cells in found.values() for *_, kind in cells) == 192
    assert any(kind == "difference" for *_, kind in found["1"])


def test_passes_are_those_of_the_table_of_records():
    """Two programs count them."""
    folder = ROOT / "results"
    frame = archbench.results(folder).drop_duplicates("key").set_index("key").passes
    exported = {each["key"]: each["passes"] for result in results(read(folder)) for each in result["records"]}
    assert {key: None if pd.isna(passes) else passes for key, passes in frame.items()} == exported
