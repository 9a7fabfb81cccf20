"""Densely connected convolutions, whose scales are weighed at each position."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.convolutional.vdcnn import TemporalBatchNorm
from harness.kinds import TextEncoder, pool
from harness.registry import Recipe, register
from harness.views.words import WordBatch


def halved_mean(states: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Mean of three positions around every second one, real ones only: states (B, C, T) with zeros
    outside the texts, mask (B, T) -> half as many, rounded up."""
    real = F.avg_pool1d(mask[:, None].to(states.dtype), 3, stride=2, padding=1)
    mask = mask[:, ::2]
    # A window behind a text may hold its last position.
    means = F.avg_pool1d(states, 3, stride=2, padding=1) * mask[:, None] / real.masked_fill(~mask[:, None], 1)
    return means, mask


class ScaleAttention(nn.Module):
    """Features of ``scales`` scales (B, scales * maps, T) to their weighted sum (B, maps, T).

    Each scale becomes one number at each position, the sum of its maps. A hidden layer and a
    softmax make weights (B, T, scales) of these numbers.
    """

    def __init__(self, scales: int, hidden: int):
        super().__init__()
        self.scales = scales
        self.first = nn.Linear(scales, hidden)
        self.second = nn.Linear(hidden, scales)

    def weights(self, features: Tensor) -> Tensor:
        """Weights (B, T, scales), which sum to one at each position."""
        numbers = features.unflatten(1, (self.scales, -1)).sum(2).transpose(1, 2)
        return torch.softmax(self.second(torch.relu(self.first(numbers))), dim=-1)

    def forward(self, features: Tensor) -> Tensor:
        return torch.einsum("bsmt,bts->bmt", features.unflatten(1, (self.scales, -1)), self.weights(features))


@register(
    "dense_msa_cnn",
    name="Densely connected CNN with multi-scale feature attention",
    kind="text",
    paper="Wang, Huang & Deng 2018",
    source="M2.5[90]",
    year=2018,
    version=2,
    recipe=Recipe(
        optimizer="sgd",
        lr=0.01,
        momentum=0.9,
        batch_size=64,
        epochs=16,
        patience=16,
        lr_schedule="step",
        factor=0.1,
        step_start=13.3,
        step_epochs=1.6,
    ),
    tiny={"maps": 12, "hidden": 12, "dropout": 0.2},
    vectors_of_paper="GloVe",
    deviations=(
        "The maximum over the positions is classified; the authors' code flattens seven positions of 100 words.",
        (
            "One hidden layer with ReLU makes the weights of all positions; in the authors' code each position has one"
            " of its own, without an activation."
        ),
        "The authors' code also classifies each scale by itself while it trains; one loss is left here.",
        "Batch norm has a scale and a shift that are learnt; in the authors' code it has none.",
        "The mean of three positions is taken over the real ones, whatever the number of words.",
        (
            "Linear layers start as PyTorch's do, and convolutions by the number of what each reads (He et al. 2015),"
            " not all with a deviation of 0.059; the softmax layer has the rate of all others and no penalty, not ten"
            " times as much and twice the penalty."
        ),
    ),
)
class DenseMultiScaleCNN(TextEncoder):
    """Features of one to many words side by side, of which each position chooses by attention over
    scales.

    Three layers over single words and five convolutions over three positions give ``maps`` features
    each, the scales. Before every convolution but the first all scales so far are joined,
    normalised over the batch, rectified and halved in length by a mean of three positions. Three
    layers of each scale's own follow, then attention over the scales, the maximum over the
    positions and a linear layer: (B, ``hidden``). The penalty ``sparsity`` times the sum of the
    absolute values of all these layers' weights, but not of the norms' scales and shifts, joins the
    loss. Dropout acts before and behind the last layer.
    """

    vectors = "fixed"

    def __init__(
        self,
        width: int,
        maps: int = 64,
        transforms: int = 3,
        convolutions: int = 5,
        bottlenecks: int = 3,
        hidden: int = 64,
        dropout: float = 0.7,
        sparsity: float = 0.0001,
    ):
        super().__init__()
        scales, self.sparsity = transforms + convolutions, sparsity
        self.transforms = nn.ModuleList(nn.Conv1d(maps if i else width, maps, 1) for i in range(transforms))
        self.transform_norms = nn.ModuleList(TemporalBatchNorm(maps) for _ in range(transforms))
        read = [1] + [transforms + number for number in range(1, convolutions)]
        self.convolutions = nn.ModuleList(nn.Conv1d(maps * number, maps, 3, padding=1) for number in read)
        self.norms = nn.ModuleList(TemporalBatchNorm(maps * (transforms + n + 1)) for n in range(convolutions))
        self.bottlenecks = nn.ModuleList(
            nn.Conv1d(maps * scales, maps * scales, 1, groups=scales) for _ in range(bottlenecks)
        )
        self.bottleneck_norms = nn.ModuleList(TemporalBatchNorm(maps * scales) for _ in range(bottlenecks))
        self.attention = ScaleAttention(scales, maps)
        self.dropout = nn.Dropout(dropout)
        self.dense = nn.Linear(maps, hidden)
        for module in self.modules():
            if isinstance(module, nn.Conv1d):
                nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
                nn.init.zeros_(module.bias)
        self.size = hidden

    def auxiliary_loss(self) -> Tensor:
        # Once a step, also where a pair of texts passes twice.
        layers = (module for module in self.modules() if not isinstance(module, TemporalBatchNorm))
        weights = (weight for layer in layers for weight in layer.parameters(recurse=False))
        return self.sparsity * sum(weight.abs().sum() for weight in weights)

    def scales(self, words: WordBatch) -> tuple[Tensor, Tensor]:
        """Features of all scales (B, scales * maps, T'), zero outside the texts, and the mask
        (B, T')."""
        mask = words.mask
        states, features = words.vectors.transpose(1, 2) * mask[:, None], []
        for transform, norm in zip(self.transforms, self.transform_norms, strict=True):
            features.append(transform(states) * mask[:, None])
            states = torch.relu(norm(features[-1], mask))
        joined = torch.cat(features, dim=1)
        for number, (convolution, norm) in enumerate(zip(self.convolutions, self.norms, strict=True)):
            if number:
                joined, mask = halved_mean(states, mask)
                states = joined
            joined = torch.cat([convolution(states) * mask[:, None], joined], dim=1)
            states = torch.relu(norm(joined, mask))
        for layer, norm in zip(self.bottlenecks, self.bottleneck_norms, strict=True):
            states = torch.relu(norm(layer(states), mask))
        return states, mask

    def forward(self, words: WordBatch) -> Tensor:
        features, mask = self.scales(words)
        attended = self.attention(features).transpose(1, 2)
        return self.dropout(self.dense(self.dropout(pool(attended, mask, "max"))))
