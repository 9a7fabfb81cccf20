"""WordPiece: words divided by the longest pieces of a vocabulary, from the left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tokenizers import Tokenizer, decoders
from tokenizers.models import WordPiece
from tokenizers.pre_tokenizers import WhitespaceSplit
from tokenizers.trainers import WordPieceTrainer

from harness.problems.pieces import TokenTrainer, repeated
from harness.registry import register
from harness.views.pieces import LONGEST

INSIDE = "##"
"""Mark before a piece that does not begin a word."""


@register(
    "wordpiece",
    name="WordPiece",
    kind="fit",
    paper="Schuster and Nakajima 2012",
    source="M-A.1[229]",
    year=2012,
    tiny={"size": 300},
    deviations=(
        "Pieces are learnt by the library tokenizers (WordPieceTrainer), as byte-pair encoding learns them: the most"
        " frequent pair is merged. The paper merges the pair that most raises the likelihood of the training text.",
        "A word is divided by the longest piece first, as in BERT (Devlin et al. 2019), with BERT's mark inside words;"
        " the paper marks the blanks.",
        "8,000 pieces, in lower case; the paper has 200,000 for Japanese and Korean. A character that training shows"
        " less than five times is none of them.",
    ),
)
class WordPieces(TokenTrainer):
    """A vocabulary of ``size`` pieces, with each character at the beginning of words and inside of
    them. A word's first piece is the longest one that it begins with, and so on with the rest."""

    def __init__(self, seed: int = 0, size: int = 8000):
        super().__init__(seed)
        self.size = size

    def learn(self, words: Mapping[str, int], characters: Sequence[str]) -> Tokenizer:
        learner = Tokenizer(WordPiece())
        learner.pre_tokenizer = WhitespaceSplit()
        trainer = WordPieceTrainer(
            vocab_size=self.size,
            min_frequency=2,
            # Else they are numbered in another order each time, and equal pairs are merged in it.
            special_tokens=[*(INSIDE + character for character in characters), *characters],
            continuing_subword_prefix=INSIDE,
            show_progress=False,
        )
        learner.train_from_iterator(repeated(words), trainer)
        tokenizer = Tokenizer(WordPiece(learner.get_vocab(), max_input_chars_per_word=3 * LONGEST))
        tokenizer.decoder = decoders.WordPiece(INSIDE, cleanup=False)
        return tokenizer
