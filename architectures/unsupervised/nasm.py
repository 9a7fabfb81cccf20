"""The neural answer selection model."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.recurrent import Recurrent
from architectures.blocks.variational import Gaussian
from harness.kinds import PairEncoder
from harness.layers.attention import masked_softmax
from harness.layers.pooling import pool
from harness.objectives import Objective, Step
from harness.registry import Recipe, register
from harness.training.model import Model
from harness.views.words import WordBatch


class GaussianNetwork(nn.Module):
    """Two tanh layers, as wide as what is given (B, width), and above them mean and logarithm of
    the deviation of a latent variable (B, latent)."""

    def __init__(self, width: int, latent: int):
        super().__init__()
        self.below = nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.mean, self.log_deviation = nn.Linear(width, latent), nn.Linear(width, latent)

    def forward(self, given: Tensor) -> Gaussian:
        hidden = self.below(given)
        return Gaussian(self.mean(hidden), self.log_deviation(hidden))


class AnswerBound(Objective):
    """The surprise of each label by a draw of the posterior of its pair, plus the divergence of
    the posterior from the prior of its question.

    The posterior reads the last states of question and answer, and a vector of the label. It is of
    training alone.
    """

    def __init__(self, owner: Any, model: Model | None, inner: Objective | None = None):
        super().__init__(owner, model, inner)
        self.labels = nn.Embedding(2, owner.size)
        self.posterior = GaussianNetwork(3 * owner.size, owner.latent)

    def losses(self, model: Model, step: Step) -> dict[str, Tensor]:
        encoder, inputs = model.encoder, model.read(step.batch.inputs)
        labels, _ = step.batch.target
        question, states, answer = encoder.states(inputs["first"], inputs["second"])
        posterior = self.posterior(torch.cat([question, answer, self.labels(labels)], 1))
        latent = posterior.at(torch.randn_like(posterior.mean))
        scores = encoder.scored(question, states, answer, inputs["second"].mask, latent)
        surprise = F.binary_cross_entropy_with_logits(scores, labels.to(scores.dtype))
        divergence = posterior.divergence(encoder.prior(question)).mean()
        return {"loss": surprise + divergence, "task": surprise, "divergence": divergence}


@register(
    "nasm",
    name="Neural answer selection model (NASM)",
    kind="pair",
    paper="Miao et al. 2016",
    source="M2.11[166] T4",
    year=2016,
    version=2,
    recipe=Recipe(optimizer="adam", lr=0.001, batch_size=64, vector_dims=50, dropout=0.4),
    tiny={"hidden": 16, "latent": 8},
    vectors_of_paper="word2vec",
    deviations=(
        "The rate, the batch and the size of the latent variable are our choice; no cross-validated regression on the"
        " overlap of words stands above the score.",
        "In evaluation the latent variable is the mean of its prior, once; the paper draws 20 times.",
    ),
)
class NeuralAnswerSelection(PairEncoder):
    """A latent variable h, which says what the question asks for, drives the attention over the
    answer (Miao et al. 2016, section 4): a score (B,), the logit of p(y = 1 | q, a).

    Two LSTMs of ``layers`` layers read question and answer. p(h | q) = N(mu, sigma^2), by a network
    above the last state s_q. Each state of the answer weighs
    softmax_n(w . tanh(W_h h + W_s s_a(n))), c is their weighted sum,
    z_a = tanh(W_a c + W_n s_a(last)), and the score is s_q M z_a + b. It learns by the bound
    log p(y | h) - KL(q(h | q, a, y) || p(h | q)) (:class:`AnswerBound`).
    """

    scores = True
    trained_by = AnswerBound

    def __init__(self, width: int, hidden: int = 50, latent: int = 50, layers: int = 3):
        super().__init__()
        self.size, self.latent = hidden, latent
        self.question, self.answer = (Recurrent("lstm", width, hidden, layers) for _ in range(2))
        self.prior = GaussianNetwork(hidden, latent)
        self.asked, self.offered = nn.Linear(latent, hidden), nn.Linear(hidden, hidden, bias=False)
        self.weight = nn.Linear(hidden, 1, bias=False)
        self.context, self.last = nn.Linear(hidden, hidden), nn.Linear(hidden, hidden, bias=False)
        self.match = nn.Bilinear(hidden, hidden, 1)

    def states(self, first: WordBatch, second: WordBatch) -> tuple[Tensor, Tensor, Tensor]:
        """The last state of the question (B, hidden), the states (B, T, hidden) of the answer, and
        its last one."""
        question = pool(self.question(first.vectors, first.mask), first.mask, "last")
        states = self.answer(second.vectors, second.mask)
        return question, states, pool(states, second.mask, "last")

    def scored(self, question: Tensor, states: Tensor, answer: Tensor, mask: Tensor, latent: Tensor) -> Tensor:
        """Scores (B,) by the latent variable (B, latent)."""
        strengths = self.weight(torch.tanh(self.asked(latent)[:, None] + self.offered(states))).squeeze(-1)
        context = (masked_softmax(strengths, mask)[..., None] * states).sum(1)
        read = torch.tanh(self.context(context) + self.last(answer))
        return self.match(question, read).squeeze(-1)

    def forward(self, first: WordBatch, second: WordBatch) -> Tensor:
        question, states, answer = self.states(first, second)
        return self.scored(question, states, answer, second.mask, self.prior(question).mean)
