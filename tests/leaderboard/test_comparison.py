"""Comparison of results: intervals, tie groups, and the rows that are left out."""

from __future__ import annotations

import re

import numpy as np
import pytest

from harness.leaderboard.board import read
from harness.leaderboard.comparison import compare
from harness.leaderboard.pages.mean_ranks import ranked_scores
from harness.leaderboard.pages.task_page import section_table
from harness.leaderboard.ranking import best_results, ranks
from harness.leaderboard.results import Section
from harness.leaderboard.tables.formatting import section_title
from harness.records import Store
from harness.records.outcomes import Outcomes
from tests.support.made_records import judged, record

SECTION = Section("local", "equal")
GOOD, NEAR, BAD = "1" * 90 + "0" * 10, "1" * 89 + "0" * 11, "1" * 40 + "0" * 60


def comparison_of(store: Store):
    return compare(read(store.folder), SECTION, "sst2")


def names(comparison, rows) -> list[str]:
    return [comparison.results[row][0] for row in rows]


def test_rows_that_chance_may_have_parted_share_the_first_place(store):
    """One unit of a hundred is no lead; fifty are."""
    for architecture, right in (("dan", NEAR), ("bilstm", GOOD), ("cnn", BAD)):
        judged(store, right, architecture=architecture)
    comparison = comparison_of(store)
    assert names(comparison, range(3)) == ["bilstm", "dan", "cnn"]
    assert comparison.scores.tolist() == [0.90, 0.89, 0.40]
    assert names(comparison, sorted(comparison.tie_group)) == ["bilstm", "dan"]
    assert comparison.p[0, 2] < 0.001 < 0.3 < comparison.p[0, 1] == comparison.corrected[1]
    assert (comparison.told_apart, comparison.pairs, comparison.untested) == (2, 3, 0)
    results = [result for _, result in comparison.results]
    assert comparison.corrected_p(results[0]) is None, "the best is at no distance from itself"
    assert comparison.corrected_p(results[2]) == comparison.corrected[2] < 0.001
    assert not comparison.leads
    low, high = comparison.intervals[0]
    assert 0.8 < low < 0.9 < high < 0.97


def test_a_lead_that_hangs_on_the_seeds_is_none(store):
    """MemN2N was said to lead by more than chance; the best single run was the other's."""
    for architecture, rights in (("dan", (60, 95, 80)), ("bilstm", (85, 75, 95))):
        for seed, right in enumerate(rights):
            judged(store, "1" * right * 10 + "0" * (100 - right) * 10, architecture=architecture, seed=seed)
    comparison = comparison_of(store)
    assert comparison.p[0, 1] > 0.3
    low, high = comparison.intervals[0]
    assert high - low > 0.2, "0.05 by the examples alone"
    assert not comparison.leads and not comparison.doubt


@pytest.mark.parametrize(("seeds", "leads"), [((3, 3), True), ((3, 2), False), ((1, 3), False), ((1, 1), False)])
def test_a_lead_needs_three_seeds_of_every_result(store, seeds, leads):
    for architecture, right, number in (("dan", GOOD, seeds[0]), ("bilstm", BAD, seeds[1])):
        for seed in range(number):
            judged(store, right, architecture=architecture, seed=seed)
    comparison = comparison_of(store)
    assert names(comparison, comparison.tie_group) == ["dan"]
    assert comparison.leads is leads
    assert bool(comparison.doubt) is not leads


def test_a_result_that_cannot_be_tested_and_is_no_worse_forbids_a_verdict(store):
    """ "The lead is real" stood above a table whose first row was another."""
    for seed in range(3):
        judged(store, GOOD, architecture="dan", seed=seed)
        judged(store, BAD, architecture="bilstm", seed=seed)
    store.write(record("cnn", score=0.89, data={"test": "t" * 64}))
    assert comparison_of(store).leads
    store.write(record("rnn", score=0.90, data={"test": "t" * 64}))
    comparison = comparison_of(store)
    assert (comparison.leads, comparison.untested, comparison.unbeaten) == (False, 2, 1)
    assert comparison.doubt == "not tested, but no worse than the best: 1"


def test_dependent_units_count_together(store):
    """Four speakers who are understood or not are four observations, not a hundred."""
    speakers = [number // 25 for number in range(100)]
    judged(store, "1" * 50 + "0" * 50, architecture="dan", clusters=speakers)
    judged(store, "1" * 25 + "0" * 75, architecture="bilstm", clusters=speakers)
    clustered = comparison_of(store)
    assert clustered.p[0, 1] > 0.3
    judged(store, "1" * 50 + "0" * 50, architecture="dan")
    judged(store, "1" * 25 + "0" * 75, architecture="bilstm")
    assert comparison_of(store).p[0, 1] < 0.001
    assert np.diff(clustered.intervals[0]) > 2 * np.diff(comparison_of(store).intervals[0])


def test_seeds_are_averaged_unit_by_unit(store):
    """Two seeds that are right on other units are worth their mean on each."""
    judged(store, "1100", architecture="dan")
    judged(store, "1010", architecture="dan", seed=1)
    comparison = comparison_of(store)
    assert comparison.scores.tolist() == [0.5]
    assert [outcomes.numerators.tolist() for outcomes in comparison.outcomes[0]] == [[1, 1, 0, 0], [1, 0, 1, 0]]


def test_a_row_of_less_training_data_does_not_tie(store):
    """It was not in the same race, whatever its score."""
    judged(store, NEAR, architecture="dan")
    judged(store, GOOD, architecture="bilstm", counts={"train": 10}, partial=True)
    comparison = comparison_of(store)
    assert names(comparison, sorted(comparison.tie_group)) == ["dan"]


def test_for_error_rates_the_lowest_is_first(store):
    for architecture, wrong in (("dan", BAD), ("bilstm", GOOD)):
        judged(store, wrong, architecture=architecture, task="fsdd", metric="wer")
    comparison = compare(read(store.folder), SECTION, "fsdd")
    assert names(comparison, [0]) == ["dan"]
    assert names(comparison, sorted(comparison.tie_group)) == ["dan"]


def nats(store: Store, architecture: str, sums: list[float], **fields) -> None:
    """A record of a language model with the nats of each text, all of ten tokens."""
    score = sum(sums) / (10 * len(sums))
    made = record(architecture, "lm", {"nats_per_token": score}, main_metric="nats_per_token", **fields)
    made.data = {"test": "t" * 64}
    units = [f"unit-{i}" for i in range(len(sums))]
    made.predictions = store.save_predictions(made, units, [[-value, 10] for value in sums])
    outcomes = Outcomes("nats_per_token", units, np.array(sums), np.full(len(sums), 10.0), {})
    store.save_outcomes(made, made.predictions, units, outcomes)
    store.write(made)


def test_language_models_have_intervals_and_tests_of_their_perplexity(store):
    """Perplexity itself is no ratio of sums: without nats per token it would have neither."""
    nats(store, "rnn_lm", [30.0, 32.0] * 20)
    nats(store, "ngram_lm", [50.0, 52.0] * 20)
    board = read(store.folder)
    comparison = compare(board, SECTION, "lm")
    assert names(comparison, range(2)) == ["rnn_lm", "ngram_lm"], "fewer nats are better"
    assert names(comparison, comparison.tie_group) == ["rnn_lm"]
    assert comparison.p[0, 1] < 0.001
    row = section_table(board, SECTION, "lm").blocks[0].rows[0]
    shown = [cell[0].text for cell in row.cells[:2]]
    low, high = map(float, shown[1].split(" to "))
    assert shown[0] == "22.2 (1)", "exp(3.1)"
    assert 21.3 < low < 22.2 < high < 23.1, "3.1 nats, 0.031 more or less"


def test_perplexities_of_other_tokens_are_in_another_section(store):
    """A perplexity of 5 per character beside one of 100 per word would look twenty times better."""
    nats(store, "rnn_lm", [46.0, 47.0], hyperparameters={"tokens": "words"})
    nats(store, "char_lm", [16.0, 17.0], hyperparameters={"tokens": "characters"})
    store.write(record("dan", score=0.5, hyperparameters={"tokens": "words"}))
    board = read(store.folder)
    sections = {section: [architecture for architecture, _ in pairs] for section, pairs in board.sections.items()}
    assert sections == {
        Section("local", "equal"): ["dan"],
        Section("local", "equal", tokens="characters"): ["char_lm"],
        Section("local", "equal", tokens="words"): ["rnn_lm"],
    }
    words = Section("local", "equal", tokens="words")
    assert section_title(words) == "tier local, protocol equal, budget full, tokens words"


def test_rows_with_further_inputs_are_in_a_section_that_says_so(store):
    """Beside rows that read words alone, a row that reads characters too would be called better for
    what its encoder is."""
    inputs = {"char_cnn_words": {"version": 1, "filters": 30}}
    store.write(record("dan", score=0.5))
    store.write(record("dan", score=0.6, hyperparameters={"inputs": inputs}))
    store.write(record("dan", score=0.7, hyperparameters={"inputs": inputs | {"char_lstm_words": {"version": 1}}}))
    store.write(record("dan", score=0.8, hyperparameters={"inputs": {"char_cnn_words": {"version": 1, "filters": 9}}}))
    sections = list(read(store.folder).sections)
    plain = "tier local, protocol equal, budget full"
    titles = [section_title(section).removeprefix(plain) for section in sections]
    assert sorted(re.sub(r" \(\w{8}\)", "", title) for title in titles) == [
        "",
        ", inputs char_cnn_words",
        ", inputs char_cnn_words",
        ", inputs char_cnn_words and char_lstm_words",
    ]
    assert len(set(titles)) == len({section.id for section in sections}) == 4


def test_the_rule_of_comparability_is_one_for_all_pages(store):
    """Two pages with a rule each would name two leaders."""
    judged(store, GOOD, architecture="bilstm", counts={"train": 10}, partial=True)
    judged(store, NEAR, architecture="dan")
    store.write(record("cnn", score=0.2, data={"test": "t" * 64}))
    store.write(record("rnn", status="failed", counts={"train": 9999}))
    board = read(store.folder)
    ranked = board.rivals(SECTION, "sst2", "accuracy")
    assert [architecture for architecture, _ in ranked] == ["cnn", "dan"]
    assert best_results(board, SECTION, "sst2", "accuracy") == {ranked[1][1]}
    assert ranks(board, SECTION, "sst2", "accuracy") == {ranked[1][1]: 1, ranked[0][1]: 2}
    assert comparison_of(store).untested == 1
    assert names(comparison_of(store), comparison_of(store).rivals) == ["dan"]
    assert ranked_scores(board, SECTION)[0] == {"cnn": {"sst2": 0.2}, "dan": {"sst2": 0.89}}


def test_rows_on_other_test_data_or_without_outcomes_stay_out(store):
    """A paired test needs the same units; a row without outcomes has a score and no interval."""
    judged(store, GOOD, architecture="dan")
    judged(store, GOOD, architecture="cnn")
    other = judged(store, GOOD, architecture="bilstm")
    store.write(other.model_copy(update={"data": {"test": "u" * 64}}))
    store.write(record("rnn", score=0.5, data={"test": "t" * 64}))
    board = read(store.folder)
    comparison = compare(board, SECTION, "sst2")
    assert sorted(names(comparison, range(2))) == ["cnn", "dan"]
    assert comparison.row(board.sections[SECTION]["rnn", "sst2"][0]) is None
    assert comparison.row(board.sections[SECTION]["dan", "sst2"][0]) in (0, 1)


def test_nothing_is_known_where_nothing_was_kept(store):
    store.write(record("rnn", score=0.5))
    assert comparison_of(store) is None


def test_a_damaged_file_of_outcomes_is_a_notice(store):
    judged(store, GOOD, architecture="dan")
    judged(store, GOOD, architecture="cnn")
    path = next(store.folder.rglob("records/sst2/dan/*.outcomes.json.gz"))
    path.write_bytes(b"?")
    board = read(store.folder)
    assert names(compare(board, SECTION, "sst2"), [0]) == ["cnn"]
    assert any(str(path) in notice for notice in board.notices)
