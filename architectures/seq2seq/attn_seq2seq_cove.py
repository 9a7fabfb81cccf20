"""The translator whose encoder gives CoVe: an attentional encoder-decoder that reads both ways."""

from __future__ import annotations

from torch import Tensor

from architectures.seq2seq.luong_seq2seq import DecoderState, LuongSeq2Seq
from harness.registry import Recipe, register


@register(
    "attn_seq2seq_cove",
    name="Attentional encoder-decoder, of CoVe",
    kind="generate",
    paper="McCann et al. 2017",
    source="Z16.1.2 M-T1[217]",
    year=2017,
    version=3,
    recipe=Recipe(
        optimizer="sgd",
        lr=1.0,
        batch_size=64,
        epochs=20,
        clip=5.0,
        lr_schedule="plateau",
        reduction="sentence",
        vector_dims=300,
    ),
    tiny={"hidden": 64, "layers": 1, "symbol_size": 32, "dropout": 0.0, "limit": 0.2},
    vectors_of_paper="GloVe",
    deviations=(
        "The matrices of attention have no biases, as in the authors' program; the paper's equations have two.",
        "Padding gets no attention; in the authors' program it gets some in training.",
        "The rate is halved after an epoch that is not the best so far, in the authors' program than the one before;"
        " training ends after twenty, theirs when the rate is below 0.03.",
        "It learns from captions (Multi30k) from English to German; the paper has 7 million pairs (WMT).",
        "Greedy by default, because dev is decoded after each epoch.",
    ),
)
class CoVeTranslator(LuongSeq2Seq):
    """:class:`LuongSeq2Seq` whose encoder reads the source in both directions, ``hidden`` / 2
    numbers each, from word vectors that stay as they are given.

    Dropout acts on what each layer reads, as there; and, as in the authors' program, also on the
    states to which the decoder attends, on the symbol's vector and the attentional state by
    themselves, and on that state as it is made. Gates and scores of symbols have biases.
    """

    vectors = "fixed"
    both_ways = True
    bias = True

    def __init__(
        self,
        width: int,
        symbols: int,
        hidden: int = 600,
        layers: int = 2,
        symbol_size: int = 300,
        dropout: float = 0.2,
        limit: float = 0.1,
        beam: int = 1,
    ):
        super().__init__(width, symbols, hidden, layers, symbol_size, "general", dropout, limit, beam)

    def start(self, vectors: Tensor, mask: Tensor) -> DecoderState:
        state = super().start(vectors, mask)
        return state._replace(memory=self.dropout(state.memory))

    def advance(self, symbol: Tensor, state: DecoderState) -> DecoderState:
        state = state._replace(attentional=self.dropout(state.attentional))
        state = super().advance(self.dropout(symbol), state)
        return state._replace(attentional=self.dropout(state.attentional))
