"""Gated recurrent networks over the sentences of a document."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from architectures.blocks.recurrent import Recurrent
from architectures.blocks.windows import window_mask
from harness.kinds import TextEncoder, pool
from harness.registry import Recipe, register
from harness.views.sentences import SentenceBatch, Sentences


class AveragedWindows(nn.Module):
    """A linear filter bank, its mean over a sentence's windows of ``window`` words, tanh: (N, T,
    width) -> (N, ``size``).

    A sentence shorter than the window is lengthened with zero vectors to one window.
    """

    def __init__(self, width: int, size: int, window: int):
        super().__init__()
        self.window = window
        self.filters = nn.Linear(window * width, size)

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        length = mask.shape[1]
        words = nn.functional.pad(vectors * mask[..., None], (0, 0, 0, self.window - 1))
        inside = window_mask(mask.sum(1), self.window, length)
        shares = (inside / inside.sum(1, keepdim=True)).to(words.dtype)[:, None]
        # The filters are linear: their mean over the windows is what they make of the mean window.
        window = torch.cat([shares @ words[:, k : k + length] for k in range(self.window)], dim=-1)
        return torch.tanh(self.filters(window.squeeze(1)))


class ConvolutionalSentence(nn.Module):
    """Mean of :class:`AveragedWindows` of each width."""

    def __init__(self, width: int, size: int, windows: tuple = (1, 2, 3)):
        super().__init__()
        self.banks = nn.ModuleList(AveragedWindows(width, size, window) for window in windows)

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        return sum(bank(vectors, mask) for bank in self.banks) / len(self.banks)


class RecurrentSentence(nn.Module):
    """Last state of an LSTM: (N, T, width) -> (N, size)."""

    def __init__(self, width: int, size: int):
        super().__init__()
        self.recurrence = Recurrent("lstm", width, size)

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        return pool(self.recurrence(vectors, mask), mask, "last")


class GatedRecurrence(nn.Module):
    """h_t = tanh(i * g + f * h_{t-1}) with i and f logistic and g tanh of [h_{t-1}; s_t]: (B, S,
    width) -> states (B, S, size).

    No memory cell and no output gate. No fused layer computes it; a document has few sentences, so
    steps are few.
    """

    def __init__(self, width: int, size: int):
        super().__init__()
        self.sentence = nn.Linear(width, 3 * size)
        self.past = nn.Linear(size, 3 * size, bias=False)

    def forward(self, sentences: Tensor) -> Tensor:
        state = sentences.new_zeros(len(sentences), self.past.in_features)
        states = []
        for inputs in self.sentence(sentences).unbind(1):
            i, f, g = (inputs + self.past(state)).chunk(3, dim=1)
            state = torch.tanh(torch.sigmoid(i) * torch.tanh(g) + torch.sigmoid(f) * state)
            states.append(state)
        return torch.stack(states, dim=1)


SENTENCES = {"conv": ConvolutionalSentence, "lstm": RecurrentSentence}


@register(
    "grnn_conv",
    name="Conv-GRNN",
    kind="text",
    paper="Tang et al. 2015",
    source="M2.9[132]",
    year=2015,
    recipe=Recipe(optimizer="sgd", lr=0.03, batch_size=1, vector_dims=200),
    tiny={"hidden": 16},
    vectors_of_paper="word2vec, trained on the reviews",
    deviations=(
        "Documents end after 30 sentences and sentences after 60 words.",
        "Weights start as PyTorch's layers do; the paper's start between -0.01 and 0.01.",
    ),
    variants={"grnn_lstm": {"name": "LSTM-GRNN", "hyperparameters": {"sentence": "lstm"}}},
)
class GatedRNN(TextEncoder):
    """Words make sentence vectors, by averaged convolutions or an LSTM (``sentence``); a gated
    recurrence reads these; its mean state.

    Documents to (B, hidden).
    """

    view = Sentences()
    # Nothing precedes the only sentence of a text: where all texts are such (snli) the weights of
    # the past learn nothing.
    unused = ("document.past",)

    def __init__(self, width: int, hidden: int = 50, sentence: str = "conv"):
        super().__init__()
        if sentence not in SENTENCES:
            raise ValueError(f"grnn: sentence={sentence!r} is none of {', '.join(SENTENCES)}")
        self.sentence = SENTENCES[sentence](width, hidden)
        self.document = GatedRecurrence(hidden, hidden)
        self.size = hidden

    def forward(self, document: SentenceBatch) -> Tensor:
        batch, sentences = document.sentence_mask.shape
        vectors = self.sentence(document.vectors.flatten(0, 1), document.mask.flatten(0, 1))
        return pool(self.document(vectors.view(batch, sentences, -1)), document.sentence_mask, "mean")
