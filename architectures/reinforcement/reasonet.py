"""A reader that looks into its memory again until it decides to answer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.bi_attention import BiAttention
from architectures.blocks.characters import CharacterConvolution
from architectures.blocks.recurrent import Recurrent
from harness.kinds import Reader, SpanScores
from harness.layers.attention import masked_softmax
from harness.objectives import Objective, Step
from harness.registry import Recipe, register
from harness.training.model import Model
from harness.views.words_and_characters import WordCharacterBatch, WordsAndCharacters


class ContrastiveReward(Objective):
    """The policy gradient of stopping and answering, with the reward of the right answer, 1, over
    its expectation, the baseline of the question itself.

    All episodes (a step to stop at, a span) are counted, and none is drawn: sum_e P(e) (r_e / b -
    1) grad log P(e) with b = sum_e P(e) r_e is the gradient of log b, and b is the probability of
    the right span in the mean over the steps at which reading may stop.
    """

    def losses(self, model: Model, step: Step) -> dict[str, Tensor]:
        target = step.batch.target
        with model.encoder.each_step() as told:
            outputs = model.head(model.encoder, model.read(step.batch.inputs))
        stops = told[0].T  # logarithms (steps, B)
        costs = model.head.row_losses(model.encoder, outputs, target.repeat(len(stops), 1)).view(stops.shape)
        rewards = (stops - costs).logsumexp(0)
        places = torch.arange(1, len(stops) + 1, device=stops.device)
        return {
            "loss": -rewards.mean(),
            "reward": rewards.exp().mean(),
            "steps": (stops.exp() * places[:, None]).sum(0).mean(),
        }


class Recall(nn.Module):
    """Mean (B, size) of a memory (B, T, size) under softmax_t(sharpness * cos(W1 m_t, W2 s)), for a
    state s (B, size)."""

    def __init__(self, size: int, sharpness: float):
        super().__init__()
        self.memory, self.state = (nn.Linear(size, size, bias=False) for _ in range(2))
        self.sharpness = sharpness

    def forward(self, memory: Tensor, mask: Tensor, state: Tensor) -> Tensor:
        alike = F.cosine_similarity(self.memory(memory), self.state(state)[:, None], dim=-1)
        return (masked_softmax(self.sharpness * alike, mask)[:, None] @ memory)[:, 0]


def stopping(gates: Tensor) -> Tensor:
    """Logarithms (B, steps) of the probability to stop at each step, having not stopped before,
    from the scores (B, steps - 1) of the gate; who has not stopped before the last step stops
    there."""
    going_on = F.pad(F.logsigmoid(-gates).cumsum(1), (1, 0))
    return going_on + F.pad(F.logsigmoid(gates), (0, 1))


@register(
    "reasonet",
    name="ReasoNet",
    kind="span",
    paper="Shen et al. 2017",
    source="M2.11[179]",
    year=2017,
    recipe=Recipe(optimizer="adadelta", lr=0.5, batch_size=32, vector_dims=100),
    tiny={"hidden": 16, "character_size": 6, "filters": 8, "steps": 3},
    vectors_of_paper="GloVe",
    deviations=(
        "At evaluation it stops at the step where that is likeliest, not at one that is drawn.",
        "What a word is scored by, its memory and its product with the state, is ours.",
        "Dropout is ours, on words with their spelling and on what the memory reads; the paper states it for another"
        " task, on word vectors alone.",
        "Words seen once are unknown, GloVe's too.",
        "Each word is lengthened by zeros at both ends before the character convolution.",
        "An answer has up to 30 words.",
        "For 'no answer' (SQuAD 2.0) a learned number joins both softmaxes.",
    ),
)
class ReasoNet(Reader):
    """The state of a GRU begins as the question and asks a memory of the passage; at each step a
    gate says whether to answer from the state or to read on.

    Vectors of words and of their characters pass a BiGRU, another for each side; a
    :class:`BiAttention` joins both sides, and a BiGRU over that is the memory M. The first state is
    that of the question at its ends. Step t stops with probability sigmoid(w . s_t + b), or else
    s_(t+1) = GRU(x_t, s_t) with x_t recalled from M (:class:`Recall`); the last of ``steps`` stops
    for certain. Where it stops, word j begins the answer by the score w1 . [M_j; M_j * s_t] and
    ends it by w2 alike. It learns by :class:`ContrastiveReward`, and in evaluation stops at the
    likeliest step. Dropout acts on words and on what the memory is made of. Given word vectors stay
    fixed.
    """

    view = WordsAndCharacters(word_length=16)
    vectors = "fixed"
    trained_by = ContrastiveReward

    def __init__(
        self,
        width: int,
        view: WordsAndCharacters,
        hidden: int = 128,
        character_size: int = 8,
        filters: int = 100,
        window: int = 5,
        steps: int = 10,
        sharpness: float = 10.0,
        dropout: float = 0.2,
    ):
        super().__init__()
        size = 2 * hidden
        self.steps = steps
        self.spelling = CharacterConvolution(view.alphabet_size, character_size, filters, window, 0.0, torch.relu)
        self.passage, self.question = (Recurrent("gru", width + filters, hidden, bidirectional=True) for _ in range(2))
        self.attention = BiAttention(size)
        self.memory = Recurrent("gru", 4 * size, hidden, bidirectional=True)
        self.recall = Recall(size, sharpness)
        self.controller = nn.GRUCell(size, size)
        self.gate = nn.Linear(size, 1)
        self.start, self.end = (nn.Linear(2 * size, 1, bias=False) for _ in range(2))
        self.dropout = nn.Dropout(dropout)
        self.told: list[Tensor] | None = None

    @contextmanager
    def each_step(self) -> Iterator[list[Tensor]]:
        """Answer from every step while the block runs, the steps one behind the other (steps * B,
        T), and tell the logarithms (B, steps) of the probabilities to stop at them."""
        self.told = []
        try:
            yield self.told
        finally:
            self.told = None

    def words(self, text: WordCharacterBatch) -> Tensor:
        """The numbers that are read of each word (B, T, width + filters)."""
        spelt = self.spelling(text.characters, text.character_mask)
        return self.dropout(torch.cat([text.vectors, spelt], dim=-1))

    def forward(self, passage: WordCharacterBatch, question: WordCharacterBatch) -> SpanScores:
        mask = passage.mask
        read = self.passage(self.words(passage), mask)
        asked = self.question(self.words(question), question.mask)
        joined = self.attention(read, mask, asked, question.mask)
        memory = self.memory(self.dropout(joined), mask)

        last = asked[torch.arange(len(asked), device=asked.device), question.mask.sum(1) - 1]
        ends = last.chunk(2, dim=1)[0], asked[:, 0].chunk(2, dim=1)[1]
        states = [torch.cat(ends, dim=1)]
        while len(states) < self.steps:
            states.append(self.controller(self.recall(memory, mask, states[-1]), states[-1]))
        stops = stopping(torch.cat([self.gate(state) for state in states], dim=1)[:, :-1])

        place = stops.argmax(1)
        self.tell_choice("steps", place + 1.0)
        if self.told is None:
            rows = torch.arange(len(place), device=place.device)
            return self.answer(memory, mask, torch.stack(states)[place, rows])
        self.told.append(stops)
        answers = [self.answer(memory, mask, state) for state in states]
        return SpanScores(*(torch.cat(scores) for scores in zip(*(a[:2] for a in answers), strict=True)))

    def answer(self, memory: Tensor, mask: Tensor, state: Tensor) -> SpanScores:
        """Scores of the words (B, T) from a state (B, size)."""
        seen = torch.cat([memory, memory * state[:, None]], dim=-1)
        return SpanScores(*(side(seen)[..., 0].masked_fill(~mask, -torch.inf) for side in (self.start, self.end)))
