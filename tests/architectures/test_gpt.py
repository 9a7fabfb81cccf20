"""GPT: the states are those of transformers' own model, no piece sees one behind it, and a task is
tuned with the next piece beside it."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest
import torch
from torch import Tensor

from architectures.pretrained.gpt import GPT, DirectedPieces, with_turned
from harness import registry
from harness.objectives import Supervised, collected_losses
from harness.problems import problem
from harness.problems.base import Target
from harness.problems.classify import ClassTarget
from harness.problems.regress import ScoreTarget
from harness.problems.tag import TagTarget
from harness.problems.text_objective import PieceTarget
from harness.training.model import Model, build
from harness.training.optimizers import exempt
from harness.views.subwords import SubwordBatch
from tests.support.models import small
from tests.support.same import assert_same
from tests.support.transformers_weights import assert_same_states_and_gradients

transformers = pytest.importorskip("transformers")

PIECES, CLS, SEP = 20, 2, 3
SIZES: dict[str, Any] = {"layers": 2, "hidden": 12, "heads": 3}


def made(both_orders: bool = False, stretch: float | None = 20.0, **sizes: Any) -> GPT:
    """A model for sequences of at most 16 pieces, in evaluation; weights begin near 0."""
    return small(GPT, PIECES, DirectedPieces(max_length=16, both_orders=both_orders), stretch=stretch, **SIZES, **sizes)


def batch_of(*texts: list[int] | tuple[list[int], list[int]]) -> SubwordBatch:
    """Texts, or pairs of them, as the view frames them, padded with piece 0."""
    rows = []
    for text in texts:
        a, b = text if isinstance(text, tuple) else (text, None)
        ids, segments = [CLS, *a, SEP], [0] * (len(a) + 2)
        if b is not None:
            ids, segments = [*ids, *b, SEP], segments + [1] * (len(b) + 1)
        rows.append((torch.tensor(ids), torch.tensor(segments)))
    ids, segments = (torch.nn.utils.rnn.pad_sequence(part, batch_first=True) for part in zip(*rows, strict=True))
    lengths = torch.tensor([len(ids) for ids, _ in rows])
    return SubwordBatch(ids, torch.arange(ids.shape[1]) < lengths[:, None], segments, lengths)


BATCH = batch_of([5, 6, 7, 8, 9, 5], [10, 11], [])
PAIRS = batch_of(([5, 6, 7], [8]), ([9], [10, 11, 12, 13]), ([], [14]))


# --- states ---


def reference() -> Any:
    """transformers' model with random weights that are not near zero."""
    torch.manual_seed(0)
    return transformers.OpenAIGPTModel(
        transformers.OpenAIGPTConfig(
            vocab_size=PIECES, n_positions=16, n_embd=12, n_layer=2, n_head=3, initializer_range=0.5
        )
    ).eval()


def test_states_and_gradients_are_those_of_transformers():
    """Another place of the norms, another GELU, or attention to what follows would be another
    model, into which trained weights could not be loaded."""
    assert_same_states_and_gradients(made(), reference(), BATCH)


def test_the_units_are_gelus_in_the_form_with_tanh():
    """The two forms differ by less than 0.001, so that states alone hardly tell them."""
    values = torch.linspace(-4, 4, 41)
    tanh = torch.tanh(math.sqrt(2 / math.pi) * (values + 0.044715 * values**3))
    unit = made().body.layers[0].feedforward[1]
    torch.testing.assert_close(unit(values), values * (1 + tanh) / 2)
    assert not torch.equal(unit(values), torch.nn.functional.gelu(values))


def test_a_later_piece_changes_no_earlier_state():
    """A model that sees the piece that it is asked for needs to learn nothing."""
    gpt = made()
    changed = BATCH.ids.clone()
    changed[0, 4] = 17
    before, after = gpt(BATCH), gpt(BATCH._replace(ids=changed))
    torch.testing.assert_close(before[0, :4], after[0, :4], rtol=0, atol=1e-6)
    assert ((before[0, 4:] - after[0, 4:]).abs().amax(1) > 1e-3).all(), "those behind see it"


@pytest.mark.parametrize("both_orders", [False, True])
def test_the_vector_of_a_text_is_that_of_the_text_alone(both_orders):
    gpt = made(both_orders)
    for row, length in enumerate(PAIRS.lengths):
        alone = SubwordBatch(*(field[row : row + 1, :length] for field in PAIRS[:3]), length[None])
        assert_same(gpt.vector(alone)[0], gpt.vector(PAIRS)[row])


def test_the_vector_of_a_text_is_the_state_at_its_last_piece():
    """Padding stands behind it, and the first piece knows nothing of the text."""
    gpt = made()
    states, vectors = gpt(BATCH), gpt.vector(BATCH)
    for row, length in enumerate((8, 4, 2)):
        assert BATCH.ids[row, length - 1] == SEP
        assert torch.equal(vectors[row], states[row, length - 1])


# --- pairs ---


def test_a_pair_is_turned_around():
    turned = with_turned(PAIRS)
    assert torch.equal(turned.ids[:3], PAIRS.ids)
    wanted = batch_of(([8], [5, 6, 7]), ([10, 11, 12, 13], [9]), ([14], []))
    for field, before, expected in zip(turned, PAIRS[:4], wanted, strict=False):
        assert torch.equal(field, torch.cat([before, expected]))


def test_vectors_of_both_orders_are_added():
    """ "Since there is no inherent ordering of the two sentences": the sum is the same whichever
    comes first."""
    gpt = made()
    other = batch_of(([8], [5, 6, 7]), ([10, 11, 12, 13], [9]), ([14], []))
    one, turned = gpt.vector(PAIRS), gpt.vector(other)
    assert not torch.allclose(one, turned, atol=1e-2)
    gpt.both_orders = True
    assert_same(gpt.vector(PAIRS), one + turned)
    assert_same(gpt.vector(PAIRS), gpt.vector(other))


def test_pairs_without_direction_alone_are_read_in_both_orders():
    """Entailment and answers have one: a premise is no hypothesis."""
    orders = {}
    for task in registry.entries("tasks").values():
        settings = {"max_length": 16}
        view = GPT.view_for(task, settings) if GPT.can_answer(task.type) else None
        if view is not None:
            orders[task.type] = view.both_orders
            assert view.max_length == 16
    assert {"classify", "match", "rank", "extract", "text"} <= orders.keys()
    assert not any(orders.values())
    similarity = dataclasses.replace(registry.entry("tasks", "snli"), type="regress_pair")
    assert GPT.view_for(similarity, {}).both_orders


# --- what is learnt ---


def labelled(target: Target, *labels: str) -> Target:
    target.labels = list(labels)
    return target


def scored() -> ScoreTarget:
    target = ScoreTarget()
    target.mean, target.deviation = 0.0, 1.0
    return target


def model_for(task_type: str, target: Target, both_orders: bool = False) -> Model:
    """The model of a task, without dropout."""
    torch.manual_seed(1)
    view = DirectedPieces(max_length=16, both_orders=both_orders)
    view.fit(["the cat sat on the mat"])
    settings = SIZES | {"dropout": 0.0, "max_length": 16}
    return build(GPT, problem(task_type), settings, view, target, 100).train()


def surprise(model: Model, batch: SubwordBatch) -> Tensor:
    """Mean over the texts of the mean surprise of a text's pieces, in loops."""
    states, table = model.encoder(batch), model.encoder.table.weight
    texts = []
    for ids, row, length in zip(batch.ids, states, batch.lengths.tolist(), strict=True):
        chances = [torch.softmax(table @ row[place], 0)[ids[place + 1]] for place in range(length - 1)]
        texts.append(-sum(chance.log() for chance in chances) / len(chances))
    return sum(texts) / len(texts)


def test_the_loss_is_that_of_the_task_and_half_that_of_the_next_piece():
    """L3 = L2 + 0.5 L1: the weight times the surprise, and not once for the batch but for each
    text."""
    model, gold = model_for("match", labelled(ClassTarget(), "a", "b")), torch.tensor([0, 1, 1])
    losses = Supervised().at(model, {"text": PAIRS}, gold)
    states = model.encoder(PAIRS)
    vectors = torch.stack([states[row, length - 1] for row, length in enumerate(PAIRS.lengths)])
    task = torch.nn.functional.cross_entropy(model.head.output(vectors), gold)
    assert losses.keys() == {"loss", "task", "language_model"}
    assert_same(losses["task"], task)
    assert_same(losses["language_model"], 0.5 * surprise(model, PAIRS))
    assert_same(losses["loss"], task + 0.5 * surprise(model, PAIRS))


def test_both_orders_are_learnt_from():
    model = model_for("regress_pair", scored(), both_orders=True)
    losses = Supervised().at(model, {"text": PAIRS}, torch.zeros(3))
    assert_same(losses["language_model"], 0.5 * surprise(model, with_turned(PAIRS)))


def test_in_evaluation_nothing_is_added():
    """The loss on dev by which a training ends early is the task's."""
    model = model_for("match", labelled(ClassTarget(), "a", "b")).eval()
    assert Supervised().at(model, {"text": PAIRS}, torch.tensor([0, 1, 1])).keys() == {"loss"}


def test_words_and_pre_training_have_no_second_loss():
    """In pre-training the next piece is the loss itself, which would count one and a half times."""
    text = model_for("text", PieceTarget())
    losses = Supervised().at(text, {"text": BATCH}, None)
    assert losses.keys() == {"loss"}
    logs = text.head(text.encoder, {"text": BATCH})[0].logs
    assert len(logs) == BATCH.mask.sum() - len(BATCH.ids)
    assert_same(losses["loss"], -logs.mean())
    tagger = model_for("tag", labelled(TagTarget(), "N", "V"))
    words = BATCH._replace(
        firsts=torch.tensor([[1, 2], [1, 0], [0, 0]]), word_mask=torch.tensor([[1, 1], [1, 0], [1, 0]]).bool()
    )
    with collected_losses() as terms:
        tagger.head(tagger.encoder, {"text": words})
    assert not terms


def test_a_text_is_asked_all_its_pieces_and_its_end():
    """A text of no pieces is asked its end alone, by the start piece."""
    text = model_for("text", PieceTarget()).eval()
    foretold, texts = text.head(text.encoder, {"text": BATCH})
    assert texts == 3 and foretold.texts.bincount().tolist() == [7, 3, 1]
    states, table = text.encoder(BATCH), text.encoder.table.weight
    expected = torch.log_softmax(states[2, 0] @ table.T, 0)[SEP]
    assert_same(foretold.logs[-1], expected)


# --- settings ---


def test_matrices_and_tables_decay_alone():
    recipe, model = registry.entry("architectures", "gpt").recipe, model_for("match", labelled(ClassTarget(), "a", "b"))
    vectors = {name for name, parameter in model.named_parameters() if parameter.dim() == 1}
    assert exempt(model, recipe.decay_exempt) == vectors


def test_a_child_begins_with_the_weights_of_its_parent():
    parent, child = model_for("text", PieceTarget()), model_for("match", labelled(ClassTarget(), "a", "b"))
    for parameter in parent.parameters():
        torch.nn.init.normal_(parameter)
    child.encoder.inherit("weights", type("Kept", (), {"model": parent}), [])
    for name, parameter in child.encoder.named_parameters():
        assert torch.equal(parameter, parent.encoder.get_parameter(name))


def test_dropout_stands_on_the_vector_that_is_read():
    """ "dropout 0.1 also on the classifier"."""
    gpt = made(dropout=0.5)
    gpt.dropout.train()
    vectors = torch.stack([gpt.vector(BATCH) for _ in range(20)])
    assert 0.4 < (vectors == 0).float().mean() < 0.6
