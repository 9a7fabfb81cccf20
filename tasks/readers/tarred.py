"""Corpora of one text a file, in a gzipped tar archive, in any encoding."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from harness.errors import DataError
from tasks.readers.lines import undecodable, unzipped, without_mark


def files_in(path: Path, pattern: str, encoding: str = "utf-8") -> Iterator[tuple[PurePosixPath, str]]:
    """Path and text of each file of a gzipped tar archive whose path fits the shell ``pattern``, in
    the order of the archive.

    All else is passed over: folders, links, and files whose size would be a claim alone. Raises
    :class:`DataError` for an archive that is missing, damaged or larger than
    :func:`tasks.readers.lines.unzipped` allows, and for a text that is not of the encoding.
    """
    raw = io.BytesIO(unzipped(path))
    try:
        with tarfile.open(fileobj=raw, mode="r:", errors="replace") as archive:
            for member in archive:
                if not fnmatchcase(member.name, pattern) or not member.isreg() or member.issparse():
                    continue
                content = archive.extractfile(member)
                assert content is not None
                try:
                    text = without_mark(content.read()).decode(encoding)
                except UnicodeDecodeError as error:
                    raise undecodable(f"{path}, {member.name:.80}", encoding, error) from error
                yield PurePosixPath(member.name), text
    except (tarfile.TarError, EOFError, OSError, ValueError, OverflowError) as error:
        raise DataError(f"{path}: not a whole tar archive ({error})") from error
