"""Archives of a corpus, read in place: nothing is unpacked to disk."""

from __future__ import annotations

import io
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Self

from harness.errors import DataError, MissingFile
from tasks.readers.lines import check_encoding, undecodable, unzipped, without_mark

LARGEST_MEMBER = 1 << 26
"""Bytes that a member may have, unpacked; the largest one of a corpus has 529,204."""
LARGEST_ARCHIVE = 1 << 30
"""Bytes that may be unpacked of one archive; AN4 has 93 million."""
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# What zipfile raises for bytes that are no archive, or are damaged: not all of it is documented.
_DAMAGED = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, RuntimeError, ValueError, OverflowError)
_TAR_FILES = (tarfile.REGTYPE, tarfile.AREGTYPE)
_DAMAGED_TAR = (tarfile.TarError, EOFError, OSError, ValueError, OverflowError)


class Archive:
    """A zip file.

    Raises :class:`DataError` for a file that is no zip or is damaged, a member that is a link or
    whose path leaves the archive, one that is compressed by another method than zip's usual one,
    one that is missing or named twice, and content larger than the limits above.
    """

    def __init__(self, path: Path):
        self.path = path
        self._left = LARGEST_ARCHIVE
        try:
            self._zip = zipfile.ZipFile(path)
        except FileNotFoundError as error:
            raise MissingFile(
                f"{path}: no such file; --data-dir must be the folder that holds {path.parent.name}/"
            ) from error
        except _DAMAGED as error:
            raise DataError(f"{path}: not a whole zip archive ({error})") from error
        try:
            self._members = dict(map(self._checked, self._zip.infolist()))
            if len(self._members) < len(self._zip.infolist()):
                raise DataError(f"{path}: two members have one name")
        except DataError:
            self._zip.close()
            raise
        self.names = [name for name in self._members if not name.endswith("/")]

    def _checked(self, member: zipfile.ZipInfo) -> tuple[str, zipfile.ZipInfo]:
        """Name and entry of a member that may be read."""
        name = member.filename
        parts = PurePosixPath(name.replace("\\", "/")).parts
        if ".." in parts or parts[:1] == ("/",) or PureWindowsPath(name).drive:
            raise DataError(f"{self.path}: the member {name!r:.80} points outside the archive")
        if stat.S_ISLNK(member.external_attr >> 16):
            raise DataError(f"{self.path}: the member {name!r:.80} is a link, not a file")
        if member.compress_type not in _METHODS:
            raise DataError(
                f"{self.path}: {name!r:.80} is compressed by method {member.compress_type}, expected deflate (8) or"
                " none"
            )
        return name, member

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()

    def read(self, name: str) -> bytes:
        """Content of a member."""
        if name not in self._members:
            raise DataError(f"{self.path}: the archive has no {name:.200}")
        most = min(LARGEST_MEMBER, self._left)
        try:
            with self._zip.open(self._members[name]) as file:
                content = file.read(most + 1)  # never without a number: the size that the archive states may be a lie
        except _DAMAGED as error:
            raise DataError(f"{self.path}: the member {name} is damaged ({error})") from error
        if len(content) > most:
            raise DataError(
                f"{self.path}: the member {name} unpacks to more than {most:,} bytes; this is not the corpus's archive"
            )
        self._left -= len(content)
        return content

    def lines(self, name: str, encoding: str = "utf-8") -> Iterator[tuple[str, str]]:
        """Place ("file, member, line n") and text of each line of a text member that is not
        blank; ``encoding`` is as in :func:`tasks.readers.lines.lines`."""
        check_encoding(encoding)
        for number, raw in enumerate(without_mark(self.read(name)).split(b"\n"), 1):
            where = f"{self.path}, {name}, line {number}"
            try:
                line = raw.decode(encoding).strip()
            except UnicodeDecodeError as error:
                raise undecodable(where, encoding, error) from error
            if line:
                yield where, line


def members_of_tar(path: Path) -> Iterator[tuple[str, str]]:
    """Name and text of each file in a gzipped tar archive, in the order of the archive.

    Links and folders are passed over. Raises :class:`DataError` for an archive that is missing,
    damaged or larger than :func:`tasks.readers.lines.unzipped` allows, and for a name or a text
    that is not UTF-8.
    """
    raw = io.BytesIO(unzipped(path))
    try:
        with tarfile.open(fileobj=raw, mode="r:") as archive:
            for member in archive:
                if member.type not in _TAR_FILES or member.issparse():  # whose size would be a claim alone
                    continue
                name = member.name.encode(errors="surrogateescape")
                content = archive.extractfile(member)
                assert content is not None
                yield _utf8(path, name, name), _utf8(path, name, without_mark(content.read()))
    except _DAMAGED_TAR as error:
        raise DataError(f"{path}: not a whole tar archive ({error})") from error


def _utf8(path: Path, name: bytes, content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise undecodable(f"{path}, {name!r:.80}", "utf-8", error) from error
