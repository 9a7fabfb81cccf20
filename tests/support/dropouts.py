"""A recorder of the numbers that a model drops in a pass: which tensor, for whom, at which rate.

It watches torch's functions rather than an architecture's text, so that a dropout is found where a
layer draws its own mask as well as where it calls ``nn.Dropout``.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.overrides import TorchFunctionMode

from harness.contract.fitted import FittedCase
from harness.contract.inputs import InputCase
from harness.contract.trained import TrainedCase
from harness.kinds import made

DROPOUTS: tuple[Callable[..., Tensor], ...] = (
    F.dropout,
    F.dropout1d,
    F.dropout2d,
    F.dropout3d,
    F.alpha_dropout,
    F.feature_alpha_dropout,
    torch.dropout,
    torch.feature_dropout,
)
DRAWS = {"rand", "rand_like", "bernoulli", "uniform"}
"""Functions whose numbers may become a mask."""
COMPARISONS = {"lt", "le", "gt", "ge"}
LAYOUT = {
    *("T", "mT", "t", "cat", "concat", "stack", "hstack", "vstack", "chunk", "split", "unbind", "clone", "contiguous"),
    *("expand", "expand_as", "repeat", "repeat_interleave", "flatten", "unflatten", "reshape", "view", "squeeze"),
    *("unsqueeze", "permute", "transpose", "swapaxes", "movedim", "flip", "gather", "getitem", "index_select"),
    *("narrow", "select", "unfold", "pad", "masked_fill", "where", "pack_padded_sequence", "pad_packed_sequence"),
    *("to", "type", "float", "detach", "nan_to_num"),
}
"""Functions that arrange numbers, or put others in the place of some, and compute nothing."""
READ_NOTHING = {"new_zeros", "new_ones", "new_empty", "new_full", "zeros_like", "ones_like", "empty_like", "full_like"}
ONE_NAME = {"bmm": "matmul", "einsum": "matmul", "rmatmul": "matmul", "radd": "add", "iadd": "add", "rsub": "sub"}
ONE_NAME |= {"rmul": "mul", "imul": "mul", "multiply": "mul", "truediv": "div", "iand": "and", "rand_like": "rand"}
ENCODER = "encoder"
"""Name of the architecture in a model of the harness."""
RECURRENCES = {"lstm", "gru", "rnn_tanh", "rnn_relu"}
NOTHING: frozenset[Any] = frozenset()


@dataclasses.dataclass(eq=False)
class Draw:
    """One draw of a mask.

    ``caller`` are the modules in which it was drawn, ``rate`` the share of zeros that was asked
    for, ``kept`` the mask, ``shape`` that of the numbers it is laid on. ``of`` and ``fields`` are
    the names of these numbers and the inputs they were computed of, ``read_by`` what computes with
    them next. A mask that is laid on several tensors has as many ``uses``. ``scaled`` says that
    kept numbers are divided by their share. What torch does inside one function has no ``kept``.
    """

    caller: tuple[str, ...]
    rate: float | None = None
    kept: Tensor | None = None
    shape: tuple[int, ...] = ()
    of: frozenset[str] = NOTHING
    fields: frozenset[str] = NOTHING
    read_by: set[str] = dataclasses.field(default_factory=set)
    uses: int = 1
    scaled: bool = False

    @functools.cached_property
    def shared(self) -> tuple[int, ...]:
        """The axes of ``shape`` along which all share one decision; a single number shares none."""
        if self.kept is None:
            return ()
        same = (bool((self.kept == self.kept.narrow(axis, 0, 1)).all()) for axis in range(self.kept.dim()))
        return tuple(axis for axis, one in enumerate(same) if one and self.shape[axis] > 1)

    def decisions(self) -> Tensor:
        """The mask with each decision once."""
        assert self.kept is not None
        mask = self.kept
        for axis in self.shared:
            mask = mask.narrow(axis, 0, 1)
        return mask.flatten()

    def laid(self, mask: Tensor, numbers: tuple[int, ...]) -> None:
        """Notes that the mask, in the shape of ``mask``, is laid on numbers of a shape."""
        self.uses += 1
        if self.uses == 1 and self.kept is not None and mask.numel() == self.kept.numel():
            self.shape = tuple(torch.broadcast_shapes(mask.shape, numbers))
            self.kept = self.kept.reshape((1,) * (len(self.shape) - mask.dim()) + tuple(mask.shape))


@dataclasses.dataclass(frozen=True)
class Marks:
    """What is known of a tensor: its names, the inputs it was computed of, the draws by which its
    numbers were dropped, and those whose mask it is."""

    of: frozenset[str] = NOTHING
    fields: frozenset[str] = NOTHING
    dropped: frozenset[Draw] = NOTHING
    mask: frozenset[Draw] = NOTHING

    @classmethod
    def joined(cls, marks: list[Marks]) -> Marks:
        """What is known of something computed of several tensors."""
        names = [field.name for field in dataclasses.fields(cls)]
        return cls(*(NOTHING.union(*(getattr(each, name) for each in marks)) for name in names))


class Recorder(TorchFunctionMode):
    """The draws of what runs inside it, in ``draws``.

    A tensor has the name of the module whose output it is; anything computed of it without a
    module, the names of all that it was computed of.
    """

    def __init__(self, model: nn.Module | None = None):
        super().__init__()
        self.names = {} if model is None else {id(module): name for name, module in model.named_modules()}
        self.draws: list[Draw] = []
        self.inside: list[str] = []
        self.marks: dict[int, Marks] = {}
        self.alive: list[Tensor] = []  # an id is a tensor's only while it lives

    def __enter__(self) -> Recorder:
        self.hooks = [
            register_module_forward_pre_hook(self._enter),
            register_module_forward_hook(self._leave, always_call=True),
        ]
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        for hook in self.hooks:
            hook.remove()

    def input(self, values: Any, field: str) -> None:
        """Names the numbers of an input; its ids and lengths only tell what is computed of it."""
        for tensor in tensors(values):
            if tensor.dtype != torch.bool:
                of = frozenset({f"[{field}]"}) if tensor.is_floating_point() else NOTHING
                self._mark(tensor, Marks(of, frozenset({field})))

    def _enter(self, module: nn.Module, inputs: Any) -> None:
        if not transparent(module):
            self.inside.append(self.names.get(id(module), type(module).__name__))

    def _leave(self, module: nn.Module, inputs: Any, output: Any) -> None:
        if transparent(module):
            return
        name = frozenset({self.inside.pop()})
        for tensor in tensors(output):
            if tensor.dtype != torch.bool:
                self._mark(tensor, dataclasses.replace(self._of(tensor), of=name))

    def _of(self, tensor: Tensor) -> Marks:
        return self.marks.get(id(tensor), Marks())

    def _mark(self, tensor: Tensor, marks: Marks) -> None:
        self.marks[id(tensor)] = marks
        self.alive.append(tensor)

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if function in DROPOUTS:
            numbers = kwargs.pop("input") if "input" in kwargs else args[0]
            return self._dropout(function, numbers, *args[1:], **kwargs)
        name = getattr(function, "__name__", "").strip("_")
        name = ONE_NAME.get(name, name)
        read = [(tensor, self._of(tensor)) for tensor in tensors((args, kwargs))]
        result = function(*args, **kwargs)
        made = list(tensors(result))
        if not made or name in READ_NOTHING:
            return result
        if name in DRAWS:
            kept = result != 0 if name == "bernoulli" else None
            shape = () if kept is None else tuple(kept.shape)
            self.draws.append(Draw(tuple(self.inside), kept=kept, shape=shape, uses=0))
            marks = Marks(mask=frozenset(self.draws[-1:]))
        else:
            self._within(name, args, kwargs)
            marks = self._result(name, args, read, made[0])
        for tensor in made:
            self._mark(tensor, marks)
        return result

    def _dropout(self, function: Any, numbers: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False):
        if not training or not p:
            return numbers
        marks = self._of(numbers)
        noise = function(torch.ones_like(numbers), p, True)
        draw = Draw(tuple(self.inside), p, noise != 0, tuple(numbers.shape), marks.of, marks.fields)
        draw.scaled = torch.allclose(noise[draw.kept], torch.tensor(1 / (1 - p)))
        self.draws.append(draw)
        if not marks.of and bool((numbers == 1).all()):  # a mask that is to be laid on something
            draw.uses = 0
            self._mark(noise, Marks(mask=frozenset({draw})))
            return noise
        result = numbers * noise
        self._mark(result, dataclasses.replace(marks, dropped=marks.dropped | {draw}))
        return result

    def _within(self, name: str, args: Any, kwargs: Any) -> None:
        """Notes the dropout that torch does inside one function."""
        rate = 0.0
        if name in RECURRENCES:  # input, first states, weights, bias, layers, ...; packed ones have sizes behind them
            layers, asked, training = args[4:7] if isinstance(args[3], bool) else args[5:8]
            rate = asked if training and layers > 1 else 0.0
        elif name == "scaled_dot_product_attention":
            rate = kwargs.get("dropout_p", args[4] if len(args) > 4 else 0.0)
        elif name == "multi_head_attention_forward":
            rate = args[10] if kwargs.get("training", True) else 0.0
        if rate:
            marks = self._of(args[0])
            self.draws.append(Draw(tuple(self.inside), rate, None, (), marks.of, marks.fields, {f"within {name}"}))
            self.draws[-1].scaled = True

    def _result(self, name: str, args: Any, read: list[tuple[Tensor, Marks]], made: Tensor) -> Marks:
        marks = Marks.joined([each for _, each in read])
        if marks.mask and name in COMPARISONS:
            for draw in marks.mask:
                draw.rate = next((float(each) for each in args if isinstance(each, int | float)), None)
                draw.kept, draw.shape, draw.uses = made, tuple(made.shape), 0
            return Marks(mask=marks.mask)
        if marks.mask and not (marks.of or marks.fields):
            return Marks(mask=marks.mask)
        for draw in marks.mask:
            draw.of, draw.fields = draw.of | marks.of, draw.fields | marks.fields
        if marks.mask and name in ("mul", "masked_fill", "where"):
            mask = next(tensor for tensor, each in read if each.mask)
            numbers = next((tuple(tensor.shape) for tensor, each in read if each.of and not each.mask), ())
            for draw in marks.mask:
                draw.laid(mask, numbers)
            return Marks(marks.of, marks.fields, marks.dropped | marks.mask)
        if name in LAYOUT or (name == "mul" and sum(bool(each.of) for _, each in read) == 1):
            return dataclasses.replace(marks, mask=NOTHING)
        for draw in marks.dropped | marks.mask:
            draw.read_by.add(self._reader(draw, name))
        return Marks(marks.of, marks.fields)

    def _reader(self, draw: Draw, function: str) -> str:
        """The module that reads dropped numbers, as seen from where they were dropped; the function
        where there is none between. Behind the encoder all is its head."""
        if ENCODER in draw.caller and ENCODER not in self.inside:
            return "head"
        pairs = itertools.zip_longest(draw.caller, self.inside)
        return next((here for there, here in pairs if there != here and here is not None), function)


def transparent(module: nn.Module) -> bool:
    """True for a module whose output has the name of its input."""
    return "Dropout" in type(module).__name__ or isinstance(module, nn.Identity)


def tensors(values: Any) -> Iterator[Tensor]:
    """The tensors in nested tuples, lists, mappings and objects with fields."""
    if isinstance(values, Tensor):
        yield values
        return
    if dataclasses.is_dataclass(values) and not isinstance(values, type):
        values = vars(values)
    if isinstance(values, Mapping):
        values = tuple(values.values())
    if isinstance(values, tuple | list):
        for value in values:
            yield from tensors(value)


# --- a case of an architecture ---

RATES = (0.52, 0.31, 0.64, 0.43, 0.21, 0.73)
"""Rates that the dropout options of an architecture are given, each another."""
FEW = 8
"""Most draws that texts and layers make in a pass; more are those of steps, one for each word."""
ONE_TEXT = ("seq", "text", "tree", "tag", "lm", "plm", "ctc", "generate", "regime")
"""Kinds whose encoder reads a text without knowing of another."""


class Place(NamedTuple):
    """A place where an architecture drops numbers: the modules or inputs that they come from, what
    reads them, the option that gives the rate, and whose decision is one."""

    numbers: str
    read_by: str
    rate: str
    mask: str


def options(settings: Mapping[str, Any]) -> list[str]:
    """The dropout options among the settings; ``name.0`` is the first of several rates."""
    found = [(name, value) for name, value in settings.items() if "dropout" in name]
    return [
        option
        for name, value in found
        for option in ([f"{name}.{i}" for i in range(len(value))] if isinstance(value, list) else [name])
    ]


def settings_of(case: TrainedCase | FittedCase) -> dict[str, Any]:
    """The settings of the architecture of a case, or of the input source that it is about."""
    return case.inputs[case.source] if isinstance(case, InputCase) else case.settings  # type: ignore[return-value]


def set_rates(case: TrainedCase | FittedCase, rates: Mapping[str, float]) -> None:
    """Gives the dropout options these rates, and two layers to what would have one: dropout
    between layers needs some."""
    settings = settings_of(case)
    for name, value in settings.items():
        if "dropout" in name:
            several = isinstance(value, list)
            settings[name] = [rates[f"{name}.{i}"] for i in range(len(value))] if several else rates[name]
    if settings.get("layers") == 1:
        settings["layers"] = 2


def of_a_pass(case: TrainedCase, training: bool) -> list[Draw]:
    """The draws of one pass of a fresh model of the case."""
    model = case.model().train(training)
    model.head.stretch = 10**6  # a text of a language model in one piece
    objective = case.objective(model)
    objective.train(training)
    recorder, read = Recorder(model), model.read

    def named(inputs: dict[str, Any]) -> dict[str, Any]:
        words = read(inputs)
        for field, batch in words.items():
            recorder.input(batch, field)
        return words

    model.read = named  # type: ignore[method-assign]
    with recorder:
        case.losses(model, objective, case.corpus.train.collate(rows_of(case)))
    return list(filter(drops, recorder.draws))


def of_a_fit(case: FittedCase) -> list[Draw]:
    """The draws of a system that is fitted in a way of its own, in a few epochs."""
    case.settings["epochs"] = 5
    with Recorder() as recorder:
        made(case.cls, case.task.entry.type, 0, case.settings).fit(case.train, case.dev, case.hidden)
    return list(filter(drops, recorder.draws))


def drops(draw: Draw) -> bool:
    """True for a draw that leaves something out at a rate; another puts things into an order."""
    return draw.scaled or bool(draw.rate) or (draw.rate is None and draw.kept is not None)


def rows_of(case: TrainedCase) -> np.ndarray:
    """A few rows of training; whole questions of a ranking."""
    return np.arange(5) if case.corpus.train.groups is None else case.eight()


def places(case: TrainedCase | FittedCase, draws: list[Draw], rates: Mapping[str, float]) -> set[Place]:
    """The places of the draws, in the words of ``dropouts.csv``."""
    names = {value: name for name, value in settings_of(case).items() if isinstance(value, float)}
    names |= {rate: option for option, rate in rates.items()}
    sizes, fields = ({}, []) if isinstance(case, FittedCase) else (_sizes(case), sorted(case.corpus.fields))
    one_text = case.entry.kind in ONE_TEXT
    found = Counter(
        Place(_numbers(draw, fields, one_text), _joined(draw.read_by), _rate(draw, names), _mask(draw, sizes))
        for draw in draws
    )
    times = {n: f", {n} times" if n <= FEW else ", each step" for n in found.values()} | {1: ""}
    named = {place._replace(mask=place.mask + times[n]) for place, n in found.items()}
    return _for_each(named, fields)


def _numbers(draw: Draw, fields: list[str], one_text: bool) -> str:
    numbers = _joined(draw.of or {f"[{field}]" for field in draw.fields})
    if one_text:
        return re.sub(r"\[\w+\]", "[text]", numbers)
    if draw.fields and draw.fields != set(fields) and "[" not in numbers:
        numbers += f" [{'+'.join(sorted(draw.fields))}]"
    return numbers


def _joined(names: Iterable[str]) -> str:
    """The names in one, without the encoder's in front; "attentions.0-3" for four of a list."""
    short = {name.removeprefix(f"{ENCODER}.") for name in names}
    short = {re.sub(r"\b(layers?)\.\d+\.", r"\1.*.", "head" if name.startswith("head.") else name) for name in short}
    for stem in {name.rpartition(".")[0] for name in short if name.rpartition(".")[2].isdigit()}:
        numbers = {int(name.rpartition(".")[2]) for name in short if re.fullmatch(re.escape(stem) + r"\.\d+", name)}
        if len(numbers) > 1 and numbers == set(range(len(numbers))):
            short = short - {f"{stem}.{number}" for number in numbers} | {f"{stem}.0-{max(numbers)}"}
    return "+".join(sorted(short)) or "-"


def _rate(draw: Draw, names: Mapping[float, str]) -> str:
    return "-" if draw.rate is None else names.get(draw.rate, f"{draw.rate:g}")


def _sizes(case: TrainedCase) -> dict[int, str]:
    """The meaning of an axis by its size."""
    rows, inputs = rows_of(case), case.corpus.train.inputs
    words = {int(case.corpus.view.lengths(inputs[field])[rows].max()): "words" for field in case.corpus.fields}
    return words | {len(rows): "texts"}


def _mask(draw: Draw, sizes: Mapping[int, str]) -> str:
    shared = sorted({sizes.get(draw.shape[axis], "numbers") for axis in draw.shared})
    words = [f"one for all {' and '.join(shared)}" if shared else "own"]
    words += ["reused"] if draw.uses > 1 else []
    return ", ".join(words + ([] if draw.scaled else ["unscaled"]))


def _for_each(places: set[Place], fields: list[str]) -> set[Place]:
    """The places, those that are alike for each input written once."""
    merged = set(places)
    for place in places if fields else ():
        alike = {place._replace(numbers=place.numbers.replace(f"[{fields[0]}]", f"[{field}]")) for field in fields}
        if len(alike) == len(fields) > 1 and alike <= places:
            merged = merged - alike | {place._replace(numbers=place.numbers.replace(f"[{fields[0]}]", "[each]"))}
    return merged
