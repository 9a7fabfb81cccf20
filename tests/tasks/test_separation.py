"""The mini corpora tell architectures apart: what cannot read a thing fails where a small model
that can succeeds.

Scores are on the mini test split with the sizes below, seed 0, one thread; figures in the
docstrings were measured so. The corpora are pinned by their digests (test_mini_corpora.py): these
trainings are of use where a corpus or a model changes.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch

from harness import registry
from harness.contract.base import floor_score
from harness.data.corpus import Corpus
from harness.metrics import score
from harness.objectives import Supervised
from harness.running import grid
from harness.settings import TrainingSettings
from harness.task import Row, Task
from harness.training.fit import fit
from harness.training.fit_module import FitModule
from harness.training.model import build, predict
from harness.views.base import words_of

pytestmark = pytest.mark.minutes


def task_of(id: str) -> Task:
    entry = registry.entry("tasks", id)
    return registry.load(entry)(entry)


def rows_of(task: Task, split: str) -> list[Row]:
    return task.load(split, "mini").to_list()


def main_score(task: Task, predictions: list[Any], rows: list[Row]) -> float:
    return score([task.entry.main_metric], predictions, rows)[task.entry.main_metric]


def without_model(id: str) -> float:
    """Test score of the commonest answer."""
    task = task_of(id)
    rows = rows_of(task, "test")
    return floor_score(task.entry, rows_of(task, "train"), rows)


@pytest.fixture
def trained(tmp_path: Path):
    """Trains an architecture on a mini task and returns its test score with the weights of its best
    dev epoch."""

    def train(id: str, architecture: str, epochs: int, lr: float = 0.01, dims: int = 24, **sizes: Any) -> float:
        task, entry = task_of(id), registry.entry("architectures", architecture)
        cls, settings = registry.load(entry), grid.hyperparameters(entry) | sizes
        view = cls.view_for(task.entry, settings)
        corpus = Corpus(task, "mini", None, view, cls.output_form())
        torch.manual_seed(0)
        model = build(cls, corpus.problem, settings, view, corpus.target, dims)
        rules = TrainingSettings(epochs=epochs, patience=epochs, batch_size=16, clip=5.0)
        metrics = task.entry.metrics, task.entry.main_metric
        fit(
            FitModule(model, Supervised(), corpus.train, corpus.dev, rules, lr, 0, *metrics, whole_groups=False),
            tmp_path / f"{id}-{architecture}",
            devices=1,
            strategy="auto",
            precision="32",
            max_epochs=epochs,
        )
        test = corpus.test()
        return main_score(task, predict(model, test, 64), test.rows.to_list())

    return train


def test_sentiment_needs_order(trained):
    """Accuracy: majority .500, bag .552, BiLSTM .989. Negation and contrast give the same words
    another label by their order."""
    assert without_model("sst2") == 0.5
    assert trained("sst2", "avg_vectors", 8, lr=0.003) < 0.62
    assert trained("sst2", "bilstm", 12, lr=0.005, hidden=16) > 0.85


def test_long_reviews_need_who_says_what(trained):
    """Accuracy: majority .500, bag .505, convolutions .990. As many good words as bad ones stand in
    each review."""
    assert without_model("imdb") == 0.5
    assert trained("imdb", "avg_vectors", 4) < 0.6
    assert trained("imdb", "kim_cnn_rand", 10, lr=0.003) > 0.8


def test_entities_need_words_from_afar(trained):
    """Span F1: commonest tag of each word .192, window of five .170, BiLSTM .515. The noun that
    types a name is further away."""
    assert without_model("conll2003_ner") < 0.25
    assert trained("conll2003_ner", "window_mlp", 10, hidden=32) < 0.27
    assert trained("conll2003_ner", "bilstm", 20, hidden=32, dropout=0.1) > 0.4


def test_inference_needs_roles(trained):
    """Accuracy: majority .333, bag .626, BiLSTM .778. A bag may tell "neutral" from the rest, which
    is two thirds at best."""
    assert without_model("snli") == pytest.approx(1 / 3, abs=0.01)
    assert trained("snli", "avg_vectors", 12) < 0.67
    assert trained("snli", "bilstm", 20, dims=32, hidden=48, dropout=0.0) > 0.7


def test_reading_needs_the_question(trained):
    """F1: commonest training answer .025, start-end searcher .556. Answers are copied: most are new
    in test."""
    task = task_of("squad1")
    rows = rows_of(task, "test")
    [(common, _)] = Counter(row["answers"]["text"][0] for row in rows_of(task, "train")).most_common(1)
    assert main_score(task, [common] * len(rows), rows) < 0.1
    assert without_model("squad1") == 0.0
    assert trained("squad1", "span_search", 9, hidden=32, attention=16) > 0.35


def test_answers_are_paraphrases(trained):
    """MAP: chance .429, words shared with the question .411, trained twin averages .986. Synonyms
    are learnt, not counted."""
    task = task_of("wikiqa")
    rows = rows_of(task, "test")
    overlap = [float(len(words(row["first"]) & words(row["second"]))) for row in rows]
    chance = without_model("wikiqa")
    assert main_score(task, overlap, rows) < chance
    assert trained("wikiqa", "avg_vectors", 8, lr=0.005) > 0.9


def test_stories_need_a_memory_with_an_order(trained):
    """Accuracy: commonest answer .100, bag .339, memory network .639. Which of a person's moves is
    the newest is told by order alone."""
    assert without_model("babi") < 0.2
    assert trained("babi", "avg_vectors", 12, lr=0.005) < 0.42
    assert trained("babi", "memn2n", 20, size=32) > 0.5


def words(text: Any) -> set[str]:
    return {word.lower() for word in words_of(text)}


def test_topics_need_words_alone(trained):
    """Accuracy: majority .250, bag .988. The corpus on which a bag is enough."""
    assert without_model("ag_news") == 0.25
    assert trained("ag_news", "avg_vectors", 4) > 0.95


@pytest.mark.parametrize(("id", "most"), [("fsdd", 0.3), ("fsdd_unseen", 0.5)])
def test_speech_is_heard_from_voices_known_and_unknown(trained, id, most):
    """Word error rate: empty transcript 1.000; BiLSTM with CTC .083 on known speakers, .250 on
    speakers that training never heard."""
    task = task_of(id)
    speakers = [{row["speaker"] for row in rows_of(task, split)} for split in ("train", "test")]
    assert speakers[0].isdisjoint(speakers[1]) == (id == "fsdd_unseen")
    assert without_model(id) == 1.0
    assert trained(id, "bilstm_ctc", 16, hidden=64, layers=1) < most
