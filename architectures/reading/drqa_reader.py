"""Paragraph reader of DrQA."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from architectures.blocks.aligned_question import AlignedQuestion
from architectures.blocks.match_features import match_features
from architectures.blocks.recurrent import Recurrent
from harness.kinds import Reader, SpanScores
from harness.layers.attention import masked_softmax
from harness.registry import Recipe, register
from harness.views.words import WordBatch


class StackedStates(nn.Module):
    """The states of all ``layers`` of a bidirectional LSTM, side by side: (B, T, width) -> (B, T,
    ``size``). Dropout acts on what each layer reads, and on what comes out."""

    def __init__(self, width: int, hidden: int, layers: int, dropout: float):
        super().__init__()
        widths = [width] + [2 * hidden] * (layers - 1)
        self.layers = nn.ModuleList(Recurrent("lstm", each, hidden, bidirectional=True) for each in widths)
        self.dropout = nn.Dropout(dropout)
        self.size = 2 * hidden * layers

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        states = [vectors]
        for layer in self.layers:
            states.append(layer(self.dropout(states[-1]), mask))
        return self.dropout(torch.cat(states[1:], dim=-1))


@register(
    "drqa_reader",
    name="Paragraph reader",
    kind="span",
    paper="Chen et al. 2017",
    source="M2.9[137]",
    year=2017,
    recipe=Recipe(optimizer="adamax", lr=0.002, batch_size=32, epochs=40, clip=10.0),
    tiny={"hidden": 16, "layers": 2},
    vectors_of_paper="GloVe",
    version=2,
    deviations=(
        (
            "Of the paper's features of a word, exact match and frequency are here; its lemma, part of speech and named"
            " entity need annotators."
        ),
        "Words are lower-cased, and those seen once are unknown, GloVe's too; exact match compares them in lower case.",
        "All given vectors stay fixed; the paper tunes those of the 1,000 most frequent question words, and its release"
        " none unless asked.",
        "An answer has up to 30 words; the paper's have 15.",
        "The paper has no score for 'no answer' (SQuAD 2.0): a learned number joins both softmaxes.",
        "Dropout is 0.4, as in the release; the paper has 0.3.",
        "One passage per question.",
    ),
)
class ParagraphReader(Reader):
    """A bidirectional LSTM over the passage's words, each with features of its match with the
    question, scored against one vector of the question.

    A passage word is its vector, the :class:`AlignedQuestion`, 1 where the question has the word
    too, and its frequency, the share of the passage's words that are this word. The states p_i of
    all layers of :class:`StackedStates` stand side by side; so do q_j of the question, whose sum q
    is weighted by the softmax of w . q_j. Start is scored by p_i W_s q, end by p_i W_e q, with a
    bias that q meets: W q + b. Dropout acts on word vectors, on what each layer reads, and on the
    states of all layers.
    """

    vectors = "fixed"

    def __init__(self, width: int, hidden: int = 128, layers: int = 3, dropout: float = 0.4):
        super().__init__()
        self.align = AlignedQuestion(width)
        self.passage = StackedStates(2 * width + 2, hidden, layers, dropout)
        self.question = StackedStates(width, hidden, layers, dropout)
        size = self.question.size
        self.importance = nn.Linear(size, 1)
        self.start, self.end = (nn.Linear(size, size) for _ in range(2))
        self.dropout = nn.Dropout(dropout)

    def forward(self, passage: WordBatch, question: WordBatch) -> SpanScores:
        read, asked = self.dropout(passage.vectors), self.dropout(question.vectors)
        aligned = self.align(read, asked, question.mask)
        words = torch.cat([read, aligned, match_features(passage, question)], dim=-1)
        states, questions = self.passage(words, passage.mask), self.question(asked, question.mask)
        weights = masked_softmax(self.importance(questions).squeeze(-1), question.mask)
        summary = (weights[:, None] @ questions).squeeze(1)
        return SpanScores(
            *(
                (states @ layer(summary)[..., None]).squeeze(-1).masked_fill(~passage.mask, -torch.inf)
                for layer in (self.start, self.end)
            )
        )
