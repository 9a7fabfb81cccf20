"""Skip-Thought: two decoders in loops, every gate of which sees the sentence, over sentences that a
loop finds beside one another in their text; and features that stay."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from architectures.unsupervised.skip_thought import SentencesBeside, SkipThought
from harness import registry
from harness.views.whole_words import WholeWords
from tests.support.models import small
from tests.support.oracles import conditioned_gru, gru, linear
from tests.support.plain_text import batch, noise_of, packed, sentences_of, told_of
from tests.support.same import assert_same

TEXTS = ["the cat sat . a dog ran ! the mat", "cat sat on the mat", "a dog . a cat , a dog ."]
SIZES = {"embedded": 4, "hidden": 5}


@pytest.fixture(scope="module")
def view() -> WholeWords:
    made: Any = SkipThought.reads("text", {"vocabulary": 60, "max_length": 40})
    assert isinstance(made, WholeWords) and made.lower and (made.size, made.max_length) == (60, 40)
    made.fit(TEXTS)
    return made


@pytest.fixture
def model(view: WholeWords) -> SkipThought:
    return small(SkipThought, view.width, view, stretch=2.0, **SIZES)


@pytest.fixture
def objective(model: SkipThought) -> SentencesBeside:
    return small(SentencesBeside, model, stretch=2.0)


def numbers(view: WholeWords, words: list[str]) -> list[int]:
    return [view.words[word] for word in words]


def vector(model: SkipThought, words: list[str]) -> Tensor:
    """The last state of the reader at a sentence between its marks, in loops."""
    ids = [model.view.start, *numbers(model.view, words), model.view.separator]
    return gru(model.network.recurrence, model.network.table.weight[ids])[-1]


def told(model: SkipThought, objective: SentencesBeside, number: int, by: Tensor, words: list[str]) -> list[Tensor]:
    """Log-probabilities of the words of a sentence and its end, by the decoder of this number."""
    ids = numbers(model.view, words)
    read = model.network.table.weight[[model.view.start, *ids]]
    states = conditioned_gru(objective.decoders[number].recurrence, read, by, torch.zeros(5))
    found = []
    for state, word in zip(states, [*ids, model.view.separator], strict=True):
        scores = linear(objective.output, state)
        found.append(scores[word] - scores.exp().sum().log())
    return found


@pytest.mark.parametrize("training", [False, True])
def test_a_sentence_tells_the_one_before_and_the_one_behind_in_loops(view, model, objective, training):
    """By the first decoder and by the second, within one text alone, from a state of 0, with one
    output layer and the encoder's vectors of words; a sentence that is alone tells twice that it
    is."""
    pieces = packed(view, *TEXTS) if training else batch(view, *TEXTS)
    logs, rows = objective.train(training)(model, pieces, noise_of(pieces))
    expected, owners = [], []
    for decoder, step in enumerate((-1, 1)):
        for row, text in enumerate(TEXTS):
            for at, words in told_of(text, (step,)):
                expected += told(model, objective, decoder, vector(model, sentences_of(text)[at]), words)
                owners += [0 if training else row] * (len(words) + 1)
    assert len(expected) == (4 + 1) * 3 + (2 + 1) + 1 + 1 + (3 + 1) + (6 + 1)
    assert rows.tolist() == owners
    assert_same(logs, torch.stack(expected), rtol=1e-4, atol=1e-4)


def test_every_gate_of_a_decoder_sees_the_sentence_at_each_step(model, objective):
    """Reset gate, update gate and candidate each have a matrix for it: C_r, C_z and C."""
    vectors, contexts = torch.randn(3, 6, 4), torch.randn(2, 3, 5)
    for decoder in objective.decoders:
        weights = decoder.recurrence.weight_ih_l0
        whole = weights.detach().clone()
        for gate in range(3):
            with torch.no_grad():
                weights[:, 4:] = 0
                assert torch.equal(*(decoder(vectors, context) for context in contexts))
                weights[5 * gate : 5 * gate + 5] = whole[5 * gate : 5 * gate + 5]
                one, two = (decoder(vectors, context) for context in contexts)
                weights.copy_(whole)
            changed = ~torch.isclose(one, two).all(-1)
            assert changed[:, 1:].all()
            assert changed[:, 0].all() or gate == 0, "of a state of 0 the reset gate has nothing to keep but a bias"


def test_the_decoders_are_two_and_their_output_layer_is_one(view, model, objective):
    """What is before a sentence is another thing than what is behind it."""
    names = {name.split(".")[0] for name, _ in objective.named_parameters()}
    assert names == {"decoders", "output"}
    first, second = objective.decoders
    assert not {id(p) for p in first.parameters()} & {id(p) for p in second.parameters()}
    pieces = batch(view, "a dog . a dog")
    logs, _ = objective(model, pieces, noise_of(pieces))
    assert len(logs) == 4 + 3
    for parameter in second.parameters():
        parameter.data.zero_()
    again, _ = objective(model, pieces, noise_of(pieces))
    assert torch.equal(again[:4], logs[:4]) and not torch.isclose(again[4:], logs[4:]).any()


def test_sentences_of_two_texts_are_no_neighbours(view, model, objective):
    """In training, where texts stand one behind another, as in evaluation."""
    one, two = (packed(view, "a dog . a cat", text) for text in ("the mat . the cat", "cat on . the cat"))
    logs = [objective(model, pieces, noise_of(pieces)).logs for pieces in (one, two)]
    assert len(logs[0]) == len(logs[1]) == 4 + 4 + 3 + 3
    same = torch.isclose(*logs)
    assert same[:4].all() and same[8:11].all(), "of the first text"
    assert not same[4:8].any() and not same[11:].any(), "of the second, whose first sentence is another"


def test_of_a_long_sentence_thirty_words_are_read_and_told(view, model, objective):
    """Kiros et al.'s code leaves longer ones out."""
    pieces = batch(view, " ".join(["cat"] * 33) + " . a dog")
    logs, _ = objective(model, pieces, noise_of(pieces))
    assert len(logs) == (30 + 1) + (2 + 1)
    by = vector(model, ["a", "dog"])
    assert_same(logs[:31], torch.stack(told(model, objective, 0, by, ["cat"] * 30)), rtol=1e-4, atol=1e-4)


def test_the_vector_of_a_text_is_the_mean_of_its_sentences_last_states(view, model):
    """Each by the reader, whatever stands beside it."""
    expected = []
    for text in TEXTS:
        vectors = [vector(model, words) for words in sentences_of(text)]
        expected.append(sum(vectors) / len(vectors))
    assert_same(model.vector(batch(view, *TEXTS)), torch.stack(expected), rtol=1e-4, atol=1e-4)
    assert model.size == 5


def test_who_knows_the_texts_by_heart_tells_them_for_certain(view):
    rows: Any = [{"id": text, "text": text} for text in TEXTS]
    assert SentencesBeside.by_heart(view, rows) == [[0.0, 1]] * 3


def test_the_floor_is_asked_as_many_words_as_the_model(view, model, objective):
    pieces = batch(view, *TEXTS)
    _, rows = objective(model, pieces, noise_of(pieces))
    texts: Any = [{"id": text, "text": text} for text in TEXTS]
    assert [count for _, count in SentencesBeside.floor(view, texts, texts)] == rows.bincount().tolist() == [18, 2, 11]


def test_word_vectors_begin_uniform(view):
    """In +-0.1, as the paper's."""
    weights = SkipThought(view.width, view, embedded=400, hidden=4).network.table.weight
    assert weights.abs().max() <= 0.1 and weights.std().item() == pytest.approx(0.1 / 3**0.5, rel=0.05)


@pytest.mark.parametrize("tuned", [False, True])
def test_a_child_has_the_parents_features_and_leaves_them_unless_it_is_tuned(view, model, tuned):
    child = SkipThought(view.width, view, tuned=tuned, **SIZES)
    child.inherit("weights", SimpleNamespace(model=SimpleNamespace(encoder=model), view=view), ())  # type: ignore[arg-type]
    pieces = batch(view, *TEXTS)
    torch.testing.assert_close(child.vector(pieces), model.vector(pieces))
    assert all(parameter.requires_grad == tuned for parameter in child.parameters())


def test_it_starts_from_what_it_learnt_on_the_text_mix():
    entry = registry.entry("architectures", "skip_thought")
    assert entry.parents == {"weights": "skip_thought@text_mix"}
    assert SkipThought.learns is SentencesBeside and SentencesBeside.packs
