"""The start value of every parameter of every architecture, against ``start_values.csv``.

A line of the table names parameters by a pattern of architectures and one of names: the path in the
model, or the path below a module behind the name of its class, as in ``WordTable.tuned.weight``.
The first line that fits counts, and what none names starts as torch's layer that owns it does
(:data:`DEFAULTS`). ``part`` are some of so many equal parts of the rows, such as the gates of an
LSTM; the other parts have lines of their own. ``scale`` is what the law is multiplied by: half the
width of a uniform law, the deviation of a normal one, a constant's value. It is a formula of the
tensor's ``shape``, ``fan_in`` and ``fan_out`` (those of the layer's weight for its bias), the
architecture's settings, and the numbers that the modules around the tensor hold. ``identity + LAW``
adds unit matrices; ``copy of`` and ``norms of`` name another parameter, from the module whose class
the line names. ``source`` says who declares it; "ours" where no paper and no code does.

Word vectors and trained weights that are given from outside are no start values: none are given
here. Systems of kind ``fit`` make their numbers while they fit (test_start_values_of_fitted.py).
"""

from __future__ import annotations

import csv
import fnmatch
import functools
import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from harness import registry
from harness.contract import inputs
from harness.data.corpus import Corpus
from harness.kinds import Encoder
from harness.registry import ArchitectureEntry, TaskEntry
from harness.running import fitting, grid
from harness.running.assembly import unwrapped
from harness.training.model import Model, build
from tests.support.laws import LAWS, described, draws, fault, repetition

TABLE = Path(__file__).with_name("start_values.csv")
NUMBERS = 4_000
"""Numbers of a parameter that are pooled from models of several seeds, at least of two."""
TENSORS = 750
"""Tensors that are made for an architecture, about; a model of few layers is made 48 times."""
ROWS, WIDTH = 48, 24
"""Training rows that a vocabulary is made of, and the width of word vectors."""


class Line(NamedTuple):
    number: int
    architecture: str
    parameter: str
    part: str
    law: str
    scale: str
    source: str


with TABLE.open(newline="", encoding="utf-8") as file:
    LINES = [Line(number, *line) for number, line in enumerate(csv.reader(file), 1)][1:]

OF_ANOTHER = ("copy of", "norms of")
"""Laws whose scale is the name of another parameter."""
READ_BY_NOTHING = ("encoder.spelling.vectors.weight", "sources.char_lstm_words.spelling.vectors.weight")
"""Tables of which the row of the padding is drawn: padding stands behind the last character that a
state reads."""
FAN_IN = "1 / sqrt(fan_in)"
DEFAULTS: dict[tuple[type, ...], dict[str, tuple[str, str]]] = {
    (nn.Linear, nn.Conv1d, nn.Conv2d): {"weight": ("uniform", FAN_IN), "bias": ("uniform", FAN_IN)},
    (nn.RNNBase, nn.RNNCellBase): {"weight_*": ("uniform", "1 / sqrt(hidden_size)")}
    | {"bias_*": ("uniform", "1 / sqrt(hidden_size)")},
    (nn.Embedding, nn.EmbeddingBag): {"weight": ("normal", "1")},
    (nn.LayerNorm, nn.GroupNorm, _BatchNorm): {"weight": ("constant", "1"), "bias": ("constant", "0")},
}
"""Law and scale by which torch's layers start, as its documentation has them."""

ARCHITECTURES = {
    id: entry for id, entry in registry.entries("architectures").items() if entry.kind not in ("floor", "fit")
}
VARIATIONS: list[tuple[str, dict[str, Any]]] = [
    ("cnn", {"position": "learned"}),
    ("cnn", {"position": "relative"}),
    ("hlbl", {"context": 5}),
]
"""Settings beside the default ones that have parameters of their own, or another scale."""
READER_OF_ALL = "bilstm"
"""An architecture that reads tasks of most types, for the parameters of their heads."""


def tasks_of(entry: ArchitectureEntry, settings: Mapping[str, Any]) -> Iterator[TaskEntry]:
    """The tasks that an architecture fits."""
    for task in registry.tasks_to_check_on():
        if fitting.reason_to_skip(entry, task, dict(settings)) is None:
            yield task


class Start:
    """An architecture as it starts on one task, at its tiny sizes with its own dropout."""

    def __init__(self, id: str, changes: Mapping[str, Any] | None = None, task: TaskEntry | None = None):
        entry = ARCHITECTURES[id]
        sizes = {name: value for name, value in entry.tiny.items() if "dropout" not in name}
        settings = grid.hyperparameters(entry) | sizes | dict(changes or {})
        self.id, self.task = id, task or next(tasks_of(entry, settings))
        self.regime, wrapped, settings = unwrapped(entry, settings)
        if self.regime is not None:
            settings = grid.hyperparameters(wrapped) | wrapped.tiny
        self.settings: dict[str, Any] = settings
        self.cls: type[Encoder] = registry.load(wrapped)
        view = self.cls.view_for(self.task, settings)
        assert view is not None
        task_read = registry.load(self.task)(self.task)
        self.corpus = Corpus(task_read, "mini", None, view, self.cls.output_form(), ROWS, sees=wrapped.sees)

    def model(self, seed: int) -> Model:
        torch.default_generator.manual_seed(seed)  # torch.manual_seed takes a millisecond, most of a small model's time
        view, target = self.corpus.view, self.corpus.target
        model = build(self.cls, self.corpus.problem, self.settings, view, target, WIDTH)
        if self.regime is not None:
            self.regime.apply(model, view)
        return model


class Source(Start):
    """An input source as it starts, beneath the carrier of its contract."""

    def __init__(self, id: str):
        self.id = id
        with inputs.case_of(registry.entry("inputs", id)) as case:
            self.case, self.settings = case, dict(case.inputs[id])

    def model(self, seed: int) -> Model:
        return self.case.model(seed)


class Found(NamedTuple):
    """A parameter, its values in models of several seeds, and the line that names it."""

    name: str
    values: list[np.ndarray]
    scopes: list[dict[str, Any]]
    lines: list[Line]
    base: str
    owner: nn.Module


def modules_around(model: nn.Module, name: str) -> list[tuple[str, nn.Module]]:
    """The modules that hold a parameter, from the model to its owner, with their paths."""
    parts = name.split(".")[:-1]
    paths = [".".join(parts[:end]) for end in range(len(parts) + 1)]
    return [(path, model.get_submodule(path)) for path in paths]


def lines_for(id: str, model: nn.Module, name: str) -> tuple[list[Line], str]:
    """The lines of the first pattern that fits a parameter, and the path of the module below which
    it fits."""
    around = modules_around(model, name)
    aliases = [(name, "")] + [
        (f"{type(module).__name__}.{name.removeprefix(path).lstrip('.')}", path) for path, module in around
    ]
    for line in LINES:
        if fnmatch.fnmatchcase(id, line.architecture):
            for alias, path in aliases:
                if fnmatch.fnmatchcase(alias, line.parameter):
                    same = [each for each in LINES if each[1:3] == line[1:3]]
                    return same, path
    return [], ""


def scope(model: nn.Module, name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The names that a formula may use."""
    tensor, around = model.get_parameter(name), modules_around(model, name)
    names: dict[str, Any] = {"sqrt": math.sqrt, "log": math.log, "len": len, "min": min, "bincount": torch.bincount}
    for _, module in around:
        names |= {key: value for key, value in vars(module).items() if isinstance(value, int | float)}
        names |= dict(module.named_buffers(recurse=False)) | dict(module.named_parameters(recurse=False))
    names |= {key: value for key, value in settings.items() if isinstance(value, int | float)}
    weight = getattr(around[-1][1], "weight", tensor)
    shape = tuple(tensor.shape if tensor.dim() > 1 or not isinstance(weight, Tensor) else weight.shape)
    if len(shape) > 1:
        places = math.prod(shape[2:])
        names |= {"fan_in": shape[1] * places, "fan_out": shape[0] * places}
    return names | {"shape": tuple(tensor.shape)}


def value_of(formula: str, names: dict[str, Any]) -> Any:
    """The value of a formula of the table."""
    if "bincount" in formula:  # of a tensor
        names = names | {"sqrt": torch.sqrt}
    return eval(formula, {"__builtins__": {}}, names)


def expected(found: Found) -> list[tuple[str, str, str, str]]:
    """Part, law, scale and who says so, of each part of a parameter."""
    if found.lines:
        return [(each.part, each.law, each.scale, f"line {each.number}: {each.source}") for each in found.lines]
    for types, laws in DEFAULTS.items():
        if isinstance(found.owner, types):
            for pattern, (law, scale) in laws.items():
                if fnmatch.fnmatchcase(found.name.rpartition(".")[2], pattern):
                    return [("", law, scale, f"as torch's {type(found.owner).__name__} starts")]
    return []


def rows_of(part: str, rows: int) -> np.ndarray:
    """The rows of ``2 of 4``, ``1 3 of 4`` and of all."""
    chosen, _, parts = part.partition(" of ")
    if not part:
        return np.arange(rows)
    size, left = divmod(rows, int(parts))
    assert not left, f"{rows} rows have no {parts} equal parts"
    return np.concatenate([np.arange(size) + (int(number) - 1) * size for number in chosen.split()])


def faults_of(found: Found, all_values: Mapping[str, list[np.ndarray]]) -> Iterator[str]:
    """Differences of a parameter from what is expected of it."""
    parts, shape = expected(found), found.values[0].shape
    if not parts:
        yield f"no layer of torch owns it, and {TABLE.name} has no line for it"
    padding = getattr(found.owner, "padding_idx", None)
    rows = np.arange(shape[0])
    if padding is not None:
        rows = rows[rows != padding]
        read = isinstance(found.owner, nn.Embedding) and found.name not in READ_BY_NOTHING  # nor does a bag
        if read and any(values[padding].any() for values in found.values):
            yield "the row of the padding is not zero"
    for part, law, scale, source in parts:
        chosen = rows_of(part, shape[0]) if part or law in OF_ANOTHER else rows
        values = [each[chosen] for each in found.values]
        fails = list(failures(law, scale, values, found, all_values))
        if fails:
            where = f"part {part}: " if part else ""
            numbers = described(np.concatenate([each.ravel() for each in values]))
            yield f"{where}expected {law} {scale} ({source}), found {numbers}: {', '.join(fails)}"
    covered = sorted(int(row) for part, *_ in parts for row in rows_of(part, shape[0]))
    if parts and covered != list(range(shape[0])):
        yield "the lines do not name each part once"


def failures(
    law: str, scale: str, values: list[np.ndarray], found: Found, all_values: Mapping[str, list[np.ndarray]]
) -> Iterator[str]:
    """Reasons why values do not follow a law."""
    if law in OF_ANOTHER:
        other = all_values[f"{found.base}.{scale}".lstrip(".")]
        for mine, its in zip(values, other, strict=False):
            wanted = its if law == "copy of" else np.sqrt((its.reshape(len(its), -1) ** 2).sum(1)).reshape(mine.shape)
            if not np.allclose(mine, wanted, rtol=1e-5):
                yield f"it is not {law} {scale}"
                return
        return
    scales = [value_of(scale, names) for names in found.scopes]
    if law == "constant":
        if not all(np.allclose(mine, size, rtol=1e-6, atol=0) for mine, size in zip(values, scales, strict=True)):
            yield "another number"
        return
    base, _, law = law.rpartition(" + ")
    if base:
        values = [mine - units(mine.shape) for mine in values]
    divided = [(mine / aligned(size, mine.ndim)).ravel() for mine, size in zip(values, scales, strict=True)]
    if seen := fault(law, np.concatenate(divided).astype(float)):
        yield seen
    if seen := repetition(values[0]):
        yield seen
    if np.array_equal(values[0], values[1]):
        yield "two seeds give the same"


def units(shape: tuple[int, ...]) -> np.ndarray:
    """Unit matrices side by side in the last two dimensions."""
    return np.tile(np.eye(shape[-2]), shape[-1] // shape[-2])


def aligned(scale: Any, dimensions: int) -> Any:
    """A scale of each row, so that tensors can be divided by it."""
    return scale.numpy().reshape(-1, *[1] * (dimensions - 1)) if isinstance(scale, Tensor) else scale


def twins(found: list[Found]) -> Iterator[str]:
    """Pairs of drawn parameters with the same numbers."""
    drawn: dict[bytes, str] = {}
    for each in found:
        if any(law.rpartition(" + ")[2] in LAWS for _, law, _, _ in expected(each)):
            key = each.values[0].tobytes()
            if each.values[0].size > 1 and key in drawn:
                yield f"{each.name}: the same numbers as {drawn[key]}"
            drawn.setdefault(key, each.name)


def parameters_of(start: Start) -> list[Found]:
    """Every parameter of an architecture, in models of several seeds."""
    first = start.model(0)
    found = []
    for name, tensor in first.named_parameters():
        if tensor.numel():
            lines, base = lines_for(start.id, first, name)
            found.append(Found(name, [], [], lines, base, modules_around(first, name)[-1][1]))
    for seed in range(max(16, min(48, TENSORS // len(found)))):
        wanted = [each for each in found if seed < 2 or len(each.values) * each.values[0].size < NUMBERS]
        if not wanted:
            break
        model = start.model(seed)
        for each in wanted:
            each.values.append(model.get_parameter(each.name).detach().numpy())
            drawn = any("bincount" in line.scale for line in each.lines)  # other blocks exist in each model
            each.scopes.append(scope(model, each.name, start.settings) if drawn or not seed else each.scopes[0])
    return found


@functools.cache
def starts() -> dict[str, Callable[[], Start]]:
    """Makers of the cases, by their names."""
    made: dict[str, Callable[[], Start]] = {id: functools.partial(Start, id) for id in ARCHITECTURES}
    for id, changes in VARIATIONS:
        name = f"{id}, {', '.join(f'{key}={value}' for key, value in changes.items())}"
        made[name] = functools.partial(Start, id, changes)
    fits = list(tasks_of(ARCHITECTURES[READER_OF_ALL], grid.hyperparameters(ARCHITECTURES[READER_OF_ALL])))
    heads = {task.type: task for task in reversed(fits)} | {task.id: task for task in fits if task.id == "squad2"}
    for task in heads.values():
        made[f"{READER_OF_ALL} on {task.id}"] = functools.partial(Start, READER_OF_ALL, task=task)
    return made | {id: functools.partial(Source, id) for id in registry.entries("inputs")}


@functools.cache
def start_of(name: str) -> Start:
    return starts()[name]()


@pytest.mark.parametrize("name", starts())
def test_each_parameter_starts_as_declared(name: str) -> None:
    """Another scale trains slowly, or to another result, and no output of a layer shows it."""
    start = start_of(name)
    found = parameters_of(start)
    all_values = {each.name: each.values for each in found}
    wrong = [f"{each.name}: {fault}" for each in found for fault in faults_of(each, all_values)]
    wrong += twins(found)
    assert not wrong, "\n".join(f"{start.id}: {fault}" for fault in wrong)


def test_each_line_names_a_parameter() -> None:
    """A line that fits nothing, or that another hides, looks like a check and is none."""
    named: set[int] = set()
    for name in starts():
        start = start_of(name)
        model = start.model(0)
        named.update(
            line.number for each, _ in model.named_parameters() for line in lines_for(start.id, model, each)[0]
        )
    dead = [
        f"{TABLE.name}:{line.number}: {line.architecture} {line.parameter}"
        for line in LINES
        if line.number not in named
    ]
    assert not dead, "\n".join(dead)


def test_each_line_says_what_it_expects_and_who_declares_it() -> None:
    known = {"constant", *OF_ANOTHER, *LAWS, *(f"identity + {law}" for law in LAWS)}
    wrong = [line for line in LINES if line.law not in known or not line.scale or not line.source]
    assert not wrong


@pytest.mark.parametrize("law", LAWS)
def test_a_law_is_told_from_others_and_from_another_scale(law: str) -> None:
    """A law that accepts everything would let every start value pass."""
    rng = np.random.default_rng(0)
    for number in range(20):
        assert fault(law, draws(law)((2_000,), rng)) is None, number
        assert fault(law, 1.2 * draws(law)((2_000,), rng))
        assert fault(law, draws(law)((2_000,), rng) / 1.2)
        assert fault(law, draws(law)((2_000,), rng) + 0.2)
        for other in {"normal", "uniform"} - {law.removesuffix(" from 0")}:
            numbers = draws(other)((2_000,), rng)
            same = (numbers - numbers.mean()) / numbers.std() * LAWS[law].deviation + LAWS[law].mean
            assert fault(law, same), other


def test_slices_that_are_alike_are_found() -> None:
    tensor = np.random.default_rng(0).normal(size=(4, 3, 5))
    assert repetition(tensor) is None
    for axis in range(3):
        alike = np.repeat(tensor.take([0], axis), tensor.shape[axis], axis)
        assert "dimension" in (repetition(alike) or "")
