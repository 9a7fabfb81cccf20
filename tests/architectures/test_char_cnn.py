"""The mechanism of the character CNN: the ladder of lengths, characters read backwards, places kept
by the flattening."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from architectures.convolutional.char_cnn import CharacterCNN, remaining
from harness import registry
from harness.running.grid import hyperparameters
from harness.views.characters import ALPHABET, Characters
from tests.support.models import small
from tests.support.same import assert_same

SHORT = {"length": 150, "maps": 3, "hidden": 8}


def read(*texts: str, length: int = 150):
    """The batch of some texts as the model's view collates it."""
    view = CharacterCNN.reads("text", {"length": length})
    return view.collate(view.encode(list(texts)), np.arange(len(texts)))


def model_of(**settings) -> CharacterCNN:
    return small(CharacterCNN, len(ALPHABET), stretch=None, **SHORT | {"spread": 0.3} | settings)


def test_1014_characters_become_34_positions_by_the_papers_ladder():
    """Pooling after other layers, or padded convolutions, is another network of about the same
    score."""
    model = CharacterCNN(len(ALPHABET), maps=2, hidden=4)
    lengths = [1014]
    for module in model.convolutions:
        if not isinstance(module, nn.ReLU):
            module.register_forward_hook(lambda module, inputs, output: lengths.append(output.shape[-1]))
    model(read("abc", length=1014))
    assert lengths == [1014, 1008, 336, 330, 110, 108, 106, 104, 102, 34]
    assert remaining(1014) == 34
    assert model.dense[1].in_features == 34 * 2


def test_layers_are_six_convolutions_with_relu_and_two_dense_ones_with_dropout():
    model = model_of()
    assert [m.kernel_size[0] for m in model.convolutions if isinstance(m, nn.Conv1d)] == [7, 7, 3, 3, 3, 3]
    assert [type(m).__name__ for m in model.convolutions].count("ReLU") == 6
    assert [type(m).__name__ for m in model.dense] == ["Flatten"] + ["Linear", "ReLU", "Dropout"] * 2
    assert [m.p for m in model.dense if isinstance(m, nn.Dropout)] == [0.5, 0.5]


def written_out(model: CharacterCNN, vectors: torch.Tensor) -> torch.Tensor:
    """The vector of one text of one-hot characters (150, 70), layer by layer."""
    weights = list(model.parameters())
    states = vectors.T
    for layer in range(6):
        states = F.conv1d(states, weights[2 * layer], weights[2 * layer + 1]).clamp(min=0)
        if layer in (0, 1, 5):
            states = states[:, : states.shape[1] // 3 * 3].unflatten(1, (-1, 3)).amax(2)
    state = states.flatten()
    for layer in (6, 7):
        state = (weights[2 * layer] @ state + weights[2 * layer + 1]).clamp(min=0)
    return state


def test_a_text_passes_the_layers_written_out():
    """Means in place of maxima, a layer without its ReLU or maps in another order would show
    here."""
    model, batch = model_of(), read("a film of 1,000 words", "not so good" * 9)
    expected = torch.stack([written_out(model, vectors) for vectors in batch.vectors])
    assert expected.any(1).all()
    assert_same(model(batch), expected)


def test_half_of_each_dense_layer_is_dropped_in_training():
    """Of the values that are not zero anyway: with all dropped nothing but the second layer's
    biases is left, and with those gone nothing."""
    model, batch = model_of(hidden=400), read("a film of 1,000 words")
    kept = model(batch)
    shown = kept > 0
    first, second = (module for module in model.dense if isinstance(module, nn.Dropout))
    first.p, second.p = 0.0, 0.5
    model.train()
    trained = model(batch)
    assert 0.4 < (trained[shown] == 0).float().mean() < 0.6
    assert_same(trained[trained > 0], 2 * kept[trained > 0])
    first.p, second.p = 1.0, 0.0
    assert_same(model(batch)[0], model.dense[4].bias.clamp(min=0))


def test_the_place_of_a_word_reaches_the_dense_layers():
    """A maximum over time in place of the flattening would not know where the word stood (blanks
    are zero vectors)."""
    model = model_of()
    early, late = model(read("terrible" + " " * 142, " " * 81 + "terrible" + " " * 61))
    assert not torch.allclose(early, late, atol=1e-3)


def test_characters_come_backwards_so_that_a_text_ends_at_the_first_position():
    """Seen by a filter of the first layer that answers to z alone: the end of the text is where the
    network begins."""
    model = model_of()
    first = model.convolutions[0]
    with torch.no_grad():
        first.weight.zero_()
        first.bias.zero_()
        first.weight[0, ALPHABET.index("z"), 0] = 1.0
    seen = first(read("zab", "abZ").vectors.transpose(1, 2))[:, 0, :4]
    assert seen.tolist() == [[0.0, 0.0, 1.0, 0.0], [1.0, 0.0, 0.0, 0.0]]


def test_the_length_reaches_the_view():
    """A view that kept its own 1014 would not fit the dense layer of a shorter model."""
    assert CharacterCNN.reads("text", {"length": 200}) == Characters(length=200)
    assert CharacterCNN.reads("text", {}).length == 1014
    assert CharacterCNN.reads("audio", {}) is None
    assert CharacterCNN.view.length == 1014
    assert model_of()(read("short", "x" * 400)).shape == (2, 8)


def test_both_sizes_of_the_paper_are_registered():
    sizes = {id: hyperparameters(registry.entry("architectures", id)) for id in ("char_cnn", "char_cnn_large")}
    wanted = ("maps", "hidden", "spread", "length")
    assert [tuple(sizes[id][name] for name in wanted) for id in sizes] == [
        (256, 1024, 0.05, 1014),
        (1024, 2048, 0.02, 1014),
    ]


def test_weights_start_from_a_gaussian_of_the_given_spread():
    model = CharacterCNN(len(ALPHABET), length=150, maps=64, hidden=64, spread=0.05)
    for weight in (model.convolutions[3].weight, model.dense[1].weight, model.dense[4].weight):
        assert weight.std().item() == pytest.approx(0.05, rel=0.1)
        assert weight.abs().max() > 0.15, "a Gaussian has tails, a uniform distribution none"


def test_a_length_that_the_convolutions_use_up_is_refused():
    assert remaining(123) == 1
    with pytest.raises(ValueError, match="length=122 leaves nothing"):
        CharacterCNN(len(ALPHABET), length=122)
