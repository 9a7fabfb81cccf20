"""The school questions: the texts tell, and the training questions tell some of it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable

import pytest
from sklearn.feature_extraction import DictVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from harness.metrics import score
from harness.task import Row
from harness.views.base import words_of
from tasks.mini import school

SPLITS = ("train", "dev", "test")
STOP = {"what", "do", "which", "of", "these", "in", "are", "at", "the", "on", "their", "where", "have"}


def words(text: str) -> set[str]:
    return {word.lower() for word in words_of(text)} - STOP


def accuracy(scores: Callable[[Row], float], rows: list[Row]) -> float:
    return score(["choice_accuracy"], [scores(row) for row in rows], rows)["choice_accuracy"]


@pytest.mark.parametrize("split", SPLITS)
def test_a_question_has_four_choices_of_which_one_is_true(split):
    """By the table of facts: a second true choice would be marked as wrong."""
    groups = defaultdict(list)
    for row in school.rows(split):
        groups[row["group"]].append(row)
    for rows in groups.values():
        assert len({row["second"] for row in rows}) == 4 and len({row["first"] for row in rows}) == 1
        asked = words(rows[0]["first"])
        [relation] = [
            number
            for number in range(3)
            for form in (*school.QUESTIONS[number], *school.BACKWARDS[number])
            if words(form.replace("{}", "")) <= asked and len(asked - words(form)) == 1
            and form.split("{}")[0] == rows[0]["first"][: len(form.split("{}")[0])]
        ]  # fmt: skip
        true = [(animal, facts[relation]) for animal, facts in school.EVERY.items()]
        said = [(row, row["second"]) for row in rows]
        for row, choice in said:
            fits = any({animal, fact} == {choice, *(asked & {animal, fact})} for animal, fact in true)
            assert row["label"] == str(int(fits)), row


def test_what_is_asked_of_an_animal_is_asked_in_one_split():
    """Else memory would answer; and some animals are new."""
    asked = [{row["first"] for row in school.rows(split)} for split in SPLITS]
    assert sum(map(len, asked)) == len(set.union(*asked))
    train = {word for row in school.rows("train") for side in ("first", "second") for word in words(row[side])}
    assert not train & {*school.HELD_OUT_ANIMALS}
    for split in ("dev", "test"):
        assert {word for row in school.rows(split) for word in words(row["first"])} & {*school.HELD_OUT_ANIMALS}


def test_the_right_choice_stands_anywhere():
    places = Counter(row["id"].rsplit("-", 1)[1] for row in school.rows("train") if row["label"] == "1")
    assert min(places.values()) > 0.15 * sum(places.values())


def test_every_fact_is_stated_in_the_texts_more_than_once():
    """A text of the corpus may be held out of what is read."""
    sentences = [words(each) for text in school.texts() for each in text.split(".")]
    for animal, facts in school.EVERY.items():
        for fact in facts:
            assert sum({animal, fact} <= each for each in sentences) >= 2


def test_who_reads_the_texts_knows_and_who_knows_words_does_not():
    """Sentences that name both sides answer nearly all; the commonest words of right choices, or
    words in common, do not."""
    train, test = list(school.rows("train")), list(school.rows("test"))
    sentences = [words(each) for text in school.texts() for each in text.split(".")]

    def told(row: Row) -> float:
        return sum(bool(words(row["first"]) & each) and words(row["second"]) <= each for each in sentences) / sum(
            words(row["second"]) <= each for each in sentences
        )

    model = make_pipeline(DictVectorizer(), LogisticRegression(max_iter=1000))
    model.fit([dict.fromkeys(words(row["second"]), 1) for row in train], [row["label"] for row in train])
    single = accuracy(lambda row: model.predict_proba([dict.fromkeys(words(row["second"]), 1)])[0, 1], test)
    common = accuracy(lambda row: float(len(words(row["first"]) & words(row["second"]))), test)
    assert accuracy(told, test) > 0.6 > 0.45 > single and common == pytest.approx(0.25)
