"""BiLSTM-CRF: the loss and the decoding of the whole model, by enumeration of all label
sequences."""

from __future__ import annotations

import itertools
from functools import partial

import pytest
import torch
from torch import Tensor, nn

from architectures.tagging.bilstm_crf import BiLSTMCRF
from harness.problems.base import IGNORED
from harness.problems.tag import Tag, TagTarget
from tests.support.batches import assert_each_alone, random_texts, sentences
from tests.support.models import small
from tests.support.oracles import lstm
from tests.support.same import assert_same

LABELS = ["B-X", "I-X", "O"]
LENGTHS = [4, 2]

batch = partial(random_texts, LENGTHS, 1, 5)


def model() -> tuple[BiLSTMCRF, Tag]:
    """An encoder and its head with transition scores large enough to overrule emissions."""
    target = TagTarget()
    target.labels = LABELS
    encoder = small(BiLSTMCRF, 5, labels=3, hidden=4)
    head = Tag(encoder, target)
    for parameter in head.crf.parameters():
        nn.init.normal_(parameter)
    return encoder, head


def sequence_scores(head: Tag, emissions: Tensor) -> dict[tuple[int, ...], Tensor]:
    """Score of every label sequence for the emissions (T, L) of one sentence, added up term by
    term."""
    crf = head.crf
    found = {}
    for labels in itertools.product(range(3), repeat=len(emissions)):
        score = crf.start[labels[0]] + crf.end[labels[-1]] + sum(emissions[t, label] for t, label in enumerate(labels))
        found[labels] = score + sum(crf.transitions[a, b] for a, b in itertools.pairwise(labels))
    return found


def test_loss_is_minus_the_log_probability_of_the_gold_sequence_among_all_sequences():
    """A softmax per word, or a CRF without transitions, start or end scores, gives another
    number."""
    encoder, head = model()
    words, gold = batch(), torch.tensor([[0, 1, 2, 2], [2, 0, IGNORED, IGNORED]])
    loss = head.loss(encoder, head(encoder, {"text": words}), gold)
    emissions = encoder(words)
    expected = []
    for row, length in enumerate(LENGTHS):
        scores = sequence_scores(head, emissions[row, :length])
        expected.append(torch.stack(list(scores.values())).logsumexp(0) - scores[tuple(gold[row, :length].tolist())])
    assert_same(loss, torch.stack(expected).mean())


def test_decoding_finds_the_best_sequence_which_is_not_the_best_label_of_each_word():
    encoder, head = model()
    outputs = head(encoder, {"text": batch()})
    decoded = head.decode(encoder, outputs, *sentences(*LENGTHS))
    for row, length in enumerate(LENGTHS):
        scores = sequence_scores(head, outputs[0][row, :length])
        assert decoded[row] == [LABELS[label] for label in max(scores, key=scores.get)]
    alone = [
        [LABELS[label] for label in row[:length]]
        for row, length in zip(outputs[0].argmax(-1).tolist(), LENGTHS, strict=True)
    ]
    assert decoded != alone


@pytest.mark.parametrize("layers", [1, 2])
def test_emissions_are_linear_in_the_states_of_an_lstm_in_each_direction(layers):
    """An Elman network, one direction, or padding where right-to-left states begin would leave the
    CRF as it is and give other emissions."""
    encoder = small(BiLSTMCRF, 5, labels=3, hidden=4, layers=layers)
    recurrence, words = encoder.recurrence, batch()

    def written_out(vectors: Tensor) -> Tensor:
        for forwards, backwards in zip(recurrence.forwards, recurrence.backwards, strict=True):
            vectors = torch.cat([lstm(forwards, vectors), lstm(backwards, vectors.flip(0)).flip(0)], dim=1)
        return vectors @ encoder.emissions.weight.T + encoder.emissions.bias

    assert len(recurrence.forwards) == layers
    assert_each_alone(encoder(words), written_out, words, states=True)


def test_the_scheme_of_the_tagger_forbids_labels_that_break_it():
    """BIO as an option: I-X after O, or at the start, is never decoded."""
    target = TagTarget()
    target.labels = LABELS
    free, bound = (small(BiLSTMCRF, 5, labels=3, hidden=4, scheme=scheme) for scheme in ("", "BIO"))
    torch.manual_seed(3)
    texts = random_texts([7] * 20, 2, 5)
    for encoder, broken in ((free, True), (bound, False)):
        head = Tag(encoder, target)
        decoded = head.decode(encoder, head(encoder, {"text": texts}), *sentences(*[7] * 20))
        pairs = [pair for labels in decoded for pair in itertools.pairwise(["O", *labels])]
        assert (("O", "I-X") in pairs) == broken


def test_the_view_keeps_capitals():
    """Names show in them."""
    view = BiLSTMCRF.reads("text", {})
    view.fit([["Anna", "anna"]] * 2)
    assert {"Anna", "anna"} <= set(view.vocabulary.words)


def test_emissions_of_a_word_depend_on_both_sides_of_the_sentence():
    """A one-way LSTM would leave the first word's emissions alone when the last word changes."""
    encoder, _ = model()
    words = batch()
    vectors = words.vectors.clone().requires_grad_()
    emissions = encoder(words._replace(vectors=vectors))
    for word, other in ((0, 3), (3, 0)):
        (gradient,) = torch.autograd.grad(emissions[0, word].sum(), vectors, retain_graph=True)
        assert gradient[0, other].abs().max() > 0
