"""The transformer: layers of attention among positions and a network at each of them (Vaswani et
al. 2017), with the options in which later models differ."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from harness.layers.attention import masked_softmax


class Memory(NamedTuple):
    """The attended positions: ``keys`` and ``values`` (B, heads, S, size / heads)."""

    keys: Tensor
    values: Tensor


class Attention(nn.Module):
    """softmax(Q K^T / sqrt(d)) V in each of the ``heads`` of d = size / heads numbers, which are
    joined and mapped back: (B, U, size) -> (B, U, size).

    ``joint``: one matrix makes queries, keys and values. ``bias``: matrices have biases. ``reach``
    (None: no relative positions): learned vectors of the distance j - i from query i to key j, cut
    off at +-``reach``, are added to the keys and the values, the same in all heads (Shaw et al.
    2018, equations 3 to 5).
    """

    def __init__(
        self,
        size: int,
        heads: int,
        dropout: float = 0.0,
        joint: bool = False,
        reach: int | None = None,
        bias: bool = True,
    ):
        super().__init__()
        if size % heads:
            raise ValueError(f"size={size} cannot be divided among heads={heads}")
        self.heads, self.dropout, self.joint, self.reach = heads, dropout, joint, reach
        if joint:
            self.queries_keys_values = nn.Linear(size, 3 * size, bias)
        else:
            self.query, self.key, self.value = (nn.Linear(size, size, bias) for _ in range(3))
        self.output = nn.Linear(size, size, bias)
        if reach is not None:
            self.distance_keys, self.distance_values = (
                nn.Parameter(nn.init.xavier_uniform_(torch.empty(2 * reach + 1, size // heads))) for _ in range(2)
            )

    def split(self, states: Tensor) -> Tensor:
        """(B, U, size) as (B, heads, U, d)."""
        return states.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def join(self, heads: Tensor) -> Tensor:
        """(B, heads, U, d) as the states (B, U, size) that come out."""
        return self.output(heads.transpose(1, 2).flatten(2))

    def remember(self, states: Tensor) -> Memory:
        """The keys and values of states (B, S, size)."""
        if self.joint:
            return self.project(states)[1]
        return Memory(self.split(self.key(states)), self.split(self.value(states)))

    def project(self, states: Tensor) -> tuple[Tensor, Memory]:
        """Queries (B, heads, U, d) of states (B, U, size), and their memory."""
        if self.joint:
            queries, *memory = map(self.split, self.queries_keys_values(states).chunk(3, dim=-1))
            return queries, Memory(*memory)
        memory = self.remember(states)
        return self.split(self.query(states)), memory

    def attend(self, queries: Tensor, memory: Memory, allowed: Tensor | None = None) -> Tensor:
        """States (B, U, size) that the queries (B, heads, U, d) read from the memory of S
        positions.

        ``allowed`` (B or 1, 1, U or 1, S) is true where a query may look (None: everywhere). One
        that may look nowhere reads zeros. With ``reach`` the queries stand at the last U of the S
        positions; without, ``allowed`` may also be numbers (B or 1, heads or 1, U or 1, S) that are
        added to the scores.
        """
        dropout = self.dropout if self.training else 0.0
        if self.reach is None:
            heads = F.scaled_dot_product_attention(queries, *memory, attn_mask=allowed, dropout_p=dropout)
        else:
            heads = self._attend_relative(queries, memory, allowed, dropout)
        return self.join(heads)

    def _attend_relative(self, queries: Tensor, memory: Memory, allowed: Tensor | None, dropout: float) -> Tensor:
        positions = torch.arange(memory.keys.shape[2], device=queries.device)
        distances = positions - positions[len(positions) - queries.shape[2] :, None]
        rows = distances.clamp(-self.reach, self.reach) + self.reach
        scores = queries @ memory.keys.mT + torch.einsum("bhud,usd->bhus", queries, self.distance_keys[rows])
        scores = scores / math.sqrt(queries.shape[-1])
        weights = scores.softmax(-1) if allowed is None else masked_softmax(scores, allowed)
        weights = F.dropout(weights, dropout)
        return weights @ memory.values + torch.einsum("bhus,usd->bhud", weights, self.distance_values[rows])

    def forward(self, states: Tensor, memory: Memory | None = None, allowed: Tensor | None = None) -> Tensor:
        """States (B, U, size) attend to a ``memory``, or to one another without one."""
        if memory is None:
            queries, memory = self.project(states)
        else:
            queries = self.split(self.query(states))
        return self.attend(queries, memory, allowed)


class TransformerLayer(nn.Module):
    """Self-attention, with ``cross`` attention over a source, and a network of ``inner`` units at
    each position; each is added to its input, with layer norm.

    The norm follows the sum, LayerNorm(x + Sublayer(x)), or with ``pre_norm`` precedes the
    sublayer, x + Sublayer(LayerNorm(x)). ``dropout`` acts on attention weights and on what is
    added, ``inner_dropout`` on the inner units; ``eps`` is added to a norm's variance.
    ``attention`` makes the self-attention, which is given ``options``, and attention over a source,
    which has none of them. ``norm`` makes the norms, and ``bias`` says whether the network has
    biases. ``experts`` makes another network, which is also given the mask of the states.
    """

    def __init__(
        self,
        size: int,
        heads: int,
        inner: int,
        dropout: float = 0.0,
        cross: bool = False,
        pre_norm: bool = False,
        activation: Callable[[], nn.Module] = nn.ReLU,
        inner_dropout: float = 0.0,
        eps: float = 1e-5,
        attention: Callable[..., Attention] = Attention,
        experts: Callable[[], nn.Module] | None = None,
        norm: Callable[[int, float], nn.Module] = nn.LayerNorm,
        bias: bool = True,
        **options: Any,
    ):
        super().__init__()
        self.pre_norm, self.has_experts = pre_norm, experts is not None
        self.attention = attention(size, heads, dropout, **options)
        self.across = attention(size, heads, dropout) if cross else None
        self.feedforward = (
            nn.Sequential(
                nn.Linear(size, inner, bias), activation(), nn.Dropout(inner_dropout), nn.Linear(inner, size, bias)
            )
            if experts is None
            else experts()
        )
        self.norms = nn.ModuleList(norm(size, eps) for _ in range(3 if cross else 2))
        self.dropout = nn.Dropout(dropout)

    def read(self, number: int, states: Tensor) -> Tensor:
        """Input of the sublayer with the norm of this ``number``."""
        return self.norms[number](states) if self.pre_norm else states

    def add(self, number: int, states: Tensor, change: Tensor) -> Tensor:
        """The states after that sublayer."""
        states = states + self.dropout(change)
        return states if self.pre_norm else self.norms[number](states)

    def forward(
        self,
        states: Tensor,
        allowed: Tensor | None = None,
        past: Memory | None = None,
        source: Memory | None = None,
        source_mask: Tensor | None = None,
        mask: Tensor | None = None,
    ) -> tuple[Tensor, Memory]:
        """States (B, U, size) after this layer, and the memory of all S positions: the ``past``
        ones and these.

        ``allowed`` (B or 1, 1, U or 1, S) and ``source_mask`` (B, 1, 1, positions of the source)
        are true where a state may look, ``mask`` (B, U) at the real ones (None: all are).
        """
        queries, memory = self.attention.project(self.read(0, states))
        if past is not None:
            memory = Memory(*(torch.cat(both, dim=2) for both in zip(past, memory, strict=True)))
        states = self.add(0, states, self.attention.attend(queries, memory, allowed))
        if self.across is not None:
            states = self.add(1, states, self.across(self.read(1, states), source, source_mask))
        read = self.read(-1, states)
        change = self.feedforward(read, mask) if self.has_experts else self.feedforward(read)
        return self.add(-1, states, change), memory


class TransformerState(NamedTuple):
    """For each layer, its memory of the positions ``written`` so far and of the ``source``;
    ``mask`` (B, 1, 1, positions of the source) is the source's."""

    written: tuple[Memory, ...]
    source: tuple[Memory, ...]
    mask: Tensor


class Transformer(nn.Module):
    """A stack of ``layers`` :class:`TransformerLayer`, whose further ``options`` it passes on:
    states (B, T, size) -> (B, T, size). What goes in (scale, positions) is the caller's.

    ``causal``: a position sees itself and those before it. ``cross``: each layer also attends to
    the states of a source. ``shared``: all layers have the same weights (ALBERT, Lan et al. 2020).
    With ``pre_norm`` a last norm follows the stack, since the sums themselves have none.
    ``experts`` makes the network of every other layer, the second being the first of these.
    """

    def __init__(
        self,
        size: int,
        heads: int,
        inner: int,
        layers: int,
        dropout: float = 0.0,
        causal: bool = False,
        cross: bool = False,
        shared: bool = False,
        pre_norm: bool = False,
        eps: float = 1e-5,
        experts: Callable[[], nn.Module] | None = None,
        **options: Any,
    ):
        super().__init__()
        self.causal, self.depth, self.heads = causal, layers, heads
        networks = [experts if number % 2 else None for number in range(1 if shared else layers)]
        self.layers = nn.ModuleList(
            TransformerLayer(size, heads, inner, dropout, cross, pre_norm, eps=eps, experts=network, **options)
            for network in networks
        )
        self.norm = nn.LayerNorm(size, eps) if pre_norm else nn.Identity()

    def stack(self) -> list[TransformerLayer]:
        """The layers in the order in which states pass them; a shared one stands there ``depth``
        times."""
        return [self.layers[number % len(self.layers)] for number in range(self.depth)]

    def part(self, states: Tensor, mask: Tensor, layers: slice) -> Tensor:
        """States (B, T, size) of whole texts with mask (B, T) that have passed some of the layers
        alone, which look both ways; without the norm behind the stack."""
        for layer in self.stack()[layers]:
            states, _ = layer(states, mask[:, None, None], mask=mask)
        return states

    def forward(
        self,
        states: Tensor,
        mask: Tensor | None = None,
        source: Tensor | None = None,
        source_mask: Tensor | None = None,
    ) -> Tensor:
        """States (B, T, size) of whole texts, ``mask`` as in :meth:`extend`; with ``cross`` the
        states (B, S, size) and mask (B, S) of the source."""
        state = None if source is None else self.start(source, source_mask)
        return self.extend(states, state, mask)[0]

    def start(self, source: Tensor, mask: Tensor) -> TransformerState:
        """The state before the first position: the memory of a source (B, S, size) with mask (B,
        S)."""
        nothing = source.new_empty(len(source), self.heads, 0, source.shape[2] // self.heads)
        written = (Memory(nothing, nothing),) * self.depth
        return TransformerState(
            written, tuple(layer.across.remember(source) for layer in self.stack()), mask[:, None, None]
        )

    def extend(
        self, states: Tensor, state: TransformerState | None = None, mask: Tensor | None = None
    ) -> tuple[Tensor, TransformerState]:
        """States (B, U, size) that follow those of ``state`` (None: the first ones, of a stack
        without source), and the state that has them in its memory.

        ``mask`` (B, all positions so far) is true at the real ones; None where all are. One of (B,
        U, all positions) says for each of these states where it may look.
        """
        nothing = (None,) * self.depth
        written, source, source_mask = state or (nothing, nothing, None)
        before = 0 if written[0] is None else written[0].keys.shape[2]
        allowed = None if mask is None else mask[:, None, None] if mask.dim() == 2 else mask[:, None]
        if self.causal:
            now = states.shape[1]
            seen = torch.ones(now, before + now, dtype=torch.bool, device=states.device).tril(before)[None, None]
            allowed = seen if allowed is None else seen & allowed
        real = None if mask is None else mask[:, before:]
        memories = []
        for layer, past, memory in zip(self.stack(), written, source, strict=True):
            states, own = layer(states, allowed, past, memory, source_mask, real)
            memories.append(own)
        return self.norm(states), TransformerState(tuple(memories), source, source_mask)
