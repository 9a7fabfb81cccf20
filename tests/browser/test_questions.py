"""Six questions of readers, each walked as a reader would: from the front page, by what can be
clicked."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import leaderboard
from harness.records import Store
from tests.support.made_pages import architecture, register_alone, task
from tests.support.made_records import judged

COMMIT = "c" * 40


def right(count: int) -> str:
    return "1" * count + "0" * (300 - count)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four tasks; three seeds each, so that tests can decide."""
    folder = tmp_path_factory.mktemp("results")
    store = Store(folder)
    small, full = {"name": "small", "examples": 2000}, {"name": "full", "examples": None}
    for task_id, budget, examples, metric, scores in (
        ("snli", small, 2000, "accuracy", {"esim": 150, "bilstm": 200, "avg_vectors": 120}),
        ("snli", full, 20000, "accuracy", {"esim": 290, "bilstm": 240, "avg_vectors": 180}),
        ("sst2", small, 2000, "accuracy", {"bilstm": 240, "kim_cnn": 238, "avg_vectors": 200}),
        ("conll2003_chunk", small, 2000, "accuracy", {"bilstm_softmax": 200, "bilstm_crf": 270}),
        ("squad1", small, 2000, "accuracy", {"bidaf": 90}),
    ):
        for name, count in scores.items():
            for seed in range(3):
                judged(
                    store,
                    right(count + seed - 1),
                    metric=metric,
                    architecture=name,
                    task=task_id,
                    seed=seed,
                    budget=budget,
                    hyperparameters={"limits": {"budget": budget["name"]}},
                    counts={"train": examples, "test": 100},
                    commit=COMMIT,
                    command=f"archbench run --tier local --workers 2 -a '*' -t '*' --budget {budget['name']}",
                )
    timed = {"bilstm": 3.0, "kim_cnn": 0.5, "avg_vectors": 0.1, "esim": 4.0}
    models = [
        {"architecture": name, "latency_ms": ms, "examples_per_second": 1.0, "memory_mib": 300.0, "ruler": None}
        for name, ms in timed.items()
    ]
    models = [model | {"status": "ok", "task": "sst2"} for model in models]
    (folder / "speed.json").write_text(json.dumps({"models": models}), encoding="utf-8")
    (folder / "gaps.csv").write_text(
        "task,architecture,reported,by,with,why\nsquad1,bidaf,68.0,paper,,a tenth of the questions\n", encoding="utf-8"
    )
    names = {"esim": "ESIM", "bilstm": "BiLSTM", "avg_vectors": "Averages", "kim_cnn": "Kim CNN", "bidaf": "BiDAF"}
    names |= {"bilstm_softmax": "BiLSTM tagger", "bilstm_crf": "BiLSTM-CRF"}
    tasks = [task("snli", "match", "accuracy"), task("sst2", "classify", "accuracy")]
    tasks += [task("conll2003_chunk", "tag", "accuracy"), task("squad1", "extract", "accuracy")]
    with pytest.MonkeyPatch.context() as patch:
        register_alone(patch, [architecture(id, name) for id, name in names.items()], tasks)
        assert leaderboard.main(["--results", str(folder)]) == 0
    return folder / "leaderboard"


@pytest.fixture
def front(visit: Callable, site: Path) -> Any:
    """The front page, open."""
    return visit(site, "index.html").page


def follow(page: Any, name: str) -> None:
    """Click a link of the navigation and wait for the page behind it."""
    page.get_by_role("navigation").get_by_role("link", name=name, exact=True).click()
    ready(page)


def ready(page: Any) -> None:
    page.wait_for_function("document.documentElement.dataset.ready === 'yes'")


def tick(page: Any, *names: str) -> None:
    """Tick rows of the first table and go where they are compared."""
    for name in names:
        page.get_by_label(f"Compare {name}", exact=True).first.check()
    page.get_by_role("link", name=f"Compare the {len(names)} ticked").first.click()
    ready(page)
    page.wait_for_selector("#comparison:not([aria-busy]) table")


def test_which_is_best_for_snli_with_at_most_2000_examples(front: Any):
    """With all the data another one leads."""
    follow(front, "Advisor")
    front.get_by_label("Task").select_option("snli")
    assert front.locator("#advice .advised a").first.inner_text() == "ESIM"
    front.get_by_label("Labelled examples, at most").fill("2000")
    assert front.locator("#advice .advised a").first.inner_text() == "BiLSTM"
    assert "better than each of the 2 others" in front.locator("#advice").inner_text()


def test_which_is_cheapest_within_a_point_of_the_best_on_sst2(front: Any):
    follow(front, "Advisor")
    front.get_by_label("Task").select_option("sst2")
    best, cheapest = front.locator("#advice .advised").all_inner_texts()
    assert best.startswith("Best: BiLSTM, accuracy (%) 80.0")
    assert cheapest.startswith("Cheapest within 1 point: Kim CNN, 79.3") and "0.5 ms" in cheapest


def test_does_a_crf_help_chunking(front: Any):
    follow(front, "CONLL2003_CHUNK")
    tick(front, "BiLSTM tagger", "BiLSTM-CRF")
    rows = front.get_by_role("region", name="Side by side").locator("tbody tr")
    cells = {row.locator("th").inner_text(): row.locator("td").all_inner_texts() for row in rows.all()}
    assert cells["difference to BiLSTM tagger, points"][1] == "+23.3"
    assert float(cells["p-value of that difference, not corrected"][1]) < 0.05


def test_how_far_is_bidaf_from_its_paper_and_why(front: Any):
    follow(front, "Gaps")
    row = front.locator("tr", has=front.get_by_role("rowheader", name="BiDAF"))
    text = row.inner_text()
    assert "68.0" in text and "30.0" in text and "−38.0" in text and "a tenth of the questions" in text


def test_which_texts_does_one_get_wrong_and_the_other_right(front: Any):
    follow(front, "SST-2")
    tick(front, "BiLSTM", "Averages")
    alone = front.get_by_role("region", name="Errors of Averages alone")
    assert alone.locator("tbody th").count() == 40, "units 200 to 239, of three seeds each"
    assert front.get_by_role("region", name="Errors of BiLSTM alone").count() == 0


def test_repeat_that_row(front: Any):
    """From its square to the command in four clicks."""
    front.get_by_label("Data, rules and budget").select_option("local-equal-small")
    row = front.locator(".picture:visible tr", has=front.get_by_role("rowheader", name="Kim CNN", exact=True))
    row.locator("td a").first.click()
    ready(front)
    front.locator("tr:target th a").click()
    ready(front)
    front.locator("details summary", has_text="SST-2").click()
    shown = front.locator("details[open] pre").first.inner_text().splitlines()
    assert shown == [
        f"git checkout {COMMIT}",
        "archbench run -a kim_cnn -t sst2 --seeds 0,1,2 --tier local --budget small",
    ]
