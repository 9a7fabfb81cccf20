"""SQuAD 1.1 and 2.0 from hand-made JSON files and from parquet files with the hub's features."""

from __future__ import annotations

import json
from typing import Any

import pytest
from datasets import List, Value

from harness.errors import DataError
from harness.problems import problem
from harness.problems.base import shown_id

Article = tuple[str, list[tuple[str, list[dict[str, Any]]]]]


def question(id: str, *answers: tuple[str, int], **more: Any) -> dict[str, Any]:
    return {
        "id": id,
        "question": f"what {id}?",
        "answers": [{"text": t, "answer_start": s} for t, s in answers],
        **more,
    }


def squad(*articles: Article) -> str:
    data = [
        {"title": title, "paragraphs": [{"context": c, "qas": q} for c, q in paragraphs]}
        for title, paragraphs in articles
    ]
    return json.dumps({"version": "1.1", "data": data})


def test_a_question_keeps_all_its_answers(write, tmp_path, task):
    """The official dev set has several answers a question; a score counts the best."""
    write("squad/dev-v1.1.json.gz", squad(("A", [("The cat sat.", [question("q1", ("cat", 4), ("The cat", 0))])])))
    rows = task("squad1").load("test", "local", tmp_path).to_list()
    assert rows == [
        {
            "id": "q1",
            "passage": "The cat sat.",
            "question": "what q1?",
            "answers": {"text": ["cat", "The cat"], "start": [4, 0]},
            "article": "A",
        }
    ]


@pytest.mark.parametrize(
    ("bad", "complaint"),
    [
        (question("q7", ("cat", 5)), "the answer 'cat' is not at offset 5 of its passage, where 'at ' stands"),
        (question("q7", ("", 0)), "the answer '' is not"),
        (question("q7", ("cat", -8)), "the answer 'cat' is not at offset -8"),
        (question("q7"), "0 answers, but the question is marked answerable"),
        (question("q7", ("cat", 4), is_impossible=True), "1 answers, but the question is marked unanswerable"),
    ],
)
def test_an_answer_that_is_not_in_its_passage_is_refused(bad, complaint, write, tmp_path, task):
    """A span model trained on wrong offsets fails without a sign."""
    write("squad/dev-v1.1.json", squad(("A", [("The cat sat.", [question("q1", ("cat", 4)), bad])])))
    with pytest.raises(DataError, match=rf"dev-v1\.1\.json, question q7: {complaint}"):
        task("squad1").load("test", "local", tmp_path)


def test_both_partial_files_train_and_no_paragraph_is_in_train_and_dev(write, tmp_path, task):
    """A question in both files counts once; a paragraph in raw, tokenised and lower-cased form
    stays on one side."""
    raw = [(f"Cat {i} sat, here.", [question(f"raw{i}", ("Cat", 0))]) for i in range(40)]
    tokenised = [
        (f"cat {i} sat , here .", [question(f"tok{i}", ("cat", 0), also_in_raw=i % 2 == 0)]) for i in range(40)
    ]
    write("squad/train_partial_raw.json", squad(("r", raw)))
    write("squad/train_partial_tokenised.json", squad(("t", tokenised)))
    train, dev = (task("squad1").load(split, "local", tmp_path).to_list() for split in ("train", "dev"))
    assert len(train) + len(dev) == 60 and 4 <= len(dev) <= 6
    number = [{row["passage"].split()[1] for row in rows} for rows in (train, dev)]
    assert not number[0] & number[1]


def test_the_whole_training_file_is_taken_when_it_is_there(write, tmp_path, task):
    """A user with the official files must not train on the partial ones."""
    write(
        "squad/train-v1.1.json", squad(("A", [(f"Cat {i} sat.", [question(f"q{i}", ("Cat", 0))]) for i in range(20)]))
    )
    train, dev = (task("squad1").load(split, "local", tmp_path) for split in ("train", "dev"))
    assert (len(train), len(dev)) == (18, 2)


def articles(count: int) -> list[Article]:
    """Articles of one paragraph with a question that has an answer and one that has none."""
    pairs = [
        [question(f"a{i}", ("Cat", 0), is_impossible=False), question(f"n{i}", is_impossible=True)]
        for i in range(count)
    ]
    return [(f"title {i}", [("Cat sat.", pair)]) for i, pair in enumerate(pairs)]


def test_squad2_divides_the_half_by_article(write, tmp_path, task):
    """Of 16 articles 4 are test, 2 dev, 10 train, whatever their order in the file; each keeps its
    unanswerable questions."""
    found = articles(16)
    write("squad/dev-v2.0_half.json", squad(*found))
    parts = {split: task("squad2").load(split, "local", tmp_path).to_list() for split in ("train", "dev", "test")}
    assert {split: len(rows) for split, rows in parts.items()} == {"train": 20, "dev": 4, "test": 8}
    assert len({row["id"] for rows in parts.values() for row in rows}) == 32
    assert sum(row["answers"] == {"text": [], "start": []} for row in parts["test"]) == 4
    write("squad/dev-v2.0_half.json", squad(*reversed(found)))
    assert {row["id"] for row in task("squad2").load("test", "local", tmp_path)} == {row["id"] for row in parts["test"]}


def test_too_few_articles_cannot_be_divided(write, tmp_path, task):
    """An empty dev set must be an error, not a crash in training."""
    write("squad/dev-v2.0_half.json", squad(*articles(4)))
    with pytest.raises(DataError, match=r"dev-v2\.0_half\.json: 4 articles are too few"):
        task("squad2").load("dev", "local", tmp_path)


def test_squad2_takes_the_official_files_when_they_are_there(write, tmp_path, task):
    """Then the split is the official one: dev-v2.0 is the test set."""
    paragraphs = [(f"Cat {i} sat.", [question(f"t{i}", ("Cat", 0), is_impossible=False)]) for i in range(20)]
    write("squad/train-v2.0.json", squad(("A", paragraphs)))
    write("squad/dev-v2.0.json", squad(*articles(3)))
    assert [len(task("squad2").load(split, "local", tmp_path)) for split in ("train", "dev", "test")] == [18, 2, 6]


FEATURES = {
    **{name: Value("string") for name in ("id", "title", "context", "question")},
    "answers": {"text": List(Value("string")), "answer_start": List(Value("int32"))},
}


def hub_columns(answers: list[dict[str, list[Any]]]) -> dict[str, list[Any]]:
    n = len(answers)
    ids = [f"q{i}" for i in range(n)]
    return {
        "id": ids,
        "title": ["T"] * n,
        "context": [f"Cat {i} sat." for i in range(n)],
        "question": ["?"] * n,
        "answers": answers,
    }


def test_squad_from_the_hub(task, from_parquet):
    """answer_start becomes start; dev is held out of train; the hub's validation split is test."""
    columns = hub_columns([{"text": ["Cat"], "answer_start": [0]}] * 20)
    test = from_parquet(task("squad1"), "test", columns, FEATURES)
    seen = {"id": "q3", "passage": "Cat 3 sat.", "question": "?"}
    assert test[3] == seen | {"answers": {"text": ["Cat"], "start": [0]}, "article": "T"}
    asked = seen | {"id": shown_id("q3")}
    assert problem("extract").input_row(test[3]) == asked, "a title would tell what a passage is about"
    train, dev = (from_parquet(task("squad1"), split, columns, FEATURES) for split in ("train", "dev"))
    assert (len(train), len(dev)) == (18, 2) and not {row["id"] for row in train} & {row["id"] for row in dev}


def test_only_squad2_may_have_unanswerable_questions(task, from_parquet):
    """The same hub features serve both versions."""
    columns = hub_columns([{"text": ["Cat"], "answer_start": [0]}, {"text": [], "answer_start": []}])
    rows = from_parquet(task("squad2"), "test", columns, FEATURES)
    assert rows[1]["answers"] == {"text": [], "start": []}
    with pytest.raises(DataError, match=r"rajpurkar/squad at 7b6d24c4, question q1: 0 answers"):
        from_parquet(task("squad1"), "test", columns, FEATURES)
