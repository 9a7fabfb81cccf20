"""RoBERTa: the states are those of transformers' own model, with published weights and without, and
other pieces are masked at each pass over packed texts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from architectures.blocks.objectives.masked_pieces import MaskedPieces
from architectures.pretrained.roberta import RoBERTa
from harness import registry
from harness.layers.noise import Noise
from harness.views.subwords import SubwordBatch, Subwords
from tests.support.models import small
from tests.support.published import saved
from tests.support.same import assert_same

transformers = pytest.importorskip("transformers")

PIECES = ["[CLS]", "[PAD]", "[SEP]", "[UNK]", "the", "cat", "##s", "sat", "on", "mat", "[MASK]"]
TEXTS = ["the cats sat", "cats"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny RoBERTa with random weights, whose padding is piece 1 as in the release."""
    torch.manual_seed(0)
    path = tmp_path_factory.mktemp("tiny_roberta")
    config = transformers.RobertaConfig(
        vocab_size=len(PIECES) + 2,
        hidden_size=8,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=34,
        type_vocab_size=1,
        initializer_range=0.5,
        attention_probs_dropout_prob=0.2,
        layer_norm_eps=1e-3,
        pad_token_id=1,
    )
    return saved(path, transformers.RobertaModel(config), PIECES)


def loaded(folder: Path, max_length: int = 32) -> tuple[RoBERTa, Subwords]:
    view = RoBERTa.reads("text", {"pretrained": str(folder), "max_length": max_length})
    view.fit([])
    return RoBERTa(view.width, view), view


def batch_of(view: Subwords, *texts: str) -> SubwordBatch:
    return view.collate(view.encode(list(texts)), np.arange(len(texts)))


def test_states_and_gradients_are_those_of_transformers(folder):
    """The first piece stands at position 2, and the one vector of segments is added everywhere:
    without either, tuning would start from nowhere."""
    ours, view = loaded(folder)
    reference = transformers.AutoModel.from_pretrained(folder).eval()
    batch = batch_of(view, *TEXTS)
    expected = reference(input_ids=batch.ids, attention_mask=batch.mask.long()).last_hidden_state[batch.mask]
    states = ours.eval()(batch)[batch.mask]
    torch.testing.assert_close(states, expected, rtol=1e-5, atol=1e-5)
    states.sin().sum().backward()
    expected.sin().sum().backward()
    slopes = reference.embeddings.word_embeddings.weight.grad
    torch.testing.assert_close(ours.table.weight.grad, slopes[: len(PIECES)], rtol=1e-4, atol=1e-5)
    places = reference.embeddings.position_embeddings.weight.grad
    assert places[2].abs().max() > 0.1
    torch.testing.assert_close(ours.positions.weight.grad, places[2:], rtol=1e-4, atol=1e-5)


def test_dropouts_are_those_of_the_file(folder):
    ours, _ = loaded(folder)
    assert ours.training and ours.dropout.p == 0.1
    assert {layer.attention.dropout for layer in ours.body.layers} == {0.2}


def test_positions_before_the_first_piece_are_none_to_read_by(folder):
    with pytest.raises(ValueError, match="max_length=33: .*has 32 positions"):
        loaded(folder, 33)


def test_another_kind_of_model_is_refused(tmp_path):
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    transformers.BertModel(transformers.BertConfig(vocab_size=13, **sizes)).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="is of type bert, expected roberta"):
        RoBERTa(13, Subwords(pretrained=str(tmp_path)))


def test_the_vector_of_a_text_is_its_first_state_through_a_layer_and_tanh():
    ours = small(RoBERTa, 20, Subwords(max_length=8), layers=1, hidden=8, heads=2)
    states = torch.randn(2, 5, 8)
    dense = ours.pooler[0]
    assert_same(ours.pooled(states), torch.tanh(states[:, 0] @ dense.weight.T + dense.bias))


def test_a_dropout_stands_on_both_sides_of_that_layer():
    """Liu et al.'s head of classes: dropout, dense, tanh, dropout."""
    ours = RoBERTa(20, Subwords(max_length=8), layers=1, hidden=400, heads=2, dropout=0.4)
    with torch.no_grad():
        ours.pooler[0].weight.copy_(torch.eye(400))
        ours.pooler[0].bias.zero_()
    kept = (ours.train().pooled(torch.ones(50, 1, 400)) != 0).double().mean()
    assert kept.item() == pytest.approx(0.6 * 0.6, abs=0.02)


def test_segments_change_nothing():
    ours = small(RoBERTa, 20, Subwords(max_length=8), layers=1, hidden=8, heads=2)
    ids = torch.randint(20, (2, 6))
    batch = SubwordBatch(ids, torch.ones_like(ids, dtype=torch.bool), torch.zeros_like(ids), torch.tensor([6, 6]))
    assert_same(ours(batch), ours(batch._replace(segments=torch.ones_like(ids))))


def test_other_pieces_are_masked_at_each_pass():
    """Dynamic masking (section 4.1); a pass that is repeated, as after a stop, masks the same."""
    assert RoBERTa.learns is MaskedPieces and RoBERTa.learns.packs
    view = Subwords(max_length=102)
    view.fit(["a b c d"])
    ids = torch.full((3, 102), view.unknown)
    ids[:, 0], ids[:, -1] = view.start, view.separator
    batch = SubwordBatch(ids, torch.ones_like(ids, dtype=torch.bool), torch.zeros_like(ids), torch.tensor([102] * 3))
    masks = [MaskedPieces.chosen(batch, view, Noise(ids, batch.mask, key)) for key in ((0, 1), (0, 2), (0, 1), (1, 1))]
    assert all(mask.sum(1).tolist() == [15, 15, 15] for mask in masks)
    assert torch.equal(masks[0], masks[2])
    assert not torch.equal(masks[0], masks[1]) and not torch.equal(masks[0], masks[3])


def test_it_starts_from_its_own_pre_training_unless_weights_are_loaded():
    parents = registry.entry("architectures", "roberta").parents
    assert parents == {"weights": "roberta@text_mix"}
    assert RoBERTa.default_parents(parents, {"pretrained": "folder"}) == {}
