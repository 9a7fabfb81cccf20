"""Features of pairs by hand, what the classifier reads, and the two ids."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from architectures.classical.snli_features import PairClassifier, indicators, measures
from harness import registry

DOGS = ["the", "dog", "runs", "in", "the", "park", "."]
PAIRS = [
    ("A man sings.", "A man sleeps.", "contradiction"),
    ("A man sings.", "A person sings.", "entailment"),
    ("A woman sings.", "A woman sleeps.", "contradiction"),
    ("A woman sings.", "A person sings.", "entailment"),
    ("A man sings.", "A man is loud, loud.", "neutral"),
    ("A woman sings.", "A woman is loud, loud.", "neutral"),
]
TRAIN = [{"first": first, "second": second, "label": label} for first, second, label in PAIRS]


def fitted(**settings) -> PairClassifier:
    model = PairClassifier(**settings)
    model.fit(TRAIN, [])
    return model


def test_measures_of_a_pair_by_hand():
    """Of "the dog sleeps ." three words, the, dog and the mark, are among seven; of its content
    words one of two. One of three pairs is shared, no run of three or four; BLEU takes a half of
    one for nothing, a quarter the second time, and punishes three words too few."""
    found = measures(DOGS, ["the", "dog", "sleeps", "."])
    precisions = [3 / 4, 1 / 3, 1 / 2 / 2, 1 / 4 / 1]
    bleu = math.exp(1 - 7 / 4) * math.prod(precisions) ** (1 / 4)
    assert found == pytest.approx([bleu, 4 - 7, 3, 3 / 4, 1, 1 / 2])


def test_measures_of_equal_and_of_strange_texts():
    assert measures(DOGS, DOGS) == pytest.approx([1, 0, 7, 1, 3, 1])
    assert measures(DOGS, ["cats"]) == pytest.approx([0, -6, 0, 0, 0, 0], abs=1e-2)
    assert measures(["a"], ["."]) == pytest.approx([0, 0, 0, 0, 0, 0], abs=1e-2), "no content word at all"
    assert measures(["dog", "the"], ["dog", "dog"])[2:] == [2, 1, 2, 1], "each occurrence counts"


def test_indicators_of_a_pair_by_hand():
    """Content words meet content words, function words and marks each other; of two neighbours the
    second decides."""
    assert list(indicators(["the", "dog", "runs"], ["a", "cat"], 1)) == [
        "a", "the -> a",
        "cat", "dog -> cat", "runs -> cat",
    ]  # fmt: skip
    of_two = list(indicators(["the", "dog", "runs", "."], ["a", "cat"], 2))
    assert of_two[6:] == ["a cat", "the dog -> a cat", "dog runs -> a cat"]
    assert of_two[:2] == ["a", "the -> a"] and ". -> a" in of_two
    assert list(indicators(["dog"], ["cat", "."], 2)) == ["cat", "dog -> cat", ".", "cat ."]


def test_features_are_measures_and_the_indicators_of_several_pairs():
    model = fitted()
    names = model.known.get_feature_names_out().tolist()
    assert "a person" in names and "a man -> a person" not in names, "of one training pair"
    words = model.words(TRAIN)
    table = model.features(words).toarray()
    largest = [max(abs(value), 1e-9) for value in np.abs([measures(*pair) for pair in words]).max(axis=0)]
    for row, pair in zip(table, words, strict=True):
        expected = [*np.divide(measures(*pair), largest), *(float(name in set(indicators(*pair, 2))) for name in names)]
        assert np.allclose(row, expected)
    everything = {name for pair in words for name in indicators(*pair, 2)}
    kept = {name for name in everything if sum(name in set(indicators(*pair, 2)) for pair in words) >= 2}
    assert set(names) == kept < everything


def test_a_measure_that_is_zero_for_all_pairs_stays_zero():
    """Texts of which no two share a word: divided by their largest value, zeros would be no
    numbers, and no machine learns from those."""
    model = PairClassifier()
    model.fit([{"first": "dogs run", "second": f"cats {verb}", "label": verb} for verb in ("sleep", "eat") * 2], [])
    table = model.features(model.words([{"first": "dogs run", "second": "birds fly"}])).toarray()
    assert model.scale[1:].tolist() == [1.0] * 5 and table[0, 1:6].tolist() == [0.0] * 5


def test_the_machine_reads_the_features_and_answers():
    model = fitted(C=0.5)
    table, labels = model.features(model.words(TRAIN)), [row["label"] for row in TRAIN]
    machine = LinearSVC(C=0.5, random_state=0).fit(table, labels)
    assert np.allclose(model.machine.decision_function(table), machine.decision_function(table), atol=1e-3)
    assert model.predict(TRAIN) == labels
    assert model.parameter_count == 3 * (table.shape[1] + 1)
    assert model.predict([{"first": "A boy sings.", "second": "A boy is loud."}]) == ["neutral"]


def test_a_premise_alone_decides_nothing_but_by_its_pairs():
    """No indicator names a word of the first text alone."""
    for name in fitted().known.get_feature_names_out():
        assert name.split(" -> ")[-1] in {run for row in TRAIN for run in indicators([], words_of(row), 2)}


def words_of(row: dict[str, str]) -> list[str]:
    return fitted().words([row])[0][1]


@pytest.mark.parametrize(("id", "longest"), [("snli_lexicalised", 2), ("snli_unigrams", 1)])
def test_each_id_has_the_runs_of_its_name(id, longest):
    entry = registry.entry("architectures", id)
    model = registry.load(entry)(**entry.hyperparameters)
    model.fit(TRAIN, [])
    assert max(len(name.split(" -> ")[-1].split()) for name in model.known.get_feature_names_out()) == longest
