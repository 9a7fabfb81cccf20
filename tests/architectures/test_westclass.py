"""The mechanism of WeSTClass: words around a few, documents made of them, and self-training on
sharpened answers; no label of a text is read where it should not be."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from architectures.blocks import sphere
from architectures.blocks.few_labels import telling_words
from architectures.unsupervised.westclass import WeakLoss, WeSTClass, grown, sharpened
from harness import registry
from harness.data.corpus import Split
from harness.ragged import Ragged
from harness.registry import Recipe
from harness.training.model import Model, objective_of
from harness.views.words import PAD, UNKNOWN, spelling
from tests.support.few_rows import DIMS, TEXTS, assert_same_gradients, logs_of, model_of, splits, step_of


def prepared(regime: WeSTClass, relabelled: bool = False) -> tuple[WeakLoss, Model, dict[str, Split]]:
    """An objective that has begun, its model and its rows."""
    rows = splits(relabelled)
    model = model_of(rows)
    objective = objective_of(model, Recipe(), regime).double()
    objective.begin(rows)
    return objective, model, rows


def direction(*numbers: float) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float64) / torch.tensor(numbers, dtype=torch.float64).norm()


# --- words of classes ---


def test_classes_grow_until_a_word_would_be_in_two():
    """By hand, in the plane: words at these angles, in degrees; those of the first class are 0 and
    90, so that 45 is the mean."""
    angles = [0, 90, 45, 50, 30, 180, 190, 170, 100, 110]
    vectors = torch.tensor([[0.0, 0.0]] * 2 + [[math.cos(math.radians(a)), math.sin(math.radians(a))] for a in angles])
    words = dict(zip(angles, range(2, 12), strict=True))

    def ids(*of: int) -> list[int]:
        return [words[angle] for angle in of]

    first, second = grown([ids(0, 90), ids(180, 190)], vectors)
    assert first[:3] == ids(45, 50, 30) and {*first[3:]} == {*ids(0, 90)}
    assert {*second[:2]} == {*ids(180, 190)} and second[2:] == ids(170, 110, 100)
    longer = ids(180, 190, 170, 100, 110, 50)  # one of which is near the first class
    assert grown([ids(0, 90), longer], vectors) == [ids(0, 90), longer]


def test_words_that_two_classes_begin_with_stay_as_they_are():
    vectors = torch.eye(6)
    assert grown([[2, 3], [3, 4]], vectors) == [[2, 3], [3, 4]]


def test_padding_and_the_unknown_word_are_never_near():
    """Their vectors are as near as any, where those of words are far from one another."""
    vectors = torch.cat([torch.zeros(2, 3), -torch.eye(3), torch.eye(3)])
    found = grown([[5], [6]], vectors)
    assert min(word for words in found for word in words) > UNKNOWN


@pytest.mark.parametrize("seed", range(4))
def test_grown_words_are_those_of_a_search(seed):
    rng = np.random.default_rng(seed)
    vectors = torch.nn.functional.normalize(torch.tensor(rng.normal(size=(40, 5))), dim=1)
    seeds = [[2, 3], [4, 5, 6], [7, 8]]
    nearness = [[sum(float(vectors[w] @ vectors[s]) for s in words) / len(words) for w in range(40)] for words in seeds]
    orders = [sorted(range(2, 40), key=lambda w: -each[w]) for each in nearness]
    sizes = [size for size in range(2, 38) if _apart(seeds, orders, size)]
    best = 2
    while best + 1 in sizes:
        best += 1
    found = grown(seeds, vectors)
    assert [sorted(words) for words in found] == [sorted(words) for words in _of_size(seeds, orders, best)]


def _of_size(seeds: list[list[int]], orders: list[list[int]], size: int) -> list[list[int]]:
    return [words if len(words) >= size else order[:size] for words, order in zip(seeds, orders, strict=True)]


def _apart(seeds: list[list[int]], orders: list[list[int]], size: int) -> bool:
    sets = [set(words) for words in _of_size(seeds, orders, size)]
    return not any(sets[i] & sets[j] for i in range(len(sets)) for j in range(i))


def test_the_first_words_are_those_of_labelled_texts_or_of_names():
    objective, _, rows = prepared(WeSTClass(words=2))
    labelled = rows["labelled"]
    texts = [ids.tolist() for ids in labelled.inputs["text"]["ids"]]
    assert objective.seeds == telling_words(texts, labelled.targets["label"], 2, 2)
    assert all(len(words) == 2 for words in objective.seeds) and objective.seeds[0] != objective.seeds[1]
    objective, _, rows = prepared(WeSTClass(seeds="names"))
    ids = rows["labelled"].view.vocabulary.ids(["games", "money"])
    assert objective.seeds == [[ids[0]], [ids[1]]]


def test_a_class_without_any_known_word_is_told():
    """Its mean would be no number, and no document of it would ever be made."""
    objective, _, rows = prepared(WeSTClass())
    labelled = rows["labelled"]
    ids = labelled.inputs["text"]["ids"]
    of_class = np.flatnonzero(labelled.targets["label"] == 1)
    values = ids.values.copy()
    for row in of_class:
        values[ids.offsets[row] : ids.offsets[row + 1]] = UNKNOWN
    labelled.inputs["text"]["ids"] = Ragged(values, ids.offsets)
    with pytest.raises(ValueError, match="no text with the label 'money' has a known word"):
        objective.begin(rows)


def test_vectors_are_those_that_the_model_starts_with_at_length_1():
    objective, model, _ = prepared(WeSTClass())
    found = objective.vectors
    weight = model.table.tuned.weight.detach()
    torch.testing.assert_close(found[1:], weight[1:] / weight[1:].norm(dim=1, keepdim=True))
    assert not found[PAD].any()
    with torch.no_grad():
        model.table.tuned.weight.zero_()
    assert found[1:].any()


# --- made documents ---


def test_documents_have_the_words_and_labels_of_their_class(monkeypatch):
    """The shares of words around a known direction, from many draws."""
    regime = WeSTClass(documents=4000, nearest=3, background=0.3, words=2)
    objective, _, rows = prepared(regime)
    objective.seeds = [words[:1] for words in objective.seeds]  # which grow, since their vectors are far apart
    asked = []
    fixed = [direction(1, 2, 0, -1, 1, 0), direction(-1, 0, 1, 2, 0, 1)]

    def drawn(mean: Tensor, concentration: float, count: int, generator: torch.Generator) -> Tensor:
        asked.append((mean, concentration))
        return fixed[len(asked) - 1].expand(count, DIMS)

    monkeypatch.setattr(sphere, "drawn", drawn)
    columns, labels = objective.made(4)
    view = rows["labelled"].view
    length = int(np.mean([len(text.split()) for text, _ in TEXTS]))
    ids = columns["ids"].values.reshape(-1, length)
    assert len(ids) == len(columns["ids"]) == len(labels) == 8000
    expected_labels = torch.tensor([[0.85, 0.15], [0.15, 0.85]]).repeat_interleave(4000, dim=0)
    torch.testing.assert_close(labels.float(), expected_labels)
    counts = np.array([0, 0, *(sum(text.split().count(word) for text, _ in TEXTS) for word in view.vocabulary.words)])
    for each in range(2):
        words = grown(objective.seeds, objective.vectors)[each]
        assert len(words) > 1
        mean, concentration = sphere.fitted(objective.vectors[words])
        torch.testing.assert_close(asked[each][0], mean)
        assert asked[each][1] == pytest.approx(concentration)
        nearness = {w: math.exp(float(objective.vectors[w] @ fixed[each])) for w in range(2, len(counts))}
        nearest = sorted(nearness, key=lambda w: -nearness[w])[:3]
        shares = 0.3 * counts / counts.sum()
        for word in nearest:
            shares[word] += 0.7 * nearness[word] / sum(nearness[w] for w in nearest)
        found = np.bincount(ids[4000 * each : 4000 * (each + 1)].ravel(), minlength=len(counts)) / (4000 * length)
        error = 5 * np.sqrt(shares * (1 - shares) / (4000 * length)) + 1e-9
        assert (np.abs(found - shares) <= error).all()
    names = [0, 0, *map(spelling, view.vocabulary.words)]
    assert columns["spellings"].values.tolist() == [names[id] for id in columns["ids"].values]
    batch = view.collate(columns, np.array([0, 7999]))
    assert batch.ids.tolist() == ids[[0, -1]].tolist() and batch.mask.all()


def test_each_document_has_a_direction_of_its_own():
    objective, _, _ = prepared(WeSTClass(documents=3))
    seen = []
    topk = Tensor.topk
    try:
        Tensor.topk = lambda self, *given, **named: seen.append(self.clone()) or topk(self, *given, **named)
        objective.made(1)
    finally:
        Tensor.topk = topk
    assert all(each.shape[0] == 3 and not torch.equal(each[0], each[1]) for each in seen) and len(seen) == 2


def test_documents_are_those_of_the_seed_and_made_once():
    objective, model, rows = prepared(WeSTClass(documents=8))
    first, again, other = (objective.made(seed)[0]["ids"].values.tolist() for seed in (3, 3, 4))
    assert first == again != other
    objective.losses(model, step_of(rows, 0.1, seed=3))
    kept = objective.documents
    assert kept["ids"].values.tolist() == first
    objective.losses(model, step_of(rows, 0.2, seed=3))
    assert objective.documents is kept


def test_few_words_are_all_near():
    """A vocabulary smaller than the number of nearest words has no more to give."""
    objective, _, _ = prepared(WeSTClass(documents=2, nearest=500))
    assert objective.made(0)[0]["ids"].values.min() > UNKNOWN


@pytest.mark.parametrize("seeds", ["documents", "names"])
def test_pre_training_is_written_out(monkeypatch, seeds):
    """Made documents against soft labels; labelled texts beside them as if they stood there ten
    times, and none where no label is read."""
    objective, model, rows = prepared(WeSTClass(documents=6, copies=5, seeds=seeds))
    objective.documents, objective.labels = objective.made(3)
    drawn = torch.tensor([1, 11, 7])
    monkeypatch.setattr(torch, "randint", lambda high, size: drawn if (high, size) == (12, (3,)) else None)
    step = step_of(rows, 0.3)
    found = objective.losses(model, step)
    documents = rows["labelled"].view.collate(objective.documents, drawn.numpy())
    logs = logs_of(model, documents)
    made = sum((p * (p.log() - q)).sum() for p, q in zip(objective.labels[drawn], logs, strict=True)) / 3
    real = -logs_of(model, step.batch.inputs["text"])[torch.arange(3), step.batch.target].mean()
    share = 5 * 4 / (5 * 4 + 12) if seeds == "documents" else 0.0
    assert made > 0.01
    assert_same_gradients(model, found["loss"], (1 - share) * made + share * real)
    torch.testing.assert_close(found["made"], made)
    assert ("real" in found) == (seeds == "documents")


# --- self-training ---


def test_targets_by_hand():
    """Two texts, two classes: f = (1.2, 0.8)."""
    shares = torch.tensor([[0.9, 0.1], [0.3, 0.7]])
    first, second = (torch.tensor([q[0] ** 2 / 1.2, q[1] ** 2 / 0.8]) for q in shares)
    torch.testing.assert_close(sharpened(shares), torch.stack([first / first.sum(), second / second.sum()]))


def expected_targets(model: Model, rows: dict[str, Split], known: bool) -> Tensor:
    """Targets of all texts, text by text."""
    texts = rows["unlabelled"]
    shares = logs_of(model, texts.collate(np.arange(len(TEXTS))).inputs["text"]).exp().detach()
    targets = []
    for (_, label), q in zip(TEXTS, shares, strict=True):
        p = torch.stack([q[c] ** 2 / shares[:, c].sum() for c in range(2)])
        targets.append(p / p.sum())
        if label and known:
            targets[-1] = torch.tensor([label == "games", label == "money"]).double()
    return torch.stack(targets)


@pytest.mark.parametrize("seeds", ["documents", "names"])
def test_self_training_is_written_out(seeds):
    """Against targets that stay; a text whose label is known has that, where labels are read."""
    objective, model, rows = prepared(WeSTClass(slower=0.5, seeds=seeds))
    step = step_of(rows, 0.6)
    found = objective.losses(model, step)
    targets = expected_targets(model, rows, seeds == "documents")
    torch.testing.assert_close(objective.targets, targets)
    logs = logs_of(model, step.batches["unlabelled"].inputs["text"])
    wanted = targets[[2, 0, 5]]
    divergence = sum(p * (p.log() - q) for p, q in zip(wanted.flatten(), logs.flatten(), strict=True) if p > 0) / 3
    assert divergence > 0.01
    assert_same_gradients(model, found["loss"], 0.5 * divergence)


def test_all_texts_are_answered_anew_after_so_many_steps():
    objective, model, rows = prepared(WeSTClass(refresh=3))
    made = []
    for _ in range(7):
        objective.losses(model, step_of(rows, 0.5))
        made.append(objective.targets.clone())
        with torch.no_grad():
            model.head.output.weight.mul_(1.2)
    changed = [not torch.equal(one, other) for one, other in itertools.pairwise(made)]
    assert changed == [False, False, True, False, False, True]
    assert {"targets", "steps", "known", "vectors"} <= objective.state_dict().keys()  # a training goes on with them


def test_answers_to_all_texts_drop_nothing():
    """Targets by a random half of the model would be others each time."""
    objective, model, rows = prepared(WeSTClass())
    model.train()
    model.encoder.dropping = True
    objective.losses(model, step_of(rows, 0.5))
    torch.testing.assert_close(objective.targets, expected_targets(model, rows, True))
    assert model.training


def test_many_texts_are_answered_in_parts(monkeypatch):
    monkeypatch.setattr("architectures.unsupervised.westclass.AT_ONCE", 3)
    objective, model, rows = prepared(WeSTClass())
    sizes = []
    scores = objective.scores
    monkeypatch.setattr(objective, "scores", lambda m, text: sizes.append(len(text.ids)) or scores(m, text))
    objective.answer_all(model)
    assert sizes == [3, 3, 2]
    torch.testing.assert_close(objective.targets, expected_targets(model, rows, True))


def test_self_training_comes_behind_two_fifths_of_the_steps():
    objective, model, rows = prepared(WeSTClass(documents=4))
    for progress, made in ((0.0, True), (0.39, True), (0.4, False), (0.5, False), (0.99, False)):
        assert ("made" in objective.losses(model, step_of(rows, progress))) == made


def test_an_epoch_without_self_training_is_none_of_those_that_answer():
    assert prepared(WeSTClass(documents=4))[0].settled_after == 0.4


@pytest.mark.parametrize(("progress", "counted"), [(0.1, 0.25), (0.7, 0.0025)])
def test_what_the_encoder_adds_to_the_loss_counts(progress, counted):
    """As much beside the task in both parts: ``slower`` stands for the rate."""
    objective, model, rows = prepared(WeSTClass(documents=4, seeds="names"))
    torch.manual_seed(1)
    without = objective.losses(model, step_of(rows, progress))["loss"]
    model.encoder.penalised = True
    objective.steps.zero_()
    torch.manual_seed(1)
    found = objective.losses(model, step_of(rows, progress))
    torch.testing.assert_close(found["loss"], without + counted)
    assert found["penalty"] == 0.25


# --- no label is read ---


def trained(rows: dict[str, Split], objective: WeakLoss, model: Model) -> list[Any]:
    """Losses of steps of both parts."""
    torch.manual_seed(0)
    return [objective.losses(model, step_of(rows, progress))["loss"].item() for progress in (0.1, 0.3, 0.5, 0.9)]


def test_with_names_alone_no_label_of_a_text_is_read():
    """Wrong labels in the place of the right ones change nothing."""
    right, wrong = (prepared(WeSTClass(seeds="names", documents=4), relabelled) for relabelled in (False, True))
    assert trained(right[2], right[0], right[1]) == trained(wrong[2], wrong[0], wrong[1])
    assert not (right[0].known >= 0).any()


def test_labels_are_read_of_labelled_texts_alone():
    """Those that have lost theirs are guessed, and with others for the rest all is another."""
    objective, model, rows = prepared(WeSTClass(documents=4))
    assert objective.known.tolist() == [{"games": 0, "money": 1, "": -1}[label] for _, label in TEXTS]
    assert "label" not in rows["unlabelled"].rows.column_names
    wrong = prepared(WeSTClass(documents=4), True)
    assert trained(rows, objective, model) != trained(wrong[2], wrong[0], wrong[1])


# --- what it is for ---


@pytest.mark.parametrize(
    ("wraps", "task", "reason"),
    [
        ("kim_cnn_static", "ag_news", None),
        ("bilstm", "sst2", None),
        ("esim", "snli", "writes words of texts that have one class each, and a task of type match has none"),
        ("char_cnn", "sst2", "writes words, and char_cnn reads something else on sst2"),
        ("text_caps", "sst2", "needs the probabilities of classes, and the scores of text_caps stand for none"),
    ],
)
def test_what_it_cannot_train_is_told(wraps, task, reason):
    assert WeSTClass.unfit(registry.entry("tasks", task), {"wraps": wraps}) == reason


def test_seeds_of_another_name_are_told_with_those_there_are():
    with pytest.raises(ValueError, match="seeds='labels' is none of documents, names"):
        WeSTClass(seeds="labels")


def test_it_starts_from_vectors_of_plain_text():
    assert registry.entry("architectures", "westclass").parents == {"vectors": "skipgram"}
    assert WeakLoss.strategies == ("ddp",)
