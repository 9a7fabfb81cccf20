"""TopicRNN: a recurrent language model with topics of the whole text."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.content_words import content_words
from architectures.blocks.contextual_words import KeptStill
from architectures.blocks.learnt_features import LearntFeatures
from architectures.blocks.objectives.next_piece import NextPiece
from architectures.blocks.variational import Gaussian, bound, normal
from architectures.blocks.word_bags import word_counts
from harness.layers.noise import Noise
from harness.layers.pooling import pool
from harness.problems.text_objective import Foretold
from harness.registry import Recipe, register
from harness.views.subwords import SubwordBatch
from harness.views.whole_words import WholeWords


class TopicsAndStates(KeptStill):
    """States (B, T, hidden) of a GRU at the words of texts; and for counts of words (B, width) a
    ReLU layer (B, inferring) and above it the mean (B, topics) of theta."""

    def __init__(self, width: int, embedded: int, hidden: int, inferring: int, topics: int):
        super().__init__()
        self.table = nn.Embedding(width, embedded)
        self.recurrence = nn.GRU(embedded, hidden, batch_first=True)
        self.hidden, self.mean = nn.Linear(width, inferring), nn.Linear(inferring, topics)

    def states(self, ids: Tensor) -> Tensor:
        return self.recurrence(self.table(ids))[0]

    def inferred(self, counts: Tensor) -> tuple[Tensor, Tensor]:
        hidden = self.hidden(counts).relu()
        return hidden, self.mean(hidden)


class TopicalWords(NextPiece):
    """Each word by the state h before it and by theta: p(stop | h) = sigmoid(g . h), and the
    scores of words are V h for a stop word, V h + B theta for any other.

    In training each word is told with its sort, which is known from a list. The score sums over
    both sorts. Marks and the unknown word count as stop words.
    """

    unit = "words by a bound"
    packs = False

    def __init__(self, encoder: Any):
        super().__init__(encoder)
        network, width = encoder.network, encoder.view.width
        self.deviation = nn.Linear(network.mean.in_features, encoder.topics)
        self.output = nn.Linear(network.recurrence.hidden_size, width)
        self.topics = nn.Linear(encoder.topics, width, bias=False)
        self.stop = nn.Linear(network.recurrence.hidden_size, 1)

    def posterior(self, encoder: Any, pieces: SubwordBatch) -> Gaussian:
        """The distribution of theta, given the words of each text that are no stop words."""
        hidden, mean = encoder.inferred(pieces)
        return Gaussian(mean, self.deviation(hidden))

    def told(self, states: Tensor, themes: Tensor, words: Tensor, content: Tensor) -> Tensor:
        """Log-probabilities (N,) of words and their sorts, true in ``content`` where a word counts
        as none of the stop words, by states (N, hidden) and B theta (N, V)."""
        scores = self.output(states) + themes * content[:, None]
        sort = F.logsigmoid(torch.where(content, -1.0, 1.0) * self.stop(states)[:, 0])
        return sort - F.cross_entropy(scores, words, reduction="none")

    def forward(self, encoder: Any, pieces: SubwordBatch, noise: Noise) -> Foretold:
        asked, posterior = pieces.mask[:, 1:], self.posterior(encoder, pieces)
        themes = self.topics(posterior.at(normal(noise, encoder.topics)))[asked.nonzero()[:, 0]]
        states, words = encoder.network.states(pieces.ids)[:, :-1][asked], pieces.ids[:, 1:][asked]
        content = encoder.content[words]
        logs = self.told(states, themes, words, content)
        if not self.training:
            logs = torch.logaddexp(logs, self.told(states, themes, words, ~content))
        return bound(Foretold.at(logs, asked), posterior.divergence(), 1.0, self.training)


@register(
    "topic_rnn",
    name="TopicRNN",
    kind="plm",
    paper="Dieng et al. 2016",
    source="M2.2[37]",
    year=2016,
    parents={"weights": "topic_rnn@text_mix"},
    recipe=Recipe(optimizer="adam", lr=0.001, batch_size=32, epochs=20, patience=3),
    recipes={"text": Recipe(optimizer="adam", lr=0.001, batch_size=32, epochs=13, patience=13, clip=5.0)},
    tiny={"embedded": 64, "hidden": 96, "inferring": 32, "topics": 8, "features": 24, "vocabulary": 1000},
    deviations=(
        "It learns from the text mix, in whose texts IMDB's training texts are a third, and not from IMDB alone.",
        "A text is a stretch of 254 words with a theta of its own, through all of which gradients go back; the paper"
        " takes 5 words a step.",
        "All words but the 9,995 commonest are one unknown word, which counts as a stop word, and so do all marks; the"
        " paper keeps 5,000 words.",
        "The stop list is scikit-learn's; the paper's is another.",
        "Vectors of words, the rate and clipping are our choice.",
        "The recurrent network, a GRU, and the inferring one have a layer each; the paper has two in both, and does not"
        " say which cells it has for reviews.",
        "The bound is of one draw in evaluation.",
        "Plain text is scored by the bound, with theta of the whole stretch; the paper tells each word by the mean of"
        " theta of the words before it.",
    ),
)
class TopicRNN(LearntFeatures):
    """A GRU language model whose scores of words have a bias by the topics theta of the text, which
    stop words do without (Dieng et al. 2016, section 3).

    theta is inferred from the bag of the text's other words: q(theta | X) = N(mu, sigma^2). All
    learns by the bound sum_t log p(y_t, l_t | h_t, theta) - KL(q || N(0, I)), l_t = 1 at a stop
    word (:class:`TopicalWords`). Of a text a classifier reads mu and the last state, joined by one
    hidden layer with a sigmoid; both stay as they were learnt.
    """

    learns = TopicalWords
    view = WholeWords(lower=True)
    unused = ("joined",)  # the classifier's layer, of which plain text asks nothing

    def __init__(
        self,
        width: int,
        view: WholeWords,
        embedded: int = 300,
        hidden: int = 300,
        inferring: int = 500,
        topics: int = 200,
        features: int = 50,
        tuned: bool = False,
        vocabulary: int = 10_000,
        max_length: int = 256,
    ):
        super().__init__(view, TopicsAndStates(width, embedded, hidden, inferring, topics), features, tuned)
        self.topics, self.joined = topics, nn.Linear(topics + hidden, features)
        content = torch.zeros(width, dtype=torch.bool)
        content[[number for word, number in view.words.items() if content_words(word)]] = True
        self.register_buffer("content", content)

    def inferred(self, pieces: SubwordBatch) -> tuple[Tensor, Tensor]:
        """The inferring layer and the mean of theta of texts."""
        read = self.content[pieces.ids] & pieces.mask
        return self.network.inferred(word_counts(pieces, self.view.width, read))

    def vector(self, pieces: SubwordBatch) -> Tensor:
        # The state behind the last word: the mark behind it is told in training, and never read.
        last = pool(self.network.states(pieces.ids[:, :-1]), pieces.mask[:, 1:], "last")
        return self.joined(torch.cat([self.inferred(pieces)[1], last], 1)).sigmoid()
