"""The mechanism of the short-text ranker: overlap marks, wide convolutions, a learned similarity,
overlap features, the join."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from architectures.siamese.severyn_moschitti import OverlapFeatures, SentenceModel, SeverynMoschitti, distinct
from harness.views.words import WordBatch, Words
from tests.support.batches import POISON
from tests.support.models import small
from tests.support.oracles import convolution
from tests.support.same import assert_same

WIDTH, MAPS = 3, 4
TRAIN = ["the cat sat on the mat", "the cat ran", "the mat ?", "the dog sat ?", "a dog ran"]
FIRST = ["cat", "the cat sat", "the zebra saw the zebra ?"]
SECOND = ["the dog sat on the cat mat", "dog", "a zebra and the cat ?"]
STOP_WORDS = {"the", "?"}
"""Those that training has more than once: rarer ones are unknown words, which count as content."""


def view() -> Words:
    view = Words()
    view.fit(TRAIN)
    return view


def read(*texts: str) -> WordBatch:
    """The texts with a vector for each word, and numbers at padding that must not count."""
    fitted = view()
    batch = fitted.collate(fitted.encode(texts), np.arange(len(texts)))
    table = torch.randn(len(fitted.vocabulary), WIDTH, generator=torch.Generator().manual_seed(1))
    table[0] = POISON
    return batch._replace(vectors=table[batch.ids])


def model_of(**options) -> SeverynMoschitti:
    model = small(SeverynMoschitti, WIDTH, view(), maps=MAPS, overlap=2, **options)
    torch.nn.init.normal_(model.similarity)  # of zeros at first
    return model


def sentence(model: SentenceModel, vectors: Tensor, is_shared: list[bool]) -> Tensor:
    """Output of one sentence model, window by window; a window may begin before the text and end
    behind it."""
    words = [
        torch.cat([vector, model.overlap.weight[int(flag)]]) for vector, flag in zip(vectors, is_shared, strict=True)
    ]
    beyond = model.convolution.kernel_size[0] - 1
    return torch.stack(convolution(model.convolution, words, beyond, beyond)).relu().amax(0)


def overlap(ours: list[str], theirs: list[str]) -> Tensor:
    """The four features from the words themselves: how many words both texts have, and how rare
    these are, with and without stop words."""
    training = " ".join(TRAIN).split()
    known = {word for word in training if training.count(word) > 1}
    total = sum(training.count(word) for word in known)
    features = []
    for leave_out in (set(), STOP_WORDS):
        one, other = set(ours) - leave_out, set(theirs) - leave_out
        both, words = one & other, max(1, len(one) + len(other))
        rarity = sum(math.log(total / (training.count(word) if word in known else 1)) for word in both)
        features += [len(both) / words, rarity / words]
    return torch.tensor(features)


def written_out(model: SeverynMoschitti, first: str, second: str) -> Tensor:
    """The vector of one pair from sections 2 and 3 of the paper."""
    ours, theirs = first.split(), second.split()
    x_q = sentence(model.query, read(first).vectors[0], [word in theirs for word in ours])
    x_d = sentence(model.document, read(second).vectors[0], [word in ours for word in theirs])
    similarity = sum(x_q[i] * model.similarity[i, j] * x_d[j] for i in range(MAPS) for j in range(MAPS))
    join = torch.cat([x_q, similarity[None], x_d, overlap(ours, theirs)])
    return torch.relu(model.hidden.weight @ join + model.hidden.bias)


def test_a_batch_of_pairs_is_each_pair_written_out():
    """Texts shorter than a window, repeated and unknown words, padding on either side: all as loops
    give it."""
    model = model_of()
    found = model(read(*FIRST), read(*SECOND))
    assert found.shape == (3, model.size) and model.size == 2 * MAPS + 1 + 4 and found.any()
    for row, pair in zip(found, zip(FIRST, SECOND, strict=True), strict=True):
        assert_same(row, written_out(model, *pair), rtol=1e-4, atol=1e-5)


def test_without_m_the_similarity_is_gone_and_it_starts_so_but_can_be_learned():
    torch.manual_seed(0)
    fresh = SeverynMoschitti(WIDTH, view(), maps=MAPS, overlap=2)
    assert not fresh.similarity.any()
    fresh(read(*FIRST), read(*SECOND)).sum().backward()
    assert fresh.similarity.grad.any()
    model = model_of()
    with_similarity = model(read(*FIRST), read(*SECOND))
    with torch.no_grad():
        model.similarity.zero_()
    assert not torch.allclose(model(read(*FIRST), read(*SECOND)), with_similarity, atol=1e-3)


def test_marks_start_with_the_deviation_of_the_word_vectors():
    torch.manual_seed(0)
    marks = SentenceModel(WIDTH, MAPS, 5, 4000).overlap.weight
    assert 0.24 < marks.std() < 0.26 and not torch.equal(marks[0], marks[1])


def test_tables_of_the_vocabulary_are_not_kept_with_the_weights():
    """They are made of the vocabulary, which a kept model has beside them."""
    assert not OverlapFeatures(view()).state_dict()


def features_of(first: str, second: str) -> list[float]:
    return OverlapFeatures(view())(read(first), read(second))[0].tolist()


def test_overlap_features_of_a_worked_example():
    """Repeats count once; "the" is a stop word; "ran" is only in the second text."""
    counts = dict(zip(view().vocabulary.words, view().vocabulary.counts, strict=True))
    total = sum(counts.values())
    assert counts["the"] == 5 and counts["cat"] == 2
    cat, the = math.log(total / 2), math.log(total / 5)
    # {the, cat, sat} and {the, cat, ran}; without stop words {cat, sat} and {cat, ran}.
    expected = [2 / 6, (cat + the) / 6, 1 / 4, cat / 4]
    assert features_of("the cat sat cat", "the the cat ran") == pytest.approx(expected, rel=1e-5)


def test_an_unknown_word_meets_itself_only_and_weighs_most():
    total = sum(view().vocabulary.counts)
    assert features_of("zebra", "zebra") == pytest.approx([0.5, math.log(total) / 2] * 2, rel=1e-5)
    assert features_of("zebra", "giraffe") == [0.0] * 4


def test_texts_of_stop_words_alone_have_no_overlap_of_content():
    """Nor do they divide by zero. A question mark in both texts says nothing about the answer."""
    found = features_of("the ?", "the ?")
    assert found[0] == 0.5 and found[2:] == [0.0, 0.0]


def test_distinct_words_are_those_that_stand_for_the_first_time():
    assert distinct(read("the zebra the zebra cat", "cat")).tolist() == [
        [True, True, False, False, True],
        [True] + [False] * 4,
    ]


def test_what_the_other_text_has_is_marked_in_the_convolutions_input():
    """With word vectors alone an unknown word that both texts have would look like any other
    unknown word."""
    model = model_of()
    same, other = model.query, read("zebra")
    found = [same(other.vectors, other.mask, torch.tensor([[flag]])) for flag in (True, False)]
    assert not torch.allclose(*found, atol=1e-3)


def test_question_and_document_have_models_of_their_own():
    """Word vectors are fixed unless tuning is asked for."""
    model = model_of()
    assert not {id(p) for p in model.query.parameters()} & {id(p) for p in model.document.parameters()}
    assert model.vectors == "fixed" and model_of(tuned=True).vectors == "tuned"
