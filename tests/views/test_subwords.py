"""Word pieces: one sequence for one or two texts, with positions that still point at the words and
characters of the text."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.views import subwords
from harness.views.subwords import SPECIAL, Subwords

TRAIN = ["the banana bandana band sat on the mat", "a cat and the band's cats sat", "Café banana ban"] * 3
PAD, UNK, CLS, SEP = range(4)


def fitted(size: int = 45, max_length: int = 256, **options) -> Subwords:
    view = Subwords(size=size, max_length=max_length, **options)
    view.fit(TRAIN)
    return view


VIEW = fitted()


def pieces(view: Subwords, ids: Sequence[int]) -> list[str]:
    return [view.tokenizer.id_to_token(int(id)) for id in ids]


def test_vocabulary_is_learnt_from_the_training_texts():
    assert VIEW.width == 45 and pieces(VIEW, range(5)) == SPECIAL
    ids = VIEW.encode(["The bandana", "zzz sat"])["ids"]
    assert "".join(pieces(VIEW, ids[0])).replace("##", "") == "thebandana"
    assert ids[1][0] == UNK and UNK not in ids[1][1:]


def test_training_again_gives_the_same_tokenizer():
    """The trainer numbers pieces by a hash table with a random seed: they would change their rows
    from run to run."""
    assert all(fitted().state() == VIEW.state() for _ in range(3))


def test_a_text_that_spells_a_special_piece_does_not_get_it():
    """A review with "[SEP]" in it must not end its sequence."""
    assert not {CLS, SEP, PAD} & set(VIEW.encode(["[CLS] a [SEP] [PAD]"])["ids"].values.tolist())


def test_one_text_is_framed_and_padded_as_a_loop_would():
    texts = ["the cat", "", "a band sat on the mat"]
    columns = VIEW.encode(texts)
    batch = VIEW.collate(columns, np.array([2, 0, 1]))
    expected = [[CLS, *columns["ids"][i].tolist(), SEP] for i in (2, 0, 1)]
    width = max(map(len, expected))
    assert batch.ids.tolist() == [row + [PAD] * (width - len(row)) for row in expected]
    assert batch.mask.tolist() == [[t < len(row) for t in range(width)] for row in expected]
    assert batch.lengths.tolist() == list(map(len, expected)) and expected[2] == [CLS, SEP]
    assert batch.segments.sum() == 0 and batch.segments.shape == batch.ids.shape
    assert VIEW.lengths(columns).tolist() == [len(columns["ids"][i]) for i in range(3)]


def cut_longer(a: list[int], b: list[int], room: int) -> tuple[list[int], list[int]]:
    """BERT's rule: drop the last piece of the longer text until both fit."""
    a, b = list(a), list(b)
    while len(a) + len(b) > room:
        (a if len(a) > len(b) else b).pop()
    return a, b


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=1, max_size=5),
    st.integers(5, 24),
    st.booleans(),
)
def test_pairs_are_joined_and_cut_as_a_loop_would(sizes, max_length, longer):
    view = Subwords(size=45, max_length=max_length)
    view.restore(VIEW.state())
    first, second = view.encode(["cat " * n for n, _ in sizes]), view.encode(["mat " * n for _, n in sizes])
    rows = np.arange(len(sizes))[::-1]
    batch = view.collate_pair(first, second, rows, cut="longer" if longer else "second")
    for at, row in enumerate(rows):
        a, b = first["ids"][row].tolist(), second["ids"][row].tolist()
        if longer:
            a, b = cut_longer(a, b, max_length - 3)
        else:
            a = a[: max_length - 3]
            b = b[: max_length - 3 - len(a)]
        length = len(a) + len(b) + 3
        assert batch.ids[at].tolist() == [CLS, *a, SEP, *b, SEP] + [PAD] * (batch.ids.shape[1] - length)
        assert batch.segments[at].tolist() == [0] * (len(a) + 2) + [1] * (len(b) + 1) + [0] * (
            batch.ids.shape[1] - length
        )
        assert batch.lengths[at] == length == batch.mask[at].sum() <= max_length
        assert batch.firsts[at][batch.word_mask[at]].tolist() == list(range(len(a) + 2, len(a) + 2 + len(b)))


def test_tokenised_texts_keep_the_first_piece_of_each_word():
    """A tagger gives one tag per word: every word needs exactly one position."""
    words = ["bandanas", "the", "\xad", "cat's", "\x00"]
    columns = VIEW.encode([words, ["mat"]])
    batch = VIEW.collate(columns, np.array([0, 1]))
    assert batch.word_mask.tolist() == [[True] * 5, [True] + [False] * 4]
    firsts = pieces(VIEW, batch.ids[0][batch.firsts[0]])
    assert [first[0] for first in firsts] == ["b", "t", "[", "c", "["] and firsts[2] == firsts[4] == "[UNK]"
    between = [
        "".join(pieces(VIEW, batch.ids[0, a:b])).replace("##", "")
        for a, b in zip(batch.firsts[0], batch.firsts[0][1:], strict=False)
    ]
    assert between == ["bandanas", "the", "[UNK]", "cat's"]
    assert batch.firsts[1].tolist() == [1, 0, 0, 0, 0]


def test_words_that_are_cut_off_have_no_position():
    view = Subwords(max_length=6)
    view.restore(VIEW.state())
    batch = view.collate(view.encode([["the"] * 9, ["the"], []]), np.arange(3))
    assert batch.ids.shape == (3, 6) and batch.word_mask.sum(1).tolist() == [4, 1, 0]
    assert batch.firsts[0].tolist() == [1, 2, 3, 4]


def test_a_tokenised_second_text_of_a_pair_keeps_its_words():
    columns = VIEW.encode([["the", "bandanas", "sat"]])
    batch = VIEW.collate_pair(VIEW.encode(["a cat"]), columns, np.array([0]))
    begin = int(batch.segments[0].argmax())
    assert batch.firsts[0].tolist() == [begin + int(at) for at in columns["firsts"][0]]


def test_spans_copy_the_pieces_out_of_the_text():
    """An answer is cut from the raw passage with these."""
    text = "  The Café’s bandanas"
    starts, ends = VIEW.spans([text, ""])
    cut = [text[a:b] for a, b in zip(starts[0], ends[0], strict=True)]
    assert "".join(cut) == "TheCafé’sbandanas" and cut[0][0] == "T"
    assert len(cut) == len(VIEW.encode([text])["ids"][0]) and len(starts[1]) == 0


def test_spans_reach_to_the_end_of_a_text_that_is_cut():
    """Some window reads what lies behind the cut, and an answer may stand there."""
    view = Subwords(max_length=5)
    view.restore(VIEW.state())
    text = "the cat " * 9
    columns = view.encode([text])
    assert len(view.spans([text])[0][0]) == len(columns["ids"][0]) == 18
    assert view.lengths(columns).tolist() == [5], "no more are read at a time"


def windows_by_hand(pieces: int, size: int, stride: int) -> list[tuple[int, int]]:
    """First piece and length of each window of a passage, as the loop of run_squad.py has them."""
    found, begin = [], 0
    while not found or sum(found[-1]) < pieces:
        found.append((begin, min(size, pieces - begin)))
        begin += min(stride, size)
    return found


@settings(max_examples=80)
@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 40)), min_size=1, max_size=4),
    st.integers(5, 24),
    st.integers(1, 12),
)
def test_passages_are_read_in_windows_as_a_loop_would(sizes, max_length, stride):
    view = Subwords(size=45, max_length=max_length, stride=stride)
    view.restore(VIEW.state())
    first = view.encode(["cat " * n for n, _ in sizes])
    second = view.encode([" ".join(["mat", "sat", "ban", "the", "a"][i * i % 5] for i in range(n)) for _, n in sizes])
    rows = np.arange(len(sizes))[::-1]
    batch = view.collate_pair(first, second, rows, cut="second")
    at = 0
    for number, row in enumerate(rows):
        a, b = first["ids"][row].tolist()[: max_length - 4], second["ids"][row].tolist()
        windows = windows_by_hand(len(b), max_length - 3 - len(a), stride)
        for begin, length in windows:
            ids = [CLS, *a, SEP, *b[begin : begin + length], SEP]
            padding = batch.ids.shape[1] - len(ids)
            assert batch.ids[at].tolist() == ids + [PAD] * padding
            assert batch.segments[at].tolist() == [0] * (len(a) + 2) + [1] * (length + 1) + [0] * padding
            assert batch.lengths[at] == len(ids) == batch.mask[at].sum() <= max_length
            assert batch.firsts[at][batch.word_mask[at]].tolist() == list(range(len(a) + 2, len(ids) - 1))
            place = batch.windows.rows[at], batch.windows.begins[at], batch.windows.lengths[at]
            assert place == (number, begin, length) and batch.windows.several[at] == (len(windows) > 1)
            at += 1
    assert at == len(batch.ids)


def test_each_piece_is_shown_with_most_context_by_one_window():
    """A piece belongs to the window where most stands on its shorter side, of two equal ones to the
    first."""
    view = Subwords(max_length=9, stride=2)
    view.restore(VIEW.state())
    columns = view.encode(["a", "a"]), view.encode(["the " * 9, "the the"])
    windows = view.collate_pair(*columns, np.array([0, 1]), cut="second").windows
    assert list(zip(windows.begins.tolist(), windows.lengths.tolist(), strict=True)) == [(0, 5), (2, 5), (4, 5), (0, 2)]
    assert windows.widest.int().tolist() == [[1, 1, 1, 1, 0], [0, 0, 1, 1, 0], [0, 0, 1, 1, 1], [1, 1, 0, 0, 0]]


def test_a_question_beside_windows_has_at_most_64_pieces():
    """A longer one would leave its passage no room."""
    view = Subwords(max_length=100, stride=10)
    view.restore(VIEW.state())
    columns = view.encode(["cat " * 90]), view.encode(["the " * 60])
    batch = view.collate_pair(*columns, np.array([0]), cut="second")
    assert batch.segments[0].tolist() == [0] * 66 + [1] * 34 and batch.windows.lengths.tolist() == [33, 33, 33, 30]
    whole = view.collate_pair(*columns, np.array([0]))
    assert whole.windows is None and len(whole.ids) == 1


def test_a_stride_may_be_zero_and_nothing_else():
    assert VIEW.changed({"stride": 0}).stride == 0
    with pytest.raises(ValueError, match="max_length=0"):
        VIEW.changed({"max_length": 0})


def test_case_is_a_setting():
    view = fitted(lower=False)
    upper, lower = (view.encode([text])["ids"].values.tolist() for text in ("Café", "café"))
    assert upper != lower and UNK not in upper


def test_rare_characters_do_not_fill_the_vocabulary(monkeypatch):
    monkeypatch.setattr(subwords, "LARGEST_ALPHABET", 3)
    view = fitted(size=20)
    assert view.width <= 20 and {len(piece.removeprefix("##")) for piece in pieces(view, range(5, 8))} == {1}
    assert len({piece for piece in pieces(view, range(5, view.width)) if len(piece) == 1}) == 3


def test_more_texts_than_are_tokenised_at_once_keep_their_order(monkeypatch):
    texts = ["the cat", "a", "", "banana", "mat"]
    whole = VIEW.encode(texts)["ids"]
    monkeypatch.setattr(subwords, "_AT_ONCE", 2)
    assert VIEW.encode(texts)["ids"].values.tolist() == whole.values.tolist()
    assert len(VIEW.encode([])["ids"]) == 0


def test_state_survives_json():
    other = Subwords(size=45)
    other.restore(json.loads(json.dumps(VIEW.state())))
    assert other.width == VIEW.width and np.array_equal(
        other.encode(TRAIN)["ids"].values, VIEW.encode(TRAIN)["ids"].values
    )


def test_a_pretrained_tokenizer_is_read_from_its_folder(tmp_path):
    """Its own ids and special pieces must be used: a BERT would read nonsense otherwise."""
    transformers = pytest.importorskip("transformers")
    words = ["[CLS]", "[SEP]", "[UNK]", "[MASK]", "the", "cat", "##s", "[PAD]"]
    tokenizer = transformers.BertTokenizerFast(vocab={word: id for id, word in enumerate(words)})
    tokenizer.backend_tokenizer.enable_padding(length=9)
    tokenizer.backend_tokenizer.enable_truncation(2)
    tokenizer.save_pretrained(tmp_path)
    view = Subwords(pretrained=str(tmp_path))
    view.fit(["unrelated text"])
    assert view.width == 8
    batch = view.collate(view.encode(["The cats", "zebra"]), np.arange(2))
    assert batch.ids.tolist() == [[0, 4, 5, 6, 1], [0, 2, 1, 7, 7]]
    other = Subwords(pretrained=str(tmp_path / "gone"))
    other.restore(json.loads(json.dumps(view.state())))
    assert other.collate(other.encode(["The cats"]), np.array([0])).ids.tolist() == [[0, 4, 5, 6, 1]]


def test_a_missing_pretrained_tokenizer_is_named(tmp_path):
    pytest.importorskip("transformers")
    with pytest.raises(ValueError, match="nothing_here"):
        Subwords(pretrained=str(tmp_path / "nothing_here")).fit([])
