"""The mechanism of ABCNN: wide convolution and window pooling, attention on a block's inputs or
outputs, similarities after each block."""

from __future__ import annotations

import math
from functools import partial

import pytest
import torch
from torch import Tensor

from architectures.matching.abcnn import ABCNN, Block, match_matrix, window_average
from harness.views.words import Vocabulary, WordBatch, Words
from tests.support.batches import assert_each_alone, mask_of, random_texts
from tests.support.oracles import convolution, cosine
from tests.support.pairs import shipped
from tests.support.same import assert_same

WIDTH, KERNELS, WINDOW, LONGEST = 3, 4, 3, 9
FIRST, SECOND = (3, 1, 5), (2, 6, 1)
"""Words of each text of three pairs, some of them shorter than a window."""
VARIANTS = {
    "bcnn": (False, False),
    "abcnn_1": (True, False),
    "abcnn_2": (False, True),
    "abcnn_3": (True, True),
}
"""Attention on the inputs and on the outputs of a block, by id."""


def texts(lengths: tuple[int, ...], seed: int) -> WordBatch:
    """Random words out of five, each with an id of its own."""
    batch = random_texts(lengths, seed, WIDTH, words=5)
    return batch._replace(ids=batch.spellings)


def model_of(variant: str) -> ABCNN:
    view = Words(max_length=LONGEST)
    view.vocabulary = Vocabulary(["the", "cat", "sat", "on"], [8, 4, 2, 2])
    return shipped(variant, WIDTH, view, kernels=KERNELS, window=WINDOW, stretch=None)


def match(x: Tensor, y: Tensor) -> Tensor:
    return 1 / (1 + ((x - y) ** 2).sum().sqrt())


def block_written_out(
    block: Block, variant: str, first: list[Tensor], second: list[Tensor]
) -> tuple[list[list[Tensor]], list[list[Tensor]]]:
    """One block on one pair, column by column: section 4 of the paper. The columns of both texts
    after the convolution, and after the pooling of windows."""
    attend_inputs, attend_outputs = VARIANTS[variant]
    if attend_inputs:
        a = [[match(x, y) for y in second] for x in first]
        of_first = [sum(a[i][j] * block.first_map[j] for j in range(len(second))) for i in range(len(first))]
        of_second = [sum(a[i][j] * block.second_map[i] for i in range(len(first))) for j in range(len(second))]
        first = [torch.cat(pair) for pair in zip(first, of_first, strict=True)]
        second = [torch.cat(pair) for pair in zip(second, of_second, strict=True)]
    # with w - 1 zero columns on either side
    first, second = (
        [torch.tanh(column) for column in convolution(block.convolution, columns, WINDOW - 1, WINDOW - 1)]
        for columns in (first, second)
    )
    weights = [[1 / WINDOW] * len(first), [1 / WINDOW] * len(second)]
    if attend_outputs:
        weights = [[sum(match(x, y) for y in second) for x in first], [sum(match(x, y) for x in first) for y in second]]
    weighted = [
        [weight * column for weight, column in zip(*text, strict=True)]
        for text in zip(weights, (first, second), strict=True)
    ]
    pooled = [
        [sum(columns[k] for k in range(j, j + WINDOW)) for j in range(len(columns) - WINDOW + 1)]
        for columns in weighted
    ]
    return [[WINDOW * column for column in columns] for columns in weighted], pooled


def similarities(model: ABCNN, variant: str, first: Tensor, second: Tensor) -> Tensor:
    """Both similarities of one pair's mean columns: of the words, and of each convolution."""
    u, v, found = list(first), list(second), []
    columns = [u, v]
    for level in range(3):
        mean_u, mean_v = (sum(text) / len(text) for text in columns)
        found += [match(mean_u, mean_v), cosine(mean_u, mean_v)]
        if level < 2:
            columns, (u, v) = block_written_out(model.blocks[level], variant, u, v)
            assert len(u) == len(first) and len(v) == len(second)
    return torch.stack(found)


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_similarities_are_those_of_blocks_written_out_column_by_column(variant):
    """Against each pair alone and without padding: narrow convolution, a wrong window, W0 for W1,
    sums over padding would show, and an id that has another's attention."""
    model, first, second = model_of(variant), texts(FIRST, 1), texts(SECOND, 2)
    result = model(first, second)
    assert result.shape == (3, model.size) and model.size == 2 * 3 + 4
    assert_each_alone(result[:, :6], partial(similarities, model, variant), first, second, rtol=1e-4, atol=1e-5)


def test_the_next_block_reads_the_means_of_windows():
    """The features alone would hardly tell a mean from a maximum."""
    columns = torch.tensor([[[1.0], [2.0], [6.0], [-8.0]]])
    assert window_average(columns, 3).flatten().tolist() == [3.0, 0.0]


def test_a_word_meets_itself_with_a_match_of_exactly_one():
    """Also among so many words that a distance by matrix products would be used, whose rounding
    leaves 0.99."""
    torch.manual_seed(0)
    words, mask = 10 * torch.randn(1, 40, 30), mask_of([40])
    matches = match_matrix(words, mask, words, mask)[0]
    assert (matches.diagonal() == 1).all() and (matches - torch.eye(40)).max() < 0.1


@pytest.mark.parametrize("variant", ["abcnn_1", "abcnn_2", "abcnn_3"])
def test_identical_texts_train_without_nan(variant):
    """The euclidean distance has no derivative at zero."""
    model, text = model_of(variant), texts((4, 2), 1)
    model(text, text).sum().backward()
    assert text.vectors.grad.isfinite().all()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())


@pytest.mark.parametrize("variant", ["abcnn_1", "abcnn_2"])
def test_a_text_is_read_in_the_light_of_the_other(variant):
    """Without attention a block gives a text the same map beside every partner."""
    text, mask = texts((4,), 1).vectors, mask_of([4])
    other, another = texts((4,), 2).vectors, texts((4,), 3).vectors
    for name, changes in ((variant, True), ("bcnn", False)):
        block = model_of(name).blocks[0]
        assert (
            torch.allclose(block(text, mask, other, mask)[0], block(text, mask, another, mask)[0], atol=1e-3) != changes
        )


def test_abcnn_2_with_equal_weights_of_one_over_the_window_is_bcnn(monkeypatch):
    """An attention that is normalised, or an average of the weighted columns, would give another
    map."""
    plain, attentive = model_of("bcnn").blocks[0], model_of("abcnn_2").blocks[0]
    attentive.load_state_dict(plain.state_dict())
    first, second = texts((4,), 1), texts((4,), 2)

    def equal(x: Tensor, x_mask: Tensor, y: Tensor, y_mask: Tensor) -> Tensor:
        return torch.full((1, x.shape[1], y.shape[1]), 1 / (WINDOW * x.shape[1]))

    monkeypatch.setattr("architectures.matching.abcnn.match_matrix", equal)
    inputs = first.vectors, first.mask, second.vectors, second.mask
    torch.testing.assert_close(attentive(*inputs), plain(*inputs))


def test_lengths_and_shared_words_are_counted_and_rare_words_count_more():
    """The first text's words are the (8 of 18 in training), cat (4), an unknown word and the; the
    second has the, cat and another one."""
    model = model_of("bcnn")
    first = texts((4,), 1)._replace(ids=torch.tensor([[2, 3, 1, 2]]), spellings=torch.tensor([[20, 30, 77, 20]]))
    second = texts((3,), 2)._replace(ids=torch.tensor([[2, 3, 1]]), spellings=torch.tensor([[20, 30, 78]]))
    rarity = math.log(18 / 8) * 2 + math.log(18 / 4)
    expected = [math.log1p(number) for number in (4, 3, 3, rarity)]
    assert model(first, second)[0, -4:].tolist() == pytest.approx(expected, rel=1e-4)


def test_features_are_standardised_over_the_batch_in_training_and_over_the_past_after_it():
    """Unstandardised, the similarities of all pairs are nearly the same number, and the regression
    learns nothing but its bias."""
    model, first, second = model_of("bcnn").train(), texts((3, 1, 5, 4), 1), texts((2, 6, 1, 3), 2)
    for _ in range(150):
        found = model(first, second)
    torch.testing.assert_close(found.mean(0), torch.zeros(model.size), atol=1e-4, rtol=0)
    assert (found.var(0, unbiased=False) > 0.9)[[0, 1, 2, 4, -4, -3]].all()
    alone = model(*(WordBatch(*(field[1:2] for field in text)) for text in (first, second)))
    model.eval()
    assert_same(alone, model(first, second)[1:2])
    torch.testing.assert_close(model(first, second).mean(0), torch.zeros(model.size), atol=1e-2, rtol=0)
    assert (model(first, second) - found).abs().max() < 0.3  # its variance is the unbiased one


def test_texts_are_cut_where_the_attention_maps_end():
    """A longer text would have words without a row of W0."""
    assert ABCNN.view.max_length == 60
    assert [
        tuple(m.shape) for m in (model_of("abcnn_1").blocks[0].first_map, model_of("abcnn_1").blocks[1].second_map)
    ] == [
        (LONGEST, WIDTH),
        (LONGEST, KERNELS),
    ]


def test_word_vectors_are_fixed_unless_tuning_is_asked_for():
    view = Words(max_length=LONGEST)
    view.vocabulary = Vocabulary([], [])
    assert ABCNN(WIDTH, view).vectors == "fixed" and ABCNN(WIDTH, view, tuned=True).vectors == "tuned"
