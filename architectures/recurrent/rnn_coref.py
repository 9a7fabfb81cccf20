"""Scorer of the names that a pronoun may stand for, on the states of a bidirectional RNN."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.recurrent import Recurrent
from harness import registry
from harness.kinds import TextEncoder
from harness.mentions import CANDIDATES, PRONOUN
from harness.registry import Recipe, TaskEntry, register
from harness.views.words import WordBatch, Words

BUCKETS = (1, 2, 3, 4, 5, 8, 16, 32, 64)
"""Distances, in words, at which each bucket begins."""
OUT_OF_REACH = -1e9
"""Score of a candidate that the text lacks, or that stands behind the pronoun."""


@register(
    "rnn_coref",
    name="RNN coreference scorer",
    kind="text",
    paper="Russell & Norvig 2020",
    source="R25.2.2",
    year=2020,
    recipe=Recipe(optimizer="adam", lr=0.001, batch_size=32, clip=5.0, vector_dims=100),
    tiny={"hidden": 12, "units": 12, "distances": 4},
    deviations=(
        "The source names the use and shows no system: sizes, the form of the score, distances, dropout and training"
        " are ours.",
        "A mention's state is that of its last word. That none of the candidates is meant has a score of its own,"
        " learnt from the pronoun's state.",
        "In GAP every sixth pronoun stands for a name behind it, which is out of reach here.",
    ),
)
class RNNCoreference(TextEncoder):
    """States h of a bidirectional RNN; for the pronoun at i and each name that ends at j < i the
    score w relu(W [h_i; h_j; h_i * h_j; d]), d a vector of the distance i - j in words by buckets;
    a softmax over the names and *neither*, whose score is linear in h_i.

    The mentions are marked in the text (:mod:`harness.mentions`). A name that is not there, or
    stands behind the pronoun, cannot be meant; a training text in which it is adds nothing to the
    loss.
    """

    view = Words()

    @classmethod
    def unfit(cls, task: TaskEntry, hyperparameters: dict[str, Any]) -> str | None:
        if not registry.load(task).marks_mentions:
            return f"chooses among names that are marked in a text, and {task.id} marks none"
        return super().unfit(task, hyperparameters)

    def __init__(
        self,
        width: int,
        classes: int,
        answers: Sequence[str],
        view: Words,
        hidden: int = 100,
        units: int = 100,
        distances: int = 20,
        dropout: float = 0.2,
    ):
        super().__init__()
        self.answers = tuple(answers)
        behind = (marks[1] for marks in (PRONOUN, *CANDIDATES.values()))
        self.pronoun, *self.candidates = view.vocabulary.ids(behind)
        self.dropout = nn.Dropout(dropout)
        self.recurrence = Recurrent("rnn", width, hidden, bidirectional=True)
        size = self.recurrence.size
        self.distance = nn.Embedding(len(BUCKETS), distances)
        self.hidden = nn.Linear(3 * size + distances, units)
        self.score = nn.Linear(units, 1, bias=False)
        self.neither = nn.Linear(size, 1)

    def forward(self, words: WordBatch) -> Tensor:
        states = self.dropout(self.recurrence(self.dropout(words.vectors), words.mask))
        place, found = last_word(words.ids, self.pronoun)
        pronoun = at(states, place)
        scores = {}
        for name, mark in zip(CANDIDATES, self.candidates, strict=True):
            own, exists = last_word(words.ids, mark)
            candidate, distance = at(states, own), self.distance(bucket(place - own))
            joined = torch.cat([pronoun, candidate, pronoun * candidate, distance], dim=1)
            reached = found & exists & (own < place)
            scores[name] = self.score(torch.relu(self.hidden(joined))).squeeze(1).masked_fill(~reached, OUT_OF_REACH)
        neither = self.neither(pronoun).squeeze(1)
        return torch.stack([scores.get(name, neither) for name in self.answers], dim=1)

    def objective(self, scores: Tensor, labels: Tensor) -> Tensor:
        gold = scores.gather(1, labels[:, None]).squeeze(1)
        losses = F.cross_entropy(scores, labels, reduction="none")
        return losses.masked_fill(gold == OUT_OF_REACH, 0.0).mean()


def last_word(ids: Tensor, mark: int) -> tuple[Tensor, Tensor]:
    """Place (B,) of the word before the first such mark in each text (B, T), and whether there is
    one; place 0 where there is none."""
    places = torch.arange(ids.shape[1], device=ids.device).where(ids == mark, ids.shape[1]).amin(1)
    exists = (places > 0) & (places < ids.shape[1])
    return (places - 1).where(exists, 0), exists


def at(states: Tensor, places: Tensor) -> Tensor:
    """The states (B, size) at one place of each text."""
    return states[torch.arange(len(places), device=places.device), places]


def bucket(distances: Tensor) -> Tensor:
    """Number of the bucket of each distance (B,)."""
    begins = torch.tensor(BUCKETS, device=distances.device)
    return (torch.bucketize(distances, begins, right=True) - 1).clamp(min=0)
