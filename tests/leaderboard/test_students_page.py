"""The page of students: who wants a small system reads there what it keeps of its teacher."""

from __future__ import annotations

import json

import pytest

from harness.leaderboard.pages.students_page import students_page
from harness.records import Record, Store
from tests.support.made_pages import architecture, board_of, cells, html_of, task
from tests.support.made_records import record

NAMES = [architecture("bert", "BERT"), architecture("minilm", "MiniLM"), architecture("dan", "Deep averaging")]
TASKS = [task("sst2", "classify", "accuracy")]
MIB = 1 << 20


def ancestor(role: str, key: str, architecture: str = "bert", task: str = "sst2") -> dict:
    return {"key": key * 16, "role": role, "architecture": architecture, "task": task}


def tuned(architecture: str, score: float, *lineage: dict, **fields) -> Record:
    known = {"data": {"test": "t" * 64}, "parameters": {"total": MIB}, "flops_per_example": 2e6}
    parents = {
        each["role"]: {name: each[name] for name in ("architecture", "key", "task")} | {"row": each["architecture"]}
        for each in lineage
    }
    settings = {"hidden": 100, **({"parents": parents} if lineage else {})}
    known |= {"hyperparameters": settings, **({"lineage": list(lineage)} if lineage else {})}
    return record(architecture, score=score, **known | fields)


def page(store: Store, *records: Record):
    for each in records:
        store.write(each)
    return students_page(board_of(store, NAMES, TASKS))


def test_a_student_stands_below_its_teacher_with_the_difference_and_the_size(store):
    teacher = tuned("bert", 0.80)
    student = tuned("dan", 0.75, ancestor("teacher", "e") | {"key": teacher.key}, parameters={"total": MIB // 2})
    assert cells(page(store, teacher, student, tuned("minilm", 0.9))) == [
        ["BERT", "–", "80.0 (1)", "–", "4", "2 M", "–", "–"],
        ["Deep averaging", "BERT", "75.0 (1)", "−5.0", "2", "2 M", "–", "–"],
    ]


def test_a_teacher_of_plain_text_is_judged_by_what_was_tuned_from_it(store):
    """MiniLM learns from BERT before a task is known, and is tuned itself: so is BERT."""
    tuned_bert = tuned("bert", 0.8, ancestor("weights", "b", task="text_mix"))
    chain = ancestor("teacher", "b", task="text_mix"), ancestor("weights", "d", "minilm", "text_mix")
    found = cells(page(store, tuned_bert, tuned("minilm", 0.82, *chain), tuned("bert", 0.7)))
    assert [row[:4] for row in found] == [
        ["BERT", "training rows of text_mix", "80.0 (1)", "–"],
        ["MiniLM", "BERT on text_mix", "82.0 (1)", "+2.0"],
    ]


def test_an_architecture_without_its_teacher_stands_beside_it(store):
    taught = tuned("dan", 0.75, ancestor("teacher", "b"))
    found = cells(page(store, taught, tuned("dan", 0.7), tuned("bert", 0.9)))
    assert [row[:4] for row in found] == [
        ["Deep averaging", "no teacher", "70.0 (1)", "–"],
        ["Deep averaging", "BERT", "75.0 (1)", "–"],
    ]


def test_where_lower_is_better_the_best_is_first_and_differences_are_of_what_is_shown(store):
    """A difference of nats is none of perplexities."""
    fields = {"task": "mix", "main_metric": "nats_per_token"}
    teacher = tuned("bert", {"nats_per_token": 2.0}, **fields)
    taught = ancestor("teacher", "e") | {"key": teacher.key}
    students = (
        tuned("dan", {"nats_per_token": 3.0}, taught, **fields),
        tuned("minilm", {"nats_per_token": 1.0}, taught, **fields),
    )
    for each in (teacher, *students):
        store.write(each)
    made = students_page(board_of(store, NAMES, [task("mix", "text", "nats_per_token")]))
    assert [[row[0], row[3]] for row in cells(made)] == [["BERT", "–"], ["MiniLM", "−4.7"], ["Deep averaging", "+12.7"]]


def test_seeds_of_a_student_are_compared_with_those_of_the_teacher(store):
    by_seed = [tuned("bert", score, seed=seed) for seed, score in enumerate((0.8, 0.9))]
    students = [
        tuned("dan", 0.75, ancestor("teacher", "e") | {"key": teacher.key}, seed=seed)
        for seed, teacher in enumerate(by_seed)
    ]
    assert [row[:4] for row in cells(page(store, *by_seed, *students))] == [
        ["BERT", "–", "85.0 ± 7.1 (2)", "–"],
        ["Deep averaging", "BERT", "75.0 ± 0.0 (2)", "−10.0"],
    ]


@pytest.mark.parametrize("other", [{"data": {"test": "u" * 64}}, {"protocol": "paper"}])
def test_a_teacher_on_another_test_is_not_subtracted(store, other):
    teacher = tuned("bert", 0.8, **other)
    student = tuned("dan", 0.75, ancestor("teacher", "e") | {"key": teacher.key})
    assert [row[:4] for row in cells(page(store, teacher, student))] == [["Deep averaging", "BERT", "75.0 (1)", "–"]]


def test_students_on_two_tests_of_a_task_have_tables_and_plots_of_their_own(store):
    """Two plots of one id are drawn into one box, and the other stays empty."""
    taught = ancestor("teacher", "b")
    tests = [{"data": {"test": letter * 64}, "seed": seed} for seed, letter in enumerate("tu")]
    [made] = page(store, *(tuned("dan", 0.75, taught, **test) for test in tests))
    for shown in (made.parts["tables"], made.parts["plots"]):
        assert len({each.id for each in shown}) == 2
        assert ["test data tttttttttttt" in each.title for each in shown] == [True, False]
        assert ["test data uuuuuuuuuuuu" in each.title for each in shown] == [False, True]


def test_a_student_that_reads_more_than_its_teacher_stands_in_its_table(store):
    teacher = tuned("bert", 0.8)
    student = tuned("dan", 0.75, ancestor("teacher", "e") | {"key": teacher.key}, sees=["texts without labels"])
    assert [row[3] for row in cells(page(store, teacher, student))] == ["–", "−5.0"]


def test_without_a_student_there_is_no_page(store):
    parents = ancestor("weights", "b"), ancestor("vectors", "c")
    smoke = tuned("dan", 0.9, ancestor("teacher", "b"), protocol="smoke")
    assert page(store, tuned("bert", 0.8), tuned("dan", 0.7, *parents), smoke) == []


def test_the_plot_has_a_point_for_each_speed_that_was_measured(store):
    speed = {"architecture": "dan", "status": "ok", "task": "sst2", "ruler": {"examples_per_second": 100}}
    row = speed | {"examples_per_second": 50.0, "latency_ms": 0.5, "memory_mib": 300.0}
    (store.folder / "speed.json").write_text(json.dumps({"models": [row]}))
    teacher = tuned("bert", 0.8)
    student = tuned("dan", 0.75, ancestor("teacher", "e") | {"key": teacher.key})
    made = page(store, teacher, student)
    assert [(line["name"], line["x"], line["y"]) for line in made[0].parts["plots"][0].data] == [
        ("Deep averaging, taught by BERT", [0.5], [75.0])
    ]
    assert cells(made)[1][-2:] == ["0.5", "50"]


def test_texts_of_records_are_no_markup(store):
    made = page(store, tuned("dan", 0.8, ancestor("teacher", "b", "<img src=x>")))
    assert "<img" not in html_of(made[0]) and "<img" not in json.dumps(made[0].parts["plots"][0].data)
