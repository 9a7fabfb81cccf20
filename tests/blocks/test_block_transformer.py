"""The transformer body: PyTorch's layers with the same weights, and loops over positions, as
references."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call

from architectures.blocks.transformer import Attention, Transformer, TransformerLayer
from tests.support.same import assert_same

SIZE, HEADS, INNER = 8, 2, 12
PART = SIZE // HEADS
LENGTHS, SOURCES = torch.tensor([6, 3, 1]), torch.tensor([2, 5, 4])
MASK, SOURCE_MASK = torch.arange(6) < LENGTHS[:, None], torch.arange(5) < SOURCES[:, None]
ACTIVATIONS = {"relu": nn.ReLU, "gelu": nn.GELU}


def body_of(layers: int = 2, **options) -> Transformer:
    """A stack in evaluation, with biases and norms off their starting values."""
    torch.manual_seed(0)
    return moved(Transformer(SIZE, HEADS, INNER, layers, dropout=0.1, **options).eval())


def moved(module: nn.Module) -> nn.Module:
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    return module


def texts(length: int = 6, seed: int = 1) -> Tensor:
    torch.manual_seed(seed)
    return torch.randn(3, length, SIZE)


# --- PyTorch's layers ---


def attention_weights(attention: Attention, prefix: str) -> dict[str, Tensor]:
    """The weights under the names of torch's attention."""
    parts = [attention.queries_keys_values] if attention.joint else [attention.query, attention.key, attention.value]
    weights = {f"{prefix}.in_proj_{kind}": torch.cat([getattr(p, kind) for p in parts]) for kind in ("weight", "bias")}
    return weights | {f"{prefix}.out_proj.{kind}": getattr(attention.output, kind) for kind in ("weight", "bias")}


def torchs(layer: TransformerLayer, activation: str = "relu") -> Callable[..., Tensor]:
    """A pass of PyTorch's layer over the same weights, which get its gradients."""
    kind = nn.TransformerEncoderLayer if layer.across is None else nn.TransformerDecoderLayer
    reference = kind(SIZE, HEADS, INNER, batch_first=True, norm_first=layer.pre_norm, activation=activation).eval()
    weights = attention_weights(layer.attention, "self_attn")
    if layer.across is not None:
        weights |= attention_weights(layer.across, "multihead_attn")
    named = {"linear1": layer.feedforward[0], "linear2": layer.feedforward[-1]}
    named |= {f"norm{number}": norm for number, norm in enumerate(layer.norms, start=1)}
    weights |= {
        f"{name}.{kind}": getattr(module, kind) for name, module in named.items() for kind in ("weight", "bias")
    }
    return lambda *inputs, **masks: functional_call(reference, weights, inputs, masks)


@pytest.mark.parametrize("joint", [False, True], ids=["separate", "joint"])
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("pre_norm", [False, True], ids=["post", "pre"])
def test_an_encoder_is_torchs_with_equal_weights(pre_norm, activation, joint):
    body = body_of(pre_norm=pre_norm, activation=ACTIVATIONS[activation], joint=joint)
    states = texts()
    for layer in body.layers:
        states = torchs(layer, activation)(states, src_key_padding_mask=~MASK)
    assert_same(body(texts(), MASK)[MASK], body.norm(states)[MASK], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("pre_norm", [False, True], ids=["post", "pre"])
def test_a_decoder_is_torchs_with_equal_weights(pre_norm):
    body = body_of(causal=True, cross=True, pre_norm=pre_norm)
    states, source = texts(), texts(5, seed=2)
    future = torch.ones(6, 6, dtype=torch.bool).triu(1)
    for layer in body.layers:
        states = torchs(layer)(states, source, tgt_mask=future, memory_key_padding_mask=~SOURCE_MASK)
    found = body(texts(), source=source, source_mask=SOURCE_MASK)
    assert_same(found, body.norm(states), rtol=1e-4, atol=1e-5)


def test_a_last_norm_follows_a_stack_whose_sums_have_none():
    """Without it the states of a deep stack grow from layer to layer."""
    assert isinstance(body_of(pre_norm=True).norm, nn.LayerNorm) and not list(body_of().norm.parameters())
    torch.manual_seed(0)
    fresh = Transformer(SIZE, HEADS, INNER, layers=3, pre_norm=True)
    torch.testing.assert_close(fresh(100 * texts()).mean(-1), torch.zeros(3, 6), rtol=0, atol=1e-5)


@pytest.mark.parametrize("depth", [0, 1, 3])
@pytest.mark.parametrize("shared", [False, True], ids=["own", "shared"])
@pytest.mark.parametrize("pre_norm", [False, True], ids=["post", "pre"])
def test_layers_one_after_another_are_the_stack(pre_norm, shared, depth):
    """Where texts are mixed behind a layer, all of the layers must have read them, and the last
    norm comes once."""
    body = body_of(3, pre_norm=pre_norm, shared=shared)
    below = body.part(texts(), MASK, slice(depth))
    found = body.norm(body.part(below, MASK, slice(depth, None)))
    assert_same(found[MASK], body(texts(), MASK)[MASK], rtol=1e-4, atol=1e-5)


class Masked(nn.Module):
    """A network that says which states are real."""

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        return states * mask[..., None] - 1


def test_a_part_of_the_stack_tells_experts_the_mask():
    body = body_of(2, experts=Masked)
    assert_same(body.part(texts(), MASK, slice(None)), body(texts(), MASK))


# --- loops over positions ---


def attended(attention: Attention, reader: Tensor, seen: list[tuple[int, Tensor]], place: int) -> Tensor:
    """What one state (size,) at a place reads from the states that it sees, each with its place."""
    if attention.joint:
        weights, biases = (part.split(SIZE) for part in attention.queries_keys_values.parameters())
    else:
        weights, biases = zip(*(m.parameters() for m in (attention.query, attention.key, attention.value)), strict=True)
    query = weights[0] @ reader + biases[0]
    heads = []
    for head in range(HEADS):
        cut = slice(head * PART, (head + 1) * PART)
        scores, values = [], []
        for at, state in seen:
            key, value = ((weights[i] @ state + biases[i])[cut] for i in (1, 2))
            if attention.reach is not None:
                row = max(-attention.reach, min(attention.reach, at - place)) + attention.reach
                key, value = key + attention.distance_keys[row], value + attention.distance_values[row]
            scores.append((query[cut] @ key / math.sqrt(PART)).exp())
            values.append(value)
        heads.append(sum(s * v for s, v in zip(scores, values, strict=True)) / sum(scores))
    return attention.output.weight @ torch.cat(heads) + attention.output.bias


def looped(body: Transformer, text: Tensor, source: Tensor | None) -> Tensor:
    """States of one text without padding through a post-norm stack, position by position."""
    states = list(text)
    for layer in body.stack():
        after = []
        for i, state in enumerate(states):
            seen = list(enumerate(states[: i + 1] if body.causal else states))
            state = layer.norms[0](state + attended(layer.attention, state, seen, i))
            if source is not None:
                state = layer.norms[1](state + attended(layer.across, state, list(enumerate(source)), i))
            after.append(layer.norms[-1](state + layer.feedforward(state)))
        states = after
    return torch.stack(states)


@pytest.mark.parametrize("joint", [False, True], ids=["separate", "joint"])
@pytest.mark.parametrize("reach", [None, 2], ids=["absolute", "relative"])
@pytest.mark.parametrize("cross", [False, True], ids=["alone", "cross"])
@pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
def test_each_text_is_what_loops_over_its_positions_give(causal, cross, reach, joint):
    """Distances reach 5 and are cut off at 2; a text sees neither padding nor its neighbours."""
    body = body_of(causal=causal, cross=cross, reach=reach, joint=joint)
    source, source_mask = (texts(5, seed=2), SOURCE_MASK) if cross else (None, None)
    found = body(texts(), MASK, source, source_mask)
    for row, length in enumerate(LENGTHS):
        expected = looped(body, texts()[row, :length], source[row, : SOURCES[row]] if cross else None)
        assert_same(found[row, :length], expected, rtol=1e-4, atol=1e-5)


def test_relative_positions_tell_apart_near_words_alone():
    """Equal distances have equal vectors, wherever the words stand, and all beyond the reach
    too."""
    layer = moved(TransformerLayer(SIZE, HEADS, INNER, reach=2).eval())
    assert layer.attention.distance_keys.shape == layer.attention.distance_values.shape == (5, PART)
    text = texts()[:1]
    last, swapped = layer(text)[0][0, -1], layer(text[:, [1, 0, 2, 3, 4, 5]])[0][0, -1]
    torch.testing.assert_close(last, swapped)
    assert not torch.allclose(last, layer(text[:, [0, 1, 2, 4, 3, 5]])[0][0, -1], atol=1e-3)


# --- sharing, decoding, padding ---


def test_shared_layers_cost_the_parameters_of_one_and_are_passed_each_time():
    one, shared, apart = (body_of(layers, shared=s) for layers, s in ((1, True), (4, True), (4, False)))
    counts = [sum(p.numel() for p in body.parameters()) for body in (one, shared, apart)]
    assert counts == [counts[0], counts[0], 4 * counts[0]]
    states = texts()
    for _ in range(4):
        states = functional_call(one, dict(shared.named_parameters()), (states, MASK))
    assert_same(shared(texts(), MASK), states)


@pytest.mark.parametrize(
    "options",
    [{}, {"pre_norm": True}, {"reach": 2}, {"shared": True, "joint": True}],
    ids=["post", "pre", "relative", "shared"],
)
@pytest.mark.parametrize("cross", [False, True], ids=["alone", "cross"])
def test_positions_read_one_by_one_give_the_states_of_the_whole_text(cross, options):
    """Decoding would drift from training where the memory missed a position or counted distances
    from its own start."""
    body = body_of(causal=True, cross=cross, **options)
    source, source_mask = (texts(5, seed=2), SOURCE_MASK) if cross else (None, None)
    state, found = body.start(source, source_mask) if cross else None, []
    for part in texts().split([1, 2, 1, 2], dim=1):
        states, state = body.extend(part, state)
        found.append(states)
    expected = body(texts(), source=source, source_mask=source_mask)
    assert_same(torch.cat(found, dim=1), expected, rtol=1e-4, atol=1e-5)
    assert [memory.keys.shape[2] for memory in state.written] == [6, 6]


@pytest.mark.parametrize("reach", [None, 2], ids=["absolute", "relative"])
def test_a_text_without_positions_spoils_nothing(reach):
    """A softmax over nothing is NaN, which a gradient carries into every weight."""
    body, mask = body_of(reach=reach), MASK.clone()
    mask[2] = False
    states = body(texts(), mask)
    states.sum().backward()
    assert states.isfinite().all() and all(p.grad.isfinite().all() for p in body.parameters())


@pytest.mark.parametrize("options", [{"inner_dropout": 0.5}, {"dropout": 0.5}, {"dropout": 0.5, "reach": 1}])
@pytest.mark.parametrize("sums", [True, False], ids=["sums", "no sums"])
def test_dropout_changes_states_in_training_alone(options, sums):
    """On what is added, and where that is left alone, on attention weights or inner units."""
    layer, states = TransformerLayer(SIZE, HEADS, INNER, **options), texts()
    if not sums:
        layer.dropout.p = 0.0
    assert not torch.equal(layer(states)[0], layer(states)[0])
    layer.eval()
    assert torch.equal(layer(states)[0], layer(states)[0])


def test_a_size_that_its_heads_do_not_divide_is_refused():
    with pytest.raises(ValueError, match="size=10 cannot be divided among heads=4"):
        Attention(10, 4)
