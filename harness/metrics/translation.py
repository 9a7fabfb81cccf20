"""Metrics of translations, as sacrebleu computes them; case does not count."""

from __future__ import annotations

import functools

import datasets
import evaluate
from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a


@functools.cache
def _tokenizer() -> Tokenizer13a:
    return Tokenizer13a()


def words(text: str) -> list[str]:
    """The words of a text in lower case, as BLEU counts them (tokenisation 13a of mteval)."""
    return _tokenizer()(text.lower()).split()


class _Translations(evaluate.Metric):
    """Base of the metrics of one translation per text, with one reference each."""

    def _info(self) -> evaluate.MetricInfo:
        return evaluate.MetricInfo(
            description=type(self).__doc__ or "",
            citation="",
            inputs_description="predictions, references: one translation per text",
            features=datasets.Features(
                {"predictions": datasets.Value("string"), "references": datasets.Value("string")}
            ),
        )


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
