"""Stochastic answer network."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from architectures.blocks.aligned_question import AlignedQuestion
from architectures.blocks.match_features import match_features
from architectures.blocks.recurrent import Recurrent
from architectures.reading.bidaf_self_attention import SharedDropout
from harness.kinds import Reader, SpanScores
from harness.layers.attention import masked_softmax
from harness.registry import Recipe, register
from harness.views.words import WordBatch


class PositionwiseNetwork(nn.Sequential):
    """W2 relu(W1 x + b1) + b2 of each word: (B, T, width) -> (B, T, size)."""

    def __init__(self, width: int, size: int):
        super().__init__(nn.Linear(width, size), nn.ReLU(), nn.Linear(size, size))


class MaxoutLSTM(nn.Module):
    """The larger of both directions' states, unit by unit: (B, T, width) -> (B, T, hidden)."""

    def __init__(self, width: int, hidden: int):
        super().__init__()
        self.recurrence = Recurrent("lstm", width, hidden, bidirectional=True)

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        forwards, backwards = self.recurrence(vectors, mask).chunk(2, dim=-1)
        return torch.maximum(forwards, backwards)


class ProjectedAttention(nn.Module):
    """Weights (B, T, U) of keys (B, U, size) for queries (B, T, size): softmax over the keys of
    relu(W query) . relu(W key), where ``allowed``, which (B, T, U) takes, is true."""

    def __init__(self, size: int, hidden: int, dropout: float):
        super().__init__()
        self.projection = nn.Linear(size, hidden, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, queries: Tensor, keys: Tensor, allowed: Tensor) -> Tensor:
        asked, read = torch.relu(self.projection(queries)), torch.relu(self.projection(keys))
        return self.dropout(masked_softmax(asked @ read.transpose(1, 2), allowed))


class StochasticAnswer(nn.Module):
    """Start and end of an answer as the mean of the predictions of several steps over a memory.

    Memory M (B, T, size), its mask (B, T) and the first state s_0 (B, size) -> scores (B, T) of
    start and of end, logarithms of mean probabilities, -inf at padding. Step t predicts
    softmax_j(s_t W_b M_j) and, with m the mean of the memory under it, softmax_j([s_t; m] W_e
    M_j). Between steps s_t = GRU(x_t, s_(t-1)) reads x_t = sum_j softmax_j(s_(t-1) W_x M_j) M_j.
    In training each step of each example is left out with probability ``step_dropout``, but for
    one, which is drawn.
    """

    def __init__(self, size: int, steps: int, step_dropout: float):
        super().__init__()
        self.steps, self.step_dropout = steps, step_dropout
        self.read = nn.Linear(size, size, bias=False)
        self.start = nn.Linear(size, size, bias=False)
        self.end = nn.Linear(2 * size, size, bias=False)
        self.update = nn.GRUCell(size, size)

    def shares(self, state: Tensor) -> Tensor:
        """Share of each step in the mean (B, steps): equal ones of those that are kept."""
        rows = len(state)
        kept = torch.ones(rows, self.steps, dtype=torch.bool, device=state.device)
        if self.training:
            kept = torch.rand(rows, self.steps, device=state.device) >= self.step_dropout
            drawn = torch.randint(self.steps, (rows, 1), device=state.device)
            kept = kept.scatter(1, drawn, value=True)
        return kept / kept.sum(1, keepdim=True)

    def forward(self, memory: Tensor, mask: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        def scores(asked: Tensor) -> Tensor:
            return (memory @ asked[..., None]).squeeze(-1)

        def read(by: Tensor) -> Tensor:
            return (masked_softmax(by, mask)[:, None] @ memory).squeeze(1)

        starts, ends = [], []
        for step in range(self.steps):
            if step:
                state = self.update(read(scores(self.read(state))), state)
            starts.append(scores(self.start(state)))
            ends.append(scores(self.end(torch.cat([state, read(starts[-1])], dim=-1))))
        shares = self.shares(state)
        return mean_of_steps(starts, shares, mask), mean_of_steps(ends, shares, mask)


def mean_of_steps(scores: list[Tensor], shares: Tensor, mask: Tensor) -> Tensor:
    """log sum_t share_t p_t (B, T) of the softmax p_t over the words of each step's scores (B, T),
    with ``shares`` (B, steps); -inf at padding."""
    stacked = torch.stack(scores, dim=1)
    logs = stacked.masked_fill(~mask[:, None], torch.finfo(stacked.dtype).min).log_softmax(-1)
    return torch.logsumexp(logs + shares.log()[..., None], dim=1).masked_fill(~mask, -torch.inf)


@register(
    "san",
    name="Stochastic answer network",
    kind="span",
    paper="Liu et al. 2018",
    source="M2.9[137] T3",
    year=2018,
    version=2,
    recipe=Recipe(
        optimizer="adamax",
        lr=0.002,
        batch_size=32,
        epochs=50,
        clip=5.0,
        lr_schedule="step",
        factor=0.5,
        step_start=10.0,
        step_epochs=10.0,
    ),
    tiny={"hidden": 12, "projected": 16},
    vectors_of_paper="GloVe",
    deviations=(
        "The paper's LSTMs also read CoVe, the states of a translation model; no such model is at hand.",
        (
            "Of the paper's features of a word, exact match and frequency are here; its part of speech, named entity"
            " and lemma need annotators."
        ),
        "Words are lower-cased, and those seen once are unknown, GloVe's too; exact match compares them in lower case.",
        "The alignment projects vectors to their own size; the paper's has 280 numbers, the authors' program 128, no"
        " bias and a scale.",
        (
            "The rate is halved after 40 epochs too, and dropout between layers is 0.4; the authors' code ends with the"
            " halving after 30, and has 0.35."
        ),
        "Each pair of a maxout is a unit in both directions.",
        "Weights are not normalised; the paper's are.",
        "All given vectors stay fixed; the authors' code tunes those of the 1,000 most frequent words.",
        "An answer has up to 30 words; the authors' program divides the probability of one of more than five by the"
        " logarithm of its length.",
        "The network is the paper's; that of the authors' program, whose recipe this is, attends to three levels of the"
        " question, and an end knows nothing of the start.",
        "For 'no answer' (SQuAD 2.0) a learned number joins both softmaxes; the authors have a classifier of its own.",
        "One passage per question.",
        "Dropout acts once before the position-wise network and not inside it; in the authors' program twice before it"
        " and twice inside, and a twentieth of the words is read as the unknown one.",
    ),
)
class StochasticAnswerNetwork(Reader):
    """A reader whose answer is the mean of the predictions of several steps, of which training
    leaves out whole ones.

    A passage word is its vector, the :class:`AlignedQuestion`, exact match and frequency; one of
    the question is its vector. Each side has a :class:`PositionwiseNetwork`. Two layers of
    :class:`MaxoutLSTM`, the same for both sides, give side by side H^p and H^q. A passage word
    joins H^p with what it attends to in the question to u, and u with what it attends to at the
    OTHER words of the passage; a bidirectional LSTM over both makes the memory M. The states of
    the :class:`StochasticAnswer` begin with sum_j softmax_j(w . H^q_j) H^q_j. Dropout acts on what
    each layer reads, on whole features of a text, and on weights of attention.
    """

    vectors = "fixed"

    def __init__(
        self,
        width: int,
        hidden: int = 128,
        projected: int = 256,
        steps: int = 5,
        dropout: float = 0.4,
        step_dropout: float = 0.4,
    ):
        super().__init__()
        size = 2 * hidden
        self.align = AlignedQuestion(width)
        self.passage = PositionwiseNetwork(2 * width + 2, projected)
        self.question = PositionwiseNetwork(width, projected)
        self.contexts = nn.ModuleList(MaxoutLSTM(each, hidden) for each in (projected, hidden))
        self.attend = ProjectedAttention(size, hidden, dropout)
        self.attend_self = ProjectedAttention(2 * size, hidden, dropout)
        self.memory = Recurrent("lstm", 4 * size, hidden, bidirectional=True)
        self.importance = nn.Linear(size, 1, bias=False)
        self.answer = StochasticAnswer(size, steps, step_dropout)
        self.dropout = SharedDropout(dropout)

    def context(self, words: Tensor, mask: Tensor) -> Tensor:
        """States of both layers, side by side: (B, T, projected) -> (B, T, 2 * hidden)."""
        low, high = self.contexts
        states = low(self.dropout(words), mask)
        return torch.cat([states, high(self.dropout(states), mask)], dim=-1)

    def forward(self, passage: WordBatch, question: WordBatch) -> SpanScores:
        read, asked = self.dropout(passage.vectors), self.dropout(question.vectors)
        aligned = self.align(read, asked, question.mask)
        words = torch.cat([read, aligned, match_features(passage, question)], dim=-1)
        states = self.context(self.passage(words), passage.mask)
        questions = self.context(self.question(asked), question.mask)

        dropped = self.dropout(questions)
        weights = self.attend(self.dropout(states), dropped, question.mask[:, None])
        joined = torch.cat([states, weights @ questions], dim=-1)
        others = passage.mask[:, None] & ~torch.eye(joined.shape[1], dtype=torch.bool, device=joined.device)
        reading = self.dropout(joined)
        of_others = self.attend_self(reading, reading, others) @ joined
        memory = self.memory(self.dropout(torch.cat([joined, of_others], dim=-1)), passage.mask)

        importance = masked_softmax(self.importance(dropped).squeeze(-1), question.mask)
        summary = (importance[:, None] @ dropped).squeeze(1)
        return SpanScores(*self.answer(self.dropout(memory), passage.mask, summary))
