"""Language modelling: floors by hand, probabilities that sum to one, and vocabularies apart."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest

from harness import registry
from harness.contract import check
from harness.errors import ContractError
from harness.metrics import score
from harness.problems import problem
from harness.records.groups import comparable, group_of
from harness.running import grid
from harness.running.worker import run_cell

ASKED = problem("language_model")
TRAIN = [{"id": "1", "text": "a b a"}, {"id": "2", "text": ["a", "c"]}]
ROWS = [{"id": "3", "text": "a new b"}]


def test_the_unigram_floor_by_hand():
    """Each word once more than in train: a 4, b 2, c 2 and the unknown word 1, of 9."""
    [[logs, count]] = ASKED.floors(TRAIN, ROWS)["unigram"]
    assert (math.exp(logs), count) == (pytest.approx(4 / 9 * 1 / 9 * 2 / 9), 3)


def test_the_uniform_floor_has_the_perplexity_of_its_vocabulary():
    values = score(["nats_per_token", "perplexity"], ASKED.floors(TRAIN, ROWS)["uniform"], ROWS)
    assert values == {"nats_per_token": pytest.approx(math.log(4)), "perplexity": pytest.approx(4)}


def test_bits_per_character_are_of_the_text_and_not_of_the_tokens():
    """A model of letters and one of words that give a text the same probability have the same."""
    for count in (2, 4):
        assert score(["bits_per_character"], [[-4 * math.log(2), count]], [{"text": ["a", "bc"]}]) == {
            "bits_per_character": pytest.approx(4 / 4)
        }
    with pytest.raises(ValueError, match="no text has a character"):
        score(["bits_per_character"], [[-1.0, 1]], [{"text": ""}])


MODEL = """
import math

from harness.kinds import Estimator
from harness.problems.language_model import vocabulary
from harness.registry import register


@register("{id}", name="Test", kind="fit", paper="none", source="test", year=2026)
class Model(Estimator):
    task_types = ("language_model",)

    def fit(self, train, dev, unlabelled=()):
        {fit}

    def log(self, text, place):
        {log}

    def predict(self, rows):
        texts = [row["text"] for row in rows]
        return [[sum(self.log(text, place) for place in range(len(text))), len(text)] for text in texts]
"""
ALL_WORDS, FIRST_WORDS = "self.vocabulary = vocabulary(train)", "self.vocabulary = vocabulary(train[:1])"
UNIFORM = "return -math.log(len(self.vocabulary))"


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Registers models by their id, each as what ``fit`` and ``log`` do."""

    def write(**models: tuple[str, str]) -> list[registry.ArchitectureEntry]:
        files = [tmp_path / f"{id}.py" for id in models]
        for file, (fit, log) in zip(files, models.values(), strict=True):
            file.write_text(MODEL.format(id=file.stem, fit=fit, log=log))
        monkeypatch.setattr(registry, "_plugins", files)
        return [registry.entry("architectures", id) for id in models]

    return write


@pytest.mark.parametrize(
    ("fit", "log", "message"),
    [
        (ALL_WORDS, "return 0.0", "sum to 61, not 1"),
        (ALL_WORDS, "return math.log(text.count(text[place]) / len(text))", "sum to .*, not 1"),
        ("pass", "return 0.0", "self.vocabulary has 0 words, and '<unk>' is not one of them"),
    ],
    ids=["certain of every word", "shares within the text that is asked about", "no vocabulary"],
)
def test_a_model_whose_probabilities_are_none_fails_the_check(fit, log, message, written):
    """Its perplexity would be the best of the table, and no metric can see why."""
    [entry] = written(dishonest_lm=(fit, log))
    results = {result.name: result for result in check(entry)}
    [rules] = [result for name, result in results.items() if name.endswith("predictions keep the rules of the problem")]
    assert not rules.passed and re.search(message, rules.message), rules


def test_models_of_other_vocabularies_are_in_no_group_together(written, make_settings):
    """One that reads rare words as unknown is surprised less by each, and would lead the table."""
    entries = written(few_words=(FIRST_WORDS, UNIFORM), all_words=(ALL_WORDS, UNIFORM), again=(ALL_WORDS, UNIFORM))
    few, every, again = (_record(entry, make_settings()) for entry in entries)
    assert few.scores["test"]["perplexity"] < every.scores["test"]["perplexity"] == pytest.approx(61)
    assert every.tokens["symbols"] == 61 and group_of(every).tokens
    assert comparable(every, again) and not comparable(few, every)


def test_a_cell_without_a_vocabulary_fails(written, make_settings):
    record = _record(*written(silent=("pass", "return -1.0")), make_settings())
    assert record.status == "failed" and "self.vocabulary has 0 words" in record.error["message"]


def _record(entry: Any, settings: Any) -> Any:
    task = registry.entry("tasks", "wikitext2")
    [planned] = grid.plan([entry], [task], tier="mini", protocol="equal", seeds=[0], overrides=[])
    return run_cell(planned.cell, settings)


def test_only_a_vocabulary_with_the_unknown_word_is_one():
    with pytest.raises(ContractError, match="has 1 words, and '<unk>'"):
        ASKED.tokens(type("Model", (), {"vocabulary": ["a"]})())
