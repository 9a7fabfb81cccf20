"""Sliding window: the span that stands among the most words of the question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from architectures.blocks.ngrams import lower_words
from architectures.blocks.spans import FUNCTION_WORDS, Sentence, is_word, phrases, sentences
from harness.kinds import Estimator
from harness.registry import register
from harness.task import Row


def window_score(words: Sequence[str], question: set[str], answer: set[str]) -> float:
    """The largest sum of log(1 + 1 / C(w)) over the words of a window that are of question or
    answer, C(w) being the count of w among ``words``.

    The window has as many words as question and answer have different ones, and is cut off at the
    end.
    """
    counts, wanted = Counter(words), question | answer
    weights = np.array([np.log1p(1 / counts[word]) if word in wanted else 0.0 for word in words])
    sums = np.append(0.0, weights.cumsum())
    places = np.arange(len(words))
    return float((sums[np.minimum(places + len(wanted), len(words))] - sums[places]).max())


def distance(words: Sequence[str], question: set[str], answer: set[str]) -> float:
    """Steps from a word of the question to the nearest of the answer alone, function words left
    out, over the steps from the first of the ``words`` to the last; 1 where there is none of
    either."""
    places = {word: [place for place, other in enumerate(words) if other == word] for word in set(words)}
    asked = [place for word in question - FUNCTION_WORDS for place in places.get(word, ())]
    said = [place for word in answer - question - FUNCTION_WORDS for place in places.get(word, ())]
    if not asked or not said:
        return 1.0
    return min(abs(one - other) for one in asked for other in said) / (len(words) - 1)


def runs(words: Sequence[str]) -> set[str | tuple[str, ...]]:
    """The different words and pairs of neighbouring words."""
    return {*words, *pairwise(words)}


def content(words: Sequence[str]) -> list[str]:
    """The words without marks."""
    return [word for word in words if is_word(word)]


@register(
    "sliding_window",
    name="Sliding window + distance",
    kind="fit",
    paper="Richardson et al. 2013; on SQuAD Rajpurkar et al. 2016",
    source="M-T3[222]",
    year=2013,
    deviations=(
        "Without a parser candidates are all spans of up to 4 words that neither begin nor end with a function word or"
        " a mark, not the constituents of a parse.",
        "Function words are our own list, in place of the paper's stop words.",
        "It never says that there is no answer.",
    ),
)
class SlidingWindow(Estimator):
    """Among the candidate spans whose sentence, without the span, has the most words and pairs of
    words of the question, that of the largest :func:`window_score` minus :func:`distance`.

    That is the baseline of SQuAD: the sentence is the whole context, and the score decides among
    spans of the sentences that fit the question equally. The first of equal spans is taken. Nothing
    is learnt; each word of a span adds to its score, so that of spans in one place the longest
    wins.
    """

    task_types = ("extract",)

    def __init__(self, seed: int = 0, longest: int = 4):
        super().__init__(seed)
        self.longest = longest

    def fit(self, train: Sequence[Row], dev: Sequence[Row], unlabelled: Sequence[Row] = ()) -> None:
        pass

    def candidates(self, passage: str, asked: set[Any]) -> Iterator[tuple[int, Sentence, slice]]:
        """Each span of the passage: how many of the question's words and pairs (``asked``) stand
        beside it, its sentence, and its place there."""
        for sentence in sentences(passage):
            words = sentence.words
            for first, end in phrases(sentence, self.longest):
                beside = (runs(words[:first]) | runs(words[end:])) & asked
                yield len(beside), sentence, slice(first, end)

    def answer(self, passage: str, question: str) -> str:
        """The best span; empty for a passage without a candidate."""
        asked = content(lower_words(question))
        found = list(self.candidates(passage, runs(asked)))
        most = max((beside for beside, *_ in found), default=0)
        best, answer = -np.inf, ""
        for beside, sentence, place in found:
            if beside == most:
                words, inside = content(sentence.words), set(content(sentence.words[place]))
                score = window_score(words, set(asked), inside) - distance(words, set(asked), inside)
                if score > best:
                    best = score
                    answer = passage[sentence.starts[place][0] : sentence.ends[place][-1]]
        return answer

    def predict(self, rows: Sequence[Row]) -> list[str]:
        return [self.answer(row["passage"], row["question"]) for row in rows]
