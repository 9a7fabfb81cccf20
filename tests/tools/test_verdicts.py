"""The simulation behind the verdicts of the leaderboard: some of its boards, and its committed
figures."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.stats

from harness.leaderboard import significance
from harness.leaderboard.significance import estimate
from harness.records import Store
from tests.support.made_records import judged
from tools.verdicts.boards import EQUAL, LED, LED_BY_ONE, SST2, WIKIQA, Spread, outcomes, true_scores
from tools.verdicts.judges import CHOSEN
from tools.verdicts.measured import measure
from tools.verdicts.report import FALSE_TEXT, LEAD_TEXT, TRIALS, interval, report
from tools.verdicts.simulation import simulate

REPORT = Path(__file__).resolve().parents[2] / "results" / "verdicts.md"
BOARDS = 200


def near(share: float, boards: int) -> float:
    """Two standard errors of a share."""
    return 2 * float(np.sqrt(share * (1 - share) / boards))


@pytest.mark.parametrize("systems", [2, 10, 40])
def test_a_first_place_of_equal_systems_is_rarely_called_real(systems):
    """The test over examples alone, as it was, does so on every fifth board of two."""
    found = simulate(SST2, EQUAL, systems, [CHOSEN], BOARDS)[CHOSEN]
    assert found.alone / BOARDS <= 0.06 + near(0.06, BOARDS)
    assert found.behind / BOARDS <= 0.06 + near(0.06, BOARDS)
    assert found.covered == pytest.approx(0.95, abs=0.03)


@pytest.mark.parametrize("systems", [2, 10, 40])
def test_a_lead_of_three_seed_deviations_is_mostly_found(systems):
    """A test that never calls anything real is never wrong."""
    found = simulate(SST2, LED, systems, [CHOSEN], BOARDS)[CHOSEN]
    assert found.found / BOARDS >= 0.8 - near(0.8, BOARDS)


def test_the_simulation_notices_a_test_that_says_too_much():
    """Otherwise it would wave the chosen one through as well."""
    found = simulate(SST2, EQUAL, 2, ["examples alone"], BOARDS)["examples alone"]
    assert found.alone / BOARDS > 0.12


@pytest.mark.parametrize("spread", [SST2, WIKIQA, replace(SST2, deviations=())])
def test_made_up_boards_differ_as_the_records_do(spread):
    """Figures of boards that are nothing like ours would say nothing of ours."""
    draw = np.random.default_rng(0)
    between, chance, pairs, scores = [], [], [], []
    for _ in range(60):
        rows, _ = outcomes(spread, true_scores(spread, EQUAL, 10, draw), draw)
        found = estimate(rows)
        each = [significance.spread(*row, np.arange(spread.units)) for row in rows]
        between += [row.between for row in each]
        chance += [row.chance for row in each]
        scores += [row.score for row in each]
        own = np.diag(found.of_clusters) - found.of_chance
        pairs.append((own[:, None] + own - 2 * found.of_clusters)[np.triu_indices(10, 1)].mean())
    assert np.mean(scores) == pytest.approx(spread.right, abs=0.01)
    assert np.sqrt(np.mean(chance)) == pytest.approx(spread.chance, rel=0.05)
    assert np.sqrt(np.mean(pairs)) == pytest.approx(spread.pair, rel=0.1)
    assert np.sqrt(np.mean(between)) == pytest.approx(spread.seeds, rel=0.15)


def test_units_of_one_cluster_are_right_and_wrong_together():
    draw = np.random.default_rng(0)
    rows, clusters = outcomes(replace(SST2, clusters=20), np.full(2, 0.8), draw)
    assert len(set(clusters.tolist())) == 20
    apart, together = estimate(rows), estimate(rows, clusters)
    assert together.of_clusters[0, 0] > 2 * apart.of_clusters[0, 0]


def test_leads_are_as_long_as_they_say():
    draw = np.random.default_rng(0)
    for kind in (LED, LED_BY_ONE):
        first, *others = true_scores(SST2, kind, 10, draw)
        assert first - max(others) == pytest.approx(3 * SST2.seeds)
        assert (len(set(others)) == 1) is (kind == LED_BY_ONE)


def test_shares_have_the_interval_of_wilson():
    for count, boards in ((0, 200), (7, 200), (150, 200)):
        bounds = scipy.stats.binomtest(count, boards).proportion_ci(method="wilson")
        low, high = (round(100 * bound, 1) + 0.0 for bound in bounds)
        assert interval(count, boards) == f"{100 * count / boards:.1f} ({low:.1f} to {high:.1f})"


def test_the_spread_of_a_results_folder_is_measured(tmp_path):
    """Two rows with three seeds each; one of one seed, and one whose seeds are all the same, say
    nothing of seeds."""
    (tmp_path / "records").mkdir()
    store, draw = Store(tmp_path), np.random.default_rng(0)
    made = {}
    for architecture in ("dan", "cnn"):
        right = draw.random((3, 200)) < np.array([[0.75], [0.8], [0.85]])
        made[architecture] = right.mean(1)
        for seed, row in enumerate(right):
            judged(store, "".join("01"[int(each)] for each in row), architecture=architecture, seed=seed)
    judged(store, "1" * 100 + "0" * 100, architecture="rnn")
    for seed in range(3):
        judged(store, "1" * 120 + "0" * 80, architecture="naive_bayes", seed=seed)
    found = measure(tmp_path)
    assert list(found) == ["local/equal/full/sst2"]
    spread = found["local/equal/full/sst2"]
    variances = [scores.var(ddof=1) for scores in made.values()]
    assert spread.units == 200
    assert spread.seeds == pytest.approx(np.sqrt(np.mean(variances)))
    assert sorted(np.square(spread.deviations) * np.mean(variances)) == pytest.approx(sorted(variances))
    assert spread.rows == pytest.approx(np.std([scores.mean() for scores in made.values()], ddof=1))
    assert spread.right == pytest.approx(np.mean(list(made.values())), abs=0.05)


def lines() -> list[list[str]]:
    return [
        [cell.strip() for cell in line.strip("|").split(" | ")]
        for line in REPORT.read_text(encoding="utf-8").splitlines()
        if line.startswith("| SST-2")
    ]


def share(text: str) -> float:
    return float(re.match(r"[\d.]+", text)[0])


def test_the_committed_figures_keep_what_was_wanted():
    """`python -m tools.verdicts` makes them again, in a quarter of an hour."""
    chosen = [line for line in lines() if line[0] == "SST-2" and CHOSEN in line]
    false = {line[1]: line for line in chosen if line[1].isdigit()}
    true = {line[2]: line for line in chosen if line[1] == LED}
    assert set(false) == set(true) == {"2", "10", "40"}
    for line in false.values():
        assert line[3] == "5,000"
        assert share(line[4]) <= 6 and share(line[5]) <= 6.5
    for line in true.values():
        assert share(line[5]) >= 80


def test_the_report_is_of_this_script():
    assert REPORT.read_text(encoding="utf-8").startswith(LEAD_TEXT + "\n" + FALSE_TEXT)


def test_a_report_of_few_boards_has_all_its_rows(capsys):
    few = [replace(trial, boards=2, spread=replace(trial.spread, units=200)) for trial in TRIALS[:2]]
    text = report(few)
    assert text.count(f"| {CHOSEN} |") == 6
    assert "| SST-2 | 2 | two-level bootstrap | 2 |" in text
    assert "SST-2, 40 led" in capsys.readouterr().out


def test_spreads_that_no_outcomes_can_have_are_refused():
    """More luck than outcomes of 1 and 0 vary."""
    with pytest.raises(ValueError, match="sign"):
        Spread(100, 0.9, 0.05, 0.04, 0.01, 0.1).correlations  # noqa: B018
