"""Captions alone and beside their translations, as plain text."""

from __future__ import annotations

import json

import pytest

from harness.data.overlap import WORDS
from harness.views.languages import SECOND
from tasks.multi30k_both import texts
from tasks.text_mix import guarded
from tests.support.sequences import assert_apart, sequences

LONG = " ".join(f"word{number}" for number in range(WORDS))


def test_a_pair_is_three_texts():
    """The mark says what is German, also in a text that is German alone."""
    assert list(texts([{"id": "train-1", "source": "A cat.", "target": "Eine Katze."}])) == [
        {"id": "train-1-source", "text": "A cat."},
        {"id": "train-1-target", "text": "␞ Eine Katze."},
        {"id": "train-1-both", "text": "A cat. ␞ Eine Katze."},
    ]


def write_all(write, train: list[tuple[str, str]]) -> None:
    """Files of Multi30k and of SNLI, whose dev and test have some sentences."""
    files = {"train": train, "val": [("A dog in dev.", "Ein Hund.")], "test_2016_flickr": [("A test.", f"Und {LONG}.")]}
    for name, pairs in files.items():
        for number, language in enumerate(("en", "de")):
            write(f"multi30k/{name}.{language}", "".join(f"{pair[number]}\n" for pair in pairs))
    for split in ("dev", "test"):
        row = {"sentence1": f"A {split} premise.", "sentence2": "It is so.", "gold_label": "neutral", "pairID": split}
        write(f"snli/snli_1.0_{split}.jsonl", json.dumps(row) + "\n")


def test_a_pair_is_left_out_of_train_where_either_side_is_tested_on(write, task, tmp_path):
    """Whoever is tuned on SNLI would have read its premises beside a translation."""
    train = [
        ("A cat.", "Eine Katze."),
        ("A dog in dev .", "Dort."),
        ("A dog in dev. Really.", "Doch."),
        ("Here.", f"Dann {LONG}."),
        ("A test premise.", "Eine Prämisse."),
        ("A dev premise.", "Eine andere."),
    ]
    write_all(write, train)
    adapter = task("multi30k_both")
    kept = [row["text"] for row in adapter.read("train", "local", tmp_path)]
    assert kept == [
        *("A cat.", "␞ Eine Katze.", "A cat. ␞ Eine Katze."),
        *("A dog in dev. Really.", "␞ Doch.", "A dog in dev. Really. ␞ Doch."),
    ]
    dev = [row["id"] for row in adapter.read("dev", "local", tmp_path)]
    assert dev == ["dev-1-source", "dev-1-target", "dev-1-both"]
    assert len(adapter.read("test", "local", tmp_path)) == 3


def test_the_mini_corpus_shares_no_sequence_with_dev_or_test_of_any_task(task):
    """In either language, of the first run of a new user."""
    sides = [side for row in task("multi30k_both").read("train", "mini") for side in row["text"].split(SECOND) if side]
    own = {sequence for side in sides for sequence in sequences(side)}
    assert len(own) > 1000 and all(own.isdisjoint(sequences(text)) for text in guarded("mini", None))


@pytest.mark.minutes
def test_the_corpus_is_the_one_that_the_protocol_describes(task, corpora):
    """Its sizes; and a tenth of the pairs share nothing with what any task is tested on."""
    adapter = task("multi30k_both")
    rows = {split: adapter.read(split, "local", corpora) for split in ("train", "dev", "test")}
    assert {split: len(each) for split, each in rows.items()} == dict(adapter.entry.sizes)
    assert f"{29000 - len(rows['train']) // 3:,} of 29,000" in adapter.entry.protocol
    assert [row["text"].count(SECOND) for row in rows["train"]] == [0, 1, 1] * (len(rows["train"]) // 3)
    assert_apart([row["text"] for row in rows["train"][2::30]], "local", corpora)
