"""The mechanism of the recurrent CNN: contexts that end before the word and begin behind it, and a
maximum over the words."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from architectures.hybrid.rcnn import RecurrentCNN
from tests.support.batches import assert_each_alone, random_texts
from tests.support.models import small

WIDTH, CONTEXT = 4, 3

texts = partial(random_texts, seed=1, width=WIDTH)


model_of = partial(small, RecurrentCNN, WIDTH, context=CONTEXT, hidden=6)


def written_out(model: RecurrentCNN, vectors: Tensor) -> Tensor:
    """The vector of one text (n, WIDTH) by equations 1 to 5 of the paper."""
    n = len(vectors)
    left, right = [model.left.start] + [None] * (n - 1), [None] * (n - 1) + [model.right.start]
    for i in range(1, n):
        layer = model.left.recurrence
        left[i] = torch.tanh(layer.weight_hh_l0 @ left[i - 1] + layer.weight_ih_l0 @ vectors[i - 1])
    for i in range(n - 2, -1, -1):
        layer = model.right.recurrence
        right[i] = torch.tanh(layer.weight_hh_l0 @ right[i + 1] + layer.weight_ih_l0 @ vectors[i + 1])
    latent = [
        torch.tanh(model.project.weight @ torch.cat([left[i], vectors[i], right[i]]) + model.project.bias)
        for i in range(n)
    ]
    return torch.stack(latent).amax(0)


def test_a_batch_is_each_text_written_out_word_by_word():
    """Padding, texts of one word, and the learned contexts at both ends included."""
    model, batch = model_of(), texts((7, 4, 1, 2))
    assert_each_alone(model(batch), partial(written_out, model), batch)


def test_the_contexts_of_a_word_leave_the_word_out():
    """Copies that take a bidirectional layer's own state at the word read it twice."""
    model, vectors = model_of(stretch=None), torch.randn(1, 7, WIDTH)
    changed = vectors.clone()
    changed[0, 3] += 1

    def contexts(words: Tensor) -> tuple[Tensor, Tensor]:
        return model.left(words)[0], model.right(words.flip(1))[0].flip(0)

    left, right = ((a - b).abs().amax(1) > 1e-6 for a, b in zip(contexts(changed), contexts(vectors), strict=True))
    assert left.tolist() == [False] * 4 + [True] * 3
    assert right.tolist() == [True] * 3 + [False] * 4


def test_the_ends_of_every_text_have_learned_contexts():
    model, batch = model_of(), texts((5, 1))
    assert torch.equal(model.left(batch.vectors)[:, 0], model.left.start.expand(2, -1))
    model(batch).sum().backward()
    assert model.left.start.grad.any() and model.right.start.grad.any()


def test_each_unit_takes_its_own_strongest_word():
    """A mean, or one word for all units, would spread or bundle the gradient otherwise."""
    model = model_of()
    with torch.no_grad():  # without contexts unit k reads number k of a word
        model.project.weight.zero_()
        model.project.bias.zero_()
        model.project.weight[:WIDTH, CONTEXT : CONTEXT + WIDTH] = torch.eye(WIDTH)
    batch = texts([6])
    torch.testing.assert_close(model(batch)[0, :WIDTH], torch.tanh(batch.vectors[0].amax(0)))


def test_contexts_start_like_word_vectors_and_differ_from_each_other():
    """Zeros at both ends would make the first and the last word of a text look alike."""
    model = RecurrentCNN(WIDTH, context=200)
    for start in (model.left.start, model.right.start):
        assert start.abs().max() <= 0.25 and start.std() > 0.1
    assert not torch.equal(model.left.start, model.right.start)
