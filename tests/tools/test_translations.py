"""The table of what encoders of two languages know of translations."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from architectures.blocks.objectives.masked_languages import MaskedLanguages
from architectures.pretrained.xlm import XLM
from harness.views.languages import TwoLanguages
from tasks.multi30k_both import texts
from tests.support.models import small
from tests.support.plain_text import batch, noise_of
from tools import translations as tool

PAIRS = [
    {"id": "test-1", "source": "a cat sat on the mat .", "target": "eine katze saß ."},
    {"id": "test-2", "source": "a dog .", "target": "dort läuft ein hund im park ."},
    {"id": "test-3", "source": "the dog ran away", "target": "der hund rannte weg"},
]
ROWS = list(texts(PAIRS))


@pytest.fixture(scope="module")
def model() -> SimpleNamespace:
    view = TwoLanguages(size=90, max_length=32)
    view.fit([row["text"] for row in ROWS])
    encoder = small(XLM, view.width, view, layers=1, hidden=12, heads=3)
    return SimpleNamespace(encoder=encoder, head=SimpleNamespace(learns=small(MaskedLanguages, encoder)), eval=dict)


def test_the_nearest_vector_is_right_where_it_has_the_same_number():
    """By hand: two of three are."""
    ones = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    others = torch.tensor([[0.9, 0.1], [0.1, 0.9], [0.5, 0.5]])
    assert tool.right(ones, others) == pytest.approx(2 / 3)


def test_a_mean_state_has_no_padding_and_not_what_all_have_in_common(model):
    """The language would else be what texts are told by."""
    with torch.no_grad():
        found = tool.means(model.encoder, tool.of_kind(ROWS, tool.TARGET))
        states = [model.encoder(batch(model.encoder.view, f"␞ {pair['target']}"))[0].mean(0) for pair in PAIRS]
    vectors = np.stack([state.numpy() for state in states])
    vectors = vectors - vectors.mean(0)
    expected = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    torch.testing.assert_close(found, torch.from_numpy(expected), rtol=1e-4, atol=1e-4)


def test_the_same_pieces_are_asked_with_the_other_side_and_without(model):
    """Else the two numbers could not be compared; the encoder is as before."""
    encoder, objective = model.encoder, model.head.learns
    _, _, beside, alone = tool.found(model, ROWS)
    assert encoder.translation is True and beside != pytest.approx(alone)
    pieces = batch(encoder.view, *(row["text"] for row in tool.of_kind(ROWS, tool.BOTH)))
    with torch.no_grad():
        assert -float(objective(encoder, pieces, noise_of(pieces)).logs.mean()) == pytest.approx(beside, abs=1e-4)
        encoder.translation = False
        assert -float(objective(encoder, pieces, noise_of(pieces)).logs.mean()) == pytest.approx(alone, abs=1e-4)
        encoder.translation = True


def test_the_table_has_a_line_for_each_model(model, monkeypatch, capsys):
    part = SimpleNamespace(architecture="xlm")
    kept = SimpleNamespace(model=model, description=SimpleNamespace(part=part))
    asked: list[Path] = []
    monkeypatch.setattr(tool, "load", lambda folder: asked.append(folder) or kept)
    assert tool.main(["one", "two"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert asked == [Path("one"), Path("two")] and len(lines) == 3
    assert lines[1].split()[0] == "xlm" and len(lines[1].split()) == len(lines[0].split()) == 5
