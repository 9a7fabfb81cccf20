"""ERNIE 1.0: states are those of transformers' model, and words, phrases and names are masked
whole."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from tokenizers.models import WordPiece

from architectures.blocks.objectives.masked_pieces import MaskedPieces
from architectures.blocks.objectives.masked_units import STAGES, MaskedUnits, unit_beginnings, whole_units
from architectures.blocks.objectives.next_sentence import joined
from architectures.blocks.units import CAPITAL, IN_NAME, IN_PHRASE, MarkedSubwords, goes_on, marks_of
from architectures.pretrained.ernie import ERNIE
from harness import registry
from harness.layers.noise import Noise
from harness.objectives import collected_losses
from harness.views.subwords import SPECIAL, SubwordBatch, Subwords, _tokenizer
from tests.support.models import small
from tests.support.plain_text import batch, noise_of
from tests.support.published import saved

transformers = pytest.importorskip("transformers")

PIECES = [*SPECIAL, "the", "old", "harbor", "##s", "of", "new", "york", "don", "'", "t", "sink", ",", "."]
TEXT = "The old harbors of New York don't sink, New York."


@pytest.fixture
def view() -> MarkedSubwords:
    """A view whose pieces are :data:`PIECES`."""
    made = MarkedSubwords(max_length=40)
    made._set(_tokenizer(WordPiece({piece: id for id, piece in enumerate(PIECES)}, unk_token="[UNK]"), True), SPECIAL)
    return made


def units(view: Subwords, pieces: SubwordBatch, mark: int) -> list[str]:
    """The pieces of each unit of the first text."""
    begins, found = unit_beginnings(pieces, view, mark)[0], []
    for id, begin in zip(pieces.ids[0].tolist(), begins.tolist(), strict=True):
        if id not in (view.start, view.separator, view.pad):
            found += [PIECES[id]] if begin else []
            found[-1] += "" if begin else f" {PIECES[id]}"
    return found


# --- the encoder ---


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny ERNIE with random weights and its tokenizer, as the hub holds them."""
    torch.manual_seed(0)
    path = tmp_path_factory.mktemp("tiny_ernie")
    config = transformers.ErnieConfig(
        vocab_size=len(PIECES),
        hidden_size=8,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=32,
        initializer_range=0.5,
        hidden_act="relu",
        layer_norm_eps=1e-3,
    )
    return saved(path, transformers.ErnieModel(config), PIECES)


def test_states_vectors_and_gradients_are_those_of_transformers(folder):
    view = ERNIE.reads("text", {"pretrained": str(folder), "max_length": 32})
    view.fit([])
    ours = ERNIE(view.width, view).eval()
    reference = transformers.AutoModel.from_pretrained(folder).eval()
    texts = [TEXT, "new york"]
    pieces = view.collate_pair(view.encode(texts), view.encode(texts[::-1]), np.arange(2))
    expected = reference(input_ids=pieces.ids, attention_mask=pieces.mask.long(), token_type_ids=pieces.segments)
    states = ours(pieces)
    torch.testing.assert_close(states[pieces.mask], expected[0][pieces.mask], rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(ours.pooled(states), expected.pooler_output, rtol=1e-5, atol=1e-5)
    for part, vectors in (states, ours.pooled(states)), (expected[0], expected[1]):
        (part[pieces.mask].sin().sum() + vectors.sin().sum()).backward()
    slopes = reference.embeddings.word_embeddings.weight.grad
    assert slopes.abs().max() > 0.1
    torch.testing.assert_close(ours.table.weight.grad, slopes, rtol=1e-4, atol=1e-5)


def test_another_activation_is_refused(folder, tmp_path):
    """A file of another ERNIE would run with ReLU, and answer otherwise."""
    other = transformers.AutoModel.from_pretrained(folder)
    other.config.hidden_act = "gelu"
    other.save_pretrained(tmp_path)
    view = Subwords(pretrained=str(tmp_path), max_length=32)
    with pytest.raises(ValueError, match="hidden_act is 'gelu' in its config.json, expected 'relu'"):
        ERNIE(len(PIECES), view)


def test_it_starts_from_its_own_pre_training():
    assert registry.entry("architectures", "ernie").parents == {"weights": "ernie@text_mix"}
    assert ERNIE.learns is MaskedUnits and not MaskedUnits.packs


# --- units ---


def test_runs_of_words_are_cut_behind_four_by_hand():
    assert goes_on(np.array([1, 1, 0, 0, 1, 1, 1, 1, 1, 0, 1], bool)).astype(int).tolist() == [
        0,
        1,
        *[0] * 3,
        1,
        1,
        1,
        *[0] * 3,
    ]
    assert goes_on(np.zeros(0, bool)).tolist() == []


def test_marks_of_a_text_by_hand():
    """Phrases "old harbors", "New York don't sink" and "New York"; names "New York", twice."""
    starts = [TEXT.index(word) for word in ("The", "old", "harbors", "of", "New", "York", "don't", "sink", ",")]
    starts += [TEXT.rindex("New"), TEXT.rindex("York"), TEXT.index(".")]
    P, N, C = IN_PHRASE, IN_NAME, CAPITAL
    assert marks_of(TEXT, starts).tolist() == [C, 0, P, 0, C, P | N | C, P, P, 0, C, P | N | C, 0]
    apostrophe = TEXT.index("'")
    assert marks_of(TEXT, [apostrophe - 3, apostrophe, apostrophe + 1]).tolist() == [P, P | N, P | N]
    assert marks_of("", []).tolist() == [] and marks_of(" ", []).tolist() == []


def test_words_phrases_and_names_are_units_by_hand(view):
    pieces = batch(view, TEXT)
    rest = [",", "new", "york", "."]
    words = ["the", "old", "harbor ##s", "of", "new", "york", "don", "'", "t", "sink", *rest]
    assert units(view, pieces, STAGES[0]) == words
    phrases = ["the", "old harbor ##s", "of", "new york don ' t sink", ",", "new york", "."]
    assert units(view, pieces, STAGES[1]) == phrases
    names = ["the", "old", "harbor ##s", "of", "new york", "don ' t", "sink", ",", "new york", "."]
    assert units(view, pieces, STAGES[2]) == names


def test_a_piece_keeps_its_mark_when_texts_are_cut_or_batched(view):
    columns = view.encode([TEXT, "the", TEXT])
    whole = columns["marks"][0].tolist()
    assert len(whole) == len(columns["ids"][0]) and sum(whole) > 0
    stretches = view.cut(columns, 5)
    assert [each.tolist() for each in (stretches["marks"][number] for number in range(3))] == [
        whole[:5],
        whole[5:10],
        whole[10:],
    ]
    found = view.collate(columns, np.array([1, 0]))
    assert found.marks.tolist() == [[0] * (len(whole) + 2), [0, *whole, 0]]
    view.max_length = 7
    assert view.collate(columns, np.array([0])).marks.tolist() == [[0, *whole[:5], 0]]
    assert "marks" not in view.encode([["The", "old"]]), "words that are labelled one by one have none"


def test_a_unit_is_masked_whole_or_not_at_all_and_all_alike(view):
    """Of each sort, 15 % of the pieces are asked."""
    pieces = batch(view, *[f"{TEXT} {TEXT} {TEXT} {TEXT} {TEXT}"[:200]] * 1500)
    noise = Noise(pieces.ids + 100 * torch.arange(1500)[:, None], pieces.mask)
    for mark in STAGES:
        chosen = whole_units(pieces, view, noise, mark, 0.15)
        unit = unit_beginnings(pieces, view, mark).cumsum(1)[0]
        content = pieces.mask[0] & (pieces.ids[0] != view.start) & (pieces.ids[0] != view.separator)
        for number in unit[content].unique():
            places = chosen[:, content & (unit == number)]
            assert (places.all(1) == places.any(1)).all()
            assert places.any(1).double().mean().item() == pytest.approx(0.16, abs=0.05)
        assert not chosen[:, ~content].any() and chosen.any(1).all()
        assert chosen[:, content].double().mean().item() == pytest.approx(0.15, abs=0.02)


def test_a_short_text_is_asked_one_unit(view):
    pieces = batch(view, "New York", "the old harbors of", "")
    for number in range(30):
        chosen = whole_units(pieces, view, noise_of(pieces, 0, number), IN_NAME, 1e-9)
        assert chosen[0].int().tolist() == [0, 1, 1, 0, 0, 0, 0]
        assert chosen[1].sum() == 1 or chosen[1].int().tolist() == [0, 0, 0, 1, 1, 0, 0]
        assert not chosen[2].any()


def test_sorts_of_units_follow_one_another_and_evaluation_asks_what_bert_is_asked(view):
    pieces = batch(view, TEXT, "the harbors of York")
    for progress, mark in (
        (0.0, 0),
        (0.33, 0),
        (0.34, IN_PHRASE),
        (0.66, IN_PHRASE),
        (0.67, IN_NAME),
        (0.999, IN_NAME),
    ):
        found = MaskedUnits.chosen(pieces, view, noise_of(pieces, 3, 1, progress=progress))
        assert torch.equal(found, whole_units(pieces, view, noise_of(pieces, 3, 1), mark, 0.15))
    asked = MaskedUnits.chosen(pieces, view, noise_of(pieces))
    assert torch.equal(asked, MaskedPieces.chosen(pieces, view, noise_of(pieces)))
    assert MaskedUnits.unit == MaskedPieces.unit


def test_where_each_piece_is_a_word_without_marks_all_pieces_are_units(view):
    pieces = batch(view, "the of the, the.")
    assert unit_beginnings(pieces, view, IN_PHRASE)[0].int().tolist() == [0, 1, 1, 1, 1, 1, 1, 0]


def test_marks_move_with_the_second_segment(view):
    pieces = batch(view, "the old harbors", "York, New York")
    pairs = joined(pieces, torch.tensor([2, 1]), torch.tensor([1, 0]), view)
    read = [[PIECES[id] for id in row[mask]] for row, mask in zip(pairs.ids, pairs.mask, strict=True)]
    assert read[0] == ["[CLS]", "the", "old", "[SEP]", ",", "new", "york", "[SEP]"]
    assert read[1] == ["[CLS]", "york", "[SEP]", "harbor", "##s", "[SEP]"]
    assert pairs.marks[0].tolist() == [0, *pieces.marks[0, 1:3].tolist(), 0, *pieces.marks[1, 2:5].tolist(), 0]
    begins = unit_beginnings(pairs, view, IN_PHRASE)[1]
    assert begins[:6].int().tolist() == [0, 1, 0, 1, 0, 0], "a segment begins with a unit"


def test_the_loss_is_that_of_all_pieces_of_the_units(view):
    """Told by hand from the states of what was read, beside the term of the segments."""
    ernie = small(ERNIE, view.width, view, layers=1, hidden=16, heads=2)
    learns = small(MaskedUnits, ernie)
    pieces = batch(view, TEXT, "New York, the harbors", "don't sink")
    read: list[SubwordBatch] = []
    ernie.register_forward_hook(lambda module, inputs, output: read.append(inputs[0]))
    with collected_losses() as terms:
        logs, texts = learns(ernie, pieces, noise_of(pieces, 3, 1, progress=0.9))
    noise = noise_of(pieces, 3, 1, progress=0.9)
    pairs, _ = learns.pairs(pieces, view, noise)
    chosen = whole_units(pairs, view, noise, IN_NAME, 0.15)
    assert list(terms) == ["next sentence"] and texts.tolist() == chosen.nonzero()[:, 0].tolist()
    states = ernie(read[0])[chosen]
    dense = states @ learns.scores.transform[0].weight.T + learns.scores.transform[0].bias
    dense = dense * (1 + torch.erf(dense / 2**0.5)) / 2
    dense = (dense - dense.mean(-1, keepdim=True)) / (dense.var(-1, unbiased=False, keepdim=True) + 1e-5).sqrt()
    dense = dense * learns.scores.transform[2].weight + learns.scores.transform[2].bias
    expected = (dense @ ernie.table.weight.T + learns.scores.bias).log_softmax(-1)
    torch.testing.assert_close(logs, expected[range(len(logs)), pairs.ids[chosen]], rtol=1e-4, atol=1e-4)
