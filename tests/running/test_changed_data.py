"""Records of other data, or that started from what learnt other data: found before they are taken
for results of this grid, and kept."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness import registry
from harness.data.loaded_rows import training_rows
from harness.errors import DataError
from harness.records import Cell, Record, Store
from harness.registry.sorts import ROOT
from harness.running import memory
from harness.running.changed_data import DataFolder, OwnData, code_digest
from harness.running.pending import Planned
from harness.running.preflight import Preflight, Reading
from harness.running.request import Request
from harness.running.session import Session
from harness.saved_models import folder as files
from harness.saved_models import storage
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


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No process of its own reads the data before a run."""
    counts = {split: len(content) for split, content in SPLITS.items()}
    reading = Reading(counts, train_bytes=100)
    monkeypatch.setattr(Preflight, "read", lambda self, tasks, *_, **__: {task.id: reading for task in tasks})
    monkeypatch.setattr(Preflight, "known", lambda self, tasks: {task.id: reading for task in tasks})


def differing(folder: Path, **fields) -> list[str]:
    return DataFolder(folder, folder.parent / "cache.json").differing(record(task="colours", data=MADE_WITH, **fields))


def test_the_same_files_are_no_reason_to_run_again(folder):
    assert differing(folder) == []
    assert differing(folder) == [], "from the cache"


def test_a_file_below_the_folder_may_have_any_name_and_go_away(folder, monkeypatch):
    """An archive of Windows has names that are not UTF-8; a download ends while we look."""
    (folder / os.fsdecode(b"ann\xe9e.txt")).write_text("")
    walk = os.walk

    def with_one_more(*given, **options):
        for place, folders, names in walk(*given, **options):
            yield place, folders, [*names, "gone.part"]

    monkeypatch.setattr(os, "walk", with_one_more)
    assert differing(folder) == []


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


def test_texts_without_labels_are_compared_where_the_cell_learnt_from_them(folder):
    """With two labels of four, other words in the other two rows are other data; other labels are
    not, and whoever learns from the two labelled rows alone has seen neither."""
    texts = [{"id": row["id"], "text": row["text"]} for row in SPLITS["train"]]
    limits = {"hyperparameters": {"limits": {"labels": 2}}}
    entry = registry.entry("tasks", "colours")
    kept = {row["id"] for row in training_rows(registry.load(entry)(entry), "local", folder, 2)}
    few = [row for row in SPLITS["train"] if row["id"] in kept]
    plain = record(task="colours", data=MADE_WITH | {"train": fingerprint(few)}, **limits)
    reading = plain.model_copy(update={"data": plain.data | {"unlabelled": fingerprint(texts)}})

    def found() -> list[list[str]]:
        place = DataFolder(folder, folder.parent / "cache.json")
        return [place.differing(each) for each in (plain, reading)]

    def write(**other: str) -> None:
        rows = [row if row["id"] in kept else row | other for row in SPLITS["train"]]
        (folder / "train.json").write_text(json.dumps(rows))

    assert found() == [[], []]
    write(text="another word")
    assert found() == [[], ["unlabelled"]]
    write(label="blue")
    assert found()[1] == found()[0]


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


@pytest.mark.parametrize("name", ["user_data/table.py", "data/overlap.py", "mentions.py", "task.py"])
def test_the_code_that_reads_data_is_that_of_a_users_own_task_too(monkeypatch, name):
    """After an upgrade the old readings of a user's files stood: faults of these were told by each
    cell, and finished records stood beside cells of other rows."""
    task, read_bytes = registry.entry("tasks", "sst2"), Path.read_bytes
    before = code_digest(task)
    mended = ROOT / "harness" / name
    monkeypatch.setattr(Path, "read_bytes", lambda path: read_bytes(path) + (b"# mended" if path == mended else b""))
    assert code_digest(task) != before


@pytest.mark.parametrize("content", ["", "{", "[]", '{"signature": 1}'])
def test_a_damaged_cache_costs_time_only(folder, content):
    (folder.parent / "cache.json").write_text(content)
    assert differing(folder) == []


def test_a_cache_that_cannot_be_written_costs_time_only(folder):
    """A colleague's results, or an archive, may be for reading alone: a dry run ended in a
    traceback."""
    (folder.parent / "work").write_text("a file where the folder should be")
    made = record(task="colours", data=MADE_WITH)
    assert DataFolder(folder, folder.parent / "work" / "cache.json").differing(made) == []


def test_a_companion_of_the_users_own_is_read_again_when_its_file_changes(tmp_path, monkeypatch):
    """It is not among the files of the cell's task: a record of the old rows stood beside cells of
    new ones."""
    monkeypatch.setattr("harness.registry.finding._plugins", [])
    for name in ("aa", "bb"):
        columns = f'[data]\nall = "{name}.csv"\n[columns]\ntext = "text"\nlabel = "label"\n'
        (tmp_path / f"{name}.toml").write_text(f'type = "classify"\n{columns}')
        lines = [f"{name} {i},{('red', 'blue')[i % 2]}\n" for i in range(30)]
        (tmp_path / f"{name}.csv").write_text("".join(["text,label\n", *lines]))
    [aa], [bb] = (registry.match("tasks", str(tmp_path / f"{name}.toml")) for name in ("aa", "bb"))

    def rows_of(entry) -> str:
        return fingerprint(training_rows(registry.load(entry)(entry), "own", None, None).to_list())

    made = record(task="aa", tier="own", data={"train": rows_of(aa)}, companions=[{"task": "bb", "train": rows_of(bb)}])

    def found() -> list[str]:
        return OwnData(aa, tmp_path / "cache.json").differing(made)

    assert found() == []
    (tmp_path / "bb.csv").write_text((tmp_path / "bb.csv").read_text().replace("bb 0", "another text"))
    assert found() == ["bb"]


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
    assert aside.suffixes == [aside.suffixes[0], ".json", ".old"] and aside.name.startswith(f"{made.key}.")
    assert json.loads(aside.read_text())["key"] == made.key
    predictions = aside.name.replace(".json.old", ".predictions.json.xz.old")
    assert {file.name for file in path.parent.iterdir()} == {aside.name, predictions}


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize(
    ("fields", "made"),
    [
        ({"keep": True}, {}),
        ({"changed": True}, {"code": {"architecture": "a" * 64, "task": "b" * 64, "harness": 1}}),
        ({}, {"data": MADE_WITH | {"train": "0" * 64}}),
    ],
    ids=["not kept", "other code", "other data"],
)
def test_a_result_stands_where_its_cell_cannot_run_again(folder, monkeypatch, fields, made, dry_run):
    """It left all tables for a skipped cell, with exit code 0, because the machine was busy."""

    def plan(**options: Any) -> Session:
        known = dict(architectures="naive_bayes", tasks="colours", tier="local", data_dir=folder, mlflow="none")
        return Session(Request(folder.parent / "results", **known | options), told.append)

    told: list[str] = []
    [cell] = plan().pending.run
    stands = Record.skeleton(cell, "ok", **{"data": MADE_WITH} | made)
    file = Store(folder.parent / "results").write(stands)
    told.clear()
    assert plan(**fields, dry_run=True).pending.run == [cell]
    assert not any("stands" in note for note in told)
    monkeypatch.setattr(memory, "psutil", SimpleNamespace(virtual_memory=lambda: SimpleNamespace(available=0)))
    session = plan(**fields, dry_run=dry_run)
    assert (session.pending.run, session.pending.skip) == ([], [])
    assert session.pending.finished == [stands]
    assert any(note.startswith("the record of naive_bayes on colours stands: its fit needs") for note in told)
    session.run()
    assert session.store.find(cell) == stands
    assert [path.name for path in file.parent.iterdir()] == [file.name]


# --- cells that start from others ---

FAMILY = """
import json
from harness.kinds import TextEncoder
from harness.registry import register, register_task
from harness.task import Task

@register_task("shades", name="Shades", type="classify", metrics=("accuracy",), main_metric="accuracy",
               sizes={"train": 4, "dev": 2, "test": 2}, epochs=1, protocol="made for a test")
class Shades(Task):
    def local(self, folder, split):
        return json.loads((folder / "shades" / f"{split}.json").read_text())

@register("elder", name="Elder", kind="text", paper="Nobody 2001", source="-", year=2001)
@register("younger", name="Younger", kind="text", paper="Nobody 2002", source="-", year=2002,
          parents={"weights": "elder@colours"})
class Elder(TextEncoder):
    takes = ("weights",)

    def __init__(self, width, hidden=2):
        super().__init__()
"""


class Family:
    """A child whose parent learnt from another task; both have ended, and the parent is kept."""

    def __init__(self, data: Path):
        self.data, self.store, self.told = data, Store(data.parent / "results"), list[str]()
        self.elder, self.younger = self.plan().pending.run
        self.ended(self.elder)
        self.ended(self.younger)
        self.told.clear()

    def plan(self, architectures: str = "younger", tasks: str = "shades", **options: Any) -> Session:
        known = dict(tier="local", data_dir=self.data, mlflow="none") | options
        return Session(Request(self.store.folder, architectures=architectures, tasks=tasks, **known), self.told.append)

    def ended(self, cell: Cell, status: Any = "ok") -> Record:
        """The record of a cell, and what it kept, as if it had run on the files of now."""
        place = self.data / "shades" if cell.task == "shades" else self.data
        data = {split: fingerprint(json.loads((place / f"{split}.json").read_text())) for split in SPLITS}
        told: dict[str, Any] = {"data": data}
        if status != "ok":
            told["error"] = {"type": "RuntimeError", "message": "it broke", "log": None}
        elif cell.parents:
            learnt = files.describe(self.model).origin.data
            ancestor = {"key": self.elder.key, "architecture": "elder", "task": "colours", "corpus": learnt}
            told["lineage"] = [ancestor | {"role": "weights"}]
        else:
            files.write(self.model, description(cell, data), {}, {})
        made = Record.skeleton(cell, status, **told)
        self.store.write(made)
        return made

    @property
    def model(self) -> Path:
        return storage.place(self.store.folder, self.elder.key)


def description(cell: Cell, data: dict[str, str]) -> files.Description:
    origin = files.Origin(key=cell.key, cell=cell.to_dict(), data=data, predictions=None)
    part = files.Part(architecture=cell.architecture, version=1, settings={})
    return files.Description(archbench=None, origin=origin, type="classify", inputs={"text": "words"}, part=part)


@pytest.fixture
def family(folder: Path, quick: None) -> Family:
    (folder.parent / "family.py").write_text(FAMILY)
    registry.add_plugin(folder.parent / "family.py")
    (folder / "shades").mkdir()
    for split, content in SPLITS.items():
        (folder / "shades" / f"{split}.json").write_text(json.dumps(content))
    return Family(folder)


def change(family: Family) -> None:
    """Give the parent's task other training rows."""
    (family.data / "train.json").write_text(json.dumps(rows(4, 5)))


def test_files_in_a_linked_folder_are_data_too(family):
    """A corpus on a larger disk is linked into the data folder. Changed files were never noticed
    there, and two rows of a table were scored on other test sets."""
    disk, shades = family.data.parent / "disk", family.data / "shades"
    shades.rename(disk)
    shades.symlink_to(disk)
    assert family.plan().pending.run == []
    (disk / "test.json").write_text(json.dumps(rows(2, 40)))
    assert family.plan().pending.run == [family.younger]


def test_links_that_lead_back_cost_nothing_and_one_that_is_set_anew_is_seen(folder):
    """Two links to the data folder below itself have more paths than a run has time for; and the
    release that a link names may be there by its own name too."""

    def signature() -> str:
        return DataFolder(folder, folder.parent / "cache.json").signature

    for name in ("old", "one", "two"):
        (folder / name).mkdir()
        (folder / name / "train.json").write_text(name)
    for place in (folder, folder / "one", folder / "two"):
        for name in ("back", "home"):
            (place / name).symlink_to(folder)
    current = folder / "used"
    current.symlink_to(folder / "one")
    before = signature()
    assert signature() == before
    current.unlink()
    current.symlink_to(folder / "two")
    assert signature() != before


OTHER_CHILD = {"overrides": ["younger.hidden=3"]}


def test_a_parent_whose_data_stayed_is_used_and_its_children_stand(family):
    """A language model would be trained again for each of its children."""
    assert family.plan().pending.run == []
    [child] = family.plan(**OTHER_CHILD).pending.run
    assert child.parents == family.younger.parents
    assert family.told == []


@pytest.mark.parametrize("grid", [("younger", "shades"), ("elder,younger", "colours,shades")])
def test_what_started_from_other_data_runs_again_with_its_parent(family, grid):
    """Its score is one of a model of texts that the files do not hold any more."""
    change(family)
    both = {family.elder.key, family.younger.key}
    dry = family.plan(*grid, dry_run=True)
    assert both <= {cell.key for cell in dry.pending.run} and len(list(dry.store.all())) == 2
    session = family.plan(*grid)
    assert both <= {cell.key for cell in session.pending.run}
    assert list(session.store.all()) == []
    because = "younger on shades, seed 0 will be run again because the data of colours changed; the old record was ren"
    assert any(because in note for note in family.told)
    for cell in (family.elder, family.younger):
        family.ended(cell)
    assert not both & {cell.key for cell in family.plan(*grid).pending.run}, "and once only"


def test_a_new_child_does_not_start_from_a_model_of_other_data(family):
    change(family)
    parent, child = family.plan(**OTHER_CHILD).pending.run
    assert parent == family.elder and child != family.younger
    assert any("elder on colours, seed 0 will be run again because" in note for note in family.told)


def test_a_child_from_before_its_parent_was_trained_again_runs_again(family):
    """A run of the parent alone would leave it as it is for ever."""
    change(family)
    family.ended(family.elder)
    assert family.plan().pending.run == [family.younger]


def test_a_kept_model_of_before_its_record_is_no_parent(family):
    """The parent was run again without being kept: its record is new, what is kept is not."""
    old = storage.files_of(family.store.folder, family.elder.key)
    change(family)
    family.ended(family.elder)
    storage.write_files(family.store.folder, family.elder.key, old)
    assert sorted(cell.architecture for cell in family.plan().pending.run) == ["elder", "younger"]


def test_a_parent_whose_files_are_not_at_hand_is_left_as_it_is(family):
    """Whoever was sent a language model has not the texts that it read."""
    (family.data / "train.json").unlink()
    assert family.plan().pending.run == []
    [child] = family.plan(**OTHER_CHILD).pending.run
    assert child.parents == family.younger.parents


@pytest.mark.parametrize("how", ["failed", "too large"])
def test_a_child_stands_while_its_parent_cannot_be_trained_on_the_new_data(family, monkeypatch, how):
    """It would be trained at each run, from the same old model."""
    change(family)
    if how == "failed":
        family.ended(family.elder, "failed")
    else:
        monkeypatch.setattr(
            "harness.running.planning.too_large",
            lambda cells, *_: [Planned(cell, "too large") for cell in cells if cell == family.elder],
        )
    session = family.plan()
    assert session.pending.run == []
    session.run()
    assert session.store.find(family.younger).status == "ok"
    assert session.complete([]) == (how != "failed")
    reason = "cannot start: too large" if how == "too large" else "ended failed: it broke"
    parent = f"its parent elder on colours ({family.elder.key}) in the role weights"
    assert f"the record of younger on shades stands: {parent} {reason}" in family.told
