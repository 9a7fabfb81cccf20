"""Tagging: a label for each word."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import torch.nn.functional as F
from torch import Tensor, nn

from harness.errors import ContractError
from harness.kinds import Tagger
from harness.layers.crf import LinearChainCRF, transition_constraints
from harness.layers.pair_crf import PairCRF
from harness.metrics.tagging import spans
from harness.problems.answers.tags import OUTSIDE
from harness.problems.base import (
    IGNORED,
    Answer,
    Batch,
    EncodedSplit,
    Head,
    Inputs,
    Problem,
    Slice,
    Target,
    f1_by_kind,
    numbers,
    padded,
    size_of,
    turned,
    with_probability,
)
from harness.ragged import Columns, Ragged
from harness.registry import register_problem
from harness.task import Row
from harness.views.base import View


class TagTarget(Target):
    """One label per word: int64 (B, T), ignored at padding.

    A label that training never showed is ignored too, but by a CRF, whose chain has no gaps: its
    loss on dev reads the first label there. Scoring counts it as an error.
    """

    def fit(self, rows: Sequence[Row]) -> None:
        self.labels = sorted({tag for row in rows for tag in row["tags"]})

    def encode(self, rows: Sequence[Row], view: View) -> Columns:
        known = numbers(self.labels)
        cut = getattr(view, "max_length", None)
        tags = Ragged.of([known.get(tag, IGNORED) for tag in row["tags"][:cut]] for row in rows)
        return {"tags": tags} | self.places(rows, view)

    def places(self, rows: Sequence[Row], view: View) -> Columns:
        """The number of words of each sentence, those beyond the view's limit among them."""
        return {"words": np.array([len(row["text"]) for row in rows], dtype=np.int64)}

    def collate(self, columns: Columns, rows: np.ndarray) -> Tensor:
        return padded(columns["tags"], rows, IGNORED)[0]


DECODERS = ("softmax", "crf", "pair_crf")
"""Ways in which a tagger's scores become labels: each word by itself, or by one of two CRFs."""


class Tag(Head):
    """A label per word by softmax, or by a CRF over the sentence where a tagger asks for one."""

    output: Any
    """The layer on each word's state; None above a tagger, which scores the labels itself."""

    def __init__(self, encoder: Any, target: TagTarget):
        super().__init__()
        self.target = target
        self.output = None if isinstance(encoder, Tagger) else nn.Linear(size_of(encoder), len(target.labels))
        decoder = getattr(encoder, "decoder", "softmax")
        if isinstance(encoder, Tagger) and decoder not in DECODERS:
            raise ContractError(f"{type(encoder).__name__}.decoder is {decoder!r}, expected {' or '.join(DECODERS)}")
        self.crf = self.chain(encoder) if decoder in ("crf", "pair_crf") else None

    def chain(self, tagger: Tagger) -> LinearChainCRF | PairCRF:
        """The CRF over the labels; decoding keeps to the tagger's chunk scheme where it names
        one."""
        labels = self.target.labels
        if tagger.decoder == "crf":
            constraints = transition_constraints(labels, tagger.scheme) if tagger.scheme else None
            return LinearChainCRF(len(labels), constraints)
        if tagger.scheme:
            raise ContractError(f"{type(tagger).__name__}.scheme is {tagger.scheme!r}: a pair_crf has no constraints")
        return PairCRF(len(labels))

    def emissions(self, encoder: Any, words: Any) -> tuple[Tensor, Tensor]:
        """Scores (B, T, labels) and the mask of the words (B, T)."""
        if self.output is None:
            return encoder(words), words.mask
        return self.output(self.drop(encoder(words.vectors, words.mask))), words.mask

    def forward(self, encoder: Any, inputs: Inputs) -> tuple[Tensor, Tensor]:
        return self.emissions(encoder, inputs["text"])

    def loss(self, encoder: Any, outputs: tuple[Tensor, Tensor], target: Tensor) -> Tensor:
        """Mean over the words that have a label, by a CRF over the sentences that have one: 0 where
        none has."""
        gold = self.gold(outputs, target)
        if self.crf is None:
            total = F.cross_entropy(outputs[0].flatten(0, 1), gold.flatten(), ignore_index=IGNORED, reduction="sum")
            return total / (gold != IGNORED).sum().clamp(min=1)
        return self.row_losses(encoder, outputs, target).sum() / (gold != IGNORED).any(1).sum().clamp(min=1)

    def row_losses(self, encoder: Any, outputs: tuple[Tensor, Tensor], target: Tensor) -> Tensor:
        (emissions, mask), gold = outputs, self.gold(outputs, target)
        if self.crf is None:
            losses = F.cross_entropy(emissions.transpose(1, 2), gold, ignore_index=IGNORED, reduction="none")
            return losses.sum(1)
        losses = self.crf.log_partition(emissions, mask) - self.crf.score(emissions, gold.clamp(min=0), mask)
        return losses.where((gold != IGNORED).any(1), 0)  # an empty sentence, too, has a word that was read

    @staticmethod
    def gold(outputs: tuple[Tensor, Tensor], target: Tensor) -> Tensor:
        """Labels (B, T) of the words that were read."""
        mask = outputs[1]
        return target[:, : mask.shape[1]].masked_fill(~mask, IGNORED)

    def decode(
        self, encoder: Any, outputs: tuple[Tensor, Tensor], batch: Batch, split: EncodedSplit
    ) -> list[list[str]]:
        """A label for each word: beyond the view's limit :data:`OUTSIDE`, or the first label where
        there is no such. An empty sentence has none, though it is read as one unknown word."""
        emissions, mask = outputs
        best = emissions.argmax(-1) if self.crf is None else self.crf.viterbi(emissions, mask)
        labels = self.target.labels
        names, beyond = np.array(labels, dtype=object), OUTSIDE if OUTSIDE in labels else labels[0]
        words = split.targets["words"][batch.rows].tolist()
        return [
            [*names[row[: min(read, count)]], *[beyond] * (count - read)]
            for row, read, count in zip(best.cpu().numpy(), mask.sum(1).tolist(), words, strict=True)
        ]

    def answers(self, encoder: Any, outputs: tuple[Tensor, Tensor], batch: Batch, split: EncodedSplit) -> list[Answer]:
        """The probability of the tag of each word that was read: by its softmax, or the marginal
        one of the CRF."""
        emissions, mask = outputs
        shares = emissions.double().softmax(-1) if self.crf is None else self.crf.marginals(emissions, mask)
        tags, known = self.decode(encoder, outputs, batch, split), numbers(self.target.labels)
        of_tags = [
            [row[place, known[tag]].item() for place, tag in enumerate(found[:read])]
            for row, found, read in zip(shares.cpu(), tags, mask.sum(1).tolist(), strict=True)
        ]
        return with_probability(tags, of_tags)

    def evidence(self, encoder: Any, outputs: tuple[Tensor, Tensor]) -> list[Tensor]:
        return [scores[real] for scores, real in zip(*outputs, strict=True)]


class TagJoined(Tag):
    """Sub-word states: the first piece stands for its word."""

    def emissions(self, encoder: Any, words: Any) -> tuple[Tensor, Tensor]:
        states = encoder(words)
        firsts = states.gather(1, words.firsts[..., None].expand(-1, -1, states.shape[-1]))
        return self.output(self.drop(encoder.word_states(firsts))), words.word_mask


@register_problem(
    "tag",
    equal_view={"lower": True, "digits": True},
    name="Tagging",
    columns=("text", "tags"),
    inputs=("text",),
    texts=("text",),
    metrics=("span_f1", "accuracy", "token_accuracy"),
    survey="tagging",
    answers="harness.problems.answers.tags:Tags",
    forms={"text": "words", "tags": "tags"},
)
class TagProblem(Problem):
    """Every word has a tag; a prediction is the list of a sentence's tags."""

    heads: ClassVar = {"states": Tag, "emissions": Tag, "joined states": TagJoined}

    def target(self, gives: str) -> Target:
        return TagTarget()

    def whole_words(self, gives: str) -> str:
        return "each of the given words has a tag"

    floor_names = ("commonest tag of each word", "majority")

    def floors(self, train: Sequence[Row], rows: Sequence[Row]) -> dict[str, list[list[str]]]:
        """The commonest tag of each word (for a new word that of all words), and that of all
        words."""
        seen: dict[str, Counter[str]] = defaultdict(Counter)
        for row in train:
            for word, tag in zip(row["text"], row["tags"], strict=True):
                seen[word][tag] += 1
                seen[""][tag] += 1
        commonest = seen[""].most_common(1)[0][0]
        by_word = [[(seen.get(word) or seen[""]).most_common(1)[0][0] for word in row["text"]] for row in rows]
        return {"commonest tag of each word": by_word, "majority": [[commonest] * len(row["text"]) for row in rows]}

    def shortened(self, row: Row) -> Row:
        return super().shortened(row) | {"tags": row["tags"][:1]}

    def flipped(self, rows: Sequence[Row]) -> list[Row]:
        other = turned(tag for row in rows for tag in row["tags"])
        return [row | {"tags": [other[tag] for tag in row["tags"]]} for row in rows]

    def slices(self, metric: str, predictions: Sequence[Sequence[str]], rows: Sequence[Row]) -> dict[str, list[Slice]]:
        """F1 of each type of span, with the number of actual spans of it."""
        if metric != "span_f1":
            return {}
        pairs = ((spans(tags), spans(row["tags"])) for tags, row in zip(predictions, rows, strict=True))
        return {"entity type": f1_by_kind(pairs)}
