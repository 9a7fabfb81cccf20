"""`--refit`: the kept model learnt from all rows, and the score is that of one that did not."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import numpy as np
import pytest

from architectures.classical.naive_bayes import NaiveBayes
from harness import registry
from harness.cli.showing import run_and_show
from harness.errors import ModelError
from harness.kinds import made
from harness.problems import problem
from harness.records import Cell, Store
from harness.running import keeping, refit, worker
from harness.running.grid import hyperparameters
from harness.running.request import Request
from harness.running.session import Session
from harness.running.usage import clocks
from harness.running.worker import run_cell
from harness.running.worker_settings import Settings
from harness.saved_models import storage
from harness.saved_models.folder import Origin
from harness.saved_models.parents import Parents
from harness.task import Row, Split
from tests.saved_models.cells import kept_cell, loaded


def rows_of(task: str) -> dict[Split, list[Row]]:
    entry = registry.entry("tasks", task)
    return {split: registry.load(entry)(entry).load(split, "mini").to_list() for split in get_args(Split)}


def test_a_system_that_chooses_nothing_by_dev_learns_from_all_rows(tmp_path: Path) -> None:
    """Half of a user's rows would be thrown away."""
    record = kept_cell("naive_bayes", "sst2", tmp_path, most=None, refit=True)
    rows, model = rows_of("sst2"), loaded(record, tmp_path)
    every = [row for split in rows.values() for row in split]
    assert model.description.origin.refitted == len(every)
    by_hand = NaiveBayes()
    by_hand.fit(every, [])
    asked = [{"text": row["text"]} for row in every]
    assert [answer["prediction"] for answer in model.answers(asked)] == by_hand.predict(asked)


@pytest.mark.parametrize("C", [0.03, 3.0])
def test_a_system_that_chose_by_dev_learns_from_it_with_what_it_chose(tmp_path, monkeypatch, C):
    """A tenth of a user's rows would be thrown away, or the setting would be one that nothing
    chose."""
    entry = registry.entry("architectures", "tfidf_svm")
    cls = registry.load(entry)
    monkeypatch.setattr(cls, "chosen_with", lambda self, *others: {"C": C})
    record = kept_cell("tfidf_svm", "sst2", tmp_path, most=None, refit=True)
    rows, model = rows_of("sst2"), loaded(record, tmp_path)
    every = [row for split in rows.values() for row in split]
    assert model.description.origin.refitted == len(every)
    by_hand = made(cls, "classify", 0, hyperparameters(entry) | {"C": C})
    by_hand.fit(every, [])
    asked = [{"text": row["text"]} for row in every]
    assert [answer["prediction"] for answer in model.answers(asked)] == by_hand.predict(asked)


def test_a_setting_is_chosen_again_by_all_rows(tmp_path: Path, monkeypatch) -> None:
    """A strength that few rows of dev chose would be kept by luck, where all rows could choose."""
    entry = registry.entry("architectures", "tfidf_svm")
    cls, rows = registry.load(entry), rows_of("sst2")
    every = problem("classify").learnt_rows([row for split in rows.values() for row in split])
    fit, asked = cls.fit, []

    def told(self, train, dev, unlabelled=()):
        fit(self, train, dev, unlabelled)
        if dev and len(dev) > len(rows["dev"]):
            asked.append((train, dev))
            self.evidence = {0.03: np.array([1.0, 0.0]), 3.0: np.array([0.0, 1.0])}
            self.evidence[3.0 if len(asked) == 3 else 0.03] += 4.0 ** len(asked)

    monkeypatch.setattr(cls, "fit", told)
    model = loaded(kept_cell("tfidf_svm", "sst2", tmp_path, most=None, refit=True), tmp_path)
    by_hand = made(cls, "classify", 0, hyperparameters(entry) | {"C": 3.0})
    fit(by_hand, every, [])
    np.testing.assert_array_equal(model.estimator.weights, by_hand.weights)
    assert all(sorted(map(str, learnt + told)) == sorted(map(str, every)) for learnt, told in asked)
    assert sorted(str(row) for _, told in asked for row in told) == sorted(map(str, every))


def test_rows_that_stay_together_choose_together(tmp_path: Path, monkeypatch) -> None:
    """A user's rows of one writer would ask what is known of the writer, and not of others."""
    cls, task = registry.load(registry.entry("architectures", "tfidf_svm")), registry.entry("tasks", "sst2")
    fit, asked = cls.fit, []

    def told(self, train, dev, unlabelled=()):
        fit(self, train, dev, unlabelled)
        asked.append([{row["id"][-1] for row in rows} for rows in (train, dev)])

    monkeypatch.setattr(cls, "fit", told)
    monkeypatch.setattr(registry.load(task), "together", lambda self, rows: [row["id"][-1] for row in rows])
    kept_cell("tfidf_svm", "sst2", tmp_path, most=None, refit=True)
    folds = asked[1:-1]  # the first is scored, the last is handed over
    assert len(folds) == 3 and all(learnt and told and not learnt & told for learnt, told in folds)


@pytest.mark.parametrize("key", ["group", "first", "text", "passage", "facts", "source", "id"])
def test_folds_divide_no_question_and_no_text(key: str) -> None:
    """A candidate whose question was learnt with another, and a text that was learnt, tell nothing
    of the strength that new ones need. Rows of which all were in one part would leave none to learn
    from."""
    rows = [{"id": str(number)} | {key: str(number // 3), "number": number} for number in range(270)]
    entry = registry.entry("tasks", "sst2")
    found = [*refit.folds(rows, registry.load(entry)(entry).together(rows))]
    assert [len(asked) for _, asked in found] == [90, 90, 90]
    assert sorted(row["number"] for _, asked in found for row in asked) == [*range(270)]
    for learnt, asked in found:
        assert len(learnt) == 180 and not {row[key] for row in learnt} & {row[key] for row in asked}
        assert [row["number"] for row in asked] not in ([*range(90)], [*range(90, 180)], [*range(180, 270)])


@pytest.mark.parametrize(("id", "chosen"), [("tfidf_svm", {"C": 0.3}), ("wmd_knn", {"neighbours": (3,)})])
def test_fits_choose_together(id: str, chosen: dict) -> None:
    """What one of them finds best by a row may be wrong by many of another's."""
    entry = registry.entry("architectures", id)
    one, two, three = (made(registry.load(entry), "classify", 0, hyperparameters(entry)) for _ in range(3))
    one.evidence = {0.1: np.array([1.0, 1.0]), 0.3: np.array([1.0, 0.0]), 1.0: np.array([1.0, 0.0])}
    two.evidence = {0.1: np.zeros(9), 0.3: np.ones(9), 1.0: np.ones(9)}
    three.evidence = {0.1: np.ones(1), 0.3: np.ones(1), 1.0: np.ones(1)}
    one.right, two.right, three.right = np.array([5, 4, 3, 2]), np.array([2, 9, 9, 0]), np.array([1, 1, 2, 0])
    assert one.chosen_with(two, three) == three.chosen_with(two, one) == chosen


def test_a_system_says_by_which_settings_a_fit_without_dev_is_the_same():
    rows = rows_of("sst2")
    for id in ("tfidf_svm", "tfidf_logreg", "wmd_knn"):
        entry = registry.entry("architectures", id)
        first = made(registry.load(entry), "classify", 0, hyperparameters(entry))
        first.fit(rows["train"], rows["dev"])
        again = made(registry.load(entry), "classify", 0, hyperparameters(entry) | first.chosen_on_dev())
        again.fit(rows["train"], [])
        assert again.predict(rows["test"]) == first.predict(rows["test"])


@pytest.mark.parametrize("architecture", ["naive_bayes", "dan"])
def test_the_score_is_that_of_a_model_which_never_saw_test(tmp_path: Path, architecture: str) -> None:
    plain = kept_cell(architecture, "sst2", tmp_path / "plain", most=None)
    again = kept_cell(architecture, "sst2", tmp_path / "again", most=None, refit=True)
    assert again.key == plain.key and again.scores == plain.scores
    assert again.predictions == plain.predictions and again.data == plain.data


def test_a_network_learns_from_test_too_and_dev_says_when_to_stop(tmp_path: Path) -> None:
    """Words that test alone has are known afterwards, those of dev are not."""
    record = kept_cell("dan", "sst2", tmp_path, most=None, refit=True)
    rows, model = rows_of("sst2"), loaded(record, tmp_path)
    assert model.description.origin.refitted == len(rows["train"]) + len(rows["test"])
    known = set(model.view.vocabulary.words)
    words = {split: {word.lower() for row in rows[split] for word in row["text"]} for split in rows}
    assert words["test"] - words["train"] <= known
    assert not (words["dev"] - words["train"] - words["test"]) & known


def test_a_widened_task_has_no_test() -> None:
    """Scored there, a model would be asked what it has learnt."""
    entry = registry.entry("tasks", "sst2")
    task = refit.widened(registry.load(entry)(entry))
    with pytest.raises(ValueError, match="sst2: test is learnt from here, and scores nothing"):
        task.load("test", "mini")


def test_a_second_training_that_fails_leaves_the_scored_model(tmp_path: Path, monkeypatch, capsys) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("no such luck")

    monkeypatch.setattr(refit, "trained", fails)
    record = kept_cell("dan", "sst2", tmp_path, refit=True)
    assert record.status == "ok" and "not refitted: RuntimeError: no such luck" in capsys.readouterr().out
    origin = loaded(record, tmp_path).description.origin
    assert (origin.refitted, origin.not_refitted) == (None, "RuntimeError: no such luck")


def test_a_second_training_for_which_there_is_no_time_is_left_out(tmp_path: Path, monkeypatch, capsys) -> None:
    """A cell that passes its limit is ended, and its score would be lost."""
    monkeypatch.setattr("harness.running.keeping.SLOWER", 1e9)
    record = kept_cell("dan", "sst2", tmp_path, refit=True, timeout=600.0)
    assert record.status == "ok" and "a second training would pass the cell's limit" in capsys.readouterr().out
    origin = loaded(record, tmp_path).description.origin
    assert origin.refitted is None and "limit of 600 s (--timeout)" in origin.not_refitted


def keeps(tmp_path: Path, monkeypatch, spent: tuple[float, float], took: tuple[float, float], **limits: float) -> str:
    """The name of the model that a cell keeps which has used and trained so many seconds of the
    clock and of the processor."""
    written: list[str] = []

    def model(name: str) -> Any:
        origin = Origin(key="", cell={}, data={}, predictions=None)
        return SimpleNamespace(write=lambda folder: written.append(name), description=SimpleNamespace(origin=origin))

    monkeypatch.setattr(keeping, "since", lambda entered: spent)
    settings = Settings(tmp_path, None, (), 1, None, None, tmp_path / "work", refit=True)
    cell = Cell("dan", 1, "sst2", 1, "mini", "smoke", {}, 0)
    limited = dataclasses.replace(settings, **limits)
    keeping.keep(cell, limited, lambda: model("as scored"), lambda: model("again"), (0.0, 0.0), took)
    return written[0]


def test_each_limit_of_a_second_training_has_its_own_clock(tmp_path: Path, monkeypatch, capsys) -> None:
    """On a busy machine there would be no time for it by the clock, though the processor has some;
    with several threads a cell would pass its limit of the processor, and its score be lost."""
    busy, threads = ((4.5, 0.3), (4.0, 0.2)), ((160.0, 640.0), (60.0, 240.0))
    assert keeps(tmp_path, monkeypatch, *busy, cpu_limit=6.0) == "again"
    assert keeps(tmp_path, monkeypatch, *busy, timeout=6.0) == "as scored"
    assert capsys.readouterr().out.endswith(
        "after 4 s, a second training would pass the cell's limit of 6 s (--timeout)\n"
    )
    assert keeps(tmp_path, monkeypatch, *threads, cpu_limit=780.0) == "as scored"
    told = "after 640 s, a second training would pass the cell's limit of 780 s of processor time (--cpu-limit)\n"
    assert capsys.readouterr().out.endswith(told)
    assert keeps(tmp_path, monkeypatch, *threads, timeout=780.0) == "again"
    assert keeps(tmp_path, monkeypatch, *threads) == "again"


@pytest.mark.parametrize("architecture", ["naive_bayes", "dan"])
def test_a_cell_says_what_its_training_took_by_both_clocks(tmp_path: Path, monkeypatch, architecture: str) -> None:
    """A second training would be judged by the seconds of another clock than its limit's."""
    given = []
    monkeypatch.setattr(worker, "keep", lambda *args: given.append(args[4:]))
    before = clocks()
    record = kept_cell(architecture, "sst2", tmp_path)
    [(entered, took)] = given
    assert entered[0] >= before[0] and before[1] <= entered[1] < 1e6
    rate = record.seconds["train_processor"] / record.seconds["train"]
    assert took[1] / took[0] == pytest.approx(rate) and took[0] >= record.seconds["train"]


def test_what_could_not_be_trained_once_more_is_not_run_again_for_it(tmp_path: Path, monkeypatch, capsys) -> None:
    """Each run would train the finished cell anew, and could turn its score into a timeout."""
    monkeypatch.setattr("harness.running.keeping.SLOWER", 1e9)
    asked = dict(architectures="naive_bayes", tasks="sst2", max_train=20, workers=1, mlflow="none")
    request, store = Request(tmp_path, refit=True, timeout=600.0, **asked), Store(tmp_path)
    first = Session(request)
    [cell] = first.pending.run
    record = run_cell(cell, first.settings)
    store.write(record)
    assert first.complete([record])
    again = Session(request)
    assert again.pending.run == [] and again.complete([])
    capsys.readouterr()
    run_and_show(request)
    told = capsys.readouterr().err
    assert f"note: not refitted: {cell.words}: after " in told and f"`archbench models --remove {cell.key}`" in told
    storage.remove(cell.key, tmp_path)
    assert Session(request, tell=lambda message: None).pending.run == [cell], "as the note says"


def test_a_model_that_learnt_from_test_is_no_parent(tmp_path: Path) -> None:
    """Its children would be scored by rows that it knows."""
    record = kept_cell("naive_bayes", "sst2", tmp_path, refit=True)
    cells = {"teacher": {"key": record.key, "architecture": "naive_bayes"}}
    with pytest.raises(ModelError, match=r"trained on rows of test too \(--refit\)"):
        Parents(cells, tmp_path / storage.MODELS, lambda folder: loaded(record, tmp_path))


def test_a_parent_is_kept_as_it_was_scored(tmp_path: Path) -> None:
    record = kept_cell("naive_bayes", "sst2", tmp_path, refit=True, needed=frozenset([planned_key(tmp_path)]))
    assert loaded(record, tmp_path).description.origin.refitted is None


def planned_key(results: Path) -> str:
    """Key of the same cell in another folder."""
    return kept_cell("naive_bayes", "sst2", results / "first").key


def test_a_finished_cell_that_was_kept_without_runs_again(tmp_path: Path, capsys) -> None:
    asked = dict(architectures="naive_bayes", tasks="sst2", max_train=20, workers=1, mlflow="none")
    first, store = Session(Request(tmp_path, keep=True, **asked)), Store(tmp_path)
    [cell] = first.pending.run
    store.write(run_cell(cell, first.settings))
    again = Session(Request(tmp_path, refit=True, **asked), tell=lambda message: None)
    assert again.pending.run == [cell]
    store.write(run_cell(cell, again.settings))
    assert Session(Request(tmp_path, refit=True, **asked)).pending.run == []
    assert Session(Request(tmp_path, keep=True, **asked)).pending.run == []
    capsys.readouterr()
    run_and_show(Request(tmp_path, keep=True, **asked))
    assert f"kept as an earlier --refit left it: {cell.words}" in capsys.readouterr().err
