"""Settings of cells in words with units, for readers who do not know the names in the code."""

from __future__ import annotations

from typing import NamedTuple


class Words(NamedTuple):
    """A text with a place for the value, another one for no value at all, and one for the value
    1 where the first would have a plural."""

    given: str
    none: str = ""
    one: str = ""


KNOWN = {
    "architecture_version": Words("version {} of the architecture"),
    "task_version": Words("version {} of the task"),
    "devices": Words("{} devices", one="1 device"),
    "hidden": Words("{} hidden units"),
    "limits.budget": Words("budget {}", "no budget of the task"),
    "limits.labels": Words("{} labels", "all labels", "1 label"),
    "limits.max_epochs": Words("at most {} passes", "no limit on passes", "at most 1 pass"),
    "limits.max_train": Words("at most {} training examples", "all training examples"),
    "parents.weights": Words("weights of {}", "random weights"),
    "training.batch_size": Words("batches of {}"),
    "training.clip": Words("gradients clipped at {}", "gradients not clipped"),
    "training.decay_exempt": Words("no weight decay of {}", "weight decay of all"),
    "training.dropout": Words("dropout {} in training"),
    "training.epochs": Words("{} passes", one="1 pass"),
    "training.lr": Words("learning rate {}"),
    "training.lr_schedule": Words("schedule {} of the learning rate"),
    "training.min_steps": Words("at least {} steps", "no least number of steps"),
    "training.patience": Words("patience of {} passes", "no early stopping", "patience of 1 pass"),
    "training.reduction": Words("loss by {}"),
    "training.vector_dims": Words("word vectors of {} dimensions"),
    "training.warmup_share": Words("warm-up of {} of the steps"),
    "training.warmup_steps": Words("{} steps of warm-up"),
    "vectors": Words("vectors {}", "no given vectors"),
    "view.max_length": Words("texts cut after {} words", "texts not cut"),
    "view.min_count": Words("words seen {} times or more"),
}
"""Settings whose name alone would not say what the number counts. Others are their name."""


def in_words(name: str, value: object) -> str:
    """A setting as a reader sees it, such as "at most 2,000 training examples".

    ``name`` is that in the cell, with dots between the levels and without ``hyperparameters.``;
    ``value`` is None where this cell has no such setting, too.
    """
    known = KNOWN.get(name)
    plain = name.replace("training.", "").replace("parents.", "").replace(".", " ").replace("_", " ")
    if value is None:
        return known.none if known and known.none else f"no {plain}"
    if isinstance(value, bool):
        return f"with {plain}" if value else f"without {plain}"
    if known and known.one and value == 1:
        return known.one
    return known.given.format(_value(value)) if known else f"{plain} {_value(value)}"


def _value(value: object) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list | tuple):
        return " and ".join(map(_value, value)) or "none"
    return str(value) or "none"
