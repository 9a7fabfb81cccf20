"""BiLSTM-CNNs-CRF: where dropout acts, what spelling changes, and that labels are decoded as a
sequence."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from architectures.tagging.lstm_cnns_crf import BiLSTMCNNsCRF
from harness.layers.pair_crf import PairCRF
from harness.problems.tag import Tag, TagTarget
from harness.views.words_and_characters import WordCharacterBatch, WordsAndCharacters
from tests.support.batches import mask_of, poisoned, sentences
from tests.support.models import small
from tests.support.oracles import convolution, lstm
from tests.support.same import assert_same

SENTENCES = [["Anna", "saw", "x"], ["annas", "a"]]


def tagger_and_words(dropout: float = 0.0) -> tuple[BiLSTMCNNsCRF, WordCharacterBatch]:
    """A small tagger and both sentences; the words' own vectors are equal, so that only spelling
    tells them apart."""
    view = WordsAndCharacters(min_count=1)
    view.fit(SENTENCES)
    sizes = {"hidden": 4, "character_size": 6, "filters": 7}
    model = small(BiLSTMCNNsCRF, 5, labels=3, view=view, dropout=dropout, **sizes).train()
    words = view.collate(view.encode(SENTENCES), [0, 1])
    return model, words._replace(vectors=torch.ones(2, 3, 5))


def spelt(model: BiLSTMCNNsCRF, ids: Tensor) -> Tensor:
    """The vector of a word from its characters (n,): tanh of the filters over windows of three,
    with zeros around the word, and their maximum."""
    spelling = model.spelling
    windows = convolution(spelling.convolution, list(spelling.vectors.weight[ids]), left=2, right=2)
    return torch.stack([torch.tanh(window) for window in windows]).amax(0)


def test_scores_are_linear_in_a_bilstm_over_words_joined_to_their_spelling():
    """One direction, an Elman network, words or characters unread, or padding in a window or a
    state: each gives other scores."""
    model, words = tagger_and_words()
    words = words._replace(vectors=poisoned(torch.randn(2, 3, 5), mask_of([3, 2])))
    scores = model(words)
    for row, sentence in enumerate(SENTENCES):
        joined = torch.stack(
            [
                torch.cat([words.vectors[row, t], spelt(model, words.characters[row, t, : len(word)])])
                for t, word in enumerate(sentence)
            ]
        )
        forwards, backwards = model.recurrence.forwards[0], model.recurrence.backwards[0]
        states = torch.cat([lstm(forwards, joined), lstm(backwards, joined.flip(0)).flip(0)], dim=1)
        expected = states @ model.pairs.weight.T + model.pairs.bias
        assert_same(scores[row, : len(sentence)], expected)
    assert len(model.recurrence.forwards) == 1


def test_matrices_start_glorot_uniform_and_only_forget_gates_with_a_bias_of_one():
    """PyTorch's start has forget gates that are half shut, and layers of other sizes."""
    view = WordsAndCharacters(min_count=1)
    view.fit(SENTENCES)
    model = BiLSTMCNNsCRF(100, labels=50, view=view)
    assert len(model.recurrence.forwards + model.recurrence.backwards) == 2
    for layer in (*model.recurrence.forwards, *model.recurrence.backwards):
        bias = (layer.bias_ih_l0 + layer.bias_hh_l0).view(4, 200)
        assert bias.unique(dim=1).squeeze(1).tolist() == [0.0, 1.0, 0.0, 0.0]  # input, forget, cell, output
        for weight, read in ((layer.weight_ih_l0, 130), (layer.weight_hh_l0, 200)):
            uniform_within(weight, math.sqrt(6 / (read + 200)))
    uniform_within(model.pairs.weight, math.sqrt(6 / (400 + 51 * 50)))
    uniform_within(model.spelling.convolution.weight, math.sqrt(6 / (3 * 30 + 3 * 30)))
    assert not model.pairs.bias.any() and not model.spelling.convolution.bias.any()


def uniform_within(weight: Tensor, limit: float) -> None:
    """Assert that the numbers look drawn from between -limit and limit."""
    assert 0.97 * limit < weight.abs().max() <= limit
    assert abs(weight.std() * math.sqrt(3) / limit - 1) < 0.05


def test_words_with_equal_vectors_are_told_apart_by_their_characters():
    """Without the convolution all words here would look the same to the tagger."""
    model, words = tagger_and_words()
    respelt = words._replace(characters=words.characters.clone())
    respelt.characters[0, 0, 0] = words.characters[0, 1, 0]
    assert not torch.allclose(model(words)[0], model(respelt)[0])
    assert_same(model(words)[1], model(respelt)[1])


def test_dropout_acts_on_characters_and_on_input_and_output_of_the_bilstm():
    """With everything dropped, each stage must hand on nothing: the next stage's bias is all that
    is left."""
    model, words = tagger_and_words(dropout=1.0)
    model.train()
    seen: list[Tensor] = []
    model.recurrence.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    scores = model(words)
    assert_same(scores, model.pairs.bias.expand(2, 3, 12))
    assert not seen[0].any()
    spelt = model.spelling(words.characters[0], words.character_mask[0])
    assert_same(spelt, torch.tanh(model.spelling.convolution.bias).expand(3, 7))


def test_each_words_state_scores_each_label_behind_each_other_one():
    """The head gives this tagger a CRF over pairs: what a word's state says of one label behind
    another decides, and says nothing of the same label behind others."""
    model, words = tagger_and_words()
    target = TagTarget()
    target.labels = ["A", "B", "C"]
    head = Tag(model, target)
    assert isinstance(head.crf, PairCRF) and not list(head.crf.parameters())
    with torch.no_grad():
        model.pairs.weight.zero_()
        behind = model.pairs.bias.fill_(-100.0).view(4, 3)
        behind[3, 0] = behind[0, 1] = behind[1, 2] = 0.0  # A at the beginning, B behind A, C behind B
    decoded = head.decode(model, head(model, {"text": words}), *sentences(*map(len, SENTENCES)))
    assert decoded == [["A", "B", "C"], ["A", "B"]]
    gold = torch.tensor([[0, 1, 2], [0, 1, -100]])
    torch.testing.assert_close(head.loss(model, head(model, {"text": words}), gold), torch.zeros(()))
