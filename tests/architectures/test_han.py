"""The mechanism of the hierarchical attention network: words attend within their sentence,
sentences within their document."""

from __future__ import annotations

from functools import partial

import numpy as np
import torch

from architectures.attention.han import ContextAttention, HierarchicalAttention, Level
from harness import registry
from harness.views.sentences import SentenceBatch
from tests.support.batches import random_documents
from tests.support.models import small
from tests.support.oracles import gru, softmax_mean
from tests.support.same import assert_same

WIDTH = 3
DOCUMENTS = [[4, 1, 2], [5], [2, 3]]
"""Words of each sentence of each document."""

documents = partial(random_documents, DOCUMENTS, 1, WIDTH)


model_of = partial(small, HierarchicalAttention, WIDTH, hidden=2, context=5)


def states_of(level: Level, vectors: torch.Tensor) -> torch.Tensor:
    """States of the GRU's two directions over one text, side by side."""
    (left,), (right,) = level.recurrence.forwards, level.recurrence.backwards
    return torch.cat([gru(left, vectors), gru(right, vectors.flip(0)).flip(0)], dim=1)


def level_of(level: Level, vectors: torch.Tensor) -> torch.Tensor:
    """One vector from vectors (n, width) by a bidirectional GRU and attention."""
    states = states_of(level, vectors)
    hidden, context = level.attention.hidden, level.attention.context
    scores = [torch.tanh(hidden.weight @ state + hidden.bias) @ context for state in states]
    return softmax_mean(scores, states)


def test_a_document_is_read_sentence_by_sentence_and_then_as_sentences():
    """Against documents read alone and without padding."""
    model = model_of()
    batch, sentences = documents()
    found = model(batch)
    for vector, document in zip(found, sentences, strict=True):
        expected = level_of(model.sentences, torch.stack([level_of(model.words, sentence) for sentence in document]))
        assert_same(vector, expected)


def test_a_gru_of_the_papers_equations_is_one_whose_second_bias_is_zero():
    """r resets what the recurrent matrix gives, tanh(W x + r * (U h) + b), as in the paper: this is
    why the row declares a bias and not another GRU."""
    level = model_of().words
    layer, states = level.recurrence.forwards[0], []
    with torch.no_grad():
        layer.bias_hh_l0.zero_()
    w, u, b = layer.weight_ih_l0.chunk(3), layer.weight_hh_l0.chunk(3), layer.bias_ih_l0.chunk(3)
    h, words = torch.zeros(2), torch.randn(5, WIDTH)
    for x in words:
        r, z = (torch.sigmoid(w[k] @ x + u[k] @ h + b[k]) for k in (0, 1))
        h = (1 - z) * torch.tanh(w[2] @ x + r * (u[2] @ h) + b[2]) + z * h
        states.append(h)
    found = level.recurrence(words[None], torch.ones(1, 5, dtype=torch.bool))[0, :, :2]
    torch.testing.assert_close(found, torch.stack(states))


def test_long_documents_end_where_the_row_says():
    """30 sentences of 60 words: another cut is another input, which the row would not tell."""
    cls = registry.load(registry.entry("architectures", "han"))
    view = cls.reads("text", {})
    view.fit(texts := [("word " * 70 + "end. ") * 40])
    batch = view.collate(view.encode(texts), np.arange(1))
    assert batch.mask.shape == (1, 30, 60) and batch.mask.all()


def test_a_context_vector_starts_small():
    """A strong one would pick a word of each sentence before anything is learned; none at all would
    stand still beside tanh(0)."""
    context = Level(3, 2, 4000).attention.context
    assert len(context) == 4000 and 0.095 < context.std() < 0.105


def test_the_levels_have_parameters_of_their_own():
    model = model_of()
    assert not {id(p) for p in model.words.parameters()} & {id(p) for p in model.sentences.parameters()}
    model(documents()[0]).sum().backward()
    assert all(parameter.grad.any() for parameter in model.parameters())


def test_attention_weights_sum_to_one_over_a_sentences_own_words():
    torch.manual_seed(0)
    attention = ContextAttention(4, 5)
    mask = torch.tensor([[True, True, True], [True, False, False], [False, False, False]])
    weights = attention.weights(torch.randn(3, 3, 4), mask)
    torch.testing.assert_close(weights.sum(1), torch.tensor([1.0, 1.0, 0.0]))
    assert weights[1].tolist() == [1.0, 0.0, 0.0]


def test_the_context_vector_decides_which_words_count():
    """A context of zeros gives the mean, a strong one picks a word."""
    attention = ContextAttention(2, 2)
    states, mask = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [9.0, 9.0]]]), torch.tensor([[True, True, False]])
    with torch.no_grad():
        attention.hidden.weight.copy_(torch.eye(2))
        attention.hidden.bias.zero_()
        attention.context.zero_()
        assert attention(states, mask).tolist() == [[0.5, 0.5]]
        attention.context.copy_(torch.tensor([100.0, 0.0]))
        torch.testing.assert_close(attention(states, mask), torch.tensor([[1.0, 0.0]]))


def test_where_a_sentence_ends_changes_the_document():
    """A network that read all words as one sequence would not see it."""
    model, words = model_of(), torch.randn(6, WIDTH)

    def document(*shape: int) -> torch.Tensor:
        mask = torch.ones(1, *shape, dtype=torch.bool)
        return model(SentenceBatch(mask.long(), mask, mask.any(-1), words.view(1, *shape, WIDTH)))

    assert not torch.allclose(document(1, 6), document(2, 3), atol=1e-3)
    assert not torch.allclose(document(3, 2), document(2, 3), atol=1e-3)
