"""One wide layer of convolutions, over words or over characters."""

from __future__ import annotations

from torch import Tensor, nn

from architectures.blocks.convolutions import WindowMaxima
from harness.kinds import TextEncoder
from harness.registry import Recipe, register
from harness.views.characters import CharacterBatch, Characters
from harness.views.words import WordBatch


@register(
    "shallow_wide_cnn",
    name="Shallow-and-wide CNN, words",
    kind="text",
    paper="Le et al. 2018",
    source="M2.3[57]",
    year=2018,
    recipe=Recipe(optimizer="adam", lr=0.001, batch_size=64),
    tiny={"maps": 8},
    vectors_of_paper="word2vec",
    deviations=("Filters and softmax layer start as PyTorch's layers do.",),
)
class ShallowWideCNN(TextEncoder):
    """Convolutions over windows of several sizes, ReLU, the maximum of each map over time, dropout:
    (B, maps * windows)."""

    def __init__(self, width: int, maps: int = 100, windows: tuple = (3, 4, 5), dropout: float = 0.5):
        super().__init__()
        self.features = WindowMaxima(width, maps, windows)
        self.dropout = nn.Dropout(dropout)
        self.size = self.features.size

    def forward(self, words: WordBatch) -> Tensor:
        return self.dropout(self.features(words.vectors, words.mask))


@register(
    "shallow_wide_cnn_char",
    name="Shallow-and-wide CNN, characters",
    kind="text",
    paper="Le et al. 2018",
    source="M2.3[57]",
    year=2018,
    recipe=Recipe(optimizer="adam", lr=0.001, batch_size=64),
    tiny={"maps": 8},
    deviations=(
        "Filters and softmax layer start as PyTorch's layers do.",
        "Texts below 1,014 characters are not lengthened to them: windows lie inside the text.",
        "The alphabet is that of Zhang et al. 2015.",
    ),
)
class ShallowWideCharacterCNN(ShallowWideCNN):
    """As :class:`ShallowWideCNN`, over the first ``longest`` characters, one-hot.

    Its windows are as long as three to five words. Slow, since 700 filters of each size stand at
    every character.
    """

    view = Characters(length=None, reverse=False)

    def __init__(
        self, width: int, maps: int = 700, windows: tuple = (15, 20, 25), dropout: float = 0.5, longest: int = 1014
    ):
        super().__init__(width, maps, windows, dropout)
        self.longest = longest

    def forward(self, characters: CharacterBatch) -> Tensor:
        vectors, mask = characters.vectors[:, : self.longest], characters.mask[:, : self.longest]
        return self.dropout(self.features(vectors, mask))
