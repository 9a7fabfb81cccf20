"""The QA-LSTM family: answers chosen by the cosine of what one bidirectional LSTM makes of question
and answer."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.ranking import worst_negative_hinge_loss
from architectures.blocks.recurrent import Recurrent
from harness.kinds import PairEncoder, pool
from harness.layers.attention import AdditiveAttention
from harness.registry import Recipe, register
from harness.views.words import WordBatch


class Windows(nn.Module):
    """tanh filters over the window around each position, zeros beyond the text: (B, T, width) ->
    (B, T, filters)."""

    def __init__(self, width: int, filters: int, window: int):
        super().__init__()
        self.convolution = nn.Conv1d(width, filters, window)
        before = (window - 1) // 2
        self.around = (before, window - 1 - before)

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        widened = F.pad((vectors * mask[..., None]).transpose(1, 2), self.around)
        return torch.tanh(self.convolution(widened)).transpose(1, 2)


@register(
    "qa_lstm",
    name="QA-LSTM",
    kind="pair",
    paper="Tan et al. 2015",
    source="M2.8[118,126]",
    year=2015,
    recipe=Recipe(optimizer="sgd", lr=1.1, batch_size=20, vector_dims=100),
    tiny={"hidden": 12, "filters": 24},
    vectors_of_paper="word2vec",
    deviations=(
        "Negatives are drawn from the wrong candidates of the same question, not from all answers.",
        "The rate of the dropout before the cosine, 0.2, is our choice.",
    ),
    variants={
        "qa_lstm_cnn": {
            "name": "QA-LSTM/CNN (convolutional-pooling LSTM)",
            "hyperparameters": {"convolution": "states"},
            "deviations": ("It has 1,000 filters, the fewest of the papers' settings (up to 4,000).",),
        },
        "qa_lstm_attentive": {
            "name": "Attentive QA-LSTM",
            "hyperparameters": {"attentive": True},
            "deviations": ("The attention's hidden layer is as wide as a state, which is our choice.",),
        },
        "qa_lstm_conv_based": {
            "name": "Convolution-based LSTM",
            "paper": "Tan et al. 2016",
            "year": 2016,
            "hyperparameters": {"convolution": "words"},
            "deviations": ("The number of filters, 1,000, is our choice.",),
        },
    },
)
class QALSTM(PairEncoder):
    """One bidirectional LSTM reads question and answer; its pooled states are compared by their
    cosine, a score (B,).

    ``pooling`` is ``max``, ``mean`` or ``ends`` (the two directions' last states). ``convolution``
    over the ``states`` is the QA-LSTM/CNN of 2015, called convolutional-pooling LSTM in 2016;
    over the ``words``, below the LSTM, it is the convolution-based LSTM of 2016. An
    ``attentive`` model multiplies each state h_t of the answer by softmax_t(w . tanh(W_a h_t +
    W_q o_q)), o_q the pooled question, before what follows. Trained by max(0, margin - cos(q,
    a+) + cos(q, a-)) with the nearest a- of ``negatives`` drawn wrong answers. Dropout acts on
    both vectors before the cosine. The 1,000 filters make the two convolutional ones slow.
    """

    scores = True
    whole_groups = True

    def __init__(
        self,
        width: int,
        hidden: int = 141,
        pooling: str = "max",
        convolution: str = "none",
        filters: int = 1000,
        window: int = 2,
        attentive: bool = False,
        dropout: float = 0.2,
        negatives: int = 50,
        margin: float = 0.2,
    ):
        super().__init__()
        if convolution not in ("none", "states", "words"):
            raise ValueError(f"convolution={convolution!r} is none of none, states, words")
        if pooling not in ("max", "mean", "ends"):
            raise ValueError(f"pooling={pooling!r} is none of max, mean, ends")
        if convolution == "states" and pooling == "ends":
            raise ValueError(
                "pooling='ends' needs the states of two directions, which a convolution over the states hides: max or"
                " mean"
            )
        self.pooling, self.negatives, self.margin = pooling, negatives, margin
        self.below = Windows(width, filters, window) if convolution == "words" else None
        self.recurrence = Recurrent("lstm", filters if self.below else width, hidden, bidirectional=True)
        states = self.recurrence.size
        self.above = Windows(states, filters, window) if convolution == "states" else None
        self.attention = AdditiveAttention(filters if self.above else states, states, states) if attentive else None
        self.dropout = nn.Dropout(dropout)

    def states(self, text: WordBatch) -> Tensor:
        """States (B, T, 2 * hidden) of both directions."""
        words = text.vectors if self.below is None else self.below(text.vectors, text.mask)
        return self.recurrence(words, text.mask)

    def pooled(self, states: Tensor, mask: Tensor) -> Tensor:
        """Vector (B, size) of a text."""
        return pool(states if self.above is None else self.above(states, mask), mask, self.pooling)

    def forward(self, first: WordBatch, second: WordBatch) -> Tensor:
        question, answer_states = self.pooled(self.states(first), first.mask), self.states(second)
        if self.attention is not None:
            weights = self.attention.weights(question[:, None], answer_states, second.mask)
            answer_states = answer_states * weights.transpose(1, 2)
        return F.cosine_similarity(self.dropout(question), self.dropout(self.pooled(answer_states, second.mask)))

    def rank_loss(self, scores: Tensor, labels: Tensor, groups: Tensor) -> Tensor:
        return worst_negative_hinge_loss(scores, labels, groups, self.negatives, self.margin)
