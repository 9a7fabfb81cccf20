"""The mechanism of the multi-perspective network: filters of several widths with poolings of their
own, compared horizontally and vertically."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import Tensor

from architectures.siamese.mpcnn import MPCNN
from tests.support.batches import assert_each_alone, random_texts
from tests.support.oracles import cosine
from tests.support.pairs import dense, shipped
from tests.support.same import assert_same

WIDTH, WIDTHS, SINGLE = 4, 3, 2
FIRST, SECOND = (4, 1, 6), (2, 5, 3)
"""Words of each text of three pairs; some are shorter than the widest window."""

texts = partial(random_texts, width=WIDTH)
model_of = partial(shipped, "mpcnn", WIDTH, widths=WIDTHS, single=SINGLE, hidden=5)

POOL = {
    "max": lambda values: values.max(0).values,
    "min": lambda values: values.min(0).values,
    "mean": lambda values: values.sum(0) / len(values),
}


def windows(text: Tensor, width: int) -> list[Tensor]:
    """All windows of a text (width, D); a shorter text is followed by zeros."""
    text = torch.cat([text, torch.zeros(max(0, width - len(text)), WIDTH)])
    return [text[start : start + width] for start in range(len(text) - width + 1)]


def block_a(model: MPCNN, text: Tensor, how: str) -> list[Tensor]:
    """One vector over the filters for each width, and the pooled words for the whole sentence."""
    groups = []
    for width, layer in enumerate(model.block_a[how].convolutions, start=1):
        values = [torch.einsum("fdw,wd->f", layer.weight, window) + layer.bias for window in windows(text, width)]
        groups.append(POOL[how](torch.stack(values).tanh()))
    return [*groups, POOL[how](text)]


def block_b(model: MPCNN, text: Tensor, how: str) -> list[list[Tensor]]:
    """For each width and filter one vector over the dimensions; filter f of dimension d is number
    d * SINGLE + f."""
    groups = []
    for width, layer in enumerate(model.block_b[how].convolutions, start=1):
        by_filter = []
        for number in range(SINGLE):
            values = []
            for window in windows(text, width):
                rows = [d * SINGLE + number for d in range(WIDTH)]
                values.append(torch.stack([layer.weight[r, 0] @ window[:, d] for d, r in enumerate(rows)]))
                values[-1] = (values[-1] + layer.bias[rows]).tanh()
            by_filter.append(POOL[how](torch.stack(values)))
        groups.append(by_filter)
    return groups


def unit(first: Tensor, second: Tensor, differences: bool = True) -> list[Tensor]:
    """A comparison unit: cosine, euclidean distance, and the absolute differences one by one."""
    numbers = [cosine(first, second), (first - second).square().sum().sqrt()]
    return numbers + ([*(first - second).abs()] if differences else [])


def features(model: MPCNN, first: Tensor, second: Tensor) -> list[Tensor]:
    """Algorithms 1 and 2 of the paper, the whole sentence being one of the widths of both texts,
    with the order in which the layer above reads the features left open."""
    found = []
    for how in ("max", "min", "mean"):
        a, b = block_a(model, first, how), block_a(model, second, how)
        for of_filter_a, of_filter_b in zip(torch.stack(a).T, torch.stack(b).T, strict=True):
            found += unit(of_filter_a, of_filter_b, differences=False)
        for one in a:
            for other in b:
                found += unit(one, other)
    for how in ("max", "min"):
        for one, other in zip(block_b(model, first, how), block_b(model, second, how), strict=True):
            for x, y in zip(one, other, strict=True):
                found += unit(x, y)
    return found


def read_by_the_layer(model: MPCNN, first, second) -> Tensor:
    """All features of a batch, as the hidden layer reads them."""
    seen = []
    handle = model.hidden.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    model(first, second)
    handle.remove()
    return seen[0]


def test_the_features_of_a_pair_are_those_of_both_algorithms():
    """A shared filter, another pooling, padding, a width that meets too few others, or a comparison
    that lacks: the sorted numbers of each pair would differ."""
    model, first, second = model_of(), texts(FIRST, 1), texts(SECOND, 2)
    found = read_by_the_layer(model, first, second).sort(dim=1).values
    assert_each_alone(
        found,
        lambda one, other: torch.stack(sorted(features(model, one, other))),
        first,
        second,
        rtol=1e-4,
        atol=1e-4,
    )


def test_the_vector_is_a_tanh_layer_of_the_features():
    model, first, second = model_of(), texts(FIRST, 1), texts(SECOND, 2)
    with torch.no_grad():
        model.hidden.weight.mul_(0.02)  # tanh would hide large sums
    seen = read_by_the_layer(model, first, second)
    expected = torch.stack([dense(model.hidden, row).tanh() for row in seen])
    assert_same(model(first, second), expected, rtol=1e-4, atol=1e-5)
    assert model.size == 5 and expected.std() > 0.1


@pytest.mark.parametrize(("width", "widths", "single"), [(4, 3, 2), (6, 2, 3), (3, 1, 1)])
def test_the_number_of_features(width, widths, single):
    """3 poolings * D filters * 2 across the widths; 3 * (widths + 1)^2 units of 2 + D of block A,
    the whole sentence being a width; 2 * widths * filters units of 2 + D of block B. At the paper's
    three widths the first are 48, as in the authors' Conv.lua."""
    model = shipped("mpcnn", width, widths=widths, single=single, hidden=2)
    expected = 3 * width * 2 + 3 * (widths + 1) ** 2 * (2 + width) + 2 * widths * single * (2 + width)
    text = random_texts((4,), 1, width)
    assert read_by_the_layer(model, text, text).shape == (1, expected)


def test_each_pooling_has_filters_of_its_own():
    """Those who rebuilt the network often pool one set of maps three times."""
    model = model_of()
    every = [f.weight for block in (model.block_a, model.block_b) for how in block for f in block[how].convolutions]
    assert len({id(weight) for weight in every}) == len(every) == 3 * WIDTHS + 2 * WIDTHS
    assert list(model.block_a) == ["max", "min", "mean"] and list(model.block_b) == ["max", "min"]


def test_block_a_has_as_many_filters_as_a_word_vector_has_numbers():
    """Only so can the whole sentence stand beside the widths in the horizontal comparison."""
    assert {f.out_channels for f in shipped("mpcnn", 7).block_a["max"].convolutions} == {7}


def test_both_texts_are_read_by_the_same_filters():
    """Of a text and itself all distances are zero and the cosines of equal groups one."""
    model, text = model_of(), texts((4,), 1)
    seen = read_by_the_layer(model, text, text)[0]
    horizontal = seen[: 2 * WIDTH]
    torch.testing.assert_close(horizontal, torch.cat([torch.ones(WIDTH), torch.zeros(WIDTH)]))


def test_a_text_against_itself_has_finite_gradients():
    """The root in a distance has none at zero."""
    model, text = model_of(), texts((4, 2), 1)
    model(text, text).sum().backward()
    assert all(p.grad.isfinite().all() for p in model.parameters())


def test_word_vectors_are_not_tuned():
    assert model_of().vectors == "fixed"
