"""XLM: states are those of transformers' port of the authors' model, and masked pieces are told
from both languages where a text has both."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from architectures.blocks.objectives.masked_languages import MaskedLanguages
from architectures.pretrained.xlm import XLM, languages_and_positions
from harness import registry
from harness.views.languages import TwoLanguages
from harness.views.subwords import SubwordBatch
from tests.support.models import small
from tests.support.plain_text import batch, noise_of
from tests.support.same import assert_same

transformers = pytest.importorskip("transformers")

ENGLISH, GERMAN = "the cat sat on the mat . a dog ran", "die katze lag auf der matte . ein hund"
TEXTS = [f"{ENGLISH} ␞ {GERMAN}", "a dog ran ␞ ein hund", ENGLISH, f"␞ {GERMAN}"]
TABLES = {
    "embeddings": "table",
    "position_embeddings": "positions",
    "lang_embeddings": "languages",
    "layer_norm_emb": "norm",
}
LAYER = {
    "attentions.{}.q_lin": "attention.query",
    "attentions.{}.k_lin": "attention.key",
    "attentions.{}.v_lin": "attention.value",
    "attentions.{}.out_lin": "attention.output",
    "layer_norm1.{}": "norms.0",
    "ffns.{}.lin1": "feedforward.0",
    "ffns.{}.lin2": "feedforward.3",
    "layer_norm2.{}": "norms.1",
}


@pytest.fixture(scope="module")
def view() -> TwoLanguages:
    made = TwoLanguages(size=90, max_length=32)
    made.fit(TEXTS)
    return made


def made(view: TwoLanguages, **sizes: Any) -> XLM:
    return small(XLM, view.width, view, **{"layers": 2, "hidden": 12, "heads": 3} | sizes)


def with_ids(pieces: SubwordBatch, row: int, place: int, piece: int) -> SubwordBatch:
    """The batch with another piece at one place."""
    ids = pieces.ids.clone()
    ids[row, place] = piece
    return pieces._replace(ids=ids)


# --- what is read ---


def test_positions_begin_anew_with_the_second_language_and_every_piece_has_its_own(view):
    """By hand: a piece and its translation would else be as far apart as the text is long."""
    pieces = batch(view, "a dog ran ␞ ein hund", "a dog", "␞ hund")
    languages, positions = languages_and_positions(pieces)
    assert languages.tolist() == [[0, 0, 0, 0, 0, 1, 1, 1, 1], [0] * 9, [1, 1, 1, 0, 0, 0, 0, 0, 0]]
    assert positions[0].tolist() == [0, 1, 2, 3, 4, 0, 1, 2, 3]
    assert positions[1, :4].tolist() == [0, 1, 2, 3] and positions[2, :3].tolist() == [0, 1, 2]


def test_what_has_no_marks_is_in_the_first_language(view):
    """Two joined texts of another task: the second one goes on with the positions, as the authors'
    tuning does."""
    columns = view.encode(["a dog ran", "the cat"])
    pieces = view.collate_pair(columns, columns, np.array([0, 1]))
    languages, positions = languages_and_positions(pieces)
    assert not languages.any() and positions[0].tolist() == list(range(pieces.ids.shape[1]))
    xlm = made(view)
    before = xlm(pieces)[pieces.mask]
    with torch.no_grad():
        xlm.languages.weight[1] += 1
    torch.testing.assert_close(xlm(pieces)[pieces.mask], before)
    with torch.no_grad():
        xlm.languages.weight[0, 0] += 1
    assert not torch.allclose(xlm(pieces)[pieces.mask], before)


def test_a_text_in_the_second_language_differs_from_the_first_by_its_vector_alone(view):
    xlm = made(view)
    german, same = batch(view, "␞ ein hund"), batch(view, "ein hund")
    assert german.ids.tolist() == same.ids.tolist() and not torch.allclose(xlm(german), xlm(same))
    with torch.no_grad():
        xlm.languages.weight[1] = xlm.languages.weight[0]
    torch.testing.assert_close(xlm(german), xlm(same))


def reference_states(xlm: XLM, pieces: SubwordBatch) -> Tensor:
    """States by transformers' port of the authors' model, with the languages and positions of each
    piece found by a loop over the beginnings of texts."""
    config = transformers.XLMConfig(
        vocab_size=xlm.table.num_embeddings,
        emb_dim=xlm.size,
        n_layers=len(xlm.body.layers),
        n_heads=3,
        n_langs=2,
        max_position_embeddings=32,
        gelu_activation=True,
        pad_index=0,
        layer_norm_eps=1e-12,
        attn_implementation="eager",
    )
    reference = transformers.XLMModel(config).eval()
    reference.embeddings.padding_idx = None  # the mark of padding may be read in the place of a masked piece
    names = TABLES | {
        theirs.format(number): f"body.layers.{number}.{ours}"
        for number in range(len(xlm.body.layers))
        for theirs, ours in LAYER.items()
    }
    ours = dict(xlm.named_parameters())
    given = {
        f"{theirs}.{kind}": ours[f"{name}.{kind}"]
        for theirs, name in names.items()
        for kind in ("weight", "bias")
        if f"{name}.{kind}" in ours
    }
    assert given.keys() == {name for name, _ in reference.named_parameters()}
    assert {id(weight) for weight in given.values()} == {id(weight) for weight in ours.values()}
    languages, positions = torch.zeros_like(pieces.ids), torch.zeros_like(pieces.ids)
    for row, ids in enumerate(pieces.ids.tolist()):
        starts = [place for place, piece in enumerate(ids) if piece == xlm.view.start]
        german = TEXTS[row].startswith("␞")
        for place in range(len(ids)):
            in_second = len(starts) == 2 and place >= starts[1]
            positions[row, place] = place - starts[1] if in_second else place
            languages[row, place] = int(in_second or german)
    asked = {
        "input_ids": pieces.ids,
        "attention_mask": pieces.mask.long(),
        "langs": languages,
        "position_ids": positions,
    }
    return torch.func.functional_call(reference, given, (), asked).last_hidden_state


def test_states_and_gradients_are_those_of_transformers(view):
    """Of the whole network: three vectors in front, and attention across the languages."""
    xlm, pieces = made(view), batch(view, *TEXTS)
    found, expected = xlm(pieces)[pieces.mask], reference_states(xlm, pieces)[pieces.mask]
    assert_same(found, expected, rtol=1e-4, atol=1e-5)


def test_without_translation_the_sides_of_a_text_are_read_as_texts_alone(view):
    """The comparison with the masked language model alone would else be none."""
    xlm = made(view, translation=False)
    pieces = batch(view, *TEXTS)
    states = xlm(pieces)
    assert states.isfinite().all()
    length, second = int(pieces.lengths[2]), int(pieces.lengths[3])
    torch.testing.assert_close(states[0, :length], states[2, :length])
    torch.testing.assert_close(states[0, length : length + second], states[3, :second])
    torch.testing.assert_close(states[2, :length], made(view)(pieces)[2, :length])


def test_the_vector_of_a_text_is_its_first_state(view):
    xlm, pieces = made(view), batch(view, *TEXTS)
    torch.testing.assert_close(xlm.vector(pieces), xlm(pieces)[:, 0])


# --- what is asked ---


def test_a_masked_english_word_is_told_from_the_german_side(view):
    """Which is the translation language model. Nothing moves where each side is read alone, nor in
    a text of the same batch that is English alone."""
    pieces = batch(view, TEXTS[0], TEXTS[2])
    place, german = 2, int(pieces.lengths[0]) - 2
    masked = with_ids(with_ids(pieces, 0, place, view.mask), 1, place, view.mask)
    changed = with_ids(masked, 0, german, 7)
    for translation, moves in ((True, True), (False, False)):
        xlm = made(view, translation=translation)
        learns = small(MaskedLanguages, xlm)
        before, after = (learns.scores(xlm, xlm(each)[:, place], pieces.ids[:, place]) for each in (masked, changed))
        moved = (after - before).abs().tolist()
        assert (moved[0] > 1e-3) == moves and moved[1] < 1e-4


def test_the_loss_and_its_gradients_by_hand(view):
    """The table of pieces is the output layer, and there is no layer in between."""
    xlm, pieces = made(view), batch(view, *TEXTS)
    learns = small(MaskedLanguages, xlm)
    noise = noise_of(pieces, 3, 1)
    chosen = learns.chosen(pieces, view, noise)
    hidden = learns.hidden(pieces.ids, chosen, view, noise)
    states = reference_states(xlm, pieces._replace(ids=hidden))
    expected, rows = [], []
    for row, place in chosen.nonzero().tolist():
        scores = torch.stack([vector @ states[row, place] for vector in xlm.table.weight]) + learns.scores.bias
        expected.append(scores[pieces.ids[row, place]] - scores.exp().sum().log())
        rows.append(row)
    found = learns(xlm, pieces, noise_of(pieces, 3, 1))
    assert found.texts.tolist() == rows and len({*rows}) == len(TEXTS)
    assert_same(found.logs, torch.stack(expected), rtol=1e-4, atol=1e-4)


def many(view: TwoLanguages, count: int, length: int) -> SubwordBatch:
    """Texts of so many pieces on each side."""
    ids = torch.randint(5, view.width, (count, 2, length + 2), generator=torch.Generator().manual_seed(0))
    ids[:, :, 0], ids[:, :, -1] = view.start, view.separator
    ids = ids.flatten(1)
    marks = torch.tensor([0, 1]).repeat_interleave(length + 2).expand(count, -1)
    mask = torch.ones_like(ids, dtype=torch.bool)
    return SubwordBatch(ids, mask, torch.zeros_like(ids), mask.sum(1), marks=marks)


def test_pieces_of_both_sides_are_masked_and_never_the_marks_around_them(view):
    pieces = many(view, 400, 20)
    chosen = MaskedLanguages.chosen(pieces, view, noise_of(pieces, 0, 1))
    assert (chosen.sum(1) == 6).all(), "15 % of 40"
    english, german = chosen[:, :22].sum(), chosen[:, 22:].sum()
    assert abs(int(english) - int(german)) < 200 and int(german) > 1000
    assert not chosen[(pieces.ids == view.start) | (pieces.ids == view.separator)].any()


def test_a_piece_is_masked_by_the_square_root_of_its_rarity(view):
    """One piece of seven is drawn, with the probability by hand."""
    own = TwoLanguages(size=90, max_length=32)
    own.restore(view.state())
    own.counts = np.where(np.arange(own.width) % 2, 100, 4)
    pieces = many(own, 4000, 3)
    rare = (pieces.ids % 2 == 0) & (pieces.ids >= 5)
    asked = pieces.ids >= 5
    weights = torch.where(rare, 1 / 2, 1 / 10) * asked
    expected = float(((weights * rare).sum(1) / weights.sum(1)).mean())
    chosen = MaskedLanguages.chosen(pieces, own, noise_of(pieces, 0, 1))
    assert (chosen.sum(1) == 1).all()
    assert abs(float((chosen & rare).sum() / len(chosen)) - expected) < 0.02
    plain = float((rare.sum(1) / asked.sum(1)).mean())
    assert expected > plain + 0.15, "the numbers tell rare pieces from others"
    later = MaskedLanguages.chosen(pieces, own, noise_of(pieces, 0, 2))
    assert not torch.equal(chosen, later), "another pass asks others"


def test_what_no_training_text_has_is_not_asked_without_end(view):
    """A count of none would make its wait nothing, and it would be asked each time."""
    own = TwoLanguages(size=90, max_length=32)
    own.restore(view.state())
    own.counts = np.where(np.arange(own.width) % 2, 1, 0)
    pieces = many(own, 2000, 3)
    unseen = pieces.ids % 2 == 0
    chosen = MaskedLanguages.chosen(pieces, own, noise_of(pieces, 0, 1))
    even = (unseen & (pieces.ids >= 5)).sum() / (pieces.ids >= 5).sum()
    assert abs(float((chosen & unseen).sum() / chosen.sum()) - float(even)) < 0.05


def test_a_text_is_asked_the_same_in_any_batch(view):
    xlm = made(view)
    learns = small(MaskedLanguages, xlm)
    pieces, alone = batch(view, *TEXTS), batch(view, TEXTS[1])
    logs, texts = learns(xlm, pieces, noise_of(pieces))
    assert_same(learns(xlm, alone, noise_of(alone)).logs, logs[texts == 1], rtol=1e-4, atol=1e-4)


def test_both_start_from_their_own_weights_on_both_languages():
    """The one without translations would else have learnt from them."""
    entries = registry.entries("architectures")
    assert dict(entries["xlm"].parents) == {"weights": "xlm@multi30k_both"}
    assert dict(entries["xlm_mlm"].parents) == {"weights": "xlm_mlm@multi30k_both"}
    assert entries["xlm_mlm"].hyperparameters["translation"] is False and XLM.view_settings["size"] == "vocabulary"
