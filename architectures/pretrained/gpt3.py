"""GPT-3: answers from a few examples in the prompt of a language model."""

from __future__ import annotations

import functools
import math
import zlib
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from architectures.blocks.objectives.next_piece import NextPiece
from harness.errors import ModelError
from harness.kinds import Estimator
from harness.registry import register
from harness.task import Row
from harness.views.base import plain
from harness.views.subwords import SubwordBatch, Subwords

if TYPE_CHECKING:
    from harness.saved_models.model import KeptModel

QUESTION, ANSWER = " question:", " answer:"
"""Words in front of the second text of a pair, and in front of an answer."""
NORMALISED = ("length", "answer")
POOL = 1000
"""Training rows from which examples are drawn."""
SHARPNESS = 10.0
"""Factor on the cosine of two texts where there is no parent."""


def texts_of(row: Row) -> list[str]:
    """The text of a row, or the two of a pair."""
    return [plain(row[name]) for name in (("text",) if "text" in row else ("first", "second"))]


class Continuations:
    """Answers behind a prompt, by an ``encoder`` of pieces that reads from left to right and whose
    table of pieces is its output layer.

    A prompt is the start piece, the examples with a separator behind each, as stands between texts
    in pre-training, and the query.
    """

    def __init__(self, encoder: Any, view: Subwords):
        self.encoder, self.view = encoder, view

    def pieces(self, text: str) -> list[int]:
        """The numbers of its pieces."""
        return self.view.encode([text])["ids"][0].tolist()

    def asked(self, texts: Sequence[str], room: int) -> list[int]:
        """The pieces of a text or a pair in so much room, and of the words in front of its answer;
        each text loses its end where it is too long.

        Raises :class:`~harness.errors.ModelError` where there is no room.
        """
        cue = self.pieces(QUESTION) if len(texts) > 1 else []
        longest = (room - len(cue)) // len(texts)
        if longest < 1:
            raise ModelError(
                f"so many examples leave {max(0, room)} of the {self.view.max_length} pieces that the parent reads for"
                " each question: fewer shots are wanted"
            )
        parts = [self.pieces(text)[:longest] for text in texts]
        return [*parts[0], *cue, *(piece for part in parts[1:] for piece in part), *self.pieces(ANSWER)]

    def prompt(self, examples: Sequence[tuple[list[str], str]], query: Sequence[str], longest: int) -> list[int]:
        """The pieces of a prompt, behind which an answer of at most ``longest`` pieces fits. All
        examples and the query have the same room."""
        answers = [[*self.pieces(f" {answer}"), self.view.separator] for _, answer in examples]
        taken = 1 + sum(map(len, answers)) + (len(examples) + 1) * len(self.pieces(ANSWER)) + longest
        room = (self.view.max_length - taken) // (len(examples) + 1)
        shown = [self.asked(texts, room) + answer for (texts, _), answer in zip(examples, answers, strict=True)]
        return [self.view.start, *(piece for each in shown for piece in each), *self.asked(query, room)]

    def scores(self, prompt: list[int], answers: Sequence[list[int]]) -> Tensor:
        """Natural log-probability (N,) of the pieces of each answer behind a prompt."""
        rows = [torch.tensor(prompt + answer) for answer in answers]
        ids = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=self.view.pad)
        lengths = torch.tensor([*map(len, rows)])
        places = torch.arange(ids.shape[1])
        mask = places < lengths[:, None]
        with torch.inference_mode():
            states = self.encoder(SubwordBatch(ids, mask, torch.zeros_like(ids), lengths))[:, :-1]
            asked = mask[:, 1:] & (places[1:] >= len(prompt))
            scores = F.linear(states[asked], self.encoder.table.weight)
            logs = -F.cross_entropy(scores, ids[:, 1:][asked], reduction="none").double()
        return torch.zeros(len(rows), dtype=torch.double).index_add(0, asked.nonzero()[:, 0], logs)


@functools.lru_cache(2 * POOL)
def words_of(texts: tuple[str, ...]) -> tuple[Counter[str], float]:
    """The number of times that each word stands in a text, and the length of that vector. Of a pair
    the words that one of the texts alone has count, those of either text as words of their own."""
    first, *second = (Counter(text.lower().split()) for text in texts)
    words = first
    if second:
        words = Counter({f"1 {word}": count for word, count in (first - second[0]).items()}) + Counter(
            {f"2 {word}": count for word, count in (second[0] - first).items()}
        )
    return words, math.sqrt(sum(count**2 for count in words.values()))


def copied(examples: Sequence[tuple[list[str], str]], query: Sequence[str], answers: Sequence[str]) -> Tensor:
    """Logarithms (N,) of the shares of the answers in the examples: each example counts by the
    exponential of the cosine of its words and the query's, and each answer a little more."""
    asked, length = words_of(tuple(query))
    sums = dict.fromkeys(answers, 1e-3)
    for texts, answer in examples:
        words, other_length = words_of(tuple(texts))
        product = sum(count * words.get(word, 0) for word, count in asked.items())
        sums[answer] += math.exp(SHARPNESS * product / max(1e-9, length * other_length))
    return torch.tensor([sums[answer] for answer in answers], dtype=torch.double).log()


@register(
    "gpt3",
    name="GPT-3 (in-context)",
    kind="fit",
    paper="Brown et al. 2020",
    source="M1[8]",
    year=2020,
    parents={"inputs": "gpt2@text_mix"},
    tiny={"shots": 1000},
    deviations=(
        "The language model is GPT-2 as it is pre-trained here, or any other of its kind that `--parent inputs=...`"
        " names, of some 5 million parameters and 128 pieces; the paper's has 175,000 million, every other layer with"
        " sparse attention, and 2,048 pieces.",
        "Four examples are shown, since few fit into 128 pieces; the paper shows from 10 to 100, as many as fit.",
        "Examples are drawn anew for each text, as in the paper, but from 1,000 rows of train at most, and each text of"
        " a prompt loses its end where it is longer than its part of the pieces.",
        "An answer is the name of its class behind `answer:` on all tasks; the paper words each task by itself.",
        "A separator stands between examples, as between texts in pre-training; in the paper they are lines.",
        "Without a parent, as `archbench check` runs it, an answer's probability is its share of those in the prompt,"
        " each weighted by how many words its text shares with the query.",
    ),
)
class InContext(Estimator):
    """The answer that a language model takes for the likeliest one behind ``shots`` examples of
    train and the text that is asked about: nothing is trained.

    Answers have different lengths: their log-probability is divided by their number of pieces
    (``normalised`` "length"), or that behind the word "answer:" alone is taken from it ("answer"),
    so that what the model likes to say anyway does not count.
    """

    task_types = ("classify", "match")
    takes = ("inputs",)
    parent: KeptModel | None = None

    def __init__(self, seed: int = 0, shots: int = 4, normalised: str = "length"):
        super().__init__(seed)
        if normalised not in NORMALISED:
            raise ValueError(f"normalised={normalised!r} is none of {', '.join(NORMALISED)}")
        if shots < 0:
            raise ValueError(f"shots={shots} is below 0")
        self.shots, self.normalised = shots, normalised

    def inherit(self, role: str, parent: KeptModel, rows: Sequence[Row]) -> None:
        learns = None if parent.model is None else getattr(parent.model.head, "learns", None)
        if not isinstance(learns, NextPiece):
            raise ModelError(
                f"{parent.description.part.architecture} on {parent.description.part.task} has not learnt to tell the"
                " next piece, as gpt2 on text_mix has"
            )
        self.parent = parent

    def fit(self, train: Sequence[Row], dev: Sequence[Row], unlabelled: Sequence[Row] = ()) -> None:
        """Draw the rows from which examples are taken; they keep their order."""
        self.answers_known = sorted({row["label"] for row in train})
        rng = np.random.default_rng(self.seed)
        chosen = np.sort(rng.permutation(len(train))[:POOL])
        self.pool = [[texts_of(train[number]), train[number]["label"]] for number in chosen]
        self.parameter_count = 0
        if self.parent is not None:
            self.parameter_count = sum(weights.numel() for weights in self.parent.model.encoder.parameters())

    def examples(self, row: Row) -> list[tuple[list[str], str]]:
        """The examples that are shown for a row, drawn by the seed and its texts."""
        digest = zlib.crc32("\n".join(texts_of(row)).encode())
        rng = np.random.default_rng([self.seed, digest])
        chosen = rng.permutation(len(self.pool))[: self.shots]
        return [(self.pool[number][0], self.pool[number][1]) for number in chosen]

    def scores(self, rows: Sequence[Row]) -> Tensor:
        """Scores (rows, classes) of the classes in their order."""
        if self.parent is None:
            known = self.answers_known
            return torch.stack([copied(self.examples(row), texts_of(row), known) for row in rows])
        model = Continuations(self.parent.model.encoder, self.parent.view)
        answers = [model.pieces(f" {answer}") for answer in self.answers_known]
        longest = max(map(len, answers))
        prompts = [model.prompt(self.examples(row), texts_of(row), longest) for row in rows]
        found = torch.stack([model.scores(prompt, answers) for prompt in prompts])
        if self.normalised == "length":
            return found / torch.tensor([len(answer) for answer in answers])
        return found - model.scores([self.parent.view.start, *model.pieces(ANSWER)], answers)

    def predict(self, rows: Sequence[Row]) -> list[str]:
        return [self.answers_known[best] for best in self.scores(rows).argmax(1).tolist()] if rows else []

    def fitted_state(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("answers_known", "pool", "parameter_count")}
