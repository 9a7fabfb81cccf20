"""LSTMs on one-hot words, without input and output gates, pooled over the text."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.one_hot import SparseLinear, square_loss, started
from architectures.blocks.recurrent import reverse
from harness.kinds import TextEncoder, pool
from harness.registry import Recipe, register
from harness.views.regions import RegionBatch, Regions


@register(
    "region_lstm",
    name="One-hot region LSTM (oh-LSTM)",
    kind="text",
    paper="Johnson & Zhang 2016",
    source="M2.2[39]",
    year=2016,
    recipe=Recipe(
        optimizer="sgd",
        lr=1.0,
        momentum=0.9,
        batch_size=50,
        epochs=100,
        patience=100,
        lr_schedule="step",
        factor=0.1,
        step_start=80.0,
        step_epochs=100.0,
    ),
    tiny={"units": 16, "dropout": 0.0},
    deviations=(
        "Without region embeddings learnt from unlabelled texts: the paper's supervised model.",
        "The recipe is that for film reviews; the paper chooses the rate for each set of texts.",
        (
            "Under protocol equal Adam is lazy: at each step it moves only the rows that the batch read, and only their"
            " moments decay."
        ),
    ),
)
class RegionLSTM(TextEncoder):
    """Scores (B, classes) of the largest states of two LSTMs, one from each end of a text, that
    read one-hot words and have a forget gate alone.

    f = sigmoid(W_f x + U_f h + b_f), u = tanh(W_u x + U_u h + b_u), c = f * c + u, h = tanh(c),
    each direction with weights of its own; the maximum over the text of each unit, dropout, one
    linear layer. Trained by the square loss. In training each direction begins anew after every
    ``chop`` words that it read, so that the parts of a text are computed side by side. As in the
    authors' code, the gradient of the LSTMs' weights is a mean over the words of a batch, not over
    its texts. Slow on long texts when it answers, because no fused layer computes it.
    """

    view = Regions(size=1, empty=True)
    cut = "the gradient of the recurrent layers is a mean over words, not over texts, as in the authors' code"

    def __init__(self, width: int, classes: int, units: int = 500, chop: int = 50, dropout: float = 0.5):
        super().__init__()
        self.chop = chop
        self.words = SparseLinear(width, 2 * 2 * units)
        self.recurrences = nn.ModuleList(started(nn.Linear(units, 2 * units, bias=False)) for _ in range(2))
        self.dropout = nn.Dropout(dropout)
        self.output = started(nn.Linear(2 * units, classes))

    def states(self, read: Tensor, recurrence: nn.Linear) -> Tensor:
        """States (B, T, units) from what the words add to forget gates and inputs (B, T, 2 *
        units)."""
        h = c = read.new_zeros(len(read), recurrence.in_features)
        found = []
        for word in read.unbind(1):
            f, u = (word + recurrence(h)).chunk(2, dim=1)
            c = torch.sigmoid(f) * c + torch.tanh(u)
            h = torch.tanh(c)
            found.append(h)
        return torch.stack(found, dim=1)

    def chopped(self, read: Tensor, recurrence: nn.Linear) -> Tensor:
        """As :meth:`states`, which begin anew after every ``chop`` words."""
        texts, length = read.shape[:2]
        parts = F.pad(read, (0, 0, 0, -length % self.chop)).unflatten(1, (-1, self.chop)).flatten(0, 1)
        return self.states(parts, recurrence).unflatten(0, (texts, -1)).flatten(1, 2)[:, :length]

    def forward(self, words: RegionBatch) -> Tensor:
        mask, run = words.mask, self.chopped if self.training else self.states
        forwards, backwards = self.words(words.ones).chunk(2, dim=2)
        directions = (forwards, reverse(backwards, mask))
        states = [run(read, own) for read, own in zip(directions, self.recurrences, strict=True)]
        for found in states:
            if found.requires_grad:  # what arrives here is a mean over texts
                found.register_hook(lambda gradient: gradient * (len(mask) / mask.sum()))
        pooled = torch.cat([pool(found, mask, "max") for found in states], dim=1)
        return self.output(self.dropout(pooled))

    def objective(self, scores: Tensor, labels: Tensor) -> Tensor:
        return square_loss(scores, labels)
