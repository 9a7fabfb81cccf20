"""Every default, recipe and class attribute of the shipped architectures and input sources, against
a table of the papers' settings. Floors and references have no paper.

``paper_settings.csv`` has a line for each setting of each id: the value that the paper states
(``paper``, as JSON; empty when it states none) and ours where it differs (``ours``). A setting is a
hyperparameter, ``recipe.FIELD`` for a field of the recipe, ``recipe.TYPE.FIELD`` for one of the
recipe of another task type, or one of :data:`ATTRIBUTES`. The lines of the id ``*`` are what a
recipe has when a decorator does not name the field. ``tag`` says how the paper's value is known:
from the authors' code, from the paper, or from memory. ``note`` says why ours differs; it begins
with UNDECLARED where the architecture's ``deviations`` do not say so.
"""

from __future__ import annotations

import ast
import csv
import dataclasses
import functools
import json
import operator
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from harness.registry import ArchitectureEntry, Entry, Recipe, entries, load
from harness.running.grid import hyperparameters, input_settings

TABLE = Path(__file__).with_name("paper_settings.csv")
SHIPPED = Path(__file__).parents[2] / "architectures"

ATTRIBUTES = ("vectors", "head_bias", "head_max_norm", "pooling", "decoder", "beam", "whole_groups")
"""Class attributes that shape training or answers; those that the base class has need no line."""

TAGS = ("code read", "paper", "memory")

ARCHITECTURES: dict[str, Entry] = {
    id: e
    for id, e in entries("architectures").items()
    if e.file.is_relative_to(SHIPPED) and e.kind != "floor" and not e.is_reference
}
ARCHITECTURES |= {id: e for id, e in entries("inputs").items() if e.file.is_relative_to(SHIPPED)}

with TABLE.open(newline="", encoding="utf-8") as file:
    LINES = list(csv.DictReader(file))


def lines_of(id: str) -> dict[str, dict[str, str]]:
    """The lines of an id, by setting."""
    return {line["setting"]: line for line in LINES if line["id"] == id}


def expected(line: dict[str, str]) -> Any:
    """The value that the code should have."""
    return json.loads(line["ours"] or line["paper"])


def recipe_of(recipe: Recipe, name: str = "recipe") -> dict[str, Any]:
    """All fields of a recipe, by setting."""
    plain = json.loads(json.dumps(dataclasses.asdict(recipe)))
    return {f"{name}.{field}": value for field, value in plain.items()}


def recipes_of(entry: ArchitectureEntry) -> dict[str, Any]:
    """All fields of all recipes of an architecture, by setting."""
    others = [recipe_of(recipe, f"recipe.{type}") for type, recipe in entry.recipes.items()]
    return functools.reduce(operator.or_, others, recipe_of(entry.recipe))


def named_in_recipe(entry: Entry) -> set[str]:
    """The recipe's settings that the decorator of an id names, those with their default value too.

    The recipe itself does not tell, so the decorator is read from the source text.
    """
    for call in ast.walk(ast.parse(entry.file.read_text(encoding="utf-8"))):
        if not (isinstance(call, ast.Call) and getattr(call.func, "id", "") == "register"):
            continue
        options = {keyword.arg: keyword.value for keyword in call.keywords}
        variants = members(options["variants"]) if "variants" in options else {}
        if entry.id in variants:
            options |= members(variants[entry.id])
        elif entry.id != ast.literal_eval(call.args[0]):
            continue
        others = members(options["recipes"]) if "recipes" in options else {}
        recipes = {"recipe": options.get("recipe")} | {f"recipe.{type}": recipe for type, recipe in others.items()}
        calls = [(name, recipe) for name, recipe in recipes.items() if isinstance(recipe, ast.Call)]
        return {f"{name}.{keyword.arg}" for name, recipe in calls for keyword in recipe.keywords}
    raise LookupError(f"{entry.file} has no @register of {entry.id}")


def members(node: ast.expr) -> dict[str, ast.expr]:
    """Keys and values of a dict that is written out."""
    assert isinstance(node, ast.Dict), ast.unparse(node)
    return {ast.literal_eval(key): value for key, value in zip(node.keys, node.values, strict=True)}


def attributes_of(cls: type) -> dict[str, tuple[Any, bool]]:
    """The attributes that a class has, each with whether it differs from the base class of its
    kind."""
    base = next(c for c in cls.__mro__ if not c.__module__.startswith("architectures."))
    found = ((name, getattr(cls, name), getattr(base, name, None)) for name in ATTRIBUTES if hasattr(cls, name))
    return {name: (value, value != inherited) for name, value, inherited in found}


def in_code(entry: Entry) -> tuple[dict[str, Any], set[str]]:
    """The values of all settings that an architecture has, and the settings that need a line; those
    of an input source all do."""
    if not isinstance(entry, ArchitectureEntry):
        values = {name: value for name, value in input_settings(entry).items() if name != "version"}
        return values, set(values)
    chosen = hyperparameters(entry)
    attributes = attributes_of(load(entry))
    values = {name: value for name, (value, _) in attributes.items()} | recipes_of(entry) | chosen
    own = {name for name, (_, differs) in attributes.items() if differs}
    return values, set(chosen) | named_in_recipe(entry) | own


@pytest.mark.parametrize("id", ARCHITECTURES)
def test_each_setting_of_an_architecture_has_a_line_and_each_line_a_setting(id: str) -> None:
    """A new hyperparameter is looked up in the paper; a line of one that is gone misleads who reads
    the table."""
    values, needed = in_code(ARCHITECTURES[id])
    lines = set(lines_of(id))
    assert not needed - lines, f"{id}: {TABLE.name} has no line for {', '.join(sorted(needed - lines))}"
    gone = lines - set(values)
    assert not gone, f"{id}: {TABLE.name} has lines for {', '.join(sorted(gone))}, which the code does not have"


@pytest.mark.parametrize("id", ARCHITECTURES)
def test_an_architecture_has_the_settings_of_its_paper(id: str) -> None:
    """A row of the leaderboard with another default, dropout or learning rate is not the paper's
    system."""
    values, _ = in_code(ARCHITECTURES[id])
    wrong = [
        f"{setting} is {values[setting]!r} in the code and {expected(line)!r} in {TABLE.name}"
        for setting, line in lines_of(id).items()
        if setting in values and json.loads(json.dumps(values[setting])) != expected(line)
    ]
    assert not wrong, f"{id}: {'; '.join(wrong)}"


def test_a_recipe_has_the_defaults_of_the_table() -> None:
    """Most decorators leave some fields out: another default changes the recipes of them all."""
    table, code = lines_of("*"), recipe_of(Recipe())
    assert set(table) == set(code)
    wrong = [
        f"{setting} is {value!r} in the code and {expected(table[setting])!r} in {TABLE.name}"
        for setting, value in code.items()
        if value != expected(table[setting])
    ]
    assert not wrong, "; ".join(wrong)


def test_the_table_names_shipped_architectures_and_each_setting_once() -> None:
    """Of two lines for a setting the test would read one, and whoever looks it up the other."""
    counts = Counter((line["id"], line["setting"]) for line in LINES)
    assert not [key for key, count in counts.items() if count > 1], "two lines for the same setting"
    unknown = {line["id"] for line in LINES} - {"*"} - set(ARCHITECTURES)
    assert not unknown, f"{TABLE.name} has lines of {', '.join(sorted(unknown))}, which nothing is registered as"


def test_each_line_says_where_its_value_comes_from_and_why_ours_differs() -> None:
    """A difference without a reason looks like a slip, and nobody can check a value without a
    source."""
    wrong = []
    for number, line in enumerate(LINES, 2):
        where = f"{TABLE.name}:{number}: {line['id']} {line['setting']}"
        if None in line or None in line.values():
            wrong.append(f"{where}: not seven columns")
            continue
        if not line["paper"] and not line["ours"]:
            wrong.append(f"{where}: neither a value of the paper nor ours")
        if line["paper"] and line["ours"] and not line["note"]:
            wrong.append(f"{where}: no note says why ours differs")
        if line["paper"] and line["ours"] and json.loads(line["paper"]) == json.loads(line["ours"]):
            wrong.append(f"{where}: ours is the paper's value: leave it empty")
        if not line["source"]:
            wrong.append(f"{where}: no source")
        if line["tag"] not in TAGS:
            wrong.append(f"{where}: tag {line['tag']!r} is none of {', '.join(TAGS)}")
    assert not wrong, "\n".join(wrong)
