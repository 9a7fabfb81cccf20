"""The mechanism of the neural probabilistic language model: a window of vectors side by side."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from architectures.feedforward.nnlm import NeuralProbabilisticLanguageModel
from harness import registry
from harness.data.corpus import Corpus
from harness.settings import TrainingSettings
from harness.training.model import build, predict
from tests.support.foretelling import in_stretches, words
from tests.support.models import small
from tests.support.same import assert_same

WIDTH, SYMBOLS, HIDDEN = 3, 7, 4

model_of = partial(small, NeuralProbabilisticLanguageModel, WIDTH, SYMBOLS, hidden=HIDDEN)


def written_out(model: Any, before: list[Tensor], direct: bool = False) -> Tensor:
    """Scores (SYMBOLS,) of all words behind those with these vectors, from n - 1 zeros on."""
    n = model.window + 1
    context = torch.cat([torch.zeros(WIDTH)] * n + before)[-(n - 1) * WIDTH :]
    units = torch.tanh(model.hidden.bias + model.hidden.weight @ context)
    u, w = model.output.weight[:, :HIDDEN], model.output.weight[:, HIDDEN:]
    scores = model.output.bias + u @ units
    return scores + w @ context if direct else scores


@pytest.mark.parametrize("ends", [[9], [1, 2, 9], [2, 7, 9]])
@pytest.mark.parametrize(("order", "direct"), [(5, False), (3, True), (2, False)])
def test_scores_follow_the_equation_whatever_the_stretches(order, direct, ends):
    """Shared columns of H, words in another order, or a window that ends at a stretch's edge would
    each give others."""
    model = model_of(order=order, direct=direct)
    vectors = torch.randn(2, 9, WIDTH, generator=torch.Generator().manual_seed(1))
    states, state = in_stretches(model, words(vectors), ends)
    assert state.shape == (2, order - 2, WIDTH)
    for row, text in enumerate(vectors):
        expected = torch.stack([written_out(model, list(text[: t + 1]), direct) for t in range(9)])
        assert_same(model.scores(states)[row], expected)


@pytest.mark.parametrize(("order", "direct"), [(5, True), (3, False)])
def test_it_has_the_parameters_of_the_paper(order, direct):
    """|V| (1 + n m + h) + h (1 + (n - 1) m) with direct connections, the vectors among them."""
    n, m, h, v = order, WIDTH, HIDDEN, SYMBOLS
    model = NeuralProbabilisticLanguageModel(m, v, order=n, hidden=h, direct=direct)
    expected = v * (1 + n * m + h) + h * (1 + (n - 1) * m) - (0 if direct else v * (n - 1) * m)
    assert v * m + sum(p.numel() for p in model.parameters()) == expected


def test_without_u_and_w_every_word_has_its_own_probability_whatever_came():
    model = NeuralProbabilisticLanguageModel(WIDTH, SYMBOLS, hidden=HIDDEN, direct=True)
    nn.init.zeros_(model.output.weight)
    states, _ = model(words(torch.randn(2, 6, WIDTH)), model.start(2))
    asked = torch.arange(12).view(2, 6) % SYMBOLS
    torch.testing.assert_close(model.log_probabilities(states, asked), model.output.bias.log_softmax(0)[asked])


def test_a_probability_depends_on_the_window_and_on_nothing_before_it():
    """A word further back than n - 1 is forgotten; the order of those in the window counts."""
    model, vectors = model_of(order=4), torch.randn(1, 8, WIDTH)
    changed, swapped = vectors.clone(), vectors.clone()
    changed[0, 2] += 1.0
    swapped[0, [5, 6]] = vectors[0, [6, 5]]
    states, moved, turned = (model(words(each), model.start(1))[0][0] for each in (vectors, changed, swapped))
    assert [not torch.allclose(a, b) for a, b in zip(states, moved, strict=True)] == [False] * 2 + [True] * 3 + [
        False
    ] * 3
    assert not torch.allclose(states[7], turned[7])


@pytest.mark.parametrize(("stretch", "batch_size"), [(1, 8), (3, 1), (35, 64)])
def test_a_text_is_given_the_product_of_its_windows(stretch, batch_size):
    """The score of a whole test text, from a loop over its words and their n - 1 words before."""
    entry, task = registry.entry("architectures", "nnlm"), registry.entry("tasks", "wikitext2")
    corpus = Corpus(registry.load(task)(task), "mini", None, registry.load(entry).view_for(task, {}), "next words")
    torch.manual_seed(0)
    settings, training = {"order": 4, "hidden": HIDDEN}, TrainingSettings(stretch=stretch)
    cls = registry.load(entry)
    model = build(cls, corpus.problem, settings, corpus.view, corpus.target, WIDTH, None, training).eval()
    test, table = corpus.test(), model.table.tuned.weight
    found = predict(model, test, batch_size)
    for row in (0, 7):
        numbers = test.inputs["text"]["next"][row].tolist()
        vectors = [torch.zeros(WIDTH), *(table[number + 1] for number in numbers[:-1])]
        logs = [
            written_out(model.encoder, vectors[: t + 1]).log_softmax(0)[word].item() for t, word in enumerate(numbers)
        ]
        assert found[row] == [pytest.approx(sum(logs), rel=1e-5), len(numbers)]
