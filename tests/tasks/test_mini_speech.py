"""The synthesised speech: readable WAV files, distinct voices, words that their spectra tell."""

from __future__ import annotations

import io
import time
import wave

import numpy as np
import pytest

from harness.task import Row
from tasks.mini import speech
from tasks.mini.speech import DIGITS, RATE, SPELLED, UNSEEN, VOICES


def samples(row: Row) -> np.ndarray:
    """The samples, between -1 and 1."""
    with wave.open(io.BytesIO(row["audio"]["bytes"])) as file:
        assert (file.getframerate(), file.getsampwidth(), file.getnchannels()) == (RATE, 2, 1)
        return np.frombuffer(file.readframes(file.getnframes()), "<i2") / 32768


def frames(signal: np.ndarray) -> np.ndarray:
    """Frames of 25 ms every 10 ms: (frames, 200)."""
    return np.lib.stride_tricks.sliding_window_view(signal, 200)[::80]


def spoken(signal: np.ndarray) -> list[np.ndarray]:
    """The signal cut at pauses of 80 ms or more: longer than any closure inside a word."""
    energy = (frames(signal) ** 2).mean(axis=1)
    loud = np.flatnonzero(energy > energy.max() / 400)
    cuts = np.flatnonzero(np.diff(loud) > 8)
    parts = [part for part in np.split(loud, cuts + 1) if len(part) >= 5]
    return [signal[part[0] * 80 : part[-1] * 80 + 200] for part in parts]


def spectra(signal: np.ndarray) -> np.ndarray:
    """Log energies in 16 bands, averaged over each fifth of the word, loudness taken out."""
    power = np.abs(np.fft.rfft(frames(signal) * np.hanning(200), 256)) ** 2
    bands = np.log(power[:, :128].reshape(len(power), 16, 8).mean(axis=2) + 1e-5)
    bands -= bands.max()
    return np.concatenate([part.mean(axis=0) for part in np.array_split(bands, 5)])


def nearest(train: np.ndarray, labels: list[str], test: np.ndarray) -> list[str]:
    distances = ((test[:, None] - train[None]) ** 2).sum(axis=2)
    return [labels[n] for n in distances.argmin(axis=1)]


@pytest.mark.parametrize(("unseen", "least"), [(False, 0.9), (True, 0.9)])
def test_spectra_tell_the_digit_and_length_or_loudness_do_not(unseen: bool, least: float) -> None:
    train, test = (list(speech.digits(split, labelled=True, unseen=unseen)) for split in ("train", "test"))
    labels, gold = [row["label"] for row in train], [row["label"] for row in test]
    assert {gold.count(digit) for digit in DIGITS} == {6}

    def accuracy(features) -> float:
        found = nearest(np.array([features(row) for row in train]), labels, np.array([features(row) for row in test]))
        return sum(a == b for a, b in zip(found, gold, strict=True)) / len(gold)

    def coarse(row: Row) -> np.ndarray:
        signal = samples(row)
        return np.array([len(signal) / 1000, 10 * signal.std()])

    found = accuracy(lambda row: spectra(np.concatenate(spoken(samples(row))))), accuracy(coarse)
    assert found[0] > least
    assert found[1] < 0.4


def test_speakers_of_the_unseen_split_are_in_one_split_only() -> None:
    speakers = [{row["speaker"] for row in speech.digits(split, labelled=False, unseen=True)} for split in UNSEEN]
    assert speakers == [set(names) for names in UNSEEN.values()]
    assert len(set.union(*speakers)) == sum(map(len, speakers))
    mixed = {row["speaker"] for row in speech.digits("test", labelled=False, unseen=False)}
    assert mixed == set(VOICES)


def test_labelled_and_transcribed_digits_are_the_same_utterances() -> None:
    """Classes and CTC are compared on the same audio."""
    classes, transcripts = (list(speech.digits("dev", labelled=labelled, unseen=False)) for labelled in (True, False))
    assert [row["audio"] for row in classes] == [row["audio"] for row in transcripts]
    assert [row["label"] for row in classes] == [row["transcript"] for row in transcripts]
    assert set(classes[0]) == {"id", "audio", "label", "speaker"}


def test_voices_differ_in_pitch() -> None:
    """Of the same word, the lowest voice repeats itself more slowly than the highest."""

    def pitch(speaker: str) -> float:
        found = []
        for row in speech.digits("train", labelled=True, unseen=False):
            if row["speaker"] == speaker and row["label"] in ("one", "nine"):
                middle = np.concatenate(spoken(samples(row)))
                middle = middle[len(middle) // 2 - 400 : len(middle) // 2 + 400]
                correlation = np.correlate(middle, middle, "full")[799:]
                found.append(RATE / (25 + correlation[25:120].argmax()))
        return float(np.median(found))

    assert pitch("egon") == pytest.approx(95, rel=0.12)
    assert pitch("dora") == pytest.approx(230, rel=0.12)


def test_spelled_sequences_are_told_by_nearest_words() -> None:
    """Cut at the pauses, each item is known by its nearest neighbour in train: the sequences can be
    transcribed."""
    train, dev, test = (list(speech.letters(split)) for split in ("train", "dev", "test"))
    assert not {row["transcript"] for row in train} & {row["transcript"] for row in dev + test}
    features, labels = [], []
    for row in train:
        pieces, words = spoken(samples(row)), row["transcript"].split()
        assert 2 <= len(words) <= 5 and set(words) <= set(SPELLED)
        if len(pieces) == len(words):
            features += [spectra(piece) for piece in pieces]
            labels += words
    assert len(labels) > 400
    right = total = 0
    for row in test:
        found = nearest(np.array(features), labels, np.array([spectra(piece) for piece in spoken(samples(row))]))
        words = row["transcript"].split()
        right += sum(a == b for a, b in zip(found, words, strict=False)) if len(found) == len(words) else 0
        total += len(words)
    majority = max(map(labels.count, set(labels))) / len(labels)
    assert right / total > 0.9
    assert majority < 0.2


def test_speech_is_quick_and_loud_enough() -> None:
    start = time.process_time()
    rows = list(speech.letters("train"))
    assert time.process_time() - start < 6
    peaks = [np.abs(samples(row)).max() for row in rows]
    assert min(peaks) > 0.2 and max(peaks) < 1
