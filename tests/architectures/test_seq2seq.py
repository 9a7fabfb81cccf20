"""LSTM encoder-decoder: the equations step by step, forward against step, what of the source reaches the decoder, beam search."""

from __future__ import annotations

import itertools

import torch
from torch import Tensor, nn

from architectures.blocks.beam import beam_search
from architectures.seq2seq.seq2seq import Seq2Seq

WIDTH, SYMBOLS, HIDDEN, START, END = 4, 5, 6, 1, 2
LENGTHS = [5, 2, 3]
PREFIX = torch.tensor([[START, 3, 4, 0], [START, 4, 4, 3], [START, 0, 3, 3]])


def model_of(limit: float = 1.0) -> Seq2Seq:
    torch.manual_seed(0)
    return Seq2Seq(WIDTH, SYMBOLS, hidden=HIDDEN, layers=2, symbol_size=3, limit=limit).eval()


def source() -> tuple[Tensor, Tensor]:
    """Three sources with large numbers at padding that must not count."""
    vectors = torch.randn(len(LENGTHS), max(LENGTHS), WIDTH, generator=torch.Generator().manual_seed(1))
    mask = torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS)[:, None]
    return torch.where(mask[..., None], vectors, torch.full((), 50.0)), mask


def advance(lstm: nn.LSTM, x: Tensor, h: list[Tensor], c: list[Tensor]) -> Tensor:
    """Move the states and cells of all layers by one step, gates in torch's order input, forget, cell, output; the top state."""
    for number in range(len(h)):
        w_x, w_h, b_x, b_h = (getattr(lstm, f"{name}_l{number}") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
        i, f, g, o = (w_x @ x + b_x + w_h @ h[number] + b_h).chunk(4)
        c[number] = torch.sigmoid(f) * c[number] + torch.sigmoid(i) * torch.tanh(g)
        x = h[number] = torch.sigmoid(o) * torch.tanh(c[number])
    return x


def test_the_decoder_goes_on_from_the_states_in_which_the_encoder_left_the_reversed_source():
    """A source read forwards, a decoder begun from zeros or from the top layer alone, padding read: each gives other scores."""
    model = model_of()
    vectors, mask = source()
    scores = model(vectors, mask, PREFIX)
    for row, length in enumerate(LENGTHS):
        h, c = [torch.zeros(HIDDEN)] * 2, [torch.zeros(HIDDEN)] * 2
        for x in vectors[row, :length].flip(0):
            advance(model.encoder, x, h, c)
        for step, symbol in enumerate(PREFIX[row]):
            top = advance(model.decoder, model.vectors_of_symbols.weight[symbol], h, c)
            torch.testing.assert_close(scores[row, step], model.output.weight @ top + model.output.bias)


def stepped(model: Seq2Seq, symbols: Tensor) -> Tensor:
    """Log-probabilities (B, U, symbols) of one :meth:`step` after another."""
    state, found = model.start(*source()), []
    for column in symbols.unbind(1):
        log_probabilities, state = model.step(column, state)
        found.append(log_probabilities)
    return torch.stack(found, dim=1)


def test_decoding_step_by_step_gives_the_scores_of_teacher_forcing():
    """Otherwise the model would be searched with scores that it was not trained on."""
    model = model_of()
    torch.testing.assert_close(stepped(model, PREFIX), model(*source(), PREFIX).log_softmax(-1))


def test_beam_one_is_greedy_and_a_wide_beam_finds_the_most_probable_sequence():
    """At most three symbols, so that all sequences can be listed; a state whose rows are not its sources would mix them up."""
    model, longest = model_of(), 3
    with torch.no_grad():
        model.output.bias[END] += 1
    sequences = [list(s) for n in range(longest) for s in itertools.product([0, 1, 3, 4], repeat=n)]
    scores = torch.zeros(len(LENGTHS), len(sequences))
    for number, sequence in enumerate(sequences):
        following = torch.tensor([*sequence, END])
        scores[:, number] = stepped(model, torch.tensor([[START, *sequence]] * len(LENGTHS)))[:, range(len(following)), following].sum(1)
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


def test_all_weights_start_uniform_within_the_papers_bound():
    model = model_of(limit=0.08)
    for name, weight in model.named_parameters():
        assert 0.04 < weight.abs().max() <= 0.08, name
