"""Story questions: answers as numbers, the layer above a vector, the facts that support, against
examples worked out by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from harness.errors import ContractError
from harness.kinds import Encoder
from harness.problems import problem
from harness.problems.answer import AnswerTarget, StoryHead, SupportedHead, SupportedTarget, story_as_text
from harness.views.bag import Bag
from harness.views.characters import Characters
from harness.views.facts import Facts
from harness.views.regions import Regions
from harness.views.sentences import Sentences
from harness.views.words import Words

ROWS = [
    {"facts": ["Mary sat.", "Ann took the ball."], "question": "Who sat?", "answer": "Mary", "skill": "person"},
    {"facts": ["Bob ran."], "question": "Who ran?", "answer": "Bob", "skill": "thing"},
    {"facts": ["Bob ran."], "question": "Who ran?", "answer": "Mary", "skill": "person"},
]


class Reader(Encoder):
    """The sum of what facts and question are, of four numbers."""

    size = 4

    def forward(self, facts: Tensor, question: Tensor) -> Tensor:
        return facts + 2 * question


LONG = {"facts": [f"fact{number} ." for number in range(51)], "question": "who ?"}


def target(answers: str = "cab") -> AnswerTarget:
    found = AnswerTarget()
    found.fit([{"answer": answer} for answer in answers])
    return found


def test_an_answer_that_training_never_gave_is_the_last_number_which_is_no_word():
    """The numbers follow the alphabet: the order of the rows would make another network of each
    shuffling."""
    assert target().labels == ["a", "b", "c", ""]
    assert target().encode([{"answer": "b"}, {"answer": "z"}], Facts())["label"].tolist() == [1, 3]


def test_a_layer_scores_the_answers_from_what_the_reader_makes_of_facts_and_question():
    """Values and gradients, of the layer and of what lies below it; facts and question are not
    exchanged."""
    head = StoryHead(Reader(), target()).eval()
    assert isinstance(head.output, nn.Linear) and head.output.weight.shape == (4, 4)
    facts, question = torch.tensor([[1.0, 2, 3, 4]], requires_grad=True), torch.tensor([[4.0, 0, 0, 1]])
    scores = head(Reader(), {"facts": facts, "question": question})
    weight, bias = head.output.weight.detach().tolist(), head.output.bias.detach().tolist()
    vector = [9.0, 2.0, 3.0, 6.0]
    expected = [sum(w * x for w, x in zip(row, vector, strict=True)) + b for row, b in zip(weight, bias, strict=True)]
    assert scores.tolist()[0] == pytest.approx(expected, abs=1e-5)
    scores[0, 2].backward()
    assert facts.grad.tolist()[0] == pytest.approx(weight[2])
    assert head.output.weight.grad[2].tolist() == pytest.approx(vector)


def test_the_vector_of_a_story_is_dropped_before_the_layer_and_not_behind_it():
    head = StoryHead(Reader(), target()).train()
    head.dropout = 1.0
    ones = torch.ones(2, 4)
    assert head(Reader(), {"facts": ones, "question": ones}).tolist() == [pytest.approx(head.output.bias.tolist())] * 2


class Chooser(Encoder):
    """Scores the answers itself; its loss is the score of the right answer times the first fact
    that supports it."""

    def __init__(self, answers: int = 4):
        super().__init__()
        self.scores = torch.arange(2.0 * answers).view(2, answers)

    def forward(self, facts: Any, question: Any) -> Any:
        return SimpleNamespace(scores=self.scores, asked=(facts, question))

    def objective(self, outputs: Any, target: Any) -> Tensor:
        answers, support = target
        return outputs.scores[torch.arange(2), answers] * support[:, 0]


def test_a_chooser_of_facts_has_its_own_loss_of_answers_and_support():
    """Its outputs reach the objective as they are; the loss of a batch is the mean of its rows, and
    what answers is the scores."""
    encoder, known = Chooser(), SupportedTarget()
    known.labels = ["a", "b", "c", ""]
    head = SupportedHead(encoder, known)
    assert head.output is None, "there is no layer above one that scores the answers"
    assert not head.smooths, "its own loss has no labels that a setting could smooth"
    outputs = head(encoder, {"facts": "the facts", "question": "the question"})
    assert outputs.asked == ("the facts", "the question")
    right = torch.tensor([2, 1]), torch.tensor([[3, 0], [1, 2]])
    assert head.row_losses(encoder, outputs, right).tolist() == [6.0, 5.0]
    assert head.loss(encoder, outputs, right).item() == 5.5
    assert torch.equal(head.class_scores(outputs), encoder.scores)
    assert [each.tolist() for each in head.evidence(encoder, outputs)] == encoder.scores.tolist()
    outputs.scores = torch.tensor([[0.0, 3, 1, 2], [0.0, 1, 4, 2]])
    assert head.decode(encoder, outputs, None, None) == ["b", "c"]


def test_facts_that_support_are_numbered_from_one_among_those_that_are_read():
    """Of three facts two are read: the first is neither there nor, by a number one too low, its
    neighbour."""
    view = Facts(most=2)
    rows = [
        {"facts": ["x", "y", "z"], "answer": "a", "support": [0, 1, 2]},
        {"facts": ["x", "y"], "answer": "b", "support": [0]},
        {"facts": ["x"], "answer": "q"},
    ]
    known = SupportedTarget()
    known.fit(rows[:2])
    columns = known.encode(rows, view)
    answers, support = known.collate(columns, torch.tensor([0, 1, 2]).numpy())
    assert answers.tolist() == [0, 1, 2]
    assert support.tolist() == [[1, 2], [1, 0], [0, 0]]
    assert support.dtype == torch.int64


def test_an_architecture_that_chooses_facts_and_does_not_ask_for_them_is_told_what_to_declare():
    with pytest.raises(ContractError, match=r'"chosen facts" declares sees=\("supporting facts",\)'):
        SupportedTarget().fit(ROWS)


def test_a_story_is_one_text_of_its_question_and_its_fifty_newest_facts():
    text = story_as_text(LONG, Words())
    assert text[:5] == ["who", "?", "|", "fact1", "."]
    assert text[-2:] == ["fact50", "."] and len(text) == 3 + 2 * 50


@pytest.mark.parametrize(
    ("view", "first"),
    [
        (Words(max_length=13), "fact46"),
        (Sentences(max_sentences=6), "fact46"),
        (Characters(length=len("who ? |" + 5 * " fact46 .")), "fact46"),
        (Regions(max_length=13), "fact46"),
        (Bag(), "fact1"),
        (Characters(length=None), "fact1"),
        (Words(max_length=2), "fact50"),
    ],
)
def test_of_a_long_story_the_newest_facts_are_read(view, first):
    """Views cut at the end, where the newest fact stands, which is what most questions ask for."""
    text = story_as_text(LONG, view)
    assert text[:5] == ["who", "?", "|", first, "."] and text[-2:] == ["fact50", "."]
    assert problem("answer").fields("vector", view)["text"](LONG) == text
    view.fit([text])
    if first == "fact46":
        units = view.lengths(view.encode([text, [*text[:3], "fact45", ".", *text[3:]]]))
        assert units[0] == units[1], "one fact more, and the end would be cut off"


def test_facts_without_full_stops_are_one_sentence_whose_end_is_read():
    facts = [f"fact{number} here" for number in range(9)]
    text = story_as_text({"facts": facts, "question": "who ?"}, Sentences(max_words=5))
    assert text == ["who", "?", "|", "fact7", "here", "fact8", "here"]


def test_who_asks_for_what_is_given_it():
    asked = problem("answer")
    for gives in ("fact vector", "chosen facts"):
        fields = asked.fields(gives, Facts())
        assert {name: read(ROWS[0]) for name, read in fields.items()} == {
            "facts": ["Mary sat.", "Ann took the ball."],
            "question": ["Who sat?"],
        }
    assert [*asked.fields("vector", Facts())] == ["text"]
    assert type(asked.target("chosen facts")) is SupportedTarget and type(asked.target("vector")) is AnswerTarget


def test_floors_know_the_answers_of_training_and_the_newest_word():
    """A full stop is no answer; a fact without a word answers nothing."""
    silent = {"facts": ["..."], "question": "?", "answer": "x", "skill": "s"}
    floors = problem("answer").floors(ROWS, [ROWS[1], ROWS[0], silent])
    assert floors["newest word"] == ["ran", "ball", ""]
    assert floors["majority"] == ["Mary"] * 3
    assert {*floors["random"]} <= {"Mary", "Bob"} and len(floors["random"]) == 3
    assert [*floors] == [*problem("answer").floor_names]


def test_a_story_is_shortened_made_unknown_and_answered_wrongly():
    asked = problem("answer")
    short, strange = asked.shortened(ROWS[0]), asked.with_unknown_words(ROWS[0])
    assert short == ROWS[0] | {"facts": ["Mary"], "question": "Who"}
    assert strange["facts"] == ["Qzxv Qzxv Qzxv", "Qzxv Qzxv Qzxv Qzxv Qzxv"]
    assert strange["question"] == "Qzxv Qzxv Qzxv"
    assert [row["answer"] for row in asked.flipped(ROWS)] == ["Bob", "Mary", "Bob"]
    assert [row["facts"] for row in asked.flipped(ROWS)] == [row["facts"] for row in ROWS]
    assert asked.right(ROWS[1]) == "Bob"


def test_results_are_told_apart_by_skill():
    of_skill, skills = problem("answer").properties(ROWS)["skill"]
    assert skills == ["person", "thing"] and of_skill(ROWS[1]) == "thing"
