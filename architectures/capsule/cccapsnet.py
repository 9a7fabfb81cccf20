"""Capsules over words that are coded by a few codebooks, with k-means routing."""

from __future__ import annotations

import math
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.capsules import separate_margin_loss
from architectures.blocks.recurrent import Recurrent
from architectures.blocks.squash import squash
from harness.kinds import TextEncoder, pool
from harness.registry import Recipe, register
from harness.views.words import WordBatch, Words


class CodedWords(Words):
    """Words whose vectors the architecture itself composes."""

    embeds: ClassVar[bool] = False


CODINGS = ("weighted", "hard")


class CompositionalCoding(nn.Module):
    """Word ids (B, T) to vectors (B, T, ``size``): the sum over ``books`` of their codewords,
    weighted by the word's code.

    ``weighted``: the code is a softmax over the codewords of each book. ``hard``: it is one
    codeword of each, the likeliest, and in training one drawn by Gumbel noise, with the gradient of
    the softmax. Each book has as many codewords as give each of ``words`` words a code of its own:
    words^(1 / books), rounded up.
    """

    def __init__(self, words: int, size: int, books: int, coding: str):
        super().__init__()
        if coding not in CODINGS:
            raise ValueError(f"cccapsnet: coding={coding!r} is none of {', '.join(CODINGS)}")
        codewords = math.ceil(round(words ** (1 / books), 9))  # as 3125 ** (1 / 5) is a little more than 5
        self.coding = coding
        self.codes = nn.Parameter(torch.randn(words, books, codewords))
        self.books = nn.Parameter(torch.randn(books, codewords, size))

    def forward(self, ids: Tensor) -> Tensor:
        logits = self.codes[ids]
        if self.coding == "weighted":
            code = torch.softmax(logits, dim=-1)
        elif self.training:
            code = F.gumbel_softmax(logits, hard=True)
        else:
            code = F.one_hot(logits.argmax(-1), logits.shape[-1]).to(logits.dtype)
        return torch.einsum("btmk,mkd->btd", code, self.books)


class KMeansRouting(nn.Module):
    """Capsules (B, ``children``, ``size``) to parents (B, ``parents``, ``parent_size``).

    Child i votes u_{j|i} = W_ij u_i. The centres start as the sum of votes over the number of
    parents. Each of ``iterations`` rounds has c_i, the softmax over PARENTS of the cosine of the
    child's vote and the centre, and o_j = sum_i c_ij u_{j|i}: nothing is accumulated from round to
    round, and the length of a centre has no say. Then the centres are squashed.
    """

    def __init__(self, children: int, size: int, parents: int, parent_size: int, iterations: int):
        super().__init__()
        self.iterations = iterations
        self.transformations = nn.Parameter(torch.empty(children, parents, parent_size, size))
        nn.init.normal_(self.transformations, std=math.sqrt(2 / (size + parent_size)))

    def shares(self, votes: Tensor, centres: Tensor) -> Tensor:
        """The share (B, children, parents) of each child that each parent has."""
        return torch.softmax(F.cosine_similarity(votes, centres[:, None], dim=-1), dim=2)

    def forward(self, children: Tensor) -> Tensor:
        votes = torch.einsum("ijkd,bid->bijk", self.transformations, children)
        centres = votes.sum(1) / votes.shape[2]
        for _ in range(self.iterations):
            centres = (self.shares(votes, centres)[..., None] * votes).sum(1)
        return squash(centres)


@register(
    "cccapsnet",
    name="Compositional-coding capsules, weighted",
    kind="text",
    paper="Ren & Lu 2018",
    source="M2.4[76] T1 T2",
    year=2018,
    recipe=Recipe(optimizer="adam", lr=0.001, batch_size=30, epochs=100),
    tiny={"hidden": 32, "embedding": 16, "books": 2, "dropout": 0.0},
    deviations=(
        (
            "Follows the authors' code of October 2018 (commit f3663d6). In that of the publication in 2022 capsules"
            " share their matrices of votes, and training is 10 epochs in batches of 32, at 0.0001 for the capsules."
        ),
        "A softmax runs over the codewords of each book, as in the paper and in 2022; in 2018 it runs over the books.",
        "Trained by the margin loss alone; the authors' code adds a focal loss.",
        "The rate does not fall after 20,000 steps.",
        "Matrices of votes start normal with Glorot's variance.",
    ),
    variants={
        "cccapsnet_hard": {
            "name": "Compositional-coding capsules, hard",
            "hyperparameters": {"coding": "hard"},
            "deviations": (
                (
                    "A codeword is drawn once, and the likeliest answers; the authors' has the largest sum of 10 draws,"
                    " at test too, through which no gradient reaches the codes."
                ),
            ),
        }
    },
)
class CompositionalCodingCapsules(TextEncoder):
    """The lengths (B, classes) of class capsules, to which the parts of a text's vector are routed
    by :class:`KMeansRouting`.

    Word vectors of ``embedding`` numbers by :class:`CompositionalCoding`, a GRU of two layers in
    both directions, whose states are added, and their mean over the text, cut into capsules of
    ``size`` numbers. Dropout acts between the layers. Trained by the separate margin loss.
    """

    view = CodedWords()

    def __init__(
        self,
        width: int,
        classes: int,
        embedding: int = 64,
        books: int = 8,
        coding: str = "weighted",
        hidden: int = 128,
        size: int = 8,
        class_size: int = 16,
        iterations: int = 3,
        dropout: float = 0.5,
    ):
        super().__init__()
        if hidden % size:
            raise ValueError(f"cccapsnet: hidden={hidden} is not a multiple of size={size}, that of a capsule")
        self.cut = "the gradient of a chosen codeword is that of the softmax behind it" if coding == "hard" else ""
        self.coding = CompositionalCoding(width, embedding, books, coding)
        self.features = Recurrent("gru", embedding, hidden, layers=2, bidirectional=True, dropout=dropout)
        self.routing = KMeansRouting(hidden // size, size, classes, class_size, iterations)
        self.capsule_size = size

    def forward(self, words: WordBatch) -> Tensor:
        states = self.features(self.coding(words.ids), words.mask)
        forwards, backwards = states.chunk(2, dim=2)
        text = pool(forwards + backwards, words.mask, "mean")
        return torch.linalg.vector_norm(self.routing(text.unflatten(1, (-1, self.capsule_size))), dim=-1)

    def objective(self, scores: Tensor, labels: Tensor) -> Tensor:
        return separate_margin_loss(scores, labels)
