"""MixText: texts mixed inside a transformer, and guessed labels for those that have none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from architectures.blocks.moved_vectors import probabilities_missing
from architectures.blocks.piece_transformer import PieceTransformer
from architectures.blocks.word_replacement import PieceReplacement
from harness import registry
from harness.kinds import Regime
from harness.layers.noise import Noise
from harness.objectives import STREAMS, Objective, Step, Supervised, collected_losses
from harness.registry import Recipe, TaskEntry, register
from harness.training.model import Model
from harness.views.subwords import SubwordBatch

OF_LAYERS = 12
"""Layers of BERT-base, among which ``mixed_at`` counts."""


class MixedTextsLoss(Objective):
    """The loss of mixtures: cross-entropy of those whose larger part has a label, and ``weight``
    times the divergence of the others from their guessed labels, a weight that grows from 0 over
    the training."""

    streams = STREAMS
    replacement: PieceReplacement

    def __init__(self, owner: MixText, model: Model, inner: Supervised):
        super().__init__(owner, model, inner)
        self.owner = owner

    def begin(self, rows: Mapping[str, Any]) -> None:
        texts = rows["unlabelled"]
        self.padding = texts.view.pad
        self.replacement = PieceReplacement(self.owner.rate, texts.view, texts.inputs["text"]["ids"])

    def losses(self, model: Model, step: Step) -> dict[str, Tensor]:
        labelled, labels = step.batch.inputs["text"], step.batch.target
        plain = step.batches["unlabelled"].inputs["text"]
        changed = self.replacement(plain, Noise(plain.ids, plain.mask, (step.seed, step.passes)))
        guessed = self.guessed(model, changed, plain)
        targets = torch.cat([F.one_hot(labels, guessed.shape[1]).to(guessed.dtype), guessed, guessed])
        partners = torch.randperm(len(targets))
        with collected_losses() as terms:
            share, depth = self.share(), self.depth(model)
            logs = self.mixed(model, self.joined(labelled, changed, plain), partners, share, depth).log_softmax(-1)
        # Behind the terms that the encoder adds, which count once.
        surprise = self.margin(model, plain) if self.owner.margin_weight else logs.new_zeros(())
        wanted = share * targets + (1 - share) * targets[partners]
        known = -(wanted * logs)[: len(labels)].sum(-1).mean()
        consistency = F.kl_div(logs[len(labels) :], wanted[len(labels) :], reduction="batchmean")
        added = self.owner.weight * consistency + self.owner.margin_weight * surprise
        total = known + step.progress * added + sum(terms.values())
        return {"loss": total, "task": known, "consistency": consistency, "margin": surprise} | terms

    @torch.no_grad()
    def guessed(self, model: Model, changed: SubwordBatch, plain: SubwordBatch) -> Tensor:
        """Probabilities (B, classes) of texts, the mean of those as they are and with words
        replaced, sharpened by the temperature."""
        shares = self.scores(model, self.joined(changed, plain)).softmax(-1)
        mean = torch.stack(shares.chunk(2)).mean(0)
        return (mean.log() / self.owner.temperature).softmax(-1)

    def share(self) -> float:
        """The larger share of two texts in their mixture."""
        drawn = torch.distributions.Beta(self.owner.alpha, self.owner.alpha).sample().item()
        return max(drawn, 1 - drawn)

    def depth(self, model: Model) -> int:
        """The number of layers behind which the texts of this step are mixed."""
        layers = [max(1, round(layer * model.encoder.body.depth / OF_LAYERS)) for layer in self.owner.mixed_at]
        return layers[int(torch.randint(len(layers), ()))]

    @staticmethod
    def mixed(model: Model, texts: SubwordBatch, partners: Tensor, share: float, depth: int) -> Tensor:
        """Scores (B, classes) of texts each of which has ``share`` in a mixture of its states
        behind layer ``depth`` and those of its partner.

        Padding is zero there, and a place is read where either text has a piece.
        """
        encoder, mask = model.encoder, texts.mask[..., None]
        states = encoder.lower(texts, depth) * mask
        states = share * states + (1 - share) * states[partners]
        read = share * mask + (1 - share) * mask[partners] > 0
        vectors = encoder.pooled(encoder.upper(states, read[..., 0], depth))
        return model.head.class_scores(model.head.output(model.head.drop(vectors)))

    def margin(self, model: Model, plain: SubwordBatch) -> Tensor:
        """Mean of the entropies of the answers to texts above ``margin``, in nats."""
        logs = self.scores(model, plain).log_softmax(-1)
        entropies = -(logs.exp() * logs).sum(-1)
        return (entropies - self.owner.margin).clamp(min=0).mean()

    def joined(self, *batches: SubwordBatch) -> SubwordBatch:
        """All texts of several batches in one."""
        widest = max(each.ids.shape[1] for each in batches)

        def padded(numbers: Tensor, filling: int = 0) -> Tensor:
            return F.pad(numbers, (0, widest - numbers.shape[1]), value=filling)

        return SubwordBatch(
            torch.cat([padded(each.ids, self.padding) for each in batches]),
            torch.cat([padded(each.mask) for each in batches]),
            torch.cat([padded(each.segments) for each in batches]),
            torch.cat([each.lengths for each in batches]),
        )

    @staticmethod
    def scores(model: Model, texts: SubwordBatch) -> Tensor:
        """Scores (B, classes) of texts as they are."""
        return model.head.class_scores(model({"text": texts}))


@register(
    "mixtext",
    name="MixText",
    kind="regime",
    paper="Chen et al. 2020",
    source="M2.11[170]",
    year=2020,
    parents={"weights": "bert@text_mix"},
    recipe=Recipe(
        optimizer="adamw",
        lr=0.0001,
        batch_size=8,
        epochs=10,
        patience=10,
        min_steps=2000,
        groups=(("head.*", 10.0),),
    ),
    sees=("texts without labels",),
    version=2,
    deviations=(
        (
            "Words are replaced by their TF-IDF, where the paper translates texts into German and Russian and back, for"
            " which there is no model here; words of several pieces stay. Three words in ten are: of seven in ten, as"
            " UDA has them, all guessed labels became one class on a generated corpus."
        ),
        (
            "It trains our small `bert` of four layers, behind the second, third and fourth of which texts are mixed;"
            " the paper's are behind the seventh, ninth and twelfth of BERT-base, the same shares of its depth."
        ),
        (
            "The vector of a text is BERT's, its first state; the authors take the mean of all states, and have a layer"
            " of 128 tanh units under the softmax."
        ),
        "Padding is zero in a mixture and is not read; in the authors' program it is mixed and read as words are.",
        "A text passes the lower layers once in a step, and is mixed with another that has passed them likewise.",
        (
            "A batch has eight texts with labels and eight without, in ten passes and 2,000 steps at least; the"
            " authors' has four and eight, in 20,000 steps."
        ),
        "The rate below the layer on top is ten times the paper's, for a small body in a tenth of the steps.",
        "Of the guessed labels both ways to see a text have half; the authors choose these weights for each task.",
        "Texts without labels are the training texts alone, also those that have labels.",
        "Each is mixed as it is and with words replaced once; the authors have two translations of it beside it.",
        "A text has 128 pieces at most, the authors' 256.",
    ),
)
class MixText(Regime):
    """Trains a transformer on mixtures of texts, with labels for those that have none guessed.

    Two texts of a step go through the lower layers by themselves. Behind a layer that is drawn
    among ``mixed_at`` (of twelve; of another number those at the same share of the depth) their
    states are mixed, l h + (1 - l) h', and so are their labels; l = max(l, 1 - l) is drawn from
    Beta(``alpha``, ``alpha``). Any text is mixed with any: those with labels, those without, and
    these with about ``rate`` of their words replaced. The label of a text without one is the mean
    of the answers to its two forms, sharpened by the ``temperature``, and a constant.

    ``weight`` is that of the divergence from guessed labels; ``margin_weight`` is that of the part
    of an answer's entropy that is above ``margin``, 0 in the authors' runs. Both grow evenly from 0
    over the training. ``wraps`` is any classifier of pieces with layers of a transformer. Slow: a
    step reads three texts for each one with a label, and two of them twice.
    """

    trained_by = MixedTextsLoss

    def __init__(
        self,
        wraps: str = "bert",
        mixed_at: Sequence[int] = (7, 9, 12),
        alpha: float = 16.0,
        temperature: float = 0.5,
        weight: float = 1.0,
        rate: float = 0.3,
        margin: float = 0.7,
        margin_weight: float = 0.0,
    ):
        self.wraps, self.mixed_at, self.alpha, self.rate = wraps, mixed_at, alpha, rate
        self.temperature, self.weight, self.margin, self.margin_weight = temperature, weight, margin, margin_weight

    @classmethod
    def default_parents(cls, parents: dict[str, str], hyperparameters: dict[str, Any]) -> dict[str, str]:
        """Those of the encoder that it wraps."""
        wrapped = registry.entry("architectures", hyperparameters["wraps"])
        return registry.load(wrapped).default_parents(wrapped.parents, wrapped.hyperparameters)

    @classmethod
    def unfit(cls, task: TaskEntry, hyperparameters: dict[str, Any]) -> str | None:
        wrapped = registry.entry("architectures", hyperparameters["wraps"])
        encoder = registry.load(wrapped)
        if task.type != "classify":
            return f"mixes texts that have a class each, and a task of type {task.type} has none"
        if not (issubclass(encoder, PieceTransformer) and encoder.in_parts):
            return f"mixes the states between two layers of a transformer of pieces, and {wrapped.id} has none"
        return probabilities_missing(encoder, wrapped.id)
