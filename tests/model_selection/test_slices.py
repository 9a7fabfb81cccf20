"""Slices of a user's rows: what is sealed is seen by nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness import registry
from harness.errors import DataError, UsageError
from harness.model_selection.slices import FOLDS, slices
from tests.model_selection.conftest import HEAD, reviews


def ids(file: Path) -> dict[str, set[str]]:
    """Ids of the rows of each split of a slice."""
    [entry] = registry.match("tasks", str(file))
    task = registry.load(entry)(entry)
    return {split: {row["id"] for row in task.read(split)} for split in ("train", "dev", "test")}


def test_a_fifth_is_sealed_from_a_thousand_rows_on(own, tmp_path):
    """Rows that systems are chosen by, or trained on, can confirm nothing."""
    found = slices(own(reviews(1000)), tmp_path / "try")
    [file] = found.choosing
    assert found.sealed
    choosing, sealed = ids(file), ids(found.last)
    assert len(sealed["test"]) == 200
    assert not sealed["test"] & set.union(*choosing.values())
    assert (sealed["train"], sealed["dev"]) == (choosing["train"] | choosing["test"], choosing["dev"])
    sizes = {split: len(rows) for split, rows in choosing.items()}
    assert sizes == {"train": 525, "dev": 100, "test": 175}
    assert len(set.union(*choosing.values())) == 800
    assert (found.rows, found.train, found.train_last, found.last_rows) == (1000, 525, 700, 1000)
    assert "525 for training, 100 to end it, 175 to choose by, and 200 sealed" in found.words


def test_each_row_that_may_choose_does_so_once_in_all_parts_together(own, tmp_path):
    """Of four parts one chooses first; a row in two of them would count twice, and a sealed one
    would be sealed no longer."""
    found = slices(own(reviews(1000)), tmp_path / "try")
    parts = [ids(file) for file in (*found.choosing, *found.again)]
    assert len(parts) == 4
    known = parts[0]["train"] | parts[0]["test"]
    assert sorted(row for part in parts for row in part["test"]) == sorted(known)
    for part in parts:
        assert part["train"] == known - part["test"] and part["dev"] == parts[0]["dev"]
    assert not ids(found.last)["test"] & known


def test_ten_thousand_rows_that_choose_are_enough(own, tmp_path, monkeypatch):
    """Three more trainings of each on fifty thousand rows would take the time of other ones."""
    monkeypatch.setattr("harness.model_selection.slices.MOST_CHOICE", 150)
    found = slices(own(reviews(1000)), tmp_path / "try")
    assert found.again == () and len(ids(found.choosing[0])["test"]) == 150


def test_a_large_file_is_neither_trained_on_nor_asked_as_a_whole(own, tmp_path, monkeypatch):
    """Each pass over fifty thousand rows asked a hundred thousand, and the last trainings were
    foretold as if they read all rows."""
    monkeypatch.setattr("harness.model_selection.slices.MOST_TRAIN", 300)
    monkeypatch.setattr("harness.model_selection.slices.MOST_DEV", 40)
    found = slices(own(reviews(1000)), tmp_path / "try")
    assert [len(rows) for rows in ids(found.choosing[0]).values()] == [300, 40, 175]
    assert [len(rows) for rows in ids(found.last).values()] == [475, 40, 200]
    assert (found.rows, found.train, found.train_last, found.last_rows) == (1000, 300, 475, 715)
    assert "300 (of 525) for training, 40 (of 100) to end it" in found.words


@pytest.mark.parametrize("count", [120, 402, 999])
def test_below_that_each_row_is_in_one_fold(own, tmp_path, count):
    found = slices(own(reviews(count)), tmp_path / "try")
    assert not found.sealed and len(found.choosing) == FOLDS
    assert ids(found.last) == ids(found.choosing[0])
    assert (found.train_last, found.last_rows) == (len(ids(found.last)["train"]), count)
    folds = [ids(file) for file in found.choosing]
    tested = [row for fold in folds for row in fold["test"]]
    assert len(tested) == len(set(tested)) == count
    assert all(not fold["test"] & (fold["train"] | fold["dev"]) and fold["dev"] for fold in folds)
    assert all(len(set.union(*fold.values())) == count for fold in folds)


@pytest.mark.parametrize("count", [400, 1200])
def test_equal_texts_stay_together(own, tmp_path, count):
    """A text that stands in train too is known by heart, and chosen is what learns by heart."""
    text = reviews(count).replace("film ", "film ").splitlines()
    rows = [text[0], *(f"film {number // 2} was fine,{('neg', 'pos')[number % 2]}" for number in range(count))]
    task = own("\n".join([*rows, ""]))
    by_id = {row["id"]: row["text"] for split in ("train", "dev", "test") for row in task.read(split)}
    for file in slices(task, tmp_path / "try").files:
        texts = [{by_id[id] for id in rows} for rows in ids(file).values()]
        assert not (texts[0] & texts[1] or texts[0] & texts[2] or texts[1] & texts[2])


GROUPED = HEAD + '[splits]\ngroup = "writer"\n'


def written(count: int, writer: Callable[[int], int]) -> str:
    """Reviews with the number of the writer of each."""
    lines = (f"film {n} was fine,{('neg', 'pos')[n % 2]},{writer(n)}" for n in range(count))
    return "\n".join(["review,stars,writer", *lines, ""])


def test_a_group_larger_than_a_fold_is_in_one(own, tmp_path):
    """The page says that each row is scored by a model that was trained without it: 120 of these
    400 were scored by none."""
    task = own(written(400, lambda n: 0 if n < 120 else n % 40 + 1), GROUPED)
    tested = [row for file in slices(task, tmp_path / "try").choosing for row in ids(file)["test"]]
    assert len(tested) == len(set(tested)) == 400


def test_a_group_larger_than_a_quarter_is_asked_in_the_last(own, tmp_path):
    """As the first part has it, so that all parts together have each row that may choose."""
    task = own(written(1200, lambda n: 0 if n < 300 else n), GROUPED)
    found = slices(task, tmp_path / "try")
    parts = [ids(file) for file in (*found.choosing, *found.again)]
    assert found.sealed
    known = parts[0]["train"] | parts[0]["test"]
    assert sorted(row for part in parts for row in part["test"]) == sorted(known)


@pytest.mark.parametrize(
    ("count", "writers", "largest"),
    [
        (400, 4, "100 of 400 are: '[0-3]'"),  # larger than a fold
        (400, 5, "80 of 400 are: '[0-4]'"),  # larger than what ends a training
        (1200, 5, "240 of 1,200 are: '[0-4]'"),  # larger than what is chosen by
    ],
)
def test_groups_that_cannot_be_divided_are_named(own, tmp_path, count, writers, largest):
    """A split without rows would be told by the name of a file that the user never wrote."""
    task = own(written(count, lambda n: n % writers), GROUPED)
    with pytest.raises(UsageError, match=f"reviews.toml: rows that are equal in 'writer' stay together, and {largest}"):
        slices(task, tmp_path / "try")


def test_equal_texts_that_cannot_be_divided_are_named_by_their_column(own, tmp_path):
    rows = "".join(f"film {n % 3} was fine,{('neg', 'pos')[n % 2]}\n" for n in range(400))
    with pytest.raises(UsageError, match=r"equal in 'review' stay together, and 134 of 400 are: 'film 0 was fine'; .*"):
        slices(own("review,stars\n" + rows), tmp_path / "try")


def parted(count: int, names: Callable[[int], str]) -> str:
    """Reviews with the name of the split of each."""
    lines = (f"film {n} was fine,{('neg', 'pos')[n % 2]},{names(n)}" for n in range(count))
    return "\n".join(["review,stars,part", *lines, ""])


PARTED = HEAD + '[splits]\ncolumn = "part"\n'


def test_a_column_with_train_and_test_alone_is_enough(own, tmp_path):
    """The usual layout was refused, and equal texts were blamed, of which there were none."""
    found = slices(own(parted(1400, lambda n: "test" if n % 4 == 0 else "train"), PARTED), tmp_path / "try")
    choosing, sealed = ids(found.choosing[0]), ids(found.last)
    assert found.sealed and len(sealed["test"]) == 350
    assert len(choosing["dev"]) == round(1050 / 8) and choosing["dev"] == sealed["dev"]
    assert not sealed["test"] & set.union(*choosing.values())
    assert len(set.union(*choosing.values())) == 1050


def test_a_column_without_train_is_named_by_its_split(own, tmp_path):
    with pytest.raises(DataError, match=r"reviews.csv: split train has no rows"):
        slices(own(parted(1400, lambda n: "test"), PARTED), tmp_path / "try")


def test_it_is_told_where_a_column_of_splits_is_not_used(own, tmp_path):
    """Who gave a test would believe that the score is that of it."""
    small = own(parted(400, lambda n: ("train", "dev", "test", "train")[n % 4]), PARTED)
    assert slices(small, tmp_path / "try").words.endswith("The splits that the file gives are not used.")
    assert "not used" not in slices(own(reviews(400)), tmp_path / "try").words


def test_a_group_is_known_to_each_slice(own, tmp_path):
    """What is handed over is chosen by rows divided anew, which would part a writer's."""
    task = own(written(400, lambda n: n // 4), GROUPED)
    [entry] = registry.match("tasks", str(slices(task, tmp_path / "try").last))
    part = registry.load(entry)(entry)
    found = part.read("train")
    assert part.together(found) == [str(int(row["text"].split()[1]) // 4) for row in found]


def test_they_are_written_again_only_when_they_change(own, tmp_path):
    """A file with a new date would have its data read again, and its cells compared."""
    first = slices(own(reviews(200)), tmp_path / "try").files
    before = [file.stat().st_mtime_ns for file in first]
    assert [file.stat().st_mtime_ns for file in slices(own(reviews(200)), tmp_path / "try").files] == before


def test_splits_that_the_user_gives_are_not_divided_anew(own, tmp_path):
    """A user with a test of his own would find its rows in training."""
    toml = HEAD.replace('all = "reviews.csv"', 'train = "reviews.csv"\ntest = "other.csv"')
    with pytest.raises(UsageError, match=r"\[data\] has train, test; `archbench try` divides the rows of one file"):
        slices(own(reviews(200), toml), tmp_path / "try")


@pytest.mark.parametrize("count", [120, 1500])
def test_rows_that_the_description_leaves_out_are_in_no_slice(own, tmp_path, count):
    """They were in the score and in the model below 1,000 rows: wrong ones, or another's test."""
    parts = {n: ("train", "train", "dev", "test", None)[n % 5] for n in range(2, count + 2)}
    lines = [f"{line},{split}" for line, split in parts.items() if split]
    (tmp_path / "parts.csv").write_text("\n".join(["row,split", *lines, ""]))
    task = own(reviews(count), HEAD + '[splits]\nassigned = "parts.csv"\n')
    found = slices(task, tmp_path / "try")
    assert found.rows == len(lines) and found.sealed == (count > 1000)
    named = {f"line-{line}" for line, split in parts.items() if split}
    for file in found.files:
        assert set.union(*ids(file).values()) <= named
    assert set.union(*ids(found.last).values()) == named
