"""What the advisor is told: whoever follows it trusts that a best row was compared with the others
it names, and with nothing that had read more."""

from __future__ import annotations

from harness.leaderboard.board import read
from harness.leaderboard.pages.advisor_page import advisor_page
from harness.records import Store
from tests.support.made_records import judged

RIGHT = {"naive_bayes": 66, "dan": 40, "vampire": 90}
PARENT = {"architecture": "vampire", "task": "text_mix", "key": "1" * 16, "row": "2" * 16}


def write(store: Store, architecture: str, hyperparameters: dict, lineage: list | None = None) -> None:
    for seed in range(3):
        right = "1" * RIGHT[architecture] + "0" * (100 - RIGHT[architecture])
        judged(store, right, architecture=architecture, seed=seed, hyperparameters=hyperparameters, lineage=lineage)


def test_the_verdict_is_of_the_rows_that_are_named(store):
    """It named naive Bayes as best of two, with the verdict of a row that had read 30,000 texts
    before: better than each of the four others."""
    write(store, "naive_bayes", {})
    write(store, "dan", {"hidden": 100})
    before = [{"key": "1" * 16, "role": "weights", "architecture": "vampire", "task": "text_mix"}]
    write(store, "vampire", {"parents": {"weights": PARENT}}, before)
    [group] = advisor_page(read(store.folder)).parts["groups"]
    assert {row["shown"] for row in group["rows"]} == {"66.0 ± 0.0 (3)", "40.0 ± 0.0 (3)"}
    assert group["verdict"] == "better than the other"


def test_who_learns_from_a_teacher_that_saw_the_same_labels_may_be_advised(store):
    taught = {"parents": {"teacher": PARENT | {"architecture": "naive_bayes", "task": "sst2"}}}
    write(store, "naive_bayes", {})
    write(store, "dan", taught, [{"key": "1" * 16, "role": "teacher", "architecture": "naive_bayes", "task": "sst2"}])
    [group] = advisor_page(read(store.folder)).parts["groups"]
    assert len(group["rows"]) == 2
