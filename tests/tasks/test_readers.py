"""Parsers on hand-made files: what they read, and that a damaged file is refused with its place."""

from __future__ import annotations

import gzip
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqeval.metrics.sequence_labeling import get_entities

from harness.errors import DataError
from tasks.readers.conll import bioes, sentences, spans
from tasks.readers.delimited import comma_separated, tab_separated
from tasks.readers.holdout import hold_out
from tasks.readers.lines import find, lines, parse_json
from tasks.readers.speech import Archive
from tasks.readers.squad import questions
from tasks.readers.trees import parse, trees


def test_a_plain_and_a_gzipped_file_read_the_same(write):
    """Users keep the official files in either form."""
    text = "one\r\ntwo\u0085still two\n\nthree"
    for name in ("a/plain.txt", "b/plain.txt.gz"):
        path = write(name, text)
        assert find(path.parent, "plain.txt") == path
        assert list(lines(path)) == [(1, "one"), (2, "two\u0085still two"), (3, ""), (4, "three")]


def test_a_missing_file_is_named(tmp_path):
    """A wrong --data-dir must say which file was looked for."""
    with pytest.raises(DataError, match=r"sst/train\.txt: no such file \(nor train\.txt\.gz\)"):
        find(tmp_path / "sst", "train.txt")


def test_a_truncated_gzip_file_is_refused(write, tmp_path):
    """A download that broke off must not become a smaller training set."""
    content = "".join(f"{random.Random(i).random()}\n" for i in range(5000))
    cut = gzip.compress(content.encode())[:-5000]
    path = tmp_path / "cut.txt.gz"
    path.write_bytes(cut)
    with pytest.raises(DataError, match=r"cut\.txt\.gz: cannot be read after line \d+ .*truncated or damaged"):
        list(lines(path))


# Named, because the bytes hold the time of day: each of pytest-xdist's processes would call the
# test otherwise.
@pytest.mark.parametrize(
    "content",
    [b"not gzip at all", gzip.compress(b"abc" * 999)[:20] + b"\x00\xff" * 40],
    ids=["not gzip at all", "a gzip header before rubbish"],
)
def test_a_damaged_gzip_file_is_refused(content, tmp_path):
    """Neither a wrong header nor broken compressed data may escape as a zlib error."""
    path = tmp_path / "bad.txt.gz"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"bad\.txt\.gz: cannot be read"):
        list(lines(path))


def test_bytes_that_are_not_utf8_are_refused_with_their_line(write):
    """A Latin-1 copy of a corpus must not be read with replaced characters."""
    path = write("latin.txt", b"fine\nfa\xe7ade\n")
    with pytest.raises(DataError, match=r"latin\.txt, line 2: byte 0xe7 is not UTF-8"):
        list(lines(path))


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1", "utf-8-sig"])
def test_a_corpus_in_another_encoding_is_read_when_the_reader_is_told(encoding, write, write_zip):
    """20 Newsgroups, TREC's questions and the movie reviews are not UTF-8."""
    text = "caf\u00e9\tfa\u00e7ade\n\u00fc\t\u00f6\n"
    path = write("latin.txt", text.encode(encoding))
    assert list(lines(path, encoding=encoding)) == [(1, "caf\u00e9\tfa\u00e7ade"), (2, "\u00fc\t\u00f6")]
    header = ("caf\u00e9", "fa\u00e7ade")
    assert list(tab_separated(path, header, encoding=encoding)) == [(2, dict(zip(header, "\u00fc\u00f6", strict=True)))]
    commas = write("latin.csv", text.replace("\t", ",").encode(encoding))
    assert list(comma_separated(commas, 2, encoding=encoding)) == [(1, list(header)), (2, ["\u00fc", "\u00f6"])]
    blanks = write("latin.conll", text.replace("\t", " ").encode(encoding))
    [sentence] = sentences(blanks, 2, encoding=encoding)
    assert [fields for _, fields in sentence] == [list(header), ["\u00fc", "\u00f6"]]
    with Archive(write_zip("latin.zip", {"a": text.encode(encoding)})) as archive:
        assert [line for _, line in archive.lines("a", encoding=encoding)] == text.splitlines()


def test_bytes_of_another_encoding_are_refused_with_the_argument_that_reads_them(write):
    path = write("latin.txt", b"fine\nfa\xe7ade \x81\n")
    with pytest.raises(DataError, match=r'line 2: byte 0xe7 is not UTF-8; .*encoding="cp1252"'):
        list(lines(path))
    with pytest.raises(DataError, match="line 2: byte 0x81 is not cp1252"):
        list(lines(path, encoding="cp1252"))


@pytest.mark.parametrize("encoding", ["utf-16", "no such encoding"])
def test_an_encoding_that_cannot_be_read_by_lines_is_refused(encoding, write):
    with pytest.raises(DataError, match=f"encoding='{encoding}': not the name of an encoding"):
        list(lines(write("a.txt", "a"), encoding=encoding))


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
def test_a_byte_order_mark_is_no_part_of_the_first_line(name, write, write_zip):
    """Windows saves UTF-8 with one; lines keep their numbers."""
    assert list(lines(write(name, b"\xef\xbb\xbfone\ntwo\n"))) == [(1, "one"), (2, "two")]
    header = ("text", "label")
    tabs = write("b.tsv", b"\xef\xbb\xbftext\tlabel\ngood\t1\n")
    assert list(tab_separated(tabs, header)) == [(2, {"text": "good", "label": "1"})]
    assert parse_json(write("c.json", b'\xef\xbb\xbf{"a": 1}')) == {"a": 1}
    with Archive(write_zip("d.zip", {"a": b"\xef\xbb\xbfone\n\ntwo"})) as archive:
        assert [(place[-6:], line) for place, line in archive.lines("a")] == [("line 1", "one"), ("line 3", "two")]


def test_a_zero_byte_stands_in_the_text(write):
    """The csv module of older Pythons refused it without a line."""
    path = write("a.csv", b'"1","a\x00b"\n')
    assert list(comma_separated(path, 2)) == [(1, ["1", "a\x00b"])]


def test_broken_json_is_refused_with_its_line(write):
    """The message must lead to the place in a file of one million characters."""
    with pytest.raises(DataError, match=r"x\.json, line 2, column 10: not JSON"):
        parse_json(write("x.json", '{"a": 1,\n "b": [1 2]}'))


def test_a_tree_gives_root_label_and_leaves():
    """Leaves keep their Penn escapes and a no-break space, which str.split would cut."""
    assert parse("(3 (2 It) (4 (2 -LRB-) (2 8\u00a01\\/2)))") == (3, ["It", "-LRB-", "8\u00a01\\/2"])


@pytest.mark.parametrize(
    ("brackets", "complaint"),
    [
        ("(3 (2 It) (4 's)", "1 brackets are not closed"),
        ("(3 (2 It) (4 's))) ", "stands after the end"),
        ("(7 It)", "'7' where a node label"),
        ("(3 It", "not closed"),
        ("(", "'the end' where a node label"),
        ("It", "outside the brackets"),
        ("(3 (2 It))", "1 children"),
        ("(3)", "0 children"),
        ("(3 (2 a) (2 b) (2 c))", "3 children"),
        ("(3 a (2 b))", "2 children"),
        ("(3 a b)", "2 children"),
    ],
)
def test_a_broken_tree_is_refused_with_its_line(brackets, complaint, write):
    """A tree model must never train on a tree that was repaired by guessing."""
    with pytest.raises(DataError, match=rf"trees\.txt, line 3: .*{complaint}"):
        list(trees(write("trees.txt", f"(2 ok)\n\n{brackets}\n")))


def test_conll_sentences_end_at_blank_lines_and_skip_document_marks(write):
    """-DOCSTART- is no sentence of the corpus, and the last sentence counts without a blank line
    after it."""
    text = "-DOCSTART- -X- O O\n\nEU NNP I-NP I-ORG\nsays VBZ I-VP O\n\n\nGo VB I-VP O"
    found = [[fields[0] for _, fields in s] for s in sentences(write("c", text), columns=4)]
    assert found == [["EU", "says"], ["Go"]]


def test_a_conll_line_with_a_missing_column_is_refused(write):
    """A file of the 2000 task (three columns) must not be read as the 2003 one."""
    with pytest.raises(DataError, match=r"line 2: 3 columns instead of 4: 'says VBZ O'"):
        list(sentences(write("c", "EU NNP I-NP I-ORG\nsays VBZ O\n"), columns=4))


def test_iob1_and_iob2_become_the_same_bioes():
    """In IOB1 only the second of two neighbours begins with B-: by hand."""
    iob1 = ["I-PER", "I-PER", "B-PER", "O", "I-LOC", "I-ORG", "I-ORG", "I-ORG"]
    iob2 = ["B-PER", "I-PER", "B-PER", "O", "B-LOC", "B-ORG", "I-ORG", "I-ORG"]
    assert bioes(iob1) == bioes(iob2) == ["B-PER", "E-PER", "S-PER", "O", "S-LOC", "B-ORG", "I-ORG", "E-ORG"]


@given(st.lists(st.sampled_from(["O", "B-A", "I-A", "B-B", "I-B"])))
def test_spans_are_those_of_another_implementation(tags):
    """Every sequence, malformed ones too, holds the spans that seqeval finds, before and after the
    change to BIOES."""
    expected = [(kind, start, end) for kind, start, end in get_entities(tags)]
    assert [(kind, start, end - 1) for start, end, kind in spans(tags)] == expected
    assert get_entities(bioes(tags)) == expected


def test_a_csv_row_may_hold_quotes_commas_and_line_breaks(write):
    """AG News quotes its fields and doubles the quotes inside."""
    path = write("a.csv", '"3","a, b","say ""x"""\n"1","two\nlines",""\n')
    assert list(comma_separated(path, 3)) == [(1, ["3", "a, b", 'say "x"']), (3, ["1", "two\nlines", ""])]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('"1","a"\n', "line 1: 2 columns instead of 3"),
        ('"1","a","b"\n"2","c","d" e"\n', "line 2: .*quoted"),
        ('"1","a","b\n', "line 1: .*quoted"),
    ],
)
def test_a_broken_csv_row_is_refused(text, complaint, write):
    """A file cut in the middle of a quoted field ends in an error, not in a shorter last row."""
    with pytest.raises(DataError, match=rf"a\.csv, {complaint}"):
        list(comma_separated(write("a.csv", text), 3))


def test_a_tsv_file_is_not_read_as_csv(write):
    """WikiQA and SNLI have single double quotes in their text."""
    path = write("a.tsv", 'id\ttext\n1\the said "no\n')
    assert list(tab_separated(path, ("id", "text"))) == [(2, {"id": "1", "text": 'he said "no'})]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("id\tlabel\n", "line 1: the header is"),
        ("id\ttext\n1\n", "line 2: 1 columns instead of 2"),
        ("id\ttext\n1\ta\tb\n", "line 2: 3 columns"),
    ],
)
def test_a_tsv_file_with_other_columns_is_refused(text, complaint, write):
    """Reading the wrong column as the label would pass unnoticed."""
    with pytest.raises(DataError, match=rf"a\.tsv, {complaint}"):
        list(tab_separated(write("a.tsv", text), ("id", "text")))


def test_a_squad_file_of_another_layout_is_refused(write):
    """A flat list of questions (as some copies have) is not the official layout."""
    with pytest.raises(DataError, match=r"flat\.json: .*expected data > paragraphs"):
        list(questions(write("flat.json", '[{"question": "?"}]')))
    with pytest.raises(DataError, match=r"article 'A': KeyError 'context'"):
        list(questions(write("no_context.json", '{"data": [{"title": "A", "paragraphs": [{"qas": []}]}]}')))


def test_a_file_that_is_no_zip_or_is_cut_is_refused(tmp_path, write_zip, wav):
    """A broken download of a speech archive is named, also when its index is whole but a member is
    not."""
    with pytest.raises(DataError, match=r"none\.zip: no such file"):
        Archive(tmp_path / "none.zip")
    path = write_zip("whole.zip", {"recordings/1_a_0.wav": wav})
    (tmp_path / "cut.zip").write_bytes(path.read_bytes()[:-30])
    with pytest.raises(DataError, match=r"cut\.zip: not a whole zip archive"):
        Archive(tmp_path / "cut.zip")
    damaged = bytearray(path.read_bytes())
    damaged[60:80] = bytes(20)
    (tmp_path / "damaged.zip").write_bytes(damaged)
    with (
        Archive(tmp_path / "damaged.zip") as archive,
        pytest.raises(DataError, match=r"member recordings/1_a_0\.wav is damaged"),
    ):
        archive.audio("recordings/1_a_0.wav")


@pytest.mark.parametrize("member", ["../outside.wav", "/etc/passwd", "recordings/../../x.wav"])
def test_an_archive_whose_members_point_outside_is_refused(member, write_zip):
    """Nothing is unpacked, yet such an archive is not the published one."""
    with pytest.raises(DataError, match="points outside the archive"):
        Archive(write_zip("evil.zip", {member: b""}))


def test_a_member_that_is_missing_or_no_wav_is_refused(write_zip):
    """AN4 is also published as SPHERE files, which the front end cannot read."""
    with Archive(write_zip("a.zip", {"a.wav": b"NIST_1A\n   1024\n"})) as archive:
        with pytest.raises(DataError, match=r"member a\.wav is not a WAV file"):
            archive.audio("a.wav")
        with pytest.raises(DataError, match=r"the archive has no b\.wav"):
            archive.audio("b.wav")


@given(st.lists(st.text(alphabet="abc", max_size=2), max_size=60), st.sampled_from([0.05, 0.1, 0.5]), st.randoms())
def test_a_held_out_part_does_not_depend_on_the_order(items, share, chance):
    """Two copies of a corpus in other orders give the same dev set, no larger than said, and no
    group is on both sides."""
    train, dev = hold_out(items, share, group=str)
    assert sorted(train + dev) == sorted(items) and not set(train) & set(dev)
    assert len(dev) <= share * len(items)
    shuffled = list(items)
    chance.shuffle(shuffled)
    assert sorted(hold_out(shuffled, share, group=str)[1]) == sorted(dev)


def test_a_held_out_part_is_as_large_as_it_may_be():
    """With groups of one item the share is exact, so the declared sizes of AG News hold."""
    train, dev = hold_out([str(i) for i in range(1000)], 0.05, group=str)
    assert (len(train), len(dev)) == (950, 50)
    assert dev == sorted(dev, key=int) and train == sorted(train, key=int)
