"""Bi-directional attention flow, plain and with self-attention of the passage."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from architectures.blocks.characters import CharacterConvolution
from architectures.blocks.recurrent import Recurrent
from harness.kinds import Reader, SpanScores
from harness.layers.attention import masked_softmax
from harness.registry import Recipe, register
from harness.views.words_and_characters import WordCharacterBatch, WordsAndCharacters


class Highway(nn.Module):
    """g * relu(W x) + (1 - g) * x with the gate g = sigmoid(V x), in each layer: (..., size) ->
    (..., size)."""

    def __init__(self, size: int, layers: int):
        super().__init__()
        self.transforms = nn.ModuleList(nn.Linear(size, size) for _ in range(layers))
        self.gates = nn.ModuleList(nn.Linear(size, size) for _ in range(layers))

    def forward(self, states: Tensor) -> Tensor:
        for transform, gate in zip(self.transforms, self.gates, strict=True):
            states = torch.lerp(states, torch.relu(transform(states)), torch.sigmoid(gate(states)))
        return states


class Similarity(nn.Module):
    """w . [h; u; h * u] of every h (B, T, size) with every u (B, J, size): (B, T, J).

    Split into a term of h, one of u and a bilinear one, so that the (B, T, J, 3 * size) vectors
    never exist.
    """

    def __init__(self, size: int):
        super().__init__()
        self.first, self.second = (nn.Linear(size, 1, bias=False) for _ in range(2))
        self.product = nn.Parameter(nn.Linear(size, 1).weight.detach()[0])

    def forward(self, h: Tensor, u: Tensor) -> Tensor:
        return self.first(h) + self.second(u).transpose(1, 2) + (h * self.product) @ u.transpose(1, 2)


class ResidualSelfAttention(nn.Module):
    """x + relu(W [r; a; r * a]): x = relu(V g), r a recurrence over x, and a what r attends to at
    the OTHER words of the passage.

    g (B, T, width) -> (B, T, 2 * hidden). A passage of one word attends to nothing. Clark & Gardner
    2018, section 2.2.
    """

    def __init__(self, cell: str, width: int, hidden: int, dropout: float):
        super().__init__()
        size = 2 * hidden
        self.compress = nn.Linear(width, size)
        self.recurrence = Recurrent(cell, size, hidden, bidirectional=True)
        self.similarity = Similarity(size)
        self.merge = nn.Linear(3 * size, size)
        self.dropout = nn.Dropout(dropout)

    def forward(self, joined: Tensor, mask: Tensor) -> Tensor:
        inputs = torch.relu(self.compress(joined))
        states = self.dropout(self.recurrence(self.dropout(inputs), mask))
        others = mask[:, None] & ~torch.eye(mask.shape[1], dtype=torch.bool, device=mask.device)
        attended = masked_softmax(self.similarity(states, states), others) @ states
        return inputs + torch.relu(self.merge(torch.cat([states, attended, states * attended], dim=-1)))


@register(
    "bidaf",
    name="BiDAF",
    kind="span",
    paper="Seo et al. 2017",
    source="M-T3[4]",
    year=2017,
    recipe=Recipe(optimizer="adadelta", lr=0.5, batch_size=60, epochs=12, averaging=0.999, vector_dims=100),
    tiny={"hidden": 16, "character_size": 6, "filters": 8, "no_answer_hidden": 8},
    vectors_of_paper="GloVe",
    deviations=(
        "The word vectors are tuned; the paper's stay fixed.",
        "Each word is lengthened by zeros at both ends before the character convolution.",
        (
            "The paper has no score for 'no answer' (SQuAD 2.0): ours is that of Clark & Gardner 2018, from the states"
            " at start and end."
        ),
    ),
)
@register(
    "bidaf_self_attention",
    name="BiDAF + self-attention",
    kind="span",
    paper="Clark & Gardner 2018",
    source="M-T3[4]",
    year=2018,
    recipe=Recipe(optimizer="adadelta", lr=1.0, batch_size=45, epochs=26, averaging=0.999, vector_dims=300),
    hyperparameters={"self_attention": True, "cell": "gru", "character_size": 20},
    tiny={"hidden": 16, "character_size": 6, "filters": 8, "no_answer_hidden": 8},
    vectors_of_paper="GloVe",
    deviations=(
        (
            "Highway, modelling and output layers are BiDAF's; the paper has no highway, and one modelling layer before"
            " each score."
        ),
        "The word vectors are tuned; the paper's stay fixed.",
        "Dropout is not shared by the positions of a text.",
        "One passage per question.",
        "The 'no answer' score lacks the paper's third vector, a learned summary of the passage.",
    ),
)
class BiDAF(Reader):
    """Passage words h (2d) and question words u (2d) attend to each other before the passage is
    read again with what was found.

    Vectors of words and of their characters pass a highway and a BiLSTM. With S_tj = w . [h_t; u_j;
    h_t * u_j], the attended question is u~_t = sum_j softmax_j(S_tj) u_j, and the attended passage
    h~ = sum_t softmax_t(max_j S_tj) h_t, one for all t. On G = [h; u~; h * u~; h * h~] two BiLSTM
    layers make M and a third, reading M, M'; start is scored by w1 . [G; M], end by w2 . [G; M'].
    With ``self_attention``, a :class:`ResidualSelfAttention` of G stands for G.

    The score of "no answer" comes from two layers over [sum_t p_start(t) M_t; sum_t p_end(t) M'_t].
    """

    view = WordsAndCharacters(word_length=16)
    # Without unanswerable questions no loss asks for the score, and a word's own term is the same
    # in all its attention scores to others.
    unused = ("no_answer", "within.similarity.first")

    def __init__(
        self,
        width: int,
        view: WordsAndCharacters,
        hidden: int = 100,
        character_size: int = 8,
        filters: int = 100,
        window: int = 5,
        highway_layers: int = 2,
        dropout: float = 0.2,
        no_answer_hidden: int = 80,
        self_attention: bool = False,
        cell: str = "lstm",
    ):
        super().__init__()
        size = 2 * hidden
        self.spelling = CharacterConvolution(view.alphabet_size, character_size, filters, window, dropout, torch.relu)
        self.highway = Highway(width + filters, highway_layers)
        self.contextual = Recurrent(cell, width + filters, hidden, bidirectional=True)
        self.similarity = Similarity(size)
        self.within = ResidualSelfAttention(cell, 4 * size, hidden, dropout) if self_attention else None
        joined = size if self_attention else 4 * size
        self.modelling = Recurrent(cell, joined, hidden, layers=2, bidirectional=True, dropout=dropout)
        self.ending = Recurrent(cell, size, hidden, bidirectional=True)
        self.start, self.end = (nn.Linear(joined + size, 1, bias=False) for _ in range(2))
        self.no_answer = nn.Sequential(nn.Linear(2 * size, no_answer_hidden), nn.ReLU(), nn.Linear(no_answer_hidden, 1))
        self.dropout = nn.Dropout(dropout)

    def read(self, text: WordCharacterBatch) -> Tensor:
        """States (B, T, 2d) of a text's words by themselves."""
        spelt = self.spelling(text.characters, text.character_mask)
        words = self.highway(torch.cat([text.vectors, spelt], dim=-1))
        return self.contextual(self.dropout(words), text.mask)

    def attend(self, h: Tensor, passage: Tensor, u: Tensor, question: Tensor) -> Tensor:
        """G (B, T, 8d) from states h and u of passage and question, whose masks are given."""
        similarity = self.similarity(h, u)
        of_question = masked_softmax(similarity, question[:, None]) @ u
        strongest = similarity.masked_fill(~question[:, None], -torch.inf).amax(2)
        of_passage = masked_softmax(strongest, passage)[:, None] @ h
        return torch.cat([h, of_question, h * of_question, h * of_passage], dim=-1)

    def forward(self, passage: WordCharacterBatch, question: WordCharacterBatch) -> SpanScores:
        joined = self.attend(self.read(passage), passage.mask, self.read(question), question.mask)
        if self.within is not None:
            joined = self.within(self.dropout(joined), passage.mask)
        begins = self.modelling(self.dropout(joined), passage.mask)
        ends = self.ending(self.dropout(begins), passage.mask)
        scores, found = [], []
        for layer, states in ((self.start, begins), (self.end, ends)):
            score = (
                layer(self.dropout(torch.cat([joined, states], dim=-1)))
                .squeeze(-1)
                .masked_fill(~passage.mask, -torch.inf)
            )
            scores.append(score)
            found.append((score.softmax(1)[:, None] @ states).squeeze(1))
        return SpanScores(*scores, self.no_answer(torch.cat(found, dim=-1)).squeeze(-1))
