"""The choice: what chance cannot tell apart, and what a wish picks of it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from harness import registry
from harness.model_selection.choice import Choice, Tried, choose
from harness.model_selection.report import sentences, tables
from harness.model_selection.wish import Preference, Wish
from harness.records import Store
from tests.support.made_records import judged, record


@pytest.fixture
def store(tmp_path: Path) -> Store:
    (tmp_path / "records").mkdir()
    return Store(tmp_path)


@pytest.fixture
def choice(store: Store):
    """The choice among architectures with so many of 100 rows right in each fold; ``seconds`` are
    those of a cell."""

    def of(
        rights: dict[str, tuple[int, ...]],
        seconds: dict[str, float] | None = None,
        rows: int = 1000,
        wish: Wish = Wish(),
        parameters: dict[str, int] | None = None,
    ) -> Choice:
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
                    speed={"latency_ms_p50": (seconds or {}).get(id, 1.0)},
                    parameters={"total": (parameters or {}).get(id, 0)},
                )
                for number, right in enumerate(folds)
            )
            tried.append(Tried(registry.entry("architectures", id), made))
        return choose(tried, "accuracy", store, rows, wish)

    return of


def names(rows) -> list[str]:
    return [each.tried.entry.id for each in rows]


IN_FRONT = {"bilstm": (90,), "dan": (88,), "nbsvm": (60,), "floor_majority": (50,)}
SECONDS = {"bilstm": 90.0, "dan": 5.0, "nbsvm": 0.5}


def test_the_best_is_recommended_and_the_cheapest_of_those_in_front_named(choice):
    """Who wants a good model would be handed the cheapest of twenty that a small test cannot tell
    apart."""
    found = choice(IN_FRONT, SECONDS)
    assert names(found.rows) == ["bilstm", "dan", "nbsvm", "floor_majority"]
    assert names(found.leading) == ["bilstm", "dan"]
    assert names([found.recommended, found.cheapest]) == ["bilstm", "dan"]
    low, high = found.rows[0].interval
    assert low < found.rows[0].score < high
    assert found.rows[2].p < 0.05 and found.rows[3].p is None


def test_a_p_that_is_next_to_none_is_not_given_as_one_in_a_thousand(choice):
    [table] = tables(SimpleNamespace(choice=choice({"bilstm": (99,), "nbsvm": (10,)}), behind={}, left_out={}))
    rows = {row.name: row.cells[2][0].text for row in table.blocks[0].rows}
    assert [text for name, text in rows.items() if "nbsvm" in name] == ["behind, p < 0.001"]


@pytest.mark.parametrize("order", [("dan", "bilstm"), ("bilstm", "dan")])
def test_of_equal_scores_the_faster_one_is_recommended(choice, order):
    """Whichever was tried first."""
    assert names(choice(dict.fromkeys(order, (90,)), SECONDS).rows) == ["dan", "bilstm"]


@pytest.mark.parametrize(
    ("wish", "recommended"),
    [
        (Wish(Preference.cheapest), "dan"),
        (Wish(latency_ms=90.0), "bilstm"),
        (Wish(latency_ms=89.0), "dan"),
        (Wish(size_mib=4.0), "bilstm"),
        (Wish(size_mib=3.9), None),
        (Wish(latency_ms=1.0), None),
    ],
)
def test_a_wish_picks_among_those_in_front_alone(choice, wish, recommended):
    """`nbsvm` would keep to every limit, and is behind; of `dan` no size is known."""
    found = choice(IN_FRONT, SECONDS, wish=wish, parameters={"bilstm": 2**20})
    if recommended is None:
        assert found.recommended is None
        assert found.reason.startswith(f"none of those in front keeps to {wish.limits}")
    else:
        assert names([found.recommended]) == [recommended]


@pytest.mark.parametrize(
    ("prefer", "told"),
    [
        (
            Preference.best,
            "Recommended: bilstm, the best of those in front. The cheapest of them, dan, has 88.0 (−2.0) and takes 5 s"
            " instead of 90.",
        ),
        (
            Preference.cheapest,
            "Recommended: dan, the cheapest of those in front. The best of them, bilstm, has 90.0 (+2.0) and takes 90 s"
            " instead of 5.",
        ),
    ],
)
def test_the_other_one_is_told_with_what_it_costs(choice, prefer, told):
    wish = Wish(prefer)
    found = choice(IN_FRONT, SECONDS, wish=wish)
    slices, order = SimpleNamespace(words="1,000 rows.", sealed=False), SimpleNamespace(reason="Order: by cost.")
    trial = SimpleNamespace(
        choice=found,
        wish=wish,
        slices=slices,
        order=order,
        confirmed=None,
        why_not_kept="not kept",
        handed_over=None,
    )
    assert told in sentences(trial)


def test_more_rows_decide_among_those_in_front(choice):
    """By 100 rows the best of two equals is a matter of luck; the table still has what all were
    chosen by."""
    first = choice(IN_FRONT, SECONDS)
    found = first.decided(choice({"dan": (88, 91, 90), "bilstm": (90, 82, 81)}, SECONDS))
    assert names(found.finals) == ["dan", "bilstm"] and found.finals[0].score == pytest.approx(269 / 300)
    assert found.recommended is found.best is found.rows[1] and found.recommended.score == pytest.approx(0.88)
    assert (found.rows, found.leading, found.cheapest) == (first.rows, first.leading, first.cheapest)


def test_what_more_rows_decided_is_told_with_their_scores(choice):
    found = choice(IN_FRONT, SECONDS).decided(choice({"dan": (88, 91, 90), "bilstm": (90, 82, 81)}, SECONDS))
    slices, order = SimpleNamespace(words="1,000 rows.", sealed=False), SimpleNamespace(reason="Order: by cost.")
    trial = SimpleNamespace(
        choice=found,
        wish=Wish(),
        slices=slices,
        order=order,
        confirmed=None,
        why_not_kept="not kept",
        handed_over=None,
    )
    words = " ".join(sentences(trial))
    assert "so that more rows compare them: dan 89.7, bilstm 84.3." in words
    assert "Recommended: dan, the best of those in front." in words
    assert "Its score, 89.7, is that of a choice among 3" in words


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


def without_outcomes(store: Store, metric: str, **scores: float) -> list[Tried]:
    """Architectures with a score of a metric that is no mean over rows."""
    tried = []
    for id, score in scores.items():
        made = record(id, score={metric: score}, main_metric=metric, seconds={"total": 1.0})
        store.write(made)
        tried.append(Tried(registry.entry("architectures", id), (made,)))
    return tried


def test_a_metric_that_is_no_mean_over_rows_has_no_test(store):
    """A correlation of all rows: the best alone is in front, without an interval."""
    found = choose(without_outcomes(store, "pearson", bilstm=0.9, dan=0.8, floor_mean=0.0), "pearson", store, 1000)
    assert names(found.leading) == ["bilstm"]
    assert all(each.interval is None for each in found.rows) and not found.tested


def test_a_hair_above_the_floor_is_no_lead_where_chance_cannot_be_asked(store):
    """By macro F1 one was recommended, and handed over, that accuracy has at the floor."""
    found = choose(without_outcomes(store, "macro_f1", bilstm=0.52, dan=0.51, floor_mean=0.5), "macro_f1", store, 1000)
    assert (found.leading, found.recommended, found.tested) == ((), None, False)
    assert [each.at_floor for each in found.rows] == [True, True, False]


def test_those_in_front_are_so_by_the_metric_of_the_choice(store):
    """A page headed macro F1 named those in front by accuracy, the main metric of the records."""
    tried = []
    for id, right, macro in (("bilstm", 90, 0.9), ("dan", 89, 0.5), ("floor_majority", 50, 0.1)):
        made = judged(store, "1" * right + "0" * (100 - right), architecture=id, main_metric="accuracy")
        made.scores["test"]["macro_f1"] = macro
        made.seconds["total"] = 1.0
        tried.append(Tried(registry.entry("architectures", id), (made,)))
    assert names(choose(tried, "accuracy", store, 1000).leading) == ["bilstm", "dan"]
    assert names(choose(tried, "macro_f1", store, 1000).leading) == ["bilstm"]


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
