"""Passages in windows: losses and answers against plain loops over the windows of each passage."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from harness.kinds import PretrainedEncoder
from harness.problems.base import IGNORED, Batch
from harness.problems.extract import LONGEST_ANSWER, ExtractJoined, SpanTarget
from harness.ragged import Ragged
from harness.views.subwords import SubwordBatch, Subwords

LETTERS = "abcdefghijklmnopqrst"
VIEW = Subwords(max_length=14, stride=3)
VIEW.fit([" ".join(LETTERS)])
PAD, UNK, CLS, SEP = range(4)

QUESTIONS = ["a b", "c", "d e f g h i j k l m n", "b a"]
PASSAGES = [
    "a b c d e f g h i j k l m n o p q r s t",  # five windows of nine pieces, the last of eight
    "t s r",  # one window
    "h g f e d c",  # six windows of one piece beside a question that is too long
    "s t a r t i n g b a c k",  # two windows
]


class Lookup(PretrainedEncoder):
    """States from a table of pieces, one of places and the sequence's mean, so that a piece has
    another state in each window."""

    def __init__(self, size: int):
        super().__init__()
        self.size = size
        self.pieces, self.places = nn.Embedding(VIEW.width, size), nn.Embedding(64, size)

    def forward(self, pieces: SubwordBatch) -> Tensor:
        vectors = self.pieces(pieces.ids) * pieces.mask[..., None]
        mean = vectors.sum(1, keepdim=True) / pieces.lengths[:, None, None]
        return vectors + mean + self.places(torch.arange(pieces.ids.shape[1], device=vectors.device))


def head_for(unanswerable: bool, seed: int = 0) -> tuple[Lookup, ExtractJoined]:
    torch.manual_seed(seed)
    target = SpanTarget()
    target.unanswerable = unanswerable
    encoder = Lookup(6)
    head = ExtractJoined(encoder, target)
    with torch.no_grad():  # no answer is to be the answer about half of the time
        encoder.pieces.weight[CLS] *= 6
    return encoder, head


def batch_of(rows: list[int], view: Subwords = VIEW) -> SubwordBatch:
    first, second = (view.encode([texts[row] for row in rows]) for texts in (QUESTIONS, PASSAGES))
    return view.collate_pair(first, second, np.arange(len(rows)), cut="second")


def windows_of(question: list[int], passage: list[int]) -> tuple[list[int], list[tuple[int, int]]]:
    """What is left of a question, and first piece and length of each window of the passage beside
    it."""
    question = question[: VIEW.max_length - 4]
    size = VIEW.max_length - 3 - len(question)
    found, begin = [], 0
    while True:
        length = min(size, len(passage) - begin)
        found.append((begin, length))
        if begin + length == len(passage):
            return question, found
        begin += min(length, VIEW.stride)


def scores_of(encoder: Lookup, head: ExtractJoined, question: list[int], window: list[int]) -> Tensor:
    """Start and end scores (2, 1 + pieces) of [CLS] and of the window's pieces."""
    ids = torch.tensor([[CLS, *question, SEP, *window, SEP]])
    length = torch.tensor([ids.shape[1]])
    sequence = SubwordBatch(ids, torch.ones_like(ids, dtype=torch.bool), torch.zeros_like(ids), length)
    scores = encoder(sequence)[0] @ head.output.weight.T + head.output.bias
    return scores[[0, *range(len(question) + 2, len(question) + 2 + len(window))]].T


def most_context(windows: list[tuple[int, int]], piece: int) -> int:
    """Number of the window that shows most beside a piece on its shorter side; of equal ones the
    longer, then the first."""
    beside = {
        (min(piece - begin, begin + length - 1 - piece), length, -number): number
        for number, (begin, length) in enumerate(windows)
        if begin <= piece < begin + length
    }
    return beside[max(beside)]


def by_hand(encoder, head, row: int, gold: tuple[int, int]) -> tuple[Tensor, str]:
    """Loss and answer of one question."""
    ids = {letter: int(VIEW.encode([letter])["ids"].values[0]) for letter in LETTERS}
    question, passage = ([ids[letter] for letter in text.split()] for text in (QUESTIONS[row], PASSAGES[row]))
    question, windows = windows_of(question, passage)
    none_allowed, loss, found, none = head.target.unanswerable, torch.zeros(()), [], []
    for number, (begin, length) in enumerate(windows):
        scores = scores_of(encoder, head, question, passage[begin : begin + length])
        none.append(scores[:, 0].sum().item())
        if begin <= gold[0] and gold[1] < begin + length and gold[0] >= 0:
            wanted = [1 + gold[0] - begin, 1 + gold[1] - begin]
        else:
            wanted = [0, 0]
        if none_allowed:
            loss = loss + nn.functional.cross_entropy(scores, torch.tensor(wanted), reduction="sum")
        elif wanted != [0, 0]:
            loss = loss + nn.functional.cross_entropy(scores[:, 1:], torch.tensor(wanted) - 1, reduction="sum")
        for first in range(length):
            for last in range(first, min(first + LONGEST_ANSWER, length)):
                if most_context(windows, begin + first) == number:
                    score = (scores[0, 1 + first] + scores[1, 1 + last]).item()
                    found.append((score, begin + first, begin + last))
    score, first, last = max(found)
    answer = " ".join(PASSAGES[row].split()[first : last + 1])
    return loss, "" if none_allowed and min(none) > score else answer


GOLDS = [(7, 9), (-1, -1), (2, 2), (0, 1)]
"""The first is whole in two windows, and in part in a third."""


def golds(unanswerable: bool) -> list[tuple[int, int]]:
    return GOLDS if unanswerable else [GOLDS[0], (1, 2), *GOLDS[2:]]


@pytest.mark.parametrize("unanswerable", [False, True])
def test_each_window_is_trained_by_itself(unanswerable):
    """One that does not hold the answer has none, or adds nothing where every question has one."""
    encoder, head = head_for(unanswerable)
    target = torch.tensor(golds(unanswerable))
    outputs = head(encoder, {"text": batch_of([0, 1, 2, 3])})
    expected = torch.stack([by_hand(encoder, head, row, gold)[0] for row, gold in enumerate(golds(unanswerable))])
    torch.testing.assert_close(head.row_losses(encoder, outputs, target), expected)
    torch.testing.assert_close(head.loss(encoder, outputs, target), expected.mean())


@pytest.mark.parametrize("unanswerable", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_the_best_span_of_all_windows_is_the_answer(unanswerable, seed):
    """An answer begins where its window shows most context; the lowest score of having none
    counts."""
    encoder, head = head_for(unanswerable, seed)
    rows = np.array([3, 0, 2, 1])
    spans = VIEW.spans([PASSAGES[row] for row in range(4)])
    split = SimpleNamespace(
        rows=[{"passage": passage} for passage in PASSAGES], targets=dict(zip(("starts", "ends"), spans, strict=True))
    )
    outputs = head(encoder, {"text": batch_of(rows.tolist())})
    answers = head.decode(encoder, outputs, Batch({}, None, rows, 0), split)
    assert answers == [by_hand(encoder, head, int(row), (-1, -1))[1] for row in rows]


def test_some_answers_of_these_seeds_are_none_and_some_lie_behind_the_first_window():
    """Else the comparison above would show little."""
    found = [by_hand(*head_for(True, seed), row, (-1, -1))[1] for seed in range(12) for row in (0, 3)]
    assert 4 < sum(not answer for answer in found) < 20
    spans = [by_hand(*head_for(False, seed), 0, (-1, -1))[1] for seed in range(12)]
    assert sum(PASSAGES[0].index(answer[0]) // 2 > 8 for answer in spans) > 3


def test_the_evidence_of_a_passage_is_that_of_all_its_windows():
    """The contract's checks compare it alone and in a batch, row by row."""
    encoder, head = head_for(True)
    found = head.evidence(encoder, head(encoder, {"text": batch_of([0, 1, 2, 3])}))
    assert [len(numbers) for numbers in found] == [2 * (4 * 9 + 8), 2 * 3, 2 * 6, 2 * (9 + 9)]
    alone = head.evidence(encoder, head(encoder, {"text": batch_of([3])}))
    torch.testing.assert_close(found[3], alone[0])


def test_a_passage_that_is_cut_adds_nothing_where_its_answer_is_cut_off():
    """Without windows nobody reads the answer: a reader would learn that there is none."""
    view = Subwords(max_length=14)
    view.restore(VIEW.state())
    encoder, head = head_for(True)
    outputs = head(encoder, {"text": batch_of([0, 1], view)})
    losses = head.row_losses(encoder, outputs, torch.tensor([[8, 9], [-1, -1]]))
    assert losses[0] == 0 and losses[1] > 0
    assert head.row_losses(encoder, outputs, torch.tensor([[8, 8], [IGNORED, IGNORED]])).gt(0).tolist() == [True, False]


def test_no_step_depends_on_values_of_the_windows():
    """A GPU would be waited for at each of them, and operations could not be counted without
    storage."""
    from pytorch_lightning.utilities import move_data_to_device

    encoder, head = (module.to("meta") for module in head_for(True))
    inputs = move_data_to_device({"text": batch_of([0, 1, 2, 3])}, "meta")
    loss = head.loss(encoder, head(encoder, inputs), torch.tensor(GOLDS, device="meta"))
    loss.backward()
    assert loss.shape == ()


def test_spans_of_a_passage_reach_behind_the_first_window():
    starts, ends = VIEW.spans([PASSAGES[0]])
    row = {"passage": PASSAGES[0], "answers": {"text": ["s t"], "start": [36]}}
    assert SpanTarget().encode([row], VIEW)["span"].tolist() == [[18, 19]]
    assert len(starts[0]) == len(ends[0]) == 20 and isinstance(starts, Ragged)
