"""Structured self-attentive sentence embedding."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from architectures.blocks.recurrent import Recurrent
from harness.kinds import TextEncoder
from harness.layers.attention import masked_softmax
from harness.registry import Recipe, register
from harness.views.words import WordBatch


@register(
    "self_attentive",
    name="Structured self-attentive embedding",
    kind="text",
    paper="Lin et al. 2017",
    source="M2.5[89]",
    year=2017,
    recipe=Recipe(
        optimizer="sgd",
        lr=0.06,
        batch_size=16,
        weight_decay=0.0002,
        clip=0.5,
        vector_dims=100,
        decay_exempt=("biases", "vectors"),
    ),
    tiny={"hidden": 12, "attention": 10, "rows": 2, "output": 16},
    vectors_of_paper="word2vec or GloVe",
    deviations=(
        "Two texts are compared by [u, v, |u-v|, u*v] of their vectors, not by the gated encoder of their matrices.",
        "The L2 penalty takes the LSTM's matrices too; in the authors' program those of the attention and of the"
        " layers above alone.",
        "The penalty on attention is a sum, as in the paper; the authors' program takes the mean over all pairs of"
        " words, which makes it weaker by the square of their number.",
        "The norm of the whole gradient is at most 0.5; in the paper that of the LSTM's alone.",
        "Dropout acts on M and on the vector; in the authors' program also on what the attention reads and on its"
        " hidden layer.",
    ),
)
class SelfAttentive(TextEncoder):
    """``rows`` attentions over BiLSTM states H give as many vectors of a text, pressed to look at
    different words.

    A = softmax(W_s2 tanh(W_s1 H^T)) over the words, M = A H (B, rows, 2 * hidden), flattened and
    mapped by a ReLU layer to a vector (B, output). The penalty ``coefficient`` * ||A A^T - I||_F^2,
    a mean over the batch, joins the loss. That of a pair is its two texts' together. Dropout acts
    on M and on the vector. Slow, because the layer on the flattened M has 36 million weights at the
    paper's sizes, which take most of a step's time.
    """

    def __init__(
        self,
        width: int,
        hidden: int = 300,
        attention: int = 350,
        rows: int = 30,
        output: int = 2000,
        dropout: float = 0.5,
        coefficient: float = 1.0,
    ):
        super().__init__()
        self.coefficient = coefficient
        self.recurrence = Recurrent("lstm", width, hidden, bidirectional=True)
        self.first = nn.Linear(self.recurrence.size, attention, bias=False)
        self.second = nn.Linear(attention, rows, bias=False)
        self.output = nn.Linear(rows * self.recurrence.size, output)
        self.dropout = nn.Dropout(dropout)
        self.size = output

    def weights(self, states: Tensor, mask: Tensor) -> Tensor:
        """A (B, rows, T), each row summing to one over the words."""
        scores = self.second(torch.tanh(self.first(states))).transpose(1, 2)
        return masked_softmax(scores, mask[:, None])

    @staticmethod
    def penalty(weights: Tensor) -> Tensor:
        """||A A^T - I||_F^2, a mean over the batch."""
        alike = weights @ weights.transpose(1, 2) - torch.eye(weights.shape[1], device=weights.device)
        return alike.square().sum((1, 2)).mean()

    def forward(self, words: WordBatch) -> Tensor:
        states = self.recurrence(words.vectors, words.mask)
        weights = self.weights(states, words.mask)
        self.add_loss("penalty", self.coefficient * self.penalty(weights))
        matrix = (weights @ states).flatten(1)
        return self.dropout(torch.relu(self.output(self.dropout(matrix))))
