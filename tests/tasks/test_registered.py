"""Every task adapter: its declaration, its hub pin and its mini tier."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness import registry
from harness.errors import DataError
from harness.metrics import METRICS
from harness.task import REQUIRED

IDS = (
    *(
        "sst2",
        "sst5",
        "ag_news",
        "conll2003_ner",
        "conll2003_pos",
        "conll2003_chunk",
        "snli",
        "squad1",
        "squad2",
        "wikiqa",
        "babi",
        "ohsumed",
        "multi30k",
        "imdb",
        "newsgroups20",
        "newsgroups20_levels",
        "conll2000_chunk",
        "mnli_matched",
        "mnli_mismatched",
        "reuters21578",
        "wikitext2",
        "text_mix",
        "general_text",
        "news_text",
        "gap",
        "squad_sentences",
        "neighbours",
        "ai2_questions",
        "encyclopedia_text",
        "multi30k_both",
    ),
    *("yelp2", "yelp5", "amazon2", "amazon5", "dbpedia", "sogou"),
    *("fsdd", "fsdd_unseen", "fsdd_class", "fsdd_class_unseen", "an4"),
)


def test_all_tasks_are_listed():
    """`archbench list tasks` shows them without importing any."""
    assert set(IDS) <= set(registry.entries("tasks"))


@pytest.mark.parametrize("id", IDS)
def test_what_is_listed_is_what_is_registered(id, task):
    """The listing is read from the source text; it must not differ from the class that runs."""
    entry = task(id).entry
    assert dict(entry.options) == registry.registered("tasks", id)
    assert set(entry.sizes) == {"train", "dev", "test"} and entry.epochs > 0 and entry.protocol
    assert set(entry.metrics) <= set(METRICS)


NOT_ON_THE_HUB = {
    "ohsumed",
    "multi30k",
    "newsgroups20",
    "newsgroups20_levels",
    "conll2000_chunk",
    "reuters21578",
    "amazon5",
    "sogou",
    "gap",
    "ai2_questions",
} | {
    "encyclopedia_text",
    "text_mix",
    "general_text",
    "news_text",
    "multi30k_both",
}


@pytest.mark.parametrize("id", sorted({*IDS} - NOT_ON_THE_HUB))
def test_the_hub_source_is_pinned(id, task):
    """A branch name would let the data change under a result."""
    assert re.fullmatch(r"[0-9a-f]{40}", task(id).hub.revision)
    assert [split for split, _ in task(id).hub.splits] == ["train", "dev", "test"]


@pytest.mark.parametrize("id", sorted(NOT_ON_THE_HUB))
def test_a_task_without_a_source_on_the_hub_says_so(id, task):
    """Before the grid begins, with the tiers that it has."""
    assert task(id).reason_to_skip(id, "hub") == f"{id} has no source on the hub; use --tier mini or local"


@pytest.mark.parametrize("id", IDS)
def test_the_mini_tier_has_the_columns_of_its_type(id, task):
    """The first run of a new user is on this tier."""
    columns = set(task(id).load("dev", "mini").column_names)
    assert {"id", *REQUIRED[task(id).entry.type]} <= columns
    assert "text" in columns or "audio" in columns or task(id).entry.type not in ("classify", "tag")


@pytest.mark.parametrize("id", IDS)
def test_a_wrong_data_folder_names_the_missing_file(id, task, tmp_path):
    """The commonest mistake of a user."""
    for split in ("train", "dev", "test"):
        with pytest.raises(DataError, match=rf"{tmp_path}/\w+/\S+: no such file"):
            task(id).load(split, "local", tmp_path)


@pytest.mark.parametrize("id", IDS)
def test_the_file_that_is_missing_is_an_official_one_of_the_page_on_data(id, task, tmp_path):
    """Fragments that nobody else has were asked for, and archives of which no page said what is in
    them."""
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "data.md").read_text()
    with pytest.raises(DataError) as caught:
        task(id).load("train", "local", tmp_path)
    folder, name = re.search(rf"{tmp_path}/(\S+)/([^/\s]+): no such file", str(caught.value)).groups()
    assert f"`{folder}`" in page and f"`{name}`" in page


@pytest.mark.parametrize("id", sorted(registry.entries("tasks")))
def test_a_file_that_is_missing_names_the_folder_that_the_option_means(id, task, tmp_path):
    """Whoever gave the folder that the message named had the same message again."""
    with pytest.raises(DataError) as caught:
        task(id).load("train", "local", tmp_path)
    found = re.search(r"must be the folder that holds ([^/ ]+)/", str(caught.value))
    if found:
        assert f"{tmp_path / found[1]}/" in str(caught.value)
