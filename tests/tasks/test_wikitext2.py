"""The reader of WikiText's token files, on a few lines."""

from __future__ import annotations

import datasets

from tasks.readers.articles import articles

LINES = [
    " \n",
    " = Old <unk> = \n",
    " \n",
    " It is old . \n",
    " \n",
    " = = Use = = \n",
    " \n",
    " = Legend ; x = \n",
    " None . \n",
    " \n",
    " = New = \n",
    " \n",
]
FIRST = "\n = Old <unk> = \n \n It is old . \n \n = = Use = = \n \n = Legend ; x = \n None . \n \n"
SECOND = "= New = \n \n"


def test_an_article_begins_with_a_title_between_empty_lines_and_every_line_has_an_end() -> None:
    """A section begins none, nor does the legend of a table; empty lines are words to predict."""
    assert list(articles(LINES)) == [FIRST.split(" "), SECOND.split(" ")]


def test_lines_without_a_title_are_one_article() -> None:
    assert list(articles([" a b \n"])) == [["a", "b", "\n"]]
    assert list(articles([])) == []


def test_the_local_files_and_the_hub_give_the_same_rows(task, write) -> None:
    folder = write("wikitext2/wiki.valid.tokens.gz", "".join(LINES)).parents[1]
    local = list(task("wikitext2").local(folder, "dev"))
    assert [row["id"] for row in local] == ["dev-1", "dev-2"]
    on_hub = datasets.Dataset.from_dict({"text": [line if line.strip() else "" for line in LINES]})
    assert list(task("wikitext2").from_hub(on_hub, "dev")) == local
