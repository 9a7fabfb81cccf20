"""Feed-forward tagger over a window of words."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from harness.kinds import Tagger
from harness.registry import Recipe, register
from harness.views.words import WordBatch


@register(
    "window_mlp",
    name="Feed-forward window tagger",
    kind="tag",
    paper="Russell & Norvig 2020, Fig. 25.3",
    source="R25.1",
    year=2020,
    recipe=Recipe(optimizer="adam", lr=0.001, batch_size=32, epochs=20, vector_dims=100),
    tiny={"hidden": 24},
    deviations=(
        (
            "Words seen twice in training are known, as for every architecture here; the textbook asks for more than"
            " five times."
        ),
        "The textbook gives no sizes: 100 units and Adam are ours.",
    ),
)
class WindowTagger(Tagger):
    """Vectors of a word and its neighbours, joined; two sigmoid layers; a score per label. No layer
    has a bias.

    The first layer has its own columns for each slot of the window, so that it knows which
    neighbour is which. Two trained vectors stand in the slots before and behind the sentence.
    """

    def __init__(self, width: int, labels: int, window: int = 5, hidden: int = 100):
        super().__init__()
        if window % 2 == 0:
            raise ValueError(f"window={window}: an odd number is expected, so that one word is in the middle")
        self.window = window
        self.before, self.behind = (nn.Parameter(torch.empty(width).uniform_(-0.25, 0.25)) for _ in range(2))
        self.layers = nn.Sequential(
            nn.Linear(window * width, hidden, bias=False),
            nn.Sigmoid(),
            nn.Linear(hidden, hidden, bias=False),
            nn.Sigmoid(),
            nn.Linear(hidden, labels, bias=False),
        )

    def forward(self, words: WordBatch) -> Tensor:
        return self.layers(self.windows(words.vectors, words.mask))

    def windows(self, vectors: Tensor, mask: Tensor) -> Tensor:
        """The vectors (B, T, D) around each position, left to right: (B, T, window * D)."""
        reach, batch = self.window // 2, len(vectors)
        inside = torch.where(mask[..., None], vectors, self.behind)
        left, right = (edge.expand(batch, reach, -1) for edge in (self.before, self.behind))
        joined = torch.cat([left, inside, right], dim=1)
        return joined.unfold(1, self.window, 1).transpose(2, 3).flatten(2)
