"""The mechanism of ReasoNet: a state that asks the memory again, a gate that stops it, and a reward
that is counted over all ways to stop and to answer."""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np
import pytest
import torch
from torch import Tensor

from architectures.reinforcement.reasonet import ContrastiveReward, ReasoNet, Recall, stopping
from harness import registry
from harness.objectives import collected_choices
from harness.problems.base import IGNORED
from harness.registry import Recipe
from harness.training.model import Model, objective_of
from harness.views.words_and_characters import WordCharacterBatch
from tests.support.acting import step_of
from tests.support.batches import POISON, mask_of
from tests.support.models import small
from tests.support.oracles import cosine, softmax_mean, weights_of
from tests.support.pairs import bigru, dense, dropped, inputs_of
from tests.support.reading import bi_attended, reader_and_texts, spelt, squad
from tests.support.same import assert_same

STEPS = 3
small_reader = partial(
    reader_and_texts, "reasonet", hidden=3, character_size=4, filters=8, window=3, steps=STEPS, sharpness=3.0
)


def gru_step(layer: torch.nn.GRUCell, x: Tensor, h: Tensor) -> Tensor:
    w_x, w_h, b_x, b_h = weights_of(layer)
    (r_x, z_x, n_x), (r_h, z_h, n_h) = (w_x @ x + b_x).chunk(3), (w_h @ h + b_h).chunk(3)
    z = torch.sigmoid(z_x + z_h)
    return z * h + (1 - z) * torch.tanh(n_x + torch.sigmoid(r_x + r_h) * n_h)


def by_hand(
    reader: ReasoNet, passage: WordCharacterBatch, question: WordCharacterBatch, row: int
) -> tuple[list[tuple[Tensor, Tensor]], list[Tensor]]:
    """Start and end scores (T,) from each step, and the probability to stop at it, of one example
    without its padding."""
    states = []
    for text, layer in ((passage, reader.passage), (question, reader.question)):
        from_characters = spelt(reader.spelling, text, row)
        states.append(bigru(layer, [torch.cat([text.vectors[row, t], c]) for t, c in enumerate(from_characters)]))
    read, asked = states
    memory = bigru(reader.memory, bi_attended(reader.attention, read, asked))
    state = torch.cat([asked[-1, :3], asked[0, 3:]])
    scores, stops, going_on = [], [], torch.ones(())
    for step in range(STEPS):
        if step:
            alike = [cosine(dense(reader.recall.memory, m), dense(reader.recall.state, state)) for m in memory]
            state = gru_step(reader.controller, softmax_mean([3.0 * one for one in alike], memory), state)
        seen = [torch.cat([m, m * state]) for m in memory]
        scores.append(tuple(torch.stack([layer.weight[0] @ x for x in seen]) for layer in (reader.start, reader.end)))
        gate = torch.sigmoid(dense(reader.gate, state)[0]) if step < STEPS - 1 else torch.ones(())
        stops.append(going_on * gate)
        going_on = going_on * (1 - gate)
    return scores, stops


def test_each_step_of_a_padded_batch_is_written_out_word_by_word():
    """In values and gradients: the first state is the question's ends, attention is by the cosine
    of projections, the next state follows from what was recalled, and each state answers."""
    reader, passages, questions = small_reader()
    with reader.each_step() as told:
        found = reader(passages, questions)
    sides = [scores.unflatten(0, (STEPS, -1)) for scores in (found.start, found.end)]
    for row, length in enumerate(passages.lengths.tolist()):
        expected, stops = by_hand(reader, passages, questions, row)
        assert_same(told[0][row].exp(), torch.stack(stops), rtol=1e-4, atol=1e-5)
        for step, both in enumerate(expected):
            for side, scores in zip(sides, both, strict=True):
                assert_same(side[step, row, :length], scores, rtol=1e-4, atol=1e-5)
                assert side[step, row, length:].isneginf().all()
        assert len({round(float(both[0][0].detach()), 3) for both in expected}) == STEPS
    assert reader.told is None


@pytest.mark.parametrize(("bias", "step"), [(9.0, 0), (-9.0, STEPS - 1), (None, None)])
def test_at_evaluation_it_stops_at_the_likeliest_step(bias, step):
    reader, passages, questions = small_reader()
    with torch.no_grad():
        if bias is not None:
            reader.gate.bias.fill_(bias)
            reader.gate.weight.zero_()
    with collected_choices() as told:
        found = reader(passages, questions)
    places = []
    for row, length in enumerate(passages.lengths.tolist()):
        scores, stops = by_hand(reader, passages, questions, row)
        places.append(int(torch.stack(stops).argmax()))
        assert step is None or places[-1] == step
        start, end = scores[places[-1]]
        torch.testing.assert_close(found.start[row, :length], start, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(found.end[row, :length], end, rtol=1e-4, atol=1e-5)
    assert told["steps"][0].tolist() == [place + 1 for place in places]


def test_of_several_steps_the_likeliest_need_not_be_the_first_above_a_half():
    """0.4, 0.6 * 0.3 and the rest, 0.42: by the gate alone each would be passed, or the first
    taken."""
    found = stopping(torch.tensor([[0.4, 0.3], [0.45, 0.9]]).logit()).exp()
    torch.testing.assert_close(found, torch.tensor([[0.4, 0.18, 0.42], [0.45, 0.495, 0.055]]))


def test_probabilities_to_stop_sum_to_one():
    """However sure the gate is, and without a number that is none."""
    gates = torch.cat([torch.randn(50, 9) * 5, torch.full((1, 9), 300.0), torch.full((1, 9), -300.0)]).requires_grad_()
    found = stopping(gates)
    torch.testing.assert_close(found.exp().sum(1), torch.ones(52))
    assert found.shape == (52, 10)
    found.exp()[:, 3].sum().backward()
    assert gates.grad.isfinite().all()


def test_attention_has_no_biases():
    recall = Recall(4, 10.0)
    assert recall.memory.bias is None and recall.state.bias is None


def test_attention_reads_no_padding():
    recall = small(Recall, 4, 10.0)
    memory, mask = torch.randn(2, 5, 4), mask_of([5, 3])
    state = torch.randn(2, 4)
    poisoned = memory.masked_fill(~mask[..., None], POISON)
    torch.testing.assert_close(recall(poisoned, mask, state)[1:], recall(memory[1:, :3], mask[1:, :3], state[1:]))


def built(task: str = "squad1") -> tuple[ContrastiveReward, Model, object]:
    model, corpus = squad(task, "reasonet")
    lengths = corpus.view.lengths(corpus.train.inputs["passage"])
    order = np.argsort(lengths, kind="stable")
    answered = np.array([bool(answers["text"]) for answers in corpus.train.rows["answers"]])[order]
    batch = corpus.train.collate(np.concatenate([order[answered][:2], order[~answered][:1]]))
    assert ((batch.target == -1).any() == (task == "squad2")).item()
    objective = objective_of(model.eval(), Recipe())
    assert isinstance(objective, ContrastiveReward)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(2)
    return objective, model, batch


def episodes(model: Model, batch) -> list[list[tuple[Tensor, bool]]]:
    """Of each question, all ways to stop and to answer: the logarithm of the probability of each,
    and True for the right answer."""
    with model.encoder.each_step() as told:
        outputs = model.head(model.encoder, model.read(batch.inputs))
    found = []
    rows = len(batch.target)
    for row, (first, last) in enumerate(batch.target.tolist()):
        ways = []
        length = int(batch.inputs["passage"].lengths[row])
        for step in range(told[0].shape[1]):
            sides = [side[step * rows + row, :length] for side in (outputs.start, outputs.end)]
            if outputs.no_answer is not None:
                none = outputs.no_answer[step * rows + row]
                sides = [torch.cat([none[None], side]) for side in sides]
            starts, ends = (side.log_softmax(0) for side in sides)
            shift = len(starts) - length
            for i, j in itertools.product(range(len(starts)), repeat=2):
                right = (i - shift, j - shift) == (first, last)
                ways.append((told[0][row, step] + starts[i] + ends[j], right))
        found.append(ways)
    return found


@pytest.mark.parametrize("task", ["squad1", "squad2"])
def test_its_gradient_is_that_of_the_contrastive_reward(task):
    """Over every episode, through the model: sum of P grad log P (r / b - 1), where b is the mean
    reward of the question; a question without an answer is rewarded for saying so."""
    objective, model, batch = built(task)
    wanted = [parameter for parameter in model.parameters() if parameter.requires_grad]
    found = objective.losses(model, step_of(batch, 0.0))
    gradients = torch.autograd.grad(found["loss"], wanted, materialize_grads=True, allow_unused=True)
    surrogate, rewards = 0.0, []
    for ways in episodes(model, batch):
        logs, right = torch.stack([log for log, _ in ways]), torch.tensor([float(r) for _, r in ways])
        chances = logs.detach().exp()
        torch.testing.assert_close(chances.sum(), torch.ones(()))
        mean = (chances * right).sum()
        assert 0 < mean < 1
        rewards.append(mean)
        surrogate = surrogate - (chances * logs * (right / mean - 1)).sum() / len(batch.target)
    exact = torch.autograd.grad(surrogate, wanted, materialize_grads=True, allow_unused=True)
    largest = max(float(each.abs().max()) for each in exact)
    for ours, theirs in zip(gradients, exact, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-5 * largest)
    torch.testing.assert_close(found["reward"], torch.stack(rewards).mean())
    torch.testing.assert_close(found["loss"], -torch.stack(rewards).log().mean())


def test_the_steps_of_the_curve_are_the_expected_number():
    objective, model, batch = built()
    with torch.no_grad():
        model.encoder.gate.weight.zero_()
        model.encoder.gate.bias.fill_(torch.tensor(0.25).logit())
    found = objective.losses(model, step_of(batch, 0.0))
    assert found["steps"].item() == pytest.approx(0.25 + 2 * 0.75 * 0.25 + 3 * 0.75**2)


def test_an_answer_that_is_never_right_or_beyond_the_cut_makes_no_nan():
    objective, model, batch = built()
    with torch.no_grad():
        model.encoder.start.weight.mul_(1e5)
    found = objective.losses(model, step_of(batch, 0.0))["loss"]
    assert found > 1000 and found.isfinite()
    found.backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())
    model.zero_grad()
    beyond = batch._replace(target=torch.full_like(batch.target, IGNORED))
    found = objective.losses(model, step_of(beyond, 0.0))["loss"]
    assert found.item() == pytest.approx(0, abs=1e-5)
    found.backward()
    assert not any(p.grad is not None and (p.grad.abs() > 1e-6).any() for p in model.parameters())


DROPPED = {
    "words of the passage": lambda reader: reader.passage.forwards[0],
    "words of the question": lambda reader: reader.question.backwards[0],
    "what the memory is made of": lambda reader: reader.memory.forwards[0],
}


@pytest.mark.parametrize("place", DROPPED)
def test_a_fifth_of_what_recurrences_read_is_dropped_in_training(place):
    reader, passages, questions = small_reader(hidden=40, character_size=40, filters=40)
    [seen] = inputs_of(DROPPED[place](reader))
    reader(passages, questions)
    calls = len(seen)
    reader.train()(passages, questions)
    assert 0.15 < dropped(seen[:calls], seen[calls:]) < 0.25


def test_given_word_vectors_stay_fixed_and_a_word_has_sixteen_characters():
    model, _ = squad("squad1", "reasonet", 7.0)
    assert not model.table.tuned.weight.requires_grad
    assert registry.load(registry.entry("architectures", "reasonet")).view.word_length == 16
