"""Settings of a training: one typed, frozen object for recipes, protocols and fits."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from harness.errors import did_you_mean

OPTIMIZERS = ("adam", "adamw", "adamax", "adagrad", "adadelta", "rmsprop", "sgd")
SCHEDULES = (
    "constant",
    "linear",
    "warmup_inverse_sqrt",
    "inverse_epoch",
    "step",
    "plateau",
    "slanted_triangle",
    "cosine",
)
REDUCTIONS = ("mean", "sentence", "batch")
EXEMPT = ("biases", "norms", "vectors")
ROLES = ("weights", "teacher", "inputs", "vectors", "tokens", "tags")
"""Roles in which a cell starts from what another one learnt."""


@dataclass(frozen=True)
class TrainingSettings:
    """Settings of the training of a model. In a plugin's decorator it is written ``Recipe(...)``.

    ``lr`` is the learning rate, or several that are compared on dev. ``clip`` is the largest norm
    of the gradient, ``vector_dims`` the width of word vectors, ``patience`` the epochs without a
    better dev score after which training stops. ``min_steps`` optimiser steps are made in any case:
    where ``epochs`` passes have fewer, more passes are made, and patience counts from there on.
    Epochs are whole: where they have several passes, up to one more than that is made. The steps
    are those of one device; several read as many batches in fewer steps.

    Optimisers: ``momentum`` is that of ``sgd`` and ``rmsprop``, ``betas`` those of the Adam family,
    ``rho`` Adadelta's and ``alpha`` RMSProp's decay, ``eps`` the term in the denominator; None is
    torch's default. ``first_sum`` is what Adagrad's sums of squared gradients begin with: at 0 each
    number moves by the whole rate in its first step. ``decay_exempt`` names what ``weight_decay``
    leaves out: ``biases``, ``norms`` (layer and batch normalisation) and ``vectors`` (embedding
    tables).

    Schedules (``lr_schedule``), as a factor on the rate at step s of S:

    - ``constant``: 1; ``linear``: 1 - s / S; ``cosine``: half a cosine from 1 to ``lowest``;
    - ``warmup_inverse_sqrt``: rises over the warm-up W, then sqrt(W / s);
    - ``inverse_epoch``: 1 / (1 + ``decay`` * k) after k epochs;
    - ``step``: times ``factor`` when ``step_start`` epochs have passed, and again after every
      ``step_epochs`` more;
    - ``plateau``: times ``factor`` after every epoch whose dev score is not the best so far;
    - ``slanted_triangle``: from ``lowest`` up to 1 over the warm-up and down to ``lowest`` again.

    Warm-up is ``warmup_steps``, or ``warmup_share`` of all steps. It is a part of
    ``warmup_inverse_sqrt`` and ``slanted_triangle``; every other schedule is multiplied by a factor
    that rises linearly to 1. ``cosine`` begins to fall behind it, ``linear`` at the first step, so
    that it does not reach the full rate.

    ``reduction`` says what the loss is summed over: ``mean`` is the mean that the problem's head
    takes; ``sentence`` sums over the words or symbols of a row and takes the mean of the rows;
    ``batch`` sums over both. ``label_smoothing`` is the share of probability that the classes
    share. ``averaging`` is the decay of a moving average of the weights, which answers in their
    place; 0 is none. It begins with the first weights; with ``averaging_warmup`` the decay after s
    steps is at most (1 + s) / (10 + s), so that a short training forgets these. ``groups`` gives
    parameters whose name matches a shell pattern a rate of their own: pairs (pattern, factor), the
    first match counts, factor 0 freezes. ``stretch`` is the number of words of each text in a step
    of a language model, which carries its state to the next step.

    ``layer_decay`` multiplies the rates of an encoder's layers, which are known by the first number
    in a name (``encoder.layers.3.weight``): once for the last layer, and once more for each one
    before it. Once more than the first layer count the table of words in front of an encoder
    (``table.``) and what has ``embed`` in its name and no number. All else has the full rate: the
    head, a ``pooler``, and whatever has neither, such as the tables of pieces, positions and
    segments within BERT's encoder and its like (``encoder.table``); ``groups`` can lower theirs.

    Three settings change what an encoder reads and what is read of it, whatever the encoder;
    recipes leave them alone. ``shared_words`` adds to each word of two texts that are read apart
    whether it stands in the other one. ``unknown_rate`` is the probability that a word seen once
    in training is read as the unknown word while training. ``dropout`` acts on word vectors, and on
    what the head's layer reads.
    """

    optimizer: str = "adam"
    lr: float | tuple[float, ...] = 0.001
    batch_size: int = 64
    epochs: int = 20
    patience: int = 5
    weight_decay: float = 0.0
    momentum: float = 0.0
    clip: float | None = None
    lr_schedule: str = "constant"
    decay: float = 0.0
    warmup_steps: int = 0
    vector_dims: int = 300
    betas: tuple[float, float] | None = None
    rho: float | None = None
    alpha: float | None = None
    first_sum: float = 0.0
    eps: float | None = None
    warmup_share: float = 0.0
    step_start: float = 0.0
    step_epochs: float = 1.0
    factor: float = 0.5
    lowest: float = 0.0
    decay_exempt: tuple[str, ...] = ()
    reduction: str = "mean"
    label_smoothing: float = 0.0
    averaging: float = 0.0
    groups: tuple[tuple[str, float], ...] = ()
    layer_decay: float = 1.0
    min_steps: int = 0
    shared_words: bool = False
    unknown_rate: float = 0.0
    dropout: float = 0.0
    stretch: int = 35
    averaging_warmup: bool = False

    def __post_init__(self) -> None:
        """Raise ``ValueError`` for a value that no training can have, of whatever type it is."""
        for name, (fits, wanted) in _WANTED.items():
            value = getattr(self, name)
            if not fits(value) and not (value is None and _DEFAULTS[name] is None):
                raise ValueError(f"training.{name}: {value!r} is not {wanted}")
        _one_of("optimizer", self.optimizer, OPTIMIZERS)
        _one_of("lr_schedule", self.lr_schedule, SCHEDULES)
        _one_of("reduction", self.reduction, REDUCTIONS)
        for name in self.decay_exempt:
            _one_of("decay_exempt", name, EXEMPT)

    @property
    def learning_rates(self) -> tuple[float, ...]:
        """The rates that are compared on dev; one is taken as it is."""
        return tuple(self.lr) if isinstance(self.lr, tuple | list) else (self.lr,)

    def warmup(self, steps: int) -> int:
        """Steps of the warm-up of a training of ``steps`` steps."""
        return self.warmup_steps or round(self.warmup_share * steps)

    def to_dict(self, complete: bool = False) -> dict[str, Any]:
        """The settings as a record holds them: JSON values, the rates as ``learning_rates``.

        Settings that came after records of schema 1 are left out at their default, so that the
        cells of those records keep their keys; ``complete`` lists them all.
        """
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        values = {"learning_rates": list(self.learning_rates)} | {n: v for n, v in values.items() if n != "lr"}
        if not complete:
            values = {n: v for n, v in values.items() if n in _ALWAYS or v != _DEFAULTS[n]}
        return {name: _plain(value) for name, value in values.items()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> TrainingSettings:
        """Settings from :meth:`to_dict`; ``ValueError`` names a key that is none of them."""
        known = {field.name for field in dataclasses.fields(cls)} | {"learning_rates"}
        for name in values:
            if name not in known:
                raise ValueError(f"training.{name}: no such setting; {did_you_mean(name, known, 'see Recipe')}")
        values = {name: _frozen(value) for name, value in values.items()}
        if "learning_rates" in values:
            rates = values.pop("learning_rates")
            values["lr"] = rates[0] if _is_list(rates, 1) else rates
        return cls(**values)


Recipe = TrainingSettings
"""The settings of a paper's training, as an architecture's decorator gives them."""

_DEFAULTS = {field.name: field.default for field in dataclasses.fields(TrainingSettings)}
_ALWAYS = ("learning_rates", *list(_DEFAULTS)[: list(_DEFAULTS).index("betas")])


PILOT_SHARE = 0.1
"""Of a training's steps: what a learning rate is tried on before the best one trains the cell."""


@dataclass(frozen=True)
class Budget:
    """Amount of training that a task gives each architecture, under a name such as ``small``.

    ``examples`` of the training set (None: all of it) are passed over ``passes`` times in batches
    of ``batch_size``, and ``min_steps`` optimiser steps are made in any case. A recipe has passes
    and batches of its own: of a budget it takes the examples alone. ``reason`` says why so much.

    >>> Budget(4, examples=2000, batch_size=16, reason="half a minute of a core").examples
    2000
    """

    passes: int
    examples: int | None = None
    min_steps: int = 0
    batch_size: int = 32
    reason: str = ""

    def with_labels(self, labels: int) -> Budget:
        """The budget of a training in which so many examples keep their answers.

        It has :data:`LABELLED_STEPS` at least, and as far as these go over the examples several
        times, :data:`LABELLED_PASSES` passes, of which the training makes its epochs.

        >>> few = Budget(1, min_steps=1500, batch_size=32).with_labels(200)
        >>> few.passes, few.min_steps
        (4, 1500)
        """
        steps = max(self.min_steps, LABELLED_STEPS)
        most = -(-steps // -(-labels // self.batch_size))  # passes that these steps begin
        return dataclasses.replace(self, min_steps=steps, passes=max(self.passes, min(LABELLED_PASSES, most)))


FULL, CUSTOM = "full", "custom"
"""Names of the budget with all examples, which every task has, and of one that a user chose by
``--max-train`` or ``--max-epochs``: its cells are never ranked."""


LABELLED_STEPS = 500
"""Optimiser steps of a training with a number of labels, at least: the passes of a budget are meant
for all examples, and make a dozen steps of a hundred."""

LABELLED_PASSES = 4
"""Times that such a training asks dev, at least: a budget of one pass over all examples would go
over a hundred of them hundreds of times, and ask once, at the end."""


@dataclass(frozen=True)
class Limits:
    """Caps of a cell: ``max_train`` training examples and ``max_epochs`` passes (None is no cap),
    the task's ``budget`` that they are from, if they are from one, and the number of ``labels``,
    the training examples that keep their answers (None: all)."""

    max_train: int | None = None
    max_epochs: int | None = None
    budget: str | None = None
    labels: int | None = None

    @property
    def name(self) -> str:
        """Name of the budget."""
        base = self.budget or (FULL if self.max_train is None and self.max_epochs is None else CUSTOM)
        if self.labels is None:
            return base
        return f"{self.labels}_labels" if base == FULL else f"{base}_{self.labels}_labels"

    @property
    def labelled(self) -> int | None:
        """Most training examples with their answers; None where all have them."""
        return min((most for most in (self.max_train, self.labels) if most is not None), default=None)

    @classmethod
    def of(cls, hyperparameters: Mapping[str, Any]) -> Limits:
        """The caps in a cell's hyperparameters; none where a foreign record lacks them."""
        limits = hyperparameters.get("limits") or {}
        return cls(limits.get("max_train"), limits.get("max_epochs"), limits.get("budget"), limits.get("labels"))

    def to_dict(self) -> dict[str, Any]:
        """The caps as a record holds them; ``budget`` and ``labels`` came later, and are there
        where they say more than the others do."""
        later = ("budget", "labels")
        return {name: value for name, value in dataclasses.asdict(self).items() if name not in later or value}


def _one_of(name: str, value: str, names: tuple[str, ...]) -> None:
    if value not in names:
        raise ValueError(f"training.{name}: {value!r} is none of {', '.join(names)}")


def _plain(value: Any) -> Any:
    return [_plain(item) for item in value] if isinstance(value, tuple | list) else value


def _frozen(value: Any) -> Any:
    return tuple(_frozen(item) for item in value) if isinstance(value, list | tuple) else value


def _is_list(value: Any, length: int | None = None) -> bool:
    """True for a tuple or list, of that length if one is given."""
    return isinstance(value, tuple | list) and length in (None, len(value))


def _is_number(value: Any, least: float = 0) -> bool:
    """True for a finite number from the least on, and not for a truth value, which Python counts
    among the numbers."""
    return isinstance(value, int | float) and not isinstance(value, bool) and least <= value < math.inf


def _is_positive(value: Any) -> bool:
    return _is_number(value) and value > 0


def _is_share(value: Any) -> bool:
    return _is_number(value) and value < 1


def _is_rate(value: Any) -> bool:
    return all(map(_is_positive, value)) and bool(value) if _is_list(value) else _is_positive(value)


def _are_groups(value: Any) -> bool:
    return _is_list(value) and all(
        _is_list(pair, 2) and isinstance(pair[0], str) and _is_number(pair[1]) for pair in value
    )


def _whole(least: int) -> tuple[Callable[[Any], bool], str]:
    return lambda value: isinstance(value, int) and _is_number(value, least), f"a whole number from {least}"


_NUMBER = (_is_number, "a number from 0")
_POSITIVE = (_is_positive, "a positive number")
_SHARE = (_is_share, "a share from 0 to below 1")
_FLAG = (lambda value: isinstance(value, bool), "True or False")

_WANTED: dict[str, tuple[Callable[[Any], bool], str]] = {
    "lr": (_is_rate, "a positive number, or a list of some (learning_rates in -o and in records)"),
    "batch_size": _whole(1),
    "epochs": _whole(1),
    "patience": _whole(1),
    "weight_decay": _NUMBER,
    "momentum": _SHARE,
    "clip": (_is_positive, "a positive norm; None leaves gradients as they are"),
    "decay": _NUMBER,
    "warmup_steps": _whole(0),
    "vector_dims": _whole(0),
    "betas": (lambda value: _is_list(value, 2) and all(map(_is_share, value)), "two shares from 0 to below 1"),
    "rho": _SHARE,
    "alpha": _SHARE,
    "first_sum": _NUMBER,
    "eps": _NUMBER,
    "warmup_share": _SHARE,
    "step_start": _NUMBER,
    "step_epochs": _POSITIVE,
    "factor": _NUMBER,
    "lowest": _NUMBER,
    "decay_exempt": (_is_list, f"a list of some of {', '.join(EXEMPT)}"),
    "label_smoothing": _SHARE,
    "averaging": _SHARE,
    "groups": (_are_groups, "a list of pairs of a pattern and a factor from 0, such as [['table.*', 0.1]]"),
    "layer_decay": _NUMBER,
    "min_steps": _whole(0),
    "shared_words": _FLAG,
    "unknown_rate": _SHARE,
    "dropout": _SHARE,
    "stretch": _whole(1),
    "averaging_warmup": _FLAG,
}
"""Settings with the test of their values, and in words what it asks for; those that choose among
names are apart. None passes where it is the default."""
