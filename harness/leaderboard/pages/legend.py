"""The paragraphs below the tables: how a table is to be read."""

from __future__ import annotations

from harness.records import UNSTABLE_ABOVE

LEGEND = (
    (
        "Scores are on the test split, in percent with one decimal (perplexity as it is): mean ± standard deviation"
        " (number of seeds); one seed has no deviation. The 95 % interval is over other seeds and other examples than"
        " those of the test split; of a single seed, over the examples and as much as the seeds of the other rows"
        " differ, or over the examples alone where no row has several. Examples that depend on each other"
        " (questions of one story or article, recordings of one speaker) count together."
    ),
    (
        "Compare rows only within one section: one tier of the data, one protocol and its version, one budget"
        " (training examples, passes, steps), one sight of other data (sees: such as the texts of test; not said where"
        " a row sees the labelled training examples alone), the same given word vectors, the same further inputs (such"
        " as numbers made from the characters of words) and, for perplexity, one kind of tokens. Ranked are the rows"
        " of a section that were trained and scored on the same data and are above the floor; rows of a budget that a"
        " user chose (custom) and of protocol smoke never are. Bold is the highest mean (the lowest in columns with ↓)"
        " among the ranked rows, including all that are equal after rounding. Bold alone says nothing of significance."
        " Rows that share the first place have rank 1; they are not significantly worse than the best: a paired test"
        " whose error has a part for seeds and one for examples, p corrected in steps as by Holm (results/verdicts.md"
        " says which test and why). Each row is compared with the best example by example, so that a lower row may"
        " share its place while a higher one does not. With fewer than three seeds no lead is called significant. Rows"
        " without saved predictions have no interval and no test."
    ),
    (
        "Floors are answers that need no training, such as the most frequent class: rows to read the others by, never"
        " ranked. At the floor: the interval of the score reaches that of the best floor on the same test data, so that"
        " nothing is known to be learnt; such a row has no rank."
    ),
    (
        "Published is the value that the survey prints for the same architecture, data set and metric. Difference is"
        " ours minus the published value, in points, from the rounded values. The generated corpus (tier mini) is never"
        " compared with published values."
    ),
    (
        "Italics are classical methods. In the survey's tables a dash means that the survey prints no value, in those"
        " of tasks that nothing was measured. Other cells name the status: not run, skipped, failed, oom, timeout,"
        " diverged or interrupted, with the reason as a note. Partial: trained on a part of the training data or in"
        " fewer passes. ‡: not scored on the official test that the task declares. Numbers in superscript are notes"
        " below the table."
    ),
    (
        "Speed and memory are never averaged over two kinds of machine: such cells have one line for each device of"
        " the last column. †: measured while other cells ran on the machine (their largest number at a time is in"
        " the column other cells), so slower than alone; not recorded: the record is older than that column."
        " Training spread is the standard deviation over the mean of the rates in ten consecutive parts of the"
        f" training; unstable: it is above {UNSTABLE_ABOVE}, or there were too few steps to tell."
    ),
)
