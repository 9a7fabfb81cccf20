"""The mechanism of FusionNet: attention that sees the whole history of a word and fetches one level
of it."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from architectures.reading.fusionnet import FullyAwareAttention, FusionNet
from tests.architectures.test_drqa_reader import PASSAGES, QUESTIONS, WIDTH, batch_of
from tests.support.batches import mask_of
from tests.support.models import small
from tests.support.oracles import softmax_mean
from tests.support.pairs import bilstm, dense, inputs_of
from tests.support.same import assert_same


def reader_of(**settings) -> FusionNet:
    return small(FusionNet, WIDTH, **{"hidden": 3, "stretch": 2.5} | settings)


def fully_aware(layer: FullyAwareAttention, history: Tensor, others: list[Tensor], values: list[Tensor]) -> Tensor:
    """Mean of the values under the softmax of x^T U^T D U y behind ReLUs, with D written out."""
    d = torch.diag(layer.diagonal)
    x = dense(layer.projection, history).clamp(min=0)
    return softmax_mean([x @ d @ dense(layer.projection, y).clamp(min=0) for y in others], values)


def side_by_side(*parts) -> list[Tensor]:
    return [torch.cat(list(each)) for each in zip(*parts, strict=True)]


def understood(reader: FusionNet, row: int, passage: Tensor, question: Tensor) -> tuple[Tensor, Tensor]:
    """Understanding of one example's passage and question without their padding."""

    def lstm(layer, *parts) -> list[Tensor]:
        return list(bilstm(layer.recurrence, side_by_side(*parts)))

    project = reader.align.projection
    words = []
    for word, vector in zip(PASSAGES[row], passage, strict=True):
        scores = [dense(project, vector).clamp(min=0) @ dense(project, asked).clamp(min=0) for asked in question]
        features = torch.tensor([float(word in QUESTIONS[row]), PASSAGES[row].count(word) / len(PASSAGES[row])])
        words.append(torch.cat([vector, softmax_mean(scores, question), features]))
    low = lstm(reader.low, words)
    high = lstm(reader.high, low)
    asked_low = lstm(reader.question_low, question)
    asked_high = lstm(reader.question_high, asked_low)
    asked = lstm(reader.question_understanding, asked_low, asked_high)
    of_question = side_by_side(question, asked_low, asked_high)
    of_low, of_high, of_asked = (
        [fully_aware(layer, x, of_question, values) for x in side_by_side(passage, low, high)]
        for layer, values in zip(reader.levels, (asked_low, asked_high, asked), strict=True)
    )
    fused = lstm(reader.fused, low, high, of_low, of_high, of_asked)
    history = side_by_side(passage, low, high, of_low, of_high, of_asked, fused)
    boosted = [fully_aware(reader.itself, x, history, fused) for x in history]
    return torch.stack(lstm(reader.understanding, fused, boosted)), torch.stack(asked)


def scores_by_hand(reader: FusionNet, states: Tensor, asked: Tensor) -> tuple[Tensor, Tensor]:
    q = softmax_mean([dense(reader.importance, u)[0] for u in asked], asked)
    start = torch.stack([q @ reader.start.weight.T @ u for u in states])
    read = softmax_mean(list(start), states)
    q = reader.update(read[None], q[None])[0]
    return start, torch.stack([q @ reader.end.weight.T @ u for u in states])


def test_each_example_of_a_batch_is_the_example_alone_by_the_papers_equations():
    """A level that fetches another's values, a history without a part, one attention for all
    levels, or an end that does not know the start would each give other numbers."""
    reader, passages, questions = reader_of(), batch_of(PASSAGES, 1), batch_of(QUESTIONS, 2)
    states, asked = reader.understood(passages, questions)
    found = reader(passages, questions)
    for row, (passage, question) in enumerate(zip(PASSAGES, QUESTIONS, strict=True)):
        n, m = len(passage), len(question)
        by_hand = understood(reader, row, passages.vectors[row, :n], questions.vectors[row, :m])
        for some, expected in zip((states[row, :n], asked[row, :m]), by_hand, strict=True):
            assert_same(some, expected, atol=1e-5, rtol=1e-4)
        for scores, value in zip((found.start, found.end), scores_by_hand(reader, *by_hand), strict=True):
            assert_same(scores[row, :n], value, atol=1e-4, rtol=1e-4)
            assert (scores[row, n:] == -torch.inf).all()


def test_the_attention_is_symmetric_its_diagonal_weighs_and_it_fetches_values_alone():
    """Histories of three words whose units are told apart by U = 1: of (2, 0), with D = (1, -3),
    the products with (1, 0), (0, 1) and (-5, 1) are 2, 0 and 0."""
    layer = FullyAwareAttention(2, 2)
    with torch.no_grad():
        layer.projection.weight.copy_(torch.eye(2))
        layer.diagonal.copy_(torch.tensor([1.0, -3.0]))
    others, values = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [-5.0, 1.0]]]), torch.eye(3)[None]
    found = layer(torch.tensor([[[2.0, 0.0], [0.0, 1.0]]]), others, values, mask_of([3]))[0]
    expected = torch.tensor([[2.0, 0.0, 0.0], [0.0, -3.0, -3.0]]).softmax(-1)
    torch.testing.assert_close(found, expected)
    assert FullyAwareAttention(4, 3).diagonal.tolist() == [1.0] * 3, "starts as the plain product"


def test_each_attentions_diagonal_learns():
    """At its first value, ones, it would leave the scores those of a plain product."""
    reader = reader_of()
    found = reader(batch_of(PASSAGES, 1), batch_of(QUESTIONS, 2))
    (found.start[:, 0] + found.end[:, 0]).sum().backward()
    for layer in (*reader.levels, reader.itself):
        assert layer.diagonal.requires_grad and layer.diagonal.grad.any()


def test_dropout_acts_on_what_each_layer_reads():
    reader = reader_of(dropout=1.0).train()
    parts = (reader.low, reader.high, reader.question_low, reader.question_high, reader.question_understanding)
    layers = [each.recurrence for each in (*parts, reader.fused, reader.understanding)]
    attentions = [reader.align.projection, *(each.projection for each in (*reader.levels, reader.itself))]
    seen = inputs_of(*layers, *attentions, reader.importance, reader.update)
    reader(batch_of(PASSAGES, 1), batch_of(QUESTIONS, 2))
    assert all(seen) and not any(one.any() for inputs in seen for one in inputs)


def test_a_dropped_feature_is_dropped_at_all_words():
    reader = reader_of(dropout=0.5).train()
    seen = inputs_of(reader.low.recurrence, reader.itself.projection, reader.importance)
    for _ in range(5):
        reader(batch_of(PASSAGES, 1), batch_of(QUESTIONS, 2))
    for inputs in seen:
        zeros = [(one[0] == 0).all(0) for one in inputs]
        assert any(each.any() for each in zeros)
    read = [one[0] == 0 for one in seen[2]]
    assert all((each[:3].any(0) == each[:3].all(0)).all() for each in read)


def test_what_the_end_reads_of_the_start_is_dropped_number_by_number():
    reader = reader_of(dropout=0.5).train()
    reader.dropout = nn.Identity()
    [seen] = inputs_of(reader.update)
    for _ in range(20):
        reader(batch_of(PASSAGES, 1), batch_of(QUESTIONS, 2))
    assert 0.3 < torch.stack([one == 0 for one in seen]).float().mean() < 0.7


def test_vectors_stay_fixed():
    assert FusionNet.vectors == "fixed"
