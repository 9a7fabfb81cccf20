"""`archbench predict` reads a file as the user's own data were read that the model learnt from."""

from __future__ import annotations

import io
import json
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
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
    sink = io.BytesIO()
    pq.write_table(
        pa.table({"Kritik": [row[1] for row in rows(count)], "Sterne": [row[2] for row in rows(count)]}), sink
    )
    words = ["\n".join(f"{word}\t{label}" for word in text.split()) + "\n\n" for _, text, label in rows(count)]
    return {
        "parquet": sink.getvalue(),
        "conll": "".join(words).encode(),
        "csv": table(count, ";", "Nr;Kritik;Sterne\n", "cp1252"),
        "tsv": table(count, "\t", "", "utf-16-le"),
        "jsonl": "".join(objects).encode(),
    }


@pytest.fixture
def ask(tmp_path: Path, monkeypatch, capsys):
    """Keeps a model of a description beside its data, takes both away, and asks the model about a
    new file of the same form; returns exit code, answers and errors."""

    def run(
        ending: str, toml: str, new: bytes, *arguments: str, name: str = "", type: str = "classify", head: str = ""
    ):
        file = tmp_path / "mine" / "own_whole.toml"
        file.parent.mkdir(parents=True)
        data = f'type = "{type}"\n{head}[data]\nall = "own.{ending}"\n'
        file.write_text(data + toml, encoding="utf-8")
        (file.parent / f"own.{ending}").write_bytes(contents(60)[ending])
        [entry] = registry.match("tasks", str(file))
        architecture = {"classify": "naive_bayes", "tag": "hmm"}[type]
        record = kept_cell(architecture, entry.id, tmp_path / "results", most=None, plugins=(file,))
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


@pytest.mark.parametrize(("ending", "toml"), [("csv", CSV), ("tsv", TSV), ("jsonl", JSONL), ("parquet", JSONL)])
def test_columns_delimiter_and_encoding_are_those_of_the_data(ask, ending: str, toml: str) -> None:
    """Who tried a German table in semicolons asked about the next one, and was told that it has no
    column."""
    code, answers, err = ask(ending, toml, contents(6)[ending])
    assert (code, err) == (0, "")
    assert [each["prediction"] for each in answers] == [label for *_, label in rows(6)]
    if ending == "csv":
        assert [each["id"] for each in answers] == [number for number, *_ in rows(6)]


TAGS = 'metrics = ["token_accuracy"]\n'
CONLL = "[columns]\ntext = 1\ntags = 2\n"


@pytest.mark.parametrize("new", [contents(6)["conll"], b"# id = 1\n" + contents(6)["conll"].replace(b"\t", b"\tX\t")])
def test_a_tagger_reads_sentences_as_its_own_were_written(ask, new: bytes) -> None:
    """Each line, with its tag, was taken for a sentence: the model answered of other words."""
    code, answers, err = ask("conll", CONLL, new, type="tag", head=TAGS)
    assert (code, err) == (0, "")
    assert [each["prediction"] for each in answers] == [[label] * 4 for *_, label in rows(6)]


def test_a_sentence_that_is_damaged_is_named(ask) -> None:
    code, _, err = ask("conll", CONLL, b"ein\tpos\nFilm\n", type="tag", head=TAGS)
    assert code == 2 and "new.conll, line 2: 1 columns instead of 2" in err


def test_a_table_that_is_no_parquet_is_named(ask) -> None:
    code, _, err = ask("parquet", JSONL, b"Kritik,Sterne\n")
    assert code == 2 and "new.parquet, row 1 or after it: not a whole Parquet file" in err


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
