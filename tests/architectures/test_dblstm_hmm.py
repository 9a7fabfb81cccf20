"""Hybrid of a BiLSTM and hidden Markov models: frames are told their states, and paths are found by
what a state explains beyond its share."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import Tensor

from architectures.classical.hmm_gmm import HMMRecogniser
from architectures.speech.dblstm_hmm import BothFrames, FramesOfBoth, HybridRecogniser
from harness import registry
from harness.errors import ModelError
from harness.problems.symbols import SymbolTarget
from harness.problems.transcribe import TranscribeAligned
from tasks.mini import speech
from tests.support.models import small
from tests.support.oracles import recurrent
from tests.support.same import assert_same

ROWS = list(speech.letters("train"))[:24]


@pytest.fixture(scope="module")
def hmm() -> HMMRecogniser:
    found = HMMRecogniser(states=3, quiet=1, gaussians=1, rounds=2)
    found.fit(ROWS, [])
    return found


@pytest.fixture(scope="module")
def view() -> FramesOfBoth:
    found = FramesOfBoth(stack=3)
    found.fit([row["audio"] for row in ROWS])
    return found


@pytest.fixture
def model(hmm, view) -> HybridRecogniser:
    made = small(HybridRecogniser, view.width, labels=5, view=view, hidden=4, layers=2)
    made.inherit("inputs", SimpleNamespace(estimator=hmm), [])
    return made


def batch(view: FramesOfBoth, *numbers: int) -> BothFrames:
    return view.collate(view.encode([row["audio"] for row in ROWS]), np.array(numbers))


def transcripts(*numbers: int) -> list[str]:
    return [ROWS[number]["transcript"] for number in numbers]


def test_the_layer_of_the_states_begins_as_the_others(model):
    """It is made when the parent is known, and takes the place of one that was begun before."""
    for weights in model.output.parameters():
        assert 0.5 * model.limit < weights.abs().max() <= model.limit


def test_scores_are_linear_in_the_states_of_a_stacked_bilstm(model, view):
    """One score for each state of the recogniser."""
    frames = batch(view, 0, 1)
    scores, lengths = model(frames)
    assert scores.shape[2] == len(model.hmm.shares) and torch.equal(lengths, frames.lengths)
    row = int(frames.lengths.argmin())
    states = recurrent(model.recurrence, frames.vectors[row, : lengths[row]])
    assert_same(scores[row, : lengths[row]], states @ model.output.weight.T + model.output.bias, rtol=1e-4, atol=1e-4)


def test_the_loss_is_the_cross_entropy_with_the_aligned_states(model, view, hmm):
    """Of the first of each three frames; summed over the recording, as the weights of a batch's
    recordings are their lengths."""
    frames = batch(view, 0, 1, 2)
    logs = torch.randn(3, frames.vectors.shape[1], len(hmm.shares)).log_softmax(2).requires_grad_()
    found = model.transcript_losses(logs, frames.lengths, frames, transcripts(0, 1, 2))
    expected = []
    for row, number in enumerate((0, 1, 2)):
        states = hmm.aligned(hmm.frames(ROWS[number]["audio"]), ROWS[number]["transcript"].split())
        asked = [-logs[row, t, states[3 * t]] for t in range(int(frames.lengths[row]))]
        expected.append(torch.stack(asked).sum())
    assert_same(found, torch.stack(expected), rtol=1e-4, atol=1e-3)


def test_words_that_training_never_had_are_not_asked(model, view, hmm):
    """Dev may have some; a loss of no number would end the cell."""
    frames = batch(view, 0)
    logs = torch.randn(1, frames.vectors.shape[1], len(hmm.shares)).log_softmax(2)
    assert model.transcript_losses(logs, frames.lengths, frames, ["zulu"]).tolist() == [0]


def one_hot(hmm: HMMRecogniser, frames: BothFrames, numbers: tuple[int, ...]) -> Tensor:
    """Log-probabilities of a network that is sure of the states of the alignment."""
    logs = torch.full((len(numbers), frames.vectors.shape[1], len(hmm.shares)), -40.0)
    for row, number in enumerate(numbers):
        states = hmm.aligned(hmm.frames(ROWS[number]["audio"]), ROWS[number]["transcript"].split())[::3]
        logs[row, np.arange(len(states)), states] = 0.0
    return logs


def test_a_network_that_is_sure_of_the_alignment_gives_its_words(model, view, hmm):
    """Frames stand for three each, and the last ones for what is left."""
    frames = batch(view, 3, 4, 5)
    assert model.transcribed(one_hot(hmm, frames, (3, 4, 5)), frames.lengths, frames) == transcripts(3, 4, 5)


def test_probabilities_are_divided_by_the_shares_of_the_states(model, view, hmm, monkeypatch):
    """Otherwise silence, the commonest of all, would be heard everywhere. Shares that are all alike
    change no path."""
    frames = batch(view, 0)
    logs = torch.randn(1, frames.vectors.shape[1], len(hmm.shares)).log_softmax(2)
    given = []
    monkeypatch.setattr(hmm, "decoded", lambda emissions: given.append(emissions) or ["a"])
    assert model.transcribed(logs, frames.lengths, frames) == ["a"]
    length = int(frames.heard_lengths[0])
    expected = [(logs[0, t // 3].double().numpy() - hmm.shares) for t in range(length)]
    np.testing.assert_allclose(given[0], expected, rtol=1e-5)
    monkeypatch.undo()
    before = model.transcribed(logs, frames.lengths, frames)
    uniform = hmm.shares - hmm.shares + np.log(1 / len(hmm.shares))
    monkeypatch.setattr(hmm, "shares", uniform)
    plain = hmm.decoded(np.repeat(logs[0].double().numpy(), 3, axis=0)[:length])
    assert model.transcribed(logs, frames.lengths, frames) == [" ".join(plain)] and isinstance(before[0], str)


def test_the_head_asks_for_the_alignment_and_without_a_parent_for_labels(model, view):
    """Both train and answer; transcripts reach the loss as they are."""
    target = SymbolTarget(reserved=1, by_word=False)
    target.fit(ROWS)
    asked = target.collate(target.encode([ROWS[0], ROWS[1]], view), np.arange(2))
    frames = batch(view, 0, 1)
    head = TranscribeAligned(model, target)
    outputs = head(model, {"text": frames})
    logs = model(frames)[0].log_softmax(2)
    expected = model.transcript_losses(logs, frames.lengths, frames, transcripts(0, 1))
    torch.testing.assert_close(head.row_losses(model, outputs, asked), expected)
    torch.testing.assert_close(head.loss(model, outputs, asked), expected.mean())
    assert head.decode(model, outputs, None, None) == model.transcribed(logs, frames.lengths, frames)
    alone = small(HybridRecogniser, view.width, labels=len(target), view=view, hidden=4, layers=1)
    head = TranscribeAligned(alone, target)
    outputs = head(alone, {"text": frames})
    assert (
        not alone.aligns and head.loss(alone, outputs, asked) > 0 and len(head.decode(alone, outputs, None, None)) == 2
    )


def test_a_recording_is_aligned_once(model, view, monkeypatch):
    """A pass over the data would else take minutes."""
    frames = batch(view, 0)
    logs = torch.zeros(1, frames.vectors.shape[1], len(model.hmm.shares))
    first = model.transcript_losses(logs, frames.lengths, frames, transcripts(0))
    monkeypatch.setattr(model.hmm, "aligned", lambda *_: pytest.fail("it was aligned again"))
    torch.testing.assert_close(model.transcript_losses(logs, frames.lengths, frames, transcripts(0)), first)


def test_another_parent_is_refused(view):
    """One without states could align nothing."""
    made = small(HybridRecogniser, view.width, labels=5, view=view, hidden=4, layers=1)
    with pytest.raises(ModelError, match="no recogniser of hidden Markov models"):
        made.inherit("inputs", SimpleNamespace(estimator=None), [])


def test_defaults_are_those_of_the_paper():
    """Three layers of 500 each way, and the first recogniser as the parent."""
    made = HybridRecogniser(10, 5, FramesOfBoth())
    assert len(made.recurrence.forwards) == 3 and made.recurrence.size == 1000
    assert dict(registry.entry("architectures", "dblstm_hmm").parents) == {"inputs": "hmm_gmm"}
    assert (
        all(0.09 < p.abs().max() <= 0.1 for p in made.parameters() if p.dim() > 1) and HybridRecogniser.view.deltas == 2
    )
