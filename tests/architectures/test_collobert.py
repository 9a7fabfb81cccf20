"""The mechanism of the unified taggers: look-ups of words, capitals and endings, windows with
edges, and a pass over the sentence for each word."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from architectures.feedforward.collobert import CAPS, WindowTagger
from harness import registry
from harness.views.words_and_characters import WordCharacterBatch, WordsAndCharacters
from tests.support.pairs import dense, shipped
from tests.support.same import assert_same

SENTENCES = (
    ["Ann", "saw", "NATO", "in", "a", "McDonalds", "then", "slept", "6", "3x"],
    ["a", "U.S.", "iPod"],
    ["Joe"],
)
WIDTH = 3
IDS = ("collobert", "collobert_sentence")


def view() -> WordsAndCharacters:
    fitted = WordsAndCharacters(min_count=1)
    fitted.fit([list(sentence) for sentence in SENTENCES])
    return fitted


def batch() -> WordCharacterBatch:
    """The sentences with a random vector for each word, and letters, capitals and numbers at
    padding."""
    fitted = view()
    words = fitted.collate(fitted.encode([list(sentence) for sentence in SENTENCES]), np.arange(len(SENTENCES)))
    generator = torch.Generator().manual_seed(0)
    vectors = torch.randn(*words.ids.shape, WIDTH, generator=generator)
    vectors = vectors.masked_fill(~words.mask[..., None], 50.0)
    return words._replace(vectors=vectors, characters=words.characters.where(words.character_mask, 3))


def model_of(id: str, stretch: float | None = 3.0, **options) -> WindowTagger:
    sizes = {"hidden": 4, "caps_size": 2, "suffix_size": 2} | options
    if id == "collobert_sentence":
        sizes = {"top": 5, "place_size": 2} | sizes
    return shipped(id, WIDTH, labels=3, view=view(), stretch=stretch, **sizes)


def kind(word: str) -> str:
    """The capitals of a word."""
    if word == word.lower():
        return "none"
    if word == word.upper():
        return "all"
    return "first" if word[0].isupper() else "some"


def features(model: WindowTagger, sentence: list[str], vectors: Tensor) -> list[Tensor]:
    """The three look-ups of each word."""
    letters, found = view().characters, []
    for word, vector in zip(sentence, vectors, strict=True):
        before, last = ([0, *letters.ids(word)])[-2:]
        ending = model.suffixes.weight[before * len(letters) + last]
        found.append(torch.cat([vector, model.caps.weight[CAPS.index(kind(word))], ending]))
    return found


def window(model: WindowTagger, words: list[Tensor], middle: int) -> list[Tensor]:
    """The features around a word, and the edge's beyond the sentence."""
    reach = model.window // 2
    places = range(middle - reach, middle + reach + 1)
    return [words[place] if 0 <= place < len(words) else model.edge for place in places]


def written_out(model: WindowTagger, id: str, sentence: list[str], vectors: Tensor) -> Tensor:
    """Scores (T, labels) of one sentence, word by word: figures 1 and 2."""
    words, scores = features(model, sentence, vectors), []
    for tagged in range(len(words)):
        if id == "collobert":
            below = torch.cat(window(model, words, tagged))
        else:
            read = []
            for middle in range(len(words)):
                total = model.convolution.bias.clone()
                for k, vector in enumerate(window(model, words, middle)):
                    distance = middle - model.window // 2 + k - tagged
                    place = model.places.weight[min(max(distance, -model.reach), model.reach) + model.reach]
                    total = total + model.convolution.weight[:, :, k] @ vector
                    total = total + model.placed.weight[:, :, k] @ place
                read.append(total)
            below = torch.stack(read).max(0).values
        scores.append(dense(model.output, dense(model.hidden, below).clamp(-1, 1)))
    return torch.stack(scores)


@pytest.mark.parametrize("id", IDS)
@pytest.mark.parametrize("size", [3, 5])
def test_each_word_of_each_sentence_is_written_out(id, size):
    """An id wired to the other approach, padding in a window or a maximum, distances counted from
    the wrong word, or tanh would show here."""
    model, words = model_of(id, window=size, **({"reach": 4} if id == "collobert_sentence" else {})), batch()
    with torch.no_grad():
        model.hidden.weight /= 8  # so that few units are beyond the bends
    found = model(words)
    for row, sentence in enumerate(SENTENCES):
        expected = written_out(model, id, sentence, words.vectors[row][words.mask[row]])
        assert_same(found[row, : len(sentence)], expected, rtol=1e-4, atol=1e-4)


def test_a_word_is_tagged_by_where_it_stands_in_the_sentence_approach():
    """Without the distances every word of a sentence would have the same scores."""
    scores = model_of("collobert_sentence")(batch())[0]
    assert (scores[0] - scores[3]).abs().max() > 0.01


def test_capitals_and_endings_of_words():
    model, words = model_of("collobert"), batch()
    found = [[CAPS[number] for number in row] for row in model.capitals(words).tolist()]
    assert found[0] == ["first", "none", "all", "none", "none", "first", "none", "none", "none", "none"]
    assert found[1][:3] == ["none", "all", "some"]
    one, other = (model.endings(words)[row] for row in (0, 1))
    assert one[4] == other[0] and one[4] < len(view().characters), "a word of one letter"
    assert one[3] != one[6], "in and then end in n alone"


@pytest.mark.parametrize("id", IDS)
def test_weights_start_by_their_fan_in(id):
    """Uniform, with a variance of one over its root."""
    model = model_of(id, stretch=None, hidden=200)
    width = len(model.edge)
    fan_ins = {"hidden": 5 * width if id == "collobert" else 200}
    if id == "collobert_sentence":
        fan_ins |= {"convolution": 3 * (width + 2), "placed": 3 * (width + 2)}
    for name, fan_in in fan_ins.items():
        weight = getattr(model, name).weight
        assert weight.var().item() == pytest.approx(fan_in**-0.5, rel=0.15), name
        assert weight.abs().max() <= (3 / fan_in**0.5) ** 0.5


@pytest.mark.parametrize("id", IDS)
def test_the_rates_are_divided_by_the_fan_in(id):
    """Of the layers at their default sizes, with word vectors of 50 numbers."""
    entry = registry.entry("architectures", id)
    model = shipped(id, 50, labels=9, view=view(), stretch=None)
    fan_ins = {"hidden": 300, "output": 300}
    if id == "collobert_sentence":
        fan_ins = {"convolution": 195, "placed": 195, "hidden": 300, "output": 500}
        assert model.convolution.weight[0].numel() + model.placed.weight[0].numel() == 195
    factors = {pattern.split(".")[1]: factor for pattern, factor in entry.recipe.groups}
    assert factors == pytest.approx({name: 1 / fan_in for name, fan_in in fan_ins.items()}, rel=0.01)
    for name in ("hidden", "output"):
        assert getattr(model, name).in_features == fan_ins[name]


def test_a_window_without_a_middle_is_refused():
    with pytest.raises(ValueError, match="window=4"):
        model_of("collobert", window=4)


@pytest.mark.parametrize("id", IDS)
def test_sentences_are_scored_as_a_whole_and_digits_are_alike(id):
    cls = registry.load(registry.entry("architectures", id))
    assert cls.decoder == "crf" and cls.view.digits and cls.view.lower
