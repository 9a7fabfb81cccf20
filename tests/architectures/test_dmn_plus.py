"""The mechanism of DMN+: facts fused in both directions, a softmax gate over them, a GRU whose
update gate it is, and a memory update of its own for each pass."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from architectures.memory.dmn_plus import AttentionGRU, DMNPlus
from harness import registry
from tests.support import oracles, stories
from tests.support.models import small
from tests.support.pairs import dense, dropped, shipped
from tests.support.same import assert_same

SIZE = 4


def model_of(stretch: float | None = 3.0, **options) -> DMNPlus:
    return shipped("dmn_plus", stories.view().width, stretch=stretch, **{"size": SIZE} | options)


def episode(gru: AttentionGRU, facts: Tensor, gates: Tensor) -> Tensor:
    """Equations of the attention GRU, fact by fact."""
    w_r, w = gru.fact.weight.chunk(2)
    b_r, b = gru.fact.bias.chunk(2)
    u_r, u = gru.state.weight.chunk(2)
    h = torch.zeros(len(w))
    for fact, gate in zip(facts, gates, strict=True):
        r = torch.sigmoid(w_r @ fact + u_r @ h + b_r)
        h = gate * torch.tanh(w @ fact + r * (u @ h) + b) + (1 - gate) * h
    return h


def answered(model: DMNPlus, told: list[Tensor], asked: Tensor) -> Tensor:
    """Memory and question of one story: sections 3.1 and 3.3, with plain vectors."""
    table = model.words.weight
    q = oracles.gru(model.question.forwards[0], table[asked])[-1]
    sentences = torch.stack([stories.position_encoded(table[words]) for words in told])
    facts = oracles.gru(model.fusion.forwards[0], sentences)
    facts = facts + oracles.gru(model.fusion.backwards[0], sentences.flip(0)).flip(0)
    m = q
    for update in model.update:
        scores = []
        for f in facts:
            z = torch.cat([f * q, f * m, (f - q).abs(), (f - m).abs()])
            scores.append(model.score.weight[0] @ torch.tanh(dense(model.compare, z)))
        gates = torch.stack(scores).exp() / torch.stack(scores).exp().sum()
        m = dense(update, torch.cat([m, episode(model.episode, facts, gates), q])).clamp(min=0)
    return torch.cat([m, q])


@pytest.mark.parametrize("passes", [1, 3])
def test_a_batch_is_each_story_written_out(passes):
    """A pass too few, gates over padding, words counted otherwise, a memory that forgets the
    question or an update of another pass would show here."""
    model = model_of(passes=passes)
    facts, questions = stories.batch(stories.view())
    found = model(facts, questions)
    assert found.shape == (3, model.size) and len(model.update) == passes
    for row, vector in enumerate(found):
        expected = answered(model, stories.alone(facts, row), stories.alone(questions, row)[0])
        assert_same(vector, expected, rtol=1e-4, atol=1e-5)
    assert (found[:, :SIZE] > 0).any(1).all(), "memories of zeros would hide the passes"


def test_a_gate_at_the_last_fact_alone_gives_its_candidate():
    """With gate 1 at one fact no other counts; with gates of 0 the episode is empty."""
    gru = small(AttentionGRU, 3, SIZE)
    facts = torch.randn(1, 4, 3)
    found = gru(facts, torch.tensor([[0.0, 0.0, 0.0, 1.0]]))
    _, candidate = dense(gru.fact, facts[0, 3]).chunk(2)
    assert_same(found[0], torch.tanh(candidate))
    assert not gru(facts, torch.zeros(1, 4)).any()


def test_a_tenth_of_the_sentences_and_of_the_answers_input_is_dropped():
    """In training alone; words, facts and memories stay whole."""
    model = model_of(size=40, stretch=None)
    facts, questions = stories.batch(stories.view())
    given, read = [], []
    model.dropout.register_forward_hook(lambda _, inputs, output: given.append(inputs[0]))
    model.dropout.register_forward_hook(lambda _, inputs, output: read.append(output))
    model.train()
    outputs = [model(facts, questions) for _ in range(40)]
    assert dropped(given[::2], read[::2]) == pytest.approx(0.1, abs=0.02)
    assert dropped(given[1::2], read[1::2]) == pytest.approx(0.1, abs=0.02)
    shapes = [tuple(tensor.shape) for tensor in given[:2]]
    assert shapes == [(3, 3, 40), (3, 80)] and len(given) == 80
    assert outputs[0] is read[1]
    model.eval()
    assert_same(model(facts, questions), model(facts, questions), rtol=0, atol=0)


def test_the_weights_start_as_the_paper_says():
    """Words uniform to the root of three, each matrix of a GRU by Glorot's rule, biases zero."""
    model = model_of(size=60, stretch=None)
    words = model.words.weight
    assert words.abs().max() <= 3**0.5 and words.std().item() == pytest.approx(1, abs=0.1)
    gates = model.fusion.forwards[0].weight_hh_l0
    limit = (6 / 120) ** 0.5
    assert 0.98 * limit < gates.abs().max() <= limit
    assert model.update[2].weight.abs().max() <= (6 / 240) ** 0.5
    assert not any(parameter.any() for parameter in model.parameters() if parameter.dim() == 1)


def test_the_seventy_newest_facts_are_read():
    facts = registry.load(registry.entry("architectures", "dmn_plus")).view
    assert facts.read([f"fact {number}" for number in range(90)]) == [["fact", str(number)] for number in range(20, 90)]
