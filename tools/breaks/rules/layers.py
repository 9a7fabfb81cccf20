"""Rules of layers: activations, masks, dropout, gradients, dimensions, directions, reductions."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.breaks.rules import Change, called, is_module, name_place, operand, rule
from tools.breaks.source import Source

ACTIVATIONS = {
    "relu": "tanh", "tanh": "sigmoid", "sigmoid": "tanh", "gelu": "relu", "softplus": "relu", "elu": "relu",
    "leaky_relu": "relu", "log_softmax": "softmax", "softmax": "log_softmax", "logsigmoid": "sigmoid",
    "ReLU": "Tanh", "Tanh": "ReLU", "Sigmoid": "Tanh", "GELU": "ReLU", "LeakyReLU": "ReLU", "ELU": "ReLU",
}  # fmt: skip
REDUCTIONS = {"sum": "mean", "mean": "sum", "prod": "sum", "nansum": "nanmean", "logsumexp": "amax", "var": "mean"}
EXTREMES = {
    "max": "min", "min": "max", "amax": "amin", "amin": "amax", "argmax": "argmin", "argmin": "argmax",
    "maximum": "minimum", "minimum": "maximum", "any": "all", "all": "any", "floor": "ceil", "ceil": "floor",
    "sin": "cos", "cos": "sin", "triu": "tril", "tril": "triu", "cummax": "cummin",
}  # fmt: skip
STARTS = {
    "zeros": "ones", "ones": "zeros", "zeros_like": "ones_like", "ones_like": "zeros_like", "new_zeros": "new_ones",
    "new_ones": "new_zeros", "zeros_": "ones_", "ones_": "zeros_", "xavier_uniform_": "kaiming_uniform_",
    "xavier_normal_": "kaiming_normal_", "kaiming_normal_": "xavier_normal_", "kaiming_uniform_": "xavier_uniform_",
    "orthogonal_": "xavier_uniform_", "randn": "zeros", "rand": "zeros", "eye": "ones", "eye_": "zeros_",
}  # fmt: skip
SAME_SHAPE = {
    "sqrt", "exp", "log", "log1p", "abs", "square", "normalize", "layer_norm", "clamp", "clamp_min", "clamp_max",
    "cumsum", "rsqrt", "reciprocal", "squash", "sign", "roll", "sort", "LayerNorm", "BatchNorm1d", "BatchNorm2d",
}  # fmt: skip
TOGETHER = {"cat", "stack", "concatenate", "hstack"}
FLIPS = {"flip", "flipud", "fliplr", "reversed"}
OVER_A_DIMENSION = {
    "sum", "mean", "amax", "amin", "max", "min", "argmax", "softmax", "log_softmax", "cumsum", "logsumexp", "flip",
    "norm", "prod", "cat", "stack", "vector_norm", "sort", "topk", "all", "any", "normalize",
}  # fmt: skip
WORDS = {
    "relu": "tanh", "tanh": "relu", "sigmoid": "tanh", "gelu": "relu", "mean": "max", "max": "mean", "sum": "mean",
    "last": "mean", "first": "last", "lstm": "gru", "gru": "lstm", "rnn": "gru", "adam": "sgd", "sgd": "adam",
    "adamw": "sgd", "adagrad": "adam", "adadelta": "adam", "rmsprop": "adam", "same": "valid", "concat": "sum",
    "none": "sum", "fan_in": "fan_out", "constant": "replicate", "random": "zeros", "glove": "random",
}  # fmt: skip


@rule
def activation_swapped(node: ast.AST, source: Source) -> Iterator[Change]:
    """Another activation: relu for tanh."""
    if (name := called(node)) in ACTIVATIONS:
        yield name_place(node, source), ACTIVATIONS[name]  # type: ignore[arg-type]
    elif isinstance(node, ast.Attribute) and node.attr in ACTIVATIONS and not _is_called(node, source):
        end = source.span(node)[1]
        yield (end - len(node.attr), end), ACTIVATIONS[node.attr]


@rule
def activation_dropped(node: ast.AST, source: Source) -> Iterator[Change]:
    """No activation."""
    if called(node) in ACTIVATIONS:
        yield from _dropped(node, source)  # type: ignore[arg-type]


@rule
def function_dropped(node: ast.AST, source: Source) -> Iterator[Change]:
    """No root, norm, logarithm, bound or layer norm."""
    if called(node) in SAME_SHAPE:
        yield from _dropped(node, source)  # type: ignore[arg-type]


@rule
def dropout_dropped(node: ast.AST, source: Source) -> Iterator[Change]:
    """Nothing is dropped out."""
    name = called(node)
    if "drop" in name.lower():
        yield from _dropped(node, source)  # type: ignore[arg-type]
    if (
        isinstance(node, ast.keyword)
        and node.arg
        and "dropout" in node.arg
        and not isinstance(node.value, ast.Constant)
    ):
        yield source.span(node.value), "0.0"


@rule
def mask_ignored(node: ast.AST, source: Source) -> Iterator[Change]:
    """A mask that lets everything pass."""
    is_mask = isinstance(node, ast.Attribute | ast.Name) and source.text(node).endswith("mask")
    if is_mask and isinstance(node.ctx, ast.Load) and not _is_called(node, source):  # type: ignore[attr-defined]
        parent = source.parents[node]
        inner = isinstance(parent, ast.Attribute) and parent.attr in ("shape", "dtype", "device")
        if not inner and b"import torch" in source.bytes:
            yield source.span(node), f"torch.ones_like({source.text(node)})"


@rule
def masking_dropped(node: ast.AST, source: Source) -> Iterator[Change]:
    """Nothing is masked, though the mask is there."""
    if called(node) in ("masked_fill", "masked_fill_", "where") and (kept := _kept(node)) is not None:  # type: ignore[arg-type]
        yield source.span(node), source.text(kept)


@rule
def gradient_cut(node: ast.AST, source: Source) -> Iterator[Change]:
    """A constant to the gradient."""
    match node:
        case ast.Call(func=ast.Attribute(value=value), args=[first, *_]) if b"import torch" in source.bytes:
            of_layer = (isinstance(value, ast.Name) and value.id == "self") or (
                is_module(value) and not _is_numpy(value)
            )
            if (
                of_layer
                and isinstance(first, ast.Name | ast.Call | ast.BinOp)
                and _may_have_gradient(node, first, source)
            ):
                yield source.span(first), f"({source.text(first)}).detach()"


@rule
def gradient_let_through(node: ast.AST, source: Source) -> Iterator[Change]:
    """Gradients pass where there was a constant to them."""
    match node:
        case ast.Call(func=ast.Attribute(value=value, attr="detach")):
            yield source.span(node), source.text(value)


@rule
def dimension_changed(node: ast.AST, source: Source) -> Iterator[Change]:
    """A neighbouring dimension."""
    values = [k.value for k in node.keywords if k.arg == "dim"] if isinstance(node, ast.Call) else []
    if isinstance(node, ast.Call) and called(node) in OVER_A_DIMENSION and not values:
        method = isinstance(node.func, ast.Attribute) and not is_module(node.func.value)
        values = node.args[: 1 if method else 2][0 if method else 1 :]
    for value in values:
        number = _integer(value)
        if number is not None:
            yield source.span(value), str({0: 1, -1: -2, -2: -1}.get(number, number - 1))


@rule
def transposition_dropped(node: ast.AST, source: Source) -> Iterator[Change]:
    """Rows stay rows."""
    match node:
        case ast.Call(func=ast.Attribute(value=value, attr="transpose" | "permute" | "t")):
            yield source.span(node), source.text(value)
        case ast.Attribute(value=value, attr="T" | "mT"):
            yield source.span(node), source.text(value)


@rule
def direction_turned(node: ast.AST, source: Source) -> Iterator[Change]:
    """Reads backwards in the place of forwards, and the other way round."""
    if called(node) in FLIPS:
        yield from _dropped(node, source, wrap="list" if called(node) == "reversed" else "")  # type: ignore[arg-type]
    match node:
        case ast.Slice(lower=None, upper=None, step=ast.UnaryOp(op=ast.USub())):
            yield source.span(node), ":"
        case ast.For(target=ast.Name(id=name), iter=ast.Call(func=ast.Name(id="range")) as steps) if _reads(node, name):
            yield source.span(steps), f"reversed({source.text(steps)})"
        case ast.Call(func=ast.Attribute(attr="unbind"), args=_):
            yield source.span(node), f"{source.text(node)}[::-1]"


@rule
def reduction_changed(node: ast.AST, source: Source) -> Iterator[Change]:
    """A mean for a sum."""
    if (name := called(node)) in REDUCTIONS and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        yield name_place(node, source), REDUCTIONS[name]


@rule
def extreme_turned(node: ast.AST, source: Source) -> Iterator[Change]:
    """The smallest for the largest."""
    if (name := called(node)) in EXTREMES:
        yield name_place(node, source), EXTREMES[name]  # type: ignore[arg-type]


@rule
def start_changed(node: ast.AST, source: Source) -> Iterator[Change]:
    """Another start: ones for zeros, another spread of weights."""
    if (name := called(node)) in STARTS:
        yield name_place(node, source), STARTS[name]  # type: ignore[arg-type]


@rule
def layer_swapped(node: ast.AST, source: Source) -> Iterator[Change]:
    """A layer of the same model in the place of another."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr=name)):
            others = [each for each in _layers_of(node, source) if each != name]
            if others and name in _layers_of(node, source):
                end = source.span(node.func)[1]
                other = others[sum(map(ord, name)) % len(others)]
                yield (end - len(name), end), other


@rule
def word_changed(node: ast.AST, source: Source) -> Iterator[Change]:
    """Another choice by name: "max" for "mean", "gru" for "lstm"."""
    if isinstance(source.parents.get(node), ast.Dict | ast.Subscript | ast.Compare):
        return
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in WORDS:
        yield source.span(node), f'"{WORDS[node.value]}"'


@rule
def part_silenced(node: ast.AST, source: Source) -> Iterator[Change]:
    """One of the parts that are put together is all zeros."""
    for part in _parts(node):
        if not isinstance(part, ast.Starred) and called(part) not in ("zeros", "zeros_like", "new_zeros"):
            yield source.span(part), f"({source.text(part)}) * 0"


@rule
def parts_exchanged(node: ast.AST, source: Source) -> Iterator[Change]:
    """Two of the parts that are put together change places."""
    if len(parts := _parts(node)) > 1:
        (start, middle), (again, end) = source.span(parts[0]), source.span(parts[1])
        yield (start, end), f"{source.text(parts[1])}{source.text((middle, again))}{source.text(parts[0])}"


def _parts(node: ast.AST) -> list[ast.expr]:
    """The parts that a call puts together."""
    match node:
        case ast.Call(args=[ast.List(elts=parts) | ast.Tuple(elts=parts), *_]) if called(node) in TOGETHER:
            return parts
    return []


def _dropped(call: ast.Call, source: Source, wrap: str = "") -> Iterator[Change]:
    """The operand of a call in its place; an identity in the place of a layer that is made."""
    if called(call)[0].isupper():
        yield source.span(call), "nn.Identity()" if b" nn" in source.bytes else "torch.nn.Identity()"
    elif (value := operand(call)) is not None and not isinstance(value, ast.Constant):
        yield source.span(call), f"{wrap}({source.text(value)})"


def _kept(call: ast.Call) -> ast.expr | None:
    """The tensor that a call masks."""
    if called(call) == "where":
        values = call.args if isinstance(call.func, ast.Attribute) and is_module(call.func.value) else []
        return values[1] if len(values) == 3 and not isinstance(values[1], ast.Constant) else None
    return operand(call)


def _is_called(node: ast.AST, source: Source) -> bool:
    parent = source.parents[node]
    return isinstance(parent, ast.Call) and parent.func is node


def _reads(loop: ast.For, name: str) -> bool:
    """True for a loop that uses its variable."""
    nodes = [node for statement in loop.body for node in ast.walk(statement)]
    return any(isinstance(node, ast.Name) and node.id == name for node in nodes)


def _is_numpy(value: ast.AST) -> bool:
    return isinstance(value, ast.Name) and value.id in ("np", "math", "nn")


def _may_have_gradient(call: ast.Call, argument: ast.expr, source: Source) -> bool:
    """False for arguments that are numbers of places or of words, shapes or masks, and where a
    layer starts."""
    of_start = called(call).endswith("_") and source.text(call.func).startswith("nn.init.")
    if of_start or called(call).endswith("_like"):
        return False
    of_numbers = ("zeros", "ones", "arange", "empty", "full", "tensor", "Size", "manual_seed", "one_hot", "eye")
    if called(call) in (*of_numbers, "where"):  # whose first argument is true or false
        return False
    text = source.text(argument).lower()
    return not any(
        w in text for w in ("mask", "len", "ids", "id)", "count", "size", "shape", "index", "arange", "target")
    )


def _integer(node: ast.AST) -> int | None:
    match node:
        case ast.Constant(value=int(number)) if not isinstance(number, bool):
            return number
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(number))):
            return -number
    return None


def _layers_of(node: ast.AST, source: Source) -> list[str]:
    """The layers that the function around a node calls."""
    while not isinstance(node, ast.FunctionDef | ast.Module):
        node = source.parents[node]
    names = []
    for each in ast.walk(node):
        match each:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr=name)):
                names.append(name)
    methods = {each.name for each in ast.walk(source.tree) if isinstance(each, ast.FunctionDef)}
    return [name for name in dict.fromkeys(names) if name not in methods]
