"""Memories of slots that are found by what they hold, by where they lie, or by when they were
written.

B is the batch, N the slots, W the numbers in a slot, H the heads of one kind. Weights are not
negative; those of a head add up to at most 1.
"""

from __future__ import annotations

import torch
from torch import Tensor

EPSILON = 1e-6
"""Added to squared norms, so that an empty slot is like no key and has a gradient."""


def by_content(memory: Tensor, keys: Tensor, strengths: Tensor) -> Tensor:
    """Weights (B, H, N): the softmax over slots of strength (B, H) times the cosine of key (B, H,
    W) and slot (B, N, W)."""
    norms = [(vectors.square().sum(-1) + EPSILON).sqrt() for vectors in (keys, memory)]
    cosines = keys @ memory.transpose(1, 2) / (norms[0][:, :, None] * norms[1][:, None])
    return torch.softmax(strengths[..., None] * cosines, dim=-1)


def shifted(weights: Tensor, shifts: Tensor) -> Tensor:
    """Weights (B, H, N) moved round the memory by -1, 0 or 1 slots, with the probabilities shifts
    (B, H, 3) (Graves et al. 2014, equation 8)."""
    back, stay, on = shifts[..., None].unbind(2)
    return back * weights.roll(-1, dims=-1) + stay * weights + on * weights.roll(1, dims=-1)


def sharpened(weights: Tensor, sharpness: Tensor) -> Tensor:
    """Weights (B, H, N) to the power sharpness (B, H), which is at least 1, over their sum (Graves
    et al. 2014, equation 9).

    Computed as a softmax, since powers of small weights would all be zero.
    """
    logarithms = weights.clamp(min=torch.finfo(weights.dtype).tiny).log()
    return torch.softmax(sharpness[..., None] * logarithms, dim=-1)


def written(memory: Tensor, weights: Tensor, erase: Tensor, add: Tensor) -> Tensor:
    """The memory (B, N, W) after heads with weights (B, H, N) erased shares (B, H, W) of it and
    added vectors (B, H, W)."""
    kept = (1 - weights[..., None] * erase[:, :, None]).prod(1)
    return memory * kept + weights.transpose(1, 2) @ add


def used(usage: Tensor, writing: Tensor, reading: Tensor, free: Tensor) -> Tensor:
    """Usage (B, N) of the slots after what the step before wrote there with weights (B, N), and
    freed as it read with weights (B, H, N) and this step's gates ``free`` (B, H).

    No gradient passes through the writing, as in the release of Graves et al. 2016.
    """
    usage = usage + (1 - usage) * writing.detach()
    return usage * (1 - free[..., None] * reading).prod(1)


def allocated(usage: Tensor) -> Tensor:
    """Weights (B, N) of the slots to be written next, from their usage (B, N): what each leaves
    free, of what the slots freer than it leave over (Graves et al. 2016, equation 1).

    The order of the slots has no gradient.
    """
    usage, order = usage.sort(dim=1, stable=True)
    before = torch.cat([torch.ones_like(usage[:, :1]), usage[:, :-1]], dim=1).cumprod(1)
    return torch.zeros_like(usage).scatter(1, order, (1 - usage) * before)


def linked(link: Tensor, latest: Tensor, writing: Tensor) -> Tensor:
    """Links (B, N, N): entry (i, j) is the share in which slot i was written right after slot j,
    of which ``latest`` (B, N) are the shares in being the last one before ``writing`` (B, N)."""
    kept = 1 - writing[:, :, None] - writing[:, None]
    link = kept * link + writing[:, :, None] * latest[:, None]
    return link * (1 - torch.eye(link.shape[1], dtype=link.dtype, device=link.device))


def last_written(latest: Tensor, writing: Tensor) -> Tensor:
    """Shares (B, N) in which each slot is the last one written, after ``writing`` (B, N)."""
    return (1 - writing.sum(1, keepdim=True)) * latest + writing
