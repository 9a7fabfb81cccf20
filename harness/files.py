"""Files: foreign ones are read with limits, and files are written in one step."""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import re
import shutil
import socket
import stat
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import NoneType
from typing import Any

LONGEST_LINE = 1 << 20
"""Longest line of a file of word vectors, in bytes: a word and its values. A file with a longer one
holds something else."""

RATES = range(4000, 192_001)
"""Samples per second that a recording may have; from a rate that no device has, resampling would
need more memory than there is."""

MAX_RECORD_BYTES, MAX_UNPACKED_BYTES = 1 << 26, 1 << 27
"""Size limits in bytes for a record and for its unpacked predictions or outcomes; larger files are
refused."""

BOOT, IDS = Path("/proc/sys/kernel/random/boot_id"), Path("/proc/self/ns/pid")
ABANDONED_S = 2 * 86_400.0
"""Seconds without a change after which a temporary file of another machine is taken for that of a
dead process. No write takes so long, and no clock that is a day wrong matters."""


def not_json(value: Any, where: str = "") -> str | None:
    """The first field below ``value`` that is not a finite number or not JSON at all, with the
    reason; None when there is none."""
    if _is_plain(value):
        return None
    if isinstance(value, dict):
        return next(filter(None, (not_json(v, f"{where}.{k}" if where else str(k)) for k, v in value.items())), None)
    if isinstance(value, list | tuple):
        return next(filter(None, (not_json(v, f"{where}.{i}") for i, v in enumerate(value))), None)
    if isinstance(value, float) and not math.isfinite(value):
        return f"{where}: {value} is not a finite number"
    if isinstance(value, int) and abs(value) > sys.float_info.max:
        return f"{where}: a whole number that is larger than any float"
    if value is None or isinstance(value, str | int | float):
        return None
    return f"{where}: a {type(value).__name__} cannot be written as JSON"


def _is_plain(value: Any) -> bool:
    """True for a value of dicts, lists, tuples, texts and finite numbers, of no subclass of these:
    what nearly every file holds, told in less time than :func:`not_json` takes."""
    largest = sys.float_info.max
    left = [value]
    while left:
        part = left.pop()
        kind = type(part)
        if kind is dict:
            left += part.values()
        elif kind is list or kind is tuple:
            left += part
        elif kind is float or kind is int:
            if not -largest <= part <= largest:  # what is no number is not either
                return False
        elif kind not in (str, bool, NoneType):
            return False
    return True


def read_limited(path: Path, most: int = MAX_RECORD_BYTES) -> bytes:
    """Content of a file of at most so many bytes.

    Raises ``OSError`` for a larger file and for anything without an end, such as a pipe or device.
    """
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, f"{'a folder' if stat.S_ISDIR(status.st_mode) else 'a pipe or device'}, not a file")
    if status.st_size > most:
        raise OSError(errno.EFBIG, f"{status.st_size:,} bytes, more than the {most:,} that such a file may have")
    return path.read_bytes()


def unpack(decompressor: Any, data: bytes) -> bytes:
    """Content of a compressed stream, at most :data:`MAX_UNPACKED_BYTES`.

    Raises ``ValueError`` for a larger one, one that is cut off, and one with something after its
    end.
    """
    content: bytes = decompressor.decompress(data, MAX_UNPACKED_BYTES + 1)
    if len(content) > MAX_UNPACKED_BYTES:
        raise ValueError(f"it unpacks to more than {MAX_UNPACKED_BYTES:,} bytes")
    if not decompressor.eof or decompressor.unused_data:
        raise ValueError("it is cut off" if not decompressor.eof else "something follows its end")
    return content


def parse_json(text: bytes | str) -> Any:
    """Value of a JSON text.

    Raises ``ValueError`` also for a key that stands twice in one object, of which readers would
    take one or the other, and for what :func:`check_characters` refuses.
    """
    value = _DECODER.decode(text if isinstance(text, str) else text.decode(json.detect_encoding(text)))
    check_characters(text, value)
    return value


def sorted_json() -> Callable[[Any], str]:
    """A function from a value to its JSON text with sorted keys, made once for each object: records
    of a row share theirs. Nobody may change the values meanwhile.

    >>> text = sorted_json()
    >>> text({"b": 1, "a": 2})
    '{"a": 2, "b": 1}'
    """
    encoder = json.JSONEncoder(sort_keys=True)
    known: dict[int, tuple[Any, str]] = {}  # the value is kept, so that no other one takes its id

    def text(value: Any) -> str:
        if id(value) not in known:
            known[id(value)] = value, encoder.encode(value)
        return known[id(value)][1]

    return text


def check_characters(text: bytes | str, value: Any) -> None:
    """Raise ``UnicodeEncodeError`` for half a surrogate pair in the value of a JSON text, which
    JSON can spell and no program can print."""
    half = r"\\u[dD][89a-fA-F]"
    if re.search(half, text) if isinstance(text, str) else re.search(half.encode(), text):
        json.dumps(value, ensure_ascii=False).encode()


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(key for i, (key, _) in enumerate(pairs) if key in dict(pairs[:i]))
        raise ValueError(f"the key {twice!r:.100} stands twice in one object")
    return found


_DECODER = json.JSONDecoder(object_pairs_hook=_object)


def are_texts(values: Any) -> bool:
    """True for a list of texts."""
    return isinstance(values, list | tuple) and all(isinstance(value, str) for value in values)


def machine() -> str:
    """Digest that is equal for processes which see one another by their ids: of the host's name
    and, on Linux, of the boot and the namespace of ids, since machines and containers may share a
    name."""
    marks = [socket.gethostname()]
    with suppress(OSError):
        marks.append(BOOT.read_text().strip())
    with suppress(OSError):
        marks.append(str(IDS.readlink()))
    return hashlib.sha256("\0".join(marks).encode()).hexdigest()[:12]


@contextmanager
def taking_the_place_of(path: Path) -> Iterator[Path]:
    """A temporary path for the block to write a file or folder to, which then replaces ``path``.

    A reader finds the old content or the new one, never half of either. Nothing is replaced when
    the block raises. Raises ``OSError`` where the disk refuses.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{machine()}~{os.getpid()}~{uuid.uuid4().hex[:8]}.tmp")
    try:
        yield temporary
        if path.is_dir():  # damaged, or made by another process meanwhile; its readers keep the open files
            shutil.rmtree(path, ignore_errors=True)
        try:
            temporary.replace(path)
        except OSError:
            if not path.is_dir():  # else another process put its folder there a moment ago: one of the two stays
                raise
    finally:
        with suppress(OSError):
            shutil.rmtree(temporary) if temporary.is_dir() else temporary.unlink(missing_ok=True)


def sweep(folder: Path) -> None:
    """Remove the temporary files and folders that killed processes left at any depth.

    Those of living processes stay. Those of another :func:`machine` stay until nobody has changed
    them for :data:`ABANDONED_S` seconds; so do those of this one from before it was started anew.
    """
    import psutil  # not for those who only read or write

    here, now = machine(), time.time()
    paths = [Path(place, name) for place, folders, files in os.walk(folder) for name in folders + files]
    for path in paths:
        if owner := re.fullmatch(r"\..*\.(.*)~(\d+)~\w+\.tmp", path.name):
            with suppress(OSError):  # another run may sweep at the same time
                if owner[1] == here:
                    left = not psutil.pid_exists(int(owner[2]))
                else:
                    left = now - path.stat().st_mtime > ABANDONED_S
                if left:
                    shutil.rmtree(path) if path.is_dir() else path.unlink()


def write_whole(path: Path, data: bytes) -> None:
    """Replace ``path`` by a file of ``data`` in one step; it is on disk before it has its name."""
    with taking_the_place_of(path) as temporary, temporary.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
