"""The mechanism of the stacked CNN: layers that keep the length, and six ways to say where a word
stands."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from architectures.convolutional.cnn import StackedCNN

WIDTH = 6
LENGTHS = torch.tensor([9, 4, 1])
MASK = torch.arange(9) < LENGTHS[:, None]
CODES = [("none", "add"), ("offset", "add"), ("normalised_offset", "add"), ("relative", "add")]
CODES += [(position, merge) for position in ("sinusoidal", "learned") for merge in ("add", "concat")]


def model_of(position: str = "none", **settings) -> StackedCNN:
    torch.manual_seed(0)
    return StackedCNN(WIDTH, hidden=5, position=position, **settings).eval()


def texts() -> torch.Tensor:
    torch.manual_seed(1)
    return torch.randn(3, 9, WIDTH)


@pytest.mark.parametrize(("position", "merge"), CODES)
def test_padding_is_as_the_zeros_beside_a_text_alone(position, merge):
    """Every layer pads with zeros: a state behind the text that a second layer reads would tell how
    long the batch is."""
    model = model_of(position, merge=merge, layers=3)
    together = model(torch.where(MASK[..., None], texts(), 30.0), MASK)
    assert together.shape == (3, 9, 5)
    for states, vectors, length in zip(together, texts(), LENGTHS, strict=True):
        alone = model(vectors[None, :length], torch.ones(1, length, dtype=torch.bool))[0]
        torch.testing.assert_close(states[:length], alone)


@pytest.mark.parametrize("layers", [1, 2, 4])
def test_a_state_sees_one_more_word_on_each_side_with_every_layer(layers):
    torch.manual_seed(0)
    model = StackedCNN(WIDTH, hidden=30, layers=layers, position="none").eval()
    vectors = torch.randn(1, 15, WIDTH, requires_grad=True)
    model(vectors, torch.ones(1, 15, dtype=torch.bool))[0, 7].sum().backward()
    seen = vectors.grad[0].abs().sum(1).nonzero().flatten().tolist()
    assert seen == list(range(7 - layers, 7 + layers + 1))


def test_a_layer_is_a_window_of_words_under_one_matrix():
    model = model_of(layers=1)
    weight, bias = model.convolutions[0].weight, model.convolutions[0].bias
    padded = F.pad(texts()[:1], (0, 0, 1, 1))
    expected = [torch.relu(torch.einsum("owk,kw->o", weight, padded[0, i : i + 3]) + bias) for i in range(9)]
    torch.testing.assert_close(model(texts()[:1], MASK[:1])[0], torch.stack(expected))


@pytest.mark.filterwarnings("ignore:Using padding='same'")
def test_an_even_window_reaches_one_word_further_to_the_right():
    model = model_of(layers=1, window=4)
    vectors = texts()[:1].requires_grad_()
    model(vectors, MASK[:1])[0, 4].sum().backward()
    assert vectors.grad[0].abs().sum(1).nonzero().flatten().tolist() == [3, 4, 5, 6]


def test_without_positions_a_phrase_has_the_same_states_wherever_it_stands_and_with_them_it_has_not():
    phrase = texts()[0, :3]
    vectors = torch.zeros(1, 20, WIDTH)
    vectors[0, 4:7] = vectors[0, 11:14] = phrase
    mask = torch.ones(1, 20, dtype=torch.bool)
    for position, merge in CODES:
        states = model_of(position, merge=merge, layers=2)(vectors, mask)[0]
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


def test_sinusoids_have_a_sine_and_a_cosine_of_each_wavelength_and_are_added_or_put_beside():
    expected = torch.empty(9, WIDTH)
    for i in range(9):
        for k in range(WIDTH // 2):
            angle = torch.tensor(i / 10000 ** (2 * k / WIDTH))
            expected[i, 2 * k], expected[i, 2 * k + 1] = angle.sin(), angle.cos()
    torch.testing.assert_close(placed("sinusoidal")[0], expected)
    beside = placed("sinusoidal", merge="concat")[0]
    torch.testing.assert_close(beside, torch.cat([torch.zeros(9, WIDTH), expected], dim=1))


def test_learned_positions_are_trained_rows_and_those_beyond_the_table_share_the_last():
    model = model_of("learned", longest=4)
    codes = model.placed(torch.zeros(3, 9, WIDTH), MASK)[0]
    torch.testing.assert_close(codes, model.table.weight[[0, 1, 2, 3, 3, 3, 3, 3, 3]])
    model(texts(), MASK).sum().backward()
    assert model.table.weight.grad.any(dim=1).all()


@pytest.mark.filterwarnings("ignore:Using padding='same'")
@pytest.mark.parametrize("window", [3, 4, 5])
def test_relative_positions_add_to_each_word_of_a_window_the_vector_of_its_distance(window):
    model = model_of("relative", layers=1, window=window)
    weight, bias = model.convolutions[0].weight, model.convolutions[0].bias
    left = (window - 1) // 2
    for states, vectors, length in zip(model(texts(), MASK), texts(), LENGTHS.tolist(), strict=True):
        for i in range(length):
            value = bias
            for k in range(window):
                j = i - left + k
                if 0 <= j < length:
                    value = value + weight[..., k] @ (vectors[j] + model.distances[abs(i - j)])
            torch.testing.assert_close(states[i], torch.relu(value))


@pytest.mark.parametrize("wrong", [{"position": "absolute"}, {"merge": "multiply"}])
def test_an_unknown_choice_is_refused_with_the_known_ones(wrong):
    with pytest.raises(ValueError, match=r"none, offset, normalised_offset|neither add nor concat"):
        StackedCNN(WIDTH, **wrong)
