"""Rows beside ID-LSTM, HS-LSTM and Jumper whose choices are made by lot: what a policy knows is its
distance from them, so they must be the same networks and read the share that they say."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from architectures.blocks.policy import draws_of
from architectures.blocks.random_choices import RandomChoices, ReadByLot
from architectures.reinforcement.hs_lstm_random import RandomPhrasesLSTM
from architectures.reinforcement.id_lstm_random import RandomWordsLSTM
from architectures.reinforcement.jumper import Clauses
from architectures.reinforcement.jumper_random import RandomJumper
from harness import registry
from harness.objectives import collected_choices
from harness.running.grid import hyperparameters
from harness.views.sentences import SentenceBatch
from harness.views.words import WordBatch
from tests.architectures.test_hs_lstm import phrases_of
from tests.architectures.test_id_lstm import state_after
from tests.architectures.test_jumper import symbols
from tests.support.acting import classifier, step_of
from tests.support.batches import assert_each_alone, mask_of, random_documents, random_texts
from tests.support.models import small
from tests.support.moving_vectors import TEXTS, view_of
from tests.support.same import assert_same

WIDTH, HIDDEN = 4, 3
LENGTHS = [7, 5, 4, 2, 1]


def choices_of(choices: RandomChoices, share: float, ids: Tensor, mask: Tensor) -> list[list[bool]]:
    """The choices of each text, from the numbers that belong to its words and to the key; the share
    is the one that was asked for, whatever the choices have kept of it."""
    lots = draws_of(ids, mask, (choices.key.item(),), 1)[0]
    return [(row[real] < share).tolist() for row, real in zip(lots, mask, strict=True)]


@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
def test_words_are_kept_by_lot(share):
    """In values and gradients; a text with nothing left is its last word but one."""
    model, words = small(RandomWordsLSTM, WIDTH, hidden=HIDDEN, share=share), random_texts(LENGTHS, 1, WIDTH)
    kept = dict(zip(LENGTHS, choices_of(model.policy, share, words.ids, words.mask), strict=True))
    assert share in (0, 1) or 0 < sum(map(sum, kept.values())) < sum(LENGTHS)

    def alone(vectors: Tensor) -> Tensor:
        read = kept[len(vectors)]
        if not any(read):
            read = [place == max(0, len(vectors) - 2) for place in range(len(vectors))]
        return state_after(model, vectors, read)[0]

    with collected_choices() as told:
        assert_each_alone(model(words), alone, words)
    shares = [max(1, sum(kept[length])) / length for length in LENGTHS]
    torch.testing.assert_close(told["share of words read"][0], torch.tensor(shares))


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_phrases_end_by_lot(share):
    """In values and gradients; the last word ends one."""
    model, words = small(RandomPhrasesLSTM, WIDTH, hidden=HIDDEN, share=share), random_texts(LENGTHS, 1, WIDTH)
    ends = dict(zip(LENGTHS, choices_of(model.policy, share, words.ids, words.mask), strict=True))
    with collected_choices() as told:
        assert_each_alone(model(words), lambda v: phrases_of(model, v, [*ends[len(v)][:-1], True])[0], words)
    shares = [(sum(ends[length][:-1]) + 1) / length for length in LENGTHS]
    torch.testing.assert_close(told["phrases for each word"][0], torch.tensor(shares))


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_the_answer_comes_after_a_share_of_the_clauses(share):
    """In values and gradients, of each document alone."""
    model = small(RandomJumper, WIDTH, classes=2, maps=4, windows=(1, 3), hidden=HIDDEN, share=share)
    batch, documents = random_documents([[4, 1, 2], [5], [2, 3, 6, 2], [1, 2]], 1, WIDTH)
    with collected_choices() as told:
        found = model(batch)
    for row, clauses in enumerate(documents):
        words = np.cumsum([len(clause) for clause in clauses])
        read = 1 + int(np.argmin(np.abs(words / words[-1] - told["share of words read"][0][row].item())))
        assert read in {max(1, int(np.floor(share * len(clauses)))), max(1, int(np.ceil(share * len(clauses))))}
        assert_same(found[row], symbols(model, clauses)[read - 1][1:])


def texts(count: int, words: int) -> WordBatch:
    ids = torch.randint(1, 50, (count, words), generator=torch.Generator().manual_seed(0))
    return WordBatch(ids, mask_of([words] * count), torch.full((count,), words), torch.zeros(count, words, 1))


@pytest.mark.parametrize("share", [0.2, 0.8])
def test_the_share_is_the_one_that_was_asked_for(share):
    """It is set to what a policy reads: another one would compare unequal reading."""
    made = RandomChoices(share)
    lots = made.lots(texts(400, 20))
    yes, _ = made(torch.zeros(400, 1), lots.flatten())
    assert yes.float().mean().item() == pytest.approx(share, abs=0.02)  # deviation .0045


def test_the_share_of_clauses_is_right_in_the_mean():
    """Three clauses of which half are read are read as one or two, not always as one; of a single
    clause all is read."""
    model = small(RandomJumper, 1, classes=2, maps=1, windows=(1,), hidden=1, share=0.5)
    batch, _ = random_documents([[1, 1, 1]] * 400, 1, 1)
    batch = batch._replace(ids=torch.randint(1, 50, batch.ids.shape, generator=torch.Generator().manual_seed(0)))
    longer = F.pad(batch.vectors, (0, 0, 0, 0, 0, 2)), batch.spellings
    with torch.no_grad(), collected_choices() as told:
        model(batch)
        model(SentenceBatch(*(F.pad(part, (0, 0, 0, 2)) for part in batch[:2]), F.pad(batch[2], (0, 2)), *longer))
    alone, beside_longer_ones = told["share of words read"]
    assert alone.mean().item() == pytest.approx(0.5, abs=0.03)  # deviation .0083
    assert torch.equal(alone, beside_longer_ones)


@pytest.mark.parametrize("cls", [RandomWordsLSTM, RandomPhrasesLSTM])
def test_the_classifier_learns_from_draws_as_beside_a_policy(cls):
    """A reference that learnt from one reading of each text would lose to the policy because it has
    seen less of it. From the first step on, and in each pass anew."""
    objective, model, batch = classifier(
        cls, view_of(TEXTS), TEXTS, [0, 1, 1], "xyz", WIDTH, hidden=HIDDEN, dropout=0.0, draws=4
    )
    assert isinstance(objective, ReadByLot)
    words = model.read(batch.inputs)["text"]
    costs = []
    for lots in draws_of(words.ids, words.mask, (3, 2), 4):
        with model.encoder.policy.choosing(lambda ids, mask, lots=lots: lots):
            costs.append(model.loss(batch))
    assert len({cost.item() for cost in costs}) > 1
    found = objective.losses(model, step_of(batch, 0.0, seed=3, passes=2))["loss"]
    assert_same(found, sum(costs) / 4)
    parameters = [weight for weight in model.parameters() if weight.requires_grad]
    wanted = torch.autograd.grad(sum(costs) / 4, parameters)
    for ours, theirs in zip(torch.autograd.grad(found, parameters), wanted, strict=True):
        torch.testing.assert_close(ours, theirs)
    assert objective.losses(model, step_of(batch, 0.0, seed=3, passes=1))["loss"] != found


def test_a_jumper_by_lot_learns_from_one_reading_that_each_pass_draws_anew():
    """As Jumper, whose draws are of one reading."""
    view, texts = Clauses(), ["a , b , c d .", "a . b"]
    view.fit(texts)
    settings = {"maps": 4, "windows": (1,), "hidden": HIDDEN}
    objective, model, batch = classifier(RandomJumper, view, texts, [0, 1], "xy", WIDTH, **settings)
    assert isinstance(objective, ReadByLot) and objective.draws == 1
    model.eval()  # without dropout
    losses = [objective.losses(model, step_of(batch, seed=1, passes=passes))["loss"].item() for passes in range(12)]
    assert len(set(losses)) > 1 and losses == [
        objective.losses(model, step_of(batch, seed=1, passes=passes))["loss"].item() for passes in range(12)
    ]


def test_a_text_is_asked_in_the_same_way_each_time_and_by_another_seed_in_another():
    """A score that another call does not repeat is no score; seeds that read alike have no
    spread."""
    words = texts(10, 20)
    first, second = RandomChoices(0.5), RandomChoices(0.5)
    assert torch.equal(first.lots(words), first.lots(words))
    assert not torch.equal(first.lots(words), second.lots(words))
    second.load_state_dict(first.state_dict())
    assert torch.equal(first.lots(words), second.lots(words))


def test_lots_are_those_of_the_words():
    """Lots of the place alone would keep the same places of every text, such as the first word."""
    lots = RandomChoices(0.5).lots(texts(10, 20))
    assert len(lots.unique(dim=0)) == 10


@pytest.mark.parametrize(("id", "share"), [("id_lstm", 0.5), ("hs_lstm", 0.3), ("jumper", 0.5)])
def test_all_else_is_as_in_the_system_beside(id, share):
    """A smaller network would lose to the policy for another reason."""
    system, beside = (registry.entry("architectures", name) for name in (id, f"{id}_random"))
    ours, theirs = hyperparameters(beside), hyperparameters(system)
    assert beside.recipe == system.recipe
    assert {name: value for name, value in ours.items() if name != "share"} == {
        name: theirs[name] for name in ours if name != "share"
    }
    assert ours["share"] == share and registry.load(beside).trained_by is ReadByLot
