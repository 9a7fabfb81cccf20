"""LSTM-CRF with characters: end states word by word, where dropout acts, and which words are
replaced by the unknown one."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from architectures.tagging.lstm_crf_char import CoupledBiLSTM, CoupledLSTM, LSTMCRFCharacters
from harness.problems.tag import Tag, TagTarget
from harness.views.words_and_characters import WordCharacterBatch, WordsAndCharacters
from tests.support.batches import assert_each_alone, random_vectors, sentences
from tests.support.models import small
from tests.support.recurrent import coupled
from tests.support.same import assert_same

SENTENCES = [["Anna", "saw", "x", "saw"], ["Annas", "x"]]
ONCE = torch.tensor([[True, False, False, False], [True, False, False, False]])
"""Anna and Annas are seen once, the other words twice."""


def tagger_and_words(**options) -> tuple[LSTMCRFCharacters, WordCharacterBatch]:
    """A small tagger in training, and both sentences with the words' vectors all ones."""
    view = LSTMCRFCharacters.reads("text", {})
    view.fit(SENTENCES)
    sizes = {"hidden": 4, "character_size": 6, "character_hidden": 3}
    model = small(LSTMCRFCharacters, 5, labels=3, view=view, **{"stretch": None} | sizes | options)
    words = view.collate(view.encode(SENTENCES), [0, 1])
    return model.train(), words._replace(vectors=torch.ones(2, 4, 5))


def both_ways(recurrence: CoupledBiLSTM, vectors: Tensor) -> Tensor:
    """States (n, 2 * hidden) of both directions."""
    backwards = coupled(recurrence.backwards, vectors.flip(0)).flip(0)
    return torch.cat([coupled(recurrence.forwards, vectors), backwards], dim=1)


def test_the_cell_couples_its_gates_reads_itself_and_starts_where_it_has_learnt():
    """A forget gate of its own, gates that do not read the cell, an output gate that reads the cell
    before, or a start at zero: each is another cell than the authors'. Padding reaches no state."""
    model = small(CoupledBiLSTM, 3, 4)
    vectors, mask = random_vectors([6, 1, 4], 1, 3)
    assert_each_alone(model(vectors, mask), lambda text: both_ways(model, text), (vectors, mask), states=True)


def test_two_steps_of_the_cell_worked_by_hand():
    """One unit, all numbers written out."""
    layer = CoupledLSTM(1, 1)
    with torch.no_grad():
        layer.from_input.weight.copy_(torch.tensor([[0.5], [1.0], [-1.0]]))
        layer.from_state.weight.copy_(torch.tensor([[0.3], [-0.7], [0.9]]))
        layer.from_input.bias.copy_(torch.tensor([0.1, 0.2, -0.3]))
        layer.input_peephole.weight.fill_(1.5)
        layer.output_peephole.weight.fill_(-2.0)
        layer.first_state.fill_(0.4)
        layer.first_cell.fill_(-0.6)
    h, c, expected = 0.4, -0.6, []
    for x in (2.0, -1.0):
        i = 1 / (1 + math.exp(-(0.5 * x + 0.3 * h + 1.5 * c + 0.1)))
        c = (1 - i) * c + i * math.tanh(x - 0.7 * h + 0.2)
        h = math.tanh(c) / (1 + math.exp(-(-x + 0.9 * h - 2.0 * c - 0.3)))
        expected.append(h)
    torch.testing.assert_close(layer(torch.tensor([[[2.0], [-1.0]]])).flatten(), torch.tensor(expected))


def test_matrices_start_glorot_uniform_gate_by_gate_and_vectors_at_zero():
    """The start of the authors' code; a matrix of three gates that is drawn as one starts too
    small."""
    view = LSTMCRFCharacters.reads("text", {})
    view.fit(SENTENCES)
    model = LSTMCRFCharacters(100, labels=60, view=view)
    layer = model.recurrence.forwards
    for weights, read in ((layer.from_input.weight, 150), (layer.from_state.weight, 100)):
        for gate in weights.chunk(3):
            uniform_within(gate, math.sqrt(6 / (read + 100)))
    for matrix in (layer.input_peephole.weight, layer.output_peephole.weight):
        uniform_within(matrix, math.sqrt(6 / 200))
    uniform_within(model.hidden.weight, math.sqrt(6 / 300))
    uniform_within(model.emissions.weight, math.sqrt(6 / 160))
    uniform_within(model.spelling.vectors.weight[1:], math.sqrt(6 / (view.alphabet_size + 25)), whole=False)
    for part in (layer.from_input, model.hidden, model.emissions):
        assert not part.bias.any()
    assert not layer.first_state.any() and not layer.first_cell.any()


def uniform_within(weight: Tensor, limit: float, whole: bool = True) -> None:
    """Assert that the numbers look drawn from between -limit and limit; few numbers (not ``whole``)
    only about so."""
    assert (0.97 if whole else 0.9) * limit < weight.abs().max() <= limit
    assert abs(weight.std() * math.sqrt(3) / limit - 1) < (0.05 if whole else 0.2)


def test_the_first_state_and_cell_of_both_recurrences_are_learnt():
    """A start that no gradient reaches stays at zero."""
    model, words = tagger_and_words()
    model(words).pow(2).sum().backward()
    for recurrence in (model.recurrence, model.spelling.recurrence):
        for layer in (recurrence.forwards, recurrence.backwards):
            assert layer.first_state.grad.any() and layer.first_cell.grad.any()


def test_a_word_is_spelt_by_the_end_states_of_both_directions():
    """States at padding, or of the wrong end, would tie a word to the longest word of its batch."""
    model, words = tagger_and_words()
    spelling = model.spelling
    found = spelling(words.characters.flatten(0, 1), words.character_mask.flatten(0, 1)).unflatten(0, (2, 4))
    for row, sentence in enumerate(SENTENCES):
        for place, word in enumerate(sentence):
            vectors = spelling.vectors.weight[words.characters[row, place, : len(word)]]
            forwards = coupled(spelling.recurrence.forwards, vectors)
            backwards = coupled(spelling.recurrence.backwards, vectors.flip(0))
            assert_same(found[row, place], torch.cat([forwards[-1], backwards[-1]]))


@pytest.mark.parametrize("row", [0, 1])
def test_scores_come_from_joined_vectors_through_bilstm_and_tanh_layer(row):
    """Words or characters unread, one direction, or no tanh layer give other scores."""
    model, words = tagger_and_words(stretch=3.0)
    model.eval()
    words = words._replace(vectors=torch.randn(2, 4, 5))
    sentence = SENTENCES[row]
    joined = []
    for place, word in enumerate(sentence):
        vectors = model.spelling.vectors.weight[words.characters[row, place, : len(word)]]
        recurrence = model.spelling.recurrence
        ends = coupled(recurrence.forwards, vectors)[-1], coupled(recurrence.backwards, vectors.flip(0))[-1]
        joined.append(torch.cat([words.vectors[row, place], *ends]))
    states = both_ways(model.recurrence, torch.stack(joined))
    hidden = torch.tanh(states @ model.hidden.weight.T + model.hidden.bias)
    expected = hidden @ model.emissions.weight.T + model.emissions.bias
    assert_same(model(words)[row, : len(sentence)], expected)


def test_dropout_acts_on_the_join_and_not_on_characters():
    model, words = tagger_and_words(dropout=1.0, unknown_rate=0.0)
    seen: dict[str, Tensor] = {}
    model.recurrence.register_forward_pre_hook(lambda module, inputs: seen.update(joined=inputs[0]))
    model.spelling.register_forward_hook(lambda module, inputs, output: seen.update(spelt=output))
    dropped = model(words)
    assert not seen["joined"].any()
    spelt = seen["spelt"]
    model.eval()(words)
    assert_same(seen["spelt"], spelt)
    assert_same(seen["joined"][..., 5:].flatten(0, 1), spelt)
    assert not torch.allclose(model(words), dropped)


def test_words_seen_once_are_replaced_in_training_and_no_others():
    model, words = tagger_and_words(unknown_rate=1.0)
    expected = torch.where(ONCE[..., None], model.unknown, words.vectors)
    assert_same(model.known(words)[words.mask], expected[words.mask])
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
    assert_same(model.known(strange)[0, 1], model.unknown)
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
    decoded = head.decode(model, head(model, {"text": words}), *sentences(*map(len, SENTENCES)))
    assert "".join(decoded[0]) in "ABCABCABC" and "".join(decoded[1]) in "ABCABC"
