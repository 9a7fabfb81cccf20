"""The facts on the page of an architecture: where it comes from, its settings and its docstring."""

from __future__ import annotations

import ast
import dataclasses
import re
from pathlib import Path

from harness.leaderboard.setting_words import in_words
from harness.leaderboard.unregistered import is_installed
from harness.registry import ArchitectureEntry
from harness.registry.sorts import ROOT
from harness.settings import Recipe

SOURCE_TEXTS = {
    "M": "Minaee et al. 2020",
    "R": "Russell & Norvig 2020",
    "X": "Xiao & Zhu",
    "Z": "Zhang & Teng 2021",
}
"""The texts from which the catalogue's systems are taken, by the letter before a place in them."""
CHOSEN = ("optimizer", "lr", "batch_size", "epochs", "patience", "vector_dims")
"""Settings of a recipe that are told even where they are those of most recipes."""
PLAIN = Recipe()


def facts(architecture: str, entry: ArchitectureEntry | None) -> list[tuple[str, str]]:
    """The registry's facts of an architecture, as (name, text)."""
    if entry is None:
        return [("id", architecture), ("registered", "no: only its records are known here")]
    told = [
        ("id", architecture),
        ("paper", entry.paper),
        ("year", str(entry.year or "")),
        ("source", source_in_words(entry.source)),
        ("family", entry.family),
        ("kind", entry.kind),
    ]
    if not is_installed(entry):
        told.append(("registered", "not here: these are the words of its records"))
        return [(name, text) for name, text in told if text]
    told += [("file", _path(entry.file)), ("class", entry.class_name), ("version", str(entry.version))]
    told.append(("settings of this id", ", ".join(in_words(*setting) for setting in entry.hyperparameters.items())))
    told.append(("training in protocol paper", _recipe(entry.recipe)))
    told += [(f"the same on tasks of type {type}", _recipe(recipe)) for type, recipe in entry.recipes.items()]
    return [(name, text) for name, text in told if text]


def _recipe(recipe: Recipe) -> str:
    """A recipe in words: what every recipe chooses, and what else it has otherwise than most."""
    chosen = {name: value for name, value in dataclasses.asdict(recipe).items() if value is not None}
    told = (n for n, value in chosen.items() if n in CHOSEN or value != getattr(PLAIN, n))
    return ", ".join(in_words(f"training.{name}", chosen[name]) for name in told)


def source_in_words(source: str) -> str:
    """The places of a system in the source texts, with the names of these.

    >>> source_in_words("X4.2.4 M-T5[209]")
    'Xiao & Zhu: 4.2.4; Minaee et al. 2020: T5[209]'
    """
    places: list[str] = []
    for word in source.split():
        if found := re.fullmatch(r"([MRXZ])-?((?:\d|T\d|A\.).*)", word):
            places.append(f"{SOURCE_TEXTS[found[1]]}: {found[2]}")
        else:  # more on the place before, such as the number of an equation
            places[-1:] = [" ".join([*places[-1:], word])]
    return "; ".join(places)


def _path(file: Path) -> str:
    """Path of a file in this repository; for a plugin from elsewhere only the name, which is the
    same on all machines."""
    return file.relative_to(ROOT).as_posix() if file.is_relative_to(ROOT) else file.name


def docstring(entry: ArchitectureEntry) -> str:
    """Docstring of the class, read from its file without importing it; empty if the file cannot be
    read."""
    try:
        tree = ast.parse(entry.file.read_text(encoding="utf-8"))
    except (OSError, ValueError, SyntaxError):
        return ""
    classes = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == entry.class_name)
    return next((ast.get_docstring(node) or "" for node in classes), "")


def paragraphs(text: str) -> list[str]:
    """Paragraphs of a docstring, in which names are code without their roles."""
    text = re.sub(r":\w+:`~?([^`]+)`", r"``\1``", text)
    return [each for each in re.split(r"\n\s*\n", text) if each.strip()]
