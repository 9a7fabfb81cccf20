"""TwinBERT."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.siamese.sbert import SentenceBERT
from harness.errors import ModelError
from harness.kinds import PairEncoder, Parent
from harness.layers.attention import masked_softmax
from harness.objectives import Learner, Objective, Step
from harness.registry import Recipe, register
from harness.task import Row
from harness.views.subwords import SubwordBatch, Subwords

CROSSINGS = ("residual", "cosine")
SURE = 1e-6
"""The smallest probability with which a teacher is heard, of right and of wrong: 0 has no logit."""


class SoftLabels(Objective):
    """The cross-entropy of candidates with what a teacher thinks of them, softened; without a
    teacher, with their labels."""

    def losses(self, model: Learner, step: Step) -> dict[str, Tensor]:
        encoder: TwinBERT = model.encoder
        if encoder.taught is None:
            assert self.inner is not None
            return self.inner.losses(model, step)
        rows = torch.as_tensor(step.batch.rows, device=encoder.taught.device)
        soft = torch.sigmoid(encoder.taught[rows] / encoder.temperature)
        scores = model.head(encoder, model.read(step.batch.inputs))
        return {"loss": F.binary_cross_entropy_with_logits(scores, soft.to(scores.dtype))}


@register(
    "twinbert",
    name="TwinBERT, small",
    kind="plm",
    paper="Lu et al. 2020",
    source="M2.8[125]",
    year=2020,
    parents={"weights": "bert@text_mix", "teacher": "bert"},
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
    tiny={"layers": 1, "hidden": 32, "heads": 2, "vocabulary": 1000},
    deviations=(
        "Two layers of 256, the lower ones of our BERT, not six, which are of 512 in a later program of the authors'"
        " company. One encoder reads both texts; in that program each has its own, and a text's vector passes a tanh"
        " layer.",
        "Texts are read as pieces of words, with which the parent learnt; the paper has sums of letter trigrams.",
        "The teacher is our BERT, which reads both texts at once, tuned on the same candidates; the paper's labels"
        " millions of pairs of queries and advertisements that nobody has labelled.",
        "Recipe and start of what stands above the states are those of our BERT, since the paper states none that could"
        " be confirmed; the temperature of 2 is not confirmed either.",
        "The score of a cosine begins as 10 times the cosine, less 5.",
    ),
    variants={
        "twinbert_cosine": {"name": "TwinBERT, small, cosine", "hyperparameters": {"crossing": "cosine"}},
    },
)
class TwinBERT(SentenceBERT):
    """Both texts pass one small transformer by themselves; a text's vector is an average of its
    states, softmax(v h) of them, so that those of candidates can be kept. A crossing layer scores
    the vectors q and k, and a teacher that reads both texts at once says what the score should be.

    ``crossing`` is ``residual``, a linear score of x + W x + b where x = max(q, k) number by
    number, or ``cosine``, a linear one of cos(q, k). A teacher's logit z of a candidate gives the
    soft label sigmoid(z / ``temperature``). The other settings are BERT's.
    """

    takes = ("weights", "teacher")
    fresh = ("importance", "crossing", "score")
    trained_by = SoftLabels
    rank_loss = PairEncoder.rank_loss  # that of the logits; Sentence-BERT's is one of cosines

    @classmethod
    def can_answer(cls, type: str) -> bool:
        """True for candidates."""
        return type == "rank"

    @classmethod
    def roles(cls, type: str) -> tuple[str, ...]:
        return cls.takes

    def __init__(
        self,
        width: int,
        view: Subwords,
        pretrained: str = "",
        layers: int = 2,
        hidden: int = 256,
        heads: int = 4,
        dropout: float = 0.1,
        vocabulary: int = Subwords.size,
        max_length: int = 128,
        crossing: str = "residual",
        temperature: float = 2.0,
    ):
        if crossing not in CROSSINGS:
            raise ValueError(f"crossing={crossing!r} is none of {', '.join(CROSSINGS)}")
        sizes: dict[str, Any] = {"layers": layers, "hidden": hidden, "heads": heads, "dropout": dropout}
        super().__init__(width, view, None, pretrained, **sizes)
        size = self.size // 3
        self.temperature = temperature
        self.importance = nn.Linear(size, 1, bias=False)
        self.crossing = nn.Linear(size, size) if crossing == "residual" else None
        self.score = nn.Linear(size if self.crossing else 1, 1)
        for part in filter(None, (self.importance, self.crossing, self.score)):
            self.begin(part, 0.02)
        if self.crossing is None:  # alike texts score higher from the start, and answers can be sure
            nn.init.constant_(self.score.weight, 10.0)
            nn.init.constant_(self.score.bias, -5.0)
        self.register_buffer("taught", None, persistent=False)

    def given(self, parent: Parent) -> dict[str, Tensor]:
        """The weights of a parent, of its lower layers alone."""
        lower = range(self.body.depth)
        return {
            name: of
            for name, of in super().given(parent).items()
            if not name.startswith("body.layers.") or int(name.split(".")[2]) in lower
        }

    def inherit(self, role: str, parent: Parent, rows: Sequence[Row]) -> None:
        super().inherit(role, parent, rows)
        if role == "teacher" and rows:
            self.taught = logits(parent, rows)

    def text(self, pieces: SubwordBatch) -> Tensor:
        """Average (B, n) of a text's states, each as important as its own score says."""
        states = self.states(pieces)
        weights = masked_softmax(self.importance(states).squeeze(2), pieces.mask)
        return (weights[..., None] * states).sum(1)

    def cross(self, q: Tensor, k: Tensor) -> Tensor:
        """Score (B,) of two texts' vectors (B, n)."""
        if self.crossing is None:
            crossed = F.cosine_similarity(q, k)[:, None]
        else:
            largest = torch.maximum(q, k)
            crossed = self.crossing(largest) + largest
        return self.score(crossed).squeeze(1)

    def forward(self, first: SubwordBatch, second: SubwordBatch) -> Tensor:  # type: ignore[override]
        return self.cross(self.text(first), self.text(second))


def logits(teacher: Parent, rows: Sequence[Row]) -> Tensor:
    """A teacher's logit (rows,) of each candidate; :class:`~harness.errors.ModelError` for one that
    gives no probabilities."""
    answers = teacher.answers(rows)
    if any("probability" not in answer for answer in answers):
        raise ModelError("the teacher orders candidates and gives no probability that one is right")
    return torch.tensor([answer["probability"] for answer in answers]).clamp(SURE, 1 - SURE).logit()
