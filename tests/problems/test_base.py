"""The parts that problems share, against examples worked out by hand."""

from __future__ import annotations

import re
from collections import Counter

from harness import registry
from harness.problems import problem
from harness.problems.base import majority_and_random, shown_id, turned


def heads_of(entry):
    return registry.load(entry).heads.values()


def test_a_system_sees_the_inputs_of_a_row_and_nothing_else():
    """A file name may say what is spoken, or that a review is good (`pos/12.txt`), and ids are made
    of such names: a number from the id stands in the place of both."""
    row = {"id": "7_yes", "audio": {"bytes": b"RIFF", "path": "yes.wav"}, "label": "yes", "speaker": "s"}
    name = shown_id("7_yes")
    assert problem("classify").input_row(row) == {"id": name, "audio": {"bytes": b"RIFF", "path": name}}
    text = {"id": "pos/8", "text": "Fine .", "label": "good", "note": "n"}
    assert problem("classify").input_row(text) == {"id": shown_id("pos/8"), "text": "Fine ."}
    assert (row["id"], row["audio"]["path"]) == ("7_yes", "yes.wav"), "the row itself is as it was"


def test_a_shown_id_is_one_name_for_one_row_and_tells_nothing():
    """A graph of a corpus finds a text that it was given in training by this name again."""
    ids = [f"{label}/{number}.txt" for label in ("pos", "neg") for number in range(1000)]
    shown = [shown_id(id) for id in ids]
    assert len({*shown}) == len(ids)
    assert all(re.fullmatch("[0-9a-f]{16}", name) for name in shown)
    text = {"id": "pos/8", "text": "Fine .", "label": "good"}
    assert problem("classify").learnt_rows([text]) == [text | {"id": shown_id("pos/8")}]
    assert shown_id("pos/8") == "bc6c0c39af2785f0", "the same in every process, unlike hash()"


def test_a_units_words_are_counted_in_its_own_texts_and_a_recording_has_none():
    """Errors by length and by unknown words are told of texts; of a recording nobody knows them."""
    assert problem("classify").words({"text": "A Cat sat"}) == ["a", "cat", "sat"]
    assert problem("classify").words({"audio": {}}) is None
    assert problem("match").words({"first": "A", "second": "B c"}) == ["a", "b", "c"]
    assert problem("rank").words({"first": "Who ?", "second": "Ann"}) == ["who", "?"], "candidates share the question"


def test_rows_of_one_speaker_are_drawn_together_and_others_alone():
    """Intervals of scores would be too narrow otherwise, or all rows be one."""
    assert problem("classify").cluster({"id": "7", "speaker": "s3"}) == "s3"
    assert problem("classify").cluster({"id": "7", "speaker": ""}) == "7"
    assert problem("classify").cluster({"id": "7"}) == "7"
    assert problem("classify").cluster({"id": "7", "speaker": 0}) == "0", "a plugin may number its speakers"
    assert problem("match").cluster({"id": "7", "speaker": "s3"}) == "7", "a problem without groups"


def test_a_shortened_row_has_the_first_word_of_each_text():
    assert problem("classify").shortened({"id": "7", "text": "A cat sat", "label": "x"})["text"] == "A"
    tree = problem("classify").shortened({"id": "7", "text": "A cat", "tree": "(3 (2 A) (4 cat))", "label": "x"})
    assert tree == {"id": "7", "text": "A", "tree": "(2 A)", "label": "x"}
    short = problem("tag").shortened({"id": "7", "text": ["A", "cat"], "tags": ["O", "B"]})
    assert short == {"id": "7", "text": ["A"], "tags": ["O"]}


def test_a_wrong_answer_is_the_next_one_in_the_order_of_the_alphabet():
    """The contract's check would turn labels otherwise in each process."""
    labels = "fcadbegh"
    assert turned(labels) == dict(zip("abcdefgh", "bcdefgha", strict=True))


def test_random_answers_are_as_frequent_as_in_training():
    """A floor of equally frequent answers would be lower, and easy to beat."""
    drawn = majority_and_random("a" * 9 + "b", 1000)
    assert drawn["majority"] == ["a"] * 1000
    assert 870 < Counter(drawn["random"])["a"] < 930


def test_labels_are_smoothed_by_heads_of_classes_and_symbols_alone():
    """Others would take a setting that changes nothing, and record it."""
    found = {head: head.smooths for entry in registry.entries("problems").values() for head in heads_of(entry)}
    assert {head.__name__ for head, smooths in found.items() if smooths} == {
        *("Classify", "ClassifyTree", "Match", "MatchPair", "MatchJoined", "StoryHead", "Generate", "AsWritten")
    }


def test_encoders_learn_by_objectives_of_their_own_from_plain_text_and_recordings_alone():
    """An encoder without an objective would be refused elsewhere."""
    entries = registry.entries("problems").values()
    assert {each.id for each in entries if any(head.from_text for head in heads_of(each))} == {"text", "audio"}
