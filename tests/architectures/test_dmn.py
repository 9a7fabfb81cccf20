"""The mechanism of dynamic memory networks: facts from a GRU over all words, sigmoid gates, an
episode read as far as they are open, and a memory that a GRU keeps."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from architectures.memory.dmn import DMN, joined
from harness.views.facts import FactBatch
from tests.support import oracles, stories
from tests.support.pairs import dense, dropped, shipped
from tests.support.same import assert_same

SIZE = 4


def model_of(stretch: float | None = 2.0, **options) -> DMN:
    return shipped("dmn", stories.view().width, stretch=stretch, **{"size": SIZE} | options)


def gru_step(cell: nn.GRUCell, x: Tensor, h: Tensor) -> Tensor:
    """One step of a GRU: equations 1 to 4 of the paper."""
    w_x, w_h, b_x, b_h = oracles.weights_of(cell)
    (r_x, z_x, n_x), (r_h, z_h, n_h) = (w_x @ x + b_x).chunk(3), (w_h @ h + b_h).chunk(3)
    z = torch.sigmoid(z_x + z_h)
    return z * h + (1 - z) * torch.tanh(n_x + torch.sigmoid(r_x + r_h) * n_h)


def gate(model: DMN, c: Tensor, m: Tensor, q: Tensor) -> Tensor:
    """Gate of one fact: equations 7 and 8."""
    bilinear = [(vector @ model.likeness.weight @ c)[None] for vector in (q, m)]
    z = torch.cat([c, m, q, c * q, c * m, (c - q).abs(), (c - m).abs(), *bilinear])
    return torch.sigmoid(dense(model.gate, torch.tanh(dense(model.compare, z))))


def answered(model: DMN, told: list[Tensor], asked: Tensor) -> Tensor:
    """State of the answer to one question about one story, word by word and fact by fact."""
    table = model.words.weight
    q = oracles.gru(model.question.forwards[0], table[asked])[-1]
    states = oracles.gru(model.story.forwards[0], table[torch.cat(told)])
    facts, end = [], 0
    for words in told:
        end += len(words)
        facts.append(states[end - 1])
    m = q
    for _ in range(model.passes):
        h = torch.zeros(SIZE)
        for c in facts:
            g = gate(model, c, m, q)
            h = g * gru_step(model.read, c, h) + (1 - g) * h
        m = gru_step(model.remember, h, m)
    return gru_step(model.answer, q, m)


@pytest.mark.parametrize("passes", [1, 3])
def test_a_batch_is_each_story_written_out(passes):
    """Facts that do not know those before them, gates over padding, another order of the features,
    or a pass too few would show here."""
    model = model_of(passes=passes)
    facts, questions = stories.batch(stories.view())
    found = model(facts, questions)
    assert found.shape == (3, SIZE)
    for row, vector in enumerate(found):
        expected = answered(model, stories.alone(facts, row), stories.alone(questions, row)[0])
        assert_same(vector, expected, rtol=1e-4, atol=1e-5)


def test_open_gates_make_a_plain_gru_and_closed_ones_read_nothing():
    model = model_of()
    facts = torch.randn(1, 5, SIZE)
    plain = nn.GRU(SIZE, SIZE, batch_first=True)
    plain.load_state_dict({f"{name}_l0": weight for name, weight in model.read.state_dict().items()})
    torch.testing.assert_close(model.episode(facts, torch.ones(1, 5)), plain(facts)[1][0])
    assert not model.episode(facts, torch.zeros(1, 5)).any()


def test_words_of_a_story_stand_behind_one_another():
    """With padding inside the sentences, behind them, and behind the story."""
    ids = torch.tensor([[[5, 6, 0], [7, 0, 0], [8, 9, 4]], [[3, 0, 0], [0, 0, 0], [0, 0, 0]]])
    told = FactBatch(ids, ids > 0, (ids > 0).any(-1))
    words, mask, ends = joined(told)
    assert words[0].tolist() == [5, 6, 7, 8, 9, 4] and words[1][mask[1]].tolist() == [3]
    assert mask.sum(1).tolist() == [6, 1] and mask.shape == (2, 6)
    assert ends.tolist() == [[1, 2, 5], [0, 0, 0]]


def test_a_tenth_of_the_word_vectors_is_dropped():
    """In training alone, of story and question."""
    model = model_of(size=60, stretch=None)
    facts, questions = stories.batch(stories.view())
    given, read = [], []
    model.words.register_forward_hook(lambda _, inputs, output: given.append(output))
    model.story.register_forward_pre_hook(lambda _, inputs: read.append(inputs[0]))
    model.question.register_forward_pre_hook(lambda _, inputs: read.append(inputs[0]))
    model.train()
    for _ in range(20):
        model(facts, questions)
    assert len(given) == len(read) == 40
    for half in (0, 1):
        assert dropped(given[half::2], read[half::2]) == pytest.approx(0.1, abs=0.02)
    model.eval()
    assert_same(model(facts, questions), model(facts, questions), rtol=0, atol=0)
