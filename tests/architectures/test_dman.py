"""DMAN: clauses found by a loop, their marker told from a BiLSTM's states, matching written out
word by word with the gates of the marker vectors, and the gradient of the expected agreement over
all labels."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from architectures.matching import dman
from architectures.matching.dman import DMAN, MARKERS, AgreementReward, DiscourseMarkers, clauses, expected_reward
from harness import registry
from harness.objectives import Step
from harness.problems import problem
from harness.problems.base import Batch
from harness.problems.classify import ClassTarget
from harness.registry import Recipe
from harness.training.model import build, objective_of
from harness.views.whole_words import WholeWords
from tests.support.models import small
from tests.support.oracles import linear, softmax_mean
from tests.support.pairs import bilstm, inputs_of, share_of_zeros
from tests.support.plain_text import batch, noise_of, sentences_of
from tests.support.same import assert_same

TEXTS = [
    "the cat sat down but a dog ran off because the mat was wet .",
    "a dog ran . the cat was wet so the dog sat on a mat ! so the cat ran off",
    "the mat was wet",
    "but the cat sat on the mat . the dog so wet . a cat sat on if",
    "the dog ran off when the cat sat on it , although the mat was wet",
]
PAIRS = [("the cat sat on the mat", "a dog ran"), ("a zebra ran", "a unicorn ran off the mat"), ("it", "it was wet")]
LABELS = [0, 2, 1]
SIZES = {"embedded": 3, "markers": 2, "hidden": 4, "dropout": 0.0, "marker_dropout": 0.0}


@pytest.fixture(scope="module")
def view() -> WholeWords:
    made: Any = DMAN.reads("text", {"vocabulary": 60, "max_length": 60})
    assert isinstance(made, WholeWords) and made.lower and (made.size, made.max_length) == (60, 60)
    made.fit(TEXTS)
    return made


@pytest.fixture
def model(view: WholeWords) -> DMAN:
    return small(DMAN, view.width, view, stretch=2.0, **SIZES)


@pytest.fixture
def objective(model: DMAN) -> DiscourseMarkers:
    return small(DiscourseMarkers, model, stretch=1.0)


def pairs_of(text: str) -> list[tuple[list[str], str, list[str]]]:
    """The clauses around each marker of a text, by a loop over its words."""
    found = []
    for words in sentences_of(text):
        places = [place for place, word in enumerate(words) if word in MARKERS]
        for place in places:
            before = words[max([other + 1 for other in places if other < place], default=0) : place]
            behind = words[place + 1 : min([other for other in places if other > place], default=len(words))]
            if len(before) >= 3 and len(behind) >= 3:
                found.append((before, words[place], behind))
    return found


def numbers(view: WholeWords, words: list[str]) -> list[int]:
    return [view.words.get(word, view.unknown) for word in words]


def marker_vector(model: DMAN, ids: list[int]) -> Tensor:
    """The largest states, the last one forwards, and the last one backwards."""
    states = bilstm(model.markers.recurrence, model.markers.table.weight[ids])
    return torch.cat([states.max(0).values, states[-1, :2], states[0, 2:]])


def four(u: Tensor, v: Tensor) -> Tensor:
    return torch.cat([u, v, u + v, u * v])


# --- the markers ---


def test_the_pairs_are_the_clauses_around_each_marker(view):
    """Whoever is pre-trained on clauses of two sentences, or on a marker's other side, learns
    nothing of how clauses are joined."""
    found = clauses(batch(view, *TEXTS), view)
    expected = []
    for row, text in enumerate(TEXTS):
        expected += [(row, *pair) for pair in pairs_of(text)]
    assert [row for row, *_ in expected] == [0, 0, 1, 4, 4]
    for number, (row, before, marker, behind) in enumerate(expected):
        for side, words in ((found.first, before), (found.second, behind)):
            assert side.ids[number][side.mask[number]].tolist() == numbers(view, words)
            assert (side.ids[number][~side.mask[number]] == view.pad).all()
        assert (found.rows[number], MARKERS[found.markers[number]]) == (row, marker)
    assert found.rows[5:].tolist() == [2, 3] and (found.markers[5:] == len(MARKERS)).all()
    for side in (found.first, found.second):
        for row in (5, 6):
            assert side.ids[row][side.mask[row]].tolist() == [view.start, view.separator]


def test_no_marker_is_left_in_what_is_read(view, model, objective):
    """One that sees the answer learns to copy it, and its score is a lie. It is told from what the
    network is given."""
    read: list[Tensor] = []
    model.markers.register_forward_pre_hook(lambda _, given: read.append(given[0].ids))
    for text in (
        *TEXTS,
        "the cat sat on so but the dog ran off",
        "but so if when",
        "the cat ran if so the dog ran off",
    ):
        pieces = batch(view, text)
        objective(model, pieces, noise_of(pieces))
    seen = torch.cat([ids.flatten() for ids in read]).tolist()
    known = [view.words[marker] for marker in MARKERS if marker in view.words]
    assert len(known) == 6 and not set(known) & set(seen)
    assert set(numbers(view, ["cat", "dog", "mat"])) <= set(seen)


def test_a_marker_is_told_by_both_vectors_written_out(view, model, objective):
    """Through four ReLU layers and a softmax, with the sum and the product of the vectors."""
    pieces = batch(view, *TEXTS)
    logs, rows = objective(model, pieces, noise_of(pieces))
    marks, silent = [view.start, view.separator], [2, 3]
    asked = [(row, numbers(view, a), MARKERS.index(marker), numbers(view, b))
             for row, text in enumerate(TEXTS) for a, marker, b in pairs_of(text)]  # fmt: skip
    expected = []
    for _, a, answer, b in [*asked, *((row, marks, len(MARKERS), marks) for row in silent)]:
        state = four(marker_vector(model, a), marker_vector(model, b))
        for layer in objective.layers:
            state = linear(layer, state).clamp(min=0)
        scores = linear(objective.output, state)
        expected.append(scores[answer] - scores.exp().sum().log())
    assert len(objective.layers) == 4 and len(objective.output.bias) == 9
    assert rows.tolist() == [row for row, *_ in asked] + silent
    assert_same(logs, torch.stack(expected), rtol=1e-4, atol=1e-4)


def test_a_text_is_asked_the_same_in_any_batch(view, model, objective):
    together = batch(view, *TEXTS)
    logs, rows = objective(model, together, noise_of(together))
    for row, text in enumerate(TEXTS):
        alone = batch(view, text)
        torch.testing.assert_close(objective(model, alone, noise_of(alone)).logs, logs[rows == row])


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("a cat ran but a dog sat", True),
        ("cat ran but a dog sat", False),
        ("a cat ran but dog sat", False),
        ("but a cat ran", False),
    ],
)
def test_clauses_of_two_words_are_not_asked(view, text, asked):
    """Of "not so good" nothing is joined."""
    assert (clauses(batch(view, text), view).markers[0] == 0) == asked


def test_of_a_long_sentence_fifty_words_are_read(view):
    """A clause behind them is another one, or none."""
    pieces = [batch(view, " ".join(["cat"] * n + ["but"] + ["dog"] * 60)) for n in (10, 46, 47)]
    found = [clauses(each, view) for each in pieces]
    assert [int(each.markers[0]) for each in found] == [0, 0, len(MARKERS)]
    assert [each.second.mask.sum().item() for each in found[:2]] == [39, 3]


def test_the_floor_knows_how_often_each_marker_stands(view):
    """Each answer counted once more; texts without a marker are asked once."""
    rows: Any = [{"id": text, "text": text} for text in TEXTS]
    logs = {"but": 2 / 16, "because": 2 / 16, "so": 2 / 16, "when": 2 / 16, "although": 2 / 16, None: 3 / 16}
    for (log, count), text in zip(DiscourseMarkers.floor(view, rows, rows), TEXTS, strict=True):
        told = [marker for _, marker, _ in pairs_of(text)] or [None]
        assert count == len(told)
        assert log == pytest.approx(sum(math.log(logs[marker]) for marker in told))


def test_each_text_stays_for_itself():
    """Put together, texts would be asked seldom what those without a marker are asked, and in
    evaluation half of them are."""
    assert not DiscourseMarkers.packs and DMAN.learns is DiscourseMarkers


# --- the matching ---


def pair_batch(view: WholeWords, pairs: list[tuple[str, str]] = PAIRS):
    first, second = (view.encode([pair[n] for pair in pairs]) for n in (0, 1))
    return view.collate_pair(first, second, np.arange(len(pairs)))


def written_out(model: DMAN, first: list[int], second: list[int]) -> Tensor:
    """The vector of one pair, word by word."""
    m, unknown = model.matching, model.view.unknown
    r, s = marker_vector(model, first), marker_vector(model, second)

    def encoded(own, other, told):
        read = []
        for word in own:
            x = torch.cat([m.table.weight[word], torch.tensor([float(word in other and word != unknown)])])
            gate = torch.sigmoid(linear(m.word_gate, x) + linear(m.told_gate, told))
            read.append(torch.cat([x, gate * linear(m.told, told)]))
        return bilstm(m.encoding, torch.stack(read))

    a, b, pooled = encoded(first, second, r), encoded(second, first, s), []
    for own, other, known in ((a, b, four(r, s)), (b, a, four(s, r))):
        fused = []
        for h in own:
            h_ = softmax_mean([h @ candidate for candidate in other], other)
            seen = torch.cat([h, h_, h - h_, h * h_])
            z = torch.sigmoid(linear(m.compared_gate, seen) + linear(m.known_gate, known))
            fused.append(z * linear(m.compared, seen).clamp(min=0) + (1 - z) * linear(m.known, known).tanh())
        states = bilstm(m.composition, torch.stack(fused))
        pooled += [states.mean(0), states.max(0).values]
    return linear(m.output, torch.cat(pooled)).clamp(min=0)


def test_a_batch_of_pairs_is_each_pair_written_out(view, model):
    """A gate that lets nothing through, the other text's vector, or padding that is read would show
    here, in values and gradients of what is trained."""
    found = model.vector(pair_batch(view))
    expected = [written_out(model, *(numbers(view, text.split()) for text in pair)) for pair in PAIRS]
    assert_same(found, torch.stack(expected), rtol=1e-4, atol=1e-4)
    assert (found > 0).any(1).all(), "a ReLU layer without any positive state compares nothing"


def test_the_marker_vectors_reach_the_answer_through_both_gates(view, model):
    """Who takes them out of either matches the texts by their words alone there."""
    pieces, whole = pair_batch(view), model.vector(pair_batch(view))
    for layer in (model.matching.told, model.matching.known):
        kept = layer.weight.detach().clone()
        with torch.no_grad():
            layer.weight.zero_()
            assert not torch.isclose(model.vector(pieces), whole).all(1).any()
            layer.weight.copy_(kept)


def test_a_gate_has_one_bias(model):
    """Of two that are added one would be trained for nothing."""
    matching = model.matching
    assert matching.word_gate.bias is None and matching.compared_gate.bias is None
    assert matching.told_gate.bias is not None and matching.known_gate.bias is not None


def test_dropout_acts_on_what_the_layers_read(view):
    """Shares of the numbers, of the rate that the setting names."""
    model = small(DMAN, view.width, view, **(SIZES | {"hidden": 40, "embedded": 40, "markers": 8, "dropout": 0.5}))
    m = model.train().matching
    layers = (m.encoding.forwards[0], m.compared, m.composition.forwards[0], m.output)
    read = inputs_of(*layers)
    model.vector(pair_batch(view))
    words = [each[..., :40] for each in read[0]]
    for seen in (words, *read[1:3]):
        assert share_of_zeros(seen) == pytest.approx(0.5, abs=0.12)
    assert share_of_zeros(read[3]) == pytest.approx(0.5, abs=0.05)


def test_dropout_acts_behind_each_layer_that_tells_markers(view):
    model = small(DMAN, view.width, view, **(SIZES | {"markers": 40, "marker_dropout": 0.5}))
    objective = DiscourseMarkers(model.train())
    read = inputs_of(*objective.layers[1:], objective.output)
    pieces = batch(view, *TEXTS)
    torch.manual_seed(0)
    objective(model, pieces, noise_of(pieces))
    for seen in read:  # behind ReLU some half of what is left is 0 too
        assert share_of_zeros(seen) > 0.6


def test_unknown_words_of_both_texts_are_not_the_same_word(view, model):
    """A zebra is no unicorn."""
    seen: list[Tensor] = []
    model.matching.register_forward_pre_hook(lambda _, given: seen.append(given[2]))
    model.vector(pair_batch(view))
    assert seen[0][1].nonzero().tolist() == [[0, 0], [2, 2]]
    assert seen[0][2].nonzero().tolist() == [[0, 0]]


def test_an_empty_text_gives_numbers(view, model):
    assert model.vector(pair_batch(view, [("", "a dog"), ("a dog", ""), ("", "")])).isfinite().all()


# --- the parent ---


def parent_of(model: DMAN) -> Any:
    return SimpleNamespace(model=SimpleNamespace(encoder=model, get_submodule=lambda name: model.markers), view=None)


def test_the_reader_of_markers_stays_as_it_was_learnt(view, model):
    """Frozen: no gradient, no dropout and no step of an optimiser changes the parent's vectors, and
    everything else is trained."""
    child = DMAN(view.width, view, **(SIZES | {"marker_dropout": 0.5}))
    child.inherit("weights", parent_of(model), ())
    child.train()
    pieces = pair_batch(view)
    for text in dman.both(pieces, view.pad):
        torch.testing.assert_close(child.markers(text), model.markers(text))
    torch.testing.assert_close(child.matching.table.weight, model.markers.table.weight)
    child.vector(pieces).sum().backward()
    assert all(p.grad is None and not p.requires_grad for p in child.markers.parameters())
    assert all(p.grad is not None and p.requires_grad for p in child.matching.parameters())
    before = child.markers.table.weight.clone()
    child.matching.table.weight.data.add_(1)
    assert torch.equal(child.markers.table.weight, before), "the copy is trained, not the parent's table"


def test_it_starts_from_what_it_learnt_on_the_text_mix():
    assert registry.entry("architectures", "dman").parents == {"weights": "dman@text_mix"}


def test_without_a_parent_the_reader_is_trained(view, model):
    model.vector(pair_batch(view)).sum().backward()
    assert all(p.grad is not None for p in model.markers.recurrence.parameters())


# --- the reward ---


def test_the_gradient_is_that_of_all_labels_drawn():
    """sum_l p(l) R(l) grad log p(l), enumerated: what REINFORCE has on average, with annotators who
    do not agree."""
    scores = torch.tensor([[0.3, -1.0, 0.8], [2.0, 0.1, -0.4]], dtype=torch.double, requires_grad=True)
    rewards = torch.tensor([[0.6, 0.0, 0.4], [0.2, 0.8, 0.0]], dtype=torch.double)
    found = expected_reward(scores, rewards)
    [gradient] = torch.autograd.grad(found.sum(), scores)
    for row in range(2):
        chances, slope = scores[row].softmax(0).detach(), torch.zeros(3, dtype=torch.double)
        for label in range(3):
            [of_log] = torch.autograd.grad(scores[row].log_softmax(0)[label], scores)
            slope += chances[label] * rewards[row, label] * of_log[row]
        torch.testing.assert_close(gradient[row], slope)
        assert found[row].item() == pytest.approx(sum((chances * rewards[row]).tolist()))


@pytest.mark.parametrize("supervised", [1.0, 0.3, 0.0])
def test_the_loss_is_cross_entropy_less_expected_agreement(view, supervised):
    """Through the model, by the labels of rows, enumerated: without the reward it is another
    system."""
    torch.manual_seed(0)
    target = ClassTarget()
    target.fit([{"label": label} for label in "xyz"])
    model = build(DMAN, problem("match"), SIZES | {"supervised": supervised}, view, target, 0)
    objective = objective_of(model, Recipe())
    assert isinstance(objective, AgreementReward)
    rows = Batch({"text": pair_batch(view)}, torch.tensor(LABELS), np.arange(3), 10)
    losses = objective.losses(model, Step({"labelled": rows}, progress=0.5))
    scores = linear_rows(model.head.output, model.encoder.vector(pair_batch(view)))
    right = torch.stack([row.softmax(0)[label] for row, label in zip(scores, LABELS, strict=True)])
    assert_same(losses["loss"], -supervised * right.log().mean() - (1 - supervised) * right.mean())
    assert losses["reward"].item() == pytest.approx(right.mean().item())
    assert losses["task"].item() == pytest.approx(-right.log().mean().item())


def linear_rows(layer: torch.nn.Linear, vectors: Tensor) -> Tensor:
    return torch.stack([linear(layer, vector) for vector in vectors])


@pytest.mark.parametrize(("type", "fits"), [("text", True), ("match", True), ("classify", False), ("rank", False)])
def test_it_reads_pairs_and_plain_text(type, fits):
    assert DMAN.can_answer(type) == fits
