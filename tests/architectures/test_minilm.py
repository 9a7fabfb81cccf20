"""MiniLM: attention and value relations of the last layer alone are those of the equations, in
values and gradients, and nothing else teaches the student."""

from __future__ import annotations

import copy
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from architectures.blocks.objectives.last_attention import LastAttention, divergence, relations
from architectures.blocks.objectives.masked_pieces import MaskedPieces
from architectures.blocks.piece_transformer import PieceTransformer
from architectures.pretrained.bert import BERT
from architectures.pretrained.minilm import MiniLM
from harness import registry
from harness.errors import ModelError
from harness.objectives import Step, collected_losses
from harness.problems.base import Batch
from harness.registry import Recipe
from harness.training.model import Model, objective_of
from harness.views.subwords import SubwordBatch, Subwords
from tests.support.models import small
from tests.support.plain_text import batch, noise_of
from tests.support.published import TABLES, assert_loads, layers, saved
from tests.support.same import assert_same
from tests.support.sessions import session
from tests.support.teaching import TEXTS, inherit, kept, on_text, view_of

transformers = pytest.importorskip("transformers")

TEACHER = {"layers": 3, "hidden": 16, "heads": 4}
STUDENT = {"layers": 2, "hidden": 8, "heads": 4}
QUERIES = [
    f"body.layers.1.attention.{part}.{kind}" for part in ("query", "key", "value") for kind in ("weight", "bias")
]


@pytest.fixture(scope="module")
def view() -> Subwords:
    return view_of(*TEXTS)


@pytest.fixture
def teacher(view: Subwords) -> Model:
    return on_text(BERT, view, stretch=12.0, **TEACHER)


@pytest.fixture
def student(view: Subwords) -> Model:
    return on_text(MiniLM, view, stretch=12.0, **STUDENT)


def terms_of(student: Model, pieces: SubwordBatch, *key: int) -> tuple[Tensor, dict[str, Tensor]]:
    """The logarithms that the objective gives, and its further terms."""
    with collected_losses() as terms:
        logs, _ = student.head.learns(student.encoder, pieces, noise_of(pieces, *key))
    return logs, terms


def last(encoder: Any, view: Subwords, pieces: SubwordBatch) -> tuple[Tensor, Tensor]:
    """The attention (B, heads, T, T) and values (B, T, size) of the last layer of transformers'
    BERT with the weights of ours."""
    depth = len(encoder.body.layers)
    config = transformers.BertConfig(
        vocab_size=view.width,
        hidden_size=encoder.size,
        num_hidden_layers=depth,
        num_attention_heads=4,
        intermediate_size=4 * encoder.size,
        max_position_embeddings=24,
        attn_implementation="eager",
    )
    reference = transformers.BertModel(config, add_pooling_layer=False).eval()
    ours = dict(encoder.named_parameters())
    names = TABLES | layers(depth)
    places = [name.rpartition(".") for name, _ in reference.named_parameters()]
    weights = {f"{place}.{kind}": ours[f"{names[place]}.{kind}"] for place, _, kind in places}
    values: list[Tensor] = []
    matrix = reference.encoder.layer[-1].attention.self.value
    hook = matrix.register_forward_hook(lambda module, inputs, output: values.append(output))
    read = {"input_ids": pieces.ids, "attention_mask": pieces.mask.long(), "output_attentions": True}
    found = torch.func.functional_call(reference, weights, (), read).attentions[-1]
    hook.remove()
    return found, values[0]


def written_out(teacher: Model, student: Model, pieces: SubwordBatch) -> tuple[Tensor, Tensor]:
    """Both divergences by the paper's equations, text by text, head by head and row by row."""
    view = student.encoder.view
    with torch.no_grad():
        wanted, its = last(teacher.encoder, view, pieces)
    found, own = last(student.encoder, view, pieces)
    attention, related = torch.zeros(()), torch.zeros(())

    def softmax(scores: Tensor) -> Tensor:
        return scores.exp() / scores.exp().sum()

    for text, length in enumerate(pieces.lengths.tolist()):
        for head in range(4):
            t, s = (v[text, :length].chunk(4, dim=-1)[head] for v in (its, own))
            for row in range(length):
                p, q = wanted[text, head, row, :length], found[text, head, row, :length]
                share = 1 / (4 * length * len(pieces.ids))
                attention = attention + share * (p * (p / q).log()).sum()
                p, q = (softmax(v @ v[row] / math.sqrt(v.shape[1])) for v in (t, s))
                related = related + share * (p * (p / q).log()).sum()
    return attention, related


def test_both_terms_are_the_equations_of_what_transformers_models_do(teacher, student, view):
    inherit(student, kept(teacher, view))
    pieces = batch(view, *TEXTS)
    assert len({*pieces.lengths.tolist()}) == 3, "each text counts alike, whatever its length"
    _, terms = terms_of(student, pieces, 4, 1)
    attention, related = written_out(teacher, student, pieces)
    assert attention > 0.1 and related > 0.01
    assert_same(terms["attention"], attention, rtol=1e-4, atol=1e-5)
    assert_same(terms["values"], related, rtol=1e-4, atol=1e-5)
    assert terms.keys() == {"attention", "values"}


def test_divergence_by_hand():
    """A text of two pieces and one of a single piece, one head: the mean over the pieces of each,
    then over both."""
    told = torch.tensor([[[[0.75, 0.25], [0.5, 0.5]]], [[[1.0, 1e-30], [0.9, 0.1]]]]).log()
    other = torch.tensor([[[[0.5, 0.5], [0.5, 0.5]]], [[[0.5, 0.5], [0.5, 0.5]]]]).log()
    first = (0.75 * math.log(1.5) + 0.25 * math.log(0.5)) / 2
    mask = torch.tensor([[True, True], [True, False]])
    assert divergence(told, other, mask).item() == pytest.approx((first + math.log(2)) / 2, rel=1e-5)


def test_rows_are_probabilities_of_the_pieces_of_the_text(student, view):
    pieces = batch(view, *TEXTS)
    for logs in relations(student.encoder, pieces):
        shares = logs.exp() * pieces.mask[:, None, None]
        assert torch.allclose(shares.sum(-1), torch.ones(logs.shape[:-1]), atol=1e-5)
        assert logs.shape == (3, 4, *pieces.ids.shape[1:], pieces.ids.shape[1])


def test_a_teacher_whose_norms_stand_in_front_attends_to_what_is_normed(view):
    """What the matrices of the last layer read, whichever way that layer is made."""
    encoder = small(PieceTransformer, view.width, view, 2, 8, 2, 0.0, pre_norm=True, stretch=12.0)
    last = encoder.body.layers[1].attention
    made: dict[str, Tensor] = {}
    for name in ("query", "key", "value"):
        matrix = last.get_submodule(name)
        matrix.register_forward_hook(lambda module, inputs, output, name=name: made.update({name: output.detach()}))
    pieces = batch(view, TEXTS[0])
    encoder(pieces)
    query, key, value = (made[name].unflatten(-1, (2, 4)).transpose(1, 2) for name in ("query", "key", "value"))
    attention, related = relations(encoder, pieces)
    torch.testing.assert_close(attention, (query @ key.mT / 2).log_softmax(-1))
    torch.testing.assert_close(related, (value @ value.mT / 2).log_softmax(-1))


def test_who_attends_as_its_teacher_has_nothing_to_learn(student, view):
    """Whatever stands above the attention of the last layer."""
    other = copy.deepcopy(student)
    with torch.no_grad():
        for part in (other.encoder.body.layers[1].feedforward, other.encoder.body.layers[1].attention.output):
            for parameter in part.parameters():
                parameter.normal_()
    inherit(student, kept(other, view))
    _, terms = terms_of(student, batch(view, *TEXTS), 2, 1)
    assert terms["attention"].item() == pytest.approx(0, abs=1e-6)
    assert terms["values"].item() == pytest.approx(0, abs=1e-6)


def test_only_what_stands_below_the_last_attention_is_taught(teacher, student, view):
    """All of the first layer, of the second the matrices of queries, keys and values, and of the
    layers that tell masked pieces all: these are taught by the score alone."""
    inherit(student, kept(teacher, view))
    student.train()
    pieces = batch(view, *TEXTS)
    step = Step({"labelled": Batch({"text": pieces}, None, np.arange(3), 3)}, progress=0.5, seed=7, passes=2)
    found = objective_of(student, Recipe()).losses(student, step)
    found["loss"].backward()
    taught = {n for n, p in student.encoder.named_parameters() if p.grad is not None and p.grad.any()}
    below = {n for n, _ in student.encoder.named_parameters() if not n.startswith(("body.layers.1.", "pooler"))}
    assert taught == below | {*QUERIES}
    assert all(p.grad.any() for p in student.head.parameters())
    assert all(p.requires_grad for p in student.parameters())
    expected = found["task"] + found["attention"] + found["values"]
    torch.testing.assert_close(found["loss"], expected)


def test_each_term_teaches_its_own_matrices(teacher, student, view):
    inherit(student, kept(teacher, view))
    _, terms = terms_of(student, batch(view, *TEXTS), 2, 1)
    parts = dict(student.encoder.body.layers[1].attention.named_modules())
    for name, matrices in {"attention": ("query", "key"), "values": ("value",)}.items():
        weights = [parts[part].weight for part in ("query", "key", "value")]
        slopes = torch.autograd.grad(terms[name], weights, retain_graph=True, materialize_grads=True)
        assert {p for p, slope in zip(("query", "key", "value"), slopes, strict=True) if slope.any()} == {*matrices}


def test_masked_pieces_are_told_and_teach_the_encoder_nothing(teacher, student, view):
    """Its vectors of pieces neither, which are the output layer of who tells them."""
    inherit(student, kept(teacher, view))
    pieces = batch(view, *TEXTS)
    logs, _ = terms_of(student, pieces, 4, 1)
    plain = small(MaskedPieces, student.encoder)
    plain.load_state_dict(student.head.learns.state_dict())
    torch.testing.assert_close(logs, plain(student.encoder, pieces, noise_of(pieces, 4, 1)).logs)
    slopes = torch.autograd.grad(logs.sum(), [*student.parameters()], allow_unused=True)
    taught = {n for (n, _), slope in zip(student.named_parameters(), slopes, strict=True) if slope is not None}
    assert taught == {n for n, _ in student.named_parameters() if n.startswith("head.")}


def test_both_read_the_texts_with_nothing_masked(teacher, student, view):
    inherit(student, kept(teacher, view))
    read: dict[str, list[Tensor]] = {"teacher": [], "student": []}
    for name, model in {"teacher": teacher, "student": student}.items():
        model.encoder.table.register_forward_hook(lambda m, inputs, o, name=name: read[name].append(inputs[0]))
    pieces = batch(view, *TEXTS)
    terms_of(student, pieces, 4, 1)
    assert len(read["teacher"]) == 1 and torch.equal(read["teacher"][0], pieces.ids)
    assert torch.equal(read["student"][0], pieces.ids) and not torch.equal(read["student"][1], pieces.ids)


def test_no_dropout_acts_on_what_is_compared(teacher, student, view):
    """Dropped weights would be no distribution."""
    inherit(student, kept(teacher, view))
    student.train()
    for module in student.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    student.encoder.body.layers[0].attention.dropout = 0.0
    student.encoder.body.layers[1].attention.dropout = 0.9
    pieces = batch(view, *TEXTS)
    found = terms_of(student, pieces, 4, 1)[1]
    expected = terms_of(student.eval(), pieces, 4, 1)[1]
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value)


@pytest.mark.parametrize("key", [(), (4, 1)])
def test_in_evaluation_and_without_a_teacher_it_tells_masked_pieces(teacher, student, view, key):
    """Of which the encoder learns then, where it has no teacher."""
    if not key:
        inherit(student, kept(teacher, view))
    plain = small(MaskedPieces, student.encoder)
    plain.load_state_dict(student.head.learns.state_dict())
    pieces = batch(view, *TEXTS)
    logs, terms = terms_of(student, pieces, *key)
    assert not terms
    expected = plain(student.encoder, pieces, noise_of(pieces, *key)).logs
    torch.testing.assert_close(logs, expected)
    assert torch.autograd.grad(logs.sum(), [student.encoder.body.layers[1].feedforward[0].weight])[0].any()
    assert LastAttention.unit == MaskedPieces.unit and LastAttention.packs


def test_a_teacher_with_another_number_of_heads_is_refused(student, view):
    with pytest.raises(ModelError, match="it has 2 heads, and minilm.heads is 4: there must be as many"):
        inherit(student, kept(on_text(BERT, view, layers=1, hidden=16, heads=2), view))


def test_it_begins_at_random_below_a_teacher_and_by_its_own_weights_in_tuning(teacher, student, view):
    before = {name: values.clone() for name, values in student.state_dict().items()}
    inherit(student, kept(teacher, view))
    assert all(torch.equal(values, before[name]) for name, values in student.state_dict().items())
    other = on_text(MiniLM, view, stretch=2.0, **STUDENT)
    student.encoder.inherit("weights", kept(other, view), [])
    for name, values in other.encoder.state_dict().items():
        assert torch.equal(student.encoder.state_dict()[name], values)


def test_published_weights_are_read(tmp_path):
    """The release is a BERT by its type."""
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=9,
        hidden_size=8,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=12,
        max_position_embeddings=16,
        initializer_range=0.5,
    )
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "##s", "sat"]
    saved(tmp_path, transformers.BertModel(config), pieces)
    assert_loads(MiniLM, tmp_path, ["the cats", "sat"], ["cat sat the", "cats"])


def test_teacher_and_student_are_planned_by_themselves(tmp_path: Path):
    planned = session(tmp_path, "minilm", tasks="sst2", protocol="paper").pending.run
    assert [(cell.architecture, cell.task) for cell in planned] == [
        ("bert", "text_mix"),
        ("minilm", "text_mix"),
        ("minilm", "sst2"),
    ]
    teacher, student, child = planned
    assert {role: parent["key"] for role, parent in student.parents.items()} == {"teacher": teacher.key}
    assert {role: parent["key"] for role, parent in child.parents.items()} == {"weights": student.key}
    parents = registry.entry("architectures", "minilm").parents
    assert MiniLM.default_parents(parents, {"pretrained": "folder"}) == {}
