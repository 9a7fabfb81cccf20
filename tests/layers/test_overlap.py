"""What rankers that count common words rely on: equality of words, unknown ones included, and never
of padding."""

from __future__ import annotations

import numpy as np

from harness.layers.overlap import same_words, shared
from harness.views.words import UNKNOWN, Words


def test_unknown_words_are_the_same_only_if_they_are_spelt_the_same():
    view = Words(min_count=1)
    view.fit(["the cat"])
    questions, answers = ["the zebra", "the"], ["zebra the quagga", "cat"]
    first = view.collate(view.encode(questions), np.array([0, 1]))
    second = view.collate(view.encode(answers), np.array([0, 1]))
    assert (second.ids[0] == UNKNOWN).tolist() == [True, False, True]
    assert same_words(first, second).tolist() == [
        [[False, True, False], [True, False, False]],
        [[False, False, False], [False, False, False]],  # the padding of both texts has one spelling too
    ]
    assert shared(first, second).tolist() == [[True, True], [False, False]]
    assert shared(second, first).tolist() == [[True, True, False], [False, False, False]]
