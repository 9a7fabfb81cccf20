"""FusionNet."""

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


class FullyAwareAttention(nn.Module):
    """sum_j softmax_j(relu(U x_i)^T D relu(U y_j)) z_j, D diagonal: histories x (B, T, history)
    and y (B, S, history), values z (B, S, size) of one level, mask (B, S) -> (B, T, size).

    Scores are those of the whole history of a word, what is fused is its value alone.
    """

    def __init__(self, history: int, size: int):
        super().__init__()
        self.projection = nn.Linear(history, size, bias=False)
        self.diagonal = nn.Parameter(torch.ones(size))

    def forward(self, histories: Tensor, others: Tensor, values: Tensor, mask: Tensor) -> Tensor:
        one, other = torch.relu(self.projection(histories)), torch.relu(self.projection(others))
        return masked_softmax(one * self.diagonal @ other.transpose(1, 2), mask[:, None]) @ values


class BiLSTM(nn.Module):
    """One bidirectional layer over its inputs side by side, whose features are dropped for a whole
    text: (B, T, ...) each -> (B, T, 2 * hidden)."""

    def __init__(self, width: int, hidden: int, dropout: float):
        super().__init__()
        self.recurrence = Recurrent("lstm", width, hidden, bidirectional=True)
        self.dropout = SharedDropout(dropout)

    def forward(self, inputs: list[Tensor], mask: Tensor) -> Tensor:
        return self.recurrence(self.dropout(torch.cat(inputs, dim=-1)), mask)


@register(
    "fusionnet",
    name="FusionNet",
    kind="span",
    paper="Huang et al. 2018",
    source="M-T3[223]",
    year=2018,
    recipe=Recipe(optimizer="adamax", lr=0.002, batch_size=32, epochs=40, clip=10.0),
    tiny={"hidden": 12},
    vectors_of_paper="GloVe",
    deviations=(
        "The paper's words and histories also hold CoVe, the states of a translation model; no such model is at hand.",
        (
            "Of the paper's features of a word, exact match and frequency are here; its part of speech, named entity"
            " and lemma need annotators."
        ),
        "Words are lower-cased, and those seen once are unknown, GloVe's too; exact match compares them in lower case.",
        "All given vectors stay fixed; the paper tunes those of the 1,000 most frequent words.",
        "Both sides of the passage's attention to itself have one dropout mask, not one each.",
        "An answer has up to 30 words.",
        "The limit of the gradient is that of the authors' program for inference, which makes 20 passes; 40 are a"
        " re-implementation's.",
        "The paper has no score for 'no answer' (SQuAD 2.0): a learned number joins both softmaxes.",
        "One passage per question.",
    ),
)
class FusionNet(Reader):
    """A reader that fuses the question into the passage at three levels, and the passage with
    itself, by attention that sees all that is known of a word: its history.

    A passage word is its vector g, the :class:`AlignedQuestion`, exact match and frequency; one of
    the question is g. On either side a bidirectional LSTM gives low states l and another, over
    these, high states h; a third, over the question's l and h, gives its understanding u. The
    history [g; l; h] of a passage word attends to those of the question by three
    :class:`FullyAwareAttention`, which fetch the question's l, h and u. An LSTM over [l; h] and
    what was fetched gives v. The history [g; l; h; all three; v] attends to that of the passage's
    words, the word's own among them, and fetches their v; an LSTM over both gives the passage's
    understanding.

    Start is scored by q W_s u_i, with q the sum of the question's u weighted by the softmax of w .
    u_j. A GRU with state q reads the mean of u under the start's probabilities, and its new state
    scores the end. Dropout acts on what each layer reads, on whole features of a text.
    """

    vectors = "fixed"

    def __init__(self, width: int, hidden: int = 125, dropout: float = 0.4):
        super().__init__()
        size = 2 * hidden
        self.align = AlignedQuestion(width)
        self.low, self.high = BiLSTM(2 * width + 2, hidden, dropout), BiLSTM(size, hidden, dropout)
        self.question_low, self.question_high = BiLSTM(width, hidden, dropout), BiLSTM(size, hidden, dropout)
        self.question_understanding = BiLSTM(2 * size, hidden, dropout)
        self.levels = nn.ModuleList(FullyAwareAttention(width + 2 * size, size) for _ in range(3))
        self.fused = BiLSTM(5 * size, hidden, dropout)
        self.itself = FullyAwareAttention(width + 6 * size, size)
        self.understanding = BiLSTM(2 * size, hidden, dropout)
        self.importance = nn.Linear(size, 1, bias=False)
        self.start, self.end = (nn.Linear(size, size, bias=False) for _ in range(2))
        self.update = nn.GRUCell(size, size)
        self.dropout, self.dropout_of_vectors = SharedDropout(dropout), nn.Dropout(dropout)

    def history(self, parts: list[Tensor]) -> Tensor:
        """All that is known of each word, as an attention reads it."""
        return self.dropout(torch.cat(parts, dim=-1))

    def understood(self, passage: WordBatch, question: WordBatch) -> tuple[Tensor, Tensor]:
        """Understanding of the passage (B, T, 2 * hidden) and of the question (B, S, 2 *
        hidden)."""
        words, asked = self.dropout(passage.vectors), self.dropout(question.vectors)
        aligned = self.align(words, asked, question.mask)
        low = self.low([words, aligned, match_features(passage, question)], passage.mask)
        high = self.high([low], passage.mask)
        asked_low = self.question_low([asked], question.mask)
        asked_high = self.question_high([asked_low], question.mask)
        understood = self.question_understanding([asked_low, asked_high], question.mask)

        history, asked_history = self.history([words, low, high]), self.history([asked, asked_low, asked_high])
        fetched = [
            level(history, asked_history, values, question.mask)
            for level, values in zip(self.levels, (asked_low, asked_high, understood), strict=True)
        ]
        fused = self.fused([low, high, *fetched], passage.mask)
        history = self.history([words, low, high, *fetched, fused])
        boosted = self.itself(history, history, fused, passage.mask)
        return self.understanding([fused, boosted], passage.mask), understood

    def forward(self, passage: WordBatch, question: WordBatch) -> SpanScores:
        states, questions = (self.dropout(each) for each in self.understood(passage, question))
        weights = masked_softmax(self.importance(questions).squeeze(-1), question.mask)
        asked = (weights[:, None] @ questions).squeeze(1)

        def scores(layer: nn.Linear, vector: Tensor) -> Tensor:
            return (states @ layer(vector)[..., None]).squeeze(-1).masked_fill(~passage.mask, -torch.inf)

        start = scores(self.start, asked)
        read = (start.softmax(-1)[:, None] @ states).squeeze(1)
        end = scores(self.end, self.update(self.dropout_of_vectors(read), asked))
        return SpanScores(start, end)
