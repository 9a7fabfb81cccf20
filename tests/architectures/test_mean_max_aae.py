"""The mean-max attention autoencoder: attention through ReLU written out head by head, a memory of
exactly two vectors, a decoder that sees no word behind, and a loss that falls below shares of
words."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from architectures.unsupervised.mean_max_aae import MeanMaxAutoencoder, PositiveAttention, Reconstructed
from harness import registry
from harness.objectives import collected_losses
from harness.problems.text_objective import LearnText, PieceTarget
from harness.views.whole_words import WholeWords
from tests.support.models import small
from tests.support.oracles import linear, softmax_mean
from tests.support.plain_text import batch, noise_of, packed, sentences_of
from tests.support.same import assert_same

TEXTS = ["the cat sat . a dog ran ! the mat", "cat sat on the mat", "a dog . a cat , a dog ."]
SIZES = {"embedded": 6, "size": 4, "inner": 5, "heads": 2, "dropout": 0.0}
SENTENCES = [(row, words) for row, text in enumerate(TEXTS) for words in sentences_of(text)]


@pytest.fixture(scope="module")
def view() -> WholeWords:
    made: Any = MeanMaxAutoencoder.reads("text", {"vocabulary": 60, "max_length": 40})
    assert isinstance(made, WholeWords) and made.lower and (made.size, made.max_length) == (60, 40)
    made.fit(TEXTS)
    return made


@pytest.fixture
def model(view: WholeWords) -> MeanMaxAutoencoder:
    return small(MeanMaxAutoencoder, view.width, view, stretch=2.0, **SIZES)


@pytest.fixture
def objective(model: MeanMaxAutoencoder) -> Reconstructed:
    return small(Reconstructed, model, stretch=2.0)


def positive(layer: nn.Linear, vector: Tensor) -> Tensor:
    return linear(layer, vector).clamp(min=0)


def attended(attention: PositiveAttention, query: Tensor, memory: list[Tensor]) -> Tensor:
    """What one state reads of a memory, head by head."""
    size, heads = attention.query.out_features, []
    for head in range(2):
        of_head = slice(head * size // 2, (head + 1) * size // 2)
        q = positive(attention.query, query)[of_head]
        keys = [positive(attention.key, each)[of_head] for each in memory]
        values = [positive(attention.value, each)[of_head] for each in memory]
        heads.append(softmax_mean([q @ key / math.sqrt(size // 2) for key in keys], values))
    return torch.cat(heads)


def normed(norm: nn.LayerNorm, vector: Tensor) -> Tensor:
    centred = vector - vector.mean()
    return norm.weight * centred / (centred.square().mean() + 1e-8).sqrt() + norm.bias


def at_place(layer: Any, state: Tensor) -> Tensor:
    return normed(layer.norm, state + linear(layer.network[2], positive(layer.network[0], state)))


def ids_of(view: WholeWords, words: list[str]) -> list[int]:
    return [view.start, *(view.words[word] for word in words), view.separator]


def placed(table: Tensor, positions: Tensor, ids: list[int]) -> list[Tensor]:
    return [table[id] + positions[place] for place, id in enumerate(ids)]


def memory_of(model: MeanMaxAutoencoder, words: list[str]) -> list[Tensor]:
    """The mean and the maximum of the states of a sentence."""
    network = model.network
    read = placed(network.table.weight, network.placed.positions.weight, ids_of(model.view, words))
    states = [
        at_place(network.place_by_place, normed(network.norm, attended(network.attention, x, read))) for x in read
    ]
    return [torch.stack(states).mean(0), torch.stack(states).amax(0)]


def scores_of(model: MeanMaxAutoencoder, objective: Reconstructed, words: list[str]) -> list[tuple[int, Tensor]]:
    """Each word of a sentence and its end, with the log-probabilities (V,) of all words there."""
    memory, ids = memory_of(model, words), ids_of(model.view, words)
    read = placed(model.network.table.weight, objective.placed.positions.weight, ids[:-1])
    found = []
    for place, word in enumerate(ids[1:]):
        state = normed(objective.norms[0], attended(objective.attention, read[place], read[: place + 1]))
        state = normed(objective.norms[1], state + attended(objective.across, state, memory))
        scores = linear(objective.output, at_place(objective.place_by_place, state))
        found.append((word, scores - scores.exp().sum().log()))
    return found


# --- the encoder ---


def test_the_memory_is_the_mean_and_the_maximum_of_states_written_out(view, model):
    """Over the words and marks of a sentence alone: shorter ones stand beside longer ones."""
    texts = [" ".join(words) for _, words in SENTENCES]
    memory = model.network.memory(batch(view, *texts))
    assert memory.shape == (len(SENTENCES), 2, 4)
    expected = [torch.stack(memory_of(model, words)) for _, words in SENTENCES]
    assert_same(memory, torch.stack(expected), rtol=1e-4, atol=1e-4)


def test_the_vector_of_a_text_is_the_mean_over_sentences_of_both_scaled_to_length_1(view, model):
    """As the authors' code scales them before a classifier."""
    expected = []
    for row in range(len(TEXTS)):
        vectors = [torch.cat([each / each.square().sum().sqrt() for each in memory_of(model, words)])
                   for number, words in SENTENCES if number == row]  # fmt: skip
        expected.append(sum(vectors) / len(vectors))
    assert model.size == 8
    assert_same(model.vector(batch(view, *TEXTS)), torch.stack(expected), rtol=1e-4, atol=1e-4)


def test_a_word_whose_numbers_sum_to_0_is_no_padding(view, model):
    """It is left out in the authors' code."""
    with torch.no_grad():
        model.network.table.weight[view.words["cat"]] = 0
        model.network.placed.positions.weight[2] = 0
    expected = torch.stack(memory_of(model, ["the", "cat", "sat"]))
    torch.testing.assert_close(model.network.memory(batch(view, "the cat sat"))[0], expected, rtol=1e-4, atol=1e-4)
    assert not torch.isclose(expected, torch.stack(memory_of(model, ["the", "sat"]))).any()


def test_a_sentence_is_read_to_its_32nd_word(view, model):
    """Places behind have no vectors."""
    one, two = (batch(view, " ".join(["cat"] * 32 + [word])) for word in ("dog", "mat"))
    assert torch.equal(model.vector(one), model.vector(two))
    assert model.network.placed.positions.weight.shape == (34, 6)
    other = batch(view, " ".join(["cat"] * 31 + ["dog"]))
    assert not torch.isclose(model.vector(one), model.vector(other)).all()


# --- the decoder ---


@pytest.mark.parametrize("training", [False, True])
def test_a_sentence_is_told_from_its_memory_and_the_words_before_in_loops(view, model, objective, training):
    pieces = packed(view, *TEXTS) if training else batch(view, *TEXTS)
    logs, rows = objective.train(training)(model, pieces, noise_of(pieces))
    expected = [logs[word] for _, words in SENTENCES for word, logs in scores_of(model, objective, words)]
    assert rows.tolist() == [0 if training else row for row, words in SENTENCES for _ in range(len(words) + 1)]
    assert_same(logs, torch.stack(expected), rtol=1e-3, atol=1e-3)


def test_labels_are_smoothed_in_training_alone(view, model, objective):
    """The loss is nine tenths of the word's surprise and a tenth of the mean over all words."""
    pieces = batch(view, *TEXTS)
    head = LearnText(model, PieceTarget())
    head.learns = objective
    told = [one for _, words in SENTENCES for one in scores_of(model, objective, words)]
    smooth = sum(-0.9 * logs[word] - 0.1 * logs.mean() for word, logs in told) / len(told)
    head.train()
    with collected_losses() as terms:
        loss = head.loss(model, head(model, {"text": pieces, "pass": (0, 1)}), None)
    assert list(terms) == ["smoothing"]
    assert_same(loss + terms["smoothing"], smooth, rtol=1e-4, atol=1e-4)
    head.eval()
    with collected_losses() as terms:
        head(model, {"text": pieces})
    assert not terms


def test_all_that_the_decoder_knows_of_a_sentence_are_two_vectors(view, model, objective):
    """Sentences with one memory are told alike; either slot tells something, in any order."""
    vectors, memory = torch.randn(2, 5, 6), torch.randn(2, 2, 4)
    read: list[tuple[Tensor, ...]] = []
    objective.across.register_forward_pre_hook(lambda module, inputs: read.append(inputs))
    states = objective.decoded(vectors, memory)
    assert read[0][1] is memory and len(read[0]) == 2, "no mask: each word attends to both"
    torch.testing.assert_close(objective.decoded(vectors, memory.flip(1)), states)
    for slot in range(2):
        other = memory.clone()
        other[:, slot] += torch.randn(2, 4)
        assert not torch.isclose(objective.decoded(vectors, other), states).all(-1).any()
    pieces = batch(view, *TEXTS)
    model.network.memory = lambda sentences: memory[:1].expand(len(sentences.ids), -1, -1)  # type: ignore[method-assign]
    logs, _ = objective(model, pieces, noise_of(pieces))
    changed = pieces._replace(ids=pieces.ids.masked_fill(pieces.ids == view.words["mat"], view.words["ran"]))
    again, _ = objective(model, changed, noise_of(changed))
    different = (~torch.isclose(logs, again)).nonzero()[:, 0].tolist()
    assert different == [11, 12, 17, 18], "the words that are others, and the ends behind them"


def test_no_word_is_told_by_those_behind_it(model, objective):
    vectors, memory = torch.randn(1, 6, 6), torch.randn(1, 2, 4)
    states = objective.decoded(vectors, memory)
    changed = vectors.clone()
    changed[:, 3] += 1
    again = objective.decoded(changed, memory)
    assert torch.equal(again[:, :3], states[:, :3])
    assert not torch.isclose(again[:, 3:], states[:, 3:]).all(-1).any()


def test_half_of_the_inputs_and_of_the_weights_of_attention_are_dropped_in_training(view):
    """At their rate, on both sides; a network that is kept as it is drops nothing."""
    model = MeanMaxAutoencoder(view.width, view, **SIZES | {"dropout": 0.5}).train()
    objective = Reconstructed(model).train()
    parts = [model.network.placed, objective.placed]
    assert [part.dropout.p for part in parts] == [0.5, 0.5]
    for part in parts:
        assert (part(torch.ones(100, 10, 6)) == 0).float().mean().item() == pytest.approx(0.5, abs=0.03)
    for attention in (model.network.attention, objective.attention, objective.across):
        assert attention.dropout == 0.5
        states, memory = torch.randn(1, 3, attention.query.in_features), torch.randn(1, 2, attention.key.in_features)
        assert not torch.equal(attention(states, memory), attention(states, memory))
        attention.eval()
        assert torch.equal(attention(states, memory), attention(states, memory))
    model.network.keep_still()
    pieces = batch(view, *TEXTS)
    assert torch.equal(model.train().vector(pieces), model.vector(pieces))


# --- learning ---


def test_the_loss_falls_below_that_of_shares_of_words(view):
    """Teacher-forced, on sentences that were not seen: which word comes next tells the text."""
    torch.manual_seed(0)
    sizes = SIZES | {"embedded": 16, "size": 16, "inner": 16}
    model = MeanMaxAutoencoder(view.width, view, **sizes)
    objective = Reconstructed(model)
    words = ["cat", "dog", "mat", "ran", "sat"]
    texts = [" ".join(words[number // 5**place % 5] for place in range(4)) for number in range(0, 625, 3)]
    train, dev = batch(view, *texts[::2]), batch(view, *texts[1::2])
    parameters = [*model.parameters(), *objective.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=0.01)
    for _ in range(150):
        optimizer.zero_grad()
        (-objective(model, train, noise_of(train)).logs.mean()).backward()
        optimizer.step()
    rows: list[Any] = [[{"id": text, "text": text} for text in part] for part in (texts[::2], texts[1::2])]
    floor = Reconstructed.floor(view, *rows)
    shares = -sum(log for log, _ in floor) / sum(count for _, count in floor)
    with torch.no_grad():
        found = -objective.eval()(model.eval(), dev, noise_of(dev)).logs.mean().item()
    assert sum(count for _, count in floor) == 5 * len(texts[1::2])
    assert found < 0.6 * shares


def test_parts_begin_as_glorots_and_biases_at_0(view):
    objective = Reconstructed(MeanMaxAutoencoder(view.width, view, **SIZES | {"embedded": 60, "size": 80}))
    for name, parameter in objective.named_parameters():
        if "norm" in name:
            assert torch.equal(parameter, torch.full_like(parameter, float(name.endswith("weight")))), name
        elif parameter.dim() == 1:
            assert not parameter.any(), name
        else:
            edge = math.sqrt(6 / sum(parameter.shape))
            assert parameter.abs().max() <= edge, name
            assert parameter.std().item() == pytest.approx(edge / 3**0.5, rel=0.15), name


# --- features ---


@pytest.mark.parametrize("tuned", [False, True])
def test_a_child_has_the_parents_features_and_leaves_them_unless_it_is_tuned(view, model, tuned):
    child = MeanMaxAutoencoder(view.width, view, tuned=tuned, **SIZES)
    child.inherit("weights", SimpleNamespace(model=SimpleNamespace(encoder=model), view=view), ())  # type: ignore[arg-type]
    pieces = batch(view, *TEXTS)
    torch.testing.assert_close(child.vector(pieces), model.vector(pieces))
    assert all(parameter.requires_grad == tuned for parameter in child.parameters())


def test_it_starts_from_what_it_learnt_on_the_text_mix(view):
    entry = registry.entry("architectures", "mean_max_aae")
    assert entry.parents == {"weights": "mean_max_aae@text_mix"}
    assert MeanMaxAutoencoder.learns is Reconstructed and Reconstructed.packs
    rows: Any = [{"id": text, "text": text} for text in TEXTS]
    assert Reconstructed.by_heart(view, rows) == [[0.0, 1]] * 3


def test_heads_that_do_not_divide_the_states_are_refused_by_name(view):
    with pytest.raises(ValueError, match="size=4 cannot be divided among heads=3"):
        MeanMaxAutoencoder(view.width, view, **SIZES | {"heads": 3})
