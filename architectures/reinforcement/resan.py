"""Self-attention over the few words that two samplers choose."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.attention.disan import DirectionalAttention, Source2Token
from architectures.blocks.delayed_reward import DelayedReward, rewarded_for_classes
from architectures.blocks.policy import Chooser, Told, chosen_by, every
from harness.kinds import TextEncoder
from harness.objectives import Supervised
from harness.registry import Recipe, TaskEntry, register
from harness.training.model import Model
from harness.views.words import WordBatch, Words


class SparseReward(DelayedReward):
    """The delayed reward with a price that does not grow with the number of classes."""

    def __init__(self, owner: Any, model: Model, inner: Supervised):
        super().__init__(owner, model, inner)
        self.gamma = owner.gamma / len(model.head.target.labels)


class Samplers(Chooser):
    """Two choices for each word by what it is and what the text is: (B, T, width) -> (B, T, 2), the
    first that the word is a head, which attends, the second that it is a dependent, attended to.

    p = sigmoid(w . elu(W [x; m; x * m] + b) + b'), m the mean of the text's vectors, with weights
    of its own for either choice. No gradient goes to the vectors.
    """

    def __init__(self, width: int, hidden: int, dropout: float):
        super().__init__(before=every(1))
        self.heads, self.dependents = (
            nn.Sequential(
                nn.Dropout(dropout), nn.Linear(3 * width, hidden), nn.ELU(), nn.Dropout(dropout), nn.Linear(hidden, 1)
            )
            for _ in range(2)
        )

    def forward(self, words: WordBatch) -> tuple[Tensor, Tensor]:
        x, mask = words.vectors.detach(), words.mask[..., None]
        mean = ((x * mask).sum(1, keepdim=True) / mask.sum(1, keepdim=True)).expand_as(x)
        seen = torch.cat([x, mean, x * mean], dim=-1)
        # Each word has two lots, one behind the other, so that they do not depend on padding.
        lots = self.lots_of(*(each.repeat_interleave(2, dim=1) for each in (words.ids, words.mask)))
        return chosen_by(torch.cat([self.heads(seen), self.dependents(seen)], dim=-1), lots.unflatten(1, (-1, 2)))

    def tell(self, logs: Tensor, yes: Tensor, mask: Tensor) -> Tensor:
        """The share (B,) of pairs of words that are chosen, told with the logarithms (B, T, 2) of
        choices to who listens."""
        share = ((yes & mask[..., None]).sum(1) / mask.sum(1, keepdim=True)).prod(1)
        if self.told is not None:
            self.told.append(Told((logs * mask[..., None]).sum((1, 2)), share))
        return share


class ReinforcedAttention(DirectionalAttention):
    """Attention of the heads to the dependents on one side of them; a word that is no head gets the
    mean of all other words, on either side: (B, T, width) -> (B, T, hidden)."""

    def forward(self, vectors: Tensor, mask: Tensor, heads: Tensor, dependents: Tensor) -> Tensor:  # type: ignore[override]
        tokens = F.elu(self.map(self.dropout(vectors)))
        known = tokens * mask[..., None]
        others = (known.sum(1, keepdim=True) - known) / (mask.sum(1) - 1).clamp(min=1)[:, None, None]
        attended = self.attention(tokens, dependents & mask)
        return self.fused(tokens, torch.where(heads[..., None], attended, others))


@register(
    "resan",
    name="ReSAN",
    kind="text",
    paper="Shen et al. 2018",
    source="M2.11[177] T5",
    year=2018,
    recipe=Recipe(
        optimizer="adadelta",
        lr=0.5,
        rho=0.95,
        eps=1e-8,
        batch_size=128,
        weight_decay=0.00005,
        decay_exempt=("biases", "vectors"),
    ),
    tiny={"hidden": 12, "dropout": 0.0, "draws": 2},
    vectors_of_paper="GloVe",
    deviations=(
        "In evaluation a word is chosen where that is the likelier choice; the authors' program draws there too.",
        "A text is drawn several times and the mean of its rewards taken off; theirs is drawn once, with no baseline.",
        "The network learns alone in a sixth of the training and the samplers alone in the next quarter; the samplers"
        " of the authors learn alone for 5,000 steps beside a network that is trained before.",
        "Of a pair, both texts' choices have one reward, with the mean of their prices; theirs have one each.",
        "Matching joins [u, v, |u-v|, u*v] under one layer; the paper takes the plain difference, and the authors'"
        " program has a layer and a highway layer below the softmax.",
        "Weights are those of the last step; the authors keep a moving average of them beside.",
        "Vectors of words are trained, and not by rewards; the authors' stay as they are.",
    ),
)
class ReinforcedSelfAttention(TextEncoder):
    """Attention with a weight for each feature, as `disan` has it, of the words that one sampler
    chooses to those that another one does; a text's vector is their source2token attention.

    The reward of a draw comes when the class is told
    (:class:`~architectures.blocks.delayed_reward.DelayedReward`): the logarithm of the probability
    of the right one minus ``gamma`` times the share of heads times that of dependents. Until the
    samplers learn, all words are chosen; afterwards, in evaluation, those for which that is the
    likelier choice. Slow, as `disan` is, and each text is read several times in a step.
    """

    view = Words()
    trained_by = SparseReward
    cut = "rewards are constants to the samplers, which see vectors through which no gradient goes, as in the paper"

    def __init__(
        self,
        width: int,
        hidden: int = 300,
        scale: float = 5.0,
        dropout: float = 0.35,
        draws: int = 5,
        gamma: float = 0.02,
        rate: float = 1.0,
    ):
        super().__init__()
        self.draws, self.gamma, self.rate, self.size = draws, gamma, rate, 2 * hidden
        self.policy = Samplers(width, hidden, dropout)
        self.forwards = ReinforcedAttention(width, hidden, True, scale, dropout)
        self.backwards = ReinforcedAttention(width, hidden, False, scale, dropout)
        self.source2token = Source2Token(self.size, dropout)

    @classmethod
    def unfit(cls, task: TaskEntry, hyperparameters: dict[str, Any]) -> str | None:
        return rewarded_for_classes(task.type) or super().unfit(task, hyperparameters)

    def forward(self, words: WordBatch) -> Tensor:
        vectors, mask = words.vectors, words.mask
        yes, logs = self.policy(words)
        self.tell_choice("share of pairs chosen", self.policy.tell(logs, yes, mask))
        heads, dependents = yes.unbind(-1)
        states = [each(vectors, mask, heads, dependents) for each in (self.forwards, self.backwards)]
        return self.source2token(torch.cat(states, dim=-1), mask)

    @staticmethod
    def price(share: Tensor) -> Tensor:
        """Price of a share of pairs."""
        return share
