"""word2vec's continuous bag of words: the words around a word foretell it."""

from __future__ import annotations

from architectures.blocks.negative_sampling import WindowTrainer
from harness.registry import register


@register(
    "cbow",
    name="CBOW (word2vec)",
    kind="fit",
    paper="Mikolov et al. 2013",
    source="M-A.1[27]",
    year=2013,
    version=2,
    tiny={"dims": 24, "threshold": 0.01, "epochs": 4},
    deviations=(
        "Negative sampling, which came with the second paper; the first has hierarchical softmax.",
        "The window, shrunk at random, the rate and five passes are those of the authors' program; the paper reads four"
        " words on each side and begins at 0.025.",
        "A frequent word stays with the probability of the second paper, by its threshold of 0.00001; the authors'"
        " program adds the ratio under the root to it, and has 0.001 unless asked.",
        "Each word of a window takes the whole gradient of their mean, as in the authors' program.",
        "The texts come in an order of chance, since those of a corpus may stand by source.",
    ),
)
class ContinuousBagOfWords(WindowTrainer):
    """The mean h of the vectors around a word w is an example: log s(u_w h) + sum log s(-u_n h)
    rises by a step, n being drawn words. A word that stands alone is none."""

    whole = True

    def __init__(
        self,
        seed: int = 0,
        dims: int = 300,
        window: int = 5,
        negatives: int = 5,
        threshold: float = 1e-5,
        rate: float = 0.05,
        epochs: int = 5,
        threads: int = 1,
    ):
        super().__init__(seed, dims, window, negatives, threshold, rate, epochs, threads)
