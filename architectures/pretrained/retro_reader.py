"""Retro-Reader: one network judges whether a question has an answer, another one looks for it, and
both have a say in whether one is given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.bert_states import BERTStates
from architectures.pretrained.bert import BERT
from harness.kinds import Parent, SpanScores
from harness.objectives import Learner, Objective, Step, Supervised
from harness.problems.base import IGNORED
from harness.registry import Recipe, register
from harness.task import Row
from harness.views.subwords import SubwordBatch, Subwords


class ReadingAndVerifying(Objective):
    """A third of the cross-entropies of start, of end and of having an answer, by the reader, plus
    that of having an answer by the network that looks at the text first.

    Where a passage has several windows, each is asked whether it holds the answer.
    """

    def losses(self, model: Learner, step: Step) -> dict[str, Tensor]:
        assert isinstance(self.inner, Supervised)
        found, outputs = self.inner.with_outputs(model, model.read(step.batch.inputs), step.batch.target)
        golds = model.head.golds(outputs, step.batch.target)[:, 0]
        asked, encoder = golds != IGNORED, model.encoder
        nothing = (golds < 0).to(encoder.sketchy.dtype)[asked]
        own, first = (
            F.binary_cross_entropy_with_logits(logits[asked], nothing, reduction="sum") / len(step.batch.target)
            for logits in (encoder.intensive, encoder.sketchy)
        )
        return {"loss": (found["loss"] + own) / 3 + first, "spans": found["loss"], "own verdict": own, "sketchy": first}


@register(
    "retro_reader",
    name="Retro-Reader, small",
    kind="plm",
    paper="Zhang et al. 2020",
    source="M-T3",
    year=2020,
    version=3,
    parents={"weights": "bert@text_mix"},
    recipe=Recipe(
        optimizer="adamw",
        lr=0.00002,
        batch_size=48,
        epochs=2,
        patience=2,
        clip=1.0,
        lr_schedule="slanted_triangle",
        warmup_share=0.1,
        eps=1e-8,
    ),
    tiny={"layers": 1, "hidden": 32, "heads": 2, "vocabulary": 1000},
    deviations=(
        "Both networks begin as our BERT, of four layers of 256 and 8,000 pieces in lower case, with its windows; the"
        " paper's are ALBERT (xxlarge) or ELECTRA.",
        "They are trained at the same time, each by its own loss.",
        "The rate rises over a tenth of the steps; the authors' scripts have 814 steps, whatever the task.",
        "The verdicts weigh the same, as in the authors' program, and none is given where theirs is above 0; the paper"
        " finds a threshold on dev.",
        "Sketchy reading judges each window of a passage, with segments; in the authors' program the first 512 pieces"
        " once, without.",
        "In the authors' program the sketchy verdict only takes answers away; here it also gives some.",
        "The attention of the question over the passage, which the paper tries before the spans, is left out, as in the"
        " authors' program.",
    ),
)
class RetroReader(BERTStates):
    """Sketchy reading is a BERT of its own, by whose vector of the text, the state of [CLS] through
    BERT's tanh layer, a linear layer tells by log-odds that there is no answer. Intensive reading
    is another BERT with start, end and no answer at [CLS], and learns beside them, by the state of
    [CLS] itself, whether there is one. Dropout acts on what either is judged by.

    When it answers, having none is verified by both: its score, start and end together, is that of
    the spans plus ``trust`` times the sketchy log-odds. The other settings are BERT's.
    """

    fresh = ("front", "sketch", "verdict")
    trained_by = ReadingAndVerifying

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
        trust: float = 1.0,
    ):
        sizes: dict[str, Any] = {"layers": layers, "hidden": hidden, "heads": heads, "dropout": dropout}
        super().__init__(width, view, pretrained, **sizes)
        self.front = BERT(width, view, pretrained, **sizes)
        self.sketch, self.verdict = nn.Linear(self.size, 1), nn.Linear(self.size, 1)
        self.trust = trust

    def inherit(self, role: str, parent: Parent, rows: Sequence[Row]) -> None:
        super().inherit(role, parent, rows)
        self.front.inherit(role, parent, rows)

    def forward(self, pieces: SubwordBatch, vectors: Tensor | None = None, seen: Tensor | None = None) -> Tensor:
        states = super().forward(pieces, vectors, seen)
        self.sketchy = self.sketch(self.front.vector(pieces)).squeeze(1)
        self.intensive = self.verdict(self.dropout(states[:, 0])).squeeze(1)
        return states

    def verified(self, scores: SpanScores) -> SpanScores:
        if self.training:
            return scores
        assert scores.no_answer is not None
        return scores._replace(no_answer=scores.no_answer + self.trust / 2 * self.sketchy[:, None])
