"""Settings on pages are words with units, and still tell two configurations apart."""

from __future__ import annotations

import pytest

from harness.files import sorted_json
from harness.leaderboard.results import Result, sections_of
from harness.leaderboard.setting_words import KNOWN, in_words
from tests.support.made_records import record


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("limits.max_epochs", None, "no limit on passes"),
        ("limits.max_epochs", 3, "at most 3 passes"),
        ("limits.max_epochs", 1, "at most 1 pass"),
        ("limits.max_train", 12000, "at most 12,000 training examples"),
        ("training.learning_rates", [0.002, 0.001], "learning rates 0.002 and 0.001"),
        ("training.momentum", 0.9, "momentum 0.9"),
        ("word_dropout", 0.3, "word dropout 0.3"),
        ("attend_inputs", True, "with attend inputs"),
        ("attend_inputs", False, "without attend inputs"),
        ("windows", [], "windows none"),
        ("pretrained", "", "pretrained none"),
        ("vectors.file", None, "no vectors file"),
        ("parents.weights", None, "random weights"),
        ("parents.teacher", "bert on sst2 (0123abcd)", "teacher bert on sst2 (0123abcd)"),
        ("train data", "0d4a2327eb72", "train data 0d4a2327eb72"),
    ],
)
def test_a_setting_in_words(name: str, value: object, words: str):
    assert in_words(name, value) == words


@pytest.mark.parametrize("name", [*KNOWN, "hop_count", "training.eps"])
def test_different_values_are_different_words(name: str):
    """Two rows with one name would be read as two seeds."""
    texts = [in_words(name, value) for value in (None, True, False, 1, 2, 0.5, "1x", [1, 2])]
    assert len(set(texts)) == len(texts)
    assert not any("None" in text or "=" in text or "_" in text for text in texts)


def settings_of(*hyperparameters: dict[str, object]) -> list[str]:
    """The settings of results that differ in nothing else."""
    records = [record(score=0.5, hyperparameters=each) for each in hyperparameters]
    results: list[Result] = []
    for found in sections_of(records, {}, sorted_json()).values():
        results += found["dan", "sst2"]
    return [result.settings for result in results]


def parent(row: str, seed: int = 0, task: str = "audio_mix") -> dict[str, object]:
    weights = {"architecture": "hubert", "task": task, "row": row * 16, "key": f"{seed}" * 16}
    return {"n": 1, "parents": {"weights": weights}}


def test_a_parent_is_named_by_what_it_is():
    """Its digests alone would fill the cell and tell nobody anything; two of one name need them."""
    assert settings_of(parent("a", task="sst2"), {"n": 1}) == [
        "random weights",
        "weights of hubert on sst2 (aaaaaaaa)",
    ]
    assert settings_of(parent("a"), {"n": 1}) == ["", ""], "sections tell apart what read other rows"
    assert settings_of(parent("a"), parent("b"), parent("a", seed=1)) == [
        "weights of hubert on audio_mix (aaaaaaaa)",
        "weights of hubert on audio_mix (bbbbbbbb)",
    ]


def test_results_say_in_words_how_they_differ():
    """The names of the code stood there: "limits.max_epochs=None"."""
    assert settings_of({"hidden": 50}, {"hidden": 1000}) == ["1,000 hidden units", "50 hidden units"]
    assert settings_of({"hidden": 50}) == [""]
    assert settings_of({"depth": 1, "vectors": None}, {"depth": 2, "vectors": None}) == ["depth 1", "depth 2"]
    assert settings_of({"n": 1, "training": {"epochs": 4}}, {"n": 1}) == ["4 passes", "no epochs"]
