"""The rules by which a tree becomes a wrong one.

A rule is a generator over one node: it yields the places in that node's text that it changes, each
with its new text. It keeps shapes where it can, so that the wrong model still answers.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from tools.breaks.source import Source, Span

Change = tuple[Span, str]
Rule = Callable[[ast.AST, Source], Iterator[Change]]

RULES: dict[str, Rule] = {}
"""Rules by their name, which is that of the function with hyphens."""


def rule(function: Rule) -> Rule:
    """Registers a rule."""
    RULES[function.__name__.strip("_").replace("_", "-")] = function
    return function


def called(node: ast.AST) -> str:
    """The last name of what a call calls ("" for anything else): relu of torch.relu(x)."""
    match node:
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)):
            return name
    return ""


def name_place(call: ast.Call, source: Source) -> Span:
    """The place of that last name."""
    end = source.span(call.func)[1]
    return end - len(called(call).encode()), end


def is_module(node: ast.AST) -> bool:
    """A name such as torch, F, nn, np, math."""
    return (isinstance(node, ast.Name) and node.id in ("torch", "F", "nn", "np", "math")) or (
        isinstance(node, ast.Attribute) and is_module(node.value)
    )


def is_self(node: ast.AST) -> bool:
    """The name of the object itself."""
    return isinstance(node, ast.Name) and node.id == "self"


def operand(call: ast.Call) -> ast.expr | None:
    """The tensor that a function or method is applied to: x of x.relu(), torch.relu(x), relu(x)."""
    match call.func:
        case ast.Attribute(value=value) if not is_module(value) and not is_self(value):
            return value
    first = call.args[0] if call.args else None
    return None if isinstance(first, ast.Starred | ast.GeneratorExp) else first


def keyword_of(node: ast.AST, source: Source) -> str:
    """The name of the argument whose value a node is, in a call or a signature ("" for others)."""
    parent = source.parents.get(node)
    match parent:
        case ast.keyword(arg=str(name)):
            return name
        case ast.arguments():
            named = dict(zip(reversed(parent.defaults), reversed(parent.posonlyargs + parent.args)))  # noqa: B905
            named |= {value: arg for value, arg in zip(parent.kw_defaults, parent.kwonlyargs, strict=True) if value}
            return named[node].arg if node in named else ""
    return ""


# They register their rules; of two that make the same change, the first one has it.
from tools.breaks.rules import layers, numbers, flow  # noqa: E402, F401, I001
