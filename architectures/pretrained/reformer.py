"""Reformer: attention within buckets of a hash, and layers that can be computed backwards."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from architectures.blocks.objectives.masked_pieces import MaskedPieces
from architectures.blocks.piece_transformer import PieceTransformer
from harness.registry import Recipe, register
from harness.views.subwords import Subwords

ALONE = -1e5
"""Score of a position for itself, which counts where it sees no other one."""
AT_ONCE = 256
"""Positions at which the network is computed together."""


class HashedAttention(nn.Module):
    """Attention in which queries are keys too, among positions with like queries: (B, T, size) ->
    (B, T, size) (Kitaev et al. 2020: 2).

    A key is its query scaled to length 1. In each of the ``rounds`` positions are sorted by their
    bucket, and by their place within one; what comes out is cut into chunks, twice as long as a
    bucket is on average. A position sees those of its own chunk and of the one before, but itself
    only where there is no other. What the rounds find is added up by the sums of their exponential
    scores; a pair that is seen in N rounds has its score less log N in each, so that it counts
    once.
    """

    rotations: Tensor

    def __init__(self, size: int, heads: int, dropout: float, chunk: int, buckets: int, rounds: int):
        super().__init__()
        if size % heads:
            raise ValueError(f"size={size} cannot be divided among heads={heads}")
        self.heads, self.dropout, self.chunk = heads, dropout, chunk
        self.query, self.value, self.output = (nn.Linear(size, size, bias=False) for _ in range(3))
        self.register_buffer("rotations", torch.randn(heads, size // heads, rounds, buckets // 2))

    def split(self, states: Tensor) -> Tensor:
        """(B, T, size) as (B, heads, T, d)."""
        return states.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    @torch.no_grad()
    def hashed(self, states: Tensor, mask: Tensor) -> Tensor:
        """The bucket (B, heads, rounds, T) of each position: the largest of x R and -x R, R being
        random numbers, which are others at each pass of training. Padding has one of its own,
        behind all others."""
        rotations = torch.randn_like(self.rotations) if self.training else self.rotations
        turned = torch.einsum("bhtd,hdrk->bhrtk", self.split(self.query(states)), rotations)
        buckets = torch.cat([turned, -turned], -1).argmax(-1)
        return buckets.masked_fill(~mask[:, None, None], 2 * rotations.shape[-1])

    def forward(self, states: Tensor, mask: Tensor, buckets: Tensor) -> Tensor:
        """``mask`` (B, T) is true at real positions."""
        length = states.shape[1]
        empty = -length % self.chunk
        queries, values = self.split(self.query(states)), self.split(self.value(states))
        queries, values = (F.pad(each, (0, 0, 0, empty)) for each in (queries, values))
        mask, buckets = F.pad(mask, (0, empty)), F.pad(buckets, (0, empty), value=2 * self.rotations.shape[-1])
        order = buckets.argsort(stable=True, dim=-1)
        rank = order.argsort(-1)
        found, sums = self.within_chunks(queries, values, mask, order, rank // self.chunk)
        found = found.gather(3, rank[..., None].expand(found.shape))
        shares = sums.gather(3, rank).softmax(2)
        heads = (found * shares[..., None]).sum(2)[:, :, :length]
        return self.output(heads.transpose(1, 2).flatten(2))

    def within_chunks(
        self, queries: Tensor, values: Tensor, mask: Tensor, order: Tensor, chunks: Tensor
    ) -> tuple[Tensor, Tensor]:
        """In each round what a position finds (B, heads, rounds, T, d), and the logarithm of the
        sum of its exponential scores (B, heads, rounds, T), in the ``order`` (B, heads, rounds, T)
        of the round; ``chunks``, likewise, has the chunk of each position."""
        rounds = order.shape[2]
        in_order = order.unflatten(-1, (-1, self.chunk))  # (B, heads, rounds, chunks, positions of one)

        def gathered(each: Tensor) -> Tensor:
            """(B, heads, T, ...) in the order of the round."""
            each = each[:, :, None].expand(-1, -1, rounds, *each.shape[2:])
            index = order.view(*order.shape, *[1] * (each.dim() - 4)).expand(*order.shape, *each.shape[4:])
            return each.gather(3, index).unflatten(3, (-1, self.chunk))

        asked, read = gathered(queries), with_previous(gathered(values))
        keys = with_previous(gathered(F.normalize(queries, dim=-1)))
        places, seen = in_order, with_previous(in_order, -1)
        real = with_previous(gathered(mask[:, None].expand(-1, self.heads, -1)), False)
        where = gathered(chunks.transpose(2, 3))  # of each position, its chunk in every round
        apart = where[..., :, None, :] - with_previous(where, -2)[..., None, :, :]
        often = ((apart == 0) | (apart == 1)).sum(-1).clamp(min=1)
        itself = places[..., :, None] == seen[..., None, :]
        scores = (asked @ keys.mT - often.log()).masked_fill(~real[..., None, :], -torch.inf)
        scores = scores.masked_fill(itself, ALONE)
        sums = scores.logsumexp(-1, keepdim=True)
        weights = F.dropout((scores - sums).exp(), self.dropout, self.training)
        return (weights @ read).flatten(3, 4), sums[..., 0].flatten(3, 4)


def with_previous(each: Tensor, nothing: float | bool = 0) -> Tensor:
    """The numbers (B, heads, rounds, chunks, positions, ...) of each chunk behind those of the one
    before; in front of the first one stands ``nothing``."""
    before = torch.cat([torch.full_like(each[:, :, :, :1], nothing), each[:, :, :, :-1]], 3)
    return torch.cat([before, each], 4)


class ReversibleLayer(nn.Module):
    """y1 = x1 + Attention(x2), y2 = x2 + Network(y1), from which x1 and x2 can be computed again
    (Gomez et al. 2017); a norm precedes both."""

    def __init__(
        self, size: int, heads: int, inner: int, dropout: float, eps: float, chunk: int, buckets: int, rounds: int
    ):
        super().__init__()
        self.attention = HashedAttention(size, heads, dropout, chunk, buckets, rounds)
        self.feedforward = nn.Sequential(nn.Linear(size, inner), nn.ReLU(), nn.Linear(inner, size))
        self.norms = nn.ModuleList(nn.LayerNorm(size, eps) for _ in range(2))
        self.dropout = nn.Dropout(dropout)

    def hashed(self, second: Tensor, mask: Tensor) -> Tensor:
        """The buckets of states x2 (B, T, size)."""
        return self.attention.hashed(self.norms[0](second), mask)

    def attend(self, second: Tensor, mask: Tensor, buckets: Tensor) -> Tensor:
        """Attention(x2)."""
        return self.dropout(self.attention(self.norms[0](second), mask, buckets))

    def change(self, first: Tensor) -> Tensor:
        """Network(y1), for some positions after others."""
        parts = [self.feedforward(self.norms[1](part)) for part in first.split(AT_ONCE, 1)]
        return self.dropout(torch.cat(parts, 1))


class Drawn(NamedTuple):
    """The states of the generators of random numbers of a device."""

    device: torch.device
    cpu: Tensor
    cuda: Tensor | None

    @classmethod
    def now(cls, device: torch.device) -> Drawn:
        """The states as they are."""
        return cls(device, torch.get_rng_state(), torch.cuda.get_rng_state(device) if device.type == "cuda" else None)

    @contextmanager
    def again(self) -> Iterator[None]:
        """Draw in a block what was drawn from these states on."""
        with torch.random.fork_rng([] if self.cuda is None else [self.device]):
            torch.set_rng_state(self.cpu)
            if self.cuda is not None:
                torch.cuda.set_rng_state(self.cuda, self.device)
            yield


class Reversible(torch.autograd.Function):
    """Layers whose states are computed again from the last ones when gradients are, so that none
    are kept. Buckets are kept, which rounding could change."""

    @staticmethod
    def forward(
        ctx: Any, layers: Sequence[ReversibleLayer], mask: Tensor, first: Tensor, second: Tensor, *weights: Tensor
    ) -> tuple[Tensor, Tensor]:
        kind = first.device.type
        ctx.layers, ctx.mask, ctx.passed = layers, mask, []
        ctx.precision = kind, torch.get_autocast_dtype(kind), torch.is_autocast_enabled(kind)
        for layer in layers:
            buckets = layer.hashed(second, mask)
            drawn = [Drawn.now(first.device)]
            first = first + layer.attend(second, mask, buckets)
            drawn.append(Drawn.now(first.device))
            second = second + layer.change(first)
            ctx.passed.append((buckets, *drawn))
        ctx.save_for_backward(first, second)
        return first, second

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:
        first, second = ctx.saved_tensors
        of_first, of_second = slopes
        found: list[Sequence[Tensor | None]] = []
        for layer, (buckets, before, between) in zip(reversed(ctx.layers), reversed(ctx.passed), strict=True):
            with torch.autocast(*ctx.precision):
                first, second, *both = undone(layer, ctx.mask, buckets, before, between, first, second)
            (new_first, change), (old_second, attended) = both
            weights = [*layer.parameters()]
            *slopes_of, of_new = torch.autograd.grad(change, [*weights, new_first], of_second, allow_unused=True)
            of_first = of_first + of_new
            *others, of_old = torch.autograd.grad(attended, [*weights, old_second], of_first, allow_unused=True)
            of_second = of_second + of_old
            found.insert(0, [a if b is None else b for a, b in zip(slopes_of, others, strict=True)])
        return None, None, of_first, of_second, *(slope for each in found for slope in each)


def undone(
    layer: ReversibleLayer, mask: Tensor, buckets: Tensor, before: Drawn, between: Drawn, first: Tensor, second: Tensor
) -> tuple[Tensor, Tensor, tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """The states x1 and x2 of a layer from y1 and y2, and y1 with Network(y1), x2 with
    Attention(x2), each for gradients of the second by the first."""
    with torch.enable_grad():
        new_first = first.detach().requires_grad_()
        with between.again():
            change = layer.change(new_first)
        old_second = (second - change).detach().requires_grad_()
        with before.again():
            attended = layer.attend(old_second, mask, buckets)
    return first - attended.detach(), old_second.detach(), (new_first, change), (old_second, attended)


class ReversibleStack(nn.Module):
    """``layers`` :class:`ReversibleLayer`, whose two states begin as one and come out side by side,
    behind a norm: (B, T, size) -> (B, T, 2 size)."""

    def __init__(self, size: int, heads: int, inner: int, layers: int, dropout: float, eps: float, **options: Any):
        super().__init__()
        self.layers = nn.ModuleList(ReversibleLayer(size, heads, inner, dropout, eps, **options) for _ in range(layers))
        self.norm = nn.LayerNorm(2 * size, eps)

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        weights = [each for layer in self.layers for each in layer.parameters()]
        both = Reversible.apply(self.layers, mask, states, states, *weights)
        return self.norm(torch.cat(both, -1))


@register(
    "reformer",
    name="Reformer, small",
    kind="plm",
    paper="Kitaev et al. 2020",
    source="R25.6",
    year=2020,
    parents={"weights": "reformer@text_mix"},
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
            batch_size=8,
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
    tiny={"layers": 2, "hidden": 32, "heads": 2, "chunk": 8, "rounds": 2, "vocabulary": 1000, "max_length": 32},
    deviations=(
        "An encoder learns from masked pieces, in batches of eight sequences, and is tuned, by the recipes of RoBERTa"
        " (Liu et al. 2019); the paper's models tell the next letter or picture element, with Adafactor.",
        "Four layers of 256, not twelve of 1,024, and 1,024 pieces of a vocabulary of 8,000, not 65,536 letters.",
        "The number of buckets is that of a full sequence, also for a shorter one, whose buckets hold fewer pieces.",
        "A piece attends to all pieces of its chunk and of the one before, of whatever bucket, as the authors configure"
        " their program; the paper's equations leave out those of other buckets. A text of one chunk is so read by full"
        " attention.",
        "In front of the first chunk stands none; in the authors' program it is the last one.",
        "Positions have learnt vectors of their own, not sums of two of a grid (axial ones).",
        "A chunk has 64 pieces; the paper's typical one has 128.",
        "In evaluation the random numbers of the hash are always the same; the authors draw them anew.",
        "Dropout is drawn for each place by itself; in the authors' program one draw serves all places of a text. It"
        " acts inside the network and behind the last norm there, too.",
    ),
)
class Reformer(PieceTransformer):
    """A transformer for long texts, in which a piece attends to those that a hash puts near it, in
    ``rounds`` of hashing, and whose layers keep no states for their gradients.

    ``chunk`` pieces see one another and those of the chunk before. It learns from masked pieces of
    packed texts. A state is the two of the last layer side by side; the vector of a text is its
    first state, through dropout. Slow on short texts: each one is filled up to whole chunks, in
    every round.
    """

    learns = MaskedPieces
    in_parts = False

    def __init__(
        self,
        width: int,
        view: Subwords,
        layers: int = 4,
        hidden: int = 256,
        heads: int = 4,
        chunk: int = 64,
        rounds: int = 4,
        dropout: float = 0.1,
        vocabulary: int = 8000,
        max_length: int = 1024,
        stride: int = 512,
    ):
        buckets = 2 * -(-view.max_length // chunk)
        body = functools.partial(ReversibleStack, chunk=chunk, buckets=buckets, rounds=rounds)
        super().__init__(width, view, layers, hidden, heads, dropout, segments=0, norm=False, body=body)
        self.size = 2 * hidden

    def pooled(self, states: Tensor) -> Tensor:
        return self.dropout(states[:, 0])
