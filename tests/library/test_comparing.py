"""``archbench.compare``: the leaderboard's paired test for two architectures."""

from __future__ import annotations

import dataclasses

import pytest

import archbench
from harness.errors import LeaderboardError, UnknownName
from harness.leaderboard.board import read
from harness.leaderboard.comparison import compare as compare_board
from harness.leaderboard.results import Section
from harness.records import Store
from tests.support.made_records import judged, record


@pytest.fixture
def store(tmp_path) -> Store:
    (tmp_path / "records").mkdir()
    return Store(tmp_path)


def three_seeds(store: Store, architecture: str, right: int, **fields: object) -> list[str]:
    """Keys of records of three seeds, about that many of 100 units right."""
    rights = (right - 1, right, right + 1)
    made = (
        judged(store, "1" * right + "0" * (100 - right), architecture=architecture, seed=seed, **fields)
        for seed, right in enumerate(rights)
    )
    return [each.key for each in made]


def test_it_is_the_test_of_the_compare_page(store):
    """Two answers to one question would be one too many."""
    for architecture, right in (("dan", 60), ("lstm", 90), ("cnn", 70)):
        three_seeds(store, architecture, right)
    found = archbench.compare("lstm", "dan", "sst2", store.folder)
    page = compare_board(read(store.folder), Section("local", "equal"), "sst2")
    rows = {architecture: row for row, (architecture, _) in enumerate(page.results)}
    assert found.p == page.p[rows["lstm"], rows["dan"]] < 0.01
    assert (found.task, found.metric, found.a, found.b, found.units) == ("sst2", "accuracy", "lstm", "dan", 100)
    assert (found.score_a, found.score_b) == pytest.approx((0.9, 0.6))
    assert found.difference == pytest.approx(0.3)
    assert found.seeds_a == found.seeds_b == (0, 1, 2)
    assert found.better == "lstm"
    low, high = found.interval
    assert 0 < low < 0.3 < high
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.p = 0.0


def test_the_other_way_round_has_the_other_sign(store):
    for architecture, right in (("dan", 60), ("lstm", 90)):
        three_seeds(store, architecture, right)
    one = archbench.compare("lstm", "dan", "sst2", store.folder)
    other = archbench.compare("dan", "lstm", "sst2", store.folder)
    assert (other.difference, other.p, other.better) == (-one.difference, one.p, "lstm")
    assert other.interval == (-one.interval[1], -one.interval[0])


def test_the_interval_holds_0_where_the_two_cannot_be_told_apart(store):
    for architecture, right in (("dan", 80), ("lstm", 81)):
        three_seeds(store, architecture, right)
    found = archbench.compare("lstm", "dan", "sst2", store.folder)
    assert found.p > 0.05 and found.better is None
    assert found.interval[0] < 0 < found.interval[1]


def test_the_better_one_has_the_lower_error_rate(store):
    for architecture, right in (("lstm", 90), ("dan", 10)):
        three_seeds(store, architecture, right, task="an4", metric="wer", main_metric="wer")
    found = archbench.compare("lstm", "dan", "an4", store.folder)
    assert found.lower_is_better and found.better == "dan"


def test_two_seeds_decide_nothing(store):
    """The leaderboard calls no lead significant with fewer than three."""
    for architecture, right in (("dan", "0" * 90 + "1" * 10), ("lstm", "1" * 100)):
        for seed in range(2):
            judged(store, right, architecture=architecture, seed=seed)
    found = archbench.compare("lstm", "dan", "sst2", store.folder)
    assert found.p < 0.05 and found.better is None


def test_a_pair_that_may_not_be_compared_is_refused_with_what_differs(store):
    """A difference of protocols would be read as one of architectures."""
    three_seeds(store, "dan", 60)
    three_seeds(store, "lstm", 90, protocol="paper")
    with pytest.raises(LeaderboardError, match=r"lstm and dan, sst2: may not be compared: .*protocol \(paper\)"):
        archbench.compare("lstm", "dan", "sst2", store.folder)
    three_seeds(store, "cnn", 90, sees=["texts of test"])
    with pytest.raises(LeaderboardError, match=r"view of other data \(texts of test\)"):
        archbench.compare("cnn", "dan", "sst2", store.folder)
    with pytest.raises(LeaderboardError, match="they are one result"):
        archbench.compare("dan", "dan", "sst2", store.folder)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"protocol": "smoke"}, "protocol smoke with budget full is never ranked"),
        ({"budget": {"name": "custom", "examples": 64}}, "protocol equal with budget custom is never ranked"),
    ],
)
def test_what_is_never_ranked_is_not_compared(store, fields, message):
    for architecture in ("dan", "lstm"):
        judged(store, "10" * 20, architecture=architecture, **fields)
    with pytest.raises(LeaderboardError, match=message):
        archbench.compare("lstm", "dan", "sst2", store.folder)


def test_several_ways_are_listed_and_each_can_be_named(store):
    """The first one found would be an accident of the order of files."""
    keys = {}
    for protocol, right in (("equal", 90), ("paper", 70)):
        keys[protocol] = three_seeds(store, "lstm", right, protocol=protocol)
        three_seeds(store, "dan", 50, protocol=protocol)
    with pytest.raises(LeaderboardError, match=r"2 ways to compare them; name tier, protocol or budget, or keys:"):
        archbench.compare("lstm", "dan", "sst2", store.folder)
    by_name = archbench.compare("lstm", "dan", "sst2", store.folder, protocol="paper")
    assert by_name.score_a == pytest.approx(0.7)
    assert archbench.compare(keys["paper"][1], "dan", "sst2", store.folder) == by_name
    with pytest.raises(LeaderboardError, match=r"lstm, sst2: no result with budget small; there are local, equal"):
        archbench.compare("lstm", "dan", "sst2", store.folder, budget="small")


def test_two_configurations_of_one_architecture_are_compared_by_their_keys(store):
    wide, narrow = (
        three_seeds(store, "lstm", right, hyperparameters={"hidden": hidden}) for right, hidden in ((90, 300), (60, 10))
    )
    found = archbench.compare(wide[0], narrow[0], "sst2", store.folder)
    assert (found.a, found.b, found.difference) == ("lstm", "lstm", pytest.approx(0.3))


def test_names_without_a_result_are_answered_with_near_ones(store):
    three_seeds(store, "lstm", 90)
    store.write(record("dan", status="failed"))
    with pytest.raises(UnknownName, match="no task with a record ended ok is called 'sst'; did you mean sst2"):
        archbench.compare("lstm", "dan", "sst", store.folder)
    with pytest.raises(UnknownName, match="no architecture with a record ended ok on sst2 is called 'dan'; there are"):
        archbench.compare("lstm", "dan", "sst2", store.folder)


def test_records_without_outcomes_are_named(store):
    three_seeds(store, "lstm", 90)
    for seed in range(3):
        store.write(record("dan", score=0.5, seed=seed, data={"test": "t" * 64}))
    with pytest.raises(LeaderboardError, match=r"dan, sst2: no outcomes .* `archbench rescore`"):
        archbench.compare("lstm", "dan", "sst2", store.folder)
