"""Supporting facts of bAbI, which only systems read that declare it, and in training alone."""

from __future__ import annotations

import pytest

from harness import registry
from harness.data.corpus import Corpus
from harness.errors import ContractError, DataError
from harness.kinds import SupportedAnswerer
from harness.records.code_digest import code_of
from harness.task import SUPPORTING_FACTS, Task
from harness.views.facts import Facts
from tasks.mini import stories, story_support
from tasks.readers.babi_support import of_lines
from tests.tasks.test_babi import archive

LINES = (
    "1 Mary took the ball.\n2 Ann sat.\n3 Where is Ann?\thall\t2\n4 Mary went to the hall.\n"
    "5 Where is the ball?\thall\t1 4\n1 John slept.\n2 Who?\tJohn\t1\n"
)


def test_the_archives_line_numbers_become_numbers_of_facts(write_zip, tmp_path, task):
    """Questions have line numbers too, and stories begin anew: a number taken as it is names
    another fact."""
    write_zip("babi/tasks_1-20_v1-2_en.zip", dict.fromkeys(archive(), LINES))
    babi = task("babi")
    rows = babi.load("train", "local", tmp_path).to_list()
    support = babi.support(rows, "local", tmp_path)
    found = {
        (row["question"], *(row["facts"][fact] for fact in facts)) for row, facts in zip(rows, support, strict=True)
    }
    assert found <= {
        ("Where is Ann?", "Ann sat."),
        ("Where is the ball?", "Mary took the ball.", "Mary went to the hall."),
        ("Who?", "John slept."),
    }
    assert len(found) >= 2


def test_a_fact_that_its_story_does_not_have_is_named_with_its_line():
    with pytest.raises(DataError, match="qa1, line 3: the supporting fact 7 is no line of its story"):
        of_lines(["1 Mary went home.", "2 Ann sat.", "3 Where is Mary?\thome\t1 7"], "qa1")


def test_the_hub_copy_has_the_same_facts(task, monkeypatch):
    story = {
        "id": ["1", "2", "3", "4", "5"],
        "type": [0, 0, 1, 0, 1],
        "text": ["Mary took the ball.", "Ann sat.", "Where is Ann?", "Mary went to the hall.", "Where is the ball?"],
        "supporting_ids": [[], [], ["2"], [], ["1", "4"]],
        "answer": ["", "", "hall", "", "hall"],
    }
    babi = task("babi")
    monkeypatch.setattr(babi, "_download", lambda split: {"train": [{"story": story, "skill": "qa2"}]}[split])
    assert babi.support([{"id": "qa2-0-2"}, {"id": "qa2-0-4"}], "hub", None) == [[1], [0, 2]]


@pytest.mark.parametrize("skill", ["person", "yes-no", "before", "thing", "giver", "count"])
def test_the_facts_of_a_generated_story_tell_its_answer(skill):
    """They are worked out from the sentences, by other code than that which made them."""
    asked = [row for row in stories.rows("train") if row["skill"] == skill][:60]
    assert any(story_support.facts(row) for row in asked)
    for row in asked:
        facts = [row["facts"][fact] for fact in story_support.facts(row)]
        if skill in ("person", "before", "thing"):
            assert row["answer"] in facts[-1], row
        elif skill == "yes-no":
            place = row["question"].rstrip("?").split()[-1]
            assert (place in facts[0]) == (row["answer"] == "yes"), row
        elif skill == "giver":
            assert facts[0].startswith(f"{row['answer']} gave the {row['question'].split()[3]} "), row
        else:
            who = row["question"].split()[4]
            gone = sum(fact.startswith(f"{who} gave") for fact in facts)
            assert ("none", "one", "two", "three", "four")[len(facts) - 2 * gone] == row["answer"], row
        if skill == "thing":
            assert row["question"].rstrip("?").split()[-1] in facts[0], row


def corpus(sees: tuple[str, ...]) -> Corpus:
    return Corpus(registry.load(ENTRY)(ENTRY), "mini", None, Facts(most=4), "chosen facts", sees=sees)


ENTRY = registry.entry("tasks", "babi")


def test_training_is_shown_the_facts_and_the_data_stay_what_they_are():
    """A fingerprint that changed would set aside every result of the task; support that dev shows
    would be an answer half told."""
    read = corpus((SUPPORTING_FACTS,))
    plain = Corpus(registry.load(ENTRY)(ENTRY), "mini", None, Facts(most=4), "fact vector")
    assert read.fingerprints == plain.fingerprints
    assert "support" not in read.train.rows.column_names
    for number in (0, 1, 2, 5):
        row = read.train.rows[number]
        _, support = read.train.collate([number]).target
        cut = max(0, len(row["facts"]) - 4)
        facts = [fact - cut + 1 for fact in story_support.facts(row) if fact >= cut]
        assert support[0].tolist() == (facts or [0])
    assert not read.dev.collate(range(20)).target[1].any()


def test_nobody_is_shown_them_who_does_not_declare_it():
    with pytest.raises(ContractError, match="supporting facts"):
        corpus(())


def test_a_task_that_does_not_mark_its_facts_is_no_task_for_those_who_learn_from_them(task):
    class Unmarked(Task):
        pass

    with pytest.raises(DataError, match="babi: which facts support an answer is not known"):
        Unmarked(ENTRY).support([], "mini", None)
    assert SupportedAnswerer.unfit(ENTRY, {}) is None


def test_the_code_that_reads_them_is_no_code_of_other_architectures(monkeypatch):
    """A change there would otherwise mark every committed result of the task as made by other
    code, and one of those that learn from them would not be marked."""
    dan, memnn = (registry.entry("architectures", id) for id in ("dan", "memnn"))
    one, other = (code_of(entry, ENTRY)["task"] for entry in (dan, memnn))
    assert one != other
    bilstm = registry.entry("architectures", "bilstm")
    assert code_of(bilstm, ENTRY)["task"] == one
