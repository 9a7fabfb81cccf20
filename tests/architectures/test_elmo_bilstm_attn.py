"""The mechanism of GLUE's baseline: states attend to the other text, a second BiLSTM reads both,
its maxima are joined, and ELMo's vectors stand behind those of words."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor

from architectures.hybrid.elmo_bilstm_attn import ELMoBiLSTMAttention
from harness import registry
from harness.contract.trained import TrainedCase
from harness.running import grid
from tests.support.batches import assert_each_alone, random_texts
from tests.support.known_dropout import Uneven, as_is, uneven
from tests.support.models import small
from tests.support.oracles import recurrent, softmax_mean
from tests.support.pairs import dense

WIDTH = 5
FIRST, SECOND = (4, 1, 6), (2, 5, 3)
"""Words of each text of three pairs."""

texts = partial(random_texts, width=WIDTH)
model_of = partial(small, ELMoBiLSTMAttention, WIDTH, hidden=4, mlp=6)


def written_out(
    model: ELMoBiLSTMAttention, first: Tensor, second: Tensor, dropped: Callable[[Tensor], Tensor] = as_is
) -> Tensor:
    """The vector of one pair, state by state."""
    a, b = recurrent(model.encoding, dropped(first)), recurrent(model.encoding, dropped(second))
    pooled = []
    for own, other in ((a, b), (b, a)):
        read = [dropped(torch.cat([h, softmax_mean([h @ each for each in other], other)])) for h in own]
        pooled.append(dropped(recurrent(model.composition, read)).max(0).values)
    u, v = pooled
    return dense(model.output, torch.cat([u, v, (u - v).abs(), u * v])).tanh()


@pytest.mark.parametrize("dropped", [as_is, uneven])
def test_a_batch_of_pairs_is_each_pair_written_out_state_by_state(dropped):
    """In values and gradients: padding that is attended to or pooled, one text's own states in the
    place of the other's, a missing comparison; dropout in another place, such as before or behind
    the tanh layer."""
    model, first, second = model_of(), texts(FIRST, 1), texts(SECOND, 2)
    if dropped is uneven:
        model.dropout = Uneven()
    result = model(first, second)
    assert result.shape == (3, 6)
    alone = partial(written_out, model, dropped=dropped)
    assert_each_alone(result, alone, first, second, rtol=1e-4, atol=1e-5)


def test_it_has_two_layers_in_both_directions_and_one_above():
    model = ELMoBiLSTMAttention(WIDTH)
    assert [len(part) for part in (model.encoding.forwards, model.encoding.backwards)] == [2, 2]
    assert [len(part) for part in (model.composition.forwards, model.composition.backwards)] == [1, 1]
    assert model.composition.forwards[0].input_size == 4 * model.encoding.forwards[0].hidden_size


@pytest.mark.parametrize("id", ["elmo_bilstm_attn", "esim_elmo", "bidaf_self_attn_elmo"])
def test_elmo_stands_behind_the_vectors_of_words(id):
    """Without it the row would be a plain BiLSTM by another name."""
    entry = registry.entry("architectures", id)
    assert entry.inputs == ("elmo_words",)
    task = registry.entry("tasks", "squad1" if "bidaf" in id else "snli")
    case = TrainedCase(entry, task, grid.hyperparameters(entry) | entry.tiny)
    model = case.model()
    assert list(model.sources) == ["elmo_words"]
    first = next(iter(case.corpus.fields))
    words = case.corpus.train.collate(case.eight()).inputs
    read = model.read(words)[first].vectors
    own = model.table(words[first]).vectors.shape[-1]
    assert read.shape[-1] == own + model.sources["elmo_words"].size
    torch.testing.assert_close(read[..., :own], model.table(words[first]).vectors)


def test_dropout_acts_in_training_on_what_either_bilstm_reads_and_on_the_states_of_the_second():
    """With all of it left out, the vector is what the output's bias gives. The second layer of the
    first BiLSTM reads the whole states of the one below."""
    model = small(ELMoBiLSTMAttention, WIDTH, hidden=4, mlp=6, dropout=1.0).train()
    found = model(texts(FIRST, 1), texts(SECOND, 2))
    torch.testing.assert_close(found, model.output.bias.tanh().expand(3, -1))
    seen = {}
    half = ELMoBiLSTMAttention(40, hidden=40, dropout=0.5).train()
    for name in ("encoding", "composition"):
        getattr(half, name).register_forward_pre_hook(lambda module, inputs, of=name: seen.update({of: inputs[0]}))
    words = texts((9,), 1)._replace(vectors=torch.randn(1, 9, 40))
    half(words, words)
    for name, read in seen.items():
        zeros = (read == 0).float().mean().item()
        assert 0.4 < zeros < 0.9, (name, zeros)
    read = []
    for layer in (half.encoding.forwards[1], half.encoding.backwards[1]):
        layer.register_forward_pre_hook(lambda module, inputs: read.append(inputs[0]))
    half(words, words)
    assert len(read) == 4 and all(states.all() for states in read)
