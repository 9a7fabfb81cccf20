"""Dynamic memory network."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from architectures.blocks.recurrent import Recurrent
from harness.kinds import Answerer
from harness.layers.pooling import pool
from harness.registry import Recipe, register
from harness.views.facts import FactBatch


def joined(facts: FactBatch) -> tuple[Tensor, Tensor, Tensor]:
    """The words of each story's facts behind one another: their ids (B, W) and mask (B, W), and the
    place (B, S) of the last word of each fact."""
    lengths = facts.mask.sum(-1)
    words, places = lengths.sum(1), (~facts.mask).flatten(1).byte().argsort(dim=1, stable=True)
    mask = torch.arange(int(words.max()), device=words.device) < words[:, None]
    return facts.ids.flatten(1).gather(1, places[:, : mask.shape[1]]), mask, lengths.cumsum(1) - 1


@register(
    "dmn",
    name="Dynamic memory network",
    kind="answer",
    paper="Kumar et al. 2016",
    source="M2.6[98]",
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
        "The gates are not shown which facts support an answer, so the number of passes is fixed.",
        "Word vectors start at random, not as GloVe.",
        "The paper gives no sizes: size, rate, batches, epochs and dropout are those of its successor DMN+.",
        "The penalty, of which neither paper gives the number, is that of a re-implementation of DMN+.",
        "An answer is one word of those that training shows, and the answer module makes one step.",
        "Full stops and question marks are words, and words that training shows once are all the same word.",
        "Of a story the newest 50 facts are read.",
    ),
)
class DMN(Answerer):
    """Facts (B, S, T) and question (B, 1, T) to the state (B, size) that names the answer.

    A GRU reads all words of the story, and its states at the ends of the sentences are the facts
    c_t; the question's last state is q, and the first memory. In each of ``passes`` every fact has
    a gate g = sigmoid(w . tanh(W z + b) + b') of z = [c; m; q; c*q; c*m; |c-q|; |c-m|; cBq; cBm],
    a GRU goes over the facts, h_t = g GRU(c_t, h) + (1 - g) h, and its last state, the episode,
    enters the memory by m = GRU(episode, m). The answer's GRU starts from the last memory and reads
    the word before, of which there is none, and q. All passes have the same weights. Dropout acts
    on the word vectors. Slow, because no fused layer has the gates: each pass goes from fact to
    fact.
    """

    def __init__(self, width: int, size: int = 80, passes: int = 5, dropout: float = 0.1):
        super().__init__()
        self.size, self.passes, self.dropout = size, passes, nn.Dropout(dropout)
        self.words = nn.Embedding(width, size)
        self.story = Recurrent("gru", size, size)
        self.question = Recurrent("gru", size, size)
        self.likeness = nn.Linear(size, size, bias=False)
        self.compare = nn.Linear(7 * size + 2, size)
        self.gate = nn.Linear(size, 1)
        self.read = nn.GRUCell(size, size)
        self.remember = nn.GRUCell(size, size)
        self.answer = nn.GRUCell(size, size)

    def facts(self, told: FactBatch) -> Tensor:
        """States (B, S, size) at the last words of the facts."""
        ids, mask, ends = joined(told)
        states = self.story(self.dropout(self.words(ids)), mask)
        return states.gather(1, ends[..., None].expand(-1, -1, self.size))

    def gates(self, facts: Tensor, question: Tensor, memory: Tensor) -> Tensor:
        """Gates (B, S), between 0 and 1, of the facts in a pass."""
        q, m, likeness = question[:, None], memory[:, None], self.likeness(facts)
        features = [
            *(facts, m.expand_as(facts), q.expand_as(facts)),
            *(facts * q, facts * m, (facts - q).abs(), (facts - m).abs()),
            *((likeness * q).sum(-1, keepdim=True), (likeness * m).sum(-1, keepdim=True)),
        ]
        return torch.sigmoid(self.gate(torch.tanh(self.compare(torch.cat(features, -1))))).squeeze(-1)

    def episode(self, facts: Tensor, gates: Tensor) -> Tensor:
        """State (B, size) of a GRU that goes over the facts as far as their gates are open."""
        state = torch.zeros_like(facts[:, 0])
        for fact, gate in zip(facts.unbind(1), gates.unbind(1), strict=True):
            state = state.lerp(self.read(fact, state), gate[:, None])
        return state

    def forward(self, facts: FactBatch, question: FactBatch) -> Tensor:
        told, asked = self.facts(facts), question.mask.squeeze(1)
        words = self.dropout(self.words(question.ids.squeeze(1)))
        memory = q = pool(self.question(words, asked), asked, "last")
        for _ in range(self.passes):
            gates = self.gates(told, q, memory) * facts.fact_mask
            memory = self.remember(self.episode(told, gates), memory)
        return self.answer(q, memory)
