"""Hierarchical log-bilinear language model."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.word_contexts import contexts
from harness.kinds import LanguageModel
from harness.registry import Recipe, register
from harness.views.words import WordBatch


@register(
    "hlbl",
    name="Hierarchical log-bilinear model",
    kind="lm",
    paper="Mnih & Hinton 2009",
    source="M-T2",
    year=2009,
    recipe=Recipe(
        optimizer="sgd",
        lr=0.001,
        batch_size=20,
        epochs=20,
        vector_dims=100,
        reduction="batch",
        stretch=50,
    ),
    tiny={"context": 1},
    deviations=(
        "The tree is balanced, over words by falling frequency; the paper splits words by the vectors that an earlier"
        " model predicts for them.",
        "The rate is constant and there is no L2 penalty: what the paper has of both is not known to us.",
        "Vectors of the words before a stretch are not trained by its words, since each step has one stretch.",
        "The survey's row is its vectors under a classifier: `--parent vectors=hlbl` gives them to one.",
    ),
)
class HierarchicalLogBilinear(LanguageModel):
    """The vectors of the words before a word predict a vector, each by a diagonal matrix of its
    place: r = sum_i C_i r_{w_i}. Words are leaves of a binary tree, and at each inner node on the
    way to a leaf the prediction says left or right: P(w) = prod_j sigmoid(+-(r . q_j + b_j)), so
    that a word costs the depth of the tree instead of the number of words (Mnih & Hinton 2009,
    equations 3 to 5).

    ``context`` is the number of words before. The nodes are numbered as those of a heap: the
    children of node k are 2 k, on the left, and 2 k + 1, and the words follow on the inner nodes.
    """

    def __init__(self, width: int, symbols: int, context: int = 5):
        super().__init__()
        self.width, self.symbols, self.window = width, symbols, context
        self.places = nn.Parameter(torch.full((context, width), 1 / context))
        self.nodes = nn.Embedding(symbols - 1, width)
        self.biases = nn.Embedding(symbols - 1, 1)
        nn.init.uniform_(self.nodes.weight, -0.1, 0.1)
        nn.init.zeros_(self.biases.weight)

    def start(self, texts: int) -> Tensor:
        return self.places.new_zeros(texts, self.window - 1, self.width)

    def forward(self, words: WordBatch, state: Tensor) -> tuple[Tensor, Tensor]:
        before, state = contexts(state, words.vectors)
        return (before * self.places).sum(2), state

    def log_probabilities(self, states: Tensor, words: Tensor) -> Tensor:
        depth = (2 * self.symbols - 1).bit_length() - 1
        children = (self.symbols + words)[..., None] >> torch.arange(depth, device=words.device)
        nodes = (children >> 1) - 1  # below 0 above the root, on the way to a word of less than the full depth
        inner = nodes.clamp(min=0)
        scores = (self.nodes(inner) @ states[..., None] + self.biases(inner)).squeeze(-1)
        turns = F.logsigmoid(torch.where(children % 2 == 1, scores, -scores))
        return turns.masked_fill(nodes < 0, 0.0).sum(-1)
