"""Vectors of words from their characters: each word by hand, padding, marks, and what a spelling
teaches of words that training never showed."""

from __future__ import annotations

import random

import pytest
import torch
from torch import Tensor

from architectures.vectors.char_cnn_words import CharacterCNNWords
from architectures.vectors.char_lstm_words import CharacterLSTMWords
from harness import registry
from harness.kinds import InputSource
from harness.objectives import Supervised
from harness.training.model import build, predict
from harness.views.words_and_characters import WordCharacterBatch, WordsAndCharacters
from tests.support.models import small
from tests.support.oracles import convolution
from tests.support.recurrent import coupled
from tests.support.same import assert_same
from tests.support.toy_corpus import toy_corpus, toy_task

TEXTS = [["Anna", "saw", "x", "otto"], ["annas", "a"]]
SOURCES = [CharacterCNNWords, CharacterLSTMWords]


def made(source: type[InputSource], texts: list[list[str]] = TEXTS, **sizes: object) -> tuple:
    """A small source that has read the texts above, and a batch of ``texts``."""
    view = WordsAndCharacters(min_count=1)
    view.fit(TEXTS)
    return small(source, view=view, **sizes), view.collate(view.encode(texts), list(range(len(texts))))


def spelt(source: InputSource, words: WordCharacterBatch, texts: list[list[str]]) -> list[Tensor]:
    """What the source says of each word of the texts."""
    said = source(words)
    assert said.shape == (*words.mask.shape, source.size)
    return [said[row, place] for row, text in enumerate(texts) for place, _ in enumerate(text)]


def characters_of(words: WordCharacterBatch, texts: list[list[str]]) -> list[Tensor]:
    return [words.characters[r, t, : len(word)] for r, text in enumerate(texts) for t, word in enumerate(text)]


def test_a_word_is_the_maximum_of_tanh_of_filters_over_its_characters_and_marks() -> None:
    """Other windows, padding in the maximum, or ends without marks: each gives other numbers."""
    source, words = made(CharacterCNNWords, character_size=5, filters=80, window=3, dropout=0.0)  # some below 0
    begin = words.characters.max() + 1  # of an alphabet that is all in the first text
    vectors = source.spelling.vectors.weight
    for found, ids in zip(spelt(source, words, TEXTS), characters_of(words, TEXTS), strict=True):
        framed = torch.cat([begin[None], ids, begin[None] + 1])
        windows = convolution(source.spelling.convolution, list(vectors[framed]), left=2, right=2)
        assert_same(found, torch.stack([torch.tanh(window) for window in windows]).amax(0))
    assert len(vectors) == begin + 2


def test_a_word_is_the_last_state_of_each_direction() -> None:
    """The backward state is the one at the first character; that at the last has read only it."""
    source, words = made(CharacterLSTMWords, character_size=5, hidden=3)
    spelling = source.spelling
    for found, ids in zip(spelt(source, words, TEXTS), characters_of(words, TEXTS), strict=True):
        vectors = spelling.vectors.weight[ids]
        forwards = coupled(spelling.recurrence.forwards, vectors)[-1]
        backwards = coupled(spelling.recurrence.backwards, vectors.flip(0))[-1]
        assert_same(found, torch.cat([forwards, backwards]))
        assert not torch.allclose(forwards, coupled(spelling.recurrence.backwards, vectors)[-1]), "two sets of weights"


def test_with_equal_directions_a_palindrome_has_equal_halves_and_a_word_those_of_its_reverse() -> None:
    source, words = made(CharacterLSTMWords, [["otto", "wax", "xaw"]], hidden=3)
    source.spelling.recurrence.backwards.load_state_dict(source.spelling.recurrence.forwards.state_dict())
    palindrome, word, reverse = source(words)[0]
    torch.testing.assert_close(palindrome[:3], palindrome[3:])
    torch.testing.assert_close(word, reverse.roll(3))
    assert not torch.allclose(word[:3], word[3:])


@pytest.mark.parametrize("source", SOURCES)
def test_what_a_word_is_depends_on_no_longer_word_beside_it(source: type[InputSource]) -> None:
    """Padding that counts would tie a word's numbers to the batch in which it comes."""
    model, words = made(source, [["saw", "x"], ["annasawottoxannas"]])
    _, alone = made(source, [["saw", "x"]])
    assert_same(model(words)[0], model(alone)[0])


@pytest.mark.parametrize("source", SOURCES)
def test_words_that_training_never_showed_differ_by_their_spelling(source: type[InputSource]) -> None:
    """For the table they are one word; the order of the letters counts, and their case does."""
    model, words = made(source, [["naan", "nnaa", "Naan"]])
    assert set(words.ids.unique().tolist()) == {1}
    first, *others = model(words)[0]
    assert not any(torch.allclose(first, other) for other in others)


def test_dropout_acts_on_the_vectors_of_characters() -> None:
    """With all dropped the filters read zeros, and their biases are left."""
    source, words = made(CharacterCNNWords, dropout=1.0)
    expected = torch.tanh(source.spelling.convolution.bias).expand(*words.mask.shape, -1)
    assert_same(source.train()(words), expected)


def ends(count: int, seed: int) -> list[dict[str, str]]:
    """Rows of one invented word, whose last two letters tell its class."""
    draw = random.Random(seed)
    rows = []
    for number in range(count):
        ending, label = (("ov", "positive"), ("um", "negative"))[number % 2]
        stem = "".join(draw.choices("abdeilnorst", k=draw.randint(3, 7)))
        rows.append({"id": f"row-{seed}-{number}", "text": stem + ending, "label": label})
    return rows


def accuracy_on_new_words(inputs: dict[str, dict[str, object]]) -> float:
    """Accuracy of a mean of words on words that training never showed."""
    corpus = toy_corpus(toy_task(train=ends(64, 1), dev=ends(40, 2)), WordsAndCharacters())
    cls = registry.load(registry.entry("architectures", "avg_vectors"))
    torch.manual_seed(0)
    model = build(cls, corpus.problem, {}, corpus.view, corpus.target, 8, inputs=inputs)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(40):
        batch = corpus.train.collate(list(range(64)))
        optimizer.zero_grad()
        Supervised().at(model, model.read(batch.inputs), batch.target)["loss"].backward()
        optimizer.step()
    found = predict(model, corpus.dev, 64)
    return sum(label == row["label"] for label, row in zip(found, corpus.dev.rows, strict=True)) / len(found)


@pytest.mark.parametrize("source", ["char_cnn_words", "char_lstm_words"])
def test_the_class_of_a_new_word_follows_from_its_spelling(source: str) -> None:
    """That is what a source is for: the table alone knows nothing of words that training never
    showed."""
    assert accuracy_on_new_words({source: {"version": 1}}) > 0.9


def test_the_table_alone_knows_nothing_of_new_words() -> None:
    assert accuracy_on_new_words({}) == 0.5
