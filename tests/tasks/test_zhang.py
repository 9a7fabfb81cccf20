"""Yelp, Amazon, DBpedia and Sogou News from hand-made files in the format of Zhang et al. 2015, and
from parquet files with the hub's features."""

from __future__ import annotations

import pytest
from datasets import ClassLabel, Value

from harness import registry
from harness.errors import DataError
from harness.leaderboard.published import DATASET_NAMES

FOLDERS = {
    "yelp2": "yelp_review_polarity_csv",
    "yelp5": "yelp_review_full_csv",
    "amazon2": "amazon_review_polarity_csv",
    "amazon5": "amazon_review_full_csv",
    "dbpedia": "dbpedia_csv",
    "sogou": "sogou_news_csv",
}
CLASSES = {"yelp2": 2, "yelp5": 5, "amazon2": 2, "amazon5": 5, "dbpedia": 14, "sogou": 5}


def table(id: str, count: int) -> str:
    """Rows of the classes in turn."""
    texts = '"text {0}"' if id.startswith("yelp") else '"title","text {0}"'
    return "".join(f'"{1 + n % CLASSES[id]}",{texts.format(n)}\n' for n in range(count))


@pytest.mark.parametrize("id", FOLDERS)
def test_each_is_read_from_the_folder_of_its_official_archive(id, write, tmp_path, task):
    """Classes count from 1; dev is held out of train."""
    write(f"{FOLDERS[id]}/train.csv", table(id, 1000))
    write(f"{FOLDERS[id]}/test.csv.gz", table(id, CLASSES[id]))
    parts = {split: task(id).load(split, "local", tmp_path) for split in ("train", "dev", "test")}
    held_out = 5 if id.startswith("amazon") else 20
    assert {split: len(rows) for split, rows in parts.items()} == {
        "train": 1000 - held_out,
        "dev": held_out,
        "test": CLASSES[id],
    }
    assert len({*parts["test"]["label"]}) == CLASSES[id]
    assert {*parts["train"]["text"]}.isdisjoint(parts["dev"]["text"])


def test_the_names_of_the_classes_are_in_the_order_of_their_numbers(write, tmp_path, task):
    """A list that is off by one would train and score as well as the right one."""
    for id, folder in FOLDERS.items():
        write(f"{folder}/test.csv", table(id, CLASSES[id]))
    labels = {id: task(id).load("test", "local", tmp_path)["label"][:] for id in FOLDERS}
    assert labels["yelp2"] == labels["amazon2"] == ["negative", "positive"]
    assert labels["yelp5"] == labels["amazon5"] == ["1", "2", "3", "4", "5"]
    assert labels["dbpedia"][::6] == ["Company", "Building", "Film"]
    assert labels["sogou"] == ["sports", "finance", "entertainment", "automobile", "technology"]


def test_the_class_numbers_of_dbpedia_stand_without_quotes(write, tmp_path, task):
    """Whoever unpacks the official archive has such lines, in this collection alone."""
    write("dbpedia_csv/test.csv", '1,"E. D. Abbott Ltd"," Abbott of Farnham, ""coaches"""\n14,"A","b"\n')
    assert task("dbpedia").load("test", "local", tmp_path).to_list() == [
        {"id": "test-1", "text": 'E. D. Abbott Ltd Abbott of Farnham, "coaches"', "label": "Company"},
        {"id": "test-2", "text": "A b", "label": "WrittenWork"},
    ]


def test_quotes_and_line_breaks_are_as_the_writer_had_them(write, tmp_path, task):
    r"""A \n that is left would be a letter of the next word, in every second review."""
    write("amazon_review_polarity_csv/test.csv", '"2","The ""best""","One\\nTwo, \\""three\\"","\r\n"1","",""\n')
    assert task("amazon2").load("test", "local", tmp_path).to_list() == [
        {"id": "test-1", "text": 'The "best" One Two, "three",', "label": "positive"},
        {"id": "test-2", "text": "", "label": "negative"},
    ]


def test_an_article_may_be_longer_than_a_field_of_the_standard_reader(write, tmp_path, task):
    """Sogou's longest would end in csv.Error (131,072 characters)."""
    write("sogou_news_csv/test.csv", f'"4","ti2","{"che1 " * 40_000}"\n')
    [row] = task("sogou").load("test", "local", tmp_path)
    assert len(row["text"].split()) == 40_001 and row["label"] == "automobile"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('"0","a"', r"test\.csv, line 2: class '0', expected 1 to 5 \(1, 2, 3, 4, 5\)"),
        ('"1","a","b"', r"test\.csv, line 2: '\"1\",\"a\",\"b\"', expected 2 fields in quotes, parted by commas"),
        ("1,a", r"test\.csv, line 2: '1,a', expected 2 fields in quotes"),
        ('1","a"', r"test\.csv, line 2: '1\",\"a\"', expected 2 fields"),
        ('"1","a', r"test\.csv, line 2: '\"1\",\"a', expected 2 fields"),
    ],
)
def test_a_line_of_another_file_is_named(line, message, write, tmp_path, task):
    """The file of Yelp-2 in the folder of Yelp-5 has no such line; a table of another kind has."""
    write("yelp_review_full_csv/test.csv", f'"5","good"\n{line}\n')
    with pytest.raises(DataError, match=message):
        task("yelp5").load("test", "local", tmp_path)


HUB = {
    "yelp2": (["1", "2"], ("text",), "positive"),
    "yelp5": (["1 star", "2 star", "3 stars", "4 stars", "5 stars"], ("text",), "2"),
    "amazon2": (["negative", "positive"], ("title", "content"), "positive"),
}


@pytest.mark.parametrize("id", HUB)
def test_the_hub_has_the_same_rows_under_names_of_its_own(id, task, from_parquet):
    names, texts, label = HUB[id]
    features = dict.fromkeys(texts, Value("string")) | {"label": ClassLabel(names=names)}
    columns = {name: [f"{name}\\none"] for name in texts} | {"label": [1]}
    expected = " ".join(f"{name} one" for name in texts)
    assert from_parquet(task(id), "test", columns, features) == [{"id": "test-1", "text": expected, "label": label}]


def test_every_column_of_the_survey_has_a_task_of_that_name():
    """Under another name our results would stand in a table of their own, beside no published
    value."""
    assert set(DATASET_NAMES) - set(registry.entries("tasks")) == set()
