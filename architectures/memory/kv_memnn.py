"""Key-value memory network."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from harness.kinds import Answerer
from harness.layers.attention import masked_softmax
from harness.registry import Recipe, register
from harness.views.facts import FactBatch, Facts


@register(
    "kv_memnn",
    name="Key-value memory network",
    kind="answer",
    paper="Miller et al. 2016",
    source="X4.3.1",
    year=2016,
    recipe=Recipe(optimizer="sgd", lr=0.005, batch_size=32, epochs=60, patience=10, clip=40.0, reduction="batch"),
    tiny={"size": 24},
    version=2,
    variants={
        "kv_memnn_sentence": {
            "name": "Key-value memory network (sentences)",
            "hyperparameters": {"memories": "sentences"},
            "version": 1,
        }
    },
    deviations=(
        "No hash finds memories: they are those of the question's own story, of which the newest 50 facts are read.",
        "Every word is the centre of a window, since stories mark no entities; windows end with their sentence.",
        "The words of a text are summed as they are; the authors' code weighs each of n words by 1 / sqrt(n).",
        "Keys and values hold the age of their fact, an option of the authors' code that its own task leaves off.",
        "The softmax is over the answers of the training set, not over a thousand that are drawn.",
        "A step is over 32 questions, whose losses are summed and whose gradient is cut at 40, not over one.",
        "Full stops and question marks are words, and words that training shows once are all the same word.",
        "Behind the last hop the question is turned once more, as in the paper's equations; the authors' program does"
        " not turn it there.",
        "A story has no title: keys hold none, and no memory has one as its value.",
    ),
)
class KVMemNN(Answerer):
    """Facts (B, S, T) and question (B, 1, T) to scores (B, answers).

    All is a sum of rows of one table A: the question q is the sum of its words. A memory has a key
    and a value. With ``memories`` ``windows`` there is one for each word: its key is the ``window``
    words around it and the word itself, its value the word. Each word has two rows of A: one where
    it stands around another, one as a centre, a value and an answer; a question has both of each of
    its words. With ``sentences`` there is one memory for each fact, which is key and value, and a
    word has one row. Both hold a row for the fact's age. A hop weighs the memories by p = softmax(q
    . key), reads o = the sum of p * value, and q becomes R_j (q + o) + b_j, of hop j. After
    ``hops`` of them an answer's score is q times its word's row; one that no story says has a row
    of its own.

    Scores and sums are taken over the rows of A, not over the memories' vectors, which is the same
    and takes a hundredth of the time.
    """

    def __init__(
        self,
        width: int,
        answers: list[str],
        view: Facts,
        size: int = 500,
        hops: int = 2,
        memories: str = "windows",
        window: int = 7,
    ):
        super().__init__()
        if memories not in ("windows", "sentences") or window % 2 == 0:
            raise ValueError(f"memories={memories!r}, window={window}: windows or sentences, and an odd number")
        self.windows, self.window, self.oldest = memories == "windows", window, view.most - 1
        self.centres = width * self.windows
        """First row of words as centres, values and answers."""
        ages = width + self.centres
        extra = ages + view.most
        known = view.vocabulary.ids(answer.lower() for answer in answers)
        rows = torch.tensor([self.centres + id if id > 1 else extra + number for number, id in enumerate(known)])
        self.register_buffer("answers", rows)
        self.ages = ages
        """Row of the newest fact's age."""
        self.table = nn.Parameter(torch.empty(extra + len(answers), size))
        self.rotate = nn.ModuleList(nn.Linear(size, size) for _ in range(hops))
        for parameter in self.parameters():
            nn.init.normal_(parameter, std=0.1)

    def age(self, facts: FactBatch) -> Tensor:
        """Rows (B, S) of the facts' ages, which count the facts told after each."""
        told = facts.fact_mask.long()
        return self.ages + (told.flip(1).cumsum(1).flip(1) - told).clamp(max=self.oldest)

    def keys(self, state: Tensor, facts: FactBatch) -> Tensor:
        """q . key of the memories: (B, S, T) of windows, (B, S, 1) of sentences."""
        known = state @ self.table.T

        def of(rows: Tensor) -> Tensor:
            return known.gather(1, rows.flatten(1)).view(rows.shape)

        words, age = of(facts.ids) * facts.mask, of(self.age(facts))[..., None]
        if not self.windows:
            return words.sum(-1, keepdim=True) + age
        around = self.window * F.avg_pool1d(words, self.window, stride=1, padding=self.window // 2)
        return around - words + of(facts.ids + self.centres) + age

    def values(self, weights: Tensor, facts: FactBatch) -> Tensor:
        """Sum (B, size) of the values under the memories' weights, of the shape of :meth:`keys`."""
        rows = torch.zeros(len(weights), len(self.table), dtype=weights.dtype, device=weights.device)
        rows = rows.scatter_add(1, (facts.ids + self.centres).flatten(1), (weights * facts.mask).flatten(1))
        return rows.scatter_add(1, self.age(facts), weights.sum(-1)) @ self.table

    def forward(self, facts: FactBatch, question: FactBatch) -> Tensor:
        words = F.embedding(question.ids, self.table)
        if self.windows:
            words = words + F.embedding(question.ids + self.centres, self.table)
        state = (words * question.mask[..., None]).sum((1, 2))
        memories = facts.mask if self.windows else facts.fact_mask[..., None]
        for rotate in self.rotate:
            scores = self.keys(state, facts)
            weights = masked_softmax(scores.flatten(1), memories.flatten(1)).view(scores.shape)
            state = rotate(state + self.values(weights, facts))
        return state @ self.table[self.answers].T
