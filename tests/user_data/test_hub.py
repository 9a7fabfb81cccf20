"""A data set of the hub as own data. A folder stands in for it: the library reads both alike, but
for the way there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import pytest

from harness.errors import DataError
from harness.running.request import Request
from harness.running.session import Session
from harness.running.worker import run_cell

COMMIT = "0123456789abcdef0123456789abcdef01234567"
FEATURES = datasets.Features(
    {
        "review": datasets.Value("string"),
        "stars": datasets.ClassLabel(names=["neg", "pos"]),
        "film": datasets.Value("int64"),
    }
)


def rows(count: int) -> list[dict[str, Any]]:
    return [{"review": f"film {n} was {('bad', 'good')[n % 2]}", "stars": n % 2, "film": n} for n in range(count)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data set as the hub holds it: a file for each split, which says its features."""
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    datasets.disable_progress_bars()
    made = tmp_path / "films"
    (made / "data").mkdir(parents=True)
    for split, count in (("train", 40), ("validation", 8), ("test", 10)):
        written = datasets.Dataset.from_list(rows(count), features=FEATURES)
        written.to_parquet(made / "data" / f"{split}-00000-of-00001.parquet")
    return made


def toml(hub: str, columns: str = 'text = "review"\nlabel = "stars"', data: str = "") -> str:
    places = data or 'train = "train"\ndev = "validation"\ntest = "test"'
    return f'type = "classify"\n[data]\nhub = "{hub}"\nrevision = "{COMMIT}"\n{places}\n[columns]\n{columns}\n'


@pytest.fixture
def asked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """Calls of the library, which finds the folder in the place of ``someone/films``."""
    load, calls = datasets.load_dataset, list[tuple[Any, ...]]()

    def of_folder(path: str, config: str | None, *, split: str, revision: str) -> datasets.Dataset:
        calls.append((path, config, split, revision))
        return load(str(folder), split=split)

    monkeypatch.setattr(datasets, "load_dataset", of_folder)
    return calls


def test_each_split_is_asked_for_at_its_revision_and_classes_have_their_names(own: Callable[..., Any], asked):
    """A data set that moves on would be another one under the same name, and 0 and 1 tell nobody
    which of them is good."""
    task = own(toml("someone/films"))
    found = {split: task.read(split) for split in ("train", "dev", "test")}
    assert {split: len(each) for split, each in found.items()} == {"train": 40, "dev": 8, "test": 10}
    assert found["train"][:2] == [
        {"id": "row-1", "text": "film 0 was bad", "label": "neg"},
        {"id": "row-2", "text": "film 1 was good", "label": "pos"},
    ]
    assert asked == [("someone/films", None, split, COMMIT) for split in ("train", "validation", "test")]


def test_one_split_is_divided_and_a_configuration_named(own: Callable[..., Any], asked):
    """Many data sets have a train split alone."""
    task = own(toml("someone/films", data='all = "train"\nconfig = "plain"'))
    sizes = {split: len(task.load(split)) for split in ("train", "dev", "test")}
    assert sizes == {"train": 28, "dev": 4, "test": 8}
    assert asked == [("someone/films", "plain", "train", COMMIT)]


def test_columns_are_named_by_number_too_and_one_serves_twice(own: Callable[..., Any], asked):
    task = own(toml("someone/films", 'text = 1\nlabel = 2\nid = "film"\nspeaker = 3'))
    assert task.read("test")[3] == {"id": "3", "text": "film 3 was good", "label": "pos", "speaker": "3"}


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ('text = "revue"\nlabel = "stars"', "someone/films at 01234567, split train.*revue.*did you mean review"),
        ('text = "film"\nlabel = "stars"', "someone/films, split train, row 1: column 'film' is 0, expected a text"),
    ],
)
def test_a_column_that_is_not_there_or_no_text_is_named(own: Callable[..., Any], asked, columns: str, message: str):
    with pytest.raises(DataError, match=message):
        own(toml("someone/films", columns)).load("train")


def test_a_class_that_the_hub_does_not_know_is_an_empty_cell(own: Callable[..., Any], folder: Path, asked):
    """Hidden labels of test are -1 there, which is no class."""
    hidden = [row | {"stars": -1} for row in rows(3)]
    file = folder / "data" / "test-00000-of-00001.parquet"
    datasets.Dataset.from_list(hidden, features=FEATURES).to_parquet(file)
    with pytest.raises(DataError, match="films, split test, row 1: column 'stars' is empty"):
        own(toml("someone/films")).load("test")


@pytest.mark.parametrize("of", [datasets.Sequence, datasets.List, datasets.LargeList])
def test_tags_of_words_have_their_names(own: Callable[..., Any], folder: Path, asked, of: Callable):
    """Tagged corpora hold a list of class numbers for each sentence, as the library's versions call
    it."""
    features = datasets.Features(
        {"tokens": of(datasets.Value("string")), "ner_tags": of(datasets.ClassLabel(names=["O", "B-PER"]))}
    )
    rows = [{"tokens": [f"Peter{n}", "sleeps"], "ner_tags": [1, 0]} for n in range(4)]
    for file in (folder / "data").iterdir():
        datasets.Dataset.from_list(rows, features=features).to_parquet(file)
    tagged = toml("someone/films", 'text = "tokens"\ntags = "ner_tags"').replace("classify", "tag")
    found = own(tagged).read("test")[2]
    assert found == {"id": "row-3", "text": ["Peter2", "sleeps"], "tags": ["B-PER", "O"]}


def test_what_the_library_says_is_told_with_the_name(own: Callable[..., Any], folder: Path):
    with pytest.raises(DataError, match="split train: ConnectionError: Couldn't reach 'someone_who"):
        own(toml("someone_who_is_not_there/films")).load("train")
    with pytest.raises(DataError, match="split tests: ValueError: Unknown split"):
        own(toml(str(folder), data='train = "train"\ntest = "tests"')).load("test")


def test_a_cell_runs_on_it(own: Callable[..., Any], folder: Path, tmp_path: Path):
    """The process that reads ahead and the cell's own find it by the description alone."""
    own(toml(str(folder)))
    told: list[str] = []
    request = Request(tmp_path / "results", "naive_bayes", str(tmp_path / "reviews.toml"), mlflow="none")
    session = Session(request, told.append)
    [cell] = session.pending.run
    record = run_cell(cell, session.settings)
    assert (record.status, record.error) == ("ok", None)
    assert record.counts == {"train": 40, "dev": 8, "test": 10}
    assert record.scores["test"]["accuracy"] == 1
    assert told == [
        f"reviews: {n} of {n} rows of {split} read as a row of train" for split, n in (("dev", 8), ("test", 10))
    ]
