"""Texts, or pairs of them read as one sequence, as word pieces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import torch
from tokenizers import Encoding, Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.trainers import WordPieceTrainer
from torch import Tensor

from harness.errors import MissingWeights
from harness.ragged import Columns, Ragged, mask_of
from harness.views.base import Text, View, plain

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LARGEST_ALPHABET = 1000
"""Rarer characters are unknown, so that a foreign script does not fill the vocabulary."""
_AT_ONCE = 1000
"""Texts tokenised together: an encoding is large, and few of them should live at a time."""


LONGEST_QUESTION = 64
"""Pieces of a question beside whose end windows of its passage are read (Devlin et al.'s release:
``max_query_length``)."""


class Windows(NamedTuple):
    """The places of N windows in the passages that they are cut out of, those of one passage one
    after another.

    ``rows`` (N,) number the passages in the batch; ``begins`` and ``lengths`` (N,) count pieces of
    the passage. ``several`` (N,) is true where a passage has more than one window. ``widest`` (N,
    W) is true at the pieces that no other window of the passage shows with more context.
    """

    rows: Tensor
    begins: Tensor
    lengths: Tensor
    several: Tensor
    widest: Tensor

    @classmethod
    def whole(cls, mask: Tensor) -> Windows:
        """One window for each passage, whose pieces are those of a mask (B, W)."""
        rows = torch.arange(len(mask), device=mask.device)
        return cls(rows, torch.zeros_like(rows), mask.sum(1), torch.zeros_like(rows, dtype=torch.bool), mask)

    def of(self, passages: int) -> Tensor:
        """True (passages, N) at the windows of each passage of the batch."""
        return self.rows == torch.arange(passages, device=self.rows.device)[:, None]


class SubwordBatch(NamedTuple):
    """Pieces of B sequences, T at most, ``[CLS] a [SEP]`` or ``[CLS] a [SEP] b [SEP]``.

    ``ids``, ``mask`` (true at all but padding) and ``segments`` (1 in b and at its ``[SEP]``, else
    0) are (B, T), ``lengths`` (B,). ``firsts`` (B, W) are the positions of what an answer is given
    for, with ``word_mask`` (B, W): of a tokenised text the first piece of each word, of a pair each
    piece of b (or the first piece of each of its words). Both are empty for one raw text. Where b
    is a passage that is read in windows, each is a sequence of its own, and ``windows`` has their
    places. ``marks`` (B, T) are numbers that a view gives to the pieces of one raw text, for an
    objective; empty without.
    """

    ids: Tensor
    mask: Tensor
    segments: Tensor
    lengths: Tensor
    firsts: Tensor = torch.empty(0)
    word_mask: Tensor = torch.empty(0)
    windows: Windows | None = None
    marks: Tensor = torch.empty(0)


@dataclass
class Subwords(View):
    """Word pieces of a vocabulary of ``size`` learnt on the training texts, or of a ``pretrained``
    tokenizer.

    ``pretrained`` is a folder or a name on the hub. A sequence has at most ``max_length`` pieces
    with ``[CLS]`` and ``[SEP]``. ``lower`` is for a vocabulary of our own. A passage that is too
    long is read in windows, each of which begins ``stride`` pieces behind the one before; with 0 it
    is cut.
    """

    size: int = 8000
    max_length: int = 256
    pretrained: str = ""
    lower: bool = True
    stride: int = 0
    joins: ClassVar[bool] = True
    may_be_zero: ClassVar[tuple[str, ...]] = ("stride",)
    learnt: ClassVar[dict[str, Any] | None] = None
    """The state of another view, by whose tokenizer this one reads, whatever the training texts."""

    @property
    def width(self) -> int:
        return self.tokenizer.get_vocab_size()

    @property
    def room(self) -> int:
        """Pieces of a text that fit into a sequence."""
        return self.max_length - 2

    @property
    def adopts(self) -> bool:
        return bool(self.pretrained)

    def fit(self, texts: Sequence[Text]) -> None:
        if self.learnt is not None:
            self.restore(self.learnt)
        elif self.pretrained:
            self._adopt(self.pretrained)
        else:
            self._set(self._learn(list(map(plain, texts))), SPECIAL)

    def _learn(self, texts: list[str]) -> Tokenizer:
        """A tokenizer with the pieces :data:`SPECIAL`, the same at every call."""
        return _trained(texts, self.size, self.lower)

    def _adopt(self, source: str) -> None:
        from transformers import AutoTokenizer  # slow to import, and an extra

        try:
            loaded = AutoTokenizer.from_pretrained(source, use_fast=True, trust_remote_code=False)
        except (OSError, ValueError) as error:
            raise MissingWeights(
                f"pretrained={source!r}: neither a folder with a tokenizer nor a name on the hub: {error}"
            ) from error
        special = self._special(loaded)
        known = [piece for piece in special if piece is not None]
        if len(known) < len(special):
            raise ValueError(
                f"pretrained={source!r}: its tokenizer lacks one of padding, unknown, [CLS] and [SEP]: {special}"
            )
        tokenizer = Tokenizer.from_str(loaded.backend_tokenizer.to_str())
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self._set(tokenizer, [*known, *filter(None, [loaded.mask_token])])

    @staticmethod
    def _special(loaded: Any) -> list[str | None]:
        """The first four of :data:`SPECIAL`, as a tokenizer of the library transformers has
        them."""
        return [loaded.pad_token, loaded.unk_token, loaded.cls_token, loaded.sep_token]

    def _set(self, tokenizer: Tokenizer, special: list[str]) -> None:
        """Read by a tokenizer whose special pieces stand in the order of :data:`SPECIAL`; the last
        one, by which a piece is masked, may be missing. ``continues`` (V,) is true at the pieces
        that continue a word, by the mark that word pieces have; without it each piece is a
        word."""
        self.tokenizer, self.special = tokenizer, special
        self.continues = np.zeros(tokenizer.get_vocab_size(), dtype=bool)
        self.continues[[id for piece, id in tokenizer.get_vocab().items() if piece.startswith("##")]] = True
        numbers: list[Any] = [tokenizer.token_to_id(token) for token in special]
        self.pad, self.unknown, self.start, self.separator, self.mask = [*numbers, None][: len(SPECIAL)]

    def _encodings(self, texts: Sequence[Text]) -> Iterator[Encoding]:
        for begin in range(0, len(texts), _AT_ONCE):
            chunk = list(texts[begin : begin + _AT_ONCE])
            yield from self.tokenizer.encode_batch(
                chunk, is_pretokenized=isinstance(chunk[0], list), add_special_tokens=False
            )

    def encode(self, texts: Sequence[Text]) -> Columns:
        if not len(texts) or not isinstance(texts[0], list):
            return {"ids": Ragged.of(encoding.ids for encoding in self._encodings(texts))}
        ids, firsts = [], []
        for words, encoding in zip(texts, self._encodings(texts), strict=True):
            pieces, begins = self._by_word(encoding, len(words))
            ids.append(pieces)
            firsts.append(begins)
        return {"ids": Ragged.of(ids), "firsts": Ragged.of(firsts)}

    def _by_word(self, encoding: Encoding, words: int) -> tuple[list[int], list[int]]:
        """Pieces of a tokenised text and where each word begins; a word that normalisation takes
        away (a soft hyphen) is unknown."""
        pieces: list[int] = []
        begins: list[int] = []
        word_ids: list[Any] = encoding.word_ids  # none is None where no special pieces are added
        for piece, word in zip(encoding.ids, word_ids, strict=True):
            while len(begins) < word:
                begins.append(len(pieces))
                pieces.append(self.unknown)
            if len(begins) == word:
                begins.append(len(pieces))
            pieces.append(piece)
        missing = range(len(pieces), len(pieces) + words - len(begins))
        return pieces + [self.unknown] * len(missing), begins + list(missing)

    def lengths(self, columns: Columns) -> np.ndarray:
        return np.minimum(columns["ids"].lengths, self.max_length)

    def cut(self, columns: Columns, longest: int) -> Columns:
        """The pieces of each text in stretches of at most so many."""
        ids: Any = columns["ids"]
        return {"ids": Ragged.of(text[i : i + longest] for text in ids for i in range(0, len(text), longest))}

    def packed(self, columns: Columns) -> Columns:
        """The pieces of all texts, a separator behind each, in stretches that fill a sequence; the
        last one may be shorter."""
        ids: Any = columns["ids"]
        values = np.insert(ids.values, ids.offsets[1:], self.separator)
        return {"ids": Ragged(values, np.append(np.arange(0, len(values), self.room), len(values)))}

    def collate(self, columns: Columns, rows: np.ndarray) -> SubwordBatch:
        """``[CLS]`` a ``[SEP]``, a cut where it is too long."""
        ids = columns["ids"]
        lengths = np.minimum(ids.lengths[rows], self.max_length - 2)
        batch = self._joined([(ids.values, ids.offsets[rows], lengths)])
        if "firsts" not in columns:
            return batch
        firsts, count = columns["firsts"].pad(rows)
        return _answered(batch, firsts, count, 1, lengths)

    def collate_pair(
        self, first: Columns, second: Columns, rows: np.ndarray, cut: Literal["longer", "second"] = "longer"
    ) -> SubwordBatch:
        """``[CLS]`` a ``[SEP]`` b ``[SEP]``; too long a pair loses the end of the ``longer`` text,
        or of the ``second`` (a passage), which is read in windows where there is a stride."""
        if cut == "second" and self.stride:
            return self._in_windows(first["ids"], second["ids"], rows)
        room = self.max_length - 3
        a, b = first["ids"].lengths[rows], second["ids"].lengths[rows]
        a = np.minimum(a, room if cut == "second" else np.maximum(room - b, -(-room // 2)))
        b = np.minimum(b, room - a)
        batch = self._joined([(c["ids"].values, c["ids"].offsets[rows], n) for c, n in ((first, a), (second, b))])
        firsts, count = second["firsts"].pad(rows) if "firsts" in second else (_each_piece(b), b)
        return _answered(batch, firsts, count, a[:, None] + 2, b)

    def _in_windows(self, questions: Ragged, passages: Ragged, rows: np.ndarray) -> SubwordBatch:
        """The end of a question is cut; a passage has as many windows as its pieces need."""
        room = self.max_length - 3
        a, b = np.minimum(questions.lengths[rows], min(LONGEST_QUESTION, room - 1)), passages.lengths[rows]
        size = room - a
        step = np.minimum(size, self.stride)
        count = 1 + -(-np.maximum(b - size, 0) // step)
        row = np.repeat(np.arange(len(rows)), count)
        begins = (np.arange(len(row)) - np.repeat(count.cumsum() - count, count)) * step[row]
        a, b = a[row], np.minimum(b[row] - begins, size[row])
        batch = self._joined(
            [
                (questions.values, questions.offsets[rows][row], a),
                (passages.values, passages.offsets[rows][row] + begins, b),
            ]
        )
        batch = _answered(batch, _each_piece(b), b, a[:, None] + 2, b)
        widest = batch.word_mask.clone()
        for window in np.flatnonzero(count > 1):
            widest[row == window] &= torch.from_numpy(_widest(begins[row == window], b[row == window], widest.shape[1]))
        places = (torch.from_numpy(numbers) for numbers in (row, begins, b, count[row] > 1))
        return batch._replace(windows=Windows._make((*places, widest)))

    def _joined(self, parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> SubwordBatch:
        """Sequences of parts; each has its texts' pieces in one array, and where in it the piece of
        each sequence begins and how many there are (B,)."""
        lengths = 1 + np.sum([part_lengths + 1 for _, _, part_lengths in parts], axis=0)
        ids = np.full((len(lengths), lengths.max(initial=1)), self.pad, dtype=np.int64)
        segments = np.zeros_like(ids)
        ids[:, 0] = self.start
        begin = np.ones(len(lengths), dtype=np.int64)
        everywhere = np.arange(ids.shape[1])
        for number, (values, starts, part_lengths) in enumerate(parts):
            end = begin + part_lengths
            inside = (everywhere >= begin[:, None]) & (everywhere < end[:, None])
            ids[inside] = values[(starts[:, None] + everywhere - begin[:, None])[inside]]
            ids[np.arange(len(lengths)), end] = self.separator
            segments[inside | (everywhere == end[:, None])] = number
            begin = end + 1
        mask = mask_of(lengths, ids.shape[1])
        return SubwordBatch(torch.from_numpy(ids), mask, torch.from_numpy(segments), torch.from_numpy(lengths))

    def spans(self, texts: Sequence[str]) -> tuple[Ragged, Ragged]:
        """Character offsets at which each piece begins and ends, for copying an answer out of a raw
        text."""
        offsets = [encoding.offsets for encoding in self._encodings(texts)]
        return Ragged.of([start for start, _ in spans] for spans in offsets), Ragged.of(
            [end for _, end in spans] for spans in offsets
        )

    def state(self) -> dict[str, Any]:
        return {"tokenizer": self.tokenizer.to_str(), "special": self.special}

    def restore(self, state: dict[str, Any]) -> None:
        self._set(Tokenizer.from_str(state["tokenizer"]), state["special"])


def _each_piece(lengths: np.ndarray) -> np.ndarray:
    """Numbers of the pieces of texts, as many in each row as the longest text has."""
    return np.tile(np.arange(max(lengths.max(initial=0), 1)), (len(lengths), 1))


def _widest(begins: np.ndarray, lengths: np.ndarray, width: int) -> np.ndarray:
    """Pieces (windows, ``width``) of the windows of one passage that no other of them shows with
    more context.

    The context of a piece is the smaller of the numbers of pieces on its two sides; of equal
    windows the first has it (``_check_is_max_context`` in Devlin et al.'s release, which prefers
    longer windows: the one that is shorter is the last).
    """
    ends = begins + lengths
    piece = np.arange(ends.max())
    best = np.minimum(piece - begins[:, None], ends[:, None] - 1 - piece).argmax(0)
    shown = np.minimum(begins[:, None] + np.arange(width), len(piece) - 1)
    return best[shown] == np.arange(len(begins))[:, None]


def _answered(
    batch: SubwordBatch, firsts: np.ndarray, count: np.ndarray, begin: int | np.ndarray, lengths: np.ndarray
) -> SubwordBatch:
    """The batch with ``count`` (B,) positions ``firsts`` (B, W) of a text that begins at ``begin``,
    less those cut off at ``lengths``."""
    kept = (np.arange(firsts.shape[1]) < count[:, None]) & (firsts < lengths[:, None])
    kept = kept[:, : max(int(kept.sum(axis=1).max(initial=0)), 1)]
    positions = np.where(kept, firsts[:, : kept.shape[1]] + begin, 0)
    return batch._replace(firsts=torch.from_numpy(positions).long(), word_mask=torch.from_numpy(kept))


def _trained(texts: list[str], size: int, lower: bool) -> Tokenizer:
    """A word-piece tokenizer, the same at every call.

    The trainer numbers the characters inside words in the order of a randomly seeded hash table,
    and breaks ties by number. Naming those pieces beforehand fixes the order; the vocabulary then
    moves into a tokenizer that knows them as ordinary pieces.
    """
    learner = _tokenizer(WordPiece(unk_token="[UNK]"), lower)
    counts = Counter(c for text in texts for c in learner.normalizer.normalize_str(text) if not c.isspace())
    alphabet = sorted(sorted(counts, key=lambda c: (-counts[c], c))[:LARGEST_ALPHABET])
    trainer = WordPieceTrainer(
        vocab_size=size,
        special_tokens=[*SPECIAL, *(f"##{c}" for c in alphabet)],
        initial_alphabet=alphabet,
        limit_alphabet=len(alphabet),
        show_progress=False,
    )
    learner.train_from_iterator(texts, trainer)
    return _tokenizer(WordPiece(vocab=learner.get_vocab(), unk_token="[UNK]"), lower)


def _tokenizer(model: WordPiece, lower: bool) -> Tokenizer:
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = BertNormalizer(lowercase=lower)
    tokenizer.pre_tokenizer = BertPreTokenizer()
    return tokenizer
