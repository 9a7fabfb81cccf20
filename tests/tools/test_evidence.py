"""The table of evidence: what records say, of which ones, and that new ones make no line false."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness import registry
from harness.model_selection.evidence import lines
from harness.records import Record, Store
from harness.running import grid
from tools import evidence

RESULTS = Path(__file__).resolve().parents[2] / "results"


@pytest.fixture
def record(tmp_path):
    """Makes and writes the record of a cell of SST-2."""

    def made(id: str = "dan", score: float = 0.8, **changes) -> Record:
        options = {"tier": "local", "protocol": "equal", "budget": "small", "seeds": [0]} | changes
        [planned] = grid.plan([registry.entry("architectures", id)], [registry.entry("tasks", "sst2")], **options)
        found = Record.skeleton(planned.cell, "ok", command="", scores={"test": {"accuracy": score}})
        found = found.model_copy(
            update={
                "counts": {"train": 2000, "dev": 872, "test": 1821},
                "main_metric": "accuracy",
                "view": {"view": "Words"},
                "spent": {"examples": 1000, "tokens": 19_250, "steps": 10},
            }
        )
        Store(tmp_path).write(found)
        return found

    return made


def test_a_line_says_what_its_record_says(record, tmp_path):
    """2,000 sentences are passed over four times."""
    found = record()
    [line] = evidence.table(tmp_path)
    assert line == (found.key, "classify", "sst2", "small", "dan", 8000, 19.2, None, 0.8)


def test_what_a_trial_cannot_learn_from_is_left_out(record, tmp_path):
    """Changed settings are another architecture, and trees that users do not have are no help."""
    record("dan", overrides=["dan.hidden=7"])
    record("bilstm", protocol="paper")
    record("tree_lstm")
    record("gru", tier="mini")
    kept = record("rnn")
    assert [line.key for line in evidence.table(tmp_path)] == [kept.key]


def test_a_check_tells_what_changed_and_writes_nothing(record, tmp_path, capsys):
    table, old = tmp_path / "evidence.csv", record("dan")
    options = ["--results", str(tmp_path), "--out", str(table)]
    assert evidence.main(options) == 0
    before = table.read_bytes()
    new = record("gru", 0.7)
    capsys.readouterr()
    lines.cache_clear()
    assert evidence.main([*options, "--check"]) == 1
    assert capsys.readouterr().out == f"+ sst2 small gru {new.key}\n" and table.read_bytes() == before
    assert evidence.main(options) == 0
    lines.cache_clear()
    assert {line.key for line in lines(table)} == {old.key, new.key}
    assert evidence.main([*options, "--check"]) == 0


def test_the_committed_lines_are_those_of_their_records():
    """A new record adds a line when the table is made anew; until then none may be false. One in
    seven is looked at, and few of their records may be gone."""
    store, looked = Store(RESULTS), lines()[::7]
    there = [
        line for line in looked if (RESULTS / "records" / line.task / line.architecture / f"{line.key}.json").exists()
    ]
    assert len(there) > 0.8 * len(looked), "make it anew: python -m tools.evidence"
    for line in there:
        record = store.read(RESULTS / "records" / line.task / line.architecture / f"{line.key}.json")
        assert evidence.line_of(record, store) == line, "make it anew: python -m tools.evidence"


def test_who_would_end_early_is_counted_by_curves_and_by_pilots(record):
    """By hand, on 300 rows: chance may move .70 to .75, and .80 to .75."""

    def trained(id: str, pilots: tuple[float, ...], *curve: float) -> Record:
        rates = {str(rate): score for rate, score in enumerate(pilots)}
        training = {"curve": [{"accuracy": score} for score in curve], "learning_rates": rates}
        return record(id).model_copy(update={"training": training, "scores": {"dev": {"accuracy": max(curve)}}})

    found = [
        trained("dan", (0.8, None), 0.75, 0.8, 0.8),
        trained("rnn", (0.5, 0.6), 0.5, 0.6, 0.6),  # ended, and rightly
        trained("gru", (0.5, 0.6), 0.6, 0.7, 0.8),  # ended, though it would have been in front
        trained("lstm", (0.78,), 0.5, 0.5, 0.5),  # had no pilots, so no trial would train it like this
    ]
    assert evidence.halved(found, 300) == (3, 2, 1, 2, 1)


def test_values_survive_the_file(tmp_path):
    some = [lines()[0], lines()[-1]._replace(words=None, classes=None, score=-1.5)]
    evidence.write(some, tmp_path / "evidence.csv")
    assert list(lines(tmp_path / "evidence.csv")) == some
