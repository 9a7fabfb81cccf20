"""Attentional encoder-decoders: one decoding step after another against the equations."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import Tensor

from architectures.seq2seq.attn_seq2seq import AttentionalSeq2Seq
from architectures.seq2seq.attn_seq2seq_cove import CoVeTranslator
from architectures.seq2seq.luong_seq2seq import LuongSeq2Seq
from harness import registry
from tests.support.batches import random_vectors
from tests.support.known_dropout import Uneven, as_is, uneven
from tests.support.models import small
from tests.support.oracles import both_ways, lstm, lstm_step, softmax_mean
from tests.support.same import assert_same

WIDTH, SYMBOLS, START = 4, 5, 1
LENGTHS = [5, 2, 3]
PREFIX = torch.tensor([[START, 3, 4, 0], [START, 4, 4, 3], [START, 0, 3, 3]])


def bahdanau(attention: str) -> AttentionalSeq2Seq:
    sizes = {"encoder_hidden": 3 if attention == "dot" else 5, "hidden": 6, "symbol_size": 3}
    return small(AttentionalSeq2Seq, WIDTH, SYMBOLS, attention=attention, **sizes)


def luong(attention: str) -> LuongSeq2Seq:
    return small(LuongSeq2Seq, WIDTH, SYMBOLS, hidden=6, layers=2, symbol_size=3, attention=attention, stretch=6.0)


def of_id(id: str) -> AttentionalSeq2Seq | LuongSeq2Seq:
    """The model of an id as the registry makes it, small."""
    entry = registry.entry("architectures", id)
    return small(partial(registry.load(entry), WIDTH, SYMBOLS, **entry.hyperparameters | entry.tiny))


@pytest.mark.parametrize("attention", ["additive", "dot"])
def test_previous_state_attends_and_the_context_enters_every_gate(attention):
    """Attending from the new state, or a context beside the state instead of in the gates, gives
    other scores from step 1 on."""
    model = bahdanau(attention)
    vectors, mask = random_vectors(LENGTHS, 1, WIDTH)
    scores = model(vectors, mask, PREFIX)
    for row, length in enumerate(LENGTHS):
        encoder, text = model.encoder, vectors[row, :length]
        backwards = lstm(encoder.backwards[0], text.flip(0)).flip(0)
        states = torch.cat([lstm(encoder.forwards[0], text), backwards], dim=1)
        h = torch.tanh(model.bridge.weight @ backwards[0] + model.bridge.bias)
        c = torch.zeros_like(h)
        for step, symbol in enumerate(PREFIX[row]):
            if attention == "additive":
                energies = [
                    model.score.weight[0] @ torch.tanh(model.query.weight @ h + model.key.weight @ s) for s in states
                ]
            else:
                energies = [h @ s for s in states]
            context = softmax_mean(energies, states)
            h, c = lstm_step(model.decoder, torch.cat([model.vectors_of_symbols.weight[symbol], context]), h, c)
            assert_same(scores[row, step], model.output.weight @ h + model.output.bias)


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
            assert_same(scores[row, step], model.output.weight @ attentional)


def test_each_id_has_the_scores_of_its_name():
    """Two ids of one model would be two rows of the leaderboard with one mechanism."""
    vectors, mask = random_vectors([5], 1, WIDTH)
    for id, scored in {"attn_seq2seq": additive, "attn_seq2seq_dot": dot, "attn_seq2seq_luong": general}.items():
        model = of_id(id)
        state = model.start(vectors, mask)
        hidden = torch.randn(1, state.hidden.shape[-1])
        if id == "attn_seq2seq_luong":
            found, states = model.attend(hidden, state.memory, mask)[0], state.memory[0]
        else:
            found, states = model.attend(hidden, state.memory)[0], state.memory.states[0]
        scores = torch.stack([scored(model, hidden[0], s) for s in states])
        assert_same(found, scores.softmax(0), msg=id)
        assert found.max() - found.min() > 0.01, id


def additive(model: AttentionalSeq2Seq, h: Tensor, s: Tensor) -> Tensor:
    """v . tanh(W h + U s)."""
    return model.score.weight[0] @ torch.tanh(model.query.weight @ h + model.key.weight @ s)


def dot(model: AttentionalSeq2Seq, h: Tensor, s: Tensor) -> Tensor:
    """h . s."""
    return (h * s).sum()


def general(model: LuongSeq2Seq, h: Tensor, s: Tensor) -> Tensor:
    """h . W s."""
    return h @ (model.key.weight @ s)


def test_luongs_dropout_acts_on_what_layers_read_and_biases_there_are_none():
    """With all dropped, each layer of the encoder and of the decoder reads zeros; what attends, and
    what attention sees, are whole."""
    model = small(LuongSeq2Seq, WIDTH, SYMBOLS, hidden=6, layers=2, symbol_size=3, dropout=1.0).train()
    assert not any("bias" in name for name, _ in model.named_parameters())
    vectors, mask = random_vectors([5], 1, WIDTH)
    state = model.start(vectors, mask)._replace(
        hidden=torch.randn(1, 2, 6), cell=torch.randn(1, 2, 6), memory=torch.randn(1, 5, 6)
    )
    found = model.advance(model.vectors_of_symbols.weight[3:4], state)
    for number, width in enumerate((9, 6)):
        expected = lstm_step(model.decoder, torch.zeros(width), state.hidden[0, number], state.cell[0, number], number)
        assert_same(torch.stack([found.hidden[0, number], found.cell[0, number]]), torch.stack(expected))
    top, memory = found.hidden[0, 1], state.memory[0]
    context = softmax_mean([top @ model.key.weight @ s for s in memory], memory)
    assert_same(found.attentional[0], torch.tanh(model.combine.weight @ torch.cat([context, top])))
    assert not model.start(vectors, mask).memory.any(), "an encoder without biases makes zeros of zeros"
    assert_same(model.eval().start(vectors, mask).memory, model.start(vectors, mask).memory)


@pytest.mark.parametrize("fed", [False, True])
def test_what_is_fed_back_to_luongs_decoder_is_dropped_with_the_symbol(fed):
    """By a dropout that is known."""
    model = luong("general")
    model.dropout = Uneven()
    vectors, mask = random_vectors([5], 1, WIDTH)
    state = model.start(vectors, mask)
    if fed:
        state = state._replace(attentional=torch.randn(1, 6))
    x = uneven(torch.cat([model.vectors_of_symbols.weight[3], state.attentional[0]]))
    h, c = lstm_step(model.decoder, x, state.hidden[0, 0], state.cell[0, 0], 0)
    found = model.advance(model.vectors_of_symbols.weight[3:4], state)
    assert_same(torch.stack([found.hidden[0, 0], found.cell[0, 0]]), torch.stack([h, c]))
    assert_same(state.memory[0], lstm(model.encoder, lstm(model.encoder, uneven(vectors[0].flip(0)), 0), 1))


@pytest.mark.parametrize("cls", [LuongSeq2Seq, CoVeTranslator])
def test_weights_start_uniform_within_the_papers_bound(cls):
    """A Gaussian start has tails; PyTorch's is of another size in each layer."""
    model = small(cls, 50, 40, hidden=50, layers=2, symbol_size=30, stretch=None)
    for name, weight in model.named_parameters():
        assert 0.09 < weight.abs().max() <= 0.1, name
        assert abs(weight.std() * 3**0.5 - 0.1) < 0.02, name


@pytest.mark.parametrize("model", [AttentionalSeq2Seq(4, 6, 3, 3, 3), LuongSeq2Seq(4, 6, hidden=3, attention="concat")])
def test_scores_of_attention_have_no_bias(model):
    """The softmax takes away what all places have: it would be a number that nothing learns."""
    names = {name for name, _ in model.named_parameters()}
    assert "score.weight" in names and "score.bias" not in names


def test_dot_product_of_states_of_different_sizes_is_refused():
    with pytest.raises(ValueError, match="hidden = 2 \\* encoder_hidden, found 6 and 4"):
        AttentionalSeq2Seq(WIDTH, SYMBOLS, encoder_hidden=4, hidden=6, attention="dot")


@pytest.mark.parametrize("cls", [AttentionalSeq2Seq, LuongSeq2Seq])
def test_an_unknown_attention_is_named(cls):
    with pytest.raises(ValueError, match="attention='cosine'"):
        cls(WIDTH, SYMBOLS, attention="cosine")


@pytest.mark.parametrize("dropped", [as_is, uneven])
def test_coves_translator_reads_both_ways_and_goes_on_from_where_it_ended(dropped):
    """Two layers in both directions, whose last states and cells the decoder's layers begin with;
    attention by a matrix from the new state, and its answer fed back. With a known dropout: on
    words and on what is attended to; on the symbol and on what is fed back, and on both together;
    on the answer, but not on the state that attends."""
    model = small(CoVeTranslator, WIDTH, SYMBOLS, hidden=6, layers=2, symbol_size=3, stretch=6.0)
    assert model.dropout.p == model.encoder.dropout == model.decoder.dropout == 0.2 and model.vectors == "fixed"
    if dropped is uneven:
        model.dropout = Uneven()
    vectors, mask = random_vectors(LENGTHS, 1, WIDTH)
    scores = model(vectors, mask, PREFIX)
    for row, length in enumerate(LENGTHS):
        memory, h, c = both_ways(model.encoder, dropped(vectors[row, :length]))
        memory, answer = dropped(memory), torch.zeros(6)
        for step, symbol in enumerate(PREFIX[row]):
            x = dropped(torch.cat([dropped(model.vectors_of_symbols.weight[symbol]), dropped(answer)]))
            for number in range(2):
                below = x if number == 0 else h[0]
                h[number], c[number] = lstm_step(model.decoder, below, h[number], c[number], number)
            context = softmax_mean([h[1] @ model.key.weight @ s for s in memory], memory)
            answer = dropped(torch.tanh(model.combine.weight @ torch.cat([context, h[1]])))
            assert_same(scores[row, step], model.output.weight @ answer + model.output.bias)


def test_two_directions_have_half_of_the_numbers_each():
    with pytest.raises(ValueError, match="hidden=5 is odd: each direction has half"):
        CoVeTranslator(WIDTH, SYMBOLS, hidden=5)
