"""A run on own data, from the description to the record: worker processes find the task again, and
changed files are seen."""

from __future__ import annotations

import os
import wave
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import psutil
import pytest

from harness import registry
from harness.errors import DataError
from harness.records import Store
from harness.running import preflight
from harness.running.request import Request
from harness.running.session import Session
from harness.running.worker import run_cell
from harness.task import fingerprint
from tests.user_data.conftest import HEAD, reviews


@pytest.fixture
def session(tmp_path: Path):
    """A planned run of architectures on the description of the test, and what it told."""

    def plan(architectures: str = "naive_bayes,avg_vectors", **options) -> tuple[Session, list[str]]:
        told: list[str] = []
        given = {"tasks": str(tmp_path / "reviews.toml"), "mlflow": "none"} | options
        return Session(Request(tmp_path / "results", architectures=architectures, **given), told.append), told

    return plan


@pytest.mark.parametrize("tier", ["mini", "local", "hub"])
def test_its_tier_is_its_own_whatever_the_run_asks_for(own, session, tmp_path: Path, tier: str, monkeypatch):
    """Shipped tasks beside it keep the tier that was asked for; what does not fit is skipped with
    the reason."""
    own(reviews_csv=reviews(40))
    monkeypatch.setattr("harness.running.planning.absent", lambda *_: {})
    tasks = f"{tmp_path / 'reviews.toml'},sst2"
    planned, _ = session("naive_bayes,bilstm_crf", tasks=tasks, tier=tier, data_dir=tmp_path, dry_run=True)
    assert {(cell.task, cell.tier) for cell in planned.pending.run} == {("reviews", "own"), ("sst2", tier)}
    [skipped] = [item for item in planned.pending.skip if item.cell.task == "reviews"]
    assert "runs on tag" in skipped.reason
    assert all(cell.budget["name"] == "full" for cell in planned.pending.run)
    alone, _ = session("naive_bayes", tier=tier, dry_run=True)  # no folder of official files is needed
    assert [cell.tier for cell in alone.pending.run] == ["own"]


@pytest.mark.parametrize(("wrong", "right"), [("reviews.csv", "review.csv"), ('"stars"', '"star"')])
def test_a_dry_run_says_that_a_file_or_column_is_not_there(own, session, tmp_path: Path, wrong: str, right: str):
    """It said "1 to run", which is what one asks before an array job."""
    own(HEAD.replace(wrong, right), reviews_csv=reviews(40))
    with pytest.raises(DataError, match=r"no such file|no column 'star'; did you mean"):
        session("naive_bayes", dry_run=True)


@pytest.mark.slow
def test_cells_of_own_data_end_in_records_with_fingerprints(own, session, tmp_path: Path, capfd):
    """A neural and a fitted system, each in a process of its own, which has only the plugin files
    to find the task by."""
    task = own(reviews_csv=reviews(40))
    planned, _ = session()
    records = planned.run()
    assert {(record.architecture, record.status) for record in records} == {
        ("naive_bayes", "ok"),
        ("avg_vectors", "ok"),
    }
    for record in records:
        assert record.data == {split: fingerprint(task.read(split)) for split in ("train", "dev", "test")}
        assert record.counts == {"train": 28, "dev": 4, "test": 8}
        assert (record.tier, record.partial, record.official_test_examples) == ("own", False, 8)
        assert str(tmp_path) not in record.to_json()
    again, told = session()
    assert (again.pending.run, told) == ([], [])
    own(reviews_csv=reviews(40).replace("film 3 ", "movie 3 "))
    changed, told = session()
    assert len(changed.pending.run) == 2
    assert "will be run again because its" in told[0]


def test_a_worker_finds_the_task_by_what_the_engine_hands_it(own, session, monkeypatch):
    own(reviews_csv=reviews(40))
    planned, _ = session("naive_bayes")
    [cell], settings = planned.pending.run, planned.settings
    monkeypatch.setattr("harness.registry.finding._plugins", [])
    record = run_cell(cell, settings)
    assert (record.status, record.error) == ("ok", None)
    assert record.scores["test"]["accuracy"] == 1


@pytest.mark.parametrize(("free", "run"), [(6, ["avg_vectors"]), (7, ["avg_vectors", "naive_bayes"])])
def test_a_fit_that_has_too_little_memory_is_skipped_with_the_estimate(
    own, session, tmp_path: Path, monkeypatch, free: int, run: list[str]
):
    """A million texts as Python objects would end the machine, and the cells beside it. A neural
    system reads them in portions."""
    size = own(reviews_csv=reviews(40)).load("train").data.nbytes
    asked = []

    def memory_needed(cls, size: int, hyperparameters: dict) -> float:
        asked.append((size, hyperparameters["smoothing"]))
        return 6.5 * 2**30

    loaded = registry.load(registry.entry("architectures", "naive_bayes"))
    monkeypatch.setattr(loaded, "memory_needed", classmethod(memory_needed))
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=free * 2**30))
    planned, told = session(seeds=[0, 1])
    assert sorted({cell.architecture for cell in planned.pending.run}) == run
    assert asked == [(size, 1.0)] * 2
    if free == 6:
        reason = "its fit needs about 6.5 GiB of memory, and 6.0 GiB are free here"
        assert [item.reason for item in planned.pending.skip] == [reason] * 2
        assert told == [f"skipped: naive_bayes on reviews: {reason}"]
        planned.pending.run.clear()
        planned.run()
        assert {(r.status, r.error["message"]) for r in Store(tmp_path / "results").all()} == {("skipped", reason)}
        again, _ = session(seeds=[0, 1])
        again.pending.run.clear()
        with monkeypatch.context() as patch:
            patch.setattr(Store, "write", lambda *_: pytest.fail("the same words were written, and sent, once more"))
            again.run()
    with_limit, _ = session("naive_bayes", memory_limit=100)
    assert "0.1 GiB are the limit (--memory-limit)" in with_limit.pending.skip[0].reason
    asked.clear()
    session("naive_bayes", max_train=14)
    assert asked == [(size // 2, 1.0)]


def test_faults_end_the_run_before_anything_is_computed_and_notes_do_not(own, session, tmp_path: Path):
    """A wrong row is a message, not the failure of a model."""
    own(reviews_csv=reviews(40) + "no label,\n")
    with pytest.raises(DataError, match="reviews.csv, line 42: column 'stars' is empty"):
        session()
    assert list(Store(tmp_path / "results").all()) == []
    toml = HEAD.replace('all = "reviews.csv"', 'train = "reviews.csv"\ntest = "test.csv"')
    own(toml + "[sizes]\ntest = 3\n", reviews_csv=reviews(40), test_csv="review,stars\nfilm 1 was bad,neg\nso,mixed\n")
    _, told = session()
    assert told == [
        "reviews: test has 2 examples, declared are 3; its scores are of another test set",
        "reviews: test has 1 values of label that train lacks, which every system gets wrong: 'mixed' (1); the first at"
        " line 3",
        "reviews: 1 of 2 rows of test read as a row of train",
    ]


def test_recordings_of_ones_own_are_transcribed(own, session, tmp_path: Path):
    """From a list of WAV files to word error rates; a recording that changes is seen."""
    wavs = tmp_path / "wavs"
    wavs.mkdir()
    for number, (word, pitch) in enumerate([("ja", 300), ("nein", 900), ("ja", 310), ("nein", 880)]):
        times = np.arange(4000 + 400 * number) / 8000
        samples = (8000 * np.sin(2 * np.pi * pitch * times)).astype("<i2")
        with wave.open(str(wavs / f"{number}-{word}.wav"), "wb") as file:
            file.setparams((1, 2, 8000, len(samples), "NONE", ""))
            file.writeframes(samples.tobytes())
    names = sorted(path.name for path in wavs.glob("*.wav"))
    lists = {"train": names[:2], "dev": names[2:3], "test": names[2:]}
    for split, files in lists.items():
        text = "".join(f"{name}\t{name[2:-4]}\n" for name in files)
        (wavs / f"{split}.tsv").write_text("file\ttranscript\n" + text)
    places = "".join(f'{split} = "wavs/{split}.tsv"\n' for split in lists)
    columns = '[columns]\naudio = "file"\ntranscript = "transcript"\n'
    task = own(f'type = "transcribe"\n[data]\n{places}{columns}')
    assert [row["transcript"] for row in task.read("test")] == ["ja", "nein"]
    planned, told = session("bilstm_ctc,kim_cnn_rand", overrides=["bilstm_ctc.hidden=8"])
    [cell], [skipped] = planned.pending.run, planned.pending.skip
    assert cell.architecture == "bilstm_ctc" and "is of type transcribe" in skipped.reason
    assert told == []
    record = run_cell(cell, planned.settings)
    assert (record.status, record.error) == ("ok", None)
    assert record.counts == {"train": 2, "dev": 1, "test": 2}
    assert {"wer", "cer"} == set(record.scores["test"])
    before = task.signature()
    (wavs / names[0]).write_bytes((wavs / names[1]).read_bytes())
    assert task.signature() != before


def test_a_changed_file_is_read_again_and_an_unchanged_one_is_not(own, session, tmp_path: Path, monkeypatch):
    """Reading a large file takes long; a file that was repaired must not be refused for ever."""
    own(reviews_csv=reviews(40))
    session("naive_bayes")
    asked = []
    monkeypatch.setattr(preflight, "ask", lambda module, tasks, *_: (asked.append(tasks), ({}, "not"))[1])
    session("naive_bayes")
    assert not asked
    os.utime(tmp_path / "reviews.csv", (1, 1))
    with pytest.raises(DataError):
        session("naive_bayes")
    assert asked


def test_archbench_check_reads_own_data(own):
    """Whoever looks at a shipped task by `archbench check` does so at an own one."""
    from harness.contract.tasks import check

    results = check(own(reviews_csv=reviews(40)).entry)
    assert [(result.name, result.message) for result in results if not result.passed] == []
    assert any(result.name == "own: every split can be read" for result in results)


def test_comments_of_a_description_make_no_other_code(own, tmp_path: Path):
    """Records of a changed column are of another task; those of a changed comment are not."""
    from harness.records.code_digest import _task_digest

    def digest(toml: str) -> str:
        return _task_digest(own(toml, reviews_csv=reviews(4)).entry)

    plain = digest(HEAD)
    assert digest("# a note\n" + HEAD + "\n") == digest('description = "Of films"\n' + HEAD) == plain
    assert digest(HEAD.replace("stars", "review")) != plain
