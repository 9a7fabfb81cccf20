"""LSTM sentence encoders of the Stanford natural language inference corpus."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from architectures.blocks.recurrent import Recurrent
from harness.kinds import PairEncoder, pool
from harness.registry import Recipe, register
from harness.views.words import WordBatch


class Tower(nn.Module):
    """Words to a sentence's vector (B, ``hidden``): a tanh layer maps each word vector to as many
    numbers, and an LSTM reads them. Dropout acts on what the LSTM reads and on its last state."""

    def __init__(self, width: int, hidden: int, dropout: float):
        super().__init__()
        self.project = nn.Linear(width, hidden)
        self.recurrence = Recurrent("lstm", hidden, hidden)
        self.dropout = nn.Dropout(dropout)

    def forward(self, text: WordBatch) -> Tensor:
        words = torch.tanh(self.project(text.vectors))
        return self.dropout(pool(self.recurrence(self.dropout(words), text.mask), text.mask, "last"))


@register(
    "snli_lstm",
    name="LSTM sentence encoders for SNLI (100D)",
    kind="pair",
    paper="Bowman et al. 2015",
    source="M-T5[208]",
    year=2015,
    recipe=Recipe(optimizer="adadelta", lr=1.0, rho=0.95, eps=1e-7, weight_decay=0.00001, decay_exempt=("vectors",)),
    tiny={"hidden": 24, "layer": 24, "dropout": 0.0},
    vectors_of_paper="GloVe",
    deviations=(
        "The paper tunes the strength of L2 and states no rate of dropout: 1e-5 and 0.2 are our choices.",
        "The L2 penalty leaves word vectors alone; in the authors' program it takes those of the words of a batch.",
        "Linear layers start as Glorot and Bengio say; in the authors' program within one over the root of their"
        " inputs. The LSTM's biases start near zero; in that program at three times the limit of its matrices.",
    ),
)
class SnliLSTM(PairEncoder):
    """The last states of an LSTM over premise and hypothesis, joined for three tanh layers: (B,
    ``layer``).

    Word vectors pass a tanh layer of 100 before the LSTM of 100. ``shared`` false gives each of the
    two sentences an encoder of its own.
    """

    def __init__(self, width: int, hidden: int = 100, layer: int = 200, dropout: float = 0.2, shared: bool = True):
        super().__init__()
        self.premise = Tower(width, hidden, dropout)
        self.hypothesis = self.premise if shared else Tower(width, hidden, dropout)
        sizes = (2 * hidden, layer, layer)
        self.layers = nn.Sequential(*(part for size in sizes for part in (nn.Linear(size, layer), nn.Tanh())))
        self.size = layer
        # torch's own start, made for ReLU, shrinks what each tanh layer hands on, and Adadelta
        # would need hundreds of passes to make up for it.
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                nn.init.zeros_(module.bias)

    def forward(self, first: WordBatch, second: WordBatch) -> Tensor:
        return self.layers(torch.cat([self.premise(first), self.hypothesis(second)], dim=1))
