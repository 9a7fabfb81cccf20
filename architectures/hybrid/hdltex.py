"""Hierarchical deep learning for text: a model of the parents of the classes, and below each parent
a model of its own that knows nothing but the children."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.pooling import pool_by
from architectures.blocks.recurrent import Recurrent
from architectures.blocks.windows import lengthen, windows_inside
from harness.kinds import TextEncoder, pool
from harness.label_tree import LabelTree
from harness.registry import Recipe, register
from harness.views.words import WordBatch

FAR = 50.0
"""Natural logarithm by which classes below another than the predicted parent are less probable."""


class RecurrentModel(nn.Module):
    """Scores (B, classes) from the last state of a GRU of ``hidden`` units."""

    def __init__(self, width: int, classes: int, hidden: int, dropout: float):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.recurrence = Recurrent("gru", width, hidden)
        self.output = nn.Linear(hidden, classes)

    def forward(self, words: WordBatch) -> Tensor:
        states = self.recurrence(self.dropout(words.vectors), words.mask)
        return self.output(pool(states, words.mask, "last"))


class ConvolutionalModel(nn.Module):
    """Scores (B, classes) from three convolutions of ``maps`` over ``window`` positions with ReLU,
    the first two followed by the maximum of every ``size`` positions, the last one by that of all,
    and a layer of ``hidden`` units with ReLU."""

    def __init__(self, width: int, classes: int, maps: int, window: int, size: int, hidden: int):
        super().__init__()
        self.sizes = (size, size, None)
        self.convolutions = nn.ModuleList(nn.Conv1d(each, maps, window) for each in (width, maps, maps))
        self.hidden = nn.Linear(maps, hidden)
        self.output = nn.Linear(hidden, classes)

    def forward(self, words: WordBatch) -> Tensor:
        states, lengths = words.vectors * words.mask[..., None], words.lengths
        for convolution, size in zip(self.convolutions, self.sizes, strict=True):
            window = convolution.kernel_size[0]
            states = torch.relu(convolution(lengthen(states, window).mT)).mT
            states, lengths = pool_by(states, windows_inside(lengths, window), size or states.shape[1])
        return self.output(torch.relu(self.hidden(states.squeeze(1))))


@register(
    "hdltex",
    name="HDLTex, recurrent",
    kind="text",
    paper="Kowsari et al. 2017",
    source="M2.9[136]",
    year=2017,
    recipe=Recipe(optimizer="rmsprop", lr=0.001, alpha=0.9, batch_size=64, vector_dims=100),
    tiny={"hidden": 12, "dropout": 0.0},
    vectors_of_paper="GloVe",
    deviations=(
        "The models share one table of word vectors; each of the authors' has its own.",
        (
            "All models are trained at once, each on its own texts, for the same number of passes; a parent with one"
            " child has none."
        ),
        "PyTorch's GRU, and dropout on its input alone: theirs also drops parts of the state at each step.",
    ),
)
class HDLTex(TextEncoder):
    """Log-probabilities (B, classes): of the class's parent, by one model, plus of the class among
    its siblings, by the model of that parent, a GRU each.

    A class is a child of the label above it in the task's tree, or stands alone. In training the
    loss of a text is that of its parent and of its class among the siblings, so that a child model
    learns from the texts of its own parent alone. Otherwise the PREDICTED parent decides which
    child model is asked: a class below another parent is less probable by 50 nats than its
    log-probability says, however sure its child model is.
    """

    needs_label_tree: ClassVar[bool] = True

    def __init__(self, width: int, classes: int, tree: LabelTree, hidden: int = 100, dropout: float = 0.2):
        super().__init__()
        self.build(tree, lambda outputs: RecurrentModel(width, outputs, hidden, dropout))

    def build(self, tree: LabelTree, model: Callable[[int], nn.Module]) -> None:
        """Make the models: ``model`` gives one for a number of outputs."""
        parents = [path[0] if path else label for label, path in enumerate(tree.paths[: len(tree.labels)])]
        names = sorted(set(parents))
        self.register_buffer("parents", torch.tensor([names.index(each) for each in parents]))
        self.families = [[c for c, parent in enumerate(parents) if parent == name] for name in names]
        self.above = model(len(names))
        self.below = nn.ModuleDict({str(p): model(len(c)) for p, c in enumerate(self.families) if len(c) > 1})

    def forward(self, words: WordBatch) -> Tensor:
        above = self.above(words).log_softmax(1)
        scores = above[:, self.parents]
        for parent, model in self.below.items():
            family = self.families[int(parent)]
            among = F.log_softmax(model(words), dim=1)
            scores = scores.index_add(1, torch.tensor(family, device=scores.device), among)
        if self.training:
            return scores
        return scores - FAR * (self.parents != above.argmax(1, keepdim=True))

    def objective(self, scores: Tensor, labels: Tensor) -> Tensor:
        return F.nll_loss(scores, labels)


@register(
    "hdltex_cnn",
    name="HDLTex, convolutional",
    kind="text",
    paper="Kowsari et al. 2017",
    source="M2.9[136]",
    year=2017,
    recipe=Recipe(optimizer="rmsprop", lr=0.001, alpha=0.9, batch_size=64, vector_dims=100),
    tiny={"maps": 12, "hidden": 12},
    vectors_of_paper="GloVe",
    deviations=(
        "The models share one table of word vectors; each of the authors' has its own.",
        (
            "All models are trained at once, each on its own texts, for the same number of passes; a parent with one"
            " child has none."
        ),
        "Windows and maxima lie inside the text, of which the last maximum may have fewer positions.",
    ),
)
class HDLTexCNN(HDLTex):
    """:class:`HDLTex` with a convolutional network for each of its models, the smaller of the two
    that the authors' code has."""

    def __init__(
        self,
        width: int,
        classes: int,
        tree: LabelTree,
        maps: int = 256,
        window: int = 5,
        pooled: int = 5,
        hidden: int = 256,
    ):
        super(HDLTex, self).__init__()
        self.build(tree, lambda outputs: ConvolutionalModel(width, outputs, maps, window, pooled, hidden))
