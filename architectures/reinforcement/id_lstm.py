"""An LSTM that deletes the words which tell nothing of the class."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from architectures.blocks.delayed_reward import DelayedReward, rewarded_for_classes
from architectures.blocks.policy import Policy, State, every, where
from harness.kinds import TextEncoder
from harness.registry import Recipe, TaskEntry, register
from harness.views.words import WordBatch, Words


@register(
    "id_lstm",
    name="ID-LSTM",
    kind="text",
    paper="Zhang et al. 2018",
    source="M2.11[181]",
    year=2018,
    version=3,
    recipe=Recipe(
        optimizer="adam",
        lr=0.0005,
        batch_size=5,
        epochs=12,
        patience=12,
        lr_schedule="step",
        factor=0.95,
        step_start=1,
        step_epochs=1,
    ),
    vectors_of_paper="GloVe",
    tiny={"hidden": 12, "dropout": 0.0, "draws": 2},
    deviations=(
        "A batch of five texts is one step here. In the authors' program each of its texts is a step of Adam from the"
        " same weights, and the weights then go a tenth of the way, or all of it while the classifier learns alone.",
        "Nothing is drawn against the policy; the authors' program turns one choice in twenty round.",
        "The classifier learns alone in a sixth of the training and the policy alone in the next quarter; theirs in two"
        " and five passes of twelve.",
        "Rewards are read with dropout, in the pass that teaches the classifier; theirs in a pass without any.",
        "The policy begins inclined to keep words.",
        "Of a text without any word left the policy learns from the choices that it made; in the authors' program the"
        " word that is kept by force counts as chosen.",
        "The price of reading is 0.05 times the number of classes times the share of words that are read, as in the"
        " paper; in the authors' program 0.15 times the square of the share.",
        "The classifier learns from all draws of a text, the authors' from one. The rate falls by a twentieth after"
        " each pass, theirs after 10,000 texts.",
    ),
)
class InformationDistilledLSTM(TextEncoder):
    """An LSTM passes over the words that a policy deletes: its state stays as it was. A text is the
    state after the last word.

    The policy looks at the state before a word and at the word, [c; h; x]. The reward comes when
    the whole text is read (:class:`~architectures.blocks.delayed_reward.DelayedReward`), and each
    word that is read has its price. Until the policy learns, all words are read; afterwards, in
    evaluation, a word is deleted where that is the likelier choice. A text without any word left is
    its last word but one, which has its price too. Dropout acts on the vector of the text. Slow:
    each text is read several times in a step, word by word.
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
        gamma: float = 0.05,
        rate: float = 0.1,
    ):
        super().__init__()
        self.draws, self.gamma, self.rate, self.size = draws, gamma, rate, hidden
        self.dropout = nn.Dropout(dropout)
        self.cell = nn.LSTMCell(width, hidden)
        self.policy = Policy(2 * hidden + width, start=2.0, before=every(1))

    @classmethod
    def unfit(cls, task: TaskEntry, hyperparameters: dict[str, Any]) -> str | None:
        return rewarded_for_classes(task.type) or super().unfit(task, hyperparameters)

    def forward(self, words: WordBatch) -> Tensor:
        vectors, mask, lots = words.vectors, words.mask, self.policy.lots(words)
        zeros = vectors.new_zeros(len(vectors), self.size)
        state: State = (zeros, zeros)
        choices, logs = [], []
        for t in range(vectors.shape[1]):
            x = vectors[:, t]
            chosen, log = self.policy(torch.cat([state[1], state[0], x], dim=1), lots[:, t])
            state = where(chosen & mask[:, t], self.cell(x, state), state)
            choices.append(chosen)
            logs.append(log)
        yes = torch.stack(choices, 1)
        none = ~(yes & mask).any(1)
        place = (words.lengths - 2).clamp(min=0)
        yes = yes | (none[:, None] & (torch.arange(mask.shape[1], device=mask.device) == place[:, None]))
        self.tell_choice("share of words read", self.policy.tell(torch.stack(logs, 1), yes, mask, mask))
        forced = self.cell(vectors[torch.arange(len(vectors)), place], state)
        return self.dropout(where(none, forced, state)[0])

    @staticmethod
    def price(share: Tensor) -> Tensor:
        """Price of a share of words that were read."""
        return share
