"""BERT: the states are those of transformers' own model, and the heads read the right ones."""

from __future__ import annotations

import builtins
import functools
from pathlib import Path

import numpy as np
import pytest
import torch

from architectures.pretrained.bert import BERT
from harness import registry
from harness.problems import problem
from harness.problems.base import Target
from harness.problems.classify import ClassTarget
from harness.problems.extract import SpanTarget
from harness.problems.rank import RankTarget
from harness.problems.tag import TagTarget
from harness.running import grid
from harness.training.model import Model, build
from harness.views.subwords import SubwordBatch, Subwords

transformers = pytest.importorskip("transformers")

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "##s", "sat", "on", "mat", "who", "?"]
TEXTS = ["the cats sat", "cats"]
QUESTIONS, PASSAGES = ["who sat?", "who?"], ["the cats sat on the mat", "cats sat"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny BERT with random weights and its tokenizer, as the hub holds them."""
    torch.manual_seed(0)
    path = tmp_path_factory.mktemp("tiny_bert")
    transformers.BertTokenizerFast(vocab={piece: id for id, piece in enumerate(PIECES)}).save_pretrained(path)
    config = transformers.BertConfig(
        vocab_size=len(PIECES),
        hidden_size=8,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=32,
        initializer_range=0.5,
    )
    transformers.BertModel(config).save_pretrained(path)
    return path


def loaded(folder: Path) -> tuple[BERT, Subwords]:
    """Our class and its view, as the harness makes them for ``-o bert.pretrained=FOLDER``."""
    view = BERT.reads("text", {"pretrained": str(folder), "max_length": 32})
    view.fit([])
    return BERT(view.width, pretrained=str(folder), max_length=32), view


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
    torch.testing.assert_close(states[batch.mask], expected.last_hidden_state[batch.mask])
    torch.testing.assert_close(bert.pooled(states), expected.pooler_output)


def test_the_vector_of_a_text_is_the_state_of_cls_through_tanh(folder):
    bert, view = loaded(folder)
    states = bert.eval()(one_text(view, *TEXTS))
    pooler = bert.model.pooler.dense
    torch.testing.assert_close(bert.pooled(states), torch.tanh(states[:, 0] @ pooler.weight.T + pooler.bias))


def test_padding_is_invisible(folder):
    bert, view = loaded(folder)
    bert.eval()
    alone, beside = bert(one_text(view, "cats")), bert(one_text(view, "cats", "the cats sat on the mat"))
    assert beside.shape[1] > alone.shape[1]
    torch.testing.assert_close(alone[0], beside[0, : alone.shape[1]])


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


def test_a_loaded_model_trains_with_dropout(folder):
    """from_pretrained returns a model in evaluation mode, and Lightning leaves the mode alone: it
    would be tuned without dropout."""
    bert, view = loaded(folder)
    batch = one_text(view, *TEXTS)
    assert not torch.equal(bert(batch), bert(batch))
    assert torch.equal(bert.eval()(batch), bert(batch))


# --- heads ---


@pytest.mark.parametrize(("task_type", "batch"), [("classify", "text"), ("match", "pair")])
def test_classes_are_scored_by_a_layer_on_the_pooled_vector(folder, task_type, batch):
    model, view = model_for(folder, task_type, labelled(ClassTarget(), "a", "b", "c"))
    inputs = {"text": one_text(view, *TEXTS) if batch == "text" else pairs(view, TEXTS, PASSAGES)}
    pooled = model.encoder.pooled(model.encoder(inputs["text"]))
    torch.testing.assert_close(model(inputs), model.head.output(pooled))
    assert model(inputs).shape == (2, 3)


def test_a_candidate_is_ranked_by_one_score_on_the_pooled_vector(folder):
    model, view = model_for(folder, "rank", RankTarget())
    inputs = {"text": pairs(view, QUESTIONS, PASSAGES)}
    pooled = model.encoder.pooled(model.encoder(inputs["text"]))
    torch.testing.assert_close(model(inputs), model.head.output(pooled)[:, 0])


def test_a_word_is_tagged_by_the_state_of_its_first_piece(folder):
    """`cats` is cat ##s: its tag is read at cat, and the words behind it must not move by one."""
    model, view = model_for(folder, "tag", labelled(TagTarget(), "N", "V"))
    batch = one_text(view, ["the", "cats", "sat"], ["cats"])
    assert named(batch.ids[0]) == "[CLS] the cat ##s sat [SEP]"
    emissions, mask = model({"text": batch})
    states = model.encoder(batch)
    assert mask.tolist() == [[True] * 3, [True, False, False]]
    torch.testing.assert_close(emissions[0], model.head.output(states[0, [1, 2, 4]]))
    torch.testing.assert_close(emissions[1, :1], model.head.output(states[1, [1]]))


@pytest.mark.parametrize("unanswerable", [False, True])
def test_a_span_is_sought_in_the_passage_alone(folder, unanswerable):
    """Neither question pieces nor [CLS], [SEP] and padding may be an answer; no answer is scored by
    [CLS]."""
    target = SpanTarget()
    target.unanswerable = unanswerable
    model, view = model_for(folder, "extract", target)
    batch = pairs(view, QUESTIONS, PASSAGES)
    scores = model({"question": None, "passage": None, "text": batch})
    both = model.head.output(model.encoder(batch))
    assert named(batch.ids[0]) == "[CLS] who sat ? [SEP] the cat ##s sat on the mat [SEP]"
    torch.testing.assert_close(torch.stack([scores.start[0], scores.end[0]], 1), both[0, 5:12])
    assert named(batch.ids[1, :7]) == "[CLS] who ? [SEP] cat ##s sat"
    torch.testing.assert_close(torch.stack([scores.start[1, :3], scores.end[1, :3]], 1), both[1, 4:7])
    assert (scores.start[1, 3:] == -torch.inf).all() and (scores.end[1, 3:] == -torch.inf).all()
    assert (scores.no_answer is not None) == unanswerable
    if unanswerable:
        torch.testing.assert_close(2 * scores.no_answer, both[:, 0].sum(1))


def test_every_task_of_texts_has_a_head():
    types = {type for type in registry.entries("problems") if BERT.can_answer(type)}
    assert types == {"classify", "match", "rank", "tag", "extract", "regress", "regress_pair"}


# --- loading ---


def test_without_pretrained_the_sizes_are_the_hyperparameters():
    bert = BERT(20, layers=3, hidden=12, heads=4, dropout=0.3, max_length=16)
    config = bert.model.config
    assert (config.num_hidden_layers, config.hidden_size, config.num_attention_heads, config.intermediate_size) == (
        3,
        12,
        4,
        48,
    )
    assert (config.vocab_size, config.max_position_embeddings, config.hidden_dropout_prob) == (
        20,
        16,
        0.3,
    ) and bert.size == 12


def test_hyperparameters_shape_the_view():
    """Tokenizer and weights must come from one place, and an option that stayed in the constructor
    would do nothing."""
    assert BERT.reads("text", {"pretrained": "x", "vocabulary": 77, "max_length": 9}) == Subwords(77, 9, "x")
    assert BERT.reads("text", {}) == Subwords() and BERT.reads("audio", {}) is None


@pytest.mark.parametrize(
    ("id", "layers", "hidden", "heads"), [("bert_base", 12, 768, 12), ("bert_large", 24, 1024, 16)]
)
def test_the_published_models_are_loaded_and_recorded_with_their_sizes(id, layers, hidden, heads):
    settings = grid.hyperparameters(registry.entry("architectures", id))
    assert settings["pretrained"] == f"bert-{id.removeprefix('bert_')}-uncased"
    assert (settings["layers"], settings["hidden"], settings["heads"]) == (layers, hidden, heads)
    assert grid.hyperparameters(registry.entry("architectures", "bert"))["pretrained"] == ""


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pretrained": "{folder}/nothing_here"}, "nothing_here.*neither a folder"),
        ({"max_length": 33}, "max_length=33: .*32 positions"),
        ({"width": 14}, "tokenizer has 14 pieces, its model vectors for 13"),
    ],
)
def test_weights_that_are_missing_or_do_not_suit_are_named(folder, change, message):
    wanted = {"width": 13, "pretrained": str(folder), "max_length": 32} | change
    with pytest.raises(ValueError, match=message):
        BERT(**wanted | {"pretrained": wanted["pretrained"].format(folder=folder)})


def test_another_kind_of_model_is_refused(tmp_path):
    """A RoBERTa has other segments and positions: it would run, and read nonsense."""
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    transformers.RobertaModel(transformers.RobertaConfig(vocab_size=13, **sizes)).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="is of type roberta, expected bert"):
        BERT(13, pretrained=str(tmp_path))


def test_half_precision_weights_are_read_as_single(folder, tmp_path):
    """The precision of a run is the harness's to choose; transformers takes the file's."""
    transformers.AutoModel.from_pretrained(folder).half().save_pretrained(tmp_path)
    assert {p.dtype for p in BERT(13, pretrained=str(tmp_path), max_length=32).parameters()} == {torch.float32}


def test_without_transformers_the_extra_is_named(monkeypatch):
    real = builtins.__import__

    @functools.wraps(real)
    def without(name, *args, **kwargs):
        if name == "transformers":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"archbench\[plm\]"):
        BERT(13)
