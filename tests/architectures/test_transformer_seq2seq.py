"""Transformer encoder-decoder: torch's layers as reference."""

from __future__ import annotations

import math
from functools import partial

import pytest
import torch
from torch import Tensor, nn

from architectures.blocks.positions import sinusoids
from architectures.blocks.transformer import Attention, TransformerLayer
from architectures.seq2seq.transformer_seq2seq import TransformerSeq2Seq
from tests.support.batches import random_vectors
from tests.support.models import small

WIDTH, SYMBOLS, SIZE, HEADS, INNER, START = 5, 5, 8, 2, 12, 1
LENGTHS = [5, 2, 3]
PREFIX = torch.tensor([[START, 3, 4, 0], [START, 4, 4, 3], [START, 0, 3, 3]])

source = partial(random_vectors, LENGTHS, 1, width=WIDTH)


def model_of(width: int = WIDTH, **settings) -> TransformerSeq2Seq:
    """Two layers on each side."""
    return small(TransformerSeq2Seq, width, SYMBOLS, SIZE, HEADS, inner=INNER, stretch=1.0, **settings)


def attention_weights(attention: Attention, prefix: str) -> dict[str, Tensor]:
    """The weights under the names of torch's attention."""
    joint = (attention.query, attention.key, attention.value)
    found = {
        f"{prefix}.in_proj_{kind}": torch.cat([getattr(part, kind) for part in joint]) for kind in ("weight", "bias")
    }
    return found | {f"{prefix}.out_proj.{kind}": getattr(attention.output, kind) for kind in ("weight", "bias")}


def torchs(layer: TransformerLayer) -> nn.Module:
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
    reference.load_state_dict(weights)
    return reference


@pytest.mark.parametrize("width", [WIDTH, SIZE])
def test_scores_are_those_of_torchs_post_norm_layers_on_scaled_vectors_with_positions(width):
    """No scaling, no positions, norms before the sums, no mask, or output weights of their own:
    each gives other scores."""
    model = model_of(width)
    vectors, mask = source(width=width)
    projected = vectors if width == SIZE else model.projection(vectors)
    memory = projected * math.sqrt(SIZE) + sinusoids(5, SIZE, vectors)
    for layer in model.encoder.layers:
        memory = torchs(layer)(memory, src_key_padding_mask=~mask)
    symbols = model.vectors_of_symbols.weight
    states = symbols[PREFIX] * math.sqrt(SIZE) + sinusoids(4, SIZE, vectors)
    future = torch.ones(4, 4, dtype=torch.bool).triu(1)
    for layer in model.decoder.layers:
        states = torchs(layer)(states, memory, tgt_mask=future, memory_key_padding_mask=~mask)
    torch.testing.assert_close(model(vectors, mask, PREFIX), states @ symbols.T, rtol=1e-4, atol=1e-4)


def test_a_size_that_its_heads_do_not_divide_is_refused():
    with pytest.raises(ValueError, match="size=6 cannot be divided among heads=4"):
        TransformerSeq2Seq(WIDTH, SYMBOLS, size=6, heads=4)
