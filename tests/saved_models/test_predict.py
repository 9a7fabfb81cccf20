"""`archbench predict`: texts in, answers out, and every line that cannot be read by its number."""

from __future__ import annotations

import csv
import io
import itertools
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness import cli
from harness.errors import DataError, UsageError
from harness.records import Record
from harness.saved_models import prediction, reading
from harness.saved_models.prediction import answered
from harness.saved_models.reading import Asked, Wanted, asked
from harness.saved_models.storage import find
from harness.user_data.description import Manner, Source
from tests.saved_models.cells import kept_cell, loaded, rows_of_test

Outcome = tuple[int, str, str]
Predict = Callable[..., Outcome]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("results")


@pytest.fixture(scope="module")
def classifier(results: Path) -> Record:
    return kept_cell("avg_vectors", "sst2", results)


@pytest.fixture
def predict(results: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Predict:
    """Runs the command on a record's model; ``given`` is its standard input."""

    def run(record: Record, *arguments: str, given: bytes = b"") -> Outcome:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(given)))
        capsys.readouterr()  # what the training printed
        with pytest.raises(SystemExit) as ended:
            cli.main(["predict", record.key, "--results", str(results), *arguments])
        return int(ended.value.code or 0), *capsys.readouterr()

    return run


def test_lines_are_answered_in_their_order(predict: Predict, classifier: Record) -> None:
    code, out, err = predict(classifier, "--to", "jsonl", given=b"a warm film\nit is dull\r\nfine")
    answers = [json.loads(line) for line in out.splitlines()]
    assert (code, err) == (0, "")
    assert [answer["line"] for answer in answers] == [1, 2, 3]
    assert all(set(answer["probabilities"]) == {"negative", "positive"} for answer in answers)


def test_bad_lines_are_named_and_passed_over(predict: Predict, classifier: Record) -> None:
    """A file of a million texts always has some, and the others are wanted."""
    code, out, err = predict(classifier, "--to", "jsonl", given=b"\xef\xbb\xbfgood\n\nbad \xff\nlast")
    assert [json.loads(line)["line"] for line in out.splitlines()] == [1, 4]
    assert code == 1
    assert "standard input:2: passed over: text is empty" in err
    assert "standard input:3: passed over: byte 0xff at place 5 is not UTF-8" in err
    assert "2 passed over" in err


def test_a_table_is_read_by_the_names_of_its_columns(predict: Predict, classifier: Record, tmp_path: Path) -> None:
    file = tmp_path / "reviews.csv"
    file.write_bytes(b'id,review,stars\na,"over\ntwo lines, ""quoted""",1\nb,short\nc,"bad \xff",2\nd,fine,3\n')
    code, out, err = predict(classifier, str(file), "--column", "text=review", "--to", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert code == 1
    assert [(row["line"], row["id"]) for row in rows] == [("2", "a"), ("6", "d")]
    assert {"prediction", "probability", "probabilities: negative", "probabilities: positive"} <= set(rows[0])
    assert f"{file}:4: passed over: 2 cells, and the first line has 3" in err
    assert f"{file}:5: passed over: byte 0xff" in err


def read(content: bytes, manner: Manner, stream: type = io.BytesIO) -> list[tuple[int, str | None, str]]:
    """Line, text and fault of each question in a file."""
    found = asked(stream(content), Wanted({"text": "string"}, "new", manner=manner))
    return [(each.line, each.row and each.row["text"], each.fault) for each in found]


class Pipe(io.BytesIO):
    """Bytes that come once, as from another program."""

    def seekable(self) -> bool:
        return False


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-8-sig"])
@pytest.mark.parametrize("form", ["lines", "csv"])
def test_a_byte_order_mark_tells_the_encoding(encoding: str, form: str) -> None:
    """Windows writes UTF-16 with a mark; its bytes taken for UTF-8 were answered as texts with a
    NUL beside each letter."""
    content = "text\ngood film\nöde\n".encode(encoding)
    found = read(content, Manner(form))
    assert found[-2:] == [(2, "good film", ""), (3, "öde", "")]


def test_what_was_read_of_a_stream_before_is_not_read_again() -> None:
    """``( read -r header; archbench predict KEY ) < FILE`` passes over the header."""
    stream = io.BytesIO(b"header\ngood\nbad\n")
    stream.readline()
    found = asked(stream, Wanted({"text": "string"}, "-", manner=Manner("lines")))
    assert [each.row and each.row["text"] for each in found] == ["good", "bad"]
    stream = io.BytesIO("header\ngood\n".encode("utf-16-le"))
    stream.read(len("header\n".encode("utf-16-le")))
    manner = Manner("lines", Source(encoding="utf-16-le"))
    found = asked(stream, Wanted({"text": "string"}, "-", manner=manner))
    assert [each.row and each.row["text"] for each in found] == ["good"]


def test_a_header_that_cannot_be_read_ends_the_command() -> None:
    """The first row of the data would be taken for it, and be answered by nobody."""
    content = "Größe,Text\n1,first\n2,second\n".encode("latin-1")
    with pytest.raises(DataError, match="new, line 1: byte 0xf6 at place 3 is not UTF-8; the names of the columns"):
        read(content, Manner("csv", names={"text": 2}))
    with pytest.raises(DataError, match="line 1: .*expected after.*; the names of the columns cannot be read"):
        read(b'id,"te"xt\n1,first\n', Manner("csv", names={"text": 2}))
    assert [text for _, text, _ in read(content, Manner("csv", Source(header=False), {"text": 2}))] == [
        None,
        "first",
        "second",
    ]


def test_utf_16_in_a_pipe_is_told() -> None:
    content = "good\nbad\n".encode("utf-16-le")
    assert [line for line, text, fault in read(content, Manner("lines"), Pipe) if "NUL character" in fault] == [1, 2, 3]
    assert not any(text for _, text, _ in read(content, Manner("lines")))


def test_no_line_of_a_table_goes_unnamed() -> None:
    """A line that cannot be decoded was forgotten where a broken quote followed it, and left out of
    a text in quotes that went on behind it."""
    found = read(b'text,n\n\xff bad,1\n"a"b,2\ngood,3\n', Manner("csv"))
    assert [(line, text) for line, text, _ in found] == [(2, None), (3, None), (4, "good")]
    assert "0xff" in found[0][2] and "expected after" in found[1][2]
    found = read(b'text,n\n"first\n\xff\nlast",1\ngood,2\n', Manner("csv"))
    assert [(line, text) for line, text, _ in found] == [(3, None), (2, None), (5, "good")]
    assert found[1][2] == "a line of it cannot be read"


def test_blank_lines_before_the_header_are_none() -> None:
    assert read(b"\n\ntext,n\ngood,3\n", Manner("csv")) == [(4, "good", "")]


@pytest.mark.parametrize(
    ("content", "name", "header"),
    [(b"1,good\n2,bad\n", "2", False), (b"n,review\n1,good\n2,bad\n", "2", True), (b"2,1\ngood,x\nbad,y\n", "2", True)],
)
def test_a_column_is_told_by_its_number_where_none_is_called_so(content: bytes, name: str, header: bool) -> None:
    """A table without a header has nothing else."""
    manner = Manner("csv", Source(header=header), names={"text": name})
    assert [text for _, text, _ in read(content, manner)] == ["good", "bad"]


def test_quotes_in_tsv_are_letters_unless_its_description_says_otherwise() -> None:
    """As in the TSV of an own task: a text that begins with one would take the lines behind it for
    its own, and the user would miss their answers."""
    texts = ["first", '"Great movie he said', 'he called it art"', '"again', "last one here"]
    lines = [f"{text}\t{n}" for n, text in enumerate(texts)]
    content = "\n".join(["text\tid", *lines]).encode()
    found = list(asked(io.BytesIO(content), Wanted({"text": "string"}, "-", manner=Manner("tsv"))))
    assert [each.row and each.row["text"] for each in found] == texts
    quoted = Manner("tsv", Source(quotes=True))
    found = list(asked(io.BytesIO(b'text\n"two\nlines"\n'), Wanted({"text": "string"}, "-", manner=quoted)))
    assert [each.row and each.row["text"] for each in found] == ["two\nlines"]


def test_a_column_that_is_not_there_is_named(predict: Predict, classifier: Record, tmp_path: Path) -> None:
    file = tmp_path / "reviews.tsv"
    file.write_text("review\tstars\nfine\t3\n")
    code, _, err = predict(classifier, str(file))
    assert code == 2
    assert "no column text (found: review, stars); name the one that is meant with --column text=NAME" in err


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ('{"txt": 1}', "no text"),
        ('{"text": 1}', "text is 1, expected a list of strings"),
        ('{"text": null}', "text is None"),
        ('{"text": []}', "text is []"),
        ("[", "no JSON"),
        ("3", "a int, expected an object with text"),
    ],
)
def test_a_bad_object_is_named(predict: Predict, classifier: Record, line: str, fault: str) -> None:
    code, out, err = predict(
        classifier, "--from", "jsonl", "--to", "jsonl", given=f'"as it is"\n{line}\n{{"id": 7, "text": "so"}}'.encode()
    )
    assert code == 1
    assert [json.loads(each).get("id") for each in out.splitlines()] == [None, "7"]
    assert f"standard input:2: passed over: {fault}" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.txt"], "FILE nowhere.txt: No such file"),
        (["--from", "jsonlines"], "--from jsonlines: unknown; did you mean"),
        (["--to", "xml"], "--to xml: unknown; choose from table, csv, jsonl"),
        (["--column", "text"], "--column text: expected NAME=COLUMN, such as text=review"),
        (["--column", "txt=a"], "txt: unknown; did you mean text"),
        (["--from", "wav"], "a recording, and this model reads text"),
    ],
)
def test_a_wrong_option_ends_with_what_would_be_right(
    predict: Predict, classifier: Record, arguments: list[str], message: str
) -> None:
    code, _, err = predict(classifier, *arguments, given=b"x")
    assert code == 2
    assert message in err


def test_a_model_is_found_by_the_beginning_of_its_key_or_its_folder(
    results: Path, classifier: Record, predict: Predict
) -> None:
    short = classifier.model_copy(update={"key": classifier.key[:5]})
    folder = classifier.model_copy(update={"key": str(results / "models" / classifier.key)})
    assert [predict(record, given=b"fine")[0] for record in (short, folder)] == [0, 0]
    code, _, err = predict(classifier.model_copy(update={"key": "zzz"}), given=b"fine")
    assert code == 2 and "MODEL zzz: no such folder, and no such model is kept" in err


def test_tags_stand_beside_the_words_that_blanks_part(predict: Predict, results: Path) -> None:
    """The answer of a tagger is of no use where its words cannot be counted."""
    record = kept_cell("hmm", "conll2003_ner", results)
    code, out, _ = predict(record, "--to", "jsonl", given=b"Mr. Smith doesn't live in New-York .\n")
    assert code == 0
    assert len(json.loads(out)["prediction"]) == 7


def test_a_name_of_a_later_row_is_in_the_table(predict: Predict, classifier: Record) -> None:
    """The first answer says what the columns are, and its row may have no name."""
    given = b'{"text": "good"}\n{"id": "r7", "text": "bad"}\n'
    code, out, _ = predict(classifier, "--from", "jsonl", "--to", "csv", given=given)
    assert (code, [(row["line"], row["id"]) for row in csv.DictReader(io.StringIO(out))]) == (
        0,
        [("1", ""), ("2", "r7")],
    )


def test_a_text_in_the_place_of_the_model_is_told(results: Path) -> None:
    """Who forgets MODEL gives a name that is longer than any."""
    with pytest.raises(UsageError, match="MODEL good good .*: no such folder, and no such model is kept"):
        find("good " * 80, results)


def test_pairs_are_parted_by_a_tab(predict: Predict, results: Path) -> None:
    record = kept_cell("decomposable", "wikiqa", results)
    code, out, err = predict(record, "--to", "jsonl", given=b"who is it?\tit is me\nno tab\n")
    (answer,) = map(json.loads, out.splitlines())
    assert isinstance(answer["prediction"], float) and 0 < answer["probability"] < 1
    assert code == 1
    assert "standard input:2: passed over: 1 parts, expected first and second with a tab between" in err


def test_the_facts_of_a_story_come_before_its_question(predict: Predict, results: Path) -> None:
    record = kept_cell("memn2n", "babi", results)
    code, out, err = predict(record, "--to", "jsonl", given=b"Mary is here.\tJohn is there.\tWhere is Mary?\n")
    assert (code, err) == (0, "")
    assert json.loads(out)["prediction"] in loaded(record, results).description.classes


def test_recordings_are_files_of_their_own_or_a_list_of_them(predict: Predict, results: Path, tmp_path: Path) -> None:
    """One that is cut off or missing costs itself alone."""
    record = kept_cell("bilstm_ctc", "an4", results)
    sound = rows_of_test("an4")[0]["audio"]["bytes"]
    (tmp_path / "one.wav").write_bytes(sound)
    (tmp_path / "two.wav").write_bytes(sound[:-500])
    listed = "\n".join(str(tmp_path / name) for name in ("one.wav", "two.wav", "three.wav", "one.wav"))
    code, out, err = predict(record, "--to", "jsonl", given=listed.encode())
    answers = [json.loads(line) for line in out.splitlines()]
    assert code == 1
    assert [answer["line"] for answer in answers] == [1, 4]
    assert answers[0]["prediction"] == answers[1]["prediction"]
    assert "standard input:2: passed over" in err and "cut off" in err
    assert "standard input:3: passed over" in err and "No such file" in err
    code, out, err = predict(record, str(tmp_path / "one.wav"), "--to", "jsonl")
    assert (code, json.loads(out)["prediction"]) == (0, answers[0]["prediction"])


def test_texts_are_read_as_they_are_answered(classifier: Record, results: Path, monkeypatch) -> None:
    """A stream has no end, and a file may be larger than the memory."""
    monkeypatch.setattr(prediction, "AT_ONCE", 8)
    read: list[int] = []

    def endless() -> Iterator[Asked]:
        for line in itertools.count(1):
            read.append(line)
            yield Asked(line, None, {"id": str(line), "text": ["good"]})

    found = list(itertools.islice(answered(loaded(classifier, results), endless()), 20))
    assert [each.question.line for each in found] == list(range(1, 21))
    assert len(read) == 24


def test_a_line_without_end_does_not_fill_the_memory(monkeypatch) -> None:
    monkeypatch.setattr(reading, "LONGEST_LINE", 10)
    found = list(asked(io.BytesIO(b"short\n" + b"x" * 1000 + b"\nagain\n"), Wanted({"text": "string"}, "-")))
    assert [(each.line, each.fault) for each in found] == [(1, ""), (2, "more than 10 bytes in a line"), (3, "")]


@pytest.mark.parametrize("form", ["lines", "csv", "tsv", "jsonl"])
@pytest.mark.parametrize("number", range(40))
def test_no_bytes_stop_the_reader(form: str, number: int) -> None:
    """Whatever a file holds, each of its lines is read or named."""
    import random

    draw = random.Random(number)
    pieces = [
        b"text",
        b'"',
        b",",
        b"\t",
        b"\n",
        b"\r",
        b"\0",
        b"\xff",
        b'{"text": "a"}',
        b"{",
        b"[]",
        b"id",
        b"\xef\xbb\xbf",
    ]
    content = b"text,id\n" + b"".join(draw.choices(pieces, k=60))
    if form == "tsv":
        content = content.replace(b",", b"\t", 1)
    found = list(asked(io.BytesIO(content), Wanted({"text": "string"}, "-", manner=Manner(form))))
    assert found
    if form in ("lines", "jsonl"):
        assert [each.line for each in found] == list(range(1, 1 + len(content.removesuffix(b"\n").split(b"\n"))))
    for each in found:
        assert (each.row is None) == bool(each.fault)
        assert 1 <= each.line <= content.count(b"\n") + 1


def test_a_table_of_the_users_names_recordings_from_its_own_folder_on(tmp_path):
    """Data that lie in another folder were read at training, and new ones not found."""
    (tmp_path / "one.wav").write_bytes(b"RIFF")
    for beside, fault in ((True, ""), (False, "one.wav")):
        wanted = Wanted({"audio": "audio"}, str(tmp_path / "new.csv"), manner=Manner("csv", beside=beside))
        [found] = asked(io.BytesIO(b"audio\none.wav\n"), wanted)
        assert fault in found.fault and bool(found.row) == beside
        assert not beside or found.row["audio"] == {"bytes": b"RIFF", "path": "one.wav"}
