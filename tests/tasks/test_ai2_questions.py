"""The reader of the AI2 questions, and the parts that it makes of the official ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.errors import DataError


def question(name: str, stem: str = "", key: str = "B", **changed: object) -> str:
    choices = [{"label": label, "text": f"{name} {label}"} for label in "ABC"]
    asked = {"stem": stem or f"Is it {name}?", "choices": choices}
    return json.dumps({"id": name, "question": asked, "answerKey": key} | changed)


@pytest.fixture
def read(tmp_path: Path, task):
    """Rows of a split, from lines of the elementary files; the other grade has one of each."""
    folder = tmp_path / "ai2_questions"
    folder.mkdir()

    def rows(split: str, train: list[str], dev: list[str]) -> list[dict[str, str]]:
        for grade, part, lines in (
            ("Elementary", "Train", train),
            ("Elementary", "Dev", dev),
            ("8thGr", "Train", [question("x")]),
            ("8thGr", "Dev", [question("y")]),
        ):
            (folder / f"AI2-{grade}-NDMC-Feb2016-{part}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
        return list(task("ai2_questions").local(tmp_path, split))

    return rows


def test_choices_are_candidates_and_the_answer_key_says_which_is_right(read):
    """Grades are told apart: an id may stand in both."""
    rows = read("test", [question("a")], [question("y", key="C")])
    group = "elementary-y"
    labels = {"A": "0", "B": "0", "C": "1"}
    assert rows[:3] == [
        {"id": f"{group}-{name}", "first": "Is it y?", "second": f"y {name}", "label": right, "group": group}
        for name, right in labels.items()
    ]
    assert [row["id"] for row in rows[3:]] == ["middle-y-A", "middle-y-B", "middle-y-C"]


def test_dev_is_a_part_of_train_by_question_and_no_question_of_test_is_learnt(read):
    """Whole questions, those of one stem together; what test asks is left out, and what stands
    there twice is there once."""
    train = [question(f"q{number}", stem=f"Stem {number // 2}?") for number in range(60)]
    lines = [*train, train[4], question("z", stem="Is it d?")]
    parts = {split: read(split, lines, [question("d")]) for split in ("train", "dev", "test")}
    stems = {split: {row["first"] for row in rows} for split, rows in parts.items()}
    assert not stems["train"] & stems["dev"] and not (stems["train"] | stems["dev"]) & stems["test"]
    assert len(parts["train"]) + len(parts["dev"]) == 3 * 61 and 0.1 < len(parts["dev"]) / (3 * 61) <= 0.15
    ids = [row["id"] for rows in parts.values() for row in rows]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2: not JSON"),
        (question("a", key="E"), "line 2: answerKey 'E' is none of the choices A, B, C"),
        (question("a", question={"stem": "x"}), "line 2: not a question with choices and an answerKey: 'choices'"),
        (question("a", id=3), "line 2: not a question with choices and an answerKey: id is a int, not a string"),
        ("[]", "line 2: not a question with choices and an answerKey"),
    ],
)
def test_a_fault_is_told_by_file_and_line(read, line, message):
    with pytest.raises(DataError, match=f"AI2-Elementary-NDMC-Feb2016-Dev.jsonl, {message}"):
        read("test", [question("b")], [question("c"), line])


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        (question("a", key=["A"]), "answerKey is a list, not a string"),
        (question("a", question={"stem": "Is it?", "choices": [{"label": 1, "text": "yes"}]}), "label of a choice is"),
    ],
)
def test_a_key_or_a_label_that_is_no_text_is_named_with_its_line(read, line, fault):
    with pytest.raises(DataError, match=f"line 2: not a question with choices and an answerKey: {fault}"):
        read("test", [question("t")], [question("z"), line])
