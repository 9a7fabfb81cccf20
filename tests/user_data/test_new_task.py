"""`archbench new-task`: the TOML file that it writes can be run, and says what its owner should
know."""

from __future__ import annotations

import json
import os
import re
import shlex
import tomllib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness import cli, registry
from harness.errors import UsageError
from tests.user_data.conftest import reviews
from tests.user_data.test_files import sound


@pytest.fixture
def new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys):
    """Runs the command on a file of some content; returns exit code, the TOML's text and values,
    and what was told."""
    monkeypatch.chdir(tmp_path)

    def run(name: str, content: str | bytes, *options: str) -> tuple[int, str, dict, str]:
        if content:
            Path(name).write_bytes(content.encode() if isinstance(content, str) else content)
        with pytest.raises(SystemExit) as ended:
            cli.main(["new-task", name, "--out", "made.toml", *options])
        out, err = capsys.readouterr()
        text = Path("made.toml").read_text(encoding="utf-8") if Path("made.toml").exists() else ""
        Path("made.toml").unlink(missing_ok=True)
        assert not [path for path in Path().iterdir() if path.name.startswith(".")], "a trial was left behind"
        return int(ended.value.code or 0), text, tomllib.loads(text), out + err

    return run


def rows(count: int, line: str) -> str:
    return "".join(line.format(n=n, h=n // 4, c="ab"[n % 2], z=int(n % 4 == 0), s=n / 7) + "\n" for n in range(count))


@pytest.mark.parametrize(
    ("name", "content", "type", "columns"),
    [
        ("a.csv", "review,stars\n" + rows(120, "film {n},{c}"), "classify", {"text": "review", "label": "stars"}),
        ("a.csv", rows(120, "film {n},{c}"), "classify", {"text": 1, "label": 2}),
        ("a.csv", "ID;Foo;Bar\n" + rows(120, "x{n};a long text {n};{c}"), "classify",
         {"text": "Foo", "label": "Bar", "id": "ID"}),
        ("a.tsv", "premise\thypothesis\tlabel\n" + rows(120, "p {n}\th {n}\t{c}"), "match",
         {"first": "premise", "second": "hypothesis", "label": "label"}),
        ("a.tsv", "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"
         + rows(120, "{z}\t{n}\t7{n}\tis {n}\twas {n}"), "match",
         {"first": "#1 String", "second": "#2 String", "label": "Quality"}),
        ("a.csv", "sentence_a,sentence_b,judgement\n" + rows(120, "p {n},h {n},{z}"), "match",
         {"first": "sentence_a", "second": "sentence_b", "label": "judgement"}),
        ("a.csv", "question,answer,label\n" + rows(120, "q {h},a {n},{z}"), "rank",
         {"first": "question", "second": "answer", "label": "label", "group": "question"}),
        ("a.csv", "text,score\n" + rows(120, "t {n},{s}"), "regress", {"text": "text", "score": "score"}),
        ("a.csv", "sentence1,sentence2,score\n" + rows(120, "t {n},u {n},{s}"), "regress_pair",
         {"first": "sentence1", "second": "sentence2", "score": "score"}),
        ("a.csv", "context,question,answer\n" + rows(120, "it is {n},what,{n}"), "extract",
         {"passage": "context", "question": "question", "answers": "answer"}),
        ("a.conll", rows(120, "w{n} X B-{c}\n"), "tag", {"text": 1, "tags": 3}),
        ("a.jsonl", "".join(json.dumps({"tokens": [f"w{n}"], "ner_tags": ["O"]}) + "\n" for n in range(120)), "tag",
         {"text": "tokens", "tags": "ner_tags"}),
        ("a.jsonl", "".join(json.dumps({"text": f"w {n}", "topics": 1, "labels": ["a", "b"][: n % 3]}) + "\n"
                            for n in range(120)), "multilabel", {"text": "text", "labels": "labels"}),
    ],
)  # fmt: skip
def test_what_it_writes_can_be_run_as_it_stands(new, name: str, content: str, type: str, columns: dict):
    """A user gives a file and nothing else."""
    code, text, values, told = new(name, content)
    assert (code, values["type"], values["columns"]) == (0, type, columns), told
    assert "# rows: train 84, dev 12, test 24" in text
    Path("made.toml").write_text(text, encoding="utf-8")
    [entry] = registry.match("tasks", "made.toml")
    task = registry.load(entry)(entry)
    assert sum(len(task.load(split)) for split in ("train", "dev", "test")) == 120


@pytest.mark.parametrize("options", [(), ("--text", "note", "--label", "topic")])
def test_labels_in_one_cell_are_those_of_a_text_with_several(new, options: tuple[str, ...]):
    """A user was told to name the columns that he had named; a text without a label is one too."""
    content = "note,topic\n" + "".join(f"note {n},{('a', 'b', 'a b', '')[n % 4]}\n" for n in range(120))
    code, text, values, told = new("a.csv", content, "--type", "multilabel", *options)
    assert (code, values["columns"]) == (0, {"text": "note", "labels": "topic"}), told
    assert (values["type"], values["main_metric"]) == ("multilabel", "micro_f1")
    assert '2 values of labels: "a" 50.0%, "b" 50.0%' in text and "drop_missing" not in text and "empty" not in told
    Path("made.toml").write_text(text, encoding="utf-8")
    [entry] = registry.match("tasks", "made.toml")
    train = registry.load(entry)(entry).load("train")
    assert sorted(map(tuple, {tuple(labels) for labels in train["labels"]})) == [(), ("a",), ("a", "b"), ("b",)]


@pytest.mark.parametrize("own", [0, 1100])
def test_a_column_of_ids_whose_values_repeat_is_no_column_of_ids(new, own: int):
    """The id of a product stands beside each of its reviews: the command must not end for good
    there, also where the first thousand rows are of different products."""
    content = "id,review,stars\n" + "".join(f"{n if n < own else n // 4},film {n},{n % 2}\n" for n in range(own + 120))
    code, _, values, told = new("a.csv", content)
    assert (code, values["columns"]) == (0, {"text": "review", "label": "stars"}), told
    differing = "key,review,stars\n" + "".join(f"k{n},film {n},{n % 2}\n" for n in range(own + 120))
    assert new("a.csv", differing)[2]["columns"]["id"] == "key"


def test_parquet_and_a_folder_of_recordings_are_looked_at(new, tmp_path: Path):
    pq.write_table(pa.table({"text": [f"t {n}" for n in range(20)], "label": [n % 2 for n in range(20)]}), "a.parquet")
    assert new("a.parquet", "")[2]["columns"] == {"text": "text", "label": "label"}
    folder = tmp_path / "wavs"
    folder.mkdir()
    for n in range(10):
        (folder / f"{n}.wav").write_bytes(sound(100 + n))
    (folder / "list.csv").write_text(
        "file,word\n" + "".join(f"{n}.wav,{'yes' if n % 2 else 'no'}\n" for n in range(10))
    )
    code, _, values, told = new("wavs", "")
    assert (code, values["data"]["all"], values["columns"]) == (0, "wavs/list.csv", {"audio": "file", "label": "word"})
    assert "10 rows are too few" in told
    (folder / "other.csv").write_text("x")
    assert "expected one list of its recordings" in new("wavs", "")[3]


def test_a_list_of_transcripts_is_a_task_of_transcription(new, tmp_path: Path):
    """Sentences that are all different are no classes of recordings."""
    folder = tmp_path / "wavs"
    folder.mkdir()
    for n in range(3):
        (folder / f"{n}.wav").write_bytes(sound(100 + n))
    (folder / "list.csv").write_text("file,sentence\n0.wav,so it is\n1.wav,no it is not\n2.wav,it may be\n")
    _, _, values, told = new("wavs", "")
    assert (values["type"], values["columns"]) == ("transcribe", {"audio": "file", "transcript": "sentence"}), told


def test_given_columns_and_splits_count_more_than_guesses(new):
    content = "a,b,c,writer\n" + rows(120, "text {n},{c},no {n},w{h}")
    code, text, values, told = new("a.csv", content, "--text", "c", "--label", "2", "--group", "writer")
    assert code == 0, told
    assert values["columns"] == {"text": "c", "label": "b"}
    assert values["splits"]["group"] == "writer"
    code, _, _, told = new("a.csv", content, "--text", "d")
    assert (code, "--text d: no such column in a.csv" in told) == (2, True)
    Path("test.csv").write_text("a,b,c,writer\n" + rows(30, "text {n},{c},no {n},w{h}"))
    code, text, values, told = new("a.csv", content, "--text", "c", "--label", "b", "--test", "test.csv")
    assert (values["data"]["train"], values["data"]["test"]) == ("a.csv", "test.csv")
    assert "of 30 rows of test read as a row of train" in told and "WARNING: " in text


def test_what_its_owner_should_know_is_counted_and_told(new):
    """A warning with a number, in the file and on the screen."""
    content = reviews(100).replace("film 7 was bad,neg", "film 9 was bad,pos").replace("film 3 was bad", "")
    content = content.replace("film 0 was good,pos", "film 0 was good,Pos").encode("cp1252") + b"ann\xe9e,pos\n"
    code, text, values, told = new("a.csv", content)
    assert code == 0, told
    for said in (
        '1 cells of column "review" are empty, the first in line 5; left out',
        'classes of column "stars" differ in capitals alone: "Pos", "pos"',
        '1 values of label stand in fewer than 5 rows: "Pos"',
        "1 duplicates have another label than their first",
    ):
        assert f"WARNING: {said}" in text and f"warning: {said}" in told
    assert "# duplicates: 1 rows repeat the text of another one" in text
    assert '3 values of label: "pos" ' in text
    assert (values["data"]["encoding"], values["data"]["drop_missing"]) == ("cp1252", True)


def test_one_class_and_few_rows_are_told_and_the_file_is_written(new):
    _, text, _, told = new("a.csv", "text,label\n" + rows(10, "t {n},x"), "--label", "label")
    assert "it cannot be run so" in told and "has one value in train, 'x'" in told
    assert "10 rows are too few" in told and text


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("review,stars\n" + rows(20, "x {n},{c}") + "too,many,here\n", "a.csv, line 22: 3 columns instead of 2"),
        ("review,stars\n", "a.csv: it has no rows"),
        ('review,stars\n"' + rows(20, "x {n},{c}"), "a.csv, line 2: the row that begins here cannot be read"),
        ("a\n" + rows(20, "x {n}"), "no columns of a task were found; name them by --text and --label"),
    ],
)
def test_what_cannot_be_read_or_guessed_is_named_and_nothing_written(new, content: str, said: str):
    code, text, _, told = new("a.csv", content)
    assert (code, text) == (2, "")
    assert said in told


def test_a_file_that_is_there_is_never_written_over(tmp_path: Path, monkeypatch):
    from harness.user_data.description import Source
    from harness.user_data.writing import new_task

    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text(reviews(20))
    Path("a.toml").write_text("mine")
    with pytest.raises(UsageError, match="a.toml exists already"):
        new_task(Path("a.csv"), columns={}, type=None, group=None, others={}, source=Source(), out=None)
    assert Path("a.toml").read_text() == "mine"


def jsonl(**columns) -> str:
    """Objects with these columns; of a function the value of each number."""
    return "".join(
        json.dumps({name: each(n) if callable(each) else each for name, each in columns.items()}) + "\n"
        for n in range(120)
    )


TOKENS = jsonl(
    tokens=lambda n: [f"w{n}"], pos_tags=["N"], chunk_tags=["O"], ner_tags=["O"], mood=lambda n: ("pos", "neg")[n % 2]
)


@pytest.mark.parametrize(
    ("name", "content", "options", "type", "columns"),
    [
        ("a.jsonl", TOKENS, ("--label", "pos_tags"), "tag", {"text": "tokens", "tags": "pos_tags"}),
        ("a.jsonl", TOKENS, ("--label", "mood"), "classify", {"text": "tokens", "label": "mood"}),
        ("a.jsonl", jsonl(sent=lambda n: [f"w{n}"], ner=["O"]), ("--text", "sent", "--label", "ner"), "tag",
         {"text": "sent", "tags": "ner"}),
        ("a.csv", "premise,hypothesis,label\n" + rows(120, "p {n},h {n},{c}"), ("--second", "hypothesis"), "match",
         {"first": "premise", "second": "hypothesis", "label": "label"}),
        ("a.csv", "source,target\n" + rows(120, "a house {n},ein Haus {n}"), (), "translate",
         {"source": "source", "target": "target"}),
        ("a.csv", "en,de\n" + rows(120, "a house {n},ein Haus {n}"),
         ("--type", "translate", "--text", "en", "--label", "de"), "translate", {"source": "en", "target": "de"}),
        ("a.csv", "passage,question,answer\n" + rows(120, "it is {n},what,{n}"),
         ("--type", "extract", "--text", "passage"), "extract",
         {"passage": "passage", "question": "question", "answers": "answer"}),
        ("a.csv", "words,tags\n" + rows(120, "w{n} x,N V"), ("--type", "tag", "--text", "words", "--label", "tags"),
         "tag", {"text": "words", "tags": "tags"}),
        ("a.csv", "line\n" + rows(120, "so it is {n}"), ("--type", "language_model", "--text", "line"),
         "language_model", {"text": "line"}),
        ("a.csv", "message,spam\n" + rows(120, "call {n},") .replace(",\n", ",spam\n", 60).replace(",\n", ",ham\n"),
         (), "classify", {"text": "message", "label": "spam"}),
    ],
)  # fmt: skip
def test_columns_and_type_that_are_named_have_a_part_in_the_task(
    new, name: str, content: str, options: tuple[str, ...], type: str, columns: dict
):
    """Who asked for parts of speech got a task of named entities, and no word about it."""
    code, _, values, told = new(name, content, *options)
    assert (code, values["type"], values["columns"]) == (0, type, columns), told


def test_columns_that_no_type_has_room_for_are_named(new):
    code, _, _, told = new("a.jsonl", TOKENS, "--label", "mood", "--type", "extract")
    assert code == 2 and "of type extract (passage, question, answers) with mood were found" in told


@pytest.mark.parametrize(
    ("type", "content"),
    [
        ("classify", "review,stars\n" + rows(120, "film {n},{c}")),
        ("tag", "words,tags\n" + rows(120, "w{n} x,B-N O")),
        ("extract", "passage,question,answer\n" + rows(120, "it is {n},what,{n}")),
        ("regress", "text,score\n" + rows(120, "t {n},{s}")),
        ("translate", "source,target\n" + rows(120, "a house {n},ein Haus {n}")),
    ],
)
def test_the_next_command_runs_something(new, type: str, content: str, capsys):
    """Of a file of tags it named two text classifiers, of which none fits."""
    code, text, _, told = new("a.csv", content, "--type", type)
    assert code == 0, told
    Path("made.toml").write_text(text, encoding="utf-8")
    command = shlex.split(told[told.index("archbench run") :].splitlines()[0])
    with pytest.raises(SystemExit) as ended:
        cli.main([*command[1:], "--dry-run"])
    assert ended.value.code == 0
    assert re.search(r"^\s*2 to run, 0 to skip", capsys.readouterr().out, re.MULTILINE)


def test_a_guess_that_makes_other_texts_is_told(new):
    """Chinese was read as Western European, and names of columns as an example of spam."""
    for encoding, words in (("gbk", "电影很好"), ("cp1251", "хороший фильм")):
        content = "review,stars\n" + rows(120, words + " {n},{c}")
        _, _, _, told = new("a.csv", content.encode(encoding))
        assert "is a guess; if line 2, " in told and "gbk" in told
    code, _, values, told = new("a.csv", "0,1\n" + rows(120, "a long text {n},{c}"))
    assert (code, values["data"]["header"]) == (0, False)
    assert 'warning: the first row, with the text "0", counts as an example' in told
    assert "counts as an example" not in new("a.csv", rows(120, "a long text {n},{c}"))[3]


def test_a_name_that_toml_cannot_hold_is_refused(new, monkeypatch):
    name = os.fsdecode(b"r\xe9vue.csv")
    Path(name).write_text("review,stars\n" + rows(20, "x {n},{c}"))
    code, _, _, told = new(name, "")
    assert code == 2 and "a name that is not UTF-8" in told


def test_a_file_that_is_called_as_a_task_of_ours_has_an_id_of_its_own(new, tmp_path: Path):
    """It ended in "'sst2' is registered twice" with no way out. A comma parts names after -t."""
    Path("sst2.csv").write_text("review,stars\n" + rows(20, "x {n},{c}"))
    Path("a,b.csv").write_text("review,stars\n" + rows(20, "x {n},{c}"))
    for name, file in (("sst2.csv", "sst2.toml"), ("a,b.csv", "a_b.toml")):
        with pytest.raises(SystemExit):
            cli.main(["new-task", name])
        assert Path(file).exists()
    assert tomllib.loads(Path("sst2.toml").read_text())["id"] == "own_sst2"
    assert [entry.id for entry in registry.match("tasks", "./sst2.toml,./a_b.toml")] == ["own_sst2", "a_b"]


def test_a_question_without_an_answer_is_one_of_the_rows(new):
    """It was said to be left out, and was not."""
    content = "".join(
        json.dumps({"passage": f"it is {n}", "question": "what", "answer": "" if n % 4 == 0 else str(n)}) + "\n"
        for n in range(200)
    )
    code, text, values, told = new("a.jsonl", content)
    assert (code, values["type"], "left out" in told, "drop_missing" in text) == (0, "extract", False, False), told
    assert "# rows: train 140, dev 20, test 40" in text


def test_each_row_that_contradicts_its_first_counts(new):
    """Three of them were "1 duplicates"."""
    content = "text,label\n" + rows(40, "t {n},{c}") + "t 0,b\n" * 3
    assert "3 duplicates have another label than their first" in new("a.csv", content)[3]


@pytest.mark.parametrize("options", [("--group", "writer"), ()], ids=["group", "split"])
def test_rows_whose_group_or_split_is_empty_are_left_out_and_told(new, options: tuple[str, ...]):
    """The advice was to change a file that had not been written."""
    name, value = ("writer", "w{n}") if options else ("split", "train")
    lines = [f"film {n},{'ab'[n % 2]},{value.format(n=n // 4)}" for n in range(120)]
    if not options:
        lines = [line.replace("train", ("train", "dev", "test")[n % 3]) for n, line in enumerate(lines)]
    lines[7] = lines[7].rpartition(",")[0] + ","
    code, text, _, told = new("a.csv", f"review,stars,{name}\n" + "\n".join(lines) + "\n", *options)
    assert code == 0 and "drop_missing = true" in text
    assert f'1 cells of column "{name}" are empty, the first in line 9; left out' in told


@pytest.mark.parametrize(
    ("out", "said"),
    [("x,y.toml", "a comma parts the names of two tasks"), ("a.csv/x.toml", "must be written there"),
     (f"{'x' * 248}.toml", "must be written there"), (f"{'x' * 300}.toml", "must be written there")],
)  # fmt: skip
def test_a_place_that_cannot_hold_the_description_is_named(new, out: str, said: str):
    code, _, _, told = new("a.csv", reviews(120), "--out", out)
    assert code == 2 and said in told and "Traceback" not in told


def test_data_are_found_from_a_linked_folder(new, tmp_path: Path):
    """`..` of a linked folder is above its target: on a Mac /tmp is such a link."""
    (tmp_path / "deep" / "other").mkdir(parents=True)
    Path("link").symlink_to(tmp_path / "deep" / "other")
    code, _, _, told = new("a.csv", reviews(120), "--out", "link/x.toml")
    assert code == 0, told
    [entry] = registry.match("tasks", "link/x.toml")
    assert len(registry.load(entry)(entry).read("train")) == 84


def test_what_no_file_can_be_is_told_in_words(new):
    """Files whose splits hold texts in two forms, and a folder in the place of a list."""
    Path("dev.jsonl").write_text(
        "".join(json.dumps({"text": f"w {n}", "label": "ab"[n % 2]}) + "\n" for n in range(40))
    )
    train = "".join(json.dumps({"text": ["w", f"{n}"], "label": "ab"[n % 2]}) + "\n" for n in range(120))
    code, _, _, told = new("train.jsonl", train, "--dev", "dev.jsonl")
    assert code == 2 and "a column holds lists in one file and texts in another" in told
    Path("sounds/list.csv").mkdir(parents=True)
    code, _, _, told = new("sounds", "")
    assert code == 2 and "expected one list of its recordings" in told
