"""word2vec's continuous bag of words: the words around a word foretell it."""

from __future__ import annotations

import numpy as np

from architectures.blocks.negative_sampling import Examples, Places, WindowTrainer
from harness.registry import register


@register(
    "cbow",
    name="CBOW (word2vec)",
    kind="fit",
    paper="Mikolov et al. 2013",
    source="M-A.1[27]",
    year=2013,
    tiny={"dims": 24, "threshold": 0.01, "epochs": 4},
    deviations=(
        "Negative sampling, which came with the second paper; the first has hierarchical softmax.",
        "The window, shrunk at random, the rate and five passes are those of the authors' program; the paper reads four"
        " words on each side and begins at 0.025.",
        "Each word of a window takes the whole gradient of their mean, as in the authors' program.",
        "The sum of the gradients of 64 windows (fewer where words are few) is one step, where the authors' program"
        " makes a step for each window.",
        "The texts come in an order of chance, since those of a corpus may stand by source.",
    ),
)
class ContinuousBagOfWords(WindowTrainer):
    """The mean h of the vectors around a word w is an example: log s(u_w h) + sum log s(-u_n h)
    rises, n being drawn words (:class:`NegativeSampling`). A word that stands alone is none."""

    def __init__(
        self,
        seed: int = 0,
        dims: int = 300,
        window: int = 5,
        negatives: int = 5,
        threshold: float = 1e-5,
        rate: float = 0.05,
        epochs: int = 5,
        batch_size: int = 64,
    ):
        super().__init__(seed, dims, window, negatives, threshold, rate, epochs, batch_size)

    def examples(self, words: np.ndarray, places: Places) -> Examples:
        starts = np.flatnonzero(np.diff(places.centres, prepend=-1))
        return Examples(words[places.contexts], starts, words[places.centres[starts]])
