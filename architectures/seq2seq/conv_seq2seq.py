"""Encoder-decoder of gated convolutions, each layer of the decoder with an attention of its own."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.parametrizations import weight_norm

from harness.kinds import Generator
from harness.layers.attention import masked_softmax
from harness.registry import Recipe, register

HALF = math.sqrt(0.5)
"""Keeps the variance of a sum of two that have the same."""
PLACES = 1024
"""Places with a vector of their own; those behind share the last one's."""


class DecoderState(NamedTuple):
    """The last ``kernel - 1`` inputs (B, kernel - 1, hidden) of each decoder layer, the place (B,)
    of the next symbol, and the source's keys and values (B, S, size) and mask (B, S)."""

    inputs: tuple[Tensor, ...]
    place: Tensor
    keys: Tensor
    values: Tensor
    mask: Tensor


def linear(inputs: int, outputs: int, dropout: float = 0.0) -> nn.Module:
    """A weight-normed layer whose outputs vary as its inputs did before dropout."""
    layer = nn.Linear(inputs, outputs)
    nn.init.normal_(layer.weight, std=math.sqrt((1 - dropout) / inputs))
    nn.init.zeros_(layer.bias)
    return weight_norm(layer)


class Gated(nn.Module):
    """Gated linear unit a * sigmoid(b) over windows: (B, T, size) -> (B, T - kernel + 1, size)."""

    def __init__(self, size: int, kernel: int, dropout: float):
        super().__init__()
        layer = nn.Conv1d(size, 2 * size, kernel)
        nn.init.normal_(layer.weight, std=math.sqrt(4 * (1 - dropout) / (kernel * size)))
        nn.init.zeros_(layer.bias)
        self.convolution = weight_norm(layer)

    def forward(self, states: Tensor) -> Tensor:
        return F.glu(self.convolution(states.transpose(1, 2)), dim=1).transpose(1, 2)


class Attention(nn.Module):
    """Dot products of decoder states (B, U, hidden) with the source's keys, and what they find."""

    def __init__(self, hidden: int, size: int):
        super().__init__()
        self.query, self.back = linear(hidden, size), linear(size, hidden)

    def forward(self, states: Tensor, symbols: Tensor, source: DecoderState) -> Tensor:
        """The states with their contexts added; ``symbols`` (B, U, size) are the vectors of the
        symbols read last."""
        queries = (self.query(states) + symbols) * HALF
        weights = masked_softmax(queries @ source.keys.transpose(1, 2), source.mask[:, None])
        # A mean of n varies by 1 / sqrt(n) of what it is the mean of, if the weights are alike.
        context = (weights @ source.values) * source.mask.sum(1)[:, None, None].sqrt()
        return (self.back(context) + states) * HALF


@register(
    "conv_seq2seq",
    name="Convolutional encoder-decoder",
    kind="generate",
    paper="Gehring et al. 2017",
    source="X4.4.3 M[238]",
    year=2017,
    recipe=Recipe(
        optimizer="sgd",
        lr=0.25,
        momentum=0.99,
        batch_size=64,
        epochs=20,
        clip=0.1,
        lr_schedule="plateau",
        factor=0.1,
        vector_dims=256,
    ),
    tiny={"size": 32, "hidden": 32, "encoder_layers": 2, "layers": 2, "dropout": 0.0},
    deviations=(
        "Sizes are those of the authors' program for its smallest translation task (IWSLT, German to English).",
        "A batch is 64 pairs, as in the paper; the program has 32 on each GPU.",
        "The momentum is the ordinary one, not Nesterov's.",
        "The source's vectors start as the harness makes them, not as Gaussians of deviation .1.",
        "Places behind the 1,024th share one vector.",
        "Greedy by default, because dev is decoded after each epoch; the paper searches with a beam of 5.",
        "The rate is divided by ten after each epoch that is not the best, as in the authors' later program; in the"
        " paper after every epoch from the first that is no better, until it is below 0.0001, which ends training.",
    ),
)
class ConvolutionalSeq2Seq(Generator):
    """Vectors of words and of places, then layers of windows of ``kernel`` under a gated linear
    unit, each with its input added and times sqrt(.5); the decoder's windows end at the symbol read
    last.

    In each decoder layer the states q = (W h + b + g) sqrt(.5), g being the vector of the symbol
    read last, attend over the encoder's last states z by q . z; the context is the weighted mean of
    (z + e) sqrt(.5), e being the source's vectors, times the square root of the source's length.
    Gradients into the encoder are divided by twice the decoder's layers, each of which attends.
    Dropout acts on the sums of vectors and places, on what each convolution reads and on what the
    output layer reads.
    """

    cut = "gradients into the encoder are scaled down, as in the paper"

    def __init__(
        self,
        width: int,
        symbols: int,
        size: int = 256,
        hidden: int = 256,
        encoder_layers: int = 4,
        layers: int = 3,
        kernel: int = 3,
        dropout: float = 0.2,
        beam: int = 1,
    ):
        super().__init__()
        if kernel % 2 == 0:
            raise ValueError(f"kernel={kernel} has no middle: an odd number is needed")
        if layers < 1:
            raise ValueError(f"layers={layers}: the decoder reads the source in one layer at least")
        self.beam, self.kernel = beam, kernel
        self.projection = nn.Identity() if width == size else nn.Linear(width, size)
        self.places_of_source, self.places = nn.Embedding(PLACES, size), nn.Embedding(PLACES, size)
        self.vectors_of_symbols = nn.Embedding(symbols, size)
        for table in (self.places_of_source, self.places, self.vectors_of_symbols):
            nn.init.normal_(table.weight, std=0.1)
        self.encoder_input, self.encoder_output = linear(size, hidden, dropout), linear(hidden, size)
        self.encoder = nn.ModuleList(Gated(hidden, kernel, dropout) for _ in range(encoder_layers))
        self.decoder_input, self.decoder_output = linear(size, hidden, dropout), linear(hidden, size)
        self.decoder = nn.ModuleList(Gated(hidden, kernel, dropout) for _ in range(layers))
        self.attentions = nn.ModuleList(Attention(hidden, size) for _ in range(layers))
        self.output = linear(size, symbols, dropout)
        self.dropout = nn.Dropout(dropout)

    def start(self, vectors: Tensor, mask: Tensor) -> DecoderState:
        numbers = torch.arange(vectors.shape[1], device=vectors.device).clamp(max=PLACES - 1)
        embedded = self.dropout(self.projection(vectors) + self.places_of_source(numbers))
        real, around = mask[..., None], self.kernel // 2
        states = self.encoder_input(embedded)
        for layer in self.encoder:
            # Behind the text the windows read the zeros that they read before it.
            read = F.pad(self.dropout(states) * real, (0, 0, around, around))
            states = (layer(read) + states) * HALF
        keys = scaled_back(self.encoder_output(states), 1 / (2 * len(self.decoder)))
        first = states.new_zeros(len(states), self.kernel - 1, states.shape[2])
        inputs, place = (first,) * len(self.decoder), mask.new_zeros(len(mask), dtype=torch.long)
        return DecoderState(inputs, place, keys, (keys + embedded) * HALF, mask)

    def read(self, symbols: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        """Scores (B, U, symbols) after each of the symbols (B, U), and the state behind the last
        one."""
        count = symbols.shape[1]
        numbers = (state.place[:, None] + torch.arange(count, device=symbols.device)).clamp(max=PLACES - 1)
        embedded = self.dropout(self.vectors_of_symbols(symbols) + self.places(numbers))
        states, inputs = self.decoder_input(embedded), []
        for layer, attention, before in zip(self.decoder, self.attentions, state.inputs, strict=True):
            window = torch.cat([before, self.dropout(states)], dim=1)
            inputs.append(window[:, count:])
            states = (attention(layer(window), embedded, state) + states) * HALF
        scores = self.output(self.dropout(self.decoder_output(states)))
        return scores, state._replace(inputs=tuple(inputs), place=state.place + count)

    def forward(self, vectors: Tensor, mask: Tensor, prefix: Tensor) -> Tensor:
        return self.read(prefix, self.start(vectors, mask))[0]

    def step(self, symbols: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        scores, state = self.read(symbols[:, None], state)
        return scores.squeeze(1).log_softmax(-1), state


def scaled_back(values: Tensor, factor: float) -> Tensor:
    """The values as they are, with their gradient multiplied by ``factor``."""
    return factor * values + (1 - factor) * values.detach()
