"""Pooling that sees the real positions only and depends on a text's own length, never on that of
its batch."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def k_max(states: Tensor, mask: Tensor, k: int, counts: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The k largest values of each row in their original order: states (B, C, T), mask (B, T) ->
    (B, C, k) and the mask (B, k) of them.

    Row b gives its ``counts[b]`` largest where each text has a number of its own (B,), at most
    ``k``. Fewer positions give as many values; zeros follow. Of equal values the first win.
    Kalchbrenner et al. 2014, section 3.3.
    """
    length = states.shape[-1]
    taken = mask.sum(1).clamp(max=k) if counts is None else torch.minimum(mask.sum(1), counts)
    taken = torch.arange(k, device=states.device) < taken[:, None]
    # Sorted stably, so that neither ties nor padding behind the text (-inf) decide which positions
    # come first.
    order = states.detach().masked_fill(~mask[:, None], -torch.inf).sort(dim=-1, descending=True, stable=True).indices
    order = F.pad(order[..., :k], (0, max(0, k - length)))
    positions = order.masked_fill(~taken[:, None], length).sort(dim=-1).values
    return states.gather(-1, positions.clamp(max=length - 1)).masked_fill(~taken[:, None], 0), taken


def halve(states: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Maximum of three positions around every second one, real ones only: states (B, C, T), mask
    (B, T) -> half as many, rounded up."""
    pooled = F.max_pool1d(states.masked_fill(~mask[:, None], -torch.inf), 3, stride=2, padding=1)
    mask = mask[:, ::2]
    return pooled.masked_fill(~mask[:, None], 0), mask


def dynamic_max(values: Tensor, lengths: Tensor, cells: int) -> Tensor:
    """Maximum in each of ``cells`` equal parts of a text: values (B, T, ...) with ``lengths`` (B,)
    of at least 1 -> (B, cells, ...).

    Part p of n positions is floor(p n / cells) to ceil((p + 1) n / cells): each position is in a
    part and none is empty, also where there are fewer positions than parts. (Pang et al. 2016;
    their release repeats positions and then pools equal parts.)
    """
    parts = torch.arange(cells, device=values.device)
    starts = parts * lengths[:, None] // cells
    last = -(-(parts + 1) * lengths[:, None] // cells) - 1
    # A part has at most ceil(T / cells) + 1 positions; a narrower one looks at its last position
    # again.
    within = torch.arange(-(-values.shape[1] // cells) + 1, device=values.device)
    positions = torch.minimum(starts[..., None] + within, last[..., None])
    rest = values.shape[2:]
    index = positions.flatten(1).view(len(values), -1, *[1] * len(rest)).expand(-1, -1, *rest)
    return values.gather(1, index).view(*positions.shape, *rest).amax(2)


def pool_by(values: Tensor, lengths: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Maximum of every ``size`` real positions, one behind another: values (B, T, D) with
    ``lengths`` (B,) of at least 1 -> (B, ceil(T / size), D) and the new lengths.

    The last maximum of a text may have fewer positions; behind the text stand zeros.
    """
    mask = torch.arange(values.shape[1], device=values.device) < lengths[:, None]
    pooled = F.max_pool1d(values.mT.masked_fill(~mask[:, None], -torch.inf), size, ceil_mode=True).mT
    lengths = -(-lengths // size)
    inside = torch.arange(pooled.shape[1], device=values.device) < lengths[:, None]
    return pooled.masked_fill(~inside[..., None], 0), lengths
