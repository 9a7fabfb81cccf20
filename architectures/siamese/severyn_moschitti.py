"""Convolutional network that ranks pairs of short texts."""

from __future__ import annotations

import string

import torch
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS
from torch import Tensor, nn

from harness.kinds import PairEncoder
from harness.layers.overlap import same_words, shared
from harness.registry import Recipe, register
from harness.views.words import WordBatch, Words


class SentenceModel(nn.Module):
    """Wide convolution, ReLU, maximum over the text: words (B, T, width), the mask and which words
    are shared (B, T) -> (B, maps).

    Wide: zeros around the text let a window reach in from either end, so a text of n words has n +
    window - 1.
    """

    def __init__(self, width: int, maps: int, window: int, overlap: int):
        super().__init__()
        self.overlap = nn.Embedding(2, overlap)
        nn.init.normal_(self.overlap.weight, std=0.25)
        self.convolution = nn.Conv1d(width + overlap, maps, window, padding=window - 1)

    def forward(self, vectors: Tensor, mask: Tensor, is_shared: Tensor) -> Tensor:
        joined = torch.cat([vectors, self.overlap(is_shared.long())], dim=-1) * mask[..., None]
        maps = torch.relu(self.convolution(joined.transpose(1, 2)))
        windows = mask.sum(1) + self.convolution.kernel_size[0] - 1
        inside = torch.arange(maps.shape[-1], device=maps.device) < windows[:, None]
        return maps.masked_fill(~inside[:, None], -torch.inf).amax(-1)


class OverlapFeatures(nn.Module):
    """Overlap of two texts (B, 4): the number of shared words and their summed idf, over all words
    and then without stop words.

    Each divided by the number of words of both texts; a word that is repeated counts once.
    """

    size = 4

    def __init__(self, view: Words):
        super().__init__()
        counts = torch.tensor(view.vocabulary.counts, dtype=torch.float)
        stop = [word in ENGLISH_STOP_WORDS or word in string.punctuation for word in view.vocabulary.words]
        # Rows 0 and 1 are padding and the unknown word, which training has at most once.
        idf = (counts.sum() / torch.cat([torch.ones(2), counts])).clamp(min=1).log()
        self.register_buffer("idf", idf, persistent=False)
        self.register_buffer("content", ~torch.tensor([False, False, *stop]), persistent=False)

    def forward(self, first: WordBatch, second: WordBatch) -> Tensor:
        ours, theirs = distinct(first), distinct(second)
        common = ours & shared(first, second)
        features = []
        for a, b in ((1.0, 1.0), (self.content[first.ids], self.content[second.ids])):
            words = ((ours * a).sum(1) + (theirs * b).sum(1)).clamp(min=1)
            features += [(common * a).sum(1) / words, (common * a * self.idf[first.ids]).sum(1) / words]
        return torch.stack(features, dim=1)


def distinct(text: WordBatch) -> Tensor:
    """True (B, T) where a word of the text stands for the first time."""
    return text.mask & ~same_words(text, text).tril(-1).any(2)


@register(
    "severyn_moschitti",
    name="CNN short-text ranker",
    kind="pair",
    paper="Severyn & Moschitti 2015",
    source="M2.8[116]",
    year=2015,
    recipe=Recipe(
        optimizer="adadelta", lr=1.0, rho=0.95, batch_size=50, epochs=25, weight_decay=0.00001, vector_dims=50
    ),
    tiny={"maps": 24, "overlap": 3},
    vectors_of_paper="word2vec",
    deviations=(
        "Unknown words share one vector.",
        (
            "idf counts how often a word occurs in training, not in how many texts; stop words are scikit-learn's list"
            " and ASCII punctuation."
        ),
        "L2 is 1e-5 for all weights; the paper has 1e-4 for the softmax layer, the authors' program none.",
        "Layers start as PyTorch's do; in the authors' code biases and the softmax layer start at zero, the hidden one"
        " Glorot-uniform.",
        "Convolutions and the hidden layer have ReLU, as in the paper; the authors' program has tanh.",
        "Of what tells shared words, the vector beside each word is the authors' program's, the four numbers are the"
        " paper's; neither has both.",
    ),
)
class SeverynMoschitti(PairEncoder):
    """Two convolutional sentence models, a learned similarity of their outputs, and word overlap,
    joined for one hidden layer.

    Each model reads the word vectors beside a vector for "the other text has this word". From their
    outputs x_q and x_d comes sim = x_q M x_d; the join [x_q, sim, x_d, overlap features] goes
    through a ReLU layer of its own size (B, ``size``). The word vectors are fixed; ``tuned`` trains
    them, for lack of pre-trained ones.
    """

    def __init__(
        self, width: int, view: Words, maps: int = 100, window: int = 5, overlap: int = 5, tuned: bool = False
    ):
        super().__init__()
        self.vectors = "tuned" if tuned else "fixed"
        self.query = SentenceModel(width, maps, window, overlap)
        self.document = SentenceModel(width, maps, window, overlap)
        # The authors' program starts M at zero too: the similarity is learned from nothing.
        self.similarity = nn.Parameter(torch.zeros(maps, maps))
        self.features = OverlapFeatures(view)
        self.size = 2 * maps + 1 + OverlapFeatures.size
        self.hidden = nn.Linear(self.size, self.size)

    def forward(self, first: WordBatch, second: WordBatch) -> Tensor:
        query = self.query(first.vectors, first.mask, shared(first, second))
        document = self.document(second.vectors, second.mask, shared(second, first))
        similarity = (query @ self.similarity * document).sum(1, keepdim=True)
        return torch.relu(self.hidden(torch.cat([query, similarity, document, self.features(first, second)], dim=1)))
