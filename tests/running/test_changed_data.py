"""Records of other data: found before they are taken for results of this grid, and kept."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from harness import registry
from harness.errors import DataError
from harness.records import Store
from harness.running.changed_data import DataFolder
from harness.task import fingerprint
from tests.support.made_records import record

PLUGIN = """
import json
from harness.registry import register_task
from harness.task import DataError, Task

@register_task("colours", name="Colours", type="classify", metrics=("accuracy",), main_metric="accuracy",
               sizes={"train": 4, "dev": 4, "test": 4}, epochs=1, protocol="made for a test")
class Colours(Task):
    def local(self, folder, split):
        if not (folder / f"{split}.json").is_file():
            raise DataError(f"{folder / split}.json: no such file")
        return json.loads((folder / f"{split}.json").read_text())
"""


def rows(count: int, first: int = 0) -> list[dict[str, str]]:
    return [{"id": str(i), "text": f"word {i}", "label": "red"} for i in range(first, first + count)]


SPLITS = {"train": rows(4), "dev": rows(2, 10), "test": rows(2, 20)}
MADE_WITH = {split: fingerprint(content) for split, content in SPLITS.items()}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    plugin = tmp_path / "colours.py"
    plugin.write_text(PLUGIN)
    monkeypatch.setattr("harness.registry.finding._plugins", [])
    registry.add_plugin(plugin)
    place = tmp_path / "data"
    place.mkdir()
    for split, content in SPLITS.items():
        (place / f"{split}.json").write_text(json.dumps(content))
    return place


def differing(folder: Path, **fields) -> list[str]:
    return DataFolder(folder, folder.parent / "cache.json").differing(record(task="colours", data=MADE_WITH, **fields))


def test_the_same_files_are_no_reason_to_run_again(folder):
    assert differing(folder) == []
    assert differing(folder) == [], "from the cache"


@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_a_changed_split_is_named(folder, split):
    """A score on another test split, or of a model of another training set, would stand beside the
    new ones."""
    differing(folder)
    (folder / f"{split}.json").write_text(json.dumps(rows(3, 30)))
    assert differing(folder) == [split]


def test_the_training_set_is_compared_as_it_was_capped(folder):
    """Two of the four training rows: the record's digest is of those."""
    limits = {"hyperparameters": {"limits": {"max_train": 2}}}
    assert differing(folder, **limits) == ["train"], "made with all four"


def test_files_are_read_once_until_one_changes(folder, monkeypatch):
    """A grid of a thousand finished cells starts at once; reading the corpora of all tasks takes
    minutes."""
    differing(folder)
    monkeypatch.setattr(DataFolder, "_computed", lambda *_: pytest.fail("computed again"))
    assert differing(folder) == []
    os.utime(folder / "dev.json", (1, 1))
    with pytest.raises(pytest.fail.Exception):
        differing(folder)


def test_files_are_read_again_when_the_code_that_reads_them_changed(folder, monkeypatch):
    """The same files then hold other rows."""
    differing(folder)
    monkeypatch.setattr(DataFolder, "_computed", lambda *_: pytest.fail("computed again"))
    with (folder.parent / "colours.py").open("a") as file:
        file.write("# mended\n")
    with pytest.raises(pytest.fail.Exception):
        differing(folder)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"signature": 1}'])
def test_a_damaged_cache_costs_time_only(folder, content):
    (folder.parent / "cache.json").write_text(content)
    assert differing(folder) == []


def test_files_that_are_gone_are_an_error_with_their_name(folder):
    (folder / "dev.json").unlink()
    with pytest.raises(DataError, match=r"dev\.json: no such file"):
        differing(folder)


def test_a_record_that_is_set_aside_is_kept_and_not_read(tmp_path):
    """What was computed is never lost; but its cell is to be run again."""
    store = Store(tmp_path)
    made = record(score=0.8, data={"test": "0123456789" * 6})
    made.predictions = store.save_predictions(made, ["a"], ["yes"])
    path = store.write(made)
    aside = store.set_aside(made)
    assert store.find(made.cell) is None
    assert list(store.all()) == []
    assert aside.name == f"{made.key}.01234567.json.old"
    assert json.loads(aside.read_text())["key"] == made.key
    assert {file.name for file in path.parent.iterdir()} == {aside.name, f"{made.key}.01234567.predictions.json.xz.old"}
