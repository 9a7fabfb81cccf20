"""An LSTM that deletes the words which tell nothing of the class."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from architectures.blocks.policy import Policy, reinforced, repeated
from harness.kinds import TextEncoder
from harness.objectives import Objective, Step, Supervised
from harness.registry import Recipe, TaskEntry, register
from harness.training.model import Model
from harness.views.words import WordBatch, Words

ALONE, ACTING = 1 / 6, 5 / 12
"""Shares of a training at which the classifier has learnt alone, and the policy alone."""


class DelayedReward(Objective):
    """The classifier learns alone from whole texts, then the policy alone, then both from texts of
    which the policy draws the words.

    Of each text ``draws`` are read. The reward of one is the logarithm of the probability of the
    right class plus ``gamma`` times the share of deleted words.
    """

    strategies = ("ddp",)

    def __init__(self, owner: InformationDistilledLSTM, model: Model, inner: Supervised):
        super().__init__(owner, model, inner)
        self.draws, self.gamma, self.rate = owner.draws, owner.gamma, owner.rate

    def losses(self, model: Model, step: Step) -> dict[str, Tensor]:
        policy, target = model.encoder.policy, step.batch.target
        if step.progress < ALONE:
            with policy.choosing("all"):
                return self.inner.losses(model, step)
        inputs = {field: repeated(batch, self.draws) for field, batch in model.read(step.batch.inputs).items()}
        with policy.choosing("drawn") as told:
            outputs = model.head(model.encoder, inputs)
        costs = model.head.row_losses(model.encoder, outputs, target.repeat(self.draws)).view(self.draws, -1)
        logs = sum(each.logs for each in told).view(self.draws, -1)
        kept = torch.stack([each.share for each in told]).mean(0).view(self.draws, -1)
        acting = self.rate * reinforced(logs, -costs + self.gamma * (1 - kept))
        known = costs.mean()
        loss = acting if step.progress < ACTING else acting + known
        return {"loss": loss, "task": known, "policy": acting, "kept": kept.mean()}


@register(
    "id_lstm",
    name="ID-LSTM",
    kind="text",
    paper="Zhang et al. 2018",
    source="M2.11[181]",
    year=2018,
    recipe=Recipe(optimizer="adam", lr=0.0005, batch_size=5),
    tiny={"hidden": 12, "dropout": 0.0, "draws": 2},
    deviations=(
        "The policy sees the states of today; the authors' program those of a delayed copy of both networks.",
        "Nothing is drawn against the policy; the authors' program turns one choice in twenty round.",
        "The classifier learns alone in a sixth of the training and the policy alone in the next quarter; theirs in two"
        " and five passes of twelve.",
        "Gamma is the paper's for two classes; there it grows with their number.",
        "The policy begins inclined to keep words.",
    ),
)
class InformationDistilledLSTM(TextEncoder):
    """An LSTM passes over the words that a policy deletes: its state stays as it was. A text is the
    state after the last word.

    The policy looks at the state before a word and at the word, [c; h; x]. The reward comes when
    the whole text is read (:class:`DelayedReward`). In evaluation a word is deleted where that is
    the likelier choice. A text without any word left is its last word but one. Dropout acts on the
    vectors of words and on the vector of the text. Slow: each text is read several times in a step,
    word by word.
    """

    view = Words()
    trained_by = DelayedReward
    cut = "rewards are constants to the policy, which sees states through which no gradient goes, as in the paper"

    def __init__(
        self,
        width: int,
        hidden: int = 300,
        dropout: float = 0.5,
        draws: int = 5,
        gamma: float = 0.1,
        rate: float = 0.1,
    ):
        super().__init__()
        self.draws, self.gamma, self.rate, self.size = draws, gamma, rate, hidden
        self.dropout = nn.Dropout(dropout)
        self.cell = nn.LSTMCell(width, hidden)
        self.policy = Policy(2 * hidden + width)

    @classmethod
    def unfit(cls, task: TaskEntry, hyperparameters: dict[str, Any]) -> str | None:
        if task.type not in ("classify", "match"):
            return f"is rewarded for the class of each text, and a task of type {task.type} has none"
        return super().unfit(task, hyperparameters)

    def forward(self, words: WordBatch) -> Tensor:
        vectors, mask = self.dropout(words.vectors), words.mask
        h = c = vectors.new_zeros(len(vectors), self.size)
        choices, logs = [], []
        for t in range(vectors.shape[1]):
            x = vectors[:, t]
            chosen, log = self.policy(torch.cat([c, h, x], dim=1))
            h, c = self.step(x, h, c, chosen & mask[:, t])
            choices.append(chosen)
            logs.append(log)
        yes = torch.stack(choices, 1)
        self.policy.tell(torch.stack(logs, 1), yes, mask)
        place = (words.lengths - 2).clamp(min=0)
        h, _ = self.step(vectors[torch.arange(len(vectors)), place], h, c, ~(yes & mask).any(1))
        return self.dropout(h)

    def step(self, x: Tensor, h: Tensor, c: Tensor, read: Tensor) -> tuple[Tensor, Tensor]:
        """States after a word: new where it is read (B,), the old ones elsewhere."""
        new = self.cell(x, (h, c))
        return torch.where(read[:, None], new[0], h), torch.where(read[:, None], new[1], c)
