"""Rules of the flow: conditions, loops, statements, results, names, parts of the data."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.breaks.rules import Change, called, rule
from tools.breaks.source import TECHNICAL, Source


@rule
def condition_negated(node: ast.AST, source: Source) -> Iterator[Change]:
    """The other branch."""
    if isinstance(node, ast.If | ast.IfExp) and not _is_flag_of_training(node.test) and not _is_of_types(node):
        yield source.span(node.test), f"(not ({source.text(node.test)}))"


@rule
def training_mistaken(node: ast.AST, source: Source) -> Iterator[Change]:
    """Trained as it answers, and the other way round."""
    if isinstance(node, ast.Attribute) and node.attr == "training" and isinstance(node.ctx, ast.Load):
        yield source.span(node), f"(not {source.text(node)})"


@rule
def branch_dropped(node: ast.AST, source: Source) -> Iterator[Change]:
    """A branch that nothing enters."""
    if isinstance(node, ast.If) and not _is_of_types(node):
        yield source.span(node.test), "False"


@rule
def and_for_or(node: ast.AST, source: Source) -> Iterator[Change]:
    """Either for both."""
    if isinstance(node, ast.BoolOp):
        start, end = source.span(node.values[0])[1], source.span(node.values[1])[0]
        old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        place = source.text((start, end)).find(old)
        if len(node.values) == 2 and place >= 0:
            yield (start + place, start + place + len(old)), new


@rule
def loop_shortened(node: ast.AST, source: Source) -> Iterator[Change]:
    """One round less."""
    match node:
        case ast.Call(func=ast.Name(id="range"), args=[end]) | ast.Call(func=ast.Name(id="range"), args=[_, end, *_]):
            yield source.span(end), f"({source.text(end)}) - 1"


@rule
def statement_dropped(node: ast.AST, source: Source) -> Iterator[Change]:
    """A call for its effect, or an update in place, that does not happen."""
    call = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and not _is_super(node.value)
    if call or isinstance(node, ast.AugAssign):
        yield source.span(node), "pass"


@rule
def update_dropped(node: ast.AST, source: Source) -> Iterator[Change]:
    """A variable that stays as it was where it should have been made from itself."""
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if not isinstance(value, ast.Name):
            if any(isinstance(each, ast.Name) and each.id == name for each in ast.walk(value)):
                yield source.span(node), "pass"


@rule
def targets_exchanged(node: ast.AST, source: Source) -> Iterator[Change]:
    """The first two of several results change places, where they are taken or given back."""
    match node:
        case ast.Assign(value=ast.GeneratorExp(generators=[ast.comprehension(target=ast.Name(id="_"))])):
            return  # they are made alike
        case ast.Assign(targets=[ast.Tuple(elts=[first, second, *_])], value=value) if not isinstance(value, ast.Tuple):
            pass
        case ast.Return(value=ast.Tuple(elts=[first, second, *_])):
            pass
        case _:
            return
    if not any(isinstance(each, ast.Starred) for each in (first, second)):
        (start, middle), (again, end) = source.span(first), source.span(second)
        yield (start, end), source.text(second) + source.text((middle, again)) + source.text(first)


@rule
def keyword_dropped(node: ast.AST, source: Source) -> Iterator[Change]:
    """The default of what is called, in the place of an argument."""
    if (
        isinstance(node, ast.Call)
        and called(node) not in ("dict", "replace", "Recipe")
        and not called(node).startswith("register")
    ):
        for keyword in node.keywords:
            if keyword.arg and keyword.arg not in TECHNICAL | {"dim", "batch_first", "key", "keepdim"}:
                start, end = source.span(keyword)
                after = source.bytes[end:].lstrip()
                if after.startswith(b","):
                    end = source.bytes.index(b",", end) + 1
                yield (start, end), ""


@rule
def variable_mistaken(node: ast.AST, source: Source) -> Iterator[Change]:
    """Another variable of the function in the place of one."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in (names := _variables(node, source)):
        others = [each for each in names if each != node.id]
        if others:
            yield source.span(node), others[(names.index(node.id) + sum(map(ord, node.id))) % len(others)]


@rule
def attribute_declined(node: ast.AST, source: Source) -> Iterator[Change]:
    """A class without one of its declarations."""
    match node:
        case ast.Assign(value=ast.Name() | ast.Attribute() as value) if isinstance(source.parents[node], ast.ClassDef):
            yield source.span(value), "None"


@rule
def filter_dropped(node: ast.AST, source: Source) -> Iterator[Change]:
    """All elements, not only those that fit."""
    if isinstance(node, ast.comprehension):
        for condition in node.ifs:
            yield source.span(condition), "True"


@rule
def order_dropped(node: ast.AST, source: Source) -> Iterator[Change]:
    """Leaves in the order in which they came what should be sorted."""
    match node:
        case ast.Call(func=ast.Name(id="sorted"), args=[first, *_]) if not isinstance(first, ast.GeneratorExp):
            yield source.span(node), f"list({source.text(first)})"


@rule
def split_mistaken(node: ast.AST, source: Source) -> Iterator[Change]:
    """Dev for train."""
    if isinstance(node, ast.Attribute) and node.attr in ("train", "dev") and not _is_called(node, source):
        end = source.span(node)[1]
        yield (end - len(node.attr), end), {"train": "dev", "dev": "train"}[node.attr]


@rule
def result_untouched(node: ast.AST, source: Source) -> Iterator[Change]:
    """The first argument of the last call of a function is its result."""
    match node:
        case ast.Return(value=ast.Call(func=ast.Name() | ast.Attribute(value=ast.Name(id="self")), args=[first, *_])):
            if isinstance(first, ast.Name | ast.Call | ast.BinOp) and "drop" not in called(node.value):
                yield source.span(node.value), f"({source.text(first)})"


def _variables(node: ast.AST, source: Source) -> list[str]:
    """The local names of the function around a node that an assignment or the signature makes."""
    while not isinstance(node, ast.FunctionDef | ast.Module):
        node = source.parents[node]
    if isinstance(node, ast.Module):
        return []
    names = [each.arg for each in node.args.args + node.args.kwonlyargs if each.arg != "self"]
    for statement in node.body:
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                names += [each.id for each in ast.walk(target) if isinstance(each, ast.Name)]
    return [name for name in dict.fromkeys(names) if name != "self"]


def _is_super(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and called(call.func.value) == "super"


def _is_flag_of_training(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "training"


def _is_of_types(node: ast.If | ast.IfExp) -> bool:
    """True for imports that only annotations need."""
    return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _is_called(node: ast.AST, source: Source) -> bool:
    parent = source.parents[node]
    return isinstance(parent, ast.Call) and parent.func is node
