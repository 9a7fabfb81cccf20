"""The mechanism of MixText: states of two texts mixed behind a layer, labels mixed likewise, and
labels guessed for texts without any."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import beta
from torch import Tensor

from architectures.pretrained.bert import BERT
from architectures.unsupervised.mixtext import MixedTextsLoss, MixText
from harness import registry
from harness.layers.noise import Noise
from harness.objectives import Step
from harness.problems import problem
from harness.problems.base import Batch
from harness.problems.classify import ClassTarget
from harness.registry import Recipe
from harness.running import fitting, grid
from harness.training.model import Model, build, objective_of
from harness.views.subwords import SubwordBatch, Subwords
from tests.support.same import assert_same

LABELLED = ["a cat sat", "dogs ran and the cat sat on a mat"]
OTHERS = ["the mat", "a dog ran on the mat and sat", "cats"]
SIZES = {"layers": 3, "hidden": 12, "heads": 3, "dropout": 0.0}
PARTNERS = [4, 0, 7, 3, 1, 2, 5, 6]
"""A text with a label and one without, two forms of one text, and a text with itself."""


class Split:
    """Encoded rows, as an objective is told them."""

    def __init__(self, view: Subwords, texts: list[str]):
        self.view = view
        self.inputs = {"text": view.encode(texts)}


class Penalised(BERT):
    """An encoder with a penalty of its own."""

    def embed(self, *given: Any) -> Tensor:
        self.add_loss("penalty", torch.tensor(0.25))
        return super().embed(*given)


@pytest.fixture(scope="module")
def view() -> Subwords:
    made = Subwords(size=70, max_length=24)
    made.fit([*LABELLED, *OTHERS] * 3)
    return made


def prepared(view: Subwords, regime: MixText, encoder: type = BERT, **sizes: Any) -> tuple[MixedTextsLoss, Model]:
    """An objective that has begun, and a model of double precision whose answers differ."""
    torch.manual_seed(0)
    target = ClassTarget()
    target.labels = ["x", "y", "z"]
    model = build(encoder, problem("classify"), SIZES | sizes, view, target, 100).double()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(0.2 * torch.randn_like(parameter) + ("norm" in name and name.endswith("weight")))
        model.encoder.table.weight.mul_(3)
        model.head.output.weight.mul_(8)
    objective = objective_of(model, Recipe(), regime)
    objective.begin({"labelled": Split(view, LABELLED), "unlabelled": Split(view, OTHERS + LABELLED)})
    return objective, model


def pieces_of(view: Subwords, texts: list[str]) -> SubwordBatch:
    return view.collate(view.encode(texts), np.arange(len(texts)))


def step_of(view: Subwords, progress: float = 1.0, passes: int = 2) -> Step:
    labelled = Batch({"text": pieces_of(view, LABELLED)}, torch.tensor([2, 0]), np.arange(2), 12)
    unlabelled = Batch({"text": pieces_of(view, OTHERS)}, None, np.arange(3), 12)
    return Step({"labelled": labelled, "unlabelled": unlabelled}, progress, None, 5, passes)


def fixed(monkeypatch, objective: MixedTextsLoss, share: float, depth: int, partners: list[int] | None = None) -> None:
    """Draws of a step that are known."""
    monkeypatch.setattr(objective, "share", lambda: share)
    monkeypatch.setattr(objective, "depth", lambda model: depth)
    monkeypatch.setattr(torch, "randperm", lambda n: torch.tensor(partners or PARTNERS)[:n])


# --- a reference that reads the weights alone ---


class WrittenOut:
    """BERT's layers on one text without padding, by functions of the parameters."""

    def __init__(self, model: Model):
        self.own = dict(model.named_parameters())

    def linear(self, x: Tensor, name: str) -> Tensor:
        return x @ self.own[f"{name}.weight"].T + self.own[f"{name}.bias"]

    def normed(self, x: Tensor, name: str) -> Tensor:
        centred = x - x.mean(-1, keepdim=True)
        scaled = centred / (centred.pow(2).mean(-1, keepdim=True) + 1e-12).sqrt()
        return scaled * self.own[f"{name}.weight"] + self.own[f"{name}.bias"]

    def first(self, ids: list[int]) -> Tensor:
        """What the first layer reads (T, size)."""
        tables = [self.own[f"encoder.{name}.weight"] for name in ("table", "positions", "segments")]
        return self.normed(tables[0][ids] + tables[1][: len(ids)] + tables[2][0], "encoder.norm")

    def layer(self, x: Tensor, number: int) -> Tensor:
        at = f"encoder.body.layers.{number}"
        parts = [self.linear(x, f"{at}.attention.{name}").chunk(3, -1) for name in ("query", "key", "value")]
        heads = [(q @ k.T / math.sqrt(q.shape[1])).softmax(-1) @ v for q, k, v in zip(*parts, strict=True)]
        x = self.normed(x + self.linear(torch.cat(heads, -1), f"{at}.attention.output"), f"{at}.norms.0")
        inner = self.linear(x, f"{at}.feedforward.0")
        inner = inner * (1 + torch.erf(inner / math.sqrt(2))) / 2
        return self.normed(x + self.linear(inner, f"{at}.feedforward.3"), f"{at}.norms.1")

    def through(self, x: Tensor, numbers: range) -> Tensor:
        for number in numbers:
            x = self.layer(x, number)
        return x

    def logs(self, x: Tensor) -> Tensor:
        """Logarithms (classes,) of probabilities, from the last states."""
        scores = self.linear(torch.tanh(self.linear(x[0], "encoder.pooler.0")), "head.output")
        return scores - scores.exp().sum().log()

    def plain(self, ids: list[int]) -> Tensor:
        return self.logs(self.through(self.first(ids), range(3)))

    def mixture(self, ids: list[int], other: list[int], share: float, depth: int) -> Tensor:
        """The answer to a text in the mixture with another, place by place."""
        one, two = (self.through(self.first(each), range(depth)) for each in (ids, other))
        places = [
            sum(part * states[t] for part, states in ((share, one), (1 - share, two)) if t < len(states))
            for t in range(max(len(one), len(two)))
        ]
        return self.logs(self.through(torch.stack(places), range(depth, 3)))


def real(pieces: SubwordBatch) -> list[list[int]]:
    """The ids of each text without padding."""
    return [ids[:length].tolist() for ids, length in zip(pieces.ids, pieces.lengths.tolist(), strict=True)]


def expected_terms(
    objective: MixedTextsLoss, model: Model, step: Step, share: float, depth: int, temperature: float
) -> dict[str, Tensor]:
    """The terms of a step, text by text."""
    written, plain = WrittenOut(model), step.batches["unlabelled"].inputs["text"]
    changed = objective.replacement(plain, Noise(plain.ids, plain.mask, (5, step.passes)))
    forms = [real(changed), real(plain)]
    guesses = []
    for two in zip(*forms, strict=True):
        mean = sum(written.plain(ids).detach().exp() for ids in two) / 2
        guesses.append(mean ** (1 / temperature) / (mean ** (1 / temperature)).sum())
    texts = [*real(step.batch.inputs["text"]), *forms[0], *forms[1]]
    labels = [*torch.eye(3, dtype=torch.float64)[step.batch.target], *guesses, *guesses]
    known, divergences = [], []
    for row, partner in enumerate(PARTNERS):
        wanted = share * labels[row] + (1 - share) * labels[partner]
        logs = written.mixture(texts[row], texts[partner], share, depth)
        if row < 2:
            known.append(-(wanted * logs).sum())
        else:
            divergences.append(sum(p * (p.log() - q) for p, q in zip(wanted, logs, strict=True)))
    entropies = [-(logs.exp() * logs).sum() for logs in map(written.plain, forms[1])]
    return {
        "task": sum(known) / 2,
        "consistency": sum(divergences) / 6,
        "margin": sum((each - objective.owner.margin).clamp(min=0) for each in entropies) / 3,
    }


@pytest.mark.parametrize(
    ("depth", "share", "temperature", "progress", "margin_weight"),
    [(1, 0.5, 0.5, 1.0, 0.0), (2, 0.8, 0.3, 0.25, 3.0), (3, 0.6, 1.0, 0.5, 0.0)],
)
def test_the_loss_is_the_one_written_out_and_so_are_its_gradients(
    view, monkeypatch, depth, share, temperature, progress, margin_weight
):
    """Mixtures of texts of different lengths, each as if it stood alone; guessed labels that stay;
    a weight that grows."""
    regime = MixText(temperature=temperature, weight=2.0, margin_weight=margin_weight)
    objective, model = prepared(view, regime)
    fixed(monkeypatch, objective, share, depth)
    step = step_of(view, progress)
    logs = torch.stack([WrittenOut(model).plain(ids) for ids in real(pieces_of(view, OTHERS))])
    entropies = -(logs.exp() * logs).sum(-1)
    regime.margin = entropies.mean().item()
    assert entropies.min() + 0.01 < regime.margin < entropies.max() - 0.01
    found = objective.losses(model, step)
    expected = expected_terms(objective, model, step, share, depth, temperature)
    for name in ("task", "consistency", *(["margin"] if margin_weight else [])):
        assert_same(found[name], expected[name])
    added = 2 * expected["consistency"] + margin_weight * expected["margin"]
    assert_same(found["loss"], expected["task"] + progress * added)
    assert found["margin"] > 0 if margin_weight else found["margin"] == 0


def test_another_layer_gives_another_mixture(view):
    """What the reference could not tell if states did not change from layer to layer."""
    objective, model = prepared(view, MixText())
    texts, partners = pieces_of(view, OTHERS), torch.tensor([1, 2, 0])
    scores = [objective.mixed(model, texts, partners, 0.6, depth) for depth in (0, 1, 2, 3)]
    assert all((one - two).abs().max() > 1e-3 for one, two in itertools.pairwise(scores))


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_text_that_has_all_of_the_mixture_is_read_as_it_is(view, depth):
    """Beside a longer one too: places that it lacks would be read as zeros."""
    objective, model = prepared(view, MixText())
    texts = pieces_of(view, OTHERS)
    found = objective.mixed(model, texts, torch.tensor([1, 2, 0]), 1.0, depth)
    assert_same(found, model({"text": texts}))


def test_all_texts_of_a_step_are_mixed_with_one_another(view, monkeypatch):
    """Mixtures of labelled texts alone, or of each form alone, would let no label pass over."""
    objective, model = prepared(view, MixText())
    asked = []
    monkeypatch.setattr(torch, "randperm", lambda n: asked.append(n) or torch.arange(n))
    objective.losses(model, step_of(view))
    assert asked == [2 + 3 + 3]


def test_the_share_is_the_larger_one_of_a_beta_distribution(view):
    for alpha in (16.0, 0.5):
        objective, _ = prepared(view, MixText(alpha=alpha))
        torch.manual_seed(1)
        shares = np.array([objective.share() for _ in range(900)])
        grid_of = np.linspace(0.0005, 0.9995, 1000)
        mean = (beta(alpha, alpha).pdf(grid_of) * np.maximum(grid_of, 1 - grid_of)).sum()
        mean /= beta(alpha, alpha).pdf(grid_of).sum()
        assert shares.min() >= 0.5 and len(np.unique(shares)) > 600
        assert abs(shares.mean() - mean) < 4 * shares.std() / math.sqrt(len(shares)) + 0.002


@pytest.mark.parametrize(
    ("layers", "depths"), [(12, {7, 9, 12}), (24, {14, 18, 24}), (4, {2, 3, 4}), (2, {1, 2}), (1, {1})]
)
def test_the_layer_is_drawn_among_those_at_the_papers_shares_of_the_depth(view, layers, depths):
    """Another one would mix words in place of what the paper says is meaning."""
    objective, model = prepared(view, MixText(), layers=layers)
    drawn = [objective.depth(model) for _ in range(60)]
    assert {*drawn} == depths
    assert min(drawn.count(depth) for depth in depths) >= 60 / len(depths) / 3


def test_other_layers_can_be_asked_for(view):
    objective, model = prepared(view, MixText(mixed_at=[3]), layers=4)
    assert {objective.depth(model) for _ in range(20)} == {1}


def test_words_are_replaced_anew_in_each_pass_and_by_the_texts_without_labels(view, monkeypatch):
    objective, model = prepared(view, MixText())
    fixed(monkeypatch, objective, 0.7, 2)
    read = []
    guessed = objective.guessed
    monkeypatch.setattr(
        objective, "guessed", lambda m, changed, plain: read.append(changed) or guessed(m, changed, plain)
    )
    for passes in (1, 2, 2):
        objective.losses(model, step_of(view, passes=passes))
    first, second, again = (each.ids for each in read)
    plain = pieces_of(view, OTHERS).ids
    assert (first != plain).any() and (first != second).any() and torch.equal(second, again)
    assert objective.replacement.rate == 0.3
    share = sum("the" in text.split() for text in OTHERS + LABELLED) / 5
    the = view.encode(["the"])["ids"][0][0]
    assert objective.replacement.rareness[the].item() == pytest.approx(-math.log(share))


def test_texts_of_another_padding_are_joined_with_it(view, monkeypatch):
    """RoBERTa's published tokenizer pads with 1."""
    objective, _ = prepared(view, MixText())
    objective.padding = 9
    short, long = pieces_of(view, ["a"]), pieces_of(view, LABELLED)
    joined = objective.joined(short, long)
    assert joined.ids[0, short.ids.shape[1] :].eq(9).all() and joined.lengths.tolist() == [3, *long.lengths.tolist()]
    assert torch.equal(joined.mask[1:], long.mask) and joined.mask.dtype == torch.bool
    assert joined.mask[0].sum() == 3 and joined.segments.shape == joined.ids.shape


@pytest.mark.parametrize("margin_weight", [0.0, 1.0])
def test_what_the_encoder_adds_to_the_loss_counts_once(view, monkeypatch, margin_weight):
    """The margin reads texts once more."""
    objective, model = prepared(view, MixText(margin_weight=margin_weight), Penalised)
    fixed(monkeypatch, objective, 0.7, 2)
    found = objective.losses(model, step_of(view, 0.5))
    added = found["consistency"] + margin_weight * found["margin"]
    torch.testing.assert_close(found["loss"], found["task"] + 0.5 * added + 0.25)
    assert found["penalty"] == 0.25


def test_the_head_drops_what_it_reads_of_mixtures(view):
    """Protocol equal has the dropout of a task there."""
    objective, model = prepared(view, MixText())
    texts, partners = pieces_of(view, OTHERS), torch.tensor([1, 2, 0])
    one, two = (objective.mixed(model, texts, partners, 0.6, 2) for _ in range(2))
    assert torch.equal(one, two)
    model.head.dropout = 0.5
    assert not torch.equal(one, objective.mixed(model, texts, partners, 0.6, 2))


@pytest.mark.parametrize(
    ("wraps", "task", "reason"),
    [
        ("bert", "ag_news", None),
        ("roberta", "sst2", None),
        ("albert", "ag_news", None),
        ("gshard", "ag_news", None),
        ("bert", "snli", "mixes texts that have a class each, and a task of type match has none"),
        ("bilstm", "sst2", "mixes the states between two layers of a transformer of pieces, and bilstm has none"),
        ("gpt", "sst2", "mixes the states between two layers of a transformer of pieces, and gpt has none"),
        ("reformer", "sst2", "mixes the states between two layers of a transformer of pieces, and reformer has none"),
        ("ernie2", "sst2", "mixes the states between two layers of a transformer of pieces, and ernie2 has none"),
        ("bert_finetune", "sst2", "needs a supervised loss, and bert_finetune has an objective of its own"),
    ],
)
def test_what_it_cannot_train_is_told(wraps, task, reason):
    entry = registry.entry("architectures", "mixtext")
    values = grid.hyperparameters(entry) | {"wraps": wraps}
    assert fitting.reason_to_skip(entry, registry.entry("tasks", task), values) == reason


@pytest.mark.parametrize(
    ("wraps", "parents"),
    [("bert", {"weights": "bert@text_mix"}), ("roberta", {"weights": "roberta@text_mix"}), ("bert_base", {})],
)
def test_it_starts_from_the_parents_of_what_it_wraps(wraps, parents):
    """Random weights would be another row, and BERT's would not fit RoBERTa."""
    registered = registry.entry("architectures", "mixtext").parents
    assert registered == {"weights": "bert@text_mix"}
    assert MixText.default_parents(registered, {"wraps": wraps}) == parents
