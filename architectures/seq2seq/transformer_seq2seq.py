"""Transformer: encoder and decoder of attention and feed-forward layers, without recurrence."""

from __future__ import annotations

import math

from torch import Tensor, nn

from architectures.blocks.positions import sinusoids
from architectures.blocks.transformer import Transformer, TransformerState
from harness.kinds import Generator
from harness.registry import Recipe, register


@register(
    "transformer_seq2seq",
    name="Transformer encoder-decoder",
    kind="generate",
    paper="Vaswani et al. 2017",
    source="Z16.1.5 R25.4 M-A.6",
    year=2017,
    version=2,
    recipe=Recipe(
        optimizer="adam",
        lr=0.0014,
        betas=(0.9, 0.98),
        eps=1e-9,
        lr_schedule="warmup_inverse_sqrt",
        warmup_share=0.04,
        label_smoothing=0.1,
        vector_dims=128,
    ),
    tiny={"size": 64, "heads": 2, "inner": 64, "layers": 1},
    deviations=(
        (
            "128 wide with 4 heads and 2 + 2 layers, not the base model's 512, 8 and 6 + 6: it is trained from scratch"
            " on a few thousand."
        ),
        "A batch is 64 pairs, not about 25,000 symbols of source and as many of target.",
        "The warm-up is 4 % of all steps, as 4,000 are of the paper's 100,000, up to the rate of the paper's formula at"
        " a width of 128.",
        "Attention weights have dropout too, as in later versions of the authors' code.",
        "Only the decoder's symbols share their vectors with the output; the source has its own.",
        "Greedy by default, because dev is decoded after each epoch; the paper searches with a beam of 4.",
    ),
)
class TransformerSeq2Seq(Generator):
    """The source's states attend to one another; each target position attends to itself and those
    before it, then to the source.

    Scaled vectors plus sinusoidal positions go in; a symbol's score is the product of the decoder's
    last state with the symbol's vector. Source vectors of another width than ``size`` are
    mapped to it first. Dropout acts on the sums of vectors and positions, on attention weights
    and on what each sublayer adds. Decoding keeps keys and values of what is written, so that a
    step costs one position.
    """

    def __init__(
        self,
        width: int,
        symbols: int,
        size: int = 128,
        heads: int = 4,
        layers: int = 2,
        inner: int = 512,
        dropout: float = 0.1,
        beam: int = 1,
    ):
        super().__init__()
        self.beam, self.scale = beam, math.sqrt(size)
        self.projection = nn.Identity() if width == size else nn.Linear(width, size)
        self.encoder = Transformer(size, heads, inner, layers, dropout)
        self.decoder = Transformer(size, heads, inner, layers, dropout, causal=True, cross=True)
        self.vectors_of_symbols = nn.Embedding(symbols, size)
        # Scaled up they are as large as the positions, and as output weights they give scores of
        # about 1.
        nn.init.normal_(self.vectors_of_symbols.weight, std=1 / self.scale)
        self.dropout = nn.Dropout(dropout)

    def placed(self, vectors: Tensor, first: int = 0) -> Tensor:
        """Scaled vectors (B, U, size) with their positions, the first of which is ``first``."""
        positions = sinusoids(first + vectors.shape[1], vectors.shape[2], vectors)[first:]
        return self.dropout(vectors * self.scale + positions)

    def start(self, vectors: Tensor, mask: Tensor) -> TransformerState:
        return self.decoder.start(self.encoder(self.placed(self.projection(vectors)), mask), mask)

    def read(self, symbols: Tensor, state: TransformerState) -> tuple[Tensor, TransformerState]:
        """Scores (B, U, symbols) after each of the symbols (B, U), and the state that has them in
        its memory."""
        before = state.written[0].keys.shape[2]
        states, state = self.decoder.extend(self.placed(self.vectors_of_symbols(symbols), before), state)
        return states @ self.vectors_of_symbols.weight.T, state

    def forward(self, vectors: Tensor, mask: Tensor, prefix: Tensor) -> Tensor:
        return self.read(prefix, self.start(vectors, mask))[0]

    def step(self, symbols: Tensor, state: TransformerState) -> tuple[Tensor, TransformerState]:
        scores, state = self.read(symbols[:, None], state)
        return scores.squeeze(1).log_softmax(-1), state
