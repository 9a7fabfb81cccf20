"""The mechanism of the weighted multichannel TextCNN: a word's weight for each class, from the
labels of the training texts."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from torch import Tensor

from architectures.convolutional.weighted_cnn import CountedTexts, WeightedCNN
from harness.objectives import Step, Supervised
from harness.views.words import Vocabulary, WordBatch, Words
from tests.support.batches import assert_each_alone, mask_of, poisoned
from tests.support.models import small
from tests.support.oracles import convolution
from tests.support.same import assert_same

WIDTH, CLASSES = 3, 2
TEXTS, LABELS = (("bad", "bad", "film"), ("bad", "film", "again"), ("good", "film"), ("good", "good")), [0, 0, 1, 1]


def view_of() -> Words:
    view = Words(min_count=1)
    view.vocabulary = Vocabulary(["bad", "film", "good", "again", "never"], [3, 3, 3, 1, 1])
    return view


def batch_of(texts: tuple[tuple[str, ...], ...]) -> WordBatch:
    mask = mask_of([len(text) for text in texts])
    ids = torch.zeros(mask.shape, dtype=torch.long)
    for row, text in zip(ids, texts, strict=True):
        row[: len(text)] = torch.tensor(view_of().vocabulary.ids(text))
    return WordBatch(ids, mask, mask.sum(1), poisoned(torch.randn(*mask.shape, WIDTH), mask))


def model_of() -> WeightedCNN:
    model = small(WeightedCNN, WIDTH, view_of(), CLASSES, maps=4, windows=(2, 3))
    model.count(batch_of(TEXTS), torch.tensor(LABELS))
    return model


def weight(word: str, label: int) -> float:
    """The relevance frequency of a word, counted text by text."""
    own = sum(word in text for text, of in zip(TEXTS, LABELS, strict=True) if of == label)
    others = sum(word in text for text, of in zip(TEXTS, LABELS, strict=True) if of != label)
    return torch.log2(torch.tensor(2 + own / max(1, others))).item()


def test_the_weights_count_each_class_s_texts_with_a_word():
    """Bad stands in two texts of the first class, film in two of the first and one of the second:
    log2(2 + 2) and log2(2 + 2 / 1), log2(2 + 1 / 2). A word twice in a text counts once."""
    model = model_of()
    for word in ("bad", "film", "good", "again"):
        ids = torch.tensor(view_of().vocabulary.ids([word]))
        assert model.weights(ids)[0].tolist() == pytest.approx([weight(word, 0), weight(word, 1)])
    film = model.weights(torch.tensor(view_of().vocabulary.ids(["bad", "film"])))
    torch.testing.assert_close(film, torch.tensor([[4.0, 2.0], [4.0, 2.5]]).log2())


def test_words_that_no_training_text_has_and_unknown_ones_weigh_one():
    """Unknown words are many words: what their texts say is no word's."""
    model = model_of()
    model.count(batch_of((("odd", "film"),)), torch.tensor([0]))
    ids = torch.tensor(view_of().vocabulary.ids(["never", "odd"]))
    assert ids.tolist() == [6, 1] and model.weights(ids).tolist() == [[1.0, 1.0], [1.0, 1.0]]


def written_out(model: WeightedCNN, vectors: Tensor, ids: list[int]) -> Tensor:
    """Scores of one text."""
    words = [view_of().vocabulary.words[id - 2] for id in ids]
    channels = [torch.cat([weight(w, c) * v for c in range(CLASSES)]) for w, v in zip(words, vectors, strict=True)]
    pooled = []
    for layer in model.features.convolutions:
        behind = max(0, layer.kernel_size[0] - len(ids))
        windows = convolution(layer, channels, right=behind)
        pooled.append(torch.stack(windows).clamp(min=0).amax(0))
    return model.output.weight @ torch.cat(pooled) + model.output.bias


def test_each_text_of_a_batch_is_the_text_alone_with_a_channel_for_each_class():
    """Weights of another class, one channel for all, or padding in a window would each give other
    scores."""
    model, batch = model_of(), batch_of((("bad", "film", "good", "again"), ("good", "film", "bad"), ("film",)))
    rows = iter([ids[mask].tolist() for ids, mask in zip(batch.ids, batch.mask, strict=True)])
    assert_each_alone(model(batch), lambda vectors: written_out(model, vectors, next(rows)), batch)


def test_texts_are_counted_in_the_first_pass_of_training_only(monkeypatch):
    """Counted again in each epoch, a word of one class alone would weigh more and more; counted on
    dev, it would know its labels."""
    monkeypatch.setattr(Supervised, "losses", lambda self, model, step: {})
    encoder = small(WeightedCNN, WIDTH, view_of(), CLASSES, maps=4)
    model = SimpleNamespace(encoder=encoder)
    objective = encoder.trained_by(encoder, model, Supervised())
    assert isinstance(objective, CountedTexts) and objective.strategies == ()
    target = torch.tensor(LABELS)
    for step, passes in enumerate([1, 1, 2, 2]):  # of one epoch, where texts are few
        batch = SimpleNamespace(inputs={"text": batch_of(TEXTS)}, target=target)
        objective.losses(model, Step({"labelled": batch}, step / 4, passes=passes))
        if step == 1:
            assert encoder.texts_with[2].tolist() == [4.0, 0.0], "a pass's own steps read what it has counted"
    assert encoder.texts_with[2].tolist() == [4.0, 0.0], "both batches of the first pass, none of the second"
    encoder(batch_of(TEXTS))
    assert encoder.texts_with[2].tolist() == [4.0, 0.0]


def test_dropout_acts_on_the_features():
    model = model_of().train()
    model.dropout.p = 1.0
    assert_same(model(batch_of(TEXTS)), model.output.bias.expand(4, CLASSES))


def test_what_was_counted_is_kept_with_the_model():
    """A kept model that lost it would give all words the weight 1."""
    model = model_of()
    other = small(WeightedCNN, WIDTH, view_of(), CLASSES, maps=4, windows=(2, 3))
    other.load_state_dict(model.state_dict())
    assert model.texts_with.any() and torch.equal(other.texts_with, model.texts_with)
