"""The mechanism of the transformer encoder: attention among all real positions, norms behind the
sums, sinusoidal positions."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from architectures.blocks.positions import sinusoids
from architectures.blocks.transformer import Attention
from architectures.transformer.transformer import TransformerEncoder
from harness.problems.classify import text_vector
from harness.views.words import WordBatch

SIZE, HEADS, INNER = 8, 2, 12
LENGTHS = torch.tensor([7, 3, 1])
MASK = torch.arange(7) < LENGTHS[:, None]


def model_of(width: int = SIZE, **settings) -> TransformerEncoder:
    torch.manual_seed(0)
    return TransformerEncoder(width, SIZE, HEADS, inner=INNER, **settings).eval()


def texts(width: int = SIZE) -> torch.Tensor:
    torch.manual_seed(1)
    return torch.randn(3, 7, width)


def torchs_layers(model: TransformerEncoder) -> list[nn.TransformerEncoderLayer]:
    """PyTorch's post-norm layers with the weights of the model."""
    layers = []
    for layer in model.body.layers:
        reference = nn.TransformerEncoderLayer(
            SIZE, HEADS, INNER, batch_first=True, norm_first=False, activation="relu"
        ).eval()
        pairs = {
            "self_attn.in_proj_": layer.attention.queries_keys_values,
            "self_attn.out_proj.": layer.attention.output,
            "linear1.": layer.feedforward[0],
            "linear2.": layer.feedforward[-1],
            "norm1.": layer.norms[0],
            "norm2.": layer.norms[1],
        }
        reference.load_state_dict(
            {prefix + kind: getattr(module, kind) for prefix, module in pairs.items() for kind in ("weight", "bias")}
        )
        layers.append(reference)
    return layers


def test_states_are_those_of_torchs_post_norm_layers_on_scaled_vectors_with_positions():
    model = model_of(layers=3)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    states = texts() * math.sqrt(SIZE) + sinusoids(7, SIZE, torch.empty(0))
    for layer in torchs_layers(model):
        states = layer(states, src_key_padding_mask=~MASK)
    torch.testing.assert_close(model(texts(), MASK)[MASK], states[MASK], atol=1e-5, rtol=1e-5)


def test_attention_is_a_softmax_of_scaled_dot_products_in_each_head():
    torch.manual_seed(0)
    attention, states = Attention(SIZE, HEADS, joint=True), texts()[0]
    queries, keys, values = attention.queries_keys_values(states).chunk(3, dim=1)
    size, heads = SIZE // HEADS, []
    for head in range(HEADS):
        part = slice(head * size, (head + 1) * size)
        scores = torch.stack([torch.stack([q @ k for k in keys[:, part]]) for q in queries[:, part]]) / math.sqrt(size)
        heads.append(scores.exp() / scores.exp().sum(1, keepdim=True) @ values[:, part])
    expected = attention.output(torch.cat(heads, dim=1))
    torch.testing.assert_close(attention(states[None], allowed=MASK[:1, None, None])[0], expected)


def test_a_position_vector_has_a_sine_and_a_cosine_of_each_wavelength():
    """Also of an odd size, which ends on a sine: frames and merged inputs have any width."""
    for size in (6, 5):
        expected = [
            [(math.cos if k % 2 else math.sin)(i / 10000 ** ((k - k % 2) / size)) for k in range(size)]
            for i in range(50)
        ]
        torch.testing.assert_close(sinusoids(50, size, torch.empty(0)), torch.tensor(expected), atol=1e-5, rtol=1e-5)
    assert sinusoids(3, 4, torch.empty(0, dtype=torch.float64)).dtype == torch.float64


def test_what_stands_at_padding_changes_no_real_state():
    model = model_of()
    noisy = torch.where(MASK[..., None], texts(), 40.0)
    torch.testing.assert_close(model(noisy, MASK)[MASK], model(texts(), MASK)[MASK])


def test_a_text_without_positions_spoils_nothing():
    """A softmax over nothing is NaN, which a gradient carries into every weight."""
    model = model_of()
    mask = MASK.clone()
    mask[2] = False
    pooled = text_vector(model, WordBatch(mask.long(), mask, mask.sum(1), texts()))
    pooled.sum().backward()
    assert pooled.isfinite().all() and not pooled[2].any()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())


def test_the_order_of_words_matters():
    """Attention alone is blind to it."""
    model, mask = model_of(), MASK[:1]
    turned = model(texts()[:1].flip(1), mask).flip(1)
    assert not torch.allclose(turned, model(texts()[:1], mask), atol=1e-2)


def test_vectors_of_another_width_are_mapped_to_the_models():
    model = model_of(width=5)
    assert model(texts(5), MASK).shape == (3, 7, SIZE)
    assert model.projection.weight.shape == (SIZE, 5)
    assert not list(model_of().projection.parameters())


def test_a_texts_vector_is_the_mean_of_its_states():
    model = model_of()
    pooled = text_vector(model, WordBatch(MASK.long(), MASK, LENGTHS, texts()))
    torch.testing.assert_close(pooled[1], model(texts(), MASK)[1, :3].mean(0))


def test_a_size_that_heads_do_not_divide_is_refused():
    with pytest.raises(ValueError, match="size=10 cannot be divided among heads=4"):
        TransformerEncoder(10, size=10, heads=4)
