"""The answer ranking corpus: the right candidate says it in other words, the wrong ones repeat the
question."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable

from sklearn.feature_extraction import DictVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from harness.task import Row
from tasks.mini import answers
from tasks.mini.answers import ACTIONS, THINGS


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


def overlap(row: Row) -> float:
    return len(words(row["first"]) & words(row["second"]))


def groups(rows: list[Row]) -> list[list[Row]]:
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        found[row["group"]].append(row)
    return list(found.values())


def first_is_right(rows: list[Row], score: Callable[[Row], float]) -> float:
    """How often the best candidate is right (equal scores count as their share), over questions
    that have an answer."""
    shares = []
    for group in groups(rows):
        if any(row["label"] == "1" for row in group):
            scores = [score(row) for row in group]
            best = [row for row, value in zip(group, scores, strict=True) if value == max(scores)]
            shares.append(sum(row["label"] == "1" for row in best) / len(best))
    return sum(shares) / len(shares)


def pairs(row: Row) -> dict[str, int]:
    """Words of the question with words of the candidate: what can learn that two words mean the
    same."""
    return {f"{a} {b}": 1 for a in words(row["first"]) - {"who", "the"} for b in words(row["second"])}


def learnt(features: Callable[[Row], dict[str, int]], train: list[Row]) -> Callable[[Row], float]:
    model = make_pipeline(DictVectorizer(), LogisticRegression(C=10, max_iter=1000))
    model.fit([features(row) for row in train], [row["label"] for row in train])
    return lambda row: model.predict_proba([features(row)])[0, 1]


def test_overlap_misleads_and_a_reader_of_word_pairs_succeeds() -> None:
    train, test = list(answers.rows("train")), list(answers.rows("test"))
    chance = first_is_right(test, lambda row: 0.0)
    candidate = learnt(lambda row: dict.fromkeys(words(row["second"]), 1), train)
    assert chance < 0.3
    assert first_is_right(test, overlap) < chance
    assert first_is_right(test, candidate) < 0.4
    assert first_is_right(test, learnt(pairs, train)) > 0.7


def test_labels_follow_from_action_and_thing() -> None:
    """The rule of the corpus, applied to the synonym lexicon alone."""
    for split in ("train", "dev", "test"):
        for row in answers.rows(split):
            question, candidate = words(row["first"]), words(row["second"])
            same = all(
                any(question & {*pair} and candidate & {*pair} for pair in lexicon) for lexicon in (ACTIONS, THINGS)
            )
            assert row["label"] == str(int(same)), row


def test_groups_have_five_to_eight_candidates_and_some_no_right_one() -> None:
    for split in ("train", "dev", "test"):
        found = groups(list(answers.rows(split)))
        assert all(5 <= len(group) <= 8 and len({row["first"] for row in group}) == 1 for group in found)
        right = Counter(sum(row["label"] == "1" for row in group) for group in found)
        assert set(right) == ({1, 2} if split == "train" else {0, 1, 2})


def test_no_candidate_and_no_question_is_in_two_splits() -> None:
    for column in ("first", "second"):
        splits = [{row[column] for row in answers.rows(split)} for split in ("train", "dev", "test")]
        assert len(set.union(*splits)) == sum(map(len, splits))
