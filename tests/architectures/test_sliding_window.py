"""The sliding window's score, distance and candidates by hand, and its choice among them."""

from __future__ import annotations

import math
from itertools import product

import pytest

from architectures.blocks.spans import FUNCTION_WORDS, phrases, sentences
from architectures.classical.sliding_window import SlidingWindow, distance, runs, window_score


def texts(passage: str, longest: int) -> list[str]:
    """The candidates of a passage."""
    return [
        passage[sentence.starts[first] : sentence.ends[end - 1]]
        for sentence in sentences(passage)
        for first, end in phrases(sentence, longest)
    ]


def test_the_score_of_a_five_word_passage_by_hand():
    """C: anna 2, paints 1, ships 2. Question and answer have three words, so that a window has
    three: paints ships anna, of which paints is neither asked nor said, and ships anna ships."""
    words = ["anna", "paints", "ships", "anna", "ships"]
    half = math.log(1 + 1 / 2)
    assert window_score(words, {"who", "ships"}, {"anna"}) == pytest.approx(3 * half)
    assert window_score(words, {"ships"}, {"anna"}) == pytest.approx(2 * half)
    assert window_score(words, {"paints"}, {"ships"}) == pytest.approx(math.log(2) + half)
    assert window_score(words, {"who"}, {"zebra"}) == 0


def test_a_window_begins_at_each_word_and_is_cut_off_at_the_end():
    """Against every window one by one, with the question's words among the answer's."""
    words = ["the", "red", "ship", "and", "the", "old", "red", "ship", "sank", "near", "the", "red", "harbour"]
    question, answer = {"the", "red", "harbour", "what"}, {"ship", "red"}
    wanted = question | answer
    best = 0.0
    for begin in range(len(words)):
        window = words[begin : begin + len(wanted)]
        best = max(best, sum(math.log(1 + 1 / words.count(word)) for word in window if word in wanted))
    assert window_score(words, question, answer) == pytest.approx(best)
    assert window_score(words[-2:], question, answer) == pytest.approx(2 * math.log(2))


def brute_distance(words: list[str], question: set[str], answer: set[str]) -> float:
    """The smallest number of words between, plus one, of all pairs of places."""
    steps = [
        abs(i - j)
        for (i, one), (j, other) in product(enumerate(words), repeat=2)
        if one in question and other in answer and other not in question and not {one, other} & FUNCTION_WORDS
    ]
    return min(steps) / (len(words) - 1) if steps else 1.0


@pytest.mark.parametrize(
    ("question", "answer", "steps"),
    [
        ({"ship", "what"}, {"harbour"}, 4),
        ({"ship", "red"}, {"red"}, None),
        ({"the", "red"}, {"of", "harbour"}, 2),
        ({"zebra"}, {"harbour"}, None),
        ({"near"}, {"ship", "old"}, 1),
    ],
)
def test_the_distance_is_that_of_the_nearest_words(question, answer, steps):
    """Function words are no neighbours, and a word that the question has is no answer."""
    words = ["ship", "sank", "the", "ship", "near", "old", "the", "harbour", "of", "red"]
    expected = 1.0 if steps is None else steps / 9
    found = distance(words, question, answer)
    assert found == pytest.approx(brute_distance(words, question, answer))
    assert found == pytest.approx(expected)
    assert distance(["ship"], {"ship"}, {"harbour"}) == 1


def test_sentences_end_with_a_mark_before_a_space():
    found = sentences("In 1,000.5 B.C. they left! Who? 3.5 ships .")
    assert [" ".join(sentence.forms) for sentence in found] == [
        "In 1 , 000 . 5 B . C .",
        "they left !",
        "Who ?",
        "3 . 5 ships .",
    ]
    assert found[1].words == ["they", "left", "!"]
    assert sentences("") == []


def test_candidates_are_spans_that_may_be_phrases():
    """Neither function words nor marks at an edge, no mark inside that has a space beside it, and
    no more words than asked."""
    assert texts("The University of Bonn, a city.", 3) == ["University", "University of Bonn", "Bonn", "city"]
    assert texts("The University of Bonn, a city.", 2) == ["University", "Bonn", "city"]
    assert texts("about 1,000 mid-19th ships", 3) == [
        "1",
        "1,000",
        "000",
        "000 mid",
        "mid",
        "mid-19th",
        "19th",
        "19th ships",
        "ships",
    ]
    assert texts("red, old ships", 3) == ["red", "old", "old ships", "ships"]
    assert texts("he . She", 3) == []


def answer(passage: str, question: str, **settings) -> str:
    [found] = SlidingWindow(**settings).predict([{"passage": passage, "question": question}])
    return found


def test_the_sentence_with_most_of_the_question_beside_the_span_comes_first():
    """Pairs of words count too; what the span itself has of the question does not."""
    passage = "Tom repaired ships. Old Anna mended red ships. Red Eva mended old ships."
    assert answer(passage, "Who mended old ships?", longest=1) == "Eva"
    assert runs(["who", "mended", "who"]) == {"who", "mended", ("who", "mended"), ("mended", "who")}
    assert answer("Tom repaired ships. Ben sang.", "ships repaired", longest=1) == "Tom"
    assert answer("Anna mended ships today.", "Who mended ships?", longest=4) == "Anna"


def test_among_spans_that_fit_alike_the_score_decides():
    """Eva and Bonn have as much of the question beside them, and Bonn is nearer to it; a longer
    span has more to score."""
    passage = "Anna and Eva then have moved to Bonn today."
    assert answer(passage, "Where moved she?", longest=1) == "Bonn"
    assert answer(passage, "Where moved she?", longest=2) == "Bonn today"
    assert answer("Eva, moved old Ben.", "Who moved?", longest=1) == "Eva", "a mark is no step"


def test_the_first_of_equal_spans_is_taken_and_none_is_no_answer():
    assert answer("Ann moved Ben.", "moved", longest=1) == "Ann"
    assert answer("!", "Who moved?") == ""
    assert SlidingWindow().fit([], []) is None


def test_marks_of_the_question_are_no_words_of_it():
    """Else a sentence with marks that the question has too would fit it better."""
    assert answer('Ben saw "ships" there. Eva sank ships.', 'Who sank "ships"?', longest=1) == "Eva"


def test_a_span_whose_score_is_not_above_zero_can_be_the_answer():
    """Ben alone is near nothing that was asked, and log(1 + 1 / 1) does not make up for a distance
    of 1."""
    assert window_score(["ben"], {"who"}, {"ben"}) - distance(["ben"], {"who"}, {"ben"}) < 0
    assert answer("Ben.", "Who?") == "Ben"


def test_words_on_either_side_of_the_span_are_no_neighbours():
    """Without Anna, red and ships do not become a pair: only the second sentence has it beside a
    span."""
    assert answer("Red Anna ships. Red ships sank.", "red ships", longest=1) == "sank"
