"""Start values of systems that make their tables while they fit, taken before the first step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from architectures.blocks.hogwild import Rows
from architectures.blocks.negative_sampling import WindowTrainer
from architectures.feedforward.doc2vec import ParagraphVectors
from architectures.graph.text_gcn import TextGCN
from architectures.vectors.cbow import ContinuousBagOfWords
from architectures.vectors.glove import GloVe
from architectures.vectors.skipgram import SkipGram
from architectures.vectors.subword_vectors import SubwordVectors
from harness.ragged import Ragged
from harness.views.words import Vocabulary
from tests.support.laws import fault, repetition

WORDS = Vocabulary([f"word{number}" for number in range(200)], [9] * 200)
TEXTS = Ragged.of([np.arange(2, 202)])
DIMS = 20


def assert_uniform(table: np.ndarray, limit: float) -> None:
    assert fault("uniform", table.astype(float).ravel() / limit) is None
    assert repetition(table) is None


@pytest.mark.parametrize("trainer", [ContinuousBagOfWords, SkipGram, SubwordVectors])
def test_tables_of_word2vec_begin_within_half_of_one_over_their_width(trainer: Any) -> None:
    """Mikolov et al.'s program: greater vectors would need more steps to be turned around."""
    table = WindowTrainer.train(trainer(dims=DIMS, epochs=0), TEXTS, WORDS)  # before n-grams are summed to words
    assert table.shape[1] == DIMS
    assert_uniform(table, 1 / (2 * DIMS))


def test_paragraph_vectors_begin_as_word_vectors_do() -> None:
    rows = [{"text": f"word{number} word{number + 1}", "label": str(number % 2)} for number in range(300)]
    system = ParagraphVectors("classify", dims=DIMS, epochs=0, min_count=1)
    system.fit(rows, [])
    for model in system.models:
        assert_uniform(model.words, 1 / (2 * DIMS))
        assert not model.outputs.any()
    texts = Rows.of(Ragged.of([[2, 3]] * 300))
    assert_uniform(system._learnt(system.models[0], texts, np.random.default_rng(1)), 1 / (2 * DIMS))


def test_both_sides_of_glove_begin_apart_within_half_of_one_over_their_width() -> None:
    """The bias counts to the width, as in the authors' program. Two sides that began alike would
    have a sum twice as long, not the root of two."""
    limit = 1 / (2 * (DIMS + 1))
    sums = GloVe(dims=DIMS, epochs=0).train(TEXTS, WORDS)
    assert sums.std() == pytest.approx(limit * (2 / 3) ** 0.5, rel=0.04)
    assert 1.8 * limit < np.abs(sums).max() <= 2 * limit
    assert repetition(sums) is None


def test_both_matrices_of_text_gcn_begin_glorot_uniform(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the authors' code; features are one-hot, so the first matrix has a row for each node."""

    class Begun(Exception):
        pass

    def adam(parameters: list[torch.nn.Parameter], **options: Any) -> None:
        raise Begun(*parameters)

    monkeypatch.setattr(torch.optim, "Adam", adam)
    rows = [{"id": str(n), "text": f"word{n} word{n + 1}", "label": str(n % 7)} for n in range(300)]
    with pytest.raises(Begun) as caught:
        TextGCN(hidden=40).fit(rows[:-20], rows[-20:])
    first, second = caught.value.args
    assert first.shape[1] == 40 and second.shape == (40, 7)
    for matrix in (first, second):
        assert_uniform(matrix.detach().numpy(), (6 / sum(matrix.shape)) ** 0.5)
