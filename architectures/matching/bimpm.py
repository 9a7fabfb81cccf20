"""Bilateral multi-perspective matching."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.recurrent import Recurrent
from harness.kinds import PairEncoder, pool
from harness.registry import Recipe, register
from harness.views.words_and_characters import WordCharacterBatch, WordsAndCharacters


class Perspectives(nn.Module):
    """Cosines m_k = cos(W_k * v1, W_k * v2) under ``perspectives`` weightings W_k of the ``size``
    coordinates.

    The weights enter as squares, sum_d W_kd^2 v1_d v2_d, so that no weighted copies of the states
    are made.
    """

    def __init__(self, size: int, perspectives: int):
        super().__init__()
        self.weight = nn.Parameter(nn.init.xavier_uniform_(torch.empty(perspectives, size)))

    def norms(self, states: Tensor) -> Tensor:
        """|W_k * v| of each state (..., size): (..., perspectives), never zero."""
        return (states.square() @ self.weight.square().T).clamp(min=1e-10).sqrt()

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        """Cosines of states with one another, position by position: (..., size) twice -> (...,
        perspectives)."""
        return (first * second) @ self.weight.square().T / (self.norms(first) * self.norms(second))

    def pairs(self, first: Tensor, second: Tensor) -> Tensor:
        """Cosines of each state of one text (B, T, size) with each of the other (B, U, size): (B,
        perspectives, T, U)."""
        products = (first[:, None] * self.weight.square()[:, None]) @ second[:, None].transpose(2, 3)
        return products / (
            self.norms(first).transpose(1, 2)[..., None] * self.norms(second).transpose(1, 2)[:, :, None]
        )


class Matching(nn.Module):
    """The four matchings for one direction of the LSTM, each with its own weights: states of both
    texts to (B, T, 4 * perspectives)."""

    def __init__(self, size: int, perspectives: int):
        super().__init__()
        self.full, self.maximum, self.attentive, self.nearest = (Perspectives(size, perspectives) for _ in range(4))

    def forward(
        self, p: Tensor, p_mask: Tensor, p_end: Tensor, q: Tensor, q_mask: Tensor, q_end: Tensor
    ) -> tuple[Tensor, Tensor]:
        """P against Q and Q against P. States (B, T, size), mask (B, T) and the state at the text's
        end (B, size) of each."""
        # -2 lies below every cosine; an infinite number would reach the gradient from padded rows.
        pairs = self.maximum.pairs(p, q).masked_fill(~(p_mask[:, :, None] & q_mask[:, None])[:, None], -2.0)
        cosines = F.normalize(p, dim=-1) @ F.normalize(q, dim=-1).transpose(1, 2)
        of_p = self.matched(p, q, q_mask, q_end, pairs.amax(3), cosines)
        return of_p, self.matched(q, p, p_mask, p_end, pairs.amax(2), cosines.transpose(1, 2))

    def matched(
        self, own: Tensor, other: Tensor, mask: Tensor, end: Tensor, maximum: Tensor, cosines: Tensor
    ) -> Tensor:
        """Own states against the other text's end, all its states, their mean weighted by cosine,
        and the one of highest cosine."""
        weights = cosines * mask[:, None]
        # Of the weights' sum, by which a mean is divided, a cosine sees only the sign.
        mean = weights @ other * weights.sum(-1, keepdim=True).sign()
        highest = cosines.masked_fill(~mask[:, None], -torch.inf).argmax(-1)
        nearest = other.gather(1, highest[..., None].expand(-1, -1, other.shape[-1]))
        strategies = (
            self.full(own, end[:, None]),
            maximum.transpose(1, 2),
            self.attentive(own, mean),
            self.nearest(own, nearest),
        )
        return torch.cat(strategies, dim=-1)


@register(
    "bimpm",
    name="BiMPM",
    kind="pair",
    paper="Wang et al. 2017",
    source="M2.2[41] T5",
    year=2017,
    recipe=Recipe(optimizer="adam", lr=0.001, batch_size=60, epochs=10, patience=10, clip=50.0),
    tiny={"hidden": 24, "perspectives": 8, "character_size": 8, "character_hidden": 8, "dropout": 0.0},
    vectors_of_paper="GloVe",
    deviations=(
        "Unknown words share one vector beside their characters; in the paper each has a random one.",
        "The characters' vectors are not dropped; the authors' later program drops what every LSTM reads.",
        "All biases start at zero: ours, as the cosines of all states would be close to 1 otherwise. Weights start as"
        " PyTorch's or Xavier's do, in the authors' program between -0.01 and 0.01.",
        "The authors' later program also gives each word its largest and mean cosine, the mean beside the maximum, and"
        " matches the words below the LSTM.",
    ),
)
class BiMPM(PairEncoder):
    """BiLSTM states of each text matched against the other's from many perspectives, and aggregated
    by a second BiLSTM.

    Four matchings for each of the LSTM's directions give 8 * ``perspectives`` numbers per word of
    either text. The end states of the aggregation, two of each text, pass a tanh layer: (B, 2 *
    ``hidden``). A word is a fixed vector beside the last state of an LSTM over its characters.
    Dropout stands before each layer but the LSTM over characters. Slow, because every pair of words
    is compared from ``perspectives`` sides in either direction, and every character passes an LSTM.
    """

    view = WordsAndCharacters()
    vectors = "fixed"

    def __init__(
        self,
        width: int,
        view: WordsAndCharacters,
        hidden: int = 100,
        perspectives: int = 20,
        character_size: int = 20,
        character_hidden: int = 50,
        dropout: float = 0.1,
    ):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.characters = nn.Embedding(view.alphabet_size, character_size, padding_idx=0)
        self.spelling = Recurrent("lstm", character_size, character_hidden)
        self.context = Recurrent("lstm", width + character_hidden, hidden, bidirectional=True)
        self.forwards, self.backwards = Matching(hidden, perspectives), Matching(hidden, perspectives)
        self.aggregation = Recurrent("lstm", 8 * perspectives, hidden, bidirectional=True)
        self.output = nn.Linear(2 * self.aggregation.size, 2 * hidden)
        self.size = 2 * hidden
        # Biases would make all states alike before any training, and so all cosines close to 1.
        for name, parameter in self.named_parameters():
            if "bias" in name:
                nn.init.zeros_(parameter)

    def words(self, text: WordCharacterBatch) -> Tensor:
        """Each word's vector with what the LSTM makes of its characters: (B, T, width +
        character_hidden)."""
        mask = text.character_mask.flatten(0, 1)
        spelt = pool(self.spelling(self.characters(text.characters.flatten(0, 1)), mask), mask, "last")
        return torch.cat([text.vectors, spelt.unflatten(0, text.mask.shape)], dim=-1)

    def encoded(self, text: WordCharacterBatch) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
        """States (B, T, hidden) and end state (B, hidden) of either direction: the forward one ends
        on the last word."""
        states = self.context(self.dropout(self.words(text)), text.mask)
        forwards, backwards = self.dropout(states).chunk(2, dim=-1)
        return (forwards, pool(forwards, text.mask, "last")), (backwards, backwards[:, 0])

    def forward(self, first: WordCharacterBatch, second: WordCharacterBatch) -> Tensor:
        directions = zip((self.forwards, self.backwards), self.encoded(first), self.encoded(second), strict=True)
        matched = [
            matching(p, first.mask, p_end, q, second.mask, q_end) for matching, (p, p_end), (q, q_end) in directions
        ]
        ends = []
        for text, matchings in zip((first, second), zip(*matched, strict=True), strict=True):
            ends.append(
                pool(self.aggregation(self.dropout(torch.cat(matchings, dim=-1)), text.mask), text.mask, "ends")
            )
        return self.dropout(torch.tanh(self.output(self.dropout(torch.cat(ends, dim=1)))))
