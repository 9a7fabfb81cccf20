"""Recordings: a wrong rate or filter bank would give every speech model noise, and no error."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
import soundfile

from harness.files import RATES
from harness.views.coded_frames import CodedFrames
from harness.views.frames import Frames, Samples, cepstra, decode, differences, mel_filters
from tasks.readers import speech


def wav(samples: np.ndarray, rate: int = 8000, path: str = "tone.wav") -> dict:
    file = io.BytesIO()
    soundfile.write(file, samples, rate, format="WAV", subtype="PCM_16")
    return {"bytes": file.getvalue(), "path": path}


def tone(frequency: float, seconds: float = 0.5, rate: int = 8000) -> np.ndarray:
    return 0.5 * np.sin(2 * np.pi * frequency * np.arange(int(seconds * rate)) / rate)


def noise(samples: int = 4000, seed: int = 0) -> np.ndarray:
    return 0.1 * np.random.default_rng(seed).standard_normal(samples)


def mel(frequency: float) -> float:
    return 2595 * np.log10(1 + frequency / 700)


@pytest.mark.parametrize("frequency", [300, 1000, 1700, 3000])
@pytest.mark.parametrize("rate", [8000, 16000, 44100])
def test_a_tone_peaks_in_its_mel_band(frequency, rate):
    """Band k is centred on (k + 1) / 41 of the mel scale up to 4 kHz, whatever rate the file
    has."""
    features = Frames(energy=False).features(wav(tone(frequency, rate=rate), rate))
    assert abs(features.mean(axis=0).argmax() - (mel(frequency) / mel(4000) * 41 - 1)) <= 0.75


@pytest.mark.parametrize(("samples", "frames"), [(1, 1), (199, 1), (200, 1), (279, 1), (280, 2), (8000, 98)])
def test_number_of_frames(samples, frames):
    """25 ms windows of 200 samples every 80 samples."""
    assert Frames(stack=1).features(wav(noise(samples))).shape == (frames, 41)


def test_one_frame_is_the_textbook_calculation():
    """Pre-emphasis, Hann window, a Fourier sum written out, triangles over mel, logarithm."""
    audio = wav(noise(200))
    samples = decode(audio, 8000).astype(np.float64)
    emphasised = np.array([samples[t] - 0.97 * samples[t - 1] if t else samples[0] for t in range(200)])
    windowed = emphasised * (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(200) / 199))
    fourier = np.exp(-2j * np.pi * np.outer(np.arange(129), np.arange(200)) / 256) @ windowed
    power = np.abs(fourier) ** 2 / 256
    edges = [700 * (10 ** (m / 2595) - 1) for m in np.linspace(0, mel(4000), 12)]
    bands = [
        sum(p * np.interp(k * 8000 / 256, edges[i : i + 3], [0, 1, 0]) for k, p in enumerate(power)) for i in range(10)
    ]
    assert np.allclose(Frames(mels=10).features(audio)[0], np.log([*bands, power.sum()]), atol=1e-3)


def test_every_filter_covers_a_point_and_neighbours_add_up_to_one():
    filters = mel_filters(40, 256, 8000)
    assert filters.max(axis=1).min() > 0
    inner = (np.arange(129) * 31.25 > 50) & (np.arange(129) * 31.25 < 3700)
    assert np.allclose(filters.sum(axis=0)[inner], 1, atol=1e-5)


def test_differences_are_slopes():
    assert np.allclose(differences(np.arange(9.0)[:, None] * [[3, -1]])[2:-2], [[3, -1]])
    assert np.allclose(differences(np.full((1, 2), 7.0)), 0)


def fitted(**options) -> Frames:
    view = Frames(**options)
    view.fit([wav(noise(4000)), wav(tone(500) + noise(4000, 1))])
    return view


@pytest.mark.parametrize("deltas", [0, 1, 2])
@pytest.mark.parametrize("stack", [1, 3])
def test_training_frames_have_mean_0_and_variance_1(deltas, stack):
    view = fitted(deltas=deltas, stack=stack)
    columns = view.encode([wav(noise(4000)), wav(tone(500) + noise(4000, 1))])
    values = columns["vectors"].values
    assert values.shape[1] == view.width == 41 * (1 + deltas) * stack
    frames = values.reshape(-1, 41 * (1 + deltas))
    assert np.allclose(frames.mean(axis=0), 0, atol=1e-4) and np.allclose(frames.std(axis=0), 1, atol=1e-3)
    assert view.lengths(columns).tolist() == [-(-48 // stack)] * 2


def test_other_recordings_do_not_move_the_statistics():
    view = fitted()
    loud = view.encode([wav(5 * noise(4000))])["vectors"].values
    assert loud.mean() > 0.5
    assert view.state() == fitted().state()


def test_stacked_frames_stand_side_by_side_and_the_last_is_repeated():
    one, two = fitted(stack=1), fitted(stack=2)
    audio = wav(noise(200 + 2 * 80))
    single, joined = (view.encode([audio])["vectors"].values for view in (one, two))
    assert np.allclose(joined, [np.concatenate(single[[0, 1]]), np.concatenate(single[[2, 2]])])


def test_batch_is_padded_with_zeros():
    view = fitted()
    columns = view.encode([wav(noise(2000)), wav(noise(500))])
    batch = view.collate(columns, np.array([1, 0]))
    assert batch.lengths.tolist() == [2, 12] == batch.mask.sum(1).tolist()
    assert batch.vectors.shape == (2, 12, view.width) and batch.vectors[0, 2:].abs().sum() == 0
    assert np.array_equal(batch.vectors[1].numpy(), columns["vectors"][0])


def test_channels_are_averaged():
    samples = noise(300)
    assert np.allclose(decode(wav(np.column_stack([samples, -samples])), 8000), 0, atol=1e-4)


def test_silence_is_finite():
    view = Frames(deltas=2)
    view.fit([wav(np.zeros(1000))])
    values = view.encode([wav(np.zeros(1000)), wav(noise(1000))])["vectors"].values
    assert np.isfinite(values).all() and np.abs(values[:6]).max() < 1e-3


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (lambda data: data[:3000], "cut off"),
        (lambda data: b"", "not a readable recording"),
        (lambda data: b"no sound" * 20, "not a readable recording"),
        (lambda data: None, "not a readable recording"),
        (lambda data: wav(np.zeros(0))["bytes"], "no samples"),
    ],
)
def test_a_damaged_recording_is_named(damage, problem):
    audio = wav(noise(4000), path="an4/x.wav")
    with pytest.raises(ValueError, match=f"an4/x.wav: .*{problem}"):
        Frames().fit([audio | {"bytes": damage(audio["bytes"])}])


@pytest.mark.parametrize("rate", [1, 3999, 192_001, 2**31 - 1])
def test_a_recording_of_a_rate_that_no_device_has_is_named(rate):
    """A thousand bytes that claim one sample a second would become 32 MB, longer ones all memory
    that there is."""
    audio = wav(noise(500), path="an4/x.wav")
    hostile = audio | {"bytes": audio["bytes"][:24] + rate.to_bytes(4, "little") + audio["bytes"][28:]}
    with pytest.raises(ValueError, match=f"an4/x.wav: the recording has {rate:,} samples a second, expected 4,000 to"):
        decode(hostile, 8000)


def test_the_reader_of_the_corpora_and_the_front_end_have_the_same_limits():
    """The reader of AN4 and the digits says its own, since a change there would make their results
    those of other code."""
    assert speech.RATES == RATES


def test_more_than_two_rounds_of_differences_are_refused():
    with pytest.raises(ValueError, match="deltas=3"):
        Frames(deltas=3)


def test_state_survives_json():
    view, other = fitted(), Frames()
    other.restore(json.loads(json.dumps(view.state())))
    audio = [wav(tone(700))]
    assert np.array_equal(other.encode(audio)["vectors"].values, view.encode(audio)["vectors"].values)


# --- samples, and what goes on from another model ---


def test_samples_stand_in_blocks_whose_last_one_is_filled():
    """A recording is read whole, at the rate of the view."""
    samples = np.arange(400) / 1000
    view = Samples(block=160)
    found = view.features(wav(samples))
    assert found.shape == (3, 160) and view.width == 160
    np.testing.assert_allclose(found.flatten()[:400], samples, atol=1e-4)
    assert not found.flatten()[400:].any()
    assert len(Samples(rate=4000, block=100).features(wav(samples))) == 2


@pytest.mark.parametrize("view", [Frames(), Samples(), CodedFrames(codes=3)])
def test_what_a_parent_learnt_is_kept(view):
    """Deviations of other recordings would be another scale, other centres other codes."""
    view.fit([wav(noise(seed=1)), wav(tone(400))])
    child = type(view)()
    child.learnt = view.state()
    child.fit([wav(0.01 * tone(900))])
    assert child.state() == view.state()


# --- codes ---


def test_a_code_is_the_nearest_centre_of_the_cepstra_of_training():
    """Centres come from the recordings that the view is fitted to, and from no others."""
    view = CodedFrames(codes=3)
    train = [wav(noise(seed=1)), wav(tone(400)), wav(tone(1500))]
    view.fit(train)
    points = np.concatenate([cepstra(audio, 8000)[::2] for audio in train])
    np.testing.assert_array_equal(np.concatenate([view.cepstra(audio) for audio in train]), points)
    distances = ((points[:, None] - view.centres) ** 2).sum(2)
    columns = view.encode(train)
    assert columns["codes"].values.tolist() == distances.argmin(1).tolist()
    assert view.counts.tolist() == np.bincount(distances.argmin(1), minlength=3).tolist()
    assert (columns["codes"].lengths == columns["vectors"].lengths).all()
    means = [points[distances.argmin(1) == code].mean(0) for code in range(3)]
    np.testing.assert_allclose(view.centres, means, rtol=0.1, atol=1.0)  # they have come to rest, about
    again = CodedFrames(codes=3)
    again.fit(train)
    assert again.state() == view.state()


@pytest.mark.parametrize("settings", [{"step_ms": 20}, {"window_ms": 60}, {"step_ms": 20, "stack": 1}])
def test_each_frame_has_a_code_whatever_its_window_and_step(settings):
    """Codes of other frames would be learnt in the place of each."""
    view = CodedFrames(codes=3).changed(settings)
    train = [wav(noise(seed=1)), wav(tone(400))]
    view.fit(train)
    columns = view.encode(train)
    assert columns["codes"].lengths.tolist() == columns["vectors"].lengths.tolist()


def test_recordings_with_fewer_different_frames_than_codes_can_be_coded():
    """One second of silence has a single code."""
    view = CodedFrames(codes=100)
    view.fit([wav(np.zeros(8000))])
    assert view.collate(view.encode([wav(np.zeros(800))]), np.arange(1)).codes.tolist() == [[0] * 4]


def test_cepstra_are_the_cosine_transform_of_the_bands_and_their_slopes():
    """Element by element, so that frames are compared by the shape of their spectrum."""
    audio = wav(noise())
    bands = Frames(mels=24, energy=False, stack=1).features(audio)
    found = cepstra(audio, 8000)
    assert found.shape == (len(bands), 39)
    angles = np.pi / 24 * (np.arange(24) + 0.5)
    for k in range(13):
        expected = bands @ np.cos(k * angles) * np.sqrt((1 if k == 0 else 2) / 24)
        np.testing.assert_allclose(found[:, k], expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(found[:, 13:26], differences(found[:, :13]), atol=1e-5)
    np.testing.assert_allclose(found[:, 26:], differences(found[:, 13:26]), atol=1e-5)
