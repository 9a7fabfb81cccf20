"""Values of the fields of entries and recipes, compared with the types that these declare."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import fields
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from harness.errors import RegistryError, did_you_mean


def check_fields(owner: str, cls: type, values: Mapping[str, Any]) -> None:
    """Raise :class:`RegistryError` for a value that is no field of a dataclass, or not of its
    field's type."""
    types, written = _types(cls), {each.name: each.type for each in fields(cls)}
    for name, value in values.items():
        if name not in written:
            advice = did_you_mean(name, written, f"it takes {', '.join(written)}")
            raise RegistryError(f"{owner}: there is no {name}; {advice}")
        if not fits(value, types[name]):
            raise RegistryError(f"{owner}: {name} is {value!r:.60}, expected {written[name]}")


@functools.cache
def _types(cls: type) -> dict[str, Any]:
    return get_type_hints(cls)


def fits(value: Any, wanted: Any) -> bool:
    """True for a value of a type as annotations write it; a list is as good as a tuple, and a whole
    number as one with a fraction.

    >>> fits(["a", "b"], tuple[str, ...]), fits(2026, str | float), fits({"a": "1"}, dict[str, int])
    (True, True, False)
    """
    origin, parts = get_origin(wanted), get_args(wanted)
    if wanted is Any:
        return True
    if origin is Literal:
        return value in parts
    if origin in (Union, UnionType):
        return any(fits(value, part) for part in parts)
    if origin is tuple:
        parts = parts[:1] * len(value) if isinstance(value, tuple | list) and parts[1:] == (...,) else parts
        return isinstance(value, tuple | list) and len(value) == len(parts) and all(map(fits, value, parts))
    if origin is dict:
        key, item = parts
        return isinstance(value, Mapping) and all(fits(k, key) and fits(v, item) for k, v in value.items())
    if wanted is float:
        return type(value) in (int, float)
    return isinstance(value, wanted) and isinstance(value, bool) == (wanted is bool)
