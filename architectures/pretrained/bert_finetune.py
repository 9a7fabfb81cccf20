"""A recipe for tuning BERT."""

from __future__ import annotations

from typing import Any, ClassVar

from torch import Tensor

from architectures.blocks.head_and_tail import HeadAndTail
from architectures.blocks.objectives.next_sentence import NextSentence
from architectures.pretrained.bert import BERT
from harness.layers.noise import Noise
from harness.objectives import Learner, Objective, Step, collected_losses
from harness.registry import Recipe, register
from harness.views.subwords import Subwords


class FurtherPretraining(Objective):
    """BERT's pre-training on the texts of the training rows, and behind it the supervised loss.

    The first ``share`` of the steps asks masked pieces, and whether one segment follows another,
    of the rows of each batch; none of dev or test is read. Its scores of pieces begin anew.
    """

    whole_pilots = True

    def __init__(self, owner: BERTFinetune, model: Learner | None, inner: Objective | None = None):
        super().__init__(owner, model, inner)
        self.share = self.last_phase = owner.further
        self.learns = None if model is None else NextSentence(model.encoder)

    def losses(self, model: Learner, step: Step) -> dict[str, Tensor]:
        if step.progress >= self.share:
            assert self.inner is not None
            return self.inner.losses(model, step)
        assert self.learns is not None
        pieces = model.read(step.batch.inputs)["text"]
        noise = Noise(pieces.ids, pieces.mask, (step.seed, step.passes), step.progress)
        with collected_losses() as terms:
            logs, _ = self.learns(model.encoder, pieces, noise)
        masked = -logs.sum() / max(1, len(logs))
        return {"loss": masked + sum(terms.values()), "masked pieces": masked} | terms


@register(
    "bert_finetune",
    name="BERT, tuned by a recipe",
    kind="plm",
    paper="Sun et al. 2019",
    source="M2.10[154] T1",
    year=2019,
    version=2,
    parents={"weights": "bert@text_mix"},
    recipe=Recipe(
        optimizer="adamw",
        lr=0.00002,
        batch_size=24,
        epochs=8,
        patience=8,
        weight_decay=0.01,
        clip=1.0,
        lr_schedule="linear",
        warmup_share=0.1,
        eps=0.000001,
        decay_exempt=("biases", "norms"),
        layer_decay=0.95,
    ),
    tiny={"layers": 1, "hidden": 32, "heads": 2, "vocabulary": 1000},
    deviations=(
        (
            "The first half of the passes is further pre-training, at the rates, schedule and batches of tuning, which"
            " then begins at half the rate without a warm-up of its own; the paper makes 100,000 steps at 5e-5 before"
            " it, in batches of 32."
        ),
        (
            "Further pre-training reads the texts as tuning does, the head and the tail of long ones, and its scores of"
            " pieces begin anew; the paper's reads whole texts and goes on with BERT's own."
        ),
        (
            "All layers have 0.95 of the authors' rates, since the layer next to the output counts as the second one;"
            " vectors, pooler and output have the full rate, as in their program."
        ),
        (
            "Four layers of 256, not twelve of 768, 8,000 pieces in lower case, and at most 128 pieces of a text, the"
            " first 32 and the last 94, not 128 and 382; -o bert_finetune.pretrained=FOLDER loads the paper's weights."
        ),
        "Four passes of tuning on all tasks; the paper has three or six on some.",
        "Gradients are cut at a norm of 1 all together; the authors' program cuts each matrix by itself.",
        "Adam corrects its moments for their start at zero; the authors' optimizer does not.",
        "The best pass is chosen on dev; the authors' program has the test set in its place.",
        "Multi-task tuning, a further step of the paper's, is left out.",
    ),
)
class BERTFinetune(BERT):
    """BERT that is pre-trained further on the texts of the task, then tuned with lower rates in
    lower layers, and reads the head and the tail of long texts.

    The first ``further`` of the training is pre-training. Of a text that is too long the first
    ``head`` pieces are read, and as many of the last ones as there is room for. The other settings
    are BERT's.
    """

    view = HeadAndTail()
    view_settings: ClassVar[dict[str, str]] = BERT.view_settings | {"head": "head"}
    learns = None
    trained_by = FurtherPretraining

    @classmethod
    def can_answer(cls, type: str) -> bool:
        """True for the classification of texts alone, which the recipe is for."""
        return type == "classify"

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
        head: int = 32,
        further: float = 0.5,
    ):
        if not 0 <= further < 1:
            raise ValueError(f"further={further}: expected is a share of the training from 0 to below 1")
        sizes: dict[str, Any] = {"layers": layers, "hidden": hidden, "heads": heads, "dropout": dropout}
        super().__init__(width, view, pretrained, **sizes)
        self.further = further
