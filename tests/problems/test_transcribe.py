"""Transcription: CTC against the sum over all paths, one path and a beam, architectures that score
frames or find the words themselves."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor, nn

from harness.problems import problem
from harness.problems.symbols import SymbolTarget
from harness.problems.transcribe import Transcribe, TranscribeAligned, TranscribeFrames

ASKED = problem("transcribe")
LENGTHS = torch.tensor([3, 1])
GOLD = torch.tensor([[1, 2], [2, 0]]), torch.tensor([2, 1])


def symbols() -> SymbolTarget:
    target = SymbolTarget(reserved=1, by_word=False)
    target.symbols = ["a", "b"]
    return target


class Real(nn.Module):
    """The frames as they are, and zeros where the mask says padding."""

    size = 2

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        return vectors.masked_fill(~mask[..., None], 0.0)


def frames() -> SimpleNamespace:
    mask = torch.arange(3) < LENGTHS[:, None]
    return SimpleNamespace(vectors=torch.randn(2, 3, 2), mask=mask, lengths=LENGTHS)


def cost(logs: Tensor, text: list[int]) -> Tensor:
    """The surprise of a text (T, labels): all its paths together."""

    def said(path: tuple[int, ...]) -> list[int]:
        return [label for label, _ in itertools.groupby(path) if label]

    paths = [path for path in itertools.product(range(3), repeat=len(logs)) if said(path) == text]
    return -torch.stack([sum(logs[place, label] for place, label in enumerate(path)) for path in paths]).logsumexp(0)


def test_frames_are_scored_by_one_layer_and_cost_what_the_paths_of_their_text_do():
    """Padding is masked for the encoder and of no weight in the loss, where a long text counts as
    much as a short one."""
    head, batch = Transcribe(Real(), symbols()), frames()
    outputs = head(Real(), {"text": batch})
    logs = head.output(Real()(batch.vectors, batch.mask)).log_softmax(-1)
    torch.testing.assert_close(outputs[0], logs)
    assert torch.equal(outputs[1], LENGTHS)
    rows = torch.stack([cost(logs[0], [1, 2]), cost(logs[1, :1], [2])])
    torch.testing.assert_close(head.row_losses(None, outputs, GOLD), rows)
    torch.testing.assert_close(head.loss(None, outputs, GOLD), (rows / torch.tensor([2, 1])).mean())
    assert [len(each) for each in head.evidence(None, outputs)] == [3, 1]


def test_a_text_that_is_longer_than_its_recording_costs_nothing():
    """One such row would make the weights infinite."""
    head, batch = Transcribe(Real(), symbols()), frames()
    outputs = head(Real(), {"text": batch})
    gold = torch.tensor([[1, 2], [2, 1]]), torch.tensor([2, 2])
    assert head.row_losses(None, outputs, gold)[1].item() == 0.0
    torch.testing.assert_close(head.loss(None, outputs, gold), cost(outputs[0][0], [1, 2]) / 4)


def test_a_model_of_half_the_bits_learns_too():
    """CTC has no such loss; the scores are promoted, and doubles stay what they are."""
    head, batch = Transcribe(Real(), symbols()).to(torch.bfloat16), frames()
    batch.vectors = batch.vectors.to(torch.bfloat16)
    outputs = head(Real(), {"text": batch})
    assert outputs[0].dtype == torch.float32
    head.loss(None, outputs, GOLD).backward()
    assert head.output.weight.grad.abs().sum() > 0
    batch.vectors = batch.vectors.double()
    assert head.double()(Real(), {"text": batch})[0].dtype == torch.float64


def test_the_state_of_each_frame_is_dropped_before_the_layer():
    head = Transcribe(Real(), symbols())
    head.dropout = 1.0
    scores, _ = head.scores(Real(), frames())
    assert torch.equal(scores, head.output.bias.expand(2, 3, 3))


def test_a_beam_finds_the_text_and_one_path_the_likeliest_path():
    """Twice the blank is the likeliest path; an a is likelier, since three paths say it."""
    outputs = torch.tensor([[[0.6, 0.4, 0.0]] * 2]).log(), torch.tensor([2])
    head = Transcribe(Real(), symbols())
    assert head.decode(Real(), outputs, None, None) == [""]
    assert head.decode(SimpleNamespace(beam=1), outputs, None, None) == [""]
    assert head.decode(SimpleNamespace(beam=3), outputs, None, None) == ["a"]


def test_one_path_is_no_beam_of_one_prefix():
    """A prefix is as likely as all its paths: the a alone has more of the second frame than the b
    behind it, which is on the likeliest path."""
    outputs = torch.tensor([[[0.3, 0.6, 0.1], [0.35, 0.25, 0.4]]]).log(), torch.tensor([2])
    assert Transcribe(Real(), symbols()).decode(Real(), outputs, None, None) == ["ab"]


def test_an_architecture_that_scores_the_labels_gets_no_layer():
    scores = torch.randn(1, 2, 3)
    head = TranscribeFrames(None, symbols())
    found, lengths = head(lambda read: (scores + read, "lengths"), {"text": 1.0})
    assert not [*head.parameters()] and lengths == "lengths"
    torch.testing.assert_close(found, (scores + 1).log_softmax(-1))


class Aligning:
    """Finds the words itself; a row costs as much as its text is long."""

    aligns = True

    def __call__(self, read: SimpleNamespace) -> tuple[Tensor, Tensor]:
        return read.vectors, read.lengths

    def transcript_losses(self, logs: Tensor, lengths: Tensor, read: SimpleNamespace, texts: list[str]) -> Tensor:
        self.texts = texts
        return torch.tensor([10.0 * len(text) for text in texts])

    def transcribed(self, logs: Tensor, lengths: Tensor, read: SimpleNamespace) -> list[str]:
        return ["own", "words"]


def test_who_finds_words_itself_is_told_the_texts_and_asked_for_them():
    head, encoder = TranscribeAligned(None, symbols()), Aligning()
    outputs = head(encoder, {"text": frames()})
    assert head.row_losses(encoder, outputs, GOLD).tolist() == [20.0, 10.0]
    assert encoder.texts == ["ab", "b"]
    assert head.loss(encoder, outputs, GOLD).item() == 15.0
    answers = [{"prediction": "own"}, {"prediction": "words"}]
    assert head.answers(encoder, outputs, None, None) == answers, "it says no probability"


def test_who_has_nobody_that_knows_the_places_learns_by_ctc():
    encoder, batch = Aligning(), frames()
    batch.vectors = torch.randn(2, 3, 3)
    encoder.aligns = False
    head, plain = TranscribeAligned(None, symbols()), TranscribeFrames(None, symbols())
    outputs, expected = head(encoder, {"text": batch}), plain(encoder, {"text": batch})
    torch.testing.assert_close(head.row_losses(encoder, outputs, GOLD), plain.row_losses(encoder, expected, GOLD))
    torch.testing.assert_close(head.loss(encoder, outputs, GOLD), plain.loss(encoder, expected, GOLD))
    assert head.answers(encoder, outputs, None, None) == plain.answers(encoder, expected, None, None)
    assert [each.tolist() for each in head.evidence(encoder, outputs)] == [
        each.tolist() for each in plain.evidence(encoder, expected)
    ]


@pytest.mark.parametrize(("gives", "reserved"), [("states", 1), ("frame labels", 1), ("next symbols", 4)])
def test_characters_stand_behind_the_blank_or_behind_what_a_writer_needs(gives, reserved):
    target = ASKED.target(gives)
    assert (target.reserved, target.by_word) == (reserved, False)


def test_the_floors_by_hand():
    train = [{"transcript": text} for text in ("no", "yes", "yes", "go")]
    assert ASKED.floors(train, [{}] * 3) == {"nothing": [""] * 3, "majority": ["yes"] * 3}
