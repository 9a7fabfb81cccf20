"""The inference corpus: neither the hypothesis nor the overlap tells, roles and word classes do."""

from __future__ import annotations

import re
from collections import Counter

from sklearn.feature_extraction import DictVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from harness.task import Row
from tasks.mini import inference
from tasks.mini.inference import NOUNS, VERBS


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def parts(text: str) -> tuple[str, str, str, bool]:
    """Doer, verb, other and whether it is denied, by position."""
    doer, negation, verb, other = re.match(r"The (\w+) (does not )?(\w+) the (\w+)", text).groups()
    return doer, verb, other, negation is not None


def accuracy(features, train: list[Row], test: list[Row]) -> float:
    model = make_pipeline(DictVectorizer(), LogisticRegression(C=3, max_iter=1000))
    model.fit([features(row) for row in train], [row["label"] for row in train])
    return model.score([features(row) for row in test], [row["label"] for row in test])


def hypothesis(row: Row) -> dict[str, float]:
    return dict.fromkeys(words(row["second"]), 1)


def bag(row: Row) -> dict[str, float]:
    return hypothesis(row) | {f"first {word}": 1 for word in words(row["first"])}


def overlap(row: Row) -> dict[str, float]:
    first, second = set(words(row["first"])), set(words(row["second"]))
    shared = len(first & second)
    return {
        "shared": shared,
        f"shared {shared}": 1,
        "only second": len(second - first),
        "jaccard": shared / len(first | second),
    }


def by_role(row: Row) -> dict[str, float]:
    """Pairs of words in the same role, together with the negation."""
    first, second = parts(row["first"]), parts(row["second"])
    return {
        f"{role} {a} {b} {second[3]}": 1 for role, a, b in zip(("doer", "verb", "other"), first, second, strict=False)
    }


def test_floors_are_near_chance_and_a_reader_of_roles_succeeds() -> None:
    train, test = list(inference.rows("train")), list(inference.rows("test"))
    labels = Counter(row["label"] for row in test)
    assert set(labels) == {"entailment", "neutral", "contradiction"}
    assert max(labels.values()) / len(test) < 0.35
    assert accuracy(hypothesis, train, test) < 0.40
    assert accuracy(overlap, train, test) < 0.42
    assert accuracy(bag, train, test) < 0.48
    assert accuracy(by_role, train, test) > 0.80


def test_every_hypothesis_has_all_three_labels() -> None:
    """The proof that a hypothesis alone says nothing."""
    for split in ("train", "dev", "test"):
        by_hypothesis: dict[str, Counter[str]] = {}
        for row in inference.rows(split):
            by_hypothesis.setdefault(row["second"], Counter())[row["label"]] += 1
        assert all(len(set(labels.values())) == 1 and len(labels) == 3 for labels in by_hypothesis.values())


def test_labels_follow_from_the_texts() -> None:
    """The rule of the corpus, applied to roles and the lexicon of wider words alone."""
    wider = {narrow: noun for noun, (_, narrower) in NOUNS.items() for narrow in narrower}
    actions = {word: number for number, forms in enumerate(VERBS) for pair in forms for word in pair}

    def means(narrow: str, wide: str) -> bool:
        return narrow == wide or wider.get(narrow) == wide

    def may_mean(a: str, b: str) -> bool:
        return means(a, b) or NOUNS[b][0] == a

    for split in ("train", "dev", "test"):
        for row in inference.rows(split):
            (doer, verb, other, _), (h_doer, h_verb, h_other, negated) = parts(row["first"]), parts(row["second"])
            exchanged = (
                may_mean(doer, h_other) and may_mean(other, h_doer) and (means(doer, h_other) or means(other, h_doer))
            )
            if actions[verb] != actions[h_verb]:
                label = "neutral"
            elif means(doer, h_doer) and means(other, h_other):
                label = "contradiction" if negated else "entailment"
            elif exchanged and not (may_mean(doer, h_doer) and may_mean(other, h_other)):
                label = "entailment" if negated else "contradiction"
            else:
                label = "neutral"
            assert row["label"] == label, row
