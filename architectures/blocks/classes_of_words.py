"""Texts of words that have one class each: what regimes need that count words, replace or write
them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from architectures.blocks.moved_vectors import probabilities_missing
from harness import registry
from harness.registry import TaskEntry
from harness.views.words import Words


def classes_of_words_missing(task: TaskEntry, hyperparameters: Mapping[str, Any], does: str) -> str | None:
    """The reason why a regime that ``does`` something with the words of texts of one class each
    cannot, if it cannot: another task, or one whose wrapped architecture reads no words or gives no
    probabilities of classes."""
    wrapped = registry.entry("architectures", hyperparameters["wraps"])
    encoder = registry.load(wrapped)
    if task.type != "classify":
        return f"{does} of texts that have one class each, and a task of type {task.type} has none"
    if type(encoder.view_for(task, wrapped.hyperparameters)) is not Words:
        return f"{does}, and {wrapped.id} reads something else on {task.id}"
    return probabilities_missing(encoder, wrapped.id)
