"""Transformer encoder-decoder: torch's layers as reference."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call

from architectures.blocks.transformer import Attention, TransformerLayer
from architectures.seq2seq.transformer_seq2seq import TransformerSeq2Seq
from tests.support.batches import random_vectors
from tests.support.models import small
from tests.support.same import assert_same

WIDTH, SYMBOLS, SIZE, HEADS, INNER, START = 5, 5, 8, 2, 12, 1
LENGTHS = [5, 2, 3]
PREFIX = torch.tensor([[START, 3, 4, 0], [START, 4, 4, 3], [START, 0, 3, 3]])

source = partial(random_vectors, LENGTHS, 1, width=WIDTH)


def model_of(width: int = WIDTH, **settings) -> TransformerSeq2Seq:
    """Two layers on each side."""
    return small(TransformerSeq2Seq, width, SYMBOLS, SIZE, HEADS, inner=INNER, stretch=1.0, **settings)


def positions(length: int) -> Tensor:
    """The paper's sines and cosines, number by number."""
    angles = [[place / 10000 ** (2 * (column // 2) / SIZE) for column in range(SIZE)] for place in range(length)]
    return torch.tensor(
        [[math.cos(angle) if column % 2 else math.sin(angle) for column, angle in enumerate(row)] for row in angles]
    )


def attention_weights(attention: Attention, prefix: str) -> dict[str, Tensor]:
    """The weights under the names of torch's attention."""
    joint = (attention.query, attention.key, attention.value)
    found = {
        f"{prefix}.in_proj_{kind}": torch.cat([getattr(part, kind) for part in joint]) for kind in ("weight", "bias")
    }
    return found | {f"{prefix}.out_proj.{kind}": getattr(attention.output, kind) for kind in ("weight", "bias")}


def torchs(layer: TransformerLayer) -> Callable[..., Tensor]:
    """PyTorch's post-norm layer with the same weights."""
    kind = nn.TransformerEncoderLayer if layer.across is None else nn.TransformerDecoderLayer
    reference = kind(SIZE, HEADS, INNER, batch_first=True, norm_first=False, activation="relu").eval()
    weights = attention_weights(layer.attention, "self_attn")
    if layer.across is not None:
        weights |= attention_weights(layer.across, "multihead_attn")
    named = {"linear1": layer.feedforward[0], "linear2": layer.feedforward[-1]}
    named |= {f"norm{number}": norm for number, norm in enumerate(layer.norms, start=1)}
    weights |= {
        f"{name}.{kind}": getattr(module, kind) for name, module in named.items() for kind in ("weight", "bias")
    }
    # By the model's own weights, which gradients reach.
    return lambda *read, **masks: functional_call(reference, weights, read, masks)


@pytest.mark.parametrize("width", [WIDTH, SIZE])
def test_scores_are_those_of_torchs_post_norm_layers_on_scaled_vectors_with_positions(width):
    """No scaling, no positions, norms before the sums, no mask, or output weights of their own:
    each gives other scores."""
    model = model_of(width)
    vectors, mask = source(width=width)
    projected = vectors if width == SIZE else model.projection(vectors)
    memory = projected * math.sqrt(SIZE) + positions(5)
    for layer in model.encoder.layers:
        memory = torchs(layer)(memory, src_key_padding_mask=~mask)
    symbols = model.vectors_of_symbols.weight
    states = symbols[PREFIX] * math.sqrt(SIZE) + positions(4)
    future = torch.ones(4, 4, dtype=torch.bool).triu(1)
    for layer in model.decoder.layers:
        states = torchs(layer)(states, memory, tgt_mask=future, memory_key_padding_mask=~mask)
    assert_same(model(vectors, mask, PREFIX), states @ symbols.T, rtol=1e-4, atol=1e-4)


def test_dropout_acts_on_what_goes_into_both_sides():
    """A tenth of the scaled vectors with their positions, not of the vectors or positions alone."""
    model = model_of(dropout=0.1).train()
    vectors = torch.randn(20, 30, SIZE)
    placed = model.eval().placed(vectors)
    dropped = model.train().placed(vectors)
    kept = dropped != 0
    assert 0.87 < kept.float().mean() < 0.93
    torch.testing.assert_close(dropped[kept], placed[kept] / 0.9)


@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_dropout_acts_on_every_sublayer_before_it_is_added(side):
    """With all of them dropped, states pass the norms alone, in the encoder and in the decoder."""
    model = model_of(dropout=1.0).train()
    vectors, mask = source(width=SIZE)
    state = model.decoder.start(torch.randn(3, 5, SIZE), mask)
    found = model.encoder(vectors, mask) if side == "encoder" else model.decoder.extend(vectors, state)[0]
    expected = vectors
    for layer in getattr(model, side).layers:
        for norm in layer.norms:
            expected = F.layer_norm(expected, (SIZE,), norm.weight, norm.bias)
    assert_same(found, expected)


@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_dropout_acts_on_attention_weights(side):
    """With all of them dropped, what an attention gives is the bias behind it."""
    layer = getattr(model_of(dropout=1.0).train(), side).layers[0]
    states = torch.randn(3, 5, SIZE)
    for attention in filter(None, (layer.attention, layer.across)):
        memory = attention.remember(states)
        assert_same(attention(states, memory), attention.output.bias.expand(3, 5, SIZE))


def test_symbols_start_so_large_that_scaled_they_are_as_large_as_positions():
    """Deviation 1 / sqrt(size), and the same weights score the symbols: larger ones would give
    scores of a trained model before any training."""
    model = TransformerSeq2Seq(WIDTH, 500, size=64)
    assert 0.118 < model.vectors_of_symbols.weight.std() < 0.132


def test_a_size_that_its_heads_do_not_divide_is_refused():
    with pytest.raises(ValueError, match="size=6 cannot be divided among heads=4"):
        TransformerSeq2Seq(WIDTH, SYMBOLS, size=6, heads=4)
