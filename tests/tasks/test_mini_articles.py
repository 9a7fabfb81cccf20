"""The corpus of articles: agreement at a distance, and a name that comes again."""

from __future__ import annotations

from collections import Counter, defaultdict

from tasks.mini.articles import HELD_OUT_TOWNS, NOUNS, TOWNS, VERBS, rows
from tasks.readers.articles import END

SINGULAR = {one for one, _, _ in VERBS}
PLURAL = {many for _, many, _ in VERBS}


def sentences(text: list[str]) -> list[list[str]]:
    """The sentences of an article's paragraph, without their full stops."""
    title, paragraph = " ".join(text).split(f" {END} ")[:2]
    assert title.startswith("= ") and text.count(END) == 2
    return [sentence.split() for sentence in paragraph.removesuffix(f" {END}").split(" .") if sentence.strip()]


def test_verbs_agree_with_their_subjects() -> None:
    for row in rows("dev"):
        for sentence in sentences(row["text"]):
            [verb] = [word for word in sentence if word in SINGULAR | PLURAL]
            assert (verb in SINGULAR) == (sentence[1] in NOUNS), sentence


def test_the_clause_before_a_verb_does_not_tell_its_number() -> None:
    """Whoever reads three words guesses there, whatever the town; who remembers the subject
    knows."""
    seen = defaultdict(Counter)
    for row in rows("train"):
        for place, word in enumerate(row["text"]):
            if word in SINGULAR | PLURAL:
                seen[tuple(row["text"][place - 3 : place - 1])][word in SINGULAR] += 1
    clauses = [counts for counts in seen.values() if counts.total() > 100]
    shares = [counts[True] / counts.total() for counts in clauses]
    assert len(shares) == 5 and all(0.35 < share < 0.65 for share in shares)


def test_an_article_is_on_the_town_of_its_title() -> None:
    for row in rows("test"):
        towns = [word for word in row["text"] if word in (*TOWNS, *HELD_OUT_TOWNS)]
        assert len({*towns}) == 1 and len(towns) > 3
