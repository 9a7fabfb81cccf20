"""Masked pieces that are told from both sides, from one side, or from a source and what is written
so far: the mask of attention alone makes the difference (Dong et al. 2019: 2.3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from architectures.blocks.objectives.masked_pieces import sentence_ends
from architectures.blocks.objectives.next_sentence import NextSentence, paired
from architectures.blocks.objectives.word_spans import in_spans, lengths_by
from harness.layers.noise import Noise
from harness.objectives import add_loss
from harness.problems.language_model import Surprise
from harness.problems.text_objective import Foretold, batches, log_shares, summed
from harness.task import Row
from harness.views.subwords import SubwordBatch, Subwords

BOTH_SIDES, FROM_LEFT, FROM_RIGHT, FROM_SOURCE = range(4)
"""Ways of reading: all pieces; those up to a place; those from it on; for the first segment, the
source, all of it, and for the second one the source and those up to a place."""
SHARES = (1 / 3, 1 / 6, 1 / 6, 1 / 3)
"""Probabilities of the ways."""
SPANS = (0.8, 0.1, 0.1)
"""Probabilities of one, two and three pieces that are masked together."""
SEGMENTS = 6
"""Vectors of segments: two for both sides, one for each direction, two for source and target."""


def sight(ways: Tensor, pieces: SubwordBatch) -> Tensor:
    """True (B, T, T) where the first place may look at the second, in the ``ways`` (B,) in which
    texts are read. Padding looks at itself."""
    place = torch.arange(pieces.ids.shape[1], device=ways.device)
    before, source = place <= place[:, None], pieces.segments == 0
    to_source = source[:, None] | before
    everything = torch.ones_like(to_source)
    rules = torch.stack([everything, before & everything, before.T & everything, to_source])
    chosen = rules[ways, torch.arange(len(ways), device=ways.device)] & pieces.mask[:, None]
    return chosen | (place == place[:, None])


def numbered_segments(ways: Tensor, segments: Tensor) -> Tensor:
    """The numbers (B, T) of the vectors of ``segments`` (B, T), which tell how a text is read."""
    first = torch.tensor([0, 2, 3, 4], device=ways.device)
    return first[ways][:, None] + segments


def merged(rows: Tensor, one: SubwordBatch, other: SubwordBatch, padding: int) -> SubwordBatch:
    """The texts of ``one`` where ``rows`` (B,) is true, and of the ``other`` batch elsewhere."""
    lengths = torch.where(rows, one.lengths, other.lengths)
    width = int(lengths.max())

    def of(first: Tensor, second: Tensor, fill: int) -> Tensor:
        wide = (F.pad(each, (0, max(0, width - each.shape[1])), value=fill)[:, :width] for each in (first, second))
        return torch.where(rows[:, None], *wide)

    mask = torch.arange(width, device=rows.device) < lengths[:, None]
    return SubwordBatch(of(one.ids, other.ids, padding), mask, of(one.segments, other.segments, 0), lengths)


class Asked(NamedTuple):
    """The texts as they stand before pieces are masked, the ways (B,) in which they are read, true
    (B, T) at the ``chosen`` pieces, and 1 (B,) where the second segment is another text's."""

    pieces: SubwordBatch
    ways: Tensor
    chosen: Tensor
    strange: Tensor


class AttentionMasks(NextSentence):
    """Each text is read in one of four ways: from both sides, as two segments of which half of the
    time the second is another text's; from left to right; from right to left; or as a source and
    what follows it.

    Masked pieces are told by their own states, also where these see one side. The end of what
    follows a source is masked as often as its pieces, so that the model learns when to stop. In
    evaluation a text that is read from both sides is one segment.
    """

    unit = "masked pieces in four ways of reading"

    @classmethod
    def chosen(cls, pieces: SubwordBatch, view: Subwords, noise: Noise) -> Tensor:
        return in_spans(pieces, view, noise, torch.tensor(SPANS), cls.share, whole=False)

    @classmethod
    def questions(cls, pieces: SubwordBatch, view: Subwords, noise: Noise) -> Asked:
        """That which is asked of texts."""
        ways = lengths_by(torch.tensor(SHARES), noise.uniform()) - 1
        joined = (ways == BOTH_SIDES) & noise.anew
        ends = sentence_ends(view).to(ways.device)
        pairs, strange = paired(pieces, ends, view, noise, among=joined)
        read = merged(~joined & (ways != FROM_SOURCE), pieces, pairs, view.pad)
        place = torch.arange(read.ids.shape[1], device=ways.device)
        end = (place == read.lengths[:, None] - 1) & (ways == FROM_SOURCE)[:, None]
        stops = end & (noise.uniform() < cls.share)[:, None]
        return Asked(read, ways, cls.chosen(read, view, noise) | stops, strange)

    def forward(self, encoder: Any, pieces: SubwordBatch, noise: Noise) -> Foretold:
        read, ways, chosen, strange = self.questions(pieces, encoder.view, noise)
        hidden = self.hidden(read.ids, chosen, encoder.view, noise)
        segments = numbered_segments(ways, read.segments)
        states = encoder(read._replace(ids=hidden, segments=segments), seen=sight(ways, read))
        if noise.anew:
            pairs = ways == BOTH_SIDES
            scores = self.output(encoder.pooler(states[pairs, 0]))
            wrong = F.cross_entropy(scores, strange[pairs], reduction="sum")
            add_loss("next sentence", wrong / max(1, len(scores)))
        return Foretold.at(self.scores(encoder, states[chosen], read.ids[chosen]), chosen)

    @classmethod
    def floor(cls, view: Subwords, train: Sequence[Row], rows: Sequence[Row]) -> list[Surprise]:
        """Each masked piece by its share of the pieces of the training texts."""
        logs, found = log_shares(view, train), []
        for pieces in batches(view, rows):
            read, _, chosen, _ = cls.questions(pieces, view, Noise(pieces.ids, pieces.mask))
            found += summed(Foretold.at(logs[read.ids[chosen]], chosen), len(chosen))
        return found
