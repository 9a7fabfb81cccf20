"""Transformer tagger: learned positions added to words, and three encoder layers written out for
each sentence alone."""

from __future__ import annotations

import math
from functools import partial

import pytest
import torch
from torch import Tensor, nn

from architectures.blocks.transformer import TransformerLayer
from architectures.tagging.transformer_tagger import TimeFirstAttention, TransformerTagger
from harness.problems.tag import Tag, TagTarget
from harness.views.words import Words
from tests.support.batches import assert_each_alone, random_texts
from tests.support.models import small
from tests.support.oracles import softmax_mean
from tests.support.same import assert_same

SIZE, HEADS = 8, 2
LENGTHS = [6, 3, 1]

batch = partial(random_texts, LENGTHS, 1, width=SIZE)


def model(width: int = SIZE) -> TransformerTagger:
    view = Words(lower=False, max_length=10)
    return small(TransformerTagger, width, labels=3, view=view, size=SIZE, heads=HEADS, inner=12, stretch=1.0)


def norm(layer: nn.LayerNorm, state: Tensor) -> Tensor:
    return (state - state.mean()) / (state.var(unbiased=False) + layer.eps).sqrt() * layer.weight + layer.bias


def encoded(layer: TransformerLayer, states: list[Tensor]) -> list[Tensor]:
    """Multi-head attention among all states and the feed-forward network, each added to its input
    and normed."""
    attention, part = layer.attention, SIZE // HEADS
    joint, (first, *_, second) = attention.queries_keys_values, layer.feedforward
    queries, keys, values = (
        [weight @ state + bias for state in states]
        for weight, bias in zip(joint.weight.split(SIZE), joint.bias.split(SIZE), strict=True)
    )
    found = []
    for t, state in enumerate(states):
        heads = []
        for head in range(HEADS):
            cut = slice(head * part, (head + 1) * part)
            scores = [queries[t][cut] @ key[cut] / math.sqrt(part) for key in keys]
            heads.append(softmax_mean(scores, [value[cut] for value in values]))
        state = norm(layer.norms[0], state + attention.output.weight @ torch.cat(heads) + attention.output.bias)
        inner = torch.relu(first.weight @ state + first.bias)
        found.append(norm(layer.norms[1], state + second.weight @ inner + second.bias))
    return found


def test_word_and_position_vectors_are_summed_and_pass_three_encoder_layers():
    """Each sentence by itself and written out: padding is looked at by nobody."""
    tagger, words = model(), batch()
    assert len(tagger.body.layers) == 3

    def written_out(vectors: Tensor) -> Tensor:
        states = [vector + tagger.positions[t] for t, vector in enumerate(vectors)]
        for layer in tagger.body.layers:
            states = encoded(layer, states)
        return torch.stack([tagger.emissions.weight @ state + tagger.emissions.bias for state in states])

    assert_each_alone(tagger(words), written_out, words, states=True, atol=1e-5, rtol=1e-4)


def test_positions_are_learnt_and_tell_equal_words_apart():
    tagger, words = model(), batch()
    same = words._replace(vectors=words.vectors[:, :1].expand(-1, 6, -1))
    emissions = tagger(same)
    assert not torch.allclose(emissions[0, 0], emissions[0, 1], atol=1e-3)
    emissions[words.mask].pow(2).sum().backward()
    assert tagger.positions.grad[:6].abs().amin(1).all() and not tagger.positions.grad[6:].any()
    with torch.no_grad():
        tagger.positions.zero_()
    blind = tagger(same)
    torch.testing.assert_close(blind[0, 0], blind[0, 5])


def test_there_is_a_position_for_every_word_that_the_view_keeps():
    """A longer test sentence than any in training must not run out of positions."""
    tagger = model()
    assert tagger(random_texts([10], 1, SIZE)).shape == (1, 10, 3)
    view = Words(lower=False, max_length=10)
    view.fit([["a"] * 40])
    assert view.lengths(view.encode([["a"] * 40])).tolist() == [10]


def test_a_seed_gives_the_weights_and_the_dropout_that_it_gave_with_torchs_layers():
    """The records were made with them: with another start or another order of random numbers they
    could not be made again."""
    torch.manual_seed(0)
    layer = TransformerLayer(SIZE, HEADS, 12, 0.3, inner_dropout=0.3, attention=TimeFirstAttention)
    torch.manual_seed(0)
    theirs = nn.TransformerEncoderLayer(SIZE, HEADS, 12, 0.3, batch_first=True)
    assert all(map(torch.equal, sorted_weights(layer), sorted_weights(theirs)))
    words = batch()
    torch.manual_seed(1)
    states, _ = layer(words.vectors, words.mask[:, None, None])
    torch.manual_seed(1)
    expected = theirs(words.vectors, src_key_padding_mask=~words.mask)
    torch.testing.assert_close(states[words.mask], expected[words.mask])


def sorted_weights(layer: nn.Module) -> list[Tensor]:
    """Parameters by shape and sum, whatever their names."""
    return sorted(layer.parameters(), key=lambda each: (each.shape, each.sum().item()))


def test_training_and_scoring_agree_without_dropout():
    """Fused kernels may take another road in evaluation than in training; both must be the same
    function."""
    tagger, words = model(), batch()
    for module in tagger.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    for layer in tagger.body.layers:
        layer.attention.dropout = 0.0
    with torch.inference_mode():
        scored = tagger.eval()(words)[words.mask]
    torch.testing.assert_close(tagger.train()(words)[words.mask], scored, atol=1e-5, rtol=1e-4)


def test_dropout_acts_on_the_sum_of_words_and_positions():
    """A tenth of the sum, not of either part."""
    tagger = model()
    seen: list[Tensor] = []
    tagger.body.register_forward_pre_hook(lambda body, inputs: seen.append(inputs[0]))
    words = random_texts([10] * 60, 1, SIZE)
    for training in (False, True):
        tagger.train(training)(words)
    whole, dropped = seen
    assert_same(whole, words.vectors + tagger.positions)
    kept = dropped != 0
    assert 0.88 < kept.float().mean() < 0.92
    assert_same(dropped[kept], whole[kept] / 0.9)


def test_dropout_acts_in_every_layer():
    """On attention weights, inner units and what is added, at the rate of the settings."""
    tagger = small(TransformerTagger, SIZE, labels=3, view=Words(), size=SIZE, heads=HEADS, inner=12, dropout=0.3)
    for layer in tagger.body.layers:
        rates = [layer.attention.dropout, *(part.p for part in layer.modules() if isinstance(part, nn.Dropout))]
        assert rates == [0.3] * 3


def test_positions_start_as_large_as_words():
    """Greater ones would hide the words, and none would tell no order."""
    tagger = TransformerTagger(SIZE, labels=3, view=Words(max_length=500))
    assert 0.24 < tagger.positions.abs().max() <= 0.25
    assert abs(tagger.positions.std() * math.sqrt(3) - 0.25) < 0.01


def test_the_view_keeps_capitals():
    """Names and parts of speech show in them."""
    view = TransformerTagger.reads("text", {})
    view.fit([["Anna", "anna"]] * 2)
    assert {"Anna", "anna"} <= set(view.vocabulary.words)


def test_vectors_of_another_width_are_mapped_and_labels_chosen_word_by_word():
    tagger, target = model(width=5), TagTarget()
    target.labels = ["A", "B", "C"]
    words = batch(width=5)
    mapped = words._replace(vectors=words.vectors @ tagger.projection.weight.T + tagger.projection.bias)
    narrow = model()
    narrow.load_state_dict({name: value for name, value in tagger.state_dict().items() if "projection" not in name})
    torch.testing.assert_close(tagger(words)[words.mask], narrow(mapped)[words.mask])
    assert Tag(tagger, target).crf is None


def test_a_size_that_heads_do_not_divide_is_refused():
    with pytest.raises(ValueError, match="size=10 cannot be divided among heads=4"):
        TransformerTagger(10, labels=3, view=Words(), size=10, heads=4)
