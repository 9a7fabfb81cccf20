"""The checks of a task: each finds the fault that it is there for, and a sound task passes all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness import registry
from harness.contract.tasks import check
from harness.problems.classify import ClassifyProblem

SOUND = """
from random import Random

from harness.registry import register_task
from harness.task import Task

SIZES = {"train": 40, "dev": 10, "test": 10}


@register_task(
    "under_test", name="Test", type="classify", metrics=("accuracy", "macro_f1"), main_metric="accuracy",
    sizes={"train": 40, "dev": 10, "test": 10}, epochs=3, protocol="-",
)
class Mine(Task):
    def mini(self, split):
        random = Random(split)
        for number in range(SIZES[split]):
            label = ("bad", "good")[number % 2]
            yield {"id": f"{split}-{number}", "text": f"{label} film {random.random()}", "label": label}

    def local(self, folder, split):
        for number, line in enumerate((folder / f"{split}.txt").read_text().splitlines()):
            yield {"id": f"{split}-{number}", "text": line, "label": line.split()[0]}
"""


@pytest.fixture
def results(tmp_path: Path, without_plugins: None) -> Callable[..., dict[str, tuple[bool, str]]]:
    """Checks the sound task with one piece of its text replaced: what was found, by check."""

    def run(old: str = "", new: str = "", data_dir: Path | None = None) -> dict[str, tuple[bool, str]]:
        assert old in SOUND
        file = tmp_path / "mine.py"
        file.write_text(SOUND.replace(old, new, 1))
        registry.add_plugin(file)
        entry = registry.entry("tasks", "under_test")
        return {result.name: (result.passed, result.message) for result in check(entry, data_dir)}

    return run


def write(folder: Path, train: int = 40, dev: int = 10, test: int = 10) -> Path:
    for split, count in (("train", train), ("dev", dev), ("test", test)):
        lines = [f"{('bad', 'good')[n % 2]} film {split} {n}\n" for n in range(count)]
        (folder / f"{split}.txt").write_text("".join(lines))
    return folder


def test_a_sound_task_passes_in_both_tiers(results, tmp_path):
    found = results(data_dir=write(tmp_path))
    assert {name: message for name, (passed, message) in found.items() if not passed} == {}
    for tier in ("mini", "local"):
        assert found[f"{tier}: every split can be read"] == (True, "train 40, dev 10, test 10")
        assert found[f"{tier}: its metrics can be computed"] == (True, "majority: accuracy 0.500, macro_f1 0.333")


@pytest.mark.parametrize(
    ("old", "new", "name", "message"),
    [
        ("SIZES = {", "import no_such_module\nSIZES = {", "its file can be imported", "no_such_module"),
        ("Mine(Task)", "Mine", "its file can be imported", "derive it from harness.task.Task"),
        ('"macro_f1")', '"macro-f1")', "its metrics are known", "did you mean macro_f1"),
        ('metrics=("accuracy", ', 'metrics=("span_f1", "accuracy", ', "mini: its metrics can be computed", "'tags'"),
        ("Random(split)", "Random()", "mini: a second reading gives the same rows", "train differs: fix the seed"),
        ('"text": f"', '"sentence": f"', "mini: every split can be read", "has no column 'text'"),
        (
            "class Mine(Task):",
            'class Mine(Task):\n    inputs = ("text", "tree")',
            "mini: rows have what systems read",
            "tree",
        ),
        (
            '"label": label}',
            '"label": label if split == "train" else label.title()}',
            "mini: answers of dev and test occur in train",
            "dev: the label of 10 of 10 rows is not in train: 'Bad', 'Good'",
        ),
        (
            "Random(split)",
            "Random(0)",
            "mini: dev and test have rows of their own",
            "every row of dev is a row of train",
        ),
        ('"label": label}', '"label": 1 // 0}', "mini: every split can be read", "ZeroDivisionError"),
    ],
)
def test_a_fault_is_found_by_its_check(results, old, new, name, message):
    """A new task's author runs this before the first grid, which would end in failed cells."""
    passed, said = results(old, new)[name]
    assert not passed and message in said


def test_a_task_without_rows_says_what_it_lacks(results):
    both = SOUND[SOUND.index("    def mini") :]
    passed, said = results(both, "    pass\n")["it has rows"]
    assert not passed and "mini()" in said and "local()" in said


def test_a_task_without_a_generated_corpus_says_how_it_is_run(results, tmp_path):
    mini = SOUND[SOUND.index("    def mini") : SOUND.index("    def local")]
    found = results(mini, "", data_dir=write(tmp_path))
    assert all(passed for passed, _ in found.values())
    assert "--tier local" in found["it has rows"][1] and "local: every split can be read" in found


def test_files_are_read_only_when_there_is_a_folder(results):
    assert results()["local"] == (True, "not read without --data-dir")


@pytest.mark.parametrize(
    ("sizes", "passed", "message"),
    [
        (dict(test=9), False, "test has 9 rows, its sizes say 10"),
        (dict(train=41), False, "train has 41 rows, its sizes say 40"),
        (dict(dev=9), False, "dev has 9 rows"),
        (dict(train=39, dev=9), True, "records will be partial"),
    ],
)
def test_sizes_other_than_declared_are_told(results, tmp_path, sizes, passed, message):
    """Only a smaller training set, and a dev set held out of it, are what a record can say."""
    found = results(data_dir=write(tmp_path, **sizes))["local: sizes are as declared"]
    assert found[0] is passed and message in found[1]


def test_a_few_unseen_labels_and_repeated_rows_are_counted_and_no_fault(results):
    """Official test sets have both."""
    text = '{random.random()}", "label": label}'
    other = '{number if number < 3 else random.random()}", "label": "odd" if split + str(number) == "test9" else label}'
    found = results(text, other)
    unseen = "test: the label of 1 of 10 rows is not in train: 'odd'"
    repeated = "3 of 10 rows of dev read as a row of train; 3 of 10 rows of test read as a row of train"
    assert found["mini: answers of dev and test occur in train"] == (True, unseen)
    assert found["mini: dev and test have rows of their own"] == (True, repeated)


def test_rows_that_a_split_holds_twice_are_counted(results):
    """Each counts twice in a score."""
    found = results("{random.random()}", "{split} {number // 4}")
    repeated = "{} rows of {} read as one before them".format
    told = repeated("20 of 40", "train"), repeated("4 of 10", "dev"), repeated("4 of 10", "test")
    assert found["mini: dev and test have rows of their own"] == (True, "; ".join(told))


NAMED = """
from harness.registry import register_task
from harness.task import Task

@register_task(
    "under_test", name="Test", type="{type}", metrics=("{metric}",), main_metric="{metric}",
    sizes={{"train": 4, "dev": 4, "test": 4}}, epochs=3, protocol="-",
)
class Mine(Task):
    inputs = {inputs}

    def mini(self, split):
        for number in range(4):
            name = f"{{split}}-{{number}}"
            yield {{"id": name, {row}}}
"""


@pytest.mark.parametrize(
    ("type", "metric", "inputs", "row"),
    [
        (
            "rank", "mrr", ("text",),
            '"first": "a", "second": f"b {number}", "label": str(number % 2), "group": split',
        ),
        (
            "transcribe", "wer", ("audio",),
            '"audio": {"bytes": bytes([number]), "path": name + ".wav"}, "transcript": "one"',
        ),
    ],
)  # fmt: skip
def test_equal_rows_are_found_under_other_names(tmp_path, without_plugins, type, metric, inputs, row):
    """A question and a recording have a name in each split."""
    file = tmp_path / "mine.py"
    file.write_text(NAMED.format(type=type, metric=metric, inputs=inputs, row=row))
    registry.add_plugin(file)
    found = {result.name: result.message for result in check(registry.entry("tasks", "under_test"))}
    assert found["mini: dev and test have rows of their own"] == "every row of dev is a row of train too"


def test_a_problem_that_shows_the_answer_is_found(results, monkeypatch):
    """Every system that peeks would score 1 on the task."""
    monkeypatch.setattr(ClassifyProblem, "input_row", lambda self, row: row)
    passed, said = results()["mini: systems see no answer"]
    assert not passed and "classify shows label of row test-0" in said
