"""An ensemble of readers: the mean of their probabilities, place by place, and a bonus for entities
of the kind that is asked for."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from architectures.classical.squad_logreg import SpanRegression
from architectures.pretrained import entity_span_focus
from architectures.pretrained.entity_span_focus import EntitySpanFocus, Places, focus
from harness import registry
from harness.errors import ModelError
from harness.kinds import SpanScores
from harness.problems.extract import ExtractJoined, WindowScores
from harness.saved_models.model import load
from harness.saved_models.values import packed, unpacked
from harness.views.subwords import Windows
from tests.saved_models.cells import kept_cell

PASSAGE = "In 1912 the town was led by Ann de Boer and Karl."


def places(starts, ends, none=(0.0, 0.0)) -> Places:
    return Places(starts, ends, none)


def test_the_mean_is_taken_place_by_place():
    """A place that one reader does not know has half of what the other gives it."""
    found = Places.mean([places({0: 0.6, 3: 0.4}, {7: 1.0}, (0.2, 0.4)), places({3: 1.0}, {5: 0.5, 7: 0.5}, (0, 0))])
    assert found.starts == pytest.approx({0: 0.3, 3: 0.7}) and found.ends == pytest.approx({7: 0.75, 5: 0.25})
    assert found.none == pytest.approx((0.1, 0.2))


def test_an_ensemble_of_one_reader_is_that_reader():
    """Otherwise the row would show another rule of decoding, and no ensemble."""
    alone = places({0: 0.5, 8: 0.5}, {3: 0.25, 12: 0.75}, (0.1, 0.1))
    assert Places.mean([alone]) == alone and alone.best([], 0.0) == (0, 12)


def test_a_reader_without_probabilities_is_sure_of_its_answer():
    """By hand: the name stands at 28 to 39; an empty answer is none."""
    assert Places.certain(PASSAGE, "Ann de Boer") == places({28: 1.0}, {39: 1.0})
    assert Places.certain(PASSAGE, "") == places({}, {}, (1.0, 1.0))


def test_of_equal_spans_the_first_one_counts():
    """In whatever order the places were found: the answer would depend on the readers'
    order."""
    assert places({9: 0.5, 2: 0.5}, {12: 1.0, 4: 1.0}).best([], 0.0) == (2, 4)


def by_all_pairs(found: Places, named: list[tuple[int, int]], bonus: float) -> tuple[int, int]:
    """The best span among all pairs of places."""
    values = {
        (b, e): p * q * ((1 + bonus) if (b, e) in named else 1)
        for b, p in found.starts.items()
        for e, q in found.ends.items()
        if b < e <= b + 200
    }
    best = max(values.values(), default=-1.0)
    if best < found.none[0] * found.none[1] or best < 0:
        return 0, 0
    return min(span for span, value in values.items() if value == best)


@pytest.mark.parametrize("bonus", [0.0, 1.0, 4.0])
def test_the_best_span_is_that_of_all_pairs(bonus):
    """An end before its start, or three hundred characters behind it, is none."""
    random = np.random.default_rng(0)
    for _ in range(60):
        starts, ends = (
            dict(zip(random.integers(0, 500, 6).tolist(), random.random(6).tolist(), strict=True)) for _ in range(2)
        )
        named = [(b, e) for b in starts for e in ends if random.random() < 0.2]
        found = places(starts, ends, tuple(random.random(2) * 0.9))
        assert found.best(named, bonus) == by_all_pairs(found, named, bonus)


def test_a_bonus_lifts_what_is_asked_for_and_none_changes_nothing():
    """With a bonus of 1 a span of half the probability is as good."""
    found = places({3: 0.4, 28: 0.3}, {7: 0.4, 39: 0.4})
    who = focus("Who led the town?", PASSAGE)
    assert PASSAGE[slice(*found.best(who, 0.0))] == "1912"
    assert PASSAGE[slice(*found.best(who, 1.0))] == "Ann de Boer"


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Who led the town?", ["In", "Ann de Boer", "Karl"]),
        ("When was it led?", ["1912"]),
        ("How many were there?", ["1912"]),
        ("Where was she?", ["In", "Ann de Boer", "Karl"]),
        ("What was it?", []),
    ],
)
def test_the_question_word_says_which_form_an_answer_has(question, expected):
    """Names for persons and places, numbers for times and amounts, nothing for what."""
    found = [PASSAGE[begin:end] for begin, end in focus(question, PASSAGE)]
    assert found == expected


def row(number: int, question: str, answer: str) -> dict:
    return {
        "id": str(number),
        "passage": PASSAGE,
        "question": question,
        "answers": {"text": [answer], "start": [PASSAGE.index(answer)]},
    }


DEV = [row(0, "Who led the town?", "Ann de Boer"), row(1, "When was it led?", "1912")]


def test_bonuses_are_those_that_are_declared():
    """A coarser choice is another system."""
    assert entity_span_focus.BONUSES == (0.0, 0.5, 1.0, 2.0, 4.0) and EntitySpanFocus().seed == 0


def test_dev_chooses_the_bonus(monkeypatch):
    """The smallest one with the best F1: the readers are right about the year, and the name has two
    thirds of its probability."""
    given = [places({3: 0.5, 28: 0.4}, {7: 0.5, 39: 0.4})] * 2
    monkeypatch.setattr(EntitySpanFocus, "places", lambda self, rows: given)
    model = EntitySpanFocus()
    parts = {"inputs": torch.nn.Linear(3, 2), "tags": torch.nn.Embedding(5, 4)}
    model.readers = {role: SimpleNamespace(model=part) for role, part in parts.items()}
    model.fit([], DEV)
    assert model.parameter_count == 3 * 2 + 2 + 5 * 4, "those of both readers"
    assert model.bonus == 1.0 and model.predict(DEV) == ["Ann de Boer", "1912"]


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kept")
    return load(folder / "models" / kept_cell("bert", "squad2", folder).key)


def test_places_have_the_probabilities_of_the_readers_own_answers(kept):
    """Over windows, at characters: start times end, or the two of having none."""
    rows = registry.load(registry.entry("tasks", "squad2"))(registry.entry("tasks", "squad2")).load("dev", "mini")
    rows = [{name: each[name] for name in ("id", "passage", "question")} for each in rows.to_list()[:24]]
    rows.append(rows[0] | {"id": "long", "passage": " ".join(each["passage"] for each in rows)})
    for row, at, answer in zip(rows, entity_span_focus.read(kept, rows), kept.answers(rows), strict=True):
        assert sum(at.starts.values()) + at.none[0] == pytest.approx(1, abs=1e-4)
        assert sum(at.ends.values()) + at.none[1] == pytest.approx(1, abs=1e-4)
        text, products = answer["prediction"], [at.none[0] * at.none[1]]
        if text:
            spans = [(b, b + len(text)) for b in at.starts if row["passage"].startswith(text, b)]
            products = [at.starts[b] * at.ends.get(e, 0.0) for b, e in spans]
        if row["id"] != "long":  # a reader takes the windows one by one
            assert any(product == pytest.approx(answer["probability"], rel=1e-3) for product in products)
    assert len(at.starts) > 128


def test_places_of_windows_are_those_of_the_passage():
    """Each is read where it has most context; of the scores of no answer the lowest counts, as it
    does for the reader."""
    start = torch.tensor([[1.0, 2.0, 9.0], [9.0, 3.0, 4.0]])
    widest = torch.tensor([[True, True, False], [False, True, True]])
    windows = Windows(
        torch.tensor([0, 0]), torch.tensor([0, 1]), torch.tensor([3, 3]), torch.tensor([True] * 2), widest
    )
    scores = SpanScores(start, -start, torch.tensor([5.0, 0.5]))
    first, last = object.__new__(ExtractJoined).shares(WindowScores(scores, windows))
    torch.testing.assert_close(first, torch.tensor([[0.5, 1.0, 2.0, 3.0, 4.0]]).softmax(1))
    torch.testing.assert_close(last, torch.tensor([[0.5, -1.0, -2.0, -3.0, -4.0]]).softmax(1))


def test_without_readers_a_regression_reads(monkeypatch):
    """`archbench check` would ask a system that has learnt nothing."""
    alone = SpanRegression(3)
    alone.fit(DEV, DEV)
    model = EntitySpanFocus(3)
    model.fit(DEV, DEV)
    assert model.predict(DEV) == alone.predict(DEV) and model.parameter_count == alone.parameter_count > 0


def test_a_parent_without_places_is_refused():
    """A classifier gives no probabilities of places."""
    with pytest.raises(ModelError, match="places at which an answer begins"):
        EntitySpanFocus().inherit("inputs", type("Kept", (), {"model": None})(), [])


def test_both_readers_are_asked_and_what_is_kept_can_be_read_again(monkeypatch):
    """Their models are their own cells' files, and the bonus is all that is kept."""
    entry = registry.entry("architectures", "entity_span_focus")
    assert dict(entry.parents) == {"inputs": "electra", "tags": "albert"}
    model = EntitySpanFocus()
    model.bonus, model.readers = 2.0, {"inputs": "one", "tags": "two"}
    asked = []

    def read(reader, rows):
        asked.append(reader)
        return [places({0: 1.0}, {2: 1.0})]

    monkeypatch.setattr(entity_span_focus, "read", read)
    assert model.predict(DEV[:1]) == ["In"] and asked == ["one", "two"]
    arrays: dict = {}
    state = {name: unpacked(packed(value, arrays), arrays) for name, value in model.fitted_state().items()}
    again = EntitySpanFocus()
    again.restore_fitted(state)
    assert again.bonus == 2.0 and not again.readers
