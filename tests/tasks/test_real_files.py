"""The adapters on the real corpora, where the data folder is: the counts its README verified."""

from __future__ import annotations

import io
import wave
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from harness.mentions import pronoun_of

Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def read(corpora, task) -> Callable[[str], dict[str, Rows]]:
    """All splits of a task, parsed from the files."""
    return lambda id: {split: list(task(id).local(corpora, split)) for split in ("train", "dev", "test")}


def sizes(parts: dict[str, Rows]) -> dict[str, int]:
    return {split: len(rows) for split, rows in parts.items()}


def test_sst(read, task, corpora):
    """Trees with and without neutral roots; every node is labelled, and the words are the
    leaves."""
    five = read("sst5")
    assert sizes(five) == dict(task("sst5").entry.sizes)
    assert [sum(row["tree"].count("(") for row in five[split]) for split in five] == [318582, 41447, 82600]
    assert sum("\u00a0" in word for row in five["train"] for word in row["text"]) == 3
    assert {split: sum(row["label"] != "neutral" for row in rows) for split, rows in five.items()} == dict(
        task("sst2").entry.sizes
    )
    assert Counter(row["label"] for row in task("sst2").load("dev", "local", corpora)) == {
        "positive": 444,
        "negative": 428,
    }


def test_ag_news(read):
    """59,621 training items in all, 5 % of them dev; the test set is balanced."""
    parts = read("ag_news")
    assert sizes(parts) == {"train": 56640, "dev": 2981, "test": 7600}
    assert set(Counter(row["label"] for row in parts["test"]).values()) == {1900}
    assert Counter(row["label"] for split in ("train", "dev") for row in parts[split]) == {
        "World": 11432 + 3174,
        "Sports": 11456 + 3278,
        "Business": 11664 + 3061,
        "Sci/Tech": 11581 + 3975,
    }


def test_ohsumed(read, task):
    """One abstract a file; the rarest of 23 categories has 10 test texts."""
    parts = read("ohsumed")
    assert sizes(parts) == dict(task("ohsumed").entry.sizes)
    counts = Counter(row["label"] for row in parts["test"])
    assert len(counts) == 23 and counts.most_common()[0] == ("C04", 600) and counts.most_common()[-1] == ("C22", 10)
    assert min(len(row["text"]) for rows in parts.values() for row in rows) > 150


@pytest.mark.minutes
def test_imdb(read, task):
    """As many reviews of both classes in train and test; 96 training reviews are copies of others,
    and copies are on one side of dev."""
    parts = read("imdb")
    assert sizes(parts) == dict(task("imdb").entry.sizes)
    assert Counter(row["label"] for row in parts["test"]) == {"negative": 12500, "positive": 12500}
    assert Counter(row["label"] for split in ("train", "dev") for row in parts[split]) == {
        "negative": 12500,
        "positive": 12500,
    }
    assert {row["text"] for row in parts["train"]}.isdisjoint(row["text"] for row in parts["dev"])
    assert not any("<br />" in row["text"] for row in parts["test"])


@pytest.mark.minutes
def test_newsgroups20(read, task):
    """Twenty groups, the rarest with 251 test messages; 73 messages are not in ASCII."""
    parts = read("newsgroups20")
    assert sizes(parts) == dict(task("newsgroups20").entry.sizes)
    counts = Counter(row["label"] for row in parts["test"])
    assert len(counts) == 20 and counts.most_common()[-1] == ("talk.religion.misc", 251)
    assert all(row["text"] for rows in parts.values() for row in rows)
    assert sum(not row["text"].isascii() for rows in parts.values() for row in rows) == 73


@pytest.mark.minutes
def test_reuters21578(read, task):
    """The ninety topics of ModApte with the sizes of its two commonest; only one has no training
    item but in dev."""
    parts = read("reuters21578")
    assert sizes(parts) == dict(task("reuters21578").entry.sizes)
    counts = {split: Counter(label for row in rows for label in row["labels"]) for split, rows in parts.items()}
    assert len(counts["test"]) == len(counts["train"] | counts["dev"]) == 90
    assert counts["test"].most_common(2) == [("earn", 1087), ("acq", 719)]
    assert len(counts["train"]) == 89
    assert not any("\x02" in row["text"] or "</" in row["text"] for rows in parts.values() for row in rows)


def test_wikitext2(read, task):
    """Articles, and the tokens that published perplexities are of: one end mark a line."""
    parts = read("wikitext2")
    assert sizes(parts) == dict(task("wikitext2").entry.sizes)
    tokens = {split: [word for row in rows for word in row["text"]] for split, rows in parts.items()}
    assert {split: len(words) for split, words in tokens.items()} == {"train": 2088628, "dev": 217646, "test": 245569}
    assert len({*tokens["train"]}) == 33278 and {*tokens["dev"], *tokens["test"]} <= {*tokens["train"]}
    assert tokens["train"].count("\n") == 36718


def test_conll2000(read, task):
    """211,727 training tokens of 8,936 sentences, of which 893 are dev."""
    parts = read("conll2000_chunk")
    assert sizes(parts) == dict(task("conll2000_chunk").entry.sizes)
    words = {split: sum(len(row["text"]) for row in rows) for split, rows in parts.items()}
    assert (words["train"] + words["dev"], words["test"]) == (211727, 47377)


def test_the_sample_of_multinli(corpora, task):
    """20,000 pairs in all, a fortieth of them dev; the labels are as common as each other. The test
    is a sample of the official dev set: its pairs come in threes, as those of train do not."""
    parts = {split: list(task("mnli_matched").local(corpora, split)) for split in ("train", "dev", "test")}
    assert sizes(parts) == {"train": 19500, "dev": 500, "test": 5000}
    premises = {split: len({row["first"] for row in rows}) / len(rows) for split, rows in parts.items()}
    assert premises["train"] > 0.9 and premises["test"] < 0.6
    assert Counter(row["label"] for split in ("train", "dev") for row in parts[split]) == {
        "entailment": 6709,
        "neutral": 6646,
        "contradiction": 6645,
    }


def test_babi(read, task):
    """1,000 training and 1,000 test questions of each of the twenty skills; dev is a tenth of
    train."""
    parts = read("babi")
    assert sizes(parts) == dict(task("babi").entry.sizes)
    for rows in (parts["train"] + parts["dev"], parts["test"]):
        assert Counter(row["skill"] for row in rows) == {f"qa{n}": 1000 for n in range(1, 21)}
    assert max(len(row["facts"]) for row in parts["train"]) > 100


def test_conll2003(read, task, corpora):
    """Sentences, tokens and entities; entities are counted on the BIOES tags."""
    parts = read("conll2003_ner")
    assert sizes(parts) == dict(task("conll2003_ner").entry.sizes)
    assert [sum(len(row["text"]) for row in rows) for rows in parts.values()] == [203621, 51362, 46435]
    assert [sum(tag[0] in "BS" for row in rows for tag in row["tags"]) for rows in parts.values()] == [
        23499,
        5942,
        5648,
    ]
    assert [sum(tag[0] in "ES" for row in rows for tag in row["tags"]) for rows in parts.values()] == [
        23499,
        5942,
        5648,
    ]
    for id in ("conll2003_pos", "conll2003_chunk"):
        rows = list(task(id).local(corpora, "test"))
        assert [row["text"] for row in rows] == [row["text"] for row in parts["test"]]


def test_snli(read):
    """Only pairs with a gold label; the partial training set's classes."""
    parts = read("snli")
    assert sizes(parts) == {"train": 23530, "dev": 9842, "test": 9824}
    assert Counter(row["label"] for row in parts["train"]) == {
        "contradiction": 7947,
        "entailment": 7847,
        "neutral": 7736,
    }


def test_multi30k(read, task):
    """As many captions as the paper says; the first one's translation beside it."""
    parts = read("multi30k")
    assert sizes(parts) == dict(task("multi30k").entry.sizes)
    assert parts["train"][0] == {
        "id": "train-1",
        "source": "Two young, White males are outside near many bushes.",
        "target": "Zwei junge weiße Männer sind im Freien in der Nähe vieler Büsche.",
    }


def test_squad1(read):
    """4,000 + 5,754 - 333 training questions, a tenth of them dev; no passage in two splits."""
    parts = read("squad1")
    assert sizes(parts)["test"] == 10570 and sum(len(row["answers"]["text"]) for row in parts["test"]) == 34726
    assert len(parts["train"]) + len(parts["dev"]) == 4000 + 5754 - 333
    assert 0.09 < len(parts["dev"]) / 9421 <= 0.1
    passages = [{row["passage"] for row in rows} for rows in parts.values()]
    assert not passages[0] & passages[1] and not (passages[0] | passages[1]) & passages[2]


def test_squad2(read):
    """The half's 6,078 questions, 3,168 without an answer, in 10, 2 and 4 articles."""
    parts = read("squad2")
    rows = [row for part in parts.values() for row in part]
    assert len(rows) == len({row["id"] for row in rows}) == 6078
    assert sum(not row["answers"]["text"] for row in rows) == 3168
    assert sizes(parts) == {"train": 3841, "dev": 721, "test": 1516}


def test_wikiqa(read, task):
    """Training questions that have an answer; all pairs of dev and test."""
    parts = read("wikiqa")
    assert sizes(parts) == dict(task("wikiqa").entry.sizes)
    assert [len({row["group"] for row in rows}) for rows in parts.values()] == [873, 296, 633]
    assert [sum(row["label"] == "1" for row in rows) for rows in parts.values()] == [1040, 140, 293]
    assert len({row["group"] for row in parts["test"] if row["label"] == "1"}) == 243


def test_gap(read, task):
    """As many texts as the authors count; in one of ten neither name is meant, in none both are."""
    parts = read("gap")
    assert sizes(parts) == dict(task("gap").entry.sizes)
    assert Counter(row["label"] for row in parts["train"]) == {"A": 874, "B": 925, "neither": 201}
    assert Counter(row["label"] for row in parts["test"]) == {"A": 918, "B": 855, "neither": 227}
    pronouns = Counter(pronoun_of(row["text"]).lower() for row in parts["test"])
    assert pronouns == {"her": 603, "his": 556, "she": 396, "he": 348, "him": 96, "hers": 1}


def test_ai2_questions(read, task):
    """725 - 13 training questions, 107 of them dev, and the 149 of the official dev; one of three
    or four choices is right."""
    parts = read("ai2_questions")
    assert sizes(parts) == dict(task("ai2_questions").entry.sizes)
    assert [len({row["group"] for row in rows}) for rows in parts.values()] == [612, 107, 149]
    for rows in parts.values():
        assert {*Counter(row["group"] for row in rows).values()} <= {3, 4}
        assert {*Counter(row["group"] for row in rows if row["label"] == "1").values()} == {1}
    stems = [{row["first"] for row in rows} for rows in parts.values()]
    assert not stems[0] & stems[1] and not (stems[0] | stems[1]) & stems[2]


def seconds(rows: Rows) -> float:
    total = 0.0
    for row in rows:
        with wave.open(io.BytesIO(row["audio"]["bytes"])) as file:
            assert file.getsampwidth() == 2 and file.getnchannels() == 1
            total += file.getnframes() / file.getframerate()
    return total


@pytest.mark.parametrize("id", ["fsdd", "fsdd_unseen"])
def test_fsdd(id, read, task):
    """3,000 recordings of 21.9 minutes, each in one split."""
    parts = read(id)
    rows = [row for part in parts.values() for row in part]
    assert sizes(parts) == dict(task(id).entry.sizes) and len({row["id"] for row in rows}) == 3000
    assert seconds(rows) / 60 == pytest.approx(21.9, abs=0.05)
    assert all(len(set(Counter(row["transcript"] for row in part).values())) == 1 for part in parts.values())


def test_an4(read, task):
    """948 + 130 utterances of 48.4 minutes, 99 words in training, no speaker in two splits."""
    parts = read("an4")
    assert sizes(parts) == dict(task("an4").entry.sizes) and len(parts["train"]) + len(parts["dev"]) == 948
    assert seconds([row for part in parts.values() for row in part]) / 60 == pytest.approx(48.4, abs=0.05)
    assert len({word for split in ("train", "dev") for row in parts[split] for word in row["transcript"].split()}) == 99
    speakers = [{row["speaker"] for row in rows} for rows in parts.values()]
    assert sum(map(len, speakers)) == len(set.union(*speakers)) == 84


@pytest.mark.parametrize("id", ["conll2003_ner", "squad2", "wikiqa", "fsdd"])
def test_a_split_becomes_a_data_set(id, task, corpora):
    """Lists, nested answers and audio bytes survive the change to Arrow."""
    data = task(id).load("dev", "local", corpora)
    assert data.to_list() == list(task(id).local(corpora, "dev"))
