"""Memory network that looks up its supporting facts one after another."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from harness.kinds import SupportedAnswerer
from harness.registry import Recipe, register
from harness.views.facts import FactBatch, Facts


class Read(NamedTuple):
    """A batch of B stories of S memories as it was read; memory 0 of each is the empty fact.

    ``asked`` (2, B, n) are the questions, as they look for facts and as they look for an answer;
    ``found`` (2, B, S, n) the memories as they join a question, likewise; ``told`` (B, S, n) the
    memories as they are looked for, and ``mask`` (B, S). ``chosen`` (B, K) are the facts found and
    ``scores`` (B, answers).
    """

    asked: Tensor
    found: Tensor
    told: Tensor
    mask: Tensor
    chosen: Tensor
    scores: Tensor


def drawn_beside(weights: Tensor, right: Tensor) -> Tensor:
    """A place (B, 1) other than ``right`` (B, 1), drawn from those whose weight (B, M) is 1."""
    return torch.multinomial(weights.scatter(1, right, 0), 1)


@register(
    "memnn",
    name="Memory network",
    kind="answer",
    paper="Weston et al. 2015",
    source="M2.6[96] Z16.2.3",
    year=2015,
    recipe=Recipe(optimizer="sgd", lr=0.01, batch_size=32, epochs=10, patience=10, clip=40.0, reduction="batch"),
    tiny={"size": 20},
    sees=("supporting facts",),
    deviations=(
        "A step is over 32 questions, whose losses are summed; the paper's is over one.",
        "The norm of the gradient is cut at 40: without that, steps over 32 questions diverge.",
        (
            "A story has an empty fact, older than all others: it is the second one where a single fact supports an"
            " answer. Of more than two supporting facts the first two are shown."
        ),
        "Where a fact was found, the age of question and fact together is the fact's: the paper does not say.",
        "Words that the training does not know are all the same word, without the paper's context of neighbours.",
        "An answer is one of those that training shows, whether its letters are a word of the story or not.",
        "Of a story the newest 50 facts are read.",
    ),
)
class MemNN(SupportedAnswerer):
    """Facts (B, S, T) and question (B, 1, T) to :class:`Read`: ``hops`` facts, chosen one after
    another, and scores of the answers.

    With bags of words Phi, of which a word has another vector in a question, in a fact that joined
    it and in a fact that is looked for, the facts y and y' are compared by s(x, y, y') = Ux . (Uy -
    Uy' + Ut), where t says with three numbers whether x is older than y, x than y' and y than y'.
    The best fact is the champion after each has challenged it in the order of the story, and wins
    with s > 0. It joins x, and the next one is looked for. The answer a has the largest Vx . Va,
    with tables V of their own.

    In training x are the question and the facts that support the answer, and the loss is what a
    wrong fact, drawn for each right one, and a wrong answer lack to a ``margin`` below it.
    """

    def __init__(self, width: int, answers: list[str], view: Facts, size: int = 50, hops: int = 2, margin: float = 0.1):
        super().__init__()
        self.hops, self.margin = hops, margin
        self.asked, self.found = (nn.ModuleList(nn.Embedding(width, size) for _ in range(2)) for _ in range(2))
        self.told = nn.Embedding(width, size)
        self.empty = nn.Parameter(torch.empty(size))
        self.times = nn.Parameter(torch.empty(3, size))
        self.answers = nn.Parameter(torch.empty(len(answers), size))
        for parameter in self.parameters():
            nn.init.normal_(parameter, std=0.1)

    def forward(self, facts: FactBatch, question: FactBatch) -> Read:
        def bags(table: nn.Module, texts: FactBatch) -> Tensor:
            return (table(texts.ids) * texts.mask[..., None]).sum(2)

        asked = torch.stack([bags(table, question)[:, 0] for table in self.asked])
        found = F.pad(torch.stack([bags(table, facts) for table in self.found]), (0, 0, 1, 0))
        told = torch.cat([self.empty.expand(len(facts.ids), 1, -1), bags(self.told, facts)], 1)
        mask = F.pad(facts.fact_mask, (1, 0), value=True)
        chosen = self.choose(asked[0], found[0], told, mask)
        scores = self.answered(asked[1], found[1], chosen) @ self.answers.T
        return Read(asked, found, told, mask, chosen, scores)

    @staticmethod
    def answered(asked: Tensor, found: Tensor, facts: Tensor) -> Tensor:
        """The questions (B, n) and the facts of these numbers (B, K) that joined them."""
        return asked + found.gather(1, facts[..., None].expand(-1, -1, found.shape[-1])).sum(1)

    def compared(self, x: Tensor, told: Tensor, age: Tensor, one: Tensor, other: Tensor) -> Tensor:
        """s(x, y, y') (B, M) of the memories numbered ``one`` and ``other`` (B, M), by the question
        x (B, n), whose place in the story is ``age`` (B, 1): a smaller number is older."""
        scores = (told @ x[..., None]).squeeze(-1)
        times = x @ self.times.T
        older = torch.stack([age < one, age < other, one < other], -1).to(x.dtype)
        return scores.gather(1, one) - scores.gather(1, other) + (older @ times[..., None]).squeeze(-1)

    @torch.no_grad()
    def choose(self, asked: Tensor, found: Tensor, told: Tensor, mask: Tensor) -> Tensor:
        """Numbers (B, hops) of the facts found one after another, 0 for the empty one. In training,
        which is shown them, none is looked for."""
        chosen = torch.zeros(len(mask), self.hops, dtype=torch.long, device=mask.device)
        if self.training:
            return chosen
        age = torch.full_like(chosen[:, :1], mask.shape[1])
        for hop in range(self.hops):
            x, best = self.answered(asked, found, chosen[:, :hop]), torch.zeros_like(age)
            for number in range(1, mask.shape[1]):
                challenger = torch.full_like(best, number)
                wins = (self.compared(x, told, age, challenger, best) > 0) & mask[:, number : number + 1]
                best = torch.where(wins, challenger, best)
            chosen[:, hop : hop + 1] = age = best
        return chosen

    def objective(self, scores: Read, labels: tuple[Tensor, Tensor]) -> Tensor:
        """Losses (B,): what the margins lack at each fact and at the answer."""
        read, (answers, support) = scores, labels
        facts = F.pad(support, (0, self.hops))[:, : self.hops] if self.training else read.chosen
        ranked = self.answered(read.asked[1], read.found[1], facts) @ self.answers.T
        right, wrong = answers[:, None], drawn_beside(torch.ones_like(ranked), answers[:, None])
        losses = F.relu(self.margin - ranked.gather(1, right) + ranked.gather(1, wrong))
        age = torch.full_like(facts[:, :1], read.mask.shape[1])
        for hop in range(self.hops if self.training else 0):
            x, right = self.answered(read.asked[0], read.found[0], facts[:, :hop]), facts[:, hop : hop + 1]
            wrong = drawn_beside(read.mask.float(), right)
            ahead = self.compared(x, read.told, age, right, wrong)
            behind = self.compared(x, read.told, age, wrong, right)
            lacking = F.relu(self.margin - ahead) + F.relu(self.margin + behind)
            losses = losses + lacking * (age > 0)  # after the empty fact none is looked for
            age = right
        return losses.squeeze(1)
