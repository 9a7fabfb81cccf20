"""bAbI from hand-made files in the official format, and from parquet files with the hub's
features."""

from __future__ import annotations

import pytest
from datasets import ClassLabel, Sequence, Value

from harness.errors import DataError
from tasks.babi import SKILLS

STORIES = (
    (
        "1 Mary went to the hall.\n2 Where is Mary? \thall\t1\n3 Mary got the milk there.\n4 What has"
        " Mary?\tmilk,hall\t3 1\n"
    ),
    "1 John slept.\n2 Who?\tJohn\t1\n",
)


def archive(**changed: str) -> dict[str, str]:
    """The archive's files, train and test of twenty skills; ``qa3_train=...`` changes one."""
    files = {
        f"qa{n}_{split}": (f"tasks_1-20_v1-2/en/qa{n}_skill_{split}.txt", "".join(STORIES))
        for n in SKILLS
        for split in ("train", "test")
    }
    return {name: changed.get(file, text) for file, (name, text) in files.items()}


def test_a_question_sees_the_facts_before_it_in_its_own_story(write_zip, tmp_path, task):
    """Facts of the next story, or later ones, would give answers away."""
    write_zip("babi/tasks_1-20_v1-2_en.zip", archive())
    rows = task("babi").load("test", "local", tmp_path).to_list()
    assert len(rows) == 20 * 3
    assert rows[0] == {
        "id": "qa1-2",
        "facts": ["Mary went to the hall."],
        "question": "Where is Mary?",
        "answer": "hall",
        "skill": "qa1",
        "story": "qa1-1",
    }
    assert (
        rows[1]["facts"] == ["Mary went to the hall.", "Mary got the milk there."] and rows[1]["answer"] == "milk,hall"
    )
    assert rows[2]["facts"] == ["John slept."]
    assert {row["skill"] for row in rows} == {f"qa{n}" for n in SKILLS}
    assert [row["story"] for row in rows[:4]] == ["qa1-1", "qa1-1", "qa1-2", "qa2-1"]


def test_dev_holds_whole_stories_of_every_skill(write_zip, tmp_path, task):
    """Two questions about one story in train and dev would let a model remember the answer."""
    many = "".join(
        f"1 Mary went to room{i}.\n2 Where is Mary?\troom{i}\t1\n3 Mary sat.\n4 Where is she?\troom{i}\t1\n"
        for i in range(30)
    )
    write_zip("babi/tasks_1-20_v1-2_en.zip", dict.fromkeys(archive(), many))
    parts = {split: task("babi").load(split, "local", tmp_path).to_list() for split in ("train", "dev")}
    assert {split: len(rows) for split, rows in parts.items()} == {"train": 20 * 54, "dev": 20 * 6}
    first = {split: {(row["skill"], row["facts"][0]) for row in rows} for split, rows in parts.items()}
    assert not first["train"] & first["dev"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 A fact.\nno number\n", r"qa3 train, line 2: 'no number' does not begin with a number"),
        ("1 Where?\there\t1\n", r"qa3 train, line 1: a question without facts before it"),
        ("1 A fact.\n2 Where?\t\t1\n", r"qa3 train, line 2: a question without an answer behind its tab"),
    ],
)
def test_a_line_that_is_neither_fact_nor_question_is_named(write_zip, tmp_path, task, text, message):
    write_zip("babi/tasks_1-20_v1-2_en.zip", archive(qa3_train=text))
    with pytest.raises(DataError, match=message):
        task("babi").load("train", "local", tmp_path)


def test_an_archive_without_a_skill_or_that_is_none_is_named(write, write_zip, tmp_path, task):
    files = {name: text for name, text in archive().items() if "qa7_" not in name}
    write_zip("babi/tasks_1-20_v1-2_en.zip", files)
    with pytest.raises(DataError, match=r"_en.zip: 0 files are called tasks_1-20_v1-2/en/qa7_\*_test.txt"):
        task("babi").load("test", "local", tmp_path)
    write("babi/tasks_1-20_v1-2_en.zip", b"PK\x03\x04 cut off")
    with pytest.raises(DataError, match=r"_en.zip: cannot be read .* damaged"):
        task("babi").load("test", "local", tmp_path)


def test_the_hub_copy_gives_the_same_rows(task, from_parquet):
    """The hub keeps a story as lists of its lines, with questions among the facts."""
    line = {
        "id": Value("string"),
        "type": ClassLabel(names=["context", "question"]),
        "text": Value("string"),
        "supporting_ids": [Value("string")],
        "answer": Value("string"),
    }
    story = {
        "id": ["1", "2", "3", "4"],
        "type": [0, 1, 0, 1],
        "text": ["Mary went to the hall.", "Where is Mary? ", "Mary got the milk there.", "What has Mary?"],
        "supporting_ids": [[], ["1"], [], ["3", "1"]],
        "answer": ["", "hall", "", "milk,hall"],
    }
    columns = {"story": [story, story], "skill": ["qa1", "qa2"]}
    rows = from_parquet(task("babi"), "test", columns, {"story": Sequence(line), "skill": Value("string")})
    assert [(row["skill"], row["answer"], len(row["facts"])) for row in rows] == [
        ("qa1", "hall", 1),
        ("qa1", "milk,hall", 2),
        ("qa2", "hall", 1),
        ("qa2", "milk,hall", 2),
    ]
    assert rows[0]["question"] == "Where is Mary?"
    assert [row["story"] for row in rows] == ["qa1-0", "qa1-0", "qa2-1", "qa2-1"]
