"""The mechanism of the shallow-and-wide CNN: one layer of convolutions, over words or over
characters, and the maximum over time."""

from __future__ import annotations

from functools import partial

import numpy as np
import torch
from torch import Tensor

from architectures.convolutional.shallow_wide_cnn import ShallowWideCharacterCNN, ShallowWideCNN
from harness import registry
from harness.running.grid import hyperparameters
from harness.views.characters import ALPHABET, Characters
from harness.views.words import Words
from tests.support.batches import assert_each_alone, random_texts
from tests.support.models import small
from tests.support.oracles import convolution
from tests.support.same import assert_same

WIDTH = 4


def written_out(model: ShallowWideCNN, vectors: Tensor) -> Tensor:
    """The largest ReLU of each map over the windows inside one text."""
    pooled = []
    for layer in model.features.convolutions:
        short = max(0, layer.kernel_size[0] - len(vectors))
        pooled.append(torch.stack(convolution(layer, vectors, right=short)).clamp(min=0).amax(0))
    return torch.cat(pooled)


def test_a_text_of_words_is_the_maximum_of_each_map():
    """Means, windows in the padding, or maps before their ReLU would show here."""
    model, batch = small(ShallowWideCNN, WIDTH, maps=6), random_texts((9, 5, 3, 1), 1, WIDTH)
    assert [layer.kernel_size[0] for layer in model.features.convolutions] == [3, 4, 5]
    assert_each_alone(model(batch), partial(written_out, model), batch)


def characters(*texts: str):
    view = ShallowWideCharacterCNN.reads("text", {})
    return view.collate(view.encode(list(texts)), np.arange(len(texts)))


def test_a_text_of_characters_is_read_one_hot_from_its_begin_to_the_limit():
    """Characters beyond the limit, or of the text's padding, must not count; a text shorter than a
    window has one window."""
    model = small(ShallowWideCharacterCNN, len(ALPHABET), maps=3, windows=(4, 6), longest=20)
    texts = ["a film, of 1,000 words and more", "not good", "no"]
    found = model(characters(*texts))
    for vector, text in zip(found, texts, strict=True):
        rows = [torch.tensor([float(c == symbol) for symbol in ALPHABET]) for c in text[:20]]
        assert_same(vector, written_out(model, torch.stack(rows)))


def test_characters_are_read_forwards():
    assert ShallowWideCharacterCNN.view == Characters(length=None, reverse=False)
    model = small(ShallowWideCharacterCNN, len(ALPHABET), maps=3, windows=(4,))
    assert not torch.allclose(model(characters("not good")), model(characters("doog ton")), atol=1e-3)


def test_each_id_reads_what_its_name_says():
    """Word windows of 3 to 5, and windows of characters about five times as long."""
    for id, view, maps, windows in (
        ("shallow_wide_cnn", Words, 100, [3, 4, 5]),
        ("shallow_wide_cnn_char", Characters, 700, [15, 20, 25]),
    ):
        entry = registry.entry("architectures", id)
        cls = registry.load(entry)
        layers = cls(WIDTH, **hyperparameters(entry)).features.convolutions
        assert isinstance(cls.reads("text", {}), view), id
        assert [(layer.out_channels, layer.kernel_size[0]) for layer in layers] == [(maps, w) for w in windows], id


def test_half_of_the_features_are_dropped_in_training():
    words = small(ShallowWideCNN, WIDTH, maps=100).train()
    letters = small(ShallowWideCharacterCNN, len(ALPHABET), maps=100, windows=(4, 6)).train()
    for model, batch in ((words, random_texts([6], 1, WIDTH)), (letters, characters("a film"))):
        with torch.no_grad():
            for layer in model.features.convolutions:
                layer.bias.fill_(99.0)
        assert 0.4 < (model(batch) == 0).float().mean() < 0.6
