"""The mechanism of generalized pooling: a weight for each feature of each word, in several heads
that a penalty keeps apart."""

from __future__ import annotations

from itertools import combinations

import pytest
import torch
from torch import Tensor

from architectures.attention.generalized_pooling import GeneralizedPooling, VectorAttention
from harness.objectives import Supervised
from harness.problems import problem
from harness.problems.classify import ClassTarget
from harness.training.model import build
from harness.views.words_and_characters import WordCharacterBatch, WordsAndCharacters
from tests.support.batches import poisoned
from tests.support.models import small
from tests.support.oracles import convolution, recurrent, softmax_mean
from tests.support.same import assert_same

TEXTS = [["Anna", "saw", "x", "annas"], ["annas", "a"], ["saw"]]
WIDTH, HIDDEN, HEADS = 4, 3, 2


def view_of() -> WordsAndCharacters:
    view = WordsAndCharacters(min_count=1)
    view.fit(TEXTS)
    return view


def model_of(**settings) -> GeneralizedPooling:
    sizes = {"hidden": HIDDEN, "heads": HEADS, "character_size": 3, "filters": 2, "dropout": 0.0}
    return small(GeneralizedPooling, WIDTH, view=view_of(), **sizes | settings)


def words_of() -> WordCharacterBatch:
    view = view_of()
    words = view.collate(view.encode(TEXTS), [0, 1, 2])
    return words._replace(vectors=poisoned(torch.randn(3, 4, WIDTH), words.mask))


def spelt(model: GeneralizedPooling, ids: Tensor) -> Tensor:
    """The numbers of a word from its characters (n,): maxima of rectified windows."""
    vectors = list(model.words.characters.weight[ids])
    maxima = []
    for layer in model.words.convolutions:
        windows = convolution(layer, vectors, right=layer.kernel_size[0] - 1)
        maxima.append(torch.stack(windows).amax(0).clamp(min=0))
    return torch.cat(maxima)


def top_states(model: GeneralizedPooling, words: WordCharacterBatch, row: int) -> Tensor:
    """States (n, 2 * HIDDEN) of the third layer over one text."""
    joined = torch.stack(
        [
            torch.cat([words.vectors[row, t], spelt(model, words.characters[row, t, : len(word)])])
            for t, word in enumerate(TEXTS[row])
        ]
    )
    states = recurrent(model.recurrence.layers[0], joined)
    for layer in model.recurrence.layers[1:]:
        states = recurrent(layer, torch.cat([states, joined], dim=1))
    return states


def pooled(attention: VectorAttention, states: Tensor) -> Tensor:
    """What each head makes of the states of one text, one after the other."""
    hidden, size = attention.first.out_features // attention.heads, states.shape[1]
    heads = []
    for head in range(attention.heads):
        inner, outer = slice(head * hidden, (head + 1) * hidden), slice(head * size, (head + 1) * size)
        w1, b1 = attention.first.weight[inner], attention.first.bias[inner]
        w2, b2 = attention.second.weight[outer, :, 0], attention.second.bias[outer]
        scores = [w2 @ (w1 @ state + b1).clamp(min=0) + b2 for state in states]
        heads.append(softmax_mean(scores, states))
    return torch.cat(heads)


def test_a_text_is_what_each_head_makes_of_the_third_layers_states():
    """One weight for all features, one head for all, no shortcut to the words, unread characters or
    padding in a state would each show here."""
    model, words = model_of(), words_of()
    assert len(model.recurrence.layers) == 3
    found = model(words)
    for row in range(3):
        assert_same(found[row], pooled(model.attention, top_states(model, words, row)))


def test_constant_scores_give_the_mean_and_one_number_for_a_word_ordinary_attention():
    """Mean pooling and scalar attention are the special cases that the paper names."""
    attention = small(VectorAttention, 4, 3, 2)
    states, mask = torch.randn(1, 5, 4), torch.ones(1, 5, dtype=torch.bool)
    with torch.no_grad():
        attention.second.weight.copy_(attention.second.weight[:1].expand_as(attention.second.weight))
        attention.second.bias.zero_()
    weights = attention.weights(states, mask)[0, 0]
    torch.testing.assert_close(weights, weights[:1].expand(4, -1))
    assert weights[0].std() > 0.01
    with torch.no_grad():
        attention.second.weight.zero_()
    torch.testing.assert_close(attention(states, mask)[0], states[0].mean(0).repeat(2))


def test_the_penalty_ends_where_heads_are_one_apart():
    """Hand-worked: of three heads two are alike, and one is a squared distance of 0.25 from both:
    1 + 2 * 0.75."""
    attention = VectorAttention(4, 3, 3)
    with torch.no_grad():
        attention.first.weight.zero_()
        attention.first.weight[6, 2] = 0.5
    assert attention.likeness().item() == pytest.approx(2.5)
    with torch.no_grad():
        attention.first.weight[6, 2] = 1.5
    assert attention.likeness().item() == pytest.approx(1.0)
    model = model_of(penalty=0.5, heads=3)
    with torch.no_grad():
        model.attention.first.weight.mul_(0.05)
    matrices = model.attention.first.weight.split(HIDDEN)
    expected = sum(max(0.0, 1 - (a - b).square().sum().item()) for a, b in combinations(matrices, 2))
    assert expected > 0 and model.auxiliary_loss().item() == pytest.approx(0.5 * expected)


def test_a_pair_of_texts_pays_the_penalty_once():
    """The harness encodes a pair in two passes, but there is one set of weights."""
    view, target = view_of(), ClassTarget()
    target.fit([{"label": "x"}, {"label": "y"}])
    sizes = {"hidden": HIDDEN, "heads": HEADS, "filters": 2, "dropout": 0.0, "penalty": 3.0}
    model = build(GeneralizedPooling, problem("match"), sizes, view, target, WIDTH).train()
    with torch.no_grad():
        model.encoder.attention.first.weight.mul_(0.01)
    batch = view.collate(view.encode(TEXTS), [0, 1])
    inputs = model.read({"first": batch, "second": batch})
    losses = Supervised().at(model, inputs, torch.tensor([0, 1]))
    likeness = model.encoder.attention.likeness().item()
    assert (losses["loss"] - losses["task"]).item() == pytest.approx(3 * likeness, rel=1e-3) and likeness > 0


def test_features_of_characters_are_rectified():
    """Also those of the longest word of a batch, which no zeros follow."""
    model, words = model_of(), words_of()
    with torch.no_grad():
        model.words.characters.weight.abs_()
        for layer in model.words.convolutions:
            layer.weight.copy_(-layer.weight.abs())
    assert not model.words(words)[..., WIDTH:].any()


def test_dropout_acts_on_words_and_spelling_and_on_nothing_else():
    model, words, read = model_of(dropout=0.5).train(), words_of(), []
    for layer in model.recurrence.layers:
        layer.register_forward_pre_hook(lambda layer, inputs: read.append(inputs[0]))
    found = model(words)
    assert 0.3 < (read[0][words.mask] == 0).float().mean() < 0.8
    assert torch.equal(read[1][..., 2 * HIDDEN :], read[0]) and read[1][words.mask][:, : 2 * HIDDEN].all()
    assert found.all()


def test_the_papers_sizes():
    model = GeneralizedPooling(300, view=view_of())
    assert model.words.size == 600 and model.size == 6 * 1200
    assert [layer.forwards[0].input_size for layer in model.recurrence.layers] == [600, 1800, 1800]
    assert model.attention.first.weight.shape == (6 * 600, 1200) and model.attention.second.groups == 6
    assert not model.view.lower and model.vectors == "fixed"
