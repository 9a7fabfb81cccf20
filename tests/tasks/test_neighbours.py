"""Neighbouring sentences of articles."""

from __future__ import annotations

from collections import defaultdict

from tasks.neighbours import OTHERS, candidates, paragraphs
from tasks.readers.articles import END


def article(id: str, *lines: str) -> dict:
    return {"id": id, "text": [word for line in lines for word in (*line.split(), END)]}


TOWNS = [
    article(
        "a", "= A =", "", "One is here now . Two is here now ? Three is here now .", "Four is here now . Short . x"
    ),
    article("b", "= B =", "Five is over there . Six is over there ."),
    article("c", "= C =", "Seven is a number . Seven is a number . Eight is a number !"),
]


def test_an_article_is_cut_into_the_sentences_of_its_paragraphs():
    """Titles, scraps and what has no end are none: a model would learn to tell them by their
    form."""
    assert list(paragraphs(TOWNS[0]["text"])) == [
        [],
        ["One is here now .", "Two is here now ?", "Three is here now ."],
        ["Four is here now ."],
    ]


def test_right_is_the_sentence_behind_and_wrong_are_those_of_other_articles():
    """Never one of another paragraph or of the same article."""
    groups = defaultdict(list)
    for row in candidates(TOWNS):
        groups[row["group"]].append(row)
    told = {(rows[0]["first"], row["second"]) for rows in groups.values() for row in rows if row["label"] == "1"}
    assert told >= {("One is here now .", "Two is here now ?"), ("Five is over there .", "Six is over there .")}
    assert ("Three is here now .", "Four is here now .") not in told
    for rows in groups.values():
        assert len(rows) == 1 + OTHERS and len({row["second"] for row in rows}) > 1
        place = rows[0]["group"][0]
        own = {"a": ("One", "Two", "Three", "Four"), "b": ("Five", "Six"), "c": ("Seven", "Eight")}[place]
        assert all(row["second"].startswith(own) == (row["label"] == "1") for row in rows)


def test_the_right_one_stands_anywhere(task):
    """Its place would be the answer."""
    rows = task("neighbours").load("train", "mini").to_list()
    places = [int(row["id"].rsplit("-", 1)[1]) for row in rows if row["label"] == "1"]
    shares = [places.count(place) / len(places) for place in range(1 + OTHERS)]
    assert min(shares) > 0.15 and sum(row["label"] == "1" for row in rows) == len(rows) // (1 + OTHERS)
