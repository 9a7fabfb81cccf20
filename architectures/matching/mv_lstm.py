"""MV-LSTM: matching by multiple positional sentence representations."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.ranking import worst_negative_hinge_loss
from architectures.blocks.recurrent import Recurrent
from harness.kinds import PairEncoder
from harness.registry import Recipe, register
from harness.views.words import WordBatch


class Cosine(nn.Module):
    """cos(u, v) of all pairs of states (B, T, size) and (B, U, size): one map, (B, 1, T, U)."""

    maps = 1

    def __init__(self, size: int, slices: int):
        super().__init__()

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        return (F.normalize(first, dim=-1) @ F.normalize(second, dim=-1).transpose(1, 2))[:, None]


class Bilinear(nn.Module):
    """u M v + b of all pairs of states: one map, (B, 1, T, U)."""

    maps = 1

    def __init__(self, size: int, slices: int):
        super().__init__()
        self.weight = nn.Parameter(nn.init.xavier_uniform_(torch.empty(size, size)))
        self.bias = nn.Parameter(torch.zeros(1))

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        return (first @ self.weight @ second.transpose(1, 2) + self.bias)[:, None]


class TensorLayer(nn.Module):
    """relu(u M_c v + W_c [u; v] + b_c) of all pairs of states: a map for each of the ``slices``,
    (B, slices, T, U)."""

    def __init__(self, size: int, slices: int):
        super().__init__()
        self.maps = slices
        self.weight = nn.Parameter(
            torch.stack([nn.init.xavier_uniform_(torch.empty(size, size)) for _ in range(slices)])
        )
        self.first, self.second = nn.Linear(size, slices), nn.Linear(size, slices, bias=False)

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        products = first[:, None] @ self.weight @ second[:, None].transpose(2, 3)
        return torch.relu(
            products + self.first(first).transpose(1, 2)[..., None] + self.second(second).transpose(1, 2)[:, :, None]
        )


INTERACTIONS = {"cosine": Cosine, "bilinear": Bilinear, "tensor": TensorLayer}


def k_largest(maps: Tensor, real: Tensor, k: int) -> Tensor:
    """The k largest values of each map (B, C, T, U) at the ``real`` pairs (B, T, U), falling: (B,
    C, k); zeros where there are fewer."""
    values = maps.flatten(2).masked_fill(~real.flatten(1)[:, None], -torch.inf)
    largest = values.topk(min(k, values.shape[2]), dim=2).values
    largest = F.pad(largest, (0, k - largest.shape[2]), value=-torch.inf)
    return largest.masked_fill(largest == -torch.inf, 0.0)


@register(
    "mv_lstm_cosine",
    name="MV-LSTM, cosine",
    kind="pair",
    paper="Wan et al. 2016",
    source="M2.2[42]",
    year=2016,
    recipe=Recipe(optimizer="adagrad", lr=(0.1, 0.3, 0.5), batch_size=128, vector_dims=50),
    tiny={"hidden": 12},
    vectors_of_paper="word2vec",
    deviations=(
        "The size of the MLP is ours; the authors' scripts have 200 numbers.",
        "The wrong candidate of a ranking pair is drawn from the question's own; classes are learnt by cross-entropy.",
        "A position is the LSTM's two states, and the five largest interactions remain, as in the paper; the authors'"
        " scripts put the word's vector beside them, or pool a grid of 5 x 5.",
    ),
    variants={
        "mv_lstm_bilinear": {"name": "MV-LSTM, bilinear", "hyperparameters": {"interaction": "bilinear"}},
        "mv_lstm_tensor": {
            "name": "MV-LSTM, tensor layer",
            "recipe": Recipe(optimizer="adagrad", lr=(0.05, 0.1, 0.2), batch_size=128, vector_dims=50),
            "hyperparameters": {"interaction": "tensor"},
        },
    },
)
class MVLSTM(PairEncoder):
    """The k strongest interactions between the BiLSTM states of two texts, wherever they stand, and
    a hidden layer over them.

    A state sees its whole text from its own position. All states of one text interact with all of
    the other, by ``cosine``, ``bilinear`` form or ``tensor`` layer; of each map of interactions the
    k largest values remain, in falling order: (B, ``mlp``). Given no ``classes`` it scores the pair
    itself, (B,), by a linear layer trained with the hinge of a right and a wrong candidate.
    """

    whole_groups = True
    # In ranking only differences count, and the bias cancels where both candidates open the same
    # units, as they do before training.
    unused = ("mlp.bias",)

    def __init__(
        self,
        width: int,
        classes: int | None = None,
        hidden: int = 50,
        interaction: str = "cosine",
        slices: int = 5,
        k: int = 5,
        mlp: int = 50,
        margin: float = 1.0,
    ):
        super().__init__()
        if interaction not in INTERACTIONS:
            raise ValueError(f"interaction {interaction!r} is none of {', '.join(INTERACTIONS)}")
        self.k, self.margin = k, margin
        self.positions = Recurrent("lstm", width, hidden, bidirectional=True)
        # Biases would make all states alike before any training, and so all cosines close to 1.
        for name, parameter in self.positions.named_parameters():
            if "bias" in name:
                nn.init.zeros_(parameter)
        self.interaction = INTERACTIONS[interaction](self.positions.size, slices)
        self.mlp = nn.Linear(k * self.interaction.maps, mlp)
        self.size = mlp
        # A ranking task has no classes. Its loss compares scores, where a constant would cancel out
        # and learn nothing.
        self.scores = classes is None
        self.score = nn.Linear(mlp, 1, bias=False) if self.scores else None

    def forward(self, first: WordBatch, second: WordBatch) -> Tensor:
        u, v = self.positions(first.vectors, first.mask), self.positions(second.vectors, second.mask)
        real = first.mask[:, :, None] & second.mask[:, None]
        matched = torch.relu(self.mlp(k_largest(self.interaction(u, v), real, self.k).flatten(1)))
        return matched if self.score is None else self.score(matched).squeeze(1)

    def rank_loss(self, scores: Tensor, labels: Tensor, groups: Tensor) -> Tensor:
        return worst_negative_hinge_loss(scores, labels, groups, negatives=1, margin=self.margin)
