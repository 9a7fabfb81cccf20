"""Corpora that were damaged on their way: rows of the right columns or an error with its place, and
nothing else, from every parser.

Each ``@example`` is an input that once ended in another exception, in rows that broke whoever read
them, or in a hang.
"""

from __future__ import annotations

import functools
import gzip
import io
import json
import tarfile
import wave
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from harness import registry
from harness.data.word_vectors import read_vectors
from harness.errors import DataError
from harness.task import REQUIRED, Row
from harness.views.frames import decode
from harness.views.words import Vocabulary
from tests.fuzz.mutations import mutated, packed, wrong_json

fuzz = settings(settings.get_profile("fuzz"))
gzip_of = functools.partial(gzip.compress, mtime=0)
DEEP = "[" * 50_000
LONG = "9" * 5000
HALF = '"\\ud800"'
PLACE = (
    r"(, line \d+|:\d+: |line \d+ or after it|cannot be read after line \d+|has no rows|occur twice|no vectors in it)"
)
"""Where it happened: a line, or what is said of a file as a whole."""


def check_row(type: str, row: Row) -> None:
    """The columns that views, targets and metrics read, each of its type, in texts that UTF-8 can
    hold."""
    texts = {name: value for name, value in row.items() if name not in ("audio", "answers")}
    assert set(REQUIRED[type]) < set(row)
    for value in texts.values():
        words = value if isinstance(value, list) else [value]
        assert all(isinstance(word, str) for word in words)
        "".join(words).encode()
    if type == "tag":
        assert len(row["text"]) == len(row["tags"]) > 0 and all(row["text"])
    if type == "extract":
        for text, start in zip(row["answers"]["text"], row["answers"]["start"], strict=True):
            assert row["passage"][start : start + len(text)] == text
    if type == "transcribe":
        assert isinstance(row["audio"]["bytes"], bytes)


@pytest.fixture
def read(tmp_path: Path, attempt: Callable[..., Any]) -> Callable[..., None]:
    """Writes one file of a corpus and reads a split of its task."""

    def read(parser: str, id: str, split: str, name: str, content: bytes, place: str | None = PLACE) -> None:
        entry = registry.entry("tasks", id)
        task = registry.load(entry)(entry)
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

        def rows() -> list[Row]:
            rows = list(task.local(tmp_path, split))
            task._check(rows, split)
            return rows

        for row in attempt(parser, rows, DataError, str(path), f"{id}: split {split}", place=place) or ():
            check_row(entry.type, row)
        assert sorted(tmp_path.rglob("*.*")) == [path], "a parser left a file behind"

    return read


TREES = b"(3 (2 It) (4 (2 's) (4 (3 a) (4 film))))\n(1 (2 Not) (2 good))\n\n(2 (2 8\xc2\xa01\\/2) (2 -LRB-))\n"


@fuzz
@given(mutated(TREES))
def test_trees(read, content):
    read("trees (SST)", "sst5", "train", "sst/trees/train.txt", content)


@fuzz
@given(packed(gzip_of, TREES))
def test_gzipped_trees(read, content):
    read("gzip", "sst2", "dev", "sst/trees/dev.txt.gz", content, place=None)


CONLL = (
    b"-DOCSTART- -X- -X- O\n\nEU NNP B-NP B-ORG\nrejects VBZ B-VP O\nGerman JJ I-NP I-MISC\n. . O O\n\n"
    b"Peter NNP I-NP I-PER\nB. NNP I-NP I-PER\n"
)


@fuzz
@given(mutated(CONLL))
@example(b" NNP I-NP I-ORG\n")  # a word without letters
@example(b"\xef\xbb\xbf-DOCSTART- -X- -X- O\n\nEU NNP B-NP B-ORG\n")  # a document mark that was read as a word
def test_conll(read, content):
    read("CoNLL columns", "conll2003_ner", "train", "conll2003/eng.train", content)
    read("CoNLL columns", "conll2003_pos", "train", "conll2003/eng.train", content)


CHUNKS = b"EU NNP B-NP\nrejects VBZ B-VP\nits PRP$ B-NP\ncall NN I-NP\n. . O\n\nPeter NNP B-NP\n"


@fuzz
@given(mutated(CHUNKS))
def test_conll2000(read, content):
    read("CoNLL columns", "conll2000_chunk", "test", "conll2000/test.txt", content)


NEWS = b'"3","Wall St. Bears, again","say ""short"""\n"1","two\nlines","\\$5 &lt;b&gt;"\n"4","a",""\n'


@fuzz
@given(mutated(NEWS, b","))
def test_ag_news(read, content):
    read("CSV (AG News)", "ag_news", "test", "ag_news/test.csv", content)


QUOTED = b'"1","Good ""stuff""","a\\nb, c\\""d\\"""\n"2","","x"\n'


@fuzz
@given(mutated(QUOTED, b'"'))
@example(b'"1","a","b"\n\n"2","a","b"\n')  # an empty line
def test_zhang(read, content):
    read("CSV (Zhang et al.)", "amazon2", "test", "amazon_review_polarity_csv/test.csv", content)


@fuzz
@given(packed(gzip_of, QUOTED))
def test_gzipped_zhang(read, content):
    read("gzip", "amazon2", "test", "amazon_review_polarity_csv/test.csv.gz", content, place=None)


WIKIQA = (
    b"QuestionID\tQuestion\tDocumentID\tDocumentTitle\tSentenceID\tSentence\tLabel\n"
    b'Q1\thow are caves made?\tD1\tCave\tD1-0\tBy "water".\t0\nQ1\thow are caves made?\tD1\tCave\tD1-1\tSlowly.\t1\n'
    b"Q2\twho\tD2\tX\tD2-0\tNobody.\t0\n"
)


@fuzz
@given(mutated(WIKIQA, b"\t"))
def test_wikiqa(read, content):
    read("TSV (WikiQA)", "wikiqa", "train", "wikiqa/WikiQA-train.tsv", content)


PAIR = {
    "sentence1": "A man sleeps.",
    "sentence2": "He is awake.",
    "gold_label": "contradiction",
    "annotator_labels": ["neutral"],
}
SNLI = "".join(json.dumps(PAIR | {"gold_label": label}) + "\n" for label in ("neutral", "-", "entailment")).encode()


@fuzz
@given(st.one_of(mutated(SNLI, b'"'), wrong_json(PAIR).map(str.encode)))
@example(DEEP.encode())
@example(json.dumps(PAIR)[:-1].encode() + b', "x": ' + LONG.encode() + b"}")
@example(json.dumps(PAIR | {"sentence1": 1}).encode())
@example(json.dumps(PAIR | {"sentence1": None, "gold_label": "neutral"}).encode())
@example(json.dumps(PAIR).replace('"A man sleeps."', HALF).encode())
@example(json.dumps(PAIR | {"gold_label": []}).encode())
def test_snli(read, content):
    read("JSON lines (SNLI)", "snli", "dev", "snli/snli_1.0_dev.jsonl", content)


@fuzz
@given(mutated(SNLI, b'"'))
def test_multinli(read, content):
    read("JSON lines (SNLI)", "mnli_matched", "test", "multinli/multinli_1.0_dev_matched.jsonl", content)


MNLI_TSV = b"sentence1\tsentence2\tlabel\tgenre\n" + b"".join(
    b"old dogs sleep %d\tthey rest\tentailment\tfiction\n" % number for number in range(60)
)


@fuzz
@given(mutated(MNLI_TSV, b"\t"))
def test_multinli_tsv(read, content):
    read("TSV (MultiNLI)", "mnli_matched", "train", "multinli/mnli_train_subset.tsv", content)


SNLI_TSV = (
    b"gold_label\tsentence1_binary_parse\tsentence2_binary_parse\tsentence1\tsentence2\tpairID\tsource\n"
    b"neutral\t( a b )\t( c )\ta b\tc\t1n\tx\n-\t( a b )\t( c )\ta b\td\t2n\tx\n"
    b"entailment\t( many children ) ( play outside )\t( somebody plays )\tmany children play outside\tsomebody plays"
    b"\tthird\tx\n"
)


@fuzz
@given(mutated(SNLI_TSV, b"\t"))
def test_snli_tsv(read, content):
    read("TSV (SNLI)", "snli", "train", "snli/train_partial.tsv", content)


def article(number: int) -> dict[str, Any]:
    answered = {
        "id": f"q{number}a",
        "question": "Who?",
        "answers": [{"text": "Ada", "answer_start": 0}],
        "is_impossible": False,
    }
    impossible = {"id": f"q{number}b", "question": "When?", "answers": [], "is_impossible": True}
    paragraphs = [{"context": f"Ada wrote {number} notes.", "qas": [answered, impossible]}]
    return {"title": f"Title {number}", "paragraphs": paragraphs}


SQUAD = {"version": "v2.0", "data": [article(number) for number in range(8)]}


def squad(old: str, new: str) -> bytes:
    return json.dumps(SQUAD).replace(old, new, 1).encode()


@fuzz
@given(st.one_of(mutated(json.dumps(SQUAD, indent=1).encode(), b":"), wrong_json(SQUAD).map(str.encode)))
@example(DEEP.encode())
@example(b'{"data": ' + LONG.encode() + b"}")
@example(squad('"Title 1"', "[]"))
@example(squad('"Title 1"', "7"))
@example(squad('"Title 1"', HALF))
@example(squad('"Ada wrote 1 notes."', HALF))
@example(squad('"Ada wrote 1 notes."', '["Ada"]'))
@example(squad('"q1a"', "[1]"))
@example(squad('"Who?"', "null"))
@example(squad('"answer_start": 0', '"answer_start": false'))
def test_squad(read, content):
    read("SQuAD JSON", "squad2", "train", "squad/dev-v2.0_half.json", content, place=None)
    read("SQuAD JSON", "squad2", "test", "squad/dev-v2.0_half.json", content, place=None)


STORY = (
    b"1 Mary moved to the hall.\n2 John went home.\n3 Where is Mary? \thall\t1\n4 Mary left.\n5 Where is"
    b" John?\thome\t2\n1 A b.\n2 Is a b?\tyes\t1\n"
)


def zipped(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def skills(story: bytes) -> bytes:
    return zipped({f"tasks_1-20_v1-2/en/qa{number}_x_test.txt": story for number in range(1, 21)})


BABI = "babi/tasks_1-20_v1-2_en.zip"


@fuzz
@given(mutated(STORY, b"\t"))
def test_babi_stories(read, content):
    read("bAbI stories", "babi", "test", BABI, skills(content), place=None)


@fuzz
@given(packed(skills, STORY, b"\t"))
def test_babi_archive(read, content):
    read("zip archive (bAbI)", "babi", "test", BABI, content, place=None)


def tarred(members: dict[str, bytes]) -> bytes:
    """Files in a tar archive; not zipped."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def abstracts(text: bytes) -> bytes:
    """Abstracts in their folders, one of train and two of test."""
    files = {"training/C04/1": b"Tumours.", "test/C01/2": text, "test/C23/3": b"Pain"}
    return tarred({f"ohsumed_single_23/{name}": content for name, content in files.items()})


ABSTRACT = b"A fever of unknown origin.\n It was malaria.\n"


@fuzz
@given(packed(abstracts, ABSTRACT).map(gzip_of))
@example(gzip_of(abstracts(ABSTRACT).replace(b"/C01/2", b"/C01/\xff")))  # a wrong sum, and a name of no UTF-8
def test_ohsumed_archive(read, content):
    read("tar archive (Ohsumed)", "ohsumed", "test", "ohsumed/ohsumed_single_23.tar.gz", content, place=None)


def reviews(text: bytes) -> bytes:
    return tarred({"aclImdb/test/neg/1_2.txt": text, "aclImdb/test/pos/2_9.txt": b"Fine."})


@fuzz
@given(packed(reviews, b"Caf\xc3\xa9 noir.<br /><br />Never again!\n").map(gzip_of))
@example(gzip_of(reviews(b"caf\xe9")))
def test_imdb_archive(read, content):
    read("tar archive (texts)", "imdb", "test", "imdb/aclImdb_v1.tar.gz", content, place=None)


def messages(text: bytes) -> bytes:
    return tarred({"20news-bydate-test/sci.med/58": text, "20news-bydate-test/rec.autos/7": b"Subject: oil\n"})


@fuzz
@given(packed(messages, b"From: a@b\nSubject: Re: caf\xe9\n\n> quoted\nown\n").map(gzip_of))
@example(gzip_of(messages(b"x").replace(b"sci.med/58", b"sci.med/\xff8")))
def test_newsgroups_archive(read, content):
    read("tar archive (texts)", "newsgroups20", "test", "newsgroups20/20news-bydate.tar.gz", content, place=None)


def wire(documents: bytes) -> bytes:
    """Two files of Reuters-21578: one document of train, and the given ones."""
    train = b'<REUTERS TOPICS="YES" LEWISSPLIT="TRAIN" NEWID="1"><TOPICS><D>corn</D></TOPICS><TEXT>a</TEXT></REUTERS>\n'
    return tarred({"./reut2-000.sgm": train, "./reut2-001.sgm": documents})


DOCUMENTS = b"""<!DOCTYPE lewis SYSTEM "lewis.dtd">
<REUTERS TOPICS="YES" LEWISSPLIT="TEST" CGISPLIT="TRAINING-SET" OLDID="5544" NEWID="2">
<TOPICS><D>corn</D><D>wheat</D></TOPICS>
<TEXT>&#2;
<TITLE>GRAIN</TITLE><BODY>S\xe3o Paulo &lt;SP> sells.
&#3;</BODY></TEXT>
</REUTERS>
<REUTERS TOPICS="YES" LEWISSPLIT="TEST" NEWID="3"><TOPICS><D>corn</D></TOPICS><TEXT TYPE="BRIEF"><TITLE>B</TITLE></TEXT>
</REUTERS>
"""


@fuzz
@given(mutated(DOCUMENTS, b"<"))
@example(DOCUMENTS.replace(b"</REUTERS>", b"", 1))
@example(DOCUMENTS.replace(b' NEWID="3"', b""))
def test_reuters_documents(read, content):
    read(
        "SGML (Reuters)",
        "reuters21578",
        "test",
        "reuters21578/reuters21578.tar.gz",
        gzip_of(wire(content)),
        place=None,
    )


ARTICLES = b" \n = Old <unk> = \n \n It is old . \n \n = = Use = = \n \n None . \n \n = A ; B = \n \n x\xc2\xa0y \n"


@fuzz
@given(mutated(ARTICLES, b"="))
def test_articles(read, content):
    read("articles (WikiText)", "wikitext2", "test", "wikitext2/wiki.test.tokens", content)


def sound(rate: int = 8000, samples: bytes = bytes(range(200))) -> bytes:
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(samples)
    return buffer.getvalue()


WAV = sound()
FAST = WAV[:24] + (2**32 - 1).to_bytes(4, "little") + WAV[28:]
DIGITS = {f"recordings/{digit}_{speaker}_0.wav": WAV for digit in (0, 7) for speaker in ("a", "b", "c", "d")}


@fuzz
@given(mutated(WAV))
@example(FAST)  # resampling it would have taken more memory than there is
@example(WAV[:24] + bytes(4) + WAV[28:])
def test_recordings(read, attempt, content):
    read(
        "WAV", "fsdd_unseen", "test", "speech/fsdd.zip", zipped(DIGITS | {"recordings/0_d_0.wav": content}), place=None
    )


@fuzz
@given(mutated(WAV))
def test_decoding(attempt, content):
    """What the front end makes of a recording whose header was found sound: samples, or a
    ``ValueError`` with its name."""
    try:
        with wave.open(io.BytesIO(content)) as file:
            rate = file.getframerate()
    except Exception:
        return
    if 4000 <= rate <= 192_000:
        samples = attempt(
            "WAV samples",
            lambda: decode({"bytes": content, "path": "0_d_0.wav"}, 8000),
            ValueError,
            "0_d_0.wav",
            same=np.array_equal,
        )
        assert samples is None or samples.ndim == 1


@fuzz
@given(packed(lambda recording: zipped(DIGITS | {"recordings/0_d_0.wav": recording}), WAV))
@example(zipped({f"recordings/7_a_{LONG}.wav": WAV}))  # a number too long for int()
def test_speech_archive(read, content):
    read("zip archive (speech)", "fsdd_unseen", "train", "speech/fsdd.zip", content, place=None)


SAID = b"<s> GO A B </s> (an1-fash-b)\n<s> X </s> (cen2-mjwl-b)\n"
FILES = b"an4_clstk/an1-fash-b\nan4_clstk/cen2-mjwl-b\n"


@fuzz
@given(st.one_of(st.tuples(mutated(SAID), st.just(FILES)), st.tuples(st.just(SAID), mutated(FILES, b"/"))))
def test_an4_transcripts(read, files):
    transcription, fileids = files
    members = {f"an4/wav/an4_clstk/{name}.wav": WAV for name in ("an1-fash-b", "cen2-mjwl-b")}
    members |= {"an4/etc/an4_test.transcription": transcription, "an4/etc/an4_test.fileids": fileids}
    read("AN4 transcripts", "an4", "test", "speech/an4.zip", zipped(members), place=None)


VECTORS = b"3 2\nthe 0.1 -2e-1\nfilm 1 2\nof .5 0\n"


def vectors(attempt, path: Path, place: str | None = None) -> None:
    """Read a file of vectors for two words."""
    vocabulary = Vocabulary(["the", "film"], [1, 1])
    read = attempt(
        "word vectors",
        lambda: read_vectors(path, vocabulary),
        DataError,
        str(path),
        place=place,
        # The words without a vector in the file have random ones.
        same=lambda a, b: a[0].shape == b[0].shape and a[1] == b[1],
    )
    if read:
        table, known = read
        assert table.isfinite().all() and table.shape[1] >= 1 and 0 <= known <= 2


@fuzz
@given(mutated(VECTORS))
@example(b"the nan 1\n")
@example(b"the 1e999 1\n")
@example(b"\nthe 1 2\n")  # an empty first line: the width was then that of no vector
@example(b"the" + b" 1" * 100_000)  # a table of 100,000 columns for each word of a vocabulary
def test_vectors(attempt, tmp_path, content):
    path = tmp_path / "vectors.txt"
    path.write_bytes(content)
    vectors(attempt, path, place=PLACE)


@fuzz
@given(packed(gzip_of, VECTORS))
def test_gzipped_vectors(attempt, tmp_path, content):
    path = tmp_path / "vectors.txt.gz"
    path.write_bytes(content)
    vectors(attempt, path)
