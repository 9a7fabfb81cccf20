"""ELECTRA: states are those of transformers' model, the generator writes what it takes for likely,
and the encoder is asked of every place whether it did."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from architectures.blocks.objectives.replaced_pieces import Generator, ReplacedPieces, drawn
from architectures.pretrained.electra import ELECTRA
from harness.layers.noise import Noise
from harness.objectives import Step, Supervised, collected_losses
from harness.problems import problem
from harness.problems.base import Batch
from harness.problems.text_objective import Foretold, FromText, PieceTarget
from harness.training.model import build
from harness.views.subwords import SubwordBatch, Subwords
from tests.support.models import small
from tests.support.plain_text import batch, noise_of
from tests.support.published import TABLES, assert_loads, layers, outputs, saved
from tests.support.same import assert_same

transformers = pytest.importorskip("transformers")

TEXTS = ["the cat sat on the mat and the dog sat on the cat", "a dog ran", "the mat"]
SIZES = {"layers": 2, "hidden": 16, "heads": 4, "embedded": 8}
PROJECTED = {"embeddings_project": "projection"}


@pytest.fixture(scope="module")
def view() -> Subwords:
    made = Subwords(size=60, max_length=24)
    made.fit(TEXTS)
    return made


@pytest.fixture
def electra(view: Subwords) -> ELECTRA:
    return small(ELECTRA, view.width, view, **SIZES)


@pytest.mark.parametrize("embedded", [6, 8])
def test_published_weights_are_read(tmp_path, embedded):
    """Large models have vectors of pieces as wide as states, and no matrix between them."""
    config = transformers.ElectraConfig(
        vocab_size=9,
        embedding_size=embedded,
        hidden_size=8,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=12,
        max_position_embeddings=16,
        initializer_range=0.5,
    )
    torch.manual_seed(0)
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "##s", "sat"]
    saved(tmp_path, transformers.ElectraModel(config), pieces)
    assert_loads(ELECTRA, tmp_path, ["the cats", "sat"], ["cat sat the", "cats"])


@pytest.fixture
def learns(electra: ELECTRA) -> ReplacedPieces:
    return small(ReplacedPieces, electra)


def config(view: Subwords, **changes: Any) -> Any:
    sizes = {
        "vocab_size": view.width,
        "embedding_size": 8,
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 64,
        "max_position_embeddings": 24,
    }
    return transformers.ElectraConfig(**(sizes | changes))


# --- the encoder ---


def test_states_are_those_of_transformers(view, electra):
    """Vectors that are narrower than the states, normed before they are widened: another order
    would not read a published model."""
    pieces = view.collate_pair(view.encode(TEXTS), view.encode(TEXTS[::-1]), np.arange(3))
    reference = outputs(
        transformers.ElectraModel(config(view)), TABLES | PROJECTED | layers(2), electra, pieces
    ).last_hidden_state
    assert_same(electra(pieces)[pieces.mask], reference[pieces.mask], rtol=1e-4, atol=1e-5)


def test_the_vector_of_a_text_is_its_first_state(view, electra):
    states = electra(batch(view, *TEXTS))
    assert_same(electra.pooled(states), states[:, 0])


def test_the_vector_of_a_text_is_dropped_in_training(view):
    electra = small(ELECTRA, view.width, view, **SIZES | {"dropout": 0.5}).train()
    assert electra.pooled(torch.ones(9, 2, 16)).unique().tolist() == [0, 2]


# --- the generator ---


def test_the_generator_is_transformers_masked_model_on_the_encoders_vectors(view, electra, learns):
    """Tables of its own would leave the encoder's pieces untaught by what the generator learns."""
    pieces = batch(view, *TEXTS)
    sizes = {"hidden_size": 4, "num_attention_heads": 1, "intermediate_size": 16}
    reference = transformers.ElectraForMaskedLM(config(view, **sizes))
    both = nn.ModuleDict({"encoder": electra, "generator": learns.generator})
    names = {f"electra.{theirs}": f"encoder.{ours}" for theirs, ours in TABLES.items()}
    names |= {f"electra.{theirs}": f"generator.{ours}" for theirs, ours in (PROJECTED | layers(2)).items()}
    names |= {
        "generator_predictions.dense": "generator.words.transform.0",
        "generator_predictions.LayerNorm": "generator.words.transform.2",
        "generator_lm_head": "generator.words",
    }
    expected = outputs(reference, names, both, pieces).logits
    assert_same(learns.generator(electra, pieces, pieces.mask), expected[pieces.mask], rtol=1e-4, atol=1e-4)


def test_the_generator_has_a_quarter_of_the_width_and_of_the_heads(view):
    generator = Generator(ELECTRA(view.width, view))
    assert generator.projection.out_features == 64 and generator.body.heads == 1
    assert generator.body.layers[0].feedforward[0].out_features == 256 and generator.body.depth == 4
    assert not [module for module in generator.modules() if isinstance(module, nn.Embedding)]


def test_pieces_are_drawn_with_the_probabilities_that_the_scores_say():
    """A generator that always writes its best guess would never show the encoder the others."""
    texts, wanted = 4000, torch.tensor([0.6, 0.3, 0.1])
    ids = torch.arange(texts * 3).view(texts, 3)
    places = torch.tensor([[True, False, True]]).expand(texts, 3)
    found = drawn(wanted.log().expand(2 * texts, 3), places, Noise(ids, torch.ones_like(places)))
    shares = found.bincount(minlength=3) / (2 * texts)
    assert ((shares - wanted).abs() < 4 * (wanted * (1 - wanted) / (2 * texts)).sqrt()).all()
    pairs = torch.stack([found[::2], found[1::2]])
    assert abs(torch.corrcoef(pairs.double())[0, 1]) < 4 / math.sqrt(texts)  # each place has numbers of its own


def test_a_text_has_the_same_pieces_drawn_in_another_batch(view, electra, learns):
    alone, beside = batch(view, TEXTS[1]), batch(view, *TEXTS)
    one, two = (learns.generated(electra, pieces, noise_of(pieces, 3, 1)) for pieces in (alone, beside))
    assert beside.ids.shape[1] > alone.ids.shape[1]
    assert torch.equal(one[0], two[1, : alone.ids.shape[1]])


# --- what is asked ---


class Certain(nn.Module):
    """A generator that is certain of one piece everywhere, and keeps what it read."""

    def __init__(self, piece: int, width: int):
        super().__init__()
        self.scores = F.one_hot(torch.tensor(piece), width) * 50.0

    def forward(self, encoder: Any, pieces: SubwordBatch, asked: Tensor) -> Tensor:
        self.read, self.asked = pieces.ids, asked
        return self.scores.expand(int(asked.sum()), -1)


def said_of(learns: ReplacedPieces, electra: ELECTRA, pieces: SubwordBatch, piece: int) -> tuple[Foretold, float]:
    """What is foretold by an encoder for which every place is replaced with log-odds of 2, and the
    generator's loss, when the generator writes that piece."""
    learns.generator = Certain(piece, electra.view.width)
    with torch.no_grad():
        learns.output[-1].weight.zero_()
        learns.output[-1].bias.fill_(2.0)
    with collected_losses() as terms:
        return learns.train()(electra, pieces, noise_of(pieces, 0, 1)), terms["generator"].item()


def test_a_piece_that_is_drawn_as_it_was_is_no_replaced_one(view, electra, learns):
    """By hand: of the seven equal pieces of the text one is asked. Where the generator writes it
    again all nine places are as they were; where it writes another one, this place alone is not."""
    pieces = batch(view, "cat cat cat cat cat cat cat")
    assert pieces.ids.shape == (1, 9)
    original, other = pieces.ids[0, 1].item(), view.unknown
    yes, no = math.log(1 / (1 + math.exp(-2))), math.log(1 / (1 + math.exp(2)))

    (logs, texts), loss = said_of(learns, electra, pieces, original)
    assert logs.tolist() == pytest.approx([no] * 9) and texts.tolist() == [0] * 9 and loss == pytest.approx(0, abs=1e-6)
    asked = learns.generator.asked[0]
    assert asked.sum() == 1 and not asked[[0, 8]].any()
    assert torch.equal(learns.generator.read[0] == view.mask, asked)

    (logs, _), loss = said_of(learns, electra, pieces, other)
    assert logs.tolist() == pytest.approx([yes if place else no for place in asked.tolist()])
    assert loss == pytest.approx(50, abs=1e-3)


def test_the_encoder_reads_the_text_with_the_drawn_pieces_in_it(view, electra, learns):
    """The mask is the generator's: the encoder never meets it, as in tuning."""
    pieces = batch(view, *TEXTS)
    read: list[Tensor] = []
    electra.register_forward_hook(lambda module, inputs, output: read.append(inputs[0].ids))
    _, loss = said_of(learns, electra, pieces, view.unknown)
    assert loss == pytest.approx(50, abs=1e-3), "of each piece that is asked"
    asked = learns.generator.asked
    assert torch.equal(read[0], torch.where(asked, view.unknown, pieces.ids))
    counts = [len(text) for text in view.encode(TEXTS)["ids"]]
    assert asked.sum(1).tolist() == [max(1, round(0.15 * count)) for count in counts]


def test_places_are_judged_as_by_transformers(view, electra, learns):
    """Every real place counts, and padding does not."""
    pieces = batch(view, *TEXTS)
    read = learns.at_random(pieces, view, noise_of(pieces))
    names = {f"electra.{theirs}": f"encoder.{ours}" for theirs, ours in (TABLES | PROJECTED | layers(2)).items()}
    names |= {
        "discriminator_predictions.dense": "learns.output.0",
        "discriminator_predictions.dense_prediction": "learns.output.2",
    }
    both = nn.ModuleDict({"encoder": electra, "learns": learns})
    reference = transformers.ElectraForPreTraining(config(view))
    scores = outputs(reference, names, both, pieces._replace(ids=read)).logits
    labels = (read != pieces.ids).to(scores.dtype)
    expected = -F.binary_cross_entropy_with_logits(scores, labels, reduction="none")[pieces.mask]
    logs, texts = learns(electra, pieces, noise_of(pieces))
    assert_same(logs, expected, rtol=1e-4, atol=1e-5)
    assert texts.bincount().tolist() == pieces.lengths.tolist() and labels.any()


def test_judging_teaches_the_generator_nothing_and_foretelling_not_the_layers(view, electra, learns):
    """The paper gives no gradient through the drawn pieces, which would make the two rivals; both
    losses teach the vectors that they share."""
    pieces = batch(view, *TEXTS)
    with collected_losses() as terms:
        logs, _ = learns.train()(electra, pieces, noise_of(pieces, 0, 1))
    shared = [electra.table.weight, electra.positions.weight]

    def taught(loss: Tensor, parameters: list[nn.Parameter]) -> list[bool]:
        found = torch.autograd.grad(loss, parameters, retain_graph=True, allow_unused=True)
        return [gradient is not None and bool(gradient.any()) for gradient in found]

    assert not any(taught(-logs.mean(), [*learns.generator.parameters()]))
    assert all(taught(terms["generator"], [*learns.generator.parameters(), *shared]))
    assert not any(taught(terms["generator"], [*electra.body.parameters(), *learns.output.parameters()]))
    assert all(taught(-logs.mean(), [*electra.body.layers.parameters(), *learns.output.parameters(), *shared]))


def test_the_loss_is_the_generators_and_fifty_times_the_mean_of_all_places(view):
    model = build(ELECTRA, problem("text"), SIZES | {"dropout": 0.0}, view, PieceTarget(), 100).train()
    pieces = batch(view, *TEXTS)
    step = Step({"labelled": Batch({"text": pieces}, None, np.arange(3), 3)}, progress=0.5, seed=7, passes=2)
    losses = FromText(None, model, Supervised()).losses(model, step)
    with collected_losses() as terms:
        logs, _ = model.head.learns(model.encoder, pieces, noise_of(pieces, 7, 2))
    assert losses.keys() == {"loss", "task", "generator"}
    assert losses["task"].item() == pytest.approx(-50 * logs.mean().item(), rel=1e-5)
    assert losses["generator"].item() == pytest.approx(terms["generator"].item(), rel=1e-5)
    assert losses["loss"].item() == pytest.approx((losses["task"] + losses["generator"]).item(), rel=1e-6)
    rows = model.head.row_losses(model.encoder, model.head(model.encoder, {"text": pieces, "pass": (7, 2)}), None)
    assert rows.sum().item() == pytest.approx(-50 * logs.sum().item(), rel=1e-5)


def test_the_score_does_not_depend_on_the_generator(view, electra, learns):
    """A better generator would make harder questions, and a better system a worse score."""
    pieces = batch(view, *TEXTS)
    before = learns(electra, pieces, noise_of(pieces)).logs
    with torch.no_grad():
        for parameter in learns.generator.parameters():
            parameter.normal_()
    assert torch.equal(learns(electra, pieces, noise_of(pieces)).logs, before)


def test_replacements_of_the_score_are_any_pieces_of_the_vocabulary(view):
    ids = torch.randint(5, view.width, (400, 42), generator=torch.Generator().manual_seed(0))
    ids[:, 0], ids[:, -1] = view.start, view.separator
    pieces = SubwordBatch(ids, torch.ones_like(ids, dtype=torch.bool), torch.zeros_like(ids), torch.full((400,), 42))
    read = ReplacedPieces.at_random(pieces, view, noise_of(pieces))
    changed = read != ids
    assert not changed[:, [0, -1]].any()
    assert (changed.sum(1) <= 6).all()  # 15 % of forty
    asked = 400 * 6
    same = asked - int(changed.sum())  # drawn as they were
    assert abs(same - asked / view.width) < 4 * math.sqrt(asked / view.width)
    counts = read[changed].bincount(minlength=view.width).double()
    expected = asked / view.width
    assert len(counts) == view.width and ((counts - expected) ** 2 / expected).sum() < 2 * view.width


def test_only_the_last_epochs_are_chosen_among():
    """The score is best long before the encoder has learnt what a good generator teaches."""
    assert ReplacedPieces.last_phase == 0.9
    assert FromText(None, SimpleNamespace(head=SimpleNamespace(learns=ReplacedPieces))).settled_after == 0.9


def test_the_floor_asks_what_evaluation_asks(view, monkeypatch):
    """Padding would give each text other replacements than those that the model is asked about."""
    keys = []

    def told(pieces: SubwordBatch, view: Any, noise: Noise) -> Tensor:
        keys.append(noise.texts)
        return pieces.ids

    monkeypatch.setattr(ReplacedPieces, "at_random", told)
    ReplacedPieces.floor(view, [], [{"text": text} for text in TEXTS])
    assert torch.equal(keys[0], noise_of(batch(view, *TEXTS)).texts)


def test_the_floor_by_hand(view):
    """The share of places at which another piece is read says all that can be said without
    reading."""
    pieces = batch(view, *TEXTS)
    changed = (ReplacedPieces.at_random(pieces, view, noise_of(pieces)) != pieces.ids).sum(1).tolist()
    places = pieces.lengths.tolist()
    share = sum(changed) / sum(places)
    expected = [n * math.log(share) + (of - n) * math.log(1 - share) for n, of in zip(changed, places, strict=True)]
    found = ReplacedPieces.floor(view, [], [{"text": text} for text in TEXTS])
    assert [log for log, _ in found] == pytest.approx(expected) and [count for _, count in found] == places
    assert 0 < share < 0.3
