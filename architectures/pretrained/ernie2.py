"""ERNIE 2.0."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from architectures.blocks.objectives.continual_tasks import SCHEDULES, TASKS, ContinualTasks
from architectures.blocks.piece_transformer import PooledPieces
from architectures.blocks.published_weights import LAYERS, Family, PublishedWeights
from architectures.blocks.units import MarkedSubwords
from harness.registry import Recipe, register
from harness.views.subwords import SubwordBatch, Subwords

FAMILY = Family("ernie", LAYERS | {"pooler.0": "pooler.dense"})


@register(
    "ernie2",
    name="ERNIE 2.0, small",
    kind="plm",
    paper="Sun et al. 2020",
    source="M2.10[152] R",
    year=2020,
    version=2,
    parents={"weights": "ernie2@text_mix"},
    recipe=Recipe(
        optimizer="adamw",
        lr=(0.00002, 0.00003, 0.00005),
        batch_size=32,
        epochs=4,
        patience=4,
        clip=1.0,
        lr_schedule="linear",
        warmup_share=0.1,
    ),
    recipes={
        "text": Recipe(
            optimizer="adamw",
            lr=0.0001,
            batch_size=32,
            epochs=5,
            patience=5,
            weight_decay=0.01,
            betas=(0.9, 0.98),
            clip=1.0,
            lr_schedule="warmup_inverse_sqrt",
            warmup_share=0.01,
            decay_exempt=("biases", "norms"),
        ),
    },
    tiny={"layers": 1, "hidden": 32, "heads": 2, "vocabulary": 1000},
    deviations=(
        ("Five tasks, which text alone answers; the paper has two more, of discourse marks and of queries and titles."),
        (
            "A task is drawn for each text, and its mean loss counts by its share of the batch; the paper draws one for"
            " a whole step. The stages of the schedule are those of the paper's for four tasks, drawn out to five."
        ),
        (
            "A document is a paragraph of at most 126 pieces, its segments are sentences, or words where it has one,"
            " and the other text of a pair is of the batch. A longer one is cut anywhere, which tells in part which of"
            " its segments is the last."
        ),
        (
            "Phrases are runs of up to four words between marks and function words, and names runs of capitals; the"
            " authors find both by tools and tables."
        ),
        (
            "Four layers of 256, not twelve of 768, 8,000 word pieces in lower case, not 30,522, two segments, not"
            " four, and windows of passages of 128 pieces, 64 apart."
        ),
        (
            "Pre-training makes five passes over 17 million words in batches of 32 texts at 1e-4; the paper reads"
            " books, encyclopedias, dialogues and news in batches of 393,216 pieces at 5e-5."
        ),
        "The rate rises once; in the paper for 4,000 steps with each task.",
        "Where tasks are tuned to, the rate is up to a tenth lower in the warm-up than the authors', since its linear"
        " fall has begun.",
        (
            "Batches of 32, four passes and the best of three rates serve all tasks; the paper has a rate, a batch size"
            " and a number of passes for each."
        ),
    ),
)
class ERNIE2(PooledPieces):
    """BERT's body with a vector for the task that is asked, which is learnt from masked words,
    phrases and names, from which words have capitals, which pieces come again in the text, the
    order of its segments, and how far two segments stand apart.

    ``schedule`` is "continual": one task after another comes to those before; "together": all of
    them from the beginning; or "one by one": each alone. By all of them each task has as many
    texts. In use, the task's vector is that of masks. ``pretrained`` is a folder or a name on the
    hub that holds weights (safetensors) and their tokenizer, which bring their own ``layers``,
    ``hidden``, ``heads``, ``dropout`` and ``vocabulary``, and the vector of masks.
    """

    view = MarkedSubwords()
    learns = ContinualTasks
    in_parts = False  # the task's vector is added on the way

    def __init__(
        self,
        width: int,
        view: Subwords,
        pretrained: str = "",
        schedule: str = "continual",
        layers: int = 4,
        hidden: int = 256,
        heads: int = 4,
        dropout: float = 0.1,
        vocabulary: int = Subwords.size,
        max_length: int = 128,
        stride: int = 64,
    ):
        if schedule not in SCHEDULES:
            raise ValueError(f"schedule={schedule!r} is none of {', '.join(map(repr, SCHEDULES))}")
        given = PublishedWeights(view.pretrained, FAMILY, width, view.max_length) if view.pretrained else None
        sizes = given.sizes if given else {"layers": layers, "hidden": hidden, "heads": heads, "dropout": dropout}
        segments = given.config.type_vocab_size if given else 2
        super().__init__(width, view, **sizes, segments=segments, activation=nn.GELU)
        self.schedule = schedule
        self.tasks = nn.Embedding(len(TASKS), self.size)
        self.begin(self.tasks, 0.02)
        if given:
            given.give(self)
            theirs = getattr(given.model.embeddings, "task_type_embeddings", None)
            first = torch.zeros(self.size) if theirs is None else theirs.weight.data[0]
            self.tasks.weight.data = first.repeat(len(TASKS), 1)  # theirs are of other tasks, but for the first

    def forward(self, pieces: SubwordBatch, tasks: Tensor | None = None) -> Tensor:  # type: ignore[override]
        """States (B, T, size); ``tasks`` (B,) are the numbers of the texts' tasks, by default 0."""
        tasks = pieces.ids.new_zeros(len(pieces.ids)) if tasks is None else tasks
        return super().forward(pieces, self.table(pieces.ids) + self.tasks(tasks)[:, None])
