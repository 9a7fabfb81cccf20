"""Recurrent networks that learn several tasks at once, by three schemes of sharing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from architectures.blocks.recurrent import reverse
from harness.kinds import TextEncoder
from harness.layers.pooling import pool
from harness.objectives import MultiTask
from harness.registry import Recipe, register
from harness.views.words import WordBatch, Words


class Cell(nn.Module):
    """A step of an LSTM whose gates read its cells, too, and whose candidate is told what it hears
    of states.

    ``word`` gives, of a word (B, width), the terms of the gates, of the candidate, and of
    ``filters`` gates on what is heard.
    """

    def __init__(self, width: int, size: int, filters: int = 0):
        super().__init__()
        self.word = nn.Linear(width, (4 + filters) * size)
        self.state = nn.Linear(size, 3 * size, bias=False)
        self.cells_before = nn.Linear(size, 2 * size, bias=False)
        self.cells_behind = nn.Linear(size, size, bias=False)

    def forward(self, terms: Sequence[Tensor], heard: Tensor, state: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
        """State and cell behind the word whose terms these are, all (B, size)."""
        i, f, o = (term + told for term, told in zip(terms, self.state(state).chunk(3, dim=1), strict=False))
        seen_i, seen_f = self.cells_before(cell).chunk(2, dim=1)
        candidate = torch.tanh(terms[3] + heard)
        cell = torch.sigmoid(f + seen_f) * cell + torch.sigmoid(i + seen_i) * candidate
        return torch.sigmoid(o + self.cells_behind(cell)) * torch.tanh(cell), cell

    def terms(self, vectors: Tensor) -> list[tuple[Tensor, ...]]:
        """The terms of each word of texts (B, T, width)."""
        size = self.state.in_features
        return [term.split(size, dim=1) for term in self.word(vectors).unbind(1)]

    def start(self, vectors: Tensor) -> tuple[Tensor, Tensor]:
        """State and cell before the first word."""
        nothing = vectors.new_zeros(len(vectors), self.state.in_features)
        return nothing, nothing


class PeepholeLSTM(nn.Module):
    """Vectors (B, T, width) to states (B, T, size), from left to right."""

    def __init__(self, width: int, size: int):
        super().__init__()
        self.cell, self.recurrence = Cell(width, size), nn.Linear(size, size, bias=False)

    def forward(self, vectors: Tensor) -> Tensor:
        (state, cell), states = self.cell.start(vectors), []
        for terms in self.cell.terms(vectors):
            state, cell = self.cell(terms, self.recurrence(state), state, cell)
            states.append(state)
        return torch.stack(states, dim=1)


def word_table(words: int, size: int) -> nn.Embedding:
    """Random vectors of words, as those of the harness start; that of padding is 0."""
    return nn.Embedding.from_pretrained(
        torch.empty(words, size).uniform_(-0.25, 0.25).index_fill(0, torch.tensor([0]), 0.0),
        freeze=False,
        padding_idx=0,
    )


class SharingRNN(TextEncoder):
    """A network of several tasks: a text's vector is the state of the last word."""

    trained_by = MultiTask

    def __init__(self, companions: Sequence[str], hidden: int):
        super().__init__()
        self.companions, self.size = companions, hidden

    def states(self, words: WordBatch) -> Tensor:
        """States (B, T, size) of the task :attr:`member`."""
        raise NotImplementedError

    def forward(self, words: WordBatch) -> Tensor:
        return pool(self.states(words), words.mask, "last")


@register(
    "mtl_rnn_uniform",
    name="Multi-task RNN, uniform layer",
    kind="text",
    paper="Liu et al. 2016",
    source="M2.2[38]",
    year=2016,
    version=2,
    recipe=Recipe(optimizer="adagrad", lr=0.1, weight_decay=0.00001, decay_exempt=("vectors",), vector_dims=64),
    tiny={"hidden": 8, "private": 8},
    vectors_of_paper="word2vec",
    deviations=(
        "SUBJ is none of the tasks.",
        "A task is drawn in proportion to its size, and a batch of it; the paper draws each as often, and one example.",
        "The losses of all tasks weigh the same; nothing is tuned for one task afterwards.",
        "Gates and candidates have biases; the paper prints none. Weights start as PyTorch's do.",
        "The L2 penalty takes biases, and no word vectors: Adagrad would take those of words that no batch has to 0.",
        "Private word vectors start at random, where the shared ones are given.",
    ),
)
class UniformLayer(SharingRNN):
    """One LSTM for all tasks; of each word it reads a vector of the task's own (``private``
    numbers) and the vector that all share."""

    def __init__(
        self,
        width: int,
        view: Words,
        companions: tuple[str, ...] = ("sst2", "sst5", "imdb"),
        hidden: int = 50,
        private: int = 64,
    ):
        super().__init__(companions, hidden)
        self.private = nn.ModuleList(word_table(view.width, private) for _ in range(1 + len(companions)))
        self.recurrence = PeepholeLSTM(private + width, hidden)

    def states(self, words: WordBatch) -> Tensor:
        return self.recurrence(torch.cat([self.private[self.member](words.ids), words.vectors], dim=-1))


@register(
    "mtl_rnn_coupled",
    name="Multi-task RNN, coupled layers",
    kind="text",
    paper="Liu et al. 2016",
    source="M2.2[38]",
    year=2016,
    version=2,
    recipe=Recipe(optimizer="adagrad", lr=0.1, weight_decay=0.00001, decay_exempt=("vectors",), vector_dims=64),
    tiny={"hidden": 8},
    vectors_of_paper="word2vec",
    deviations=(
        "SST-2 and SST-5 are the pair of tasks; the paper has all pairs of four.",
        "A task is drawn in proportion to its size, and a batch of it; the paper draws each as often, and one example.",
        "The losses of all tasks weigh the same; nothing is tuned for one task afterwards.",
        "Gates and candidates have biases; the paper prints none. Weights start as PyTorch's do.",
        "The L2 penalty takes biases, and no word vectors: Adagrad would take those of words that no batch has to 0.",
    ),
)
class CoupledLayers(SharingRNN):
    """An LSTM for each task, all of which read the text.

    The candidate of task m hears the states of all: tanh(W x_t + sum_i g^{i->m} * (U^{i->m}
    h_{t-1}^i)), each through a gate g^{i->m} = sigmoid(W_g^m x_t + U_g^i h_{t-1}^i). Other gates
    read the task's own state alone.
    """

    def __init__(self, width: int, companions: tuple[str, ...] = ("sst2", "sst5"), hidden: int = 50):
        super().__init__(companions, hidden)
        members = 1 + len(companions)
        self.cells = nn.ModuleList(Cell(width, hidden, filters=1) for _ in range(members))
        self.filters = nn.ModuleList(nn.Linear(hidden, hidden, bias=False) for _ in range(members))
        self.told = nn.ModuleList(nn.Linear(hidden, members * hidden, bias=False) for _ in range(members))

    def states(self, words: WordBatch) -> Tensor:
        cells: Any = self.cells
        starts = [cell.start(words.vectors) for cell in cells]
        h, c = [state for state, _ in starts], [cell for _, cell in starts]
        states = []
        for terms in zip(*(cell.terms(words.vectors) for cell in cells), strict=True):
            gates = [layer(state) for layer, state in zip(self.filters, h, strict=True)]
            told = [layer(state).chunk(len(h), dim=1) for layer, state in zip(self.told, h, strict=True)]
            moved = []
            for m, cell in enumerate(cells):
                heard = sum(torch.sigmoid(terms[m][4] + gates[i]) * told[i][m] for i in range(len(h)))
                moved.append(cell(terms[m], heard, h[m], c[m]))
            h, c = [state for state, _ in moved], [cell for _, cell in moved]
            states.append(h[self.member])
        return torch.stack(states, dim=1)


@register(
    "mtl_rnn_shared",
    name="Multi-task RNN, shared layer",
    kind="text",
    paper="Liu et al. 2016",
    source="M2.2[38]",
    year=2016,
    version=2,
    recipe=Recipe(optimizer="adagrad", lr=0.1, weight_decay=0.00001, decay_exempt=("vectors",), vector_dims=64),
    tiny={"hidden": 8},
    vectors_of_paper="word2vec",
    deviations=(
        "SUBJ is none of the tasks.",
        "A task is drawn in proportion to its size, and a batch of it; the paper draws each as often, and one example.",
        "The losses of all tasks weigh the same; nothing is tuned for one task afterwards.",
        "The shared layer has learnt nothing from plain text before.",
        "Gates and candidates have biases; the paper prints none. Weights start as PyTorch's do.",
        "The L2 penalty takes biases, and no word vectors: Adagrad would take those of words that no batch has to 0.",
    ),
)
class SharedLayer(SharingRNN):
    """A bidirectional LSTM for all tasks, with states s_t, and an LSTM for each task, whose
    candidate hears both.

    It is tanh(W x_t + g * (U h_{t-1}) + g^s * (U^s s_t)) with gates g = sigmoid(W_g x_t + U_g
    h_{t-1}) and g^s = sigmoid(W_g x_t + U_g^s s_t), all of the task's own.
    """

    def __init__(self, width: int, companions: tuple[str, ...] = ("sst2", "sst5", "imdb"), hidden: int = 50):
        super().__init__(companions, hidden)
        self.forwards, self.backwards = PeepholeLSTM(width, hidden), PeepholeLSTM(width, hidden)
        members = 1 + len(companions)
        self.cells = nn.ModuleList(Cell(width, hidden, filters=1) for _ in range(members))
        self.own = nn.ModuleList(nn.Linear(hidden, 2 * hidden, bias=False) for _ in range(members))
        self.shared = nn.ModuleList(nn.Linear(2 * hidden, 2 * hidden, bias=False) for _ in range(members))

    def states(self, words: WordBatch) -> Tensor:
        vectors, mask = words.vectors, words.mask
        behind = reverse(self.backwards(reverse(vectors, mask)), mask)
        common = torch.cat([self.forwards(vectors), behind], dim=-1)
        cell: Any = self.cells[self.member]
        own = self.own[self.member]
        (h, c), states = cell.start(vectors), []
        for terms, of_all in zip(cell.terms(vectors), self.shared[self.member](common).unbind(1), strict=True):
            heard = sum(
                torch.sigmoid(terms[4] + gate) * told for gate, told in (own(h).chunk(2, 1), of_all.chunk(2, 1))
            )
            h, c = cell(terms, heard, h, c)
            states.append(h)
        return torch.stack(states, dim=1)
