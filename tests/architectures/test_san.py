"""The mechanism of the stochastic answer network: a memory that is read several times, and the mean
of the probabilities of those steps that are kept."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from torch import Tensor, nn

from architectures.reading.san import MaxoutLSTM, StochasticAnswer, StochasticAnswerNetwork, mean_of_steps
from tests.architectures.test_drqa_reader import PASSAGES, QUESTIONS, WIDTH, batch_of
from tests.support.batches import mask_of
from tests.support.models import small
from tests.support.oracles import softmax_mean
from tests.support.pairs import bilstm, dense, inputs_of
from tests.support.same import assert_same

STEPS = 3


def reader_of(**settings) -> StochasticAnswerNetwork:
    sizes = {"hidden": 3, "projected": 5, "steps": STEPS, "stretch": 3.0}
    return small(StochasticAnswerNetwork, WIDTH, **sizes | settings)


def softmax(scores: list[Tensor]) -> Tensor:
    return torch.stack(scores).exp() / torch.stack(scores).exp().sum()


def contexts(reader: StochasticAnswerNetwork, network: nn.Sequential, words: list[Tensor]) -> list[Tensor]:
    """States of both layers, side by side."""
    states = [dense(network[2], dense(network[0], word).clamp(min=0)) for word in words]
    layers = []
    for layer in reader.contexts:
        assert isinstance(layer, MaxoutLSTM)
        both = bilstm(layer.recurrence, states)
        half = both.shape[1] // 2
        states = [torch.stack([max(state[k], state[half + k]) for k in range(half)]) for state in both]
        layers.append(states)
    return [torch.cat(pair) for pair in zip(*layers, strict=True)]


def attended(layer: nn.Module, query: Tensor, keys: list[Tensor], values: list[Tensor]) -> Tensor:
    project = layer.projection
    scores = [dense(project, query).clamp(min=0) @ dense(project, key).clamp(min=0) for key in keys]
    return softmax_mean(scores, values)


def memory_by_hand(reader: StochasticAnswerNetwork, row: int, passage: Tensor, question: Tensor) -> tuple:
    """The memory and the first state of one example without its padding."""
    words = []
    for word, vector in zip(PASSAGES[row], passage, strict=True):
        aligned = attended(reader.align, vector, list(question), question)
        features = torch.tensor([float(word in QUESTIONS[row]), PASSAGES[row].count(word) / len(PASSAGES[row])])
        words.append(torch.cat([vector, aligned, features]))
    states, asked = contexts(reader, reader.passage, words), contexts(reader, reader.question, list(question))
    joined = [torch.cat([state, attended(reader.attend, state, asked, asked)]) for state in states]
    read = []
    for place, u in enumerate(joined):
        others = joined[:place] + joined[place + 1 :]
        found = attended(reader.attend_self, u, others, others) if others else torch.zeros_like(u)
        read.append(torch.cat([u, found]))
    summary = softmax_mean([dense(reader.importance, q)[0] for q in asked], asked)
    return bilstm(reader.memory, read), summary


def answer_by_hand(layer: StochasticAnswer, memory: Tensor, state: Tensor) -> tuple[list[Tensor], list[Tensor]]:
    """Probabilities of start and end of each step."""
    starts, ends = [], []
    for step in range(layer.steps):
        if step:
            x = softmax_mean([dense(layer.read, state) @ m for m in memory], memory)
            state = layer.update(x[None], state[None])[0]
        starts.append(softmax([dense(layer.start, state) @ m for m in memory]))
        read = sum(p * m for p, m in zip(starts[-1], memory, strict=True))
        ends.append(softmax([dense(layer.end, torch.cat([state, read])) @ m for m in memory]))
    return starts, ends


def test_each_example_of_a_batch_is_the_example_alone_by_the_papers_equations():
    """Probabilities, not scores, are averaged; a word does not attend to itself; an end knows its
    step's start; the first step has read no memory."""
    reader, passages, questions = reader_of(), batch_of(PASSAGES, 1), batch_of(QUESTIONS, 2)
    memories: list[tuple[Tensor, ...]] = []
    reader.answer.register_forward_pre_hook(lambda _, inputs: memories.append(inputs))
    found = reader(passages, questions)
    for row, (passage, question) in enumerate(zip(PASSAGES, QUESTIONS, strict=True)):
        n, m = len(passage), len(question)
        memory, state = memory_by_hand(reader, row, passages.vectors[row, :n], questions.vectors[row, :m])
        assert_same(memories[0][0][row, :n], memory, atol=1e-5, rtol=1e-4)
        assert_same(memories[0][2][row], state, atol=1e-5, rtol=1e-4)
        expected = answer_by_hand(reader.answer, memory, state)
        for scores, steps in zip((found.start, found.end), expected, strict=True):
            assert len(steps) == STEPS
            assert_same(scores[row, :n].exp(), sum(steps) / STEPS, atol=1e-4, rtol=1e-3)
            assert (scores[row, n:] == -torch.inf).all()


def test_each_step_reads_the_memory_again_and_its_end_knows_its_start():
    """On a memory whose words differ more than those of an untrained LSTM, so that steps do too."""
    layer = small(StochasticAnswer, 4, steps=STEPS, step_dropout=0.4, stretch=1.5)
    memory, state = torch.randn(5, 4), torch.randn(4)
    found = layer(memory[None], torch.ones(1, 5, dtype=torch.bool), state[None])
    for scores, steps in zip(found, answer_by_hand(layer, memory, state), strict=True):
        assert_same(scores[0].exp(), sum(steps) / STEPS)
        assert all((one - other).abs().max() > 0.01 for one, other in pairwise(steps))


def test_the_mean_is_of_probabilities_and_of_the_steps_with_a_share():
    """One step says the first word, the other the second: each is as likely. By the mean
    of the scores it would be the third, which no step finds likely."""
    scores = [torch.tensor([[90.0, -90.0, 2.0, 7.0]]), torch.tensor([[-90.0, 90.0, 2.0, 7.0]])]
    mask = mask_of([3, 4])[:1]
    found = mean_of_steps(scores, torch.tensor([[0.5, 0.5]]), mask).exp()
    torch.testing.assert_close(found, torch.tensor([[0.5, 0.5, 0.0, 0.0]]))
    alone = mean_of_steps(scores, torch.tensor([[0.0, 1.0]]), mask).exp()
    torch.testing.assert_close(alone, torch.tensor([[0.0, 1.0, 0.0, 0.0]]))


@pytest.mark.parametrize("probability", [0.0, 0.4, 1.0])
def test_training_leaves_out_whole_steps_of_an_example_but_never_all(probability):
    """A step is kept if the lot of dropout spares it, or if it is the one that is drawn: one and
    four times 0.6 for probability 0.4. At evaluation all steps count alike."""
    layer = StochasticAnswer(4, steps=5, step_dropout=probability)
    states = torch.zeros(4000, 4)
    torch.manual_seed(0)
    shares = layer.train().shares(states)
    torch.testing.assert_close(shares.sum(1), torch.ones(4000))
    counts = (shares > 0).sum(1)
    torch.testing.assert_close(shares.amax(1), 1 / counts)
    assert counts.min() >= 1
    expected = 1 + 4 * (1 - probability)
    assert counts.float().mean().item() == pytest.approx(expected, abs=0.06)
    assert (shares > 0).float().mean(0).sub(expected / 5).abs().max() < 0.04, "no step is kept more often"
    assert (counts == 5).float().mean().item() == pytest.approx((1 - probability) ** 4, abs=0.03), "a lot for each"
    torch.testing.assert_close(layer.eval().shares(states), torch.full((4000, 5), 0.2))


def test_no_step_is_left_out_with_a_probability_of_zero(monkeypatch):
    """Whatever is drawn, zero itself too."""
    layer = StochasticAnswer(4, 3, step_dropout=0.0).train()
    monkeypatch.setattr(torch, "rand", lambda *size, device=None: torch.zeros(size))
    torch.testing.assert_close(layer.shares(torch.randn(5, 4)), torch.full((5, 3), 1 / 3))


def test_gradients_are_finite_where_steps_are_left_out_and_words_are_padding():
    reader = reader_of(dropout=0.0, step_dropout=0.9).train()
    found = reader(batch_of(PASSAGES, 1), batch_of(QUESTIONS, 2))
    (found.start[:, 0] + found.end[:, 0]).sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in reader.parameters())


def test_dropout_acts_on_what_each_layer_reads_and_on_weights():
    reader = reader_of(dropout=1.0).train()
    layers = [reader.align.projection, *(each.recurrence for each in reader.contexts), reader.memory, reader.answer]
    attentions = [reader.attend.projection, reader.attend_self.projection, reader.importance]
    seen = inputs_of(*layers, *attentions)
    summaries: list[Tensor] = []
    reader.answer.register_forward_pre_hook(lambda _, inputs: summaries.append(inputs[2]))
    reader(batch_of(PASSAGES, 1), batch_of(QUESTIONS, 2))
    assert all(seen) and not any(one.any() for inputs in seen for one in inputs)
    assert not summaries[0].any(), "the summary is of what is left of the question"
    weights = reader.attend(torch.randn(1, 2, 6), torch.randn(1, 3, 6), torch.ones(1, 1, 3, dtype=torch.bool))
    assert not weights.any()


def test_the_passage_fetches_from_itself_what_it_has_before_dropout():
    """With all dropped, scores are alike, and a word fetches the mean of the others as they
    were."""
    reader = reader_of(dropout=1.0).train()
    reader.attend_self.dropout.p = 0.0
    (given,) = inputs_of(reader.dropout)
    reader(batch_of(PASSAGES, 1), batch_of(QUESTIONS, 2))
    (read,) = [one for one in given if one.shape[-1] == 4 * reader.importance.in_features]
    words = read[0, : len(PASSAGES[0])]
    joined, of_others = words.chunk(2, dim=-1)
    assert joined.any()
    torch.testing.assert_close(of_others, (joined.sum(0) - joined) / (len(joined) - 1))


def test_a_dropped_feature_is_dropped_at_all_words():
    reader = reader_of(dropout=0.5).train()
    (seen,) = inputs_of(reader.answer)
    for _ in range(5):
        reader(batch_of(PASSAGES, 1), batch_of(QUESTIONS, 2))
    zeros = [(one[0] == 0) for one in seen]
    assert any(each.any() for each in zeros)
    assert all((each.any(0) == each.all(0)).all() for each in zeros)


def test_vectors_stay_fixed():
    assert StochasticAnswerNetwork.vectors == "fixed"
