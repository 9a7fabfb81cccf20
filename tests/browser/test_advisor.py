"""The advisor, against advice worked out here from the records alone."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import pytest

import leaderboard
from harness import registry
from harness.records import Store
from tests.support.made_pages import architecture, register_alone, task
from tests.support.made_records import judged

NAMES = ("dan", "bilstm", "esim", "kim", "count")
TASKS = {"sst2": "classify", "ag_news": "classify", "snli": "match"}
SIZES = (500, 2000, 8000)
UNITS = 400


class Known(NamedTuple):
    """One row: what the advisor may know of it."""

    name: str
    task: str
    examples: int
    score: float
    latency: float | None


@pytest.fixture(scope="module")
def rows() -> list[Known]:
    """Every architecture on every task and size, but for one task without small groups; one
    architecture was never timed."""
    draw = random.Random(7)
    latency = {name: round(draw.uniform(0.1, 5), 2) for name in NAMES} | {"esim": None}
    return [
        Known(name, task, size, draw.randrange(200, 399) / UNITS, latency[name])
        for task in TASKS
        for size in SIZES[task == "snli" :]
        for name in NAMES
    ]


@pytest.fixture(scope="module")
def site(rows: list[Known], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    store = Store(folder)
    for row in rows:
        right = round(row.score * UNITS)
        budget = {"name": f"b{row.examples}", "examples": row.examples}
        judged(
            store,
            "1" * right + "0" * (UNITS - right),
            architecture=row.name,
            task=row.task,
            counts={"train": row.examples},
            budget=budget,
            hyperparameters={"size": row.examples},
        )
    # What sees more than labelled examples is never advised, however good.
    judged(store, "1" * UNITS, architecture="dan", task="sst2", sees=["texts of test"], counts={"train": 500})
    timed = {row.name: row.latency for row in rows if row.latency}
    models = [
        {"architecture": name, "latency_ms": ms, "examples_per_second": 1.0, "memory_mib": 300.0, "ruler": None}
        for name, ms in timed.items()
    ]
    models = [model | {"status": "ok", "task": "sst2"} for model in models]
    (folder / "speed.json").write_text(json.dumps({"models": models}), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        entries = [architecture(name, name.upper()) for name in NAMES]
        register_alone(patch, entries, [task(id, type, "accuracy") for id, type in TASKS.items()])
        assert leaderboard.main(["--results", str(folder)]) == 0
    return folder / "leaderboard"


def advice(rows: list[Known], task: str, examples: int, latency: float | None, points: float) -> list[str] | None:
    """Names of the best and the cheapest; None if nothing was trained on so few examples."""
    sizes = [row.examples for row in rows if row.task == task and row.examples <= examples]
    if not sizes:
        return None
    fitting = [row for row in rows if row.task == task and row.examples == max(sizes)]
    if latency is not None:
        fitting = [row for row in fitting if row.latency is not None and row.latency <= latency]
    if not fitting:
        return []
    best = max(fitting, key=lambda row: row.score)
    shown = {row: round(100 * row.score, 1) for row in fitting}
    close = [row for row in fitting if row.latency is not None and shown[best] - shown[row] <= points + 1e-9]
    cheapest = min(close, key=lambda row: row.latency, default=None)
    return [best.name.upper(), *([cheapest.name.upper()] if cheapest else [])]


def test_advice_is_what_the_records_say(rows: list[Known], site: Path, visit: Callable):
    """Twenty questions of a task, the examples at hand, a limit, and what is almost as good."""
    shown = visit(site, "advisor.html")
    form, answer = shown.page.locator("#advisor"), shown.page.locator("#advice")
    draw = random.Random(0)
    kinds = set()
    for _ in range(20):
        task, examples = draw.choice(list(TASKS)), draw.choice((100, 500, 1999, 2000, 10**6))
        latency, points = draw.choice((None, 0.05, 1.0, 3.0)), draw.choice((0, 1, 5))
        form.locator("[name=task]").select_option(task)
        form.locator("[name=examples]").fill(str(examples))
        form.locator("[name=latency]").fill("" if latency is None else str(latency))
        form.locator("[name=points]").fill(str(points))
        found = [line.locator("a").inner_text() for line in answer.locator(".advised").all()]
        wanted = advice(rows, task, examples, latency, points)
        kinds.add("too few" if wanted is None else "found" if wanted else "beyond the limits")
        text = answer.inner_text()
        assert found == (wanted or []), (task, examples, latency, points)
        assert ("so few examples" in text) == (wanted is None)
        assert ("none is within the limits" in text) == (wanted == [])
    assert shown.wrong == []
    assert len(kinds) == 3, "every kind of answer was drawn"


def test_a_question_in_the_address_is_answered(site: Path, visit: Callable):
    """A colleague gets the link, not a list of what to click."""
    types = {id: entry.name for id, entry in registry.entries("problems").items()}
    page = visit(site, f"advisor.html#task={quote('type:' + types['match'])}&examples=2000").page
    assert page.locator("#advice h2").all_inner_texts() == ["SNLI"]
    page = visit(site, f"advisor.html#task={quote('type:' + types['classify'])}").page
    assert page.locator("#advice h2").count() == 2
    page.locator("#advice .advised a").first.click()
    page.wait_for_function("document.documentElement.dataset.ready === 'yes'")
    assert page.locator("tr:target").count() == 1, "the evidence is one click away"


def test_whoever_opens_the_address_of_an_answer_sees_the_same_answer(site: Path, visit: Callable):
    """An emptied field stood for no limit, and for one point after a reload. In a page that is open
    already, a field that the address does not name kept its limit."""
    page = visit(site, "advisor.html").page
    form, answer = page.locator("#advisor"), page.locator("#advice")
    first = page.url
    at_first = answer.inner_text()
    form.locator("[name=points]").fill("100")
    far = answer.inner_text()
    form.locator("[name=points]").fill("")
    assert answer.inner_text() == at_first != far
    emptied = page.url
    form.locator("[name=latency]").fill("0.0001")
    page.goto(emptied)
    assert answer.inner_text() == at_first
    assert visit(site, "advisor.html" + emptied.removeprefix(first)).page.locator("#advice").inner_text() == at_first
