"""FastSent and the sequential denoising autoencoder: sums of words, what they tell written out
sentence by sentence, noise by a loop, and features that stay."""

from __future__ import annotations

import math
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from architectures.blocks.sentences import sentences
from architectures.unsupervised.fastsent import (
    FastSent,
    FastSentAutoencoder,
    Restored,
    SequentialDenoisingAutoencoder,
    WordsBeside,
    WordsOfAndBeside,
)
from harness import registry
from harness.views.whole_words import WholeWords
from tests.support.models import small
from tests.support.oracles import conditioned_gru, gru, linear
from tests.support.plain_text import batch, noise_of, packed, sentences_of, told_of
from tests.support.same import assert_same

TEXTS = ["the cat sat . a dog ran ! the mat", "cat sat on the mat", "a dog . a cat , a dog ."]
BOTH = [(FastSent, WordsBeside, (-1, 1)), (FastSentAutoencoder, WordsOfAndBeside, (-1, 0, 1))]


@pytest.fixture(scope="module")
def view() -> WholeWords:
    made: Any = FastSent.reads("text", {"vocabulary": 60, "max_length": 40})
    assert isinstance(made, WholeWords) and made.lower and (made.size, made.max_length) == (60, 40)
    made.fit(TEXTS)
    return made


def number(view: WholeWords, word: str) -> int:
    return view.words[word]


# --- FastSent: the sum ---


@pytest.fixture
def model(view: WholeWords) -> FastSent:
    return small(FastSent, view.width, view, dims=4)


def summed(model: FastSent, words: list[str]) -> Tensor:
    """The sum of the vectors of words."""
    rows = [model.network.table.weight[number(model.view, word)] for word in words]
    return torch.stack(rows).sum(0)


def test_the_vector_is_the_sum_of_the_words_whatever_their_order(view, model):
    """A word that stands twice counts twice; marks of beginning and end, and padding, do not."""
    vectors = model.vector(batch(view, *TEXTS))
    assert_same(vectors, torch.stack([summed(model, text.split()) for text in TEXTS]))
    turned = [" ".join(reversed(text.split())) for text in TEXTS]
    torch.testing.assert_close(model.vector(batch(view, *turned)), vectors)
    twice = model.vector(batch(view, "cat cat dog"))[0]
    torch.testing.assert_close(twice, 2 * summed(model, ["cat"]) + summed(model, ["dog"]))


@pytest.mark.parametrize(("cls", "learns", "steps"), BOTH)
@pytest.mark.parametrize("training", [False, True])
def test_each_word_beside_a_sentence_is_told_by_its_sum_written_out(view, cls, learns, steps, training):
    """The softmax over all words, by second vectors; with AE the sentence's own words, too."""
    model = small(cls, view.width, view, dims=4)
    objective = small(learns, model).train(training)
    pieces = packed(view, *TEXTS) if training else batch(view, *TEXTS)
    logs, rows = objective(model, pieces, noise_of(pieces))
    expected, owners = [], []
    for step in steps:
        for row, text in enumerate(TEXTS):
            for at, told in told_of(text, (step,)):
                scores = objective.targets.weight @ summed(model, sentences_of(text)[at])
                ids = [number(view, word) for word in told] or [view.separator]
                expected += [scores[id] - scores.exp().sum().log() for id in ids]
                owners += [0 if training else row] * len(ids)
    assert cls.learns is learns
    assert len(expected) == {2: 25, 3: 49}[len(steps)]
    assert rows.tolist() == owners
    assert_same(logs, torch.stack(expected), rtol=1e-4, atol=1e-4)


def test_a_sentence_tells_nothing_of_another_text(view, model):
    """Texts stand one behind another in training."""
    objective = small(WordsBeside, model)
    one, two = (packed(view, "a dog . a cat .", text) for text in ("the mat . the cat", "on the mat . the cat"))
    logs = [objective(model, pieces, noise_of(pieces)).logs for pieces in (one, two)]
    assert [len(each) for each in logs] == [6 + 5, 6 + 6]
    torch.testing.assert_close(logs[0][:3], logs[1][:3])  # a dog . behind the other sentence of its text
    torch.testing.assert_close(logs[0][6:9], logs[1][7:10])  # a cat . before it


def test_who_knows_the_texts_tells_each_word_by_its_share_beside_the_sentence(view):
    """Of a bag nobody can tell which word stands first; equal sentences of two texts are one."""
    texts = ["a dog . cat cat sat", "dog a . mat", "sat"]
    told = {"ad": Counter({"cat": 2, "sat": 1, "mat": 1}), "ccs": Counter({"a": 1, "dog": 1, ".": 1})}
    rows: Any = [{"id": text, "text": text} for text in texts]
    first = sum(math.log(told["ad"][word] / 4) for word in ("cat", "cat", "sat"))
    back = 3 * math.log(1 / 3)
    assert WordsBeside.by_heart(view, rows) == [
        [pytest.approx(first + back), 6],
        [pytest.approx(math.log(1 / 4) + back), 4],
        [0.0, 2],
    ]


@pytest.mark.parametrize("learns", [WordsBeside, WordsOfAndBeside, Restored])
def test_the_floor_has_each_word_by_its_share_of_what_training_is_asked(view, learns):
    """Asked as often as a model is; a word that training never asks is not impossible."""
    train = ["a dog . a cat .", "the mat"]
    counts: Counter[int] = Counter(range(view.width))
    for text in train:
        for _, words in told_of(text, learns.steps):
            ids = [number(view, word) for word in words]
            counts.update([*ids, view.separator] if learns is Restored else ids or [view.separator])
    expected = []
    for text in TEXTS:
        asked = []
        for _, words in told_of(text, learns.steps):
            ids = [number(view, word) for word in words]
            asked += [*ids, view.separator] if learns is Restored else ids or [view.separator]
        total = sum(math.log(counts[id] / counts.total()) for id in asked)
        expected.append([pytest.approx(total, rel=1e-5), len(asked)])
    rows: Any = [[{"id": text, "text": text} for text in texts] for texts in (train, TEXTS)]
    assert learns.floor(view, *rows) == expected


# --- SDAE: noise ---

SIZES = {"embedded": 4, "hidden": 5}


@pytest.fixture
def reader(view: WholeWords) -> SequentialDenoisingAutoencoder:
    return small(SequentialDenoisingAutoencoder, view.width, view, stretch=2.0, **SIZES)


def changed(words: list[int], numbers: list[tuple[float, float]], deleted: float, swapped: float) -> list[int]:
    """A sentence under noise, by a loop: each word has a number by which it is deleted, and one by
    which it changes places with the next."""
    left = [(word, second) for word, (first, second) in zip(words, numbers, strict=True) if first >= deleted]
    for place in range(0, len(left) - 1, 2):
        if left[place][1] < swapped:
            left[place : place + 2] = [left[place + 1], left[place]]
    return [word for word, _ in left]


@pytest.mark.parametrize(("deleted", "swapped"), [(0.3, 0.5), (0.0, 1.0), (0.5, 0.0), (1.0, 1.0), (0.0, 0.0)])
def test_noise_deletes_words_and_swaps_pairs_of_what_is_left_by_a_loop(view, reader, deleted, swapped):
    """Each word is in one pair at most; the marks stay where they are."""
    texts = [*TEXTS, "mat", "cat dog", "on the mat the dog sat on the cat and a"]
    pieces = batch(view, *texts)
    found = sentences(pieces, view, 30)
    objective = Restored(reader)
    objective.deleted, objective.swapped = deleted, swapped
    noisy = objective.noisy(found, noise_of(pieces, 4, 2))
    drawn = noise_of(pieces, 4, 2)
    first, second = drawn.uniform(pieces.ids.shape[1]), drawn.uniform(pieces.ids.shape[1])
    every = []
    for row, text in enumerate(texts):
        at = 1
        for words in sentences_of(text):
            ids = pieces.ids[row, at : at + len(words)].tolist()
            numbers = [(first[row, at + n].item(), second[row, at + n].item()) for n in range(len(words))]
            every.append([view.start, *changed(ids, numbers, deleted, swapped), view.separator])
            at += len(words)
    assert noisy.lengths.tolist() == [len(ids) for ids in every]
    assert [ids[:n].tolist() for ids, n in zip(noisy.ids, noisy.lengths, strict=True)] == every
    assert torch.equal(noisy.mask.sum(1), noisy.lengths)


def test_noise_has_its_rates_and_is_anew_in_each_pass(view, reader):
    """A tenth each. In evaluation it is the same for ever, and a text has its own in any batch."""
    names = [word for word in view.words if word not in ".!"]
    drawn = torch.randint(len(names), (220, 30), generator=torch.Generator().manual_seed(0)).tolist()
    pieces = batch(view, *[" ".join(names[number] for number in row) for row in drawn])
    found = sentences(pieces, view, 30)
    assert len(found.rows) == 220
    objective = Restored(reader)
    assert (objective.deleted, objective.swapped) == (0.1, 0.1)
    one, again, two, other = (
        objective.noisy(found, noise_of(pieces, *key)) for key in ((3, 1), (3, 1), (3, 2), (4, 1))
    )
    assert one.lengths.double().mean().item() == pytest.approx(2 + 27, abs=0.3)
    assert torch.equal(one.ids, again.ids)
    assert not torch.equal(one.lengths, two.lengths) and not torch.equal(one.lengths, other.lengths)
    objective.deleted = 0.0
    moved = (objective.noisy(found, noise_of(pieces, 3, 1)).ids != found.pieces.ids).double().mean().item()
    different = 1 - 1 / len(names)  # two words of a pair may be the same
    assert moved == pytest.approx(0.1 * different * 30 / 32, abs=0.02)
    alone = batch(view, TEXTS[0])
    both = batch(view, *TEXTS)
    objective.deleted = 0.4
    for key in ((), (5, 1)):
        apart, beside = (objective.noisy(sentences(p, view, 30), noise_of(p, *key)) for p in (alone, both))
        for at in range(3):
            length = int(apart.lengths[at])
            assert torch.equal(apart.ids[at, :length], beside.ids[at, :length]) and beside.lengths[at] == length


# --- SDAE: restoring ---


@pytest.mark.parametrize("key", [(), (2, 3)])
def test_a_sentence_is_restored_from_the_last_state_behind_its_noise_in_loops(view, reader, key):
    """All its words and its end, each by those before it as they were, and not by noise."""
    objective = small(Restored, reader, stretch=2.0).train(bool(key))
    objective.deleted = objective.swapped = 0.4
    pieces = packed(view, *TEXTS) if key else batch(view, *TEXTS)
    logs, rows = objective(reader, pieces, noise_of(pieces, *key))
    noisy = objective.noisy(sentences(pieces, view, 30), noise_of(pieces, *key))
    clean = [(row, words) for row, text in enumerate(TEXTS) for words in sentences_of(text)]
    table, expected, owners = reader.network.table.weight, [], []
    for at, (row, words) in enumerate(clean):
        vector = gru(reader.network.recurrence, table[noisy.ids[at, : noisy.lengths[at]]])[-1]
        ids = [number(view, word) for word in words]
        first = torch.tanh(linear(objective.beginning, vector))
        states = conditioned_gru(objective.decoder.recurrence, table[[view.start, *ids]], vector, first)
        for state, word in zip(states, [*ids, view.separator], strict=True):
            scores = linear(objective.output, state)
            expected.append(scores[word] - scores.exp().sum().log())
            owners.append(0 if key else row)
    assert (noisy.lengths < sentences(pieces, view, 30).pieces.lengths).any()
    assert rows.tolist() == owners
    assert_same(logs, torch.stack(expected), rtol=1e-4, atol=1e-4)


def test_every_gate_of_the_decoder_sees_the_sentence(view, reader):
    """A context moves each of the three parts; one that no gate sees is a mere beginning."""
    objective = small(Restored, reader)
    vectors = torch.randn(2, 6, 4)
    contexts = torch.randn(2, 2, 5)
    h = torch.zeros(2, 5)
    for gate in range(3):
        weights = objective.decoder.recurrence.weight_ih_l0
        with torch.no_grad():
            before = weights.clone()
            weights[:, 4:] = 0
            assert torch.equal(*(objective.decoder(vectors, context, h) for context in contexts))
            weights[gate * 5 : (gate + 1) * 5] = before[gate * 5 : (gate + 1) * 5]
            states = [objective.decoder(vectors, context, h) for context in contexts]
            assert not torch.isclose(*states).all(-1).any(), "at each step"
            weights.copy_(before)


def test_a_text_is_read_without_noise_sentence_by_sentence(view, reader):
    """By a task: its vector is the mean of the last states."""
    reader.deleted = reader.swapped = 1.0
    expected = []
    for text in TEXTS:
        ids = [[view.start, *(number(view, word) for word in words), view.separator] for words in sentences_of(text)]
        states = [gru(reader.network.recurrence, reader.network.table.weight[each])[-1] for each in ids]
        expected.append(sum(states) / len(states))
    assert_same(reader.train().vector(batch(view, *TEXTS)), torch.stack(expected), rtol=1e-4, atol=1e-4)
    assert reader.size == 5


def test_who_knows_a_sentence_by_heart_can_restore_it_for_certain(view):
    rows: Any = [{"id": text, "text": text} for text in TEXTS]
    assert Restored.by_heart(view, rows) == [[0.0, 1]] * 3


# --- features ---


@pytest.mark.parametrize("tuned", [False, True])
@pytest.mark.parametrize("cls", [FastSent, FastSentAutoencoder, SequentialDenoisingAutoencoder])
def test_a_child_has_the_parents_features_and_leaves_them_unless_it_is_tuned(view, cls, tuned):
    sizes = SIZES if cls is SequentialDenoisingAutoencoder else {"dims": 4}
    parent = small(cls, view.width, view, **sizes)
    child = cls(view.width, view, tuned=tuned, **sizes)
    child.inherit("weights", SimpleNamespace(model=SimpleNamespace(encoder=parent), view=view), ())  # type: ignore[arg-type]
    pieces = batch(view, *TEXTS)
    torch.testing.assert_close(child.vector(pieces), parent.vector(pieces))
    assert torch.equal(child(pieces)[:, 0], child.vector(pieces))
    assert all(parameter.requires_grad == tuned for parameter in child.parameters())


def test_the_three_start_from_themselves_and_read_one_text():
    """What they are scored on differs, and is not ranked together."""
    classes = {"fastsent": FastSent, "fastsent_ae": FastSentAutoencoder, "sdae": SequentialDenoisingAutoencoder}
    for id, cls in classes.items():
        entry = registry.entry("architectures", id)
        assert entry.parents == {"weights": f"{id}@text_mix"}
        assert registry.load(entry) is cls
        types = ("text", "classify", "regress", "multilabel", "tag", "match", "rank", "extract")
        assert [type for type in types if cls.can_answer(type)] == ["text", "classify", "regress", "multilabel"]
        read: Any = cls.reads("text", {"vocabulary": 77, "max_length": 33})
        assert isinstance(read, WholeWords) and read.lower and (read.size, read.max_length) == (77, 33)
        assert cls.learns.packs and cls.learns.longest == (30 if id == "sdae" else 100)
    assert len({cls.learns.unit for cls in classes.values()}) == 3
    assert (Restored.steps, WordsBeside.steps, WordsOfAndBeside.steps) == ((0,), (-1, 1), (-1, 0, 1))


def test_second_vectors_begin_as_small_as_the_first_ones(view):
    """At 0, as in word2vec, nothing would reach the first ones in the first step."""
    weights = WordsBeside(FastSent(view.width, view, dims=400)).targets.weight
    assert weights.abs().max() <= 0.5 / 400 and weights.std().item() == pytest.approx(0.5 / 400 / 3**0.5, rel=0.05)
