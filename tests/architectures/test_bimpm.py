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
from tests.support.oracles import cosine, recurrent

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
                torch.testing.assert_close(found[row, t, place : place + PERSPECTIVES], expected, rtol=1e-4, atol=1e-5)


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


def model_and_view() -> tuple[BiMPM, WordsAndCharacters]:
    view = WordsAndCharacters(min_count=1)
    view.fit(TEXTS)
    sizes = {"hidden": SIZE, "perspectives": PERSPECTIVES, "character_size": 3, "character_hidden": 4}
    return small(BiMPM, 5, view, **sizes), view


def read(view: WordsAndCharacters, *lines: str) -> WordCharacterBatch:
    batch = view.collate(view.encode(lines), np.arange(len(lines)))
    table = torch.randn(view.width, 5, generator=torch.Generator().manual_seed(1))
    return batch._replace(vectors=table[batch.ids])


def test_full_matching_meets_the_end_states_of_both_directions():
    """The forward state of the last word and the backward state of the first. The true last word,
    where the text is shorter than its batch."""
    model, view = model_and_view()
    text = read(view, "the cat sat on the mat", "a dog")
    (forwards, last), (backwards, first) = model.encoded(text)
    for row, length in enumerate((6, 2)):
        both = recurrent(model.context, model.words(text)[row, :length])
        torch.testing.assert_close(torch.cat([forwards, backwards], dim=-1)[row, :length], both)
        torch.testing.assert_close(last[row], both[-1, :SIZE])
        torch.testing.assert_close(first[row], both[0, SIZE:])


def test_the_vector_is_made_from_the_four_end_states_of_the_aggregation():
    model, view = model_and_view()
    p, q = read(view, "the cat sat on the mat", "a dog"), read(view, "cat", "the dog sat on a cat")
    found = model(p, q)
    for row, (n, m) in enumerate(((6, 1), (2, 6))):
        seen, one, other = [], read(view, [TEXTS[0], TEXTS[1]][row]), read(view, ["cat", "the dog sat on a cat"][row])
        (p_f, p_b), (q_f, q_b) = model.encoded(one), model.encoded(other)
        of_f = model.forwards(p_f[0], one.mask, p_f[1], q_f[0], other.mask, q_f[1])
        of_b = model.backwards(p_b[0], one.mask, p_b[1], q_b[0], other.mask, q_b[1])
        for length, vectors, mask in ((n, (of_f[0], of_b[0]), one.mask), (m, (of_f[1], of_b[1]), other.mask)):
            aggregated = recurrent(model.aggregation, torch.cat(vectors, dim=-1)[0])
            assert len(aggregated) == length and mask.all()
            seen += [aggregated[-1, :SIZE], aggregated[0, SIZE:]]
        torch.testing.assert_close(found[row], model.output(torch.cat(seen)).tanh(), rtol=1e-4, atol=1e-5)


def test_a_word_is_known_by_its_characters_in_order_and_its_vector_is_fixed():
    """Two unknown words share a vector; only their spelling tells them apart."""
    model, view = model_and_view()
    one, other = model.words(read(view, "tac"))[0, 0], model.words(read(view, "tca"))[0, 0]
    torch.testing.assert_close(one[:5], other[:5])
    assert not torch.allclose(one[5:], other[5:], atol=1e-4)
    assert model.vectors == "static"
    beside_longer = model.words(read(view, "tac matsonthe"))[0, 0]
    torch.testing.assert_close(beside_longer, one)
