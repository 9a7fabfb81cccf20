"""word2vec's skip-gram: a word foretells each of the words around it."""

from __future__ import annotations

from architectures.blocks.negative_sampling import WindowTrainer
from harness.registry import register


@register(
    "skipgram",
    name="Skip-gram (word2vec)",
    kind="fit",
    paper="Mikolov et al. 2013",
    source="M-A.1[3]",
    year=2013,
    version=2,
    tiny={"dims": 24, "threshold": 0.01, "rate": 0.1, "epochs": 2},
    deviations=(
        "Five passes, as in the authors' program; the first paper makes three, and one over larger texts.",
        "A frequent word stays with the paper's probability; the authors' program adds the ratio under the root to it.",
        "The texts come in an order of chance, since those of a corpus may stand by source.",
        "No phrases are joined to one word.",
    ),
)
class SkipGram(WindowTrainer):
    """Each pair of a word w and a word c that stands near it is an example: log s(u_c v_w) + sum
    log s(-u_n v_w) rises by a step, n being drawn words."""

    def __init__(
        self,
        seed: int = 0,
        dims: int = 300,
        window: int = 5,
        negatives: int = 5,
        threshold: float = 1e-5,
        rate: float = 0.025,
        epochs: int = 5,
        threads: int = 1,
    ):
        super().__init__(seed, dims, window, negatives, threshold, rate, epochs, threads)
