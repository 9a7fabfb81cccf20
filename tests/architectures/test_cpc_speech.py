"""Contrastive predictive coding: c by a GRU over what comes before, kept still above a parent."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from architectures.speech.cpc_speech import CPC
from harness import registry
from harness.problems.audio import LearnAudio
from harness.problems.base import NoTarget
from harness.problems.transcribe import Transcribe
from harness.views.frames import FrameBatch, Samples
from tests.support.models import small
from tests.support.oracles import gru, recurrent
from tests.support.same import assert_same

SIZES = {"size": 3, "context": 4}


def samples(*lengths: int) -> FrameBatch:
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    vectors = torch.randn(*mask.shape, 160, generator=torch.Generator().manual_seed(0))
    return FrameBatch(vectors * mask[..., None], mask, torch.tensor(lengths))


def test_c_is_the_state_of_a_gru_over_z():
    """It reads z in order; its state is what labels are read from, and z what is foretold."""
    model, read = small(CPC, 160, Samples(), **SIZES), samples(5, 3)
    z, c = model.ahead(read)
    assert z.shape == (2, 5, model.frame) and c.shape == (2, 5, model.context)
    torch.testing.assert_close(z, model.listener.convolutions(read.vectors))
    for row, length in enumerate((5, 3)):
        assert_same(c[row, :length], recurrent(model.listener.recurrence, z[row, :length], gru), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(model(read.vectors, read.mask), c)


def test_c_is_blind_to_the_future():
    """It would foretell what it has heard."""
    model, read = small(CPC, 160, Samples(), **SIZES), samples(6)
    changed = read.vectors.clone()
    changed[:, 4:] = 3.0
    torch.testing.assert_close(model(changed, read.mask)[:, :4], model(read.vectors, read.mask)[:, :4])


def test_above_a_parent_the_layer_of_the_labels_alone_is_trained():
    """Otherwise the score would not tell what was learnt from recordings alone."""
    parent, child = small(CPC, 160, Samples(), **SIZES), CPC(160, Samples(), **SIZES)
    child.inherit("weights", SimpleNamespace(model=SimpleNamespace(encoder=parent)), [])
    target = type("Symbols", (), {"__len__": lambda self: 5})()
    head = Transcribe(child, target)
    child.train()
    read = samples(5, 3)
    scores, _ = head(child, {"text": read})
    torch.testing.assert_close(child(read.vectors, read.mask), parent(read.vectors, read.mask))
    scores.sum().backward()
    assert all(p.grad is None for p in child.parameters()) and head.output.weight.grad is not None


def test_a_child_reads_as_its_parent_does():
    """At another rate or with other deviations its vectors would be noise."""
    parent = Samples(rate=4000)
    parent.restore({"mean": [1.0] * 160, "deviation": [2.0] * 160})
    view = CPC.inherited_view(Samples(), "weights", SimpleNamespace(view=parent))
    view.fit([])
    assert (view.rate, view.state()) == (4000, parent.state())


def test_it_learns_from_recordings_and_answers_about_them():
    """On texts it has nothing to read."""
    entry = registry.entry("architectures", "cpc_speech")
    assert CPC.reason_to_skip(registry.entry("tasks", "sst2"), {}) is not None
    for task in ("audio_mix", "an4", "fsdd_class"):
        assert CPC.reason_to_skip(registry.entry("tasks", task), {}) is None
    assert dict(entry.parents) == {"weights": "cpc_speech@audio_mix"}
    head = LearnAudio(small(CPC, 160, Samples(), **SIZES), NoTarget())
    assert len(head.learns.foretell) == 12


def test_default_sizes_are_declared():
    """A quarter of the paper's channels, and its context."""
    model = CPC(160, Samples())
    assert (model.frame, model.context) == (128, 256)
    assert len(model.listener.recurrence.forwards) == 1 and not model.listener.recurrence.backwards


@pytest.mark.parametrize("length", [1, 2])
def test_short_recordings_can_be_read(length):
    """A recording of one block has a vector."""
    read = samples(length)
    assert small(CPC, 160, Samples(), **SIZES)(read.vectors, read.mask).shape == (1, length, 4)
