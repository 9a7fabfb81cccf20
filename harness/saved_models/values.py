"""Values of a fitted system as JSON beside arrays, and back.

What is read back is made of the types named here and of nothing else: a file cannot name a class or
a function.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from harness.files import are_texts

Arrays = dict[str, Tensor]

_KINDS = "biuf"
"""Kinds of numpy's numbers that a file of arrays can hold."""


def packed(value: Any, arrays: Arrays, where: str = "") -> Any:
    """A value as JSON; its arrays go to ``arrays`` under names of their own.

    Plain values and lists stand for themselves, any other one is an object with one key, its type.
    ``TypeError`` names the place of what cannot be kept.
    """
    if value is None or isinstance(value, bool | int | str):
        return int(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"float": str(float(value))}
    if isinstance(value, np.generic):
        return packed(value.item(), arrays, where)
    if isinstance(value, bytes):
        return {"bytes": _added(np.frombuffer(value, dtype=np.uint8), arrays)}
    if isinstance(value, np.ndarray):
        return _packed_array(value, arrays, where)
    if isinstance(value, Tensor):
        return {"tensor": _named(value.detach().cpu().clone().contiguous(), arrays)}
    if sparse.issparse(value):
        rows = sparse.csr_array(value)
        parts = [_added(part, arrays) for part in (rows.data, rows.indices, rows.indptr)]
        return {"sparse": [*parts, *map(int, rows.shape)]}
    if isinstance(value, list):
        return [packed(each, arrays, f"{where}[{number}]") for number, each in enumerate(value)]
    if type(value) is tuple or isinstance(value, set | frozenset):
        name, members = type(value).__name__, value if isinstance(value, tuple) else sorted(value, key=repr)
        return {name: [packed(each, arrays, where) for each in members]}
    if isinstance(value, Mapping):
        return _packed_mapping(value, arrays, where)
    raise TypeError(f"{where or 'it'} is a {type(value).__name__}, which is neither a plain value nor an array")


def _added(array: np.ndarray, arrays: Arrays) -> str:
    return _named(torch.from_numpy(array.copy()), arrays)


def _named(tensor: Tensor, arrays: Arrays) -> str:
    name = f"array {len(arrays)}"
    arrays[name] = tensor
    return name


def _packed_array(value: np.ndarray, arrays: Arrays, where: str) -> dict[str, Any]:
    if value.dtype.kind in _KINDS:
        return {"array": _added(value, arrays)}
    if value.ndim == 1 and all(isinstance(each, str) for each in value.tolist()):
        return {"texts": value.tolist(), "object": value.dtype == object}
    raise TypeError(f"{where} is an array of {value.dtype}, and numbers or a row of texts can be kept")


def _packed_mapping(value: Mapping[Any, Any], arrays: Arrays, where: str) -> dict[str, Any]:
    name = "counter" if isinstance(value, Counter) else "dict"
    keys = [packed(key, arrays, f"a key of {where}") for key in value]
    members = list(value.values())
    if members and all(_is_like(each, members[0]) for each in members):  # one array for all: names take room
        return {"rows": [keys, _added(np.stack(members), arrays)]}
    pairs = zip(keys, (packed(each, arrays, f"{where}[{key!r:.40}]") for key, each in value.items()), strict=True)
    return {name: [list(pair) for pair in pairs]}


def _is_like(value: Any, other: Any) -> bool:
    """True for two arrays of numbers, alike in type and shape."""
    both = isinstance(value, np.ndarray) and isinstance(other, np.ndarray)
    return both and (value.dtype, value.shape) == (other.dtype, other.shape) and value.dtype.kind in _KINDS


def unpacked(value: Any, arrays: Mapping[str, Tensor]) -> Any:
    """The value of :func:`packed`; ``ValueError`` for what it does not write."""
    if isinstance(value, list):
        return [unpacked(each, arrays) for each in value]
    if not isinstance(value, dict):
        return value
    name, content = next(iter(value.items()), ("", None))
    if name not in _READERS:
        raise ValueError(f"{name!r:.40} is no type of a kept value")
    try:
        return _READERS[name](value, content, arrays)
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        raise ValueError(f"a {name} is not as it was written: {type(error).__name__}: {error}") from error


def _members(content: list[Any], arrays: Mapping[str, Tensor]) -> list[Any]:
    return [unpacked(each, arrays) for each in content]


def _pairs(content: list[Any], arrays: Mapping[str, Tensor]) -> dict[Any, Any]:
    return {unpacked(key, arrays): unpacked(each, arrays) for key, each in content}


def _texts(content: Any, as_objects: bool) -> np.ndarray:
    if not are_texts(content):
        raise TypeError("a list of texts is expected")
    return np.array(content, dtype=object if as_objects else np.str_)


_READERS: dict[str, Any] = {
    "float": lambda _, content, arrays: float(content),
    "bytes": lambda _, content, arrays: arrays[content].numpy().tobytes(),
    "array": lambda _, content, arrays: arrays[content].numpy(),
    "texts": lambda value, content, arrays: _texts(content, value["object"]),
    "tensor": lambda _, content, arrays: arrays[content],
    "sparse": lambda _, content, arrays: sparse.csr_array(
        tuple(arrays[part].numpy() for part in content[:3]), shape=tuple(content[3:])
    ),
    "tuple": lambda _, content, arrays: tuple(_members(content, arrays)),
    "set": lambda _, content, arrays: set(_members(content, arrays)),
    "frozenset": lambda _, content, arrays: frozenset(_members(content, arrays)),
    "dict": lambda _, content, arrays: _pairs(content, arrays),
    "counter": lambda _, content, arrays: Counter(_pairs(content, arrays)),
    "rows": lambda _, content, arrays: dict(zip(_members(content[0], arrays), arrays[content[1]].numpy(), strict=True)),
}
