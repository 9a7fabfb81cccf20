"""The TOML file of a task: a wrong key is named with what would be right, before any data is
read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from harness import registry
from harness.errors import RegistryError
from harness.user_data.description import id_of
from tests.user_data.conftest import HEAD, reviews


@pytest.mark.parametrize(
    ("changed", "to", "said"),
    [
        ('type = "classify"', 'type = "clasify"', "type = 'clasify': expected one of"),
        ('type = "classify"', "", "no type; expected type = one of"),
        (
            'type = "classify"',
            'type = "classify"\nmetric = "f1"',
            "key 'metric', which says nothing here; did you mean",
        ),
        ('type = "classify"', 'type = "classify"\nmain_metric = "wer"', "expected one of accuracy, macro_f1"),
        ('type = "classify"', 'type = "classify"\nmetrics = ["accuracy", "f1"]', "expected some of accuracy, macro_f1"),
        ('type = "classify"', 'type = "classify"\nid = "Übung 1"', "expected lower-case letters"),
        ('type = "classify"', 'type = "classify"\nepochs = true', "expected a whole number from 1"),
        ('label = "stars"', 'lable = "stars"', "key 'lable'"),
        ('label = "stars"', "", "[columns] lacks label, of type classify"),
        ('text = "review"', "", "[columns] lacks text or tree or audio, which systems read"),
        ('text = "review"', "text = 0", "the name of a column, or its number from 1"),
        ('all = "reviews.csv"', 'all = "reviews.xls"', "the ending '.xls' tells no format"),
        ('all = "reviews.csv"', "", "expected all = one file"),
        ('all = "reviews.csv"', 'all = "a.csv"\ntest = "b.csv"', "expected all = one file"),
        ('all = "reviews.csv"', 'all = "a.csv"\nencoding = "utf-9"', "an encoding such as"),
        ('all = "reviews.csv"', 'all = "a.csv"\nencoding = "rot13"', "an encoding such as"),
        ('all = "reviews.csv"', 'all = "a.csv"\ndelimiter = "::"', "expected one character"),
        ('all = "reviews.csv"', 'all = "train"\nhub = "imdb"', "the 40 hexadecimal digits"),
        ('all = "reviews.csv"', 'all = "a.csv"\nrevision = "main"', "belong to hub"),
        ("[columns]", "[splits]\ndev = 1.5\n[columns]", "a share between 0 and 1"),
        ("[columns]", "[splits]\ndev = 0.5\ntest = 0.5\n[columns]", "nothing is left"),
        ("[columns]", '[splits]\ncolumn = "part"\ndev = 0.2\n[columns]', "shares and group have no place"),
        ("[columns]", '[splits]\nseed = "x"\n[columns]', "a whole number from 0"),
        ("[columns]", "[sizes]\ntrain = -1\n[columns]", "a whole number from 1"),
        ("[columns]", "[columns", "line 4"),
    ],
)
def test_a_wrong_key_is_named_with_what_would_be_right(tmp_path: Path, changed: str, to: str, said: str):
    """Whoever writes such a file by hand is told which line to change, not shown a traceback."""
    file = tmp_path / "reviews.toml"
    file.write_text(HEAD.replace(changed, to), encoding="utf-8")
    with pytest.raises(RegistryError) as refused:
        registry.match("tasks", str(file))
    assert str(file) in str(refused.value)
    assert said in str(refused.value)


def test_a_file_that_is_no_toml_or_not_there_is_named(tmp_path: Path):
    file = tmp_path / "reviews.toml"
    with pytest.raises(RegistryError, match="no such file; `archbench new-task"):
        registry.match("tasks", str(file))
    for content in (b"\xff\xfe", b"a = " + b"[" * 3000, b"\n" * (1 << 21)):
        file.write_bytes(content)
        with pytest.raises(RegistryError, match="reviews.toml: "):
            registry.match("tasks", str(file))


def test_an_id_leaves_room_for_the_names_of_records(own, tmp_path: Path):
    """A file with a long name was described, and then no cell of it could have a record."""
    names = [f"{'a' * 200}{end}" for end in "xy"]
    ids = [id_of(Path(f"{name}.toml")) for name in names]
    assert {len(id) for id in ids} == {80} and ids[0] != ids[1]
    short = {"a" * 80: "a" * 80, "7 films": "task_7_films", "films": "films"}
    assert {name: id_of(Path(f"{name}.toml")) for name in short} == short
    with pytest.raises(RegistryError, match=r"id = 'a+: expected .*, 80 at most"):
        own(f'id = "{81 * "a"}"\n' + HEAD, reviews_csv=reviews(4))


def test_the_entry_says_what_the_file_says(own):
    """Pages and records take their words from the entry."""
    more = 'name = "Our reviews"\ndescription = "Of films"\nlanguages = ["en", "de"]\nmain_metric = "macro_f1"\n'
    entry = own(more + HEAD + "[splits]\ntest = 0.3\nseed = 7\n[sizes]\ntest = 90\n", reviews_csv=reviews(4)).entry
    assert (entry.id, entry.name, entry.type, entry.main_metric) == ("reviews", "Our reviews", "classify", "macro_f1")
    assert entry.sizes == {"test": 90}
    assert entry.protocol.startswith("Of films. Languages: en, de. dev is 0.1 of the rows, chosen by seed 7")
    assert "test is 0.3" in entry.protocol
    assert list(registry.budgets_of(entry)) == ["full"]


def test_a_program_that_imports_the_registry_alone_reads_descriptions(tmp_path: Path):
    """A worker, or a script of a user, names no reader of TOML: the harness has offered its own,
    which is imported with the first description."""
    file = tmp_path / "reviews.toml"
    file.write_text(HEAD, encoding="utf-8")
    code = (
        "import sys; from harness import registry; assert 'harness.user_data.description' not in sys.modules;"
        "[entry] = registry.match('tasks', sys.argv[1]); print(registry.load(entry).__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code, file], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "OwnTask", "")


def test_several_files_are_chosen_by_a_wildcard_and_each_is_a_plugin_that_workers_get(tmp_path: Path):
    """A worker process knows only the plugin files that it is given."""
    for name in ("one", "two"):
        (tmp_path / f"{name}.toml").write_text(HEAD, encoding="utf-8")
    found = registry.match("tasks", f"{tmp_path}/*.toml,sst2")
    assert [entry.id for entry in found] == ["one", "two", "sst2"]
    assert [file.name for file in registry.plugin_files()] == ["one.toml", "two.toml"]


def test_an_id_that_a_shipped_task_has_is_refused_with_both_files(tmp_path: Path):
    """Records of two tasks would stand in one table."""
    file = tmp_path / "sst2.toml"
    file.write_text(HEAD, encoding="utf-8")
    with pytest.raises(
        RegistryError, match=r"'sst2' is registered twice: in .*sst2.py and in .*sst2.toml; say another id"
    ):
        registry.match("tasks", str(file))
