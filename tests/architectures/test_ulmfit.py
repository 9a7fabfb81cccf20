"""ULMFiT: an LSTM with dropped weights learns from plain text, then from the task's, and under a
classifier, layer after layer from the top and each at its own rate."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from architectures.pretrained.ulmfit import (
    AWDLSTM,
    BatchNorm,
    GradualTuning,
    NextWordByVectors,
    ULMFiT,
    WeightDropLSTM,
    WordVectors,
    locked_dropout,
)
from harness import registry
from harness.layers.noise import Noise
from harness.objectives import Step
from harness.problems import problem
from harness.problems.base import Batch
from harness.problems.classify import ClassTarget
from harness.settings import TrainingSettings
from harness.training.model import Model, build, objective_of
from harness.training.optimizers import exempt, learning_rate_factor, optimizer, parameter_groups
from harness.views.subwords import SubwordBatch
from harness.views.whole_words import WholeWords
from tests.support.models import small
from tests.support.oracles import lstm
from tests.support.plain_text import batch
from tests.support.same import assert_same

TEXTS = ["the cat sat on the mat", "a dog ran", "mat"]
DROPOUTS = ("word_dropout", "input_dropout", "hidden_dropout", "weight_dropout", "dropout", "dense_dropout")
SIZES = {"embedding": 4, "hidden": 6, "layers": 3, "dense": 5} | dict.fromkeys(DROPOUTS, 0.0)


@pytest.fixture(scope="module")
def view() -> WholeWords:
    made = WholeWords(size=60, max_length=24)
    made.fit(TEXTS)
    return made


@pytest.fixture
def model(view: WholeWords) -> ULMFiT:
    return small(ULMFiT, view.width, view, **SIZES)


def states_of(model: ULMFiT, ids: Tensor) -> Tensor:
    """States (n, size) of the highest layer at the words of one text, in loops."""
    states = model.network.embedded.table.weight[ids]
    for layer in model.network.layers:
        states = lstm(layer, states)
    return states


# --- the language model ---


def test_each_word_is_foretold_by_the_vectors_of_words_from_the_state_before_it(view, model):
    """Through three layers, written out, the last as wide as the vectors: a softmax over the
    products with all vectors."""
    pieces, objective = batch(view, *TEXTS), NextWordByVectors(model)
    logs, texts = objective(model, pieces, Noise(pieces.ids, pieces.mask))
    expected = []
    for row, length in enumerate(pieces.lengths.tolist()):
        states = states_of(model, pieces.ids[row, :length])
        for place in range(1, length):
            scores = model.network.embedded.table.weight @ states[place - 1]
            expected.append(scores[pieces.ids[row, place]] - scores.exp().sum().log())
    assert_same(logs, torch.stack(expected), rtol=1e-4, atol=1e-4)
    assert texts.bincount().tolist() == [7, 4, 2]
    assert [(layer.input_size, layer.hidden_size) for layer in model.network.layers] == [(4, 6), (6, 6), (6, 4)]
    assert not list(objective.parameters()) and objective.unit == "words" and objective.packs


def test_weights_from_state_to_state_are_dropped_the_same_at_all_words_and_no_others():
    """An LSTM written out, with the mask that the seed draws; in evaluation there is none."""
    layer = small(WeightDropLSTM, 3, 4, weight_dropout=0.5).train()
    vectors = torch.randn(2, 6, 3)
    torch.manual_seed(3)
    found = layer(vectors)
    torch.manual_seed(3)
    mask = F.dropout(torch.ones(16, 4), 0.5)
    assert 0.3 < (mask == 0).float().mean() < 0.7
    for row, text in enumerate(vectors):
        h = c = torch.zeros(4)
        states = []
        for x in text:
            gates = layer.weight_ih_l0 @ x + layer.bias_ih_l0 + (layer.weight_hh_l0 * mask) @ h + layer.bias_hh_l0
            i, f, g, o = gates.chunk(4)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
            states.append(h)
        assert_same(found[row], torch.stack(states), rtol=1e-4, atol=1e-5)
    assert not torch.allclose(layer(vectors), found), "each pass drops others"
    torch.testing.assert_close(layer.eval()(vectors)[0], lstm(layer, vectors[0]))


def test_a_dropped_word_is_dropped_wherever_it_stands_and_numbers_in_a_whole_text():
    torch.manual_seed(0)
    ids = torch.arange(400).repeat(2, 2)
    words = WordVectors(400, 50, word_dropout=0.2, dropout=0.0).train()
    found, table = words(ids), words.table.weight
    gone = (found == 0).all(-1)
    assert torch.equal(gone[0, :400], gone[0, 400:]) and torch.equal(gone[0], gone[1])
    assert gone.float().mean().item() == pytest.approx(0.2, abs=0.06)
    torch.testing.assert_close(found[~gone], table[ids][~gone] / 0.8)
    numbers = WordVectors(400, 50, word_dropout=0.0, dropout=0.4).train()
    zeros = numbers(ids) == 0
    assert (zeros == zeros[:, :1]).all() and not torch.equal(zeros[0], zeros[1])
    assert zeros.float().mean().item() == pytest.approx(0.4, abs=0.12)
    torch.testing.assert_close(numbers.eval()(ids), numbers.table.weight[ids])


def test_states_lose_the_same_numbers_at_all_words_of_a_text_between_the_layers():
    """At the rate of the layers, the others at none."""
    torch.manual_seed(0)
    network = AWDLSTM(9, 60, 70, 2, 0.0, 0.0, 0.3, 0.0).train()
    read: list[Tensor] = []
    for layer in network.layers:
        layer.register_forward_pre_hook(lambda module, inputs: read.append(inputs[0]))
    ids = torch.randint(9, (20, 7))
    states = network(ids)
    zeros = read[1] == 0
    assert not (read[0] == 0).any() and not (states == 0).any()
    assert (zeros == zeros[:, :1]).all() and not (zeros[0] == zeros[1]).all()
    assert zeros.float().mean().item() == pytest.approx(0.3, abs=0.04)
    torch.testing.assert_close(read[1][~zeros], (network.layers[0](read[0]) / 0.7)[~zeros])


def test_the_softmax_reads_states_with_one_mask_for_a_text(view, monkeypatch):
    """At the rate of the output."""
    seen: list[float] = []

    def noted(ones: Tensor, p: float, training: bool) -> Tensor:
        seen.append(p if training else 0.0)
        return ones

    rates = {"word_dropout": 0.11, "input_dropout": 0.12, "hidden_dropout": 0.13, "weight_dropout": 0.14}
    model = small(ULMFiT, view.width, view, **SIZES | rates | {"dropout": 0.15, "dense_dropout": 0.16})
    pieces = batch(view, *TEXTS)
    monkeypatch.setattr(F, "dropout", noted)
    for training in (True, False):
        seen.clear()
        NextWordByVectors(model)(model.train(training), pieces, Noise(pieces.ids, pieces.mask))
        expected = [0.11, 0.12, 0.14, 0.13, 0.14, 0.13, 0.14, 0.15]
        assert seen == (expected if training else [0.0] * 8)
    monkeypatch.undo()
    torch.manual_seed(0)
    mask = locked_dropout(torch.ones(2, 9, 400), 0.25, True)
    assert (mask == mask[:, :1]).all() and sorted(mask.unique().tolist()) == pytest.approx([0.0, 4 / 3])


# --- the classifier ---


def normed(vectors: Tensor, norm: Any) -> Tensor:
    """Batch norm of rows, written out."""
    centred = vectors - vectors.mean(0)
    return centred / (centred.square().mean(0) + 1e-5).sqrt() * norm.weight + norm.bias


def test_a_text_is_the_last_state_the_maximum_and_the_mean_through_two_norms_and_a_layer(view, model):
    """[h_T; max; mean] of the words of each text alone."""
    pieces = batch(view, *TEXTS)
    rows = []
    for row, length in enumerate(pieces.lengths.tolist()):
        states = states_of(model, pieces.ids[row, :length])
        rows.append(torch.cat([states[-1], states.amax(0), states.sum(0) / length]))
    joined = torch.stack(rows)
    first, _, dense, _, second, _ = model.pooler
    expected = normed((normed(joined, first) @ dense.weight.T + dense.bias).clamp(min=0), second)
    assert_same(model.train().vector(pieces), expected, rtol=1e-3, atol=1e-4)
    assert model.size == 5 and (model.pooler[1].p, model.pooler[5].p) == (0.0, 0.0)


def test_a_row_that_is_alone_in_its_batch_is_normed_by_those_before():
    """The last batch of a pass may have one row, which has no deviation."""
    torch.manual_seed(0)
    norm = BatchNorm(3).train()
    with torch.no_grad():
        norm.weight.copy_(torch.tensor([1.0, 2.0, 3.0]))
        norm.bias.copy_(torch.tensor([0.5, 0.0, -1.0]))
    for _ in range(5):
        norm(torch.randn(20, 3) * 4 + 1)
    mean, variance = norm.running_mean.clone(), norm.running_var.clone()
    row = torch.randn(1, 3, requires_grad=True)
    found = norm(row)
    assert_same(found, (row - mean) / (variance + 1e-5).sqrt() * norm.weight + norm.bias)
    assert torch.equal(norm.running_mean, mean) and torch.equal(norm.running_var, variance)
    torch.testing.assert_close(norm.eval()(row), found)


# --- tuning ---


def model_of(view: WholeWords, **settings: Any) -> Model:
    torch.manual_seed(0)
    target = ClassTarget()
    target.labels = ["a", "b"]
    return build(ULMFiT, problem("classify"), SIZES | settings, view, target, 100)


def step_of(pieces: SubwordBatch, progress: float) -> Step:
    rows = Batch({"text": pieces}, torch.tensor([0, 1, 0]), np.arange(3), 9)
    return Step({"labelled": rows}, progress, None, 3, 2)


def learning(model: Model, objective: GradualTuning, pieces: SubwordBatch, progress: float) -> set[str]:
    """Names of the parts that have a gradient at a step."""
    for parameter in model.parameters():
        parameter.grad = None
    objective.losses(model, step_of(pieces, progress))["loss"].backward()
    names = [name for name, parameter in model.named_parameters() if parameter.grad is not None]
    parts = ("embedded", "layers.0", "layers.1", "layers.2", "pooler", "head")
    found = {part for part in parts if any(part in name for name in names)}
    for part in found:
        assert all(p.grad is not None for name, p in model.named_parameters() if part in name)
    return found


def test_the_first_quarter_is_the_language_model_and_then_layers_thaw_one_by_one_from_the_top(view):
    """Of 20 passes five foretell words; in the sixth the classifier learns alone, in the seventh
    the highest layer with it, and the vectors of words learn from the tenth on."""
    model, pieces = model_of(view), batch(view, *TEXTS)
    objective: Any = objective_of(model, TrainingSettings())
    assert isinstance(objective, GradualTuning)
    network = {"embedded", "layers.0", "layers.1", "layers.2"}
    expected = [network] * 5 + [{"pooler", "head"}]
    expected += [expected[-1] | {"layers.2"}, expected[-1] | {"layers.1", "layers.2"}]
    expected += [expected[-1] | {"layers.0"}] + [network | {"pooler", "head"}] * 11
    for number, parts in enumerate(expected):
        for share in (0.0, 0.99):
            assert learning(model, objective, pieces, (number + share) / 20) == parts, number


def test_the_language_model_learns_from_the_rows_of_the_task_by_the_weights_that_the_classifier_reads(view):
    """Its loss is the mean surprise of their words; the supervised loss is the head's own."""
    model, pieces = model_of(view), batch(view, *TEXTS)
    objective: Any = objective_of(model, TrainingSettings())
    found = objective.losses(model, step_of(pieces, 0.2))
    assert found.keys() == {"loss"}
    weights, logs = model.encoder.network.embedded.table.weight, []
    for row, length in enumerate(pieces.lengths.tolist()):
        scores = (states_of(model.encoder, pieces.ids[row, :length]) @ weights.T).log_softmax(-1)
        logs += [scores[place, pieces.ids[row, place + 1]] for place in range(length - 1)]
    assert_same(found["loss"], -torch.stack(logs).mean(), rtol=1e-4, atol=1e-5)
    tuned = objective.losses(model, step_of(pieces, 0.9))["loss"]
    expected = model.head.loss(model.encoder, model({"text": pieces}), torch.tensor([0, 1, 0]))
    assert_same(tuned, expected, rtol=1e-4, atol=1e-5)


def test_what_is_kept_still_answers_as_it_did(view):
    """Thawing is a matter of gradients alone, and a language model that learns again thaws all."""
    model, pieces = model_of(view), batch(view, *TEXTS)
    objective: Any = objective_of(model, TrainingSettings())
    losses = [objective.losses(model, step_of(pieces, progress))["loss"].item() for progress in (0.26, 0.32, 0.9)]
    assert losses[0] == losses[1] == losses[2]
    objective.losses(model, step_of(pieces, 0.3))
    assert model.encoder.network.still == 3
    objective.losses(model, step_of(pieces, 0.1))
    assert model.encoder.network.still == 0


def test_the_rate_is_divided_by_2_6_from_layer_to_layer(view):
    """The classifier has the full one, the vectors of words that of 2.6 to the fourth."""
    model = model_of(view)
    recipe = registry.entry("architectures", "ulmfit").recipe
    groups = parameter_groups(model.named_parameters(), recipe, 0.01, exempt(model, ()))
    made = optimizer(groups, recipe, 0.01)
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    rates = {names[id(p)]: group["lr"] for group in made.param_groups for p in group["params"]}
    assert rates.keys() == dict(model.named_parameters()).keys()
    powers = {"pooler": 0, "head": 0, "layers.2": 1, "layers.1": 2, "layers.0": 3, "embedded": 4}
    for name, rate in rates.items():
        [power] = [power for part, power in powers.items() if part in name]
        assert rate == pytest.approx(0.01 / 2.6**power, rel=1e-4), name
    assert made.defaults["betas"] == (0.7, 0.99)


@pytest.mark.parametrize("task_type", ["classify", "text"])
def test_the_rate_rises_for_a_tenth_of_the_steps_and_falls_for_the_rest(task_type):
    """The paper's equation 3, with a ratio of 32: a step behind, since the first one counts."""
    entry = registry.entry("architectures", "ulmfit")
    recipe = entry.recipes.get(task_type, entry.recipe)
    steps = 50 * recipe.epochs
    factor, cut = learning_rate_factor(recipe, 50), steps // 10
    for step in range(steps):
        t = step + 1 if step < cut else step
        p = t / cut if t < cut else 1 - (t - cut) / (cut * (1 / 0.1 - 1))
        assert factor(step) == pytest.approx((1 + p * 31) / 32), step
    assert max(map(factor, range(steps))) == 1 == factor(cut - 1)


def test_it_starts_from_itself_on_plain_text_and_is_for_texts_with_classes(view, model):
    entry = registry.entry("architectures", "ulmfit")
    assert entry.parents == {"weights": "ulmfit@text_mix"}
    assert [type for type in ("text", "classify", "match", "tag", "extract") if ULMFiT.can_answer(type)] == [
        "text",
        "classify",
    ]
    read: Any = ULMFiT.reads("text", {"vocabulary": 77, "max_length": 33})
    assert isinstance(read, WholeWords) and (read.size, read.max_length) == (77, 33)
    with pytest.raises(ValueError, match="further=1.0: expected is a share"):
        ULMFiT(60, view, further=1.0)
    with pytest.raises(ValueError, match="thawing=0.0: expected is a share"):
        ULMFiT(60, view, thawing=0.0)


def test_without_further_passes_the_classifier_begins_at_once_and_thaws_at_its_own_pace(view):
    model, pieces = model_of(view, further=0.0, thawing=0.2), batch(view, *TEXTS)
    objective: Any = objective_of(model, TrainingSettings())
    found = []
    for progress in (0.0, 0.19, 0.2, 0.41, 0.61, 0.81):
        objective.losses(model, step_of(pieces, progress))
        found.append(model.encoder.network.still)
    assert found == [4, 4, 3, 2, 1, 0]


def test_epochs_of_the_language_model_alone_are_not_chosen_and_pilots_reach_the_classifier(view):
    """Its head would be compared as it began, by dev and by the pilots of the rates."""
    objective: Any = objective_of(model_of(view, further=0.4), TrainingSettings())
    assert objective.settled_after == 0.4 and objective.in_little
