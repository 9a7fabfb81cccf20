"""The mechanism of the hierarchical attention network: words attend within their sentence,
sentences within their document."""

from __future__ import annotations

from functools import partial

import torch

from architectures.attention.han import ContextAttention, HierarchicalAttention, Level
from harness.views.sentences import SentenceBatch
from tests.support.batches import random_documents
from tests.support.models import small
from tests.support.oracles import recurrent, softmax_mean

WIDTH = 3
DOCUMENTS = [[4, 1, 2], [5], [2, 3]]
"""Words of each sentence of each document."""

documents = partial(random_documents, DOCUMENTS, 1, WIDTH)


model_of = partial(small, HierarchicalAttention, WIDTH, hidden=2, context=5)


def level_of(level: Level, vectors: torch.Tensor) -> torch.Tensor:
    """One vector from vectors (n, width) by a bidirectional GRU and attention."""
    states = recurrent(level.recurrence, vectors)
    scores = [torch.tanh(level.attention.hidden(state)) @ level.attention.context for state in states]
    return softmax_mean(scores, states)


def test_a_document_is_read_sentence_by_sentence_and_then_as_sentences():
    """Against documents read alone and without padding."""
    model = model_of()
    batch, sentences = documents()
    found = model(batch)
    for vector, document in zip(found, sentences, strict=True):
        expected = level_of(model.sentences, torch.stack([level_of(model.words, sentence) for sentence in document]))
        torch.testing.assert_close(vector, expected)


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
