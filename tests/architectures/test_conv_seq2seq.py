"""The convolutional encoder-decoder against its equations in plain loops."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from architectures.seq2seq.conv_seq2seq import ConvolutionalSeq2Seq, scaled_back
from tests.support.batches import random_vectors
from tests.support.models import small
from tests.support.oracles import convolution, softmax_mean
from tests.support.same import assert_same

WIDTH, SYMBOLS, START, SIZE, HIDDEN = 4, 5, 1, 6, 7
LENGTHS = [5, 2, 3]
PREFIX = torch.tensor([[START, 3, 4, 0], [START, 4, 4, 3], [START, 0, 3, 3]])


def model_of(**options: float) -> ConvolutionalSeq2Seq:
    sizes = {"size": SIZE, "hidden": HIDDEN, "encoder_layers": 2, "layers": 2, "kernel": 3}
    return small(ConvolutionalSeq2Seq, WIDTH, SYMBOLS, **sizes | options, stretch=1.5)


def affine(layer: nn.Linear, vector: Tensor) -> Tensor:
    return layer.weight @ vector + layer.bias


def glu(layer: nn.Conv1d, vectors: list[Tensor], left: int, right: int) -> list[Tensor]:
    halves = (value.chunk(2) for value in convolution(layer, vectors, left, right))
    return [a * torch.sigmoid(b) for a, b in halves]


def half(a: Tensor, b: Tensor) -> Tensor:
    return (a + b) * math.sqrt(0.5)


def expected(model: ConvolutionalSeq2Seq, text: Tensor, prefix: Tensor) -> Tensor:
    """Scores (U, symbols) of one source (n, WIDTH) and one prefix (U,)."""
    e = [affine(model.projection, x) + model.places_of_source.weight[i] for i, x in enumerate(text)]
    z = [affine(model.encoder_input, x) for x in e]
    for layer in model.encoder:
        z = [half(a, b) for a, b in zip(glu(layer.convolution, z, 1, 1), z, strict=True)]
    z = [affine(model.encoder_output, x) for x in z]
    for key in z:  # as section 3.5 of the paper scales it, by the number of attentions
        key.register_hook(lambda gradient: gradient / (2 * len(model.decoder)))
    values = [half(a, b) for a, b in zip(z, e, strict=True)]
    g = [model.vectors_of_symbols.weight[y] + model.places.weight[i] for i, y in enumerate(prefix)]
    h = [affine(model.decoder_input, x) for x in g]
    for layer, attention in zip(model.decoder, model.attentions, strict=True):
        mixed = []
        for state, symbol in zip(glu(layer.convolution, h, 2, 0), g, strict=True):
            q = half(affine(attention.query, state), symbol)
            n = len(text)
            context = softmax_mean([q @ key for key in z], values) * n * math.sqrt(1 / n)
            mixed.append(half(affine(attention.back, context), state))
        h = [half(a, b) for a, b in zip(mixed, h, strict=True)]
    return torch.stack([affine(model.output, affine(model.decoder_output, x)) for x in h])


def test_scores_are_those_of_the_equations_for_each_source_without_padding():
    """A window that sees the symbol behind it, one attention for all layers, or a length with the
    padding give other numbers."""
    model = model_of()
    vectors, mask = random_vectors(LENGTHS, 1, WIDTH)
    scores = model(vectors, mask, PREFIX)
    for row, length in enumerate(LENGTHS):
        assert_same(scores[row], expected(model, vectors[row, :length], PREFIX[row]), atol=1e-5, rtol=1e-4)
    assert scores.std() > 0.1


def test_a_layer_that_says_nothing_scales_its_input_by_the_root_of_a_half():
    """Otherwise states would grow with each layer."""
    model = model_of(encoder_layers=1)
    with torch.no_grad():
        for parameter in model.encoder[0].parameters():
            parameter.mul_(0).add_(1e-12)  # weight norm divides by the length of a direction
    vectors, mask = random_vectors([4], 1, WIDTH)
    found = model.start(vectors, mask).keys[0]
    for place, x in enumerate(vectors[0]):
        read = affine(model.encoder_input, affine(model.projection, x) + model.places_of_source.weight[place])
        torch.testing.assert_close(found[place], affine(model.encoder_output, math.sqrt(0.5) * read))


def test_gradients_into_the_encoder_are_divided_by_twice_the_decoders_layers():
    """Its states, not its vectors, which the values hold too."""
    model = model_of(layers=3)
    vectors, mask = random_vectors([4], 1, WIDTH)
    state = model.start(vectors, mask)
    by_keys, whole = (
        torch.autograd.grad(keys.sum(), model.encoder_output.bias, retain_graph=True)[0]
        for keys in (state.keys, state.values * math.sqrt(2))
    )
    torch.testing.assert_close(by_keys, torch.full((SIZE,), 4 / 6))
    torch.testing.assert_close(whole, by_keys)
    x = torch.ones(2, requires_grad=True)
    scaled_back(3 * x, 0.25).sum().backward()
    torch.testing.assert_close(x.grad, torch.full((2,), 0.75))


def test_weights_start_so_that_layers_keep_the_variance():
    model = ConvolutionalSeq2Seq(64, 50, size=64, hidden=64, dropout=0.2)
    for layer, variance in (
        (model.encoder[0].convolution, 4 * 0.8 / (3 * 64)),
        (model.decoder[2].convolution, 4 * 0.8 / (3 * 64)),
        (model.encoder_input, 0.8 / 64),
        (model.decoder_output, 1 / 64),
        (model.output, 0.8 / 64),
    ):
        assert layer.weight.var().item() == pytest.approx(variance, rel=0.1)
        assert not layer.bias.any()
        assert layer.parametrizations.weight, "weight norm"
    assert model.places.weight.std().item() == pytest.approx(0.1, rel=0.05)


def test_dropout_acts_on_what_is_read_on_windows_and_before_the_scores():
    """With all dropped, the scores are the output's bias in training, and not in evaluation."""
    model = model_of().train()
    model.dropout.p = 1.0
    vectors, mask = random_vectors([3], 1, WIDTH)
    prefix = torch.tensor([[START, 3]])
    assert_same(model(vectors, mask, prefix)[0, 1], model.output.bias)
    state = model.start(vectors, mask)
    assert_same(state.values, state.keys * math.sqrt(0.5))  # the source's vectors are dropped
    assert not model.read(prefix, state)[1].inputs[1].any()  # what the second layer's windows read
    assert not model.eval()(vectors, mask, prefix)[0, 1].isclose(model.output.bias).any()


def test_places_behind_the_last_vector_share_it():
    """A recording has more frames than there are vectors: it is read, not refused."""
    model = model_of(encoder_layers=1)
    vectors, mask = random_vectors([1030], 1, WIDTH)
    assert model(vectors, mask, PREFIX[:1]).isfinite().all()


def test_a_kernel_without_a_middle_is_refused():
    with pytest.raises(ValueError, match="kernel=4 has no middle"):
        ConvolutionalSeq2Seq(WIDTH, SYMBOLS, kernel=4)


def test_a_decoder_without_layers_is_refused_by_name():
    """It would divide the gradient of the encoder by 0."""
    with pytest.raises(ValueError, match="layers=0: the decoder reads the source in one layer at least"):
        ConvolutionalSeq2Seq(WIDTH, SYMBOLS, layers=0)
