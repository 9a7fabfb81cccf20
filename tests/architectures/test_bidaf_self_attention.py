"""BiDAF with self-attention against the equations of Clark & Gardner word by word, with torch's own
bidirectional GRUs as reference; and its 'no answer' on mini SQuAD 2.0."""

from __future__ import annotations

import math
from functools import partial
from itertools import product

import pytest
import torch
from torch import Tensor, nn

from architectures.reading.bidaf_self_attention import JointSpans
from harness import registry
from harness.kinds import SpanScores
from harness.objectives import Step
from harness.problems.base import IGNORED
from harness.settings import TrainingSettings
from harness.training.model import objective_of
from harness.views.words_and_characters import WordCharacterBatch
from tests.support.batches import mask_of
from tests.support.oracles import softmax_mean
from tests.support.pairs import bigru, dense, dropped, inputs_of
from tests.support.reading import WIDTH, answered, bi_attended, reader_and_texts, similarity, spelt, squad
from tests.support.same import assert_same

ID = "bidaf_self_attention"
small_reader = partial(reader_and_texts, ID, hidden=3, character_size=4, filters=3, window=3, no_answer_hidden=4)


def mean_of_others(layer: nn.Module, r: Tensor, t: int) -> Tensor:
    """What word t attends to: the other words, and the vector of zeros that "no alignment" stands
    for."""
    others = [k for k in range(len(r)) if k != t]
    scores = [similarity(layer.similarity, r[t], r[k]) for k in others]
    return softmax_mean([*scores, layer.no_alignment[0]], [*r[others], torch.zeros_like(r[t])])


def by_hand(
    reader: nn.Module, passage: WordCharacterBatch, question: WordCharacterBatch, row: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Start and end scores (T,) and z of one example without its padding."""
    h, u = (
        bigru(
            reader.contextual,
            [torch.cat([text.vectors[row, t], c]) for t, c in enumerate(spelt(reader.spelling, text, row))],
        )
        for text in (passage, question)
    )
    x = [dense(reader.compress, g).relu() for g in bi_attended(reader.attention, h, u)]
    r = bigru(reader.within.recurrence, x)
    for t, r_t in enumerate(r):
        a_t = mean_of_others(reader.within, r, t)
        x[t] = x[t] + dense(reader.within.merge, torch.cat([r_t, a_t, r_t * a_t])).relu()
    m = bigru(reader.starts, x)
    last = bigru(reader.ends, [torch.cat(pair) for pair in zip(x, m, strict=True)])
    start, end, summary = (
        torch.stack([layer.weight[0] @ state for state in states])
        for layer, states in ((reader.start, m), (reader.end, last), (reader.summary, x))
    )
    found = torch.cat([softmax_mean(start, m), softmax_mean(end, last), softmax_mean(summary, x)])
    first, _, second = reader.no_answer
    return start, end, dense(second, dense(first, found).relu())[0]


def test_a_padded_batch_is_each_example_written_out_word_by_word():
    """Another cell or direction, attention to oneself or to padding, no residual, an end that does
    not read the start's states: each gives other numbers."""
    reader, passages, questions = small_reader()
    scores = reader(passages, questions)
    for row, length in enumerate(passages.lengths.tolist()):
        start, end, z = by_hand(reader, passages, questions, row)
        assert_same(scores.start[row, :length], start, rtol=1e-4, atol=1e-5)
        assert_same(scores.end[row, :length], end, rtol=1e-4, atol=1e-5)
        assert_same(2 * scores.no_answer[row], z, rtol=1e-4, atol=1e-5)
        assert scores.start[row, length:].isneginf().all() and scores.end[row, length:].isneginf().all()


def test_each_layer_has_the_size_that_the_settings_name():
    """With sizes that are all different: the numbers of characters, words and units are not one
    another."""
    reader, _, _ = small_reader(hidden=3, character_size=4, filters=6, window=5, no_answer_hidden=7)
    shapes = {name: tuple(parameter.shape) for name, parameter in reader.named_parameters()}
    assert shapes["spelling.vectors.weight"][1] == 4 and shapes["spelling.convolution.weight"] == (6, 4, 5)
    assert reader.contextual.forwards[0].input_size == WIDTH + 6 and reader.contextual.forwards[0].hidden_size == 3
    assert shapes["compress.weight"] == (6, 24) and shapes["within.merge.weight"] == (6, 18)
    assert shapes["no_answer.0.weight"] == (7, 18) and shapes["no_answer.2.weight"] == (1, 7)


def test_no_word_attends_to_itself_and_a_single_one_to_nothing():
    """A word that may look at itself looks at nothing else."""
    layer, states = small_reader()[0].within, torch.randn(1, 5, 6)
    for parameter in layer.similarity.parameters():  # all scores are equal: only what is seen is left
        nn.init.zeros_(parameter)
    by_word = torch.autograd.functional.jacobian(lambda r: layer.attended(r, mask_of([5])), states)
    assert torch.equal(by_word[0, :, :, 0].abs().sum((1, 3)) > 0, ~torch.eye(5, dtype=torch.bool))
    assert not layer.attended(states[:, :1], mask_of([1])).any()


def test_no_alignment_starts_with_a_small_score():
    """At -1 a word of score 0 counts e times as much as nothing does."""
    assert small_reader(stretch=None)[0].within.no_alignment.item() == -1


SHARED = {
    "words": lambda reader: reader.contextual.forwards[0],
    "states": lambda reader: reader.attention,
    "x before the self-attention": lambda reader: reader.within.recurrence.forwards[0],
    "states of the self-attention": lambda reader: reader.within.similarity,
    "x behind the self-attention": lambda reader: reader.starts.forwards[0],
}
"""The layer that reads what dropout acts on."""


@pytest.mark.parametrize("place", SHARED)
def test_a_fifth_of_the_features_is_dropped_at_all_words_of_a_text(place):
    """Variational dropout: a feature that stands at one word of the text stands at all of them."""
    reader, passages, questions = small_reader(stretch=None, hidden=40, filters=40)
    for layer in (reader.spelling.convolution, reader.compress, reader.within.merge):
        nn.init.constant_(layer.bias, 5.0)  # no ReLU is zero by itself
    [seen] = inputs_of(SHARED[place](reader))
    reader.train()(passages, questions)
    zeros = seen[0] == 0
    assert torch.equal(zeros, zeros[:, :1].expand_as(zeros))
    assert 0.1 < zeros.float().mean() < 0.3
    assert not torch.equal(zeros[0], zeros[1]), "each text has features of its own"


def test_a_fifth_of_the_characters_is_dropped_number_by_number():
    reader, passages, questions = small_reader(character_size=40)
    [seen] = inputs_of(reader.spelling.convolution)
    reader(passages, questions)
    calls = len(seen)
    reader.train()(passages, questions)
    assert 0.15 < dropped(seen[:calls], seen[calls:]) < 0.25


def of_all_spans(scores: SpanScores, target: Tensor, row: int) -> Tensor:
    """-log p of what is right in a row, in one softmax over z and every pair of a start and an
    end."""
    real = range(int(scores.start[row].isfinite().sum()))
    spans = {(i, j): scores.start[row, i] + scores.end[row, j] for i, j in product(real, real)}
    z = 2 * scores.no_answer[row]
    right = z if target[row, 0] == -1 else spans[tuple(target[row].tolist())]
    return torch.stack([z, *spans.values()]).logsumexp(0) - right


@pytest.mark.parametrize("reduction", ["mean", "batch"])
def test_training_takes_one_softmax_over_all_spans_and_none(reduction):
    """With a softmax for the start and one for the end, "none" would be asked for twice. A row
    whose answer is cut off says nothing."""
    model, corpus = squad("squad2", ID)
    objective = objective_of(model.eval(), TrainingSettings(reduction=reduction))
    batch = corpus.train.collate(torch.arange(12).numpy())
    assert isinstance(objective, JointSpans)
    assert {True, False} == set((batch.target[1:, 0] == -1).tolist()), "both kinds of question"
    batch.target[0] = IGNORED
    scores = model(batch.inputs)
    expected = torch.stack([of_all_spans(scores, batch.target, row) for row in range(1, 12)]).sum()
    found = objective.losses(model, Step({"labelled": batch}, progress=0.0))["loss"]
    assert_same(found, expected if reduction == "batch" else expected / 12)


def test_without_unanswerable_questions_the_losses_are_those_of_start_and_end():
    model, corpus = squad("squad1", ID)
    batch = corpus.train.collate(torch.arange(12).numpy())
    found = objective_of(model.eval(), TrainingSettings()).losses(model, Step({"labelled": batch}, progress=0.0))
    assert_same(found["loss"], model.loss(batch))


def test_a_question_has_no_answer_where_z_beats_the_best_span():
    """The score is learnt by the reader; the number that the head has for readers without one would
    judge all questions alike."""
    model, corpus = squad("squad2", ID)
    batch = corpus.train.collate(torch.arange(12).numpy())
    objective_of(model, TrainingSettings()).losses(model, Step({"labelled": batch}, progress=0.0))["loss"].backward()
    assert all(parameter.grad.any() for parameter in model.encoder.no_answer.parameters())
    assert model.encoder.summary.weight.grad.any() and model.head.no_answer.grad is None
    with torch.no_grad():
        scores = model.eval()(batch.inputs)
        spans = (scores.start[:, :, None] + scores.end[:, None]).triu().tril(29)
        spans = spans.masked_fill(spans == 0, -math.inf).flatten(1).amax(1)
        ahead = 2 * scores.no_answer - spans
        between = ahead.sort().values[5:7].mean()
        model.encoder.no_answer[-1].bias -= between
        assert answered(model, corpus) == (ahead < between).tolist()


def test_given_word_vectors_stay_as_they_are_and_random_ones_are_trained():
    """The paper's GloVe vectors are not tuned; noise that is never tuned would tell nothing."""
    for vectors, trained in ((7.0, False), (None, True)):
        model, _ = squad("squad1", ID, vectors)
        assert model.table.tuned.weight.requires_grad is trained


def test_a_word_has_fourteen_characters():
    """A longer word is read by its first ones alone."""
    assert registry.load(registry.entry("architectures", ID)).view.word_length == 14
