"""Spoken digits and spelled sequences from a small formant synthesiser: the mini tier of FSDD and
AN4.

A pulse train at the voice's pitch goes through three resonators one after the other, noise through
three side by side (Klatt 1980, "Software for a cascade/parallel formant synthesizer"); a word is a
sequence of phones, each with loudness and formants. Voices differ in pitch, formants (length of the
vocal tract) and speed. The arithmetic is integer, or single additions and multiplications of
rounded constants, so the samples are the same on every machine.
"""

from __future__ import annotations

import io
import math
import wave
from collections.abc import Iterator, Sequence
from random import Random
from typing import NamedTuple
from zlib import crc32

import numpy as np

from harness.task import Row, Split
from tasks.mini.drawing import home

RATE = 8000
FRAME = 40  # samples for which the synthesiser's settings stay: 5 ms


class Phone(NamedTuple):
    """Length in ms, loudness of pulses and of noise (0 to 100), three formants in Hz at the start
    and at the end, those of the noise."""

    length: int
    voice: int
    noise: int
    start: tuple[int, int, int]
    end: tuple[int, int, int] | None = None
    hiss: tuple[int, int, int] = (1000, 2000, 3000)


class Voice(NamedTuple):
    """Pitch in Hz; formants and length of phones in percent of the table's."""

    pitch: int
    formants: int
    length: int


PHONES = {
    "iy": Phone(120, 100, 0, (280, 2250, 2900)),
    "ih": Phone(90, 100, 0, (400, 1920, 2560)),
    "eh": Phone(100, 100, 0, (550, 1770, 2490)),
    "aa": Phone(120, 100, 0, (710, 1100, 2540)),
    "ao": Phone(120, 100, 0, (590, 850, 2500)),
    "ah": Phone(100, 100, 0, (630, 1200, 2550)),
    "uw": Phone(130, 100, 0, (310, 850, 2250)),
    "ey": Phone(150, 100, 0, (500, 1800, 2500), (320, 2200, 2750)),
    "ay": Phone(170, 100, 0, (720, 1150, 2500), (360, 2050, 2650)),
    "ow": Phone(150, 100, 0, (560, 1000, 2400), (380, 780, 2300)),
    "r": Phone(80, 80, 0, (340, 1100, 1450)),
    "l": Phone(80, 70, 0, (370, 950, 2700)),
    "w": Phone(70, 70, 0, (290, 620, 2150)),
    "y": Phone(60, 80, 0, (260, 2150, 3000)),
    "m": Phone(90, 80, 0, (250, 950, 2200)),
    "n": Phone(90, 80, 0, (250, 1500, 2500)),
    "v": Phone(70, 70, 15, (220, 1100, 2100)),
    "z": Phone(90, 60, 40, (250, 1600, 2500), hiss=(2400, 2900, 3300)),
    "s": Phone(120, 0, 60, (320, 1600, 2550), hiss=(2400, 2900, 3300)),
    "f": Phone(100, 0, 40, (340, 1100, 2080), hiss=(1100, 2100, 3100)),
    "th": Phone(90, 0, 40, (320, 1300, 2540), hiss=(1500, 2500, 3000)),
    "closure": Phone(40, 0, 0, (320, 1600, 2500)),
    "t": Phone(25, 0, 90, (350, 1700, 2600), hiss=(2100, 2700, 3200)),
    "k": Phone(30, 0, 90, (320, 1800, 2400), hiss=(900, 1900, 2400)),
    "b": Phone(35, 60, 20, (220, 900, 2100), hiss=(500, 1200, 2100)),
}
WORDS = {
    "zero": "z ih r ow",
    "one": "w ah n",
    "two": "closure t uw",
    "three": "th r iy",
    "four": "f ao r",
    "five": "f ay v",
    "six": "s ih closure k s",
    "seven": "s eh v ah n",
    "eight": "ey closure t",
    "nine": "n ay n",
    "a": "ey",
    "b": "b iy",
    "f": "eh f",
    "i": "ay",
    "m": "eh m",
    "o": "ow",
    "r": "aa r",
    "s": "eh s",
}
DIGITS = tuple(WORDS)[:10]
SPELLED = ("a", "b", "f", "i", "m", "o", "r", "s", "one", "two", "three", "four", "six", "seven")
VOICES = {
    "adam": Voice(105, 100, 100),
    "bela": Voice(130, 95, 110),
    "cora": Voice(205, 116, 100),
    "dora": Voice(230, 120, 90),
    "egon": Voice(95, 92, 95),
    "fred": Voice(120, 104, 92),
    "gerd": Voice(85, 87, 112),
    "hana": Voice(265, 126, 88),
}
# Who speaks where speakers of a split are to be unknown to the others.
UNSEEN = {"train": ("adam", "bela", "cora", "dora", "egon"), "dev": ("fred",), "test": ("gerd", "hana")}
SIZES = {"train": 200, "dev": 60, "test": 60}

# Bandwidths of 80, 110 and 160 Hz as pole radii; cosines by Hz. Rounded, so that no maths library
# shows in the last digits.
_RADII = np.array([round(math.exp(-math.pi * width / RATE), 9) for width in (80, 110, 160)])
_COSINES = np.array([round(math.cos(2 * math.pi * hertz / RATE), 9) for hertz in range(RATE // 2)])


def _settings(random: Random, word: str, voice: Voice) -> np.ndarray:
    """Pitch, loudness of pulses and noise, formants of pulses and of noise of a word by frame:
    (frames, 9), integers."""
    pitch = voice.pitch * random.randint(92, 108) // 100
    formants = voice.formants * random.randint(97, 103)
    length = voice.length * random.randint(88, 114)
    frames: list[list[int]] = []
    for phone in (PHONES[name] for name in WORDS[word].split()):
        count = max(3, phone.length * length * RATE // (FRAME * 10_000_000))
        for n in range(count):
            ends = zip(phone.start, phone.end or phone.start, strict=True)
            hertz = (*(a + (b - a) * n // count for a, b in ends), *phone.hiss)
            frames.append([0, phone.voice, phone.noise, *(min(3700, h * formants // 10_000) for h in hertz)])
    settings = np.array(frames)
    # Neighbouring phones run into each other over 25 ms; the word fades in and out.
    padded = np.pad(settings, ((2, 2), (0, 0)), mode="edge")
    padded[[0, 1, -2, -1], :3] = 0
    settings = np.sum([padded[n : n + len(settings)] for n in range(5)], axis=0) // 5
    settings[:, 0] = [pitch * (1080 - 160 * n // len(settings)) // 1000 for n in range(len(settings))]
    return settings


def _synthesise(settings: Sequence[np.ndarray], seed: int) -> list[np.ndarray]:
    """Samples of each word, all words computed side by side."""
    longest = max(map(len, settings))
    frames = np.stack(
        [np.pad(s, ((0, longest - len(s)), (0, 0)), mode="edge") for s in settings], axis=1
    )  # (frames, words, 9)
    pitch, loudness, breath = (np.repeat(frames[..., k], FRAME, axis=0) for k in range(3))
    periods = np.cumsum(pitch, axis=0) // RATE
    pulses = np.diff(periods, axis=0, prepend=0)
    # RandomState's stream is frozen, unlike that of numpy's newer generators.
    noise = np.random.RandomState(seed).random_sample(pulses.shape) - 0.5
    voiced, hissed = pulses * loudness, noise * breath
    first, hiss_first = (
        2 * _RADII[:, None] * _COSINES[frames[..., k : k + 3]].transpose(0, 2, 1) for k in (3, 6)
    )  # (frames, 3, words)
    second = -(_RADII**2)[:, None]
    # One after the other, resonators pass 0 Hz unchanged; side by side, each is about as loud at
    # its own frequency.
    gain, hiss_gain = 1 - first - second, 1 - _RADII[:, None]
    samples = np.empty_like(voiced)
    # Of each resonator, the last outputs and the ones before.
    last, before, hiss, hiss_before = np.zeros((4, 3, voiced.shape[1]))
    for t, signal in enumerate(voiced):
        frame = t // FRAME
        feedback = first[frame] * last + second * before
        before, last = last, np.empty_like(last)
        for k in range(3):
            signal = last[k] = gain[frame, k] * signal + feedback[k]
        hiss, hiss_before = hiss_gain * hissed[t] + hiss_first[frame] * hiss + second * hiss_before, hiss
        samples[t] = signal + hiss[0] + hiss[1] + hiss[2]
    return [samples[: len(s) * FRAME, word] for word, s in enumerate(settings)]


def _wav(random: Random, words: Sequence[np.ndarray], seed: int) -> bytes:
    """A 16-bit mono WAV file of the words with pauses, at some loudness, in some background
    noise."""
    pause = [np.zeros(RATE * random.randint(60, 100) // 1000) for _ in range(2)]
    parts = [pause[0]]
    for word in words:
        parts += [word, np.zeros(RATE * random.randint(100, 140) // 1000)]
    samples = np.concatenate([*parts[:-1], pause[1]])
    samples = samples / np.abs(samples).max()
    samples += (np.random.RandomState(seed).random_sample(len(samples)) - 0.5) * (random.randint(5, 30) / 1000)
    samples *= random.randint(30, 95) / 100 * 32000
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(RATE)
        out.writeframes(np.rint(samples).astype("<i2").tobytes())
    return file.getvalue()


def _utterances(name: str, spoken: Sequence[tuple[str, ...]], speakers: Sequence[str]) -> Iterator[bytes]:
    """A WAV file for each sequence of words and its speaker."""
    random, seed = Random(name), crc32(name.encode())
    settings = [
        _settings(random, word, VOICES[speaker])
        for words, speaker in zip(spoken, speakers, strict=True)
        for word in words
    ]
    samples = iter(_synthesise(settings, seed))
    for number, words in enumerate(spoken):
        yield _wav(random, [next(samples) for _ in words], seed + number + 1 & 0xFFFFFFFF)


def digits(split: Split, labelled: bool, unseen: bool) -> Iterator[Row]:
    """Rows with ``audio`` of one digit, ``speaker``, and its word as ``label`` (if ``labelled``) or
    ``transcript``.

    With ``unseen`` no speaker is in two splits; the utterances are others than without.
    """
    name = f"digits {split} {unseen}"
    random = Random(f"speakers of {name}")
    words = [DIGITS[n % len(DIGITS)] for n in range(SIZES[split])]
    voices = UNSEEN[split] if unseen else tuple(VOICES)
    # Every voice says every digit about equally often.
    speakers = [voices[(n // len(DIGITS) + n) % len(voices)] for n in range(len(words))]
    order = random.sample(range(len(words)), len(words))
    words, speakers = [words[n] for n in order], [speakers[n] for n in order]
    for number, audio in enumerate(_utterances(name, [(word,) for word in words], speakers)):
        path = f"{DIGITS.index(words[number])}_{speakers[number]}_{split}{number}.wav"
        yield {
            "id": f"{split}-{number}",
            "audio": {"bytes": audio, "path": path},
            "label" if labelled else "transcript": words[number],
            "speaker": speakers[number],
        }


def letters(split: Split) -> Iterator[Row]:
    """Rows with ``audio`` of 2 to 5 letters and digits, ``transcript`` ("a b three") and
    ``speaker``; no sequence is in two splits."""
    name = f"letters {split}"
    random = Random(f"sequences of {name}")
    sequences: dict[str, None] = {}
    while len(sequences) < SIZES[split]:
        transcript = " ".join(random.choices(SPELLED, k=random.randint(2, 5)))
        if home(transcript) == split:
            sequences[transcript] = None
    voices = tuple(VOICES)
    speakers = [voices[n % len(voices)] for n in range(len(sequences))]
    utterances = _utterances(name, [tuple(transcript.split()) for transcript in sequences], speakers)
    for number, (transcript, audio) in enumerate(zip(sequences, utterances, strict=True)):
        path = f"{speakers[number]}_{split}{number}.wav"
        row = {"id": f"{split}-{number}", "audio": {"bytes": audio, "path": path}}
        yield row | {"transcript": transcript, "speaker": speakers[number]}
