"""Features of a text from convolutions over windows of its positions."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from architectures.blocks.windows import lengthen, window_mask


class WindowMaxima(nn.Module):
    """Maximum over the text of relu(W [x_t; ...; x_(t+w-1)] + b) for each of ``maps`` filters over
    each of ``windows``: (B, T, width) -> (B, ``size``).

    Windows lie inside the text; one shorter than a window is lengthened with zero vectors (Kim
    2014).
    """

    def __init__(self, width: int, maps: int, windows: tuple[int, ...]):
        super().__init__()
        self.convolutions = nn.ModuleList(nn.Conv1d(width, maps, window) for window in windows)
        self.size = maps * len(windows)

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        vectors, lengths = vectors * mask[..., None], mask.sum(1)
        pooled = []
        for convolution in self.convolutions:
            window = convolution.kernel_size[0]
            maps = torch.relu(convolution(lengthen(vectors, window).transpose(1, 2)))
            inside = window_mask(lengths, window, maps.shape[-1])
            pooled.append(maps.masked_fill(~inside[:, None], -torch.inf).amax(-1))
        return torch.cat(pooled, dim=1)
