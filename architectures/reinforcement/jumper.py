"""A reader that decides for a class as soon as it has read enough."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from architectures.blocks.convolutions import WindowMaxima
from architectures.blocks.policy import draws_of, reinforced
from architectures.blocks.recurrent import Recurrent
from harness.kinds import TextEncoder
from harness.objectives import Objective, Step, Supervised
from harness.registry import Recipe, register
from harness.training.model import Model
from harness.views.base import Text
from harness.views.sentences import SentenceBatch, Sentences

CUTS = frozenset(",;:")
ALONE = 1 / 4
"""Share of a training at which the classes have been learnt alone."""


class Clauses(Sentences):
    """Sentences, cut behind commas, semicolons and colons too."""

    def read(self, text: Text) -> list[list[str]]:
        clauses: list[list[str]] = []
        for sentence in super().read(text):
            clauses.append([])
            for place, word in enumerate(sentence, start=1):
                clauses[-1].append(word)
                if word in CUTS and place < len(sentence):
                    clauses.append([])
        return clauses[: self.max_sentences]


class DecisionReward(Objective):
    """The classes are learnt alone, by the cross-entropy after each clause; then the policy
    gradient of decisions that are drawn clause by clause (REINFORCE) moves all weights.

    The reward of a draw is 1 where the class is right and -1 where it is not, plus ``early`` times
    the same for each clause from the decision on, over the number of clauses. From rewards alone it
    would learn to see one class, and to tell the other at the end of the text.
    """

    strategies = ("ddp",)
    last_phase = ALONE

    def __init__(self, owner: Jumper, model: Model, inner: Supervised):
        super().__init__(owner, model, inner)
        self.draws, self.early = owner.draws, owner.early

    def losses(self, model: Model, step: Step) -> dict[str, Tensor]:
        document, target = model.read(step.batch.inputs)["text"], step.batch.target
        scores, mask = model.encoder.symbols(document), document.sentence_mask
        count = mask.sum(-1)
        if step.progress < ALONE:
            surprises = -scores[..., 1:].log_softmax(-1)[torch.arange(len(target)), :, target]
            return {"loss": ((surprises * mask).sum(-1) / count).mean()}
        logs = scores.log_softmax(-1)
        lots = draws_of(document.ids, document.mask, (step.seed, step.passes), self.draws)
        drawn = (logs.exp().cumsum(-1)[..., :-1] <= lots[..., None]).sum(-1)  # (draws, B, S)
        decided = ((drawn > 0) & mask).cumsum(-1)
        read = mask & (decided.cumsum(-1) <= 1)  # up to the first decision; what is drawn behind it never was
        told = read.sum(-1)
        symbol = drawn.gather(-1, told[..., None] - 1).squeeze(-1)
        right = torch.where(symbol == target + 1, 1.0, -1.0)
        rewards = right * (1 + self.early * (count - told + 1) / count)
        said = logs.expand(self.draws, -1, -1, -1).gather(-1, drawn[..., None]).squeeze(-1)
        loss = reinforced((said * read).sum(-1), rewards)
        return {"loss": loss, "right": (right > 0).double().mean(), "read": (told / count).mean()}


@register(
    "jumper",
    name="Jumper",
    kind="text",
    paper="Liu et al. 2020",
    source="M2.11[178]",
    year=2020,
    version=3,
    recipe=Recipe(optimizer="adadelta", lr=0.1, batch_size=50, epochs=400, patience=80),
    tiny={"maps": 8, "hidden": 12, "dropout": 0.0},
    deviations=(
        "In the authors' program nothing said at the end is an error, and the last answer alone is rewarded; here a"
        " class must be told after the last clause, and each clause from the decision on is rewarded, or punished, as"
        " the whole text is.",
        "The authors' program learns from the draws that are better than the mean of a text's five, each of them a"
        " reading with dropout of its own, and of its choices one in ten is even; here all five are of one reading and"
        " by the policy, and all teach.",
        "The authors' program begins with rewards; here the classes are learnt alone in a quarter of the training, and"
        " the policy begins inclined to read on.",
        "The symbol that was told is not fed back: with one question it is 'nothing' until the only jump.",
        "The two matrices of the symbol's layer are of any norm; the authors' program scales each of them back to a"
        " norm of 3 after each step.",
    ),
)
class Jumper(TextEncoder):
    """Clause after clause is read, and after each of them nothing is said, or a class, once and for
    all: what comes behind this jump is not read.

    Clauses x_t (sentences or parts of them between commas) are the maxima of a convolution, and a
    GRU over them is the controller. Its state h_t and the clause itself, both with dropout, are the
    evidence for the next symbol: softmax(V x_t + W h_t + b) over nothing and the classes. In
    training symbols are drawn, several times from one reading (:class:`DecisionReward`); in
    evaluation the likeliest is told. After the last clause it is a class. The answer is that of the
    jump, by the scores of the classes there.
    """

    view = Clauses(max_sentences=100)
    trained_by = DecisionReward
    # Nothing precedes the only clause of a text, and it must tell a class: where all texts are such
    # the weights of the past learn nothing.
    unused = ("controller.forwards.0.weight_hh",)

    def __init__(
        self,
        width: int,
        classes: int,
        maps: int = 200,
        windows: tuple = (1, 2, 3, 4, 5),
        hidden: int = 20,
        dropout: float = 0.5,
        draws: int = 5,
        early: float = 0.5,
    ):
        super().__init__()
        self.draws, self.early = draws, early
        self.clause = WindowMaxima(width, maps, windows)
        self.controller = Recurrent("gru", self.clause.size, hidden)
        self.content = nn.Linear(self.clause.size, 1 + classes, bias=False)
        self.symbol = nn.Linear(hidden, 1 + classes)
        with torch.no_grad():
            self.symbol.bias.zero_()[0] = math.log(classes) + 2
        self.dropout = nn.Dropout(dropout)

    def symbols(self, document: SentenceBatch) -> Tensor:
        """Scores (B, S, 1 + classes) of nothing and of each class after each clause."""
        mask = document.sentence_mask
        clauses = self.clause(document.vectors.flatten(0, 1), document.mask.flatten(0, 1)).unflatten(0, mask.shape)
        states = self.controller(clauses, mask)
        scores = self.content(self.dropout(clauses)) + self.symbol(self.dropout(states))
        last = torch.arange(mask.shape[1], device=mask.device) == mask.sum(1, keepdim=True) - 1
        nothing = scores[..., :1].masked_fill(last[..., None], -torch.inf)
        return torch.cat([nothing, scores[..., 1:]], dim=-1)

    def forward(self, document: SentenceBatch) -> Tensor:
        scores = self.symbols(document)
        return self.answers(document, scores, (scores.argmax(-1) > 0).int().argmax(1))

    def answers(self, document: SentenceBatch, scores: Tensor, place: Tensor) -> Tensor:
        """Scores (B, classes) after the clause at ``place`` (B,), the last one that is read."""
        words = document.mask.sum(-1)
        read = words.cumsum(1).gather(1, place[:, None]).squeeze(1)
        self.tell_choice("share of words read", read / words.sum(1))
        return scores[torch.arange(len(scores), device=scores.device), place, 1:]
