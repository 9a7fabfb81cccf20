"""BERT with convolutions before the scores of an answer's first and last piece."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from architectures.blocks.bert_states import BERTStates
from harness.registry import Recipe, register
from harness.views.subwords import SubwordBatch, Subwords


@register(
    "bert_cnn_qa",
    name="BERT + multiple CNN, small",
    kind="plm",
    paper="survey table 3",
    source="M-T3",
    year=2019,
    parents={"weights": "bert@text_mix"},
    recipe=Recipe(
        optimizer="adamw",
        lr=0.00003,
        batch_size=32,
        epochs=3,
        patience=3,
        weight_decay=0.01,
        clip=1.0,
        lr_schedule="linear",
        warmup_share=0.1,
        eps=0.000001,
        decay_exempt=("biases", "norms"),
    ),
    tiny={"layers": 1, "hidden": 32, "heads": 2, "filters": 8, "vocabulary": 1000},
    deviations=(
        "An interpretation: no description of the system is public, but for its name on the board of SQuAD 2.0. Widths"
        " and number of filters are ours, and so is that their maps stand beside the states.",
        "The survey cites SAN beside its figures, which is another system.",
        "The parent is our BERT, of four layers of 256 and 8,000 pieces in lower case, with its recipe and windows;"
        " -o bert_cnn_qa.pretrained=FOLDER loads another.",
        "No answer is given where its score is the higher one, as by our BERT.",
    ),
)
class BERTWithConvolutions(BERTStates):
    """BERT's states H of question and passage, and beside each what convolutions see around it:
    [H; relu(C_1 H); relu(C_3 H); ...], with ``filters`` of each of the ``widths``, scored as the
    first and as the last piece of the answer, and at [CLS] as having none.

    The other settings are BERT's.
    """

    fresh = ("convolutions",)

    @classmethod
    def can_answer(cls, type: str) -> bool:
        """True for spans."""
        return type == "extract"

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
        widths: Sequence[int] = (1, 3, 5),
        filters: int = 128,
    ):
        if even := [each for each in widths if each % 2 == 0]:
            raise ValueError(f"widths={list(widths)}: {even[0]} has no middle, at whose piece a map would stand")
        sizes: dict[str, Any] = {"layers": layers, "hidden": hidden, "heads": heads, "dropout": dropout}
        super().__init__(width, view, pretrained, **sizes)
        self.convolutions = nn.ModuleList(nn.Conv1d(self.size, filters, each, padding=each // 2) for each in widths)
        self.size += len(widths) * filters

    def forward(self, pieces: SubwordBatch, vectors: Tensor | None = None, seen: Tensor | None = None) -> Tensor:
        states = super().forward(pieces, vectors, seen)
        read = (states * pieces.mask[..., None]).transpose(1, 2)
        maps = [torch.relu(convolution(read)).transpose(1, 2) for convolution in self.convolutions]
        return torch.cat([states, *maps], dim=-1)
