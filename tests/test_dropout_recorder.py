"""The recorder of dropped numbers, on layers whose dropout is plain to see.

Whatever it missed here, ``tests/architectures/test_dropouts.py`` would miss in every architecture.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.support.dropouts import Draw, Recorder

TEXTS, WORDS, NUMBERS = 5, 7, 24
WAYS: dict[str, tuple[Callable[[Tensor], Tensor], tuple[int, ...], bool]] = {
    "each number": (lambda x: F.dropout(x, 0.4), (), True),
    "each number, named": (lambda x: F.dropout(input=x, p=0.4), (), True),
    "features of a text": (lambda x: F.dropout1d(x.transpose(1, 2), 0.4).transpose(1, 2), (2,), True),
    "whole words": (lambda x: F.dropout1d(x, 0.4), (2,), True),
    "one mask for the texts": (lambda x: x * F.dropout(torch.ones_like(x[:1]), 0.4), (0,), True),
    "one mask for the words": (lambda x: x * F.dropout(torch.ones_like(x[:, :1]), 0.4), (1,), True),
    "words by hand": (lambda x: x * (torch.rand(x.shape[:2]) >= 0.4)[..., None], (2,), False),
    "words left out": (lambda x: x.masked_fill((torch.rand(x.shape[:2]) < 0.4)[..., None], 0.0), (2,), False),
    "numbers by hand": (lambda x: x * (torch.rand_like(x) >= 0.4), (), False),
}


def drawn(model: Callable[[Tensor], Tensor], names: nn.Module | None = None) -> list[Draw]:
    """The draws of a function of a batch of texts."""
    torch.manual_seed(0)
    with Recorder(names) as recorder:
        x = torch.randn(TEXTS, WORDS, NUMBERS)
        recorder.input(x, "text")
        model(x).exp()
    return recorder.draws


@pytest.mark.parametrize("way", WAYS)
def test_the_axes_that_share_a_mask_are_seen(way: str) -> None:
    """As seen on the tensor that is dropped: that of ``features of a text`` has the words last."""
    dropped, shared, scaled = WAYS[way]
    [draw] = drawn(dropped)
    assert (draw.shared, draw.scaled, draw.rate) == (shared, scaled, 0.4)
    assert (draw.of, draw.fields, draw.read_by) == ({"[text]"}, {"text"}, {"exp"})
    zeros = (~draw.decisions() if way != "words left out" else draw.decisions()).float().mean()
    assert 0.2 < zeros < 0.6


def test_a_mask_that_bernoulli_draws_is_seen() -> None:
    [draw] = drawn(lambda x: x * torch.bernoulli(torch.full((TEXTS, 1, NUMBERS), 0.6)) / 0.6)
    assert draw.shared == (1,) and draw.of == {"[text]"} and draw.read_by == {"div"}


class Layers(nn.Module):
    """Three layers, of which the last reads what the second gave and what the first did."""

    def __init__(self, where: str):
        super().__init__()
        self.low, self.high, self.top = nn.Linear(NUMBERS, 6), nn.Linear(6, 6), nn.Linear(12, 2)
        self.dropout, self.where = nn.Dropout(0.3), where

    def dropped(self, values: Tensor, where: str) -> Tensor:
        return self.dropout(values) if where == self.where else values

    def forward(self, x: Tensor) -> Tensor:
        low = self.dropped(torch.relu(self.low(x)), "low")
        joined = torch.cat([self.high(self.dropped(low, "into high")), low], dim=-1)
        return self.top(self.dropped(joined, "joined"))


@pytest.mark.parametrize(
    ("where", "of", "read_by"),
    [
        ("low", {"low"}, {"high", "top"}),
        ("into high", {"low"}, {"high"}),
        ("joined", {"low", "high"}, {"top"}),
    ],
)
def test_a_place_is_told_by_what_is_dropped_and_by_who_reads_it(where: str, of: set[str], read_by: set[str]) -> None:
    """The same dropout before one reader and before both: only the readers tell them apart."""
    model = Layers(where)
    [draw] = drawn(model, model)
    assert (draw.of, draw.read_by) == (of, read_by)
    assert drawn(model.eval(), model) == []


def test_a_mask_of_many_steps_is_told_from_a_mask_for_each() -> None:
    def once(x: Tensor) -> Tensor:
        kept = F.dropout(torch.ones_like(x[:, 0]), 0.3)
        return torch.stack([step * kept for step in x.unbind(1)])

    def anew(x: Tensor) -> Tensor:
        return torch.stack([F.dropout(step, 0.3) for step in x.unbind(1)])

    [draw] = drawn(once)
    assert draw.uses == WORDS
    assert [draw.uses for draw in drawn(anew)] == [1] * WORDS


@pytest.mark.parametrize("cell", [nn.LSTM, nn.GRU, nn.RNN])
def test_dropout_between_torchs_layers_is_seen(cell: type[nn.RNNBase]) -> None:
    model = cell(NUMBERS, 6, 2, batch_first=True, dropout=0.3)
    [draw] = drawn(lambda x: model(x)[0])
    assert draw.rate == 0.3 and draw.of == {"[text]"}
    packed = nn.utils.rnn.pack_padded_sequence
    [draw] = drawn(lambda x: model(packed(x, torch.full((TEXTS,), WORDS), batch_first=True))[0].data)
    assert draw.rate == 0.3
    assert drawn(lambda x: model.eval()(x)[0]) == []


def test_dropout_of_torchs_attention_weights_is_seen() -> None:
    attention = nn.MultiheadAttention(NUMBERS, 2, dropout=0.3, batch_first=True)
    assert [draw.rate for draw in drawn(lambda x: attention(x, x, x)[0])] == [0.3]
    assert [draw.rate for draw in drawn(lambda x: F.scaled_dot_product_attention(x, x, x, dropout_p=0.2))] == [0.2]
    assert drawn(lambda x: attention.eval()(x, x, x)[0]) == []
