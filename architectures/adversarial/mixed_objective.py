"""The mixed objective: four losses of one bidirectional LSTM."""

from __future__ import annotations

import torch
from torch import Tensor

from architectures.adversarial.adversarial import AdversarialLoss
from architectures.blocks.moved_vectors import MovesUnlabelled, log_shares, same_draws, virtual_loss
from harness.kinds import SequenceEncoder
from harness.objectives import STREAMS, Step, Supervised
from harness.registry import Recipe, register
from harness.training.model import Model


class MixedLoss(AdversarialLoss):
    """Cross-entropy and adversarial loss of a labelled batch, entropy and virtual adversarial loss
    of a batch of all training texts, with labels or without."""

    streams = STREAMS

    def __init__(self, owner: MixedObjective, model: Model, inner: Supervised):
        super().__init__(owner, model, inner)
        self.small, self.of_entropy, self.of_virtual = owner.small, owner.entropy, owner.virtual

    def losses(self, model: Model, step: Step) -> dict[str, Tensor]:
        losses = super().losses(model, step)
        inputs = model.read(step.batches["unlabelled"].inputs)
        seed = int(torch.randint(1 << 62, ()))
        with same_draws(seed):
            logs = log_shares(model, inputs)
        entropy = -(logs.exp() * logs).sum(-1).mean()
        virtual = virtual_loss(model, inputs, logs, seed, self.epsilon, self.small, self.numbers)
        added = self.of_entropy * entropy + self.of_virtual * virtual
        return losses | {"loss": losses["loss"] + added, "entropy": entropy, "virtual": virtual}


@register(
    "mixed_objective",
    name="LSTM with mixed objective (L Mixed)",
    kind="regime",
    paper="Sachan et al. 2019",
    source="M2.11[174] T2",
    year=2019,
    recipe=Recipe(
        optimizer="adam",
        lr=0.001,
        batch_size=32,
        epochs=50,
        patience=20,
        clip=1.0,
        betas=(0.0, 0.98),
        averaging=0.999,
        averaging_warmup=True,
    ),
    sees=("texts without labels",),
    vectors_of_paper="fastText",
    deviations=(
        "It trains `bilstm` with its own 300 units and dropout; the paper's has 512 units each way.",
        "The authors' program normalises each word's vector behind the move, and the states; the table of vectors,"
        " which is here, it does not. It drops whole words besides.",
        "The encoder's dropout acts behind the moves, which are then 1 / (1 - p) as long on what it leaves; the"
        " authors' before them. All passes of a virtual move drop the same numbers, theirs each its own.",
        "The learning rate is constant; the authors halve it when dev no longer improves (IMDB), or multiply it by"
        " 0.99995 at each step (AG News).",
        "A batch has 32 texts; the authors' has 3,000 words with labels and as many without (IMDB), or 2,000 and up"
        " to 4,000 (other corpora).",
        (
            "Entropy and virtual adversarial loss are means over texts of which the labelled ones are a part; the"
            " program halves the sum of two means."
        ),
        "Texts without labels are the training texts alone.",
    ),
)
class MixedObjective(MovesUnlabelled):
    """The sum of four losses: cross-entropy and adversarial loss of labelled texts, entropy of the
    answers and virtual adversarial loss of texts with labels or without.

    Each of the three that are added has a weight, 1 in the paper. Both moves have norm ``epsilon``
    over a whole text and are those of adversarial and of virtual adversarial training; the vectors
    are normalised once for both. A text's vector is the maximum of the states of the encoder that
    it ``wraps``, where that pools the states of all words in a way that can be chosen.
    """

    trained_by = MixedLoss

    def __init__(
        self,
        wraps: str = "bilstm",
        epsilon: float = 5.0,
        small: float = 0.1,
        weight: float = 1.0,
        entropy: float = 1.0,
        virtual: float = 1.0,
        numbers: int | None = None,
    ):
        self.wraps, self.epsilon, self.small, self.numbers = wraps, epsilon, small, numbers
        self.weight, self.entropy, self.virtual = weight, entropy, virtual

    def prepare(self, model: Model, counts: Tensor | None) -> None:
        super().prepare(model, counts)
        if isinstance(model.encoder, SequenceEncoder):
            model.encoder.pooling = "max"
