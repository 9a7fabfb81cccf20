"""DMN+: a dynamic memory network whose facts know their neighbours and whose attention keeps their
order."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.recurrent import Recurrent
from architectures.memory.memn2n import position_encoded
from harness.kinds import Answerer
from harness.layers.attention import masked_softmax
from harness.layers.pooling import pool
from harness.registry import Recipe, register
from harness.views.facts import FactBatch, Facts


class AttentionGRU(nn.Module):
    """Facts (B, S, width) and their gates (B, S) to an episode (B, size): a GRU whose update gate
    is the gate of the fact.

    r_i = sigmoid(W_r f_i + U_r h + b_r), n_i = tanh(W f_i + r_i * (U h) + b), h = g_i n_i + (1 -
    g_i) h. A fact with gate 0, such as padding, leaves h alone.
    """

    def __init__(self, width: int, size: int):
        super().__init__()
        self.fact = nn.Linear(width, 2 * size)
        self.state = nn.Linear(size, 2 * size, bias=False)

    def forward(self, facts: Tensor, gates: Tensor) -> Tensor:
        told = self.fact(facts)
        state = told.new_zeros(len(told), told.shape[-1] // 2)
        for fact, gate in zip(told.unbind(1), gates.unbind(1), strict=True):
            reset_fact, new_fact = fact.chunk(2, -1)
            reset_state, new_state = self.state(state).chunk(2, -1)
            new = torch.tanh(new_fact + torch.sigmoid(reset_fact + reset_state) * new_state)
            state = state.lerp(new, gate[:, None])
        return state


@register(
    "dmn_plus",
    name="DMN+",
    kind="answer",
    paper="Xiong et al. 2016",
    source="M2.6[99]",
    year=2016,
    recipe=Recipe(
        optimizer="adam",
        lr=0.001,
        batch_size=128,
        epochs=256,
        patience=20,
        weight_decay=0.00001,
        decay_exempt=("biases",),
    ),
    tiny={"size": 20, "passes": 2},
    deviations=(
        "Of a story the newest 70 facts are read; the paper reads 130 of one of the twenty skills.",
        "The penalty, of which the paper gives no number, is that of a re-implementation.",
        "Dev chooses the epoch by its score, not by its loss.",
        "The softmax is over the answers of the training set, not over the vocabulary.",
        "Full stops and question marks are words, and words that training shows once are all the same word.",
    ),
)
class DMNPlus(Answerer):
    """Facts (B, S, T) and question (B, 1, T) to a vector (B, 2 * size): the memory after
    ``passes`` over the facts, and the question.

    Input fusion: a sentence is the position-encoded sum of its words, and a bidirectional GRU over
    the sentences, whose directions are summed, gives the facts f_i. A pass weighs them by g =
    softmax(w . tanh(W [f*q; f*m; |f-q|; |f-m|] + b)) over the facts, its episode c is the last
    state of an :class:`AttentionGRU`, and the memory becomes ReLU(W_t [m; c; q] + b_t), with
    matrices of its own for each pass t. Attention and GRU are the same in all passes; m starts as
    q, the last state of a GRU over the question. Dropout acts on the sentences and on what the
    answer is read from.
    """

    view = Facts(most=70)

    def __init__(self, width: int, size: int = 80, passes: int = 3, dropout: float = 0.1):
        super().__init__()
        self.size, self.dropout = 2 * size, nn.Dropout(dropout)
        self.words = nn.Embedding(width, size)
        self.question = Recurrent("gru", size, size)
        self.fusion = Recurrent("gru", size, size, bidirectional=True)
        self.compare = nn.Linear(4 * size, size)
        self.score = nn.Linear(size, 1, bias=False)  # the paper's bias cannot change a softmax
        self.episode = AttentionGRU(size, size)
        self.update = nn.ModuleList(nn.Linear(3 * size, size) for _ in range(passes))
        for parameter in self.parameters():
            if parameter is self.words.weight:
                nn.init.uniform_(parameter, -(3**0.5), 3**0.5)
            elif parameter.dim() == 1:
                nn.init.zeros_(parameter)
            else:  # the gates of a GRU lie above one another
                for matrix in parameter.split(size):
                    nn.init.xavier_uniform_(matrix)

    def fused(self, facts: FactBatch) -> Tensor:
        """The facts (B, S, size), each with what stands before and behind it."""
        sentences = self.dropout(position_encoded(self.words(facts.ids), facts.mask))
        return self.fusion(sentences, facts.fact_mask).unflatten(-1, (2, -1)).sum(-2)

    def gates(self, facts: Tensor, question: Tensor, memory: Tensor, mask: Tensor) -> Tensor:
        """Weights (B, S) of the facts in a pass, which sum to one."""
        question, memory = question[:, None], memory[:, None]
        likeness = [facts * question, facts * memory, (facts - question).abs(), (facts - memory).abs()]
        return masked_softmax(self.score(torch.tanh(self.compare(torch.cat(likeness, -1)))).squeeze(-1), mask)

    def forward(self, facts: FactBatch, question: FactBatch) -> Tensor:
        fused, asked = self.fused(facts), question.mask[:, 0]
        memory = q = pool(self.question(self.words(question.ids[:, 0]), asked), asked, "last")
        for update in self.update:
            episode = self.episode(fused, self.gates(fused, q, memory, facts.fact_mask))
            memory = F.relu(update(torch.cat([memory, episode, q], -1)))
        return self.dropout(torch.cat([memory, q], -1))
