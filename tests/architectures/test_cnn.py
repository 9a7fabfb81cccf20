"""The mechanism of the stacked CNN: layers that keep the length, and six ways to say where a word
stands."""

from __future__ import annotations

from functools import partial

import pytest
import torch

from architectures.convolutional.cnn import StackedCNN
from tests.support.batches import assert_each_alone, mask_of, random_vectors
from tests.support.models import small
from tests.support.oracles import convolution
from tests.support.same import assert_same

WIDTH = 6
LENGTHS = (9, 4, 1)
MASK = mask_of(LENGTHS)
CODES = [("none", "add"), ("offset", "add"), ("normalised_offset", "add"), ("relative", "add")]
CODES += [(position, merge) for position in ("sinusoidal", "learned") for merge in ("add", "concat")]


texts = partial(random_vectors, LENGTHS, 1, WIDTH)


def model_of(position: str = "none", **settings) -> StackedCNN:
    return small(StackedCNN, WIDTH, position=position, stretch=None, **{"hidden": 5} | settings)


@pytest.mark.parametrize(("position", "merge"), CODES)
def test_padding_is_as_the_zeros_beside_a_text_alone(position, merge):
    """Every layer pads with zeros: a state behind the text that a second layer reads would tell how
    long the batch is."""
    model, batch = model_of(position, merge=merge, layers=3), texts()
    together = model(*batch)
    assert together.shape == (3, 9, 5)
    assert_each_alone(together, lambda text: model(text[None], mask_of([len(text)]))[0], batch, states=True)


@pytest.mark.parametrize("layers", [1, 2, 4])
def test_a_state_sees_one_more_word_on_each_side_with_every_layer(layers):
    model = model_of(hidden=30, layers=layers)
    vectors = torch.randn(1, 15, WIDTH, requires_grad=True)
    model(vectors, mask_of([15]))[0, 7].sum().backward()
    seen = vectors.grad[0].abs().sum(1).nonzero().flatten().tolist()
    assert seen == list(range(7 - layers, 7 + layers + 1))


def test_a_layer_is_a_window_of_words_under_one_matrix():
    model, batch = model_of(layers=1), texts()
    assert_each_alone(
        model(*batch),
        lambda text: torch.stack(convolution(model.convolutions[0], text, 1, 1)).relu(),
        batch,
        states=True,
    )


@pytest.mark.filterwarnings("ignore:Using padding='same'")
def test_an_even_window_reaches_one_word_further_to_the_right():
    model = model_of(layers=1, window=4)
    vectors, _ = texts()
    model(vectors[:1], MASK[:1])[0, 4].sum().backward()
    assert vectors.grad[0].abs().sum(1).nonzero().flatten().tolist() == [3, 4, 5, 6]


def test_positions_tell_two_places_of_a_phrase_apart():
    """Without them, and with relative ones, a phrase has the same states wherever it stands."""
    phrase = texts()[0][0, :3]
    vectors = torch.zeros(1, 20, WIDTH)
    vectors[0, 4:7] = vectors[0, 11:14] = phrase
    for position, merge in CODES:
        states = model_of(position, merge=merge, layers=2)(vectors, mask_of([20]))[0]
        alike = torch.allclose(states[4:7], states[11:14], atol=1e-4)
        assert alike == (position in ("none", "relative")), position


def placed(position: str, **settings) -> torch.Tensor:
    """What the first layer reads of texts whose vectors are zero."""
    return model_of(position, **settings).placed(torch.zeros(3, 9, WIDTH), MASK).detach()


def test_the_offset_is_one_more_input_that_counts_from_the_start():
    codes = placed("offset")
    assert codes.shape == (3, 9, WIDTH + 1)
    assert codes[0, :, -1].tolist() == list(range(9))
    assert not codes[..., :-1].any()


def test_the_normalised_offset_runs_from_0_to_1_within_each_text():
    codes = placed("normalised_offset")[..., -1]
    torch.testing.assert_close(codes[0], torch.arange(9) / 8)
    torch.testing.assert_close(codes[1, :4], torch.tensor([0, 1 / 3, 2 / 3, 1]))
    assert codes[2, 0] == 0


def test_sinusoids_have_a_sine_and_a_cosine_of_each_wavelength():
    """They are added to the words or joined with them."""
    expected = torch.empty(9, WIDTH)
    for i in range(9):
        for k in range(WIDTH // 2):
            angle = torch.tensor(i / 10000 ** (2 * k / WIDTH))
            expected[i, 2 * k], expected[i, 2 * k + 1] = angle.sin(), angle.cos()
    torch.testing.assert_close(placed("sinusoidal")[0], expected)
    beside = placed("sinusoidal", merge="concat")[0]
    torch.testing.assert_close(beside, torch.cat([torch.zeros(9, WIDTH), expected], dim=1))


def test_word_vectors_are_scaled_before_sinusoids_are_added_and_otherwise_left_alone():
    """Sinusoids are about one in size and fresh word vectors a seventh: unscaled the words drown,
    and the model stays at chance."""
    vectors, mask = texts()
    for position, merge in CODES:
        model = model_of(position, merge=merge)
        moved = model.placed(vectors, mask) - model.placed(torch.zeros_like(vectors), mask)
        scale = 6**0.5 if (position, merge) == ("sinusoidal", "add") else 1.0
        assert_same(moved[..., :WIDTH], scale * vectors)


def test_layers_start_so_that_a_deep_stack_passes_the_signal_on():
    """With PyTorch's start values each ReLU layer shrinks it by 0.4, and four layers do not
    train."""
    model = StackedCNN(100)
    for layer in model.convolutions:
        assert layer.weight.std().item() == pytest.approx((2 / (3 * layer.in_channels)) ** 0.5, rel=0.05)
        assert not layer.bias.any()


def test_the_input_with_its_positions_is_dropped_in_training():
    """All of it at a rate of 1, so that nothing but zeros, without biases, passes the layers."""
    model = model_of("sinusoidal", dropout=1.0)
    assert model(*texts()).any() and not model.train()(*texts()).any()
    model = model_of("sinusoidal", dropout=0.5, hidden=50).train()
    seen = []
    model.convolutions[0].register_forward_hook(lambda layer, inputs, output: seen.append(inputs[0]))
    model(torch.ones(1, 200, WIDTH), mask_of([200]))
    assert 0.4 < (seen[0] == 0).float().mean() < 0.6


def test_learned_positions_are_trained_rows_and_those_beyond_the_table_share_the_last():
    model = model_of("learned", longest=4)
    codes = model.placed(torch.zeros(3, 9, WIDTH), MASK)[0]
    assert_same(codes, model.table.weight[[0, 1, 2, 3, 3, 3, 3, 3, 3]])
    model(*texts()).sum().backward()
    assert model.table.weight.grad.any(dim=1).all()


@pytest.mark.filterwarnings("ignore:Using padding='same'")
@pytest.mark.parametrize("window", [3, 4, 5])
def test_relative_positions_add_to_each_word_of_a_window_the_vector_of_its_distance(window):
    """In the first layer alone."""
    model = model_of("relative", layers=2, window=window)
    weight, bias = model.convolutions[0].weight, model.convolutions[0].bias
    left = (window - 1) // 2

    def written_out(text: torch.Tensor) -> torch.Tensor:
        states = []
        for i in range(len(text)):
            places = [(k, i - left + k) for k in range(window) if 0 <= i - left + k < len(text)]
            states.append(bias + sum(weight[..., k] @ (text[j] + model.distances[abs(i - j)]) for k, j in places))
        above = convolution(model.convolutions[1], torch.stack(states).relu(), left, window // 2)
        return torch.stack(above).relu()

    batch = texts()
    assert_each_alone(model(*batch), written_out, batch, states=True)


@pytest.mark.parametrize("wrong", [{"position": "absolute"}, {"merge": "multiply"}])
def test_an_unknown_choice_is_refused_with_the_known_ones(wrong):
    with pytest.raises(ValueError, match=r"none, offset, normalised_offset|neither add nor concat"):
        StackedCNN(WIDTH, **wrong)
