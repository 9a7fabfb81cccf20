"""BiLSTM-CNNs-CRF: where dropout acts, what spelling changes, and that labels are decoded as a
sequence."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from architectures.tagging.lstm_cnns_crf import BiLSTMCNNsCRF
from harness.problems.tag import Tag, TagTarget
from harness.views.words_and_characters import WordCharacterBatch, WordsAndCharacters
from tests.support.models import small

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


def test_words_with_equal_vectors_are_told_apart_by_their_characters():
    """Without the convolution all words here would look the same to the tagger."""
    model, words = tagger_and_words()
    respelt = words._replace(characters=words.characters.clone())
    respelt.characters[0, 0, 0] = words.characters[0, 1, 0]
    assert not torch.allclose(model(words)[0], model(respelt)[0])
    torch.testing.assert_close(model(words)[1], model(respelt)[1])


def test_dropout_acts_on_characters_and_on_input_and_output_of_the_bilstm():
    """With everything dropped, each stage must hand on nothing: the next stage's bias is all that
    is left."""
    model, words = tagger_and_words(dropout=1.0)
    model.train()
    seen: list[Tensor] = []
    model.recurrence.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    emissions = model(words)
    torch.testing.assert_close(emissions, model.emissions.bias.expand(2, 3, 3))
    assert not seen[0].any()
    spelt = model.spelling(words.characters[0], words.character_mask[0])
    torch.testing.assert_close(spelt, torch.tanh(model.spelling.convolution.bias).expand(3, 7))


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
