"""The mechanism of the scalable capsules: compression to a few, routing by kernel density for as
many rounds as each text needs, and routing to some labels alone."""

from __future__ import annotations

import math
from functools import partial

import pytest
import torch
from torch import Tensor

from architectures.capsule.nlp_capsule import DensityRouting, ScalableCapsules
from tests.support.batches import assert_each_alone, random_texts
from tests.support.models import small
from tests.support.oracles import convolution, linear
from tests.support.same import assert_same

WIDTH, LABELS, SIZE, PARTS = 4, 5, 3, 2
SMALL = {"windows": (2, 3), "maps": 4, "types": 2, "size": SIZE, "parts": PARTS, "compressed": 4, "tolerance": 0.02}

texts = partial(random_texts, seed=1, width=WIDTH)


def model_of(**settings) -> ScalableCapsules:
    return small(ScalableCapsules, WIDTH, LABELS, stretch=2.0, **SMALL | settings)


def squashed(vector: Tensor) -> Tensor:
    """The vector with its length s turned to s^2 / (0.5 + s^2)."""
    square = (vector * vector).sum()
    return square / (0.5 + square) * vector / square.sqrt()


def routed(votes: list[list[Tensor]], tolerance: float, most: int = 10) -> tuple[list[Tensor], int]:
    """The parents of children with these votes, and the number of rounds."""
    parents = range(len(votes[0]))
    logits = [[torch.zeros(()) for _ in parents] for _ in votes]
    before, number = None, 0
    while True:
        number += 1
        shares = [[b.exp() / sum(each.exp() for each in row) for b in row] for row in logits]
        sums = [sum(row[j] for row in shares) for j in parents]
        shares = [[row[j] / sums[j] for j in parents] for row in shares]
        found = [squashed(sum(c[j] * u[j] for c, u in zip(shares, votes, strict=True))) for j in parents]
        near = [[1 - ((squashed(u[j]) - found[j]) ** 2).sum() for j in parents] for u in votes]
        agreed = sum(float((c[j] * d[j]).detach()) for c, d in zip(shares, near, strict=True) for j in parents)
        density = math.log(max(1e-12, agreed))
        if (before is not None and abs(density - before) < tolerance) or number == most:
            return found, number
        before = density
        logits = [[b + d for b, d in zip(bs, ds, strict=True)] for bs, ds in zip(logits, near, strict=True)]


def compressed(model: ScalableCapsules, vectors: Tensor) -> Tensor:
    """The few capsules of one text: every second window, the maximum of each part, squashed
    capsules, and their weighted sums."""
    primary = []
    for layer in model.ngrams:
        short = max(0, layer.kernel_size[0] - len(vectors))
        maps = torch.stack(convolution(layer, vectors, right=short)[::2])
        n = len(maps)
        for part in range(PARTS):
            most = maps[math.floor(part * n / PARTS) : math.ceil((part + 1) * n / PARTS)].amax(0)
            primary += [squashed(each) for each in linear(model.primary, most).split(SIZE)]
    return torch.stack([sum(w * u for w, u in zip(column, primary, strict=True)) for column in model.compression.T])


def lengths(model: ScalableCapsules, vectors: Tensor, labels=range(LABELS)) -> tuple[Tensor, int]:
    few = compressed(model, vectors)
    votes = [[model.routing.transformations[i, j] @ u for j in labels] for i, u in enumerate(few)]
    found, rounds = routed(votes, model.routing.tolerance, model.routing.most)
    return torch.stack([(v * v).sum().sqrt() for v in found]), rounds


def test_windows_are_of_words_and_all_their_capsules_become_few():
    """A convolution over the numbers of a vector, as in the authors' code, would read another text.
    Texts of any length have as many capsules; the last are shorter than a window."""
    model, batch = model_of(), texts((11, 8, 5, 2, 1))
    assert_each_alone(model(batch), lambda vectors: compressed(model, vectors).flatten(), batch, rtol=1e-4, atol=1e-5)


def test_each_text_is_routed_for_rounds_of_its_own():
    """Whichever texts stand beside it: one that is done early keeps the capsules that it had."""
    model, batch = model_of(), texts((11, 8, 6, 5, 3, 2, 1))
    found = model.set_probabilities(model(batch))
    _, rounds = model.lengths(model(batch))
    assert_each_alone(found, lambda vectors: lengths(model, vectors)[0], batch, rtol=1e-4, atol=1e-4)
    alone = [lengths(model, vectors[mask])[1] for vectors, mask in zip(batch.vectors, batch.mask, strict=True)]
    assert rounds.tolist() == alone
    assert len({*alone}) > 1 and min(alone) >= 2, "the texts do not differ, or one did not look twice"


def test_routing_stops_at_the_second_round_where_nothing_changes_and_at_the_last_otherwise():
    """Equal children agree at once; a limit bounds what never settles."""
    routing = small(DensityRouting, 3, 2, SIZE, 0.05, 6)
    with torch.no_grad():
        routing.transformations.copy_(routing.transformations[:1].clone().expand_as(routing.transformations))
    child = torch.randn(2, 1, SIZE, generator=torch.Generator().manual_seed(0)).expand(2, 3, SIZE)
    capsules, rounds = routing(child)
    assert rounds.tolist() == [2, 2]
    votes = torch.einsum("jkd,bd->bjk", routing.transformations[0], child[:, 0])
    expected = torch.stack([torch.stack([squashed(vote) for vote in row]) for row in votes])
    torch.testing.assert_close(capsules, expected)
    routing.tolerance = 0.0
    other = torch.randn(4, 3, SIZE, generator=torch.Generator().manual_seed(1)) * 3
    assert routing(other)[1].max() == 6


def test_no_rounds_of_routing_are_refused():
    with pytest.raises(ValueError, match="most is 0: routing takes at least one round"):
        model_of(most=0)


def test_routing_to_some_labels_is_routing_in_a_model_that_has_no_others():
    """Partial routing is there to save work, not to answer something else."""
    model, batch, kept = model_of(), texts((9, 4)), torch.tensor([3, 0, 4])
    fewer = model_of()
    fewer.routing.transformations = torch.nn.Parameter(model.routing.transformations[:, kept].detach().clone())
    some, rounds = model.lengths(model(batch), kept)
    whole, of_fewer = fewer.lengths(fewer(batch))
    torch.testing.assert_close(some, whole)
    assert torch.equal(rounds, of_fewer)
    for row, vectors, mask in zip(some, batch.vectors, batch.mask, strict=True):
        torch.testing.assert_close(row, lengths(model, vectors[mask], kept.tolist())[0], rtol=1e-4, atol=1e-5)


def test_the_loss_is_each_labels_own_cross_entropy_over_the_labels_that_are_routed_to():
    """In training the labels of the batch are always among them, others are drawn; on dev all
    count."""
    model, batch = model_of(candidates=3).train(), texts((9, 4))
    gold = torch.tensor([[1.0, 0, 0, 1, 0], [0, 0, 0, 1, 0]])
    outputs, drawn = model(batch), set()
    for _ in range(30):
        asked = []
        original = model.lengths
        model.lengths = lambda outputs, labels, keep=asked, original=original: (
            keep.append(labels) or original(outputs, labels)
        )
        found = model.set_losses(outputs, gold)
        del model.lengths
        labels = asked[0].tolist()
        assert len(labels) == 3 and {0, 3} <= {*labels}
        drawn |= {*labels}
        there, _ = model.lengths(outputs, asked[0])
        truth = gold[:, asked[0]]
        assert_same(found, -(truth * there.log() + (1 - truth) * (1 - there).log()).sum(1))
    assert drawn == {*range(LABELS)}
    everything, _ = model.eval().lengths(outputs)
    expected = -(gold * everything.log() + (1 - gold) * (1 - everything).log()).sum(1)
    assert_same(model.set_losses(outputs, gold), expected)
    crowded = model.train().set_losses(outputs, torch.ones(2, LABELS))
    assert_same(crowded, -everything.log().sum(1), rtol=1e-4, atol=1e-5)


def test_the_sizes_of_the_authors_code():
    model = ScalableCapsules(300, 90)
    assert [layer.weight.shape for layer in model.ngrams] == [(32, 300, k) for k in (2, 4, 8)]
    assert model.primary.weight.shape == (32 * 16, 32) and model.compression.shape == (3 * 8 * 32, 128)
    assert model.routing.transformations.shape == (128, 90, 16, 16)
    assert (model.routing.tolerance, model.routing.most, model.candidates) == (0.05, 10, 200)
    assert model.view.max_length == 500 and not ScalableCapsules.can_answer("classify")


@pytest.mark.parametrize("length", [1, 3, 12])
def test_capsules_keep_about_their_length_in_the_first_round(length):
    """Votes with random matrices cancel out: without a scale of their own all capsules would
    vanish."""
    torch.manual_seed(0)
    routing = DensityRouting(64, 6, 16, 0.05, 1)
    child = torch.nn.functional.normalize(torch.randn(20, 64, 16), dim=-1)
    found, _ = routing(child)
    assert 0.4 < torch.linalg.vector_norm(found, dim=-1).mean() < 0.8
