"""Bi-directional attention flow with self-attention of the passage."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.bi_attention import BiAttention, Similarity
from architectures.blocks.characters import CharacterConvolution
from architectures.blocks.recurrent import Recurrent
from harness.kinds import Reader, SpanScores
from harness.layers.attention import masked_softmax
from harness.objectives import Objective, Supervised
from harness.registry import Recipe, register
from harness.views.words_and_characters import WordCharacterBatch, WordsAndCharacters


def none_or_span_losses(scores: SpanScores, target: Tensor) -> Tensor:
    """-log p (B,) of "none" where that is right (target -1), of "a span" where one is (B, 2).

    One softmax is over z, twice the score of "none", and s_i + g_j of every start i and end j; all
    spans together have the score log sum_i exp s_i + log sum_j exp g_j. Rows whose answer is cut
    off have loss 0.
    """
    assert scores.no_answer is not None  # the caller has a task with unanswerable questions
    spans = scores.start.logsumexp(1) + scores.end.logsumexp(1)
    known, none = target[:, 0] >= -1, target[:, 0] == -1
    losses = F.binary_cross_entropy_with_logits(2 * scores.no_answer - spans, none.to(spans.dtype), reduction="none")
    return losses * known


class JointSpans(Supervised):
    """The loss of one softmax over all spans and "none": that of "none" or some span, and for a
    span that of its start and of its end among the words.

    Clark & Gardner 2018, section 3.
    """

    def __init__(self, owner: Any, model: Any, inner: Objective):
        super().__init__(owner, model)
        assert isinstance(inner, Supervised)  # no other objective stands between this one and the head
        self.reduction = inner.reduction

    def reduced(self, model: Any, outputs: SpanScores, target: Tensor) -> Tensor:
        losses = model.head.row_losses(model.encoder, SpanScores(outputs.start, outputs.end), target)
        if outputs.no_answer is not None:
            losses = losses + none_or_span_losses(outputs, target)
        return losses.sum() if self.reduction == "batch" else losses.mean()


class SharedDropout(nn.Module):
    """Dropout of the same features at all positions of a text: (B, T, size) -> (B, T, size)."""

    def __init__(self, dropout: float):
        super().__init__()
        self.dropout = nn.Dropout1d(dropout)

    def forward(self, states: Tensor) -> Tensor:
        return self.dropout(states.transpose(1, 2)).transpose(1, 2)


class ResidualSelfAttention(nn.Module):
    """x + relu(W [r; a; r * a]): r a GRU over x, and a what r attends to at the OTHER words of the
    passage.

    x (B, T, 2 * hidden) -> the same shape. As in the authors' code a learned score b of "no
    alignment" stands beside those of the words: a_t = sum_k exp(S_tk) r_k / (exp b + sum_k exp
    S_tk). A passage of one word attends to nothing.
    """

    def __init__(self, hidden: int, dropout: float):
        super().__init__()
        size = 2 * hidden
        self.recurrence = Recurrent("gru", size, hidden, bidirectional=True)
        self.similarity = Similarity(size)
        self.no_alignment = nn.Parameter(torch.tensor([-1.0]))
        self.merge = nn.Linear(3 * size, size)
        self.dropout = SharedDropout(dropout)

    def attended(self, states: Tensor, mask: Tensor) -> Tensor:
        """Mean of the other words' states (B, T, size) for each word, "no alignment" counting as a
        state of zeros."""
        others = mask[:, None] & ~torch.eye(mask.shape[1], dtype=torch.bool, device=mask.device)
        scores = self.similarity(states, states)
        scores = torch.cat([scores, self.no_alignment.expand(*mask.shape, 1)], dim=2)
        return masked_softmax(scores, F.pad(others, (0, 1), value=True))[:, :, :-1] @ states

    def forward(self, inputs: Tensor, mask: Tensor) -> Tensor:
        states = self.dropout(self.recurrence(self.dropout(inputs), mask))
        attended = self.attended(states, mask)
        return inputs + torch.relu(self.merge(torch.cat([states, attended, states * attended], dim=-1)))


@register(
    "bidaf_self_attention",
    name="BiDAF + self-attention",
    kind="span",
    paper="Clark & Gardner 2018",
    source="M-T3[4]",
    year=2018,
    recipe=Recipe(
        optimizer="adadelta",
        lr=1.0,
        rho=0.95,
        eps=1e-8,
        batch_size=45,
        epochs=26,
        averaging=0.999,
        vector_dims=300,
    ),
    tiny={"hidden": 16, "character_size": 6, "filters": 8, "no_answer_hidden": 8},
    vectors_of_paper="GloVe",
    version=2,
    deviations=(
        "One passage per question.",
        "An answer has up to 30 words; the paper's have 17.",
        "Words are lower-cased, and those seen once are unknown, GloVe's too.",
        "Words without a given vector have a fixed random one, not zeros.",
        "Each word is lengthened by zeros at both ends before the character convolution.",
        "Weights start as PyTorch's layers do, not normal with deviation 0.05 (GRUs) and Glorot-uniform (the others).",
        "The fourth part of G is h * h~, as in the authors' code; the paper prints u~ * h~.",
        "The layer before 'no answer' has ReLU units; the authors' code has tanh.",
        (
            "Where a question may have no answer, training has one softmax over it and all spans; the probability that"
            " is told of an answer, and the loss of dev, are those of two, of starts and of ends."
        ),
    ),
    variants={
        "bidaf_self_attn_elmo": {
            "name": "BiDAF + self-attention + ELMo",
            "paper": "Peters et al. 2018",
            "year": 2018,
            "inputs": ("elmo_words",),
            "deviations": (
                "ELMo is our small one, and stands before the first layer alone, not before the last one too.",
            ),
        },
    },
)
class BiDAFSelfAttention(Reader):
    """BiDAF with GRUs, and between attention and scores a layer in which the passage attends to
    itself.

    A GRU over vectors of words and of their characters gives h (passage) and u (question), which a
    :class:`BiAttention` joins to G. x is the :class:`ResidualSelfAttention` of relu(V G). A GRU
    over x makes M, by which start is scored, and one over [x; M] makes M', by which end is. Dropout
    acts on characters, and on whole features of a text before and behind the first GRU, before and
    behind that of the self-attention, and on x. Given word vectors stay fixed.

    z, the score of "no answer" against s_i + g_j of each span, comes from two layers over [sum_t
    p_start(t) M_t; sum_t p_end(t) M'_t; sum_t softmax_t(v . x_t) x_t]. The harness compares twice
    the reader's score with the best span: it is given z / 2.
    """

    view = WordsAndCharacters(word_length=14)
    vectors = "fixed"
    trained_by = JointSpans
    unused = ("no_answer", "summary")  # without unanswerable questions no loss asks for the score

    def __init__(
        self,
        width: int,
        view: WordsAndCharacters,
        hidden: int = 100,
        character_size: int = 20,
        filters: int = 100,
        window: int = 5,
        dropout: float = 0.2,
        no_answer_hidden: int = 80,
    ):
        super().__init__()
        size = 2 * hidden
        self.dropout = SharedDropout(dropout)
        self.spelling = CharacterConvolution(view.alphabet_size, character_size, filters, window, dropout, torch.relu)
        self.contextual = Recurrent("gru", width + filters, hidden, bidirectional=True)
        self.attention = BiAttention(size)
        self.compress = nn.Linear(4 * size, size)
        self.within = ResidualSelfAttention(hidden, dropout)
        self.starts = Recurrent("gru", size, hidden, bidirectional=True)
        self.ends = Recurrent("gru", 2 * size, hidden, bidirectional=True)
        self.start, self.end, self.summary = (nn.Linear(size, 1, bias=False) for _ in range(3))
        self.no_answer = nn.Sequential(nn.Linear(3 * size, no_answer_hidden), nn.ReLU(), nn.Linear(no_answer_hidden, 1))

    def read(self, text: WordCharacterBatch) -> Tensor:
        """States (B, T, 2d) of a text's words by themselves."""
        spelt = self.spelling(text.characters, text.character_mask)
        words = self.dropout(torch.cat([text.vectors, spelt], dim=-1))
        return self.dropout(self.contextual(words, text.mask))

    def forward(self, passage: WordCharacterBatch, question: WordCharacterBatch) -> SpanScores:
        joined = self.attention(self.read(passage), passage.mask, self.read(question), question.mask)
        words = self.dropout(self.within(torch.relu(self.compress(joined)), passage.mask))
        begins = self.starts(words, passage.mask)
        ends = self.ends(torch.cat([words, begins], dim=-1), passage.mask)
        scores, found = [], []
        for layer, states in ((self.start, begins), (self.end, ends), (self.summary, words)):
            score = layer(states).squeeze(-1).masked_fill(~passage.mask, -torch.inf)
            scores.append(score)
            found.append((score.softmax(1)[:, None] @ states).squeeze(1))
        start, end, _ = scores
        return SpanScores(start, end, self.no_answer(torch.cat(found, dim=-1)).squeeze(-1) / 2)
