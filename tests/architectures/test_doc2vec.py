"""Paragraph vectors: examples and steps by loops, inference that changes nothing else, and what the
classifier reads."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from architectures.blocks.hogwild import Rates, Rows
from architectures.blocks.negative_sampling import Urn
from architectures.feedforward import doc2vec
from architectures.feedforward.doc2vec import ParagraphVectors, learn_texts
from harness.ragged import Ragged
from tests.support import planted_topics

CONTEXTS = pytest.mark.parametrize("context", [0, 2], ids=["bag of words", "memory"])
TEXTS = [[2, 3, 1, 4, 2], [4, 4, 3], [], [3, 1]]
ALWAYS_3 = Urn.of(np.array([0, 0, 0, 9, 0]))
"""An urn of one word, which is left out where it is the one that is foretold."""


def tables(context: int) -> list[np.ndarray]:
    """Vectors of four texts, of words and of outputs, far from zero, so that each gradient
    counts."""
    rng = np.random.default_rng(3)
    return [rng.normal(size=size).astype(np.float32) for size in ((4, 3), (5, 3), (5, 3 * context + 3))]


def state() -> np.ndarray:
    return np.array([1], np.uint64)


@CONTEXTS
@pytest.mark.parametrize("frozen", [False, True])
def test_steps_are_those_of_a_loop(context, frozen):
    """The vectors of text and words before stand side by side, the text's first; nothing is read
    beyond the beginning of a text, unknown words (1) are not foretold, and the rate falls by the
    texts. All vectors move, or the text's alone."""
    given = tables(context)
    documents, words, outputs = wanted = [table.astype(float) for table in given]
    for rate, text in ((0.4, 3), (0.3, 0), (0.2, 1)):
        for place, word in enumerate(TEXTS[text]):
            if word == 1:
                continue
            before = ([0] * context + TEXTS[text])[place : place + context]
            hidden = np.concatenate([documents[text], *words[before]])
            change = np.zeros_like(hidden)
            for other, label in ((word, 1), (3, 0))[: 1 if word == 3 else 2]:
                step = rate * (label - 1 / (1 + np.exp(-hidden @ outputs[other])))
                change += step * outputs[other]
                outputs[other] += step * hidden * (not frozen)
            documents[text] += change[:3]
            for slot, each in enumerate(before, start=1):
                words[each] += change[3 * slot : 3 * slot + 3] * (not frozen)
    rest = ALWAYS_3, 1, frozen
    learn_texts(np.array([3, 0, 1]), Rates(0.4, 0.1), state(), Rows.of(Ragged.of(TEXTS)), *given, *rest)
    for table, expected in zip(given, wanted, strict=True):
        np.testing.assert_allclose(table, expected, rtol=1e-4, atol=1e-6)


@CONTEXTS
def test_the_bag_of_words_alone_is_blind_to_order(context):
    """A small step for each word of a text, with the same wrong word for each."""
    found = []
    for text in ([2, 3, 4, 3], [3, 4, 3, 2]):
        given = tables(context)
        read = Rows.of(Ragged.of([text]))
        learn_texts(np.array([0]), Rates(1e-3, 1e-3), state(), read, *given, ALWAYS_3, 1, True)
        found.append(given[0][0])
    assert np.allclose(*found, atol=1e-5) == (context == 0)


TOPICS, ASKED = planted_topics.rows(120), planted_topics.rows(30, seed=1)


def labelled(rows: list[dict]) -> list[dict]:
    """Texts with the topic of which most of their words are."""
    names = list(planted_topics.TOPICS)
    return [row | {"label": max(names, key=row["text"].count)} for row in rows]


TRAIN, TEST = labelled(TOPICS), labelled(ASKED)
SMALL = {"dims": 8, "contexts": (2, 0), "rate": 0.2, "epochs": 15}


def fitted(task_type: str = "classify", train: list[dict] = TRAIN, **settings) -> ParagraphVectors:
    system = ParagraphVectors(task_type, **SMALL | settings)
    system.fit(train, [])
    return system


@pytest.fixture(scope="module")
def joined() -> ParagraphVectors:
    return fitted()


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("contexts", [(2,), (0,)], ids=["memory", "bag of words"])
def test_texts_that_were_never_seen_have_the_vectors_of_their_topic(contexts, threads):
    system = fitted(contexts=contexts, threads=threads, epochs=30)
    answers = system.predict([{"text": row["text"]} for row in TEST])
    assert system.deterministic is (threads == 1)
    assert np.mean([answer == row["label"] for answer, row in zip(answers, TEST, strict=True)]) > 0.8


def test_inference_leaves_all_words_as_they_are_and_knows_no_other_text(joined):
    """Else the order and the company of the test texts would be part of the result."""
    tables = [table for each in joined.models for table in (each.words, each.outputs)]
    before = [table.copy() for table in tables]
    texts = [row["text"] for row in TEST[:6]]
    together = joined.text_vectors([*texts, texts[0]])
    assert all(np.array_equal(*pair) for pair in zip(before, tables, strict=True))
    assert np.array_equal(together[0], together[6])
    for text, vector in zip(texts, together, strict=False):
        assert np.array_equal(joined.text_vectors([text.upper().split()])[0], vector)
    assert joined.text_vectors(["never seen"]).shape == (1, 16)
    assert len({row.tobytes() for row in together}) == 6
    again = joined.text_vectors(texts[:1])[0]
    joined.seed = 1
    other = joined.text_vectors(texts[:1])[0]
    joined.seed = 0
    assert not np.array_equal(again, other)


def test_each_model_has_half_of_a_vector_and_both_are_learnt(joined):
    first, second = joined.models
    assert (first.context, second.context) == (2, 0)
    assert first.outputs.shape == (len(joined.known), 24) and second.outputs.shape == (len(joined.known), 8)
    words = tuple(TEST[0]["text"].split())
    assert np.array_equal(joined.text_vectors([TEST[0]["text"]])[0], joined._inferred(words))
    rest = Rates(0.2, 0.0), Rows.of(Ragged.of([joined.known.ids(words)]))
    rng = np.random.default_rng([0, doc2vec.crc32(TEST[0]["text"].encode())])
    for number, each in enumerate((first, second)):
        vector, seeds = doc2vec.beginnings(1, 8, rng), doc2vec.states(1, rng)
        learn_texts(np.zeros(15, int), rest[0], seeds[0], rest[1], vector, *each, joined.urn, 5, True)
        assert np.array_equal(joined._inferred(words)[8 * number : 8 * number + 8], vector[0])
    assert np.array_equal(joined.word_vectors()["law1"], first.words[joined.known.ids(["law1"])[0]])
    assert fitted(contexts=(0,), epochs=1).word_vectors() is None


def test_the_regression_reads_the_vectors_that_training_texts_learnt(monkeypatch):
    """Without labels: other ones give the same vectors."""
    learnt: list[np.ndarray] = []
    learn = ParagraphVectors._learnt
    monkeypatch.setattr(ParagraphVectors, "_learnt", lambda *given: (learnt.append(learn(*given)), learnt[-1])[1])
    system = fitted(train=[*TRAIN, TRAIN[0]], C=3.0, epochs=2)  # a text that comes twice is one document
    features = np.concatenate(learnt, axis=1)
    assert features.shape == (len(TRAIN), 16)
    labels = [row["label"] for row in TRAIN]
    wanted = LogisticRegression(C=3.0, max_iter=1000).fit([*features, features[0]], [*labels, labels[0]])
    assert np.allclose(system.machine.coef_, wanted.coef_, atol=1e-3)
    other = fitted(train=[row | {"label": str(n % 2)} for n, row in enumerate(TRAIN)], epochs=2)
    assert all(np.array_equal(a.outputs, b.outputs) for a, b in zip(other.models, fitted(epochs=2).models, strict=True))


PAIRS = [
    {"first": row["text"], "second": other["text"], "label": str(n % 2), "group": "a"}
    for n, (row, other) in enumerate(zip(TRAIN[:40], TRAIN[40:80], strict=True))
]


def test_pairs_are_ranked_by_the_cosine():
    system = fitted("rank", PAIRS, epochs=2)
    for row, score in zip(PAIRS[:3], system.predict(PAIRS[:3]), strict=True):
        u, v = system.text_vectors([row["first"], row["second"]])
        assert score == pytest.approx(u @ v / np.linalg.norm(u) / np.linalg.norm(v), abs=1e-6)


def test_pairs_are_matched_by_both_vectors_their_difference_and_product(monkeypatch):
    seen: list[np.ndarray] = []
    system = fitted("match", PAIRS, epochs=2)
    monkeypatch.setattr(system.machine, "predict", lambda features: (seen.append(features), np.zeros(len(features)))[1])
    system.predict(PAIRS[:3])
    for row, features in zip(PAIRS[:3], seen[0], strict=True):
        u, v = system.text_vectors([row["first"], row["second"]])
        assert np.allclose(features, np.concatenate([u, v, abs(u - v), u * v]))


def test_all_texts_are_learnt_in_each_pass_while_the_rate_falls(monkeypatch):
    passes: list[tuple[list[int], Rates, bool]] = []
    monkeypatch.setattr(
        doc2vec, "learn_texts", lambda order, rates, *rest: passes.append((order.tolist(), rates, rest[-1]))
    )
    fitted(contexts=(0,), epochs=2)
    assert [(sorted(order), rates, frozen) for order, rates, frozen in passes] == [
        ([*range(120)], (0.2, 0.1), False),
        ([*range(120)], (0.1, 0.0), False),
    ]


@pytest.mark.parametrize("task_type", ["classify", "match", "rank"])
def test_every_number_that_was_learnt_counts_as_a_parameter(task_type):
    """The vectors of the texts, of the words before a word and of the words that are foretold, and
    the regression where there is one; the bag of words has no words before a word."""
    system = fitted(task_type, TRAIN if task_type == "classify" else PAIRS, epochs=1)
    words, texts = len(system.known), len(TRAIN) if task_type == "classify" else 2 * len(PAIRS)
    tables = texts * 2 * 8 + words * 8 + words * 3 * 8 + words * 8
    classes = {"classify": len(planted_topics.TOPICS) * (16 + 1), "match": 4 * 16 + 1, "rank": 0}
    assert system.parameter_count == tables + classes[task_type]


def test_seeds_are_obeyed():
    text = [TEST[0]["text"]]
    first, again, other = (fitted(seed=seed, epochs=2).text_vectors(text) for seed in (0, 0, 1))
    assert np.array_equal(first, again) and not np.array_equal(first, other)


def test_texts_without_a_word_that_comes_twice_are_told():
    with pytest.raises(ValueError, match="no word stands 2 times in the 2 training texts"):
        fitted(train=[{"text": "a b", "label": "x"}, {"text": "c", "label": "y"}])
