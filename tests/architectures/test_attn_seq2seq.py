"""Attentional encoder-decoders: one decoding step after another against the equations, forward against step, beam against enumeration."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor

from architectures.blocks.beam import beam_search
from architectures.seq2seq.attn_seq2seq import AttentionalSeq2Seq
from architectures.seq2seq.luong_seq2seq import LuongSeq2Seq
from harness.kinds import Generator

WIDTH, SYMBOLS, START, END = 4, 5, 1, 2
LENGTHS = [5, 2, 3]


def bahdanau(attention: str) -> AttentionalSeq2Seq:
    torch.manual_seed(0)
    encoder_hidden = 3 if attention == "dot" else 5
    return AttentionalSeq2Seq(WIDTH, SYMBOLS, encoder_hidden=encoder_hidden, hidden=6, symbol_size=3, attention=attention).eval()


def luong(attention: str) -> LuongSeq2Seq:
    torch.manual_seed(0)
    return LuongSeq2Seq(WIDTH, SYMBOLS, hidden=6, layers=2, symbol_size=3, attention=attention).eval()


MODELS = [
    pytest.param(lambda: bahdanau("additive"), id="additive"),
    pytest.param(lambda: bahdanau("dot"), id="dot"),
    *[pytest.param(lambda how=how: luong(how), id=f"luong-{how}") for how in ("dot", "general", "concat")],
]


def source() -> tuple[Tensor, Tensor]:
    vectors = torch.randn(len(LENGTHS), max(LENGTHS), WIDTH, generator=torch.Generator().manual_seed(1))
    return 2 * vectors, torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS)[:, None]


PREFIX = torch.tensor([[START, 3, 4, 0], [START, 4, 4, 3], [START, 0, 3, 3]])


def sum_weighted(weights: list[Tensor], states: Tensor) -> Tensor:
    """Mean of the states (S, E) under the softmax of their scores."""
    weights = torch.softmax(torch.stack(weights), 0)
    return sum(weight * state for weight, state in zip(weights, states, strict=True))


def lstm_cell(x: Tensor, h: Tensor, c: Tensor, weights: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
    """One LSTM step written out: gates in torch's order input, forget, cell, output."""
    w_x, w_h, b_x, b_h = weights
    i, f, g, o = (w_x @ x + b_x + w_h @ h + b_h).chunk(4)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


@pytest.mark.parametrize("attention", ["additive", "dot"])
def test_previous_state_attends_and_the_context_enters_every_gate(attention):
    """Attending from the new state, or a context beside the state instead of in the gates, gives other scores from step 1 on."""
    model = bahdanau(attention)
    vectors, mask = source()
    scores = model(vectors, mask, PREFIX)
    cell = model.decoder
    weights = cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh
    for row, length in enumerate(LENGTHS):
        states = model.encoder(vectors[row : row + 1, :length], torch.ones(1, length, dtype=torch.bool))[0]
        half = states.shape[1] // 2
        h = torch.tanh(model.bridge.weight @ states[0, half:] + model.bridge.bias)
        c = torch.zeros_like(h)
        for step, symbol in enumerate(PREFIX[row]):
            if attention == "additive":
                energies = [model.score.weight[0] @ torch.tanh(model.query(h) + model.key.weight @ s) for s in states]
            else:
                energies = [h @ s for s in states]
            context = sum_weighted(energies, states)
            h, c = lstm_cell(torch.cat([model.vectors_of_symbols.weight[symbol], context]), h, c, weights)
            torch.testing.assert_close(scores[row, step], model.output.weight @ h + model.output.bias)


@pytest.mark.parametrize("attention", ["dot", "general", "concat"])
def test_luong_attends_from_the_current_state_and_feeds_its_answer_back(attention):
    """Attending from the previous state, no input feeding, or scores from the bare state give other numbers."""
    model = luong(attention)
    vectors, mask = source()
    scores = model(vectors, mask, PREFIX)

    def layer(lstm: torch.nn.LSTM, number: int) -> tuple[Tensor, ...]:
        return tuple(getattr(lstm, f"{name}_l{number}") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))

    for row, length in enumerate(LENGTHS):
        h, c = [torch.zeros(6)] * 2, [torch.zeros(6)] * 2
        memory = []
        for x in vectors[row, :length].flip(0):  # the source backwards
            for number in range(2):
                h[number], c[number] = lstm_cell(x if number == 0 else h[0], h[number], c[number], layer(model.encoder, number))
            memory.append(h[1])
        attentional = torch.zeros(6)
        for step, symbol in enumerate(PREFIX[row]):
            x = torch.cat([model.vectors_of_symbols.weight[symbol], attentional])
            for number in range(2):
                h[number], c[number] = lstm_cell(x if number == 0 else h[0], h[number], c[number], layer(model.decoder, number))
            if attention == "dot":
                energies = [h[1] @ s for s in memory]
            elif attention == "general":
                energies = [h[1] @ model.key.weight @ s for s in memory]
            else:
                energies = [model.score.weight[0] @ torch.tanh(model.joint.weight @ torch.cat([h[1], s])) for s in memory]
            context = sum_weighted(energies, torch.stack(memory))
            attentional = torch.tanh(model.combine.weight @ torch.cat([context, h[1]]))
            torch.testing.assert_close(scores[row, step], model.output.weight @ attentional + model.output.bias)


def stepped(model: Generator, symbols: Tensor) -> Tensor:
    """Log-probabilities (B, U, symbols) of one :meth:`step` after another."""
    state, found = model.start(*source()), []
    for column in symbols.unbind(1):
        log_probabilities, state = model.step(column, state)
        found.append(log_probabilities)
    return torch.stack(found, dim=1)


@pytest.mark.parametrize("make", MODELS)
def test_decoding_step_by_step_gives_the_scores_of_teacher_forcing(make):
    """Otherwise the model would be searched with scores that it was not trained on."""
    model = make()
    torch.testing.assert_close(stepped(model, PREFIX), model(*source(), PREFIX).log_softmax(-1))


@pytest.mark.parametrize("make", MODELS)
def test_a_later_symbol_changes_no_earlier_score(make):
    model = make()
    other = PREFIX.clone()
    other[:, 2] = 4
    before, after = model(*source(), PREFIX), model(*source(), other)
    torch.testing.assert_close(before[:, :2], after[:, :2])
    assert not torch.allclose(before[:, 2], after[:, 2])


@pytest.mark.parametrize("make", MODELS)
def test_beam_one_is_greedy_and_a_wide_beam_finds_the_most_probable_sequence(make):
    """At most three symbols, so that all sequences can be listed; a state whose rows are not its sources would mix them up."""
    model, longest = make(), 3
    with torch.no_grad():
        model.output.weight *= 4
        model.output.bias[END] += 1
    sequences = [list(s) for n in range(longest) for s in itertools.product([0, 1, 3, 4], repeat=n)]
    scores = torch.zeros(len(LENGTHS), len(sequences))
    for number, sequence in enumerate(sequences):
        written = torch.tensor([[START, *sequence]] * len(LENGTHS))
        following = torch.tensor([*sequence, END])
        scores[:, number] = stepped(model, written)[:, torch.arange(len(following)), following].sum(1)
    wide = beam_search(model.step, model.start(*source()), START, END, longest, beam=25)
    assert wide == [sequences[best] for best in scores.argmax(1).tolist()]

    for row, found in enumerate(beam_search(model.step, model.start(*source()), START, END, longest, beam=1)):
        written = [START]
        while len(written) <= longest:
            symbol = int(model(*source(), torch.tensor([written] * len(LENGTHS)))[row, -1].argmax())
            if symbol == END:
                break
            written.append(symbol)
        assert found == written[1:]


def test_dot_product_of_states_of_different_sizes_is_refused():
    with pytest.raises(ValueError, match="hidden = 2 \\* encoder_hidden, found 6 and 4"):
        AttentionalSeq2Seq(WIDTH, SYMBOLS, encoder_hidden=4, hidden=6, attention="dot")


@pytest.mark.parametrize("cls", [AttentionalSeq2Seq, LuongSeq2Seq])
def test_an_unknown_attention_is_named(cls):
    with pytest.raises(ValueError, match="attention='cosine'"):
        cls(WIDTH, SYMBOLS, attention="cosine")
