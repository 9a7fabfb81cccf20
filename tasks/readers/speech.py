"""Zip archives of WAV recordings, read in place: spoken digits (FSDD) and AN4."""

from __future__ import annotations

import io
import re
import struct
import wave
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from harness.errors import DataError
from tasks.readers import archives

DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
RATES = range(4000, 192_001)
"""Samples per second; from a rate that no device has, resampling would need more memory than there
is."""
_DIGIT_NAME = re.compile(r"(?P<digit>[0-9])_(?P<speaker>[a-z]+)_(?P<index>[0-9]{1,6})\.wav")
_UTTERANCE_NAME = re.compile(r"[a-z]+\d+-(?P<speaker>[a-z0-9]+)-b")


class Digit(NamedTuple):
    """Parts of the file name of a spoken digit, such as ``7_jackson_32.wav``."""

    name: str
    word: str
    speaker: str
    index: int  # type: ignore[assignment]  # hides tuple.index


def digit(where: str, path: str) -> Digit:
    """Parts of a recording's file name; :class:`DataError` when it is not
    ``{digit}_{speaker}_{index}.wav``."""
    name = PurePosixPath(path or "").name
    parts = _DIGIT_NAME.fullmatch(name)
    if parts is None:
        raise DataError(f"{where}: the recording {name!r:.80} is not named like 7_jackson_32.wav")
    return Digit(name.removesuffix(".wav"), DIGITS[int(parts["digit"])], parts["speaker"], int(parts["index"]))


def speaker(where: str, utterance: str) -> str:
    """Speaker of an AN4 utterance id such as ``an251-fash-b``; :class:`DataError` for another
    form."""
    parts = _UTTERANCE_NAME.fullmatch(utterance)
    if parts is None:
        raise DataError(f"{where}: the utterance {utterance!r:.80} is not named like an251-fash-b")
    return parts["speaker"]


class Archive(archives.Archive):
    """A zip file of recordings."""

    def audio(self, name: str) -> dict[str, Any]:
        """A recording as the column ``audio`` has it: {"bytes": the WAV file, "path": its name};
        only its header is looked at."""
        content = self.read(name)
        try:
            with wave.open(io.BytesIO(content)) as file:
                rate = file.getframerate()
        except (wave.Error, EOFError, RuntimeError, struct.error) as error:
            raise DataError(f"{self.path}: the member {name} is not a WAV file ({error or 'too short'})") from error
        if rate not in RATES:
            raise DataError(
                f"{self.path}: the member {name} has {rate} samples a second, expected {RATES[0]} to {RATES[-1]}"
            )
        return {"bytes": content, "path": PurePosixPath(name).name}


def digits(archive: Archive) -> list[tuple[str, Digit]]:
    """Member and meaning of every recording below ``recordings/``, in the order of their names."""
    members = sorted(name for name in archive.names if PurePosixPath(name).parent.name == "recordings")
    if not members:
        raise DataError(f"{archive.path}: the archive has no recordings/*.wav")
    return [(member, digit(str(archive.path), member)) for member in members]


def transcripts(archive: Archive, part: str) -> Iterator[tuple[str, str, str]]:
    """Member, utterance id and transcript (lower case, without sentence marks) of AN4's ``train``
    or ``test`` part, in the file's order.

    Raises :class:`DataError` where the list of files and the transcripts do not name the same
    utterances.
    """
    members = {}
    for _, line in archive.lines(f"an4/etc/an4_{part}.fileids"):
        members[PurePosixPath(line).name] = f"an4/wav/{line}.wav"
    for where, line in archive.lines(f"an4/etc/an4_{part}.transcription"):
        found = re.fullmatch(r"(?:<s> )?(.+?)(?: </s>)? \((\S+)\)", line)
        if found is None:
            raise DataError(f"{where}: {line[:80]!r} is not a transcript with its (utterance) at the end")
        text, utterance = found[1].lower(), found[2]
        if utterance not in members:
            raise DataError(
                f"{where}: an4_{part}.fileids has no recording for {utterance:.80} (or it is transcribed twice)"
            )
        yield members.pop(utterance), utterance, text
    if members:
        raise DataError(
            f"{archive.path}, an4/etc/an4_{part}.transcription: no transcript for {', '.join(list(members)[:3]):.240}"
        )
