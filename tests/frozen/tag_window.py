"""Taggers over windows of five words."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from harness.kinds import Tagger
from harness.registry import Recipe, register
from harness.views.words import WordBatch
from harness.views.words_and_characters import WordCharacterBatch, WordsAndCharacters


@register(
    "frozen_window",
    name="Window",
    kind="tag",
    paper="Nobody 2011",
    source="section 3",
    year=2011,
    recipe=Recipe(optimizer="sgd", lr=0.05, batch_size=1, momentum=0.5),
    tiny={"hidden": 24},
)
class Window(Tagger):
    """Labels of each word alone, from the word and its four neighbours."""

    def __init__(self, width: int, labels: int, hidden: int = 100, dropout: float = 0.1):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.window = nn.Conv1d(width, hidden, 5, padding=2)
        self.output = nn.Linear(hidden, labels)

    def emissions(self, vectors: Tensor, mask: Tensor) -> Tensor:
        """Scores (B, T, labels)."""
        vectors = self.dropout(vectors) * mask[..., None]
        return self.output(torch.tanh(self.window(vectors.transpose(1, 2)).transpose(1, 2)))

    def forward(self, words: WordBatch) -> Tensor:
        return self.emissions(words.vectors, words.mask)


@register(
    "frozen_window_crf",
    name="Window and letters, CRF",
    kind="tag",
    paper="Nobody 2016",
    source="section 4",
    year=2016,
    recipe=Recipe(optimizer="adam", lr=0.003, batch_size=10),
    tiny={"hidden": 24, "letters": 6},
    variants={"frozen_window_free": {"name": "Window and letters, softmax", "hyperparameters": {"decoder": "softmax"}}},
)
class WindowCRF(Window):
    """Words beside the mean of their letters' vectors; labels of the sentence by a CRF that keeps
    to BIO."""

    view = WordsAndCharacters(lower=False, word_length=12)
    scheme = "BIO"

    def __init__(
        self,
        width: int,
        labels: int,
        view: WordsAndCharacters,
        hidden: int = 100,
        dropout: float = 0.1,
        letters: int = 16,
        decoder: str = "crf",
    ):
        super().__init__(width + letters, labels, hidden, dropout)
        self.decoder = decoder
        self.letters = nn.Embedding(view.alphabet_size, letters, padding_idx=0)

    def forward(self, words: WordCharacterBatch) -> Tensor:
        counts = words.character_mask.sum(-1, keepdim=True).clamp(min=1)
        spelt = self.letters(words.characters).sum(2) / counts
        return self.emissions(torch.cat([words.vectors, spelt], dim=-1), words.mask)
