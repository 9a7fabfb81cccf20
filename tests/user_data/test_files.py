"""Files as people have them: what can be read is read, and what cannot is named with its line."""

from __future__ import annotations

import io
import json
import wave
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.errors import DataError
from tests.user_data.conftest import HEAD, reviews

EACH = HEAD.replace('all = "reviews.csv"', 'train = "train.csv"\ndev = "train.csv"\ntest = "train.csv"')
"""All splits are one small file, so that a test sees every row."""
GOOD = "review,stars\nfine,pos\nweak,neg\n"


def texts(task) -> list[tuple[str, str]]:
    return [(row["text"], row["label"]) for row in task.read("train")]


@pytest.mark.parametrize(
    ("content", "more"),
    [
        (GOOD.encode("utf-8-sig"), ""),
        (GOOD.replace("\n", "\r\n").encode(), ""),
        (GOOD.encode("utf-16"), ""),
        (GOOD.encode("utf-32"), ""),
        (GOOD.encode("utf-16-le"), 'encoding = "utf-16-le"\n'),
        (GOOD.removesuffix("\n").encode(), ""),
        (GOOD.replace("\n", "\n\n").encode(), ""),
        (GOOD.replace(",", ";").encode(), 'delimiter = ";"\n'),
        (b'"review","stars"\n"fine","pos"\n"weak"," neg "\n', ""),
    ],
    ids=["BOM", "CRLF", "UTF-16", "UTF-32", "UTF-16 without mark", "no end", "blank lines", "semicolons", "quoted"],
)
def test_the_same_rows_are_read_however_they_were_written(own, content: bytes, more: str):
    """Excel, editors on Windows and exports of data bases all write CSV, each another."""
    assert texts(own(EACH.replace("[columns]", more + "[columns]"), train_csv=content)) == [
        ("fine", "pos"),
        ("weak", "neg"),
    ]


def test_texts_of_other_encodings_and_over_lines_are_whole(own):
    content = 'review,stars\n"süß, ""sehr""\nund gut",pos\nna ja,neg\n'
    task = own(EACH.replace("[columns]", 'encoding = "cp1252"\n[columns]'), train_csv=content.encode("cp1252"))
    assert texts(task) == [('süß, "sehr"\nund gut', "pos"), ("na ja", "neg")]
    assert [row["id"] for row in task.read("train")] == ["line-2", "line-4"], "the line at which a row begins"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("review,stars\nfine,pos\nsüß,neg\n".encode("latin-1"), "line 3: byte 0xfc is not utf-8; say the encoding"),
        (GOOD.encode("utf-16-le"), "line 1: a NUL character"),
        (b"review,stars\nfine,pos,x\n", "line 2: 3 columns instead of 2"),
        (b'review,stars\n"fine",pos\n"weak,neg\nx,neg\n', "line 3: the row that begins here cannot be read"),
        (b'review,stars\n"fi"ne,pos\n', "line 2: the row that begins here cannot be read"),
        (b"review,stars\nfine,pos\n ,neg\n", "line 3: column 'review' is empty (' ')"),
        (b"review,stars\nfine,pos\nweak,NaN\n", "line 3: column 'stars' is empty ('NaN')"),
        (b"text,stars\nfine,pos\n", "line 1: no column 'review'; there are text, stars"),
        (b"reviews,stars\nfine,pos\n", "no column 'review'; did you mean reviews?"),
        (b"review,stars,stars\nfine,pos,neg\n", "2 columns are called 'stars': say its number"),
        (b"review,stars\nfine,pos\ngood,pos\n", "column 'stars' has one value in train, 'pos'"),
        (b"review,stars\n", "it has no rows"),
        (b"", "the file is empty"),
        (b"review,stars\rfine,pos\rweak,neg\r", "its lines end with a carriage return alone, as old Macs wrote them"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_line(own, content: bytes, said: str):
    """The line is what its owner looks for; a shorter data set would have been taken for the
    whole."""
    with pytest.raises(DataError) as refused:
        own(EACH, train_csv=content).load("train")
    assert "train.csv" in str(refused.value)
    assert said in str(refused.value)


def test_rows_with_an_empty_cell_are_left_out_only_where_the_description_says_so(own):
    content = "review,stars\nfine,pos\n,neg\nweak,neg\nNULL,pos\n"
    task = own(EACH.replace("[columns]", "drop_missing = true\n[columns]"), train_csv=content)
    assert texts(task) == [("fine", "pos"), ("weak", "neg")]
    assert "left out" in task.entry.protocol
    kept = own(EACH.replace("[columns]", "missing = []\n[columns]"), train_csv="review,stars\nnan,pos\nweak,neg\n")
    assert texts(kept)[0] == ("nan", "pos"), "a grandmother is no missing value for whoever says so"


def test_an_id_that_occurs_twice_is_named_with_both_lines(own):
    """Predictions are stored by id."""
    toml = EACH.replace("[columns]", '[columns]\nid = "no"')
    with pytest.raises(DataError, match="train.csv, line 4: the id 'a' stands in line 2 too"):
        own(toml, train_csv="no,review,stars\na,fine,pos\nb,weak,neg\na,poor,neg\n").load("train")


def test_columns_without_header_have_numbers(own):
    toml = EACH.replace("[columns]", "header = false\n[columns]").replace('"review"', "2").replace('"stars"', "1")
    assert texts(own(toml, train_csv="pos,fine\nneg,weak\n")) == [("fine", "pos"), ("weak", "neg")]
    with pytest.raises(DataError, match="line 1: no column 2; there are 1, counted from 1"):
        own(toml, train_csv="pos\n").load("train")


def test_tsv_takes_quotes_as_they_stand(own):
    """Texts that begin with a quote are common where nothing else is quoted."""
    toml = EACH.replace(".csv", ".tsv")
    assert texts(own(toml, train_tsv='review\tstars\n"fine\tpos\nweak\tneg\n'))[0] == ('"fine', "pos")


def test_jsonl_and_parquet_give_the_same_rows(own, tmp_path: Path):
    rows = [{"review": "fine", "stars": 5}, {"review": "weak", "stars": 1}]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "train.parquet")
    for task in (own(EACH.replace(".csv", ".jsonl"), train_jsonl=lines), own(EACH.replace(".csv", ".parquet"))):
        assert texts(task) == [("fine", "5"), ("weak", "1")]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"review": "x"', "line 2: Expecting"),
        ('["x"]', "line 2: a list, expected one JSON object a line"),
        ('{"review": "x", "review": "y", "stars": 1}', "line 2: the key 'review' stands twice"),
        ('{"review": null, "stars": 1}', "line 2: column 'review' is empty (None)"),
        ('{"stars": 1}', "line 2: column 'review' is empty (None)"),
        ('{"review": "x", "stars": NaN}', "line 2: column 'stars' is empty (nan)"),
        ('{"review": 7, "stars": 1}', "line 2: column 'review' is 7, expected a text"),
        ('{"review": "x", "stars": {"a": 1}}', "line 2: column 'stars' is {'a': 1}, expected a name or a number"),
        ('{"review": "\\ud800", "stars": 1}', "line 2: half of a surrogate pair"),
    ],
)
def test_a_wrong_line_of_jsonl_is_named(own, line: str, said: str):
    with pytest.raises(DataError) as refused:
        own(EACH.replace(".csv", ".jsonl"), train_jsonl='{"review": "fine", "stars": 1}\n' + line).load("train")
    assert f"train.jsonl, {said}" in str(refused.value)


def test_a_parquet_file_with_gaps_or_cut_off_is_named(own, tmp_path: Path):
    toml = EACH.replace(".csv", ".parquet")
    pq.write_table(pa.table({"review": ["fine", None], "stars": [1, 2]}), tmp_path / "train.parquet")
    with pytest.raises(DataError, match=r"train.parquet, row 2: column 'review' is empty \(None\)"):
        own(toml).load("train")
    content = (tmp_path / "train.parquet").read_bytes()
    with pytest.raises(DataError, match="train.parquet: not a whole Parquet file"):
        own(toml, train_parquet=content[:100]).load("train")


TAGS = 'type = "tag"\n[data]\ntrain = "a.conll"\ndev = "a.conll"\ntest = "a.conll"\n[columns]\ntext = 1\ntags = 3\n'


def test_columns_of_parquet_that_share_a_name_are_named(own, tmp_path: Path):
    """They are read by their names; Arrow's own error was a traceback."""
    names = ["review", "stars", "stars"]
    pq.write_table(pa.table([["a", "b"], ["x", "y"], ["x", "y"]], names=names), tmp_path / "reviews.parquet")
    with pytest.raises(DataError, match="reviews.parquet: 2 columns are called 'stars'"):
        own(HEAD.replace(".csv", ".parquet")).load("train")


def test_a_passage_of_words_is_no_text_that_holds_an_answer(own):
    line = json.dumps({"passage": ["it", "is"], "question": "what", "answer": "it"}) + "\n"
    toml = EACH.replace("classify", "extract").replace('text = "review"', 'passage = "passage"\nquestion = "question"')
    task = own(toml.replace('label = "stars"', 'answers = "answer"').replace(".csv", ".jsonl"), train_jsonl=line)
    with pytest.raises(DataError, match=r"train.jsonl, line 1: its passage is a list of words"):
        task.load("train")


def test_story_questions_of_one_skill_are_a_task(own):
    """The classes that a training needs are those of the answer."""
    toml = EACH.replace("classify", "answer").split("[columns]")[0].replace(".csv", ".jsonl")
    toml += '[columns]\nfacts = "f"\nquestion = "q"\nanswer = "a"\nskill = "s"\n'
    row = {"f": ["Ann is here."], "q": "who", "s": "where"}
    lines = [json.dumps(row | {"a": name}) + "\n" for name in ("Ann", "Ben")]
    assert len(own(toml, train_jsonl="".join(lines)).load("train")) == 2
    with pytest.raises(DataError, match="column 'a' has one value in train, 'Ann'"):
        own(toml, train_jsonl=lines[0]).load("train")


def test_sentences_of_conll_are_read_by_numbers_of_columns(own):
    content = "-DOCSTART- X O\n\n# sent 1\nEU NNP B-ORG\nrejects VB O\n\nPeter NNP B-PER\n"
    rows = own(TAGS, a_conll=content).read("train")
    assert [(row["id"], row["text"], row["tags"]) for row in rows] == [
        ("line-4", ["EU", "rejects"], ["B-ORG", "O"]),
        ("line-7", ["Peter"], ["B-PER"]),
    ]
    with pytest.raises(DataError, match="a.conll, line 3: 2 columns instead of 3"):
        own(TAGS, a_conll="EU NNP B-ORG\n\nrejects VB\n").load("train")


BY_TABS = "# sent_id = 1\n1\tIt\tit\tPRON\n2\tis\tbe\tAUX\n\n# sent_id = 2\n1\tNo\tno\tINTJ\n\n#\t#\t#\tSYM\n"


@pytest.mark.parametrize(
    ("content", "columns", "found"),
    [
        (BY_TABS, (2, 4), [["It", "is"], ["No"], ["#"]]),
        ("#begin document (bc/cctv); part 000\nit 0 PRP O\n\n#end document\n\nso 0 RB O\n", (1, 4), [["it"], ["so"]]),
        ("# corpus\nit O\n", (1, 2), [["it"]]),
        ("#nlp B-TAG\nis O\n\n#ai B-TAG\n\n# O\n", (1, 2), [["#nlp", "is"], ["#ai"], ["#"]]),
    ],
    ids=["CoNLL-U", "CoNLL-2012", "a first comment", "hashtags"],
)
def test_comments_of_conll_are_no_words_and_hashtags_are(own, content: str, columns: tuple[int, int], found: list):
    """Whoever gives a treebank or tweets sees no fault: a text that is told in a comment would be
    tagged as a word, or the first word of the file be missing."""
    toml = TAGS.replace("text = 1\ntags = 3", f"text = {columns[0]}\ntags = {columns[1]}")
    assert [row["text"] for row in own(toml, a_conll=content).read("dev")] == found


def test_a_row_of_empty_cells_is_an_empty_cell_and_a_blank_line_is_none(own):
    """A row that an export left empty is told, as in CSV; a shorter file would go unseen."""
    toml = EACH.replace(".csv", ".tsv")
    for end in ("\n", "\r\n"):
        rows = ["review\tstars", "fine\tpos", "", " ", "weak\tneg", ""]
        assert len(own(toml, train_tsv=end.join(rows)).read("train")) == 2
        with pytest.raises(DataError, match=r"train.tsv, line 3: column '\w+' is empty \(''\)"):
            own(toml, train_tsv=end.join([*rows[:2], "\t", *rows[4:]])).load("train")


def test_a_text_has_any_number_of_labels(own):
    """Labels that hold blanks stand in a list; an empty cell is a text without one."""
    toml = EACH.replace("classify", "multilabel").replace("label =", "labels =")
    task = own(toml, train_csv="review,stars\nfine,good short\nweak,\nso, 3 \n")
    assert [row["labels"] for row in task.read("train")] == [["good", "short"], [], ["3"]]
    lines = [{"review": "fine", "stars": ["very good", 3]}, {"review": "weak", "stars": []}, {"review": "so"}]
    by_lines = toml.replace(".csv", ".jsonl")
    task = own(by_lines, train_jsonl="".join(json.dumps(line) + "\n" for line in lines))
    found = task.read("train")
    assert [row["labels"] for row in found] == [["very good", "3"], [], []]
    task._check(found, "train")
    for wrong in (["a", "a"], ["a", " "], {"a": 1}):
        row = json.dumps({"review": "so", "stars": wrong})
        with pytest.raises(DataError, match="line 1: column 'stars' is .*, expected names, none of them twice"):
            own(by_lines, train_jsonl=row).load("train")


def test_labels_of_test_that_train_lacks_are_told_of_sets_too(own):
    toml = HEAD.replace('all = "reviews.csv"', 'train = "a.csv"\ndev = "a.csv"\ntest = "b.csv"')
    toml = toml.replace("classify", "multilabel").replace("label =", "labels =")
    notes = own(toml, a_csv="review,stars\nfine,x y\n", b_csv="review,stars\nweak,x z\n").notes()
    assert "reviews: test has 1 values of labels that train lacks" in notes[0] and "'z' (1)" in notes[0]


def test_numbers_candidates_and_answers_have_their_forms(own):
    """One file of each type that has a form of its own; a wrong value is named."""
    head = 'type = "{}"\n[data]\ntrain = "a.csv"\ndev = "a.csv"\ntest = "a.csv"\n[columns]\n'
    regress = head.format("regress") + 'text = "t"\nscore = "s"\n'
    assert [row["score"] for row in own(regress, a_csv="t,s\nx,1\ny,-2.5\n").read("dev")] == [1.0, -2.5]
    with pytest.raises(DataError, match="line 3: column 's' is 'inf', expected a finite number"):
        own(regress, a_csv="t,s\nx,1\ny,inf\n").load("dev")
    rank = head.format("rank") + 'first = "q"\nsecond = "a"\nlabel = "r"\ngroup = "q"\n'
    assert own(rank, a_csv="q,a,r\nwho,he,1\nwho,she,0\n").read("test")[1] == {
        "id": "line-3", "first": "who", "second": "she", "label": "0", "group": "who",
    }  # fmt: skip
    with pytest.raises(DataError, match="line 2: column 'r' is '2', expected 1"):
        own(rank, a_csv="q,a,r\nwho,he,2\n").load("test")
    extract = head.format("extract") + 'passage = "p"\nquestion = "q"\nanswers = "a"\n'
    rows = own(extract, a_csv="p,q,a\nit is red,what,red\nit is red,who,\n").read("train")
    assert [row["answers"] for row in rows] == [{"text": ["red"], "start": [6]}, {"text": [], "start": []}]
    with pytest.raises(DataError, match="line 2: the answer 'blue' does not stand in its passage"):
        own(extract, a_csv="p,q,a\nit is red,what,blue\n").load("train")


def sound(samples: int = 800, rate: int = 8000) -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setparams((1, 2, rate, samples, "NONE", ""))
        out.writeframes(b"\0\0" * samples)
    return file.getvalue()


def test_recordings_are_read_from_a_list_of_their_paths(own, tmp_path: Path):
    toml = EACH.replace('text = "review"', 'audio = "file"').replace('"stars"', '"word"')
    (tmp_path / "wavs").mkdir()
    (tmp_path / "wavs" / "a.wav").write_bytes(sound())
    (tmp_path / "wavs" / "b.wav").write_bytes(b"RIFF")
    rows = own(toml, train_csv="file,word\nwavs/a.wav,yes\n./wavs/a.wav,no\n").read("train")
    assert rows[0]["audio"] == {"bytes": sound(), "path": "a.wav"}
    assert own(toml).inputs == ("audio",)
    for name in ("wavs/b.wav", "wavs/c.wav", "wavs", "/dev/zero"):
        with pytest.raises(DataError, match="train.csv, line 3: column 'file' is .* expected the path of a WAV file"):
            own(toml, train_csv=f"file,word\nwavs/a.wav,yes\n{name},no\n").load("train")


@pytest.mark.parametrize("rate", [1, 3999, 192_001])
def test_a_recording_of_a_rate_that_no_device_has_is_named_before_the_run(own, tmp_path: Path, rate: int):
    """Resampling it would end the machine that computes: a thousand bytes become gigabytes."""
    toml = EACH.replace('text = "review"', 'audio = "file"').replace('"stars"', '"word"')
    (tmp_path / "a.wav").write_bytes(sound(rate=rate))
    with pytest.raises(DataError, match=f"line 2: .* a WAV file of 4,000 to 192,000 samples a second, not {rate:,}"):
        own(toml, train_csv="file,word\na.wav,yes\n").load("train")


def test_a_missing_file_is_named(own):
    with pytest.raises(DataError, match="reviews.csv: no such file; names are read from the folder of the TOML file"):
        own(HEAD).load("train")


def test_a_large_file_stays_in_arrow(own):
    """A million rows as Python objects take gigabytes; the rows of a split are one Arrow table."""
    rows = own(reviews_csv=reviews(300)).load("train")
    assert set(rows.data.table.schema.names) == {"id", "text", "label"}
    assert rows.data.nbytes < 300 * 60
