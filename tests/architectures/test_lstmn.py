"""The mechanism of the long short-term memory-network: each step attends over the states and cells
of all steps before it."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor, nn

from architectures.recurrent.lstmn import LongShortTermMemoryNetwork
from harness.problems.classify import text_vector
from tests.support.batches import assert_each_alone, mask_of, random_texts
from tests.support.models import small
from tests.support.oracles import lstm, softmax_mean
from tests.support.recurrent import assert_vector_comes_from_real_states
from tests.support.same import assert_same

WIDTH, HIDDEN = 3, 4

texts = partial(random_texts, (7, 3, 1), 1, WIDTH)
model_of = partial(small, LongShortTermMemoryNetwork, WIDTH, hidden=HIDDEN)


def written_out(model: LongShortTermMemoryNetwork, vectors: Tensor) -> Tensor:
    """States (n, HIDDEN) of one text, by equations 5 to 10 of the paper."""
    w_h, w_x, w_s, v = model.state.weight, model.word.weight, model.attended.weight, model.score.weight[0]
    s = r = torch.zeros(HIDDEN)
    hs, cs = [], []
    for x in vectors:
        if hs:
            scores = [v @ torch.tanh(w_h @ h + w_x @ x + model.word.bias + w_s @ s) for h in hs]
            s, r = softmax_mean(scores, hs), softmax_mean(scores, cs)
        i, f, o, g = (model.input.weight @ x + model.input.bias + model.recurrence.weight @ s).chunk(4)
        cs.append(torch.sigmoid(f) * r + torch.sigmoid(i) * torch.tanh(g))
        hs.append(torch.sigmoid(o) * torch.tanh(cs[-1]))
    return torch.stack(hs)


def test_a_batch_is_each_text_written_out_step_by_step():
    """Attention that forgets what it attended to, the last cell in place of the attended one, or
    gates in each other's place would each give other states."""
    model, batch = model_of(), texts()
    assert_each_alone(model(batch.vectors, batch.mask), partial(written_out, model), batch, states=True)


def test_with_one_item_on_the_tapes_it_is_an_lstm():
    """Two words: the second has the first alone to look at."""
    model, batch = model_of(), random_texts([2], 1, WIDTH)
    layer = nn.LSTM(WIDTH, HIDDEN, batch_first=True)
    with torch.no_grad():
        for source, name in ((model.input.weight, "weight_ih_l0"), (model.recurrence.weight, "weight_hh_l0")):
            i, f, o, g = source.split(HIDDEN)
            getattr(layer, name).copy_(torch.cat([i, f, g, o]))
        i, f, o, g = model.input.bias.split(HIDDEN)
        layer.bias_ih_l0.copy_(torch.cat([i, f, g, o]))
        layer.bias_hh_l0.zero_()
    torch.testing.assert_close(model(batch.vectors, batch.mask)[0], lstm(layer, batch.vectors[0]))


def test_no_state_sees_its_own_step_through_attention_or_a_later_one():
    model = model_of()
    vectors = torch.randn(1, 6, WIDTH)
    before = model(vectors, mask_of([6]))
    changed = vectors.clone()
    changed[:, 4] += 1
    after = model(changed, mask_of([6]))
    assert_same(after[:, :4], before[:, :4])
    assert not torch.allclose(after[:, 5], before[:, 5], atol=1e-3), "a later word sees it"


def test_what_is_remembered_reaches_any_distance_in_one_step():
    """A score that is high for the first state alone brings its cell back whole."""
    model = model_of()
    with torch.no_grad():
        for layer in (model.word, model.attended, model.recurrence, model.input):
            for parameter in layer.parameters():
                parameter.zero_()
        model.input.bias[HIDDEN : 2 * HIDDEN] = 200.0  # forget nothing
        model.input.bias[:HIDDEN] = -200.0  # write nothing
        model.input.weight[:HIDDEN, 0] = 400.0  # but the first word
        model.input.weight[3 * HIDDEN :, 0] = 1.0
        model.input.bias[2 * HIDDEN : 3 * HIDDEN] = 200.0
    vectors = torch.zeros(1, 7, WIDTH)
    vectors[0, 0, 0] = 1.0
    expected = torch.full((7, HIDDEN), 1.0).tanh().tanh()
    torch.testing.assert_close(model(vectors, mask_of([7]))[0], expected)


def test_a_texts_vector_is_the_mean_of_its_real_states():
    model = model_of()
    assert model.pooling == "mean"
    assert_vector_comes_from_real_states(model, written_out, "mean", texts())


def test_half_of_a_texts_vector_is_dropped_in_training_and_no_state():
    model = LongShortTermMemoryNetwork(WIDTH, hidden=300).train()
    batch = random_texts([6, 6], 1, WIDTH)
    assert model(batch.vectors, batch.mask).all()
    assert 0.4 < (text_vector(model, batch) == 0).float().mean() < 0.6
