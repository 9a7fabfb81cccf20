"""Candidate answers made of SQuAD's passages."""

from __future__ import annotations

import json

import pytest

from tasks.squad_sentences import candidates, sentences

PASSAGE = 'He said "Go." Then (at 5 p.m. he) left. Why? 3 men asked.'
HEADER = "QuestionID\tQuestion\tDocumentID\tDocumentTitle\tSentenceID\tSentence\tLabel\n"
LONG = "one two three four five six seven eight nine ten eleven twelve thirteen"


@pytest.mark.parametrize(
    ("passage", "expected"),
    [
        (PASSAGE, ['He said "Go."', "Then (at 5 p.m. he) left.", "Why?", "3 men asked."]),
        ("it was . who knows ? he said", ["it was .", "who knows ?", "he said"]),
        ("No end", ["No end"]),
        ("One. ", ["One. "]),
    ],
)
def test_a_passage_is_cut_behind_each_sentence(passage, expected):
    """Also one whose tokens stand apart, in lower case; a sentence knows its place."""
    found = list(sentences(passage))
    assert [text for _, text in found] == expected
    assert all(passage[start : start + len(text)] == text for start, text in found)


def test_right_is_a_sentence_that_holds_an_answer_whole():
    """One that holds a part of it, or the same word elsewhere, is none."""
    answers = {"text": ["left", '" Then'], "start": [PASSAGE.index("left"), PASSAGE.index('" Then')]}
    rows = list(candidates({"id": "q", "question": "what?", "passage": PASSAGE, "answers": answers}))
    assert [row["label"] for row in rows] == ["0", "1", "0", "0"]
    assert rows[1] == {
        "id": "q-1",
        "first": "what?",
        "second": "Then (at 5 p.m. he) left.",
        "label": "1",
        "group": "q",
    }


def squad(*paragraphs: tuple[str, str, str]) -> str:
    """Paragraphs with a question each, of an id and an answer."""
    made = [
        {"context": c, "qas": [{"id": i, "question": i, "answers": [{"text": a, "answer_start": c.index(a)}]}]}
        for i, c, a in paragraphs
    ]
    return json.dumps({"data": [{"title": "A", "paragraphs": made}]})


def test_train_has_questions_with_a_right_sentence_and_none_of_wikiqas_test(write, task, tmp_path):
    """A question without one teaches that all are wrong; one of the test teaches the test."""
    paragraphs = [
        ("kept", "A cat sat. A dog ran.", "cat"),
        ("across", "A cat sat. A dog ran.  It is late.", "sat. A dog"),
        ("known", f"A cat sat. {LONG.capitalize()}.", "seven"),
    ]
    write("squad/train-v1.1.json", squad(*paragraphs))
    write("squad/dev-v1.1.json", squad(*paragraphs))
    write("wikiqa/WikiQA-dev.tsv", HEADER + "Q1\twhat\tD1\tT\tD1-0\tA bird sang.\t1\n")
    write("wikiqa/WikiQA-test.tsv", HEADER + f"Q2\twhat\tD2\tT\tD2-0\t{LONG}\t1\n")
    rows = task("squad_sentences").load("train", "local", tmp_path).to_list()
    assert [(row["group"], row["second"], row["label"]) for row in rows] == [
        ("kept", "A cat sat.", "1"),
        ("kept", "A dog ran.", "0"),
    ]
    test = task("squad_sentences").load("test", "local", tmp_path).to_list()
    assert {row["group"] for row in test} == {"kept", "across", "known"}
