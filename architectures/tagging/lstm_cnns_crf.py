"""Bidirectional LSTM over word vectors and character convolutions, with a conditional random field
on top."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from architectures.blocks.characters import CharacterConvolution
from architectures.blocks.recurrent import Recurrent
from harness.kinds import Tagger
from harness.registry import Recipe, register
from harness.views.words_and_characters import WordCharacterBatch, WordsAndCharacters


def start_lstm(layer: nn.LSTM) -> None:
    """Give each gate's matrices a Glorot-uniform start; biases are zero, that of the forget gate
    one."""
    for name, parameter in layer.named_parameters():
        for number, gate in enumerate(parameter.data.chunk(4)):  # input, forget, cell and output
            if parameter.dim() > 1:
                nn.init.xavier_uniform_(gate)
            else:
                gate.fill_(1.0 if number == 1 and name.startswith("bias_ih") else 0.0)


@register(
    "lstm_cnns_crf",
    name="BiLSTM-CNNs-CRF",
    kind="tag",
    paper="Ma & Hovy 2016",
    source="X4.5.3",
    year=2016,
    version=3,
    recipe=Recipe(
        optimizer="sgd",
        lr=0.015,
        momentum=0.9,
        batch_size=10,
        epochs=50,
        clip=5.0,
        lr_schedule="inverse_epoch",
        decay=0.05,
        vector_dims=100,
    ),
    tiny={"hidden": 12, "character_size": 8, "filters": 8},
    vectors_of_paper="GloVe",
    deviations=(
        "Words that training shows once share the vector of unknown words; in the paper each has a vector of its own.",
        "Words without a given vector start within +-0.25, not +-sqrt(3 / size).",
        "The norm of the whole gradient is cut at 5; in the authors' program the limit acts within the LSTMs alone.",
        "Training ends after five passes without a better score; in the authors' program without a better loss either.",
        "Of a word longer than 30 characters the first 30 are read, in the authors' program 45. A shorter one is"
        " lengthened by zeros, there by a mark of its end, which has a vector.",
    ),
)
class BiLSTMCNNsCRF(Tagger):
    """Each word's vector joined to what a convolution makes of its characters, a BiLSTM over the
    sentence, and a CRF in which a word's state z scores each label j behind each label i by
    W_ij z + b_ij.

    Dropout acts on the character vectors before the convolution and on the input and the output of
    the BiLSTM. Matrices start Glorot-uniform and biases at zero, but for the forget gates', which
    start at one.
    """

    view = WordsAndCharacters()
    decoder = "pair_crf"

    def __init__(
        self,
        width: int,
        labels: int,
        view: WordsAndCharacters,
        hidden: int = 200,
        character_size: int = 30,
        filters: int = 30,
        window: int = 3,
        dropout: float = 0.5,
    ):
        super().__init__()
        self.spelling = CharacterConvolution(view.alphabet_size, character_size, filters, window, dropout)
        self.recurrence = Recurrent("lstm", width + filters, hidden, bidirectional=True)
        self.dropout = nn.Dropout(dropout)
        self.pairs = nn.Linear(self.recurrence.size, self.scores_per_word(labels))
        for layer in (*self.recurrence.forwards, *self.recurrence.backwards):
            start_lstm(layer)
        for layer in (self.spelling.convolution, self.pairs):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, words: WordCharacterBatch) -> Tensor:
        spelt = self.spelling(words.characters, words.character_mask)
        joined = self.dropout(torch.cat([words.vectors, spelt], dim=-1))
        return self.pairs(self.dropout(self.recurrence(joined, words.mask)))
