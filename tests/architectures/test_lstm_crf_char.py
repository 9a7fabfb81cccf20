"""LSTM-CRF with characters: end states word by word, where dropout acts, and which words are
replaced by the unknown one."""

from __future__ import annotations

import torch
from torch import Tensor

from architectures.tagging.lstm_crf_char import LSTMCRFCharacters
from harness.problems.tag import Tag, TagTarget
from harness.views.words_and_characters import WordCharacterBatch, WordsAndCharacters
from tests.support.models import small
from tests.support.oracles import lstm, recurrent

SENTENCES = [["Anna", "saw", "x", "saw"], ["Annas", "x"]]
ONCE = torch.tensor([[True, False, False, False], [True, False, False, False]])
"""Anna and Annas are seen once, the other words twice."""


def tagger_and_words(**options) -> tuple[LSTMCRFCharacters, WordCharacterBatch]:
    """A small tagger in training, and both sentences with the words' vectors all ones."""
    view = LSTMCRFCharacters.reads("text", {})
    view.fit(SENTENCES)
    sizes = {"hidden": 4, "character_size": 6, "character_hidden": 3}
    model = small(LSTMCRFCharacters, 5, labels=3, view=view, stretch=None, **sizes | options)
    words = view.collate(view.encode(SENTENCES), [0, 1])
    return model.train(), words._replace(vectors=torch.ones(2, 4, 5))


def test_a_word_is_spelt_by_the_end_states_of_both_directions():
    """States at padding, or of the wrong end, would tie a word to the longest word of its batch."""
    model, words = tagger_and_words()
    spelling = model.spelling
    found = spelling(words.characters.flatten(0, 1), words.character_mask.flatten(0, 1)).unflatten(0, (2, 4))
    for row, sentence in enumerate(SENTENCES):
        for place, word in enumerate(sentence):
            vectors = spelling.vectors.weight[words.characters[row, place, : len(word)]]
            forwards = lstm(spelling.recurrence.forwards[0], vectors)
            backwards = lstm(spelling.recurrence.backwards[0], vectors.flip(0))
            torch.testing.assert_close(found[row, place], torch.cat([forwards[-1], backwards[-1]]))


def test_scores_come_from_joined_vectors_through_bilstm_and_tanh_layer():
    model, words = tagger_and_words()
    model.eval()
    spelt = model.spelling(words.characters[1, :2], words.character_mask[1, :2])
    joined = torch.cat([words.vectors[1, :2], spelt], dim=1)
    hidden = torch.tanh(recurrent(model.recurrence, joined) @ model.hidden.weight.T + model.hidden.bias)
    expected = hidden @ model.emissions.weight.T + model.emissions.bias
    torch.testing.assert_close(model(words)[1, :2], expected)


def test_dropout_acts_on_the_join_and_not_on_characters():
    model, words = tagger_and_words(dropout=1.0, unknown_rate=0.0)
    seen: dict[str, Tensor] = {}
    model.recurrence.register_forward_pre_hook(lambda module, inputs: seen.update(joined=inputs[0]))
    model.spelling.register_forward_hook(lambda module, inputs, output: seen.update(spelt=output))
    dropped = model(words)
    assert not seen["joined"].any()
    spelt = seen["spelt"]
    model.eval()(words)
    torch.testing.assert_close(seen["spelt"], spelt)
    torch.testing.assert_close(seen["joined"][..., 5:].flatten(0, 1), spelt)
    assert not torch.allclose(model(words), dropped)


def test_words_seen_once_are_replaced_in_training_and_no_others():
    model, words = tagger_and_words(unknown_rate=1.0)
    expected = torch.where(ONCE[..., None], model.unknown, words.vectors)
    torch.testing.assert_close(model.known(words)[words.mask], expected[words.mask])
    torch.testing.assert_close(model.eval().known(words)[words.mask], words.vectors[words.mask])


def test_about_half_of_them_are_replaced_each_time_anew():
    model, words = tagger_and_words()
    torch.manual_seed(0)
    replaced = torch.stack([(model.known(words) != 1).all(-1)[0, 0] for _ in range(200)])
    assert 70 < replaced.sum() < 130


def test_a_replaced_word_keeps_its_characters_and_trains_the_unknown_words_vector():
    model, words = tagger_and_words(unknown_rate=1.0, dropout=0.0)
    emissions = model(words)
    assert not torch.allclose(emissions[0, 0], emissions[1, 0])
    emissions.sum().backward()
    assert model.unknown.grad.any()


def test_a_word_that_training_never_showed_gets_the_trained_unknown_vector():
    """The word table's own row of the unknown word never trains, as every training word has a
    row."""
    model, words = tagger_and_words()
    model.eval()
    strange = words._replace(ids=words.ids.clone())
    strange.ids[0, 1] = 1
    torch.testing.assert_close(model.known(strange)[0, 1], model.unknown)
    torch.testing.assert_close(model.known(strange)[0, 0], words.vectors[0, 0])


def test_the_view_gives_words_seen_once_an_id_in_their_own_case():
    """With the usual limit of two they would always be unknown, and nothing would be left to
    replace at random."""
    view = LSTMCRFCharacters.reads("text", {})
    assert isinstance(view, WordsAndCharacters)
    view.fit(SENTENCES)
    assert {"Anna", "Annas"} <= set(view.vocabulary.words) and "anna" not in view.vocabulary.words


def test_labels_are_decoded_as_a_sequence():
    """The head gives this tagger a CRF: a transition that is forbidden in effect never appears."""
    model, words = tagger_and_words()
    target = TagTarget()
    target.labels = ["A", "B", "C"]
    head = Tag(model, target)
    with torch.no_grad():
        head.crf.transitions.fill_(-100.0)
        head.crf.transitions[0, 1] = head.crf.transitions[1, 2] = head.crf.transitions[2, 0] = 0.0
    decoded = head.decode(model, head(model, {"text": words}), None, None)
    assert "".join(decoded[0]) in "ABCABCABC" and "".join(decoded[1]) in "ABCABC"
