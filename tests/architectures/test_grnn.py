"""The mechanism of Conv-GRNN and LSTM-GRNN: a vector per sentence, a recurrence with two gates over
them, the mean of its states."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
import torch
from torch import Tensor

from architectures.hybrid.grnn import ConvolutionalSentence, GatedRecurrence, GatedRNN
from harness import registry
from harness.views.sentences import SentenceBatch
from tests.support.batches import mask_of, random_documents
from tests.support.models import small
from tests.support.oracles import lstm
from tests.support.same import assert_same

WIDTH = 3
DOCUMENTS = [[4, 1, 2], [5], [2, 3]]
"""Words of each sentence of each document."""

documents = partial(random_documents, DOCUMENTS, 1, WIDTH)


model_of = partial(small, GatedRNN, WIDTH, hidden=4)


@pytest.mark.parametrize("id", ["grnn_conv", "grnn_lstm"])
def test_long_documents_end_where_the_row_says(id):
    """30 sentences of 60 words: another cut is another input, which the row would not tell."""
    view = registry.load(registry.entry("architectures", id)).reads("text", {})
    view.fit(texts := [("word " * 70 + "end. ") * 40])
    batch = view.collate(view.encode(texts), np.arange(1))
    assert batch.mask.shape == (1, 30, 60) and batch.mask.all()


def convolved(model: ConvolutionalSentence, sentence: Tensor) -> Tensor:
    """One sentence's vector: filters window by window, their mean, tanh, and the mean of the three
    widths."""
    vectors = []
    for bank, window in zip(model.banks, (1, 2, 3), strict=True):
        words = torch.cat([sentence, torch.zeros(max(0, window - len(sentence)), WIDTH)])
        maps = [
            bank.filters.weight @ words[i : i + window].flatten() + bank.filters.bias
            for i in range(len(words) - window + 1)
        ]
        vectors.append(torch.tanh(sum(maps) / len(maps)))
    return sum(vectors) / 3


def states_of(recurrence: GatedRecurrence, sentences: list[Tensor]) -> list[Tensor]:
    """The states of one document, gate by gate."""
    read, past, bias = (
        part.chunk(3) for part in (recurrence.sentence.weight, recurrence.past.weight, recurrence.sentence.bias)
    )
    state, states = torch.zeros(len(bias[0])), []
    for sentence in sentences:
        i, f, g = (read[k] @ sentence + past[k] @ state + bias[k] for k in range(3))
        state = torch.tanh(torch.sigmoid(i) * torch.tanh(g) + torch.sigmoid(f) * state)
        states.append(state)
    return states


@pytest.mark.parametrize("sentence", ["conv", "lstm"])
def test_a_batch_is_each_document_written_out_sentence_by_sentence(sentence):
    """Sentences shorter than a window, padding at both levels, and the last or summed state in
    place of the mean would show here."""
    model = model_of(sentence=sentence)
    batch, texts = documents()
    for vector, document in zip(model(batch), texts, strict=True):
        if sentence == "conv":
            vectors = [convolved(model.sentence, words) for words in document]
        else:
            vectors = [lstm(model.sentence.recurrence.forwards[0], words)[-1] for words in document]
        states = states_of(model.document, vectors)
        assert_same(vector, sum(states) / len(states))


def test_one_unit_worked_by_hand():
    """Its tanh stands outside the sum, and it has no output gate."""
    recurrence = GatedRecurrence(1, 1)
    with torch.no_grad():
        recurrence.sentence.weight.copy_(
            torch.tensor([[100.0], [100.0], [0.5]])
        )  # both gates open for a positive sentence
        recurrence.sentence.bias.zero_()
        recurrence.past.weight.copy_(torch.tensor([[0.0], [0.0], [2.0]]))
        states = recurrence(torch.tensor([[[1.0], [0.4]]])).flatten()
    first = math.tanh(math.tanh(0.5))
    second = math.tanh(math.tanh(0.2 + 2 * first) + first)
    torch.testing.assert_close(states, torch.tensor([first, second]))


def test_only_filters_of_several_words_see_their_order():
    model, words = model_of(sentence="conv").sentence, torch.randn(1, 5, WIDTH)
    mask, shuffled = mask_of([5]), words[:, [3, 1, 4, 0, 2]]
    same = [torch.allclose(bank(words, mask), bank(shuffled, mask), atol=1e-5) for bank in model.banks]
    assert same == [True, False, False]


def test_a_documents_sentences_have_an_order():
    model, words = model_of(sentence="conv"), torch.randn(1, 3, 4, WIDTH)
    mask = torch.ones(1, 3, 4, dtype=torch.bool)

    def vector(vectors: Tensor) -> Tensor:
        return model(SentenceBatch(mask.long(), mask, mask.any(-1), vectors))

    assert not torch.allclose(vector(words), vector(words.flip(1)), atol=1e-3)


def test_both_names_differ_in_how_sentences_are_read():
    """By what they make of a sentence: a name that stood for the other would be one row twice."""
    words = torch.randn(1, 5, WIDTH)
    expected = {
        "grnn_conv": lambda sentence: convolved(sentence, words[0]),
        "grnn_lstm": lambda sentence: lstm(sentence.recurrence.forwards[0], words[0])[-1],
    }
    for id, written_out in expected.items():
        entry = registry.entry("architectures", id)
        model = small(registry.load(entry), WIDTH, hidden=4, **entry.hyperparameters)
        assert_same(model.sentence(words, mask_of([5]))[0], written_out(model.sentence))
    with pytest.raises(ValueError, match="none of conv, lstm"):
        GatedRNN(WIDTH, sentence="cnn")
