"""FastSent, which tells the words of the sentences beside one, and the sequential denoising
autoencoder, which tells a sentence of which words are missing and others stand in wrong places."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from architectures.blocks.contextual_words import KeptStill
from architectures.blocks.learnt_features import LearntFeatures, SentenceFeatures
from architectures.blocks.objectives.told_sentences import ToldSentences, told_by_states
from architectures.blocks.sentence_gru import ConditionedGRU, SentenceReader
from architectures.blocks.sentences import Sentences, between_marks, sentences
from architectures.blocks.word_bags import counted
from harness.layers.noise import Noise
from harness.problems.language_model import Surprise
from harness.problems.text_objective import Foretold, batches
from harness.registry import Recipe, register
from harness.task import Row
from harness.views.subwords import SubwordBatch, Subwords
from harness.views.whole_words import WholeWords


class SumOfWords(KeptStill):
    """Words (B, T) of texts to the sum of their vectors (B, dims)."""

    def __init__(self, width: int, dims: int):
        super().__init__()
        self.table = nn.EmbeddingBag(width, dims, mode="sum")
        nn.init.uniform_(self.table.weight, -0.5 / dims, 0.5 / dims)

    def forward(self, pieces: SubwordBatch) -> Tensor:
        return self.table(pieces.ids, per_sample_weights=counted(pieces).to(self.table.weight.dtype))


class WordsBeside(ToldSentences):
    """The words of the sentences beside one, each by the softmax of the products of the sentence's
    vector with the second vectors, the targets, of all words."""

    unit = "words of neighbouring sentences"
    longest = 100
    steps = (-1, 1)

    def __init__(self, encoder: Any):
        super().__init__(encoder)
        self.targets = nn.Linear(encoder.size, encoder.view.width, bias=False)
        nn.init.uniform_(self.targets.weight, -0.5 / encoder.size, 0.5 / encoder.size)

    @classmethod
    def asked(cls, told: SubwordBatch) -> Tensor:
        return counted(told)

    def forward(self, encoder: Any, pieces: SubwordBatch, noise: Noise) -> Foretold:
        found = sentences(pieces, encoder.view, self.longest)
        questions = self.questions(found)
        logs = self.targets(encoder.network(found.pieces)).log_softmax(1)
        return self.answered(found, questions, [logs.gather(1, told.ids)[asked] for told, asked in questions])

    @classmethod
    def by_heart(cls, view: Subwords, rows: Sequence[Row]) -> list[Surprise]:
        """Each word by its share of those that are asked of the same bag of words."""
        asked: list[tuple[int, tuple[int, ...], int]] = []
        before = 0
        for pieces in batches(view, rows):
            found = sentences(pieces, view, cls.longest)
            read = zip(found.pieces.ids, counted(found.pieces), strict=True)
            bags = [tuple(sorted(ids[words].tolist())) for ids, words in read]
            for told, places in cls.questions(found):
                numbers = places.nonzero()[:, 0].tolist()
                words = told.ids[places].tolist()
                asked += [(before + int(found.rows[n]), bags[n], word) for n, word in zip(numbers, words, strict=True)]
            before += len(pieces.ids)
        times, all_times = Counter(one[1:] for one in asked), Counter(bag for _, bag, _ in asked)
        surprises: list[Surprise] = [[0.0, 0] for _ in rows]
        for row, bag, word in asked:
            surprises[row][0] += math.log(times[bag, word] / all_times[bag])
            surprises[row][1] += 1
        return surprises


class WordsOfAndBeside(WordsBeside):
    """As :class:`WordsBeside`, and the words of the sentence itself."""

    unit = "words of sentences and their neighbours"
    steps = (-1, 0, 1)


class Restored(ToldSentences):
    """Each sentence, word by word, by a vector of what noise has left of it.

    Each word is deleted with the probability ``deleted``. Of what is left the first and second
    word, the third and fourth, and so on change places with the probability ``swapped``. The
    decoder begins in a state that is a layer of the vector, and each of its gates sees the vector.
    """

    unit = "words of sentences that noise has changed"
    longest = 30
    steps = (0,)

    def __init__(self, encoder: Any):
        super().__init__(encoder)
        self.deleted, self.swapped, size = encoder.deleted, encoder.swapped, encoder.size
        self.beginning = nn.Linear(size, size)
        self.decoder = ConditionedGRU(encoder.network.table.embedding_dim, size)
        self.output = nn.Linear(size, encoder.view.width)

    def noisy(self, found: Sentences, noise: Noise) -> SubwordBatch:
        """The sentences with words deleted and swapped, between their marks."""
        read, words = found.pieces, found.places > 0
        left = read.mask & ~(words & (found.drawn(noise) < self.deleted))
        order = (~left).to(torch.uint8).argsort(dim=1, stable=True)
        lengths, places = left.sum(1), torch.arange(read.ids.shape[1], device=read.ids.device)
        first = (places % 2 == 1) & (places + 1 < lengths[:, None] - 1)
        first &= found.drawn(noise).gather(1, order) < self.swapped
        order = order.gather(1, places + first.long() - first.roll(1, 1).long())
        return between_marks(read.ids.gather(1, order), lengths)

    def forward(self, encoder: Any, pieces: SubwordBatch, noise: Noise) -> Foretold:
        found = sentences(pieces, encoder.view, self.longest)
        [question] = self.questions(found)
        vectors = encoder.network(self.noisy(found, noise))
        before = encoder.network.table(question.told.ids[:, :-1])
        states = self.decoder(before, vectors, self.beginning(vectors).tanh())
        return self.answered(found, [question], [told_by_states(self.output, states, question)])


@register(
    "fastsent",
    name="FastSent",
    kind="plm",
    paper="Hill et al. 2016",
    source="X4.6",
    year=2016,
    parents={"weights": "fastsent@text_mix"},
    recipe=Recipe(optimizer="adam", lr=0.001, batch_size=64, epochs=20, patience=3),
    recipes={"text": Recipe(optimizer="adam", lr=0.001, batch_size=8, epochs=5, patience=5)},
    tiny={"dims": 32, "vocabulary": 1000},
    deviations=(
        (
            "It learns from the text mix, whose texts are paragraphs, and not from books: a sentence at either end of"
            " its text tells its one neighbour, and one that is alone tells that nothing stands beside it."
        ),
        "A full stop, an exclamation mark or a question mark ends a sentence, of which 100 words are read.",
        "All words but the 9,995 commonest are one unknown word; the authors leave out those seen less than ten times.",
        (
            "The softmax is that of the paper, over all words, and its gradient exact; the authors' code has a"
            " hierarchical one, and divides what reaches a word by the number of words in its sentence."
        ),
        "Adam makes five passes; the authors' code makes one by a rate that falls.",
        "Second vectors begin as small as the first ones, in word2vec's code at 0.",
        "A linear layer classifies the sum, which stays as it was learnt.",
    ),
)
class FastSent(LearntFeatures):
    """The vector of a sentence is the sum of the vectors u of its words, and foretells each word w
    of the sentences beside it by the softmax of the products with second vectors v (Hill et al.
    2016, section 3.2): p(w) = exp(s v_w) / sum exp(s v).

    The vector of a text is the sum of its words' first vectors. Fast.
    """

    learns = WordsBeside
    view = WholeWords(lower=True)

    def __init__(
        self,
        width: int,
        view: WholeWords,
        dims: int = 100,
        tuned: bool = False,
        vocabulary: int = 10_000,
        max_length: int = 402,
    ):
        super().__init__(view, SumOfWords(width, dims), dims, tuned)


@register(
    "fastsent_ae",
    name="FastSent + AE",
    kind="plm",
    paper="Hill et al. 2016",
    source="X4.6",
    year=2016,
    parents={"weights": "fastsent_ae@text_mix"},
    recipe=Recipe(optimizer="adam", lr=0.001, batch_size=64, epochs=20, patience=3),
    recipes={"text": Recipe(optimizer="adam", lr=0.001, batch_size=8, epochs=5, patience=5)},
    tiny={"dims": 32, "vocabulary": 1000},
    deviations=(
        (
            "It learns from the text mix, whose texts are paragraphs, and not from books: a sentence at either end of"
            " its text tells its one neighbour, and one that is alone tells that nothing stands beside it."
        ),
        "A full stop, an exclamation mark or a question mark ends a sentence, of which 100 words are read.",
        "All words but the 9,995 commonest are one unknown word; the authors leave out those seen less than ten times.",
        (
            "The softmax is that of the paper, over all words, and its gradient exact; the authors' code has a"
            " hierarchical one, and divides what reaches a word by the number of words in its sentence."
        ),
        "Adam makes five passes; the authors' code makes one by a rate that falls.",
        "Second vectors begin as small as the first ones, in word2vec's code at 0.",
        "A linear layer classifies the sum, which stays as it was learnt.",
    ),
)
class FastSentAutoencoder(FastSent):
    """As FastSent; a sentence foretells its own words, too (Hill et al. 2016: FastSent + AE)."""

    learns = WordsOfAndBeside


@register(
    "sdae",
    name="Sequential denoising autoencoder (SDAE)",
    kind="plm",
    paper="Hill et al. 2016",
    source="X4.6",
    year=2016,
    parents={"weights": "sdae@text_mix"},
    recipe=Recipe(optimizer="adam", lr=0.001, batch_size=32, epochs=10, patience=3, clip=5.0),
    recipes={"text": Recipe(optimizer="adam", lr=0.001, batch_size=2, epochs=5, patience=5, clip=2.0)},
    tiny={"embedded": 48, "hidden": 64, "deleted": 0.0, "swapped": 0.0, "vocabulary": 1000},
    deviations=(
        "An eighth of the paper's 2,400 units.",
        "The networks are the GRUs of the authors' code; the paper says LSTM.",
        (
            "It learns from the text mix, and not from books. A full stop, an exclamation mark or a question mark ends"
            " a sentence, of which 30 words are read."
        ),
        "All words but the 9,995 commonest are one unknown word; the authors' code has 30,000.",
        (
            "Noise is that of the paper. In the authors' code a tenth of the words of each sentence is unknown, and"
            " pairs that change places may overlap."
        ),
        "A sentence has one noise for ever where it is scored.",
        "The rate is 0.001 over five passes, of which batches hold the sentences of 16 texts; in the authors' code"
        " 0.0002, with 16 sentences.",
        "Layers begin as PyTorch's do, and vectors of words as Skip-Thought's; in the authors' code recurrent matrices"
        " are orthogonal, biases 0, and all else is normal with deviation 0.01.",
        "A linear layer classifies the vector, whose network stays as it was learnt; that of a text is the mean of its"
        " sentences'.",
        "The loss is a mean over words, whose gradient is cut at 2; in the authors' code it is the sum over a"
        " sentence's words.",
        "The encoder reads a mark in front of each sentence, too; the authors' does not.",
    ),
)
class SequentialDenoisingAutoencoder(SentenceFeatures):
    """A GRU reads a sentence of which words are missing and others have changed places, and another
    restores it from the last state (Hill et al. 2016, section 3.1; :class:`Restored`).

    The vector of a sentence is the last state behind its words, all of which are read.
    """

    learns = Restored
    view = WholeWords(lower=True)

    def __init__(
        self,
        width: int,
        view: WholeWords,
        embedded: int = 100,
        hidden: int = 300,
        deleted: float = 0.1,
        swapped: float = 0.1,
        tuned: bool = False,
        vocabulary: int = 10_000,
        max_length: int = 256,
    ):
        super().__init__(view, SentenceReader(width, embedded, hidden), hidden, tuned)
        self.deleted, self.swapped = deleted, swapped
