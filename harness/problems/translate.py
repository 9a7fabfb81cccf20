"""Translation: a text in another language."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar

from harness.problems.base import Fields, Problem
from harness.problems.symbols import Generate, GenerateOrCopy, SymbolTarget
from harness.registry import register_problem
from harness.task import Row
from harness.views.base import View, words_of


class TranslationTarget(SymbolTarget):
    """The target text as words in lower case, those that BLEU counts."""

    def __init__(self) -> None:
        super().__init__(reserved=4, by_word=True)

    def split(self, text: str) -> list[str]:
        from harness.metrics.translation import words  # loads sacrebleu

        return words(text)

    @staticmethod
    def text(row: Row) -> str:
        return row["target"]


class CopyingTranslationTarget(TranslationTarget):
    """The target text, for which words of the source can be copied."""

    def source(self, row: Row, view: Any) -> list[str]:
        return view.read(row["source"])


@register_problem(
    "translate",
    name="Translation",
    columns=("source", "target"),
    inputs=("source",),
    texts=("source",),
    metrics=("bleu", "chrf"),
    survey="translation",
    forms={"target": "string"},
)
class TranslateProblem(Problem):
    """A text is written in another language; a prediction is the translation. ``target`` is a
    string, with sentence marks where they stand."""

    heads: ClassVar = {"next symbols": Generate, "symbols and copies": GenerateOrCopy}

    def whole_words(self, gives: str) -> str | None:
        return "it copies words of the source" if gives == "symbols and copies" else None

    def fields(self, gives: str, view: View) -> Fields:
        return {"text": lambda row: row["source"]}

    def target(self, gives: str) -> TranslationTarget:
        return CopyingTranslationTarget() if gives == "symbols and copies" else TranslationTarget()

    floor_names = ("copy", "majority")

    def floors(self, train: Sequence[Row], rows: Sequence[Row]) -> dict[str, list[str]]:
        """The source as it is, and the commonest translation."""
        commonest = Counter(row["target"] for row in train).most_common(1)[0][0]
        return {"copy": [" ".join(words_of(row["source"])) for row in rows], "majority": [commonest] * len(rows)}
