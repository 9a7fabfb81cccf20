"""Skip-Thought: the vector of a sentence, which tells the sentences before and behind it."""

from __future__ import annotations

from typing import Any

from torch import nn

from architectures.blocks.learnt_features import SentenceFeatures
from architectures.blocks.objectives.told_sentences import ToldSentences, told_by_states
from architectures.blocks.sentence_gru import ConditionedGRU, SentenceReader
from architectures.blocks.sentences import sentences
from harness.layers.noise import Noise
from harness.problems.text_objective import Foretold
from harness.registry import Recipe, register
from harness.views.subwords import SubwordBatch
from harness.views.whole_words import WholeWords


class SentencesBeside(ToldSentences):
    """The sentence before each one and the sentence behind it, word by word, by its vector.

    Each has a decoder of its own, in which all gates see the vector. Both read the encoder's
    vectors of words, and share the output layer.
    """

    unit = "words of the sentences before and behind"
    longest = 30
    steps = (-1, 1)

    def __init__(self, encoder: Any):
        super().__init__(encoder)
        embedded, size = encoder.network.table.embedding_dim, encoder.size
        self.decoders = nn.ModuleList(ConditionedGRU(embedded, size) for _ in self.steps)
        self.output = nn.Linear(size, encoder.view.width)

    def forward(self, encoder: Any, pieces: SubwordBatch, noise: Noise) -> Foretold:
        found = sentences(pieces, encoder.view, self.longest)
        vectors, questions, logs = encoder.network(found.pieces), self.questions(found), []
        for decoder, question in zip(self.decoders, questions, strict=True):
            states = decoder(encoder.network.table(question.told.ids[:, :-1]), vectors)
            logs.append(told_by_states(self.output, states, question))
        return self.answered(found, questions, logs)


@register(
    "skip_thought",
    name="Skip-Thought",
    kind="plm",
    paper="Kiros et al. 2015",
    source="M2.11[161]",
    year=2015,
    parents={"weights": "skip_thought@text_mix"},
    recipe=Recipe(optimizer="adam", lr=0.001, batch_size=32, epochs=10, patience=3, clip=5.0),
    recipes={"text": Recipe(optimizer="adam", lr=0.001, batch_size=8, epochs=5, patience=5, clip=10.0)},
    tiny={"embedded": 48, "hidden": 64, "vocabulary": 1000},
    deviations=(
        "An eighth of the paper's 2,400 units, and a quarter of its vectors of words, which are 620 wide.",
        "The encoder reads in one direction (uni-skip); a second one that reads in both is left out (combine-skip).",
        (
            "It learns from the text mix, whose texts are paragraphs, and not from books: a sentence at either end of"
            " its text tells its one neighbour, and one that is alone tells that nothing stands beside it."
        ),
        "A full stop, an exclamation mark or a question mark ends a sentence; of a long one 30 words are read, where"
        " the authors' program leaves it out.",
        "The loss is a mean over words, whose gradient is cut at 10; in the authors' program it is a sum, cut at 5.",
        (
            "All words but the 9,995 commonest are one unknown word; the paper has 20,000, and maps others into its"
            " vectors from word2vec's."
        ),
        (
            "The reset gate acts behind the matrix, as in the authors' code; there the decoders begin in the vector of"
            " the sentence and their gates do not see it."
        ),
        "The rate is 0.001 over five passes, of which batches hold the sentences of eight rows of 254 words, some 110;"
        " the paper has 128 sentences, and 74 million of them.",
        "Layers begin as PyTorch's do; the paper's recurrent matrices are orthogonal, and all else is uniform in"
        " +- 0.1, as the vectors of words are here.",
        "A linear layer classifies the vector, whose network stays as it was learnt; that of a text is the mean of its"
        " sentences'.",
        "The encoder reads a mark in front of each sentence, too; the authors' does not.",
    ),
)
class SkipThought(SentenceFeatures):
    """A GRU reads a sentence, and from its last state h two others tell the sentence before and the
    one behind (Kiros et al. 2015, section 2.1; :class:`SentencesBeside`).

    The decoders are r = s(W_r x + U_r h' + C_r h), z = s(W_z x + U_z h' + C_z h), tanh(W x +
    r U h' + C h) for the candidate, and sum log P(w | before, h) over both is made large. The
    vector of a sentence is h.
    """

    learns = SentencesBeside
    view = WholeWords(lower=True)

    def __init__(
        self,
        width: int,
        view: WholeWords,
        embedded: int = 155,
        hidden: int = 300,
        tuned: bool = False,
        vocabulary: int = 10_000,
        max_length: int = 256,
    ):
        super().__init__(view, SentenceReader(width, embedded, hidden), hidden, tuned)
