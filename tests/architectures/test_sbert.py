"""Sentence-BERT: each text is read by itself, its vector is the mean of transformers' own states,
and a pair is [u; v; |u - v|] or a cosine, in values and gradients."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from architectures.pretrained.bert import BERT
from architectures.siamese.sbert import SentenceBERT
from harness import registry
from harness.problems import problem
from harness.problems.classify import ClassTarget
from harness.problems.rank import RankTarget
from harness.training.model import build
from harness.views.subwords import SubwordBatch, Subwords
from tests.support.models import small
from tests.support.plain_text import batch
from tests.support.published import saved
from tests.support.teaching import kept

transformers = pytest.importorskip("transformers")

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "##s", "sat", "on", "mat", "who", "?"]
FIRST, SECOND = ["who sat?", "the cats", "who?"], ["the cats sat on the mat", "cat", "who sat on the cats"]
THEIRS = {
    "table.weight": "embeddings.word_embeddings.weight",
    "positions.weight": "embeddings.position_embeddings.weight",
    "body.layers.0.attention.query.weight": "encoder.layer.0.attention.self.query.weight",
    "body.layers.1.feedforward.3.bias": "encoder.layer.1.output.dense.bias",
}
"""Some of our parameters, by the library's names."""


@pytest.fixture
def theirs() -> Any:
    torch.manual_seed(0)
    sizes = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16}
    config = transformers.BertConfig(vocab_size=len(PIECES), max_position_embeddings=32, initializer_range=0.5, **sizes)
    return transformers.BertModel(config).eval()


@pytest.fixture
def folder(tmp_path: Path, theirs: Any) -> Path:
    return saved(tmp_path, theirs, PIECES)


def loaded(folder: Path, classes: int | None) -> tuple[SentenceBERT, Subwords]:
    view = SentenceBERT.reads("text", {"pretrained": str(folder), "max_length": 32})
    view.fit([])
    return SentenceBERT(view.width, view, classes).eval(), view


def vectors(theirs: Any, view: Subwords, texts: list[str]) -> list[Tensor]:
    """The mean of the states of each text, which is read alone."""
    found = []
    for text in texts:
        pieces = [view.start, *view.encode([text])["ids"][0].tolist(), view.separator]
        found.append(theirs(torch.tensor([pieces])).last_hidden_state[0].sum(0) / len(pieces))
    return found


def expected(theirs: Any, view: Subwords, classes: int | None) -> Tensor:
    pairs = zip(vectors(theirs, view, FIRST), vectors(theirs, view, SECOND), strict=True)
    if classes:
        return torch.stack([torch.cat([u, v, (u - v).abs()]) for u, v in pairs])
    return torch.stack([u @ v / (u @ u).sqrt() / (v @ v).sqrt() for u, v in pairs])


@pytest.mark.parametrize("classes", [3, None])
def test_a_pair_is_made_of_the_means_of_transformers_states(theirs, folder, classes):
    """A state of padding among the mean, the first state alone, another order, a product more."""
    ours, view = loaded(folder, classes)
    found = ours(batch(view, *FIRST), batch(view, *SECOND))
    wanted = expected(theirs, view, classes)
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5)
    weights = torch.randn(found.shape)
    (found * weights).sum().backward()
    (wanted * weights).sum().backward()
    own, other = dict(ours.named_parameters()), dict(theirs.named_parameters())
    for name, their_name in THEIRS.items():
        torch.testing.assert_close(own[name].grad, other[their_name].grad, rtol=1e-4, atol=1e-5)


def test_a_text_does_not_depend_on_its_partner_and_a_cosine_on_their_order(folder):
    """Vectors of candidates could not be kept otherwise."""
    ours, view = loaded(folder, 3)
    first, second, other = (batch(view, *texts) for texts in (FIRST, SECOND, SECOND[::-1]))
    assert torch.equal(ours(first, second)[:, :8], ours(first, other)[:, :8])
    ranks, _ = loaded(folder, None)
    torch.testing.assert_close(ranks(first, second), ranks(second, first))


def model_of(type: str, target: Any, view: Subwords) -> Any:
    sizes = {"layers": 1, "hidden": 8, "heads": 2}
    return small(build, SentenceBERT, problem(type), sizes, view, target, 0, stretch=None)


def classes(*labels: str) -> ClassTarget:
    target = ClassTarget()
    target.labels = list(labels)
    return target


def fitted() -> Subwords:
    view = SentenceBERT.reads("text", {"vocabulary": 60, "max_length": 24})
    view.fit([*FIRST, *SECOND])
    return view


def test_a_pair_of_texts_stays_apart_in_a_batch():
    """One sequence of both would be BERT."""
    assert SentenceBERT.reads("text", {}).joins is False and BERT.reads("text", {}).joins is True
    pieces = batch(fitted(), *FIRST)
    assert isinstance(pieces, SubwordBatch) and not pieces.segments.any()


def test_classes_are_scored_by_one_layer_on_three_vectors():
    model = model_of("match", classes("entailment", "neutral", "contradiction"), fitted())
    assert isinstance(model.head.output, nn.Linear)
    assert (model.head.output.in_features, model.head.output.out_features) == (3 * 8, 3)


def test_candidates_are_ranked_by_the_cosine_and_learn_by_its_squared_distance():
    """By hand: right candidates are drawn to 1, wrong ones to 0."""
    model = model_of("rank", RankTarget(), fitted())
    assert model.head.output is None
    scores = torch.tensor([0.5, -0.5, 0.25])
    loss = model.head.loss(model.encoder, scores, (torch.tensor([1, 0, 0]), torch.zeros(3, dtype=torch.long)))
    assert loss.item() == pytest.approx((0.25 + 0.25 + 0.0625) / 3)


def test_it_begins_with_the_weights_of_bert():
    """And with its tokenizer; BERT's pooler is left."""
    texts = fitted()
    parent = small(
        build, BERT, problem("classify"), {"layers": 1, "hidden": 8, "heads": 2}, texts, classes("a", "b"), 0
    )
    child = model_of("rank", RankTarget(), texts).encoder
    child.inherit("weights", kept(parent, texts), [])
    given = {name: of for name, of in parent.encoder.state_dict().items() if "pooler" not in name}
    own = child.state_dict()
    assert own.keys() == given.keys() and all(torch.equal(own[name], of) for name, of in given.items())
    fresh = SentenceBERT.inherited_view(SentenceBERT.reads("text", {}), "weights", kept(parent, texts))
    fresh.fit(["other words"])
    assert fresh.width == texts.width and not fresh.joins
    assert registry.entry("architectures", "sbert").parents == {"weights": "bert@text_mix"}


def test_it_runs_on_pairs_and_candidates_alone():
    assert [type for type in registry.entries("problems") if SentenceBERT.can_answer(type)] == ["match", "rank"]


def test_means_are_of_real_pieces():
    """A hand-worked mean of three pieces beside a longer text."""
    view = fitted()
    model = model_of("rank", RankTarget(), view).encoder.eval()
    pieces = batch(view, "the", "the cats sat on the mat")
    states = BERT.forward(model, pieces).detach().numpy()
    with torch.no_grad():
        found = model.text(pieces).numpy()
    np.testing.assert_allclose(found[0], states[0, : int(pieces.lengths[0])].mean(0), rtol=1e-4, atol=1e-6)
