"""The neural variational document model."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from architectures.blocks.contextual_words import KeptStill
from architectures.blocks.learnt_features import LearntFeatures
from architectures.blocks.word_bags import BagBound, ContentWords, counted, word_counts
from harness.registry import Recipe, register
from harness.views.subwords import SubwordBatch


class Inference(KeptStill):
    """Counts of words (B, width) to the second of two ReLU layers, (B, hidden), and the posterior's
    mean above it (B, latent)."""

    def __init__(self, width: int, hidden: int, latent: int):
        super().__init__()
        self.hidden = nn.Sequential(nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        self.mean = nn.Linear(hidden, latent)

    def forward(self, counts: Tensor) -> tuple[Tensor, Tensor]:
        hidden = self.hidden(counts)
        return hidden, self.mean(hidden)


class DocumentBound(BagBound):
    """Words by the softmax of scores that are linear in the latent variable."""

    def __init__(self, encoder: Any):
        super().__init__(encoder, encoder.network.mean.in_features, encoder.size)
        self.output = nn.Linear(encoder.size, encoder.view.width)

    def decoded(self, latent: Tensor) -> Tensor:
        return self.output(latent)


@register(
    "nvdm",
    name="Neural variational document model (NVDM)",
    kind="plm",
    paper="Miao et al. 2016",
    source="M2.11[166]",
    year=2016,
    version=2,
    parents={"weights": "nvdm@text_mix"},
    recipe=Recipe(optimizer="adam", lr=0.001, batch_size=64, epochs=20, patience=3),
    recipes={"text": Recipe(optimizer="adam", lr=0.001, batch_size=64, epochs=10, patience=10)},
    tiny={"hidden": 64, "latent": 16, "vocabulary": 1000},
    deviations=(
        "It learns from the text mix, of whose texts it reads 400 words at a time, and not from the task's documents.",
        (
            "The 2,000 words are the commonest without stop words, as they are written; in the paper's corpora they are"
            " stems."
        ),
        "Encoder and decoder are trained together; the authors' code trains them by turns, ten passes each.",
        "The rate is 0.001 over ten passes, our choice; the authors' is 0.00005 over many more.",
        "The loss is a mean over the words of a batch, the paper's one over its documents.",
        "Two hidden layers have ReLU, as in the paper; the authors' program has one, with tanh unless asked.",
        "The bound is of one draw in evaluation too, as in the authors' program, the paper's of 20; its perplexity is"
        " that of all words together, the paper's that of the mean over documents.",
        "A linear layer classifies the posterior's mean, which stays as it was learnt; the paper classifies nothing.",
    ),
)
class NeuralVariationalDocumentModel(LearntFeatures):
    """A text's bag of words is told by a latent variable h, which a network infers from the bag
    (Miao et al. 2016, section 3): q(h | x) = N(mu, sigma^2), mu and log sigma linear in
    ReLU(W2 ReLU(W1 x)), and p(w | h) = softmax(R h + b).

    Both learn by the bound sum_w log p(w | h) - KL(q || N(0, I)), h = mu + sigma e
    (:class:`~architectures.blocks.word_bags.BagBound`). The vector of a text is mu. Fast.
    """

    learns = DocumentBound
    view = ContentWords()

    def __init__(
        self,
        width: int,
        view: ContentWords,
        hidden: int = 500,
        latent: int = 50,
        tuned: bool = False,
        vocabulary: int = 2000,
        max_length: int = 402,
    ):
        super().__init__(view, Inference(width, hidden, latent), latent, tuned)

    def inferred(self, counts: Tensor) -> tuple[Tensor, Tensor]:
        return self.network(counts)

    def vector(self, pieces: SubwordBatch) -> Tensor:
        return self.inferred(word_counts(pieces, self.view.width, counted(pieces)))[1]
