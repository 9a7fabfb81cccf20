"""Vectors of words that a recurrence in each direction makes from their characters."""

from __future__ import annotations

from torch import Tensor

from architectures.tagging.lstm_crf_char import CharacterLSTM
from harness.kinds import InputSource
from harness.registry import register_input
from harness.views.words_and_characters import WordCharacterBatch, WordsAndCharacters


@register_input(
    "char_lstm_words",
    name="Character BiLSTM word vectors",
    paper="Ling et al. 2015; Lample et al. 2016",
    source="X4.5.4",
    year=2015,
    tiny={"character_size": 8, "hidden": 6},
    deviations=(
        "Cell and sizes are those of Lample et al.'s tagger; Ling et al. project the end states of a plain LSTM.",
        "Of a word longer than 30 characters the first 30 are read.",
    ),
)
class CharacterLSTMWords(InputSource):
    """[f_n; b_1]: the state of an LSTM that reads a word's n characters from left to right after
    the last one, and that of an LSTM from right to left after the first one.

    Lample et al. 2016, section 4.1, with the cell of
    :class:`architectures.tagging.lstm_crf_char.CoupledLSTM`.
    """

    def __init__(self, view: WordsAndCharacters, character_size: int = 25, hidden: int = 25):
        super().__init__()
        self.spelling = CharacterLSTM(view.alphabet_size, character_size, hidden)
        self.size = 2 * hidden

    def forward(self, words: WordCharacterBatch) -> Tensor:
        spelt = self.spelling(words.characters.flatten(0, 1), words.character_mask.flatten(0, 1))
        return spelt.unflatten(0, words.mask.shape)
