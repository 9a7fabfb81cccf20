"""Paragraph vectors: examples and steps by loops, inference that changes nothing else, and what the
classifier reads."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from architectures.blocks.negative_sampling import NegativeSampling
from architectures.feedforward import doc2vec
from architectures.feedforward.doc2vec import Examples, ParagraphModel, ParagraphVectors, examples_of
from harness.ragged import Ragged
from tests.support import planted_topics

COUNTS = np.array([0, 0, 16, 81, 1])
CONTEXTS = pytest.mark.parametrize("context", [0, 2], ids=["bag of words", "memory"])


def model(context: int, dims: int = 3) -> ParagraphModel:
    """Vectors far from zero, so that each gradient counts."""
    made = torch.Generator().manual_seed(3)
    words, outputs = (torch.randn(5, size, generator=made) for size in (dims, (context + 1) * dims))
    return ParagraphModel(context, words, outputs, COUNTS, negatives=2)


def test_examples_are_those_of_a_loop():
    """Nothing is read beyond the beginning of a text, and unknown words (1) are not foretold."""
    texts = [[2, 3, 1, 4], [], [4], [3, 1]]
    expected = [
        (number, ([0] * 3 + text)[place : place + 3], word)
        for number, text in enumerate(texts)
        for place, word in enumerate(text)
        if word != 1
    ]
    found = examples_of(Ragged.of(texts), 3)
    assert list(zip(found.texts.tolist(), found.before.tolist(), found.words.tolist(), strict=True)) == expected
    assert examples_of(Ragged.of(texts), 0).before.shape == (5, 0)


@CONTEXTS
@pytest.mark.parametrize("frozen", [False, True])
def test_a_step_is_that_of_a_loop(monkeypatch, context, frozen):
    """The vectors of text and words stand side by side, the text's first; all move from the tables
    as they were, or the text's alone."""
    system, documents = model(context), torch.randn(2, 3, generator=torch.Generator().manual_seed(4))
    sampling = NegativeSampling(documents, system.outputs, COUNTS, 2, np.random.default_rng(0))
    negatives = np.array([[3, 2], [4, 4], [2, 4]])
    monkeypatch.setattr(sampling, "draw", lambda count: negatives)
    some = Examples(np.array([1, 0, 1]), np.array([[0, 2], [3, 3], [4, 2]])[:, :context], np.array([2, 3, 4]))
    before = [table.numpy().copy() for table in (documents, system.words, system.outputs)]
    expected = [table.astype(float) for table in before]
    for text, read, word, others in zip(*some, negatives, strict=True):
        hidden = np.concatenate([before[0][text], *before[1][read]])
        change = np.zeros(3 * (context + 1))
        for other, label in ((word, 1), *((n, 0) for n in others if n != word)):
            step = 0.1 * (label - 1 / (1 + np.exp(-hidden @ before[2][other])))
            change += step * before[2][other]
            expected[2][other] += step * hidden * (not frozen)
        expected[0][text] += change[:3]
        for place, each in enumerate(read, start=1):
            expected[1][each] += change[3 * place : 3 * place + 3] * (not frozen)
    system.learn(sampling, some, 0.1, negatives if frozen else None)
    for table, wanted in zip((documents, system.words, system.outputs), expected, strict=True):
        np.testing.assert_allclose(table.numpy(), wanted, atol=1e-5)


@CONTEXTS
def test_the_bag_of_words_alone_is_blind_to_order(monkeypatch, context):
    """One step over all words of a text, with the same wrong words for each."""
    monkeypatch.setattr(doc2vec, "INFERRED_AT_ONCE", 10)
    monkeypatch.setattr(NegativeSampling, "draw", lambda self, count, rng: np.array([[2, 4]] * count))
    found = [model(context).infer([ids], [np.random.default_rng(0)], 0.5, 1) for ids in ([2, 3, 4, 3], [3, 4, 3, 2])]
    assert np.allclose(*found, atol=1e-6) == (context == 0)


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


@pytest.mark.parametrize("contexts", [(2,), (0,)], ids=["memory", "bag of words"])
def test_texts_that_were_never_seen_have_the_vectors_of_their_topic(contexts):
    answers = fitted(contexts=contexts, epochs=30).predict([{"text": row["text"]} for row in TEST])
    assert np.mean([answer == row["label"] for answer, row in zip(answers, TEST, strict=True)]) > 0.8


def test_inference_leaves_all_words_as_they_are_and_knows_no_other_text(joined):
    """Else the order and the company of the test texts would be part of the result."""
    tables = [table for each in joined.models for table in (each.words, each.outputs)]
    before = [table.clone() for table in tables]
    texts = [row["text"] for row in TEST[:6]]
    together = joined.text_vectors([*texts, texts[0]])
    assert all(torch.equal(*pair) for pair in zip(before, tables, strict=True))
    assert np.array_equal(together[0], together[6])
    for text, vector in zip(texts, together, strict=False):
        assert np.allclose(joined.text_vectors([text.upper().split()])[0], vector, atol=1e-4), "but for rounding"
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
    ids = joined.known.ids(TEST[0]["text"].split())
    rngs = [np.random.default_rng([0, doc2vec.crc32(TEST[0]["text"].encode())])]
    halves = [each.infer([ids], rngs, 0.2, 15)[0] for each in (first, second)]
    assert np.array_equal(joined.text_vectors([TEST[0]["text"]])[0], np.concatenate(halves))
    assert np.array_equal(joined.word_vectors()["law1"], first.words[joined.known.ids(["law1"])[0]].numpy())
    assert fitted(contexts=(0,), epochs=1).word_vectors() is None


def test_the_regression_reads_the_vectors_that_training_texts_learnt(monkeypatch):
    """Without labels: other ones give the same vectors."""
    learnt: list[np.ndarray] = []
    fit = ParagraphModel.fit
    monkeypatch.setattr(ParagraphModel, "fit", lambda *given: (learnt.append(fit(*given)), learnt[-1])[1])
    system = fitted(train=[*TRAIN, TRAIN[0]], C=3.0, epochs=2)  # a text that comes twice is one document
    features = np.concatenate([each.numpy() for each in learnt], axis=1)
    assert features.shape == (len(TRAIN), 16)
    labels = [row["label"] for row in TRAIN]
    wanted = LogisticRegression(C=3.0, max_iter=1000).fit([*features, features[0]], [*labels, labels[0]])
    assert np.allclose(system.machine.coef_, wanted.coef_, atol=1e-3)
    other = fitted(train=[row | {"label": str(n % 2)} for n, row in enumerate(TRAIN)], epochs=2)
    assert all(torch.equal(a.outputs, b.outputs) for a, b in zip(other.models, fitted(epochs=2).models, strict=True))


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


def test_steps_are_small_where_texts_are_few_and_the_rate_falls(monkeypatch):
    """A step in which one text has many words would throw its vector too far."""
    steps: list[tuple[int, float]] = []
    monkeypatch.setattr(
        ParagraphModel, "learn", lambda self, sampling, some, rate: steps.append((len(some.words), rate))
    )
    fitted(contexts=(0,), epochs=4)
    assert {size for size, _ in steps} == {3}  # thirty words, a tenth of which are a step
    assert sorted({rate for _, rate in steps}, reverse=True) == pytest.approx([0.2, 0.15, 0.1, 0.05])
    assert len(steps) == 4 * 120 * 12 / 3


def test_seeds_are_obeyed():
    text = [TEST[0]["text"]]
    first, again, other = (fitted(seed=seed, epochs=2).text_vectors(text) for seed in (0, 0, 1))
    assert np.array_equal(first, again) and not np.array_equal(first, other)


def test_texts_without_a_word_that_comes_twice_are_told():
    with pytest.raises(ValueError, match="no word stands 2 times in the 2 training texts"):
        fitted(train=[{"text": "a b", "label": "x"}, {"text": "c", "label": "y"}])
