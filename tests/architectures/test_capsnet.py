"""The mechanism of the capsule network: three rounds of routing by agreement, margin loss, and the
true class's capsule rebuilding the text."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch
from torch import Tensor

from architectures.blocks.squash import squash
from architectures.capsule.capsnet import CapsuleNetwork, DynamicRouting, Reconstruction
from harness.objectives import Supervised
from harness.problems import problem
from harness.problems.classify import ClassTarget
from harness.settings import TrainingSettings
from harness.training.model import build, objective_of
from harness.views.words import Words
from tests.support.batches import assert_each_alone, random_texts
from tests.support.models import small
from tests.support.oracles import convolution
from tests.support.same import assert_same

WIDTH, CLASSES, TYPES, SIZE = 4, 3, 2, 3
SMALL = {"maps": 5, "types": TYPES, "size": SIZE, "class_size": 4, "decoder": (6, 7)}

texts = partial(random_texts, seed=1, width=WIDTH)


def model_of(**settings) -> CapsuleNetwork:
    return small(CapsuleNetwork, WIDTH, CLASSES, stretch=2.0, **SMALL | settings)


def squashed(vector: Tensor) -> Tensor:
    """The vector with its length s turned to s^2 / (1 + s^2)."""
    if not vector.any():
        return 0 * vector
    square = (vector * vector).sum()
    return square / (1 + square) * vector / square.sqrt()


def routed(votes: list[list[Tensor]], rounds: int) -> list[Tensor]:
    """The parents of children with these votes, one after the other (procedure 1)."""
    parents = range(len(votes[0]))
    logits = [[torch.zeros(()) for _ in parents] for _ in votes]
    for _ in range(rounds):
        shares = []
        for row in logits:
            powers = [b.exp() for b in row]
            shares.append([power / sum(powers) for power in powers])
        found = [squashed(sum(c[j] * u[j] for c, u in zip(shares, votes, strict=True))) for j in parents]
        logits = [
            [b + v @ u for b, v, u in zip(bs, found, us, strict=True)] for bs, us in zip(logits, votes, strict=True)
        ]
    return found


def capsules(model: CapsuleNetwork, vectors: Tensor) -> Tensor:
    """The class capsules of one text."""
    short = max(0, model.ngrams.kernel_size[0] - len(vectors))
    votes = []
    for features in convolution(model.ngrams, vectors, right=short):
        primary = model.primary.weight[:, :, 0] @ features.clamp(min=0) + model.primary.bias
        for type, child in enumerate(primary.split(SIZE)):
            votes.append([w @ squashed(child) for w in model.routing.transformations[type]])
    return torch.stack(routed(votes, model.routing.iterations))


@pytest.mark.parametrize("iterations", [1, 3])
def test_a_text_has_the_lengths_of_its_routed_class_capsules(iterations):
    """A softmax over the children, another squashing, a round too few, matrices that types share or
    padding that votes would each show here. The last text is shorter than a window."""
    model, batch = model_of(iterations=iterations), texts((7, 4, 3, 1))

    def lengths(vectors: Tensor) -> Tensor:
        return capsules(model, vectors).square().sum(1).sqrt()

    assert_each_alone(model(batch), lengths, batch, rtol=1e-4, atol=1e-5)


def test_squashing_halves_a_vector_of_length_one():
    vectors = torch.tensor([[0.6, 0.8], [3.0, 4.0], [0.0, 0.0]])
    torch.testing.assert_close(squash(vectors), torch.tensor([[0.3, 0.4], [15 / 26, 20 / 26], [0.0, 0.0]]))


def test_votes_that_are_alike_for_all_parents_stay_shared_equally():
    routing = small(DynamicRouting, TYPES, SIZE, 2, 4)
    with torch.no_grad():
        routing.transformations.copy_(routing.transformations[:, :1].expand_as(routing.transformations))
    children = torch.randn(1, 5, TYPES, SIZE)
    votes = torch.einsum("pkd,tpd->k", routing.transformations[:, 0], children[0])
    torch.testing.assert_close(routing(children)[0], squashed(votes / 2).expand(2, -1))


@pytest.mark.parametrize("iterations", [1, 2, 3])
def test_the_gradient_passes_through_all_rounds(iterations):
    """Coefficients that are held leave the parents what they are, and their gradient another."""
    routing = small(DynamicRouting, TYPES, SIZE, 2, 4, iterations)
    children = torch.randn(1, 5, TYPES, SIZE).requires_grad_()
    votes = [
        [matrix @ child for matrix in matrices]
        for position in children[0]
        for matrices, child in zip(routing.transformations, position, strict=True)
    ]
    assert_same(routing(children)[0], torch.stack(routed(votes, iterations)))


def test_no_rounds_of_routing_are_refused():
    """They would leave one in silence."""
    for made in (partial(model_of, iterations=0), partial(DynamicRouting, TYPES, SIZE, 2, 4, iterations=0)):
        with pytest.raises(ValueError, match="iterations is 0: routing takes at least one"):
            made()


def test_trained_by_the_margin_loss():
    """Hand-worked: 0.6 for the label is 0.3 short, 0.4 for another 0.3 too long, of which half
    counts."""
    scores = torch.tensor([[0.6, 0.4, 0.05], [0.95, 0.1, 0.0]])
    assert model_of().objective(scores, torch.tensor([0, 0])).item() == pytest.approx((0.09 + 0.5 * 0.09) / 2)


def test_training_rebuilds_the_mean_word_vector_from_the_capsule_of_the_true_class():
    """From the longest capsule a wrong answer would be rebuilt, from all of them the class would
    not matter; and answering needs no decoder."""
    view, target = Words(min_count=1), ClassTarget()
    view.fit(["a b c", "b d"])
    target.fit([{"label": "x"}, {"label": "y"}, {"label": "z"}])
    torch.manual_seed(0)
    model = build(CapsuleNetwork, problem("classify"), SMALL | {"reconstruction": 0.5}, view, target, WIDTH).train()
    objective = objective_of(model, TrainingSettings())
    assert isinstance(objective, Reconstruction)
    with torch.no_grad():  # capsules as made are too short to be told apart
        for parameter in (*model.encoder.parameters(), *objective.parameters()):
            parameter.mul_(8)
    inputs, gold = {"text": view.collate(view.encode(["a b c", "b d"]), np.arange(2))}, torch.tensor([2, 1])
    read = model.read(inputs)
    losses = objective.at(model, read, gold)
    errors = []
    for row, (label, length) in enumerate([(2, 3), (1, 2)]):
        vectors = read["text"].vectors[row, :length]
        state = torch.zeros(CLASSES, 4)
        state[label] = capsules(model.encoder, vectors)[label]
        state = state.flatten()
        for number, layer in enumerate(objective.decoder[::2]):
            state = layer.weight @ (state.clamp(min=0) if number else state) + layer.bias
        errors.append((state - vectors.mean(0).detach()).square().sum())
    expected = 0.5 * sum(errors) / 2
    assert_same(losses["reconstruction"], expected, rtol=1e-4, atol=1e-5)
    other = objective.at(model, read, torch.tensor([1, 2]))["reconstruction"]
    assert not torch.allclose(other, expected, rtol=1e-2), "the class decides what is rebuilt"
    assert_same(losses["loss"] - losses["reconstruction"], losses["task"])
    assert_same(losses["task"], model.encoder.objective(model(inputs), gold))
    assert not any("decoder" in name for name, _ in model.named_parameters())


def test_word_vectors_do_not_move_towards_what_is_rebuilt():
    """They could make the error small by all becoming alike."""
    model, batch = model_of(reconstruction=1.0), texts([5])
    vectors = batch.vectors.requires_grad_()
    objective = Reconstruction(model, None, Supervised())
    with torch.no_grad():
        objective.decoder[-1].weight.zero_()
    objective.reduced = lambda *arguments: torch.zeros(())
    head = type("Model", (), {"encoder": model})
    objective.at(head, {"text": batch._replace(vectors=vectors)}, torch.tensor([1]))["loss"].backward()
    assert not vectors.grad.any()


def test_the_papers_sizes_and_start():
    model = CapsuleNetwork(300, 10)
    assert model.ngrams.weight.shape == (256, 300, 3) and model.primary.out_channels == 32 * 8
    assert model.routing.transformations.shape == (32, 10, 16, 8) and model.routing.iterations == 3
    assert model.routing.transformations.std().item() == pytest.approx(10 / (20 * 32 * 8) ** 0.5, rel=0.02)
    layers = Reconstruction(model, None, Supervised()).decoder
    assert [layer.weight.shape for layer in layers[::2]] == [(512, 160), (1024, 512), (300, 1024)]
