"""The mechanism of the multi-timescale LSTM: groups of units that are updated at every first,
second, fourth ... word."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import Tensor, nn

from architectures.recurrent.mt_lstm import MultiTimescaleLSTM
from harness import registry
from tests.support.batches import assert_each_alone, mask_of, random_texts
from tests.support.models import small
from tests.support.oracles import lstm
from tests.support.recurrent import assert_vector_comes_from_real_states

WIDTH, SIZE = 3, 2
FEEDBACKS = ("fast to slow", "slow to fast")

texts = partial(random_texts, (9, 4, 1), 1, WIDTH)
model_of = partial(small, MultiTimescaleLSTM, WIDTH, size=SIZE, stretch=1.5)


def written_out(model: MultiTimescaleLSTM, vectors: Tensor) -> Tensor:
    """States (n, groups * SIZE) of one text, group by group and gate by gate."""
    number = len(model.groups)
    h = [torch.zeros(SIZE) for _ in range(number)]
    c = [torch.zeros(SIZE) for _ in range(number)]
    states = []
    for t, x in enumerate(vectors, start=1):
        fast_first = model.groups[0].recurrence.in_features == SIZE
        heard = {k: range(k + 1) if fast_first else range(k, number) for k in range(number)}
        new_h, new_c, outs = list(h), list(c), {}
        for k, group in enumerate(model.groups):
            if t % 2**k:
                continue
            w, b, u, v = group.word.weight, group.word.bias, group.recurrence.weight, group.cells_before.weight
            gate = (w @ x + b).split(SIZE)
            read = [
                sum(u[n * SIZE : (n + 1) * SIZE, p * SIZE : (p + 1) * SIZE] @ h[j] for p, j in enumerate(heard[k]))
                for n in range(4)
            ]
            peep = [
                sum(v[n * SIZE : (n + 1) * SIZE, p * SIZE : (p + 1) * SIZE] @ c[j] for p, j in enumerate(heard[k]))
                for n in range(2)
            ]
            i, f = torch.sigmoid(gate[0] + read[0] + peep[0]), torch.sigmoid(gate[1] + read[1] + peep[1])
            new_c[k] = f * c[k] + i * torch.tanh(gate[3] + read[3])
            outs[k] = gate[2] + read[2]
        for k, out in outs.items():
            v = model.groups[k].cells_behind.weight
            peep = sum(v[:, p * SIZE : (p + 1) * SIZE] @ new_c[j] for p, j in enumerate(heard[k]))
            new_h[k] = torch.sigmoid(out + peep) * torch.tanh(new_c[k])
        h, c = new_h, new_c
        states.append(torch.cat(h))
    return torch.stack(states)


@pytest.mark.parametrize("feedback", FEEDBACKS)
def test_a_batch_is_each_text_written_out_group_by_group(feedback):
    """Other periods, other groups that are listened to, gates in each other's place or cells of
    another step would each give other states."""
    model, batch = model_of(feedback=feedback), texts()
    assert_each_alone(model(batch.vectors, batch.mask), partial(written_out, model), batch, states=True)


def test_at_the_third_word_the_first_group_fires_alone_and_at_the_fourth_all_three():
    states = model_of()(torch.randn(1, 9, WIDTH), mask_of([9]))[0].unflatten(1, (3, SIZE))
    fired = (states[1:] != states[:-1]).any(-1)
    expected = [[True, t % 2 == 0, t % 4 == 0] for t in range(2, 10)]
    assert fired.tolist() == expected
    assert states[0, 0].all() and not states[0, 1:].any(), "the second group starts with the second word"


@pytest.mark.parametrize("feedback", FEEDBACKS)
def test_who_listens_to_whom(feedback):
    """Fast to slow: the first group knows nothing of the others. Slow to fast: the last one."""
    model, vectors = model_of(feedback=feedback), torch.randn(1, 9, WIDTH)
    before = model(vectors, mask_of([9]))[0].unflatten(1, (3, SIZE))
    with torch.no_grad():
        model.groups[1].word.bias.add_(1.0)
    changed = (model(vectors, mask_of([9]))[0].unflatten(1, (3, SIZE)) != before).any(-1).any(0)
    assert changed.tolist() == ([False, True, True] if feedback == "fast to slow" else [True, True, False])


def test_one_group_without_the_cells_in_its_gates_is_an_lstm():
    model = model_of(groups=1)
    group, layer = model.groups[0], nn.LSTM(WIDTH, SIZE, batch_first=True)
    with torch.no_grad():
        group.cells_before.weight.zero_()
        group.cells_behind.weight.zero_()
        for ours, name in ((group.word.weight, "weight_ih_l0"), (group.recurrence.weight, "weight_hh_l0")):
            i, f, o, g = ours.chunk(4)
            getattr(layer, name).copy_(torch.cat([i, f, g, o]))
        i, f, o, g = group.word.bias.chunk(4)
        layer.bias_ih_l0.copy_(torch.cat([i, f, g, o]))
        layer.bias_hh_l0.zero_()
    batch = random_texts([5], 1, WIDTH)
    torch.testing.assert_close(model(batch.vectors, batch.mask)[0], lstm(layer, batch.vectors[0]))


def test_a_texts_vector_is_the_last_state_of_all_groups():
    assert MultiTimescaleLSTM.pooling == "last"
    assert_vector_comes_from_real_states(model_of(), written_out, "last", texts())


def test_each_id_has_its_feedback_and_another_one_is_refused():
    fast, slow = (registry.entry("architectures", id).hyperparameters for id in ("mt_lstm", "mt_lstm_slow_to_fast"))
    assert MultiTimescaleLSTM(WIDTH, **fast).groups[0].recurrence.in_features == 50
    assert MultiTimescaleLSTM(WIDTH, **slow).groups[0].recurrence.in_features == 150
    with pytest.raises(ValueError, match="feedback='both' is neither"):
        MultiTimescaleLSTM(WIDTH, feedback="both")


def test_a_state_without_groups_is_refused_by_name():
    with pytest.raises(ValueError, match="groups=0: one group of units at least"):
        MultiTimescaleLSTM(WIDTH, groups=0)
