"""Bi-directional attention flow."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from architectures.blocks.bi_attention import BiAttention
from architectures.blocks.characters import CharacterConvolution
from architectures.blocks.highway import Highway
from architectures.blocks.recurrent import Recurrent
from harness.kinds import Reader, SpanScores
from harness.registry import Recipe, register
from harness.views.words_and_characters import WordCharacterBatch, WordsAndCharacters


@register(
    "bidaf",
    name="BiDAF",
    kind="span",
    paper="Seo et al. 2017",
    source="M-T3[4]",
    year=2017,
    recipe=Recipe(
        optimizer="adadelta",
        lr=0.5,
        rho=0.95,
        eps=1e-8,
        batch_size=60,
        epochs=12,
        averaging=0.999,
        vector_dims=100,
    ),
    tiny={"hidden": 16, "character_size": 6, "filters": 8},
    vectors_of_paper="GloVe",
    version=2,
    deviations=(
        "Words seen once are unknown, GloVe's too.",
        "Words without a given vector keep a random one; the authors' code trains those of frequent words.",
        "Each word is lengthened by zeros at both ends before the character convolution.",
        "Weights start as PyTorch's layers do; the authors' LSTMs add 1 to what the forget gate reads.",
        (
            "The LSTM of the end reads M, as the paper says; the authors' code joins G, the mean of M under the start"
            " probabilities, and the product of M with it."
        ),
        (
            "The paper has no score for 'no answer' (SQuAD 2.0): a learned number joins both softmaxes, as in Levy et"
            " al. 2017."
        ),
        "An answer has up to 30 words; the paper sets no limit.",
        "The variant that reads ELMo beside the word vectors (Peters et al. 2018) is not here.",
    ),
)
class BiDAF(Reader):
    """Passage and question attend to each other before the passage is read again with what was
    found.

    Vectors of words and of their characters pass a highway and a BiLSTM, whose states h (passage)
    and u (question) a :class:`BiAttention` joins to G. Two BiLSTM layers make M of G, and a third,
    reading M, M'. Start is scored by w1 . [G; M], end by w2 . [G; M']. Dropout acts on characters,
    before each LSTM layer and before both scores. Given word vectors stay fixed.
    """

    view = WordsAndCharacters(word_length=16)
    vectors = "fixed"

    def __init__(
        self,
        width: int,
        view: WordsAndCharacters,
        hidden: int = 100,
        character_size: int = 8,
        filters: int = 100,
        window: int = 5,
        highway_layers: int = 2,
        dropout: float = 0.2,
    ):
        super().__init__()
        size = 2 * hidden
        self.spelling = CharacterConvolution(view.alphabet_size, character_size, filters, window, dropout, torch.relu)
        self.highway = Highway(width + filters, highway_layers)
        self.contextual = Recurrent("lstm", width + filters, hidden, bidirectional=True)
        self.attention = BiAttention(size)
        self.modelling = Recurrent("lstm", 4 * size, hidden, layers=2, bidirectional=True, dropout=dropout)
        self.ending = Recurrent("lstm", size, hidden, bidirectional=True)
        self.start, self.end = (nn.Linear(5 * size, 1, bias=False) for _ in range(2))
        self.dropout = nn.Dropout(dropout)

    def read(self, text: WordCharacterBatch) -> Tensor:
        """States (B, T, 2d) of a text's words by themselves."""
        spelt = self.spelling(text.characters, text.character_mask)
        words = self.highway(torch.cat([text.vectors, spelt], dim=-1))
        return self.contextual(self.dropout(words), text.mask)

    def forward(self, passage: WordCharacterBatch, question: WordCharacterBatch) -> SpanScores:
        joined = self.attention(self.read(passage), passage.mask, self.read(question), question.mask)
        begins = self.modelling(self.dropout(joined), passage.mask)
        ends = self.ending(self.dropout(begins), passage.mask)
        scores = []
        for layer, states in ((self.start, begins), (self.end, ends)):
            score = layer(self.dropout(torch.cat([joined, states], dim=-1))).squeeze(-1)
            scores.append(score.masked_fill(~passage.mask, -torch.inf))
        return SpanScores(*scores)
