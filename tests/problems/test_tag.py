"""Tagging: losses by softmax and by CRF against sums over all taggings, floors by hand, and F1 of
each type."""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from harness.data.corpus import Split
from harness.errors import ContractError
from harness.kinds import PretrainedEncoder, SequenceEncoder, Tagger
from harness.metrics import score
from harness.problems import problem
from harness.problems.base import IGNORED, NoTarget
from harness.problems.tag import Tag, TagJoined, TagTarget
from harness.training.model import build, predict, predict_with_loss
from harness.views.subwords import SubwordBatch, Subwords
from harness.views.words import Words
from tests.support.batches import sentences

MASK = torch.tensor([[True] * 3, [True, False, False]])
GOLD = torch.tensor([[0, IGNORED, 1, IGNORED], [1, IGNORED, IGNORED, IGNORED]])
"""Training never showed the second label; the first sentence is longer than what is read of it."""


def tagger(decoder: str) -> tuple[SimpleNamespace, Tag]:
    encoder = SimpleNamespace(size=2, decoder=decoder, scheme=None)
    target = TagTarget()
    target.labels = ["A", "B"]
    head = Tag(encoder, target)
    for parameter in head.parameters():
        nn.init.normal_(parameter, generator=torch.Generator().manual_seed(0))
    return encoder, head


@pytest.mark.parametrize("training", [True, False])
def test_by_softmax_a_sentence_costs_what_its_known_labels_cost(training):
    """The mean is one over words: long sentences count more."""
    encoder, head = tagger("softmax")
    head.train(training)
    emissions = torch.randn(2, 3, 2)
    logs = emissions.log_softmax(-1)
    words = -torch.stack([logs[0, 0, 0], logs[0, 2, 1], logs[1, 0, 1]])
    rows = head.row_losses(encoder, (emissions, MASK), GOLD)
    torch.testing.assert_close(rows, torch.stack([words[:2].sum(), words[2]]))
    torch.testing.assert_close(head.loss(encoder, (emissions, MASK), GOLD), words.mean())


def test_by_a_crf_a_sentence_costs_its_share_of_all_taggings():
    """A label that training never showed is read as the first one: a chain has no gaps."""
    encoder, head = tagger("crf")
    emissions, crf = torch.randn(2, 3, 2), head.crf

    def score(row: int, tags: tuple[int, ...]) -> torch.Tensor:
        steps = [crf.transitions[before, after] for before, after in itertools.pairwise(tags)]
        own = [emissions[row, place, tag] for place, tag in enumerate(tags)]
        return sum([*steps, *own, crf.start[tags[0]], crf.end[tags[-1]]])

    expected = []
    for row, gold in enumerate([(0, 0, 1), (1,)]):
        scores = [score(row, tags) for tags in itertools.product(range(2), repeat=len(gold))]
        expected.append(torch.stack(scores).logsumexp(0) - score(row, gold))
    rows = head.row_losses(encoder, (emissions, MASK), GOLD)
    torch.testing.assert_close(rows, torch.stack(expected))
    torch.testing.assert_close(head.loss(encoder, (emissions, MASK), GOLD[:, :3]), rows.mean())


class AnyTagger(Tagger):
    """A tagger that is only asked for its decoder."""


@pytest.mark.parametrize(
    ("decoder", "scheme", "told"),
    [
        ("CRF", "", "AnyTagger.decoder is 'CRF', expected softmax or crf or pair_crf"),
        ("pair_crf", "BIO", "AnyTagger.scheme is 'BIO': a pair_crf has no constraints"),
    ],
)
def test_a_decoder_that_there_is_not_is_refused_by_name(decoder, scheme, told):
    """A plugin with a slip of the pen would be trained by softmax, or decoded without its scheme,
    under the name of a CRF."""
    tagger, target = AnyTagger(), TagTarget()
    tagger.decoder, tagger.scheme, target.labels = decoder, scheme, ["O", "B-A"]
    with pytest.raises(ContractError, match=told):
        Tag(tagger, target)


def test_a_part_that_is_called_decoder_is_no_wish_for_a_crf():
    """An encoder-decoder of plain text tags words, too."""
    _, head = tagger(torch.nn.Linear(1, 1))
    assert head.crf is None


@pytest.mark.parametrize("decoder", ["softmax", "crf"])
def test_a_word_without_a_label_teaches_nothing(decoder):
    """An empty sentence is read as one unknown word: what it cost would teach what that is. A batch
    of such sentences alone, as buckets of like lengths make it, would end the training."""
    encoder, head = tagger(decoder)
    emissions = torch.randn(2, 3, 2, requires_grad=True)
    gold = torch.tensor([[0, 1, 0], [IGNORED] * 3])
    both = head.loss(encoder, (emissions, MASK), gold)
    torch.testing.assert_close(both, head.loss(encoder, (emissions[:1], MASK[:1]), gold[:1]))
    assert head.row_losses(encoder, (emissions, MASK), gold)[1] == 0
    nothing = head.loss(encoder, (emissions[1:], MASK[1:]), gold[1:])
    nothing.backward()
    assert nothing == 0 and not emissions.grad.any()


def test_words_whose_pieces_are_cut_off_teach_nothing():
    """Their place in the sequence is that of the mark before the text, which would learn their
    labels."""
    view, target = Subwords(size=60, max_length=6), TagTarget()
    rows = [{"text": ["ab"] * 9, "tags": ["O"] * 4 + ["X"] * 5}, {"text": ["a"] * 9, "tags": ["O"] * 9}]
    view.fit([row["text"] for row in rows])
    target.fit(rows)
    pieces = view.collate(view.encode([["a", "b", "a b" * 9, "b", "b"], ["a"] * 9]), np.arange(2))
    gold = target.collate(target.encode(rows, view), np.arange(2))
    head = TagJoined(SimpleNamespace(size=3), target)
    emissions = torch.randn(*pieces.firsts.shape, 2)
    read = pieces.word_mask.sum(1).tolist()
    assert read[0] < read[1] < len(rows[0]["text"])
    logs = emissions.log_softmax(-1)
    costs = torch.cat([-logs[row, range(words), gold[row, :words]] for row, words in enumerate(read)])
    torch.testing.assert_close(head.loss(None, (emissions, pieces.word_mask), gold), costs.mean())
    torch.testing.assert_close(head.row_losses(None, (emissions, pieces.word_mask), gold).sum(), costs.sum())


def test_a_word_beyond_the_limit_is_outside_of_spans_or_else_has_the_first_label():
    """Who hands in a sentence has a tag for each of its words; the score counts all of them."""
    encoder, head = tagger("softmax")
    emissions = torch.tensor([[[0.0, 1.0]] * 2])
    outputs = emissions, torch.ones(1, 2, dtype=torch.bool)
    assert head.decode(encoder, outputs, *sentences(4)) == [["B", "B", "A", "A"]]
    head.target.labels = ["B-X", "O"]
    assert head.decode(encoder, outputs, *sentences(4)) == [["O", "O", "O", "O"]]
    assert head.decode(encoder, outputs, *sentences(0)) == [[]]


class States(SequenceEncoder):
    """The vectors themselves."""

    def __init__(self, width: int):
        super().__init__()
        self.size = width

    def forward(self, vectors, mask):
        return vectors


class Chain(Tagger):
    """Emissions in a chain."""

    decoder = "crf"

    def __init__(self, width: int, labels: int):
        super().__init__()
        self.scores = nn.Linear(width, labels)

    def forward(self, words):
        return self.scores(words.vectors)


class PieceStates(PretrainedEncoder):
    """A vector for each piece."""

    size = 4

    def __init__(self, width: int):
        super().__init__()
        self.table = nn.Embedding(width, 4)

    def forward(self, pieces: SubwordBatch):
        return self.table(pieces.ids)


ODD = [
    {"id": "long", "text": ["Ann", "saw", "Bonn"] * 9, "tags": ["B-PER", "O", "B-LOC"] * 9},
    {"id": "empty", "text": [], "tags": []},
    {"id": "plain", "text": ["Ann", "ran"], "tags": ["B-PER", "O"]},
]


@pytest.mark.parametrize(
    ("encoder", "view"),
    [
        (States, Words(max_length=5, min_count=1)),
        (Chain, Words(max_length=5, min_count=1)),
        (PieceStates, Subwords(size=60, max_length=9)),
    ],
    ids=["states", "chain", "pieces"],
)
@pytest.mark.parametrize("batch_size", [1, 3])
def test_sentences_that_are_too_long_or_empty_are_learnt_from_and_scored(encoder, view, batch_size):
    """A score that refuses them ends a cell when it is trained."""
    view.fit([row["text"] for row in ODD])
    asked, target = problem("tag"), TagTarget()
    target.fit(ODD)
    columns = {"text": view.encode([row["text"] for row in ODD])}
    split = Split(ODD, view, target, columns, target.encode(ODD, view))
    model = build(encoder, asked, {}, view, target, 4)
    predicted, loss = predict_with_loss(model, split, batch_size)
    assert [len(tags) for tags in predicted] == [27, 0, 2] and math.isfinite(loss)
    assert 0 <= score(["span_f1"], predicted, ODD)["span_f1"] <= 1
    assert asked.slices("span_f1", predicted, ODD)
    for row in range(len(ODD)):
        model.loss(split.collate(np.array([row]))).backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters() if parameter.grad is not None)
    new = Split(ODD, view, NoTarget(), columns, target.places(asked.input_rows(ODD), view))
    assert predict(model, new, batch_size) == predicted, "a kept model, which is given no tags"


def test_the_state_of_each_word_is_dropped_before_the_layer():
    class Ones(nn.Module):
        size = 2

        def forward(self, vectors, mask):
            return torch.ones(2, 3, 2)

    target = TagTarget()
    target.labels = ["A", "B"]
    head = Tag(Ones(), target)
    head.dropout = 1.0
    words = SimpleNamespace(vectors=None, mask=MASK)
    assert torch.equal(head(Ones(), {"text": words})[0], head.output.bias.expand(2, 3, 2))


TRAIN = [
    {"text": ["Ann", "saw", "Bonn"], "tags": ["B-PER", "O", "B-LOC"]},
    {"text": ["Bonn", "saw", "Ann"], "tags": ["B-LOC", "O", "O"]},
    {"text": ["Ann"], "tags": ["B-PER"]},
    {"text": ["Ann", "ran"], "tags": ["B-PER", "O"]},
]


def test_the_floors_by_hand():
    """Ann is a person three times of four; of all words most are outside."""
    floors = problem("tag").floors(TRAIN, [{"text": ["Ann", "met", "Bonn"]}, {"text": ["saw"]}])
    assert floors["commonest tag of each word"] == [["B-PER", "O", "B-LOC"], ["O"]]
    assert floors["majority"] == [["O", "O", "O"], ["O"]]


def test_each_type_of_span_has_its_f1_in_the_order_of_the_alphabet():
    """Of two persons one is found, of three found ones one is right; the only place is missed."""
    rows = [{"tags": ["B-PER", "O", "B-PER", "O", "B-LOC"]}]
    predictions = [["B-PER", "O", "O", "B-PER", "B-PER"]]
    asked = problem("tag")
    assert asked.slices("span_f1", predictions, rows) == {
        "entity type": [("LOC", 1, 0.0), ("PER", 2, pytest.approx(2 * 1 / (3 + 2)))]
    }
    assert asked.slices("accuracy", predictions, rows) == {}


def test_types_are_shown_in_one_order_whatever_the_order_of_a_set():
    """A set of texts has another order in each process: pages would differ from build to build."""
    types = "hgfedcba"
    rows = [{"tags": [f"B-{type}" for type in types]}]
    found = problem("tag").slices("span_f1", [["O"] * len(types)], rows)
    assert [type for type, *_ in found["entity type"]] == sorted(types)
