"""The mechanism of BiMPM: four multi-perspective matchings in both directions, each written out in
loops."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from architectures.matching.bimpm import BiMPM, Matching, Perspectives
from harness.views.words_and_characters import WordCharacterBatch, WordsAndCharacters
from tests.support.batches import random_vectors
from tests.support.models import small
from tests.support.oracles import cosine
from tests.support.pairs import bilstm, dense, dropped, inputs_of, lstm, share_of_zeros
from tests.support.same import assert_same

SIZE, PERSPECTIVES = 6, 3
P, Q = (4, 1, 3), (2, 5, 3)
"""Words of each text of three pairs."""
TEXTS = ["the cat sat on the mat", "a dog", "the dog sat on a cat", "cat"]


def perspectives(layer: Perspectives, u: Tensor, v: Tensor) -> Tensor:
    """Equation 4, one weighting after the other."""
    return torch.stack([cosine(w * u, w * v) for w in layer.weight])


def full(layer: Perspectives, state: Tensor, other: Tensor, end: Tensor) -> Tensor:
    return perspectives(layer, state, end)


def maximum(layer: Perspectives, state: Tensor, other: Tensor, end: Tensor) -> Tensor:
    return torch.stack([perspectives(layer, state, candidate) for candidate in other]).max(0).values


def attentive(layer: Perspectives, state: Tensor, other: Tensor, end: Tensor) -> Tensor:
    weights = [cosine(state, candidate) for candidate in other]
    return perspectives(
        layer, state, sum(w * candidate for w, candidate in zip(weights, other, strict=True)) / sum(weights)
    )


def nearest(layer: Perspectives, state: Tensor, other: Tensor, end: Tensor) -> Tensor:
    return perspectives(layer, state, max(other, key=lambda candidate: cosine(state, candidate).item()))


STRATEGIES = {"full": full, "maximum": maximum, "attentive": attentive, "nearest": nearest}
"""In the order of the matching vector."""


def states(lengths: tuple[int, ...], seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Random states with large numbers at padding, their mask, and an end state of each text."""
    ends = torch.randn(len(lengths), SIZE, generator=torch.Generator().manual_seed(10 + seed))
    return *random_vectors(lengths, seed, SIZE), ends


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_each_strategy_in_both_directions_is_its_loop_over_the_other_texts_states(strategy):
    """Random states give negative cosines too, and sums of them on both sides of zero."""
    torch.manual_seed(0)
    matching, p, q = Matching(SIZE, PERSPECTIVES), states(P, 1), states(Q, 2)
    of_p, of_q = matching(*p, *q)
    place = list(STRATEGIES).index(strategy) * PERSPECTIVES
    for found, (own, _, _), (other, _, end), lengths, others in ((of_p, p, q, P, Q), (of_q, q, p, Q, P)):
        assert found.shape == (3, max(lengths), 4 * PERSPECTIVES)
        for row, (n, m) in enumerate(zip(lengths, others, strict=True)):
            for t in range(n):
                expected = STRATEGIES[strategy](getattr(matching, strategy), own[row, t], other[row, :m], end[row])
                assert_same(found[row, t, place : place + PERSPECTIVES], expected, rtol=1e-4, atol=1e-5)


def test_no_strategy_and_no_direction_shares_its_perspectives():
    model, _ = model_and_view()
    layers = [module for module in model.modules() if isinstance(module, Perspectives)]
    assert len({id(layer.weight) for layer in layers}) == 8


def test_a_text_matched_with_itself_reaches_a_cosine_of_one_where_it_meets_itself():
    matching, (p, mask, end) = Matching(SIZE, PERSPECTIVES), states((4,), 1)
    found, _ = matching(p, mask, end, p, mask, end)
    _, largest, _, best = found.chunk(4, dim=-1)
    torch.testing.assert_close(largest, torch.ones_like(largest))
    torch.testing.assert_close(best, torch.ones_like(best))
    assert found.abs().max() <= 1 + 1e-5


def test_states_of_zero_have_a_cosine_of_zero_and_a_finite_gradient():
    layer, zeros = Perspectives(SIZE, PERSPECTIVES), torch.zeros(1, 2, SIZE, requires_grad=True)
    found = layer(zeros, torch.ones(1, 2, SIZE))
    found.sum().backward()
    assert not found.any() and zeros.grad.isfinite().all()


# --- the whole model ---


def model_and_view(**options: float) -> tuple[BiMPM, WordsAndCharacters]:
    view = WordsAndCharacters(min_count=1)
    view.fit(TEXTS)
    sizes = {"hidden": SIZE, "perspectives": PERSPECTIVES, "character_size": 3, "character_hidden": 4}
    return small(BiMPM, 5, view, **(sizes | options)), view


def read(view: WordsAndCharacters, *lines: str) -> WordCharacterBatch:
    batch = view.collate(view.encode(lines), np.arange(len(lines)))
    table = torch.randn(view.width, 5, generator=torch.Generator().manual_seed(1))
    return batch._replace(vectors=table[batch.ids])


def words_of(model: BiMPM, view: WordsAndCharacters, line: str) -> list[Tensor]:
    """Each word's vector beside the last state of the LSTM over its characters."""
    text = read(view, line)
    words = []
    for vector, letters, mask in zip(text.vectors[0], text.characters[0], text.character_mask[0], strict=True):
        spelt = lstm(model.spelling, model.characters.weight[letters[mask]])
        words.append(torch.cat([vector, spelt[-1]]))
    return words


def written_out(model: BiMPM, view: WordsAndCharacters, p: str, q: str) -> Tensor:
    """The vector of one pair, state by state: section 3 of the paper."""
    contexts = [bilstm(model.context, words_of(model, view, line)).split(SIZE, dim=1) for line in (p, q)]
    ends = []
    for own, other in (contexts, contexts[::-1]):
        matched = []
        for t in range(len(own[0])):
            numbers = []
            # The forward states meet the last one, the backward states the first.
            for direction, place, layers in ((0, -1, model.forwards), (1, 0, model.backwards)):
                for name, strategy in STRATEGIES.items():
                    layer, end = getattr(layers, name), other[direction][place]
                    numbers.append(strategy(layer, own[direction][t], other[direction], end))
            matched.append(torch.cat(numbers))
        aggregated = bilstm(model.aggregation, matched)
        ends += [aggregated[-1, :SIZE], aggregated[0, SIZE:]]
    return dense(model.output, torch.cat(ends)).tanh()


def test_a_batch_of_pairs_is_each_pair_written_out_state_by_state():
    """Another cell, one direction, a mean for an end state, the end states of the wrong direction
    or behind the padding would show here."""
    model, view = model_and_view()
    pairs = [("the cat sat on the mat", "cat"), ("a dog", "the dog sat on a cat")]
    found = model(*(read(view, *lines) for lines in zip(*pairs, strict=True)))
    assert found.shape == (2, model.size)
    for row, pair in zip(found, pairs, strict=True):
        assert_same(row, written_out(model, view, *pair), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("layer", ["context", "forwards", "backwards", "aggregation", "output"])
def test_dropout_stands_before_each_layer(layer):
    """Half of what a layer reads is zero in training; without it the model over-fits small
    tasks."""
    model, view = model_and_view(dropout=0.5)
    read_by, text = inputs_of(model.get_submodule(layer))[0], read(view, *TEXTS)
    model.eval()(text, text)
    given = [tensor[text.mask] if tensor.dim() == 3 else tensor for tensor in read_by]
    read_by.clear()
    model.train()(text, text)
    read_in_training = [tensor[text.mask] if tensor.dim() == 3 else tensor for tensor in read_by]
    assert dropped(given, given) == 0 and 0.3 < dropped(given, read_in_training) < 0.7


def test_the_layer_above_reads_half_of_the_vector():
    """It is the softmax, which belongs to the head."""
    model, view = model_and_view(dropout=0.5)
    text = read(view, *TEXTS)
    assert 0.3 < share_of_zeros([model.train()(text, text)]) < 0.7


def test_biases_start_at_zero_and_states_apart():
    """With torch's own biases all cosines begin close to 1, and there is little to learn from."""
    _, view = model_and_view()
    model = BiMPM(5, view)
    assert not any(parameter.any() for name, parameter in model.named_parameters() if "bias" in name)


def test_a_character_that_training_never_showed_is_learnt_as_one():
    """The row of padding stays zero; that of strange characters is not the same."""
    model, view = model_and_view()
    text = read(view, "\u00e9t\u00e9")
    model.words(text).sum().backward()
    moved = model.characters.weight.grad.any(1)
    assert moved[text.characters.unique()].all() and not moved[0] and text.characters.min() > 0


def test_a_word_is_known_by_its_characters_in_order_and_its_vector_is_fixed():
    """Two unknown words share a vector; only their spelling tells them apart."""
    model, view = model_and_view()
    one, other = model.words(read(view, "tac"))[0, 0], model.words(read(view, "tca"))[0, 0]
    torch.testing.assert_close(one[:5], other[:5])
    assert not torch.allclose(one[5:], other[5:], atol=1e-4)
    assert model.vectors == "fixed"
    beside_longer = model.words(read(view, "tac matsonthe"))[0, 0]
    assert_same(beside_longer, one)
