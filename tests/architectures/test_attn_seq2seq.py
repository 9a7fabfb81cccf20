"""Attentional encoder-decoders: one decoding step after another against the equations."""

from __future__ import annotations

import pytest
import torch

from architectures.seq2seq.attn_seq2seq import AttentionalSeq2Seq
from architectures.seq2seq.luong_seq2seq import LuongSeq2Seq
from tests.support.batches import random_vectors
from tests.support.models import small
from tests.support.oracles import lstm_step, recurrent, softmax_mean

WIDTH, SYMBOLS, START = 4, 5, 1
LENGTHS = [5, 2, 3]
PREFIX = torch.tensor([[START, 3, 4, 0], [START, 4, 4, 3], [START, 0, 3, 3]])


def bahdanau(attention: str) -> AttentionalSeq2Seq:
    sizes = {"encoder_hidden": 3 if attention == "dot" else 5, "hidden": 6, "symbol_size": 3}
    return small(AttentionalSeq2Seq, WIDTH, SYMBOLS, attention=attention, **sizes)


def luong(attention: str) -> LuongSeq2Seq:
    return small(LuongSeq2Seq, WIDTH, SYMBOLS, hidden=6, layers=2, symbol_size=3, attention=attention)


@pytest.mark.parametrize("attention", ["additive", "dot"])
def test_previous_state_attends_and_the_context_enters_every_gate(attention):
    """Attending from the new state, or a context beside the state instead of in the gates, gives
    other scores from step 1 on."""
    model = bahdanau(attention)
    vectors, mask = random_vectors(LENGTHS, 1, WIDTH)
    scores = model(vectors, mask, PREFIX)
    for row, length in enumerate(LENGTHS):
        states = recurrent(model.encoder, vectors[row, :length])
        half = states.shape[1] // 2
        h = torch.tanh(model.bridge.weight @ states[0, half:] + model.bridge.bias)
        c = torch.zeros_like(h)
        for step, symbol in enumerate(PREFIX[row]):
            if attention == "additive":
                energies = [model.score.weight[0] @ torch.tanh(model.query(h) + model.key.weight @ s) for s in states]
            else:
                energies = [h @ s for s in states]
            context = softmax_mean(energies, states)
            h, c = lstm_step(model.decoder, torch.cat([model.vectors_of_symbols.weight[symbol], context]), h, c)
            torch.testing.assert_close(scores[row, step], model.output.weight @ h + model.output.bias)


@pytest.mark.parametrize("attention", ["dot", "general", "concat"])
def test_luong_attends_from_the_current_state_and_feeds_its_answer_back(attention):
    """Attending from the previous state, no input feeding, or scores from the bare state give other
    numbers."""
    model = luong(attention)
    vectors, mask = random_vectors(LENGTHS, 1, WIDTH)
    scores = model(vectors, mask, PREFIX)
    for row, length in enumerate(LENGTHS):
        h, c = [torch.zeros(6)] * 2, [torch.zeros(6)] * 2
        memory = []
        for x in vectors[row, :length].flip(0):  # the source backwards
            for number in range(2):
                below = x if number == 0 else h[0]
                h[number], c[number] = lstm_step(model.encoder, below, h[number], c[number], number)
            memory.append(h[1])
        attentional = torch.zeros(6)
        for step, symbol in enumerate(PREFIX[row]):
            x = torch.cat([model.vectors_of_symbols.weight[symbol], attentional])
            for number in range(2):
                below = x if number == 0 else h[0]
                h[number], c[number] = lstm_step(model.decoder, below, h[number], c[number], number)
            if attention == "dot":
                energies = [h[1] @ s for s in memory]
            elif attention == "general":
                energies = [h[1] @ model.key.weight @ s for s in memory]
            else:
                energies = [
                    model.score.weight[0] @ torch.tanh(model.joint.weight @ torch.cat([h[1], s])) for s in memory
                ]
            context = softmax_mean(energies, memory)
            attentional = torch.tanh(model.combine.weight @ torch.cat([context, h[1]]))
            torch.testing.assert_close(scores[row, step], model.output.weight @ attentional + model.output.bias)


def test_dot_product_of_states_of_different_sizes_is_refused():
    with pytest.raises(ValueError, match="hidden = 2 \\* encoder_hidden, found 6 and 4"):
        AttentionalSeq2Seq(WIDTH, SYMBOLS, encoder_hidden=4, hidden=6, attention="dot")


@pytest.mark.parametrize("cls", [AttentionalSeq2Seq, LuongSeq2Seq])
def test_an_unknown_attention_is_named(cls):
    with pytest.raises(ValueError, match="attention='cosine'"):
        cls(WIDTH, SYMBOLS, attention="cosine")
