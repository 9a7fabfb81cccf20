"""Every mini corpus: the same rows on every machine, no text in two splits, the columns of its task
type."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from harness.task import Row, fingerprint
from tasks.mini import (
    answers,
    articles,
    entities,
    genres,
    inference,
    mentions,
    pinyin,
    posts,
    reading,
    reviews,
    school,
    sentiment,
    speech,
    stories,
    tagging,
    topics,
    translation,
    wire,
)

SPLITS = ("train", "dev", "test")
SPEECH = {
    "digits": partial(speech.digits, labelled=False, unseen=False),
    "digits_unseen": partial(speech.digits, labelled=False, unseen=True),
    "letters": speech.letters,
}
CORPORA: dict[str, Callable[[str], Iterator[Row]]] = {
    "sentiment_fine": partial(sentiment.rows, fine=True),
    "sentiment_binary": partial(sentiment.rows, fine=False),
    "topics": topics.rows,
    "ner": partial(tagging.rows, column="ner"),
    "pos": partial(tagging.rows, column="pos"),
    "chunk": partial(tagging.rows, column="chunk"),
    "inference": inference.rows,
    "reading": partial(reading.rows, unanswerable=False),
    "reading_unanswerable": partial(reading.rows, unanswerable=True),
    "answers": answers.rows,
    "stories": stories.rows,
    "translation": translation.rows,
    "reviews": partial(reviews.rows, domain="film", stars=False),
    "reviews_stars": partial(reviews.rows, domain="product", stars=True),
    "posts": posts.rows,
    "genres": partial(genres.rows, matched=True),
    "genres_mismatched": partial(genres.rows, matched=False),
    "wire": wire.rows,
    "articles": articles.rows,
    "entities": entities.rows,
    "pinyin": pinyin.rows,
    "mentions": mentions.rows,
    "school": school.rows,
    **SPEECH,
}
CONTENT = ("text", "source", "first", "second", "passage", "facts", "question", "audio")
COLUMNS = {
    "sentiment_fine": {"id", "text", "label", "tree"},
    "sentiment_binary": {"id", "text", "label", "tree"},
    "topics": {"id", "text", "label"},
    "ner": {"id", "text", "tags"},
    "pos": {"id", "text", "tags"},
    "chunk": {"id", "text", "tags"},
    "inference": {"id", "first", "second", "label"},
    "reading": {"id", "passage", "question", "answers"},
    "reading_unanswerable": {"id", "passage", "question", "answers"},
    "answers": {"id", "first", "second", "label", "group"},
    "stories": {"id", "facts", "question", "answer", "skill"},
    "translation": {"id", "source", "target"},
    "reviews": {"id", "text", "label"},
    "reviews_stars": {"id", "text", "label"},
    "posts": {"id", "text", "label"},
    "wire": {"id", "text", "labels"},
    "articles": {"id", "text"},
    "entities": {"id", "text", "label"},
    "pinyin": {"id", "text", "label"},
    "mentions": {"id", "text", "label"},
    "school": {"id", "first", "second", "label", "group"},
    "genres": {"id", "first", "second", "label"},
    "genres_mismatched": {"id", "first", "second", "label"},
    "digits": {"id", "audio", "transcript", "speaker"},
    "digits_unseen": {"id", "audio", "transcript", "speaker"},
    "letters": {"id", "audio", "transcript", "speaker"},
}
# Fingerprint of all three splits. A change here changes every mini result: raise the task's version
# with it.
GOLDEN = {
    "school": "224385af0973dd3f6aac63d7c15cfef5af455e934948450e078828f0ee1019d7",
    "mentions": "6925c3d18852f625f1d900c5fd09005be49cb5ca60ffc97b6aa4efe493d12492",
    "articles": "9c4a5a9622433263de6fe3bf637c14319b778a2edce324b0f75ad719e7e80dfc",
    "pinyin": "ff7466ca4ad7e08deeef95cadbf846b6c12fba229b9581a6ecfa9fc318a8e100",
    "entities": "07d0b579ef8c1776d74c5bd85cf33193a33f493f07245092f244c717fb68c021",
    "wire": "08fc26c4f93c43c3f6b5672f7be44e02305ee24259bd7288a2c347b8e26bbd2d",
    "genres_mismatched": "b282a461d7cffd486e482b566a5b92fe7e9d71738f1f46077bcf978101a48ef9",
    "genres": "f14a6e49053047cf2d0c2d336f95cf92e35cf8f3de4455ded3bef40bc4ddfc34",
    "posts": "0b2fa69cbfecf49f7dcc67379540c6d78708b7d2c1c12d0cc585525df6cd557e",
    "reviews_stars": "e6ad8eedbe6636049be3847f660b4f48406b9e291d8e16aed330c2d4f2ff818f",
    "reviews": "84699d54accd8ee8ca40adbf3883e19f0724928c90fdc529516225caa3056332",
    "sentiment_fine": "20b69f927565f1c377778feb15b45b15076ab07cd4a824f5011937baed1f393e",
    "sentiment_binary": "9a0b9ee0e658ee375829aa4aa45e3b5aa824b668aef63db6be12896911417328",
    "topics": "11e086e0915ba2f3de5633a463ac6f1b6e1206aa339cae9273b2c8b46ba01ab4",
    "ner": "cc5f8a31d50d9e1005b1e1b860128930edc6b84de63a8c868bec6a0a4c201a72",
    "pos": "c108cf41ae965c69b230035f435a1dc1c1342bfa25d002a7fee6dad0689f51ea",
    "chunk": "05b40b0373273445e600a03bb3620b0ce17e16ea737047cb08fb3000e8449583",
    "inference": "fa02b6b71a6461209c7a18c6239e4d09905c1714689c25c60e0ec0b41da243d7",
    "reading": "1ac0b82651fd3abb33853ef9b7d26120c545d1f120d391465a79a988b6179612",
    "reading_unanswerable": "8aae524ab4ba5686ba7e1b2c53ce94e829be21cb3af220ee1e29d1cac9ff86ff",
    "answers": "94390db507689034abc304372db4e272b9ebdf4e3cb6a7b131da60a30a35b056",
    "stories": "8d4f47e19b42619c392895ca68ab8738c128a3c082fb4598ead0aa7ec91d6570",
    "digits": "00baceda12355166aede194a60ca11e51763fba68c61dbfa1249a0c99f3bc2d7",
    "digits_unseen": "8a608ba0167f0debf2daa82c399bb4c38b0311e3d14d4551fd6999f02e6316c8",
    "letters": "b75b80e12b8b11dcfa1c8a273dabe8249797556c6decada686b63e30d9b2f986",
    "translation": "59e44ca0bea42a53a6cf22714004f816e388d9b9ed1e1afdc9fe910112bec224",
}


@pytest.fixture(scope="module")
def splits_of() -> dict[str, dict[str, list[Row]]]:
    return {name: {split: list(rows(split)) for split in SPLITS} for name, rows in CORPORA.items()}


@pytest.mark.parametrize("name", CORPORA)
def test_rows_are_those_of_every_other_machine(name: str, splits_of: dict[str, dict[str, list[Row]]]) -> None:
    """Results from two machines could not be merged if their mini corpora differed."""
    assert fingerprint(row for split in SPLITS for row in splits_of[name][split]) == GOLDEN[name]


@pytest.mark.parametrize("name", CORPORA)
def test_second_call_gives_the_same_rows(name: str, splits_of: dict[str, dict[str, list[Row]]]) -> None:
    """A split must not depend on what was made before it, nor on shared random state."""
    assert fingerprint(CORPORA[name]("test")) == fingerprint(splits_of[name]["test"])


@pytest.mark.parametrize("name", CORPORA)
def test_no_text_is_in_two_splits(name: str, splits_of: dict[str, dict[str, list[Row]]]) -> None:
    """A test text that occurs in train would reward memory."""

    def texts(split: str) -> set[str]:
        return {
            repr([row[c] if c != "audio" else row[c]["bytes"] for c in CONTENT if c in row])
            for row in splits_of[name][split]
        }

    splits = [texts(split) for split in SPLITS]
    assert len(set.union(*splits)) == sum(map(len, splits))
    assert [len(s) for s in splits] == [len(splits_of[name][split]) for split in SPLITS]


@pytest.mark.parametrize("name", CORPORA)
def test_columns_ids_and_sizes(name: str, splits_of: dict[str, dict[str, list[Row]]]) -> None:
    """The task adapters hand the rows on as they are: a wrong column stops every architecture."""
    sizes = {"train": (200, 900), "dev": (60, 300), "test": (60, 300)}
    for split in SPLITS:
        rows = splits_of[name][split]
        assert all(set(row) == COLUMNS[name] for row in rows)
        assert len({row["id"] for row in rows}) == len(rows)
        assert all(row["id"].startswith(f"{split}-") for row in rows)
        assert sizes[split][0] <= len(rows) <= sizes[split][1]


def test_train_has_every_label(splits_of: dict[str, dict[str, list[Row]]]) -> None:
    """A label or tag that only test has cannot be learnt, and breaks the label table of a head."""
    for name, splits in splits_of.items():
        column = next((c for c in ("label", "labels", "tags", "answer") if c in splits["train"][0]), None)
        if column:
            train, rest = (
                {
                    label
                    for split in part
                    for row in splits[split]
                    for label in (row[column] if column in ("labels", "tags") else [row[column]])
                }
                for part in (("train",), ("dev", "test"))
            )
            assert rest <= train, name


@pytest.mark.parametrize("name", [name for name in CORPORA if name not in SPEECH])
def test_vocabulary_is_small_and_partly_held_out(name: str, splits_of: dict[str, dict[str, list[Row]]]) -> None:
    """Small models must learn a corpus in seconds, and still meet words they have not seen."""

    def words(split: str) -> set[str]:
        texts = (row[c] for row in splits_of[name][split] for c in CONTENT if c in row)
        return {
            word.strip(".,?").lower()
            for text in texts
            for word in (text if isinstance(text, str) else " ".join(text)).split()
        }

    assert 40 <= len(words("train")) <= 200
    assert 1 <= len(words("test") - words("train")) <= 60


def test_text_corpora_are_quick() -> None:
    """The mini tier is made anew in every process: it must not cost more than a short training."""
    start = time.process_time()
    for name, rows in CORPORA.items():
        if name not in SPEECH:
            list(rows("train"))
    assert time.process_time() - start < 5
