"""MT-DNN: one transformer for single texts, pairs and candidates."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from architectures.pretrained.bert import BERT
from architectures.reading.san import StochasticAnswer
from harness.layers.attention import masked_softmax
from harness.objectives import MultiTask
from harness.registry import Recipe, register
from harness.views.subwords import SubwordBatch, Subwords


def texts_of(pieces: SubwordBatch) -> tuple[Tensor, Tensor]:
    """True (B, T) at the pieces of the first of two joined texts, and at those of the second:
    neither has [CLS] or a [SEP]."""
    places = torch.arange(pieces.ids.shape[1], device=pieces.ids.device)
    end = pieces.lengths[:, None] - 1
    first_end = end - pieces.segments.sum(1, keepdim=True)
    return (places > 0) & (places < first_end), (places > first_end) & (places < end)


class StochasticRelation(nn.Module):
    """The relation of two joined texts as the mean of the predictions of several steps.

    States (B, T, size) and pieces -> scores (B, classes), logarithms of mean probabilities. The
    state begins as s_0 = sum_j softmax_j(w . H_j) H_j over the second text; step k, from 0 on,
    reads of the first text x_k = sum_j softmax_j(s_k W P_j) P_j, predicts softmax(W [s_k; x_k;
    |s_k - x_k|; s_k * x_k]) and moves to s_(k+1) = GRU(x_k, s_k). In training each step of each
    pair is left out with probability ``step_dropout``, but for one, which is drawn. ``dropout``
    acts on the states of which s_0 is made, on the two sides that a step compares, on the state
    that it moves from and on what it predicts by.
    """

    shares = StochasticAnswer.shares

    def __init__(self, size: int, classes: int, steps: int, step_dropout: float, dropout: float):
        super().__init__()
        self.steps, self.step_dropout = steps, step_dropout
        self.begin = nn.Linear(size, 1, bias=False)
        self.read = nn.Linear(size, size, bias=False)
        self.update = nn.GRUCell(size, size)
        self.predict = nn.Linear(4 * size, classes)
        self.dropout = nn.Dropout(dropout)

    def forward(self, states: Tensor, pieces: SubwordBatch) -> Tensor:
        first, second = texts_of(pieces)

        def mean(scores: Tensor, of: Tensor, states: Tensor) -> Tensor:
            return (masked_softmax(scores.squeeze(-1), of)[:, None] @ states).squeeze(1)

        dropped = self.dropout(states)
        state, logs = mean(self.begin(dropped), second, dropped), []
        for _ in range(self.steps):
            asked = self.read(self.dropout(state))
            read = mean(self.dropout(states) @ asked[..., None], first, states)
            seen = torch.cat([state, read, (state - read).abs(), state * read], dim=1)
            logs.append(self.predict(self.dropout(seen)).log_softmax(1))
            state = self.update(read, self.dropout(state))
        return torch.logsumexp(torch.stack(logs, dim=1) + self.shares(state).log()[..., None], dim=1)


@register(
    "mt_dnn",
    name="MT-DNN, small",
    kind="plm",
    paper="Liu et al. 2019",
    source="M-T1 T5[23]",
    year=2019,
    version=3,
    parents={"weights": "bert@text_mix"},
    recipe=Recipe(
        optimizer="adamax",
        lr=0.00005,
        batch_size=32,
        epochs=5,
        patience=5,
        clip=1.0,
        lr_schedule="linear",
        warmup_share=0.1,
        eps=1e-6,
    ),
    tiny={"layers": 1, "hidden": 32, "heads": 2, "vocabulary": 1000},
    deviations=(
        "SST-2, AG News, SNLI and WikiQA are the tasks, not the nine of GLUE; nothing is scored as a number.",
        (
            "It goes on from our BERT, four layers of 256 and 8,000 pieces in lower case, not twenty-four of 1024;"
            " -o mt_dnn.pretrained=FOLDER loads others."
        ),
        "At most 128 pieces of a text are read, not 512, and dropout is 0.1 on all tasks.",
        "Nothing is tuned for one task afterwards.",
        "A candidate's score is linear in the vector of [CLS]; the paper has a sigmoid of it.",
        "A step answers in front of its move, as in the authors' program; in the paper's equation behind it.",
        "A step of an answer is left out with probability 0.1, as in the authors' program; the paper does not say how"
        " often.",
        "Dropout is drawn for each piece of a text, of which [CLS] and [SEP] are none for an answer in steps; the"
        " authors' program drops the same numbers of all pieces, and counts both marks.",
        "Nothing is decayed; the authors' program decays matrices by 0.01, which the paper does not say.",
        "Adam corrects its moments for their start at zero; the authors' optimizer does not.",
        "A batch has whole questions, with all of their candidates.",
    ),
)
class MTDNN(BERT):
    """BERT that is tuned on several tasks at once, a batch of one of them at a time.

    Classes of a single text are scored from the vector of [CLS], the relation of a pair by
    :class:`StochasticRelation` over the states of its two texts, with ``steps`` steps, and
    candidates by a softmax over all of their question: the loss is -log of the right one's
    probability. The other settings are BERT's.
    """

    learns = None
    trained_by = MultiTask
    whole_groups = True

    @classmethod
    def can_answer(cls, type: str) -> bool:
        return type in ("classify", "match", "rank")

    def __init__(
        self,
        width: int,
        view: Subwords,
        companions: tuple[str, ...] = ("sst2", "ag_news", "snli", "wikiqa"),
        pretrained: str = "",
        layers: int = 4,
        hidden: int = 256,
        heads: int = 4,
        dropout: float = 0.1,
        vocabulary: int = Subwords.size,
        max_length: int = 128,
        stride: int = 64,
        steps: int = 5,
        step_dropout: float = 0.1,
    ):
        sizes: dict[str, Any] = {"layers": layers, "hidden": hidden, "heads": heads, "dropout": dropout}
        super().__init__(width, view, pretrained, **sizes)
        self.companions, self.steps, self.step_dropout = companions, steps, step_dropout

    def pair_layer(self, classes: int) -> StochasticRelation:
        return StochasticRelation(self.size, classes, self.steps, self.step_dropout, self.dropout.p)

    def rank_loss(self, scores: Tensor, labels: Tensor, groups: Tensor) -> Tensor:
        """Mean over the right candidates of -log of their share in the softmax of their question's
        scores (B,); 0 without any."""
        others = scores.masked_fill(groups[:, None] != groups, -torch.inf)
        losses, right = others.logsumexp(1) - scores, labels == 1
        return (losses * right).sum() / right.sum().clamp(min=1)
