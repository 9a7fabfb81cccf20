"""BiLSTM with ELMo and attention, a baseline of GLUE."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from architectures.blocks.recurrent import Recurrent
from harness.kinds import PairEncoder, pool
from harness.layers.attention import masked_softmax
from harness.registry import Recipe, register
from harness.views.words import WordBatch


@register(
    "elmo_bilstm_attn",
    name="BiLSTM + ELMo + attention",
    kind="pair",
    paper="Wang et al. 2018",
    source="M-T1 T5[22]",
    year=2018,
    version=3,
    inputs=("elmo_words",),
    recipe=Recipe(
        optimizer="adam",
        lr=0.0001,
        batch_size=128,
        weight_decay=0.00001,
        clip=5.0,
        lr_schedule="plateau",
        factor=0.2,
    ),
    tiny={"hidden": 16, "mlp": 32, "dropout": 0.0},
    deviations=(
        "Vectors of words of their own stand before ELMo's, as in all that reads elmo_words; the authors' systems with"
        " ELMo have none.",
        "128 units each way, not 1,500; ELMo is our small one.",
        "It is trained on each task by itself; the paper's best figures are of all tasks of GLUE at once.",
        "Texts that stand alone are not read: with nothing to attend to, the paper's system is a plain BiLSTM there.",
        "Dev is asked after each pass; the authors' program asks it after a fixed number of steps, and also ends below"
        " a rate of 0.000001.",
        "Texts are read whole, not their first 40 words, and a regression has the tanh layer too.",
    ),
)
class ELMoBiLSTMAttention(PairEncoder):
    """Both texts pass a BiLSTM of two layers, which reads ELMo's vectors behind those of words.
    Each state attends to those of the other text by their products, and a second BiLSTM reads
    [h; attended]. Its largest states u and v make [u; v; |u - v|; u * v], and a tanh layer the
    vector (B, ``mlp``).

    The two texts share all weights. Dropout acts on what either BiLSTM reads, not between the two
    layers of the first, and on the states before their maximum; none acts around the tanh layer.
    Slow, because ELMo's networks read both texts too.
    """

    def __init__(self, width: int, hidden: int = 128, layers: int = 2, mlp: int = 512, dropout: float = 0.2):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.encoding = Recurrent("lstm", width, hidden, layers, bidirectional=True)
        self.composition = Recurrent("lstm", 2 * self.encoding.size, hidden, bidirectional=True)
        self.output = nn.Linear(4 * self.composition.size, mlp)
        self.size = mlp

    def composed(self, states: Tensor, others: Tensor, mask: Tensor, other_mask: Tensor) -> Tensor:
        """Largest states (B, 2 ``hidden``) of one text beside what each attends to in the other."""
        attended = masked_softmax(states @ others.transpose(1, 2), other_mask[:, None]) @ others
        composed = self.composition(self.dropout(torch.cat([states, attended], dim=-1)), mask)
        return pool(self.dropout(composed), mask, "max")

    def forward(self, first: WordBatch, second: WordBatch) -> Tensor:
        a, b = (self.encoding(self.dropout(text.vectors), text.mask) for text in (first, second))
        u, v = self.composed(a, b, first.mask, second.mask), self.composed(b, a, second.mask, first.mask)
        return torch.tanh(self.output(torch.cat([u, v, (u - v).abs(), u * v], dim=1)))
