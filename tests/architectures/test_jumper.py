"""The mechanism of Jumper: nothing is said until one jump to a class, what comes behind it is not
read, and the reward of the decision teaches where to jump."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from torch import Tensor

from architectures.blocks.policy import draws_of
from architectures.reinforcement import jumper
from architectures.reinforcement.jumper import Clauses, DecisionReward, Jumper
from harness.objectives import collected_choices
from harness.training.model import Model
from tests.support.acting import batch_of, classifier, mean_gradients, step_of
from tests.support.batches import random_documents
from tests.support.models import small
from tests.support.oracles import convolution, gru, linear
from tests.support.same import assert_same

WIDTH, CLASSES = 3, 2
DOCUMENTS = [[4, 1, 2], [5], [2, 3, 6, 2]]
"""Words of each clause of each document."""


def model_of(inclination: float = 0.0, **sizes) -> Jumper:
    """A model that is inclined to say nothing, or to tell a class."""
    sizes = {"maps": 4, "windows": (1, 3), "hidden": 3} | sizes
    model = small(Jumper, WIDTH, classes=CLASSES, stretch=2.0, **sizes)
    with torch.no_grad():
        model.symbol.bias[0] += inclination
    return model


def clause_vector(model: Jumper, words: Tensor) -> Tensor:
    """Largest activation of each filter over the windows of a clause's words."""
    maps = []
    for layer in model.clause.convolutions:
        lengthened = layer.kernel_size[0] - len(words)
        windows = convolution(layer, words, right=max(0, lengthened))
        maps.append(torch.stack(windows).clamp(min=0).amax(0))
    return torch.cat(maps)


def symbols(model: Jumper, clauses: list[Tensor]) -> list[Tensor]:
    """Scores of nothing and of the classes after each clause, from the clause and the state behind
    it; behind the last there is no nothing."""
    read = [clause_vector(model, words) for words in clauses]
    states = gru(model.controller.forwards[0], read)
    scores = [
        linear(model.content, clause) + linear(model.symbol, state) for clause, state in zip(read, states, strict=True)
    ]
    return [*scores[:-1], torch.cat([torch.tensor([-math.inf]), scores[-1][1:]])]


def decision(scores: list[Tensor]) -> tuple[int, Tensor]:
    """Place of the first clause after which a class is likelier than nothing, and their scores."""
    for place, found in enumerate(scores):
        if found[1:].max() > found[0]:
            return place, found[1:]
    raise AssertionError("nothing is told after the last clause")


@pytest.mark.parametrize(("inclination", "places"), [(-9.0, [0, 0, 0]), (0.5, [2, 0, 1]), (9.0, [2, 0, 3])])
def test_the_answer_is_that_of_the_first_jump(inclination, places):
    """In each document alone and without padding, in values and gradients."""
    model = model_of(inclination)
    batch, documents = random_documents(DOCUMENTS, 1, WIDTH)
    with collected_choices() as told:
        found = model(batch)
    for row, clauses in enumerate(documents):
        place, expected = decision(symbols(model, clauses))
        assert place == places[row]
        assert_same(found[row], expected)
        words = [len(clause) for clause in clauses]
        assert told["share of words read"][0][row].item() == pytest.approx(sum(words[: place + 1]) / sum(words))


def test_what_comes_behind_the_jump_is_not_read():
    batch, documents = random_documents(DOCUMENTS, 1, WIDTH)
    model, moved = model_of(), batch.vectors.clone()
    places = [decision(symbols(model, clauses))[0] for clauses in documents]
    assert any(place + 1 < len(clauses) for place, clauses in zip(places, documents, strict=True))
    for row, place in enumerate(places):
        moved[row, place + 1 :] += 7
    torch.testing.assert_close(model(batch._replace(vectors=moved)), model(batch))


TEXTS = ["a b , c . d a c ; b", "c c b", "d a . b a . a d d"]
LABELS = [0, 1, 1]


def built(texts: list[str] = TEXTS, **settings) -> tuple[DecisionReward, Model, jumper.SentenceBatch]:
    view = Clauses(min_count=1)
    view.fit(TEXTS)
    settings = {"maps": 4, "windows": (1, 2), "hidden": 3, "dropout": 0.0, "draws": 2, "early": 0.3} | settings
    labels = [LABELS[TEXTS.index(text)] for text in texts]
    objective, model, batch = classifier(Jumper, view, texts, labels, "xy", WIDTH, **settings)
    assert isinstance(objective, DecisionReward)
    with torch.no_grad():
        model.encoder.symbol.bias.copy_(torch.tensor([0.4, -0.2, 0.3]))
        for parameter in model.encoder.parameters():
            if parameter.dim() > 1:
                parameter.mul_(2)
    return objective, model, batch


def given(monkeypatch, lots: list[list[float]]) -> None:
    """The lots of each draw (of one text), in place of those that are drawn."""
    monkeypatch.setattr(jumper, "draws_of", lambda *_: torch.tensor(lots)[:, None])


def clauses_of(model: Model, batch, row: int = 0) -> list[Tensor]:
    document = batch.inputs["text"]
    return [model.table.tuned.weight[ids[ids > 0]] for ids in document.ids[row] if ids.any()]


def lots_of(scores: list[Tensor], told: list[int]) -> list[float]:
    """Lots by which these symbols are drawn: the middle of the part of the line that is theirs."""
    ends = [found.softmax(0).cumsum(0) for found in scores]
    return [
        ((end[symbol - 1].item() if symbol else 0.0) + end[symbol].item()) / 2
        for end, symbol in zip(ends, told, strict=True)
    ]


def test_the_policy_climbs_the_expected_reward(monkeypatch):
    """Through the model, over all ways to decide on a text of four clauses, by the reward as it is
    stated; the mean of two draws takes half of the gradient off."""
    objective, model, batch = built(TEXTS[:1])
    scores = symbols(model.encoder, clauses_of(model, batch))
    assert len(scores) == 4
    logs = [found.log_softmax(0) for found in scores]
    ways, chances, rewards = [], [], []
    for place, label in itertools.product(range(4), range(2)):
        ways.append(lots_of(scores, [0] * place + [label + 1] + [1] * (3 - place)))
        chances.append((sum(found[0] for found in logs[:place]) + logs[place][label + 1]).exp())
        rewards.append((1 + 0.3 * (4 - place) / 4) * (1 if label == LABELS[0] else -1))
    torch.testing.assert_close(sum(chances), torch.ones(()))
    wanted = [*model.encoder.parameters(), model.table.tuned.weight]
    exact = torch.autograd.grad(sum(p * r for p, r in zip(chances, rewards, strict=True)), wanted)

    def losses(pair):
        given(monkeypatch, pair)
        return objective.losses(model, step_of(batch))["loss"]

    for found, slope in zip(mean_gradients(losses, ways, chances, wanted), exact, strict=True):
        rows = slice(1, None) if slope.shape == wanted[-1].shape else slice(None)  # padding is trained by nothing
        torch.testing.assert_close(found[rows], -slope[rows] / 2)


def test_the_classes_are_learnt_first_alone():
    """After each clause of each text, and nothing that is said or not said counts."""
    objective, model, batch = built()
    assert objective.last_phase == 0.25
    found = objective.losses(model, step_of(batch, 0.24))["loss"]
    expected = 0.0
    for row, label in enumerate(LABELS):
        scores = symbols(model.encoder, clauses_of(model, batch, row))
        expected = expected - sum(each[1:].log_softmax(0)[label] for each in scores) / len(scores) / 3
    assert_same(found, expected)
    found.backward()
    assert not model.encoder.symbol.bias.grad[0].any()
    assert "right" in objective.losses(model, step_of(batch, 0.25))


def test_one_jump_is_made_and_none_behind_it(monkeypatch):
    """A second class that is drawn later changes neither the reward nor what is learnt."""
    objective, model, batch = built(TEXTS[:1])
    scores = symbols(model.encoder, clauses_of(model, batch))
    other, found = [0, 0, 0, 2], []
    for first in ([0, 1, 2, 2], [0, 1, 0, 1]):
        given(monkeypatch, [lots_of(scores, first), lots_of(scores, other)])
        found.append(objective.losses(model, step_of(batch)))
    assert all(torch.equal(found[0][name], found[1][name]) for name in found[0])
    assert found[0]["right"].item() == 0.5 and found[0]["read"].item() == pytest.approx((2 / 4 + 4 / 4) / 2)
    rewards = torch.tensor([1 + 0.3 * 3 / 4, -(1 + 0.3 / 4)])
    logs = [
        scores[0].log_softmax(0)[0] + scores[1].log_softmax(0)[1],
        sum(each.log_softmax(0)[0] for each in scores[:3]) + scores[3].log_softmax(0)[2],
    ]
    expected = -((rewards - rewards.mean()) * torch.stack(logs)).mean()
    torch.testing.assert_close(found[0]["loss"], expected)


def test_a_text_is_drawn_as_it_is_alone_and_otherwise_in_the_next_pass():
    objective, model, batch = built(draws=6)
    view = Clauses(min_count=1)
    view.fit(TEXTS)
    together = objective.losses(model, step_of(batch, seed=3, passes=2))
    alone = [
        objective.losses(model, step_of(batch_of(view, [text], [label]), seed=3, passes=2))
        for text, label in zip(TEXTS, LABELS, strict=True)
    ]
    for name, value in together.items():
        torch.testing.assert_close(sum(each[name] for each in alone) / 3, value)
    for further in ({"seed": 3, "passes": 1}, {"seed": 2, "passes": 2}):
        assert objective.losses(model, step_of(batch, **further))["loss"] != together["loss"]


def test_other_words_draw_other_lots(monkeypatch):
    """Not only texts of other lengths, of which a batch has few."""
    objective, model, batch = built()
    asked = []
    monkeypatch.setattr(jumper, "draws_of", lambda *given: (asked.append(given), draws_of(*given))[1])
    objective.losses(model, step_of(batch, seed=3, passes=2))
    [(ids, mask, key, draws)] = asked
    assert ids is batch.inputs["text"].ids and mask is batch.inputs["text"].mask
    assert (*key, draws) == (3, 2, 2)


@pytest.mark.parametrize("classes", [2, 7])
def test_it_begins_inclined_to_read_on(classes):
    """Nothing is said after a clause in about seven of eight cases, however many the classes."""
    torch.manual_seed(0)
    bias = Jumper(WIDTH, classes=classes).symbol.bias
    assert bias.softmax(0)[0].item() == pytest.approx(1 / (1 + math.exp(-2)), abs=1e-6)
    assert len(bias[1:].unique()) == 1


def test_dropout_acts_on_what_the_symbol_is_told_from():
    """Where all of it is dropped no clause and no state counts; the controller reads clauses whole,
    and its states are other than those of dropped ones."""
    model = model_of(dropout=1.0).train()
    batch, documents = random_documents(DOCUMENTS, 1, WIDTH)
    states = []
    model.controller.register_forward_hook(lambda *passed: states.append(passed[-1]))
    scores = model.symbols(batch)
    for row, clauses in enumerate(documents):
        for score in scores[row, : len(clauses)]:
            torch.testing.assert_close(score[1:], model.symbol.bias[1:])
        read = [clause_vector(model, words) for words in clauses]
        torch.testing.assert_close(states[0][row, : len(clauses)], gru(model.controller.forwards[0], read))


def test_clauses_and_states_are_dropped_by_themselves():
    """Half of either, doubled, and the same half of no two texts."""
    model = model_of(dropout=0.5).train()
    batch, _ = random_documents([[3] * 40] * 2, 1, WIDTH)
    seen = {}
    for name in ("content", "symbol"):
        getattr(model, name).register_forward_pre_hook(lambda _, given, name=name: seen.update({name: given[0]}))
    with torch.no_grad():
        model.symbols(batch)
        clauses = model.clause(batch.vectors.flatten(0, 1), batch.mask.flatten(0, 1)).unflatten(0, (2, 40))
        states = model.controller(clauses, batch.sentence_mask)
    for name, whole in (("content", clauses), ("symbol", states)):
        kept = seen[name] != 0
        torch.testing.assert_close(seen[name], 2 * whole * kept)
        assert 0.3 < kept[whole != 0].double().mean() < 0.7
        assert not torch.equal(kept[0], kept[1])


def test_sizes():
    """Those of the authors' program."""
    model = Jumper(WIDTH, classes=CLASSES)
    assert [tuple(layer.weight.shape) for layer in model.clause.convolutions] == [(200, WIDTH, n) for n in range(1, 6)]
    assert model.content.weight.shape == (1 + CLASSES, 1000) and model.symbol.weight.shape == (1 + CLASSES, 20)
    assert (model.draws, model.dropout.p) == (5, 0.5)


@pytest.mark.parametrize(
    ("text", "clauses"),
    [
        (
            "He came, saw and won. But when?",
            [["he", "came", ","], ["saw", "and", "won", "."], ["but", "when", "?"]],
        ),
        (["one", ";", "two", ":", "three"], [["one", ";"], ["two", ":"], ["three"]]),
        ("well,", [["well", ","]]),
        ("", [[""]]),
    ],
)
def test_clauses_end_at_commas_too(text, clauses):
    assert Clauses().read(text) == clauses


def test_no_more_clauses_are_read_than_sentences_would_be():
    assert len(Clauses(max_sentences=4).read("a, b, c, d, e, f. g, h.")) == 4


def test_it_finds_the_clause_that_decides():
    """One clause in five says the class. It jumps there, and hardly ever elsewhere; jumps at places
    of other texts, of which as much is read, tell the class much less often."""
    generator = np.random.default_rng(0)
    rows, deciding = [], generator.integers(5, size=240)
    for number, place in enumerate(deciding):
        clauses = [" ".join(f"n{word}" for word in generator.integers(20, size=2)) for _ in range(5)]
        clauses[place] = f"n{generator.integers(20)} {('good', 'bad')[number % 2]}"
        rows.append(" . ".join(clauses))
    view, labels = Clauses(min_count=1), [number % 2 for number in range(240)]
    view.fit(rows)
    settings = {"maps": 8, "windows": (1,), "hidden": 8, "dropout": 0.0}
    objective, model, everything = classifier(Jumper, view, rows, labels, "xy", 8, **settings)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.03)
    encoded = view.encode(rows)
    for step in range(120):
        chosen = generator.choice(240, 24)
        batch = everything._replace(
            inputs={"text": view.collate(encoded, chosen)}, target=torch.tensor(labels)[chosen], rows=chosen
        )
        optimizer.zero_grad()
        objective.losses(model, step_of(batch, step / 120, passes=1 + step // 10))["loss"].backward()
        optimizer.step()
    model.eval()
    with torch.no_grad(), collected_choices() as told:
        learnt = (model(everything.inputs).argmax(1) == everything.target).double().mean().item()
        scores = model.encoder.symbols(model.read(everything.inputs)["text"])
    places = (told["share of words read"][0] * 5).round().long() - 1
    elsewhere = places[torch.from_numpy(generator.permutation(240))]
    by_chance = (scores[torch.arange(240), elsewhere, 1:].argmax(1) == everything.target).double().mean().item()
    at_place = (places == torch.from_numpy(deciding)).double().mean().item()
    assert learnt > 0.95 and at_place > 0.9 and by_chance < learnt - 0.15, (learnt, at_place, by_chance)
