"""Neural semantic encoder."""

from __future__ import annotations

from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from harness.kinds import SequenceEncoder
from harness.layers.attention import masked_softmax
from harness.registry import Recipe, register

STEPS = 64
"""Steps whose memories are kept for the backward pass; a longer text keeps one in so many and
computes the others again."""


@register(
    "nse",
    name="Neural semantic encoder",
    kind="seq",
    paper="Munkhdalai & Yu 2017",
    source="M2.6[95] T1 T5",
    year=2017,
    recipe=Recipe(
        optimizer="adam",
        lr=0.0003,
        batch_size=128,
        epochs=40,
        patience=40,
        weight_decay=0.00003,
        decay_exempt=("vectors",),
        clip=15.0,
    ),
    vectors_of_paper="GloVe",
    version=2,
    deviations=(
        "Without --vectors the word vectors start at random and are tuned; the paper's are GloVe and stay fixed.",
        "A linear layer classifies a text; the paper has a hidden ReLU layer, with dropout, before it.",
        "Matching reads [u, v, |u-v|, u*v] with as many hidden units as u has, not u-v and 1,024 units with dropout.",
        "Padding is no slot of the memory; the authors' code fills each text to 32 words that can be read.",
    ),
)
class NeuralSemanticEncoder(SequenceEncoder):
    """A memory that begins as the word vectors is read, composed with the word and rewritten at
    each word: states (B, T, width).

    At word t: o_t = LSTM(x_t) asks, z_t = softmax(M o_t) over the slots, m_t = z_t M is read, c_t =
    W [o_t; m_t] + b composes, h_t = LSTM(c_t) is the state, and M becomes M (1 - z_t) + z_t h_t,
    slot by slot. A text's vector is its last state. The compose network is one linear layer, as in
    the authors' code. Dropout acts on both LSTMs' inputs, not on the memory. All weights start
    uniform in +-0.1.

    Each step reads what the last one wrote, so a loop over the words cannot be avoided, and each
    moves the whole memory: time grows with the square of the length. The questions o_t and their
    half of the composition do not depend on the memory and are computed before it.
    """

    pooling = "last"
    vectors = "fixed"

    def __init__(self, width: int, dropout: float = 0.3):
        super().__init__()
        self.dropout = dropout
        self.read = nn.LSTM(width, width, batch_first=True)
        self.compose_asked = nn.Linear(width, 2 * width)
        self.compose_found = nn.Linear(width, 2 * width, bias=False)
        self.write = nn.LSTMCell(2 * width, width)
        self.size = width
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -0.1, 0.1)

    def steps(
        self, asked: Tensor, composed: Tensor, mask: Tensor, memory: Tensor, state: Tensor, cell: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """States (B, S, width) of S words, and the memory (B, T, width), state and cell (B, width)
        that they leave."""
        states = []
        for question, half in zip(asked.unbind(1), composed.unbind(1), strict=True):
            slots = masked_softmax((memory @ question[..., None]).squeeze(-1), mask)
            found = (slots[:, None] @ memory).squeeze(1)
            both = F.dropout(half + self.compose_found(found), self.dropout, self.training)
            state, cell = self.write(both, (state, cell))
            memory = memory.lerp(state[:, None], slots[..., None])
            states.append(state)
        return torch.stack(states, dim=1), memory, state, cell

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        asked = self.read(F.dropout(vectors, self.dropout, self.training))[0]
        composed = self.compose_asked(asked)
        length = vectors.shape[1]
        steps = self.steps if length <= STEPS else partial(checkpoint, self.steps, use_reentrant=False)
        memory, state, cell = vectors, torch.zeros_like(vectors[:, 0]), torch.zeros_like(vectors[:, 0])
        states = []
        for start in range(0, length, STEPS):
            words = slice(start, start + STEPS)
            written, memory, state, cell = steps(asked[:, words], composed[:, words], mask, memory, state, cell)
            states.append(written)
        return torch.cat(states, dim=1)
