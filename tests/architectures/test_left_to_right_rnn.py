"""Left-to-right RNN vectors: states are those of an LSTM written out, know nothing of what follows,
and stay as the language model learnt them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from architectures.blocks.layer_mix import LayerMix
from architectures.pretrained.left_to_right_rnn import LeftToRightRNN, LeftToRightWords, NextWordByTop
from harness.errors import ModelError
from harness.views.whole_words import WholeWords
from harness.views.words_and_characters import WordsAndCharacters
from tests.support.models import small
from tests.support.oracles import lstm
from tests.support.plain_text import batch, noise_of
from tests.support.same import assert_same

TEXTS = ["the cat sat on the mat", "a dog ran", "the mat"]
SIZES = {"layers": 2, "hidden": 5, "dropout": 0.0}


@pytest.fixture(scope="module")
def view() -> WholeWords:
    made = WholeWords(size=60, max_length=24)
    made.fit(TEXTS)
    return made


@pytest.fixture
def model(view: WholeWords) -> LeftToRightRNN:
    return small(LeftToRightRNN, view.width, view, **SIZES)


def kept(encoder: nn.Module) -> Any:
    """A kept model of an encoder, as a child asks for it."""
    model = nn.Module()
    model.encoder = encoder
    described = SimpleNamespace(part=SimpleNamespace(architecture="parent"))
    return SimpleNamespace(model=model, view=getattr(encoder, "view", None), description=described)


def layers_of(model: LeftToRightRNN, ids: Tensor) -> list[Tensor]:
    """States (n, size) of each layer at the pieces of one text, in loops."""
    states = [model.network.table.weight[ids]]
    for layer in model.network.layers:
        states.append(lstm(layer, states[-1]))
    return states[1:]


def mixed(model: LeftToRightRNN, states: list[Tensor]) -> Tensor:
    shares = model.mix.weights.exp() / model.mix.weights.exp().sum()
    return model.mix.scale * sum(share * layer for share, layer in zip(shares, states, strict=True))


# --- states ---


def test_states_are_the_mixed_ones_of_lstm_layers_in_loops(view, model):
    """The mix weighs every layer, and padding changes nothing."""
    pieces = batch(view, *TEXTS)
    found, vectors = model(pieces), model.vector(pieces)
    for row, length in enumerate(pieces.lengths):
        states = mixed(model, layers_of(model, pieces.ids[row, :length]))
        assert_same(found[row, :length], states)
        assert_same(vectors[row], states.mean(0))


def test_equal_weights_give_the_mean_of_the_layers():
    layers = [torch.randn(2, 3) for _ in range(3)]
    torch.testing.assert_close(LayerMix(3)(layers), sum(layers) / 3)


def test_words_that_are_appended_leave_the_vectors_of_those_before(view, model):
    """A tagger on top of it does not know the next word."""
    short, long = batch(view, "the cat"), batch(view, "the cat sat on the mat")
    assert_same(model(short)[0, :3], model(long)[0, :3])
    other = batch(view, "the dog sat")
    assert not torch.isclose(model(short)[0, 2], model(other)[0, 2]).any()


# --- learning from plain text ---


def test_each_word_is_foretold_from_the_highest_state_before_it(view, model):
    """By a softmax over the vocabulary, written out; the end of a text is foretold, its
    beginning is not."""
    pieces, objective = batch(view, *TEXTS), small(NextWordByTop, model)
    logs, texts = objective(model, pieces, noise_of(pieces))
    expected, rows = [], []
    for row, length in enumerate(pieces.lengths):
        top = layers_of(model, pieces.ids[row, :length])[-1]
        for place in range(1, length):
            scores = objective.output.weight @ top[place - 1] + objective.output.bias
            expected.append(scores[pieces.ids[row, place]] - scores.exp().sum().log())
            rows.append(row)
    assert texts.tolist() == rows
    assert_same(logs, torch.stack(expected), rtol=1e-4, atol=1e-4)


def test_what_is_foretold_is_no_part_of_what_is_read(view, model):
    """Other words behind a place change nothing of what was foretold up to there."""
    one, two = batch(view, "the cat sat on the mat"), batch(view, "the cat sat a dog ran")
    objective = small(NextWordByTop, model)
    logs = [objective(model, pieces, noise_of(pieces)).logs for pieces in (one, two)]
    assert_same(logs[0][:3], logs[1][:3])
    assert not torch.isclose(logs[0][3], logs[1][3])


# --- frozen ---


@pytest.mark.parametrize("tuned", [False, True])
def test_a_learnt_network_is_bit_for_bit_the_parents_unless_it_is_tuned(view, model, tuned):
    """A step of training with a large rate moves the mix alone."""
    child = LeftToRightRNN(view.width, view, tuned=tuned, **SIZES)
    child.inherit("weights", kept(model), ())
    before = {name: value.clone() for name, value in model.state_dict().items()}
    child.train()(batch(view, *TEXTS)).square().sum().backward()
    with torch.no_grad():
        for parameter in child.parameters():
            parameter -= 0 if parameter.grad is None else 10 * parameter.grad
    moved = {name for name, value in child.state_dict().items() if not torch.equal(value, before[name])}
    assert {"mix.weights", "mix.scale"} <= moved
    assert any(name.startswith("network") for name in moved) == tuned


def test_no_dropout_acts_in_a_network_that_is_kept_still(view, model):
    """It would be noise that nothing learns to do without."""
    pieces = batch(view, *TEXTS)
    child = LeftToRightRNN(view.width, view, **SIZES | {"dropout": 0.5})
    assert not torch.equal(child.train()(pieces), child(pieces))
    child.inherit("weights", kept(model), ())
    assert torch.equal(child.train()(pieces), child.eval()(pieces))
    assert torch.equal(child(pieces)[pieces.mask], model(pieces)[pieces.mask])
    assert not torch.equal(child.train().vector(pieces), child.vector(pieces)), "what is read of it is dropped"


# --- beside the word vectors of any architecture ---


def source_of(*texts: str, **sizes: Any) -> tuple[LeftToRightWords, Any]:
    """A source for a task with these texts, and their batch."""
    words = WordsAndCharacters(min_count=1)
    words.fit(["the zebra"])
    made = small(LeftToRightWords, words, **{"layers": 2, "hidden": 5, "dropout": 0.0} | sizes)
    return made, words.collate(words.encode(list(texts)), np.arange(len(texts)))


def test_a_source_gives_the_parents_states_of_words_that_the_task_does_not_know(view, model):
    """Its words are found as they are written: "cat" is in the parent's vocabulary and not in the
    task's, "zebra" the other way round."""
    source, words = source_of("the cat sat", "zebra mat")
    source.inherit("inputs", kept(model), ())
    with torch.no_grad():
        source.mix.weights.copy_(model.mix.weights)
        source.mix.scale.copy_(model.mix.scale)
    found = source(words)
    for row, text in enumerate(("the cat sat", "zebra mat")):
        ids = view.encode([text])["ids"].values
        assert (ids == view.unknown).tolist() == [word == "zebra" for word in text.split()]
        expected = mixed(source, layers_of(model, torch.tensor([view.start, *ids])))[1:]
        torch.testing.assert_close(found[row, : len(ids)], expected)


def test_a_source_without_a_parent_reads_the_words_of_the_task():
    source, words = source_of("the zebra", "zebra cat")
    assert torch.equal(source.found(words), words.ids)


def test_a_source_trains_its_mix_alone_and_the_parent_stays_as_it_was(model):
    source, words = source_of("the cat sat", dropout=0.5)
    source.inherit("inputs", kept(model), ())
    assert [name for name, p in source.named_parameters() if p.requires_grad] == ["mix.weights", "mix.scale"]
    before = model.network.state_dict()
    assert all(torch.equal(value, before[name]) for name, value in source.network.state_dict().items())
    assert not torch.equal(source.train()(words), source(words)), "what is read of it is dropped"


def test_a_parent_of_another_size_or_sort_is_refused(model):
    with pytest.raises(ModelError, match="table.weight has size"):
        source_of("the", hidden=6)[0].inherit("inputs", kept(model), ())
    with pytest.raises(ModelError, match="parent reads no whole words"):
        source_of("the")[0].inherit("inputs", kept(nn.Linear(1, 1)), ())
