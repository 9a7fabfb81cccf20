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


def test_three_words_before_a_verb_do_not_tell_its_number_behind_a_clause() -> None:
    """An n-gram guesses there; who remembers the subject knows."""
    seen = defaultdict(Counter)
    for row in rows("train"):
        for place, word in enumerate(row["text"]):
            if word in SINGULAR | PLURAL:
                seen[tuple(row["text"][place - 3 : place])][word in SINGULAR] += 1
    shares = [counts[True] / counts.total() for before, counts in seen.items() if counts.total() > 40]
    assert len(shares) > 20 and all(0.25 < share < 0.75 for share in shares)


def test_an_article_is_on_the_town_of_its_title() -> None:
    for row in rows("test"):
        towns = [word for word in row["text"] if word in (*TOWNS, *HELD_OUT_TOWNS)]
        assert len({*towns}) == 1 and len(towns) > 3
