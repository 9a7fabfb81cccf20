"""The recipe for BERT: which pieces of a long text are read, at which rate each layer learns, and
what is learnt from the task's own texts before it is tuned."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from architectures.blocks.head_and_tail import HeadAndTail
from architectures.blocks.objectives.next_sentence import NextSentence
from architectures.pretrained.bert import BERT
from architectures.pretrained.bert_finetune import BERTFinetune, FurtherPretraining
from harness import registry
from harness.layers.noise import Noise
from harness.objectives import Step
from harness.problems import problem
from harness.problems.base import Batch
from harness.problems.classify import ClassTarget
from harness.settings import TrainingSettings
from harness.training.model import Model, build, objective_of
from harness.training.optimizers import exempt, optimizer, parameter_groups
from harness.views.subwords import SubwordBatch, Subwords
from tests.support.same import assert_same

TEXTS = ["the cat sat on the mat. the dog sat on the cat", "a dog ran. the mat", "the cat ran"]
SIZES = {"layers": 3, "hidden": 16, "heads": 2, "dropout": 0.0}


@pytest.fixture(scope="module")
def view() -> HeadAndTail:
    made = HeadAndTail(size=60, max_length=16, head=4)
    made.fit(TEXTS * 3)
    return made


def model_of(view: HeadAndTail, **settings: Any) -> Model:
    torch.manual_seed(0)
    target = ClassTarget()
    target.labels = ["a", "b"]
    return build(BERTFinetune, problem("classify"), SIZES | settings, view, target, 100)


def batch_of(view: HeadAndTail, *texts: str) -> SubwordBatch:
    return view.collate(view.encode(list(texts)), np.arange(len(texts)))


def step_of(pieces: SubwordBatch, progress: float) -> Step:
    batch = Batch({"text": pieces}, torch.tensor([0, 1, 0]), np.arange(3), 9)
    return Step({"labelled": batch}, progress, None, 3, 2)


# --- long texts ---


def test_of_600_pieces_the_first_128_and_the_last_382_are_read():
    """The paper's choice (5.1): with [CLS] and [SEP] a sequence of 512."""
    view = HeadAndTail(size=2000, max_length=512, head=128)
    words = [f"{a}{b}" for a in "abcdefghijklmnopqrstuvwxy" for b in "abcdefghijklmnopqrstuvwx"]
    view.fit([" ".join(words * 3)])
    whole = [view.encode([word])["ids"][0].tolist() for word in words]
    assert len(words) == 600 and all(len(ids) == 1 for ids in whole)
    expected = [ids[0] for ids in [*whole[:128], *whole[218:]]]
    pieces = view.collate(view.encode([" ".join(words), "aa"]), np.array([0, 1]))
    assert pieces.ids[0].tolist() == [view.start, *expected, view.separator]
    assert pieces.lengths.tolist() == [512, 3]


def test_a_text_that_fits_is_read_whole(view):
    fitting = " ".join(["cat"] * view.room)
    ids = batch_of(view, fitting).ids[0]
    assert len(ids) == 16 and (ids[1:-1] == ids[1]).all()
    longer = batch_of(view, f"dog dog dog dog mat {fitting}").ids[0]
    assert (longer[1:5] == view.encode(["dog"])["ids"][0][0]).all() and (longer[5:-1] == ids[1]).all()


def test_a_text_whose_words_are_told_is_read_as_another_view_reads_it(view):
    """Its words are numbered by their first pieces: those behind a gap would have others."""
    words = TEXTS[0].split() * 3
    found, expected = view.encode([words]), Subwords.encode(view, [words])
    assert {*found} == {*expected} >= {"ids", "firsts"}
    assert all(found[name][0].tolist() == expected[name][0].tolist() for name in expected)


def test_a_head_that_leaves_no_tail_is_refused(view):
    with pytest.raises(ValueError, match="head=14: expected is less than the 14 pieces of a text"):
        view.changed({"head": 14}).encode(["a"])


def test_the_head_is_a_setting():
    view: Any = BERTFinetune.reads("text", {"head": 5, "max_length": 40})
    assert (view.head, view.room) == (5, 38) and HeadAndTail().head == 32


# --- rates ---


def test_the_rate_falls_from_layer_to_layer_and_not_for_vectors_and_pooler(view):
    """0.95 for each layer down (5.3); the authors' program has the full rate for all else."""
    model = model_of(view)
    recipe = registry.entry("architectures", "bert_finetune").recipe
    groups = parameter_groups(model.named_parameters(), recipe, 2e-5, exempt(model, recipe.decay_exempt))
    made = optimizer(groups, recipe, 2e-5)
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    rates = {names[id(p)]: group["lr"] for group in made.param_groups for p in group["params"]}
    assert rates.keys() == dict(model.named_parameters()).keys()
    for name, rate in rates.items():
        layer = name.removeprefix("encoder.body.layers.")
        power = 3 - int(layer[0]) if layer != name else 0
        assert rate == pytest.approx(2e-5 * 0.95**power), name


# --- further pre-training ---


def log_probabilities(objective: FurtherPretraining, model: Model, states: Tensor) -> Tensor:
    """Those of all pieces by the equations: dense layer, GELU, norm, table, bias."""
    weights = dict(objective.named_parameters())
    dense = states @ weights["learns.scores.transform.0.weight"].T + weights["learns.scores.transform.0.bias"]
    dense = dense * (1 + torch.erf(dense / math.sqrt(2))) / 2
    centred = dense - dense.mean(-1, keepdim=True)
    normed = centred / (centred.square().mean(-1, keepdim=True) + 1e-12).sqrt()
    normed = normed * weights["learns.scores.transform.2.weight"] + weights["learns.scores.transform.2.bias"]
    return (normed @ model.encoder.table.weight.T + weights["learns.scores.bias"]).log_softmax(-1)


def test_the_first_half_learns_from_the_texts_and_the_second_from_the_labels(view):
    """In values and gradients; the head learns nothing in the first half."""
    model = model_of(view)
    objective: Any = objective_of(model, TrainingSettings())
    assert isinstance(objective, FurtherPretraining)
    pieces = batch_of(view, *TEXTS)
    found = objective.losses(model, step_of(pieces, 0.49))
    noise = Noise(pieces.ids, pieces.mask, (3, 2))
    learns: NextSentence = objective.learns
    pairs, strange = learns.pairs(pieces, view, noise)
    chosen = learns.chosen(pairs, view, noise)
    states = model.encoder(pairs._replace(ids=learns.hidden(pairs.ids, chosen, view, noise)))
    logs = log_probabilities(objective, model, states[chosen])
    masked = -logs[range(len(logs)), pairs.ids[chosen]].mean()
    vectors = torch.tanh(states[:, 0] @ model.encoder.pooler[0].weight.T + model.encoder.pooler[0].bias)
    scores = (vectors @ learns.output.weight.T + learns.output.bias).log_softmax(-1)
    following = -scores[range(3), strange].mean()
    assert_same(found["loss"], masked + following, rtol=1e-4, atol=1e-5)
    assert found.keys() == {"loss", "masked pieces", "next sentence"}
    gradients = torch.autograd.grad(found["loss"], list(model.head.parameters()), allow_unused=True)
    assert all(gradient is None for gradient in gradients)
    tuned = objective.losses(model, step_of(pieces, 0.5))
    expected = model.head.loss(model.encoder, model({"text": pieces}), torch.tensor([0, 1, 0]))
    assert tuned.keys() == {"loss"}
    assert_same(tuned["loss"], expected, rtol=1e-4, atol=1e-5)


def test_a_single_masked_piece_counts_whole(view):
    """The last batch of a training may be one short text."""
    model = model_of(view)
    objective: Any = objective_of(model, TrainingSettings())
    pieces = batch_of(view, "a cat")
    logs, _ = objective.learns(model.encoder, pieces, Noise(pieces.ids, pieces.mask, (3, 2)))
    assert len(logs) == 1
    assert_same(objective.losses(model, step_of(pieces, 0.1))["masked pieces"], -logs[0])


def test_other_pieces_are_masked_at_each_pass(view):
    model = model_of(view)
    objective: Any = objective_of(model, TrainingSettings())
    pieces = batch_of(view, *TEXTS)
    losses = [objective.losses(model, step_of(pieces, progress))["loss"].item() for progress in (0.1, 0.1, 0.2)]
    assert losses[0] == losses[1] == losses[2], "progress alone changes no masks"
    step = step_of(pieces, 0.1)
    step.passes = 3
    assert objective.losses(model, step)["loss"].item() != losses[0]


def test_without_further_pre_training_it_is_tuned_from_the_first_step(view):
    model = model_of(view, further=0.0)
    assert objective_of(model, TrainingSettings()).losses(model, step_of(batch_of(view, *TEXTS), 0.0)).keys() == {
        "loss"
    }
    with pytest.raises(ValueError, match="further=1.0: expected is a share"):
        BERTFinetune(60, view, further=1.0)


def test_it_begins_with_the_weights_of_bert_and_is_for_classes_alone(view):
    entry = registry.entry("architectures", "bert_finetune")
    assert entry.parents == {"weights": "bert@text_mix"}
    parent: Any = BERT(view.width, view, **SIZES)
    child = BERTFinetune(view.width, view, **SIZES)
    child.load_state_dict(parent.state_dict())
    assert BERTFinetune.can_answer("classify")
    assert not any(BERTFinetune.can_answer(type) for type in ("text", "match", "tag", "extract"))


def test_epochs_of_pre_training_alone_are_not_chosen_and_pilots_reach_the_head(view):
    """Its head would be compared as it began, by dev and by the pilots of the rates."""
    objective: Any = objective_of(model_of(view, further=0.3), TrainingSettings())
    assert objective.settled_after == 0.3 and objective.in_little
