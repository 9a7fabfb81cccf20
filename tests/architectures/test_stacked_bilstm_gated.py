"""The mechanism of gated attention: a word weighs as much as the input gates of the top layer are
open at it."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from architectures.recurrent.stacked_bilstm_gated import StackedBiLSTMGated
from harness.views.words_and_characters import WordCharacterBatch, WordsAndCharacters
from tests.support.batches import poisoned
from tests.support.models import small
from tests.support.oracles import convolution, lstm_step, recurrent, weights_of
from tests.support.same import assert_same

TEXTS = [["Anna", "saw", "x", "annas"], ["annas", "a"], ["saw"]]
WIDTH, HIDDEN = 4, 3


def view_of() -> WordsAndCharacters:
    view = WordsAndCharacters(min_count=1)
    view.fit(TEXTS)
    return view


def model_of(**settings) -> StackedBiLSTMGated:
    sizes = {"hidden": HIDDEN, "character_size": 3, "filters": 2, "dropout": 0.0}
    return small(StackedBiLSTMGated, WIDTH, view=view_of(), **sizes | settings)


def words_of() -> WordCharacterBatch:
    view = view_of()
    words = view.collate(view.encode(TEXTS), [0, 1, 2])
    return words._replace(vectors=poisoned(torch.randn(3, 4, WIDTH), words.mask))


def spelt(model: StackedBiLSTMGated, ids: Tensor) -> Tensor:
    """The numbers of a word from its characters (n,): maxima of rectified windows."""
    vectors = list(model.words.characters.weight[ids])
    windows = [convolution(layer, vectors, right=layer.kernel_size[0] - 1) for layer in model.words.convolutions]
    return torch.cat([torch.stack(values).amax(0).clamp(min=0) for values in windows])


def gates_and_states(layer: nn.LSTM, vectors: Tensor) -> tuple[list[Tensor], list[Tensor]]:
    """Input gates and states of a one-way layer over a text, word by word."""
    w_x, w_h, b_x, b_h = weights_of(layer)
    h = c = torch.zeros(HIDDEN)
    gates, states = [], []
    for x in vectors:
        gates.append(torch.sigmoid((w_x @ x + b_x + w_h @ h + b_h)[:HIDDEN]))
        h, c = lstm_step(layer, x, h, c)
        states.append(h)
    return gates, states


def written_out(model: StackedBiLSTMGated, words: WordCharacterBatch, row: int) -> Tensor:
    """The vector of one text."""
    joined = torch.stack(
        [
            torch.cat([words.vectors[row, t], spelt(model, words.characters[row, t, : len(word)])])
            for t, word in enumerate(TEXTS[row])
        ]
    )
    read = joined
    for layer in model.recurrence.layers[:-1]:
        read = torch.cat([recurrent(layer, read), joined], dim=1)
    top = model.recurrence.layers[-1]
    left, left_states = gates_and_states(top.forwards[0], read)
    right, right_states = gates_and_states(top.backwards[0], read.flip(0))
    states = torch.stack([torch.cat(pair) for pair in zip(left_states, right_states[::-1], strict=True)])
    norms = [torch.cat(pair).square().sum().sqrt() for pair in zip(left, right[::-1], strict=True)]
    gated = sum(norm * state for norm, state in zip(norms, states, strict=True)) / sum(norms)
    return torch.cat([states.mean(0), states.amax(0), gated])


def test_a_text_is_the_mean_the_maximum_and_the_gated_mean_of_the_top_states():
    """Another gate, gates of states one word late, one direction's norm, a softmax of the norms or
    padding in a mean would each show here."""
    model, words = model_of(), words_of()
    assert len(model.recurrence.layers) == 3
    found = model(words)
    for row in range(3):
        assert_same(found[row], written_out(model, words, row))


def test_equal_gates_give_the_mean():
    model, words = model_of(), words_of()
    top = model.recurrence.layers[-1]
    with torch.no_grad():
        for layer in (top.forwards[0], top.backwards[0]):
            for name in ("weight_ih_l0", "weight_hh_l0"):
                getattr(layer, name)[:HIDDEN] = 0
    mean, _, gated = model(words).chunk(3, dim=1)
    torch.testing.assert_close(gated, mean)


def test_weights_come_from_the_gate_and_not_from_the_state():
    """The output gate's bias changes every state, and of the first word no gate but its own."""
    model, words = model_of(), words_of()
    top, seen = model.recurrence.layers[-1], []
    model.recurrence.register_forward_hook(lambda layer, inputs, output: seen.append(output))
    alone = words._replace(**{name: getattr(words, name)[2:3, :1] for name in ("vectors", "mask", "characters")})
    alone = alone._replace(character_mask=words.character_mask[2:3, :1])
    model(alone)
    with torch.no_grad():
        top.forwards[0].bias_ih_l0[3 * HIDDEN :] += 5
    model(alone)
    (before, read), (after, _) = seen
    assert not torch.allclose(before, after)
    mask = alone.mask
    torch.testing.assert_close(model.weights(read, before, mask), torch.ones(1, 1))
    weights = model.weights(torch.randn(2, 4, read.shape[-1]), torch.randn(2, 4, 2 * HIDDEN), mask.expand(2, 4))
    torch.testing.assert_close(weights.sum(1), torch.ones(2))


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
    model = StackedBiLSTMGated(300, view=view_of())
    assert model.words.size == 600 and model.size == 3 * 1200
    assert [layer.forwards[0].input_size for layer in model.recurrence.layers] == [600, 1800, 1800]
    assert not model.view.lower and model.vectors == "fixed"
