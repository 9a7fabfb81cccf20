"""LSTM states under wide convolutions, for sentences and for documents."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from architectures.blocks.recurrent import Recurrent
from harness.kinds import TextEncoder, pool
from harness.registry import Recipe, register
from harness.views.sentences import SentenceBatch, Sentences
from harness.views.words import WordBatch


class WideMaxima(nn.Module):
    """Maximum of relu(W [x_t; ...; x_(t+w-1)] + b) over all windows that hold a position of the
    text, zeros beside it: (B, T, width) -> (B, ``size``).

    Filters start uniform within ``spread`` and biases at zero.
    """

    def __init__(self, width: int, maps: int, windows: tuple[int, ...], spread: float):
        super().__init__()
        self.convolutions = nn.ModuleList(nn.Conv1d(width, maps, window, padding=window - 1) for window in windows)
        for convolution in self.convolutions:
            nn.init.uniform_(convolution.weight, -spread, spread)
            nn.init.zeros_(convolution.bias)
        self.size = maps * len(windows)

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        framed, pooled = (states * mask[..., None]).transpose(1, 2), []
        for convolution in self.convolutions:
            maps = torch.relu(convolution(framed))
            windows = mask.sum(1, keepdim=True) + convolution.kernel_size[0] - 1
            inside = torch.arange(maps.shape[-1], device=maps.device) < windows
            pooled.append((maps * inside[:, None]).amax(-1))  # no ReLU is below the zeros outside
        return torch.cat(pooled, dim=1)


@register(
    "dscnn",
    name="DSCNN, sentences",
    kind="text",
    paper="Zhang et al. 2016",
    source="M2.9[130]",
    year=2016,
    recipe=Recipe(optimizer="adadelta", lr=1.0, rho=0.95, eps=1e-6, batch_size=8, epochs=100, patience=10),
    tiny={"hidden": 12, "maps": 8},
    vectors_of_paper="word2vec and GloVe",
    deviations=(
        (
            "The second channel reads a fixed copy of the word vectors, not a second set of them, which the authors'"
            " program tunes as it does the first; without given vectors it learns too."
        ),
        "Windows of zeros alone are left out; the authors' code pads every text to one length and reads them.",
        "LSTMs start as PyTorch's layers do, not orthogonal.",
    ),
)
class DSCNN(TextEncoder):
    """Two channels of word vectors, an LSTM over each, and wide convolutions over both channels'
    states; the maximum of each map, dropout.

    A window so sees what its words depend on further left. Vector (B, maps * windows).
    """

    vectors = "multichannel"

    def __init__(
        self, width: int, hidden: int = 300, maps: int = 100, windows: tuple = (3, 4, 5), dropout: float = 0.5
    ):
        super().__init__()
        self.channels = nn.ModuleList(Recurrent("lstm", width, hidden) for _ in range(2))
        self.features = WideMaxima(2 * hidden, maps, windows, spread=0.01)
        self.dropout = nn.Dropout(dropout)
        self.size = self.features.size

    def forward(self, words: WordBatch) -> Tensor:
        channels = zip(self.channels, (words.vectors, words.static), strict=True)
        states = torch.cat([lstm(vectors, words.mask) for lstm, vectors in channels], dim=-1)
        return self.dropout(self.features(states, words.mask))


@register(
    "dscnn_document",
    name="DSCNN, documents",
    kind="text",
    paper="Zhang et al. 2016",
    source="M2.9[130]",
    year=2016,
    recipe=Recipe(optimizer="adadelta", lr=1.0, rho=0.95, eps=1e-6, batch_size=8),
    tiny={"hidden": 12, "maps": 8},
    vectors_of_paper="word2vec and GloVe",
    deviations=(
        "One channel of word vectors; the authors' code has no documents.",
        "A sentence's vector is the mean of its states, as in a re-implementation.",
        "Documents end after 30 sentences and sentences after 60 words.",
        "LSTMs start as PyTorch's layers do, not orthogonal.",
        "Filters start within 0.1, not 0.01 as over words: over states of means they stood at chance.",
    ),
)
class DocumentDSCNN(TextEncoder):
    """An LSTM over the words of each sentence and the mean of its states; a second LSTM over these,
    and wide convolutions over its states."""

    view = Sentences()
    # Nothing precedes the only sentence of a text: where all texts are such (snli) the weights of
    # the past learn nothing.
    unused = ("document.forwards.0.weight_hh",)

    def __init__(
        self, width: int, hidden: int = 300, maps: int = 100, windows: tuple = (3, 4, 5), dropout: float = 0.5
    ):
        super().__init__()
        self.sentence = Recurrent("lstm", width, hidden)
        self.document = Recurrent("lstm", hidden, hidden)
        self.features = WideMaxima(hidden, maps, windows, spread=0.1)
        self.dropout = nn.Dropout(dropout)
        self.size = self.features.size

    def forward(self, document: SentenceBatch) -> Tensor:
        mask = document.mask.flatten(0, 1)
        vectors = pool(self.sentence(document.vectors.flatten(0, 1), mask), mask, "mean")
        states = self.document(vectors.unflatten(0, document.sentence_mask.shape), document.sentence_mask)
        return self.dropout(self.features(states, document.sentence_mask))
