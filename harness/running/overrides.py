"""Hyperparameters that ``-o`` sets: how they are read, and what is wrong with those that fit
nothing."""

from __future__ import annotations

import ast
import json
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

from harness.errors import UsageError, did_you_mean


class Override(NamedTuple):
    """``-o ID.name=value`` (``ID.training.name=value`` for the protocol's part,
    ``ID.view.name=value`` for the view's settings); ``id`` may be a shell wildcard."""

    text: str
    id: str
    section: str
    name: str
    value: str


def parse_override(text: str) -> Override:
    """Read one ``-o``; :class:`UsageError` when it is not ``ID.name=value``."""
    left, equals, value = text.partition("=")
    id, *names = left.strip().split(".")
    section = names.pop(0) if len(names) == 2 and names[0] in ("training", "view") else ""
    if not equals or not id or len(names) != 1 or not names[0]:
        raise UsageError(
            f"-o {text}: expected ID.hyperparameter=value, ID.training.name=value or ID.view.name=value, "
            "for example -o dan.hidden=100"
        )
    return Override(text, id, section, names[0], value.strip())


def _parts(value: Any) -> list[Any]:
    """Values of a list or mapping; none of anything else."""
    return list(value.values() if isinstance(value, dict) else value) if isinstance(value, dict | list | tuple) else []


def _floats(value: Any) -> Any:
    """A value with its whole numbers as floats. Settings of a training without a number as default,
    and those in lists, are rates and bounds: with 5 and 5.0 one training would be two cells."""
    if isinstance(value, list | tuple):
        return [_floats(each) for each in value]
    return float(value) if type(value) is int else value


def parsed(override: Override, default: Any) -> Any:
    """The value of an override, of the type that its default has (a default of None accepts
    any)."""
    try:
        value = ast.literal_eval(override.value)
    except (ValueError, SyntaxError):
        value = override.value
    if any(isinstance(part, str) and Path(part).is_absolute() for part in (value, *_parts(value))):
        raise UsageError(
            f"-o {override.text}: an absolute path, which every record would tell; name it from the working directory"
        )
    if isinstance(default, str) and value is not None:
        return value if isinstance(value, str) else override.value
    if isinstance(value, tuple):
        value = list(value)
    try:
        if isinstance(default, float) and type(value) is int:
            value = float(value)
        if override.section == "training" and (default is None or isinstance(default, list)):
            value = _floats(value)
        plain = json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError, OverflowError) as error:
        raise UsageError(f"-o {override.text}: {error}; expected a plain finite value such as {default!r}") from error
    if default is not None and value is not None and type(value) is not type(default):
        wanted = {list: "list", dict: "mapping", bool: "True or False"}.get(type(default), type(default).__name__)
        raise UsageError(
            f"-o {override.text}: {value!r} is a {type(value).__name__}, expected {wanted} (the default is {default!r})"
        )
    return plain


def unused(override: Override, names: set[str], ids: list[str]) -> str:
    """The error for an override that no architecture takes, by the names that there are."""
    if not names and not any(fnmatchcase(id, override.id) for id in ids):
        return f"-o {override.text}: no architecture of this run is called {override.id!r}{_near(override.id, ids)}"
    what = f"{override.id} has no hyperparameter {override.section + '.' if override.section else ''}{override.name}"
    if override.section == "training" and override.name == "lr" and "learning_rates" in names:  # as recipes call it
        example = f"-o {override.id}.training.learning_rates=[{override.value}]"
        return f"-o {override.text}: {what}; rates are a list of those that are compared on dev: {example}"
    return f"-o {override.text}: {what}{_near(override.name, sorted(names))}"


def _near(name: str, known: Sequence[str]) -> str:
    return "; " + did_you_mean(name, known, f"there are: {', '.join(known) or 'none'}")
