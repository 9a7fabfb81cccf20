"""fastText by a step for each text: its steps by loops, its bags, and the answers of one and of two
threads."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from architectures.blocks.hogwild import Rates, Rows
from architectures.feedforward import fasttext_sgd
from architectures.feedforward.fasttext_sgd import FastTextBySteps, best_labels, learn_texts
from harness.ragged import Ragged
from harness.views.bag import Bag
from tests.support import planted_topics

BAGS = [[0, 2, 2, 4], [3], [1, 4]]
LABELS = np.array([2, 0, 1])


def tables() -> list[np.ndarray]:
    """Vectors far from zero, so that each gradient counts."""
    rng = np.random.default_rng(3)
    return [rng.normal(size=size).astype(np.float32) for size in ((5, 4), (3, 4))]


def test_steps_are_those_of_torch_one_text_after_the_other():
    """A row that a text has twice moves twice; the rate falls by the texts."""
    given = tables()
    inputs, outputs = (torch.from_numpy(table.copy()).requires_grad_() for table in given)
    order = [2, 0, 1]
    for rate, text in zip((0.4, 0.3, 0.2), order, strict=True):
        logits = outputs @ inputs[BAGS[text]].mean(dim=0)
        loss = torch.nn.functional.cross_entropy(logits[None], torch.tensor(LABELS[[text]]))
        for table, gradient in zip((inputs, outputs), torch.autograd.grad(loss, (inputs, outputs)), strict=True):
            table.data -= rate * gradient
    learn_texts(np.array(order), Rates(0.4, 0.1), Rows.of(Ragged.of(BAGS)), LABELS, *given)
    np.testing.assert_allclose(given[0], inputs.detach(), rtol=1e-4)
    np.testing.assert_allclose(given[1], outputs.detach(), rtol=1e-4)


def test_an_answer_is_the_label_with_the_highest_product():
    inputs, outputs = tables()
    wanted = [int(np.argmax(outputs @ inputs[bag].mean(axis=0))) for bag in BAGS]
    assert best_labels(Rows.of(Ragged.of(BAGS)), inputs, outputs).tolist() == wanted and len({*wanted}) > 1


def test_large_products_have_shares_too():
    """Their exp is beyond single precision; a rate that was a little high would end in NaN."""
    inputs, outputs = tables()
    bags = Rows.of(Ragged.of(BAGS))
    wanted = best_labels(bags, inputs, outputs).tolist()
    assert best_labels(bags, 1000 * inputs, outputs).tolist() == wanted
    learn_texts(np.arange(3), Rates(0.1, 0.1), bags, LABELS, 1000 * inputs, outputs)
    assert np.isfinite(outputs).all()


def labelled(count: int, seed: int = 0) -> list[dict]:
    """Texts with the topic of which most of their words are."""
    names = list(planted_topics.TOPICS)
    return [row | {"label": max(names, key=row["text"].count)} for row in planted_topics.rows(count, seed)]


TRAIN, TEST = labelled(300), labelled(60, seed=1)


def fitted(seed: int = 0, train: list[dict] = TRAIN, **settings) -> FastTextBySteps:
    system = FastTextBySteps(seed, **{"buckets": 500} | settings)
    system.fit(train, [])
    return system


@pytest.mark.parametrize("threads", [1, 2])
def test_topics_are_told_apart(threads):
    system = fitted(threads=threads)
    answers = system.predict([{"text": row["text"]} for row in TEST])
    assert np.mean([answer == row["label"] for answer, row in zip(answers, TEST, strict=True)]) > 0.95
    assert system.deterministic is (threads == 1)


def test_seeds_are_obeyed():
    first, again, other = (fitted(seed, epochs=1) for seed in (0, 0, 1))
    assert np.array_equal(first.inputs, again.inputs) and not np.array_equal(first.inputs, other.inputs)


def test_texts_are_read_as_fasttext_reads_them_and_learnt_in_each_pass(monkeypatch):
    """The vectors begin uniform in +-1/hidden, the layer at zero, and the rate falls to zero."""
    given: list[tuple] = []
    monkeypatch.setattr(fasttext_sgd, "learn_texts", lambda *parts: given.append(parts))
    system = fitted(hidden=20, ngrams=3, rate=0.4, epochs=2, buckets=7)
    view = Bag(ngrams=3, buckets=7)
    view.fit([row["text"] for row in TRAIN])
    wanted = view.encode([row["text"] for row in TRAIN])["ids"]
    (order, rates, bags, labels, inputs, outputs), second = given
    assert np.array_equal(bags.values, wanted.values) and np.array_equal(bags.offsets, wanted.offsets)
    assert [system.classes[label] for label in labels] == [row["label"] for row in TRAIN]
    assert (rates, second[1]) == (Rates(0.4, 0.2), Rates(0.2, 0.0)) and sorted(order) == [*range(300)]
    assert inputs.shape == (view.width, 20) and (outputs == 0).all() and outputs.shape == (4, 20)
    assert -0.05 <= inputs.min() < -0.045 and 0.045 < inputs.max() <= 0.05 and abs(inputs.mean()) < 0.005
