"""XLM."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from architectures.blocks.objectives.masked_languages import MaskedLanguages
from architectures.blocks.piece_transformer import PieceTransformer
from harness.registry import Recipe, register
from harness.views.languages import TwoLanguages
from harness.views.subwords import SubwordBatch


def languages_and_positions(pieces: SubwordBatch) -> tuple[Tensor, Tensor]:
    """The language (B, T) of each piece, the first one where none is marked, and its position (B,
    T), which begins at 0 again with the second language."""
    positions = torch.arange(pieces.ids.shape[1], device=pieces.ids.device).expand_as(pieces.ids)
    if not pieces.marks.numel():
        return torch.zeros_like(pieces.ids), positions
    first = ((pieces.marks == 0) & pieces.mask).sum(1, keepdim=True)
    return pieces.marks, positions - pieces.marks * first


@register(
    "xlm",
    name="XLM, small",
    kind="plm",
    paper="Lample & Conneau 2019",
    source="R25",
    year=2019,
    parents={"weights": "xlm@multi30k_both"},
    recipe=Recipe(
        optimizer="adam",
        lr=(0.000005, 0.000025),
        batch_size=16,
        epochs=10,
        patience=10,
    ),
    recipes={
        "text": Recipe(
            optimizer="adam",
            lr=0.0001,
            batch_size=32,
            epochs=30,
            patience=10,
            clip=5.0,
            betas=(0.9, 0.98),
            lr_schedule="warmup_inverse_sqrt",
            warmup_steps=4000,
        ),
    },
    tiny={"layers": 1, "hidden": 32, "heads": 2, "vocabulary": 1000},
    deviations=(
        (
            "Pre-training reads 28,000 captions of pictures in English and in German; the paper reads Wikipedia in"
            " fifteen languages and millions of translations."
        ),
        (
            "Four layers of 256, not twelve of 1,024, and 8,000 word pieces in lower case that both languages share,"
            " not 95,000 of fifteen languages by merges; sequences have at most 128 pieces, not 256."
        ),
        (
            "Pre-training makes at most thirty passes in batches of 32 sequences, of captions in one language and of"
            " pairs as they come; the paper's batches are of one kind each, 64 sequences or 4,000 pieces of pairs."
        ),
        "Texts begin with one mark and end with another, which are never masked; the authors have one for both.",
        "All texts of other tasks are read as English; the paper tunes on English and tests in all languages.",
        "The best of two rates and ten passes serve all tasks; the authors make up to 250 passes of 20,000 texts.",
        "Dropout acts on the vector of a text; in the authors' program it does not, unless asked.",
        "Answers are classes, tags and spans; the paper also begins translators with the weights.",
        "Pieces are drawn by their frequency, 15 % of each text, as in the paper; the commands of the authors' README"
        " draw all alike, each by itself, and marks too.",
    ),
    variants={
        "xlm_mlm": {
            "name": "XLM, small, without translations",
            "parents": {"weights": "xlm_mlm@multi30k_both"},
            "hyperparameters": {"translation": False},
            "deviations": (
                "Of a text in both languages each side is read by itself; the paper's model without the translation"
                " objective reads no pairs.",
            ),
        },
    },
)
class XLM(PieceTransformer):
    """Vectors of pieces, positions and languages, added, through transformer layers with GELU,
    which learn from masked pieces of texts in one language, and of texts with their translations,
    whose positions begin anew.

    In a text in two languages each side sees the other, so that a masked piece can be told from its
    translation; without ``translation`` it sees itself alone. The vector of a text is its first
    state. Any text may be in the second language, with its mark in front.
    """

    view = TwoLanguages()
    learns = MaskedLanguages

    @staticmethod
    def begin(part: nn.Module, spread: float) -> None:
        """Draw vectors at random, normal with deviation ``spread``; matrices begin as PyTorch's
        do."""
        for module in part.modules():
            if isinstance(module, nn.Embedding):
                nn.init.normal_(module.weight, std=spread)

    def __init__(
        self,
        width: int,
        view: TwoLanguages,
        layers: int = 4,
        hidden: int = 256,
        heads: int = 4,
        dropout: float = 0.1,
        vocabulary: int = 8000,
        max_length: int = 128,
        stride: int = 64,
        translation: bool = True,
    ):
        spread = hidden**-0.5
        super().__init__(width, view, layers, hidden, heads, dropout, segments=0, spread=spread, activation=nn.GELU)
        self.translation = translation
        self.languages = nn.Embedding(2, hidden)
        self.begin(self.languages, spread)

    def embeddings(self, pieces: SubwordBatch, vectors: Tensor | None = None) -> Tensor:
        languages, positions = languages_and_positions(pieces)
        vectors = self.table(pieces.ids) if vectors is None else vectors
        vectors = vectors + self.positions(positions) + self.languages(languages)
        return self.dropout(self.norm(vectors))

    def forward(self, pieces: SubwordBatch, vectors: Tensor | None = None, seen: Tensor | None = None) -> Tensor:
        if seen is None and not self.translation:
            languages, _ = languages_and_positions(pieces)
            seen = (languages[:, None] == languages[:, :, None]) & pieces.mask[:, None]
        return super().forward(pieces, vectors, seen)

    def pooled(self, states: Tensor) -> Tensor:
        return self.dropout(states[:, 0])
