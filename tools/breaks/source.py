"""A source file as the rules see it: its tree, the places of its nodes, the parts that compute."""

from __future__ import annotations

import ast
import copy
import hashlib
import warnings
from collections.abc import Iterator
from functools import cached_property
from itertools import accumulate

Span = tuple[int, int]
"""First byte, and the byte after the last."""

Scope = ast.Module | ast.ClassDef | ast.FunctionDef

TOLD = {"name", "kind", "paper", "source", "year", "deviations", "tiny", "version", "sees", "vectors_of_paper"}
"""Arguments of a registration that tell of an architecture and compute nothing."""

TECHNICAL = {"strict", "dtype", "device", "requires_grad"}
"""Arguments that have one possible value: another one raises an error, or changes nothing."""


class Source:
    """Text, tree, and the nodes that compute."""

    def __init__(self, text: str):
        self.bytes = text.encode()
        self.tree = ast.parse(text)
        self._starts = [0, *accumulate(len(line) for line in self.bytes.splitlines(keepends=True))]
        self.parents = {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    def span(self, node: ast.AST) -> Span:
        """The place of a node."""
        start = self._starts[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]
        end = self._starts[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]
        return start, end

    def text(self, place: ast.AST | Span) -> str:
        """The text of a node or a place."""
        start, end = place if isinstance(place, tuple) else self.span(place)
        return self.bytes[start:end].decode()

    def replaced(self, place: Span, text: str) -> str:
        """The whole text with another one at a place."""
        return (self.bytes[: place[0]] + text.encode() + self.bytes[place[1] :]).decode()

    def is_other_python(self, place: Span, text: str) -> bool:
        """False where another text at a place is no Python, or means the same."""
        start, end = next(each for each in self._around(place) if not self.text(each).startswith("elif"))
        column = start - max(each for each in self._starts if each <= start)
        changed = (self.bytes[start : place[0]] + text.encode() + self.bytes[place[1] : end]).decode()
        return (meaning := _meaning(changed, column)) is not None and meaning != _meaning(
            self.text((start, end)), column
        )

    def _around(self, place: Span) -> Iterator[Span]:
        """The places of the statements around a place, from the innermost, and of the file."""
        yield from sorted(
            (each for each in self._statements if each[0] <= place[0] and place[1] <= each[1]), key=_length
        )
        yield 0, len(self.bytes)

    @cached_property
    def _statements(self) -> list[Span]:
        found = []
        for node in ast.walk(self.tree):
            if isinstance(node, ast.stmt):
                start, end = self.span(node)
                for decorator in getattr(node, "decorator_list", []):
                    start = min(start, self.span(decorator)[0] - 1)
                found.append((start, end))
        return found

    def scopes(self) -> dict[str, Scope]:
        """Functions and classes by their qualified name; the module is ""."""

        def below(node: ast.AST, name: str) -> Iterator[tuple[str, Scope]]:
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.FunctionDef | ast.ClassDef):
                    inner = f"{name}.{child.name}".lstrip(".")
                    yield inner, child
                    yield from below(child, inner)
                else:
                    yield from below(child, name)

        return {"": self.tree, **dict(below(self.tree, ""))}

    def computing(self, scope: Scope) -> Iterator[ast.AST]:
        """The nodes of one scope, in the order of the text, without those of a scope in it, and
        without annotations, docstrings, errors and what only tells of an architecture."""
        stack = list(reversed(_parts(scope)))
        while stack:
            node = stack.pop()
            if not isinstance(node, Scope):
                if not _is_check(node):
                    yield node
                stack.extend(reversed(_parts(node)))

    def digests(self) -> dict[str, str]:
        """A digest of what each scope computes, which neither its place nor the others change."""
        return {name: _digest(scope) for name, scope in self.scopes().items()}


def _length(place: Span) -> int:
    return place[1] - place[0]


def _meaning(statement: str, column: int) -> str | None:
    """The tree of a statement that stands at a column, in words; None for no Python."""
    text = f"if 1:\n{' ' * column}{statement}" if column else statement
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # `x is 1` is wrong on purpose here
            return ast.dump(ast.parse(text))
    except SyntaxError:
        return None


def _digest(scope: Scope) -> str:
    own = copy.deepcopy(scope)
    for node in ast.walk(own):
        if isinstance(node, Scope):
            if node is not own:
                node.body, node.name = [], ""  # type: ignore[union-attr]
            elif _is_docstring(node.body[0] if node.body else None):
                node.body.pop(0)
    own.body = [node for node in own.body if not isinstance(node, Scope)]  # type: ignore[assignment]
    return hashlib.sha256(ast.dump(own).encode()).hexdigest()


def _is_check(node: ast.AST) -> bool:
    """A condition that only raises an error."""
    return isinstance(node, ast.If) and all(isinstance(each, ast.Raise) for each in node.body)


def _is_docstring(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _parts(node: ast.AST) -> list[ast.AST]:
    """The children of a node that compute."""
    match node:
        case ast.FunctionDef(name="memory_needed" | "__repr__"):  # an estimate, and what a person reads
            parts = []
        case ast.FunctionDef():
            parts = [*node.decorator_list, node.args, *node.body]
        case ast.arguments():
            parts = [*node.defaults, *node.kw_defaults]
        case ast.AnnAssign():
            parts = [node.target, node.value]
        case ast.If() if _is_check(node):
            parts = list(node.orelse)
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            parts = []
        case ast.Raise() | ast.Assert() | ast.JoinedStr() | ast.Import() | ast.ImportFrom():
            parts = []
        case ast.Call() if _is_registration(node):
            parts = [keyword for keyword in node.keywords if keyword.arg not in TOLD]
        case ast.Call(func=ast.Name(id="cast" | "isinstance" | "TypeVar" | "NewType")):
            parts = []
        case ast.Subscript(
            value=ast.Name(id="list" | "dict" | "tuple" | "set" | "Callable")
        ):  # a type, as in list[int]()
            parts = []
        case ast.keyword(arg=str(name)) if name in TECHNICAL:
            parts = []
        case _:
            parts = list(ast.iter_child_nodes(node))
    return [part for part in parts if part is not None and not _is_docstring(part)]


def _is_registration(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id.startswith("register")
