"""Splits of own data: given, or held out by a seed, and what is told of them."""

from __future__ import annotations

import pytest

from harness.errors import DataError, RegistryError
from harness.user_data.splits import carved, hashes
from tests.user_data.conftest import HEAD, reviews


def ids(task) -> dict[str, set[str]]:
    return {split: {row["id"] for row in task.read(split)} for split in ("train", "dev", "test")}


def test_held_out_rows_are_the_same_for_the_same_seed_and_others_for_another(own):
    """Another machine, and the same rows in another order, must give the same splits."""
    found = ids(own(reviews_csv=reviews(200)))
    assert [len(found[split]) for split in ("train", "dev", "test")] == [140, 20, 40]
    assert ids(own(reviews_csv=reviews(200))) == found
    assert ids(own(HEAD + "[splits]\nseed = 1\n", reviews_csv=reviews(200))) != found
    lines = reviews(200).splitlines(keepends=True)
    task = own(reviews_csv=lines[0] + "".join(reversed(lines[1:])))
    assert {row["text"] for row in task.read("test")} == {
        row["text"] for row in own(reviews_csv=reviews(200)).read("test")
    }


def test_equal_texts_are_on_one_side(own):
    """A text that stands in train and in test is known by heart."""
    task = own(reviews_csv=reviews(40) + reviews(40, "") + reviews(40, ""))
    sides = {split: {row["text"] for row in task.read(split)} for split in ("train", "dev", "test")}
    assert not sides["train"] & sides["test"] and not sides["train"] & sides["dev"] and not sides["dev"] & sides["test"]
    assert task.notes() == []


def test_rows_of_one_group_are_on_one_side(own):
    rows = "".join(f"text {n},{('a', 'b')[n % 2]},user{n // 5}\n" for n in range(100))
    task = own(HEAD + '[splits]\ngroup = "user"\n', reviews_csv="review,stars,user\n" + rows)
    users = {split: {int(id.split("-")[1]) - 2 for id in found} for split, found in ids(task).items()}
    assert all(
        len(numbers) % 5 == 0 and len({n // 5 for n in numbers}) * 5 == len(numbers) for numbers in users.values()
    )
    assert "user" not in task.read("train")[0], "the column is no input"


@pytest.mark.parametrize("divided", ["", 'assigned = "splits.csv"\n'])
def test_what_stays_together_is_known_afterwards(own, divided):
    """A second training that divides the rows anew would ask of a user what it has learnt of her,
    also where two users wrote the same text."""
    rows = "".join(f"text {n},{('a', 'b')[n % 2]},user{n // 5}\n" for n in range(99)) + "text 3,b,user19\n"
    splits = "row,split\n" + "".join(f"{n + 2},{('train', 'dev', 'test')[n // 34]}\n" for n in range(100))
    toml = HEAD + f'[splits]\n{divided}group = "user"\n'
    task = own(toml, reviews_csv="review,stars,user\n" + rows, splits_csv=splits)
    found = [row for split in ("train", "dev", "test") for row in task.read(split)]
    assert task.together(found) == [f"user{(int(row['id'].split('-')[1]) - 2) // 5}" for row in found]
    plain = own(HEAD, reviews_csv="review,stars,user\n" + rows)
    assert plain.together(plain.read("dev")) == [row["text"] for row in plain.read("dev")]


def test_candidates_of_one_question_are_on_one_side(own):
    toml = HEAD.replace("classify", "rank").split("[columns]")[0]
    toml += '[columns]\nfirst = "q"\nsecond = "a"\nlabel = "r"\ngroup = "q"\n'
    task = own(toml, reviews_csv="q,a,r\n" + "".join(f"q{n // 4},a{n},{int(n % 4 == 0)}\n" for n in range(80)))
    groups = {split: {row["group"] for row in task.read(split)} for split in ("train", "test")}
    assert len(groups["test"]) == 4 and not groups["train"] & groups["test"]


def test_the_protocol_says_which_rows_stay_together(own):
    """Pages print it: of a question's candidates the inputs differ, and they stay together."""
    toml = HEAD.replace("classify", "rank").split("[columns]")[0]
    toml += '[columns]\nfirst = "q"\nsecond = "a"\nlabel = "z"\ngroup = "q"\n'
    rows = "q,a,z\n" + "".join(f"q{n // 4},a{n},{int(n % 4 == 0)}\n" for n in range(120))
    assert "rows of one group stay together" not in own(HEAD, reviews_csv=reviews(40)).entry.protocol
    assert "rows of one group stay together" in own(toml, reviews_csv=rows).entry.protocol


def test_a_group_larger_than_its_share_stays_in_train():
    """The first group of the order must not leave a split empty."""
    keys = ["large"] * 50 + [f"small {n}" for n in range(50)]
    for seed in range(5):
        places = carved(hashes(keys, seed), {"dev": 0.1, "test": 0.2})
        assert (places == 1).sum() == 10 and (places == 2).sum() == 20
        assert set(places[:50]) == {0}


def test_a_column_names_the_split(own):
    rows = "a,pos,train\nb,neg,train\nc,pos,validation\nd,neg,Test\n"
    toml = HEAD + '[splits]\ncolumn = "part"\n'
    assert ids(own(toml, reviews_csv="review,stars,part\n" + rows)) == {
        "train": {"line-2", "line-3"}, "dev": {"line-4"}, "test": {"line-5"},
    }  # fmt: skip
    with pytest.raises(DataError, match="reviews.csv, line 3: column 'part' is 'tset', expected one of train"):
        own(toml, reviews_csv="review,stars,part\na,pos,train\nb,neg,tset\n").load("train")


def test_dev_is_held_out_of_a_given_train_and_test_is_not_read_for_it(own):
    """The test split is not reachable while a model trains."""
    toml = HEAD.replace('all = "reviews.csv"', 'train = "train.csv"\ntest = "test.csv"')
    task = own(toml, train_csv=reviews(50))
    assert (len(task.read("train")), len(task.read("dev"))) == (45, 5)
    with pytest.raises(DataError, match="test.csv: no such file"):
        task.read("test")


def test_too_few_rows_for_a_split_are_named(own):
    with pytest.raises(DataError, match="split dev has no rows: 0.1 of 4 rows were to be held out, and there are too"):
        own(reviews_csv=reviews(4)).load("dev")
    assert len(own(reviews_csv=reviews(10)).read("dev")) == 1, "ten rows can be read"


def test_labels_that_train_lacks_and_rows_in_two_splits_are_told(own):
    """Neither is a fault, and both change what a score says."""
    toml = HEAD.replace('all = "reviews.csv"', 'train = "a.csv"\ndev = "a.csv"\ntest = "b.csv"')
    test = "review,stars\nfilm 0 was good,pos\nnew,mixed\nother,mixed\n"
    assert own(toml, a_csv=reviews(6), b_csv=test).notes() == [
        "reviews: test has 2 values of label that train lacks, which every system gets wrong: 'mixed' (2); the first at"
        " line 3",
        "reviews: 6 of 6 rows of dev read as a row of train",
        "reviews: 1 of 3 rows of test read as a row of train",
    ]


ASSIGNED = HEAD + '[splits]\nassigned = "splits.csv"\n'


def test_a_file_can_give_each_row_its_split(own):
    """Rows that it does not name are in none, whatever the order of its lines."""
    splits = "row,split\n5,dev\n2,train\n3,train\n7,test\n"
    task = own(ASSIGNED, reviews_csv=reviews(8), splits_csv=splits)
    ids = {split: [row["id"] for row in task.read(split)] for split in ("train", "dev", "test")}
    assert ids == {"train": ["line-2", "line-3"], "dev": ["line-5"], "test": ["line-7"]}
    before = task.signature()
    again = own(ASSIGNED, reviews_csv=reviews(8), splits_csv=splits + "4,train\n")
    assert len(again.read("train")) == 3
    assert again.signature() != before, "finished cells would stand for other rows"


@pytest.mark.parametrize(
    ("splits", "message"),
    [
        ("row,split\n2,train\n99,dev\n", "row 99 is none of .*reviews.csv"),
        ("row,split\n2,train\n3,train\n2,test\n", "row 2 is named twice"),
        ("row,split\n2,trian\n", "split 'trian', expected one of train, dev, test"),
        ("row,part\n2,train\n", "expected the columns row and split"),
        ("row,split\nfirst,train\n", "expected the columns row and split"),
        ("", "expected the columns row and split"),
    ],
)
def test_a_file_of_splits_that_does_not_fit_is_named(own, splits, message):
    task = own(ASSIGNED, reviews_csv=reviews(8), splits_csv=splits)
    with pytest.raises(DataError, match=f"splits.csv: .*{message}"):
        task.table("train")


@pytest.mark.parametrize("more", ['column = "part"\n', "dev = 0.2\n", 'column = "part"\ngroup = "writer"\n'])
def test_a_file_of_splits_stands_alone(own, more):
    with pytest.raises(RegistryError, match="it says each row's split"):
        own(ASSIGNED + more, reviews_csv=reviews(8))
