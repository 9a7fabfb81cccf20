"""Extraction: the span of a passage that answers a question, or that there is none."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from harness.kinds import SpanScores
from harness.layers.attention import AdditiveAttention
from harness.problems.base import (
    IGNORED,
    UNKNOWN_WORD,
    Answer,
    Batch,
    EncodedSplit,
    Fields,
    Head,
    Inputs,
    Problem,
    Properties,
    Target,
    numbers_of,
    size_of,
    with_probability,
)
from harness.problems.rank import by_question_word
from harness.problems.symbols import Generate, GenerateOrCopy, SymbolTarget
from harness.ragged import Columns
from harness.registry import register_problem
from harness.task import Row
from harness.views.base import View, plain, words_of
from harness.views.subwords import Windows

LONGEST_ANSWER = 30
"""Units of the longest answer span that is looked for."""


class SpanTarget(Target):
    """First and last unit of the answer in the passage: int64 (B, 2); -1 without an answer, ignored
    when it lies beyond the cut."""

    def fit(self, rows: Sequence[Row]) -> None:
        self.unanswerable = any(not row["answers"]["text"] for row in rows)

    def encode(self, rows: Sequence[Row], view: Any) -> Columns:
        places = self.places(rows, view)
        starts, ends = places["starts"], places["ends"]
        spans = [self._units(row, starts[i], ends[i]) for i, row in enumerate(rows)]
        return {"span": np.array(spans, dtype=np.int64)} | places

    def places(self, rows: Sequence[Row], view: Any) -> Columns:
        """Character offsets at which each unit of the passages begins and ends."""
        starts, ends = view.spans([row["passage"] for row in rows])
        return {"starts": starts, "ends": ends}

    @staticmethod
    def _units(row: Row, starts: np.ndarray, ends: np.ndarray) -> tuple[int, int]:
        if not row["answers"]["text"]:
            return -1, -1
        begin = row["answers"]["start"][0]
        finish = begin + len(row["answers"]["text"][0].rstrip())
        first, last = int(np.searchsorted(ends, begin, "right")), int(np.searchsorted(starts, finish, "left")) - 1
        return (first, last) if first <= last < len(ends) and ends[-1] >= finish else (IGNORED, IGNORED)

    def collate(self, columns: Columns, rows: np.ndarray) -> Tensor:
        return numbers_of(columns["span"], rows)


class Extract(Head):
    """Additive attention of the passage over the question, [h, h-hat], then a linear score for
    start and end (source text 4, 16.2.2)."""

    learns_no_answer: ClassVar[bool] = True
    """True if the score of having no answer is a number of its own, where the encoder gives
    none."""

    def __init__(self, encoder: Any, target: SpanTarget):
        super().__init__()
        self.target = target
        self.no_answer = nn.Parameter(torch.zeros(1)) if target.unanswerable and self.learns_no_answer else None
        self.build(encoder)

    def build(self, encoder: Any) -> None:
        """Layers on top of the encoder."""
        size = size_of(encoder)
        self.attention = AdditiveAttention(size, size, hidden=100)
        self.output = nn.Linear(2 * size, 2)

    def spans(self, encoder: Any, inputs: Inputs) -> SpanScores:
        """Start and end scores of every passage position."""
        passage, question = inputs["passage"], inputs["question"]
        context, asked = encoder(passage.vectors, passage.mask), encoder(question.vectors, question.mask)
        joined = torch.cat([context, self.attention(context, asked, question.mask)], dim=-1)
        start, end = self.output(self.drop(joined)).masked_fill(~passage.mask[..., None], -torch.inf).unbind(-1)
        return SpanScores(start, end)

    def forward(self, encoder: Any, inputs: Inputs) -> Any:
        scores = self.spans(encoder, inputs)
        if not self.target.unanswerable:
            return SpanScores(scores.start, scores.end)
        if scores.no_answer is None:
            assert self.no_answer is not None  # learnt where the encoder gives none
            return scores._replace(no_answer=self.no_answer.repeat(len(scores.start)))
        return scores

    def loss(self, encoder: Any, outputs: Any, target: Tensor) -> Tensor:
        """Cross-entropy of start and of end; a row without an answer has the no-answer score,
        joined as position 0, as its gold.

        An answer beyond the cut of the passage has no position: it adds nothing.
        """
        return self.row_losses(encoder, outputs, target).mean()

    def row_losses(self, encoder: Any, outputs: Any, target: Tensor) -> Tensor:
        """Cross-entropy of start plus that of end (B,)."""
        scores = torch.stack([outputs.start, outputs.end], dim=1)
        if outputs.no_answer is not None:
            scores = torch.cat([of_both(outputs.no_answer)[..., None], scores], dim=2)
            target = torch.where(target >= -1, target + 1, target)
        within = (target >= 0) & (target < scores.shape[2])
        reached = scores.gather(2, target.where(within, 0)[..., None]).squeeze(2) > -torch.inf
        counted = (within & reached).all(1, keepdim=True)
        gold = target.where(counted, IGNORED)
        losses = F.cross_entropy(scores.flatten(0, 1), gold.flatten(), ignore_index=IGNORED, reduction="none")
        return losses.view(-1, 2).sum(1)

    def decode(self, encoder: Any, outputs: Any, batch: Batch, split: EncodedSplit) -> list[str]:
        first, last, score, nothing = self.best(outputs)
        answers = []
        starts, ends = split.targets["starts"], split.targets["ends"]
        for row, b, e, none in zip(batch.rows, first.tolist(), last.tolist(), (nothing > score).tolist(), strict=True):
            empty = none or not len(starts[row])  # a passage of blanks has no piece
            answers.append("" if empty else split.rows[int(row)]["passage"][starts[row][b] : ends[row][e]])
        return answers

    def best(self, outputs: Any) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """First and last unit and score of each passage's best span, and the score of having none:
        four (B,)."""
        first, last, score = best_spans(outputs.start, outputs.end)
        if outputs.no_answer is None:
            return first, last, score, torch.full_like(score, -torch.inf)
        return first, last, score, of_both(outputs.no_answer).sum(1)

    def answers(self, encoder: Any, outputs: Any, batch: Batch, split: EncodedSplit) -> list[Answer]:
        """The probability of the span: of its start times of its end; of having none likewise."""
        predictions, sums = self.decode(encoder, outputs, batch, split), self.log_sums(outputs)
        _, _, score, empty = self.best(outputs)
        chosen = torch.where(empty > score, empty - sums[1], score - sums[0])
        return with_probability(predictions, chosen.double().exp().tolist())

    def log_sums(self, outputs: Any) -> tuple[Tensor, Tensor]:
        """Logarithms of the sums of both softmaxes where the best span is, and where having none
        is scored: two (B,)."""
        found = log_sums(outputs)
        return found, found

    def shares(self, outputs: Any) -> tuple[Tensor, Tensor]:
        """Probabilities (B, 1 + W) of each start and of each end in a passage, the first one that
        of having no answer, 0 where that cannot be."""
        start, end = outputs.start, outputs.end
        none = outputs.no_answer
        both = start.new_full((len(start), 2), -torch.inf) if none is None else of_both(none)
        first, last = (torch.cat([both[:, side, None], each], 1) for side, each in enumerate((start, end)))
        return first.softmax(1), last.softmax(1)

    def evidence(self, encoder: Any, outputs: Any) -> list[Tensor]:
        return [
            torch.cat([start[start.isfinite()], end[end.isfinite()]])
            for start, end in zip(outputs.start, outputs.end, strict=True)
        ]


def of_both(no_answer: Tensor) -> Tensor:
    """The score of having no answer beside the starts and beside the ends (B, 2), of which an
    encoder may give one (B,) for both."""
    return no_answer if no_answer.dim() == 2 else no_answer[:, None].expand(-1, 2)


def log_sums(scores: SpanScores) -> Tensor:
    """log of the sum of the exponentials of all starts plus that of all ends (N,), with the score
    of having no answer beside each where there is one."""
    sides = torch.stack([scores.start, scores.end], dim=1)
    if scores.no_answer is not None:
        sides = torch.cat([of_both(scores.no_answer)[..., None], sides], dim=2)
    return sides.logsumexp(2).sum(1)


def best_spans(start: Tensor, end: Tensor, longest: int = LONGEST_ANSWER) -> tuple[Tensor, Tensor, Tensor]:
    """First and last position and score of the best span with first <= last < first + longest, per
    row of (B, T) scores."""
    longest = min(longest, start.shape[1])
    padded = F.pad(end, (0, longest - 1), value=-torch.inf)
    best_end = F.max_pool1d(padded[:, None], longest, stride=1).squeeze(1)
    score, first = (start + best_end).max(1)
    # Where the end is matters for one start alone: looking for it at each of them takes five times
    # as long in all.
    reachable = first[:, None] + torch.arange(longest, device=first.device)
    return first, first + padded.gather(1, reachable).argmax(1), score


class ExtractSpan(Extract):
    """An architecture that scores start and end itself."""

    def build(self, encoder: Any) -> None:
        pass

    def spans(self, encoder: Any, inputs: Inputs) -> SpanScores:
        return encoder(inputs["passage"], inputs["question"])


class WindowScores(NamedTuple):
    """Scores of N windows (T pieces at most), and their places in the B passages."""

    scores: SpanScores
    windows: Windows


class ExtractJoined(Extract):
    """Question and passage in one sequence: a start vector S and an end vector E over the passage's
    pieces (Devlin et al. 2018).

    The softmax is the paper's, over "the words in the paragraph" and, where there may be no answer,
    [CLS], whose state C gives S.C beside the starts and E.C beside the ends. A passage may be read
    in several windows, each of which is trained by itself: one that does not hold the answer has
    none, and adds nothing where every question has one. The best span of a passage is that of all
    its windows, and begins where its window shows most context; the score of no answer is the
    lowest.
    """

    learns_no_answer = False

    def build(self, encoder: Any) -> None:
        self.output = nn.Linear(size_of(encoder), 2)

    def spans(self, encoder: Any, inputs: Inputs) -> SpanScores:
        pieces = inputs["text"]
        scores = self.output(encoder(pieces))
        positions, mask = pieces.firsts, pieces.word_mask
        start, end = (of.gather(1, positions).masked_fill(~mask, -torch.inf) for of in scores.unbind(-1))
        return encoder.verified(SpanScores(start, end, scores[:, 0]))

    def forward(self, encoder: Any, inputs: Inputs) -> WindowScores:
        pieces = inputs["text"]
        return WindowScores(super().forward(encoder, inputs), pieces.windows or Windows.whole(pieces.word_mask))

    def row_losses(self, encoder: Any, outputs: WindowScores, target: Tensor) -> Tensor:
        """Cross-entropies of start and end, summed over a passage's windows (B,)."""
        scores, windows = outputs
        losses = super().row_losses(encoder, scores, self.golds(outputs, target))
        return losses.where(windows.of(len(target)), 0.0).sum(1)

    @staticmethod
    def golds(outputs: WindowScores, target: Tensor) -> Tensor:
        """First and last unit of the answer in each window (N, 2), as :class:`SpanTarget` has
        them."""
        scores, windows = outputs
        gold = target[windows.rows]
        within = gold - windows.begins[:, None]
        held = (within[:, :1] >= 0) & (within[:, 1:] < windows.lengths[:, None])
        elsewhere = torch.full_like(gold, IGNORED)
        if scores.no_answer is not None:
            elsewhere = elsewhere.masked_fill(windows.several[:, None], -1)
        return torch.where(gold < 0, gold, torch.where(held, within, elsewhere))

    def best(self, outputs: WindowScores) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        windows, (first, last, score, empty) = outputs.windows, self._by_window(outputs)
        own = windows.of(int(windows.rows[-1]) + 1)
        window = score.where(own, -torch.inf).argmax(1)
        first, last = first + windows.begins, last + windows.begins
        return first[window], last[window], score[window], empty.where(own, torch.inf).amin(1)

    def _by_window(self, outputs: WindowScores) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """As :meth:`best`, of each window by itself: four (N,)."""
        scores, windows = outputs
        start = scores.start.masked_fill(~windows.widest, -torch.inf)
        return super().best(scores._replace(start=start))

    def log_sums(self, outputs: WindowScores) -> tuple[Tensor, Tensor]:
        _, _, score, empty = self._by_window(outputs)
        own = outputs.windows.of(int(outputs.windows.rows[-1]) + 1)
        found = log_sums(outputs.scores)
        return (
            found[score.where(own, -torch.inf).argmax(1)],
            found[empty.where(own, torch.inf).argmin(1)],
        )

    def shares(self, outputs: WindowScores) -> tuple[Tensor, Tensor]:
        """Of each place as its widest window scores it, with the lowest score of no answer."""
        (start, end, none), windows = outputs
        passages = int(windows.rows[-1]) + 1
        places = windows.begins[:, None] + torch.arange(start.shape[1], device=start.device)
        whole = [start.new_full((passages, int((windows.begins + windows.lengths).max())), -torch.inf) for _ in "se"]
        rows = windows.rows[:, None].expand_as(places)[windows.widest]
        for found, scores in zip(whole, (start, end), strict=True):
            found[rows, places[windows.widest]] = scores[windows.widest]
        if none is not None:
            own = windows.of(passages)
            lowest = of_both(none).sum(1).where(own, torch.inf).argmin(1)
            none = of_both(none)[lowest]
        return super().shares(SpanScores(whole[0], whole[1], none))

    def evidence(self, encoder: Any, outputs: WindowScores) -> list[Tensor]:
        """The scores of a passage's windows, one behind the other."""
        scores, windows = outputs
        found: dict[int, list[Tensor]] = {}
        for row, numbers in zip(windows.rows.tolist(), super().evidence(encoder, scores), strict=True):
            found.setdefault(row, []).append(numbers)
        return [torch.cat(numbers) for numbers in found.values()]


def question_and_passage(row: Row) -> list[str]:
    """Words of the question and of the passage, a bar between them."""
    return [*words_of(row["question"]), "|", *words_of(row["passage"])]


class AsWritten(Generate):
    """An answer word by word, written as the passage writes these words."""

    def texts(self, found: list[list[int]], batch: Batch, split: EncodedSplit) -> list[str]:
        texts = super().texts(found, batch, split)
        passages = (plain(split.rows[int(row)]["passage"]) for row in batch.rows)
        return [as_written(text, passage) for text, passage in zip(texts, passages, strict=True)]


class CopiedAsWritten(AsWritten, GenerateOrCopy):
    """The same, with words that are copied."""


def as_written(words: str, passage: str) -> str:
    """Words between blanks as a passage writes them, blanks and case; as they are where it has them
    nowhere.

    >>> as_written("24 – 10", "Denver won 24–10.")
    '24–10'
    """
    found = re.search(r"\s*".join(map(re.escape, words.split())), passage, re.IGNORECASE)
    return found[0] if found else words


class CopiedAnswer(SymbolTarget):
    """Words of an answer, for which those of the question and of the passage can be copied."""

    def source(self, row: Row, view: Any) -> list[str]:
        return view.read(question_and_passage(row))


@register_problem(
    "extract",
    name="Extraction",
    columns=("passage", "question", "answers"),
    inputs=("passage", "question"),
    texts=("passage", "question"),
    unit_texts=("question",),
    cluster="article",
    metrics=("exact_match", "f1", "f1_answerable", "no_answer_accuracy"),
    answers="harness.problems.answers.spans:Spans",
    forms={"answers": "answers"},
)
class ExtractProblem(Problem):
    """A span of the passage answers the question, or nothing does; a prediction is the answer as
    text, empty for none. ``answers`` is {"text": [...], "start": [character offsets]}."""

    heads: ClassVar = {
        "states": Extract,
        "spans": ExtractSpan,
        "next symbols": AsWritten,
        "symbols and copies": CopiedAsWritten,
        "joined states": ExtractJoined,
    }

    def whole_words(self, gives: str) -> str:
        return "an answer is words of the passage"

    def fields(self, gives: str, view: View) -> Fields:
        if gives in ("next symbols", "symbols and copies"):
            return {"text": question_and_passage}
        return {"question": lambda row: row["question"], "passage": lambda row: row["passage"]}

    def target(self, gives: str) -> Target:
        if gives == "symbols and copies":
            return CopiedAnswer(reserved=4, by_word=True)
        return SymbolTarget(reserved=4, by_word=True) if gives == "next symbols" else SpanTarget()

    floor_names = ("nothing", "whole passage", "shortest copy")

    def floors(self, train: Sequence[Row], rows: Sequence[Row]) -> dict[str, list[str]]:
        """No answer; the passage as a whole; the shortest copy, its first word."""
        passages = [row["passage"] for row in rows]
        return {
            "nothing": [""] * len(rows),
            "whole passage": passages,
            "shortest copy": [next(iter(words_of(passage)), "") for passage in passages],
        }

    def right(self, row: Row) -> str:
        """The first answer, empty where there is none."""
        return next(iter(row["answers"]["text"]), "")

    def shortened(self, row: Row) -> Row:
        short = super().shortened(row)
        return short | {"answers": {"text": [short["passage"]], "start": [0]}}

    def with_unknown_words(self, row: Row) -> Row:
        return super().with_unknown_words(row) | {"answers": {"text": [UNKNOWN_WORD], "start": [0]}}

    def properties(self, rows: Sequence[Row]) -> Properties:
        return by_question_word(self)
