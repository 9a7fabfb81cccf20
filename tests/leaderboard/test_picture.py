"""The picture of the front page: how far each score is from the floor to the best, and why a
square is empty."""

from __future__ import annotations

import pytest

from harness.leaderboard.board import read
from harness.leaderboard.pages.front_page import MINI_REMARK, picture_parts, remarks
from harness.leaderboard.pages.page import templates
from harness.leaderboard.pages.runs_page import missing_table
from harness.leaderboard.pages.task_page import task_tables
from harness.leaderboard.picture import Picture, Square, fits, pictures, share_of
from harness.leaderboard.ranking import SMOKE_REMARK
from harness.records import Store
from tests.support.made_pages import architecture, register_alone, task
from tests.support.made_records import judged, record


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts, pairs and a floor; three tasks of two types."""
    entries = [
        architecture("count", "Counting", family="classical", year=1990),
        architecture("dan", "DAN", family="feedforward"),
        architecture("bilstm", "BILSTM"),
        architecture("esim", "ESIM", kind="pair", family="matching"),
        architecture("tree", "TREE", kind="tree"),
        architecture("majority", "most frequent class", kind="floor", family="floors", year=1900),
    ]
    tasks = [
        task("sst2", "classify", "accuracy"),
        task("ag_news", "classify", "accuracy"),
        task("fsdd", "transcribe", "wer"),
    ]
    register_alone(monkeypatch, entries, tasks)


def right(count: int) -> str:
    return "1" * count + "0" * (100 - count)


def only(store: Store) -> Picture:
    (picture,) = pictures(read(store.folder))
    return picture


def squares(picture: Picture, block: int = 0) -> dict[str, dict[str, Square]]:
    return {
        line.architecture: dict(zip(picture.tasks, line.squares, strict=True)) for line in picture.blocks[block].lines
    }


def test_a_share_is_the_way_from_the_floor_to_the_best():
    assert share_of(0.75, 0.5, 1.0) == 0.5
    assert (share_of(0.4, 0.5, 1.0), share_of(1.1, 0.5, 1.0)) == (0, 1)
    assert share_of(0.5, 0.5, 0.5) == 0, "nobody is above the floor"
    assert share_of(-20.0, -100.0, -10.0) == pytest.approx(8 / 9), "error rates count backwards"


def test_each_square_says_what_is_known(store):
    """Grey words alone hid what fails behind what can never run."""
    judged(store, right(40), architecture="majority")
    for name, count in (("count", 90), ("bilstm", 65), ("dan", 41)):
        judged(store, right(count), architecture=name)
    store.write(record("tree", status="oom", error={"type": "MemoryError", "message": "12 GiB"}))
    store.write(record("tree", "ag_news", 0.8))
    store.write(record("esim", status="skipped", error={"type": "unfit", "message": "reads pairs"}))
    store.write(record("esim", "fsdd", status="skipped", error={"type": "Absent", "message": "no file"}))
    found = squares(only(store))
    of_sst2 = {name: row["sst2"] for name, row in found.items()}
    assert "majority" not in found, "a floor is no competitor"
    assert (of_sst2["count"].style, of_sst2["count"].text, of_sst2["count"].share) == ("score", "90.0", 1)
    assert of_sst2["bilstm"].share == 0.5
    assert (of_sst2["dan"].style, of_sst2["dan"].share) == ("floor", 0), "the interval of 41 reaches 40"
    assert of_sst2["tree"].style == "failed" and "oom: MemoryError: 12 GiB" in of_sst2["tree"].title
    assert of_sst2["esim"] == Square("unfit")
    assert found["esim"]["ag_news"].style == "unfit", "of the same type as what its kind is not for"
    assert found["esim"]["fsdd"].style == "skipped" and "no file" in found["esim"]["fsdd"].title
    assert found["bilstm"]["ag_news"].style == "open", "it could be run"
    assert found["tree"]["ag_news"].style == "apart", "there is no floor to measure from"
    assert of_sst2["count"].link == "task-sst2.html#local-equal-full-count"


def test_a_square_leads_to_the_row_of_its_score(store):
    """Of two settings the square showed 40.0, and led to the row of 90.0, which the table has
    first."""
    for hidden, count in ((1, 40), (2, 90)):
        judged(store, right(count), architecture="dan", hyperparameters={"hidden": hidden})
    judged(store, right(30), architecture="bilstm")
    square = squares(only(store))["dan"]["sst2"]
    [table] = task_tables(read(store.folder), "sst2")
    rows = {f"task-sst2.html#{row.id}": row.cells[0][0].text for row in table.blocks[0].rows}
    assert len(rows) == 3 and rows[square.link].startswith(f"{square.text} ")


def test_rows_are_sorted_by_the_mean_over_the_tasks_of_the_commonest_type(store):
    """A row with half of the tasks may have the easy ones."""
    for name in ("sst2", "ag_news"):
        judged(store, right(40), architecture="majority", task=name)
    for name, counts in (("dan", (90, 70)), ("bilstm", (80, 90))):
        for task_name, count in zip(("sst2", "ag_news"), counts, strict=True):
            judged(store, right(count), architecture=name, task=task_name)
    judged(store, right(99), architecture="count")
    picture = only(store)
    lines = picture.blocks[0].lines
    assert [line.architecture for line in lines] == ["bilstm", "dan", "count"]
    assert lines[0].means["Classification"] == (pytest.approx((40 / 59 + 1) / 2), 2)
    shown = picture_parts(read(store.folder))["pictures"][0]["blocks"][0]["rows"]
    assert [row["mean"] for row in shown] == ["84", "72", "1 of 2"]
    assert [row["method"] for row in shown] == ["neural", "neural", "classical"]


def test_a_task_without_a_floor_is_none_of_those_that_a_mean_counts(store):
    """No row could have all of them, and the column of means had none."""
    judged(store, right(40), architecture="majority")
    for name in ("sst2", "imdb"):
        judged(store, right(80), architecture="dan", task=name)
    [shown] = picture_parts(read(store.folder))["pictures"]
    assert {task["name"]: task["counted"] for task in shown["tasks"]} == {"SST-2": True, "IMDB": False}
    assert [row["mean"] for row in shown["blocks"][0]["rows"]] == ["100"]


def test_where_no_task_has_a_floor_no_row_has_a_mean(store):
    judged(store, right(80), architecture="dan")
    [shown] = picture_parts(read(store.folder))["pictures"]
    assert [row["mean"] for row in shown["blocks"][0]["rows"]] == [""]


def test_recordings_are_a_type_of_their_own(store):
    """A mean over texts and recordings was one that no system of counts could have: each was at
    best "6 of 7"."""
    words = {"name": "SST2", "type": "classify", "inputs": ["text", "tree"]}
    store.write(record("tree", score=0.8, registered={"task": words}))
    recordings = words | {"name": "AG_NEWS", "inputs": ["audio"]}
    store.write(record("bilstm", "ag_news", 0.8, registered={"task": recordings}))
    unfit = {"type": "unfit", "message": "reads text, but ag_news offers audio"}
    store.write(record("tree", "ag_news", status="skipped", error=unfit))
    picture = only(store)
    assert picture.types == ["Classification", "Classification of recordings"]
    assert squares(picture)["tree"]["ag_news"] == Square("unfit")
    board = read(store.folder)
    assert not fits(board, "tree", "ag_news") and fits(board, "tree", "sst2")
    assert board.type_in_words("fsdd") == "Transcription", "all tasks of this type are of recordings"


def test_a_task_on_which_nobody_is_above_the_floor_does_not_sort_the_rows(store):
    """All 97 rows of WikiQA were at the floor, and the front page was sorted by their zeros."""
    for name in ("dan", "bilstm", "count"):
        judged(store, right(42), architecture=name, task="fsdd", metric="wer")
    judged(store, right(41), architecture="majority", task="fsdd", metric="wer")
    judged(store, right(40), architecture="majority")
    judged(store, right(90), architecture="dan")
    picture = only(store)
    assert (picture.types, picture.tasks) == (["Classification", "Transcription"], ["sst2", "fsdd"])
    assert squares(picture)["dan"]["fsdd"].style == "floor"


def test_a_row_that_sees_more_says_so_though_no_ordinary_row_is_there(store):
    """The only block of a picture had no title, and stood among those that see labels alone."""
    judged(store, right(95), architecture="tree", sees=["labels of phrases"])
    assert [(block.title, block.more) for block in only(store).blocks] == [("sees: labels of phrases", True)]


def test_a_pair_that_was_run_in_any_section_is_not_missing(store):
    """One of an architecture's rows sees more: in that section all its other tasks look empty."""
    judged(store, right(70), architecture="dan")
    judged(store, right(70), architecture="dan", task="fsdd", metric="wer")
    judged(store, right(80), architecture="dan", sees=["labels of phrases"])
    judged(store, right(60), architecture="bilstm")
    assert ": 1 pairs" in missing_table(read(store.folder)).lead[0], "bilstm on fsdd"


def test_what_sees_more_has_a_best_of_its_own(store):
    """Trees that saw the labels of phrases made all ordinary rows look pale."""
    judged(store, right(40), architecture="majority")
    judged(store, right(70), architecture="dan")
    judged(store, right(95), architecture="tree", sees=["labels of phrases"])
    picture = only(store)
    assert [(block.title, block.more) for block in picture.blocks] == [("", False), ("sees: labels of phrases", True)]
    assert squares(picture)["dan"]["sst2"].share == 1
    assert squares(picture, 1)["tree"]["sst2"].share == 1


def test_the_grid_of_all_architectures_stays_a_light_page():
    """A sentence in every square made 800 KB of 200 rows by 30 tasks, and a phone waited."""
    square = Square(
        "score", "81.2", link="task-conll2003_chunk.html#local-equal_2-small-attention_matching", share=0.81
    )
    row = {"name": "An architecture", "link": "architecture-attention_matching.html", "family": "convolutional"}
    row |= {"method": "neural", "means": ",".join(["0.8123 14"] * 12), "mean": "81"}
    row["squares"] = [*[square] * 10, *[Square("open", "·")] * 10, *[Square("unfit")] * 10]
    task = {"name": "CoNLL-2003 chunks", "link": "task-conll2003_chunk.html", "type": "Tagging", "metric": "F1"}
    task["counted"] = True
    block = {"title": "", "sees": "ordinary", "rows": [row] * 200}
    shown = (
        templates()
        .from_string("{% import 'picture.html' as macros %}{{ macros.picture(each) }}")
        .render(each={"id": "local-equal_2-small", "title": "Local", "tasks": [task] * 30, "blocks": [block]})
    )
    assert shown.count("--share:0.81") == 2000
    assert len(shown.encode()) < 300 * 2**10


def test_runs_that_mean_nothing_have_no_picture_and_a_banner(store):
    """What `make run` shows first must mislead nobody."""
    store.write(record("dan", score=1.0, tier="mini", protocol="smoke"))
    board = read(store.folder)
    assert pictures(board) == []
    assert remarks(board) == [SMOKE_REMARK, MINI_REMARK]
