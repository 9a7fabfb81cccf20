"""The score of a division into pieces: a proper one, the same unit for all, and a floor by hand."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from architectures.floors.characters import CharacterFloor
from harness import registry
from harness.contract.base import Broken
from harness.contract.fitted import Fit, FittedCase
from harness.errors import ContractError
from harness.metrics import score
from harness.problems import problem
from harness.problems.pieces import CODE_POINTS, TokenTrainer, character_floor, known_characters, lowered
from harness.views.pieces import LONGEST, Pieces

ASKED = problem("text")
SYSTEMS = {id: registry.load(registry.entry("architectures", id)) for id in ("bpe", "wordpiece", "unigram")}


def rows(*texts: str) -> list[dict[str, Any]]:
    return [{"id": str(number), "text": text} for number, text in enumerate(texts)]


TRAIN = rows(*["Ab ab, abba baab" for _ in range(6)], "x")


def fitted(id: str, size: int = 12) -> TokenTrainer:
    system = SYSTEMS[id](size=size)
    system.fit(TRAIN, TRAIN)
    return system


def test_the_floor_by_hand():
    """Of a, b, the comma, the blank, the new character and the end there are 36, 36, 6, 31, 1 and
    7, each once more: of 37 words, six are commas."""
    counts = {"a": 36, "b": 36, ",": 6, " ": 31, "new": 1, "end": 7}
    assert sum(counts.values()) == 117
    [[log, characters]] = ASKED.floors_of(TokenTrainer, TRAIN, rows("a Bx"))["characters"]
    spelt = ["a", " ", "b", "new", " ", "end"]
    expected = sum(math.log((counts[c] + 1) / (117 + 6)) for c in spelt) - math.log(CODE_POINTS)
    assert (log, characters) == (pytest.approx(expected, abs=1e-4), 5)


def test_the_row_of_the_floor_is_that_of_the_problem():
    """A table that shows another number than systems are checked by would mislead."""
    floor = CharacterFloor("text", predictions="characters")
    floor.fit(TRAIN, [])
    asked = rows("a Bx", "ab")
    assert floor.predict(asked) == ASKED.floors_of(TokenTrainer, TRAIN, asked)["characters"]


def test_word_systems_keep_their_floors():
    assert [*ASKED.floors_of(registry.load(registry.entry("architectures", "skipgram")), TRAIN, TRAIN)] == [
        "unigram",
        "uniform",
    ]


@pytest.mark.parametrize("id", SYSTEMS)
def test_a_text_has_the_product_of_the_shares_of_its_pieces(id: str):
    system = fitted(id)
    pieces = [system.pieces.split(lowered(row["text"])) for row in TRAIN]
    total = sum(map(len, pieces)) + len(TRAIN) + len(system.pieces.vocabulary) + 1
    text = "abba, Abab"
    found = [sum(each.count(piece) for each in pieces) + 1 for piece in system.pieces.split(lowered(text))]
    expected = sum(math.log(count / total) for count in [*found, len(TRAIN) + 1])
    assert system.predict(rows(text)) == [[pytest.approx(expected, abs=1e-3), 12]]


@pytest.mark.parametrize("id", SYSTEMS)
def test_the_probabilities_of_all_texts_sum_to_less_than_one(id: str):
    """Of all those of up to three words of up to three characters; else a score would be a
    promise that no text can keep."""
    system = fitted(id)
    words = ["".join(word) for length in (1, 2, 3) for word in itertools.product("ab", repeat=length)]
    texts = [" ".join(text) for length in (1, 2, 3) for text in itertools.product(words, repeat=length)]
    total = math.fsum(math.exp(log) for log, _ in system.predict(rows(*texts)))
    assert 0.01 < total < 1


@pytest.mark.parametrize("id", SYSTEMS)
@given(text=st.text(max_size=60) | st.text(alphabet="aB, Ü", max_size=60) | st.just("ab" * LONGEST))
@settings(max_examples=60)
def test_pieces_are_joined_to_their_text(id: str, text: str):
    """In lower case, with one blank between words, new characters as one, and very long words
    cut."""
    pieces = PIECES[id]
    known = {*"ab,"}
    words = ["".join(c if c in known else "\ufffd" for c in word) for word in lowered(text)]
    assert pieces.join(pieces.split(lowered(text))) == " ".join(words)


PIECES = {id: Pieces(fitted(id).tokenizer()) for id in SYSTEMS}


def test_a_division_is_kept_as_text():
    """What a child reads by is what the parent learnt."""
    system = fitted("bpe")
    assert Pieces(system.tokenizer()).split(["Abba", "baab"]) == system.pieces.split(["abba", "baab"])


def test_a_kept_division_scores_as_before():
    system, again = fitted("bpe"), SYSTEMS["bpe"](size=12)
    again.restore_fitted(system.fitted_state())
    assert again.predict(TRAIN) == system.predict(TRAIN) and again.parameter_count == system.parameter_count


def test_a_character_that_training_shows_five_times_is_known():
    assert known_characters({"ab": 4, "b": 1, "\ufffd": 9}) == {"b"}


def test_a_handful_of_texts_is_too_little():
    with pytest.raises(ValueError, match="no character stands 5 times in the 2 training texts: more are needed"):
        SYSTEMS["bpe"](size=12).fit(rows("ab", "cd"), [])


def test_words_and_characters_are_learnt_from_in_one_order():
    """A set has another order in each process: one training would number its pieces otherwise."""
    seen = []

    class Watched(SYSTEMS["bpe"]):
        def learn(self, words, characters):
            seen.extend([[*words], characters])
            return super().learn(words, characters)

    Watched(size=12).fit(rows(*["hgfe dcba ab" for _ in range(5)]), [])
    assert seen == [["ab", "dcba", "hgfe"], [*"abcdefgh", "\ufffd"]]


@pytest.mark.parametrize("id", SYSTEMS)
def test_more_pieces_say_more_than_characters(id: str):
    system = fitted(id, size=30)
    floor = ASKED.floors_of(SYSTEMS[id], TRAIN, TRAIN)["characters"]
    metrics = ["nats_per_token"]
    ours, theirs = (score(metrics, found, TRAIN)["nats_per_token"] for found in (system.predict(TRAIN), floor))
    assert ours < 0.8 * theirs


def test_the_contract_asks_for_more_than_characters():
    """The floor of words has more nats for each word: everything would beat that."""
    case = FittedCase(registry.entry("architectures", "bpe"), registry.entry("tasks", "text_mix"), {})
    case.train = case.test = rows(*[" ".join("".join(word) for word in itertools.product("abcd", repeat=3))] * 6)
    case.first = Fit(TokenTrainer(), character_floor(case.train, case.test), set())
    with pytest.raises(Broken, match="nats_per_token on test is 1.628; the floor is 1.628"):
        case.learns()


@pytest.mark.parametrize("id", SYSTEMS)
def test_characters_are_pieces_where_there_is_room_for_nothing_else(id: str):
    """No vocabulary is smaller than the alphabet: a training that waits for one never ends."""
    pieces = fitted(id, size=2).pieces
    assert pieces.join(pieces.split(["abba", "ba"])) == "abba ba" and len(pieces.split(["abba"])) >= 4


def test_a_promise_that_cannot_be_kept_is_found():
    """Certainty of every text, and the same probability for more characters, would lead the
    table."""
    system = fitted("bpe")
    assert ASKED.tokens(system) == {"name": "characters"}
    ASKED.sound(system, system.predict, TRAIN)
    with pytest.raises(ContractError, match="the 5 texts of one training word sum to 5, more than 1"):
        ASKED.sound(system, lambda asked: [[0.0, len(row["text"]) + 1] for row in asked], TRAIN)
    with pytest.raises(ContractError, match="the text ',' has 2 characters with a blank, and not 20"):
        ASKED.sound(system, lambda asked: [[-9.0, 20] for _ in asked], TRAIN)
