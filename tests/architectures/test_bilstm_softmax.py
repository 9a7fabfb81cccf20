"""BiLSTM with independent softmax: states against torch's own bidirectional LSTM, loss and decoding
word by word."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from architectures.tagging.bilstm_softmax import BiLSTMSoftmax
from harness.problems.base import IGNORED
from harness.problems.tag import Tag, TagTarget
from tests.support.batches import assert_each_alone, random_texts, sentences
from tests.support.models import small
from tests.support.oracles import lstm
from tests.support.same import assert_same

LENGTHS = [5, 2, 1]

batch = partial(random_texts, LENGTHS, 1, 4)


def model() -> tuple[BiLSTMSoftmax, Tag]:
    target = TagTarget()
    target.labels = ["A", "B", "C"]
    encoder = small(BiLSTMSoftmax, 4, labels=3, hidden=6)
    return encoder, Tag(encoder, target)


def both_ways(encoder: BiLSTMSoftmax, vectors: Tensor) -> Tensor:
    """States (T, 2 * hidden) of an LSTM in each direction."""
    recurrence = encoder.recurrence
    backwards = lstm(recurrence.backwards[0], vectors.flip(0)).flip(0)
    return torch.cat([lstm(recurrence.forwards[0], vectors), backwards], dim=1)


def written_out(encoder: BiLSTMSoftmax, vectors: Tensor) -> Tensor:
    """Emissions (T, labels) of one sentence."""
    return both_ways(encoder, vectors) @ encoder.emissions.weight.T + encoder.emissions.bias


def test_scores_are_linear_in_the_states_of_both_directions():
    """Padding beside a sentence must not be where its right-to-left states begin."""
    encoder, _ = model()
    sentences = batch()
    assert_each_alone(encoder(sentences), partial(written_out, encoder), sentences, states=True)


def test_layers_are_stacked():
    """Two layers that ran as one would be another row under the name of the deeper."""
    encoder = small(BiLSTMSoftmax, 4, labels=3, hidden=6, layers=2)
    recurrence, words = encoder.recurrence, batch()

    def two_layers(vectors: Tensor) -> Tensor:
        for forwards, backwards in zip(recurrence.forwards, recurrence.backwards, strict=True):
            vectors = torch.cat([lstm(forwards, vectors), lstm(backwards, vectors.flip(0)).flip(0)], dim=1)
        return vectors @ encoder.emissions.weight.T + encoder.emissions.bias

    assert len(recurrence.forwards) == 2
    assert_each_alone(encoder(words), two_layers, words, states=True)


def test_the_view_keeps_capitals():
    """Names and parts of speech show in them."""
    view = BiLSTMSoftmax.reads("text", {})
    view.fit([["Anna", "anna"]] * 2)
    assert {"Anna", "anna"} <= set(view.vocabulary.words)


def test_the_loss_is_the_mean_over_real_words_of_their_own_softmax():
    """A chain over the labels, or padding that counts, gives another number."""
    encoder, head = model()
    words = batch()
    gold = torch.tensor([[0, 1, 2, 2, 1], [2, 0, *[IGNORED] * 3], [1, *[IGNORED] * 4]])
    losses = []
    for row, length in enumerate(LENGTHS):
        scores = encoder(words)[row, :length].exp()
        losses += [-(scores[t, gold[row, t]] / scores[t].sum()).log() for t in range(length)]
    assert_same(head.loss(encoder, head(encoder, {"text": words}), gold), torch.stack(losses).mean())


def test_each_word_gets_its_own_best_label():
    encoder, head = model()
    outputs = head(encoder, {"text": batch()})
    decoded = head.decode(encoder, outputs, *sentences(*LENGTHS))
    for row, length in enumerate(LENGTHS):
        assert decoded[row] == [
            "ABC"[max(range(3), key=outputs[0][row, t].tolist().__getitem__)] for t in range(length)
        ]
    assert head.crf is None
