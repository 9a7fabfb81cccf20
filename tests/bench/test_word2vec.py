"""Skip-gram beside gensim's, on two threads each: words a second, and the neighbours that are
learnt.

gensim is in the extra ``vectors``. Both read the same words of the training texts of ag_news; what
both make before the first step, such as the vocabulary, is left out.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from architectures.vectors.skipgram import SkipGram
from harness import registry
from harness.problems.text import numbered, vocabulary
from harness.ragged import Ragged
from harness.views.words import Vocabulary
from tests.support import planted_topics
from tools.speed.goals import Row

SETTINGS: dict[str, Any] = {"dims": 100, "threshold": 1e-3, "epochs": 1, "threads": 2}


@pytest.fixture(scope="module")
def gensim() -> Any:
    return pytest.importorskip("gensim.models", reason="no gensim: pip install -e .[vectors]")


@pytest.fixture(scope="module")
def text(corpora: Path) -> tuple[Ragged, Vocabulary]:
    entry = registry.entry("tasks", "ag_news")
    rows = registry.load(entry)(entry).load("train", "local", corpora).to_list()
    known = vocabulary(rows)
    return numbered([row["text"] for row in rows], known), known


def theirs_of(gensim: Any, texts: Ragged, known: Vocabulary, settings: dict[str, Any]) -> tuple[Any, list[list[str]]]:
    """A model of gensim with our settings, and the texts as it reads them, unknown words left
    out."""
    ours = SkipGram(**settings)
    model = gensim.Word2Vec(
        vector_size=ours.dims,
        window=ours.window,
        negative=ours.negatives,
        sample=ours.threshold,
        alpha=ours.rate,
        epochs=ours.epochs,
        workers=ours.threads,
        min_count=1,
        sg=1,
    )
    sentences = [[known.words[id - 2] for id in text if id > 1] for text in map(texts.__getitem__, range(len(texts)))]
    model.build_vocab(sentences)
    return model, sentences


def test_words_a_second(beside, gensim: Any, text: tuple[Ragged, Vocabulary]) -> None:
    texts, known = text
    model, sentences = theirs_of(gensim, texts, known, SETTINGS)
    beside(
        f"skip-gram on ag_news ({len(texts.values):,} words): training",
        "gensim, 2 threads each",
        1,
        lambda: SkipGram(**SETTINGS).train(texts, known),
        lambda: model.train(sentences, total_examples=len(sentences), epochs=1),
        rounds=3,
    )


def test_neighbours(benchmark, enter, gensim: Any) -> None:
    """Share of the five nearest words that are of the same planted topic. gensim takes a threshold
    of 1 for a count."""
    rows, settings = planted_topics.rows(600), {"dims": 12, "threshold": 0.9, "epochs": 2, "threads": 2}
    known = vocabulary(rows)
    texts = numbered([row["text"] for row in rows], known)
    model, sentences = theirs_of(gensim, texts, known, settings)
    model.train(sentences, total_examples=len(sentences), epochs=2)
    their_vectors = np.array([model.wv[word] for word in known.words])
    ours = benchmark.pedantic(lambda: SkipGram(**settings).train(texts, known)[2:], rounds=1)
    mine, other = (planted_topics.share_of_neighbours(known.words, vectors) for vectors in (ours, their_vectors))
    enter(
        Row(
            f"skip-gram on planted topics: neighbours of the same topic (ours {mine:.3f})",
            f"gensim ({other:.3f})",
            "<=",
            0.02,
            other - mine,
            "below",
        )
    )
