"""ERNIE 2.0: states are those of transformers' model, what its five tasks ask is worked out by
hand, and each schedule gives every task as many texts."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tokenizers.models import WordPiece

from architectures.blocks.objectives import continual_tasks
from architectures.blocks.objectives.continual_tasks import (
    LAST_STAGE,
    ORDERS,
    SCHEDULES,
    TASKS,
    Answers,
    ContinualTasks,
    capitals,
    cuts,
    distance,
    document,
    order,
    shares,
)
from architectures.blocks.objectives.masked_pieces import MaskedPieces
from architectures.blocks.units import MarkedSubwords
from architectures.pretrained.ernie2 import ERNIE2
from harness.layers.noise import Noise
from harness.objectives import collected_losses
from harness.problems.text_objective import LearnText, PieceTarget
from harness.views.subwords import SPECIAL, SubwordBatch, _tokenizer
from tests.support.models import small
from tests.support.plain_text import batch
from tests.support.published import saved

transformers = pytest.importorskip("transformers")

PIECES = [*SPECIAL, "the", "cat", "##s", "sat", "a", "mat", "dog", "ran", ".", "!", "on"]
TEXT = "The cats sat. A dog ran! The Mat."
SIZES = {"layers": 1, "hidden": 16, "heads": 2}


@pytest.fixture
def view() -> MarkedSubwords:
    """A view whose pieces are :data:`PIECES`."""
    made = MarkedSubwords(max_length=24)
    made._set(_tokenizer(WordPiece({piece: id for id, piece in enumerate(PIECES)}, unk_token="[UNK]"), True), SPECIAL)
    return made


def noise_of(pieces: SubwordBatch, *key: int, progress: float = 0.99) -> Noise:
    return Noise(pieces.ids, pieces.mask, key, progress)


def numbers(*drawn: Any) -> Any:
    """A noise that gives these numbers, one after another."""
    following = iter(drawn)
    return SimpleNamespace(uniform=lambda *shape: torch.tensor(next(following)), anew=True)


def read(answers: Answers, row: int = 0) -> str:
    pieces = answers.read
    return " ".join(PIECES[id] for id in pieces.ids[row][pieces.mask[row]].tolist())


# --- the encoder ---


def tiny(path: Path, with_tasks: bool) -> Path:
    """A tiny ERNIE, with vectors of tasks or without, with random weights and its tokenizer, as the
    hub holds them."""
    torch.manual_seed(0)
    config = transformers.ErnieConfig(
        vocab_size=len(PIECES),
        hidden_size=8,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=32,
        initializer_range=0.5,
        use_task_id=with_tasks,
        task_type_vocab_size=6,
        type_vocab_size=4,
    )
    return saved(path, transformers.ErnieModel(config), PIECES)


@pytest.mark.parametrize("with_tasks", [True, False])
def test_states_vectors_and_gradients_are_those_of_transformers(tmp_path, with_tasks):
    folder = tiny(tmp_path, with_tasks)
    view = ERNIE2.reads("text", {"pretrained": str(folder), "max_length": 32})
    view.fit([])
    ours = ERNIE2(view.width, view).eval()
    reference = transformers.AutoModel.from_pretrained(folder).eval()
    pieces = view.collate_pair(view.encode([TEXT, "cats"]), view.encode(["a dog", TEXT]), np.arange(2))
    given = {"input_ids": pieces.ids, "attention_mask": pieces.mask.long(), "token_type_ids": pieces.segments}
    expected = reference(**given)
    states = ours(pieces)
    torch.testing.assert_close(states[pieces.mask], expected[0][pieces.mask], rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(ours.pooled(states), expected.pooler_output, rtol=1e-5, atol=1e-5)
    for part, vectors in (states, ours.pooled(states)), (expected[0], expected[1]):
        (part[pieces.mask].sin().sum() + vectors.sin().sum()).backward()
    slopes = reference.embeddings.word_embeddings.weight.grad
    assert slopes.abs().max() > 0.1
    torch.testing.assert_close(ours.table.weight.grad, slopes, rtol=1e-4, atol=1e-5)
    if with_tasks:
        of_first = reference.embeddings.task_type_embeddings.weight.grad[0]
        torch.testing.assert_close(ours.tasks.weight.grad[0], of_first, rtol=1e-4, atol=1e-5)


def test_the_vector_of_a_task_is_added_to_those_of_the_pieces(view):
    ours = small(ERNIE2, view.width, view, **SIZES)
    pieces = batch(view, TEXT, "a dog")
    moved = ours.table(pieces.ids) + ours.tasks.weight[torch.tensor([3, 1])][:, None]
    expected = super(ERNIE2, ours).forward(pieces, moved)
    assert torch.equal(ours(pieces, torch.tensor([3, 1])), expected)
    assert not torch.allclose(ours(pieces), expected, atol=1e-3)


def test_an_unknown_schedule_is_refused(view):
    with pytest.raises(ValueError, match="schedule='slow' is none of 'continual', 'together', 'one by one'"):
        ERNIE2(view.width, view, **SIZES, schedule="slow")


# --- schedules ---


def test_stages_of_the_continual_schedule_by_hand():
    """Of 30 parts the stages have 2, 4, 6, 8 and 10."""
    for progress, parts in (
        (0.0, [2, 0, 0, 0, 0]),
        (1.9 / 30, [2, 0, 0, 0, 0]),
        (2.1 / 30, [1, 3, 0, 0, 0]),
        (6.1 / 30, [1, 1, 4, 0, 0]),
        (12.1 / 30, [1, 1, 1, 5, 0]),
        (20.1 / 30, [1, 1, 1, 1, 6]),
        (1.0, [1, 1, 1, 1, 6]),
    ):
        assert shares("continual", progress).tolist() == pytest.approx([part / sum(parts) for part in parts])


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_every_schedule_gives_every_task_as_many_texts(schedule):
    """Else the comparison of the schedules would be one of tasks."""
    at = [shares(schedule, (step + 0.5) / 3000) for step in range(3000)]
    torch.testing.assert_close(torch.stack(at).mean(0), torch.full((5,), 0.2), atol=1e-3, rtol=0)
    assert all(abs(each.sum().item() - 1) < 1e-6 for each in at)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_epochs_before_the_last_task_has_come_are_not_chosen(schedule):
    """Dev asks masked pieces, of which the first epochs ask most: weights would be kept that four
    tasks never reached."""
    begins = LAST_STAGE[schedule]
    assert all(shares(schedule, begins + 1e-6) > 0) or shares(schedule, begins + 1e-6)[-1] == 1
    assert begins == 0 or shares(schedule, begins - 1e-6)[-1] == 0


def test_texts_are_asked_by_the_shares(view):
    ernie = small(ERNIE2, view.width, view, **SIZES)
    learns = small(ContinualTasks, ernie)
    pieces = batch(view, *[TEXT] * 2000)
    noise = Noise(pieces.ids + 100 * torch.arange(2000)[:, None], pieces.mask, (0, 1), 0.5)
    found = learns.asked_for(pieces, noise).bincount(minlength=5) / 2000
    assert found.tolist() == pytest.approx([1 / 8, 1 / 8, 1 / 8, 5 / 8, 0], abs=0.04)


# --- what is asked ---


def test_capitals_by_hand(view):
    """Of "The cats sat. A dog ran! The Mat.": those that the lower case of the pieces hides."""
    pieces = batch(view, TEXT, "the cat")
    found = capitals(pieces, view)
    named = [PIECES[id] for id in pieces.ids[0][found.labels[0].bool()].tolist()]
    assert named == ["the", "a", "the", "mat"] and not found.labels[1].any()
    assert found.asked.sum(1).tolist() == [len(view.encode([TEXT])["ids"][0]), 2]


def test_a_segment_is_read_alone_and_its_pieces_are_looked_for_in_the_rest(view):
    pieces = batch(view, TEXT, "mat")
    found = document(pieces, view, torch.tensor([5, 1]), torch.tensor([True, False]))
    assert read(found) == "[CLS] the cat ##s sat . [SEP]"
    assert found.labels[0, 1:6].tolist() == [1, 0, 0, 0, 1]
    assert found.asked[0].nonzero()[:, 0].tolist() == [1, 2, 3, 4, 5] and not found.asked[1].any()
    assert found.read.lengths[0] == 7


def test_cuts_are_ends_of_sentences_or_words(view):
    pieces = batch(view, TEXT, "the cats sat", "mat", "the cat. mat")
    for key in range(10):
        places, there = cuts(pieces, view, noise_of(pieces, key))
        assert set(places[0].tolist()) == {5, 9}
        assert set(places[1].tolist()) == {1, 3}
        assert there.tolist() == [[True, True], [True, True], [False, False], [True, False]]
        assert places[3, 0] == 3


def test_nine_classes_of_order_by_hand(view):
    """The segments of a text, as often as they can be put otherwise, and the class of each."""
    assert len(ORDERS) == 9 == len(set(ORDERS))
    pieces = batch(view, TEXT)
    a, b, c = "the cat ##s sat .", "a dog ran !", "the mat ."
    ends, there = torch.tensor([[9, 5]]), torch.tensor([[True, True]])
    whole = {0: [a + " " + b + " " + c], 1: [a + " " + b, c], 2: [a, b, c]}
    seen = set()
    for count in range(3):
        for ranks in itertools.permutations(range(count + 1)):
            drawn = [[*(0.1 + 0.2 * rank for rank in ranks), 0.9, 0.9][:3]]
            found = order(pieces, view, numbers([(count + 0.5) / 3], drawn), ends, there)
            parts = [whole[count][ranks.index(place)] for place in range(count + 1)]
            assert read(found) == f"[CLS] {' '.join(parts)} [SEP]"
            assert ORDERS[found.labels.item()] == (count + 1, ranks)
            seen.add(found.labels.item())
    assert seen == set(range(9)) and found.asked.all()


def test_a_text_is_cut_at_no_more_places_than_it_has(view):
    pieces = batch(view, "mat", "the cat. mat")
    ends, there = torch.tensor([[0, 0], [3, 0]]), torch.tensor([[False, False], [True, False]])
    labels = set()
    for key in range(60):
        found = order(pieces, view, noise_of(pieces, key), ends, there)
        assert read(found) == "[CLS] mat [SEP]" and found.labels[0] == 0
        labels.add(found.labels[1].item())
    assert labels == {0, 1, 2}


def test_distances_by_hand(view):
    pieces = batch(view, TEXT, "A mat! On.", "mat")
    ends, there = torch.tensor([[9, 5], [3, 0], [0, 0]]), torch.tensor([[True, True], [True, False], [False, False]])
    a, b, c = "the cat ##s sat .", "a dog ran !", "the mat ."
    for kind, which, label, second in (
        (0.1, 0.0, 0, f"{b} {c}"),
        (0.5, 0.0, 1, c),
        (0.9, 0.1, 2, "on ."),
        (0.9, 0.6, 2, "mat"),
    ):
        found = distance(pieces, view, numbers([[kind, which], [0.5, 0.0], [0.9, 0.0]]), ends, there)
        assert read(found) == f"[CLS] {a} [SEP] {second} [SEP]" and found.labels[0] == label
        assert read(found, 1) == "[CLS] a mat ! [SEP] on . [SEP]" and found.labels[1] == 0, "it has no third part"
        assert found.asked.tolist() == [True, True, False]
        assert found.read.segments[0].sum() == len(second.split()) + 1


# --- the loss ---


def test_the_loss_is_the_mean_of_the_tasks_by_their_texts(view, monkeypatch):
    """From each text read alone: with the task's number, what is asked, and nothing else."""
    ernie = small(ERNIE2, view.width, view, **SIZES)
    head = LearnText(ernie, PieceTarget())
    learns = head.learns = small(ContinualTasks, ernie)
    texts = [TEXT, "A mat! The cats ran. On.", "the cats sat on the mat", "The dog. The Dog ran. A mat!"]
    pieces = batch(view, *texts, *[f"{text} {text}" for text in texts])
    drawn = torch.tensor([0, 1, 2, 3, 4, 0, 4, 3])
    monkeypatch.setattr(ContinualTasks, "asked_for", lambda learns, pieces, noise: drawn)
    with collected_losses() as terms:
        foretold = learns(ernie, pieces, noise_of(pieces, 3, 1))
    loss = head.loss(ernie, (foretold, 8), None) + sum(terms.values())
    asked = learns.questions(pieces, view, noise_of(pieces, 3, 1))
    parts: dict[int, list[torch.Tensor]] = {number: [] for number in range(5)}
    for row, task in enumerate(drawn.tolist()):
        answers = asked[task]
        length = int(answers.read.lengths[row])
        alone = SubwordBatch(*(part[row : row + 1, :length] for part in answers.read[:3]), torch.tensor([length]))
        states = ernie(alone, torch.tensor([task]))[0]
        for place in answers.asked[row].nonzero()[:, 0].tolist() if answers.asked.dim() > 1 else [0]:
            state = states[place] if task < 3 else torch.tanh(ernie.pooler[0].weight @ states[0] + ernie.pooler[0].bias)
            label = answers.labels[row, place] if task < 3 else answers.labels[row]
            if task == 0:
                scores = learns.scores.transform(state) @ ernie.table.weight.T + learns.scores.bias
            else:
                output = learns.outputs[TASKS[task]]
                scores = output.weight @ state + output.bias
            parts[task].append(scores.logsumexp(0) - scores[label])
    counts = Counter(drawn.tolist())
    expected = sum(counts[task] / 8 * torch.stack(found).mean() for task, found in parts.items())
    torch.testing.assert_close(loss, expected, rtol=1e-4, atol=1e-5)
    weights = [ernie.tasks.weight, ernie.table.weight, learns.outputs["order"].weight, learns.scores.bias]
    found = torch.autograd.grad(loss, weights)
    for one, gradient in zip(found, torch.autograd.grad(expected, weights), strict=True):
        torch.testing.assert_close(one, gradient, rtol=1e-3, atol=1e-5)


def test_a_task_that_no_text_is_asked_adds_nothing(view, monkeypatch):
    ernie = small(ERNIE2, view.width, view, **SIZES)
    learns = small(ContinualTasks, ernie)
    pieces = batch(view, TEXT, "the cats sat")
    monkeypatch.setattr(ContinualTasks, "asked_for", lambda learns, pieces, noise: torch.tensor([1, 1]))
    with collected_losses() as terms:
        foretold = learns(ernie, pieces, noise_of(pieces, 3, 1))
    assert not len(foretold.logs) and learns.weight == 0
    assert {name: term.item() > 0 for name, term in terms.items()} == {
        "capitals": True,
        "document": False,
        "order": False,
        "distance": False,
    }


def test_evaluation_asks_what_bert_is_asked_with_the_vector_of_masks(view):
    ernie = small(ERNIE2, view.width, view, **SIZES)
    learns, plain = small(ContinualTasks, ernie), small(MaskedPieces, ernie)
    plain.scores = learns.scores
    pieces = batch(view, TEXT, "the cats sat")
    learns.weight = 0.5
    with collected_losses() as terms:
        found, expected = (each(ernie, pieces, Noise(pieces.ids, pieces.mask)) for each in (learns, plain))
    assert not terms and torch.equal(found.logs, expected.logs) and learns.weight == 1
    assert ContinualTasks.unit == MaskedPieces.unit and not ContinualTasks.packs


def test_masked_units_are_words_phrases_and_names(view, monkeypatch):
    """One sort for each text, by its own number."""
    marks: list[torch.Tensor] = []
    monkeypatch.setattr(
        continual_tasks,
        "whole_units",
        lambda pieces, view, noise, mark, share: marks.append(mark) or F.pad(pieces.mask[:, 2:], (1, 1)),
    )
    pieces = batch(view, *[TEXT] * 300)
    noise = Noise(pieces.ids + 100 * torch.arange(300)[:, None], pieces.mask, (0, 1))
    small(ContinualTasks, small(ERNIE2, view.width, view, **SIZES)).questions(pieces, view, noise)
    assert marks[0].shape == (300, 1)
    assert Counter(marks[0][:, 0].tolist()).keys() == set(continual_tasks.STAGES)
