"""Zip archives of WAV recordings, read in place: spoken digits (FSDD) and AN4."""

from __future__ import annotations

import io
import re
import wave
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple, Self

from harness.task import DataError

DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_DIGIT_NAME = re.compile(r"(?P<digit>\d)_(?P<speaker>[a-z]+)_(?P<index>\d+)\.wav")
_UTTERANCE_NAME = re.compile(r"[a-z]+\d+-(?P<speaker>[a-z0-9]+)-b")


class Digit(NamedTuple):
    """What the name of a spoken digit says: ``7_jackson_32.wav``."""

    name: str
    word: str
    speaker: str
    index: int


def digit(where: str, path: str) -> Digit:
    """Parts of a recording's file name; :class:`DataError` when it is not ``{digit}_{speaker}_{index}.wav``."""
    name = PurePosixPath(path or "").name
    parts = _DIGIT_NAME.fullmatch(name)
    if parts is None:
        raise DataError(f"{where}: the recording {name!r} is not named like 7_jackson_32.wav")
    return Digit(name.removesuffix(".wav"), DIGITS[int(parts["digit"])], parts["speaker"], int(parts["index"]))


def speaker(where: str, utterance: str) -> str:
    """Speaker of an AN4 utterance id such as ``an251-fash-b``; :class:`DataError` for another form."""
    parts = _UTTERANCE_NAME.fullmatch(utterance)
    if parts is None:
        raise DataError(f"{where}: the utterance {utterance!r} is not named like an251-fash-b")
    return parts["speaker"]


class Archive:
    """A zip file of recordings; nothing is unpacked to disk.

    Raises :class:`DataError` for a file that is no zip or is damaged, a member whose path leaves the archive, and one that is missing.
    """

    def __init__(self, path: Path):
        self.path = path
        try:
            self._zip = zipfile.ZipFile(path)
        except FileNotFoundError as error:
            raise DataError(f"{path}: no such file; --data-dir must be the folder that holds {path.parent.name}/") from error
        except (zipfile.BadZipFile, OSError) as error:
            raise DataError(f"{path}: not a whole zip archive ({error})") from error
        self.names = [name for name in self._zip.namelist() if not name.endswith("/")]
        for name in self.names:
            if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
                raise DataError(f"{path}: the member {name!r} points outside the archive")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()

    def read(self, name: str) -> bytes:
        """Content of a member."""
        try:
            return self._zip.read(name)
        except KeyError as error:
            raise DataError(f"{self.path}: the archive has no {name}") from error
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
            raise DataError(f"{self.path}: the member {name} is damaged ({error})") from error

    def audio(self, name: str) -> dict[str, Any]:
        """A recording as the column ``audio`` has it: {"bytes": the WAV file, "path": its name}."""
        content = self.read(name)
        try:
            wave.open(io.BytesIO(content)).close()
        except (wave.Error, EOFError) as error:
            raise DataError(f"{self.path}: the member {name} is not a WAV file ({error or 'too short'})") from error
        return {"bytes": content, "path": PurePosixPath(name).name}

    def lines(self, name: str) -> Iterator[tuple[str, str]]:
        """Place ("file, member, line n") and text of each line of a text member that is not blank."""
        for number, raw in enumerate(self.read(name).split(b"\n"), 1):
            where = f"{self.path}, {name}, line {number}"
            try:
                line = raw.decode("utf-8").strip()
            except UnicodeDecodeError as error:
                raise DataError(f"{where}: not UTF-8") from error
            if line:
                yield where, line


def digits(archive: Archive) -> list[tuple[str, Digit]]:
    """Member and meaning of every recording below ``recordings/``, in the order of their names."""
    members = sorted(name for name in archive.names if PurePosixPath(name).parent.name == "recordings")
    if not members:
        raise DataError(f"{archive.path}: the archive has no recordings/*.wav")
    return [(member, digit(str(archive.path), member)) for member in members]


def transcripts(archive: Archive, part: str) -> Iterator[tuple[str, str, str]]:
    """Member, utterance id and transcript (lower case, without sentence marks) of AN4's ``train`` or ``test`` part, in the file's order.

    Raises :class:`DataError` where the list of files and the transcripts do not name the same utterances.
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
            raise DataError(f"{where}: an4_{part}.fileids has no recording for {utterance} (or it is transcribed twice)")
        yield members.pop(utterance), utterance, text
    if members:
        raise DataError(f"{archive.path}, an4/etc/an4_{part}.transcription: no transcript for {', '.join(list(members)[:3])}")
