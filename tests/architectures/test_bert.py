"""BERT: the states are those of transformers' own model and of the equations written out, and the
heads read the right ones."""

from __future__ import annotations

import builtins
import functools
import json
import math
import re
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from architectures.blocks.objectives.masked_pieces import MaskedPieces
from architectures.blocks.objectives.next_sentence import NextSentence, divided, joined, paired
from architectures.pretrained.bert import BERT
from harness import registry
from harness.contract.trained import TrainedCase
from harness.data.corpus import Split
from harness.layers.noise import Noise
from harness.objectives import collected_losses
from harness.problems import problem
from harness.problems.base import Target
from harness.problems.classify import ClassTarget
from harness.problems.extract import SpanTarget
from harness.problems.multilabel import LabelSetTarget
from harness.problems.rank import RankTarget
from harness.problems.regress import ScoreTarget
from harness.problems.tag import TagTarget
from harness.running import grid
from harness.training import cost
from harness.training.model import Model, build
from harness.training.optimizers import exempt
from harness.views.subwords import SubwordBatch, Subwords
from tests.support.models import small
from tests.support.published import saved
from tests.support.same import assert_same

transformers = pytest.importorskip("transformers")

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "##s", "sat", "on", "mat", "who", "?"]
TEXTS = ["the cats sat", "cats"]
QUESTIONS, PASSAGES = ["who sat?", "who?"], ["the cats sat on the mat", "cats sat"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny BERT with random weights and its tokenizer, as the hub holds them."""
    torch.manual_seed(0)
    path = tmp_path_factory.mktemp("tiny_bert")
    config = transformers.BertConfig(
        vocab_size=len(PIECES),
        hidden_size=8,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=32,
        initializer_range=0.5,
    )
    return saved(path, transformers.BertModel(config), PIECES)


def loaded(folder: Path) -> tuple[BERT, Subwords]:
    """Our class and its view, as the harness makes them for ``-o bert.pretrained=FOLDER``."""
    view = BERT.reads("text", {"pretrained": str(folder), "max_length": 32})
    view.fit([])
    return BERT(view.width, view), view


def made(**sizes: Any) -> BERT:
    """Our class without weights, for sequences of at most 16 pieces."""
    return BERT(20, Subwords(max_length=16), **sizes)


def one_text(view: Subwords, *texts) -> SubwordBatch:
    return view.collate(view.encode(list(texts)), np.arange(len(texts)))


def pairs(view: Subwords, first: list[str], second: list[str]) -> SubwordBatch:
    return view.collate_pair(view.encode(first), view.encode(second), np.arange(len(first)))


def named(ids: torch.Tensor) -> str:
    return " ".join(PIECES[id] for id in ids)


def model_for(folder: Path, task_type: str, target: Target) -> tuple[Model, Subwords]:
    _, view = loaded(folder)
    settings = {"pretrained": str(folder), "max_length": 32}
    torch.manual_seed(1)
    return build(BERT, problem(task_type), settings, view, target, 100).eval(), view


def labelled(target: Target, *labels: str) -> Target:
    target.labels = list(labels)
    return target


# --- states ---


@pytest.mark.parametrize("second", [None, PASSAGES])
def test_states_and_pooled_vectors_are_those_of_transformers(folder, second):
    """Weights left unread, another order of pieces, segments or mask would give other numbers, and
    fine-tuning would start from nowhere."""
    bert, view = loaded(folder)
    bert.eval()
    batch = one_text(view, *TEXTS) if second is None else pairs(view, TEXTS, second)
    tokenizer, reference = (
        transformers.AutoTokenizer.from_pretrained(folder),
        transformers.AutoModel.from_pretrained(folder),
    )
    expected = reference(**tokenizer(TEXTS, second, padding=True, return_tensors="pt"))
    states = bert(batch)
    assert bert.size == 8 and states.shape == expected.last_hidden_state.shape
    torch.testing.assert_close(states[batch.mask], expected.last_hidden_state[batch.mask], rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(bert.pooled(states), expected.pooler_output, rtol=1e-5, atol=1e-5)
    for found in (states[batch.mask], bert.pooled(states)), (expected.last_hidden_state[batch.mask], expected[1]):
        sum(part.sin().sum() for part in found).backward()
    slopes = reference.embeddings.word_embeddings.weight.grad
    assert slopes.abs().max() > 0.1
    torch.testing.assert_close(bert.table.weight.grad, slopes, rtol=1e-4, atol=1e-5)


def by_hand(model: torch.nn.Module, ids: Tensor, segments: Tensor, heads: int) -> Tensor:
    """States (T, size) of one sequence (T,) by the equations, from the model's weights alone."""
    weights = dict(model.named_parameters())

    def linear(x: Tensor, name: str) -> Tensor:
        return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    def normed(x: Tensor, name: str) -> Tensor:
        centred = x - x.mean(-1, keepdim=True)
        scaled = centred / (centred.pow(2).mean(-1, keepdim=True) + 1e-12).sqrt()
        return scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    def gelu(x: Tensor) -> Tensor:
        return x * (1 + torch.erf(x / math.sqrt(2))) / 2

    tables = [weights[f"{name}.weight"] for name in ("table", "positions", "segments")]
    x = normed(tables[0][ids] + tables[1][: len(ids)] + tables[2][segments], "norm")
    for layer in range(sum(name.endswith("query.weight") for name in weights)):
        at = f"body.layers.{layer}"
        parts = [linear(x, f"{at}.attention.{name}").chunk(heads, -1) for name in ("query", "key", "value")]
        attended = [(q @ k.T / math.sqrt(q.shape[1])).softmax(-1) @ v for q, k, v in zip(*parts, strict=True)]
        x = normed(x + linear(torch.cat(attended, -1), f"{at}.attention.output"), f"{at}.norms.0")
        inner = linear(gelu(linear(x, f"{at}.feedforward.0")), f"{at}.feedforward.3")
        x = normed(x + inner, f"{at}.norms.1")
    return x


def test_states_of_the_model_made_here_are_those_of_the_equations():
    """A model that is not loaded has no other to be compared with: ReLU for GELU, or another
    order of the norms, would be another architecture."""
    bert = small(BERT, 20, Subwords(max_length=16), layers=2, hidden=12, heads=3, stretch=20.0)
    ids = torch.randint(20, (2, 9))
    mask, segments = torch.arange(9) < torch.tensor([[9], [6]]), (torch.arange(9) > torch.tensor([[4], [2]])).long()
    states = bert(SubwordBatch(ids, mask, segments, mask.sum(1)))
    for row, length in enumerate((9, 6)):
        expected = by_hand(bert, ids[row, :length], segments[row, :length], heads=3)
        assert_same(states[row, :length], expected, rtol=1e-4, atol=1e-4)


def test_the_vector_of_a_text_is_the_state_of_cls_through_tanh(folder):
    bert, view = loaded(folder)
    states = bert.eval()(one_text(view, *TEXTS))
    pooler = bert.pooler[0]
    assert_same(bert.pooled(states), torch.tanh(states[:, 0] @ pooler.weight.T + pooler.bias))


def test_padding_is_invisible(folder):
    bert, view = loaded(folder)
    bert.eval()
    alone, beside = bert(one_text(view, "cats")), bert(one_text(view, "cats", "the cats sat on the mat"))
    assert beside.shape[1] > alone.shape[1]
    assert_same(alone[0], beside[0, : alone.shape[1]])


def test_segments_matter(folder):
    """The second text of a pair is known by its segment, not by [SEP] alone."""
    bert, view = loaded(folder)
    bert.eval()
    batch = pairs(view, ["cats"], ["the mat"])
    assert batch.segments.any()
    assert not torch.allclose(bert(batch), bert(batch._replace(segments=torch.zeros_like(batch.segments))), atol=1e-3)


def test_positions_matter(folder):
    bert, view = loaded(folder)
    states = bert.eval()(one_text(view, "sat sat"))
    assert not torch.allclose(states[0, 1], states[0, 2], atol=1e-3)


ATTENTION = [
    {"attn_implementation": "eager"},
    {"_attn_implementation": "eager"},
    {"_attn_implementation": "flash_attention_2"},
    {"attn_implementation": "flex_attention"},
    {"attn_implementation": "sdpa"},
    {"output_attentions": True},
]


@pytest.mark.parametrize("named", ATTENTION, ids=str)
def test_padding_is_invisible_whatever_attention_the_folder_names(folder, tmp_path, named):
    """Each implementation reads masks of its own: one of truth values is added to the scores by
    "eager", and a review found states that were off by 1.96."""
    other = shutil.copytree(folder, tmp_path / "other")
    config = json.loads((other / "config.json").read_text())
    (other / "config.json").write_text(json.dumps(config | named))
    bert, view = loaded(other)
    bert.eval()
    alone, beside = bert(one_text(view, "cats")), bert(one_text(view, "cats", "the cats sat on the mat"))
    assert beside.shape[1] > alone.shape[1]
    assert_same(alone[0], beside[0, : alone.shape[1]])
    torch.testing.assert_close(beside, loaded(folder)[0].eval()(one_text(view, "cats", "the cats sat on the mat")))


# --- dropout ---


def test_a_loaded_model_trains_with_dropout(folder):
    """from_pretrained returns a model in evaluation mode, and Lightning leaves the mode alone: it
    would be tuned without dropout."""
    bert, view = loaded(folder)
    batch = one_text(view, *TEXTS)
    assert not torch.equal(bert(batch), bert(batch))
    assert torch.equal(bert.eval()(batch), bert(batch))


@pytest.fixture
def drops(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, float]]:
    """What was dropped at which rate since the test began, in this order."""
    seen: list[tuple[str, float]] = []
    functional = torch.nn.functional
    attention, dropout = functional.scaled_dot_product_attention, functional.dropout

    def attention_seen(*tensors: Tensor, dropout_p: float = 0.0, **options: Any) -> Tensor:
        seen.append(("attention", dropout_p))
        return attention(*tensors, dropout_p=dropout_p, **options)

    def dropout_seen(x: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
        seen.append((f"{x.dim()} dimensions", p if training else 0.0))
        return dropout(x, p, training, inplace)

    monkeypatch.setattr(functional, "scaled_dot_product_attention", attention_seen)
    monkeypatch.setattr(functional, "dropout", dropout_seen)
    return seen


def test_vectors_attention_and_both_sublayers_are_dropped_in_training(drops):
    """The paper: "a dropout probability of 0.1 on all layers"."""
    bert = made(layers=2, hidden=12, heads=3, dropout=0.3).train()
    ids = torch.randint(20, (2, 5))
    batch = SubwordBatch(ids, torch.ones(2, 5, dtype=torch.bool), torch.zeros_like(ids), torch.tensor([5, 5]))
    layer = [("attention", 0.3), ("3 dimensions", 0.3), ("3 dimensions", 0.3)]
    bert(batch)
    assert [drop for drop in drops if drop[1]] == [("3 dimensions", 0.3), *layer, *layer]
    drops.clear()
    bert.eval()(batch)
    assert {rate for _, rate in drops} == {0.0}


HEADS: dict[str, Callable[[], Target]] = {
    "classify": lambda: labelled(ClassTarget(), "a", "b"),
    "match": lambda: labelled(ClassTarget(), "a", "b"),
    "multilabel": lambda: labelled(LabelSetTarget(), "a", "b"),
    "rank": RankTarget,
    "regress": lambda: scored(ScoreTarget()),
    "regress_pair": lambda: scored(ScoreTarget()),
    "tag": lambda: labelled(TagTarget(), "N", "V"),
}


def scored(target: ScoreTarget) -> ScoreTarget:
    target.mean, target.deviation = 0.0, 1.0
    return target


def zeros_under_the_head(model: Model, inputs: dict[str, Any]) -> float:
    """Share of zeros in what the last layer reads, over 200 passes in training."""
    read: list[Tensor] = []
    model.head.output.register_forward_pre_hook(lambda module, inputs: read.append(inputs[0].detach()))
    model.train()
    for _ in range(200):
        model(inputs)
    return (torch.stack(read) == 0).double().mean().item()


@pytest.mark.parametrize("task_type", HEADS)
def test_a_tenth_is_dropped_in_front_of_the_layer_that_scores_classes_or_labels(folder, task_type):
    """run_classifier.py: ``keep_prob=0.9`` between the pooled vector and the layer; taggers have it
    on the words' states."""
    model, view = model_for(folder, task_type, HEADS[task_type]())
    words = one_text(view, ["the", "cats", "sat"], ["cats", "sat", "on"])
    inputs = {"text": words if task_type == "tag" else pairs(view, TEXTS, PASSAGES)}
    assert zeros_under_the_head(model, inputs) == pytest.approx(0.1, abs=0.02)


def test_spans_are_scored_without_dropout_in_front_of_the_layer(folder):
    """run_squad.py has none there."""
    model, view = model_for(folder, "extract", spans(True))
    inputs = {"question": None, "passage": None, "text": pairs(view, QUESTIONS, PASSAGES)}
    assert zeros_under_the_head(model, inputs) == 0


# --- heads ---


@pytest.mark.parametrize(("task_type", "batch"), [("classify", "text"), ("match", "pair")])
def test_classes_are_scored_by_a_layer_on_the_pooled_vector(folder, task_type, batch):
    model, view = model_for(folder, task_type, labelled(ClassTarget(), "a", "b", "c"))
    inputs = {"text": one_text(view, *TEXTS) if batch == "text" else pairs(view, TEXTS, PASSAGES)}
    pooled = model.encoder.pooled(model.encoder(inputs["text"]))
    assert_same(model(inputs), model.head.output(pooled))
    assert model(inputs).shape == (2, 3)


def test_a_candidate_is_ranked_by_one_score_on_the_pooled_vector(folder):
    model, view = model_for(folder, "rank", RankTarget())
    inputs = {"text": pairs(view, QUESTIONS, PASSAGES)}
    pooled = model.encoder.pooled(model.encoder(inputs["text"]))
    assert_same(model(inputs), model.head.output(pooled)[:, 0])


def test_a_word_is_tagged_by_the_state_of_its_first_piece(folder):
    """`cats` is cat ##s: its tag is read at cat, and the words behind it must not move by one."""
    model, view = model_for(folder, "tag", labelled(TagTarget(), "N", "V"))
    batch = one_text(view, ["the", "cats", "sat"], ["cats"])
    assert named(batch.ids[0]) == "[CLS] the cat ##s sat [SEP]"
    emissions, mask = model({"text": batch})
    states = model.encoder(batch)
    assert mask.tolist() == [[True] * 3, [True, False, False]]
    assert_same(emissions[0], model.head.output(states[0, [1, 2, 4]]))
    assert_same(emissions[1, :1], model.head.output(states[1, [1]]))


def spans(unanswerable: bool) -> SpanTarget:
    target = SpanTarget()
    target.unanswerable = unanswerable
    return target


@pytest.mark.parametrize("unanswerable", [False, True])
def test_a_span_is_sought_in_the_passage_alone(folder, unanswerable):
    """Neither question pieces nor [CLS], [SEP] and padding may be an answer; no answer is scored by
    [CLS], with one number beside the starts and one beside the ends."""
    model, view = model_for(folder, "extract", spans(unanswerable))
    batch = pairs(view, QUESTIONS, PASSAGES)
    scores, _ = model({"question": None, "passage": None, "text": batch})
    both = model.head.output(model.encoder(batch))
    assert named(batch.ids[0]) == "[CLS] who sat ? [SEP] the cat ##s sat on the mat [SEP]"
    assert_same(torch.stack([scores.start[0], scores.end[0]], 1), both[0, 5:12])
    assert named(batch.ids[1, :7]) == "[CLS] who ? [SEP] cat ##s sat"
    assert_same(torch.stack([scores.start[1, :3], scores.end[1, :3]], 1), both[1, 4:7])
    assert (scores.start[1, 3:] == -torch.inf).all() and (scores.end[1, 3:] == -torch.inf).all()
    assert (scores.no_answer is not None) == unanswerable
    if unanswerable:
        assert_same(scores.no_answer, both[:, 0])


def test_the_loss_of_spans_is_that_of_the_paper(folder):
    """The sum of the negative log-likelihoods of start and end, each by a softmax over the words of
    the paragraph and [CLS]."""
    model, view = model_for(folder, "extract", spans(True))
    batch = pairs(view, QUESTIONS, PASSAGES)
    both = model.head.output(model.encoder(batch))
    beside = [both[0, [0, *range(5, 12)]].log_softmax(0), both[1, [0, *range(4, 7)]].log_softmax(0)]
    expected = -torch.stack([beside[0][1 + 1, 0] + beside[0][1 + 3, 1], beside[1][0].sum()])
    outputs = model({"question": None, "passage": None, "text": batch})
    assert_same(model.head.row_losses(None, outputs, torch.tensor([[1, 3], [-1, -1]])), expected)


def test_a_long_passage_is_read_in_the_windows_of_transformers(folder):
    """Its tokenizers count the stride the other way round: pieces that two windows share."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    question, passage = "who sat?", "the cats sat on the mat the mats sat on the cat who sat on cats the end"
    _, view = loaded(folder)
    view.max_length, view.stride = 14, 4
    batch = view.collate_pair(view.encode([question]), view.encode([passage]), np.array([0]), cut="second")
    room = view.max_length - 3 - len(tokenizer(question, add_special_tokens=False).input_ids)
    expected = tokenizer(
        question,
        passage,
        truncation="only_second",
        max_length=view.max_length,
        stride=room - view.stride,
        return_overflowing_tokens=True,
        padding=True,
        return_tensors="pt",
    )
    assert len(batch.ids) > 3 and batch.ids.tolist() == expected.input_ids.tolist()
    assert batch.segments.tolist() == expected.token_type_ids.tolist()
    assert batch.mask.int().tolist() == expected.attention_mask.tolist()


def test_windows_go_through_model_loss_answers_and_costs(folder):
    """With [CLS], question and three pieces of the passage at a time, an answer at its end is still
    found."""
    model, view = model_for(folder, "extract", spans(True))
    view.max_length, view.stride = 10, 2
    rows = [
        {"id": "0", "passage": "the cats sat on the mat", "question": "who sat?"},
        {"id": "1", "passage": "cats", "question": "who?"},
    ]
    for row, text, start in zip(rows, ("mat", "cats"), (20, 0), strict=True):
        row["answers"] = {"text": [text], "start": [start]}
    inputs = {field: view.encode([row[field] for row in rows]) for field in ("question", "passage")}
    split = Split(rows, view, model.head.target, inputs, model.head.target.encode(rows, view))
    batch = split.collate(np.arange(2))
    assert len(batch.inputs["text"].ids) == 4 and batch.target.tolist() == [[6, 6], [0, 1]]
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(60):
        optimizer.zero_grad()
        model.loss(batch).backward()
        optimizer.step()
    assert model.predict(batch, split) == ["mat", "cats"]
    counted = [cost._operations(model, [batch], device, cost._forward) for device in ("meta", "cpu")]
    assert 0 < counted[0] == counted[1]


@pytest.mark.parametrize("task", ["squad1", "squad2"])
def test_reading_in_windows_keeps_to_the_contract(task):
    """Padding, order and the company of other passages change nothing."""
    entry = registry.entry("architectures", "bert")
    settings = grid.hyperparameters(entry) | entry.tiny | {"max_length": 24, "stride": 5}
    case = TrainedCase(entry, registry.entry("tasks", task), settings)
    batch = case.corpus.train.collate(case.eight())
    assert len(batch.inputs["text"].ids) > 2 * len(batch.rows)
    for _, body in case.checks(learning=False):
        body()
    case.operations()


def test_every_task_of_texts_has_a_head():
    types = {type for type in registry.entries("problems") if BERT.can_answer(type)}
    assert types == {"classify", "match", "multilabel", "rank", "tag", "extract", "regress", "regress_pair", "text"}


# --- pre-training ---

SEPARATOR, DOT = 3, 9
"""Numbers of the pieces of these tests: 2 begins a text."""


def learner(max_length: int = 16) -> tuple[BERT, NextSentence]:
    view = Subwords(max_length=max_length)
    view.fit(["a b c d e f g h i j k l m n o p . ! ?"])
    torch.manual_seed(0)
    bert = BERT(view.width, view, layers=1, hidden=8, heads=2, dropout=0.0)
    return bert, bert.learns(bert)


def numbered(*texts: list[int]) -> SubwordBatch:
    """Texts of these pieces, as a view makes them."""
    width = max(map(len, texts)) + 2
    ids = torch.tensor([[2, *text, SEPARATOR, *[0] * (width - 2 - len(text))] for text in texts])
    lengths = torch.tensor([len(text) + 2 for text in texts])
    return SubwordBatch(ids, torch.arange(width) < lengths[:, None], torch.zeros_like(ids), lengths)


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ([10, 11, 12, 13], {1, 2, 3}),
        ([10, DOT, 12, 13, DOT, 15, DOT], {2, 5}),
        ([10, 11, DOT], {1, 2}),
        ([10], {1}),
    ],
)
def test_a_text_is_divided_behind_a_sentence_or_anywhere(text, allowed):
    """Both segments have something to read, and the end of the text is no place to divide it."""
    batch = numbered(text)
    ends = torch.tensor([DOT])
    found = {divided(batch, ends, 16, Noise(batch.ids, batch.mask, (0, number))).item() for number in range(60)}
    assert found == allowed


def test_a_full_sequence_has_room_for_a_piece_of_its_second_segment():
    batch = numbered(list(range(10, 16)))
    ends = torch.tensor([], dtype=torch.long)
    found = {divided(batch, ends, 8, Noise(batch.ids, batch.mask, (0, number))).item() for number in range(60)}
    assert found == {1, 2, 3, 4}


def test_the_second_segment_is_that_of_the_text_that_is_named():
    view = learner(9)[0].view
    batch = numbered([10, 11, 12, 13, 14], [20, 21], [30, 31, 32, 33, 34, 35])
    own = joined(batch, torch.tensor([2, 1, 1]), torch.tensor([0, 1, 2]), view)
    assert own.ids.tolist() == [
        [2, 10, 11, 3, 12, 13, 14, 3, 0],
        [2, 20, 3, 21, 3, 0, 0, 0, 0],
        [2, 30, 3, 31, 32, 33, 34, 35, 3],
    ]
    assert own.segments.tolist() == [[0] * 4 + [1] * 4 + [0], [0] * 3 + [1] * 2 + [0] * 4, [0] * 3 + [1] * 6]
    assert own.lengths.tolist() == own.mask.sum(1).tolist() == [8, 5, 9]
    other = joined(batch, torch.tensor([2, 1, 1]), torch.tensor([2, 0, 1]), view)
    assert other.ids.tolist() == [
        [2, 10, 11, 3, 31, 32, 33, 34, 3],  # cut: a sequence has nine pieces
        [2, 20, 3, 12, 13, 14, 3, 0, 0],
        [2, 30, 3, 21, 3, 0, 0, 0, 0],
    ]


def test_half_of_the_second_segments_are_of_another_text_of_the_batch():
    """The label must say which: wrong for some, the pooler would learn nothing, or to guess."""
    bert, learns = learner()
    texts = [[10 + 3 * row, 11 + 3 * row] for row in range(4)]
    batch, sources = numbered(*texts), Counter()
    for number in range(500):
        pairs, strange = learns.pairs(batch, bert.view, Noise(batch.ids, batch.mask, (7, number)))
        assert pairs.ids[:, 1].tolist() == [text[0] for text in texts]
        second = [[text[1] for text in texts].index(id) for id in pairs.ids[:, 3].tolist()]
        assert strange.tolist() == [int(row != source) for row, source in enumerate(second)]
        sources.update((source - row) % 4 for row, source in enumerate(second))
    assert [sources[distance] / 2000 for distance in range(4)] == pytest.approx([1 / 2, 1 / 6, 1 / 6, 1 / 6], abs=0.04)


def test_texts_that_are_to_keep_their_own_segment_keep_it():
    """Of the others it is drawn as ever, and not always another text's."""
    bert, learns = learner()
    batch = numbered(*([10 + 3 * row, 11 + 3 * row] for row in range(4)))
    treated, total = torch.tensor([True, False, True, False]), torch.zeros(4)
    for number in range(200):
        noise = Noise(batch.ids, batch.mask, (7, number))
        pairs, strange = paired(batch, learns.ends, bert.view, noise, treated)
        assert pairs.ids[~treated, 3].tolist() == [14, 20]
        total += strange
    assert total.tolist() == pytest.approx([100, 0, 100, 0], abs=30)


def test_a_text_alone_is_followed_by_itself():
    bert, learns = learner()
    batch = numbered([10, 11])
    for number in range(20):
        pairs, strange = learns.pairs(batch, bert.view, Noise(batch.ids, batch.mask, (0, number)))
        assert strange.tolist() == [0] and pairs.ids.tolist() == [[2, 10, 3, 11, 3]]


def test_what_follows_is_told_from_the_pooled_first_state_in_training_alone():
    """The term by hand, from the states of the pairs with their hidden pieces."""
    bert, learns = learner()
    batch = numbered([10, 11, 12, 13], [14, 15, 16], [17, 18, 19, 20])
    seen: list[Tensor] = []
    bert.register_forward_hook(lambda module, inputs, states: seen.append(states))
    with collected_losses() as terms:
        foretold = learns(bert, batch, Noise(batch.ids, batch.mask, (0, 1)))
    _, strange = learns.pairs(batch, bert.view, Noise(batch.ids, batch.mask, (0, 1)))
    pooler, output = bert.pooler[0], learns.output
    pooled = torch.tanh(seen[0][:, 0] @ pooler.weight.T + pooler.bias)
    logs = (pooled @ output.weight.T + output.bias).log_softmax(1)
    assert_same(terms["next sentence"], -logs[torch.arange(3), strange].mean())
    assert len(foretold.logs) == 3, "15 % of each pair, one at least"
    with collected_losses() as terms:
        asked = learns(bert, batch, Noise(batch.ids, batch.mask))
    assert not terms and seen[1].shape[:2] == batch.ids.shape, "in evaluation a text is one segment"
    same = MaskedPieces(bert)
    same.load_state_dict({name: value for name, value in learns.state_dict().items() if name in same.state_dict()})
    torch.testing.assert_close(asked.logs, same(bert, batch, Noise(batch.ids, batch.mask)).logs)


def test_the_small_one_starts_from_itself_and_published_ones_from_no_other():
    """Weights of ours in the place of loaded ones would do away with what the user named."""
    given = {id: registry.entry("architectures", id).parents for id in ("bert", "bert_base", "bert_large")}
    assert given == {"bert": {"weights": "bert@text_mix"}, "bert_base": {}, "bert_large": {}}
    assert BERT.default_parents(given["bert"], {"pretrained": ""}) == given["bert"]
    assert BERT.default_parents(given["bert"], {"pretrained": "folder"}) == {}


# --- loading ---


def test_without_pretrained_the_sizes_are_the_hyperparameters():
    bert = made(layers=3, hidden=12, heads=4, dropout=0.3)
    assert (len(bert.body.layers), bert.size, bert.dropout.p) == (3, 12, 0.3)
    assert {(layer.attention.heads, layer.attention.dropout) for layer in bert.body.layers} == {(4, 0.3)}
    assert bert.body.layers[0].feedforward[0].out_features == 48
    assert (bert.table.num_embeddings, bert.positions.num_embeddings) == (20, 16)


def test_hyperparameters_shape_the_view():
    """Tokenizer and weights must come from one place, and an option that stayed in the constructor
    would do nothing."""
    settings = {"pretrained": "x", "vocabulary": 77, "max_length": 9, "stride": 5}
    assert BERT.reads("text", settings) == Subwords(77, 9, "x", stride=5)
    assert BERT.reads("text", {}) == Subwords() and BERT.reads("audio", {}) is None


@pytest.mark.parametrize("id", ["bert_base", "bert_large"])
def test_passages_are_read_in_windows_of_384_pieces_128_apart(id):
    """run_squad.py: max_seq_length and doc_stride."""
    view = view_of(id, "squad1")
    assert (view.max_length, view.stride) == (384, 128)


def view_of(id: str, task: str) -> Subwords:
    """The unfitted view of a registered BERT for a task."""
    entry = registry.entry("architectures", id)
    return registry.load(entry).view_for(registry.entry("tasks", task), grid.hyperparameters(entry))


@pytest.mark.parametrize("size", ["base", "large"])
def test_names_are_tagged_by_cased_weights_and_all_else_is_read_by_uncased_ones(size):
    """The paper has a case-preserving model for CoNLL-2003: what is lower-cased tells no name."""
    for task, case in (("conll2003_ner", "cased"), ("sst2", "uncased"), ("squad2", "uncased"), ("snli", "uncased")):
        assert view_of(f"bert_{size}", task).pretrained == f"bert-{size}-{case}"


def test_a_vocabulary_of_our_own_is_that_of_pre_training_for_all_tasks():
    """Else the pieces of tagged words would have the vectors of others."""
    views = [view_of("bert", task) for task in ("text_mix", "conll2003_ner", "sst2", "squad1")]
    assert all(view == views[0] for view in views)


def test_weights_that_are_named_are_taken_for_every_task(folder):
    settings = grid.hyperparameters(registry.entry("architectures", "bert_base")) | {"pretrained": str(folder)}
    for task in ("conll2003_ner", "sst2"):
        assert BERT.view_for(registry.entry("tasks", task), settings).pretrained == str(folder)
    assert BERT.view_for(registry.entry("tasks", "an4"), settings) is None


@pytest.mark.parametrize(
    ("id", "layers", "hidden", "heads"), [("bert_base", 12, 768, 12), ("bert_large", 24, 1024, 16)]
)
def test_the_published_models_are_loaded_and_recorded_with_their_sizes(id, layers, hidden, heads):
    settings = grid.hyperparameters(registry.entry("architectures", id))
    assert settings["pretrained"] == f"bert-{id.removeprefix('bert_')}-{{case}}"
    assert (settings["layers"], settings["hidden"], settings["heads"]) == (layers, hidden, heads)
    assert grid.hyperparameters(registry.entry("architectures", "bert"))["pretrained"] == ""


@pytest.mark.parametrize("id", ["bert", "bert_base", "bert_large"])
def test_neither_norms_nor_biases_decay(folder, id):
    """optimization.py: exclude_from_weight_decay=["LayerNorm", "layer_norm", "bias"]."""
    model, _ = model_for(folder, "classify", labelled(ClassTarget(), "a", "b"))
    names = [name for name, _ in model.named_parameters()]
    left_out = exempt(model, registry.entry("architectures", id).recipe.decay_exempt)
    assert left_out == {name for name in names if re.search("norm|bias", name)}
    kept = Counter(name.split(".")[-2] for name in names if name not in left_out)
    assert kept == Counter(
        {"table": 1, "positions": 1, "segments": 1, "query": 2, "key": 2, "value": 2, "output": 2 + 1}
    ) + Counter({"0": 2 + 1, "3": 2}), "attention, the layer on top, both of each network and the pooler"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pretrained": "{folder}/nothing_here"}, "nothing_here.*neither a folder"),
        ({"max_length": 33}, "max_length=33: .*32 positions"),
        ({"width": 14}, "tokenizer has 14 pieces, its model vectors for 13"),
    ],
)
def test_weights_that_are_missing_or_do_not_suit_are_named(folder, change, message):
    wanted = {"width": 13, "pretrained": "{folder}", "max_length": 32} | change
    view = Subwords(max_length=wanted["max_length"], pretrained=wanted["pretrained"].format(folder=folder))
    with pytest.raises(ValueError, match=message):
        BERT(wanted["width"], view)


def test_another_kind_of_model_is_refused(tmp_path):
    """A RoBERTa has other segments and positions: it would run, and read nonsense."""
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    transformers.RobertaModel(transformers.RobertaConfig(vocab_size=13, **sizes)).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="is of type roberta, expected bert"):
        BERT(13, Subwords(pretrained=str(tmp_path)))


def test_weights_in_a_pickle_are_refused(folder, tmp_path):
    """To read one is to run what it says."""
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    weights = transformers.AutoModel.from_pretrained(folder).state_dict()
    torch.save(weights, tmp_path / "pytorch_model.bin")
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(ValueError, match="neither a folder with safetensors weights"):
        BERT(13, Subwords(max_length=32, pretrained=str(tmp_path)))


def without_a_model() -> str:
    """A type of model of which transformers knows the settings alone."""
    types, models = transformers.CONFIG_MAPPING, transformers.MODEL_MAPPING
    return next(name for name in types if name.endswith("_text_model") and types[name] not in models)


@pytest.mark.parametrize("model_type", ["bert", without_a_model(), "a model of its own"])
def test_code_in_a_folder_of_weights_is_never_run(folder, tmp_path, monkeypatch, model_type):
    """Weights come from anybody. transformers runs a folder's code where it is told to, and where
    nobody said otherwise it asks: one who presses "y" to go on would have run it."""
    weights, ran = tmp_path / "weights", tmp_path / "ran"
    shutil.copytree(folder, weights)
    code = f"import pathlib\n\npathlib.Path({str(ran)!r}).touch()\n"
    (weights / "own.py").write_text(code + "from transformers import BertConfig as Config, BertModel as Model\n")
    config = json.loads((folder / "config.json").read_text())
    own = {"auto_map": {"AutoConfig": "own.Config", "AutoModel": "own.Model"}, "model_type": model_type}
    (weights / "config.json").write_text(json.dumps(config | own))
    monkeypatch.setattr(builtins, "input", lambda question: "y")
    try:
        BERT(13, Subwords(max_length=32, pretrained=str(weights)))
    except ValueError:
        assert model_type != "bert", "transformers has code of its own for it"
    assert not ran.exists()


@pytest.mark.parametrize(
    ("name", "value"), [("hidden_act", "relu"), ("is_decoder", True), ("position_embedding_type", "relative_key")]
)
def test_a_model_that_computes_otherwise_is_refused(folder, tmp_path, name, value):
    """Its weights would fit into our body, and give other states."""
    other = shutil.copytree(folder, tmp_path / "other")
    config = json.loads((other / "config.json").read_text())
    (other / "config.json").write_text(json.dumps(config | {name: value}))
    with pytest.raises(ValueError, match=f"{name} is {value!r} in its config.json, expected"):
        BERT(13, Subwords(max_length=32, pretrained=str(other)))


def test_half_precision_weights_are_read_as_single(folder, tmp_path):
    """The precision of a run is the harness's to choose; transformers takes the file's."""
    transformers.AutoModel.from_pretrained(folder).half().save_pretrained(tmp_path)
    assert {p.dtype for p in BERT(13, Subwords(max_length=32, pretrained=str(tmp_path))).parameters()} == {
        torch.float32
    }


def test_without_transformers_the_extra_is_named(monkeypatch):
    real = builtins.__import__

    @functools.wraps(real)
    def without(name, *args, **kwargs):
        if name == "transformers":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"archbench\[plm\]"):
        BERT(13, Subwords(pretrained="x"))
    assert BERT(13, Subwords(), hidden=8, layers=1).size == 8, "one that loads nothing needs none"
