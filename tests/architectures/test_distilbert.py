"""DistilBERT: states are those of transformers' model, it begins as one of each two layers of its
teacher, and its three losses are those of the paper, in values and gradients."""

from __future__ import annotations

import copy
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from architectures.blocks.objectives.distilled_pieces import DistilledPieces
from architectures.blocks.objectives.masked_pieces import MaskedPieces
from architectures.pretrained.bert import BERT
from architectures.pretrained.distilbert import DistilBERT, one_of_two
from harness import registry
from harness.errors import ModelError, UsageError
from harness.objectives import Step, collected_losses
from harness.problems.base import Batch
from harness.registry import Recipe
from harness.saved_models.teachers import Teacher
from harness.training.model import Model, objective_of
from harness.views.subwords import SubwordBatch, Subwords
from tests.support.models import small
from tests.support.plain_text import batch, noise_of
from tests.support.published import TABLES, assert_loads, layers, saved
from tests.support.same import assert_same
from tests.support.sessions import session
from tests.support.teaching import TEXTS, inherit, kept, on_text, view_of

transformers = pytest.importorskip("transformers")

SIZES = {"layers": 2, "hidden": 16, "heads": 4}
NAMES = {
    "embeddings.word_embeddings": "table",
    "embeddings.position_embeddings": "positions",
    "embeddings.LayerNorm": "norm",
} | {
    f"transformer.layer.{number}.{theirs}": f"body.layers.{number}.{ours}"
    for number in range(2)
    for theirs, ours in {
        "attention.q_lin": "attention.query",
        "attention.k_lin": "attention.key",
        "attention.v_lin": "attention.value",
        "attention.out_lin": "attention.output",
        "sa_layer_norm": "norms.0",
        "ffn.lin1": "feedforward.0",
        "ffn.lin2": "feedforward.3",
        "output_layer_norm": "norms.1",
    }.items()
}


@pytest.fixture(scope="module")
def view() -> Subwords:
    return view_of(*TEXTS)


@pytest.fixture
def teacher(view: Subwords) -> Model:
    return on_text(BERT, view, layers=4, hidden=16, heads=4)


@pytest.fixture
def student(view: Subwords) -> Model:
    return on_text(DistilBERT, view, **SIZES)


def reference_of(view: Subwords, masked: bool = False) -> Any:
    config = transformers.DistilBertConfig(
        vocab_size=view.width, dim=16, n_layers=2, n_heads=4, hidden_dim=64, max_position_embeddings=24
    )
    return (transformers.DistilBertForMaskedLM if masked else transformers.DistilBertModel)(config)


def called(reference: nn.Module, names: dict[str, str], model: nn.Module, pieces: SubwordBatch, **options: Any) -> Any:
    """What a reference makes of pieces with the parameters of a model, by our names of its
    modules."""
    ours = dict(model.named_parameters())
    weights = {}
    for name, _ in reference.named_parameters():
        place, _, kind = name.rpartition(".")
        weights[name] = ours[f"{names[place]}.{kind}"] if place in names else ours[names[name]]
    read = {"input_ids": pieces.ids, "attention_mask": pieces.mask.long()}
    return torch.func.functional_call(reference.eval(), weights, (), read | options)


# --- the encoder ---


def test_states_are_those_of_transformers(view):
    ours = small(DistilBERT, view.width, view, **SIZES)
    pieces = batch(view, *TEXTS)
    expected = called(reference_of(view), NAMES, ours, pieces).last_hidden_state
    assert_same(ours(pieces)[pieces.mask], expected[pieces.mask], rtol=1e-4, atol=1e-5)


def test_published_weights_are_read(tmp_path):
    torch.manual_seed(0)
    config = transformers.DistilBertConfig(
        vocab_size=9, dim=8, n_layers=3, n_heads=2, hidden_dim=12, max_position_embeddings=16, initializer_range=0.5
    )
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "##s", "sat"]
    saved(tmp_path, transformers.DistilBertModel(config), pieces)
    assert_loads(DistilBERT, tmp_path, ["the cats", "sat"], ["cat sat the", "cats"])


def test_dropouts_and_the_variance_of_norms_are_those_of_the_release(tmp_path):
    config = transformers.DistilBertConfig(
        vocab_size=9, dim=8, n_layers=1, n_heads=2, hidden_dim=12, max_position_embeddings=16, dropout=0.3
    )
    config.attention_dropout = 0.2
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "##s", "sat"]
    saved(tmp_path, transformers.DistilBertModel(config), pieces)
    view = DistilBERT.reads("text", {"pretrained": str(tmp_path), "max_length": 16})
    view.fit([])
    ours = DistilBERT(view.width, view)
    assert ours.dropout.p == 0.3 and ours.body.layers[0].attention.dropout == 0.2
    assert {norm.eps for norm in ours.modules() if isinstance(norm, nn.LayerNorm)} == {1e-12}


@pytest.mark.parametrize(("setting", "value"), [("activation", "relu")])
def test_a_release_that_would_answer_otherwise_here_is_refused(tmp_path, setting, value):
    config = transformers.DistilBertConfig(
        vocab_size=9, dim=8, n_layers=1, n_heads=2, hidden_dim=12, max_position_embeddings=16, **{setting: value}
    )
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "##s", "sat"]
    saved(tmp_path, transformers.DistilBertModel(config), pieces)
    view = DistilBERT.reads("text", {"pretrained": str(tmp_path), "max_length": 16})
    view.fit([])
    with pytest.raises(ValueError, match=f"{setting} is '{value}'"):
        DistilBERT(view.width, view)


def test_it_has_no_segments_and_no_pooler(view):
    """What the paper takes away beside every second layer."""
    ours = small(DistilBERT, view.width, view, **SIZES)
    top = {name.split(".")[0] for name, _ in ours.named_parameters()}
    assert top == {"table", "positions", "norm", "body"}
    pairs = view.collate_pair(view.encode(TEXTS), view.encode(TEXTS[::-1]), range(3))
    assert pairs.segments.any()
    assert torch.equal(ours(pairs), ours(pairs._replace(segments=torch.zeros_like(pairs.segments))))
    states = ours(pairs)
    assert torch.equal(ours.pooled(states), states[:, 0])
    ours.train()
    dropped = (ours.pooled(torch.ones(400, 2, 16)) == 0).double().mean().item()
    assert dropped == pytest.approx(0.1, abs=0.02)


# --- the start ---


@pytest.mark.parametrize(
    ("layers", "of", "chosen"),
    [(6, 12, [0, 2, 4, 7, 9, 11]), (2, 4, [0, 3]), (4, 4, [0, 1, 2, 3]), (1, 4, [0]), (3, 6, [0, 2, 5])],
)
def test_one_layer_of_two_is_taken(layers, of, chosen):
    """Of twelve those that the authors' program takes."""
    assert one_of_two(layers, of) == chosen


def test_it_begins_as_one_of_two_layers_of_its_teacher(teacher, student, view):
    """The paper's ablation: at random it loses more than without any of its losses."""
    inherit(student, kept(teacher, view))
    theirs, ours = teacher.encoder.state_dict(), student.encoder.state_dict()
    named = {name: name for name in ours if not name.startswith("body")}
    for mine, its in ((0, 0), (1, 3)):
        named |= {n: n.replace(f"layers.{mine}", f"layers.{its}") for n in ours if n.startswith(f"body.layers.{mine}.")}
    assert named.keys() == ours.keys()
    for mine, its in named.items():
        assert torch.equal(ours[mine], theirs[its]), mine
    scores = student.head.learns.scores.state_dict()
    for name, values in teacher.head.learns.scores.state_dict().items():
        assert torch.equal(scores[name], values), name


def test_a_teacher_of_another_width_is_refused_by_name(student, view):
    wide = on_text(BERT, view, layers=4, hidden=20, heads=4)
    with pytest.raises(ModelError, match=r"encoder.table: weight has size \[42, 20\] in the file and size \[42, 16\]"):
        inherit(student, kept(wide, view))


def test_its_own_weights_are_taken_whole(student, view):
    other = on_text(DistilBERT, view, stretch=2.0, **SIZES)
    student.encoder.inherit("weights", kept(other, view), [])
    for name, values in other.encoder.state_dict().items():
        assert torch.equal(student.encoder.state_dict()[name], values)


# --- the losses ---


def losses(student: Model, pieces: SubwordBatch, *key: int) -> tuple[Tensor, dict[str, Tensor]]:
    """The logarithms that the objective gives, and its further terms."""
    with collected_losses() as terms:
        logs, _ = student.head.learns(student.encoder, pieces, noise_of(pieces, *key))
    return logs, terms


def moved(model: Model) -> None:
    """Other weights than the teacher's."""
    torch.manual_seed(3)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))


def by_transformers(teacher: Model, student: Model, pieces: SubwordBatch, key: tuple[int, ...]) -> tuple[Tensor, ...]:
    """The three losses by the equations, of what transformers' two masked models say."""
    view = student.encoder.view
    noise = noise_of(pieces, *key)
    chosen = MaskedPieces.chosen(pieces, view, noise)
    read = pieces._replace(ids=MaskedPieces.hidden(pieces.ids, chosen, view, noise))
    assert (read.ids != pieces.ids).any() and not chosen[~pieces.mask].any()

    names = {f"distilbert.{theirs}": f"encoder.{ours}" for theirs, ours in NAMES.items()}
    names |= {
        "vocab_transform": "head.learns.scores.transform.0",
        "vocab_layer_norm": "head.learns.scores.transform.2",
        "vocab_projector.bias": "head.learns.scores.bias",
    }
    found = called(reference_of(view, masked=True), names, student, read, output_hidden_states=True)

    config = transformers.BertConfig(
        vocab_size=view.width,
        hidden_size=16,
        num_hidden_layers=4,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=24,
    )
    names = {f"bert.{theirs}": f"encoder.{ours}" for theirs, ours in (TABLES | layers(4)).items()}
    names |= {
        "cls.predictions.transform.dense": "head.learns.scores.transform.0",
        "cls.predictions.transform.LayerNorm": "head.learns.scores.transform.2",
        "cls.predictions.bias": "head.learns.scores.bias",
    }
    with torch.no_grad():
        wanted = called(transformers.BertForMaskedLM(config), names, teacher, read, output_hidden_states=True)

    soft, cosines, count = torch.zeros(()), torch.zeros(()), int(pieces.mask.sum())
    for row, place in pieces.mask.nonzero().tolist():
        t, s = ((each.logits[row, place] / 2).exp() for each in (wanted, found))
        t, s = t / t.sum(), s / s.sum()
        soft = soft + (t * (t / s).log()).sum() * 4 / count
        u, v = (each.hidden_states[-1][row, place] for each in (wanted, found))
        cosines = cosines + (1 - (u * v).sum() / ((u * u).sum() * (v * v).sum()) ** 0.5) / count
    masked = found.logits.log_softmax(-1)[chosen][range(int(chosen.sum())), pieces.ids[chosen]]
    return masked, 5 * soft, cosines


def test_the_losses_are_the_equations_of_what_transformers_models_say(teacher, student, view):
    """At every real piece of the masked text, padding left out; the teacher reads what the student
    reads."""
    inherit(student, kept(teacher, view))
    moved(student)
    pieces = batch(view, *TEXTS)
    logs, terms = losses(student, pieces, 4, 1)
    masked, soft, cosines = by_transformers(teacher, student, pieces, (4, 1))
    assert soft > 0.1 and cosines > 0.01
    assert_same(logs, masked, rtol=1e-4, atol=1e-4)
    assert_same(terms["soft targets"], soft, rtol=1e-4, atol=1e-5)
    assert_same(terms["states"], cosines, rtol=1e-4, atol=1e-5)
    assert terms.keys() == {"soft targets", "states"}


def test_the_loss_of_a_step_is_two_of_masked_pieces_five_of_soft_targets_and_one_of_states(teacher, student, view):
    inherit(student, kept(teacher, view))
    moved(student)
    pieces = batch(view, *TEXTS)
    found = objective_of(student, Recipe()).losses(
        student, Step({"labelled": Batch({"text": pieces}, None, range(3), 9)}, 0.1, None, 4, 1)
    )
    masked, soft, cosines = by_transformers(teacher, student, pieces, (4, 1))
    torch.testing.assert_close(found["loss"], -2 * masked.mean() + soft + cosines, rtol=1e-4, atol=1e-4)


class Fixed(nn.Module):
    """Scores of pieces and states that are given."""

    def __init__(self, scores: list[float], states: list[float]):
        super().__init__()
        self.given, self.state = nn.Parameter(torch.tensor(scores)), torch.tensor(states)

    def forward(self, pieces: SubwordBatch) -> Tensor:
        return self.state.expand(*pieces.ids.shape, -1)

    def scores(self, encoder: Any, states: Tensor) -> Tensor:
        return self.given.expand(len(states), -1)


def told(view: Subwords, teacher: Fixed, student: Fixed) -> dict[str, float]:
    learns = DistilledPieces.__new__(DistilledPieces)
    nn.Module.__init__(learns)
    learns.scores = student
    head = SimpleNamespace(learns=SimpleNamespace(scores=teacher))
    model = nn.Module()
    model.encoder = teacher
    model.head = head
    learns.teacher = Teacher(SimpleNamespace(model=model))
    student.view = view
    with collected_losses() as terms:
        learns(student, pieces := batch(view, *TEXTS), noise_of(pieces, 1, 1))
    return {name: term.item() for name, term in terms.items()}


@pytest.mark.parametrize(("temperature", "squared", "alike"), [(2.0, 4, 1.0), (3.0, 9, 4.0)])
def test_soft_targets_by_hand(view, monkeypatch, temperature, squared, alike):
    """Scores of 2 ln 3 and 0 are 3/4 and 1/4 at temperature 2, and the square of 2 is 4; states at
    60 degrees have a cosine of a half."""
    monkeypatch.setattr(DistilledPieces, "temperature", temperature)
    monkeypatch.setattr(DistilledPieces, "alike", alike)
    others = [-1e9] * (view.width - 2)
    teacher = Fixed([temperature * math.log(3), 0.0, *others], [2.0, 0.0])
    student = Fixed([0.0, 0.0, *others], [1.5, 1.5 * math.sqrt(3)])
    found = told(view, teacher, student)
    divergence = 0.75 * math.log(1.5) + 0.25 * math.log(0.5)
    assert found["soft targets"] == pytest.approx(5 * squared * divergence, rel=1e-4)
    assert found["states"] == pytest.approx(alike / 2, rel=1e-4)


def test_who_thinks_as_its_teacher_has_nothing_to_learn_of_it(view, student):
    """Equal scores, also moved by a constant, have no divergence; nor have states of another
    length."""
    inherit(student, kept(copy.deepcopy(student), view))
    _, terms = losses(student, batch(view, *TEXTS), 2, 1)
    assert terms["soft targets"].item() == pytest.approx(0, abs=1e-4)
    assert terms["states"].item() == pytest.approx(0, abs=1e-5)
    scores = torch.randn(view.width).tolist()
    found = told(view, Fixed(scores, [1.0, 2.0]), Fixed([score + 3 for score in scores], [2.0, 4.0]))
    assert found["soft targets"] == pytest.approx(0, abs=1e-4) and found["states"] == pytest.approx(0, abs=1e-6)


def test_other_pieces_are_masked_at_each_pass(teacher, student, view):
    inherit(student, kept(teacher, view))
    pieces = batch(view, *TEXTS)
    first, again, other = (losses(student, pieces, 4, number)[1]["soft targets"].item() for number in (1, 1, 2))
    assert first == again != other
    assert DistilBERT.learns is DistilledPieces and DistilledPieces.packs and issubclass(DistilledPieces, MaskedPieces)


@pytest.mark.parametrize("key", [(), (4, 1)])
def test_in_evaluation_and_without_a_teacher_it_tells_masked_pieces(teacher, student, view, key):
    """The score is that of every model that tells masked pieces, and asks no teacher."""
    if not key:
        inherit(student, kept(teacher, view))
    plain = small(MaskedPieces, student.encoder)
    plain.load_state_dict(student.head.learns.state_dict())
    pieces = batch(view, *TEXTS)
    logs, terms = losses(student, pieces, *key)
    assert not terms
    torch.testing.assert_close(logs, plain(student.encoder, pieces, noise_of(pieces, *key)).logs)


# --- the teacher ---


def test_the_teacher_stays_as_it_is_and_no_part_of_the_student(student, view):
    teacher = on_text(BERT, view, layers=4, hidden=16, heads=4, dropout=0.5)
    names, count = set(student.state_dict()), sum(p.numel() for p in student.parameters())
    before = {name: values.clone() for name, values in teacher.state_dict().items()}
    inherit(student, kept(teacher.train(), view))
    assert set(student.state_dict()) == names and sum(p.numel() for p in student.parameters()) == count
    pieces = batch(view, *TEXTS)
    student.train().requires_grad_(True)
    for module in student.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    for layer in student.encoder.body.layers:
        layer.attention.dropout = 0.0
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
    logs, terms = losses(student, pieces, 2, 1)
    assert terms["soft targets"].item() == losses(student, pieces, 2, 1)[1]["soft targets"].item(), "no dropout"
    (terms["soft targets"] + terms["states"] - logs.mean()).backward()
    optimizer.step()
    assert not teacher.training and not any(p.requires_grad or p.grad is not None for p in teacher.parameters())
    assert all(torch.equal(before[name], values) for name, values in teacher.state_dict().items())
    assert copy.deepcopy(student).head.learns.teacher is student.head.learns.teacher


def test_teacher_and_student_are_planned_by_themselves(tmp_path: Path):
    """A teacher where plain text is read, and nowhere else."""
    planned = session(tmp_path, "distilbert", tasks="sst2,ag_news", protocol="paper").pending.run
    assert [(cell.architecture, cell.task) for cell in planned] == [
        ("bert", "text_mix"),
        ("distilbert", "text_mix"),
        ("distilbert", "sst2"),
        ("distilbert", "ag_news"),
    ]
    teacher, student, *children = planned
    assert {role: parent["key"] for role, parent in student.parents.items()} == {"teacher": teacher.key}
    for child in children:
        assert {role: parent["key"] for role, parent in child.parents.items()} == {"weights": student.key}
    with pytest.raises(UsageError, match="distilbert takes no parent in the role teacher; it takes weights"):
        session(tmp_path, "distilbert", "teacher=bert", tasks="sst2", protocol="paper")
    (alone,) = session(tmp_path, "distilbert", "teacher=none", tasks="text_mix", protocol="paper").pending.run
    assert not alone.parents
    parents = registry.entry("architectures", "distilbert").parents
    assert DistilBERT.default_parents(parents, {"pretrained": "folder"}) == {}
