"""Deep BiLSTM with CTC: the loss by enumeration of paths, decoding by hand, the stack against
torch's own."""

from __future__ import annotations

import io
import itertools

import numpy as np
import pytest
import soundfile
import torch
from torch import Tensor, nn

from architectures.speech.bilstm_ctc import BiLSTMCTC
from harness.problems.symbols import SymbolTarget
from harness.problems.transcribe import TranscribeFrames
from harness.views.frames import FrameBatch
from tests.support.batches import assert_each_alone, random_texts
from tests.support.models import small
from tests.support.oracles import lstm
from tests.support.same import assert_same

BLANK, S, T = 0, 1, 2


def model(layers: int = 1, beam: int = 1) -> tuple[BiLSTMCTC, TranscribeFrames]:
    target = SymbolTarget(reserved=1, by_word=False)
    target.symbols = ["s", "t"]
    encoder = small(BiLSTMCTC, 4, labels=len(target), hidden=5, layers=layers, beam=beam)
    return encoder, TranscribeFrames(encoder, target)


def frames(lengths: list[int]) -> FrameBatch:
    texts = random_texts(lengths, 1, 4)
    return FrameBatch(texts.vectors, texts.mask, texts.lengths)


def probability(emitted: Tensor, labels: list[int]) -> Tensor:
    """Sum over all paths through the frames (T, L) that give ``labels`` once repeats are merged and
    blanks dropped."""
    total = torch.zeros(())
    for path in itertools.product(range(emitted.shape[1]), repeat=len(emitted)):
        if [label for label, _ in itertools.groupby(path) if label != BLANK] == labels:
            total = total + torch.stack([frame[label] for frame, label in zip(emitted, path, strict=True)]).prod()
    return total


def test_loss_is_minus_the_log_of_the_sum_over_all_paths():
    """Three frames and two labels; ``ss`` needs a blank between, so exactly one path spells it.
    Mean over rows, per symbol."""
    encoder, head = model()
    inputs = {"text": frames([3, 3, 2])}
    wanted = [[S, T], [S, S], [T]]
    target = torch.tensor([[S, T], [S, S], [T, 0]]), torch.tensor([2, 2, 1])
    outputs = head(encoder, inputs)
    found = head.loss(encoder, outputs, target)
    emitted = encoder(inputs["text"])[0].softmax(-1)
    expected = [
        -probability(emitted[row, :length], labels).log() / len(labels)
        for row, (labels, length) in enumerate(zip(wanted, [3, 3, 2], strict=True))
    ]
    assert_same(found, torch.stack(expected).mean())
    assert_same(probability(emitted[1], [S, S]), emitted[1, 0, S] * emitted[1, 1, BLANK] * emitted[1, 2, S])


def paths(*spelt: list[int]) -> tuple[Tensor, Tensor]:
    """Frame scores whose most probable paths are the given ones."""
    return torch.log(nn.functional.one_hot(torch.tensor(spelt), 3) * 0.9 + 0.03), torch.tensor(
        [len(path) for path in spelt]
    )


def test_best_path_merges_repeats_before_it_drops_blanks():
    """``s s - s`` is two letters: dropping blanks first would leave one."""
    encoder, head = model()
    outputs = paths([S, S, BLANK, S], [S, S, T, T], [BLANK, BLANK, BLANK, BLANK])
    assert head.decode(encoder, outputs, None, None) == ["ss", "st", ""]


def test_a_beam_sums_over_paths_where_the_best_path_is_the_wrong_answer():
    """Two frames with blank .6 and s .4: the best path is empty (.36), but ``s`` has .64 in all."""
    scores = torch.log(torch.tensor([[[0.6, 0.4, 1e-9]] * 2])), torch.tensor([2])
    for beam, answer in ((1, ""), (4, "s")):
        encoder, head = model(beam=beam)
        assert head.decode(encoder, scores, None, None) == [answer]


@pytest.mark.parametrize("layers", [1, 2])
def test_layers_are_stacked_and_read_in_both_directions(layers):
    """The scores are linear in the states of a bidirectional LSTM."""
    encoder, _ = model(layers=layers)
    inputs = frames([6, 4])
    scores, lengths = encoder(inputs)
    assert lengths.tolist() == [6, 4]

    def written_out(vectors: Tensor) -> Tensor:
        for forwards, backwards in zip(encoder.recurrence.forwards, encoder.recurrence.backwards, strict=True):
            vectors = torch.cat([lstm(forwards, vectors), lstm(backwards, vectors.flip(0)).flip(0)], dim=1)
        return vectors @ encoder.output.weight.T + encoder.output.bias

    assert len(encoder.recurrence.forwards) == layers

    assert_each_alone(scores, written_out, (inputs.vectors, inputs.mask), states=True)


def test_weights_start_uniform_within_the_papers_bound():
    """A Gaussian start has tails; PyTorch's depends on the size of a layer."""
    encoder = BiLSTMCTC(246, labels=30)
    assert len(encoder.recurrence.forwards) == len(encoder.recurrence.backwards) == 3
    for name, weight in encoder.named_parameters():
        assert 0.09 < weight.abs().max() <= 0.1, name
        assert abs(weight.std() * 3**0.5 - 0.1) < 0.02, name


def test_features_are_filters_and_energy_with_both_differences():
    """123 numbers a frame, two frames a step: 40 bands and their energy, their slopes over five
    frames, and the slopes of these. Without differences the network would hear less than the
    paper's."""
    view = BiLSTMCTC.reads("audio", {})
    assert view.width == 2 * 3 * (40 + 1)
    file = io.BytesIO()
    samples = np.random.default_rng(0).normal(size=4000).astype(np.float32) * np.linspace(0.01, 0.3, 4000)
    soundfile.write(file, samples, 8000, format="WAV")
    features = view.features({"bytes": file.getvalue(), "path": "noise.wav"})
    assert features.shape[1] == 123
    bands, slopes, bends = np.split(features, 3, axis=1)
    for frame in range(2, len(features) - 2):
        for found, of in ((slopes, bands), (bends, slopes)):
            expected = (2 * (of[frame + 2] - of[frame - 2]) + of[frame + 1] - of[frame - 1]) / 10
            np.testing.assert_allclose(found[frame], expected, atol=1e-4)
