"""The leaderboard as its readers meet it: in a browser, from disk, on a phone, in the dark, by
keyboard, on paper."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leaderboard
from harness import registry
from harness.records import Cell, Record, Store
from harness.records.outcomes import Outcomes
from harness.registry import lookup
from tests.support.made_records import judged

EVIL = "<img src=x onerror=alert(1)>"
UNITS = [f"u{i}" for i in range(120)]
ARCHITECTURES = {
    "dan": "Deep averaging",
    "bert": "BERT",
    "count": "Counting",
    "bilstm": "biLSTM",
    "evil": EVIL,
    "lstm": "LSTM",
    "rntn": "RNTN",
}
TASKS = {
    "sst2": ("classify", ("accuracy", "macro_f1")),
    "conll2003_ner": ("tag", ("span_f1",)),
    "wikiqa": ("rank", ("map", "mrr")),
    "fsdd": ("transcribe", ("wer", "cer")),
}
PAGES = ["index.html", "advisor.html", "architectures.html", "tables.html", "gaps.html", "compare.html", "story.html"]
PAGES += ["runs.html", *(f"survey-{id}.html" for id in (1, 2, 3, 4, 5, "tagging", "speech"))]
PAGES += [f"task-{task}.html" for task in TASKS] + [
    f"architecture-{architecture}.html" for architecture in ARCHITECTURES
]
SAME_BUT_FOR_NUMBERS = [f"survey-{id}.html" for id in (2, 3, 4, 5)] + ["task-wikiqa.html", "task-conll2003_ner.html"]
SAME_BUT_FOR_NUMBERS += [f"architecture-{id}.html" for id in ("bert", "count", "bilstm")]
"""Pages whose template another one has too: axe, which takes seconds for a page, is not asked."""


def entries(sort: str) -> dict[str, registry.Entry]:
    """Seven architectures, one with a name that is markup, and four tasks."""
    if sort == "tasks":
        shared = dict(class_name="Adapter", protocol=EVIL, epochs=5, sizes={"train": 1000})
        return {
            id: registry.TaskEntry(
                id=id,
                file=Path(f"{id}.py"),
                name=id.upper(),
                type=type,
                metrics=metrics,
                main_metric=metrics[0],
                **shared,
            )
            for id, (type, metrics) in TASKS.items()
        }
    found = {}
    for year, (id, name) in enumerate(ARCHITECTURES.items(), start=2010):
        file = Path("architectures") / ("classical" if id == "count" else "recurrent") / f"{id}.py"
        about = dict(name=name, kind="text", paper=f"{name} 2015", source="survey", year=year)
        about |= dict(deviations=(f"other than in the paper {EVIL}",))
        found[id] = registry.ArchitectureEntry(id=id, file=file, class_name="Model", **about)
    return found


def record(architecture: str, task: str, score: float | None = None, seed: int = 0, **fields: Any) -> Record:
    """A record with costs and a learning curve; without a score one that did not end ok."""
    cell = Cell(
        architecture,
        1,
        task,
        1,
        fields.pop("tier", "local"),
        fields.pop("protocol", "equal"),
        {"hidden": 100, "note": EVIL},
        seed,
    )
    place = list(ARCHITECTURES).index(architecture)
    known: dict[str, Any] = {
        "status": "ok",
        "command": f"archbench run -a {architecture} -t {task} {EVIL}",
        "main_metric": TASKS[task][1][0],
        "sees": [],
    }
    known |= {
        "environment": {"device": "cpu", "cpu": f"a CPU {EVIL}"},
        "started": "2026-01-02T03:04:05+00:00",
        "commit": "c" * 40,
    }
    if score is not None:
        curve = [
            {"epoch": e, "train_loss": 1 / e, TASKS[task][1][0]: score - 0.1 / e, "seconds": 2.0} for e in (1, 2, 3)
        ]
        known |= {
            "scores": {split: dict.fromkeys(TASKS[task][1], score) for split in ("dev", "test")},
            "counts": {"train": 1000, "test": len(UNITS)},
            "speed": {
                "train_examples_per_second": 100.0 * (place + 1),
                "train_tokens_per_second": 2000.0 * (place + 1),
                "latency_ms_p50": 1.5,
                "latency_ms_p95": 2.5,
                "unstable": architecture == "bert",
            },
            "memory": {"peak_rss_mib": 300.0 + place},
            "parameters": {"total": 10_000 * (place + 1), "embedding": 5000},
            "flops_per_example": 1e6 * (place + 1),
            "seconds": {"train": 60.0, "total": 90.0},
            "training": {"best_epoch": 3, "epochs": 3, "curve": curve},
            "data": {"test": "a" * 64},
        }
    return Record(**cell.to_dict() | known | fields, key=cell.key)


def fill(store: Store) -> None:
    """Three seeds, one seed, ties, a part of the data, every way not to end ok, two sections,
    outcomes."""
    for place, (architecture, task, scores) in enumerate(
        [
            ("dan", "sst2", (0.80, 0.81, 0.82)),
            ("bilstm", "sst2", (0.80, 0.81, 0.82)),
            ("evil", "sst2", (0.70, 0.71)),
            ("bert", "sst2", (0.60,)),
            ("dan", "conll2003_ner", (0.70, 0.72)),
            ("bilstm", "conll2003_ner", (0.85, 0.86)),
            ("evil", "fsdd", (0.2,)),
            ("bilstm", "fsdd", (0.3,)),
            ("dan", "wikiqa", (0.6,)),
        ]
    ):
        for seed, score in enumerate(scores):
            made = record(architecture, task, score, seed)
            said: list[Any] = [EVIL, *(("good", "bad")[(i + place) % 2] for i in range(1, len(UNITS)))]
            if TASKS[task][0] == "rank":  # scores of candidates
                said = [(i + place) % 2 / 2 for i in range(len(UNITS))]
            made.predictions = store.save_predictions(made, UNITS, said)
            right = (np.random.default_rng([place, seed]).random(len(UNITS)) < score).astype(float)
            slices = {
                "length in words": [("1 to 9", 60, score), ("10 to 19", 60, score - 0.1)],
                "class": [(EVIL, 60, score), ("good", 60, 0.9)],
            }
            counts = ([EVIL, "good"], [[40, 20], [10, 50]])
            outcomes = Outcomes(
                made.main_metric, UNITS, right, np.ones(len(UNITS)), slices, counts if task == "sst2" else None
            )
            store.save_outcomes(made, made.predictions, UNITS, outcomes)
            store.write(made)
    error = {"type": "ValueError", "message": f"no shape fits {EVIL}"}
    for made in (
        record("count", "sst2", 0.75, partial=True),
        record("lstm", "sst2", status="failed", error=error),
        record("rntn", "sst2", status="skipped", error={"type": "", "message": "needs trees"}),
        record("lstm", "wikiqa", status="oom", error=error),
        record("bert", "conll2003_ner", status="timeout", error=error),
        record("dan", "sst2", 0.9, tier="mini", protocol="smoke"),
        record("bilstm", "sst2", 0.95, tier="mini", protocol="smoke"),
    ):
        store.write(made)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built pages."""
    folder = tmp_path_factory.mktemp("results")
    fill(Store(folder))
    with pytest.MonkeyPatch.context() as patch:
        problems = registry.entries("problems")
        for module in (registry, lookup):
            patch.setattr(module, "entries", lambda sort: problems if sort == "problems" else entries(sort))
        patch.setattr(registry, "broken", lambda sort: {})
        assert leaderboard.main(["--results", str(folder)]) == 0
    return folder / "leaderboard"


@pytest.fixture
def opened(visit: Callable, site: Path) -> Callable:
    """Opens one of the built pages."""
    return lambda file: visit(site, file)


def test_every_page_is_opened_by_these_tests(site: Path):
    assert {path.name for path in site.glob("*.html")} == set(PAGES)


@pytest.mark.parametrize("file", PAGES)
def test_page_opens_cleanly_on_phone_and_wide_screen_in_light_and_dark(opened: Callable, barriers: Callable, file: str):
    """No error, no request that leaves the folder, nothing executed; no page that scrolls sideways;
    nothing that axe finds, such as text of too little contrast."""
    visit = opened(file)
    page = visit.page
    assert page.locator("h1").inner_text().strip()
    wrong = []
    for width in (1600, 400):
        page.set_viewport_size({"width": width, "height": 900})
        page.evaluate("document.querySelectorAll('details').forEach((details) => (details.open = true))")
        wide = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        if wide[0] > wide[1]:
            causes = page.evaluate(
                "[...document.querySelectorAll('main *, nav *, footer *')].filter((e) => !e.closest('.scroll, svg,"
                " pre') && e.getBoundingClientRect().right > innerWidth).map((e) =>"
                " `${e.tagName}.${e.className}`).slice(0, 5)"
            )
            wrong.append(f"{width} px: the page is {wide[0]} px wide, because of {causes}")
    if file not in SAME_BUT_FOR_NUMBERS:
        wrong += barriers(page)
        page.emulate_media(color_scheme="dark")
        wrong += [f"dark: {found}" for found in barriers(page, "color-contrast")]
    assert visit.wrong + wrong == []
    assert page.locator("img").count() == 0


def test_these_checks_see_what_is_wrong(visit: Callable, barriers: Callable, tmp_path: Path):
    """A check that passes everything would let every defect through."""
    (tmp_path / "bad.html").write_text(
        """<body style="background: #fff"><p style="color: #777">faint</p><p style="color: #767676">just enough</p>
<button>x</button>
        <div style="width: 3000px">wide</div><script>document.documentElement.dataset.ready = "yes"</script>
        <script>alert(1); console.error("said")</script>
        <img src="http://127.0.0.1:9/x.png"><script>nothing()</script><style>:focus { outline: none }</style>"""
    )
    bad = visit(tmp_path, "bad.html")
    kinds = {text.partition(":")[0] for text in bad.wrong}
    assert kinds == {"console", "dialog", "error", "request", "request failed"}
    found = {text.partition(":")[0]: text for text in barriers(bad.page)}
    assert {"image-alt", "document-title", "html-has-lang"} < {*found}
    assert "faint" in found["color-contrast"] and "just enough" not in found["color-contrast"]
    assert bad.page.evaluate("document.documentElement.scrollWidth > innerWidth")
    bad.page.evaluate(FOCUSED)
    assert bad.page.evaluate(MISSED) == ["BUTTON. x"]
    bad.page.keyboard.press("Tab")
    assert bad.page.evaluate("[...unseen]") == ["BUTTON. x"]


def test_a_name_that_is_markup_shows_as_text(opened: Callable):
    """Plugins and records come from others: their names must not run where results are read."""
    for file in (
        "index.html",
        "task-sst2.html",
        "architecture-evil.html",
        "compare.html#section=local/equal/full&task=sst2&a=evil&b=dan",
    ):
        visit = opened(file)
        assert EVIL in visit.page.locator("main").inner_text(), file
        assert visit.wrong == []


def ordered(page: Any, column: int) -> list[float | None]:
    """The numbers by which a column of the first sortable table sorts, None for what has none, in
    the rows' order."""
    cells = page.locator(f"table[data-sortable] >> nth=0 >> tbody tr > :nth-child({column + 1})").all()
    return [float(value) if (value := cell.get_attribute("data-order")) else None for cell in cells]


def column(page: Any, name: str) -> int:
    """The place of a column of the first sortable table."""
    names = [text.strip() for text in page.locator("table[data-sortable] >> nth=0 >> thead th").all_inner_texts()]
    return next(i for i, text in enumerate(names) if text.startswith(name))


def methods(page: Any) -> list[str]:
    return [
        text.strip() for text in page.locator("table[data-sortable] >> nth=0 >> tbody th[scope=row]").all_inner_texts()
    ]


@pytest.mark.parametrize("by", ["click", "keyboard"])
def test_a_click_on_a_column_sorts_by_value_with_gaps_last(opened: Callable, by: str):
    """ "1,000" is more than "900", and a failed cell is never the best."""
    page = opened("task-sst2.html").page
    place = column(page, "parameters")
    header = page.locator("table[data-sortable] >> nth=0 >> thead th").nth(place)

    def sort(order: str) -> list[float | None]:
        if by == "click":
            header.click()
        else:
            header.locator("[tabindex]").or_(header).last.press("Enter")
        page.wait_for_selector(f"table[data-sortable] >> nth=0 >> thead th[aria-sort={order}]")
        return ordered(page, place)

    for values, descending in ((sort("ascending"), False), (sort("descending"), True)):
        assert values[-2:] == [None, None], "two cells did not end ok"
        assert values[:-2] == sorted(values[:-2], reverse=descending) != []
        assert len(set(values)) > 3


def test_search_and_filter_leave_the_rows_that_fit(opened: Callable):
    page = opened("task-sst2.html").page
    everything = methods(page)
    controls = page.locator(".controls >> nth=0")
    search = controls.get_by_label("Search")
    search.press_sequentially("bilstm")
    assert methods(page) == [name for name in everything if "biLSTM" in name] != []
    assert f"of {len(everything)} rows" in controls.locator("output").inner_text()
    search.fill("no row has this")
    assert methods(page) == []
    search.fill("needs trees")  # the reason of one skipped cell, in its note alone
    assert len(methods(page)) == 1
    search.fill("")
    assert methods(page) == everything

    select = controls.locator("select").first
    place = column(
        page, controls.locator("label", has=page.locator("select")).first.evaluate("e => e.firstChild.textContent")
    )
    for choice in select.locator("option").all_inner_texts()[1:]:
        select.select_option(choice)
        rows = page.locator("table[data-sortable] >> nth=0 >> tbody tr")
        shown = {text.strip() for text in rows.locator(f":scope > :nth-child({place + 1})").all_inner_texts()}
        assert shown == {choice}
    select.select_option("")
    assert methods(page) == everything


def test_plots_are_drawn_with_their_points(opened: Callable):
    """An empty box where quality against speed should be."""
    page = opened("task-sst2.html").page
    draw_all(page)
    plots = page.locator(".plot").all()
    assert len(plots) >= 3
    for plot in plots:
        plot.scroll_into_view_if_needed()
        assert plot.locator("svg .trace, svg .boxlayer path, svg .barlayer path").count() > 0, plot.get_attribute("id")
        assert plot.bounding_box()["height"] > 200
    told = page.evaluate(
        "[...document.querySelectorAll('.plot')].map((box) => JSON.stringify(box.data.map((trace) => trace.name ??"
        " trace.text)))"
    )
    assert any("Deep averaging" in text for text in told)


def draw_all(page: Any) -> None:
    """Have every plot come into sight, which draws it."""
    for plot in page.locator(".plot").all():
        plot.scroll_into_view_if_needed()
        page.wait_for_function("id => document.getElementById(id).dataset.drawn", arg=plot.get_attribute("id"))
    page.evaluate("scrollTo(0, 0)")


MANY_NAMES = """document.addEventListener("DOMContentLoaded", () => {
  const source = document.querySelector("script[data-plot]");
  const plot = JSON.parse(source.textContent);
  plot.data = Array.from({ length: 30 }, (_, i) => ({ ...plot.data.at(-1), name: `a family with a name, ${i}` }));
  source.textContent = JSON.stringify(plot);
});"""


def test_a_long_legend_is_no_box_that_scrolls_within_the_page_of_a_phone(opened: Callable):
    """Who moved the page with a thumb moved the legend."""
    page = opened("story.html").page
    page.add_init_script(MANY_NAMES)
    page.set_viewport_size({"width": 390, "height": 844})
    page.reload()
    plot = page.locator(".plot").first
    plot.scroll_into_view_if_needed()
    page.wait_for_selector(".plot[data-drawn]")
    assert plot.locator(".legend .traces").count() == 30
    bars = plot.locator(".legend .scrollbar")
    assert all(bar.bounding_box() is None or bar.bounding_box()["height"] == 0 for bar in bars.all())
    assert plot.evaluate("box => box._fullLayout._size.h") > 200, "the legend leaves the plot its height"


def test_plots_are_drawn_when_they_come_into_sight(opened: Callable):
    """Twenty at once took longer than a reader waits, and plotly is four fifths of a page."""
    page = opened("task-sst2.html").page
    page.set_viewport_size({"width": 1200, "height": 300})
    page.reload()
    page.wait_for_function("document.documentElement.dataset.ready === 'yes'")
    assert page.locator(".plot[data-drawn]").count() == 0
    assert not page.evaluate("'Plotly' in window")
    draw_all(page)
    assert page.locator(".plot .main-svg").count() > 0


def test_plots_follow_the_colour_scheme(opened: Callable):
    page = opened("task-sst2.html").page
    draw_all(page)
    papers = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_timeout(200)
        papers.append(page.evaluate("getComputedStyle(document.querySelector('.plot .main-svg')).backgroundColor"))
    assert papers == ["rgb(255, 255, 255)", page.evaluate("getComputedStyle(document.body).backgroundColor")]
    assert papers[0] != papers[1]


def test_compare_shows_scores_difference_and_examples_of_two_architectures(opened: Callable):
    """Who does better where: 81.0 against 70.5, and test units that one gets right and the other
    wrong."""
    visit = opened("compare.html")
    page = visit.page
    page.get_by_label("Section").select_option("local/equal/full")
    page.get_by_label("Task").select_option("sst2")
    page.get_by_label("Architecture 1").select_option(label="Deep averaging")
    page.get_by_label("Architecture 2").select_option(label=EVIL)
    rows = page.get_by_role("region", name="Side by side").locator("tbody tr")
    cells = {row.locator("th").inner_text(): row.locator("td").all_inner_texts() for row in rows.all()}
    assert [text.split(" ")[0] for text in cells["accuracy"]] == ["81.0", "70.5"]
    assert cells["difference to Deep averaging, points"] == ["–", "−10.5"]
    assert cells["place"][1].endswith("unknown whether others would keep the order)")
    p = cells["p-value of that difference, not corrected"]
    assert p[0] == "–"
    assert 0 < float(p[1]) < 1
    alone = page.get_by_role("region", name="Errors of Deep averaging alone")
    assert alone.locator("tbody th").first.inner_text().startswith("u")
    page.get_by_role("button", name="Add an architecture").click()
    assert page.get_by_label("Architecture 3").count() == 1
    assert "b=evil" in page.url
    assert visit.wrong == []


FOCUSED = """() => {
  window.reached = new Set(); window.unseen = new Set();
  window.named = (e) => `${e.tagName}.${e.className} ${e.textContent.trim().slice(0, 20)}`;
  addEventListener("focusin", ({ target }) => {
    reached.add(target);
    const style = getComputedStyle(target), box = target.getBoundingClientRect();
    const marked = (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0) || style.boxShadow !== "none";
    if (!marked || box.width === 0 || box.right <= 0) unseen.add(named(target));
  });
}"""
MISSED = """() => [...document.querySelectorAll("a[href], button, input, select, summary, [tabindex='0']")]
  .filter((e) => e.checkVisibility() && !e.disabled && !reached.has(e)).map(named)"""


@pytest.mark.parametrize(
    "file", ["index.html", "task-sst2.html", "architecture-evil.html", "compare.html", "story.html"]
)
def test_the_keyboard_reaches_every_control_and_shows_where_it_is(opened: Callable, file: str):
    page = opened(file).page
    draw_all(page)  # what is drawn has buttons, too
    page.evaluate(FOCUSED)
    for _ in range(
        page.evaluate("document.querySelectorAll('a, button, input, select, summary, [tabindex]').length") + 5
    ):
        page.keyboard.press("Tab")
    assert page.evaluate(MISSED) == []
    assert page.evaluate("[...unseen]") == []


@pytest.mark.parametrize("file", ["index.html", "task-sst2.html"])
def test_paper_holds_the_tables_and_nothing_to_click(opened: Callable, file: str):
    """On paper there is nothing to navigate, and a table that scrolls is cut off."""
    page = opened(file).page
    page.emulate_media(media="print")
    assert not page.locator("nav").is_visible()
    for hidden in page.locator(".controls, .skip").all():
        assert not hidden.is_visible()
    assert page.locator("table").first.is_visible()
    assert page.locator(".scroll").first.evaluate("e => getComputedStyle(e).overflowX") == "visible"


def test_tables_read_without_javascript(browser: Any, site: Path):
    """Archives and careful readers switch scripts off."""
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((site / "task-sst2.html").as_uri())
    assert "81.0 ± 1.0 (3)" in page.locator("table").first.inner_text()
    context.close()


# --- the picture of the front page, and choices in the address ---


def shown_rows(page: Any) -> list[str]:
    """Names of the rows of the picture that can be seen."""
    return [row.inner_text() for row in page.locator(".picture:visible tbody tr:visible th[scope=row]").all()]


def test_the_picture_can_be_filtered_and_a_link_keeps_the_choice(opened: Callable, visit: Callable, site: Path):
    page = opened("index.html").page
    everything = shown_rows(page)
    assert {"Deep averaging", "biLSTM", "Counting"} <= set(everything)
    page.get_by_label("Method").select_option("classical")
    assert shown_rows(page) == ["Counting"]
    assert "method=classical" in page.url
    again = visit(site, "index.html#method=classical")
    assert shown_rows(again.page) == ["Counting"]
    again.page.get_by_label("Method").select_option("")
    assert shown_rows(again.page) == everything and "method" not in again.page.url
    assert again.wrong == []


def test_a_square_leads_to_its_row(opened: Callable):
    """From the picture a reader wants the interval, the cost and the notes of that one score."""
    page = opened("index.html").page
    row = page.locator(".picture:visible tr", has=page.get_by_role("rowheader", name="biLSTM", exact=True))
    row.locator("td a").first.click()
    page.wait_for_function("document.documentElement.dataset.ready === 'yes'")
    target = page.locator("tr:target")
    assert target.locator("th").inner_text().strip() == "biLSTM"
    assert target.is_visible()


def test_search_sort_and_columns_of_a_table_stand_in_the_address(opened: Callable, visit: Callable, site: Path):
    """Lost on reload, they could not be shown to anybody."""
    page = opened("task-sst2.html").page
    controls = page.locator(".controls >> nth=0")
    controls.get_by_label("Search").fill("bert 2015")
    assert methods(page) == ["BERT"], "a paper is found, too"
    controls.get_by_label("Search").fill("")
    everything = methods(page)
    page.locator("table[data-sortable] >> nth=0 >> thead th").nth(column(page, "parameters")).click()
    page.wait_for_selector("table[data-sortable] >> nth=0 >> thead th[aria-sort=ascending]")
    ascending = methods(page)
    controls.locator("summary").click()
    controls.get_by_label("kind", exact=True).and_(page.locator("input")).check()
    assert column(page, "kind") > 0
    again = visit(site, "task-sst2.html" + page.url.partition("task-sst2.html")[2]).page
    assert methods(again) == ascending != everything
    assert column(again, "kind") > 0


def test_two_ticked_rows_lead_to_their_comparison(opened: Callable):
    page = opened("task-sst2.html").page
    for name in ("biLSTM", "Deep averaging"):
        page.get_by_label(f"Compare {name}").first.check()
    page.get_by_role("link", name="Compare the 2 ticked", exact=True).click()
    page.wait_for_function("document.documentElement.dataset.ready === 'yes'")
    shown = page.locator("#comparison").inner_text()
    assert "biLSTM" in shown and "Deep averaging" in shown


def test_the_link_of_seven_ticked_rows_says_that_it_compares_six(visit: Callable, tmp_path: Path):
    """It promised all, and the comparison left one out without a word."""
    for number in range(7):
        judged(Store(tmp_path), "1" * (50 + number) + "0" * (50 - number), architecture=f"net{number}")
    assert leaderboard.main(["--results", str(tmp_path)]) == 0
    page = visit(tmp_path / "leaderboard", "task-sst2.html").page
    for box in page.get_by_role("checkbox", name="Compare ").all():
        box.check()
    page.get_by_role("link", name="Compare the first 6 of 7 ticked").click()
    page.wait_for_selector("#comparison:not([aria-busy]) h2")
    assert page.locator("#slots select").count() == 6
