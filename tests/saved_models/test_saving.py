"""`archbench run --keep` and `archbench models`."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness import cli
from harness.errors import UsageError
from harness.records import Store
from harness.running.request import Request
from harness.running.session import Session
from harness.running.worker import run_cell
from harness.saved_models import folder as files
from harness.saved_models import storage
from tests.saved_models.cells import kept_cell, loaded, rows_of_test


def request(results: Path, **fields: object) -> Request:
    asked = dict(architectures="naive_bayes", tasks="sst2", max_train=20, workers=1, mlflow="none", keep=True)
    return Request(results, **asked | fields)


def test_a_full_disk_while_keeping_loses_no_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    """Hours of training would be lost for a file that is worth less."""

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "write", full)
    monkeypatch.setattr("harness.saved_models.model.files.write", full)
    record = kept_cell("naive_bayes", "sst2", tmp_path)
    assert record.status == "ok" and record.predictions is not None
    assert "not kept: OSError" in capsys.readouterr().out
    assert not storage.is_kept(tmp_path, record.key)


def test_a_state_that_cannot_be_kept_loses_no_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    """Of a plugin with objects of another library."""
    from architectures.classical.naive_bayes import NaiveBayes

    monkeypatch.setattr(NaiveBayes, "fitted_state", lambda self: dict(vars(self)))
    assert kept_cell("naive_bayes", "sst2", tmp_path).status == "ok"
    assert "naive_bayes: what fitted_state gives as counter is a CountVectorizer" in capsys.readouterr().out


def test_keeping_is_no_part_of_a_cells_identity(tmp_path: Path) -> None:
    """A kept cell and one that was not are the same row."""
    cells = [Session(request(tmp_path, keep=keep)).pending.run[0] for keep in (True, False)]
    assert cells[0].key == cells[1].key


def test_a_finished_cell_that_was_not_kept_runs_again(tmp_path: Path) -> None:
    """Its model cannot be had otherwise; one that is kept does not run again."""
    told: list[str] = []
    first, store = Session(request(tmp_path, keep=False)), Store(tmp_path)
    cell = first.pending.run[0]
    store.write(run_cell(cell, first.settings))
    again = Session(request(tmp_path), told.append)
    assert again.pending.run == [cell] and store.find(cell) is None
    assert "1 finished without being kept run again (--keep); the old records are *.old" in told
    record = run_cell(cell, again.settings)
    store.write(record)
    assert again.complete([record])
    assert Session(request(tmp_path)).pending.run == []


def test_a_cell_that_was_not_kept_leaves_the_run_incomplete(tmp_path: Path) -> None:
    """Exit code 0 would say that there is a model."""
    record = kept_cell("naive_bayes", "sst2", tmp_path)
    session = Session(request(tmp_path / "other"))
    assert session.unkept([record]) == [record]
    assert not session.complete([record])


def test_git_leaves_kept_models_out(tmp_path: Path) -> None:
    """Weights in a repository stay there for ever."""
    storage.place(tmp_path, "0123")
    assert (tmp_path / "models" / ".gitignore").read_text() == "*\n"


def command(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        cli.main(["models", *arguments])
    return int(ended.value.code or 0), *capsys.readouterr()


def test_models_are_listed_with_size_and_what_is_wrong(tmp_path: Path, capsys) -> None:
    """Who frees space wants to know what for."""
    kept, transductive = kept_cell("naive_bayes", "sst2", tmp_path), kept_cell("sgc", "sst2", tmp_path, most=100)
    Store(tmp_path).path(transductive).unlink()
    (tmp_path / "models" / "ffff").mkdir()
    capsys.readouterr()
    code, out, _ = command(capsys, "--results", str(tmp_path))
    assert code == 0
    lines = {line.split()[0]: line for line in out.splitlines()}
    assert lines[kept.key].endswith("MiB  naive_bayes on sst2, seed 0, smoke on mini")
    assert lines[transductive.key].endswith("cannot answer new texts; there is no record of its cell here")
    assert "damaged" in lines["ffff"] and "model.json: No such file" in lines["ffff"]
    assert out.splitlines()[-1].startswith("3 kept, ")


def test_models_are_removed_by_key(tmp_path: Path, capsys) -> None:
    for key in ("aa01", "aa02", "bb01"):
        storage.place(tmp_path, key).mkdir(parents=True)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "models" / "link").symlink_to(elsewhere)
    code, _, err = command(capsys, "--results", str(tmp_path), "--remove", "aa*,cc*")
    assert code == 2 and "--remove cc*: no such kept model; 4 are kept" in err
    assert len(list(storage.kept_models(tmp_path))) == 4  # none was removed
    code, out, _ = command(capsys, "--results", str(tmp_path), "--remove", "aa*,link")
    assert code == 0 and "removed aa01" in out
    assert [kept.folder.name for kept in storage.kept_models(tmp_path)] == ["bb01"]
    assert elsewhere.is_dir()


def test_a_beginning_that_several_keys_have_is_refused(tmp_path: Path) -> None:
    for key in ("aa01", "aa02"):
        storage.place(tmp_path, key).mkdir(parents=True)
    with pytest.raises(UsageError, match="MODEL aa: 2 kept models begin so: aa01, aa02"):
        storage.find("aa", tmp_path)


def test_a_model_in_double_precision_answers_as_in_its_cell(tmp_path: Path) -> None:
    """Weights in another precision would be rounded, or fit no input."""
    record = kept_cell("bilstm", "sst2", tmp_path, precision="64")
    assert record.status == "ok", record.error
    model = loaded(record, tmp_path)
    rows = model.problem.input_rows(rows_of_test("sst2"))
    _, said = Store(tmp_path).load_predictions(record)
    assert [answer["prediction"] for answer in model.answers(rows)] == said
