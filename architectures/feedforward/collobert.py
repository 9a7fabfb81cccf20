"""Taggers of Collobert et al. (2011): a window of words, or a convolution over the whole sentence
for each word."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from harness.kinds import Tagger
from harness.registry import Recipe, register
from harness.views.words_and_characters import WordCharacterBatch, WordsAndCharacters

CAPS = ("none", "all", "first", "some")
"""Kinds of capitals in a word, by their number."""


def start_by_fan_in(layers: list[nn.Module]) -> None:
    """Give weights a uniform start whose variance is one over the root of the fan-in, and biases
    the same."""
    for layer in layers:
        limit = (3 / layer.weight[0].numel() ** 0.5) ** 0.5
        for parameter in layer.parameters():
            nn.init.uniform_(parameter, -limit, limit)


@register(
    "collobert",
    name="Unified CNN tagger (windows)",
    kind="tag",
    paper="Collobert et al. 2011",
    source="M2.10[143]",
    year=2011,
    recipe=Recipe(
        optimizer="sgd",
        lr=0.01,
        batch_size=8,
        epochs=50,
        patience=10,
        vector_dims=50,
        reduction="batch",
        groups=(("encoder.hidden.*", 0.00333), ("encoder.output.*", 0.00333)),
    ),
    tiny={"hidden": 48},
    vectors_of_paper="their own language model's",
    deviations=(
        "Word vectors start at random, not from a language model.",
        "Each task reads capitals and the last two letters; the paper adds a gazetteer or parts of speech to some.",
        "Words that training shows once are all the same word, and each digit is 0; the paper has 100,000 words.",
        "A step is over eight sentences, whose losses are summed; the paper's is over one.",
        "The last label of a sentence has a score of its own, as the first has.",
        "The paper trains until a held-out score falls, here at most 50 epochs.",
    ),
)
class WindowTagger(Tagger):
    """Features of a word and its neighbours, joined; HardTanh(W x + b); a score per label; a
    linear-chain CRF.

    A word's features are three look-ups: of the word, of its capitals (:data:`CAPS`) and of its
    last two letters. One trained vector stands for what is before and behind the sentence. Rates
    are divided by the fan-in of each layer.
    """

    view = WordsAndCharacters(digits=True)
    decoder = "crf"

    def __init__(
        self,
        width: int,
        labels: int,
        view: WordsAndCharacters,
        window: int = 5,
        hidden: int = 300,
        caps_size: int = 5,
        suffix_size: int = 5,
    ):
        super().__init__()
        if window % 2 == 0:
            raise ValueError(f"window={window}: an odd number is expected, so that one word is in the middle")
        self.window, self.letters = window, view.alphabet_size
        letters = ["", "", *view.characters.words]
        for name, test in (("upper", str.isupper), ("lower", str.islower)):
            self.register_buffer(name, torch.tensor([test(letter) for letter in letters]))
        self.caps = nn.Embedding(len(CAPS), caps_size)
        self.suffixes = nn.Embedding(self.letters**2, suffix_size)
        self.edge = nn.Parameter(torch.empty(width + caps_size + suffix_size).uniform_(-0.25, 0.25))
        self.build(len(self.edge), hidden, labels)

    def build(self, width: int, hidden: int, labels: int) -> None:
        """The layers above features of this width."""
        self.hidden = nn.Linear(self.window * width, hidden)
        self.output = nn.Linear(hidden, labels)
        start_by_fan_in([self.hidden, self.output])

    def capitals(self, words: WordCharacterBatch) -> Tensor:
        """Numbers (B, T) of the words' kinds of capitals."""
        upper, lower = (table[words.characters] & words.character_mask for table in (self.upper, self.lower))
        some, every, first = upper.any(-1), ~lower.any(-1), upper[..., 0]
        kind = torch.where(every, CAPS.index("all"), torch.where(first, CAPS.index("first"), CAPS.index("some")))
        return kind * some

    def endings(self, words: WordCharacterBatch) -> Tensor:
        """Numbers (B, T) of the words' last two letters; a word of one letter has none before
        it."""
        last = (words.character_mask.sum(-1, keepdim=True) - 1).clamp(min=0)
        letters = F.pad(words.characters, (1, 0)).gather(-1, torch.cat([last, last + 1], -1))
        return letters[..., 0] * self.letters + letters[..., 1]

    def framed(self, words: WordCharacterBatch) -> Tensor:
        """Features (B, T + window - 1, width) of the sentences, with the edges around them."""
        looked_up = [words.vectors, self.caps(self.capitals(words)), self.suffixes(self.endings(words))]
        inside = torch.where(words.mask[..., None], torch.cat(looked_up, -1), self.edge)
        edge = self.edge.expand(len(inside), self.window // 2, -1)
        return torch.cat([edge, inside, edge], dim=1)

    def forward(self, words: WordCharacterBatch) -> Tensor:
        windows = self.framed(words).unfold(1, self.window, 1).transpose(2, 3).flatten(2)
        return self.output(F.hardtanh(self.hidden(windows)))


@register(
    "collobert_sentence",
    name="Unified CNN tagger (sentences)",
    kind="tag",
    paper="Collobert et al. 2011",
    source="M2.10[143]",
    year=2011,
    recipe=Recipe(
        optimizer="sgd",
        lr=0.01,
        batch_size=8,
        epochs=50,
        patience=10,
        vector_dims=50,
        reduction="batch",
        groups=(
            ("encoder.convolution.*", 0.00513),
            ("encoder.placed.*", 0.00513),
            ("encoder.hidden.*", 0.00333),
            ("encoder.output.*", 0.002),
        ),
    ),
    tiny={"hidden": 48, "top": 48},
    vectors_of_paper="their own language model's",
    deviations=(
        "Word vectors start at random, not from a language model.",
        "The paper uses it for semantic roles, where words also know how far they are from the verb.",
        "Each task reads capitals and the last two letters.",
        "Words that training shows once are all the same word, and each digit is 0; the paper has 100,000 words.",
        "A step is over eight sentences, whose losses are summed; the paper's is over one.",
        "The last label of a sentence has a score of its own, as the first has.",
        "The paper trains until a held-out score falls, here at most 50 epochs.",
    ),
)
class SentenceTagger(WindowTagger):
    """Features as of :class:`WindowTagger`; for each word that is tagged the whole sentence is read
    once.

    Every word has one more feature, a look-up of its distance from the word that is tagged, at most
    ``reach`` each way. A convolution over ``window`` words, the maximum over the sentence,
    HardTanh(W x + b) of ``top`` units, and a score per label. What the convolution makes of the
    words does not depend on the distances and is computed once.
    """

    def __init__(
        self,
        width: int,
        labels: int,
        view: WordsAndCharacters,
        window: int = 3,
        hidden: int = 300,
        top: int = 500,
        caps_size: int = 5,
        suffix_size: int = 5,
        place_size: int = 5,
        reach: int = 50,
    ):
        self.sizes = top, place_size, reach
        super().__init__(width, labels, view, window, hidden, caps_size, suffix_size)

    def build(self, width: int, hidden: int, labels: int) -> None:
        top, place_size, self.reach = self.sizes
        self.places = nn.Embedding(2 * self.reach + 1, place_size)
        self.convolution = nn.Conv1d(width, hidden, self.window)
        self.placed = nn.Conv1d(place_size, hidden, self.window, bias=False)
        self.hidden = nn.Linear(hidden, top)
        self.output = nn.Linear(top, labels)
        start_by_fan_in([self.hidden, self.output])
        limit = (3 / (self.window * (width + place_size)) ** 0.5) ** 0.5  # both are one convolution
        for parameter in (*self.convolution.parameters(), *self.placed.parameters()):
            nn.init.uniform_(parameter, -limit, limit)

    def forward(self, words: WordCharacterBatch) -> Tensor:
        mask, length = words.mask[..., None], words.mask.shape[1]
        of_words = self.convolution(self.framed(words).transpose(1, 2)).transpose(1, 2)
        furthest = length - 1 + self.window // 2
        distances = torch.arange(-furthest, furthest + 1, device=mask.device).clamp(-self.reach, self.reach)
        of_places = self.placed(self.places(distances + self.reach).T).T  # from 1 - T to T - 1
        pooled = []
        for tagged in range(length):  # a maximum keeps its place alone, not the sums of all pairs of words
            sums = of_words + of_places[length - 1 - tagged : 2 * length - 1 - tagged]
            pooled.append(sums.masked_fill(~mask, -torch.inf).max(1).values)
        return self.output(F.hardtanh(self.hidden(torch.stack(pooled, 1))))
