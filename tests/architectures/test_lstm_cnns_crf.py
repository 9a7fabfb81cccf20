"""BiLSTM-CNNs-CRF: character convolution by brute force, where dropout acts, and what spelling changes."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from architectures.tagging.lstm_cnns_crf import BiLSTMCNNsCRF, CharacterConvolution
from harness.heads import Tag
from harness.targets import TagTarget
from harness.views.words_and_characters import WordCharacterBatch, WordsAndCharacters

SENTENCES = [["Anna", "saw", "x"], ["annas", "a"]]


def tagger_and_words(dropout: float = 0.0) -> tuple[BiLSTMCNNsCRF, WordCharacterBatch]:
    """A small tagger and both sentences; the words' own vectors are equal, so that only spelling tells them apart."""
    torch.manual_seed(0)
    view = WordsAndCharacters(min_count=1)
    view.fit(SENTENCES)
    model = BiLSTMCNNsCRF(width=5, labels=3, view=view, hidden=4, character_size=6, filters=7, dropout=dropout)
    words = view.collate(view.encode(SENTENCES), [0, 1])
    return model, words._replace(vectors=torch.ones(2, 3, 5))


def by_hand(spelling: CharacterConvolution, ids: list[int]) -> Tensor:
    """tanh of the largest value of each filter over all windows of 3 that hold a character of the word."""
    weight, bias = spelling.convolution.weight, spelling.convolution.bias
    zero = torch.zeros(spelling.vectors.embedding_dim)
    padded = [zero, zero, *(spelling.vectors.weight[id] for id in ids), zero, zero]
    windows = [torch.stack(padded[start : start + 3], dim=1) for start in range(len(ids) + 2)]
    return torch.stack([torch.tanh((weight * window).sum((1, 2)) + bias) for window in windows]).amax(0)


def test_spelling_vectors_are_the_maximum_over_the_windows_of_the_word_alone():
    """Padding that takes part in the maximum would tie a word's vector to the longest word of its batch."""
    model, words = tagger_and_words()
    model.spelling.convolution.bias.data -= 2  # beside this, a window of padding alone would win
    model.spelling.convolution.bias.data[0] += 4
    found = model.spelling(words.characters.flatten(0, 1), words.character_mask.flatten(0, 1)).unflatten(0, (2, 3))
    for row, sentence in enumerate(SENTENCES):
        for place in range(len(sentence)):
            ids = words.characters[row, place][words.character_mask[row, place]].tolist()
            assert len(ids) == len(sentence[place])
            torch.testing.assert_close(found[row, place], by_hand(model.spelling, ids))


def test_words_with_equal_vectors_are_told_apart_by_their_characters():
    """Without the convolution all words here would look the same to the tagger."""
    model, words = tagger_and_words()
    respelt = words._replace(characters=words.characters.clone())
    respelt.characters[0, 0, 0] = words.characters[0, 1, 0]
    assert not torch.allclose(model(words)[0], model(respelt)[0])
    torch.testing.assert_close(model(words)[1], model(respelt)[1])


def test_dropout_acts_on_characters_and_on_input_and_output_of_the_bilstm():
    """With everything dropped, each stage must hand on nothing: the next stage's bias is all that is left."""
    model, words = tagger_and_words(dropout=1.0)
    model.train()
    seen: list[Tensor] = []
    model.recurrence.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    emissions = model(words)
    torch.testing.assert_close(emissions, model.emissions.bias.expand(2, 3, 3))
    assert not seen[0].any()
    spelt = model.spelling(words.characters[0], words.character_mask[0])
    torch.testing.assert_close(spelt, torch.tanh(model.spelling.convolution.bias).expand(3, 7))


def test_character_vectors_start_uniform_within_the_papers_bound_and_padding_is_zero():
    spelling = CharacterConvolution(alphabet=500, size=30, filters=30, window=3, dropout=0.5)
    weight, limit = spelling.vectors.weight, math.sqrt(3 / 30)
    assert not weight[0].any()
    assert limit * 0.99 < weight.abs().max() <= limit
    assert abs(weight[1:].std().item() - limit / math.sqrt(3)) < 0.01  # of a uniform distribution


def test_labels_are_decoded_as_a_sequence():
    """The head gives this tagger a CRF: a transition that is forbidden in effect never appears."""
    model, words = tagger_and_words()
    target = TagTarget()
    target.labels = ["A", "B", "C"]
    head = Tag(model, target)
    assert isinstance(head.crf, nn.Module)
    with torch.no_grad():
        head.crf.transitions.fill_(-100.0)
        head.crf.transitions[0, 1] = head.crf.transitions[1, 2] = 0.0
    assert head.decode(model, head(model, {"text": words}), None, None)[0] == ["A", "B", "C"]
