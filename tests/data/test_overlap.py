"""Test examples that stand in train, against the definition written out on tiny texts."""

from __future__ import annotations

import json
from typing import Any

import datasets
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.data import overlap as module
from harness.data.overlap import WORDS, overlap, overlap_of
from harness.problems import problem

LONG = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"


def texts(*values: Any) -> list[dict[str, Any]]:
    return [{"id": str(number), "text": value, "label": "x"} for number, value in enumerate(values)]


def pairs(*values: tuple[str, str]) -> list[dict[str, Any]]:
    return [{"id": str(n), "first": a, "second": b, "label": "x"} for n, (a, b) in enumerate(values)]


def counts(exact: int, near: int) -> dict[str, int]:
    return {"exact": exact, "near": near, "words": WORDS}


def test_thirteen_words_in_a_row_are_near_and_twelve_are_not():
    words = LONG.split()
    train = texts(LONG)
    assert overlap(problem("classify"), train, texts(LONG)) == counts(1, 1)
    assert overlap(problem("classify"), train, texts(" ".join(["a", "b", *words[1:14], "c"]))) == counts(0, 1)
    assert overlap(problem("classify"), train, texts(" ".join(["a", "b", *words[1:13], "c"]))) == counts(0, 0)
    assert overlap(problem("classify"), train, texts(" ".join([*words[:6], "x", *words[6:]]))) == counts(0, 0)


def test_a_shorter_text_is_near_as_a_whole_alone():
    """Half of SST-2 would be near any review if three common words were enough."""
    train = texts("A fine film.", "bad")
    assert overlap(problem("classify"), train, texts("a FINE film .", "a fine film", "bad")) == counts(2, 2)


def test_case_is_ignored_and_given_words_are_taken_as_they_are():
    train = texts(["U.S.", "Stocks", "fell"])
    other = ["U", ".", "S", ".", "stocks", "fell"]
    assert overlap(problem("tag"), train, texts(["u.s.", "stocks", "FELL"], other)) == counts(1, 1)


def test_each_example_counts_however_often_train_has_it():
    train = texts("same", "same", "same", "other")
    assert overlap(problem("classify"), train, texts("same", "same", "new")) == counts(2, 2)


def test_both_texts_of_a_pair_must_be_those_of_one_training_example():
    """SNLI's captions and its short hypotheses each occur often; the pair is what a model could
    know by heart."""
    train = pairs((LONG, "yes"), ("short", LONG + " end"))
    inside = " ".join(LONG.split()[1:])
    test = pairs((LONG, "yes"), (inside, "Yes"), (LONG, "no"), (LONG, LONG), ("short", LONG), ("yes", LONG))
    assert overlap(problem("match"), train, test) == counts(1, 3)


def test_a_story_is_read_with_its_question():
    train = [{"id": "a", "facts": ["Mary went home.", "John left."], "question": "Where is Mary?", "answer": "home"}]
    again, other = train[0] | {"id": "b", "answer": "x"}, train[0] | {"id": "c", "facts": ["John left."]}
    assert overlap(problem("answer"), train, [again, other]) == counts(1, 1)


def test_answers_and_ids_are_no_part_of_an_example():
    """Another label does not make an example new."""
    train = texts("a fine film")
    assert overlap(problem("classify"), train, [{"id": "z", "text": "a fine film", "label": "y"}]) == counts(1, 1)


def test_recordings_are_compared_by_their_bytes_whatever_their_names():
    def row(path: str, data: bytes) -> dict[str, Any]:
        return {"id": path, "audio": {"bytes": data, "path": path}, "transcript": "one"}

    train = [row("a.wav", b"1"), row("b.wav", b"2")]
    assert overlap(problem("transcribe"), train, [row("c.wav", b"2"), row("a.wav", b"3")]) == {"exact": 1}


def test_portions_and_tables_give_what_lists_give(monkeypatch):
    train = texts(*(f"text number {i} of many" for i in range(25)), LONG)
    test = texts("text number 3 of many", "text number 24 of many", LONG + " more", "new")
    expected = counts(2, 3)
    assert overlap(problem("classify"), train, test) == expected
    monkeypatch.setattr(module, "AT_ONCE", 4)
    tables = [datasets.Dataset.from_list(rows) for rows in (train, test)]
    assert overlap(problem("classify"), train, test) == overlap(problem("classify"), *tables) == expected


# The definition.


def _sequences(words: list[str], length: int) -> list[str]:
    words = [word.lower() for word in words]
    return ["_".join(words[i : i + length]) for i in range(max(1, len(words) - length + 1))]


def _by_definition(columns: list[str], train, test, length: int) -> tuple[int, int]:
    exact = near = 0
    for row in test:
        same = [all([w.lower() for w in row[c]] == [w.lower() for w in other[c]] for c in columns) for other in train]
        close = [
            all(any(s in _sequences(other[c], length) for s in _sequences(row[c], length)) for c in columns)
            for other in train
        ]
        exact, near = exact + any(same), near + any(close)
    return exact, near


words = st.lists(st.sampled_from(["a", "B", "b", "c"]), max_size=7)


@pytest.mark.parametrize(("type", "columns"), [("classify", ["text"]), ("match", ["first", "second"])])
@settings(max_examples=150)
@given(data=st.data())
def test_equal_to_the_definition(type, columns, data):
    """Sequences of three words, so that tiny texts have some in common."""
    rows = st.lists(st.fixed_dictionaries(dict.fromkeys(columns, words)), min_size=1, max_size=6)
    train, test = data.draw(rows), data.draw(rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "WORDS", 3)
        patch.setattr(module, "AT_ONCE", 2)
        module._text.cache_clear()
        found = overlap(problem(type), train, test)
    module._text.cache_clear()
    exact, near = _by_definition(columns, train, test, 3)
    assert found == {"exact": exact, "near": near, "words": 3}


# The cache.


def test_counts_are_kept_by_the_data(tmp_path, monkeypatch):
    """Ninety cells read the same data; one of them counts."""
    train, test = texts("a"), texts("a", "b")
    prints = {"train": "1" * 64, "test": "2" * 64}
    known = overlap_of(problem("classify"), train, test, prints, tmp_path / "overlap")
    assert known == counts(1, 1) == overlap_of(problem("classify"), train, test, prints, None)
    monkeypatch.setattr(module, "overlap", lambda *_: counts(7, 7))
    assert overlap_of(problem("classify"), train, test, prints, tmp_path / "overlap") == counts(1, 1)
    for other in (prints | {"train": "3" * 64}, prints | {"test": "3" * 64}):
        assert overlap_of(problem("classify"), train, test, other, tmp_path / "overlap") == counts(7, 7)
    assert overlap_of(problem("tag"), train, test, prints, tmp_path / "overlap") == counts(7, 7), "other columns"


@pytest.mark.parametrize("damaged", ["", "{", "[]", '{"near": 1}', '{"exact": "1"}', '{"exact": 1, "more": 2}'])
def test_a_damaged_file_is_counted_again(tmp_path, damaged):
    prints = {"train": "1" * 64, "test": "2" * 64}
    overlap_of(problem("classify"), texts("a"), texts("a"), prints, tmp_path)
    [file] = tmp_path.iterdir()
    file.write_text(damaged)
    assert overlap_of(problem("classify"), texts("a"), texts("a"), prints, tmp_path) == counts(1, 1)
    assert json.loads(file.read_text()) == counts(1, 1)
