"""The mechanism of memory networks: supporting facts chosen one after another by comparisons that
know their order, and margin losses that are shown them."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from torch import Tensor

from architectures.memory import memnn
from architectures.memory.memnn import MemNN, Read, drawn_beside
from harness import registry
from tests.support import stories
from tests.support.pairs import shipped
from tests.support.same import assert_same

ANSWERS = ["home", "yes", "ann", ""]
SIZE = 4


def model_of(stretch: float | None = 12.0, **options) -> MemNN:
    view = stories.view()
    return shipped("memnn", view.width, ANSWERS, view, stretch=stretch, **{"size": SIZE} | options)


class Story:
    """One question about one story, with the bags of words of sections 3.1 and 3.4."""

    def __init__(self, model: MemNN, facts: list[Tensor], question: Tensor):
        self.model = model
        self.question = [table.weight[question].sum(0) for table in model.asked]
        self.joining = [[torch.zeros(len(q))] + [t.weight[words].sum(0) for words in facts] for q, t in self.tables]
        self.looked_for = [model.empty, *(model.told.weight[words].sum(0) for words in facts)]

    @property
    def tables(self) -> list[tuple[Tensor, torch.nn.Embedding]]:
        return list(zip(self.question, self.model.found, strict=True))

    def s(self, found: list[int], y: int, other: int) -> float:
        """Comparison of two memories, given the facts found so far: equation 5."""
        x = self.question[0] + sum(self.joining[0][fact] for fact in found)
        age = found[-1] if found else len(self.looked_for)
        time = torch.zeros(len(x))
        for number, older in enumerate((age < y, age < other, y < other)):
            if older:
                time = time + self.model.times[number]
        return (x @ (self.looked_for[y] - self.looked_for[other] + time)).item()

    def best(self, found: list[int]) -> int:
        """The algorithm of section 3.4: each memory challenges the best of those before it."""
        best = 0
        for challenger in range(1, len(self.looked_for)):
            if self.s(found, challenger, best) > 0:
                best = challenger
        return best

    def answers(self, found: list[int]) -> Tensor:
        """Scores of the answers, given the facts."""
        x = self.question[1] + sum(self.joining[1][fact] for fact in found)
        return self.model.answers @ x


def of_batch(model: MemNN) -> tuple[Read, list[Story]]:
    facts, questions = stories.batch(stories.view())
    told = [Story(model, stories.alone(facts, row), stories.alone(questions, row)[0]) for row in range(len(facts.ids))]
    return model(facts, questions), told


@pytest.mark.parametrize("seed", range(4))
def test_facts_are_chosen_one_after_another_and_name_the_answer(seed):
    """A second fact that does not know the first one, ages turned round, padding that wins, or
    words that mean the same in question and fact would show here."""
    model = model_of()
    torch.manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_()
    read, told = of_batch(model)
    assert read.scores.shape == (3, len(ANSWERS)) and read.chosen.shape == (3, 2)
    for row, story in enumerate(told):
        first = story.best([])
        found = [first, story.best([first])]
        assert read.chosen[row].tolist() == found
        assert_same(read.scores[row], story.answers(found), rtol=1e-4, atol=1e-4)


def drawn_wrongly(monkeypatch) -> list[tuple[Tensor, Tensor]]:
    """Lets the first wrong place be drawn always, and lists what was asked for."""
    asked = []

    def first_wrong(weights: Tensor, right: Tensor) -> Tensor:
        asked.append((weights, right))
        return weights.scatter(1, right, 0).argmax(1, keepdim=True)

    monkeypatch.setattr(memnn, "drawn_beside", first_wrong)
    return asked


@pytest.mark.parametrize("margin", [0.7, 90.0])
def test_the_loss_is_what_the_margins_lack(margin, monkeypatch):
    """Equations 6 to 8 with the comparisons of section 3.4: at each supporting fact from both
    sides, and at the answer. A story with one supporting fact ends with the empty one; one without
    any has nothing to look for after that. With the wide margin every comparison lacks some."""
    asked = drawn_wrongly(monkeypatch)
    model = model_of(margin=margin).train()
    read, told = of_batch(model)
    answers, support = torch.tensor([0, 1, 2]), [[3, 1], [1], []]
    found = model.objective(read, (answers, torch.tensor([[3, 1, 2], [1, 0, 0], [0, 0, 0]])))
    for row, story in enumerate(told):
        facts = [*support[row], 0, 0][:2]
        scores = story.answers(facts)
        wrong = 1 if answers[row] == 0 else 0
        expected = max(0.0, margin - scores[answers[row]].item() + scores[wrong].item())
        for hop, (before, right) in enumerate(pairwise([-1, *facts])):
            if before == 0:
                break
            beside = 1 if right == 0 else 0
            expected += max(0.0, margin - story.s(facts[:hop], right, beside))
            expected += max(0.0, margin + story.s(facts[:hop], beside, right))
        assert found[row].item() == pytest.approx(expected, rel=1e-4)
    assert [weights.tolist() for weights, _ in asked[1:]] == [
        [[1, 1, 1, 1], [1, 1, 0, 0], [1, 1, 1, 0]],
        [[1, 1, 1, 1], [1, 1, 0, 0], [1, 1, 1, 0]],
    ], "padding is no wrong fact"


def test_training_looks_for_no_fact_and_answering_reads_no_support():
    """A fact that training found, not the one that it is shown, is another model; so is a score
    that knows what supports an answer."""
    model = model_of()
    facts, questions = stories.batch(stories.view())
    assert model(facts, questions).chosen.any() and not model.train()(facts, questions).chosen.any()
    model.eval()
    read = model(facts, questions)
    labels = torch.tensor([0, 1, 2])
    torch.manual_seed(0)
    one = model.objective(read, (labels, torch.tensor([[1, 2], [1, 0], [2, 1]])))
    torch.manual_seed(0)
    other = model.objective(read, (labels, torch.zeros(3, 1, dtype=torch.long)))
    torch.testing.assert_close(one, other, rtol=0, atol=0)


def test_a_wrong_place_is_drawn_from_all_others_alike():
    weights = torch.tensor([[1.0, 1, 1, 1, 0]]).expand(3000, 5)
    drawn = drawn_beside(weights, torch.full((3000, 1), 2))
    shares = [(drawn == place).float().mean().item() for place in range(5)]
    assert shares == pytest.approx([1 / 3, 1 / 3, 0, 1 / 3, 0], abs=0.05)


def test_all_weights_start_normal_with_a_deviation_of_a_tenth():
    for name, parameter in model_of(stretch=None, size=400).named_parameters():
        assert parameter.std().item() == pytest.approx(0.1, rel=0.15), name


def test_it_says_that_it_is_shown_supporting_facts():
    """Its results would be ranked with those of systems that had to find them out."""
    assert registry.entry("architectures", "memnn").sees == ("supporting facts",)
