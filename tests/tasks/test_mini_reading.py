"""The reading corpus: exact offsets, answers to be copied, and questions that look answerable."""

from __future__ import annotations

import re

import pytest

from harness.task import Row
from tasks.mini import reading


@pytest.mark.parametrize("unanswerable", [True, False])
@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_offsets_are_exact_and_cut_no_word(split: str, unanswerable: bool) -> None:
    empty = 0
    rows = list(reading.rows(split, unanswerable))
    for row in rows:
        passage, answers = row["passage"], row["answers"]
        assert len(answers["text"]) == len(answers["start"]) <= 1
        assert not set("[]") & set(passage)
        empty += not answers["text"]
        for text, start in zip(answers["text"], answers["start"], strict=True):
            assert passage[start : start + len(text)] == text
            assert re.fullmatch(r"\w+", text)
            assert not re.search(r"\w$", passage[:start]) and not re.match(r"\w", passage[start + len(text) :])
    assert 0.27 < empty / len(rows) < 0.40 if unanswerable else empty == 0


def told(passage: str) -> set[tuple[str, str, str]]:
    """(person, relation, value) of every fact, read from the sentences by their patterns."""
    predicate = r"(?:lives in (?P<home{0}>\w+)|works as a (?P<job{0}>\w+)|has (?P<count{0}>\d+) (?P<thing{0}>\w+))"
    one, two = predicate.format(1), predicate.format(2)
    facts = set()
    for sentence in passage.split(". "):
        sentence = sentence.rstrip(".")
        if m := re.fullmatch(r"(\w+) is the home of (\w+)", sentence):
            facts.add((m[2], "home", m[1]))
        elif m := re.fullmatch(r"The (\w+) is called (\w+)", sentence):
            facts.add((m[2], "job", m[1]))
        elif m := re.fullmatch(r"There are (\d+) (\w+) in the house of (\w+)", sentence):
            facts.add((m[3], m[2], m[1]))
        else:
            m = (
                re.fullmatch(rf"Unlike (?P<p1>\w+), who {one}, (?P<p2>\w+) {two}", sentence)
                or re.fullmatch(rf"(?P<p1>\w+) {one}, while (?P<p2>\w+) {two}", sentence)
                or re.fullmatch(rf"(?P<p1>\w+) {one}", sentence)
            )
            assert m, sentence
            found = m.groupdict()
            for n in "12" if found.get("p2") else "1":
                if found[f"thing{n}"]:
                    facts.add((found[f"p{n}"], found[f"thing{n}"], found[f"count{n}"]))
                else:
                    relation = "home" if found[f"home{n}"] else "job"
                    facts.add((found[f"p{n}"], relation, found[f"{relation}{n}"]))
    return facts


def answer(row: Row) -> str:
    """What the facts say to the question; "" if they do not."""
    facts = told(row["passage"])
    if m := re.fullmatch(r"Who works as a (\w+)\?", row["question"]):
        return next((p for p, relation, value in facts if relation == "job" and value == m[1]), "")
    if m := re.fullmatch(r"How many (\w+) does (\w+) have\?", row["question"]):
        return next((v for p, relation, v in facts if (p, relation) == (m[2], m[1])), "")
    who = re.fullmatch(r"Where does (?:the )?(\w+) live\?", row["question"])[1]
    persons = {who} | {p for p, relation, value in facts if relation == "job" and value == who}
    return next((v for p, relation, v in facts if p in persons and relation == "home"), "")


@pytest.mark.parametrize("unanswerable", [True, False])
def test_the_facts_in_the_passage_answer_the_question(unanswerable: bool) -> None:
    """An oracle that reads the text alone gets every question right: nothing contradicts, nothing
    is ambiguous."""
    for split in ("train", "dev", "test"):
        for row in reading.rows(split, unanswerable):
            assert answer(row) == "".join(row["answers"]["text"]), row


def kind(question: str) -> str:
    return {
        "Who": r"\b(?!The\b|There\b|Unlike\b)[A-Z]\w+",
        "How": r"\b\d+\b",
        "Whe": r"\b(?!The\b|There\b|Unlike\b)[A-Z]\w+",
    }[question[:3]]


def nearest(row: Row) -> str:
    """The floor: the word of the right shape that is nearest to the question's key word."""
    passage, question = row["passage"], row["question"]
    key = re.search(r"(?:as a|does the|does) (\w+)", question)[1]
    places = [m.start() for m in re.finditer(rf"\b{key}\b", passage)]
    shapes = [m for m in re.finditer(kind(question), passage) if m[0] != key]
    return min(shapes, key=lambda m: min((abs(m.start() - p) for p in places), default=0))[0] if shapes else ""


def most_shared_sentence(row: Row) -> str:
    """Another floor: the last word of the right shape in the sentence with the most words of the
    question."""
    question = set(re.findall(r"\w+", row["question"]))
    sentence = max(row["passage"].split(". "), key=lambda s: len(question & set(re.findall(r"\w+", s))))
    shapes = [m for m in re.findall(kind(row["question"]), sentence) if m not in question]
    return shapes[-1] if shapes else ""


@pytest.mark.parametrize("floor", [nearest, most_shared_sentence])
def test_nearness_and_overlap_do_not_find_the_answer(floor) -> None:
    rows = list(reading.rows("test", False))
    right = sum(floor(row) == row["answers"]["text"][0] for row in rows) / len(rows)
    assert right < 0.5


def test_many_answers_of_test_never_occur_in_train() -> None:
    """Otherwise a classifier over known answers would do, and nothing would have to be copied."""
    train = {word for row in reading.rows("train", False) for word in re.findall(r"\w+", row["passage"])}
    unseen = [row["answers"]["text"][0] not in train for row in reading.rows("test", False)]
    assert 0.3 < sum(unseen) / len(unseen) < 0.8


def test_questions_without_an_answer_still_fit_the_passage() -> None:
    """The relation is told of another person, so that a missing word does not give the absence
    away."""
    for row in reading.rows("test", True):
        relations = {relation for _, relation, _ in told(row["passage"])}
        thing = re.match(r"How many (\w+)", row["question"])
        assert (thing[1] if thing else "job" if row["question"].startswith("Who") else "home") in relations


def test_some_questions_chain_two_facts() -> None:
    questions = [row["question"] for row in reading.rows("test", False)]
    assert 0.1 < sum(question.startswith("Where does the ") for question in questions) / len(questions) < 0.35
