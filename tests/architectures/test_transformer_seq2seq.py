"""Transformer encoder-decoder: torch's layers as reference, what a position may see, forward against step, beam search."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from torch import Tensor, nn

from architectures.blocks.beam import beam_search
from architectures.blocks.positions import sinusoids
from architectures.seq2seq.transformer_seq2seq import Layer, MultiHeadAttention, TransformerSeq2Seq

WIDTH, SYMBOLS, SIZE, HEADS, INNER, START, END = 5, 5, 8, 2, 12, 1, 2
LENGTHS = [5, 2, 3]
PREFIX = torch.tensor([[START, 3, 4, 0], [START, 4, 4, 3], [START, 0, 3, 3]])


def model_of(width: int = WIDTH, **settings) -> TransformerSeq2Seq:
    """Two layers on each side, with biases and norms off their starting values."""
    torch.manual_seed(0)
    model = TransformerSeq2Seq(width, SYMBOLS, SIZE, HEADS, inner=INNER, **settings).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    return model


def source(width: int = WIDTH) -> tuple[Tensor, Tensor]:
    """Three sources with large numbers at padding that must not count."""
    vectors = torch.randn(len(LENGTHS), max(LENGTHS), width, generator=torch.Generator().manual_seed(1))
    mask = torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS)[:, None]
    return torch.where(mask[..., None], vectors, torch.full((), 50.0)), mask


def attention_weights(attention: MultiHeadAttention, prefix: str) -> dict[str, Tensor]:
    """The weights under the names of torch's attention."""
    joint = (attention.query, attention.key, attention.value)
    found = {f"{prefix}.in_proj_{kind}": torch.cat([getattr(part, kind) for part in joint]) for kind in ("weight", "bias")}
    return found | {f"{prefix}.out_proj.{kind}": getattr(attention.output, kind) for kind in ("weight", "bias")}


def torchs(layer: Layer) -> nn.Module:
    """PyTorch's post-norm layer with the same weights."""
    kind = nn.TransformerEncoderLayer if layer.across is None else nn.TransformerDecoderLayer
    reference = kind(SIZE, HEADS, INNER, batch_first=True, norm_first=False, activation="relu").eval()
    weights = attention_weights(layer.attention, "self_attn")
    if layer.across is not None:
        weights |= attention_weights(layer.across, "multihead_attn")
    named = {"linear1": layer.feedforward[0], "linear2": layer.feedforward[2]}
    named |= {f"norm{number}": norm for number, norm in enumerate(layer.norms, start=1)}
    weights |= {f"{name}.{kind}": getattr(module, kind) for name, module in named.items() for kind in ("weight", "bias")}
    reference.load_state_dict(weights)
    return reference


@pytest.mark.parametrize("width", [WIDTH, SIZE])
def test_scores_are_those_of_torchs_post_norm_layers_on_scaled_vectors_with_positions(width):
    """No scaling, no positions, norms before the sums, no mask, or output weights of their own: each gives other scores."""
    model = model_of(width)
    vectors, mask = source(width)
    projected = vectors if width == SIZE else model.projection(vectors)
    memory = projected * math.sqrt(SIZE) + sinusoids(5, SIZE, vectors)
    for layer in model.encoder:
        memory = torchs(layer)(memory, src_key_padding_mask=~mask)
    symbols = model.vectors_of_symbols.weight
    states = symbols[PREFIX] * math.sqrt(SIZE) + sinusoids(4, SIZE, vectors)
    future = torch.ones(4, 4, dtype=torch.bool).triu(1)
    for layer in model.decoder:
        states = torchs(layer)(states, memory, tgt_mask=future, memory_key_padding_mask=~mask)
    torch.testing.assert_close(model(vectors, mask, PREFIX), states @ symbols.T, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("place", [1, 2, 3])
def test_a_later_symbol_changes_no_earlier_score(place):
    """A decoder that sees the symbol it is to predict learns nothing from teacher forcing."""
    model, other = model_of(), PREFIX.clone()
    other[:, place] = 2
    before, after = model(*source(), PREFIX), model(*source(), other)
    torch.testing.assert_close(before[:, :place], after[:, :place])
    assert not torch.isclose(before[:, place:], after[:, place:]).all(-1).any()


def stepped(model: TransformerSeq2Seq, symbols: Tensor) -> Tensor:
    """Log-probabilities (B, U, symbols) of one :meth:`step` after another."""
    state, found = model.start(*source()), []
    for column in symbols.unbind(1):
        log_probabilities, state = model.step(column, state)
        found.append(log_probabilities)
    return torch.stack(found, dim=1)


def test_decoding_with_remembered_keys_gives_the_scores_of_teacher_forcing():
    """A step at the wrong position, or that forgets what is written, would search with scores that the model was not trained on."""
    model = model_of()
    torch.testing.assert_close(stepped(model, PREFIX), model(*source(), PREFIX).log_softmax(-1), rtol=1e-4, atol=1e-4)


def test_beam_one_is_greedy_and_a_wide_beam_finds_the_most_probable_sequence():
    """At most three symbols, so that all sequences can be listed; keys that stay behind when hypotheses are re-ordered would show."""
    model, longest = model_of(), 3
    sequences = [list(s) for n in range(longest) for s in itertools.product([0, 1, 3, 4], repeat=n)]
    scores = torch.zeros(len(LENGTHS), len(sequences))
    for number, sequence in enumerate(sequences):
        following = torch.tensor([*sequence, END])
        scores[:, number] = stepped(model, torch.tensor([[START, *sequence]] * len(LENGTHS)))[:, range(len(following)), following].sum(1)
    wide = beam_search(model.step, model.start(*source()), START, END, longest, beam=25)
    assert wide == [sequences[best] for best in scores.argmax(1).tolist()]

    for row, found in enumerate(beam_search(model.step, model.start(*source()), START, END, longest, beam=1)):
        written = [START]
        while len(written) <= longest:
            symbol = int(model(*source(), torch.tensor([written] * len(LENGTHS)))[row, -1].argmax())
            if symbol == END:
                break
            written.append(symbol)
        assert found == written[1:]


def test_a_size_that_its_heads_do_not_divide_is_refused():
    with pytest.raises(ValueError, match="size=6 cannot be divided among heads=4"):
        TransformerSeq2Seq(WIDTH, SYMBOLS, size=6, heads=4)
