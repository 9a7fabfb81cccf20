"""Manhattan LSTM."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.recurrent import Recurrent
from harness.kinds import PairEncoder, pool
from harness.registry import Recipe, register
from harness.views.words import WordBatch


@register(
    "ma_lstm",
    name="MaLSTM",
    kind="pair",
    paper="Mueller & Thyagarajan 2016",
    source="M2.8[119]",
    year=2016,
    recipe=Recipe(optimizer="adadelta", lr=1.0, rho=0.95, batch_size=32, clip=5.0, vector_dims=300),
    tiny={"hidden": 24},
    vectors_of_paper="word2vec",
    deviations=(
        "The target is a pair's label, 0 or 1, not a rescaled similarity from 1 to 5.",
        "No pre-training on another similarity task, no synonym augmentation, no regression that corrects the scores.",
        "Weights start with a deviation of 0.02; in the authors' program it is 0.028 for the recurrent matrix and 0.018"
        " for the other.",
        "Biases but that of the forget gate start at zero; in the authors' program within 0.5 of it, and all count"
        " twice, that of the forget gate, 1.5, too.",
        "The word vectors are trained; in the authors' program they stay as they were given.",
        "Gradients are cut at a norm of 5; the authors' program does not cut them, and makes some 400 passes.",
    ),
)
class MaLSTM(PairEncoder):
    """exp(-sum_i |a_i - b_i|) of the last states a and b of one LSTM that reads both texts: a score
    (B,) in (0, 1].

    Trained by squared error. The weights start small and the forget gates open: states that begin
    far apart would have a similarity, and with it a gradient, of nearly zero.
    """

    scores = True

    def __init__(self, width: int, hidden: int = 50, forget_bias: float = 2.5, deviation: float = 0.02):
        super().__init__()
        self.recurrence = Recurrent("lstm", width, hidden)
        for name, parameter in self.recurrence.named_parameters():
            nn.init.normal_(parameter, std=deviation) if "weight" in name else nn.init.zeros_(parameter)
        # The gates stand in the order input, forget, cell, output.
        with torch.no_grad():
            self.recurrence.forwards[0].bias_ih_l0[hidden : 2 * hidden] = forget_bias

    def forward(self, first: WordBatch, second: WordBatch) -> Tensor:
        a, b = (pool(self.recurrence(text.vectors, text.mask), text.mask, "last") for text in (first, second))
        return torch.exp(-(a - b).abs().sum(1))

    def rank_loss(self, scores: Tensor, labels: Tensor, groups: Tensor) -> Tensor:
        return F.mse_loss(scores, labels.to(scores.dtype))
