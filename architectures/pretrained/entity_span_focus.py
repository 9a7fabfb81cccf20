"""Two pre-trained readers together, with a bonus for answers of the kind that is asked for."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from architectures.classical.squad_logreg import SpanRegression
from harness.errors import ModelError
from harness.kinds import Estimator, Parent
from harness.metrics import score
from harness.registry import register
from harness.rows import in_parts
from harness.task import Row

BONUSES = (0.0, 0.5, 1.0, 2.0, 4.0)
"""Bonuses of which dev chooses one."""
LONGEST = 200
"""Characters of the longest answer."""
AT_ONCE = 16
NAMES = re.compile(r"[A-Z][\w'-]*(?: (?:(?:of|the|de|von|van) )*[A-Z][\w'-]*)*")
NUMBERS = re.compile(r"\$?\d(?:[\d.,:]*\d)?%?(?: (?:million|billion|percent))?")
ASKED = {"who": NAMES, "whom": NAMES, "whose": NAMES, "where": NAMES, "when": NUMBERS, "many": NUMBERS, "much": NUMBERS}
"""The form of the answer that a question with such a word asks for."""


class Places(NamedTuple):
    """Probabilities of the characters at which an answer begins, and behind which it ends, and the
    two of having none."""

    starts: dict[int, float]
    ends: dict[int, float]
    none: tuple[float, float]

    @classmethod
    def mean(cls, readers: Sequence[Places]) -> Places:
        """Of each place, over all readers."""

        def over(sides: Sequence[dict[int, float]]) -> dict[int, float]:
            return {place: sum(side.get(place, 0.0) for side in sides) / len(sides) for side in sides for place in side}

        none = np.mean([each.none for each in readers], axis=0)
        return cls(over([each.starts for each in readers]), over([each.ends for each in readers]), (none[0], none[1]))

    @classmethod
    def certain(cls, passage: str, answer: str) -> Places:
        """Of a reader that is sure of an answer."""
        if not answer:
            return cls({}, {}, (1.0, 1.0))
        begin = passage.index(answer)
        return cls({begin: 1.0}, {begin + len(answer): 1.0}, (0.0, 0.0))

    def best(self, focus: Sequence[tuple[int, int]], bonus: float) -> tuple[int, int]:
        """First character of the best answer and the one behind it; 0, 0 for none.

        A span has the product of its two probabilities, times 1 + ``bonus`` if it is one of those
        in ``focus``. Where two are equal the earlier one counts, and an answer before none.
        """
        named, best, found = set(focus), self.none[0] * self.none[1], (0, 0)
        ends = sorted(self.ends)
        for begin in sorted(self.starts):
            for end in ends[bisect_right(ends, begin) : bisect_right(ends, begin + LONGEST)]:
                value = self.starts[begin] * self.ends[end] * (1 + bonus * ((begin, end) in named))
                if value > best or (value == best and found == (0, 0)):
                    best, found = value, (begin, end)
        return found


def focus(question: str, passage: str) -> list[tuple[int, int]]:
    """The spans of a passage that have the form which a question asks for: names for who and where,
    numbers for when and how many."""
    asked = next((ASKED[word] for word in re.findall(r"\w+", question.lower()) if word in ASKED), None)
    return [match.span() for match in asked.finditer(passage)] if asked else []


def read(parent: Parent, rows: Sequence[Row]) -> list[Places]:
    """The places that a kept reader finds in each row."""
    kept: Any = parent
    found: list[Places] = []
    for part in in_parts(rows, AT_ONCE):
        split = kept.split(part)
        with torch.no_grad():
            outputs = kept.model.eval()(split.collate(np.arange(len(part))).inputs)
            sides = [each.double().numpy() for each in kept.model.head.shares(outputs)]
        for number in range(len(part)):
            at = [split.targets[name][number] for name in ("starts", "ends")]
            starts, ends = (
                {int(place): float(share) for place, share in zip(places, side[number, 1:], strict=False) if share > 0}
                for places, side in zip(at, sides, strict=True)
            )
            found.append(Places(starts, ends, (float(sides[0][number, 0]), float(sides[1][number, 0]))))
    return found


@register(
    "entity_span_focus",
    name="ELECTRA + ALBERT + EntitySpanFocus",
    kind="fit",
    paper="survey table 3",
    source="M-T3",
    year=2020,
    parents={"inputs": "electra", "tags": "albert"},
    deviations=(
        "No description is public: a line of a leaderboard names two readers and a focus on spans of entities. This is"
        " our reading of the name.",
        "Entities are runs of words in capitals and numbers, not those that a tagger finds.",
        "The readers are ours, small ones.",
        "Without parents, as `archbench check` runs it, the only reader is a logistic regression (squad_logreg), which"
        " is sure of its answer.",
    ),
)
class EntitySpanFocus(Estimator):
    """The mean of the probabilities that two kept readers give to starts and ends, in which spans
    have a bonus that are entities of the kind which the question asks for (:func:`focus`).

    The bonus is the one of :data:`BONUSES` by which F1 on dev is highest; nothing else is learnt.
    """

    task_types = ("extract",)
    takes = ("inputs", "tags")  # those in which a kept model is asked about each text
    from_dev = ("bonus",)

    def __init__(self, seed: int = 0):
        super().__init__(seed)
        self.readers: dict[str, Parent] = {}
        self.regression: SpanRegression | None = None

    def inherit(self, role: str, parent: Parent, rows: Sequence[Row]) -> None:
        if not hasattr(getattr(parent.model, "head", None), "shares"):
            raise ModelError("it gives no probabilities of the places at which an answer begins and ends")
        self.readers[role] = parent

    def fit(self, train: Sequence[Row], dev: Sequence[Row], unlabelled: Sequence[Row] = ()) -> None:
        if not self.readers:
            self.regression = SpanRegression(self.seed)
            self.regression.fit(train, dev)
            self.parameter_count = self.regression.parameter_count
        else:
            weights = [each for reader in self.readers.values() for each in reader.model.parameters()]
            self.parameter_count = sum(each.numel() for each in weights)
        places = self.places(dev)
        spans = self.focused(dev)
        scores = [score(["f1"], self.answered(dev, places, spans, bonus), list(dev))["f1"] for bonus in BONUSES]
        self.bonus = BONUSES[int(np.argmax(scores))]

    def places(self, rows: Sequence[Row]) -> list[Places]:
        """The mean over all readers, of each row."""
        if self.regression is not None:
            answers = self.regression.predict(rows)
            return [Places.certain(row["passage"], answer) for row, answer in zip(rows, answers, strict=True)]
        return [
            Places.mean(each) for each in zip(*(read(reader, rows) for reader in self.readers.values()), strict=True)
        ]

    @staticmethod
    def focused(rows: Sequence[Row]) -> list[list[tuple[int, int]]]:
        """The spans of each row that a bonus may lift."""
        return [focus(row["question"], row["passage"]) for row in rows]

    @staticmethod
    def answered(
        rows: Sequence[Row], places: Sequence[Places], spans: Sequence[Sequence[tuple[int, int]]], bonus: float
    ) -> list[str]:
        """The answer to each row."""
        best = [each.best(named, bonus) for each, named in zip(places, spans, strict=True)]
        return [row["passage"][begin:end] for row, (begin, end) in zip(rows, best, strict=True)]

    def fitted_state(self) -> dict[str, Any]:
        regression = None if self.regression is None else self.regression.fitted_state()
        return {"bonus": self.bonus, "parameter_count": self.parameter_count, "regression": regression}

    def restore_fitted(self, state: dict[str, Any]) -> None:
        if (regression := state.pop("regression")) is not None:
            self.regression = SpanRegression(self.seed)
            self.regression.restore_fitted(regression)
        super().restore_fitted(state)

    def predict(self, rows: Sequence[Row]) -> list[str]:
        return self.answered(rows, self.places(rows), self.focused(rows), self.bonus)
