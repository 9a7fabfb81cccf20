"""Scores of predictions against the rows they were made for, and information on every metric.

Importing this package is cheap: :mod:`evaluate` (which brings in transformers and torch where they
are installed) is imported when the first score is computed. Plugins register further metrics
(:func:`harness.registry.register_metric`). Form of a prediction by task type:

================ ===================================================================
classify, match  the label
multilabel       the probable labels, each with its probability; a label is said above 0.5
rank             the candidate's score, a number; higher is better
tag              one tag per word
extract          the answer as text; "" for no answer
answer           the word
transcribe       the transcript
translate        the translation
regress          a number on the scale of the scores; of a pair of texts for regress_pair
language_model   [sum of the tokens' natural log-probabilities, number of tokens]
text, audio      the same, of the words or frames that are asked for
================ ===================================================================
"""

from __future__ import annotations

import functools
import importlib
import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from types import MappingProxyType
from typing import Any, TypeVar

from harness import registry
from harness.errors import Named, UnknownName
from harness.label_tree import with_ancestors
from harness.mentions import pronoun_of
from harness.metrics.characters import characters_of
from harness.metrics.information import PER_TOKEN, PERCENT, MetricInfo, exponential, unchanged
from harness.metrics.label_sets import chosen, precision_at
from harness.metrics.plugins import compute_of, info_of
from harness.task import Row, Task

T = TypeVar("T")
NO_TREE: Mapping[str, str] = MappingProxyType({})
Compute = Callable[[Sequence[Any], Sequence[Row]], dict[str, float]]
CLEARLY = 0.05
"""Distance from the floor that tells learning from chance where nobody counts the errors: what a
plugin must reach on its mini task, and what makes a pilot's score worth comparing."""


def score(
    names: Sequence[str], predictions: Sequence[Any], rows: Sequence[Row], tree: Mapping[str, str] = NO_TREE
) -> dict[str, float]:
    """Value of every named metric, and of those that come with it (``span_f1`` brings precision and
    recall).

    Values are fractions; ``wer`` and ``cer`` may exceed 1, ``nats_per_token`` is at least 0 and
    ``perplexity`` at least 1.
    ``predictions`` and ``rows`` are in the same order; ``tree`` is the task's label tree
    (:attr:`harness.task.Task.label_tree`), which ``hierarchical_f1`` needs. Values that are
    undefined on these rows (``f1_answerable`` without answerable questions) are left out. Raises
    :class:`~harness.registry.UnknownName`, or ``ValueError`` when predictions do not fit the rows.

    >>> score(["accuracy"], ["good", "bad"], [{"label": "good"}, {"label": "good"}])
    {'accuracy': 0.5}
    """
    if len(predictions) != len(rows):
        raise ValueError(f"{len(predictions)} predictions for {len(rows)} rows")
    if not rows:
        raise ValueError("no rows to score")
    values: dict[str, float] = {}
    for name in names:
        if name in OVER_TREE:
            values |= OVER_TREE[name](predictions, rows, tree)
        elif name not in values:
            values |= METRICS[name](predictions, rows)
    return values


def main_score(task: Task, predictions: Sequence[Any], rows: Sequence[Row]) -> float:
    """Value of the main metric of a task."""
    main = task.entry.main_metric
    return score([main], predictions, rows, task.label_tree)[main]


def info(name: str) -> MetricInfo:
    """Information on a metric; raises :class:`~harness.registry.UnknownName`."""
    return INFOS[name]


def display_info(name: str) -> MetricInfo:
    """Information on a metric that a record names. A metric that is missing here, as in a record of
    another program, is shown as a fraction of which more is better."""
    try:
        return INFOS[name]
    except UnknownName:
        return MetricInfo(name, name.replace("_", " "))


def better(metric: str, a: float, b: float) -> bool:
    """True if ``a`` is strictly better than ``b``; raises
    :class:`~harness.registry.UnknownName`."""
    quality = info(metric).quality
    return quality(a) > quality(b)


def perfect(metric: str) -> float:
    """The best value of a metric of which more is better in fractions, or less in anything."""
    return 0.0 if better(metric, 0.0, 1.0) else 1.0


def is_fraction(metric: str) -> bool:
    """True for a metric that counts, and can be perfect; a squared error comes near at best."""
    return info(metric).unit == PERCENT


def above(metric: str, limit: float, share: float) -> float:
    """The value that is better than ``limit`` by ``share``; on a scale that is no fraction, by that
    share of what is missing to the perfect value."""
    step = share if is_fraction(metric) else share * abs(perfect(metric) - limit)
    return limit - step if info(metric).lower_is_better else limit + step


def _compute(module: str, name: str, **columns: list[Any]) -> dict[str, float]:
    """Compute one ``evaluate.Metric`` of this package on columns of the types that its features
    have; ``ValueError`` for values of other types.

    Its own ``compute`` does the same by way of a data set, whose fingerprint takes far longer than
    to count right answers; training scores dev after every epoch.
    """
    import pyarrow

    metric = _metric(module, name)
    features = metric.info.features
    try:
        for column, feature in features.items():
            metric._enforce_nested_string_type(feature, columns[column][0])
        encoded = features.encode_batch({column: columns[column] for column in features})
        table = pyarrow.Table.from_pydict(encoded, schema=features.arrow_schema)
    except (TypeError, pyarrow.ArrowInvalid) as error:
        raise ValueError(f"values do not fit the metric: {error} Expected format: {features}") from None
    return metric._compute(**table.to_pydict())


@functools.cache
def _metric(module: str, name: str) -> Any:
    """One metric of this package. It makes a folder when it is constructed, which is not to be left
    in the user's cache."""
    metric = getattr(importlib.import_module(f"harness.metrics.{module}"), name)
    with tempfile.TemporaryDirectory(prefix="archbench-metric-") as folder:
        return metric(keep_in_memory=True, cache_dir=folder)


def _column(rows: Sequence[Row], column: str) -> list[Any]:
    table: Any = rows
    try:
        if hasattr(table, "column_names"):  # rows come out of Arrow a hundred times as slowly as a column
            return table[column][:]
        return [row[column] for row in rows]
    except KeyError:
        raise ValueError(f"this metric needs rows with the column {column!r}; found {', '.join(rows[0])}") from None


def _against(column: str, module: str, name: str) -> Compute:
    """A metric that compares predictions with one column of the rows."""
    return lambda predictions, rows: _compute(
        module, name, predictions=list(predictions), references=_column(rows, column)
    )


_token_accuracy = _against("tags", "tagging", "TokenAccuracy")


def _accuracy(predictions: Sequence[Any], rows: Sequence[Row]) -> dict[str, float]:
    """Share of right labels; of right tags, over all words, where rows have tags (part-of-speech
    accuracy)."""
    if "tags" in rows[0]:
        return {"accuracy": _token_accuracy(predictions, rows)["token_accuracy"]}
    return _compute("classification", "Accuracy", predictions=list(predictions), references=_column(rows, "label"))


_label_f1 = _against("label", "classification", "MacroF1")


def _label_sets(predictions: Sequence[Any], rows: Sequence[Row]) -> dict[str, float]:
    said = [sorted(chosen(prediction)) for prediction in predictions]
    return _compute("multilabel", "LabelSetF1", predictions=said, references=_column(rows, "labels"))


def _macro_f1(predictions: Sequence[Any], rows: Sequence[Row]) -> dict[str, float]:
    """Mean F1 of the labels, whether a row has one or several."""
    if "labels" in rows[0]:
        return {"macro_f1": _label_sets(predictions, rows)["macro_f1"]}
    return _label_f1(predictions, rows)


def _hierarchical_f1(
    predictions: Sequence[Any], rows: Sequence[Row], tree: Mapping[str, str] = NO_TREE
) -> dict[str, float]:
    """F1 over all decisions, of labels with the labels above them: who confuses siblings still has
    their parent right. Source: Kiritchenko et al. 2005 (hierarchical F-measure)."""
    if not tree:
        raise ValueError("hierarchical_f1 needs a label tree (label_tree of the task), and there is none")
    several = "labels" in rows[0]
    said = [chosen(prediction) if several else {prediction} for prediction in predictions]
    actual = _column(rows, "labels") if several else [[label] for label in _column(rows, "label")]
    closed = {
        name: [sorted(with_ancestors(labels, tree)) for labels in sets]
        for name, sets in (("predictions", said), ("references", actual))
    }
    return {"hierarchical_f1": _compute("multilabel", "LabelSetF1", **closed)["micro_f1"]}


def _precision_at(k: int) -> Compute:
    def compute(predictions: Sequence[Any], rows: Sequence[Row]) -> dict[str, float]:
        pairs = zip(predictions, _column(rows, "labels"), strict=True)
        return {f"precision_at_{k}": fmean(precision_at(k, *pair) for pair in pairs)}

    return compute


def _ranking(name: str) -> Compute:
    def compute(predictions: Sequence[Any], rows: Sequence[Row]) -> dict[str, float]:
        labels = _column(rows, "label")
        wrong = set(labels) - {"0", "1"}
        if wrong:
            raise ValueError(f'label {wrong.pop()!r} in a rank task; "1" is right and "0" is wrong')
        scores = [float(score) for score in predictions]
        return _compute(
            "ranking",
            name,
            predictions=scores,
            references=[int(label) for label in labels],
            groups=_column(rows, "group"),
        )

    return compute


def _extract(name: str) -> Compute:
    def compute(predictions: Sequence[Any], rows: Sequence[Row]) -> dict[str, float]:
        return _compute(
            "squad", name, predictions=list(predictions), references=[list(a["text"]) for a in _column(rows, "answers")]
        )

    return compute


def _by_skill(predictions: Sequence[Any], rows: Sequence[Row]) -> dict[str, float]:
    columns = {"references": _column(rows, "answer"), "skills": _column(rows, "skill")}
    return _compute("stories", "SkillAccuracy", predictions=list(predictions), **columns)


def _mentions(predictions: Sequence[Any], rows: Sequence[Row]) -> dict[str, float]:
    """F1 of what the marked pronoun of each text stands for."""
    columns = {"references": _column(rows, "label"), "pronouns": list(map(pronoun_of, _column(rows, "text")))}
    return _compute("mentions", "MentionF1", predictions=list(predictions), **columns)


def _surprise(name: str) -> Compute:
    def compute(predictions: Sequence[Any], _rows: Sequence[Row]) -> dict[str, float]:
        sums, counts = zip(*predictions, strict=True)
        return _compute("language_modelling", name, predictions=list(sums), references=list(counts))

    return compute


def _bits_per_character(predictions: Sequence[Any], rows: Sequence[Row]) -> dict[str, float]:
    """Mean negative log-likelihood in bits for each character of the texts, whatever the tokens."""
    nats, characters = -sum(total for total, _ in predictions), sum(map(characters_of, _column(rows, "text")))
    if not characters:
        raise ValueError("no text has a character, so there are no bits per character")
    return {"bits_per_character": nats / math.log(2) / characters}


def _regression(predictions: Sequence[Any], rows: Sequence[Row]) -> dict[str, float]:
    numbers = {"predictions": list(map(float, predictions)), "references": list(map(float, _column(rows, "score")))}
    return _compute("regression", "Regression", **numbers)


_TABLE: tuple[tuple[MetricInfo, Compute], ...] = (
    (MetricInfo("accuracy", "accuracy"), _accuracy),
    (MetricInfo("macro_f1", "macro F1"), _macro_f1),
    (MetricInfo("micro_f1", "micro F1"), lambda *pair: {"micro_f1": _label_sets(*pair)["micro_f1"]}),
    (MetricInfo("hierarchical_f1", "hierarchical F1"), _hierarchical_f1),
    *((MetricInfo(f"precision_at_{k}", f"P@{k}"), _precision_at(k)) for k in (1, 3, 5)),
    (MetricInfo("map", "MAP"), _ranking("Ranking")),
    (MetricInfo("mrr", "MRR"), _ranking("Ranking")),
    (MetricInfo("map_237", "map 237"), _ranking("Ranking237")),
    (MetricInfo("mrr_237", "mrr 237"), _ranking("Ranking237")),
    (MetricInfo("choice_accuracy", "accuracy of choices"), _ranking("ChoiceAccuracy")),
    (MetricInfo("span_f1", "span F1"), _against("tags", "tagging", "SpanF1")),
    (MetricInfo("span_precision", "span precision"), _against("tags", "tagging", "SpanF1")),
    (MetricInfo("span_recall", "span recall"), _against("tags", "tagging", "SpanF1")),
    (MetricInfo("token_accuracy", "token accuracy"), _token_accuracy),
    (MetricInfo("exact_match", "EM"), _extract("Squad")),
    (MetricInfo("f1", "F1"), _extract("Squad")),
    (MetricInfo("exact_match_answerable", "exact match answerable"), _extract("Squad2")),
    (MetricInfo("f1_answerable", "f1 answerable"), _extract("Squad2")),
    (MetricInfo("no_answer_accuracy", "no answer accuracy"), _extract("Squad2")),
    (MetricInfo("mention_f1", "F1 of mentions"), _mentions),
    (MetricInfo("mention_f1_feminine", "F1 of mentions, feminine"), _mentions),
    (MetricInfo("mention_f1_masculine", "F1 of mentions, masculine"), _mentions),
    (MetricInfo("skill_accuracy", "skill accuracy"), _by_skill),
    (MetricInfo("skills_solved", "skills solved"), _by_skill),
    (MetricInfo("pearson", "Pearson's r", unit="", digits=3, show=unchanged), _regression),
    (MetricInfo("spearman", "Spearman's ρ", unit="", digits=3, show=unchanged), _regression),
    (MetricInfo("mse", "mean squared error", "lower", unit="", digits=3, show=unchanged), _regression),
    (MetricInfo("wer", "WER", "lower"), _against("transcript", "speech", "WordErrorRate")),
    (MetricInfo("cer", "CER", "lower"), _against("transcript", "speech", "CharacterErrorRate")),
    (MetricInfo("bleu", "BLEU"), _against("target", "translation", "Bleu")),
    (MetricInfo("chrf", "chrF"), _against("target", "translation", "Chrf")),
    (
        # A mean over tokens, so that intervals and paired tests exist; pages show its exponential.
        MetricInfo("nats_per_token", "perplexity", "lower", PER_TOKEN, show=exponential),
        _surprise("NatsPerToken"),
    ),
    (MetricInfo("perplexity", "perplexity", "lower", PER_TOKEN, show=unchanged), _surprise("Perplexity")),
    (
        MetricInfo("bits_per_character", "bits per character", "lower", PER_TOKEN, digits=3, show=unchanged),
        _bits_per_character,
    ),
)


OVER_TREE = {"hierarchical_f1": _hierarchical_f1}
"""Metrics that are also given the label tree."""


class _Metrics(Named[T]):
    """Things of every metric by its name: of this package's own, and as ``of`` makes them of those
    that a plugin registers (:func:`harness.registry.register_metric`)."""

    def __init__(self, of: Callable[[registry.MetricEntry], T], own: dict[str, T]):
        super().__init__("metric", **own)
        self.of = of

    def __missing__(self, name: str) -> T:
        plugins = registry.entries("metrics")
        if name in plugins:
            return self.of(plugins[name])
        return Named[Any](self.what, **self, **plugins)[name]  # the error offers the names of both


METRICS = _Metrics(compute_of, {facts.name: compute for facts, compute in _TABLE})
INFOS = _Metrics(info_of, {facts.name: facts for facts, _ in _TABLE})
