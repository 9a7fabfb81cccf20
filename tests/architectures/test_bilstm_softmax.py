"""BiLSTM with independent softmax: states against torch's own bidirectional LSTM, loss and decoding
word by word."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor, nn

from architectures.tagging.bilstm_softmax import BiLSTMSoftmax
from harness.data.corpus import Batch
from harness.problems.heads import Tag
from harness.problems.targets import IGNORED, TagTarget
from tests.support.batches import random_texts

LENGTHS = [5, 2, 1]

batch = partial(random_texts, LENGTHS, 1, 4)


def model() -> tuple[BiLSTMSoftmax, Tag]:
    torch.manual_seed(0)
    target = TagTarget()
    target.labels = ["A", "B", "C"]
    encoder = BiLSTMSoftmax(width=4, labels=3, hidden=6)
    return encoder, Tag(encoder, target)


def alone(encoder: BiLSTMSoftmax, vectors: Tensor) -> Tensor:
    """Emissions (T, labels) of one sentence by torch's bidirectional LSTM with the encoder's
    weights."""
    lstm = nn.LSTM(4, 6, batch_first=True, bidirectional=True)
    with torch.no_grad():
        for name in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"):
            getattr(lstm, name).copy_(getattr(encoder.recurrence.forwards[0], name))
            getattr(lstm, name + "_reverse").copy_(getattr(encoder.recurrence.backwards[0], name))
    return lstm(vectors[None])[0][0] @ encoder.emissions.weight.T + encoder.emissions.bias


def test_scores_are_linear_in_the_states_of_both_directions():
    """Padding beside a sentence must not be where its right-to-left states begin."""
    encoder, _ = model()
    words = batch()
    emissions = encoder(words)
    for row, length in enumerate(LENGTHS):
        torch.testing.assert_close(emissions[row, :length], alone(encoder, words.vectors[row, :length]))


def test_the_loss_is_the_mean_over_real_words_of_their_own_softmax():
    """A chain over the labels, or padding that counts, gives another number."""
    encoder, head = model()
    words = batch()
    gold = torch.tensor([[0, 1, 2, 2, 1], [2, 0, *[IGNORED] * 3], [1, *[IGNORED] * 4]])
    losses = []
    for row, length in enumerate(LENGTHS):
        scores = encoder(words)[row, :length].exp()
        losses += [-(scores[t, gold[row, t]] / scores[t].sum()).log() for t in range(length)]
    torch.testing.assert_close(head.loss(encoder, head(encoder, {"text": words}), gold), torch.stack(losses).mean())


def test_each_word_gets_its_own_best_label():
    encoder, head = model()
    outputs = head(encoder, {"text": batch()})
    decoded = head.decode(encoder, outputs, Batch({}, None, None, 0), None)
    for row, length in enumerate(LENGTHS):
        assert decoded[row] == [
            "ABC"[max(range(3), key=outputs[0][row, t].tolist().__getitem__)] for t in range(length)
        ]
    assert head.crf is None
