"""Sentences that are told by the vector of another one, or by their own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.sentences import Sentences, sentences
from harness.problems.language_model import Surprise
from harness.problems.text_objective import Foretold, TextObjective, batches, summed
from harness.task import Row
from harness.views.subwords import SubwordBatch, Subwords


class Question(NamedTuple):
    """For each of N sentences the one that it tells, ``told`` (N, S); ``asked`` (N, S) is true at
    the pieces that are asked for."""

    told: SubwordBatch
    asked: Tensor


def told_by_states(output: nn.Linear, states: Tensor, question: Question) -> Tensor:
    """Log-probabilities (M,) of the pieces that a question asks for, each by the state at the piece
    before it, of states (N, S - 1, size)."""
    asked = question.asked[:, 1:]
    return -F.cross_entropy(output(states[asked]), question.told.ids[:, 1:][asked], reduction="none")


class ToldSentences(TextObjective):
    """Each sentence of a text tells those that stand some ``steps`` behind it, by the vector that
    the encoder gives it; 0 is the sentence itself. Of a sentence the first ``longest`` pieces are
    read and told."""

    longest: ClassVar[int]
    steps: ClassVar[tuple[int, ...]]

    @classmethod
    def asked(cls, told: SubwordBatch) -> Tensor:
        """True (N, S) at the pieces of sentences that are asked for: all but the first mark, so
        that the end is, too."""
        asked = told.mask.clone()
        asked[:, 0] = False
        return asked

    @classmethod
    def questions(cls, found: Sentences) -> list[Question]:
        """Those of each step."""
        told = [found.beside(step) if step else found.pieces for step in cls.steps]
        return [Question(each, cls.asked(each)) for each in told]

    @staticmethod
    def answered(found: Sentences, questions: Sequence[Question], logs: Sequence[Tensor]) -> Foretold:
        """The log-probabilities (M,) of what each question asks, in the order of its places."""
        rows = [found.rows[question.asked.nonzero()[:, 0]] for question in questions]
        return Foretold(torch.cat(list(logs)), torch.cat(rows))

    @classmethod
    def floor(cls, view: Subwords, train: Sequence[Row], rows: Sequence[Row]) -> list[Surprise]:
        """Each piece by its share of those that the training texts are asked for, every piece of
        the vocabulary counted once more."""
        counts = torch.ones(view.width, dtype=torch.double)
        for pieces in batches(view, train):
            for told, asked in cls.questions(sentences(pieces, view, cls.longest)):
                counts += told.ids[asked].bincount(minlength=view.width)
        logs, surprises = counts.log() - math.log(counts.sum()), []
        for pieces in batches(view, rows):
            found = sentences(pieces, view, cls.longest)
            questions = cls.questions(found)
            answers = cls.answered(found, questions, [logs[told.ids[asked]] for told, asked in questions])
            surprises += summed(answers, len(pieces.ids))
        return surprises
