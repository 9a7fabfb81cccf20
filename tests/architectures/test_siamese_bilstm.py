"""The mechanism of the siamese matching network: one BiLSTM for both texts, end states joined, and
no feature that compares them."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from tests.support.batches import assert_each_alone, random_texts, texts_of
from tests.support.pairs import bilstm, dense, shipped
from tests.support.same import assert_same

WIDTH, HIDDEN = 5, 4
FIRST, SECOND = (4, 1, 6), (2, 5, 3)
"""Words of each text of three pairs."""

texts = partial(random_texts, width=WIDTH)
model_of = partial(shipped, "siamese_bilstm", WIDTH, hidden=HIDDEN)


def ends(model: torch.nn.Module, text: Tensor) -> Tensor:
    """The last state of the forward direction and the first one of the backward direction."""
    states = bilstm(model.encoding, text)
    return torch.cat([states[-1, :HIDDEN], states[0, HIDDEN:]])


def written_out(model: torch.nn.Module, first: Tensor, second: Tensor) -> Tensor:
    """The vector of one pair."""
    return dense(model.hidden, torch.cat([ends(model, first), ends(model, second)])).clamp(min=0)


def test_a_batch_of_pairs_is_each_pair_written_out():
    """The state behind the padding, one direction, another cell or pooling, the texts in the other
    order, or a layer without its ReLU would each show."""
    model, first, second = model_of(), texts(FIRST, 1), texts(SECOND, 2)
    result = model(first, second)
    assert result.shape == (3, HIDDEN) and model.size == HIDDEN
    assert_each_alone(result, partial(written_out, model), first, second)


def test_one_encoder_reads_both_texts_and_the_join_keeps_their_order():
    """Two encoders, or a symmetric join, would be another system: swapping the texts does to the
    vector what swapping the halves of the weights does."""
    model, first, second = model_of(), texts(FIRST, 1), texts(SECOND, 2)
    before = model(first, second)
    assert not torch.allclose(before, model(second, first), atol=1e-3)
    with torch.no_grad():
        model.hidden.weight.copy_(model.hidden.weight.roll(2 * HIDDEN, dims=1))
    torch.testing.assert_close(model(second, first), before)


def test_no_feature_compares_the_texts_before_the_hidden_layer():
    """Before its ReLU the vector is a sum of what each text gives alone. A difference |u - v| or a
    product u * v would make of this row the head of infersent."""
    model = model_of()
    seen = []
    model.hidden.register_forward_hook(lambda module, inputs, output: seen.append(output))
    a, b = texts((4,), 1), texts((4,), 2)
    for pair in ((a, a), (a, b), (b, a), (b, b)):
        model(*pair)
    assert_same(seen[0] + seen[3], seen[1] + seen[2])


def test_the_order_of_the_words_counts():
    model, text = model_of(), texts((4,), 1)
    turned = texts_of(text.vectors.flip(1))
    assert not torch.allclose(model(text, text), model(turned, text), atol=1e-3)
