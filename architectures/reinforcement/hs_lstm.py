"""An LSTM over words and one over the phrases whose ends a policy finds."""

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
    "hs_lstm",
    name="HS-LSTM",
    kind="text",
    paper="Zhang et al. 2018",
    source="M2.11[181]",
    year=2018,
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
        "The phrase-level LSTM reads forwards, as in the paper; in the authors' program the class is told by one that"
        " reads both ways.",
        "A batch of five texts is one step here. In the authors' program each of its texts is a step of Adam from the"
        " same weights, and the weights then go a tenth of the way, or all of it while the classifier learns alone.",
        "At first each phrase has three words; theirs are those of a parser.",
        "The end of the last word is no choice, of which the policy learns nothing; in theirs it is.",
        "The classifier learns alone in a sixth of the training and the policy alone in the next quarter; theirs in two"
        " and five passes of twelve.",
        "Rewards are read with dropout, in the pass that teaches the classifier; theirs in a pass without any.",
        "The policy begins inclined to end one phrase in three words.",
        "The classifier learns from all draws of a text, the authors' from one. The rate falls by a twentieth after"
        " each pass, theirs after 10,000 texts.",
    ),
)
class HierarchicallyStructuredLSTM(TextEncoder):
    """A word-level LSTM reads the words of a phrase and begins anew behind it; a phrase-level LSTM
    reads the last state of each phrase. A text is the state after its last phrase.

    After each word a policy looks at both levels' states, [c^p; h^p; c^w; h^w], and says whether
    the phrase ends there; that of the last word does. The reward comes when the whole text is read
    (:class:`~architectures.blocks.delayed_reward.DelayedReward`); with x phrases for each word its
    price is x + 0.1 / x, least where about three words in ten end a phrase. Until the policy
    learns, every third word ends one; afterwards, in evaluation, one ends where that is the
    likelier choice. Dropout acts on the vector of the text. Slow: each text is read several times
    in a step, word by word.
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
        self.words, self.phrases = nn.LSTMCell(width, hidden), nn.LSTMCell(hidden, hidden)
        self.policy = Policy(4 * hidden, start=-0.7, before=every(3))

    @classmethod
    def unfit(cls, task: TaskEntry, hyperparameters: dict[str, Any]) -> str | None:
        return rewarded_for_classes(task.type) or super().unfit(task, hyperparameters)

    def forward(self, words: WordBatch) -> Tensor:
        vectors, mask, lots = words.vectors, words.mask, self.policy.lots(words)
        zeros = vectors.new_zeros(len(vectors), self.size)
        inside: State = (zeros, zeros)
        phrases: State = (zeros, zeros)
        last = torch.arange(1, mask.shape[1] + 1, device=mask.device) == words.lengths[:, None]
        choices, logs = [], []
        for t in range(vectors.shape[1]):
            h, c = self.words(vectors[:, t], inside)
            chosen, log = self.policy(torch.cat([phrases[1], phrases[0], c, h], dim=1), lots[:, t])
            ends = chosen | last[:, t]
            phrases = where(ends & mask[:, t], self.phrases(h, phrases), phrases)
            inside = where(ends, (zeros, zeros), (h, c))
            choices.append(ends)
            logs.append(log)
        share = self.policy.tell(torch.stack(logs, 1), torch.stack(choices, 1), ~last, mask)
        self.tell_choice("phrases for each word", share)
        return self.dropout(phrases[0])

    @staticmethod
    def price(share: Tensor) -> Tensor:
        """Price of so many phrases for each word."""
        return share + 0.1 / share
