"""The compare page as its readers meet it: texts and answers of real tasks, links to it, and what
it does not set against each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import leaderboard
from harness import registry
from harness.leaderboard.examples import adapter
from harness.problems import problem
from harness.records import Store
from harness.scoring import error_analysis
from harness.task import fingerprint
from tests.support.made_records import record

PLACE = "mini/equal/full"


def answered(store: Store, architecture: str, task: str, change: Callable[[int, Any], Any], **fields: Any) -> None:
    """Write a record whose predictions are the right answers of a generated corpus, changed."""
    entry = registry.entry("tasks", task)
    asked, rows = problem(entry.type), adapter(entry).read("test", "mini")
    said = [change(i, asked.right(row)) for i, row in enumerate(rows)]
    outcomes = error_analysis.outcomes(asked, entry.main_metric, said, rows, None)
    assert outcomes
    score = {entry.main_metric: outcomes.score}
    made = record(architecture, task, score, tier="mini", data={"test": fingerprint(rows)}, **fields)
    made.predictions = store.save_predictions(made, [row["id"] for row in rows], said)
    store.save_outcomes(made, made.predictions, [row["id"] for row in rows], outcomes)
    store.write(made)


def wrong_at(*places: int) -> Callable[[int, str], str]:
    """The other of two labels at these places."""
    turned = {"positive": "negative", "negative": "positive"}
    return lambda i, label: turned[label] if i in places else label


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built pages: four results on sst2 that may be compared, two settings of one architecture
    among them, one that may not, and two on tags."""
    folder = tmp_path_factory.mktemp("results")
    store = Store(folder)
    answered(store, "bilstm", "sst2", wrong_at(0))
    answered(store, "dan", "sst2", wrong_at(0, 1, 2), hyperparameters={"hidden": 50})
    answered(store, "dan", "sst2", wrong_at(0, 1, 2, 3), hyperparameters={"hidden": 100})
    answered(store, "gru", "sst2", wrong_at(*range(60)))
    answered(store, "lstm", "sst2", wrong_at(5), counts={"train": 500})
    answered(store, "bilstm", "sst2", wrong_at(0, 7), protocol="smoke")
    answered(store, "bilstm", "conll2003_ner", lambda _, tags: tags)
    answered(store, "lstm", "conll2003_ner", lambda i, tags: ["S-PER", *tags[1:]] if i == 3 else tags)
    assert leaderboard.main(["--results", str(folder)]) == 0
    return folder / "leaderboard"


@pytest.fixture
def compared(visit: Callable, site: Path) -> Callable:
    """Opens the page at an address and waits for the comparison; afterwards nothing may have gone
    wrong."""
    visits = []

    def opened(address: str) -> Any:
        visits.append(visit(site, f"compare.html{address}"))
        return settled(visits[-1].page)

    yield opened
    for each in visits:
        assert each.wrong == []


def settled(page: Any) -> Any:
    page.wait_for_selector("#comparison:not([aria-busy]) h2")
    return page


def listed(page: Any, title: str) -> list[list[str]]:
    """Cells of a list of test units."""
    rows = page.get_by_role("region", name=title, exact=True).locator("tbody tr").all()
    return [[text.strip() for text in row.locator("th, td").all_inner_texts()] for row in rows]


def test_texts_right_answers_and_both_answers_stand_side_by_side(compared: Callable):
    page = compared("#task=sst2&a=bilstm&b=gru")
    task = registry.entry("tasks", "sst2")
    rows = adapter(task).read("test", "mini")
    one = rows[1]
    other = wrong_at(0)(0, one["label"])
    found = listed(page, alone("gru"))
    assert [row[0] for row in found[:2]] == [rows[1]["id"], rows[2]["id"]]
    assert found[0] == [one["id"], " ".join(one["text"]), one["label"], one["label"], other, "right", "wrong"]
    assert "both on 1, neither on" in page.locator("#comparison").inner_text()


def alone(id: str) -> str:
    """Title of the list of the errors that one result makes alone."""
    return f"Errors of {registry.entry('architectures', id).name} alone"


def test_a_long_list_is_shown_in_full_when_asked(compared: Callable):
    page = compared("#task=sst2&a=bilstm&b=gru")
    assert len(listed(page, alone("gru"))) == 50
    page.get_by_role("button", name="Show all 59").click()
    assert len(listed(page, alone("gru"))) == 59


def test_a_part_of_the_test_is_chosen_and_kept_in_the_address(compared: Callable):
    """A link to a comparison leads to what its sender saw."""
    page = compared("#task=sst2&a=bilstm&b=gru")
    page.get_by_label("Part of the test").select_option("class: negative")
    page.get_by_label("Test units to list").select_option("differences")
    settled(page)
    again = compared("#" + page.url.partition("#")[2])
    assert again.get_by_label("Part of the test").input_value() == "class: negative"
    name = registry.entry("architectures", "bilstm").name
    other = registry.entry("architectures", "gru").name
    found = listed(again, f"{name} does better than {other}")
    assert found and {row[2] for row in found} == {"negative"}
    page.go_back()
    page.go_back()
    page.wait_for_function("document.querySelector('[name=part]').value === ''")


def test_errors_are_counted_by_part(compared: Callable):
    """Scores are the records' own; what one gets wrong alone is counted where the members of a part
    are known."""
    page = compared("#task=sst2&a=bilstm&b=gru")
    page.get_by_text("By class", exact=True).click()
    region = page.locator("#comparison details[open] table")
    rows = [row.locator("th, td").all_inner_texts() for row in region.locator("tbody tr").all()]
    assert [row[0] for row in rows] == ["negative", "positive"]
    assert sum(int(row[-1]) for row in rows) == 59
    assert sum(int(row[-2]) for row in rows) == 0


def test_a_link_with_two_settings_of_one_architecture_takes_the_first_and_says_so(compared: Callable):
    page = compared("#task=sst2&a=bilstm&b=dan")
    said = page.locator("#notice").inner_text()
    assert said.startswith("dan has 2 settings here; taken is the first: ") and "50 hidden units" in said
    assert "b=dan%7E" in page.url, "from now on the address names the one that is shown"


def test_a_link_to_what_is_not_there_shows_the_rest_and_says_so(compared: Callable):
    page = compared("#section=nowhere&task=sst2&a=bilstm&b=nobody")
    said = page.locator("#notice").inner_text()
    assert "There is no section nowhere" in said and "There is no result of nobody" in said
    assert page.get_by_label("Architecture 1").input_value() == "bilstm"
    assert page.get_by_label("Architecture 2").count() == 0


def test_results_of_another_group_are_named_with_the_reason_and_not_offered(compared: Callable):
    page = compared("#task=sst2&a=bilstm&b=lstm")
    name = registry.entry("architectures", "lstm").name
    assert f"{name} is not shown beside" in page.locator("#notice").inner_text()
    page.get_by_role("button", name="Add an architecture").click()
    settled(page)
    offered = page.get_by_label("Architecture 2").locator("option").all_inner_texts()
    assert name not in offered and registry.entry("architectures", "gru").name in offered
    page.locator("#others summary").click()
    assert page.locator("#others").inner_text().endswith(f"{name}: it differs in training data (500 examples).")


def test_one_result_shows_its_errors_where_nothing_may_be_set_against_it(compared: Callable):
    """The first pages of a newcomer are of protocol smoke: even there errors can be looked at."""
    page = compared("#section=mini/smoke/full&task=sst2")
    name = registry.entry("architectures", "bilstm").name
    rows = adapter(registry.entry("tasks", "sst2")).read("test", "mini")
    assert [row[0] for row in listed(page, f"Errors of {name}")] == [rows[0]["id"], rows[7]["id"]]
    assert page.get_by_role("button", name="Add an architecture").is_disabled()


def test_tags_that_are_not_right_are_marked(compared: Callable):
    page = compared("#task=conll2003_ner&a=bilstm&b=lstm")
    (row,) = listed(page, alone("lstm"))
    word = adapter(registry.entry("tasks", "conll2003_ner")).read("test", "mini")[3]["text"][0]
    assert row[4].startswith(f"{word}/S-PER")
    assert page.locator("#comparison mark").all_inner_texts() == [f"{word}/S-PER"]


def test_data_of_a_task_are_loaded_when_it_is_chosen(compared: Callable):
    """All tasks at once took megabytes before anything was shown."""
    page = compared("#task=sst2")

    def loaded() -> list[str]:
        return page.evaluate(
            "[...document.querySelectorAll('head script[src^=compare-]')].map((s) => s.src.match(/[^/]*$/)[0])"
        )

    assert [file for file in loaded() if "conll2003" in file] == []
    page.get_by_label("Task").select_option("conll2003_ner")
    page.wait_for_selector("#comparison:not([aria-busy]) summary:text('By entity type')")
    assert [file for file in loaded() if "conll2003" in file] == ["compare-conll2003_ner-mini-equal-full.js"]


LINKS: Sequence[tuple[str, str]] = (
    (f"archbench.compareLink('{PLACE}', 'sst2', ['dan', 'gru'])", "section=mini%2Fequal%2Ffull&task=sst2&a=dan&b=gru"),
    ("archbench.compareLink('p', 't', ['dan~1', 'b'], {part: 'x: y'})", "section=p&task=t&a=dan%7E1&b=b&part=x%3A+y"),
    ("archbench.compareLink('p', 't', [...'123456789'])", "section=p&task=t&a=1&b=2&c=3&d=4&e=5&f=6"),
)


@pytest.mark.parametrize(("call", "address"), LINKS)
def test_table_pages_link_to_a_comparison_by_one_function(compared: Callable, call: str, address: str):
    assert compared("#task=sst2").evaluate(call) == f"compare.html#{address}"


def test_tables_have_no_empty_heading_and_fit_a_phone(compared: Callable):
    page = compared("#task=sst2&a=bilstm&b=gru")
    page.set_viewport_size({"width": 390, "height": 800})
    page.evaluate("document.querySelectorAll('details').forEach((details) => (details.open = true))")
    assert all(text.strip() for text in page.locator("th").all_inner_texts())
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    labels = "[...document.querySelectorAll('select, button')].map((e) => (e.labels?.[0] ?? e).textContent.trim())"
    assert all(page.evaluate(labels))
