"""Texts with some of their words replaced: those that say little of a text, by others whose scores
in all texts together are low (Xie et al. 2019, TF-IDF word replacement)."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from harness.layers.noise import Noise
from harness.ragged import Ragged
from harness.views.subwords import SubwordBatch, Subwords
from harness.views.words import UNKNOWN, Vocabulary, WordBatch, spelling


class Replacement(nn.Module):
    """Replaces about ``rate`` of the words of each text.

    The score of a word in a text is its share of the text's words times the logarithm of one over
    the share of texts that have it. A word is replaced with a probability that grows evenly from
    that score up to the text's highest one, C: rate * n * (C - s) / sum of (C - s), n words in the
    text. The word that takes its place is drawn with a probability that grows in the same way from
    its scores summed over all ``texts``, as in the authors' program: the commonest words have the
    highest sums and hardly come, rare ones are a little likelier than the rest, and so is a word
    that is in nearly every text. It is one of those that the texts have and that ``offered``
    (words,) marks. What is drawn depends on the text and on the noise's key.
    """

    def __init__(self, rate: float, texts: Ragged, offered: np.ndarray):
        super().__init__()
        self.rate = rate
        size, lengths = len(offered), texts.lengths
        owner = np.repeat(np.arange(len(texts)), lengths)
        pairs = np.unique(np.stack([owner, texts.values]), axis=1)
        having = np.bincount(pairs[1], minlength=size)
        rareness = np.log(len(texts) / having.clip(min=1))
        scores = rareness * np.bincount(texts.values, weights=1 / lengths[owner], minlength=size)
        known = (having > 0) & offered
        common = (scores.max() - scores) * known
        upto = np.cumsum(common if common.any() else known.astype(float))  # the words may be all alike
        self.register_buffer("rareness", torch.tensor(rareness, dtype=torch.float))
        self.register_buffer("upto", torch.tensor(upto / upto[-1]))

    def rates(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Probability (B, T) with which each word is replaced; 0 where ``mask`` (B, T) is false."""
        same = ids[:, :, None] == ids[:, None, :]
        lengths = mask.sum(1, keepdim=True)
        # Times in place of shares of the text: the length of a text scales all of its scores alike.
        scores = (same.sum(2) * self.rareness[ids]).masked_fill(~mask, 0)
        below = (scores.amax(1, keepdim=True) - scores) * mask
        total = below.sum(1, keepdim=True)
        even = torch.where(total > 0, below * lengths / total, 1.0)
        return (self.rate * even).clamp(max=1) * mask

    def drawn(self, ids: Tensor, mask: Tensor, noise: Noise) -> tuple[Tensor, Tensor]:
        """True (B, T) where a word is replaced, and the words (B, T) that would take the places."""
        length = ids.shape[1]
        replaced = noise.uniform(length) < self.rates(ids, mask)
        return replaced, torch.searchsorted(self.upto, noise.uniform(length).to(self.upto.dtype), right=True)


class WordReplacement(Replacement):
    """Replaces words by others of a vocabulary, which have their own spellings."""

    def __init__(self, rate: float, vocabulary: Vocabulary, texts: Ragged):
        super().__init__(rate, texts, np.arange(len(vocabulary)) > UNKNOWN)
        self.register_buffer("spellings", torch.tensor([0, 0, *map(spelling, vocabulary.words)]))

    def forward(self, words: WordBatch, noise: Noise) -> WordBatch:
        replaced, drawn = self.drawn(words.ids, words.mask, noise)
        return words._replace(
            ids=torch.where(replaced, drawn, words.ids),
            spellings=torch.where(replaced, self.spellings[drawn], words.spellings),
        )


class PieceReplacement(Replacement):
    """Replaces words that are one piece by pieces with which a word begins; marks such as [CLS] and
    [PAD], and words of several pieces, stay."""

    def __init__(self, rate: float, view: Subwords, texts: Ragged):
        marks = np.isin(np.arange(view.width), [view.tokenizer.token_to_id(mark) for mark in view.special])
        super().__init__(rate, texts, ~(marks | view.continues))
        self.register_buffer("marks", torch.tensor(marks))
        self.register_buffer("continues", torch.tensor(view.continues))

    def forward(self, pieces: SubwordBatch, noise: Noise) -> SubwordBatch:
        continues = self.continues[pieces.ids]
        divided = continues | F.pad(continues[:, 1:], (0, 1))  # the first piece of such a word, too
        replaced, drawn = self.drawn(pieces.ids, ~self.marks[pieces.ids] & ~divided, noise)
        return pieces._replace(ids=torch.where(replaced, drawn, pieces.ids))
