"""Bidirectional LSTM with a conditional random field on top."""

from __future__ import annotations

from torch import Tensor, nn

from architectures.blocks.recurrent import Recurrent
from harness.kinds import Tagger
from harness.registry import Recipe, register
from harness.views.words import WordBatch


@register(
    "bilstm_crf",
    name="BiLSTM-CRF",
    kind="tag",
    paper="Huang et al. 2015",
    source="X4.5.3 Fig4.12",
    year=2015,
    recipe=Recipe(optimizer="sgd", lr=0.1, batch_size=8, epochs=20, vector_dims=50),
    tiny={"hidden": 12},
    deviations=(
        "Words alone are read: no spelling and context features joined straight to the output.",
        "A batch is a number of sentences, not at most 100 words of them.",
        "The gates do not read the memory cell; those of the paper do.",
        "The last label of a sentence has a score of its own, as the first has; the paper's has none.",
    ),
)
class BiLSTMCRF(Tagger):
    """Emission scores, linear in the states of a BiLSTM; the label sequence as a whole is scored by
    a linear-chain CRF.

    The CRF (``harness/layers/crf.py``) adds a score for each pair of neighbouring labels, and
    for the first and the last label. It is trained on the exact log-likelihood of the sentence and
    decoded by Viterbi. ``scheme`` ("BIO" or "BIOES") forbids labels that break it.
    """

    decoder = "crf"

    def __init__(self, width: int, labels: int, hidden: int = 300, layers: int = 1, scheme: str = ""):
        super().__init__()
        self.scheme = scheme
        self.recurrence = Recurrent("lstm", width, hidden, layers, bidirectional=True)
        self.emissions = nn.Linear(self.recurrence.size, labels)

    def forward(self, words: WordBatch) -> Tensor:
        return self.emissions(self.recurrence(words.vectors, words.mask))
