"""Plain recordings: what is asked belongs to the recording, and the pass decides what is drawn."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from harness import registry
from harness.errors import ContractError
from harness.kinds import AudioEncoder
from harness.problems.audio import AudioObjective, AudioProblem, FromAudio, LearnAudio
from harness.problems.base import NoTarget
from harness.problems.text_objective import Foretold, PieceTarget
from harness.views.frames import FrameBatch, Samples


class Drawn(AudioObjective):
    """One that answers with the first number that it draws for a recording."""

    unit = "numbers"

    @classmethod
    def choices(cls, view):
        return 4

    def forward(self, encoder, read, noise):
        draws = noise.uniform(1)[:, 0]
        return Foretold(-draws, torch.arange(len(draws)))


class Encoder:
    """One that learns so."""

    learns, size, keeps_head, view = Drawn, 3, False, Samples(rate=8000)

    @staticmethod
    def output_form() -> str:
        return "frame states"


def recordings(*lengths: int) -> FrameBatch:
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    vectors = torch.randn(*mask.shape, 3, generator=torch.Generator().manual_seed(0)) * mask[..., None]
    return FrameBatch(vectors, mask, torch.tensor(lengths))


def drawn(read: FrameBatch, **inputs) -> list[float]:
    head = LearnAudio(Encoder(), NoTarget())
    (logs, _), rows = head(Encoder(), {"text": read, **inputs})
    assert rows == len(read.mask)
    return logs.tolist()


def test_what_is_drawn_depends_on_the_recording_and_the_pass_alone():
    """Not on the batch or its padding: a training on two devices would ask other things."""
    read = recordings(5, 9)
    alone = FrameBatch(read.vectors[:1, :5].contiguous(), read.mask[:1, :5], read.lengths[:1])
    assert drawn(alone) == drawn(read)[:1] == drawn(read)[:1]
    assert drawn(read)[0] != drawn(read)[1]
    assert drawn(read, **{"pass": (0, 1)}) != drawn(read, **{"pass": (0, 2)}) != drawn(read)


def test_recordings_are_read_whole():
    """They are neither cut nor joined, as texts are."""
    split = SimpleNamespace()
    assert FromAudio(None, None).portions(split, None) is split and not Drawn.packs
    assert LearnAudio.trained_by is FromAudio


def problem() -> AudioProblem:
    entry = registry.entry("problems", "audio")
    return registry.load(entry)(entry)


def test_the_floor_is_all_answers_alike_and_the_score_says_what_it_counts():
    """An encoder below it has learnt nothing; scores of two objectives are not compared."""
    target = NoTarget()
    problem().head(Encoder(), target)
    assert target.counted["name"] == "numbers" and target.counted["symbols"] == 4
    found = problem().floors_of(Encoder, [], [{}, {}], Samples())
    assert list(found) == ["numbers"]
    np.testing.assert_allclose(found["numbers"], [[-np.log(4), 1]] * 2, rtol=1e-6)
    assert problem().right({}) == [0.0, 1] and problem().by_heart([{}], Encoder) == [[0.0, 1]]


def test_a_floor_counts_the_answers_of_a_view_that_heard_the_training_recordings():
    """A view that is fitted already hears them no second time; without one, the architecture's own
    is fitted."""

    class Heard(Drawn):
        @classmethod
        def choices(cls, view):
            return len(view.heard)

    own = SimpleNamespace(fit=lambda recordings: setattr(own, "heard", recordings))
    system = SimpleNamespace(learns=Heard, reads=lambda kind, settings: own)
    train = [{"audio": "a"}, {"audio": "b"}]
    assert problem().floors_of(system, train, [{}]) == {"numbers": [[-math.log(2), 1]]}
    assert own.heard == ["a", "b"]
    fitted = SimpleNamespace(heard="xyz")
    assert problem().floors_of(system, train, [{}], fitted) == {"numbers": [[-math.log(3), 1]]}


def test_who_is_asked_for_frames_finds_one_among_eleven():
    """A table that names another number compares scores with the wrong floor."""
    assert problem().floors([], [{}, {}]) == {"uniform": [[-math.log(11), 1]] * 2}
    assert problem().tokens(SimpleNamespace()) == {"name": "frames", "symbols": 11}
    target = PieceTarget()
    target.counted = {"name": "numbers", "symbols": 4}
    assert problem().tokens(target) == target.counted, "a model that counts something else says so"


def test_the_order_in_which_a_view_tells_its_settings_is_no_other_unit():
    """Results of one setting would not be compared."""
    found = []
    for settings in ({"rate": 8000, "mels": 24}, {"mels": 24, "rate": 8000}):
        encoder, target = Encoder(), PieceTarget()
        encoder.view = SimpleNamespace(settings=lambda settings=settings: settings)
        problem().head(encoder, target)
        found.append(target.counted["artefact"])
    assert found[0] == found[1]


def test_a_probability_above_one_is_told():
    with pytest.raises(ContractError, match=r"row a have the log-probability 0\.5"):
        problem().sound(None, lambda rows: [[0.5, 1]], [{"id": "a"}])


class Hears(AudioEncoder):
    """One that learns so, and whose weight is known."""

    learns = Drawn

    def __init__(self, weight: float = 0.0):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1, bias=False)
        torch.nn.init.constant_(self.layer.weight, weight)


def test_an_encoder_without_an_objective_is_left_out_of_plain_recordings():
    """Its cells would be planned and then fail for who writes an encoder of labels alone."""
    assert Hears.can_answer("audio") and not AudioEncoder.can_answer("audio") and AudioEncoder.can_answer("transcribe")


@pytest.mark.parametrize(("role", "weight"), [("weights", 2.0), ("teacher", 0.0)])
def test_weights_go_over_in_the_role_of_weights_alone(role, weight):
    """A child that takes a teacher would begin as its copy."""
    child = Hears()
    child.inherit(role, SimpleNamespace(model=SimpleNamespace(encoder=Hears(2.0))), [])
    assert child.layer.weight.item() == weight
