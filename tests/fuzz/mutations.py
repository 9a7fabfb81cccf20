"""Inputs made from a sound one by what happens to files: bytes flipped, cut off, lines lost and
doubled, fields of another type. Some of it does no harm, so that readers have something to read."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

SCRAPS = [
    b"",
    b"\x00",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\xed\xa0\x80",  # half a surrogate pair as UTF-8
    b"\r",
    b"\r\n",
    b"\n\n",
    b"\t",
    b" ",
    b'"',
    b'""',
    b",",
    b"(",
    b")",
    b"[",
    b"{",
    b"-DOCSTART- ",
    b"NaN",
    b"-1",
    b"1e999",
    b"9" * 5000,
    b"\\ud800",
    b"\xe2\x80\xa8",  # a line separator that is no line feed
    "²٣".encode(),
    b"[" * 20_000,
    b"../" * 5,
    b"x" * 140_000,  # longer than csv's longest field
]
ENCODINGS = ["utf-16", "utf-16-le", "latin-1", "utf-8-sig", "utf-32"]
OPERATIONS = ["flip", "insert", "replace", "cut", "drop", "double", "swap", "field", "crlf", "recode", "random"]
HARMLESS = ["letter", "letter", "crlf"]
"""Accidents after which most files are sound, though not the same."""


@st.composite
def mutated(draw: st.DrawFn, sound: bytes, separator: bytes = b" ") -> bytes:
    """``sound`` after up to three accidents; ``separator`` stands between the fields of a line."""
    data = sound
    operations = draw(st.sampled_from([OPERATIONS, OPERATIONS, HARMLESS]))
    for _ in range(draw(st.integers(1, 3))):
        data = _accident(draw, draw(st.sampled_from(operations)), data, separator)
    return data


def packed(pack: Callable[[bytes], bytes], sound: bytes, separator: bytes = b" ") -> st.SearchStrategy[bytes]:
    """``sound`` packed, with accidents before or after."""
    return st.one_of(mutated(sound, separator).map(pack), mutated(sound, separator).map(pack), mutated(pack(sound)))


def _accident(draw: st.DrawFn, operation: str, data: bytes, separator: bytes) -> bytes:
    place = draw(st.integers(0, max(0, len(data) - 1)))
    lines = data.split(b"\n")
    line, other = draw(st.integers(0, len(lines) - 1)), draw(st.integers(0, len(lines) - 1))
    if operation == "flip":
        return data[:place] + bytes([draw(st.integers(0, 255))]) + data[place + 1 :]
    if operation == "insert":
        return data[:place] + draw(st.sampled_from(SCRAPS)) + data[place:]
    if operation == "replace":
        return data[:place] + draw(st.sampled_from(SCRAPS)) + data[place + draw(st.integers(1, 30)) :]
    if operation == "letter":
        places = [place for place, byte in enumerate(data) if chr(byte).isascii() and chr(byte).islower()]
        place = draw(st.sampled_from(places)) if places else 0
        return data[:place] + draw(st.sampled_from("aeioxyz")).encode() + data[place + 1 :]
    if operation == "cut":
        return data[:place]
    if operation == "crlf":
        return data.replace(b"\n", b"\r\n")
    if operation == "recode":
        return data.decode("utf-8", "replace").encode(draw(st.sampled_from(ENCODINGS)), "replace")
    if operation == "random":
        return draw(
            st.one_of(
                st.binary(max_size=60), st.text(max_size=60).map(lambda text: text.encode("utf-8", "surrogatepass"))
            )
        )
    if operation == "drop":
        lines.pop(line)
    elif operation == "double":
        lines.insert(other, lines[line])
    elif operation == "swap":
        lines[line], lines[other] = lines[other], lines[line]
    elif operation == "field":
        fields = lines[line].split(separator)
        field = draw(st.integers(0, len(fields) - 1))
        fields[field : field + draw(st.integers(0, 1))] = [
            draw(st.one_of(st.sampled_from(SCRAPS), st.binary(max_size=8)))
        ]
        lines[line] = separator.join(fields)
    return b"\n".join(lines)


_RAW = {
    f"@raw{number}@": text
    for number, text in enumerate(["1e999", "-1e999", "NaN", "Infinity", "9" * 5000, "[" * 5000 + "]" * 5000, "-0"])
}
WRONG: list[Any] = [
    None,
    True,
    False,
    0,
    -1,
    2,
    1.5,
    10**30,
    "",
    "x",
    "NaN",
    "\ud800",
    "\x00",
    "../../x",
    [],
    {},
    [[]],
    {"x": 1},
    *_RAW,
]


@st.composite
def wrong_json(draw: st.DrawFn, sound: Any, most: int = 2) -> str:
    """The JSON text of ``sound`` after values somewhere in it were removed, doubled, or replaced by
    others."""
    value = copy.deepcopy(sound)
    for _ in range(draw(st.integers(1, most))):
        holders = [holder for holder in _holders(value) if holder]
        if not holders:
            break
        holder = draw(st.sampled_from(holders))
        key = (
            draw(st.sampled_from(sorted(holder))) if isinstance(holder, dict) else draw(st.integers(0, len(holder) - 1))
        )
        operation = draw(st.sampled_from(["replace", "replace", "replace", "remove", "add"]))
        if operation == "remove":
            del holder[key]
        elif operation == "replace":
            holder[key] = copy.deepcopy(draw(st.sampled_from(WRONG)))
        elif isinstance(holder, dict):
            holder[draw(st.sampled_from(["", "x", "\ud800", f"{key}_"]))] = copy.deepcopy(draw(st.sampled_from(WRONG)))
        else:
            holder.insert(key, copy.deepcopy(draw(st.sampled_from([*WRONG, holder[key]]))))
    text = json.dumps(value if draw(st.integers(0, 19)) else draw(st.sampled_from(WRONG)))
    for name, raw in _RAW.items():
        text = text.replace(f'"{name}"', raw)
    return text


def _holders(value: Any) -> list[Any]:
    """The objects and lists in a value."""
    if isinstance(value, dict):
        return [value, *(holder for each in value.values() for holder in _holders(each))]
    if isinstance(value, list):
        return [value, *(holder for each in value for holder in _holders(each))]
    return []
