"""Masked words by a deep BiRNN: states are those of bidirectional LSTM layers written out, a masked
word reaches none of them, and a word that is not masked reaches all."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.objectives.masked_pieces import MaskedPieces
from architectures.pretrained.birnn_mlm import BiRNNMaskedWords, MaskedWords
from harness import registry
from harness.views.whole_words import WholeWords
from tests.support.models import small
from tests.support.oracles import recurrent
from tests.support.plain_text import batch, noise_of
from tests.support.same import assert_same

TEXTS = ["the cat sat on the mat and a dog ran to it", "a dog ran", "the mat"]
SIZES = {"layers": 2, "hidden": 3, "dropout": 0.0}


@pytest.fixture(scope="module")
def view() -> WholeWords:
    made = WholeWords(size=60, max_length=24)
    made.fit(TEXTS)
    return made


@pytest.fixture
def model(view: WholeWords) -> BiRNNMaskedWords:
    return small(BiRNNMaskedWords, view.width, view, **SIZES)


def layers_of(model: BiRNNMaskedWords, ids: Tensor) -> list[Tensor]:
    """States (n, size) of each layer at the words of one text, in loops."""
    states = [model.network.table.weight[ids]]
    for layer in model.network.layers:
        states.append(recurrent(layer, states[-1]))
    return states[1:]


# --- states ---


def test_states_are_the_mixed_ones_of_bidirectional_layers_in_loops(view, model):
    """Each text as if it stood alone: the backward layers begin at its end, not in the padding."""
    pieces = batch(view, *TEXTS)
    found, vectors = model(pieces), model.vector(pieces)
    shares = model.mix.weights.exp() / model.mix.weights.exp().sum()
    for row, length in enumerate(pieces.lengths):
        layers = layers_of(model, pieces.ids[row, :length])
        states = model.mix.scale * (shares[0] * layers[0] + shares[1] * layers[1])
        assert_same(found[row, :length], states)
        assert_same(vectors[row], states.mean(0))


def test_a_states_two_halves_know_one_side_each_in_the_first_layer_and_both_in_the_second(view, model):
    """A tagger on top of it knows what follows."""
    ours, ahead = (model.states(batch(view, text)) for text in ("the cat sat on", "the cat ran on"))
    assert_same(ours[0][0, :3, :3], ahead[0][0, :3, :3])
    assert not torch.isclose(ours[0][0, 2, 3:], ahead[0][0, 2, 3:]).any()
    assert not torch.isclose(ours[1][0, 2], ahead[1][0, 2]).any()


# --- learning from plain text ---


def test_each_chosen_word_is_told_by_the_highest_state_in_its_place(view, model):
    """Written out over texts in which the words are hidden, by a softmax over the vocabulary."""
    pieces, objective = batch(view, *TEXTS), small(MaskedWords, model)
    for key in ((), (3, 1), (3, 2)):
        logs, texts = objective(model, pieces, noise_of(pieces, *key))
        noise = noise_of(pieces, *key)
        chosen = MaskedPieces.chosen(pieces, view, noise)
        read = MaskedPieces.hidden(pieces.ids, chosen, view, noise)
        expected, rows = [], []
        for row, place in chosen.nonzero().tolist():
            top = layers_of(model, read[row, : pieces.lengths[row]])[-1]
            scores = objective.output.weight @ top[place] + objective.output.bias
            expected.append(scores[pieces.ids[row, place]] - scores.exp().sum().log())
            rows.append(row)
        assert texts.tolist() == rows == [0, 0, 1, 2], "15 % of the words of a text, one at least"
        assert_same(logs, torch.stack(expected), rtol=1e-4, atol=1e-4)


def test_what_a_masked_word_was_is_in_no_state_and_one_that_is_read_is_in_its_own_top_state(view, model):
    """Around the corner: the state at a word reads, below it, neighbours that have read the
    word."""
    pieces = batch(view, "the cat sat on the mat")
    vectors: list[Tensor] = []

    def kept(module: nn.Module, inputs: Any, found: Tensor) -> None:
        found.retain_grad()
        vectors.append(found)

    model.network.table.register_forward_hook(kept)
    layers = model.states(pieces)
    layers[-1][0, 3].sum().backward()
    assert (vectors[0].grad[0].abs().sum(-1) > 0).all(), "every word reaches the state, itself too"
    masked = pieces.ids.clone()
    masked[0, 3] = view.mask
    other = batch(view, "the cat ran on the mat")
    assert (pieces.ids != other.ids).nonzero().tolist() == [[0, 3]]
    other.ids[0, 3] = view.mask
    for one, two in zip(
        model.states(pieces._replace(ids=masked)), model.states(pieces._replace(ids=other.ids)), strict=True
    ):
        assert torch.equal(one, two)


def learnt(hidden: bool, monkeypatch: pytest.MonkeyPatch) -> float:
    """Nats per asked word at the end of a training on words that nothing foretells, which are
    ``hidden`` or stay as they are."""
    words = [f"{a}{b}" for a in "abcd" for b in "wxyz"]
    view = WholeWords(size=30, max_length=12)
    view.fit([" ".join(words)])
    if not hidden:
        monkeypatch.setattr(MaskedPieces, "hidden", classmethod(lambda cls, ids, *rest: ids))
    torch.manual_seed(0)
    drawn = np.random.default_rng(0)
    model = BiRNNMaskedWords(view.width, view, layers=2, hidden=16, dropout=0.0)
    objective = MaskedWords(model)
    optimizer = torch.optim.Adam([*model.parameters(), *objective.parameters()], lr=0.02)
    losses = []
    for number in range(120):
        texts = [" ".join(drawn.choice(words, 10)) for _ in range(32)]
        pieces = batch(view, *texts)
        loss = -objective(model, pieces, noise_of(pieces, 0, number)).logs.mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return float(np.mean(losses[-10:]))


@pytest.mark.parametrize("hidden", [True, False])
def test_words_that_nothing_foretells_are_told_only_where_they_are_not_hidden(hidden, monkeypatch):
    """Two layers in both directions copy any word that they may read (the leak that masking is
    for): then the surprise is next to none. Of masked words, 16 equally common ones, it is ln 16,
    but for the tenth that stays and can be guessed."""
    found = learnt(hidden, monkeypatch)
    if hidden:
        assert 0.75 * np.log(16) < found < 1.2 * np.log(16)
    else:
        assert found < 0.1


def test_the_floor_tells_the_same_words_by_their_shares(view):
    rows: Any = [{"id": str(number), "text": text} for number, text in enumerate(TEXTS)]
    pieces = batch(view, *TEXTS)
    chosen = MaskedPieces.chosen(pieces, view, noise_of(pieces))
    counts = dict.fromkeys(range(view.width), 1)
    for row in pieces.ids.tolist():
        for word in row:
            counts[word] += word not in (0, view.start)
    shares = {word: count / sum(counts.values()) for word, count in counts.items()}
    found = MaskedWords.floor(view, rows, rows)
    for row, (log, count) in enumerate(found):
        words = pieces.ids[row][chosen[row]].tolist()
        assert count == len(words)
        assert log == pytest.approx(sum(np.log(shares[word]) for word in words), rel=1e-5)


# --- dropout and what stays ---


def test_dropout_acts_on_what_each_layer_reads_and_on_what_the_scores_read(view, monkeypatch):
    """At the given rate, and in training alone."""
    seen: list[tuple[int, float]] = []

    def noted(states: Tensor, p: float, training: bool, *rest: Any) -> Tensor:
        seen.append((states.shape[-1], p if training else 0.0))
        return states

    model = small(BiRNNMaskedWords, view.width, view, **SIZES | {"dropout": 0.3})
    objective, pieces = small(MaskedWords, model), batch(view, *TEXTS)
    monkeypatch.setattr(F, "dropout", noted)
    objective(model.train(), pieces, noise_of(pieces))
    assert seen == [(6, 0.3)] * 3
    seen.clear()
    objective(model.eval(), pieces, noise_of(pieces))
    assert seen == [(6, 0.0)] * 3


@pytest.mark.parametrize("tuned", [False, True])
def test_a_learnt_network_stays_as_it_was_learnt_unless_it_is_tuned(view, model, tuned):
    child = BiRNNMaskedWords(view.width, view, tuned=tuned, **SIZES)
    parent: Any = SimpleNamespace(model=SimpleNamespace(encoder=model), view=view)
    child.inherit("weights", parent, ())
    assert torch.equal(child.network.table.weight, model.network.table.weight)
    trained = {name for name, parameter in child.named_parameters() if parameter.requires_grad}
    assert trained == ({name for name, _ in child.named_parameters()} if tuned else {"mix.weights", "mix.scale"})


def test_it_starts_from_itself_on_plain_text_and_reads_whole_words(view):
    entry = registry.entry("architectures", "birnn_mlm")
    assert entry.parents == {"weights": "birnn_mlm@text_mix"}
    assert entry.recipes.keys() == {"text"}
    assert BiRNNMaskedWords.learns is MaskedWords and MaskedWords.unit == "masked words"
    read: Any = BiRNNMaskedWords.reads("text", {"vocabulary": 77, "max_length": 33, "stride": 11})
    assert isinstance(read, WholeWords) and (read.size, read.max_length, read.stride) == (77, 33, 11)
