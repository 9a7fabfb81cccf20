"""Pre-training on the texts of a domain."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from architectures.blocks.objectives.masked_pieces import MaskedPieces
from architectures.blocks.objectives.word_spans import in_spans
from architectures.pretrained.bert import BERT
from harness.layers.noise import Noise
from harness.registry import Recipe, register
from harness.views.subwords import SubwordBatch, Subwords


class MaskedWords(MaskedPieces):
    """Single words are masked whole; each of their pieces is read as the mask, as any piece, or as
    it is. A pass reads so many pieces for each word of the texts, whatever the vocabulary.
    """

    unit = "pieces of masked words"

    def __init__(self, encoder: Any):
        super().__init__(encoder)
        self.pieces_per_word = encoder.pieces_per_word

    @classmethod
    def chosen(cls, pieces: SubwordBatch, view: Subwords, noise: Noise) -> Tensor:
        return in_spans(pieces, view, noise, torch.ones(1), cls.share)


@register(
    "domain_pretraining",
    name="BERT of a domain, small",
    kind="plm",
    paper="Gu et al. 2020",
    source="M3[182]",
    year=2020,
    parents={"weights": "domain_pretraining@news_text"},
    recipe=Recipe(
        optimizer="adamw",
        lr=(0.00001, 0.00003, 0.00005),
        batch_size=32,
        epochs=10,
        patience=10,
        weight_decay=0.01,
        clip=1.0,
        lr_schedule="slanted_triangle",
        warmup_share=0.1,
        eps=0.000001,
        decay_exempt=("biases", "norms"),
    ),
    recipes={
        "text": Recipe(
            optimizer="adamw",
            lr=0.0006,
            batch_size=32,
            epochs=10,
            patience=10,
            weight_decay=0.01,
            clip=1.0,
            lr_schedule="slanted_triangle",
            warmup_share=0.1,
            eps=0.000001,
            decay_exempt=("biases", "norms"),
        ),
    },
    tiny={"layers": 1, "hidden": 32, "heads": 2, "vocabulary": 1000},
    deviations=(
        (
            "The domain is news, of which there are 3.7 million words at hand, and not medicine, of which the paper"
            " reads 3,100 million; the general texts are of the text mix, not Wikipedia and books."
        ),
        (
            "Pre-training makes ten passes over as many pieces as the texts have words, which is a part of the texts,"
            " in batches of 32 stretches of 128; the paper makes 62,500 steps of 8,192 of 512."
        ),
        "Pre-training does not ask whether one segment follows another, which the paper's does beside masked words: the"
        " second segment's vector is learnt in tuning alone.",
        "Four layers of 256, not twelve of 768, and 8,000 pieces in lower case, not 30,522.",
        (
            "Batches of 32, ten passes and three rates serve all tasks; the paper tries batches of 16, too, and from 2"
            " to 60 passes."
        ),
        "The reading of texts and the layer on top are our BERT's; the paper has some of its own for some tasks.",
    ),
    variants={
        "domain_pretraining_continued": {
            "name": "BERT of all texts, then of a domain, small",
            "parents": {"weights": "domain_pretraining_continued@general_text+news_text"},
            "hyperparameters": {"pieces_per_word": 0.5},
            "deviations": (
                (
                    "It reads half as many pieces of general texts, and then of news; the paper goes on with weights"
                    " of a million steps."
                ),
                "On the second corpus the layer that scores pieces begins anew, and the rate rises again.",
            ),
        },
        "domain_pretraining_general": {
            "name": "BERT of all texts but a domain's, small",
            "parents": {"weights": "domain_pretraining_general@general_text"},
        },
    },
)
class DomainPretraining(BERT):
    """BERT that learns from words masked whole: on the texts of a domain alone, whose pieces are
    its vocabulary; on general texts and then on the domain's, by the vocabulary of the first; or on
    general texts alone.

    All three read equally many pieces: ``pieces_per_word`` for each word of a corpus, in each pass.
    The other settings are BERT's.
    """

    learns = MaskedWords

    def __init__(
        self,
        width: int,
        view: Subwords,
        pretrained: str = "",
        layers: int = 4,
        hidden: int = 256,
        heads: int = 4,
        dropout: float = 0.1,
        vocabulary: int = Subwords.size,
        max_length: int = 128,
        stride: int = 64,
        pieces_per_word: float = 1.0,
    ):
        super().__init__(width, view, pretrained, layers, hidden, heads, dropout)
        self.pieces_per_word = pieces_per_word
