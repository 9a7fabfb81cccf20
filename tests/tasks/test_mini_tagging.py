"""The tagging corpus: tags that a word far away decides."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable

import pytest
from seqeval.metrics import f1_score
from seqeval.scheme import IOBES
from sklearn.feature_extraction import DictVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from harness.task import Row
from tasks.mini import tagging
from tasks.mini.tagging import CUES, CUT, HELD_OUT_NAMES, HOSTS, NAMES, SHEEP, TALKS, bioes

Features = Callable[[list[str], int], dict[str, int]]
OPENERS = ("After", "Before", "Until", "Since")
DOUBTFUL = {
    "ner": {*NAMES},
    "pos": {*SHEEP, *CUT, *TALKS},
    "chunk": {*TALKS, *OPENERS},
}

CLASSES = {"name": NAMES + HELD_OUT_NAMES, "sheep": SHEEP, "cut": CUT, "talks": TALKS, "host": HOSTS, "opener": OPENERS}


def window(words: list[str], n: int) -> dict[str, int]:
    """The word and two on each side."""
    padded = ["<", "<", *words, ">", ">"]
    return {f"{k} {padded[n + 2 + k]}": 1 for k in range(-2, 3)}


def far(words: list[str], n: int) -> dict[str, int]:
    """The window; and with the class of the word, the words up to the next comma, the sentence's
    first word and its cue noun."""
    after = words[n + 1 :]
    clause = after[: after.index(",")] if "," in after else after
    cue = words[words.index("that") - 1] if "that" in words else words[-2]
    word = next((name for name, members in CLASSES.items() if words[n] in members), words[n])
    seen = [*(f"later {w}" for w in clause), f"cue {cue}", f"first {words[0]}"]
    return window(words, n) | {f"{word} {what}": 1 for what in seen}


def predict(train: list[Row], test: list[Row], features: Features) -> list[list[str]]:
    model = make_pipeline(DictVectorizer(), LogisticRegression(C=10, max_iter=200, tol=1e-3))
    model.fit(
        [features(r["text"], n) for r in train for n in range(len(r["text"]))], [t for r in train for t in r["tags"]]
    )
    flat = iter(model.predict([features(r["text"], n) for r in test for n in range(len(r["text"]))]))
    return [[next(flat) for _ in r["text"]] for r in test]


def most_frequent(train: list[Row], test: list[Row]) -> list[list[str]]:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for row in train:
        for word, tag in zip(row["text"], row["tags"], strict=True):
            counts[word][tag] += 1
    overall = sum(counts.values(), Counter()).most_common(1)[0][0]
    return [[counts[w].most_common(1)[0][0] if w in counts else overall for w in row["text"]] for row in test]


def score(column: str, rows: list[Row], tags: list[list[str]]) -> float:
    """Span F1, or accuracy for parts of speech."""
    if column != "pos":
        return f1_score([row["tags"] for row in rows], tags, mode="strict", scheme=IOBES)
    pairs = [pair for row, found in zip(rows, tags, strict=True) for pair in zip(row["tags"], found, strict=True)]
    return sum(a == b for a, b in pairs) / len(pairs)


def doubtful_accuracy(column: str, rows: list[Row], tags: list[list[str]]) -> float:
    """Accuracy on the words whose tag depends on the sentence."""
    hits = [
        gold == guess
        for row, found in zip(rows, tags, strict=True)
        for word, gold, guess in zip(row["text"], row["tags"], found, strict=True)
        if word in DOUBTFUL[column]
    ]
    return sum(hits) / len(hits)


# column: score and accuracy on doubtful words that the floors stay below (tag per word, window),
# and what a far reader reaches
LIMITS = {
    "ner": ((0.30, 0.30), (0.50, 0.50), (0.90, 0.90)),
    "pos": ((0.95, 0.60), (0.985, 0.65), (0.99, 0.90)),
    "chunk": ((0.90, 0.60), (0.97, 0.65), (0.98, 0.75)),
}


@pytest.mark.parametrize("column", LIMITS)
def test_words_fail_windows_fail_partly_and_a_far_reader_succeeds(column: str) -> None:
    train, test = list(tagging.rows("train", column)), list(tagging.rows("test", column))
    found = (most_frequent(train, test), predict(train, test, window), predict(train, test, far))
    by_word, by_window, by_far = [(score(column, test, tags), doubtful_accuracy(column, test, tags)) for tags in found]
    assert all(value < limit for value, limit in zip(by_word, LIMITS[column][0], strict=True))
    assert all(value < limit for value, limit in zip(by_window, LIMITS[column][1], strict=True))
    assert all(value > limit for value, limit in zip(by_far, LIMITS[column][2], strict=True))
    assert by_window[0] > by_word[0]


def test_the_columns_are_of_the_same_sentences_with_a_tag_each() -> None:
    columns = [list(tagging.rows("dev", column)) for column in ("ner", "pos", "chunk")]
    for ner, pos, chunk in zip(*columns, strict=True):
        assert ner["text"] == pos["text"] == chunk["text"]
        assert len(ner["text"]) == len(ner["tags"]) == len(pos["tags"]) == len(chunk["tags"])


@pytest.mark.parametrize("column", ["ner", "chunk"])
def test_spans_are_whole(column: str) -> None:
    """A B without its E, or types that change inside a span, would be scored as another span than
    was meant."""
    for row in tagging.rows("train", column):
        for before, tag in zip(["O", *row["tags"]], [*row["tags"], "O"], strict=True):
            inside = tag[0] in "IE"
            assert inside == (before[0] in "BI")
            assert not inside or before[2:] == tag[2:]


def test_span_tags_by_hand() -> None:
    assert bioes(["PER", "PER", "O"]) == ["B-PER", "E-PER", "O"]
    assert bioes(["LOC"]) == ["S-LOC"]
    assert bioes(["NP"] * 4) == ["B-NP", "I-NP", "I-NP", "E-NP"]
    assert bioes(["O", "ORG", "PER"]) == ["O", "S-ORG", "S-PER"]


def test_names_take_the_type_of_the_far_noun() -> None:
    """The rule of the corpus, applied to the words alone: the noun before "that", or the last
    one."""
    kinds = {noun: kind for kind, nouns in CUES.items() for noun in nouns}
    seen = set()
    for row in tagging.rows("test", "ner"):
        words = row["text"]
        if "called" in words or words[-4:-2] == ["is", "a"]:
            cue = words[words.index("that") - 1] if "that" in words else words[-2]
            found = {tag[2:] for tag in row["tags"] if tag != "O"}
            assert found == {kinds[cue]}
            seen |= found
    assert seen == set(CUES)
