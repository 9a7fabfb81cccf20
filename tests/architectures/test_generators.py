"""Every encoder-decoder: step against forward, what of the target a score may see, and beam search
over it against enumeration."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor

from harness import registry
from harness.kinds import CopyingGenerator, Generator
from harness.layers.beam import beam_search
from tests.support.batches import random_vectors

WIDTH, SYMBOLS, START, END, LONGEST = 5, 5, 1, 2, 3
NEVER = -1
"""An end that no symbol is: as many symbols are written as may be."""
LENGTHS = [5, 2, 3]
PREFIX = torch.tensor([[START, 3, 4, 0], [START, 4, 4, 3], [START, 0, 3, 3]])
GENERATORS = {id: entry for id, entry in registry.entries("architectures").items() if entry.kind == "generate"}
MODELS = [pytest.param(id, {}, id=id) for id in GENERATORS]
# kinds of attention that no id has
MODELS += [
    pytest.param("attn_seq2seq_luong", {"attention": how}, id=f"attn_seq2seq_luong-{how}") for how in ("dot", "concat")
]

WORDS = torch.tensor([[3, 4, 4, 0, 2], [4, 2, 0, 0, 0], [3, 3, 4, 0, 0]])
"""Symbols that the words of the source are; a copier reads them too."""


def source(model: Generator) -> tuple[Tensor, ...]:
    """What the model reads of three sources."""
    read = random_vectors(LENGTHS, 1, WIDTH)
    return (*read, WORDS) if isinstance(model, CopyingGenerator) else read


def model_of(id: str, options: dict[str, object]) -> Generator:
    """Small, with two layers where it has layers, and weights so far from their starting values
    that all scores differ widely."""
    torch.manual_seed(3)  # with which no model writes the same for all sources
    sizes = dict(GENERATORS[id].tiny)
    if "layers" in sizes:
        sizes["layers"] = 2
    model = registry.load(GENERATORS[id])(
        WIDTH, symbols=SYMBOLS, **GENERATORS[id].hyperparameters | sizes | options
    ).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model


def stepped(model: Generator, symbols: Tensor) -> Tensor:
    """Log-probabilities (B, U, symbols) of one :meth:`step` after another."""
    state, found = model.start(*source(model)), []
    for column in symbols.unbind(1):
        log_probabilities, state = model.step(column, state)
        found.append(log_probabilities)
    return torch.stack(found, dim=1)


@pytest.mark.parametrize(("id", "options"), MODELS)
def test_decoding_step_by_step_gives_the_scores_of_teacher_forcing(id, options):
    """A step at the wrong position, or that forgets what is written, would search with scores that
    the model was not trained on."""
    model = model_of(id, options)
    torch.testing.assert_close(stepped(model, PREFIX), model(*source(model), PREFIX).log_softmax(-1))


@pytest.mark.parametrize("place", [1, 2, 3])
@pytest.mark.parametrize(("id", "options"), MODELS)
def test_a_later_symbol_changes_no_earlier_score(id, options, place):
    """A decoder that sees the symbol it is to predict learns nothing from teacher forcing."""
    model, other = model_of(id, options), PREFIX.clone()
    other[:, place] = END
    before, after = model(*source(model), PREFIX), model(*source(model), other)
    torch.testing.assert_close(before[:, :place], after[:, :place])
    assert not torch.isclose(before[:, place:], after[:, place:]).all(-1).any()


@pytest.mark.parametrize(("id", "options"), MODELS)
def test_a_wide_beam_finds_the_most_probable_sequence(id, options):
    """At most three symbols, so that all sequences can be listed, and each symbol in turn as the
    end.

    A state whose rows are not its sources, or a part of it that stays behind when hypotheses are
    re-ordered, would mix them up.
    """
    model = model_of(id, options)
    pairs = itertools.product(range(SYMBOLS), repeat=LONGEST - 1)
    log_probabilities = {pair: stepped(model, torch.tensor([[START, *pair]] * len(LENGTHS))) for pair in pairs}

    def score(written: tuple[int, ...]) -> Tensor:
        return log_probabilities[(*written, 0, 0)[: LONGEST - 1]][:, range(len(written)), written].sum(1)

    for end in (NEVER, *range(SYMBOLS)):
        others = [symbol for symbol in range(SYMBOLS) if symbol != end]
        if end == NEVER:
            sequences = list(itertools.product(others, repeat=LONGEST))
        else:
            sequences = [(*before, end) for n in range(LONGEST) for before in itertools.product(others, repeat=n)]
        best = torch.stack([score(written) for written in sequences]).argmax(0)
        expected = [[symbol for symbol in sequences[number] if symbol != end] for number in best.tolist()]
        assert beam_search(model.step, model.start(*source(model)), START, end, LONGEST, beam=25) == expected
        assert end != NEVER or len(set(map(tuple, expected))) > 1  # or sources that are mixed up would not show


@pytest.mark.parametrize("end", [END, NEVER])
@pytest.mark.parametrize(("id", "options"), MODELS)
def test_a_beam_of_one_is_greedy(id, options, end):
    model = model_of(id, options)
    for row, found in enumerate(beam_search(model.step, model.start(*source(model)), START, end, LONGEST, beam=1)):
        written = [START]
        while len(written) <= LONGEST:
            symbol = int(model(*source(model), torch.tensor([written] * len(LENGTHS)))[row, -1].argmax())
            if symbol == end:
                break
            written.append(symbol)
        assert found == written[1:]
