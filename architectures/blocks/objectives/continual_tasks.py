"""Five tasks of pre-training, and the order in which they are learnt (Sun et al. 2020)."""

from __future__ import annotations

from itertools import permutations
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.objectives.masked_pieces import MaskedPieces, content
from architectures.blocks.objectives.masked_units import STAGES, whole_units
from architectures.blocks.objectives.next_sentence import joined
from architectures.blocks.objectives.sentence_order import segment_ends
from architectures.blocks.units import CAPITAL
from harness.layers.noise import Noise
from harness.objectives import add_loss
from harness.problems.text_objective import Foretold
from harness.views.subwords import SubwordBatch, Subwords

OF_PIECES = {"capitals": 2, "document": 2}
"""Tasks that are asked of each piece, beside that of masked units, and their classes."""
OF_TEXTS = {"order": 9, "distance": 3}
"""Tasks that are asked of each text, and their classes."""
TASKS = ("masks", *OF_PIECES, *OF_TEXTS)
SCHEDULES = ("continual", "together", "one by one")
MOST = 3
"""Segments of a text that are put in order."""
ORDERS = tuple((count, order) for count in range(1, MOST + 1) for order in permutations(range(count)))
"""Numbers of segments, and the place of each in the text as it is read: one class each."""


LAST_STAGE = {"together": 0.0, "one by one": 1 - 1 / len(TASKS), "continual": (len(TASKS) - 1) / (len(TASKS) + 1)}
"""Share of the training after which the last task has come, by schedule."""


def shares(schedule: str, progress: float) -> Tensor:
    """The share of the texts that each of the N tasks is asked at a point of the training.

    By all schedules each task has one Nth of the texts in the end. ``together``: at every point;
    ``one by one``: all of them in the task's own Nth of the training. ``continual``: there are N
    stages, of which the first is the shortest and the sth s times as long; in it the sth task comes
    to those before, has s + 1 parts of the texts, and each of the others one.
    """
    tasks = len(TASKS)
    if schedule == "together":
        return torch.full((tasks,), 1 / tasks)
    found = torch.zeros(tasks)
    if schedule == "one by one":
        found[min(int(progress * tasks), tasks - 1)] = 1
        return found
    stage = sum(progress * tasks * (tasks + 1) >= before * (before + 1) for before in range(1, tasks))
    found[:stage] = 1
    found[stage] = stage + 2
    return found / found.sum()


class Answers(NamedTuple):
    """The sequences that are read for a task, and the right classes ``labels`` (B, T) or (B,) where
    something is ``asked``."""

    read: SubwordBatch
    asked: Tensor
    labels: Tensor


def cuts(pieces: SubwordBatch, view: Subwords, noise: Noise) -> tuple[Tensor, Tensor]:
    """The places (B, 2) of the last pieces of two sentences of each text in the order in which they
    are drawn, or of words where it has one sentence, and whether there are so many (B, 2)."""
    ends = segment_ends(pieces, view)
    ends = ends & (torch.arange(ends.shape[1], device=ends.device) < view.max_length - 3)
    numbers = F.pad(noise.uniform(ends.shape[1]).masked_fill(~ends, 2), (0, 2), value=2)
    lowest, places = numbers.topk(2, dim=1, largest=False)
    return places.masked_fill(lowest == 2, 0), lowest < 2


def capitals(pieces: SubwordBatch, view: Subwords) -> Answers:
    """Each piece: whether its word begins with a capital, which the vocabulary does not tell."""
    return Answers(pieces, content(pieces, view), (pieces.marks & CAPITAL > 0).long())


def document(pieces: SubwordBatch, view: Subwords, first: Tensor, two: Tensor) -> Answers:
    """Each piece of a text's first segment, which ends at the place ``first`` (B,) and is read
    alone: whether it stands in the rest of the text, too."""
    places = torch.arange(pieces.ids.shape[1], device=first.device)
    kept = places <= first[:, None]
    inside = content(pieces, view)
    rest = inside & ~kept
    again = ((pieces.ids[:, :, None] == pieces.ids[:, None]) & rest[:, None]).any(2)
    mask = places <= first[:, None] + 1
    ids = torch.where(kept, pieces.ids, view.separator).masked_fill(~mask, view.pad)
    read = SubwordBatch(ids, mask, torch.zeros_like(ids), first + 2)
    return Answers(read, inside & kept & two[:, None], again.long())


def order(pieces: SubwordBatch, view: Subwords, noise: Noise, ends: Tensor, there: Tensor) -> Answers:
    """Each text, cut at none, one or two of the places ``ends`` (B, 2) that are ``there``, with its
    segments in any order: the number of segments and their order."""
    count = (noise.uniform() * (1 + there.sum(1))).long()  # cuts
    taken = torch.arange(2, device=ends.device) < count[:, None]
    places = torch.arange(pieces.ids.shape[1], device=ends.device)
    segment = ((places > ends[:, :, None]) & taken[:, :, None]).sum(1)
    numbers = noise.uniform(MOST).masked_fill(torch.arange(MOST, device=ends.device) > count[:, None], 2)
    ranks = numbers.argsort(dim=1, stable=True).argsort(1)
    width = len(places)
    keys = torch.where(
        content(pieces, view), (1 + ranks.gather(1, segment)) * width + places, (MOST + 1) * width + places
    )
    keys[:, 0] = 0
    ids = pieces.ids.gather(1, keys.argsort(1))
    classes = [(ranks[:, :size] == ranks.new_tensor(places)).all(1) & (count == size - 1) for size, places in ORDERS]
    return Answers(
        pieces._replace(ids=ids), torch.ones_like(count, dtype=torch.bool), torch.stack(classes, 1).int().argmax(1)
    )


def distance(pieces: SubwordBatch, view: Subwords, noise: Noise, ends: Tensor, there: Tensor) -> Answers:
    """A text's first segment and another one: 0 where it is the next one, 1 where it is a later one
    of the text, 2 where it is of another text of the batch."""
    kind, which = (noise.uniform(2) * pieces.ids.new_tensor([3, len(ends) - 1])).long().unbind(1)
    first = torch.where(there[:, 1], ends.amin(1), ends[:, 0])
    number = torch.arange(len(ends), device=ends.device)
    other = (number + 1 + which) % len(ends)
    strange = (kind == 2) & (other != number)
    apart = (kind == 1) & there[:, 1]
    begins = torch.where(apart, ends.amax(1), first)
    read = joined(pieces, first, torch.where(strange, other, number), view, begins)
    return Answers(read, there[:, 0], torch.where(strange, 2, apart.long()))


class ContinualTasks(MaskedPieces):
    """Masked units, and four further tasks that a text answers by itself; each text is asked one of
    them, which the encoder is told by the task's number.

    The encoder's ``schedule``, one of :data:`SCHEDULES`, has the share of the texts that each task
    is asked (:func:`shares`), and the mean loss of a task counts by its share of the batch. In
    evaluation all texts are asked single pieces, as of BERT.
    """

    packs = False

    def __init__(self, encoder: Any):
        super().__init__(encoder)
        self.schedule: str = encoder.schedule
        self.last_phase = LAST_STAGE[self.schedule]
        self.outputs = nn.ModuleDict(
            {task: nn.Linear(encoder.size, size) for task, size in (OF_PIECES | OF_TEXTS).items()}
        )
        encoder.begin(self.outputs, 0.02)

    def asked_for(self, pieces: SubwordBatch, noise: Noise) -> Tensor:
        """The number (B,) of each text's task."""
        limits = shares(self.schedule, noise.progress).cumsum(0)[:-1].to(pieces.ids.device)
        return torch.bucketize(noise.uniform(), limits, right=True)

    def questions(self, pieces: SubwordBatch, view: Subwords, noise: Noise) -> list[Answers]:
        """All tasks of all texts."""
        mark = pieces.ids.new_tensor(STAGES)[(noise.uniform(1) * len(STAGES)).long()]
        chosen = whole_units(pieces, view, noise, mark, self.share)
        masked = pieces._replace(ids=self.hidden(pieces.ids, chosen, view, noise))
        ends, there = cuts(pieces, view, noise)
        return [
            Answers(masked, chosen, pieces.ids),
            capitals(pieces, view),
            document(pieces, view, ends[:, 0], there[:, 0]),
            order(pieces, view, noise, ends, there),
            distance(pieces, view, noise, ends, there),
        ]

    def forward(self, encoder: Any, pieces: SubwordBatch, noise: Noise) -> Foretold:
        if not noise.anew:
            self.weight = 1.0
            return super().forward(encoder, pieces, noise)
        task = self.asked_for(pieces, noise)
        asked = self.questions(pieces, encoder.view, noise)
        states = encoder(chosen_of([answers.read for answers in asked], task, encoder.view.pad), task)
        vectors = encoder.pooler(states[:, 0])
        for number, name in enumerate(TASKS[1:], start=1):
            _, where, labels = asked[number]
            where = where & (task == number).view(-1, *[1] * (where.dim() - 1))
            read = vectors[where] if name in OF_TEXTS else states[:, : where.shape[1]][where]
            wrong = F.cross_entropy(self.outputs[name](read), labels[where], reduction="sum")
            add_loss(name, (task == number).double().mean().to(wrong) * wrong / max(1, len(read)))
        own = task == 0
        self.weight = own.double().mean().item()
        where = asked[0].asked & own[:, None]
        return Foretold.at(self.scores(encoder, states[:, : where.shape[1]][where], pieces.ids[where]), where)


def chosen_of(reads: list[SubwordBatch], task: Tensor, padding: int) -> SubwordBatch:
    """One batch with the sequence of each text's task (B,)."""
    width = max(read.ids.shape[1] for read in reads)
    row = torch.arange(len(task), device=task.device)

    def of_task(parts: list[Tensor], fill: int | bool) -> Tensor:
        return torch.stack([F.pad(part, (0, width - part.shape[1]), value=fill) for part in parts])[task, row]

    mask = of_task([read.mask for read in reads], False)
    ids = of_task([read.ids for read in reads], padding)
    segments = of_task([read.segments for read in reads], 0)
    return SubwordBatch(ids, mask, segments, mask.sum(1))
