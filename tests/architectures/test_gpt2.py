"""GPT-2: the states are those of transformers' own model, no piece sees one behind it, and what is
added to the states begins small."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from architectures.pretrained.gpt2 import GPT2
from harness import registry
from harness.problems.text_objective import LearnText, PieceTarget
from harness.views.byte_subwords import ByteSubwords
from harness.views.subwords import SPECIAL
from tests.support.models import small
from tests.support.published import assert_loads, loaded
from tests.support.same import assert_same
from tests.support.transformers_weights import assert_same_states_and_gradients

transformers = pytest.importorskip("transformers")

VIEW = ByteSubwords(size=270, max_length=16)
VIEW.fit(["the cat sat on the mat", "the cat"])
BATCH = VIEW.collate(VIEW.encode(["the cat sat", "é👍", ""]), np.arange(3))


def made(stretch: float | None = 20.0, **sizes: Any) -> GPT2:
    """A model in evaluation; weights begin near 0."""
    return small(GPT2, VIEW.width, VIEW, stretch=stretch, **{"layers": 2, "hidden": 12, "heads": 3} | sizes)


def test_states_and_gradients_are_those_of_transformers():
    """Another place of the norms, another GELU, or attention to what follows would be another
    model, into which trained weights could not be loaded."""
    config = transformers.GPT2Config(
        vocab_size=VIEW.width, n_positions=16, n_embd=12, n_layer=2, n_head=3, initializer_range=0.5
    )
    torch.manual_seed(0)
    assert_same_states_and_gradients(made(), transformers.GPT2Model(config).eval(), BATCH)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A tiny GPT-2 with random weights, and a tokenizer that has one mark, as the hub holds
    them."""
    learnt = json.loads(VIEW.tokenizer.to_str())["model"]
    vocabulary = {piece: number for piece, number in learnt["vocab"].items() if piece not in SPECIAL}
    vocabulary = {piece: place for place, piece in enumerate([*vocabulary, "<|endoftext|>"])}
    merges = [tuple(merge) for merge in learnt["merges"]]
    transformers.GPT2TokenizerFast(vocab=vocabulary, merges=merges).save_pretrained(tmp_path)
    config = transformers.GPT2Config(
        vocab_size=len(vocabulary),
        n_positions=20,
        n_embd=12,
        n_layer=2,
        n_head=3,
        n_inner=30,
        initializer_range=0.5,
        bos_token_id=None,
        eos_token_id=None,
    )
    torch.manual_seed(0)
    model = transformers.GPT2Model(config)
    torch.nn.init.normal_(model.ln_f.weight)
    model.save_pretrained(tmp_path)
    return tmp_path


def test_published_weights_are_read(folder):
    assert_loads(GPT2, folder, ["the cat sat", "é👍"])
    assert_loads(GPT2, folder, ["the cat", "a"], ["on the mat", "sat"])


def test_the_one_mark_of_a_published_tokenizer_stands_at_both_ends(folder):
    """And the pieces between are those that the library divides the text into."""
    _, view = loaded(GPT2, folder)
    theirs = transformers.AutoTokenizer.from_pretrained(folder)
    batch = view.collate(view.encode(["the cat sat", "é👍"]), np.arange(2))
    mark = theirs.convert_tokens_to_ids("<|endoftext|>")
    for row, text in enumerate(["the cat sat", "é👍"]):
        assert batch.ids[row, : batch.lengths[row]].tolist() == [mark, *theirs(text)["input_ids"], mark]


def test_the_place_of_a_published_piece_is_that_of_its_word(folder):
    """Without the space in front, which an answer would begin with."""
    _, view = loaded(GPT2, folder)
    text = "the cat sat"
    assert any(piece.startswith("Ġ") and len(piece) > 1 for piece in view.tokenizer.encode(text).tokens)
    starts, ends = view.spans([text])
    words = [text[start:end] for start, end in zip(starts[0], ends[0], strict=True)]
    assert "".join(words) == "thecatsat"


@pytest.mark.parametrize(
    ("name", "value"), [("activation_function", "relu"), ("scale_attn_by_inverse_layer_idx", True)]
)
def test_a_model_that_computes_otherwise_is_refused(folder, name, value):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {name: value}))
    with pytest.raises(ValueError, match=f"{name} is {value!r} in its config.json, expected"):
        loaded(GPT2, folder)


def test_a_later_piece_changes_no_earlier_state():
    """A byte in the middle of a text is not known before it."""
    gpt = made()
    changed = BATCH.ids.clone()
    changed[1, 3] = 17
    before, after = gpt(BATCH), gpt(BATCH._replace(ids=changed))
    torch.testing.assert_close(before[1, :3], after[1, :3], rtol=0, atol=1e-6)
    assert ((before[1, 3:] - after[1, 3:]).abs().amax(1) > 1e-3).all(), "those behind see it"


def test_what_is_added_to_the_states_begins_smaller_with_depth():
    """1 / sqrt(N) of N additions: without it the states of a deep model begin large."""
    gpt = made(stretch=None, layers=8, hidden=60)
    for layer in gpt.body.layers:
        added = torch.cat([layer.attention.output.weight.flatten(), layer.feedforward[3].weight.flatten()])
        assert added.std().item() == pytest.approx(0.02 / math.sqrt(16), rel=0.03)
        others = torch.cat(
            [layer.attention.queries_keys_values.weight.flatten(), layer.feedforward[0].weight.flatten()]
        )
        assert others.std().item() == pytest.approx(0.02, rel=0.03)


def test_vectors_of_positions_begin_half_as_large_as_those_of_pieces():
    """As in the authors' program."""
    gpt = made(stretch=None, hidden=60)
    assert gpt.positions.weight.std().item() == pytest.approx(0.01, rel=0.1)
    assert gpt.table.weight.std().item() == pytest.approx(0.02, rel=0.03)


def test_the_vector_of_a_text_is_its_last_state():
    gpt = made()
    states, vectors = gpt(BATCH), gpt.vector(BATCH)
    for row, length in enumerate(BATCH.lengths.tolist()):
        assert BATCH.ids[row, length - 1] == VIEW.separator
        assert torch.equal(vectors[row], states[row, length - 1])


def test_a_text_is_asked_its_pieces_by_the_table_of_pieces():
    """The softmax of x E^T, without a bias."""
    gpt = made()
    head = LearnText(gpt, PieceTarget())
    assert not [*head.parameters()]
    logs = head(gpt, {"text": BATCH})[0].logs
    states, expected = gpt(BATCH), []
    for row, length in enumerate(BATCH.lengths.tolist()):
        for place in range(length - 1):
            shares = (gpt.table.weight @ states[row, place]).softmax(0)
            expected.append(shares[BATCH.ids[row, place + 1]].log())
    assert_same(logs, torch.stack(expected), rtol=1e-4, atol=1e-4)


def test_it_reads_pieces_of_bytes_in_their_case():
    for task in ("sst2", "conll2003_ner", "snli", "text_mix"):
        view = GPT2.view_for(registry.entry("tasks", task), {"vocabulary": 270, "max_length": 16, "stride": 4})
        assert isinstance(view, ByteSubwords)
        assert (view.size, view.max_length, view.stride, view.lower) == (270, 16, 4, False)
