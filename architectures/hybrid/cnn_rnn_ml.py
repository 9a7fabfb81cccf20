"""Sets of labels written one label after the other by an LSTM that begins with what convolutions
say of the text."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.convolutional.kim_cnn import KimCNN
from harness.kinds import TextEncoder
from harness.layers.beam import beam_search
from harness.objectives import Objective, Step, Supervised
from harness.registry import Recipe, register
from harness.training.model import Model
from harness.views.words import WordBatch

ALONE = 1 / 4
"""Share of a training in which the convolutions learn the labels alone."""


class LabelsAloneFirst(Objective):
    """The convolutions learn each label by itself (the cross-entropy of a sigmoid for each, summed
    over the labels); then all of it learns to write them.

    The layer that scores the labels alone is dropped. Without this phase the LSTM learns how
    frequent the labels are before the features say anything of the text.
    """

    last_phase = ALONE
    whole_pilots = True

    def __init__(self, owner: CNNRNN, model: Model, inner: Supervised):
        super().__init__(owner, model, inner)
        self.alone = nn.Linear(owner.convolutions.size, owner.classes)

    def losses(self, model: Model, step: Step) -> dict[str, Tensor]:
        if step.progress >= ALONE:
            return self.inner.losses(model, step)
        features, labels = model.head(model.encoder, model.read(step.batch.inputs)), step.batch.target
        model.encoder.count(labels)
        losses = F.binary_cross_entropy_with_logits(self.alone(features), labels, reduction="none")
        return {"loss": losses.sum(1).mean()}


@register(
    "cnn_rnn_ml",
    name="CNN-RNN for multi-label text",
    kind="text",
    paper="Chen et al. 2017",
    source="M2.9[131]",
    year=2017,
    recipe=Recipe(optimizer="adam", lr=0.001, batch_size=32),
    tiny={"maps": 32, "hidden": 32, "label_size": 8, "dropout": 0.0},
    vectors_of_paper="word2vec",
    version=3,
    deviations=(
        "The sizes of the convolutions are Kim's; sizes of the LSTM, beam and recipe are ours, as not known.",
        "Convolutions start as He et al. have them, not as Kim's do: the LSTM would hear nothing of the text.",
        (
            "Labels are written with the commonest of training first, learnt in training itself: the counts of labels"
            " that were seen so far decide."
        ),
        "The convolutions are trained alone in the first quarter of a training; the paper does so for a time that is"
        " not known to us.",
        (
            "A label's probability is one half and half of its probability at its step where it is said, and half of"
            " its probability at the last step where it is not."
        ),
    ),
)
class CNNRNN(TextEncoder):
    """Features (B, n) of a text, from which its labels are written.

    :class:`~architectures.convolutional.kim_cnn.KimCNN` gives the features, a linear layer the
    first state of an LSTM. Each step reads the vector of the label before, at first one of the
    beginning, and scores all labels and the end. In training the labels of a text stand in falling
    frequency, and the loss is the sum of the cross-entropies of its labels and the end. Answers are
    found by a beam search of width ``beam`` in which a label that stands already has no
    probability.
    """

    gives = "label sets"
    trained_by = LabelsAloneFirst

    def __init__(
        self,
        width: int,
        classes: int,
        maps: int = 100,
        windows: tuple = (3, 4, 5),
        hidden: int = 512,
        label_size: int = 64,
        dropout: float = 0.5,
        beam: int = 3,
    ):
        super().__init__()
        self.classes, self.beam = classes, beam
        self.convolutions = KimCNN(width, maps, windows, dropout)
        for convolution in self.convolutions.convolutions:
            nn.init.kaiming_normal_(convolution.weight, nonlinearity="relu")
        self.first = nn.Linear(self.convolutions.size, hidden)
        self.labels = nn.Embedding(classes + 1, label_size)
        self.cell = nn.LSTMCell(label_size, hidden)
        self.output = nn.Linear(hidden, classes + 1)
        self.register_buffer("counts", torch.zeros(classes))

    def forward(self, words: WordBatch) -> Tensor:
        return self.convolutions(words)

    def start(self, features: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """State before the first label: the LSTM's, and which labels (B, classes + 1) stand
        already."""
        hidden = self.first(features)
        return hidden, torch.zeros_like(hidden), features.new_zeros(len(features), self.classes + 1)

    def step(self, labels: Tensor, state: tuple[Tensor, Tensor, Tensor]) -> tuple[Tensor, Any]:
        """Log-probabilities (B, classes + 1) of the next label, behind the label (B,) before it:
        number ``classes`` is the beginning and the end. One that stands already has none."""
        hidden, cell, written = state
        written = written + F.one_hot(labels, self.classes + 1) * (labels != self.classes)[:, None]
        hidden, cell = self.cell(self.labels(labels), (hidden, cell))
        scores = self.output(hidden).masked_fill(written > 0, -torch.inf)
        return scores.log_softmax(1), (hidden, cell, written)

    def count(self, labels: Tensor) -> None:
        """Count labels (B, classes) that training shows."""
        if self.training:
            self.counts += labels.sum(0)

    def set_losses(self, outputs: Tensor, labels: Tensor) -> Tensor:
        self.count(labels)
        # Labels first, the commonest at the front; what a text lacks stands behind its end.
        order = (labels * (1 + self.counts)).argsort(dim=1, descending=True, stable=True)
        lengths = labels.sum(1).long()
        places = torch.arange(self.classes + 1, device=labels.device)
        order = F.pad(order, (0, 1)).masked_fill(places >= lengths[:, None], self.classes)
        state, before = self.start(outputs), torch.full_like(lengths, self.classes)
        losses = outputs.new_zeros(len(outputs))
        for place in range(int(lengths.max()) + 1):
            log, state = self.step(before, state)
            wanted = order[:, place]
            losses = losses - torch.where(place <= lengths, log.gather(1, wanted[:, None])[:, 0], 0.0)
            before = wanted
        return losses

    def set_probabilities(self, outputs: Tensor) -> Tensor:
        written = beam_search(self.step, self.start(outputs), self.classes, self.classes, self.classes + 1, self.beam)
        found = outputs.new_zeros(len(outputs), self.classes + 1)
        state, before = self.start(outputs), torch.full((len(outputs),), self.classes, device=outputs.device)
        said = torch.zeros_like(found, dtype=torch.bool)
        running = torch.ones(len(outputs), dtype=torch.bool, device=outputs.device)
        for place in range(max(map(len, written)) + 1):
            log, state = self.step(before, state)
            found = torch.where(running[:, None] & ~said, log.exp() / 2, found)
            ids = [labels[place] if place < len(labels) else self.classes for labels in written]
            before = torch.tensor(ids, device=outputs.device)
            running = running & (before != self.classes)
            now = F.one_hot(before, self.classes + 1).bool() & running[:, None]
            found, said = torch.where(now, 0.5 + found, found), said | now
        return found[:, :-1]
