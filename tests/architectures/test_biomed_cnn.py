"""The medical-text networks: two blocks of two convolutions over a text's own positions (Hughes),
and labels that do not compete (Rios)."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import Tensor

from architectures.convolutional.biomed_cnn import BiomedCNN, RiosCNN
from architectures.convolutional.kim_cnn import KimCNN
from harness import registry
from harness.data.corpus import Corpus
from harness.problems import problem
from harness.training.model import build
from harness.views.words import Words
from tests.support.batches import assert_each_alone, random_texts
from tests.support.models import small
from tests.support.oracles import convolution, linear
from tests.support.same import assert_same

WIDTH = 4

texts = partial(random_texts, seed=1, width=WIDTH)


def written_out(model: BiomedCNN, vectors: Tensor) -> Tensor:
    """The vector of one text: convolved twice, the maximum of every few, convolved twice, the
    maximum of all, the hidden layer."""
    states = vectors
    for number, layer in enumerate(model.convolutions):
        if number == 2:
            states = torch.stack([part.amax(0) for part in states.split(model.pooled)])
        short = max(0, layer.kernel_size[0] - len(states))
        states = torch.stack(convolution(layer, states, right=short)).clamp(min=0)
    return linear(model.hidden, states.amax(0)).clamp(min=0)


@pytest.mark.parametrize(("window", "pooled"), [(2, 2), (3, 2), (2, 3)])
def test_a_text_is_two_blocks_of_two_convolutions_over_its_own_positions(window, pooled):
    """Lengths go through every convolution and every maximum: what stands behind a text, in its
    batch or out of a bias, is no part of it. The last texts are shorter than a window."""
    model = small(BiomedCNN, WIDTH, maps=5, window=window, pooled=pooled, hidden=6)
    batch = texts((23, 12, 9, 5, 2, 1))
    assert_each_alone(model(batch), partial(written_out, model), batch, rtol=1e-4, atol=1e-5)


def test_half_of_the_numbers_are_dropped_before_and_behind_the_hidden_layer():
    """And none between the blocks."""
    model = small(BiomedCNN, WIDTH, maps=100, hidden=400).train()
    read = {}
    for name in ("convolutions.2", "hidden"):
        model.get_submodule(name).register_forward_pre_hook(
            lambda module, inputs, name=name: read.__setitem__(name, inputs[0])
        )
    with torch.no_grad():
        model.convolutions[1].bias.fill_(999.0)
        model.convolutions[3].bias.fill_(1e7)
        model.hidden.weight.abs_()
    vector = model(texts([40] * 8))
    assert all(0.45 < (numbers == 0).float().mean() < 0.55 for numbers in (read["hidden"], vector))
    assert (read["convolutions.2"] != 0).all()


def test_the_papers_sizes():
    model = BiomedCNN(100)
    assert [layer.weight.shape for layer in model.convolutions] == [(256, 100, 5), *[(256, 256, 5)] * 3]
    assert model.hidden.weight.shape == (128, 256) and model.size == 128 and model.pooled == 2


# Rios.


def test_the_network_is_kims_and_its_last_layer_is_bounded_by_no_norm():
    """A bound is for rows that compete in a softmax."""
    ours, kims = (small(kind, WIDTH, stretch=100.0, maps=3, windows=(2, 4)) for kind in (RiosCNN, KimCNN))
    batch = texts((9, 3))
    assert torch.equal(ours(batch), kims(batch))
    assert ours.head_max_norm is None and ours.vectors == "tuned" and ours.dropout.p == 0.5
    assert registry.load(registry.entry("architectures", "biomed_cnn_rios")) is RiosCNN


def test_a_labels_loss_moves_no_other_labels_score():
    """A softmax would lower all others where one is there; a text may have several labels or
    none."""
    entry = registry.entry("tasks", "reuters21578")
    corpus = Corpus(registry.load(entry)(entry), "mini", None, Words(), RiosCNN.output_form())
    torch.manual_seed(0)
    model = build(RiosCNN, problem("multilabel"), {"maps": 4}, corpus.view, corpus.target, 6).eval()
    batch = corpus.train.collate(torch.arange(5).numpy())
    scores = model(batch.inputs)
    gold = batch.target
    for label in range(len(corpus.target.labels)):
        other = gold.clone()
        other[:, label] = 1 - other[:, label]
        one, two = (
            torch.autograd.grad(model.head.loss(model.encoder, scores, each), scores, retain_graph=True)[0]
            for each in (gold, other)
        )
        differs = (one - two).abs() > 0
        assert differs[:, label].all() and differs.sum() == len(gold)
    expected = -(gold * scores.sigmoid().log() + (1 - gold) * (1 - scores.sigmoid()).log()).sum() / len(gold)
    assert_same(model.head.loss(model.encoder, scores, gold), expected)
