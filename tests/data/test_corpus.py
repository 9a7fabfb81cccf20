"""Encoded corpora: fitted on train alone, test out of reach, caps that are the same for all, a
cache that never lies."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch

from harness import registry
from harness.data import corpus, encodings
from harness.data.loaded_rows import training_rows
from harness.errors import DataError
from harness.files import machine
from harness.objectives import Supervised
from harness.problems.base import Problem
from harness.ragged import Ragged
from harness.records import Store
from harness.settings import TrainingSettings
from harness.task import fingerprint
from harness.training.fit import fit
from harness.training.fit_module import FitModule
from harness.views.subwords import SPECIAL, Subwords
from harness.views.whole_words import WholeWords
from harness.views.words import UNKNOWN, Words
from tests.support.toy_corpus import ToyTask, sentences, toy_corpus, toy_model, toy_task

SETTINGS = TrainingSettings(batch_size=8, epochs=2, patience=3)


def arrays(columns) -> dict[str, list]:
    """The columns of an encoded split as lists."""
    return {
        n: [c.values.tolist(), c.offsets.tolist()] if isinstance(c, Ragged) else c.tolist() for n, c in columns.items()
    }


# --- what is seen when ---


@pytest.mark.parametrize("split", ["dev", "test"])
def test_a_word_of_dev_or_test_alone_is_unknown(split):
    """A vocabulary that has seen the test split knows which words will be asked for."""
    rows = [row | {"text": row["text"] + " zyzzyva"} for row in sentences(4, 100)]
    corpus = toy_corpus(toy_task(**{split: rows}))
    encoded = corpus.dev if split == "dev" else corpus.test()
    assert "zyzzyva" not in corpus.view.vocabulary.words
    assert [int(encoded.inputs["text"]["ids"][row][-1]) for row in range(4)] == [UNKNOWN] * 4


def test_training_and_selection_never_load_test(tmp_path):
    """A test split that cannot be read stops nothing but the scoring: so nothing before it can have
    looked."""
    task = toy_task(test=DataError("test was read"))
    corpus = toy_corpus(task)
    model = toy_model(corpus)
    training = FitModule(
        model, Supervised(), corpus.train, corpus.dev, SETTINGS, 0.01, 0, ("accuracy",), "accuracy", False
    )
    assert fit(training, tmp_path, 1, "auto", "32", 2)["epochs"] == 2
    assert "test" not in task.asked and "test" not in corpus.fingerprints
    with pytest.raises(DataError, match="test was read"):
        corpus.test()


def test_every_split_is_fingerprinted_once_it_is_loaded():
    corpus = toy_corpus()
    corpus.test()
    assert sorted(corpus.fingerprints) == ["dev", "test", "train"]
    assert len(set(corpus.fingerprints.values())) == 3
    assert corpus.fingerprints == toy_corpus(corpus.task).fingerprints | {"test": corpus.fingerprints["test"]}


# --- caps ---


def test_a_cap_chooses_the_same_rows_each_time_in_the_files_order():
    train = [toy_corpus(max_train=20).train.rows["id"] for _ in range(2)]
    order = {row["id"]: number for number, row in enumerate(sentences(48))}
    assert list(train[0]) == list(train[1]) and len(train[0]) == 20
    assert [order[id] for id in train[0]] == sorted(order[id] for id in train[0])


def test_a_cap_is_a_random_choice():
    """AG News is sorted in places: the first rows would be of one class."""
    chosen = [int(id.partition("-")[2]) for id in toy_corpus(max_train=20).train.rows["id"]]
    assert max(chosen) > 30 and min(chosen) < 18


def test_a_smaller_cap_chooses_from_a_larger_ones_rows():
    """A learning curve then adds rows and takes none away."""
    small, large = (set(toy_corpus(max_train=n).train.rows["id"]) for n in (10, 30))
    assert small < large


def test_every_cap_keeps_the_shares_of_the_classes():
    """A small budget of a set with rare classes would lack them, or have twice as many, by luck."""
    entry = registry.entry("tasks", "ohsumed")
    task = registry.load(entry)(entry)
    rows = task.load("train", "mini")
    whole = Counter(rows["label"])
    for most in (20, 50, 133, 300):
        kept = training_rows(task, "mini", None, most)
        assert len(kept) == most
        for label, count in Counter(kept["label"]).items():
            assert abs(count - whole[label] * most / len(rows)) <= 1, (most, label)


def test_a_text_of_many_rows_is_counted_once():
    """A passage of three questions would make each of its words frequent, and no word unknown."""
    rows = sentences(8)
    rows[0]["text"] = rows[1]["text"] = rows[2]["text"] = "a zebra"
    corpus = toy_corpus(toy_task(train=rows), Words(min_count=2))
    assert "zebra" not in corpus.view.vocabulary.words and "the" in corpus.view.vocabulary.words


def test_a_cap_leaves_dev_and_test_alone():
    corpus = toy_corpus(max_train=10)
    assert (len(corpus.train), len(corpus.dev), len(corpus.test())) == (10, 16, 16)


def test_a_cap_on_ranking_keeps_whole_questions():
    """Half a question's candidates rank in another way than all of them."""
    entry = registry.entry("tasks", "wikiqa")
    task = registry.load(entry)(entry)
    rows = task.load("train", "mini")
    whole = Counter(rows["group"])
    kept = training_rows(task, "mini", None, 60)
    found = Counter(kept["group"])
    assert 40 < len(kept) <= 60
    assert all(found[group] == whole[group] for group in found)
    assert list(training_rows(task, "mini", None, 60)["id"]) == list(kept["id"])
    assert len(set(training_rows(task, "mini", None, 1)["group"])) == 1, "at least one question"


@pytest.mark.parametrize("most", [None, 48, 1000])
def test_a_cap_that_does_not_bind_changes_nothing(most):
    assert len(training_rows(toy_task(), "mini", None, most)) == 48


# --- labels ---


def test_labels_are_nested_and_the_other_rows_are_texts_alone():
    """A system with few labels that reads the answers of the others, or fits its words on them, is
    one with all labels; a curve over labels adds rows and takes none away."""
    few, more = toy_corpus(labels=10), toy_corpus(labels=30)
    assert (len(few.train), len(more.train)) == (10, 30) and {*few.train.rows["id"]} < {*more.train.rows["id"]}
    assert [*few.train.rows["id"]] == [*toy_corpus(max_train=10).train.rows["id"]]
    assert (len(few.dev), len(few.test())) == (16, 16)
    assert len(few.unlabelled) == 48 and {*few.train.rows["id"]} < {*few.unlabelled.rows["id"]}
    assert few.unlabelled.targets == {} and few.unlabelled.collate(np.arange(3)).target is None
    assert "label" not in few.unlabelled.rows.column_names
    assert few.view.vocabulary.words == toy_corpus(max_train=10).view.vocabulary.words
    assert few.fingerprints["train"] == toy_corpus(max_train=10).fingerprints["train"]


def test_labels_of_a_budget_are_some_of_its_examples():
    corpus = toy_corpus(max_train=20, labels=5)
    assert (len(corpus.train), len(corpus.unlabelled)) == (5, 20)
    assert {*corpus.train.rows["id"]} < {*corpus.unlabelled.rows["id"]}


def test_who_learns_from_texts_without_labels_knows_their_words_and_not_their_labels(tmp_path):
    """To a system whose words are those of ten texts the others are unknown words; what it caches
    must not reach one that may see the ten alone."""
    asked = {"labels": 10, "streams": ("labelled", "unlabelled"), "cache": tmp_path}
    few, plain = toy_corpus(**asked), toy_corpus(labels=10, cache=tmp_path)
    assert few.view.vocabulary.words == toy_corpus().view.vocabulary.words != plain.view.vocabulary.words
    for each in (few, toy_corpus(**asked), plain, toy_corpus(labels=10, cache=tmp_path)):
        found = each.train.inputs["text"]["ids"]
        expected = each.view.encode([row["text"] for row in each.train.rows])["ids"]
        assert [found[row].tolist() for row in range(10)] == [expected[row].tolist() for row in range(10)]
    assert few.target.labels == plain.target.labels and len(few.train) == 10
    assert few.fingerprints["unlabelled"] == fingerprint(few.unlabelled.rows) != few.fingerprints["train"]
    assert "unlabelled" not in plain.fingerprints


def test_unlabelled_texts_are_those_that_the_labelled_view_reads():
    corpus, whole = toy_corpus(labels=10), toy_corpus()
    found = corpus.unlabelled.inputs["text"]["ids"]
    expected = corpus.view.encode([row["text"] for row in sentences(48)])["ids"]
    assert [found[row].tolist() for row in range(48)] == [expected[row].tolist() for row in range(48)]
    assert len(whole.unlabelled) == len(whole.train) == 48


# --- cache ---


def entries(cache: Path) -> set[str]:
    return {folder.name for folder in cache.iterdir()}


def test_a_cached_split_is_the_one_that_was_encoded(tmp_path):
    first, second = toy_corpus(cache=tmp_path), toy_corpus(cache=tmp_path)
    assert arrays(first.train.inputs["text"]) == arrays(second.train.inputs["text"])
    assert arrays(first.dev.inputs["text"]) == arrays(second.dev.inputs["text"])
    assert first.view.state() == second.view.state()
    rows = np.arange(5)
    for a, b in zip(first.train.collate(rows).inputs["text"], second.train.collate(rows).inputs["text"], strict=True):
        assert torch.equal(a, b)


def test_the_cache_is_used(tmp_path, monkeypatch):
    """The grid pays for tokenisation once per task, not once per cell."""
    toy_corpus(cache=tmp_path).test()
    monkeypatch.setattr(Words, "encode", lambda *_: pytest.fail("encoded again"))
    monkeypatch.setattr(Words, "fit", lambda *_: pytest.fail("fitted again"))
    assert len(toy_corpus(cache=tmp_path).test()) == 16


def test_another_setting_or_other_data_is_another_entry(tmp_path):
    """A stale entry would be another experiment under the same name."""
    toy_corpus(cache=tmp_path)
    before = entries(tmp_path)
    toy_corpus(view=Words(min_count=1, max_length=2), cache=tmp_path)
    settings = entries(tmp_path)
    assert len(settings) == 2 * len(before)
    short = toy_corpus(view=Words(min_count=1, max_length=2), cache=tmp_path)
    assert short.train.lengths.max() == 2
    toy_corpus(toy_task(dev=sentences(16, 3000)), cache=tmp_path)
    data = entries(tmp_path)
    assert len(data) == len(settings) + 1, "another dev split under the same vocabulary"
    toy_corpus(max_train=20, cache=tmp_path)
    assert len(entries(tmp_path)) == len(data) + len(before), (
        "another training set gives another vocabulary, so another dev too"
    )


def test_another_tokenizer_in_the_same_folder_is_another_entry(tmp_path):
    """Weights of the new one would be read by the numbers of the old one."""
    transformers = pytest.importorskip("transformers")
    known = {word for row in sentences(48) for word in row["text"].split()}
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *sorted(known)]

    def ids(order: list[str]) -> list[int]:
        tokenizer = transformers.BertTokenizerFast(vocab={word: id for id, word in enumerate(order)})
        tokenizer.save_pretrained(tmp_path / "model")
        view = Subwords(pretrained=str(tmp_path / "model"))
        return toy_corpus(view=view, cache=tmp_path / "cache").train.inputs["text"]["ids"].values.tolist()

    first = ids(words)
    assert ids([*words[:5], *words[:4:-1]]) == [4 + len(words) - id if id > 4 else id for id in first]
    assert ids(words) == first


def test_words_are_learnt_from_the_texts_whatever_a_setting_of_the_view_says(tmp_path):
    """Views of whole words have the setting by inheritance, and learn all the same."""
    found = [toy_corpus(view=WholeWords(pretrained=name), cache=tmp_path).view.width for name in ("", "no_such_folder")]
    assert found[0] == found[1] > len(SPECIAL)


def test_what_other_code_of_the_view_encoded_is_not_read(tmp_path, monkeypatch):
    """A view mended in a new version must not meet what the old one wrote."""
    toy_corpus(cache=tmp_path)
    before = entries(tmp_path)
    monkeypatch.setattr(corpus, "_source", lambda view: "another digest")
    toy_corpus(cache=tmp_path)
    assert len(entries(tmp_path)) == 2 * len(before)


def test_what_other_code_of_the_problem_encoded_is_not_read(tmp_path, monkeypatch):
    """It chooses which facts of a story are a text: columns of the older choice would be read for
    ever."""
    toy_corpus(cache=tmp_path)
    before, source = entries(tmp_path), corpus._source
    monkeypatch.setattr(corpus, "_source", lambda kind: source(kind) + issubclass(kind, Problem) * " mended")
    toy_corpus(cache=tmp_path)
    assert len(entries(tmp_path)) == 2 * len(before)


def test_the_two_texts_of_a_pair_are_cached_apart(tmp_path):
    entry = registry.entry("tasks", "snli")
    task = registry.load(entry)(entry)
    first, second = (toy_corpus(task, cache=tmp_path, max_train=30) for _ in range(2))
    for field in ("first", "second"):
        assert arrays(first.dev.inputs[field]) == arrays(second.dev.inputs[field])
    assert arrays(first.dev.inputs["first"]) != arrays(first.dev.inputs["second"])


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty"])
@pytest.mark.parametrize("name", ["ids.values.npy", "checksums.json", "view.json"])
def test_a_damaged_cache_entry_is_made_again(tmp_path, name, damage):
    """A full disk or a killed copy must cost a tokenisation, not the cell and not its
    correctness."""
    whole = toy_corpus(cache=tmp_path)
    before = arrays(whole.train.inputs["text"])  # now: the files that are mapped into memory are about to change
    for file in tmp_path.rglob(name):
        content = file.read_bytes()
        half = len(content) // 2
        flip = content.find(b"film") if name == "view.json" else half  # another word, which still is JSON
        flipped = content[:flip] + bytes([content[flip] ^ 1]) + content[flip + 1 :]
        file.write_bytes({"cut": content[:half], "flipped": flipped, "empty": b""}[damage])
    again = toy_corpus(cache=tmp_path)
    assert arrays(again.train.inputs["text"]) == before
    assert again.view.state() == whole.view.state()


def test_nothing_half_written_is_left_behind(tmp_path):
    toy_corpus(cache=tmp_path)
    kept = {
        "view.json",
        "checksums.json",
        *(f"{name}.{part}.npy" for name in ("ids", "spellings") for part in ("values", "offsets")),
    }
    assert {file.name for file in tmp_path.rglob("*") if file.is_file()} == kept
    assert {folder.name for folder in tmp_path.glob("*/*") if folder.is_dir()} == {"text"}


@pytest.fixture
def dead() -> int:
    """The id of a process that has ended."""
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


def test_what_a_killed_cell_left_half_written_is_swept_at_the_next_start(tmp_path, dead):
    """In the middle of its cache, or of a checkpoint: it is nobody's, and may be large."""
    store, host = Store(tmp_path), machine()
    toy_corpus(cache=tmp_path / "work" / "encoded")
    encoded = next((tmp_path / "work").rglob("view.json")).parent
    whole = list((tmp_path / "work").rglob("*"))
    left, alive, foreign = (
        encoded / f".text.{name}~{pid}~0123abcd.tmp"
        for name, pid in ((host, dead), (host, os.getpid()), ("elsewhere", dead))
    )
    for folder in (left, alive, foreign):
        folder.mkdir()
        (folder / "ids.values.npy").write_bytes(b"half")
    cut = tmp_path / "work" / "checkpoints" / "0123" / f".last.ckpt.{host}~{dead}~0123abcd.tmp"
    cut.parent.mkdir(parents=True)
    cut.write_bytes(b"half")
    store.sweep()
    assert not left.exists() and not cut.exists()
    assert alive.is_dir() and foreign.is_dir() and all(path.exists() for path in whole)


def test_what_a_killed_cell_left_half_written_is_in_nobodys_way(tmp_path, monkeypatch):
    """A process may have the id of a dead one: in a container they begin anew."""
    names: list[str] = []
    save = encodings.save
    with monkeypatch.context() as patch:
        patch.setattr(encodings, "save", lambda folder, columns: names.append(folder.name) or save(folder, columns))
        toy_corpus(cache=tmp_path / "first")
    for place in (tmp_path / "first").iterdir():
        for name in names:
            (tmp_path / "second" / place.name / name).mkdir(parents=True)
    assert len(toy_corpus(cache=tmp_path / "second").train) == 48


def test_processes_share_one_copy_in_memory(tmp_path):
    """Eight cells on one corpus of a gigabyte must not need eight."""
    for encoded in (toy_corpus(cache=tmp_path), toy_corpus(cache=tmp_path)):
        held = encoded.train.inputs["text"]["ids"].values
        while isinstance(held, np.ndarray):
            held = held.base
        assert isinstance(held, mmap.mmap), "the numbers lie in the file, not in a copy of it"


# --- data that is not as it should be ---


def test_a_missing_column_is_named_with_what_there_is():
    rows = [{"id": row["id"], "tree": f"(2 {row['text']})", "label": row["label"]} for row in sentences(8)]
    with pytest.raises(DataError, match=r"toy, tier mini: no column 'text', which Words reads"):
        toy_corpus(toy_task(train=rows))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"id": "1", "text": "good"}], "split dev lacks the column label .*id, text"),
        ([], "split dev has no rows"),
        ([{"id": "1", "text": "a", "label": "positive"}] * 2, "ids that occur twice"),
    ],
)
def test_a_dev_split_that_cannot_be_scored_is_refused(rows, message):
    with pytest.raises(DataError, match=message):
        toy_corpus(toy_task(dev=rows))


def test_a_dev_split_without_the_text_is_refused_by_name():
    rows = [{"id": "1", "tree": "(2 good)", "label": "positive"}]
    with pytest.raises(DataError, match="no column 'text'"):
        toy_corpus(toy_task(dev=rows))


# --- batches ---


def test_a_batch_holds_the_rows_that_were_asked_for():
    corpus = toy_corpus()
    batch = corpus.train.collate(np.array([7, 0, 3]))
    words = corpus.view.vocabulary.words
    texts = [
        " ".join(words[i - 2] for i in ids[mask])
        for ids, mask in zip(batch.inputs["text"].ids, batch.inputs["text"].mask, strict=True)
    ]
    assert texts == [corpus.train.rows[row]["text"] for row in (7, 0, 3)]
    assert [corpus.target.labels[i] for i in batch.target] == [corpus.train.rows[row]["label"] for row in (7, 0, 3)]
    assert batch.units == sum(len(text.split()) for text in texts)


def test_some_rows_of_a_split_keep_texts_and_labels_together():
    """Learning rates are compared on some dev rows."""
    dev = toy_corpus().dev
    part = dev.some(5, seed=1)
    places = [list(dev.rows["id"]).index(id) for id in part.rows["id"]]
    assert len(part) == 5 and places == sorted(places)
    some, same = part.collate(np.arange(5)), dev.collate(np.array(places))
    assert torch.equal(some.inputs["text"].ids, same.inputs["text"].ids) and torch.equal(some.target, same.target)
    assert dev.some(1000, seed=1) is dev


def test_some_rows_are_a_random_choice_that_is_always_the_same():
    """The first rows of a file that is sorted by class are of one class."""
    rows = sorted(sentences(40, 1000), key=lambda row: row["label"])
    chosen = [toy_corpus(toy_task(dev=rows)).dev.some(10, seed=1).rows for _ in range(2)]
    assert list(chosen[0]["id"]) == list(chosen[1]["id"])
    assert min(Counter(chosen[0]["label"])[label] for label in ("positive", "negative")) >= 2
    other = toy_corpus(toy_task(dev=rows)).dev.some(10, seed=2).rows
    assert list(other["id"]) != list(chosen[0]["id"])


def test_some_rows_of_a_ranking_task_are_whole_questions():
    entry = registry.entry("tasks", "wikiqa")
    dev = toy_corpus(registry.load(entry)(entry), gives="pair vector").dev
    part, whole = dev.some(30, seed=1), Counter(dev.rows["group"])
    found = Counter(part.rows["group"])
    assert 10 < len(part) <= 30 and all(found[group] == whole[group] for group in found)
    assert len(part.groups) == len(part) and len(set(part.groups)) == len(found)


def test_a_generators_source_is_question_and_passage_in_one_text():
    rows = [{"id": "1", "passage": "Anna lives here.", "question": "Who?", "answers": {"text": ["Anna"], "start": [0]}}]
    task = ToyTask({"train": rows, "dev": rows, "test": rows}, "extract", "f1")
    corpus = toy_corpus(task, gives="next symbols")
    assert corpus.view.vocabulary.words
    assert list(corpus.fields) == ["text"]
    assert corpus.fields["text"](rows[0]) == ["Who", "?", "|", "Anna", "lives", "here", "."]
