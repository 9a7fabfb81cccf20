"""Models that know nothing, and scores that they must have.

Rows are generated for any registered problem from the forms of its columns, their answers drawn
without a look at their inputs. So no system can do better on them than its guesses allow, and a
metric that says otherwise rewards something else: an order of the rows, a tie, a length.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
import string
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from operator import eq
from random import Random
from statistics import fmean
from typing import Any

import numpy as np
import scipy.stats
from rapidfuzz.distance import Levenshtein
from seqeval.metrics.sequence_labeling import get_entities
from sklearn.feature_extraction.text import HashingVectorizer

from harness import registry
from harness.metrics import METRICS, info, score
from harness.problems import problem
from harness.problems.base import Problem
from harness.task import Row
from harness.views.base import words_of

ROWS = 600
TRAIN = 200
DRAWS = 30
"""Times that the answers are drawn anew, to see how far a score may be from its expectation."""
NAMES = {"red": 0.4, "green": 0.3, "blue": 0.2, "grey": 0.1}
"""Values of a column of names, and the share of each."""
TAGS = {"O": 0.5, "B-X": 0.2, "I-X": 0.1, "B-Y": 0.1, "I-Y": 0.1}
TREE = {"red": "warm", "green": "cool", "blue": "cool"}
"""Names that are parts of others, for the metrics that count by a label tree."""
RIGHT = 0.2
"""Share of right candidates."""
ANSWERABLE = 0.7
"""Share of questions that have an answer."""
WORDS = ("the", "a", "river", "bank", "old", "sea", "runs", ".", "Far", "water")


# Rows.


def _words(random: Random, least: int, most: int) -> list[str]:
    return random.choices(WORDS, k=random.randint(least, most))


def _drawn(random: Random, shares: dict[str, float], count: int) -> list[str]:
    return random.choices(list(shares), weights=list(shares.values()), k=count)


def _answers(random: Random, row: Row) -> dict[str, list[Any]]:
    count = random.randint(1, 3) if random.random() < ANSWERABLE else 0
    return {"text": [" ".join(["river", *_words(random, 0, 2)]) for _ in range(count)], "start": [0] * count}


FORMS: dict[str, Callable[[Random, Row], Any]] = {
    "string": lambda random, _: " ".join(_words(random, 1, 6)),
    "name": lambda random, _: _drawn(random, NAMES, 1)[0],
    "names": lambda random, _: [name for name, share in NAMES.items() if random.random() < share],
    "words": lambda random, _: _words(random, 3, 12),
    "text": lambda random, _: " ".join(_words(random, 3, 12)),
    "texts": lambda random, _: [" ".join(_words(random, 3, 5)) for _ in range(random.randint(1, 4))],
    "tags": lambda random, row: _drawn(random, TAGS, len(row["text"])),
    "answers": _answers,
    "audio": lambda random, _: {"bytes": bytes(random.randint(1, 100)), "path": "recording.wav"},
    "number": lambda random, _: random.randint(0, 10) / 2,
    "zero_or_one": lambda random, _: str(int(random.random() < RIGHT)),
}
"""A value of each form of a column (:data:`harness.rows.FORMS`), for the row as far as it is."""


def made_rows(asked: Problem, count: int, seed: int) -> list[Row]:
    """Rows of a problem."""
    entry = asked.entry
    columns = dict.fromkeys((*entry.texts, *entry.columns))
    rows: list[Row] = [{"id": f"row-{number}"} for number in range(count)]
    return answered_anew(asked, _with(asked, rows, [name for name in columns if name in entry.inputs], seed), seed)


def answered_anew(asked: Problem, rows: list[Row], seed: int) -> list[Row]:
    """The rows with other answers."""
    return _with(asked, rows, [name for name in asked.entry.columns if name not in asked.entry.inputs], -1 - seed)


def _with(asked: Problem, rows: list[Row], columns: list[str], seed: int) -> list[Row]:
    """The rows with columns drawn anew."""
    random, entry = Random(seed), asked.entry
    forms = dict.fromkeys(entry.texts, "text") | entry.forms
    if unstated := [name for name in columns if name not in forms]:
        raise ValueError(f"problem {entry.id} states no form of {', '.join(unstated)} (forms of register_problem)")
    rows = list(map(dict, rows))
    for name in columns:
        for row in rows:
            in_groups = name == entry.cluster
            row[name] = f"group-{random.randrange(len(rows) // 8)}" if in_groups else FORMS[forms[name]](random, row)
    return rows


# Models.


def null_models(asked: Problem, train: Sequence[Row], rows: Sequence[Row]) -> dict[str, list[Any]]:
    """Predictions for the rows, by the name of the model: the problem's floors, and those below.

    Only ``shuffled`` sees answers of ``rows``, and they are those of other rows.
    """
    rng = np.random.default_rng(5)
    visible, known = asked.input_rows(rows), asked.input_rows(train)
    pool, truths = [asked.right(row) for row in train], [asked.right(row) for row in rows]
    lengths = [_length(asked, row) for row in visible]
    models = dict(asked.floors(train, visible))
    commonest = Counter(map(repr, pool)).most_common(1)[0][0]
    models["constant"] = [pool[0]] * len(rows)
    models["commonest"] = [next(answer for answer in pool if repr(answer) == commonest)] * len(rows)
    models["drawn"] = [pool[i] for i in rng.integers(len(pool), size=len(rows))]
    models["shuffled"] = [truths[i] for i in rng.permutation(len(rows))]
    models["length only"] = [pool[length % len(pool)] for length in lengths]
    near = [_bag(asked, row) for row in known]
    models["copy of the nearest"] = [pool[_nearest(_bag(asked, row), near)] for row in visible]
    if isinstance(pool[0], str):
        models["copy of the input"] = [_plain(asked, row) for row in visible]
        models["every word"] = [" ".join(dict.fromkeys(w for answer in pool for w in answer.split()))] * len(rows)
    if isinstance(pool[0], float):
        models["length"] = list(map(float, lengths))
        models["place"] = list(map(float, range(len(rows))))
    return {
        name: [_fitted(answer, truth) for answer, truth in zip(answers, truths, strict=True)]
        for name, answers in models.items()
    }


def _fitted(answer: Any, truth: Any) -> Any:
    """A list of tags with one for each word, begun again where it is too short."""
    return list(itertools.islice(itertools.cycle(answer), len(truth))) if isinstance(answer, list) else answer


def _plain(asked: Problem, row: Row) -> str:
    return " ".join(word for name in asked.entry.texts for word in words_of(row[name]))


def _length(asked: Problem, row: Row) -> int:
    return sum(len(row[name]["bytes"]) if name == "audio" else len(words_of(row[name])) for name in _read(asked, row))


def _bag(asked: Problem, row: Row) -> frozenset[Any]:
    return frozenset(_plain(asked, row).split() if asked.entry.texts else [_length(asked, row)])


def _read(asked: Problem, row: Row) -> list[str]:
    return [name for name in (*asked.entry.texts, "audio") if name in row]


def _nearest(bag: frozenset[Any], bags: Sequence[frozenset[Any]]) -> int:
    return max(range(len(bags)), key=lambda i: len(bag & bags[i]) / len(bag | bags[i]))


# Expected scores, from definitions that share nothing with the harness's: equal predictions stand
# in an order of chance.

Scores = dict[str, float]
Definition = Callable[[Sequence[Any], Sequence[Row], np.random.Generator], Scores]


def _labels(predictions: Sequence[Any], rows: Sequence[Row], _: Any) -> Scores:
    ours, theirs = list(predictions), [row["label"] for row in rows]
    number = {label: i for i, label in enumerate(sorted({*ours, *theirs}))}
    table = np.zeros((len(number), len(number)))
    np.add.at(table, ([number[label] for label in theirs], [number[label] for label in ours]), 1)
    macro = np.mean(2 * np.diag(table) / (table.sum(0) + table.sum(1)))
    paths = [[{label, TREE.get(label)} - {None} for label in side] for side in (ours, theirs)]
    same = sum(len(mine & its) for mine, its in zip(*paths, strict=True))
    hierarchical = 2 * same / sum(len(each) for side in paths for each in side)
    share = float(np.trace(table) / len(rows))
    scores = {"accuracy": share, "macro_f1": float(macro), "hierarchical_f1": hierarchical}
    return scores | {"mention_f1": share}  # each label is a name that is meant


def _label_sets(predictions: Sequence[Any], rows: Sequence[Row], rng: np.random.Generator) -> Scores:
    said = [[label for label, share in each.items() if share > 0.5] for each in predictions]
    sums = {label: np.zeros(2) for row, each in zip(rows, said, strict=True) for label in (*row["labels"], *each)}
    hits = dict.fromkeys((1, 3, 5), 0)
    for row, ours, each in zip(rows, predictions, said, strict=True):
        for label in (*each, *row["labels"]):
            sums[label] += label in each and label in row["labels"], 1
        order = sorted(ours, key=lambda label, by=ours: (-by[label], rng.random()))
        for k in hits:
            hits[k] += len({*order[:k]} & {*row["labels"]})
    totals = np.array(list(sums.values()))
    f1 = {
        "micro_f1": float(totals.sum(0)[0] / totals.sum(0)[1]),
        "macro_f1": float(np.mean(totals[:, 0] / totals[:, 1])),
    }
    return f1 | {f"precision_at_{k}": count / (k * len(rows)) for k, count in hits.items()}


def _texts(predictions: Sequence[Any], rows: Sequence[Row], _: Any) -> Scores:
    logs, _counts = np.array(predictions, dtype=float).sum(0)
    characters = sum(len(" ".join(words_of(row["text"]))) for row in rows)
    return _surprises(predictions, rows, _) | {"bits_per_character": float(-logs / np.log(2) / characters)}


def _surprises(predictions: Sequence[Any], rows: Sequence[Row], _: Any) -> Scores:
    logs, counts = np.array(predictions, dtype=float).sum(0)
    return {"nats_per_token": float(-logs / counts), "perplexity": float(np.exp(-logs / counts))}


def _tags(predictions: Sequence[Any], rows: Sequence[Row], _: Any) -> Scores:
    right = predicted = actual = same = 0
    for ours, row in zip(predictions, rows, strict=True):
        mine, its = _entities(tuple(ours)), _entities(tuple(row["tags"]))
        right, predicted, actual = right + len(mine & its), predicted + len(mine), actual + len(its)
        same += sum(map(eq, ours, row["tags"]))
    share = same / sum(len(row["tags"]) for row in rows)
    return {
        "accuracy": share,
        "token_accuracy": share,
        "span_precision": right / max(1, predicted),
        "span_recall": right / max(1, actual),
        "span_f1": 2 * right / (predicted + actual),
    }


@functools.cache
def _entities(tags: tuple[str, ...]) -> frozenset[Any]:
    return frozenset(get_entities(list(tags)))


def _ranks(predictions: Sequence[float], rows: Sequence[Row], rng: np.random.Generator) -> Scores:
    order = np.lexsort((rng.random(len(rows)), -np.array(predictions, dtype=float)))
    questions = defaultdict(list)
    for i in order.tolist():
        questions[rows[i]["group"]].append(rows[i]["label"] == "1")
    values: dict[str, list[float]] = defaultdict(list)
    for right in filter(any, questions.values()):
        values["choice_accuracy"].append(right[0])
        ranks = [rank for rank, truth in enumerate(right, 1) if truth]
        for suffix in ("", "_237")[: 1 if all(right) else 2]:
            values["mrr" + suffix].append(1 / ranks[0])
            values["map" + suffix].append(fmean(number / rank for number, rank in enumerate(ranks, 1)))
    return {name: fmean(each) for name, each in values.items()}


@functools.cache
def _plain_answer(text: str) -> str:
    """An answer as SQuAD's script compares it."""
    text = "".join(c for c in text.lower() if c not in string.punctuation)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", text).split())


@functools.cache
def _same_words(prediction: str, gold: str) -> float:
    """F1 of the words of two answers."""
    ours, theirs = _plain_answer(prediction).split(), _plain_answer(gold).split()
    if not ours or not theirs:
        return float(ours == theirs)
    left, same = list(theirs), 0
    for word in ours:
        if word in left:
            left.remove(word)
            same += 1
    return 2 * same / (len(ours) + len(theirs))


def _answered(predictions: Sequence[str], rows: Sequence[Row], _: Any) -> Scores:
    golds = [row["answers"]["text"] for row in rows]
    pairs = [(p, each or [""]) for p, each in zip(predictions, golds, strict=True)]
    exact = np.array([max(_plain_answer(p) == _plain_answer(gold) for gold in each) for p, each in pairs], dtype=float)
    f1 = np.array([max(_same_words(p, gold) for gold in each) for p, each in pairs])
    has = np.array(list(map(bool, golds)))
    parts = {"exact_match": exact, "f1": f1, "exact_match_answerable": exact[has], "f1_answerable": f1[has]}
    return {name: float(values.mean()) for name, values in (parts | {"no_answer_accuracy": exact[~has]}).items()}


def _stories(predictions: Sequence[str], rows: Sequence[Row], _: Any) -> Scores:
    right = defaultdict(list)
    for prediction, row in zip(predictions, rows, strict=True):
        right[row["skill"]].append(prediction == row["answer"])
    shares = np.array([fmean(each) for each in right.values()])
    return {"skill_accuracy": float(shares.mean()), "skills_solved": float((shares >= 0.95).mean())}


def _transcripts(predictions: Sequence[str], rows: Sequence[Row], _: Any) -> Scores:
    texts = [row["transcript"] for row in rows]
    words = sum(_distance(tuple(p.split()), tuple(text.split())) for p, text in zip(predictions, texts, strict=True))
    characters = sum(map(_distance, predictions, texts))
    return {"wer": words / sum(len(text.split()) for text in texts), "cer": characters / sum(map(len, texts))}


_distance = functools.cache(Levenshtein.distance)


def _units(text: str, of: str) -> list[str]:
    """Words with sentence marks apart, or characters other than blanks, in lower case."""
    text = re.sub(r"([.,?!])", r" \1 ", text.lower())
    return text.split() if of == "word" else list("".join(text.split()))


@functools.lru_cache(maxsize=1000)
def _sequences(texts: tuple[str, ...], of: str, length: int) -> Any:
    """How often each text (rows) has each sequence of so many units (columns, by a hash)."""

    def found(text: str) -> list[str]:
        units = _units(text, of)
        return [" ".join(each) for each in zip(*(units[i:] for i in range(length)), strict=False)]

    return HashingVectorizer(analyzer=found, n_features=1 << 20, norm=None, alternate_sign=False).transform(texts)


def _translations(predictions: Sequence[str], rows: Sequence[Row], _: Any) -> Scores:
    texts = tuple(predictions), tuple(row["target"] for row in rows)

    def counts(of: str, length: int) -> np.ndarray:
        """Sequences that both have, that the predictions have, and that the references have."""
        ours, theirs = (_sequences(each, of, length) for each in texts)
        return np.array([ours.minimum(theirs).sum(), ours.sum(), theirs.sum()])

    words = np.array([counts("word", length) for length in range(1, 5)])
    bleu, smooth = 0.0, 1.0
    if words[:, 0].any() and words[:, 1].all():
        for row in words:
            smooth *= 1 if row[0] else 2
            bleu += math.log(row[0] / row[1] if row[0] else 1 / (smooth * row[1])) / 4
        bleu = math.exp(bleu + min(0, 1 - words[0, 2] / words[0, 1]))
    characters = np.array([counts("character", length) for length in range(1, 7)])
    known = characters[characters[:, 1:].all(1)]
    precision, recall = (known[:, :1] / known[:, 1:]).mean(0) if len(known) else (0, 0)
    chrf = 5 * precision * recall / (4 * precision + recall) if precision + recall else 0.0
    return {"bleu": bleu, "chrf": float(chrf)}


def _numbers(predictions: Sequence[float], rows: Sequence[Row], rng: np.random.Generator) -> Scores:
    actual = np.array([row["score"] for row in rows])
    places = np.lexsort((rng.random(len(rows)), predictions)).argsort()
    return {
        "pearson": float(np.corrcoef(predictions, actual)[0, 1]) if np.ptp(predictions) else 0.0,
        "spearman": float(np.corrcoef(places, scipy.stats.rankdata(actual))[0, 1]),
        "mse": float(np.mean((np.array(predictions) - actual) ** 2)),
    }


DEFINITIONS: dict[str, Definition] = {
    "classify": _labels,
    "match": _labels,
    "multilabel": _label_sets,
    "language_model": _texts,
    "text": _surprises,
    "audio": _surprises,
    "rank": _ranks,
    "tag": _tags,
    "extract": _answered,
    "answer": _stories,
    "transcribe": _transcripts,
    "translate": _translations,
    "regress": _numbers,
    "regress_pair": _numbers,
}
"""Definitions of all metrics of each problem of this package."""


def _of_plugins(metrics: Sequence[str]) -> Definition:
    """Metrics as their own definitions, with equal numbers told apart by chance."""

    def scores(predictions: Sequence[Any], rows: Sequence[Row], rng: np.random.Generator) -> Scores:
        if isinstance(predictions[0], float):
            predictions = (np.array(predictions) + 1e-9 * rng.random(len(rows))).tolist()
        return score(metrics, predictions, rows)

    return scores


def metrics_of(type: str) -> list[str]:
    """Metrics of a problem and of the tasks of its type, with those that come with them."""
    tasks = [entry.metrics for entry in registry.entries("tasks").values() if entry.type == type]
    asked = problem(type)
    rows = made_rows(asked, ROWS, seed=0)
    named = dict.fromkeys(itertools.chain(asked.entry.metrics, *tasks))
    return list(score(list(named), [asked.right(row) for row in rows], rows, TREE))


# The gate.


def faults(type: str) -> list[str]:
    """Sentences, each on a metric of the problem that rewards a model which knows nothing."""
    asked, metrics = problem(type), metrics_of(type)
    train, rows = made_rows(asked, TRAIN, seed=1), made_rows(asked, ROWS, seed=2)
    anew = [answered_anew(asked, rows, seed) for seed in range(100, 100 + DRAWS)]
    models = null_models(asked, train, rows)
    right = [asked.right(row) for row in rows]
    best, shuffled = (score(metrics, predictions, rows, TREE) for predictions in (right, models["shuffled"]))
    found = []
    for model, predictions in models.items():
        values = score(metrics, predictions, rows, TREE)
        expected = expectations(asked, metrics, predictions, anew)
        orders = {
            order: score(metrics, [predictions[i] for i in places], [rows[i] for i in places], TREE)
            for order, places in _orders(right).items()
        }
        for metric in metrics:
            in_orders = {order: other[metric] for order, other in orders.items()}
            known = None if metric in METRICS else (best[metric] + shuffled[metric]) / 2
            said = _faults(metric, values[metric], expected[metric], in_orders, best[metric], known)
            found += [f"{type}, {metric}: {model} has {values[metric]:.4f}, {fault}" for fault in said]
    return found


def _faults(
    metric: str,
    value: float,
    expected: tuple[float, float],
    in_orders: dict[str, float],
    best: float,
    halfway: float | None,
) -> Iterator[str]:
    """Faults of the score of one model; ``halfway`` between shuffled and right answers lies what
    no model that knows nothing exceeds, by a metric that is defined nowhere else."""
    quality, (mean, error) = info(metric).quality, expected
    for order, other in in_orders.items():
        if abs(other - value) > 1e-9:
            yield f"and {other:.4f} with the rows {order}"
    if abs(value - mean) > 3 * error + 1e-6:
        yield f"where {mean:.4f} is expected, standard error {error:.4f}"
    if quality(value) > quality(best) + 1e-9:
        yield "better than right answers"
    if halfway is not None and quality(value) - 3 * error > quality(halfway):
        yield "nearer to right answers than to shuffled ones"


def _orders(right: list[Any]) -> dict[str, list[int]]:
    """Orders of the rows besides their own. By answer, a scorer that leaves equal candidates where
    they stand has all right ones last."""
    return {
        "reversed": list(range(len(right)))[::-1],
        "by answer": sorted(range(len(right)), key=lambda i: repr(right[i])),
    }


def expectations(
    asked: Problem, metrics: Sequence[str], predictions: list[Any], anew: Sequence[list[Row]]
) -> dict[str, tuple[float, float]]:
    """Mean of each metric over answers that were drawn anew, and the standard error of one score:
    by a definition of its own where the metric is of this package."""
    rng = np.random.default_rng(9)
    parts = [_of_plugins([metric for metric in metrics if metric not in METRICS])]
    parts += [DEFINITIONS[asked.entry.id]] if asked.entry.id in DEFINITIONS else []
    draws = [{name: value for part in parts for name, value in part(predictions, rows, rng).items()} for rows in anew]
    found = {metric: [draw[metric] for draw in draws] for metric in metrics}
    return {
        metric: (fmean(each), float(np.std(each, ddof=1)) * (1 + 1 / DRAWS) ** 0.5) for metric, each in found.items()
    }
