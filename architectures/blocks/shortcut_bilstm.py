"""Words joined to their spelling, and stacked bidirectional LSTMs in which each reads the words too
(Chen et al. 2017, 2018)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.recurrent import Recurrent
from harness.views.words_and_characters import WordCharacterBatch


class SpelledWords(nn.Module):
    """Each word's vector beside the maxima over the word of relu(W [x_c; ...; x_(c+w-1)]) of its
    characters, for ``filters`` of each of ``windows``: (B, T, ``size``).

    A window may begin at each character; zero vectors follow the last.
    """

    def __init__(self, width: int, alphabet: int, character_size: int, filters: int, windows: tuple[int, ...]):
        super().__init__()
        self.characters = nn.Embedding(alphabet, character_size)
        self.convolutions = nn.ModuleList(nn.Conv1d(character_size, filters, window, bias=False) for window in windows)
        self.size = width + filters * len(windows)

    def forward(self, words: WordCharacterBatch) -> Tensor:
        spelt = self.characters(words.characters) * words.character_mask[..., None]
        spelt = spelt.flatten(0, 1).transpose(1, 2)
        features = [words.vectors]
        for convolution in self.convolutions:
            # Windows that hold no character give 0, which changes no maximum behind ReLU.
            maps = torch.relu(convolution(F.pad(spelt, (0, convolution.kernel_size[0] - 1))))
            features.append(maps.amax(-1).unflatten(0, words.mask.shape))
        return torch.cat(features, dim=-1)


class ShortcutBiLSTM(nn.Module):
    """``layers`` bidirectional LSTMs, each above the first of which reads the states of the one
    below beside the vectors (B, T, width)."""

    def __init__(self, width: int, hidden: int, layers: int):
        super().__init__()
        self.size = 2 * hidden
        self.layers = nn.ModuleList(
            Recurrent("lstm", width + self.size * bool(number), hidden, bidirectional=True) for number in range(layers)
        )

    def forward(self, vectors: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """States (B, T, ``size``) of the top layer, and what it read."""
        read, states = vectors, self.layers[0](vectors, mask)
        for layer in self.layers[1:]:
            read = torch.cat([states, vectors], dim=-1)
            states = layer(read, mask)
        return states, read
