"""Reformer: the attention is that of loops over the buckets, one chunk is transformers' own model,
and reversible layers have the gradients of plain ones without keeping states."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from architectures.blocks.objectives.masked_pieces import MaskedPieces
from architectures.pretrained import reformer
from architectures.pretrained.reformer import Drawn, HashedAttention, Reformer, ReversibleLayer, ReversibleStack, undone
from harness.views.subwords import Subwords
from tests.support.models import small
from tests.support.same import assert_same

transformers = pytest.importorskip("transformers")

LENGTHS = [14, 9, 1]
MASK = torch.arange(14) < torch.tensor(LENGTHS)[:, None]
VIEW = Subwords(size=60, max_length=16)
VIEW.fit(["the cat sat on the mat", "a dog ran", "the end"])
BATCH = VIEW.collate(VIEW.encode(["the cat sat on the mat", "a dog ran", "a"]), np.arange(3))


def attention(chunk: int = 4, buckets: int = 6, rounds: int = 2, dropout: float = 0.0) -> HashedAttention:
    return small(HashedAttention, 6, 2, dropout, chunk=chunk, buckets=buckets, rounds=rounds)


def seen_by(buckets: list[list[int]], chunk: int) -> list[set[int]]:
    """The positions that each one sees in any of the rounds, whose buckets are given."""
    seen: list[set[int]] = [set() for _ in buckets[0]]
    for numbers in buckets:
        order = sorted(range(len(numbers)), key=lambda place: (numbers[place], place))
        of = {place: rank // chunk for rank, place in enumerate(order)}
        for place, others in enumerate(seen):
            others |= {other for other in of if of[other] in (of[place], of[place] - 1)}
    return [others - {place} or {place} for place, others in enumerate(seen)]


def by_loops(layer: HashedAttention, states: Tensor, buckets: Tensor) -> Tensor:
    """States (T, size) of one text without padding, with its buckets (heads, rounds, T)."""
    heads = []
    for head, numbers in enumerate(buckets.tolist()):
        own = slice(3 * head, 3 * head + 3)
        queries = states @ layer.query.weight[own].T
        values = states @ layer.value.weight[own].T
        keys = [query / query.square().sum().sqrt() for query in queries]
        rows = []
        for place, seen in enumerate(seen_by(numbers, layer.chunk)):
            others = sorted(seen)
            weights = torch.stack([queries[place] @ keys[other] for other in others]).softmax(0)
            rows.append(sum(weight * values[other] for weight, other in zip(weights, others, strict=True)))
        heads.append(torch.stack(rows))
    return torch.cat(heads, 1) @ layer.output.weight.T


@pytest.mark.parametrize(("chunk", "rounds"), [(2, 1), (4, 1), (4, 3), (5, 2), (14, 2)])
def test_attention_is_that_of_loops_over_the_buckets(chunk, rounds):
    """A pair that two rounds show and that counted twice, a position that sees itself, or padding
    that takes places in chunks, would give other numbers."""
    layer = attention(chunk=chunk, rounds=rounds)
    states = torch.randn(*MASK.shape, 6, requires_grad=True)
    buckets = layer.hashed(states, MASK)
    found = layer(states, MASK, buckets)
    expected = [by_loops(layer, states[row, :n], buckets[row, :, :, :n]) for row, n in enumerate(LENGTHS)]
    assert_same(found[MASK], torch.cat(expected), rtol=1e-4, atol=1e-4)


def test_rounds_show_what_one_round_does_not():
    """Small chunks and many rounds come near to attention among all."""
    states = torch.randn(2, 14, 6)
    mask = torch.ones(2, 14, dtype=torch.bool)
    full = attention(chunk=14, rounds=1)
    whole = full(states, mask, full.hashed(states, mask))
    errors = []
    for rounds in (1, 4, 40):
        layer = attention(chunk=2, rounds=rounds)
        layer.load_state_dict(full.state_dict() | {"rotations": layer.rotations})
        errors.append((layer(states, mask, layer.hashed(states, mask)) - whole).square().mean().item())
    assert errors[0] > 2 * errors[1] > 8 * errors[2] > 0


def test_buckets_are_the_largest_of_a_rotation_and_its_negative():
    """Rotations are others at each pass of training, and the same in evaluation."""
    layer = attention(buckets=6, rounds=2)
    states = torch.randn(*MASK.shape, 6)
    found = layer.hashed(states, MASK)
    for row, length in enumerate(LENGTHS):
        for head in range(2):
            queries = states[row] @ layer.query.weight[3 * head : 3 * head + 3].detach().T
            for turn in range(2):
                for place in range(14):
                    turned = [float(queries[place] @ layer.rotations[head, :, turn, number]) for number in range(3)]
                    both = [*turned, *(-number for number in turned)]
                    wanted = both.index(max(both)) if place < length else 6
                    assert found[row, head, turn, place] == wanted
    assert torch.equal(layer.hashed(states, MASK), found)
    layer.train()
    passes = [layer.hashed(states, MASK) for _ in range(2)]
    assert not torch.equal(passes[0], passes[1]) and not torch.equal(passes[0], found)


def made(**sizes: Any) -> Reformer:
    sizes = {"layers": 2, "hidden": 12, "heads": 3, "chunk": 16, "rounds": 2, "dropout": 0.0} | sizes
    return small(Reformer, VIEW.width, VIEW, stretch=20.0, **sizes)


def renamed(name: str) -> str:
    """Our name of a parameter of transformers' model."""
    for theirs, ours in (
        ("embeddings.word_embeddings", "table"),
        ("embeddings.position_embeddings.embedding", "positions"),
        ("encoder.layer_norm", "body.norm"),
        ("encoder.layers", "body.layers"),
        ("attention.layer_norm", "norms.0"),
        ("attention.self_attention.query_key", "attention.query"),
        ("attention.self_attention.value", "attention.value"),
        ("attention.output.dense", "attention.output"),
        ("feed_forward.layer_norm", "norms.1"),
        ("feed_forward.dense.dense", "feedforward.0"),
        ("feed_forward.output.dense", "feedforward.2"),
    ):
        name = name.replace(theirs, ours)
    return name


def test_states_and_gradients_of_one_chunk_are_those_of_transformers():
    """Shared queries and keys, the place of the norms, the two states side by side: trained
    weights would mean nothing in another body."""
    config = transformers.ReformerConfig(
        vocab_size=VIEW.width,
        hidden_size=12,
        feed_forward_size=48,
        num_attention_heads=3,
        attention_head_size=4,
        attn_layers=["lsh", "lsh"],
        num_hidden_layers=2,
        lsh_attn_chunk_length=16,
        max_position_embeddings=16,
        axial_pos_embds=False,
        is_decoder=False,
        hidden_act="relu",
        hidden_dropout_prob=0.0,
        lsh_attention_probs_dropout_prob=0.0,
        pad_token_id=0,
    )
    ours, theirs = made(), transformers.ReformerModel(config).train()
    given = dict(ours.named_parameters())
    with torch.no_grad():
        for name, weights in theirs.named_parameters():
            weights.copy_(given[renamed(name)])
    assert {renamed(name) for name, _ in theirs.named_parameters()} == given.keys()
    states = ours(BATCH)[BATCH.mask]
    expected = theirs(BATCH.ids, attention_mask=BATCH.mask.long()).last_hidden_state[BATCH.mask]
    assert ours.size == 24
    torch.testing.assert_close(states, expected, rtol=1e-5, atol=1e-5)
    weights = torch.randn_like(states)
    (states * weights).sum().backward()
    (expected * weights).sum().backward()
    for name, parameter in theirs.named_parameters():
        torch.testing.assert_close(given[renamed(name)].grad, parameter.grad, rtol=1e-3, atol=1e-3)


def stack(layers: int = 3, dropout: float = 0.3) -> ReversibleStack:
    options = {"chunk": 4, "buckets": 6, "rounds": 2}
    return small(ReversibleStack, 6, 2, 10, layers, dropout, 1e-12, stretch=1.5, **options).double().train()


def plain(body: ReversibleStack, states: Tensor) -> Tensor:
    """The same layers, whose states are kept as torch does."""
    first = second = states
    for layer in body.layers:
        buckets = layer.hashed(second, MASK)
        first = first + layer.attend(second, MASK, buckets)
        second = second + layer.change(first)
    return body.norm(torch.cat([first, second], -1))


def test_gradients_are_those_of_layers_that_keep_their_states():
    """Also with dropout, whose masks are drawn again as they were, and without leaving a trace in
    the generator."""
    body, states = stack(), torch.randn(*MASK.shape, 6, dtype=torch.double, requires_grad=True)
    torch.manual_seed(3)
    found = body(states, MASK)
    following = torch.rand(1)
    torch.manual_seed(3)
    expected = plain(body, states)
    assert torch.equal(following, torch.rand(1))
    assert_same(found[MASK], expected[MASK])
    state = torch.get_rng_state()
    found[MASK].sum().backward()
    assert torch.equal(torch.get_rng_state(), state)


def test_a_layer_is_undone():
    layer: ReversibleLayer = stack(1).layers[0].float().eval()
    first, second = torch.randn(2, *MASK.shape, 6)
    buckets, drawn = layer.hashed(second, MASK), Drawn.now(first.device)
    new_first = first + layer.attend(second, MASK, buckets)
    new_second = second + layer.change(new_first)
    assert (new_second - second).abs().mean() > 0.1
    found = undone(layer, MASK, buckets, drawn, drawn, new_first, new_second)
    torch.testing.assert_close(found[0], first, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(found[1], second, rtol=1e-5, atol=1e-5)


def kept_numbers(body: ReversibleStack, run: Any) -> int:
    """Numbers that are kept for gradients, beside the weights."""
    weights, kept = {each.data_ptr() for each in body.parameters()}, []

    def packed(each: Tensor) -> Tensor:
        if each.is_floating_point() and each.data_ptr() not in weights:
            kept.append(each.numel())
        return each

    with torch.autograd.graph.saved_tensors_hooks(packed, lambda each: each):
        run(body, torch.randn(*MASK.shape, 6, dtype=torch.double, requires_grad=True))
    return sum(kept)


def test_no_states_are_kept_however_deep_the_stack_is():
    """Memory is what a long text needs most of."""
    ours = [kept_numbers(stack(layers), lambda body, states: body(states, MASK)) for layers in (1, 6)]
    theirs = [kept_numbers(stack(layers), plain) for layers in (1, 6)]
    assert ours[0] == ours[1] < theirs[0] < theirs[1] / 4


def test_layers_are_computed_again_in_the_precision_of_the_first_time():
    body, seen = stack().float(), []
    body.layers[0].attention.output.register_forward_hook(lambda module, given, found: seen.append(found.dtype))
    with torch.autocast("cpu", torch.bfloat16):
        found = body(torch.randn(*MASK.shape, 6, requires_grad=True), MASK)
    found.float().sum().backward()
    assert seen == [torch.bfloat16, torch.bfloat16]


def test_the_network_reads_some_positions_after_others(monkeypatch):
    layer = stack(1).layers[0].eval()
    states = torch.randn(*MASK.shape, 6, dtype=torch.double)
    whole, lengths = layer.change(states), []
    monkeypatch.setattr(reformer, "AT_ONCE", 5)
    layer.feedforward.register_forward_hook(lambda module, given, found: lengths.append(found.shape[1]))
    torch.testing.assert_close(layer.change(states), whole)
    assert lengths == [5, 5, 4]


def test_a_chunk_is_twice_as_long_as_a_bucket_is_on_average():
    model = Reformer(20, Subwords(max_length=100), hidden=12, heads=3, chunk=16, rounds=5)
    assert model.body.layers[0].attention.rotations.shape == (3, 4, 5, 7), "14 buckets for 7 chunks"


def test_the_vector_of_a_text_is_its_first_state():
    model = made()
    assert torch.equal(model.vector(BATCH), model(BATCH)[:, 0])


def test_a_size_that_heads_do_not_divide_is_refused():
    with pytest.raises(ValueError, match="size=12 cannot be divided among heads=5"):
        made(heads=5)


def test_it_learns_from_masked_pieces():
    assert Reformer.learns is MaskedPieces
