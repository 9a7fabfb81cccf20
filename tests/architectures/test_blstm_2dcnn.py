"""The mechanism of BLSTM-2DCNN: added directions as a map, filters and maxima over time and
features together, one flat vector."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import Tensor, nn

from architectures.recurrent.blstm_2dcnn import BLSTM2D
from harness import registry
from tests.support.batches import assert_each_alone, random_texts
from tests.support.models import small
from tests.support.oracles import lstm

WIDTH, HIDDEN, LENGTH = 3, 6, 10

texts = partial(random_texts, seed=1, width=WIDTH)


model_of = partial(small, BLSTM2D, WIDTH, hidden=HIDDEN, maps=2, length=LENGTH)


def convolved(model: BLSTM2D, states: Tensor) -> list[list[list[Tensor]]]:
    """Numbers of each map by row and column: filters over 3 x 3 numbers of the states, ReLU."""
    states = torch.cat([states, torch.zeros(max(0, 3 - len(states)), HIDDEN)])
    return [
        [
            [(weight[0] * states[i : i + 3, j : j + 3]).sum().add(bias).clamp(min=0) for j in range(HIDDEN - 2)]
            for i in range(len(states) - 2)
        ]
        for weight, bias in zip(model.convolution.weight, model.convolution.bias, strict=True)
    ]


def written_out(model: BLSTM2D, vectors: Tensor) -> Tensor:
    """The vector of one text (n, WIDTH), number by number; cells in which the text has nothing are
    zero.

    Numbers are divided by how many maps there are.
    """
    forwards, backwards = model.recurrence.forwards[0], model.recurrence.backwards[0]
    vectors = vectors[:LENGTH]
    states = lstm(forwards, vectors) + lstm(backwards, vectors.flip(0)).flip(0)
    maps, rows = (
        ([[list(row) for row in states]], LENGTH)
        if model.convolution is None
        else (convolved(model, states), LENGTH - 2)
    )
    cells = []
    for numbers in maps:
        for top in range(0, rows, 2):
            for left in range(0, len(numbers[0]), 2):
                cell = [number for row in numbers[top : top + 2] for number in row[left : left + 2]]
                cells.append(torch.stack(cell).max() if cell else torch.zeros(()))
    return torch.stack(cells) / len(maps)


@pytest.mark.parametrize("convolve", [True, False])
def test_a_batch_is_each_text_written_out_number_by_number(convolve):
    """Lengths odd and even, shorter than a filter, and longer than the map: a cell half inside a
    text counts its real half alone."""
    model, batch = model_of(convolve=convolve), texts((7, 4, 1, 2, 10, 13))
    result = model(batch)
    assert result.shape == (6, model.size)
    assert_each_alone(result, partial(written_out, model), batch)


def test_the_directions_are_added_not_concatenated_before_the_filters():
    """The paper's map has h columns, h - 2 behind the filters; concatenated states would give twice
    as many cells."""
    assert model_of().size == 2 * (8 // 2) * (4 // 2)
    assert model_of(convolve=False).size == (10 // 2) * (6 // 2)
    assert BLSTM2D(300).size == 100 * 31 * 149


def test_a_cell_that_is_cut_by_the_edge_of_the_map_counts():
    """Three columns are two cells, of which the second has one column."""
    model = model_of(hidden=5, length=9)
    assert model.size == model(texts((9,))).shape[1] == 2 * 4 * 2


def test_the_filters_read_neighbouring_features_together():
    """One-dimensional filters read whole states, whose features may be renumbered; a map's columns
    have an order."""
    model = model_of()
    seen = []
    model.convolution.register_forward_hook(lambda layer, inputs, output: seen.append((inputs[0], output)))
    model(texts([7]))
    states, maps = seen[0]
    changed = states.clone()
    changed[0, 0, 3, 1] += 1
    moved = (model.convolution(changed) - maps)[0].abs().amax(0) > 1e-6
    assert moved.nonzero().tolist() == [[i, j] for i in (1, 2, 3) for j in (0, 1)]


def test_the_pooling_variant_is_the_one_without_filters():
    entry = registry.entry("architectures", "blstm_2dpooling")
    model = registry.load(entry)(WIDTH, **entry.hyperparameters)
    assert [name for name, _ in model.named_parameters() if "recurrence" not in name] == []
    assert model.size == 32 * 150
    small_one = small(partial(registry.load(entry), WIDTH, **entry.hyperparameters | {"hidden": HIDDEN}), length=LENGTH)
    batch = texts((7, 4, 10))
    assert_each_alone(small_one(batch), partial(written_out, small_one), batch)


def test_blstm_2dcnn_has_filters_and_its_pooling_variant_none():
    """Two ids of one model would be two rows with one mechanism."""
    for id, filters in {"blstm_2dcnn": 1, "blstm_2dpooling": 0}.items():
        entry = registry.entry("architectures", id)
        model = registry.load(entry)(WIDTH, **entry.hyperparameters)
        assert sum(isinstance(module, nn.Conv2d) for module in model.modules()) == filters, id


def test_filters_start_as_he_et_al_say_and_biases_at_zero():
    """Biases of PyTorch's size would drown what young states give."""
    model = BLSTM2D(WIDTH, hidden=HIDDEN, maps=500)
    assert not model.convolution.bias.any()
    assert abs(model.convolution.weight.std() / (2 / 9) ** 0.5 - 1) < 0.05
    assert model.convolution.weight.abs().max() > 3 * (2 / 9) ** 0.5, "a Gaussian has tails"


@pytest.mark.parametrize("convolve", [True, False])
def test_dropout_acts_on_words_and_on_the_sum_of_the_states(convolve):
    """With all words dropped the LSTM reads zeros; with all states dropped the map is zero."""
    model, read = model_of(convolve=convolve, dropouts=(1.0, 0.0, 0.0)).train(), []
    model.recurrence.register_forward_pre_hook(lambda module, inputs: read.append(inputs[0]))
    batch = texts((7, 4))
    model(batch)
    assert not read[0].any()
    whole = model_of(convolve=convolve, dropouts=(0.0, 1.0, 0.0))
    vectors = whole.train()(batch)
    if convolve:  # the biases are left
        bias = whole.convolution.bias.clamp(min=0) / 2
        maps = vectors.view(2, 2, -1)
        assert all(number in (0.0, bias[m].item()) for m in range(2) for number in maps[:, m].flatten().tolist())
    else:
        assert not vectors.any()
    assert whole.eval()(batch).std() > 0.01


def test_twin_texts_are_refused_with_the_reason():
    """The layer that joins two such vectors would have 10 to the 11 weights: the cell is skipped,
    not built."""
    for task in ("snli", "wikiqa"):
        assert "too wide" in BLSTM2D.unfit(registry.entry("tasks", task), {})
    assert BLSTM2D.unfit(registry.entry("tasks", "sst2"), {}) is None


def test_word_vectors_states_and_cells_are_dropped_at_rates_of_their_own():
    model = BLSTM2D(WIDTH, hidden=40, maps=20, length=LENGTH).train()
    rates = model.word_dropout.p, model.state_dropout.p, model.dropout.p
    assert rates == (0.5, 0.2, 0.4)
    with torch.no_grad():
        model.convolution.bias.fill_(5.0)
    torch.manual_seed(0)
    assert 0.35 < (model(texts([LENGTH])) == 0).float().mean() < 0.45
