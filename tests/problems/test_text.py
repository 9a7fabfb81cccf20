"""Plain text: the words that are asked for, floors by hand, and the rule by which vectors foretell
a word."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from harness.errors import ContractError
from harness.metrics import score
from harness.problems import problem
from harness.problems.text import AROUND, VectorTrainer, asked_places
from harness.ragged import Ragged
from harness.views.words import Vocabulary

ASKED = problem("text")
TRAIN = [{"id": str(n), "text": "Red red blue" if n < 5 else "green"} for n in range(10)]


def rows(*texts: str) -> list[dict[str, Any]]:
    return [{"id": str(number), "text": text} for number, text in enumerate(texts)]


def test_every_tenth_word_is_asked_for_and_the_middle_one_of_a_short_text():
    """Each has words on both sides where there are any, and none is another's context."""
    assert [list(asked_places(length)) for length in (1, 2, 9, 10, 26)] == [[0], [1], [4], [5], [5, 15, 25]]
    assert ASKED.right({"id": "1", "text": "a b c"}) == [0.0, 1]
    assert asked_places(100).step > AROUND


def test_the_floors_by_hand():
    """Red 11, blue 6, green 6 and the unknown word 1, of 24; "new" is not known."""
    found = ASKED.floors(TRAIN, rows("blue RED blue", "new"))
    assert [[round(math.exp(log), 6), n] for log, n in found["unigram"]] == [
        [round(11 / 24, 6), 1],
        [round(1 / 24, 6), 1],
    ]
    assert found["uniform"] == [[pytest.approx(-math.log(4)), 1]] * 2


class Given(VectorTrainer):
    """Vectors that a test gives, by word."""

    vectors_of: dict[str, list[float]]

    def train(self, texts: Ragged, vocabulary: Vocabulary) -> np.ndarray:
        self.texts = texts
        return np.array([[9.0, 9.0], [7.0, 7.0], *(self.vectors_of[word] for word in vocabulary.words)])


def given(**vectors: list[float]) -> Given:
    system = Given()
    system.vectors_of = vectors
    return system


def test_a_word_is_foretold_by_the_vectors_around_it():
    """Against the rule, written out: padding and the unknown word have no direction, and texts are
    numbered in lower case."""
    system = given(red=[2.0, 0.0], blue=[0.0, 3.0], green=[-1.0, 1.0])
    system.fit(TRAIN, rows("red blue red"))
    assert [each.tolist() for each in system.texts] == [[2, 2, 3]] * 5 + [[4]] * 5
    assert system.known.words == ["red", "blue", "green"]
    system.strength = 1.5
    less_their_mean = {"red": (5 / 3, -4 / 3), "blue": (-1 / 3, 5 / 3), "green": (-4 / 3, -1 / 3)}
    directions = {word: np.array(vector) / math.hypot(*vector) for word, vector in less_their_mean.items()}
    directions["<unk>"] = np.zeros(2)
    counts = {"red": 11, "blue": 6, "green": 6, "<unk>": 1}
    around = directions["blue"] + directions["green"]
    around = around / np.linalg.norm(around)
    weights = {word: counts[word] * math.exp(1.5 * float(around @ directions[word])) for word in counts}
    for word in counts:
        [[log, number]] = system.predict(rows(f"blue {word.strip('<>')} green"))
        assert (math.exp(log), number) == (pytest.approx(weights[word] / sum(weights.values()), abs=1e-4), 1)
    ASKED.sound(system, system.predict, TRAIN)


def test_a_word_without_a_direction_foretells_nothing():
    """Its vector is the mean of all: divided by its length it would be no number."""
    system = given(red=[1.0, 0.0], blue=[0.0, 0.0], green=[-1.0, 0.0])
    system.fit(TRAIN, rows("red blue red"))
    system.strength = 3.0
    [[log, number]] = system.predict(rows("blue red"))
    assert (math.exp(log), number) == (pytest.approx(11 / 24, abs=1e-4), 1)


def test_what_all_vectors_have_in_common_tells_nothing():
    """Skip-gram on two million words scored no better than the floor by it."""
    vectors = {"red": [2.0, 0.0], "blue": [0.0, 3.0], "green": [-1.0, 1.0]}
    found = []
    for shift in (0.0, 50.0):
        system = given(**{word: [x + shift, y + shift] for word, (x, y) in vectors.items()})
        system.fit(TRAIN, rows("red blue red"))
        system.strength = 1.0
        found.append(system.predict(rows("blue red green"))[0][0])
    assert found[0] == pytest.approx(found[1], abs=1e-3)


def test_words_further_than_five_places_away_do_not_matter():
    system = given(red=[2.0, 0.0], blue=[0.0, 3.0], green=[-1.0, 1.0])
    system.fit(TRAIN, rows("red blue red"))
    system.strength = 1.0
    beginnings = (["new"] * 11 + ["red"], ["new"] * 10 + ["red"], ["new"])
    texts = [" ".join([*words, *["new"] * (14 - len(words))]) for words in beginnings]
    (far, _), (near, _), (none, _) = system.predict(rows(*texts))
    assert far == none != near


def test_vectors_that_tell_nothing_have_the_score_of_the_floor():
    """The strength is chosen on dev: what misleads is left out."""
    rng = np.random.default_rng(0)
    words = [f"w{number}" for number in range(40)]
    texts = rows(*(" ".join(rng.choice(words, 30)) for _ in range(300)))
    system = given(**{word: rng.normal(size=2).tolist() for word in words})
    system.fit(texts[:250], texts[250:])
    metrics = ["nats_per_token"]
    floor = score(metrics, ASKED.floors(texts[:250], texts)["unigram"], texts)
    assert score(metrics, system.predict(texts), texts)["nats_per_token"] == pytest.approx(
        floor["nats_per_token"], abs=0.02
    )


def test_too_little_text_is_named():
    with pytest.raises(ValueError, match="no word stands 5 times in the 2 training texts"):
        given().fit(rows("a b", "c"), rows("a"))


def test_a_system_that_looks_at_the_word_itself_is_found():
    """It would be certain of every word, and lead the table."""
    system = given(red=[2.0, 0.0], blue=[0.0, 3.0], green=[-1.0, 1.0])
    system.fit(TRAIN, rows("red blue red"))
    with pytest.raises(ContractError, match="in the place of 'blue' .* sum to 4, not 1"):
        ASKED.sound(system, lambda asked: [[0.0, 1]] * len(asked), [{"id": "1", "text": "red blue"}])
    assert ASKED.tokens(system)["symbols"] == 4
