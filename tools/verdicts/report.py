"""The text of ``results/verdicts.md``."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from harness.leaderboard.significance import WEIGHT
from harness.running.behind import interval as of_share
from tools.verdicts.boards import BABI, EQUAL, LEAD, LED, LED_BY_ONE, NER, SEEDS, SST2, WIKIQA, Spread
from tools.verdicts.judges import BLIND, BOOTSTRAP, CHOSEN, KNOWN, ONE, OWN
from tools.verdicts.simulation import simulate

BOARDS = 5_000


@dataclass(frozen=True)
class Trial:
    """Boards to make up and judge."""

    like: str
    spread: Spread
    systems: Sequence[int]
    kinds: Sequence[str]
    tests: Sequence[str]
    boards: int = BOARDS


BOTH = (EQUAL, LED)
ALL_ALIKE = replace(SST2, deviations=())
OTHERS = ("examples alone", "seeds alone", OWN, ONE)
TRIALS = (
    Trial("SST-2", SST2, (2, 10, 40), BOTH, (CHOSEN, *OTHERS)),
    Trial("SST-2", SST2, (2,), BOTH, (BOOTSTRAP,), 2_000),
    Trial("SST-2, one deviation", ALL_ALIKE, (2, 10, 40), BOTH, (CHOSEN, KNOWN)),
    Trial("SST-2, one deviation", ALL_ALIKE, (10, 40), (LED_BY_ONE,), (CHOSEN, KNOWN), 2_000),
    Trial("WikiQA", WIKIQA, (2, 10), BOTH, (CHOSEN,)),
    Trial("CoNLL-2003 NER", NER, (2, 10), BOTH, (CHOSEN,)),
    Trial("bAbI, one deviation", BABI, (2,), BOTH, (CHOSEN, KNOWN)),
    Trial("bAbI, one deviation", BABI, (2,), BOTH, (BOOTSTRAP,), 500),
    Trial("SST-2 in 48 articles", replace(SST2, clusters=48), (2, 10), BOTH, (CHOSEN, BLIND), 2_000),
    Trial("SST-2 in 4 articles", replace(SST2, clusters=4), (2, 10), BOTH, (CHOSEN, BLIND), 2_000),
)

LEAD_TEXT = f"""# Verdicts, by simulation

Made by `python -m tools.verdicts`. A verdict of the leaderboard is a claim about other seeds and other texts. Records
cannot show whether it holds, since nobody knows their true scores; so boards are made up whose true scores are known.
Their systems have {SEEDS} seeds, and seeds, test units and systems differ as those of the records do
(figures: `tools/verdicts/boards.py`). Each system has the deviation between seeds of one of the recorded rows, or all
have the same ("one deviation"). A *seed deviation* is the root of the mean variance between single seeds.

**The test** (`harness/leaderboard/significance.py`): the difference of two scores over its standard error, against
Student's t. The error has a part for the seeds of each row and one for the clusters of the test (for its units, where
they are independent), as in an analysis of variance of seeds x clusters. {SEEDS} seeds say little of their own
deviation, so each row's is drawn towards that of the whole board, which counts {WEIGHT:.0f} degrees of freedom, and is
never less than luck with the units explains. P-values of best against rest are corrected in Holm's steps, with all
pairs of the rows that are left, since the best was picked after looking; a lead over all others at once needs no
correction.

Why this one:

- Tests over examples alone, as the leaderboard had at first, call the first of two equal systems better several times
  more often than they say.
- Seeds alone, or each row's own deviation, find too little on large boards.
- A bootstrap of two levels draws again and again from three seeds, which then differ a third less than they should.
  Where seeds differ mostly by luck with the units, counting that luck twice makes up for it; where they differ in
  quality (bAbI), the verdicts are false.
- One deviation for all rows finds most, and tells equal rows apart where some are less steady than others.
- The test draws nothing at random: the same records give the same verdict. (With 2,000 permutations the group that
  shared SST-2's first place changed with the random seed; 200,000 would only make that rarer.) It takes a tenth of a
  second for 100 rows on 10,000 units.

**Wanted**: on {BOARDS:,} boards of equal systems, at most 6 % on which some first place is called real; and a true lead
of {LEAD:.0f} seed deviations found on at least 80 %.
"""
FALSE_TEXT = """## Boards of equal systems

*First place called real*: all other systems were said to be worse than the best. *Some system called worse*: at least
one was. *By Holm's count*: the same if the correction counted best against rest only. *Intervals that hold*: share of
95 % intervals with the true score inside. In brackets: 95 % intervals of the shares.
"""
TRUE_TEXT = f"""## Boards with a true lead

The best is {LEAD:.0f} seed deviations above the second. The others are below the second, as far apart as the rows of
the records ("led"); or all are exactly as good as the second ("led by one"): then the luckiest of many is near, and
even a test that knows all variances finds less. *Found*: the truly best was called first, and its lead real.
"""


def interval(count: int, boards: int) -> str:
    """A share in percent with its 95 % interval."""
    low, high = of_share(count / boards, boards)
    return f"{100 * count / boards:.1f} ({100 * max(0, low):.1f} to {100 * high:.1f})"


def report(trials: Sequence[Trial] = TRIALS) -> str:
    """The text of ``results/verdicts.md``."""
    false = ["boards like | systems | test | boards | first place called real, % | some system called worse, %"]
    false[0] += " | by Holm's count, % | intervals that hold, %"
    true = ["boards like | others | systems | test | boards | found, %"]
    for trial in trials:
        for systems in trial.systems:
            for kind in trial.kinds:
                for test, count in simulate(trial.spread, kind, systems, trial.tests, trial.boards).items():
                    start = f"{systems} | {test} | {trial.boards:,} | "
                    if kind == EQUAL:
                        shares = [interval(n, trial.boards) for n in (count.alone, count.behind, count.holm)]
                        held = "" if test == KNOWN else f"{100 * count.covered:.1f}"
                        false.append(f"{trial.like} | {start}{' | '.join(shares)} | {held}")
                    else:
                        true.append(f"{trial.like} | {kind} | {start}{interval(count.found, trial.boards)}")
                print(f"{trial.like}, {systems} {kind}: {time.process_time():,.0f} s", flush=True)
    return "\n".join([LEAD_TEXT, FALSE_TEXT, *_table(false), "", TRUE_TEXT, *_table(true), ""])


def _table(lines: Sequence[str]) -> Iterator[str]:
    yield f"| {lines[0]} |"
    yield "|" + " --- |" * (lines[0].count(" | ") + 1)
    yield from (f"| {line} |" for line in lines[1:])
