"""The mechanism of key-value memory networks: windows whose keys find them and whose centres are
read, and a rotation after each hop."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from architectures.memory.kv_memnn import KVMemNN
from harness.views.facts import FactBatch
from tests.support import stories
from tests.support.oracles import softmax_mean
from tests.support.pairs import dense, shipped
from tests.support.same import assert_same

ANSWERS = ["home", "yes", "ann", ""]
SIZE = 4
IDS = ("kv_memnn", "kv_memnn_sentence")


def model_of(id: str = "kv_memnn", stretch: float | None = 6.0, most: int = 6, **options) -> KVMemNN:
    view = stories.view()
    view.most = most
    return shipped(id, view.width, ANSWERS, view, stretch=stretch, **{"size": SIZE} | options)


def memories(model: KVMemNN, id: str, told: list[Tensor], most: int) -> list[tuple[Tensor, Tensor]]:
    """Key and value of each memory of a story, as sums of single vectors."""
    table, words = model.table, stories.view().width
    found = []
    for number, fact in enumerate(told):
        age = min(len(told) - 1 - number, most - 1)
        if id == "kv_memnn_sentence":
            whole = sum(table[word] for word in fact) + table[words + age]
            found.append((whole, whole))
            continue
        time, reach = table[2 * words + age], model.window // 2
        for centre, word in enumerate(fact):
            around = [w for place, w in enumerate(fact) if place != centre and abs(place - centre) <= reach]
            key = table[words + word] + sum((table[w] for w in around), torch.zeros(SIZE))
            found.append((key + time, table[words + word] + time))
    return found


def answered(model: KVMemNN, id: str, told: list[Tensor], asked: Tensor, most: int) -> Tensor:
    """Scores of the answers to one question about one story: section 3.1, with the two dictionaries
    of the authors' code for windows. A question is said in both; values and answers in the
    second."""
    second = stories.view().width if id == "kv_memnn" else 0
    q = sum(model.table[word] for word in asked)
    if second:
        q = q + sum(model.table[second + word] for word in asked)
    pairs = memories(model, id, told, most)
    for rotate in model.rotate:
        q = dense(rotate, q + softmax_mean([q @ key for key, _ in pairs], [value for _, value in pairs]))
    words, view = model.table, stories.view()
    ages = second + view.width
    known = {answer: second + view.vocabulary.ids([answer])[0] for answer in ("home", "ann")}
    rows = [known.get(answer, ages + most + number) for number, answer in enumerate(ANSWERS)]
    return torch.stack([words[row] @ q for row in rows])


@pytest.mark.parametrize("id", IDS)
@pytest.mark.parametrize(("hops", "window", "most"), [(1, 3, 6), (3, 7, 2)])
def test_a_batch_is_each_story_written_out(id, hops, window, most):
    """An id wired to the other memories, windows that go over the end of a sentence or into
    padding, a centre, a value or an answer read as any word, a question in one dictionary alone, a
    wrong age, or a missing rotation would show here."""
    model = model_of(id, hops=hops, window=window, most=most)
    with torch.no_grad():
        for rotate in model.rotate:
            rotate.weight /= 4  # later hops would see one memory alone
    facts, questions = stories.batch(stories.view())
    found = model(facts, questions)
    for row, scores in enumerate(found):
        expected = answered(model, id, stories.alone(facts, row), stories.alone(questions, row)[0], most)
        assert_same(scores, expected, rtol=1e-4, atol=1e-4)
    assert len(model.rotate) == hops


def test_a_memory_whose_key_fits_is_read_by_its_value():
    """A question that fits one window alone reads its centre: keys find, values are read."""
    model = model_of(window=3, hops=1)
    facts, _ = stories.batch(stories.view())
    weights = torch.zeros(3, 3, 3)
    weights[:, 0, 1] = 1
    read = model.values(weights, facts)
    words = stories.view().width
    for row, told in enumerate((3, 1, 2)):
        centre = facts.ids[row, 0, 1]
        assert_same(read[row], model.table[words + centre] + model.table[2 * words + told - 1])


@pytest.mark.parametrize(("id", "dictionaries"), [("kv_memnn", 2), ("kv_memnn_sentence", 1)])
def test_an_answer_is_the_row_by_which_its_word_is_read(id, dictionaries):
    """The only memory's value is its word and its age; without the age, which no answer has, the
    word itself scores as its own square. An answer of another row would never learn from values."""
    model, view = model_of(id, window=3, hops=1), stories.view()
    home = view.vocabulary.ids(["home"])[0]
    said, nothing = torch.ones(1, 1, 1, dtype=torch.bool), torch.zeros(1, 1, 1, dtype=torch.bool)
    told = FactBatch(torch.tensor([[[home]]]), said, said[0])
    with torch.no_grad():
        model.table[dictionaries * view.width :] = 0
        model.rotate[0].weight.copy_(torch.eye(SIZE))
        model.rotate[0].bias.zero_()
        scores = model(told, told._replace(mask=nothing))
    row = model.table[(dictionaries - 1) * view.width + home]
    torch.testing.assert_close(scores[0, ANSWERS.index("home")], row.detach() @ row.detach())


def test_weights_start_normal_with_a_deviation_of_a_tenth():
    for name, parameter in model_of(stretch=None, size=300).named_parameters():
        assert parameter.std().item() == pytest.approx(0.1, rel=0.15), name


@pytest.mark.parametrize("wrong", [{"memories": "facts"}, {"window": 4}])
def test_other_memories_and_windows_without_a_centre_are_refused(wrong):
    with pytest.raises(ValueError, match="windows or sentences"):
        model_of(**wrong)
