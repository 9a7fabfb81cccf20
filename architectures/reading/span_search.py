"""Reader that searches the passage for the start and the end of the answer."""

from __future__ import annotations

import torch
from torch import nn

from architectures.blocks.recurrent import Recurrent
from harness.kinds import Reader, SpanScores
from harness.layers.attention import AdditiveAttention
from harness.registry import Recipe, register
from harness.views.words import WordBatch


@register(
    "span_search",
    name="Start-end searcher",
    kind="span",
    paper="Zhang & Teng 2021, 16.2.2",
    source="Z16.2.2",
    year=2020,
    recipe=Recipe(optimizer="adam", lr=0.001, batch_size=32, epochs=15, patience=3, clip=5.0, vector_dims=100),
    tiny={"hidden": 16, "attention": 16},
    deviations=(
        (
            "The textbook gives no sizes and no training: 100 units, dropout 0.2, vectors of width 100, and Adam with"
            " its rate, batches, passes and clipping are ours."
        ),
        "The textbook names m_e without a definition: ours is a second BiLSTM over u.",
        (
            "The textbook has no score for 'no answer' (SQuAD 2.0): a learned number joins both softmaxes, as in Levy"
            " et al. 2017."
        ),
    ),
)
class StartEndSearcher(Reader):
    """A BiLSTM reads passage and question; each passage word attends over the question (additive
    attention): u = [h; attended].

    Two further BiLSTMs over u give m_b and m_e, and start and end are scored by v_b . [u; m_b] and
    v_e . [u; m_e]. The loss is the negative log-probability of the gold start and end, each
    among all positions. Dropout acts on the word vectors, on u and on what the scores read of
    m_b and m_e.
    """

    def __init__(self, width: int, hidden: int = 100, attention: int = 100, dropout: float = 0.2):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.reading = Recurrent("lstm", width, hidden, bidirectional=True)
        self.attention = AdditiveAttention(2 * hidden, 2 * hidden, attention)
        self.starts, self.ends = (Recurrent("lstm", 4 * hidden, hidden, bidirectional=True) for _ in range(2))
        self.start, self.end = (nn.Linear(6 * hidden, 1, bias=False) for _ in range(2))

    def forward(self, passage: WordBatch, question: WordBatch) -> SpanScores:
        context, asked = (self.reading(self.dropout(text.vectors), text.mask) for text in (passage, question))
        joined = self.dropout(torch.cat([context, self.attention(context, asked, question.mask)], dim=-1))
        scores = []
        for recurrence, layer in ((self.starts, self.start), (self.ends, self.end)):
            states = self.dropout(recurrence(joined, passage.mask))
            found = layer(torch.cat([joined, states], dim=-1)).squeeze(-1)
            scores.append(found.masked_fill(~passage.mask, -torch.inf))
        return SpanScores(*scores)
