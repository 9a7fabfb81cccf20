"""XLNet: both streams are those of transformers' own model, and a piece is told by those that are
given and those told before it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from architectures.blocks.objectives.permuted_pieces import PermutedPieces, visible
from architectures.blocks.objectives.word_spans import lengths_by
from architectures.blocks.two_streams import TwoStreams
from architectures.pretrained.xlnet import XLNet, mark_last
from harness.layers.noise import Noise
from harness.problems.text_objective import LearnText, PieceTarget
from harness.training.optimizers import exempt
from harness.views.subwords import SubwordBatch, Subwords
from tests.support.models import small
from tests.support.same import assert_same

transformers = pytest.importorskip("transformers")

PIECES = ["<unk>", "<cls>", "<sep>", "<pad>", "<mask>", "<s>", "</s>", "<eop>", "<eod>", "▁the", "▁cat", "s", "▁sat"]
TEXTS, SECOND = ["the cats sat", "cats", "sat the cat the cats sat"], ["cats sat", "the cats", "sat"]
SIZES = {"layers": 2, "hidden": 12, "heads": 3}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny XLNet with random weights and its tokenizer, as the hub holds them."""
    torch.manual_seed(0)
    path = tmp_path_factory.mktemp("tiny_xlnet")
    vocabulary = [(piece, -float(number)) for number, piece in enumerate(PIECES)]
    transformers.XLNetTokenizerFast(vocab=vocabulary, unk_id=0).save_pretrained(path)
    config = transformers.XLNetConfig(
        vocab_size=len(PIECES) + 3, d_model=12, n_layer=2, n_head=3, d_head=4, d_inner=20, initializer_range=0.5
    )
    transformers.XLNetModel(config).save_pretrained(path)
    return path


@pytest.fixture
def both(folder: Path) -> tuple[XLNet, Any]:
    """Our class as ``-o xlnet.pretrained=FOLDER`` makes it, and transformers' own."""
    view = XLNet.reads("text", {"pretrained": str(folder), "max_length": 32})
    view.fit([])
    return XLNet(view.width, view).eval(), transformers.AutoModel.from_pretrained(folder).eval()


@pytest.fixture(scope="module")
def view() -> Subwords:
    made = Subwords(size=60, max_length=40)
    made.fit(["the cat sat on the mat and the dog sat on the cat", "a dog ran"])
    return made


def made(view: Subwords, **sizes: Any) -> XLNet:
    return small(XLNet, view.width, view, **SIZES | sizes)


def batch_of(*texts: list[int], start: int = 2, end: int = 3) -> SubwordBatch:
    """Texts between their marks, padded with zeros."""
    lengths = torch.tensor([len(text) + 2 for text in texts])
    ids = torch.zeros(len(texts), int(lengths.max()), dtype=torch.long)
    for row, text in enumerate(texts):
        ids[row, : len(text) + 2] = torch.tensor([start, *text, end])
    return SubwordBatch(ids, torch.arange(ids.shape[1]) < lengths[:, None], torch.zeros_like(ids), lengths)


BATCH = batch_of([7, 8, 9, 10, 11, 12], [13, 14, 15, 16], [17])


def theirs_of(model: Any) -> dict[str, tuple[str, Tensor]]:
    """The gradient of each parameter of transformers' model, in our form, by our name."""
    found = {"table.weight": model.word_embedding.weight.grad}
    for number, layer in enumerate(model.layer):
        a, at = layer.rel_attn, f"body.layers.{number}."
        for ours, grad in zip(("query", "key", "value", "distance"), (a.q, a.k, a.v, a.r), strict=True):
            found[f"{at}attention.{ours}.weight"] = grad.grad.flatten(1).T
        found[f"{at}attention.output.weight"] = a.o.grad.flatten(1)
        for ours, vector in zip(("content", "distance", "segment"), (a.r_w_bias, a.r_r_bias, a.r_s_bias), strict=True):
            found[f"{at}attention.bias_{ours}"] = vector.grad
        found[f"{at}attention.segments"] = a.seg_embed.grad
        networks = {"norms.0": a.layer_norm, "feedforward.0": layer.ff.layer_1}
        networks |= {"feedforward.3": layer.ff.layer_2, "norms.1": layer.ff.layer_norm}
        for ours, module in networks.items():
            found |= {f"{at}{ours}.weight": module.weight.grad, f"{at}{ours}.bias": module.bias.grad}
    return found


def assert_same_gradients(xlnet: XLNet, reference: Any) -> None:
    ours = {name: p.grad for name, p in xlnet.named_parameters() if not name.startswith("pooler")}
    theirs = theirs_of(reference)
    theirs["table.weight"] = theirs["table.weight"][: len(PIECES)]
    assert ours.keys() == theirs.keys()
    for name, grad in ours.items():
        assert grad.abs().max() > 1e-4, name
        torch.testing.assert_close(grad, theirs[name], rtol=1e-4, atol=2e-5)


# --- states ---


@pytest.mark.parametrize("second", [None, SECOND])
def test_states_and_gradients_are_those_of_transformers(folder, both, second):
    """The authors write the mark of a whole input behind it, with a segment of its own: read at the
    beginning, or without the distances of places, a published model would answer otherwise."""
    xlnet, reference = both
    view = xlnet.view
    rows = np.arange(len(TEXTS))
    pieces = view.collate(view.encode(TEXTS), rows)
    if second is not None:
        pieces = view.collate_pair(view.encode(TEXTS), view.encode(second), rows)
    tokenizer, states = transformers.AutoTokenizer.from_pretrained(folder), xlnet(pieces)
    found, expected = [], []
    for row, length in enumerate(pieces.lengths):
        read = tokenizer(TEXTS[row], second and second[row], return_tensors="pt", return_token_type_ids=True)
        assert read["input_ids"][0].roll(1).tolist() == pieces.ids[row, :length].tolist()
        found.append(states[row, :length])
        expected.append(reference(**read).last_hidden_state[0].roll(1, 0))
    found, expected = torch.cat(found), torch.cat(expected)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    weights = torch.randn_like(found)
    (found * weights).sum().backward()
    (expected * weights).sum().backward()
    assert_same_gradients(xlnet, reference)


def test_the_second_stream_and_its_gradients_are_those_of_transformers(both):
    """What is told by a wrong stream, or by one that looks at itself, is copied and not learnt."""
    xlnet, reference = both
    text = batch_of([9, 10, 11, 12, 10, 9], start=1, end=2)
    asked = torch.tensor([[False, True, False, True, True, False, False, False]])
    known = visible(asked, torch.tensor([[0.0, 0.5, 0, 0.2, 0.9, 0, 0, 0]]))
    query = torch.randn(12, requires_grad=True)
    found = xlnet.told(text, asked, known, query)
    turned = known[0].roll((-1, -1), (0, 1))  # the mark stands last there
    mapping = torch.eye(8)[[0, 2, 3]]
    reference.mask_emb.data = query.detach()[None, None].clone()
    segments = torch.tensor([[0] * 7 + [2]])
    expected = reference(
        text.ids.roll(-1, 1),
        token_type_ids=segments,
        perm_mask=(~turned)[None].float(),
        target_mapping=mapping[None],
    ).last_hidden_state[0]
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    weights = torch.randn_like(found)
    (found * weights).sum().backward()
    (expected * weights).sum().backward()
    assert_same_gradients(xlnet, reference)
    torch.testing.assert_close(query.grad, reference.mask_emb.grad[0, 0], rtol=1e-4, atol=1e-5)


def test_the_mark_of_an_input_is_read_as_its_last_piece():
    assert mark_last(BATCH).tolist() == [
        [1, 2, 3, 4, 5, 6, 7, 0],
        [1, 2, 3, 4, 5, 0, 6, 7],
        [1, 2, 0, 3, 4, 5, 6, 7],
    ]


def test_the_vector_of_a_text_is_the_state_of_its_mark_through_tanh(view):
    xlnet = made(view)
    states, layer = xlnet(BATCH), xlnet.pooler[0]
    assert_same(xlnet.pooled(states), torch.tanh(states[:, 0] @ layer.weight.T + layer.bias))


def test_padding_is_invisible(view):
    xlnet = made(view)
    for row, length in enumerate(BATCH.lengths):
        alone = SubwordBatch(*(field[row : row + 1, :length] for field in BATCH[:3]), length[None])
        assert_same(xlnet(alone)[0], xlnet(BATCH)[row, :length])


# --- what is asked ---


def test_what_is_known_by_hand():
    """Pieces 1 and 3 are told, 3 first: given ones know no told one, and none knows itself."""
    asked = torch.tensor([[False, True, False, True]])
    known = visible(asked, torch.tensor([[0.9, 0.8, 0.7, 0.1]]))[0].long()
    assert known.tolist() == [[1, 0, 1, 0], [1, 0, 1, 1], [1, 0, 1, 0], [1, 0, 1, 0]]


def test_in_the_order_of_the_text_each_piece_is_told_from_those_before_it():
    """The order of a language model is one of all orders."""
    numbers = torch.arange(5)[None] / 5
    known = visible(torch.ones(1, 5, dtype=torch.bool), numbers)[0]
    assert torch.equal(known, torch.ones(5, 5).tril(-1).bool())


def told_with(xlnet: XLNet, ids: Tensor) -> Tensor:
    """States of pieces 2, 4 and 5 of the first text, told in the order 4, 5, 2."""
    asked = torch.zeros(1, 8, dtype=torch.bool)
    asked[0, [2, 4, 5]] = True
    known = visible(asked, torch.tensor([[0, 0, 0.9, 0, 0.1, 0.5, 0, 0]]))
    pieces = SubwordBatch(ids, *(field[:1] for field in BATCH[1:4]))
    torch.manual_seed(1)
    return xlnet.told(pieces, asked, known, torch.randn(12))


def test_a_piece_is_told_by_those_before_it_in_the_order_and_not_by_itself(view):
    """Through any number of layers: a leak of the piece itself would make the loss vanish, and
    nothing would be learnt."""
    xlnet = made(view, layers=3)
    before, influenced = told_with(xlnet, BATCH.ids[:1]), {}
    for place in (1, 2, 4, 5):
        changed = BATCH.ids[:1].clone()
        changed[0, place] = 20
        moved = (told_with(xlnet, changed) - before).abs().amax(1)
        influenced[place] = (moved > 1e-3).tolist()
        assert ((moved < 1e-6) | (moved > 1e-3)).all()
    three = {1: [True, True, True], 2: [False, False, False], 4: [True, False, True], 5: [True, False, False]}
    assert influenced == three


def test_a_sixth_of_the_pieces_is_asked_in_spans_of_at_most_five_words(view):
    ids = torch.randint(10, view.width, (300, 60))
    pieces = SubwordBatch(ids, torch.ones_like(ids, dtype=torch.bool), torch.zeros_like(ids), torch.full((300,), 60))
    asked = PermutedPieces.chosen(pieces, view, Noise(ids, pieces.mask))
    counts = asked.sum(1)
    assert (counts >= 10).all() and (counts <= 10 + 8).all() and counts.float().mean() < 12  # the last word is whole
    continues = torch.from_numpy(view.continues)[ids]
    assert (asked[:, 1:] == asked[:, :-1])[continues[:, 1:]].all()
    assert asked.float().mean(0).std() < 0.05, "anywhere in a text"


def test_a_span_of_n_words_has_a_probability_of_one_over_n(monkeypatch):
    """By hand: 60, 30, 20, 15 and 12 of 137."""
    numbers, laws = (torch.arange(1370) + 0.5) / 1370, []
    monkeypatch.setattr(
        "architectures.blocks.objectives.permuted_pieces.in_spans", lambda *given: laws.append(given[3])
    )
    PermutedPieces.chosen(None, None, None)
    assert lengths_by(laws[0], numbers).bincount().tolist() == [0, 600, 300, 200, 150, 120]


def test_pieces_are_told_by_the_table_of_pieces_and_a_bias(view):
    xlnet = made(view)
    learns = small(PermutedPieces, xlnet)
    pieces = view.collate(view.encode(["the cat sat on the mat and the dog sat on the cat", "a dog ran"]), np.arange(2))
    logs, texts = learns(xlnet, pieces, Noise(pieces.ids, pieces.mask))
    noise = Noise(pieces.ids, pieces.mask)
    asked = learns.chosen(pieces, view, noise)
    states = xlnet.told(pieces, asked, visible(asked, noise.uniform(pieces.ids.shape[1])), learns.query)
    expected = []
    for state, piece in zip(states, pieces.ids[asked], strict=True):
        expected.append((xlnet.table.weight @ state + learns.bias).softmax(0)[piece].log())
    assert_same(logs, torch.stack(expected), rtol=1e-4, atol=1e-4)
    assert texts.tolist() == asked.nonzero()[:, 0].tolist() and set(texts.tolist()) == {0, 1}


def test_a_text_is_asked_the_same_in_another_batch_and_something_else_in_another_pass(view):
    xlnet = made(view, layers=1)
    head = LearnText(xlnet, PieceTarget()).eval()
    texts = ["the cat sat on the mat and the dog sat on the cat", "a dog ran on the mat and on the dog and sat"]
    alone, beside = (view.collate(view.encode(some), np.arange(len(some))) for some in (texts[1:], texts))
    assert beside.ids.shape[1] > alone.ids.shape[1]
    logs, texts_of = head(xlnet, {"text": beside})[0]
    assert_same(head(xlnet, {"text": alone})[0].logs, logs[texts_of == 1])
    orders = [head(xlnet, {"text": alone, "pass": (0, number)})[0].logs for number in (1, 2)]
    assert orders[0].shape != orders[1].shape or not torch.allclose(orders[0], orders[1], atol=1e-3)


def test_the_second_stream_and_the_biases_start_small(view):
    """A start that is far off costs the first steps of each cell."""
    learns = PermutedPieces(XLNet(view.width, view))
    assert not learns.bias.any() and 0.015 < learns.query.std().item() < 0.025 and abs(learns.query.mean()) < 0.01


def test_the_floor_asks_the_same_pieces(view):
    """Else one would be compared with the shares of other pieces."""
    texts = ["the cat sat on the mat and the dog sat on the cat", "a dog ran on the mat"]
    rows, pieces = [{"text": text} for text in texts], view.collate(view.encode(texts), np.arange(2))
    asked = PermutedPieces.chosen(pieces, view, Noise(pieces.ids, pieces.mask)).sum(1)
    assert [count for _, count in PermutedPieces.floor(view, rows, rows)] == asked.tolist()


def test_both_streams_pass_the_same_weights(view):
    """The vector with which the second stream begins is all that it has of its own."""
    learns = PermutedPieces(XLNet(view.width, view))
    assert {name for name, _ in learns.named_parameters()} == {"query", "bias"}
    streams = TwoStreams(12, 3, 48, 2, 0.0, 1e-12)
    assert not any("stream" in name for name, _ in streams.named_parameters())


def test_matrices_and_the_table_decay_alone(view):
    """Of the vectors of attention, those added to queries are biases in the authors' program; those
    of segments decay."""
    xlnet = XLNet(view.width, view)
    spared = exempt(xlnet, ("biases", "norms"))
    for name, parameter in xlnet.named_parameters():
        assert (name in spared) == (parameter.dim() == 1 or "bias_" in name), name


def test_a_published_model_with_another_activation_is_refused(folder, tmp_path):
    config = transformers.XLNetConfig.from_pretrained(folder, ff_activation="relu")
    transformers.XLNetModel(config).save_pretrained(tmp_path)
    transformers.AutoTokenizer.from_pretrained(folder).save_pretrained(tmp_path)
    view = XLNet.reads("text", {"pretrained": str(tmp_path), "max_length": 32})
    view.fit([])
    with pytest.raises(ValueError, match="ff_activation is 'relu' in its config.json, expected 'gelu'"):
        XLNet(view.width, view)
