"""The mechanism of the dynamic CNN: filters that stay in their row, folding, and order-keeping
k-max with k from the text's own length."""

from __future__ import annotations

import math
from functools import partial

import pytest
import torch
from torch import nn

from architectures.convolutional.dcnn import DynamicCNN
from tests.support.batches import assert_each_alone, random_texts
from tests.support.models import small
from tests.support.oracles import largest_in_order
from tests.support.same import assert_same

WIDTH = 6

batch = partial(random_texts, seed=3, width=WIDTH)


def model_of(**settings) -> DynamicCNN:
    """A model whose biases, which start at zero, show in the result."""
    model = small(DynamicCNN, WIDTH, **{"windows": (4, 3), "maps": (2, 3), "top": 3} | settings)
    for bias in model.biases:
        nn.init.normal_(bias)
    return model


def written_out(model: DynamicCNN, vectors: torch.Tensor) -> torch.Tensor:
    """The features of one text (n, width), layer by layer, row by row, map by map, column by column
    (sections 3.1 to 3.5)."""
    n, layers = len(vectors), len(model.convolutions)
    maps = [list(vectors.T)]  # maps[j][i] is row i of map j
    for number, (convolution, bias) in enumerate(zip(model.convolutions, model.biases, strict=True), start=1):
        rows = len(maps[0])
        window = convolution.kernel_size[0]
        filters = convolution.weight.unflatten(0, (rows, -1))  # row, map above, map below, place
        above = []
        for j in range(len(filters[0])):
            convolved = []
            for i in range(rows):
                columns = []
                for end in range(len(maps[0][0]) + window - 1):
                    value = torch.zeros(())
                    for k, below in enumerate(maps):
                        for place in range(window):
                            column = end - window + 1 + place
                            if 0 <= column < len(below[i]):
                                value = value + filters[i, j, k, place] * below[i][column]
                    columns.append(value)
                convolved.append(columns)
            if rows % 2:
                convolved.append([torch.zeros(())] * len(convolved[0]))
            folded = [
                [a + b for a, b in zip(convolved[i], convolved[i + 1], strict=True)]
                for i in range(0, len(convolved), 2)
            ]
            k_l = max(model.top, math.ceil((layers - number) / layers * n))
            biases = bias.unflatten(0, (len(folded), -1)).squeeze(-1)
            pooled = []
            for i, row in enumerate(folded):
                pooled.append([torch.tanh(row[place] + biases[i, j]) for place in largest_in_order(row, k_l)])
            above.append(pooled)
        maps = above
    features = [row + [torch.zeros(())] * (model.top - len(row)) for rows in zip(*maps, strict=True) for row in rows]
    return torch.stack([feature for row in features for feature in row])


@pytest.mark.parametrize("settings", [{}, {"windows": (2, 4, 2), "maps": (2, 1, 2)}, {"windows": (1, 2), "top": 5}])
def test_each_text_of_a_batch_is_the_text_written_out_value_by_value(settings):
    """Narrow convolutions, filters across rows, a missing fold, values sorted by size, k from the
    batch or tanh before pooling show here.

    The last setting leaves short texts with fewer values than k_top: zeros stand behind them.
    """
    model = model_of(**settings)
    texts = batch((11, 8, 1, 2))
    result = model(texts)
    assert result.shape == (4, model.size)
    assert_each_alone(result, partial(written_out, model), texts, rtol=1e-4, atol=1e-5)


def test_the_number_of_values_kept_is_the_papers_example():
    """Section 3.4: 18 words and three layers with k_top of 3 keep 12, then 6, then 3."""
    model = model_of(windows=(2, 2, 2), maps=(1, 1, 1))
    assert [max(model.top, model.kept(layer, 18)) for layer in (1, 2, 3)] == [12, 6, 3]
    assert model.kept(1, torch.tensor([18, 7, 1])).tolist() == [12, 5, 1]


def test_rows_meet_in_the_folding_only():
    """With two layers a value of the top depends on four neighbouring rows; were filters to mix
    rows, it would depend on all."""
    model = DynamicCNN(8, windows=(3, 2), maps=(2, 2), top=2).eval()
    texts = batch([6])._replace(vectors=torch.randn(1, 6, 8))
    top = model(texts).view(2, -1)
    texts.vectors[..., 4:] = torch.randn(1, 6, 4)
    changed = model(texts).view(2, -1)
    assert torch.equal(changed[0], top[0]) and not torch.allclose(changed[1], top[1])


def test_half_of_the_features_are_dropped_in_training():
    """Those that are kept are doubled; a feature dropped before k-max would let a smaller one
    in."""
    model = model_of(maps=(6, 40))
    texts = batch((12, 9))
    kept, trained = model(texts), model.train()(texts)
    assert kept.all() and 0.4 < (trained == 0).float().mean() < 0.6
    assert_same(trained[trained != 0], 2 * kept[trained != 0])


def test_the_papers_settings():
    """48 rows fold to 24 and 12; each row of each map has a bias of its own, each pair of maps a
    filter per row."""
    model = DynamicCNN(48)
    assert [tuple(c.weight.shape) for c in model.convolutions] == [(48 * 6, 1, 7), (24 * 14, 6, 5)]
    assert [len(bias) for bias in model.biases] == [24 * 6, 12 * 14]
    assert model.size == 12 * 14 * 4 and model.dropout.p == 0.5
    assert not any(bias.any() for bias in model.biases)
    with pytest.raises(ValueError, match="must name equally many layers"):
        DynamicCNN(48, windows=(7,))
