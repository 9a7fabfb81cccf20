"""Every mini corpus: the same rows on every machine, no text in two splits, the columns of its task type."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from harness.task import Row, fingerprint
from tasks.mini import answers, inference, reading, sentiment, speech, tagging, topics

SPLITS = ("train", "dev", "test")
SPEECH = {
    "digits": partial(speech.digits, labelled=False, unseen=False),
    "digits_labelled": partial(speech.digits, labelled=True, unseen=False),
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
    **SPEECH,
}
CONTENT = ("text", "first", "second", "passage", "question", "audio")
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
    "digits": {"id", "audio", "transcript", "speaker"},
    "digits_labelled": {"id", "audio", "label", "speaker"},
    "digits_unseen": {"id", "audio", "transcript", "speaker"},
    "letters": {"id", "audio", "transcript", "speaker"},
}
# Fingerprint of all three splits. A change here changes every mini result: raise the task's version with it.
GOLDEN = {}


@pytest.fixture(scope="module")
def corpora() -> dict[str, dict[str, list[Row]]]:
    return {name: {split: list(rows(split)) for split in SPLITS} for name, rows in CORPORA.items()}


@pytest.mark.parametrize("name", CORPORA)
def test_rows_are_those_of_every_other_machine(name: str, corpora: dict[str, dict[str, list[Row]]]) -> None:
    """Results from two machines could not be merged if their mini corpora differed."""
    assert fingerprint(row for split in SPLITS for row in corpora[name][split]) == GOLDEN[name]


@pytest.mark.parametrize("name", CORPORA)
def test_second_call_gives_the_same_rows(name: str, corpora: dict[str, dict[str, list[Row]]]) -> None:
    """A split must not depend on what was made before it, nor on shared random state."""
    assert fingerprint(CORPORA[name]("test")) == fingerprint(corpora[name]["test"])


@pytest.mark.parametrize("name", CORPORA)
def test_no_text_is_in_two_splits(name: str, corpora: dict[str, dict[str, list[Row]]]) -> None:
    """A test text that occurs in train would reward memory."""

    def texts(split: str) -> set[str]:
        return {repr([row[c] if c != "audio" else row[c]["bytes"] for c in CONTENT if c in row]) for row in corpora[name][split]}

    splits = [texts(split) for split in SPLITS]
    assert len(set.union(*splits)) == sum(map(len, splits))
    if name != "letters":
        assert [len(s) for s in splits] == [len(corpora[name][split]) for split in SPLITS]


@pytest.mark.parametrize("name", CORPORA)
def test_columns_ids_and_sizes(name: str, corpora: dict[str, dict[str, list[Row]]]) -> None:
    """The task adapters hand the rows on as they are: a wrong column stops every architecture."""
    sizes = {"train": (200, 900), "dev": (60, 300), "test": (60, 300)}
    for split in SPLITS:
        rows = corpora[name][split]
        assert all(set(row) == COLUMNS[name] for row in rows)
        assert len({row["id"] for row in rows}) == len(rows)
        assert all(row["id"].startswith(f"{split}-") for row in rows)
        assert sizes[split][0] <= len(rows) <= sizes[split][1]


def test_train_has_every_label(corpora: dict[str, dict[str, list[Row]]]) -> None:
    """A label or tag that only test has cannot be learnt, and breaks the label table of a head."""
    for name, splits in corpora.items():
        column = next((c for c in ("label", "tags") if c in splits["train"][0]), None)
        if column:
            train, rest = (
                {label for split in part for row in splits[split] for label in ([row[column]] if column == "label" else row[column])}
                for part in (("train",), ("dev", "test"))
            )
            assert rest <= train, name


@pytest.mark.parametrize("name", [name for name in CORPORA if name not in SPEECH])
def test_vocabulary_is_small_and_partly_held_out(name: str, corpora: dict[str, dict[str, list[Row]]]) -> None:
    """Small models must learn a corpus in seconds, and still meet words they have not seen."""

    def words(split: str) -> set[str]:
        texts = (row[c] for row in corpora[name][split] for c in CONTENT if c in row)
        return {word.strip(".,?").lower() for text in texts for word in (text.split() if isinstance(text, str) else text)}

    assert 40 <= len(words("train")) <= 200
    assert 1 <= len(words("test") - words("train")) <= 60


def test_text_corpora_are_quick() -> None:
    """The mini tier is made anew in every process: it must not cost more than a short training."""
    start = time.process_time()
    for name, rows in CORPORA.items():
        if name not in SPEECH:
            list(rows("train"))
    assert time.process_time() - start < 5
