"""Bags: which words and n-grams reach the table, and in which rows."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from harness.views.bag import END, FNV_OFFSET, FNV_PRIME, Bag, LetterTrigrams, fnv1a

TRAIN = ["the cat sat", "the mat"]


def fitted(**options) -> Bag:
    view = Bag(**{"buckets": 1000} | options)
    view.fit(TRAIN)
    return view


def looped(view: Bag, text: str) -> list[int]:
    """Inputs of a text, by plain loops over its words."""
    words = [*text.split(), END]
    rows = [view.vocabulary.ids([w])[0] for w in words if w in view.vocabulary.words]
    for n in range(2, view.ngrams + 1):
        for i in range(len(words) - n + 1):
            value = FNV_OFFSET
            for word in words[i : i + n]:
                value = (value ^ fnv1a(word)) * FNV_PRIME % 2**64
            rows.append(len(view.vocabulary) + value % view.buckets)
    return rows


@pytest.mark.parametrize(
    ("word", "value"), [("", 0xCBF29CE484222325), ("a", 0xAF63DC4C8601EC8C), ("foobar", 0x85944171F73967E8)]
)
def test_the_hash_is_fnv1a_of_its_published_test_vectors(word, value):
    """Python's own hash differs between processes: a saved model would read other rows after a
    restart."""
    assert fnv1a(word) == value


@pytest.mark.parametrize("ngrams", [1, 2, 3])
def test_inputs_are_what_loops_give(ngrams):
    view = fitted(ngrams=ngrams)
    texts = ["the cat sat", "a", "", "mat the unseen cat"]
    columns = view.encode(texts)
    assert [sorted(columns["ids"][i].tolist()) for i in range(4)] == [sorted(looped(view, text)) for text in texts]
    assert view.lengths(columns).tolist() == [len(looped(view, text)) for text in texts]


def test_batch_feeds_an_embedding_bag():
    """Mean of the rows of each text, whatever stands beside it in the batch."""
    view = fitted()
    batch = view.collate(view.encode(["the cat", "mat", ""]), np.array([2, 0]))
    table = torch.nn.EmbeddingBag(view.width, 3)
    means = table(batch.ids, batch.offsets)
    for row, text in enumerate(["", "the cat"]):
        assert torch.allclose(means[row], table.weight[looped(view, text)].mean(0))
    assert batch.ids.dtype == batch.offsets.dtype == torch.int64
    assert batch.lengths.tolist() == [len(looped(view, "")), len(looped(view, "the cat"))]


def test_bigrams_make_order_matter_and_words_alone_do_not():
    orders = ["the cat sat", "sat cat the"]
    one, two = (fitted(ngrams=n).encode(orders)["ids"] for n in (1, 2))
    assert sorted(one[0]) == sorted(one[1])
    assert sorted(two[0]) != sorted(two[1])


def test_ngrams_may_share_a_bucket_and_never_leave_the_table():
    view = fitted(buckets=1)
    ids = view.encode(TRAIN)["ids"].values
    assert (ids == len(view.vocabulary)).sum() == 5 and ids.max() < view.width
    assert fitted(ngrams=1).width == len(view.vocabulary)


def test_unknown_words_are_no_input_and_the_end_of_text_always_is():
    """A text of unknown words must not be an empty bag: its mean would be 0 / 0."""
    view = fitted(ngrams=1)
    assert view.encode(["unseen words", ""])["ids"].values.tolist() == view.vocabulary.ids([END]) * 2


def test_rare_words_are_left_out():
    assert fitted(min_count=2).vocabulary.words == [END, "the"]


def test_case_is_a_setting():
    assert fitted().encode(["THE"])["ids"].values.tolist() == fitted().encode(["the"])["ids"].values.tolist()
    assert len(fitted(ngrams=1, lower=False).encode(["THE"])["ids"].values) == 1


@pytest.mark.parametrize("options", [{"ngrams": 0}, {"buckets": 0}])
def test_impossible_settings_are_refused(options):
    with pytest.raises(ValueError, match="ngrams"):
        fitted(**options)


def test_bag_state_survives_json():
    view, other = fitted(), Bag(buckets=1000)
    other.restore(json.loads(json.dumps(view.state())))
    assert (
        np.array_equal(other.encode(TRAIN)["ids"].values, view.encode(TRAIN)["ids"].values)
        and other.width == view.width
    )


def trigrams(*train: str) -> LetterTrigrams:
    view = LetterTrigrams()
    view.fit(train)
    return view


def test_a_word_gives_its_marked_letter_trigrams():
    """The example of Huang et al. 2013, with their boundary marks."""
    assert trigrams("Cat").trigrams == ["#ca", "at#", "cat"]
    assert trigrams("a").trigrams == ["#a#"]


def test_trigrams_are_counted_and_new_ones_dropped():
    view = trigrams("cat sat")
    batch = view.collate(view.encode(["dog", "cat hat cat", ""]), np.array([1, 0, 2]))
    counted = dict(zip((view.trigrams[i] for i in batch.ids), batch.weights.tolist(), strict=True))
    assert counted == {"#ca": 2, "cat": 2, "at#": 3}
    assert batch.lengths.tolist() == [3, 0, 0] and batch.offsets.tolist() == [0, 3, 3]
    table = torch.nn.EmbeddingBag(view.width, 2, mode="sum")
    summed = table(batch.ids, batch.offsets, per_sample_weights=batch.weights)
    assert torch.allclose(summed[0], sum(n * table.weight[view.trigrams.index(t)] for t, n in counted.items()))
    assert summed[1:].abs().sum() == 0


def test_order_of_words_is_irrelevant_to_trigrams():
    view = trigrams("one two three")
    columns = view.encode(["one two three", "three one two"])
    assert (
        columns["ids"][0].tolist() == columns["ids"][1].tolist()
        and columns["weights"][0].tolist() == columns["weights"][1].tolist()
    )


def test_trigram_state_survives_json():
    view, other = trigrams("some words"), LetterTrigrams()
    other.restore(json.loads(json.dumps(view.state())))
    assert other.width == view.width and np.array_equal(
        other.encode(["word"])["ids"].values, view.encode(["word"])["ids"].values
    )
