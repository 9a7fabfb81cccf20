"""What turns an architecture's output into an answer: one head per task type and shape of output,
and the table that pairs them.

A head calls the encoder on the inputs (a dict from field to batch), gives a loss for the target,
and decodes predictions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from harness.kinds import Encoder, PretrainedEncoder, SequenceEncoder, SpanScores, Tagger, TreeEncoder
from harness.layers.attention import AdditiveAttention
from harness.layers.beam import beam_search
from harness.layers.crf import LinearChainCRF, transition_constraints
from harness.layers.ctc import best_path, prefix_beam_search
from harness.problems.targets import (
    IGNORED,
    AnswerTarget,
    ClassTarget,
    RankTarget,
    SpanTarget,
    SymbolTarget,
    TagTarget,
    Target,
)

if TYPE_CHECKING:
    from harness.data.corpus import Batch, Split

Inputs = dict[str, Any]
LONGEST_ANSWER = 30
"""Units of the longest answer span that is looked for."""


def text_vector(encoder: Encoder, text: Any) -> Tensor:
    """The vector (B, size) of one text, whatever the encoder's kind."""
    if isinstance(encoder, SequenceEncoder):
        return encoder.pooled(encoder(text.vectors, text.mask), text.mask)
    if isinstance(encoder, PretrainedEncoder):
        return encoder.pooled(encoder(text))
    return encoder(text)


class Head(nn.Module):
    """Base of the heads: ``target`` says what is predicted; built on an encoder that reads vectors
    of ``width``."""

    target: Target

    def forward(self, encoder: Any, inputs: Inputs) -> Any:
        """The outputs that :meth:`loss` and :meth:`decode` read."""
        raise NotImplementedError

    def loss(self, encoder: Any, outputs: Any, target: Any) -> Tensor:
        """Mean training loss of a batch."""
        raise NotImplementedError

    def decode(self, encoder: Any, outputs: Any, batch: Batch, split: Split) -> list[Any]:
        """Predictions of the batch's rows, in the task type's format."""
        raise NotImplementedError

    def evidence(self, encoder: Any, outputs: Any) -> list[Tensor]:
        """The numbers behind each row's prediction, without padding: what must not depend on the
        other rows of the batch."""
        return list(outputs)

    def constrain(self, encoder: Any) -> None:
        """Bring parameters back into their allowed set after a step."""


class Classify(Head):
    """Vector of a text, one linear layer, softmax; an encoder that scores the classes itself gets
    no layer."""

    target: ClassTarget
    labels = property(lambda self: self.target.labels)

    def __init__(self, encoder: Any, target: ClassTarget):
        super().__init__()
        self.target = target
        self.output = self.layer(encoder, len(target.labels)) if hasattr(encoder, "size") else None

    def layer(self, encoder: Any, classes: int) -> nn.Module:
        """The layer from the encoder's vector to the scores."""
        return nn.Linear(encoder.size, classes, bias=encoder.head_bias)

    def forward(self, encoder: Any, inputs: Inputs) -> Tensor:
        vector = text_vector(encoder, inputs["text"])
        return vector if self.output is None else self.output(vector)

    def loss(self, encoder: Any, outputs: Tensor, target: Tensor) -> Tensor:
        if self.output is None:
            return encoder.objective(outputs, target)
        return F.cross_entropy(outputs, target)

    def decode(self, encoder: Any, outputs: Tensor, batch: Batch, split: Split) -> list[str]:
        return [self.target.labels[i] for i in outputs.argmax(-1).tolist()]

    def constrain(self, encoder: Any) -> None:
        if self.output is not None and encoder.head_max_norm is not None:
            with torch.no_grad():
                weight = self.output.weight
                rows = (
                    weight.to_local() if hasattr(weight, "to_local") else weight
                )  # those of this process, where FSDP shares them out
                rows.copy_(torch.renorm(rows, p=2, dim=0, maxnorm=encoder.head_max_norm))


class ClassifyTree(Classify):
    """As :class:`Classify`, with the loss at every node whose label the task knows (Socher et al.
    2013)."""

    def forward(self, encoder: TreeEncoder, inputs: Inputs) -> tuple[Tensor, Tensor, Tensor]:
        trees = inputs["text"]
        return self.output(encoder.nodes(trees)), trees.roots, trees.labels

    def loss(self, encoder: Any, outputs: tuple[Tensor, Tensor, Tensor], target: Tensor) -> Tensor:
        scores, roots, labels = outputs
        labels = node_classes(labels, len(self.target.labels), self.target.labels)
        labels = labels.index_copy(0, roots, target)
        return F.cross_entropy(scores, labels, ignore_index=IGNORED)

    def decode(self, encoder: Any, outputs: tuple[Tensor, Tensor, Tensor], batch: Batch, split: Split) -> list[str]:
        return super().decode(encoder, outputs[0][outputs[1]], batch, split)

    def evidence(self, encoder: Any, outputs: tuple[Tensor, Tensor, Tensor]) -> list[Tensor]:
        return list(outputs[0][outputs[1]])


SENTIMENTS = ("very negative", "negative", "neutral", "positive", "very positive")
"""Names of the node labels 0 to 4 of sentiment trees."""


def node_classes(labels: Tensor, classes: int, names: list[str]) -> Tensor:
    """Node labels 0-4 as the task's classes: by name for five classes; for two, each side of
    neutral (neutral nodes have no class)."""
    if classes == len(SENTIMENTS):
        order = [names.index(name) for name in SENTIMENTS]
    else:
        negative, positive = names.index("negative"), names.index("positive")
        order = [negative, negative, IGNORED, positive, positive]
    table = torch.tensor([*order, IGNORED], device=labels.device)
    return table[labels]


class Answer(Classify):
    """An architecture that reads facts and question."""

    def forward(self, encoder: Any, inputs: Inputs) -> Tensor:
        vector = encoder(inputs["facts"], inputs["question"])
        return vector if self.output is None else self.output(vector)


class Match(Classify):
    """Twin encoders joined as [u, v, |u-v|, u*v], one hidden layer, softmax (Conneau et al.
    2017)."""

    def layer(self, encoder: Any, classes: int) -> nn.Module:
        return nn.Sequential(nn.Linear(4 * encoder.size, encoder.size), nn.ReLU(), nn.Linear(encoder.size, classes))

    def forward(self, encoder: Any, inputs: Inputs) -> Tensor:
        return self.output(twin(encoder, inputs))

    def constrain(self, encoder: Any) -> None:
        """The norm limit is stated for a softmax on the encoder's own vector; here layers stand
        between."""


def twin(encoder: Any, inputs: Inputs) -> Tensor:
    """Both texts' vectors with their difference and product: (B, 4 * size)."""
    u, v = text_vector(encoder, inputs["first"]), text_vector(encoder, inputs["second"])
    return torch.cat([u, v, (u - v).abs(), u * v], dim=1)


class MatchPair(Classify):
    """An architecture that reads both texts itself: linear layer on its vector."""

    def forward(self, encoder: Any, inputs: Inputs) -> Tensor:
        return self.output(encoder(inputs["first"], inputs["second"]))


class Rank(Head):
    """A score per pair from twin encoders; the loss is the encoder's own (pointwise unless it says
    otherwise)."""

    def __init__(self, encoder: Any, target: RankTarget):
        super().__init__()
        self.target = target
        self.output = self.layer(encoder)

    def layer(self, encoder: Any) -> nn.Module | None:
        """The layer from the joined vectors to one score."""
        return nn.Sequential(nn.Linear(4 * encoder.size, encoder.size), nn.ReLU(), nn.Linear(encoder.size, 1))

    def forward(self, encoder: Any, inputs: Inputs) -> Tensor:
        return self.output(twin(encoder, inputs)).squeeze(1)

    def loss(self, encoder: Any, outputs: Tensor, target: tuple[Tensor, Tensor]) -> Tensor:
        labels, groups = target
        if hasattr(encoder, "rank_loss"):
            return encoder.rank_loss(outputs, labels, groups)
        return F.binary_cross_entropy_with_logits(outputs, labels.to(outputs.dtype))

    def decode(self, encoder: Any, outputs: Tensor, batch: Batch, split: Split) -> list[float]:
        return outputs.float().tolist()


class RankPair(Rank):
    """An architecture that reads both texts itself: its score, or a linear layer on its vector."""

    def layer(self, encoder: Any) -> nn.Module | None:
        return None if encoder.scores else nn.Linear(encoder.size, 1)

    def forward(self, encoder: Any, inputs: Inputs) -> Tensor:
        joined = encoder(inputs["first"], inputs["second"])
        return joined if self.output is None else self.output(joined).squeeze(1)


class RankJoined(Rank):
    """Both texts in one sequence (pre-trained encoders)."""

    def layer(self, encoder: Any) -> nn.Module:
        return nn.Linear(encoder.size, 1)

    def forward(self, encoder: Any, inputs: Inputs) -> Tensor:
        return self.output(text_vector(encoder, inputs["text"])).squeeze(1)


class Tag(Head):
    """A label per word by softmax, or by a CRF over the sentence where a tagger asks for one."""

    def __init__(self, encoder: Any, target: TagTarget):
        super().__init__()
        self.target = target
        self.output = None if isinstance(encoder, Tagger) else nn.Linear(encoder.size, len(target.labels))
        self.crf = self.chain(encoder) if getattr(encoder, "decoder", "softmax") == "crf" else None

    def chain(self, tagger: Tagger) -> LinearChainCRF:
        """The CRF over the labels; decoding keeps to the tagger's chunk scheme where it names
        one."""
        labels = self.target.labels
        return LinearChainCRF(len(labels), transition_constraints(labels, tagger.scheme) if tagger.scheme else None)

    def emissions(self, encoder: Any, words: Any) -> tuple[Tensor, Tensor]:
        """Scores (B, T, labels) and the mask of the words (B, T)."""
        if self.output is None:
            return encoder(words), words.mask
        return self.output(encoder(words.vectors, words.mask)), words.mask

    def forward(self, encoder: Any, inputs: Inputs) -> tuple[Tensor, Tensor]:
        return self.emissions(encoder, inputs["text"])

    def loss(self, encoder: Any, outputs: tuple[Tensor, Tensor], target: Tensor) -> Tensor:
        emissions, mask = outputs
        if self.crf is None:
            return F.cross_entropy(
                emissions.flatten(0, 1), target[:, : emissions.shape[1]].flatten(), ignore_index=IGNORED
            )
        return self.crf.loss(emissions, target.clamp(min=0), mask)

    def decode(self, encoder: Any, outputs: tuple[Tensor, Tensor], batch: Batch, split: Split) -> list[list[str]]:
        emissions, mask = outputs
        numbers = emissions.argmax(-1) if self.crf is None else self.crf.viterbi(emissions, mask)
        names = np.array(self.target.labels, dtype=object)
        return [
            list(names[row[:length]]) for row, length in zip(numbers.cpu().numpy(), mask.sum(1).tolist(), strict=True)
        ]

    def evidence(self, encoder: Any, outputs: tuple[Tensor, Tensor]) -> list[Tensor]:
        return [scores[real] for scores, real in zip(*outputs, strict=True)]


class TagJoined(Tag):
    """Sub-word states: the first piece stands for its word."""

    def emissions(self, encoder: Any, words: Any) -> tuple[Tensor, Tensor]:
        states = encoder(words)
        firsts = states.gather(1, words.firsts[..., None].expand(-1, -1, states.shape[-1]))
        return self.output(firsts), words.word_mask


class Extract(Head):
    """Additive attention of the passage over the question, [h, h-hat], then a linear score for
    start and end (source text 4, 16.2.2)."""

    def __init__(self, encoder: Any, target: SpanTarget):
        super().__init__()
        self.target = target
        self.no_answer = nn.Parameter(torch.zeros(1)) if target.unanswerable else None
        self.build(encoder)

    def build(self, encoder: Any) -> None:
        """Layers on top of the encoder."""
        self.attention = AdditiveAttention(encoder.size, encoder.size, hidden=100)
        self.output = nn.Linear(2 * encoder.size, 2)

    def spans(self, encoder: Any, inputs: Inputs) -> SpanScores:
        """Start and end scores of every passage position."""
        passage, question = inputs["passage"], inputs["question"]
        context, asked = encoder(passage.vectors, passage.mask), encoder(question.vectors, question.mask)
        joined = torch.cat([context, self.attention(context, asked, question.mask)], dim=-1)
        start, end = self.output(joined).masked_fill(~passage.mask[..., None], -torch.inf).unbind(-1)
        return SpanScores(start, end)

    def forward(self, encoder: Any, inputs: Inputs) -> SpanScores:
        scores = self.spans(encoder, inputs)
        if self.no_answer is None:
            return SpanScores(scores.start, scores.end)
        if scores.no_answer is None:
            return scores._replace(no_answer=self.no_answer.repeat(len(scores.start)))
        return scores

    def loss(self, encoder: Any, outputs: SpanScores, target: Tensor) -> Tensor:
        """Cross-entropy of start and of end; a row without an answer has the no-answer score,
        joined as position 0, as its gold.

        An answer beyond the cut of the passage has no position: it adds nothing.
        """
        scores = torch.stack([outputs.start, outputs.end], dim=1)
        if outputs.no_answer is not None:
            scores = torch.cat([outputs.no_answer[:, None, None].expand(-1, 2, 1), scores], dim=2)
            target = torch.where(target >= -1, target + 1, target)
        within = (target >= 0) & (target < scores.shape[2])
        reached = scores.gather(2, target.where(within, 0)[..., None]).squeeze(2) > -torch.inf
        counted = (within & reached).all(1, keepdim=True)
        gold = target.where(counted, IGNORED)
        return F.cross_entropy(scores.flatten(0, 1), gold.flatten(), ignore_index=IGNORED, reduction="sum") / len(
            target
        )

    def decode(self, encoder: Any, outputs: SpanScores, batch: Batch, split: Split) -> list[str]:
        first, last, score = best_spans(outputs.start, outputs.end)
        empty = torch.full_like(score, -torch.inf) if outputs.no_answer is None else 2 * outputs.no_answer
        answers = []
        starts, ends = split.targets["starts"], split.targets["ends"]
        for row, b, e, none in zip(batch.rows, first.tolist(), last.tolist(), (empty > score).tolist(), strict=True):
            answers.append("" if none else split.rows[int(row)]["passage"][starts[row][b] : ends[row][e]])
        return answers

    def evidence(self, encoder: Any, outputs: SpanScores) -> list[Tensor]:
        return [
            torch.cat([start[start.isfinite()], end[end.isfinite()]])
            for start, end in zip(outputs.start, outputs.end, strict=True)
        ]


def best_spans(start: Tensor, end: Tensor, longest: int = LONGEST_ANSWER) -> tuple[Tensor, Tensor, Tensor]:
    """First and last position and score of the best span with first <= last < first + longest, per
    row of (B, T) scores."""
    longest = min(longest, start.shape[1])
    padded = F.pad(end, (0, longest - 1), value=-torch.inf)
    best_end = F.max_pool1d(padded[:, None], longest, stride=1).squeeze(1)
    score, first = (start + best_end).max(1)
    # Where the end is matters for one start alone: looking for it at each of them takes five times
    # as long in all.
    reachable = first[:, None] + torch.arange(longest, device=first.device)
    return first, first + padded.gather(1, reachable).argmax(1), score


class ExtractSpan(Extract):
    """An architecture that scores start and end itself."""

    def build(self, encoder: Any) -> None:
        pass

    def spans(self, encoder: Any, inputs: Inputs) -> SpanScores:
        return encoder(inputs["passage"], inputs["question"])


class ExtractJoined(Extract):
    """Question and passage in one sequence: a start and an end vector over the passage's pieces
    (Devlin et al. 2018)."""

    def build(self, encoder: Any) -> None:
        self.output = nn.Linear(encoder.size, 2)

    def spans(self, encoder: Any, inputs: Inputs) -> SpanScores:
        pieces = inputs["text"]
        states = encoder(pieces)
        start, end = self.output(states).unbind(-1)
        positions, mask = pieces.firsts, pieces.word_mask
        start, end = (scores.gather(1, positions).masked_fill(~mask, -torch.inf) for scores in (start, end))
        empty = self.output(states[:, 0]).mean(-1)
        return SpanScores(start, end, empty)


class Transcribe(Head):
    """A linear layer on every frame and CTC (Graves et al. 2006); symbols are characters, 0 the
    blank."""

    def __init__(self, encoder: Any, target: SymbolTarget):
        super().__init__()
        self.target = target
        self.build(encoder)

    def build(self, encoder: Any) -> None:
        """Layers on top of the encoder."""
        self.output = nn.Linear(encoder.size, len(self.target))

    def scores(self, encoder: Any, frames: Any) -> tuple[Tensor, Tensor]:
        """Label scores (B, T, labels) and their lengths (B,)."""
        return self.output(encoder(frames.vectors, frames.mask)), frames.lengths

    def forward(self, encoder: Any, inputs: Inputs) -> tuple[Tensor, Tensor]:
        scores, lengths = self.scores(encoder, inputs["text"])
        return scores.log_softmax(-1), lengths

    def loss(self, encoder: Any, outputs: tuple[Tensor, Tensor], target: tuple[Tensor, Tensor]) -> Tensor:
        log_probabilities, lengths = outputs
        symbols, counts = target
        return F.ctc_loss(log_probabilities.transpose(0, 1), symbols, lengths, counts, blank=0, zero_infinity=True)

    def decode(self, encoder: Any, outputs: tuple[Tensor, Tensor], batch: Batch, split: Split) -> list[str]:
        beam = getattr(encoder, "beam", 1)
        found = best_path(*outputs) if beam == 1 else prefix_beam_search(*outputs, beam=beam)
        return [self.target.join(symbols) for symbols in found]

    def evidence(self, encoder: Any, outputs: tuple[Tensor, Tensor]) -> list[Tensor]:
        return [scores[:length] for scores, length in zip(*outputs, strict=True)]


class TranscribeFrames(Transcribe):
    """An architecture that scores the labels of every frame itself."""

    def build(self, encoder: Any) -> None:
        pass

    def scores(self, encoder: Any, frames: Any) -> tuple[Tensor, Tensor]:
        return encoder(frames)


class Generate(Head):
    """An answer symbol by symbol: teacher forcing in training, beam search after it."""

    START, END, LONGEST = 1, 2, 60

    def __init__(self, encoder: Any, target: SymbolTarget):
        super().__init__()
        self.target = target

    def forward(self, encoder: Any, inputs: Inputs) -> Any:
        return inputs["text"]

    def loss(self, encoder: Any, outputs: Any, target: tuple[Tensor, Tensor]) -> Tensor:
        symbols, lengths = target
        start = torch.full_like(symbols[:, :1], self.START)
        gold = F.pad(symbols, (0, 1)).scatter(1, lengths[:, None], self.END)
        scores = encoder(outputs.vectors, outputs.mask, torch.cat([start, symbols], dim=1))
        gold = gold.masked_fill(torch.arange(gold.shape[1], device=gold.device) > lengths[:, None], IGNORED)
        return F.cross_entropy(scores.flatten(0, 1), gold.flatten(), ignore_index=IGNORED)

    def decode(self, encoder: Any, outputs: Any, batch: Batch, split: Split) -> list[str]:
        state = encoder.start(outputs.vectors, outputs.mask)
        found = beam_search(encoder.step, state, self.START, self.END, self.LONGEST, beam=encoder.beam)
        return [self.target.join(symbols) for symbols in found]

    def evidence(self, encoder: Any, outputs: Any) -> list[Tensor]:
        start = torch.full_like(outputs.lengths, self.START)
        return list(encoder.step(start, encoder.start(outputs.vectors, outputs.mask))[0])


def characters_for_ctc() -> SymbolTarget:
    """Characters of transcripts, 0 the blank."""
    return SymbolTarget(reserved=1, by_word=False)


def words_to_generate() -> SymbolTarget:
    """Words of answers."""
    return SymbolTarget(reserved=4, by_word=True)


def characters_to_generate() -> SymbolTarget:
    """Characters of transcripts."""
    return SymbolTarget(reserved=4, by_word=False)


ADAPTERS: dict[tuple[str, str], tuple[type[Head], Callable[[], Target]]] = {
    ("seq", "classify"): (Classify, ClassTarget),
    ("seq", "match"): (Match, ClassTarget),
    ("seq", "rank"): (Rank, RankTarget),
    ("seq", "tag"): (Tag, TagTarget),
    ("seq", "extract"): (Extract, SpanTarget),
    ("seq", "answer"): (Classify, AnswerTarget),
    ("seq", "transcribe"): (Transcribe, characters_for_ctc),
    ("text", "classify"): (Classify, ClassTarget),
    ("text", "match"): (Match, ClassTarget),
    ("text", "rank"): (Rank, RankTarget),
    ("text", "answer"): (Classify, AnswerTarget),
    ("tree", "classify"): (ClassifyTree, ClassTarget),
    ("pair", "match"): (MatchPair, ClassTarget),
    ("pair", "rank"): (RankPair, RankTarget),
    ("tag", "tag"): (Tag, TagTarget),
    ("span", "extract"): (ExtractSpan, SpanTarget),
    ("answer", "answer"): (Answer, AnswerTarget),
    ("ctc", "transcribe"): (TranscribeFrames, characters_for_ctc),
    ("generate", "extract"): (Generate, words_to_generate),
    ("generate", "transcribe"): (Generate, characters_to_generate),
    ("plm", "classify"): (Classify, ClassTarget),
    ("plm", "match"): (Classify, ClassTarget),
    ("plm", "rank"): (RankJoined, RankTarget),
    ("plm", "tag"): (TagJoined, TagTarget),
    ("plm", "extract"): (ExtractJoined, SpanTarget),
}
"""The adapter table: which head (and target) puts an architecture of a kind to a type of task."""
