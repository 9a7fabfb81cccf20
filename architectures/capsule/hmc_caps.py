"""A capsule for each label of all levels of a tree, and sets of labels that it corrects."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from architectures.blocks.capsules import present, set_margin_losses
from architectures.blocks.squash import squash
from architectures.blocks.windows import lengthen
from architectures.capsule.capsnet import DynamicRouting
from harness.kinds import TextEncoder
from harness.label_tree import LabelTree
from harness.registry import Recipe, register
from harness.views.words import WordBatch, Words

CORRECTIONS = ("transitive", "restrictive", "semi_transitive")


@register(
    "hmc_caps",
    name="Capsules for hierarchical multi-label text",
    kind="text",
    paper="Aly et al. 2019",
    source="M2.4[75]",
    year=2019,
    version=2,
    recipe=Recipe(optimizer="adam", lr=0.0005, batch_size=32, epochs=60, patience=60, vector_dims=300),
    tiny={"types": 6, "window": 8, "size": 4, "label_size": 6},
    vectors_of_paper="fastText",
    deviations=(
        (
            "A matrix of votes is shared by all positions of a text, as texts differ in length; the authors' code has"
            " one for each position and type."
        ),
        (
            "The convolution starts as PyTorch's does, and its weights have no limit; the authors' code draws them"
            " from a normal distribution and keeps their norms at or below 3."
        ),
        "Windows have 50 words: the authors' code has 50 and 100 for one number, of texts that are cut after 100.",
        "The scale at which matrices of votes start is ours, and does not know which labels occur together.",
        "Which correction the paper's figures have is not known to us; here it is the transitive one.",
        (
            "The authors' semi-transitive correction looks for the uppermost label among the missing ones, so that it"
            " always drops; ours, an option, looks whether it is said."
        ),
        "The correction that compares the mean score of the labels above with a threshold is left out.",
    ),
)
class HierarchicalCapsules(TextEncoder):
    """The lengths (B, labels) of capsules, one for each label of all levels, routed by agreement
    from primary capsules of windows of ``window`` words, rectified before they are squashed;
    trained by the margin loss.

    A label is said where its capsule is longer than one half. Where a text has several such labels,
    one whose ancestors are not all said is corrected: ``transitive`` adds the missing ones,
    ``restrictive`` drops the label, ``semi_transitive`` adds them where the uppermost is said and
    drops the label elsewhere. Where they are added, each ancestor of the label becomes at least as
    probable as the label is; a label that is dropped becomes as probable as the least of its
    ancestors was. A corrected label is then no more probable than what it is part of; all others,
    and those of a text with fewer than two said labels, may be. Without a label tree there is
    nothing to correct.
    """

    gives = "label sets"
    view: ClassVar = Words(max_length=100)

    def __init__(
        self,
        width: int,
        classes: int,
        tree: LabelTree,
        types: int = 55,
        window: int = 50,
        size: int = 8,
        label_size: int = 16,
        iterations: int = 3,
        correction: str = "transitive",
    ):
        super().__init__()
        if correction not in CORRECTIONS:
            raise ValueError(f"hmc_caps: correction={correction!r} is none of {', '.join(CORRECTIONS)}")
        self.correction = correction
        self.primary = nn.Conv1d(width, types * size, window)
        self.routing = DynamicRouting(types, size, classes, label_size, iterations)
        paths = [[above for above in path if above < classes] for path in tree.paths[:classes]]
        self.paths = {label: path for label, path in enumerate(paths) if path}

    def forward(self, words: WordBatch) -> Tensor:
        window = self.primary.kernel_size[0]
        vectors = lengthen(words.vectors * words.mask[..., None], window).transpose(1, 2)
        types = len(self.routing.transformations)
        children = squash(torch.relu(self.primary(vectors)).transpose(1, 2).unflatten(-1, (types, -1)))
        return torch.linalg.vector_norm(self.routing(present(children, words.lengths, window)), dim=-1)

    def set_losses(self, outputs: Tensor, labels: Tensor) -> Tensor:
        return set_margin_losses(outputs, labels)

    def set_probabilities(self, outputs: Tensor) -> Tensor:
        said, corrected = outputs > 0.5, outputs.clone()
        several = said.sum(1) > 1
        for label, path in self.paths.items():
            above, own = outputs[:, path], outputs[:, label]
            wrong = several & said[:, label] & ~said[:, path].all(1)
            adds = wrong
            if self.correction != "transitive":
                adds = wrong & said[:, path[-1]] & (self.correction == "semi_transitive")
            raised = torch.maximum(corrected[:, path], own[:, None])
            corrected[:, path] = torch.where(adds[:, None], raised, corrected[:, path])
            corrected[:, label] = torch.where(wrong & ~adds, above.amin(1), corrected[:, label])
        return corrected
