"""Replaced pieces: a small generator writes other pieces into a text, and at each place the encoder
says whether it did (Clark et al. 2020: section 2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.objectives.masked_pieces import WordScores, content, share_of
from architectures.blocks.transformer import Transformer
from harness.layers.noise import Noise
from harness.objectives import add_loss
from harness.problems.language_model import Surprise
from harness.problems.text_objective import Foretold, TextObjective, batches
from harness.task import Row
from harness.views.subwords import SubwordBatch, Subwords

NARROWER = 4
"""Times that a generator is narrower than its encoder, and that it has fewer heads."""


class Generator(nn.Module):
    """A masked language model of a quarter of the encoder's width and as many layers, which reads
    the encoder's own vectors of pieces and positions, and has them learn from its loss, too."""

    def __init__(self, encoder: Any):
        super().__init__()
        size, heads = max(1, encoder.size // NARROWER), max(1, encoder.body.heads // NARROWER)
        self.projection = nn.Linear(encoder.table.embedding_dim, size)
        self.body = Transformer(
            size, heads, 4 * size, encoder.body.depth, encoder.dropout.p, eps=encoder.eps, activation=nn.GELU
        )
        self.words = WordScores(encoder, size)

    def forward(self, encoder: Any, pieces: SubwordBatch, asked: Tensor) -> Tensor:
        """Scores (N, V) of all pieces at the places (B, T) where ``asked`` is true."""
        states = self.body(self.projection(encoder.embeddings(pieces)), pieces.mask)
        return self.words.scores(encoder, states[asked])


def drawn(scores: Tensor, places: Tensor, noise: Noise) -> Tensor:
    """A piece (N,) for each of the ``places`` (B, T), with the probabilities that the scores (N, V)
    say: the highest sum of score and Gumbel noise. No gradient goes through it."""
    counts = places.sum(1)
    each = torch.arange(int(counts.max()), device=places.device) < counts[:, None]
    numbers = noise.uniform(each.shape[1], scores.shape[1])[each]
    return (scores.detach() - (-numbers.log()).log()).argmax(1)


class ReplacedPieces(TextObjective):
    """A share of the pieces is replaced, and the model says of every place, those of the marks of
    beginning and end too, whether another piece stands there than in the text.

    In training a :class:`Generator` reads the text with these pieces masked, and others are drawn
    from what it takes for likely; its own loss is added. One that is drawn as it was counts as not
    replaced. In evaluation the replacements are any pieces of the vocabulary, so that the score
    does not depend on how good a generator is. As a generator learns, what it writes grows less and
    less like these: the score grows worse while the encoder learns more, so that only the last
    epochs are chosen among.
    """

    unit = "replaced pieces"
    last_phase = 0.9
    weight = 50.0
    share = 0.15

    def __init__(self, encoder: Any):
        super().__init__(encoder)
        self.generator = Generator(encoder)
        self.output = nn.Sequential(nn.Linear(encoder.size, encoder.size), nn.GELU(), nn.Linear(encoder.size, 1))
        encoder.begin(self, 0.02)

    @classmethod
    def chosen(cls, pieces: SubwordBatch, view: Subwords, noise: Noise) -> Tensor:
        """True (B, T) at the pieces in whose place others are drawn."""
        return share_of(content(pieces, view), cls.share, noise.uniform(pieces.ids.shape[1]))

    @classmethod
    def at_random(cls, pieces: SubwordBatch, view: Subwords, noise: Noise) -> Tensor:
        """The pieces (B, T) with some of the vocabulary in the place of the chosen ones."""
        chosen, others = cls.chosen(pieces, view, noise), noise.uniform(pieces.ids.shape[1])
        return torch.where(chosen, (others * view.width).long(), pieces.ids)

    def generated(self, encoder: Any, pieces: SubwordBatch, noise: Noise) -> Tensor:
        """The pieces (B, T) with those that the generator draws in the place of the chosen ones."""
        chosen = self.chosen(pieces, encoder.view, noise)
        masked = pieces._replace(ids=pieces.ids.masked_fill(chosen, encoder.view.mask))
        scores = self.generator(encoder, masked, chosen)
        surprise = F.cross_entropy(scores, pieces.ids[chosen], reduction="sum")
        add_loss("generator", surprise / max(1, len(scores)))
        return pieces.ids.masked_scatter(chosen, drawn(scores, chosen, noise))

    def forward(self, encoder: Any, pieces: SubwordBatch, noise: Noise) -> Foretold:
        if self.training:
            read = self.generated(encoder, pieces, noise)
        else:
            read = self.at_random(pieces, encoder.view, noise)
        states = encoder(pieces._replace(ids=read))
        scores = self.output(states[pieces.mask])[:, 0]
        replaced = (read != pieces.ids)[pieces.mask]
        return Foretold.at(F.logsigmoid(torch.where(replaced, scores, -scores)), pieces.mask)

    @classmethod
    def floor(cls, view: Subwords, train: Sequence[Row], rows: Sequence[Row]) -> list[Surprise]:
        """Each place with one probability, the share of the places of the rows that are
        replaced."""
        replaced, places = [], []
        for pieces in batches(view, rows):
            read = cls.at_random(pieces, view, Noise(pieces.ids, pieces.mask))
            replaced.append((read != pieces.ids).sum(1))
            places.append(pieces.mask.sum(1))
        changed, asked = torch.cat(replaced).double(), torch.cat(places)
        share = changed.sum() / asked.sum()
        logs = torch.xlogy(changed, share) + torch.xlogy(asked - changed, 1 - share)
        return [[log, count] for log, count in zip(logs.tolist(), asked.tolist(), strict=True)]

    @classmethod
    def by_heart(cls, view: Subwords, rows: Sequence[Row]) -> list[Surprise]:
        """The floor: a generator that knows its texts writes nothing else into them, and from then
        on the encoder learns that no piece is ever replaced."""
        return cls.floor(view, rows, rows)
