"""GShard's mixture of experts."""

from __future__ import annotations

import functools
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.objectives.masked_pieces import MaskedPieces
from architectures.blocks.piece_transformer import PooledPieces
from harness.objectives import add_loss
from harness.registry import Recipe, register
from harness.views.subwords import Subwords


class Routes(NamedTuple):
    """The experts E that positions T of texts B go to: ``shares`` (B, T, E) of what each adds, 0
    where nothing goes, and true (B, T, E) where a position is ``sent`` and where an expert is its
    ``first`` choice, with room or without."""

    shares: Tensor
    sent: Tensor
    first: Tensor


def routes(gates: Tensor, mask: Tensor, capacity: Tensor, numbers: Tensor) -> Routes:
    """The two experts of each position, by its ``gates`` (B, T, E) (Lepikhin et al. 2020, algorithm
    1).

    The shares of the two sum to 1. The second one is asked where twice its share is above a number
    (B, T) between 0 and 1. An expert takes ``capacity`` (B, 1, 1) positions of a text: first those
    whose first choice it is, then the others, each in their order. Padding, where ``mask`` (B, T)
    is false, goes nowhere.
    """
    experts = gates.shape[-1]
    best = F.one_hot(gates.argmax(-1), experts).bool()
    other = F.one_hot(gates.masked_fill(best, 0).argmax(-1), experts).bool()
    one = (gates * best).sum(-1, keepdim=True)
    two = (gates.masked_fill(best, 0) * other).sum(-1, keepdim=True)
    share = two / (one + two)
    first = best & mask[..., None]
    second = other & mask[..., None] & (2 * share > numbers[..., None])
    first_sent = first & (places(first) < capacity)
    second_sent = second & (places(second) + first_sent.sum(1, keepdim=True) < capacity)
    return Routes((1 - share) * first_sent + share * second_sent, first_sent | second_sent, first)


def places(chosen: Tensor) -> Tensor:
    """Number (B, T, E) of the earlier positions of a text that chose the same expert."""
    return chosen.cumsum(1) - chosen.long()


class Experts(nn.Module):
    """``experts`` networks of ``inner`` ReLUs, of which each position reads the two with the
    highest gates softmax(W x): (B, T, size) -> (B, T, size).

    A text of N positions is a group. In training an expert takes 2 N / ``experts`` of them, and the
    second one is asked by chance; a position for which both have no room gets zeros. In evaluation
    there is room for all, and the second one is always asked. ``balance`` times the mean of
    ``experts`` sum_e (c_e / N) m_e over the texts is added to the loss: c_e positions have the
    expert as their first choice, m_e is its mean gate. It is 1 where all have the same, as in the
    authors' program; the paper's is smaller by the square of the number of experts.
    """

    def __init__(self, size: int, inner: int, experts: int, balance: float):
        super().__init__()
        self.gate = nn.Linear(size, experts, bias=False)
        self.networks = nn.ModuleList(
            nn.Sequential(nn.Linear(size, inner), nn.ReLU(), nn.Linear(inner, size)) for _ in range(experts)
        )
        self.balance = balance

    def forward(self, states: Tensor, mask: Tensor | None = None) -> Tensor:
        gates = self.gate(states).softmax(-1)
        mask = torch.ones(states.shape[:2], dtype=torch.bool, device=states.device) if mask is None else mask
        count = mask.sum(1)[:, None, None]
        if self.training:
            room, numbers = (2 * count / len(self.networks)).ceil(), torch.rand(mask.shape, device=mask.device)
        else:
            room, numbers = count, torch.zeros(mask.shape, device=mask.device)
        found = routes(gates, mask, room, numbers)
        if self.training:
            add_loss("balance", self.balance * unbalance(gates, mask, found.first))
        read = torch.zeros_like(states)
        for number, network in enumerate(self.networks):
            texts, positions = found.sent[..., number].nonzero(as_tuple=True)
            answers = found.shares[texts, positions, number, None] * network(states[texts, positions])
            read = read.index_put((texts, positions), answers, accumulate=True)
        return read


def unbalance(gates: Tensor, mask: Tensor, first: Tensor) -> Tensor:
    """The mean over texts of E sum_e (c_e / N) m_e: 1 where all experts are chosen as often."""
    count = mask.sum(1, keepdim=True)
    chosen = first.sum(1) / count
    mean = (gates * mask[..., None]).sum(1) / count
    return (chosen * mean).sum(1).mean() * gates.shape[-1]


@register(
    "gshard",
    name="GShard mixture of experts, small",
    kind="plm",
    paper="Lepikhin et al. 2020",
    source="M1[9]",
    year=2020,
    parents={"weights": "gshard@text_mix"},
    recipe=Recipe(
        optimizer="adamw",
        lr=(0.00001, 0.00002, 0.00003),
        batch_size=32,
        epochs=10,
        patience=10,
        weight_decay=0.1,
        betas=(0.9, 0.98),
        eps=0.000001,
        lr_schedule="slanted_triangle",
        warmup_share=0.06,
    ),
    recipes={
        "text": Recipe(
            optimizer="adamw",
            lr=0.0006,
            batch_size=32,
            epochs=5,
            patience=5,
            weight_decay=0.01,
            betas=(0.9, 0.98),
            eps=1e-06,
            lr_schedule="slanted_triangle",
            warmup_share=0.048,
            decay_exempt=("biases", "norms"),
        ),
    },
    tiny={"layers": 3, "hidden": 32, "heads": 2, "experts": 4, "expert_inner": 64, "vocabulary": 1000},
    deviations=(
        "An encoder learns from masked pieces and is tuned by the recipes of RoBERTa (Liu et al. 2019); the paper's"
        " encoder and decoder learn to translate, by Adafactor.",
        "Four layers of 256 with eight experts, not 12 to 36 of 1,024 with 128 to 2,048 experts.",
        "An expert has half the units of a dense network, so that the two that a piece reads cost as much as one; the"
        " paper's experts are as wide (-o gshard.expert_inner=1024).",
        "A group is a text, so that a piece's experts depend on no other text of its batch; the paper's groups are"
        " parts of a batch.",
        "In evaluation every expert has room for all pieces, and the second one is always asked.",
        "Networks have biases, as those of BERT; the paper writes none.",
        "A norm follows each sum, as in BERT; in the authors' program it stands in front of each layer, and another one"
        " behind the last.",
    ),
)
class GShard(PooledPieces):
    """A transformer in which every other layer has ``experts`` networks in the place of one, of
    which each piece reads the two that a gate chooses.

    It learns from masked pieces of packed texts. ``balance`` is the weight of the loss that is
    least where all experts have as many pieces. The vector of a text is the first state, through a
    linear layer and tanh.
    """

    learns = MaskedPieces

    def __init__(
        self,
        width: int,
        view: Subwords,
        layers: int = 4,
        hidden: int = 256,
        heads: int = 4,
        experts: int = 8,
        expert_inner: int = 512,
        balance: float = 0.01,
        dropout: float = 0.1,
        vocabulary: int = 8000,
        max_length: int = 128,
        stride: int = 64,
    ):
        mixture = functools.partial(Experts, hidden, expert_inner, experts, balance)
        super().__init__(width, view, layers, hidden, heads, dropout, segments=0, experts=mixture)
