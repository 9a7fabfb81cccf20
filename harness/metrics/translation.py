"""Metrics of translations, as sacrebleu computes them; case does not count."""

from __future__ import annotations

import functools
from typing import ClassVar

from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

from harness.metrics.metric import TEXT, Metric


@functools.cache
def _tokenizer() -> Tokenizer13a:
    return Tokenizer13a()


def words(text: str) -> list[str]:
    """The words of a text in lower case, as BLEU counts them (tokenisation 13a of mteval)."""
    return _tokenizer()(text.lower()).split()


class _Translations(Metric):
    """Base of the metrics of one translation per text, with one reference each."""

    columns: ClassVar = {"predictions": TEXT, "references": TEXT}
    about = "predictions, references: one translation per text"


class Bleu(_Translations):
    """BLEU over the whole corpus, as a fraction (Papineni et al. 2002; sacrebleu's
    ``case:lc|tok:13a|smooth:exp``)."""

    def _compute(self, predictions: list[str], references: list[str]) -> dict[str, float]:
        # No warning of words with blanks between: systems write so; all is tokenised alike.
        return {"bleu": BLEU(lowercase=True, force=True).corpus_score(predictions, [references]).score / 100}


class Chrf(_Translations):
    """F2 of character sequences of one to six over the whole corpus, as a fraction (Popović 2015;
    sacrebleu's ``case:lc|nc:6|nw:0|space:no``)."""

    def _compute(self, predictions: list[str], references: list[str]) -> dict[str, float]:
        return {"chrf": CHRF(lowercase=True).corpus_score(predictions, [references]).score / 100}
