"""Discourse marker augmented network: matching by sentence vectors that tell the marker between two
clauses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.contextual_words import KeptStill
from architectures.blocks.recurrent import Recurrent
from architectures.blocks.sentences import sentences
from harness.kinds import Parent, PretrainedEncoder
from harness.layers.attention import masked_softmax
from harness.layers.noise import Noise
from harness.layers.pooling import pool
from harness.objectives import Learner, Objective, Step, Supervised
from harness.problems.language_model import Surprise
from harness.problems.text_objective import Foretold, TextObjective, batches, summed
from harness.registry import Recipe, register
from harness.saved_models.parents import copy_weights
from harness.task import Row
from harness.views.subwords import SubwordBatch
from harness.views.whole_words import WholeWords

MARKERS = ("but", "so", "if", "when", "before", "still", "because", "although")
"""The markers that are foretold (Pan et al. 2018)."""
NONE = len(MARKERS)
"""The answer to what stands in the place of a text without a marker."""
SHORTEST, LONGEST = 3, 50
"""Words of the shortest clause, and of a sentence that are read."""


class Words(NamedTuple):
    """Words of B texts, T at most, without marks: ``ids`` and ``mask`` (B, T)."""

    ids: Tensor
    mask: Tensor


def stretches(ids: Tensor, rows: Tensor, begins: Tensor, lengths: Tensor, padding: int) -> Words:
    """P stretches of texts (B, T), each of so many words of a row from a place on."""
    within = torch.arange(max(1, int(lengths.max())), device=ids.device)
    mask = within < lengths[:, None]
    places = (begins[:, None] + within).clamp(max=ids.shape[1] - 1)
    return Words(ids[rows[:, None], places].masked_fill(~mask, padding), mask)


def both(pieces: SubwordBatch, padding: int) -> tuple[Words, Words]:
    """The words of both texts of pairs ``[CLS] a [SEP] b [SEP]``."""
    rows, b = torch.arange(len(pieces.ids), device=pieces.ids.device), pieces.segments.sum(1) - 1
    a = pieces.mask.sum(1) - b - 3
    return stretches(pieces.ids, rows, 0 * a + 1, a, padding), stretches(pieces.ids, rows, a + 2, b, padding)


class Clauses(NamedTuple):
    """P pairs of clauses, the number (P,) of the marker that joined each, or of :data:`NONE`, and
    their rows (P,) in the batch."""

    first: Words
    second: Words
    markers: Tensor
    rows: Tensor


def clauses(pieces: SubwordBatch, view: WholeWords) -> Clauses:
    """The words before each marker inside a sentence and those behind it, up to the next marker or
    the end of the sentence, where both are :data:`SHORTEST` words at least.

    The marker itself is left out. In the place of a text without any stand two marks, twice.
    """
    found = sentences(pieces, view, LONGEST)
    ids, lengths = found.pieces.ids, found.pieces.lengths
    kinds = torch.full((view.width,), NONE, device=ids.device)
    for number, marker in enumerate(MARKERS):
        if marker in view.words:
            kinds[view.words[marker]] = number
    kind, place = kinds[ids], torch.arange(ids.shape[1], device=ids.device).expand_as(ids)
    bound = (kind != NONE) | (place == lengths[:, None] - 1)
    before = F.pad(torch.where(bound, place, 0).cummax(1).values[:, :-1], (1, 0))
    behind = F.pad(torch.where(bound, place, ids.shape[1]).flip(1).cummin(1).values.flip(1)[:, 1:], (0, 1))
    left, right = place - before - 1, behind - place - 1
    number, at = ((kind != NONE) & (left >= SHORTEST) & (right >= SHORTEST)).nonzero().unbind(1)
    silent = (found.rows[number].bincount(minlength=len(pieces.ids)) == 0).nonzero().flatten()
    marks = ids.new_full((1, ids.shape[1]), view.separator).index_fill(1, ids.new_zeros(1), view.start)

    def sides(begins: Tensor, lengths: Tensor) -> Words:
        numbers = torch.cat([number, torch.full_like(silent, len(ids))])
        begins = torch.cat([begins[number, at], torch.zeros_like(silent)])
        lengths = torch.cat([lengths[number, at], torch.full_like(silent, 2)])
        return stretches(torch.cat([ids, marks]), numbers, begins, lengths, view.pad)

    markers = torch.cat([kind[number, at], torch.full_like(silent, NONE)])
    return Clauses(sides(before + 1, left), sides(place + 1, right), markers, torch.cat([found.rows[number], silent]))


def together(u: Tensor, v: Tensor) -> Tensor:
    """Two vectors, their sum and their product: (B, 4 * size)."""
    return torch.cat([u, v, u + v, u * v], 1)


class MarkerReader(KeptStill):
    """Words of a text to its vector r (B, 4 * hidden): of the states of a BiLSTM the maximum of
    each number, the last one forwards and the last one backwards."""

    def __init__(self, width: int, embedded: int, hidden: int, dropout: float):
        super().__init__()
        self.table, self.dropout = nn.Embedding(width, embedded), nn.Dropout(dropout)
        nn.init.uniform_(self.table.weight, -0.1, 0.1)
        self.recurrence = Recurrent("lstm", embedded, hidden, bidirectional=True)
        self.size = 4 * hidden

    def forward(self, text: Words) -> Tensor:
        states = self.recurrence(self.dropout(self.table(text.ids)), text.mask)
        return torch.cat([pool(states, text.mask, "max"), pool(states, text.mask, "ends")], 1)


class DiscourseMarkers(TextObjective):
    """The marker that stood between two clauses, by [r1; r2; r1 + r2; r1 * r2] of their vectors
    through four ReLU layers and a softmax over :data:`MARKERS` and :data:`NONE`.

    A text without a marker is asked too, since each has a score, but without its words: all that
    is learnt from it is that nothing was said.
    """

    unit = "discourse markers between clauses"
    packs = False

    def __init__(self, encoder: Any):
        super().__init__(encoder)
        size = encoder.markers.size // 2
        widths = [8 * size, *[size] * 4]
        self.layers = nn.ModuleList(nn.Linear(*pair) for pair in pairwise(widths))
        self.output = nn.Linear(size, len(MARKERS) + 1)

    def forward(self, encoder: Any, pieces: SubwordBatch, noise: Noise) -> Foretold:
        found = clauses(pieces, encoder.view)
        states = together(encoder.markers(found.first), encoder.markers(found.second))
        for layer in self.layers:
            states = encoder.markers.dropout(torch.relu(layer(states)))
        logs = self.output(states).log_softmax(1).gather(1, found.markers[:, None])[:, 0]
        return Foretold(logs, found.rows)

    @classmethod
    def floor(cls, view: WholeWords, train: Sequence[Row], rows: Sequence[Row]) -> list[Surprise]:
        """Each answer by its share of those of the training texts, each counted once more."""
        counts, surprises = torch.ones(len(MARKERS) + 1, dtype=torch.double), []
        for pieces in batches(view, train):
            counts += clauses(pieces, view).markers.bincount(minlength=len(counts))
        logs = counts.log() - math.log(counts.sum())
        for pieces in batches(view, rows):
            found = clauses(pieces, view)
            surprises += summed(Foretold(logs[found.markers], found.rows), len(pieces.ids))
        return surprises


def expected_reward(scores: Tensor, rewards: Tensor) -> Tensor:
    """Mean reward (B,) of an answer that is drawn from the softmax of scores (B, classes), with the
    ``rewards`` (B, classes) of all answers: its gradient is sum_l p(l) R(l) grad log p(l), of which
    that of one draw (REINFORCE) is an estimate."""
    return (scores.softmax(-1) * rewards).sum(-1)


class AgreementReward(Objective):
    """``supervised`` times the supervised loss, less the rest of 1 times the expected agreement
    with annotators (Pan et al. 2018).

    The reward of a label is the share of annotators who gave it; a row has the label of one.
    """

    def __init__(self, owner: DMAN, model: Learner, inner: Supervised):
        super().__init__(owner, model, inner)
        self.supervised = owner.supervised

    def losses(self, model: Learner, step: Step) -> dict[str, Tensor]:
        assert isinstance(self.inner, Supervised)
        target = step.batch.target
        losses, outputs = self.inner.with_outputs(model, model.read(step.batch.inputs), target)
        scores = model.head.class_scores(outputs)
        shares = F.one_hot(target, scores.shape[-1]).to(scores.dtype)
        reward = expected_reward(scores, shares).mean()
        loss = self.supervised * losses["loss"] - (1 - self.supervised) * reward
        return losses | {"loss": loss, "task": losses["loss"], "reward": reward}


class Matching(nn.Module):
    """Two texts and their marker vectors to the vector (B, ``hidden``) of the pair.

    A word x is its vector and whether the other text has it, and beside it stands W r under the
    gate s(W_g x + U_g r). A BiLSTM reads them, and each state h attends to those of the other text,
    to h~, by their products. With m = [h; h~; h - h~; h * h~] and k = [r; r'; r + r'; r * r'], z
    relu(W m) + (1 - z) tanh(U k), where z = s(W_z m + U_z k), goes through a second BiLSTM, and the
    mean and the maximum over both texts through a ReLU layer.
    """

    def __init__(self, width: int, embedded: int, told: int, hidden: int, dropout: float):
        super().__init__()
        self.table, self.dropout = nn.Embedding(width, embedded), nn.Dropout(dropout)
        self.told, self.told_gate = nn.Linear(told, embedded), nn.Linear(told, embedded)
        self.word_gate = nn.Linear(embedded + 1, embedded, bias=False)
        self.encoding = Recurrent("lstm", 2 * embedded + 1, hidden, bidirectional=True)
        self.compared = nn.Linear(4 * self.encoding.size, hidden)
        self.compared_gate = nn.Linear(4 * self.encoding.size, hidden, bias=False)
        self.known, self.known_gate = nn.Linear(4 * told, hidden), nn.Linear(4 * told, hidden)
        self.composition = Recurrent("lstm", hidden, hidden, bidirectional=True)
        self.output = nn.Linear(4 * self.composition.size, hidden)

    def encoded(self, text: Words, same: Tensor, r: Tensor) -> Tensor:
        """States (B, T, 2 * hidden) of a text, of whose words the other has the ``same`` (B,
        T)."""
        words = torch.cat([self.dropout(self.table(text.ids)), same[..., None].to(r.dtype)], 2)
        gates = torch.sigmoid(self.word_gate(words) + self.told_gate(r)[:, None])
        return self.encoding(torch.cat([words, gates * self.told(r)[:, None]], 2), text.mask)

    def composed(self, h: Tensor, others: Tensor, k: Tensor, mask: Tensor) -> Tensor:
        """Mean and maximum (B, 4 * hidden) of one text beside what it attends to in the other."""
        m = self.dropout(torch.cat([h, others, h - others, h * others], 2))
        z = torch.sigmoid(self.compared_gate(m) + self.known_gate(k)[:, None])
        fused = z * torch.relu(self.compared(m)) + (1 - z) * torch.tanh(self.known(k))[:, None]
        states = self.composition(self.dropout(fused), mask)
        return torch.cat([pool(states, mask, "mean"), pool(states, mask, "max")], 1)

    def forward(self, first: Words, second: Words, same: Tensor, r: Tensor, s: Tensor) -> Tensor:
        a, b = self.encoded(first, same.any(2), r), self.encoded(second, same.any(1), s)
        scores = a @ b.mT
        u = self.composed(a, masked_softmax(scores, second.mask[:, None]) @ b, together(r, s), first.mask)
        v = self.composed(b, masked_softmax(scores.mT, first.mask[:, None]) @ a, together(s, r), second.mask)
        return torch.relu(self.output(self.dropout(torch.cat([u, v], 1))))


@register(
    "dman",
    name="DMAN (discourse marker augmented)",
    kind="pair",
    paper="Pan et al. 2018",
    source="M-T5[225]",
    year=2018,
    parents={"weights": "dman@text_mix"},
    recipe=Recipe(optimizer="adam", lr=0.0005, batch_size=32, epochs=10, patience=3, clip=5.0),
    recipes={"text": Recipe(optimizer="adam", lr=0.001, batch_size=128, epochs=5, patience=5, clip=5.0)},
    tiny={"embedded": 16, "markers": 16, "hidden": 16, "dropout": 0.0, "marker_dropout": 0.0, "vocabulary": 1000},
    deviations=(
        (
            "The reward of a label is 1 if it is a row's own, else 0: what the five annotators of a pair said is known"
            " of dev and test alone. The paper's is the share of the annotators."
        ),
        "The gradient of the expected reward is that over all labels; none is drawn.",
        (
            "Clauses come from the text mix, and not from books: the words on both sides of a marker inside a sentence,"
            " without a parser, so that some markers join nothing. A sentence that begins with one is not asked."
        ),
        "Where another marker follows, a clause ends before it: none is read. Clauses shorter than three words are left"
        " out.",
        (
            "The last layer over a pair of clauses gives the scores; the authors' program applies it twice, with ReLU"
            " and dropout, and has 512 scores; its layers have no biases. It has a ninth answer beside the eight"
            " markers, for a text without any,"
            " of which no word is read: the harness asks each text something."
        ),
        (
            "Words are those of the text mix, the 9,995 commonest, whose vectors learn from markers, and a copy of them"
            " on the task. The paper's are GloVe's, beside spellings, parts of speech and names of entities, which are"
            " missing here."
        ),
        "Of each sentence of plain text the first 50 words are read, in the authors' program of each clause.",
        "It learns from plain text by Adadelta, at 0.001 and in batches of 64; here by Adam.",
        "The form of the gates, the weight of the reward, sizes of the matching part and its recipe are ours: those of"
        " the paper are not known for certain here.",
    ),
)
class DMAN(PretrainedEncoder):
    """Two sentences are matched word by word, with the vectors r of both beside them, by which a
    BiLSTM of ``markers`` units has learnt from plain text to tell the marker between two clauses
    (:class:`DiscourseMarkers`); the paper calls it the discourse marker augmented network.

    The BiLSTM of the parent stays as it was learnt, and its vectors enter through gates
    (:class:`Matching`). Labels are learnt by their cross-entropy, and by the reward of agreeing
    with annotators (:class:`AgreementReward`).
    """

    view = WholeWords(lower=True)
    view_settings: ClassVar[dict[str, str]] = {"size": "vocabulary", "max_length": "max_length"}
    learns = DiscourseMarkers
    trained_by = AgreementReward
    ordinary_dropouts = ("dropout", "marker_dropout")
    unused = ("matching",)  # plain text is read by the other part alone

    @classmethod
    def can_answer(cls, type: str) -> bool:
        """True for plain text, and for the relations of two texts."""
        return type in ("text", "match")

    def __init__(
        self,
        width: int,
        view: WholeWords,
        embedded: int = 150,
        markers: int = 256,
        hidden: int = 200,
        dropout: float = 0.2,
        marker_dropout: float = 0.05,
        supervised: float = 0.5,
        vocabulary: int = 10_000,
        max_length: int = 256,
    ):
        super().__init__()
        self.view, self.supervised, self.size = view, supervised, hidden
        self.markers = MarkerReader(width, embedded, markers, marker_dropout)
        self.matching = Matching(width, embedded, self.markers.size, hidden, dropout)
        self.matching.table.load_state_dict(self.markers.table.state_dict())

    def inherit(self, role: str, parent: Parent, rows: Sequence[Row]) -> None:
        copy_weights(parent, self.markers, "encoder.markers")
        self.matching.table.load_state_dict(self.markers.table.state_dict())
        self.markers.keep_still()

    def vector(self, pieces: SubwordBatch) -> Tensor:
        first, second = both(pieces, self.view.pad)
        same = first.ids[:, :, None] == second.ids[:, None]
        same &= (first.ids != self.view.unknown)[:, :, None] & second.mask[:, None]
        return self.matching(first, second, same, self.markers(first), self.markers(second))

    def forward(self, pieces: SubwordBatch) -> Tensor:
        return self.vector(pieces)[:, None]
