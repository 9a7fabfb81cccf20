"""`archbench predict` reads a file as the user's own data were read that the model learnt from."""

from __future__ import annotations

import io
import json
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness import cli, registry
from tests.saved_models.cells import kept_cell
from tests.user_data.conftest import no_plugins  # noqa: F401 - used by every test

CSV = 'encoding = "cp1252"\ndelimiter = ";"\n[columns]\ntext = "Kritik"\nlabel = "Sterne"\nid = "Nr"\n'
TSV = 'encoding = "utf-16-le"\nheader = false\n[columns]\ntext = 2\nlabel = 3\n'
JSONL = '[columns]\ntext = "Kritik"\nlabel = "Sterne"\n'
QUALITIES = ["schön", "öde"]


def rows(count: int) -> list[tuple[str, str, str]]:
    return [(f"k{n}", f'ein "{QUALITIES[n % 2]}" Film {n}', ("pos", "neg")[n % 2]) for n in range(count)]


def table(count: int, delimiter: str, header: str, encoding: str) -> bytes:
    text = header + "".join(delimiter.join(row).replace('"', "") + "\n" for row in rows(count))
    return text.encode(encoding)


def contents(count: int) -> dict[str, bytes]:
    objects = [json.dumps({"Kritik": text, "Sterne": label}) + "\n" for _, text, label in rows(count)]
    return {
        "csv": table(count, ";", "Nr;Kritik;Sterne\n", "cp1252"),
        "tsv": table(count, "\t", "", "utf-16-le"),
        "jsonl": "".join(objects).encode(),
    }


@pytest.fixture
def ask(tmp_path: Path, monkeypatch, capsys):
    """Keeps a model of a description beside its data, takes both away, and asks the model about a
    new file of the same form; returns exit code, answers and errors."""

    def run(ending: str, toml: str, new: bytes, *arguments: str, name: str = ""):
        file = tmp_path / "mine" / "own_whole.toml"
        file.parent.mkdir(parents=True)
        data = f'type = "classify"\n[data]\nall = "own.{ending}"\n'
        file.write_text(data + toml, encoding="utf-8")
        (file.parent / f"own.{ending}").write_bytes(contents(60)[ending])
        [entry] = registry.match("tasks", str(file))
        record = kept_cell("naive_bayes", entry.id, tmp_path / "results", most=None, plugins=(file,))
        monkeypatch.setattr("harness.registry.finding._plugins", [])
        shutil.rmtree(file.parent)
        asked = tmp_path / (name or f"new.{ending}")
        asked.write_bytes(new)
        given = ["--results", str(tmp_path / "results"), "--to", "jsonl", *arguments]
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO()))
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main(["predict", record.key, str(asked), *given])
        out, err = capsys.readouterr()
        return ended.value.code, [json.loads(line) for line in out.splitlines()], err

    return run


@pytest.mark.parametrize(("ending", "toml"), [("csv", CSV), ("tsv", TSV), ("jsonl", JSONL)])
def test_columns_delimiter_and_encoding_are_those_of_the_data(ask, ending: str, toml: str) -> None:
    """Who tried a German table in semicolons asked about the next one, and was told that it has no
    column."""
    code, answers, err = ask(ending, toml, contents(6)[ending])
    assert (code, err) == (0, "")
    assert [each["prediction"] for each in answers] == [label for *_, label in rows(6)]
    if ending == "csv":
        assert [each["id"] for each in answers] == [number for number, *_ in rows(6)]


def test_what_a_user_says_counts_more(ask) -> None:
    """The next file came out of another program: commas, UTF-8 and another name."""
    new = "id,note\na,ein öde Film\n".encode()
    code, answers, err = ask("csv", CSV, new, "--from", "csv", "--column", "text=note")
    assert (code, err) == (0, "")
    assert [(each["id"], each["prediction"]) for each in answers] == [("a", "neg")]


def test_one_column_may_have_another_name(ask) -> None:
    new = "Notiz;Nr\nein öde Film;z9\n".encode("cp1252")
    code, answers, _ = ask("csv", CSV, new, "--column", "text=Notiz")
    assert (code, [(each["id"], each["prediction"]) for each in answers]) == (0, [("z9", "neg")])


def test_a_file_of_another_ending_is_read_by_its_own(ask) -> None:
    code, answers, err = ask("csv", CSV, "ein öde Film\n".encode(), name="new.txt")
    assert (code, err) == (0, "")
    assert [each["prediction"] for each in answers] == ["neg"]


@pytest.mark.parametrize(
    ("ending", "toml", "fault"),
    [("csv", CSV, "new.csv:5: passed over: byte 0x81 at place 1 is not CP1252"), ("tsv", TSV, "new.tsv, line 4: ")],
)
def test_a_byte_of_another_encoding_is_named_with_its_line(ask, ending: str, toml: str, fault: str) -> None:
    """In UTF-16 nothing can be read behind it."""
    bad = {"csv": b"\x81;gut;pos\n", "tsv": b"\x00\xd8\n\x00"}[ending]
    code, answers, err = ask(ending, toml, contents(3)[ending] + bad + contents(3)[ending])
    assert (code, len(answers)) == {"csv": (1, 7), "tsv": (2, 0)}[ending]
    assert fault in err
