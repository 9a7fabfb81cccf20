"""The mechanism of the coreference scorer: the states of pronoun and name make a score, names that
stand behind the pronoun are out of reach, and neither has a score of its own."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from architectures.recurrent.rnn_coref import RNNCoreference
from harness import registry
from harness.views.words import Vocabulary, WordBatch, Words
from tests.support.models import small
from tests.support.oracles import linear, recurrent, rnn
from tests.support.same import assert_same

WIDTH = 3
ANSWERS = ("A", "B", "neither")
TEXTS = [
    "[a Ann a] saw [b Bob b] . [p he p] ran",
    "[b Bob b] x x x x [a old Ann a] , as [p she p] was ill",
    "[a Ann a] ran when [p she p] saw [b Bea b]",
    "[p she p] ran when [b Bea b] saw [a Ann a]",
    "[a Ann a] ran",
    "nobody ran when [p she p] did",
    "Ann a] saw [p she p]",
]
FIRSTS = (1, 2, 3, 4, 5, 8, 16, 32, 64)
"""First distance of each bucket."""


@pytest.fixture
def view() -> Words:
    view = Words(min_count=1)
    view.fit([text.split() for text in TEXTS])
    return view


def model_of(view: Words, **options) -> RNNCoreference:
    sizes = {"hidden": 3, "units": 4, "distances": 2, "answers": ANSWERS} | options
    return small(RNNCoreference, WIDTH, classes=len(sizes["answers"]), view=view, stretch=2.0, **sizes)


def batch_of(view: Words, texts: list[str]) -> WordBatch:
    columns = view.encode([text.split() for text in texts])
    words = view.collate(columns, torch.arange(len(texts)).numpy())
    vectors = torch.randn(*words.ids.shape, WIDTH, generator=torch.Generator().manual_seed(1))
    return words._replace(vectors=vectors.masked_fill(~words.mask[..., None], 50.0).requires_grad_())


def scores_of(model: RNNCoreference, text: str, vectors: Tensor, answers: tuple[str, ...] = ANSWERS) -> list[Tensor]:
    """Scores of one text alone; None for a name that is out of reach."""
    words = text.lower().split()
    states = recurrent(model.recurrence, vectors, cell=rnn)
    ends = {mark: words.index(f"{mark}]") - 1 for mark in "abp" if f"{mark}]" in words}
    pronoun = states[ends.get("p", 0)]
    found = []
    for name in answers:
        if name == "neither":
            found.append(linear(model.neither, pronoun)[0])
            continue
        place = ends.get(name.lower())
        if "p" not in ends or place is None or place > ends["p"]:
            found.append(None)
            continue
        bucket = max(number for number, first in enumerate(FIRSTS) if ends["p"] - place >= first)
        own = states[place]
        joined = torch.cat([pronoun, own, pronoun * own, model.distance.weight[bucket]])
        found.append((model.score.weight @ linear(model.hidden, joined).clamp(min=0))[0])
    return found


def test_each_text_is_scored_as_written_out(view):
    """In values and gradients, each text alone: another place, product, bucket or direction would
    show."""
    model = model_of(view)
    batch = batch_of(view, TEXTS)
    found = model(batch)
    for row, text in enumerate(TEXTS):
        own = batch.vectors[row, : len(text.split())]
        for score, expected in zip(found[row], scores_of(model, text, own), strict=True):
            if expected is None:
                assert score.item() < -1e8
            else:
                assert_same(score, expected)


@pytest.mark.parametrize("apart", [1, 2, 3, 4, 5, 7, 8, 15, 16, 31, 32, 63, 64, 90])
def test_distances_share_buckets(view, apart):
    model = model_of(view)
    text = f"[a Ann a] {'x ' * (apart - 3)}[p she p] ran" if apart > 2 else None
    if text is None:  # the marks alone are two words
        assert FIRSTS[apart - 1] == apart
        return
    batch = batch_of(view, [text])
    assert_same(model(batch)[0, 0], scores_of(model, text, batch.vectors[0])[0])


def test_scores_stand_in_the_order_of_the_labels(view):
    batch = batch_of(view, TEXTS)
    expected = model_of(view)(batch)
    other = model_of(view, answers=("neither", "B"))
    assert torch.equal(other(batch), expected[:, [2, 1]])


def test_a_text_whose_name_is_out_of_reach_teaches_nothing(view):
    """Its loss would be as large as the mask."""
    model = model_of(view)
    scores = model(batch_of(view, TEXTS[:3]))
    loss = model.objective(scores, torch.tensor([1, 0, 1]))
    told = [scores[0].log_softmax(0)[1], scores[1].log_softmax(0)[0]]
    assert_same(loss, -(told[0] + told[1]) / 3)
    assert math.isfinite(loss.item())
    reached = model.objective(scores[2:], torch.tensor([0]))
    assert_same(reached, -scores[2, [0, 2]].log_softmax(0)[0])


def test_it_runs_where_mentions_are_marked():
    """Elsewhere every text would have neither name."""
    entry = registry.entry("architectures", "rnn_coref")
    settings = dict(entry.hyperparameters)
    reason = RNNCoreference.reason_to_skip(registry.entry("tasks", "sst2"), settings)
    assert reason == "chooses among names that are marked in a text, and sst2 marks none"
    assert RNNCoreference.reason_to_skip(registry.entry("tasks", "gap"), settings) is None


def test_the_vocabulary_of_a_task_has_the_marks():
    """A rare mark would be an unknown word, and each unknown word a mark."""
    view = Words()
    view.vocabulary = Vocabulary(["p]", "a]", "b]"], [9, 9, 9])
    model = model_of(view)
    assert [model.pronoun, *model.candidates] == [2, 3, 4]


def test_both_directions_are_read(view):
    """A pronoun's state would not know what is told behind it."""
    model = model_of(view)
    batch = batch_of(view, ["[a Ann a] saw [b Bob b] . [p he p] ran"])
    [later] = torch.autograd.grad(model(batch)[0, 2], batch.vectors)
    assert later[0, -1].abs().sum() > 0 and later[0, 0].abs().sum() > 0


def test_a_mark_with_no_word_before_it_marks_nothing(view):
    model = model_of(view)
    broken = ["a] Ann saw Bob [p he p] ran", "p] Ann saw [b Bob b]", "[a Ann a] ran"]
    batch = batch_of(view, broken)
    scores = model(batch)
    assert (scores[:, :2] < -1e8).all()
    assert_same(scores[1, 2], linear(model.neither, recurrent(model.recurrence, batch.vectors[1, :6], cell=rnn)[0])[0])


def test_dropout_acts_on_vectors_and_states(view):
    """With all of them left out a score is what the biases give."""
    model = model_of(view, dropout=1.0).train()
    scores = model(batch_of(view, TEXTS[:1]))
    distance = torch.cat([torch.zeros(18), model.distance.weight[5]])  # nine words
    assert_same(scores[0, 2], linear(model.neither, torch.zeros(6))[0])
    assert_same(scores[0, 0], (model.score.weight @ linear(model.hidden, distance).clamp(min=0))[0])
