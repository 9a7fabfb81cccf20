"""The choice: what chance cannot tell apart, and the cheapest of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness import registry
from harness.records import Store
from harness.trying.choice import Choice, Tried, choose
from tests.support.made_records import judged, record


@pytest.fixture
def store(tmp_path: Path) -> Store:
    (tmp_path / "records").mkdir()
    return Store(tmp_path)


@pytest.fixture
def choice(store: Store):
    """The choice among architectures with so many of 100 rows right in each fold; ``seconds`` are
    those of a cell."""

    def of(rights: dict[str, tuple[int, ...]], seconds: dict[str, float] | None = None, rows: int = 1000) -> Choice:
        tried = []
        for id, folds in rights.items():
            made = tuple(
                judged(
                    store,
                    "1" * right + "0" * (100 - right),
                    architecture=id,
                    task=f"fold_{number}",
                    main_metric="accuracy",
                    seconds={"total": (seconds or {}).get(id, 1.0)},
                )
                for number, right in enumerate(folds)
            )
            tried.append(Tried(registry.entry("architectures", id), made))
        return choose(tried, "accuracy", store, rows)

    return of


def names(rows) -> list[str]:
    return [each.tried.entry.id for each in rows]


def test_the_cheapest_of_those_in_front_is_recommended(choice):
    found = choice(
        {"bilstm": (90,), "dan": (88,), "nbsvm": (60,), "floor_majority": (50,)},
        {"bilstm": 90.0, "dan": 5.0, "nbsvm": 0.5},
    )
    assert names(found.rows) == ["bilstm", "dan", "nbsvm", "floor_majority"]
    assert names(found.leading) == ["bilstm", "dan"]
    assert found.recommended is not None and found.recommended.tried.entry.id == "dan"
    low, high = found.rows[0].interval
    assert low < found.rows[0].score < high
    assert found.rows[2].p < 0.05 and found.rows[3].p is None


def test_folds_count_as_one_test(choice):
    """Five small ones would tell nothing apart."""
    one = choice({"bilstm": (85,), "dan": (80,), "floor_majority": (50,)})
    five = choice({"bilstm": (85,) * 5, "dan": (75,) * 5, "floor_majority": (50,) * 5})
    widths = [found.rows[0].interval[1] - found.rows[0].interval[0] for found in (one, five)]
    assert widths[1] < widths[0] / 2
    assert names(one.leading) == ["bilstm", "dan"] and names(five.leading) == ["bilstm"]


def test_nothing_is_recommended_that_may_have_learnt_nothing(choice):
    """A winner among rows at the floor is luck alone."""
    found = choice({"bilstm": (52,), "dan": (51,), "floor_majority": (50,)})
    assert found.recommended is None and "answer without a model" in found.reason
    assert [each.at_floor for each in found.rows] == [True, True, False]


def test_nothing_is_recommended_by_fewer_than_100_rows(choice):
    found = choice({"bilstm": (90,), "floor_majority": (50,)}, rows=99)
    assert found.recommended is None and found.reason == "99 rows are too few; 100 are the least"
    assert names(found.leading) == ["bilstm"]


def test_a_metric_that_is_no_mean_over_rows_has_no_test(store):
    """A correlation of all rows: the best alone is in front, without an interval."""
    tried = []
    for id, score in (("bilstm", 0.9), ("dan", 0.8), ("floor_mean", 0.0)):
        made = record(id, score={"pearson": score}, main_metric="pearson", seconds={"total": 1.0})
        store.write(made)
        tried.append(Tried(registry.entry("architectures", id), (made,)))
    found = choose(tried, "pearson", store, 1000)
    assert names(found.leading) == ["bilstm"]
    assert all(each.interval is None for each in found.rows)


def test_less_is_better_where_the_metric_is_an_error(store):
    tried = []
    for id, wrong in (("bilstm_ctc", 10), ("seq2seq", 60), ("floor_nothing", 100)):
        made = judged(
            store, "1" * wrong + "0" * (100 - wrong), metric="wer", architecture=id, task="an4", main_metric="wer"
        )
        tried.append(Tried(registry.entry("architectures", id), (made,)))
    found = choose(tried, "wer", store, 1000)
    assert names(found.rows) == ["bilstm_ctc", "seq2seq", "floor_nothing"]
    assert names(found.leading) == ["bilstm_ctc"]
