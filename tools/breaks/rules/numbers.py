"""Rules of values: defaults, constants, flags, operators, signs, bounds and places."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.breaks.rules import Change, called, is_module, keyword_of, rule
from tools.breaks.source import Source

OPERATORS = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/"), ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"), ast.Mod: ("%", "//"), ast.BitAnd: ("&", "|"), ast.BitOr: ("|", "&"),
}  # fmt: skip
COMPARISONS = {
    ast.Lt: ("<", ">"), ast.LtE: ("<=", ">="), ast.Gt: (">", "<"), ast.GtE: (">=", "<="),
    ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.In: ("in", "not in"),
}  # fmt: skip
BOUNDS = {ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">")}
GUARD = 1e-6
"""Numbers up to this size only keep a result finite."""


@rule
def default_changed(node: ast.AST, source: Source) -> Iterator[Change]:
    """Twice the default of an option; the other flag."""
    if isinstance(source.parents.get(node), ast.arguments) and isinstance(node, ast.Constant):
        if isinstance(node.value, bool):
            yield source.span(node), str(not node.value)
        elif isinstance(node.value, int | float):
            yield source.span(node), _more(node.value)


@rule
def argument_changed(node: ast.AST, source: Source) -> Iterator[Change]:
    """Twice the number that an argument or a class attribute states: a rate, a size, a scale."""
    name = keyword_of(node, source)
    stated = (name and name != "dim") or _is_attribute(node, source)
    if stated and _is_number(node) and not isinstance(source.parents[node], ast.arguments):
        yield source.span(node), _more(node.value)  # type: ignore[attr-defined]


@rule
def constant_changed(node: ast.AST, source: Source) -> Iterator[Change]:
    """Another constant in an expression."""
    parent = source.parents.get(node)
    of_shape = isinstance(parent, ast.Call) and called(parent) in SHAPES
    stated = keyword_of(node, source) or _is_attribute(node, source)
    if _is_number(node) and isinstance(parent, EXPRESSIONS) and not of_shape and not stated:
        yield source.span(node), _more(node.value)  # type: ignore[attr-defined]


EXPRESSIONS = (ast.BinOp, ast.Call, ast.Compare, ast.Tuple, ast.Assign, ast.Return, ast.IfExp, ast.Dict)
SHAPES = {
    "transpose", "permute", "unsqueeze", "squeeze", "flatten", "unflatten", "view", "reshape", "expand", "size", "sum",
    "mean", "amax", "amin", "argmax", "softmax", "log_softmax", "cumsum", "unbind", "select", "movedim", "all", "any",
}  # fmt: skip
"""Calls whose numbers name dimensions."""


@rule
def flag_flipped(node: ast.AST, source: Source) -> Iterator[Change]:
    """The other flag: one direction for two, no bias, a buffer that is kept."""
    default = isinstance(source.parents.get(node), ast.arguments)
    if isinstance(node, ast.Constant) and isinstance(node.value, bool) and not default:
        yield source.span(node), str(not node.value)


@rule
def operator_swapped(node: ast.AST, source: Source) -> Iterator[Change]:
    """Minus for plus, divided for times."""
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        old, new = OPERATORS[type(node.op)]
        yield from _between(node.left, node.right, old, new, source)
    elif isinstance(node, ast.AugAssign) and type(node.op) in OPERATORS:
        old, new = OPERATORS[type(node.op)]
        yield from _between(node.target, node.value, old + "=", new + "=", source)


@rule
def operands_exchanged(node: ast.AST, source: Source) -> Iterator[Change]:
    """The two sides of minus, of a division or of a product of matrices change places."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub | ast.Div | ast.FloorDiv | ast.Pow | ast.MatMult):
        operator = {ast.Sub: "-", ast.Div: "/", ast.FloorDiv: "//", ast.Pow: "**", ast.MatMult: "@"}[type(node.op)]
        if operator == "-" and _loses_its_sign(node, source):
            return
        yield source.span(node), f"(({source.text(node.right)}) {operator} ({source.text(node.left)}))"


def _loses_its_sign(node: ast.AST, source: Source) -> bool:
    """True for what is squared or made positive at once."""
    match source.parents[node]:
        case ast.Attribute(attr="square" | "abs") | ast.BinOp(op=ast.Pow(), right=ast.Constant(value=2)):
            return True
        case ast.Call(args=[first, *_]) as call:
            return first is node and called(call) in ("square", "abs")
    return False


@rule
def arguments_exchanged(node: ast.AST, source: Source) -> Iterator[Change]:
    """The first two arguments of a call change places."""
    match node:
        case ast.Call(args=[first, second, *_]) if called(node) not in ALIKE and not isinstance(first, ast.Constant):
            if all(isinstance(each, ast.Name | ast.Attribute | ast.Call | ast.Subscript) for each in (first, second)):
                (start, middle), (again, end) = source.span(first), source.span(second)
                yield (start, end), source.text(second) + source.text((middle, again)) + source.text(first)


ALIKE = {
    "zip",
    "max",
    "min",
    "maximum",
    "minimum",
    "isinstance",
    "getattr",
    "cat",
    "print",
    "add",
    "mul",
    "logaddexp",
    "cosine_similarity",
}
"""Calls that take their arguments in any order, or that fail at once."""


@rule
def term_dropped(node: ast.AST, source: Source) -> Iterator[Change]:
    """A sum, difference or product without its second part."""
    if isinstance(node, ast.BinOp) and isinstance(
        node.op, ast.Add | ast.Sub | ast.Mult | ast.Div | ast.BitAnd | ast.Pow
    ):
        yield source.span(node), f"({source.text(node.left)})"


@rule
def first_term_dropped(node: ast.AST, source: Source) -> Iterator[Change]:
    """A sum, difference or product without its first part."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub | ast.Mult | ast.BitAnd):
        sign = "-" if isinstance(node.op, ast.Sub) else ""
        yield source.span(node), f"({sign}({source.text(node.right)}))"


@rule
def sign_dropped(node: ast.AST, source: Source) -> Iterator[Change]:
    """Plus for a sign, and the mask itself for its contrary."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Invert | ast.Not):
        if not isinstance(node.operand, ast.Constant):
            yield source.span(node), f"({source.text(node.operand)})"
        elif isinstance(node.operand.value, float):
            yield source.span(node), source.text(node.operand)


@rule
def sign_added(node: ast.AST, source: Source) -> Iterator[Change]:
    """The contrary of what a nonlinear function or the caller gets."""
    if called(node) in ("exp", "softmax", "sigmoid", "log_softmax", "tanh", "logsigmoid", "relu", "logsumexp", "topk"):
        value = node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None
        if value is not None and is_module(value) and node.args:  # type: ignore[attr-defined]
            value = node.args[0]  # type: ignore[attr-defined]
        if value is not None and not is_module(value) and source.text(value) != "self":
            yield source.span(value), f"(-({source.text(value)}))"


@rule
def slice_moved(node: ast.AST, source: Source) -> Iterator[Change]:
    """A slice that begins or ends one further."""
    if isinstance(node, ast.Slice):
        for bound in (node.lower, node.upper):
            if bound is not None and not isinstance(source.parents[source.parents[node]], ast.Dict):
                new = f"({source.text(bound)}) + 1"
                yield source.span(bound), "None" if source.text(bound) == "-1" else new


@rule
def index_moved(node: ast.AST, source: Source) -> Iterator[Change]:
    """The neighbour of an element."""
    if isinstance(node, ast.Subscript) and not called(source.parents[node]).endswith("_like"):  # its shape counts
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if not source.text(node.value).endswith(("shape", "kernel_size")):  # convolutions here have one dimension
            for part in parts:
                text = source.text(part)
                if text in ("0", "1", "2", "-1", "-2"):
                    yield source.span(part), {"0": "-1", "1": "0", "2": "1", "-1": "0", "-2": "-1"}[text]


@rule
def comparison_turned(node: ast.AST, source: Source) -> Iterator[Change]:
    """More for less, other for equal."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in COMPARISONS:
        old, new = COMPARISONS[type(node.ops[0])]
        yield from _between(node.left, node.comparators[0], old, new, source)


@rule
def bound_moved(node: ast.AST, source: Source) -> Iterator[Change]:
    """Less or equal for less."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in BOUNDS:
        old, new = BOUNDS[type(node.ops[0])]
        yield from _between(node.left, node.comparators[0], old, new, source)


def _between(left: ast.AST, right: ast.AST, old: str, new: str, source: Source) -> Iterator[Change]:
    """Another operator between two operands."""
    start, end = source.span(left)[1], source.span(right)[0]
    place = source.text((start, end)).find(old)
    if place >= 0:
        yield (start + place, start + place + len(old)), new


def _is_number(node: ast.AST) -> bool:
    if not isinstance(node, ast.Constant) or isinstance(node.value, bool) or not isinstance(node.value, int | float):
        return False
    return not 0 < abs(node.value) <= GUARD


def _is_attribute(node: ast.AST, source: Source) -> bool:
    """A value that a class body or a module states."""
    parent = source.parents[node]
    stated = isinstance(parent, ast.Assign | ast.AnnAssign)
    return stated and isinstance(source.parents[parent], ast.ClassDef | ast.Module)


def _more(number: float) -> str:
    """Twice a number; one for zero."""
    return repr(number * 2 if number else type(number)(1))
